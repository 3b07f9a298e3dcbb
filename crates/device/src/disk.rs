//! Facts of a disk, from sysfs.
//!
//! Limits: the facts may be wrong. Many virtual and USB disks are marked rotational; a drive may have a volatile
//! cache and declare none.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-block`.

use crate::counters::{COUNTER_SECTOR_BYTES, paths_of};
use crate::link::disk_link;
use crate::numbers::device_number_at;
use crate::system::{System, why_not};
use crate::usb::usb_facts_of_block;
use trueio_model::{DiskFacts, DiskLimits, Fact, Transport, WriteCache, ZoneModel};

/// Returns the facts of a whole disk, by its kernel name (`nvme0n1`); `None` if it does not exist.
pub fn disk_facts(system: &System, name: &str) -> Option<DiskFacts> {
    let directory = format!("/sys/block/{name}");
    let device_number = device_number_at(system, &directory)?;
    let real = system.resolve(&directory).unwrap_or_else(|_| directory.clone());
    let queue = |file: &str| format!("{directory}/queue/{file}");
    let kibibytes = |file: &str| {
        let fact: Fact<u64> = system.number(&queue(file));
        Fact { value: fact.value.map(|kib| kib * 1024), source: fact.source }
    };
    let is_set = |file: &str| system.fact(&queue(file), parse_flag);
    let sectors: Fact<u64> = system.number(&format!("{directory}/size"));
    let transport = transport(name, &real).map(Transport::from);
    let link = disk_link(system, &real, transport.value.as_ref());
    Some(DiskFacts {
        name: name.to_owned(),
        device_number,
        model: model(system, &directory, name),
        serial: serial(system, &directory),
        firmware: first_of(system, &directory, &["device/firmware_rev", "device/rev", "device/fwrev"]),
        wwid: first_of(system, &directory, &["wwid", "device/wwid"]),
        transport,
        size_bytes: Fact { value: sectors.value.map(|n| n * COUNTER_SECTOR_BYTES), source: sectors.source },
        logical_sector_bytes: system.number(&queue("logical_block_size")),
        physical_sector_bytes: system.number(&queue("physical_block_size")),
        is_rotational: is_set("rotational"),
        scheduler: system.fact(&queue("scheduler"), chosen_scheduler),
        write_cache: system.text(&queue("write_cache")).map(WriteCache::from),
        has_fua: is_set("fua"),
        request_count: system.number(&queue("nr_requests")),
        max_request_bytes: kibibytes("max_sectors_kb"),
        read_ahead_bytes: kibibytes("read_ahead_kb"),
        // Of a multipath head the paths count.
        counts_io: match paths_of(system, name).first() {
            Some(path) => system.fact(&format!("/sys/block/{path}/queue/iostats"), parse_flag),
            None => is_set("iostats"),
        },
        limits: limits(system, &directory),
        usb: usb_facts_of_block(system, name),
        link,
    })
}

/// Source: Linux `Documentation/ABI/stable/sysfs-block`. `dma_alignment` is a mask there, and
/// `chunk_sectors` counts units of 512 bytes.
fn limits(system: &System, directory: &str) -> DiskLimits {
    let queue = |file: &str| format!("{directory}/queue/{file}");
    let number = |file: &str| -> Fact<u64> { system.number(&queue(file)) };
    let scaled = |file: &str, scale: fn(u64) -> u64| {
        let fact = number(file);
        Fact { value: fact.value.map(scale), source: fact.source }
    };
    let queues = system.list(&format!("{directory}/mq"));
    DiskLimits {
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size"),
        alignment_offset_bytes: system.number(&format!("{directory}/alignment_offset")),
        dma_alignment_bytes: scaled("dma_alignment", |mask| mask.saturating_add(1)),
        max_hw_request_bytes: scaled("max_hw_sectors_kb", |kib| kib.saturating_mul(1024)),
        max_segment_count: system.number(&queue("max_segments")),
        max_segment_bytes: number("max_segment_size"),
        discard_granularity_bytes: number("discard_granularity"),
        discard_max_bytes: number("discard_max_bytes"),
        write_zeroes_max_bytes: number("write_zeroes_max_bytes"),
        zoned: system.text(&queue("zoned")).map(ZoneModel::from),
        chunk_bytes: scaled("chunk_sectors", |sectors| sectors.saturating_mul(COUNTER_SECTOR_BYTES)),
        atomic_write_max_bytes: number("atomic_write_unit_max_bytes"),
        can_poll: system.fact(&queue("io_poll"), parse_flag),
        hardware_queue_count: match u32::try_from(queues.len()) {
            Ok(0) | Err(_) => Fact::unknown(format!("{directory}/mq does not exist")),
            Ok(count) => Fact::known(count, format!("{directory}/mq")),
        },
        tag_count: system.number(&format!("{directory}/mq/0/nr_tags")),
        queue_depth: system.number(&format!("{directory}/device/queue_depth")),
        is_read_only: system.fact(&format!("{directory}/ro"), parse_flag),
        is_removable: system.fact(&format!("{directory}/removable"), parse_flag),
    }
}

/// Returns the first known fact of several files; without one, the reason of the first file.
fn first_of(system: &System, directory: &str, files: &[&str]) -> Fact<String> {
    let mut facts = files.iter().map(|file| system.text(&format!("{directory}/{file}")));
    let first = facts.next().expect("at least one file");
    if first.value.is_some() { first } else { facts.find(|fact| fact.value.is_some()).unwrap_or(first) }
}

/// Parses a flag: `0` is false. `queue/iostats` is 2 if a driver counts more.
fn parse_flag(text: &str) -> Option<bool> {
    text.parse::<u32>().ok().map(|value| value != 0)
}

