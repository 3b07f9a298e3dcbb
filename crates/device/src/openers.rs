//! Finds the processes that have a disk, or a device stacked on it, open.
//!
//! The kernel's exclusive claim (`O_EXCL`) detects mounts, swap and stacked devices, but not a program that opened the
//! device without a claim. So the descriptors of every process are compared by device number, and its mappings, which keep a device
//! open whose descriptor was closed. Regular files are compared by device and inode.
//!
//! Cannot see: without root, processes of other users; a descriptor in flight between two processes, or one that was closed after it was
//! registered with io_uring; other machines.
//!
//! Source: proc_pid_fd(5), proc_pid_fdinfo(5), proc_pid_maps(5), proc_pid_map_files(5), proc_pid_smaps(5), proc_pid_comm(5).

use crate::error::DeviceError;
use crate::holders::family_of;
use crate::identity::DeviceNumber;
use crate::numbers::{device_number_at, device_number_of};
use crate::same_file::FileId;
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
    let is_shared = |mapping: &str| mapping.contains('s');
    let mut characters: BTreeMap<DeviceNumber, String> = BTreeMap::new();
    for generic in system.list(&format!("{directory}/device/scsi_generic")) {
        let own = format!("{directory}/device/scsi_generic/{generic}");
        if let Some(number) = device_number_at(system, &own) {
            characters.insert(number, generic);
        }
    }
    scan(system, openers, is_shared, |opened| {
        let (number, is_block) = device_behind(system, &opened.link)?;
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
    let is_shared = |mapping: &str| mapping.contains('s');
    Ok(scan(system, Openers::default(), is_shared, |opened| {
        let (number, is_block) = device_behind(system, &opened.link)?;
        let device = blocks.get(&number).filter(|_| is_block)?;
        opened.may_write(system).then(|| device.clone())
    }))
}

/// A process that has a regular file open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOpener {
    pub(crate) process: u32,
    pub(crate) name: String,
    /// By a descriptor that was opened for writing, or a shared mapping that may be written.
    pub(crate) may_write: bool,
    /// The process runs this program, or is this process.
    pub(crate) is_this_program: bool,
}

/// Returns the processes that have the regular file open, this process included. Names without access to the file (`O_PATH`) do not count.
pub(crate) fn who_has_file_open(system: &System, file: FileId) -> Vec<FileOpener> {
    let program = |process: &str| identity_behind(Path::new(&format!("/proc/{process}/exe")));
    let own = program("self");
    let mut found: BTreeMap<u32, FileOpener> = BTreeMap::new();
    let inode = format!(" {} ", file.inode);
    for process in processes(system) {
        let Ok(entries) = opened_by(system, process, |mapping| mapping.contains(&inode)) else { continue };
        for opened in entries.filter(|opened| identity_behind(&opened.link) == Some(file)) {
            if opened.is_only_a_name(system) {
                continue;
            }
            let opener = found.entry(process).or_insert_with(|| FileOpener {
                process,
                name: name_of(system, process),
                may_write: false,
                is_this_program: process == std::process::id() || own.is_some() && program(&process.to_string()) == own,
            });
            opener.may_write |= opened.may_write(system);
        }
    }
    found.into_values().collect()
}

/// Returns device and inode of the file that a link of procfs refers to.
fn identity_behind(link: &Path) -> Option<FileId> {
    std::fs::metadata(link).ok().map(|found| FileId { device: found.dev(), inode: found.ino() })
}

/// A file that a process has open.
struct Opened {
    process: u32,
    by: By,
    /// The link of procfs that leads to it.
    link: PathBuf,
}

/// How a process has a file open.
enum By {
    /// The number of the descriptor.
    Descriptor(String),
    /// The range of addresses and the permissions of the mapping.
    Mapping { range: String, permissions: String },
}

impl Opened {
    /// Returns the flags of the descriptor; `None` if it has been closed, or for a mapping.
    fn flags(&self, system: &System) -> Option<u32> {
        let By::Descriptor(number) = &self.by else { return None };
        let text = system.read(&format!("/proc/{}/fdinfo/{number}", self.process)).ok()?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(flags.trim(), 8).ok()
    }

    /// Whether the descriptor was opened with `O_PATH`.
    fn is_only_a_name(&self, system: &System) -> bool {
        self.flags(system).is_some_and(|flags| flags & libc::O_PATH as u32 != 0)
    }

