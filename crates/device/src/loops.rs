//! The loop devices of a machine, and the file or device below each, by device and inode.
//!
//! `LOOP_GET_STATUS64` returns the file that the kernel reads and writes. `loop/backing_file` in sysfs is only the text of a path: another
//! mount namespace, another hard link, a mount over the directory or a blank at the end of the name make it the path of no file, or of
//! another one. The text is used where the device cannot be opened, and on a recorded machine.
//!
//! Source: loop(4); Linux `drivers/block/loop.c` (`loop_get_status`), `include/uapi/linux/loop.h`.

use crate::identity::DeviceNumber;
use crate::mount_tables::MountTables;
use crate::numbers::{device_number_at, device_number_of};
use crate::same_file::{FileId, KnownFile};
use crate::system::System;
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the kernel returns of a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopStatus {
    /// The file below it; of a device below it, the node by which it was opened.
    pub file: FileId,
    /// The number of the device below it, as of `stat`; `None` if a regular file is below it.
    pub device_below: Option<u64>,
    /// The first byte of the device in the file below it.
    pub offset_bytes: u64,
}

impl LoopStatus {
    /// Reads the status of an open loop device.
    ///
    /// # Errors
    /// The kernel's error; `ENXIO` if no file is attached.
    pub fn of(device: &File) -> io::Result<Self> {
        const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
        /// The size of `struct loop_info64` in words of 8 bytes. The first four are the device and the inode of the file, the number
        /// of a device, and the offset; the rest is not needed.
        const WORDS: usize = 232 / 8;
        let mut words = [0u64; WORDS];
        // SAFETY: the kernel writes one `struct loop_info64` of 232 bytes, for which there is room; it outlives the call.
        let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, words.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let [file_device, inode, number, offset_bytes, ..] = words;
        // Of a regular file, the kernel returns 0, or the number of its filesystem again. A device node is on a filesystem without a
        // device.
        let device_below = (number != 0 && number != file_device).then_some(number);
        Ok(Self { file: FileId { device: file_device, inode }, device_below, offset_bytes })
    }
}

/// What is below a loop device.
#[derive(Debug)]
pub(crate) enum Below {
    Device(DeviceNumber),
    File(KnownFile),
    /// Neither the device nor the path can be read. On a recorded machine files have only this.
    Named(PathBuf),
}

/// The major number of loop devices (`Documentation/admin-guide/devices.txt`).
const LOOP_MAJOR: u32 = 7;

impl Below {
    /// Whether both are the same file or device.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device(one), Self::Device(other)) => one == other,
            (Self::File(one), Self::File(other)) => one.is_same(other),
            (Self::Named(one), Self::Named(other)) => one == other,
            _ => false,
        }
    }
}

/// A loop device to which a file or device is attached.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    /// Kernel name (`loop0`).
    pub(crate) name: String,
    pub(crate) number: DeviceNumber,
    pub(crate) below: Below,
    /// The source of `below`.
    pub(crate) source: String,
}

/// The loop devices of a machine, read once.
#[derive(Debug)]
pub(crate) struct Loops<'a> {
    system: &'a System,
    tables: &'a MountTables<'a>,
    all: OnceCell<Vec<LoopDevice>>,
}

impl<'a> Loops<'a> {
    pub(crate) fn new(system: &'a System, tables: &'a MountTables<'a>) -> Self {
        Self { system, tables, all: OnceCell::new() }
    }

    pub(crate) fn all(&self) -> &[LoopDevice] {
        self.all.get_or_init(|| {
            let listed = self.system.list("/sys/block");
            let mut all: Vec<LoopDevice> = listed.iter().filter_map(|disk| self.read(disk)).collect();
            all.extend(self.unlisted(&listed));
            all
        })
    }

