//! Finds the users of a block device, which must not be written while it is in use.
//!
//! Compares device numbers, never names: `/dev/disk/by-id/…`, a link, a node created by hand and the kernel's name are
//! the same device. Checks every device whose bytes a write would change: the device, its partitions, devices stacked
//! on them (dm, md, bcache, loop), the disk of a partition, the device below a loop device, and other loop devices on
//! the same file. For each it finds mounts in every readable mount namespace, swap, filesystems that span several
//! devices, and the kernel's exclusive claim.
//!
//! Cannot see: mounts in namespaces whose processes this user may not read, or that only a file descriptor keeps (the
//! exclusive claim detects those); programs that have the device open without `O_EXCL`, for which see
//! [`who_writes`](crate::who_writes); other machines that share the disk.

use crate::error::DeviceError;
use crate::identity::DeviceNumber;
use crate::loops::{Below, LoopDevice, Loops};
use crate::mount_tables::{MountTable, MountTables};
use crate::mounts::{self, Mount};
use crate::numbers::{btrfs_devices, device_number_at, device_number_of};
use crate::system::System;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::path::Path;
use trueio_model::TargetKind;

/// How a device is in use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HolderKind {
    /// A filesystem on it is mounted.
    Mounted {
        /// The mount point in the namespace of `process`.
        mount_point: String,
        /// The lowest ID of a process in that namespace.
        process: u32,
    },
    /// The device is one of the devices of a mounted filesystem.
    Member {
        /// `btrfs 8f3c…`.
        of: String,
    },
    /// The device is swap.
    Swap,
    /// Another device is stacked on it.
    Stacked {
        /// The other's kernel name.
        by: String,
    },
    /// Another loop device has the same file.
    Twin {
        /// The other's kernel name.
        by: String,
    },
    /// The kernel refuses `O_EXCL`: the device is claimed.
    Claimed,
    /// A process has the file open for writing.
    OpenForWriting {
        /// Its name.
        program: String,
        /// Its process ID in this PID namespace.
        process: u32,
    },
    /// The kernel refuses a write lease on the file, and no process that can be read has it open.
    Unnamed,
}

/// One use of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The kernel name of the device in use: the given device, or one that shares bytes with it.
    pub device: String,
    /// How.
    pub kind: HolderKind,
    /// Source of this holder.
    pub source: String,
}

/// All holders of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The uses, sorted, without duplicates.
    pub found: Vec<Holder>,
    /// What could not be read, one sentence each.
    pub unseen: Vec<String>,
}

/// Returns the users of the block device at `path` and of all devices that share bytes with it.
///
/// # Errors
/// [`DeviceError::Path`] if the path cannot be read, [`DeviceError::NotABlockDevice`].
pub fn who_holds(system: &System, path: &Path) -> Result<Holders, DeviceError> {
    let identity = system.identify(path).map_err(|source| DeviceError::Path { path: path.to_owned(), source })?;
    if identity.kind != Some(TargetKind::BlockDevice) {
        return Err(DeviceError::NotABlockDevice { path: path.to_owned() });
    }
    let tables = MountTables::new(system);
    let loops = Loops::new(system, &tables);
    let mut family = Family::new(system, &loops);
    family.add_with_relatives(identity.device);
    let Family { names, mut found, .. } = family;
    let mut holders = Holders::default();
    mounted(system, &tables, &names, &mut found, &mut holders.unseen);
    members(system, &names, &mut found);
    swap(system, &names, &mut found, &mut holders.unseen);
    claimed(system, path, &names, identity.device, &mut found, &mut holders.unseen);
    found.sort();
    found.dedup();
    holders.found = found;
    Ok(holders)
}

/// Returns the devices that share bytes with a device, including itself, with their kernel names.
pub(crate) fn family_of(system: &System, number: DeviceNumber) -> BTreeMap<DeviceNumber, String> {
    let tables = MountTables::new(system);
    let loops = Loops::new(system, &tables);
    let mut family = Family::new(system, &loops);
    family.add_with_relatives(number);
    family.names
}

/// Adds the loop devices on a regular file, and the users of these devices. Returns whether there is such a device.
pub(crate) fn add_loops_of_file(
    system: &System,
    (tables, loops): (&MountTables<'_>, &Loops<'_>),
    (file, name): (&Below, &str),
    holders: &mut Holders,
) {
    let mut family = Family::new(system, loops);
    let stacked = |by| HolderKind::Stacked { by };
    family.add_loops(|below| below.is_same(file), name, (stacked, None));
    let Family { names, mut found, .. } = family;
    // Without a loop device on the file, no filesystem can be on a device of it.
    if !names.is_empty() {
        mounted(system, tables, &names, &mut found, &mut holders.unseen);
        members(system, &names, &mut found);
        swap(system, &names, &mut found, &mut holders.unseen);
    }
    holders.found.extend(found);
}

/// Devices that share bytes with the given one, by number, with their kernel names.
struct Family<'a> {
    system: &'a System,
    loops: &'a Loops<'a>,
    names: BTreeMap<DeviceNumber, String>,
    found: Vec<Holder>,
}

impl<'a> Family<'a> {
    fn new(system: &'a System, loops: &'a Loops<'a>) -> Self {
        Self { system, loops, names: BTreeMap::new(), found: Vec::new() }
    }

    /// Adds a device, all devices above it, and all devices below it.
    fn add_with_relatives(&mut self, number: DeviceNumber) {
        if let Some(directory) = self.add_upwards(number) {
            self.add_below(number, &directory);
        }
    }

