//! Who uses a block device, so that it must not be written.
//!
//! Asked by device number, never by name: `/dev/disk/by-id/…`, a link, a node made by hand and the
//! kernel's name are the same device. Everything whose bytes a write would change is looked at:
//! the device, its partitions, what stands on them (dm, md, bcache, loop), the disk that a
//! partition is part of, the device below a loop device, and other loop devices on the same file.
//! Of all these: mounts in every mount namespace that can be seen, swap, filesystems that span
//! several devices, and the kernel's own exclusive claim.
//!
//! Cannot see: mounts in namespaces whose processes may not be read by this user, or that are kept
//! by a file descriptor alone (the exclusive claim sees those); programs that have the device open
//! without `O_EXCL`; other machines that share the disk.

use crate::disk::device_number_at;
use crate::error::DeviceError;
use crate::identity::DeviceNumber;
use crate::mounts::{self, Mount};
use crate::stack::{btrfs_devices, device_number_of};
use crate::system::System;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::path::Path;
use trueio_model::TargetKind;

/// Why a device may not be written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HolderKind {
    /// A filesystem on it is mounted.
    Mounted {
        /// Where, as the process in whose namespace it is sees it.
        mount_point: String,
        /// Such a process; the smallest number.
        process: u32,
    },
    /// It is one of the devices of a mounted filesystem.
    Member {
        /// `btrfs 8f3c…`.
        of: String,
    },
    /// It is swap.
    Swap,
    /// Another device stands on it.
    Stacked {
        /// The other's kernel name.
        by: String,
    },
    /// The kernel refuses `O_EXCL`: somebody has claimed it.
    Claimed,
}

/// One use of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The kernel name of the device that is used: the one that was asked about, or a relative.
    pub device: String,
    /// How.
    pub kind: HolderKind,
    /// Who says so.
    pub source: String,
}

/// Everybody who uses a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The uses, each once, sorted.
    pub found: Vec<Holder>,
    /// What could not be looked at, one sentence each.
    pub unseen: Vec<String>,
}

/// Who uses the block device at `path`, or anything whose bytes it shares.
///
/// # Errors
/// [`DeviceError::Path`] if it cannot be looked at, [`DeviceError::NotABlockDevice`].
pub fn who_holds(system: &System, path: &Path) -> Result<Holders, DeviceError> {
    let identity = system.identify(path).map_err(|source| DeviceError::Path { path: path.to_owned(), source })?;
    if identity.kind != Some(TargetKind::BlockDevice) {
        return Err(DeviceError::NotABlockDevice { path: path.to_owned() });
    }
    let mut family = Family { system, names: BTreeMap::new(), found: Vec::new() };
    family.add_with_relatives(identity.device);
    let Family { names, mut found, .. } = family;
    let mut holders = Holders::default();
    mounted(system, &names, &mut found, &mut holders.unseen);
    members(system, &names, &mut found);
    swap(system, &names, &mut found, &mut holders.unseen);
    claimed(system, path, &names, identity.device, &mut found, &mut holders.unseen);
    found.sort();
    found.dedup();
    holders.found = found;
    Ok(holders)
}

/// The devices that share bytes with a device, itself among them, with their kernel names.
pub(crate) fn family_of(system: &System, number: DeviceNumber) -> BTreeMap<DeviceNumber, String> {
    let mut family = Family { system, names: BTreeMap::new(), found: Vec::new() };
    family.add_with_relatives(number);
    family.names
}

/// Who uses the regular file at `path`: loop devices that stand on it, with whoever uses those, and
/// swap.
///
/// # Errors
/// [`DeviceError::Path`] if it cannot be looked at.
pub fn who_uses_file(system: &System, path: &Path) -> Result<Holders, DeviceError> {
    let identity = system.identify(path).map_err(|source| DeviceError::Path { path: path.to_owned(), source })?;
    let file = identity.path.display().to_string();
    // By inode on the running machine: a hard link is the same file under another name.
    let is_it = |other: &str| match system.is_live() {
        true => is_same_file(&identity.path, Path::new(other)),
        false => other == file,
    };
    let mut family = Family { system, names: BTreeMap::new(), found: Vec::new() };
    family.add_loops_on(is_it, &file, None);
    let Family { names, mut found, .. } = family;
    let mut holders = Holders::default();
    // Without a loop device on it there is nothing that could be mounted, and nothing left unseen.
    if !names.is_empty() {
        mounted(system, &names, &mut found, &mut holders.unseen);
        members(system, &names, &mut found);
        swap(system, &names, &mut found, &mut holders.unseen);
    }
    for line in system.read("/proc/swaps").unwrap_or_default().lines().skip(1) {
        if is_it(&mounts::unescape(line.split_whitespace().next().unwrap_or_default())) {
            found.push(Holder { device: file.clone(), kind: HolderKind::Swap, source: "/proc/swaps".to_owned() });
        }
    }
    found.sort();
    found.dedup();
    holders.found = found;
    Ok(holders)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Devices that share bytes with the one asked about, by number, with their kernel names.
struct Family<'a> {
    system: &'a System,
    names: BTreeMap<DeviceNumber, String>,
    found: Vec<Holder>,
}