    /// Returns the loop devices that sysfs does not show, because it is not mounted, or not all of it.
    fn unlisted(&self, listed: &[String]) -> Vec<LoopDevice> {
        if !self.system.is_live() {
            return Vec::new();
        }
        let source = "/proc/partitions";
        let text = self.system.read(source).unwrap_or_default();
        let attached = text.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [major, minor, _, name] = fields[..] else { return None };
            let number: DeviceNumber = (major.parse().ok()?, minor.parse().ok()?);
            let is_loop =
                number.0 == LOOP_MAJOR && name.strip_prefix("loop")?.bytes().all(|byte| byte.is_ascii_digit());
            (is_loop && !listed.iter().any(|known| known == name)).then(|| {
                let status = self.status_of(name, number);
                let below = match status {
                    Some(LoopStatus { device_below: Some(below), .. }) => {
                        Below::Device((libc::major(below), libc::minor(below)))
                    }
                    Some(status) => Below::File(KnownFile::unread(status.file)),
                    None => Below::Named(PathBuf::new()),
                };
                LoopDevice { name: name.to_owned(), number, below, source: source.to_owned() }
            })
        });
        attached.collect()
    }

    /// Returns true if nothing is known of the file of one, or of all.
    pub(crate) fn has_nameless(&self) -> bool {
        let is_hidden = self.system.list("/sys/block").is_empty() && self.system.read("/proc/partitions").is_err();
        self.system.is_live() && is_hidden
            || self
                .all()
                .iter()
                .any(|device| matches!(&device.below, Below::Named(path) if path.as_os_str().is_empty()))
    }

    /// Returns the names of those whose file cannot be compared with one on overlayfs.
    pub(crate) fn unknown(&self) -> Vec<&str> {
        let is_unknown = |device: &&LoopDevice| match &device.below {
            Below::Device(_) => false,
            Below::File(known) => known.is_unread(),
            Below::Named(_) => true,
        };
        self.all().iter().filter(is_unknown).map(|device| device.name.as_str()).collect()
    }

    fn read(&self, name: &str) -> Option<LoopDevice> {
        let source = format!("/sys/block/{name}/loop/backing_file");
        let text = self.system.path_in(&source).ok()?;
        let number = device_number_at(self.system, &format!("/sys/block/{name}"))?;
        let device =
            |below, source: &str| Some(LoopDevice { name: name.to_owned(), number, below, source: source.to_owned() });
        if let Some(status) = self.status_of(name, number) {
            let below = match status.device_below {
                Some(below) => Below::Device((libc::major(below), libc::minor(below))),
                None => Below::File(self.with_facts(status.file, &text)),
            };
            return device(below, &format!("LOOP_GET_STATUS64 of /dev/{name}"));
        }
        if let Some(below) = text.to_str().and_then(|text| device_number_of(self.system, text)) {
            return device(Below::Device(below), &source);
        }
        let below = match self.system.is_live() {
            true => KnownFile::at(&text).map_or(Below::Named(text), Below::File),
            false => Below::Named(text),
        };
        device(below, &source)
    }

    /// Returns the status of a loop device; `None` if this user may not open it, or no node has its number.
    fn status_of(&self, name: &str, number: DeviceNumber) -> Option<LoopStatus> {
        if !self.system.is_live() {
            return None;
        }
        // A container has few nodes; the first process has all, and its files are readable for root.
        ["/dev", "/proc/1/root/dev"].iter().find_map(|directory| {
            let mut options = File::options();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            let node = options.open(Path::new(directory).join(name)).ok()?;
            let found = node.metadata().ok()?;
            let is_it =
                found.file_type().is_block_device() && (libc::major(found.rdev()), libc::minor(found.rdev())) == number;
            if is_it { LoopStatus::of(&node).ok() } else { None }
        })
    }

    /// Adds to a file's identity what is read by its path, in any mount namespace in which the path leads to the file.
    fn with_facts(&self, id: FileId, text: &Path) -> KnownFile {
        let at = |path: &Path| KnownFile::at(path).ok().filter(|known| known.id() == id);
        let elsewhere = || self.tables.all().iter().find_map(|table| at(&table.in_root(text)));
        at(text).or_else(elsewhere).unwrap_or_else(|| KnownFile::unread(id))
    }
}