    /// Adds the devices below a device, down to the disks, but not other devices on those disks: other volumes share no
    /// bytes with this device, and other partitions only if their ranges overlap.
    fn add_below(&mut self, number: DeviceNumber, directory: &str) {
        let mut below = Vec::new();
        if self.system.exists(&format!("{directory}/partition")) {
            // The whole disk may be in use directly (by dm, or mounted), in spite of its partitions.
            if let Some((whole, _)) = directory.rsplit_once('/') {
                below.push(whole.to_owned());
                self.add_overlapping(directory, whole);
            }
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
        let Some(device) = self.loops.all().iter().find(|device| device.number == number) else { return };
        match device.below {
            // A loop device on a disk shares all bytes with the disk.
            Below::Device(below) if !self.names.contains_key(&below) => self.add_with_relatives(below),
            Below::Device(_) => {}
            _ => {
                let name = self.names.get(&number).cloned().unwrap_or_default();
                let twin = |by| HolderKind::Twin { by };
                self.add_loops(|other| other.is_same(&device.below), &name, (twin, Some(number)));
            }
        }
    }

    /// Adds the partitions of `whole` that share bytes with the one in `directory`: the kernel takes a partition table
    /// as it is, also one whose partitions overlap.
    fn add_overlapping(&mut self, directory: &str, whole: &str) {
        let range = |directory: &str| {
            let number = |file: &str| self.system.read(&format!("{directory}/{file}")).ok()?.trim().parse::<u64>().ok();
            let start = number("start")?;
            Some(start..start.saturating_add(number("size")?))
        };
        let Some(own) = range(directory) else { return };
        let partitions = self.system.list(whole).into_iter().map(|entry| format!("{whole}/{entry}"));
        let overlapping: Vec<_> = partitions
            .filter(|other| other != directory && self.system.exists(&format!("{other}/partition")))
            .filter(|other| range(other).is_some_and(|other| other.start < own.end && own.start < other.end))
            .filter_map(|other| device_number_at(self.system, &other))
            .collect();
        for number in overlapping {
            self.add_upwards(number);
        }
    }

    fn add_alone(&mut self, number: DeviceNumber) -> Option<String> {
        let directory = self.system.resolve(&format!("/sys/dev/block/{}:{}", number.0, number.1)).ok()?;
        let name = directory.rsplit('/').next().unwrap_or_default().to_owned();
        self.names.insert(number, name);
        Some(directory)
    }

    /// Adds a device, its partitions and all devices stacked on them.
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
        // A loop device does not claim the device below it and is not listed in its `holders`.
        let stacked = |by| HolderKind::Stacked { by };
        let is_on_it = |below: &Below| matches!(below, Below::Device(below) if *below == number);
        self.add_loops(is_on_it, &name, (stacked, Some(number)));
        Some(directory)
    }

    /// Adds the loop devices on a file or device of the given name, with what each is to it. `except` is not added.
    fn add_loops(
        &mut self,
        is_meant: impl Fn(&Below) -> bool,
        name: &str,
        (kind_of, except): (fn(String) -> HolderKind, Option<DeviceNumber>),
    ) {
        let loops: &'a [LoopDevice] = self.loops.all();
        for device in loops.iter().filter(|device| Some(device.number) != except && is_meant(&device.below)) {
            let kind = kind_of(device.name.clone());
            self.found.push(Holder { device: name.to_owned(), kind, source: device.source.clone() });
            self.add_upwards(device.number);
        }
    }
}

/// Adds the mounts of the devices, in every mount namespace.
fn mounted(
    system: &System,
    tables: &MountTables<'_>,
    names: &BTreeMap<DeviceNumber, String>,
    found: &mut Vec<Holder>,
    unseen: &mut Vec<String>,
) {
    let mut seen: Vec<(String, String)> = Vec::new();
    for table in tables.all() {
        for mount in &table.mounts {
            let Some(device) = device_of(system, table, mount, names) else { continue };
            let mount_point = mount.mount_point.display().to_string();
            if !seen.contains(&(device.clone(), mount_point.clone())) {
                seen.push((device.clone(), mount_point.clone()));
                let kind = HolderKind::Mounted { mount_point, process: table.process };
                found.push(Holder { device, kind, source: table.source() });
            }
        }
    }
    unseen.extend_from_slice(tables.unseen());
}

/// Returns the device of `names` that is mounted.
fn device_of(
    system: &System,
    table: &MountTable,
    mount: &Mount,
    names: &BTreeMap<DeviceNumber, String>,
) -> Option<String> {
    if let Some(name) = names.get(&mount.device) {
        return Some(name.clone());
    }
    // btrfs and others have an anonymous device number, and one of their devices as the source.
    if !mount.may_have_source() {
        return None;
    }
    mount.source.split(':').find_map(|path| {
        // The path is of the namespace in which it was mounted, so the process's root directory is tried first.
        let in_root = table.in_root(Path::new(path));
        let there = in_root.to_str().filter(|_| system.is_live());
        let numbers = there.into_iter().chain([path]).filter_map(|path| device_number_of(system, path));
        numbers.into_iter().find_map(|number| names.get(&number)).cloned()
    })
}

/// Adds the devices of mounted filesystems that span several devices.
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

/// Opens the device for reading with `O_EXCL` and closes it. The kernel refuses that while a mount, swap, dm, md or
/// another program claims the device: open(2).
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
        Err(error) => unseen.push(format!("whether the device is claimed: open failed ({error})")),
    }
}