impl Family<'_> {
    /// Adds a device, everything on it, and what it is part of or stands on.
    fn add_with_relatives(&mut self, number: DeviceNumber) {
        if let Some(directory) = self.add_upwards(number) {
            self.add_below(number, &directory);
        }
    }

    /// Adds what a device is part of or stands on, down to the disks, without what else stands on
    /// those: other partitions and other volumes share no byte with this device.
    fn add_below(&mut self, number: DeviceNumber, directory: &str) {
        let mut below = Vec::new();
        if self.system.exists(&format!("{directory}/partition")) {
            // The whole disk may be used as one (by dm, or mounted), over the partitions' heads.
            below.extend(directory.rsplit_once('/').map(|(whole, _)| whole.to_owned()));
        }
        below.extend(
            self.system.list(&format!("{directory}/slaves")).iter().map(|name| format!("{directory}/slaves/{name}")),
        );
        for directory in below {
            let number = device_number_at(self.system, &directory).filter(|number| !self.names.contains_key(number));
            if let Some((number, directory)) = number.and_then(|number| Some((number, self.add_alone(number)?))) {
                self.add_below(number, &directory);
            }
        }
        if let Ok(backing) = self.system.read(&format!("{directory}/loop/backing_file")) {
            match device_number_of(self.system, &backing) {
                // A loop device over a disk is the disk under another name.
                Some(below) if !self.names.contains_key(&below) => self.add_with_relatives(below),
                Some(_) => {}
                None => self.add_loops(|other| other == backing, number),
            }
        }
    }

    fn add_alone(&mut self, number: DeviceNumber) -> Option<String> {
        let directory = self.system.resolve(&format!("/sys/dev/block/{}:{}", number.0, number.1)).ok()?;
        let name = directory.rsplit('/').next().unwrap_or_default().to_owned();
        self.names.insert(number, name);
        Some(directory)
    }

    /// Adds a device with its partitions and everything that stands on any of them.
    fn add_upwards(&mut self, number: DeviceNumber) -> Option<String> {
        if self.names.contains_key(&number) {
            return None;
        }
        let directory = self.add_alone(number)?;
        let name = self.names[&number].clone();
        for entry in self.system.list(&directory) {
            let partition = format!("{directory}/{entry}");
            if self.system.exists(&format!("{partition}/partition"))
                && let Some(number) = device_number_at(self.system, &partition)
            {
                self.add_upwards(number);
            }
        }
        for holder in self.system.list(&format!("{directory}/holders")) {
            let source = format!("{directory}/holders/{holder}");
            if let Some(number) = device_number_at(self.system, &source) {
                self.add_upwards(number);
            }
            let kind = HolderKind::Stacked { by: holder };
            self.found.push(Holder { device: name.clone(), kind, source });
        }
        // A loop device claims nothing from the device below it and is not among its holders.
        let system = self.system;
        self.add_loops(|backing| device_number_of(system, backing) == Some(number), number);
        Some(directory)
    }

    /// Adds the loop devices whose backing file is meant, which stand on the device `below`.
    fn add_loops(&mut self, is_meant: impl Fn(&str) -> bool, below: DeviceNumber) {
        let name = self.names.get(&below).cloned().unwrap_or_default();
        self.add_loops_on(is_meant, &name, Some(below));
    }

    /// The same on anything, by its name; `below` is left out.
    fn add_loops_on(&mut self, is_meant: impl Fn(&str) -> bool, name: &str, below: Option<DeviceNumber>) {
        for disk in self.system.list("/sys/block") {
            let source = format!("/sys/block/{disk}/loop/backing_file");
            let Ok(backing) = self.system.read(&source) else { continue };
            let number = device_number_at(self.system, &format!("/sys/block/{disk}"));
            let Some(number) = number.filter(|number| is_meant(&backing) && Some(*number) != below) else { continue };
            self.found.push(Holder { device: name.to_owned(), kind: HolderKind::Stacked { by: disk }, source });
            self.add_upwards(number);
        }
    }
}

