//! Finds the two drivers of USB disks on this machine and reads their device tables.
//!
//! Each driver has a table of devices that need special flags, among them "do not use UAS". The table is read from the
//! installed module: an ELF file, possibly compressed, in which `modpost`'s symbol `__mod_usb__…_device_table`
//! (`__mod_device_table__…usb__…` since Linux 6.14) names an array of `struct usb_device_id`. So the rules are those of
//! the running kernel, not of a list that becomes outdated.
//!
//! Cannot see: the table of a driver that is built into the kernel; a module that was replaced on
//! disk after it was loaded; identifiers that were added by hand (`new_id`).
//!
//! Source: Linux `include/linux/mod_devicetable.h` (the layout), `drivers/usb/core/driver.c`
//! `usb_match_one_id` (the matching), `scripts/mod/file2alias.c` (the symbol).

use crate::system::System;
use object::read::elf::ElfFile;
use object::{Object, ObjectSection, ObjectSymbol};
use std::io::Read;
use trueio_model::Fact;

/// A limit on the uncompressed size of a module, in bytes; both modules are far smaller.
const MODULE_BYTES_MAX: u64 = 64 << 20;

/// One entry of a driver's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry {
    /// The fields that must match: `USB_DEVICE_ID_MATCH_…`.
    match_flags: u16,
    vendor: u16,
    product: u16,
    release_low: u16,
    release_high: u16,
    device_class: [u8; 3],
    interface_class: [u8; 3],
    interface_number: u8,
    /// The flags, `US_FL_…`.
    pub flags: u64,
}

/// The properties that the kernel compares with a table's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchedDevice {
    /// Vendor.
    pub vendor: u16,
    /// Product.
    pub product: u16,
    /// Release, binary-coded decimal.
    pub release: u16,
    /// Class, subclass and protocol of the device.
    pub device_class: [u8; 3],
    /// Class, subclass and protocol of the interface's first alternate setting.
    pub interface_class: [u8; 3],
    /// The interface's number.
    pub interface_number: u8,
}

impl TableEntry {
    const NONE: Self = Self {
        match_flags: 0,
        vendor: 0,
        product: 0,
        release_low: 0,
        release_high: 0,
        device_class: [0; 3],
        interface_class: [0; 3],
        interface_number: 0,
        flags: 0,
    };

    /// An entry for the releases of a model, from the first to the last.
    pub(super) const fn of_model(vendor: u16, product: u16, releases: [u16; 2], flags: u64) -> Self {
        let [release_low, release_high] = releases;
        // Vendor, product, and both ends of the releases.
        Self { match_flags: 0x0f, vendor, product, release_low, release_high, flags, ..Self::NONE }
    }

    fn matches(&self, device: &MatchedDevice) -> bool {
        let asks = |bit: u16| self.match_flags & bit != 0;
        // The bits in the order of `USB_DEVICE_ID_MATCH_…`.
        let mut agrees = (!asks(1) || self.vendor == device.vendor)
            && (!asks(2) || self.product == device.product)
            && (!asks(4) || self.release_low <= device.release)
            && (!asks(8) || self.release_high >= device.release);
        for at in 0..3 {
            agrees &= !asks(0x10 << at) || self.device_class[at] == device.device_class[at];
            agrees &= !asks(0x80 << at) || self.interface_class[at] == device.interface_class[at];
        }
        // A vendor-specific class matches only if the entry also names the vendor.
        let is_own_class = device.device_class[0] == 0xff && !asks(1) && self.match_flags & 0x0380 != 0;
        agrees && !is_own_class && (!asks(0x400) || self.interface_number == device.interface_number)
    }
}

/// Returns the flags of the first matching entry; 0 if none matches.
pub fn built_in_flags(table: &[TableEntry], device: &MatchedDevice) -> u64 {
    table.iter().find(|entry| entry.matches(device)).map_or(0, |entry| entry.flags)
}

/// Why a driver's table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The file is not a supported ELF file.
    #[error("it is not a kernel module in a known format: {0}")]
    NotElf(String),
    /// Decompression failed.
    #[error("it could not be decompressed: {0}")]
    Compressed(String),
    /// The module has no table.
    #[error("it contains no table of USB devices")]
    NoTable,
}

/// Reads the table of a module's file, compressed or not.
///
/// # Errors
/// [`TableError`]. A truncated table is an error.
pub fn parse_table(file: &[u8]) -> Result<Vec<TableEntry>, TableError> {
    let bytes = decompressed(file)?;
    let no_elf = |error: object::Error| TableError::NotElf(error.to_string());
    if bytes.get(4) == Some(&1) {
        table_of(&ElfFile::<object::elf::FileHeader32<object::Endianness>>::parse(&*bytes).map_err(no_elf)?)
    } else {
        table_of(&ElfFile::<object::elf::FileHeader64<object::Endianness>>::parse(&*bytes).map_err(no_elf)?)
    }
}