    /// Returns whether the file may be written through it; false if it has been closed.
    ///
    /// Source: proc_pid_fdinfo(5): `flags` are octal; open(2): the access mode is in the lowest two bits. proc_pid_smaps(5): `mw` is in
    /// the flags of a mapping that may be made writable, which is true of a shared one only if the file was opened for writing.
    fn may_write(&self, system: &System) -> bool {
        let By::Mapping { range, permissions } = &self.by else {
            return self.flags(system).is_some_and(|flags| matches!(flags & 0o3, 1 | 2));
        };
        if !permissions.contains('s') {
            return false;
        }
        let Ok(text) = system.read(&format!("/proc/{}/smaps", self.process)) else { return true };
        let of_range = text.lines().skip_while(|line| line.split(' ').next() != Some(range.as_str())).skip(1);
        let flags = of_range.into_iter().find_map(|line| line.strip_prefix("VmFlags:"));
        flags.is_none_or(|flags| flags.split_whitespace().any(|flag| flag == "mw"))
    }
}

/// Adds the processes that have a matching device open; `device` returns its name, or `None` if it does not match. Mappings are compared
/// if `is_meant` returns true for their line in `/proc/PID/maps`.
fn scan(
    system: &System,
    mut openers: Openers,
    is_meant: impl Fn(&str) -> bool,
    device: impl Fn(&Opened) -> Option<String>,
) -> Openers {
    let own = std::process::id();
    let mut found = BTreeSet::new();
    let mut refused_count = 0;
    for process in processes(system).filter(|process| !system.is_live() || *process != own) {
        match opened_by(system, process, &is_meant) {
            Ok(entries) => found.extend(entries.filter_map(|opened| {
                let device = device(&opened)?;
                Some(Opener { process, name: name_of(system, process), device })
            })),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => refused_count += 1,
            // The process has ended, or is recorded without its descriptors.
            Err(_) => {}
        }
    }
    if refused_count > 0 {
        openers.unseen.push(format!("this user may not read the open files of {refused_count} processes"));
    }
    openers.found = found.into_iter().collect();
    openers
}

fn processes(system: &System) -> impl Iterator<Item = u32> {
    system.list("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok())
}

fn name_of(system: &System, process: u32) -> String {
    system.read(&format!("/proc/{process}/comm")).unwrap_or_else(|_| "?".to_owned())
}

/// Returns what a process has open: its descriptors, and the mappings of files whose line in `/proc/PID/maps` is meant.
fn opened_by(
    system: &System,
    process: u32,
    is_meant: impl Fn(&str) -> bool,
) -> std::io::Result<impl Iterator<Item = Opened>> {
    let descriptors = std::fs::read_dir(system.locate(&format!("/proc/{process}/fd")))?;
    let descriptors = descriptors.flatten().map(move |entry| {
        let number = entry.file_name().to_string_lossy().into_owned();
        Opened { process, by: By::Descriptor(number), link: entry.path() }
    });
    // `7f0c1000-7f0c2000 rw-s 00000000 00:06 321    /dev/sda`
    let mut mappings = Vec::new();
    for line in system.read(&format!("/proc/{process}/maps")).unwrap_or_default().lines() {
        let mut columns = line.splitn(6, ' ');
        let (Some(range), Some(permissions)) = (columns.next(), columns.next()) else { continue };
        let path = columns.nth(3).map_or("", str::trim_start);
        // Without a file there is no path.
        let fields = line.strip_suffix(path).unwrap_or(line);
        if !path.starts_with('/') || !is_meant(fields) {
            continue;
        }
        let by_range = system.locate(&format!("/proc/{process}/map_files/{range}"));
        // Only root may follow these links. A mapping of the same user is found by its path.
        let link = if by_range.exists() { by_range } else { PathBuf::from(path) };
        let by = By::Mapping { range: range.to_owned(), permissions: permissions.to_owned() };
        mappings.push(Opened { process, by, link });
    }
    Ok(descriptors.chain(mappings))
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
    let target = std::fs::read_link(link).unwrap_or_else(|_| link.to_owned());
    let target = target.to_str()?;
    Some((device_number_of(system, target)?, !target.starts_with("/dev/sg")))
}