/// Mounts in every namespace: one process of each is enough, but which is not known beforehand.
fn mounted(system: &System, names: &BTreeMap<DeviceNumber, String>, found: &mut Vec<Holder>, unseen: &mut Vec<String>) {
    let mut processes: Vec<u32> = system.list("/proc").iter().filter_map(|name| name.parse().ok()).collect();
    processes.sort_unstable();
    let mut refused_count = 0;
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for process in processes {
        let source = format!("/proc/{process}/mountinfo");
        let text = match system.read(&source) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused_count += 1;
                continue;
            }
            // It ended meanwhile.
            Err(_) => continue,
        };
        // Nearly all processes share a namespace; its text is read as lines only once.
        if texts.contains(&text) {
            continue;
        }
        for mount in text.lines().filter_map(mounts::parse_line) {
            let Some(device) = device_of(system, &mount, names) else { continue };
            let mount_point = mount.mount_point.display().to_string();
            if !seen.contains(&(device.clone(), mount_point.clone())) {
                seen.push((device.clone(), mount_point.clone()));
                let kind = HolderKind::Mounted { mount_point, process };
                found.push(Holder { device, kind, source: source.clone() });
            }
        }
        texts.push(text);
    }
    if refused_count > 0 {
        unseen.push(format!("mounts of {refused_count} processes may not be read by this user"));
    }
    if texts.is_empty() {
        unseen.push("no mount table could be read".to_owned());
    }
}

/// The device of `names` that a mount stands on.
fn device_of(system: &System, mount: &Mount, names: &BTreeMap<DeviceNumber, String>) -> Option<String> {
    if let Some(name) = names.get(&mount.device) {
        return Some(name.clone());
    }
    // btrfs and others have an anonymous number, and name one device as their source.
    if mount.device.0 != 0 || !mount.source.starts_with('/') {
        return None;
    }
    mount.source.split(':').find_map(|path| names.get(&device_number_of(system, path)?)).cloned()
}

/// Devices of mounted filesystems that span several.
fn members(system: &System, names: &BTreeMap<DeviceNumber, String>, found: &mut Vec<Holder>) {
    for uuid in system.list("/sys/fs/btrfs") {
        for number in btrfs_devices(system, &uuid) {
            if let Some(name) = names.get(&number) {
                let kind = HolderKind::Member { of: format!("btrfs {uuid}") };
                found.push(Holder { device: name.clone(), kind, source: format!("/sys/fs/btrfs/{uuid}/devices") });
            }
        }
    }
}

fn swap(system: &System, names: &BTreeMap<DeviceNumber, String>, found: &mut Vec<Holder>, unseen: &mut Vec<String>) {
    let source = "/proc/swaps";
    let Ok(text) = system.read(source) else {
        return unseen.push(format!("{source} could not be read"));
    };
    for line in text.lines().skip(1) {
        let path = mounts::unescape(line.split_whitespace().next().unwrap_or_default());
        if let Some(name) = device_number_of(system, &path).and_then(|number| names.get(&number)) {
            found.push(Holder { device: name.clone(), kind: HolderKind::Swap, source: source.to_owned() });
        }
    }
}

/// Opens the device for reading with `O_EXCL`, which the kernel refuses while a mount, swap, dm, md
/// or another program holds it the same way: open(2). It is closed at once.
fn claimed(
    system: &System,
    path: &Path,
    names: &BTreeMap<DeviceNumber, String>,
    number: DeviceNumber,
    found: &mut Vec<Holder>,
    unseen: &mut Vec<String>,
) {
    if !system.is_live() {
        return;
    }
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => {}
        Err(rustix::io::Errno::BUSY) => {
            let device = names.get(&number).cloned().unwrap_or_default();
            let source = "open with O_EXCL: EBUSY".to_owned();
            found.push(Holder { device, kind: HolderKind::Claimed, source });
        }
        Err(error) => unseen.push(format!("whether somebody has claimed it: open failed ({error})")),
    }
}
