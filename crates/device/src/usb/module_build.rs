//! What a kernel module was built for: its `vermagic`, and the checksums of the symbols that it imports.
//!
//! The kernel loads a module only if `vermagic` is its own and each checksum is that of the symbol that it exports. Both are
//! in the module's file, so a module that was just built can be compared with one of the running kernel before it is loaded.
//!
//! Cannot see: symbols that no installed module imports; modules with the extended format of checksums (Linux 6.14,
//! `CONFIG_EXTENDED_MODVERSIONS`), whose checksums are then missing.
//!
//! Source: Linux `include/linux/module.h` (`struct modversion_info`), `include/linux/moduleparam.h` (`MODULE_INFO`).

use super::modules::{TableError, decompressed};
use object::read::elf::ElfFile;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;

/// What a module was built for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleBuild {
    /// The kernel's version and properties (`6.1.0-56-amd64 SMP preempt mod_unload modversions`).
    pub vermagic: String,
    /// The checksum of each imported symbol; empty if the kernel does not use them (`CONFIG_MODVERSIONS`).
    pub checksums: BTreeMap<String, u32>,
}

/// Reads a module's file, compressed or not.
///
/// # Errors
/// It is no module.
pub fn parse_module_build(file: &[u8]) -> Result<ModuleBuild, TableError> {
    let bytes = decompressed(file)?;
    let no_elf = |error: object::Error| TableError::NotElf(error.to_string());
    if bytes.get(4) == Some(&1) {
        build_of(&ElfFile::<object::elf::FileHeader32<object::Endianness>>::parse(&*bytes).map_err(no_elf)?)
    } else {
        build_of(&ElfFile::<object::elf::FileHeader64<object::Endianness>>::parse(&*bytes).map_err(no_elf)?)
    }
}

fn build_of<'a>(elf: &impl Object<'a>) -> Result<ModuleBuild, TableError> {
    let section = |name: &str| elf.section_by_name(name).and_then(|section| section.data().ok());
    let missing = || TableError::NotElf("it has no section .modinfo with a `vermagic`".to_owned());
    let info = section(".modinfo").ok_or_else(missing)?;
    let entries = info.split(|byte| *byte == 0);
    let vermagic = entries.filter_map(|entry| entry.strip_prefix(b"vermagic=")).next().ok_or_else(missing)?;
    let mut checksums = BTreeMap::new();
    // `unsigned long crc; char name[64 - sizeof(unsigned long)]`.
    let word = if elf.is_64() { 8 } else { 4 };
    for entry in section("__versions").unwrap_or_default().as_chunks::<64>().0 {
        let crc: [u8; 4] = if elf.is_little_endian() {
            [entry[0], entry[1], entry[2], entry[3]]
        } else {
            [entry[word - 1], entry[word - 2], entry[word - 3], entry[word - 4]]
        };
        let name = entry[word..].split(|byte| *byte == 0).next().unwrap_or_default();
        checksums.insert(String::from_utf8_lossy(name).into_owned(), u32::from_le_bytes(crc));
    }
    Ok(ModuleBuild { vermagic: String::from_utf8_lossy(vermagic).trim().to_owned(), checksums })
}