/// Decompresses a file; the magic number at its start gives the format.
pub(super) fn decompressed(file: &[u8]) -> Result<Vec<u8>, TableError> {
    let mut bytes = Vec::new();
    let result = match file {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            lzma_rust2::XzReader::new(file, true).take(MODULE_BYTES_MAX).read_to_end(&mut bytes)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(file);
            let decoder = decoder.map_err(|error| TableError::Compressed(error.to_string()))?;
            decoder.take(MODULE_BYTES_MAX).read_to_end(&mut bytes)
        }
        [0x1f, 0x8b, ..] => flate2::read::GzDecoder::new(file).take(MODULE_BYTES_MAX).read_to_end(&mut bytes),
        _ => return Ok(file.to_vec()),
    };
    result.map_err(|error| TableError::Compressed(error.to_string()))?;
    Ok(bytes)
}

fn table_of<'a>(elf: &impl Object<'a>) -> Result<Vec<TableEntry>, TableError> {
    let is_table = |name: &str| name.starts_with("__mod_") && name.contains("device_table") && name.contains("usb__");
    let symbol = elf.symbols().find(|symbol| symbol.name().is_ok_and(is_table)).ok_or(TableError::NoTable)?;
    let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
    let data = section.as_ref().and_then(|section| {
        let at = symbol.address().checked_sub(section.address())?;
        section.data_range(section.address() + at, symbol.size()).ok().flatten()
    });
    let data = data.ok_or(TableError::NoTable)?;
    // `kernel_ulong_t driver_info` is aligned to its size.
    let (entry_bytes, info_at) = if elf.is_64() { (32, 24) } else { (24, 20) };
    let is_little = elf.is_little_endian();
    let half = |entry: &[u8], at: usize| {
        let pair = [entry[at], entry[at + 1]];
        if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
    };
    let table = data
        .chunks_exact(entry_bytes)
        .map(|entry| {
            let info = entry[info_at..].iter();
            let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            TableEntry {
                match_flags: half(entry, 0),
                vendor: half(entry, 2),
                product: half(entry, 4),
                release_low: half(entry, 6),
                release_high: half(entry, 8),
                device_class: [entry[10], entry[11], entry[12]],
                interface_class: [entry[13], entry[14], entry[15]],
                interface_number: entry[16],
                flags: if is_little { info.rev().fold(0, shift) } else { info.fold(0, shift) },
            }
        })
        // The array ends with an entry that matches on no field.
        .take_while(|entry| entry.match_flags != 0 || entry.flags != 0);
    Ok(table.collect())
}

/// One of the two drivers on this machine.
#[derive(Debug, Clone)]
pub struct Driver {
    /// The driver's name (`usb-storage`).
    pub name: &'static str,
    /// Whether it is in the kernel now.
    pub is_loaded: bool,
    /// Whether it is part of the kernel's image.
    pub is_built_in: bool,
    /// The module's file, if one is installed.
    pub file: Option<String>,
    /// The directory that was searched.
    pub source: String,
    /// Its device table.
    pub table: Fact<Vec<TableEntry>>,
}

impl Driver {
    /// Finds a driver: loaded, built in or installed.
    pub fn find(system: &System, name: &'static str) -> Self {
        let underscored = name.replace('-', "_");
        let is_loaded = system.exists(&format!("/sys/module/{underscored}"))
            || system.exists(&format!("/sys/bus/usb/drivers/{name}"));
        let release = system.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let folder = format!("/lib/modules/{release}");
        let inner = format!("kernel/drivers/usb/storage/{name}.ko");
        let has = |list: &str| {
            let text = system.read(&format!("{folder}/{list}")).unwrap_or_default();
            text.lines().find_map(|line| {
                let path = line.split(':').next().unwrap_or_default();
                let file = path.rsplit('/').next().unwrap_or_default();
                (file.split(".ko").next() == Some(name) && file.contains(".ko")).then(|| path.to_owned())
            })
        };
        let is_built_in = has("modules.builtin").is_some();
        let installed = has("modules.dep").map(|path| format!("{folder}/{path}"));
        let usual = ["", ".xz", ".zst", ".gz"].into_iter().map(|ending| format!("{folder}/{inner}{ending}"));
        let file = installed.into_iter().chain(usual).find(|path| system.exists(path));
        let table = match &file {
            Some(path) => match system.read_bytes(path) {
                Ok(bytes) => match parse_table(&bytes) {
                    Ok(table) => Fact::known(table, path.clone()),
                    Err(error) => Fact::unknown(format!("{path}: {error}")),
                },
                Err(error) => Fact::unknown(crate::system::why_not(path, &error)),
            },
            None if is_built_in => Fact::unknown(format!("{name} is built into the kernel; its table cannot be read")),
            None => Fact::unknown(format!("no {name}.ko is installed under {folder}")),
        };
        Self { name, is_loaded, is_built_in, file, source: folder, table }
    }
}

