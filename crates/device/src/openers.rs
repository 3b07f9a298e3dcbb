//! Which processes have a disk open, or anything that stands on it.
//!
//! The kernel's exclusive claim (`O_EXCL`) sees mounts, swap and what is stacked; it does not see a
//! program that simply opened the device. Every `/proc/PID/fd` is looked at, by device number.
//!
//! Cannot see: processes of others without root; a mapping whose descriptor was closed; a descriptor
//! in flight between two processes; other machines.
//!
//! Source: proc_pid_fd(5), proc_pid_comm(5).

use crate::holders::family_of;
use crate::identity::DeviceNumber;
use crate::stack::device_number_of;
use crate::system::System;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// A process that has one of the devices open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opener {
    /// Its number.
    pub process: u32,
    /// Its name (`smartctl`).
    pub name: String,
    /// The kernel name of the device that it has open.
    pub device: String,
}

/// Every process that has a disk open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Openers {
    /// The processes, each once a device, sorted.
    pub found: Vec<Opener>,
    /// What could not be looked at, one sentence each.
    pub unseen: Vec<String>,
}

/// Who has the disk `name` (`sda`) open, its partitions, what stands on them, or its generic SCSI
/// device (`/dev/sg0`). This process is not counted.
pub fn who_has_open(system: &System, name: &str) -> Openers {
    let mut openers = Openers::default();
    let directory = format!("/sys/block/{name}");
    let Some(number) = crate::disk::device_number_at(system, &directory) else {
        openers.unseen.push(format!("{directory} does not exist"));
        return openers;
    };
    let blocks = family_of(system, number);
    let mut characters: BTreeMap<DeviceNumber, String> = BTreeMap::new();
    for generic in system.list(&format!("{directory}/device/scsi_generic")) {
        let own = format!("{directory}/device/scsi_generic/{generic}");
        if let Some(number) = crate::disk::device_number_at(system, &own) {
            characters.insert(number, generic);
        }
    }
    let own = std::process::id();
    let mut found = BTreeSet::new();
    let mut refused_count = 0;
    for process in system.list("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
        if system.is_live() && process == own {
            continue;
        }
        let folder = format!("/proc/{process}/fd");
        let entries = match std::fs::read_dir(system.locate(&folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused_count += 1;
                continue;
            }
            // It ended meanwhile, or is recorded without its descriptors.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let Some((number, is_block)) = device_behind(system, &entry.path()) else { continue };
            let known = if is_block { blocks.get(&number) } else { characters.get(&number) };
            if let Some(device) = known {
                let name = system.read(&format!("/proc/{process}/comm")).unwrap_or_else(|_| "?".to_owned());
                found.insert(Opener { process, name, device: device.clone() });
            }
        }
    }
    if refused_count > 0 {
        openers.unseen.push(format!("open files of {refused_count} processes may not be read by this user"));
    }
    openers.found = found.into_iter().collect();
    openers
}

/// The device that a descriptor leads to, and whether it is a block device.
fn device_behind(system: &System, link: &std::path::Path) -> Option<(DeviceNumber, bool)> {
    if system.is_live() {
        // Through the link to what is open, whatever its name is by now.
        let metadata = std::fs::metadata(link).ok()?;
        let kind = metadata.file_type();
        let number = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        return (kind.is_block_device() || kind.is_char_device()).then_some((number, kind.is_block_device()));
    }
    let target = std::fs::read_link(link).ok()?;
    let target = target.to_str()?;
    Some((device_number_of(system, target)?, !target.starts_with("/dev/sg")))
}
