//! Whether a disk is there, went away, and came back: by the kernel's device numbers and disk sequence numbers.
//!
//! A disk sequence number (Linux 5.15) is new each time that a disk appears, so that a short absence shows, too. Older kernels
//! show an absence only while it lasts.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-block` (`diskseq`).

use crate::claimed::{facts_of, identity_of};
use rustix::fs::{major, minor};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use trueio_model::TargetFacts;
use trueio_powercut::DiskIdentity;

/// The devices below a target, as they were when it was opened.
#[derive(Debug)]
pub(super) struct Presence {
    devices: Vec<((u32, u32), Option<String>)>,
}

/// Returns whether the kernel has a device, and its disk sequence number.
fn look((major, minor): (u32, u32)) -> (bool, Option<String>) {
    let folder = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // A partition has the number of its disk.
    (folder.exists(), read("diskseq").or_else(|| read("../diskseq")))
}

impl Presence {
    /// Looks at the device itself, or at that of a file's filesystem, and at the disks below.
    pub(super) fn of(path: &str, facts: &TargetFacts) -> Self {
        let own = std::fs::metadata(path).ok().map(|found| if found.rdev() > 0 { found.rdev() } else { found.dev() });
        let own = own.map(|number| (major(number), minor(number)));
        let mut numbers: Vec<(u32, u32)> = own.into_iter().collect();
        numbers.extend(facts.disks.iter().map(|disk| disk.device_number));
        let devices = numbers.into_iter().map(|number| (number, look(number)));
        // btrfs has numbers of its own, which are no devices.
        Self {
            devices: devices
                .filter(|(_, (exists, _))| *exists)
                .map(|(number, (_, sequence))| (number, sequence))
                .collect(),
        }
    }

    /// Returns whether a device went away since, also if one with its number is there again.
    pub(super) fn is_gone(&self) -> bool {
        self.devices.iter().any(|(number, before)| {
            let (exists, now) = look(*number);
            !exists || (before.is_some() && now != *before)
        })
    }
}

/// Returns where a disk is now: at its path, or under another name if it has a serial number or a WWN.
pub(super) fn find(path: &str, identity: &DiskIdentity) -> Option<String> {
    let is_same = |path: &str| {
        let Ok(facts) = facts_of(path) else { return false };
        let inode = identity.inode.and_then(|_| Some(std::fs::metadata(path).ok()?.ino()));
        // All of it must agree, also what is unknown: another disk of this size may have no serial number.
        *identity == identity_of(&facts, facts.size_bytes.value.unwrap_or(0), inode)
    };
    if is_same(path) {
        return Some(path.to_owned());
    }
    if identity.serial.is_none() && identity.wwid.is_none() {
        return None;
    }
    let names = std::fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.file_name());
    names.map(|name| format!("/dev/{}", name.to_string_lossy())).find(|path| is_same(path))
}