/// Returns whether the kernel was built with UAS (`CONFIG_USB_UAS`): `y`, `m` or `n`.
pub(super) fn config_uas(system: &System) -> Fact<char> {
    let release = system.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut tried = Vec::new();
    for path in
        [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config"), "/proc/config.gz".to_owned()]
    {
        let Ok(bytes) = system.read_bytes(&path) else {
            tried.push(path);
            continue;
        };
        let Ok(bytes) = decompressed(&bytes) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let value = text.lines().find_map(|line| {
            let set = line.strip_prefix("CONFIG_USB_UAS=").and_then(|value| value.chars().next());
            set.or_else(|| (line.trim() == "# CONFIG_USB_UAS is not set").then_some('n'))
        });
        // The configuration of a kernel without USB storage does not contain the option.
        return Fact::known(value.unwrap_or('n'), path);
    }
    Fact::unknown(format!("none of {} can be read", tried.join(", ")))
}

/// Returns what keeps modprobe from loading `uas`: files with line numbers, and options of the kernel's command line.
pub(super) fn files_that_bar_uas(system: &System) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"] {
        for name in system.list(folder).into_iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            let text = system.read(&path).unwrap_or_default();
            for (at, line) in text.lines().enumerate() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let is_barred = match words.as_slice() {
                    ["blacklist", "uas", ..] => true,
                    ["install", "uas", command, ..] => command.ends_with("/false") || command.ends_with("/true"),
                    _ => false,
                };
                if is_barred {
                    found.push(format!("{path} line {}", at + 1));
                }
            }
        }
    }
    let line = system.read("/proc/cmdline").unwrap_or_default();
    for word in line.split_whitespace() {
        let list = word.strip_prefix("modprobe.blacklist=").or_else(|| word.strip_prefix("module_blacklist="));
        if list.is_some_and(|list| list.split(',').any(|name| name == "uas")) {
            found.push(format!("the kernel's command line (`{word}`)"));
        }
    }
    found
}

#[cfg(test)]
#[path = "../../tests/it/staged.rs"]
mod staged;

#[cfg(test)]
mod tests {
    use super::staged::module;
    use super::*;

    const ENTRIES: [(u16, u16, u16, u16, u16, u64); 2] =
        [(0x0f, 0x2537, 0x1068, 0x0000, 0x9999, 0x0080_0000), (0x0f, 0x0984, 0x0301, 0x0128, 0x0128, 0x0280_0000)];

    fn device(vendor: u16, product: u16, release: u16) -> MatchedDevice {
        MatchedDevice { vendor, product, release, interface_class: [8, 6, 0x50], ..MatchedDevice::default() }
    }

    #[test]
    fn the_table_is_read_from_modules_of_both_widths_and_of_both_names_of_the_symbol() {
        for is_64 in [true, false] {
            for symbol in ["__mod_usb__uas_usb_ids_device_table", "__mod_device_table__kmod_uas__usb__uas_usb_ids"] {
                let table = parse_table(&module(&ENTRIES, symbol, is_64)).expect("a table");
                assert_eq!(table.len(), 2, "{symbol} {is_64}");
                assert_eq!(built_in_flags(&table, &device(0x2537, 0x1068, 0x0100)), 0x0080_0000);
                assert_eq!(built_in_flags(&table, &device(0x0984, 0x0301, 0x0128)), 0x0280_0000);
                assert_eq!(built_in_flags(&table, &device(0x0984, 0x0301, 0x0129)), 0, "another release");
                assert_eq!(built_in_flags(&table, &device(0x1209, 0x0001, 0x0100)), 0, "not in it");
            }
        }
    }

    #[test]
    fn a_compressed_module_is_read_and_a_damaged_one_is_an_error() {
        use std::io::Write;
        let plain = module(&ENTRIES, "__mod_usb__uas_usb_ids_device_table", true);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(&plain).expect("memory");
        let gz = gz.finish().expect("memory");
        assert_eq!(parse_table(&gz).expect("a table").len(), 2);
        let zst = ruzstd::encoding::compress_to_vec(&*plain, ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(parse_table(&zst).expect("a table").len(), 2);
        for whole in [&gz, &zst] {
            assert!(matches!(parse_table(&whole[..whole.len() / 2]), Err(TableError::Compressed(_))));
        }
        assert!(matches!(parse_table(&[0xfd, b'7', b'z', b'X', b'Z', 0, 1]), Err(TableError::Compressed(_))));
        assert!(matches!(parse_table(b"text"), Err(TableError::NotElf(_))));
        assert_eq!(parse_table(&module(&ENTRIES, "another_symbol", true)), Err(TableError::NoTable));
        // A file truncated at any byte is an error, never a panic.
        for length in 0..plain.len() {
            assert!(parse_table(&plain[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn an_entry_by_interface_matches_the_first_alternate_setting() {
        let entry = TableEntry {
            match_flags: 0x0380,
            vendor: 0,
            product: 0,
            release_low: 0,
            release_high: 0,
            device_class: [0; 3],
            interface_class: [8, 6, 0x50],
            interface_number: 0,
            flags: 5,
        };
        assert_eq!(built_in_flags(&[entry], &device(1, 2, 3)), 5);
        let uas_only = MatchedDevice { interface_class: [8, 6, 0x62], ..device(1, 2, 3) };
        assert_eq!(built_in_flags(&[entry], &uas_only), 0);
    }
}