/// Returns why a kernel whose modules are like `known` would not load `built`, one sentence each; empty: it would, as far as
/// both import the same symbols. The number is that of the compared symbols.
pub fn compare_builds(built: &ModuleBuild, known: &ModuleBuild) -> (Vec<String>, usize) {
    let mut reasons = Vec::new();
    if built.vermagic != known.vermagic {
        reasons.push(format!(
            "it was built for `{}`, and the kernel's own modules for `{}`",
            built.vermagic, known.vermagic
        ));
    }
    let common = built.checksums.iter().filter_map(|(name, crc)| Some((name, crc, known.checksums.get(name)?)));
    let mut count = 0;
    for (name, crc, expected) in common {
        count += 1;
        if crc != expected {
            reasons.push(format!(
                "the checksum of `{name}` is {crc:#010x}, and the kernel's own modules have {expected:#010x}"
            ));
        }
    }
    if built.checksums.is_empty() != known.checksums.is_empty() {
        let (with, without) = if built.checksums.is_empty() {
            ("the kernel's own modules have", "it has none")
        } else {
            ("it has", "the kernel's own modules have none")
        };
        reasons.push(format!("{with} checksums of symbols, and {without} (CONFIG_MODVERSIONS)"));
    }
    (reasons, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with these sections: ELF, 64 bits, little-endian.
    fn module(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut names = vec![0];
        let mut body: Vec<u8> = Vec::new();
        let mut headers = vec![[0u8; 64]];
        let header = |name: usize, kind: u32, at: usize, length: usize| {
            let mut header = [0u8; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            header
        };
        for (name, data) in sections {
            headers.push(header(names.len(), 1, 64 + body.len(), data.len()));
            names.extend(name.bytes().chain([0]));
            body.extend(data);
        }
        let at = names.len();
        names.extend(b".shstrtab\0");
        headers.push(header(at, 3, 64 + body.len(), names.len()));
        body.extend(&names);
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        file.resize(64, 0);
        file[16] = 1;
        file[18] = 62;
        file[20] = 1;
        file[40..48].copy_from_slice(&((64 + body.len()) as u64).to_le_bytes());
        file[52] = 64;
        file[58] = 64;
        file[60] = headers.len() as u8;
        file[62] = headers.len() as u8 - 1;
        file.extend(body);
        file.extend(headers.concat());
        file
    }

    fn built(vermagic: &str, checksums: &[(&str, u32)]) -> Vec<u8> {
        let info = format!("license=GPL\0vermagic={vermagic} \0name=uas\0").into_bytes();
        let entry = |(name, crc): &(&str, u32)| {
            let mut entry = vec![0u8; 64];
            entry[..4].copy_from_slice(&crc.to_le_bytes());
            entry[8..8 + name.len()].copy_from_slice(name.as_bytes());
            entry
        };
        let versions: Vec<u8> = checksums.iter().flat_map(entry).collect();
        module(&[(".modinfo", info), ("__versions", versions)])
    }

    #[test]
    fn the_version_and_the_checksums_of_a_module_are_read() {
        let file = built("6.1.0 SMP modversions", &[("module_layout", 0x9060_323f), ("scsi_done", 7)]);
        let found = parse_module_build(&file).expect("a module");
        assert_eq!(found.vermagic, "6.1.0 SMP modversions");
        assert_eq!(found.checksums["module_layout"], 0x9060_323f);
        assert_eq!(found.checksums.len(), 2);
        assert!(parse_module_build(&module(&[(".text", vec![1])])).is_err(), "no module");
        for length in 0..file.len() {
            let _ = parse_module_build(&file[..length]);
        }
    }

    /// Goal: a module for another kernel, or built with other headers, is not loaded.
    #[test]
    fn a_module_for_another_kernel_is_told_from_one_for_this() {
        let parse = |vermagic: &str, checksums: &[(&str, u32)]| {
            parse_module_build(&built(vermagic, checksums)).expect("a module")
        };
        let known = parse("6.1.0 SMP", &[("module_layout", 1), ("scsi_done", 2), ("kfree", 3)]);
        let same = parse("6.1.0 SMP", &[("module_layout", 1), ("scsi_done", 2), ("usb_alloc_streams", 9)]);
        assert_eq!(compare_builds(&same, &known), (Vec::new(), 2));
        let other = compare_builds(&parse("6.1.1 SMP", &[("module_layout", 1)]), &known);
        assert_eq!(other.0, ["it was built for `6.1.1 SMP`, and the kernel's own modules for `6.1.0 SMP`"]);
        let (reasons, count) = compare_builds(&parse("6.1.0 SMP", &[("module_layout", 5), ("kfree", 3)]), &known);
        assert_eq!(count, 2);
        assert_eq!(
            reasons,
            ["the checksum of `module_layout` is 0x00000005, and the kernel's own modules have 0x00000001"]
        );
        let (reasons, _) = compare_builds(&parse("6.1.0 SMP", &[]), &known);
        assert_eq!(
            reasons,
            ["the kernel's own modules have checksums of symbols, and it has none (CONFIG_MODVERSIONS)"]
        );
    }
}