/// Returns the scheduler in brackets: `none [mq-deadline] kyber`. A disk without a choice has only `none`.
fn chosen_scheduler(text: &str) -> Option<String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    let only = (!text.is_empty() && !text.contains(char::is_whitespace)).then_some(text);
    bracketed.or(only).map(str::to_owned)
}

/// Reads the model. SCSI disks have a vendor and a model, NVMe and MMC a model or name, virtual disks none.
fn model(system: &System, directory: &str, name: &str) -> Fact<String> {
    let path = format!("{directory}/device/model");
    let model = system.text(&path);
    if model.value.is_none() {
        let mmc = system.text(&format!("{directory}/device/name"));
        return match (&mmc.value, name.starts_with("mmcblk")) {
            (Some(_), true) => mmc,
            _ => model,
        };
    }
    let vendor_path = format!("{directory}/device/vendor");
    match system.text(&vendor_path).value {
        // `ATA` is the translation layer's name, not a vendor's; virtio's is a PCI number.
        Some(vendor) if vendor != "ATA" && !vendor.starts_with("0x") => {
            Fact { value: model.value.map(|m| format!("{vendor} {m}")), source: format!("{vendor_path}, {path}") }
        }
        _ => model,
    }
}

/// Reads the serial number: of virtio from a file of the disk, of NVMe and MMC from a file of its device, of SCSI from
/// page 0x80 of the vital product data.
fn serial(system: &System, directory: &str) -> Fact<String> {
    let own = system.text(&format!("{directory}/serial"));
    if own.value.is_some() {
        return own;
    }
    let device = system.text(&format!("{directory}/device/serial"));
    if device.value.is_some() {
        return device;
    }
    let path = format!("{directory}/device/vpd_pg80");
    match system.read_bytes(&path) {
        // Byte 1 is the page's number, bytes 2 and 3 its length, the serial follows. SPC-5, 7.7.18.
        Ok(page) if page.len() > 4 && page[1] == 0x80 => {
            let text = String::from_utf8_lossy(&page[4..]).trim_matches(['\0', ' ', '\n']).to_owned();
            if text.is_empty() { Fact::unknown(format!("{path} is blank")) } else { Fact::known(text, path) }
        }
        Ok(_) => Fact::unknown(format!("{path} is not a serial number page")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => device,
        Err(error) => Fact::unknown(why_not(&path, &error)),
    }
}

/// Returns the bus of the disk, from the path of its device. The innermost bus wins: a SATA disk with a USB bridge is a
/// USB disk.
fn transport(name: &str, real: &str) -> Fact<String> {
    const BY_NAME: [(&str, &str); 8] = [
        ("loop", "loop"),
        ("zram", "zram"),
        ("ram", "ram"),
        ("dm-", "dm"),
        ("md", "md"),
        ("nbd", "nbd"),
        ("rbd", "rbd"),
        ("pmem", "pmem"),
    ];
    const BY_PATH: [(&str, &str); 12] = [
        ("/usb", "usb"),
        ("/nvme", "nvme"),
        ("/mmc", "mmc"),
        ("/virtio", "virtio"),
        ("/vbd-", "xen"),
        ("/session", "iscsi"),
        ("/rport-", "fibre channel"),
        ("/end_device-", "sas"),
        ("/ata", "sata"),
        ("/VMBUS", "hyper-v"),
        ("/vmbus", "hyper-v"),
        ("/host", "scsi"),
    ];
    let virtual_name = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
    };
    let by_name = BY_NAME.iter().find(|(prefix, _)| virtual_name(prefix));
    let by_path = || {
        let below_devices = real.strip_prefix("/sys/devices").unwrap_or(real);
        BY_PATH.iter().find(|(part, _)| {
            // `/nvme` must be followed by `/` or a digit: a component, not a part of another word.
            below_devices.match_indices(part).any(|(at, _)| {
                below_devices[at + part.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '/' || c == '-')
                    || part.ends_with('-')
                    || part.eq_ignore_ascii_case("/vmbus")
            })
        })
    };
    match by_name.or_else(by_path) {
        Some((_, transport)) => Fact::known((*transport).to_owned(), real),
        None => Fact::unknown(format!("{real} contains no known bus")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets_or_the_only_one() {
        assert_eq!(chosen_scheduler("none [mq-deadline] kyber bfq").as_deref(), Some("mq-deadline"));
        assert_eq!(chosen_scheduler("[none] mq-deadline").as_deref(), Some("none"));
        assert_eq!(chosen_scheduler("none").as_deref(), Some("none"));
        assert_eq!(chosen_scheduler("none kyber"), None);
        assert_eq!(chosen_scheduler(""), None);
    }

    #[test]
    fn the_bus_nearest_to_the_disk_is_its_transport() {
        for (name, path, expected) in [
            ("vda", "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda", Some("virtio")),
            ("nvme0n1", "/sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1", Some("nvme")),
            ("nvme0n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", Some("nvme")),
            ("sda", "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", Some("sata")),
            (
                "sdb",
                "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb",
                Some("usb"),
            ),
            ("mmcblk0", "/sys/devices/platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:0001/block/mmcblk0", Some("mmc")),
            ("loop0", "/sys/devices/virtual/block/loop0", Some("loop")),
            ("zram0", "/sys/devices/virtual/block/zram0", Some("zram")),
            ("xyz", "/sys/devices/virtual/block/xyz", None),
        ] {
            assert_eq!(transport(name, path).value.as_deref(), expected, "{path}");
        }
    }
}
