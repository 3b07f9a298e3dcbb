//! Finds the processes that have a disk, or a device stacked on it, open.
//!
//! The kernel's exclusive claim (`O_EXCL`) detects mounts, swap and stacked devices, but not a program that opened the
//! device without a claim. So every `/proc/PID/fd` is compared by device number.
//!
//! Cannot see: without root, processes of other users; a mapping whose descriptor was closed; a descriptor in flight
//! between two processes; other machines.
//!
//! Source: proc_pid_fd(5), proc_pid_fdinfo(5), proc_pid_comm(5).

use crate::error::DeviceError;
use crate::holders::family_of;
use crate::identity::DeviceNumber;
use crate::numbers::{device_number_at, device_number_of};
use crate::system::System;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use trueio_model::TargetKind;

/// A process that has one of the devices open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opener {
    /// Process ID.
    pub process: u32,
    /// Process name (`smartctl`).
    pub name: String,
    /// The kernel name of the device that it has open.
    pub device: String,
}

/// All processes that have a disk open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Openers {
    /// The processes, each at most once per device, sorted.
    pub found: Vec<Opener>,
    /// What could not be read, one sentence each.
    pub unseen: Vec<String>,
}

/// Returns the processes that have the disk `name` (`sda`) open, its partitions, devices stacked on them, or its generic
/// SCSI device (`/dev/sg0`). This process is not included.
pub fn who_has_open(system: &System, name: &str) -> Openers {
    let mut openers = Openers::default();
    let directory = format!("/sys/block/{name}");
    let Some(number) = device_number_at(system, &directory) else {
        openers.unseen.push(format!("{directory} does not exist"));
        return openers;
    };
    let blocks = family_of(system, number);
    let mut characters: BTreeMap<DeviceNumber, String> = BTreeMap::new();
    for generic in system.list(&format!("{directory}/device/scsi_generic")) {
        let own = format!("{directory}/device/scsi_generic/{generic}");
        if let Some(number) = device_number_at(system, &own) {
            characters.insert(number, generic);
        }
    }
    scan(system, openers, |descriptor| {
        let (number, is_block) = device_behind(system, &descriptor.link)?;
        if is_block { blocks.get(&number) } else { characters.get(&number) }.cloned()
    })
}

/// Returns the processes that have the block device at `path`, or a device that shares bytes with it, open for writing.
/// This process is not included.
///
/// # Errors
/// [`DeviceError::Path`] if the path cannot be read, [`DeviceError::NotABlockDevice`].
pub fn who_writes(system: &System, path: &Path) -> Result<Openers, DeviceError> {
    let identity = system.identify(path).map_err(|source| DeviceError::Path { path: path.to_owned(), source })?;
    if identity.kind != Some(TargetKind::BlockDevice) {
        return Err(DeviceError::NotABlockDevice { path: path.to_owned() });
    }
    let blocks = family_of(system, identity.device);
    Ok(scan(system, Openers::default(), |descriptor| {
        let (number, is_block) = device_behind(system, &descriptor.link)?;
        let device = blocks.get(&number).filter(|_| is_block)?;
        descriptor.may_write(system).then(|| device.clone())
    }))
}

/// A descriptor of another process.
struct Descriptor {
    process: u32,
    number: String,
    link: PathBuf,
}

impl Descriptor {
    /// Returns whether the descriptor was opened for writing; false if it has been closed.
    ///
    /// Source: proc_pid_fdinfo(5): `flags` are octal; open(2): the access mode is in the lowest two bits.
    fn may_write(&self, system: &System) -> bool {
        let text = system.read(&format!("/proc/{}/fdinfo/{}", self.process, self.number)).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| matches!(flags & 0o3, 1 | 2))
    }
}

/// Adds the processes that have a matching device open; `device` returns its name, or `None` if it does not match.
fn scan(system: &System, mut openers: Openers, device: impl Fn(&Descriptor) -> Option<String>) -> Openers {
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
            // The process has ended, or is recorded without its descriptors.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let number = entry.file_name().to_string_lossy().into_owned();
            let Some(device) = device(&Descriptor { process, number, link: entry.path() }) else { continue };
            let name = system.read(&format!("/proc/{process}/comm")).unwrap_or_else(|_| "?".to_owned());
            found.insert(Opener { process, name, device });
        }
    }
    if refused_count > 0 {
        openers.unseen.push(format!("this user may not read the open files of {refused_count} processes"));
    }
    openers.found = found.into_iter().collect();
    openers
}

/// Returns the device that a descriptor refers to, and whether it is a block device.
fn device_behind(system: &System, link: &Path) -> Option<(DeviceNumber, bool)> {
    if system.is_live() {
        // Following the link reaches the open file, even if it was renamed.
        let metadata = std::fs::metadata(link).ok()?;
        let kind = metadata.file_type();
        let number = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        return (kind.is_block_device() || kind.is_char_device()).then_some((number, kind.is_block_device()));
    }
    let target = std::fs::read_link(link).ok()?;
    let target = target.to_str()?;
    Some((device_number_of(system, target)?, !target.starts_with("/dev/sg")))
}
