//! Compares files by device and inode, and files of overlayfs with those of the filesystems below it.
//!
//! overlayfs shows a file of its upper or a lower directory under a device number of its own, and after a copy under the inode number of the
//! lower file. So the file in the upper directory is looked up, which is the one that is written. Where that is not possible, the time of birth,
//! size, mode and owner are compared, which overlayfs shows of the file below, and where these cannot be read, the inode numbers. So two files
//! may count as one.
//!
//! Limits: a file that was copied up, if neither its upper directory nor the other file can be reached under any name. Other stacked filesystems (eCryptfs,
//! fuse-overlayfs) and a filesystem of another machine that is mounted twice are not recognised.
//!
//! Source: statx(2), statfs(2); Linux `Documentation/filesystems/overlayfs.rst`, section "Inode properties".

use crate::mount_tables::MountTables;
use crate::mounts::Mount;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::io;
use std::path::Path;

/// The magic number of overlayfs, as of statfs(2).
pub(crate) const OVERLAY: u64 = 0x794c_7630;

/// A file, by the number of its filesystem's device and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The device, as of `stat`.
    pub device: u64,
    /// Inode number, as stat(2) reports it.
    pub inode: u64,
}

/// A regular file, and what is needed to recognise it through overlayfs.
#[derive(Debug, Clone)]
pub(crate) struct KnownFile {
    id: FileId,
    facts: Option<Facts>,
    /// Its file in the upper directory of the overlay, if it was found.
    upper: Option<FileId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    is_on_overlay: bool,
    shown: Shown,
}

/// What overlayfs shows of the file below.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    /// Seconds and nanoseconds; `None` if the filesystem has no times of birth.
    birth: Option<(i64, u32)>,
    size_bytes: u64,
    mode: u16,
    owner: (u32, u32),
}

impl KnownFile {
    /// Reads a file by a path; links are followed.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        if FileType::from_raw_mode(u32::from(stat.stx_mode)) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        let shown = Shown {
            birth: has_birth.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            size_bytes: stat.stx_size,
            mode: stat.stx_mode,
            owner: (stat.stx_uid, stat.stx_gid),
        };
        let is_on_overlay = rustix::fs::statfs(path)?.f_type as u64 == OVERLAY;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        let id = FileId { device, inode: stat.stx_ino };
        Ok(Self { id, facts: Some(Facts { is_on_overlay, shown }), upper: None })
    }

    /// A file of which only device and inode are known.
    pub(crate) fn unread(id: FileId) -> Self {
        Self { id, facts: None, upper: None }
    }

    /// Adds the file in the upper directory; `path` is the file's in the overlay's mount.
    pub(crate) fn with_upper(mut self, path: &Path, mount: &Mount, tables: &MountTables<'_>) -> Self {
        let relative = path.strip_prefix(&mount.mount_point).ok();
        let (Some(directory), Some(relative)) = (&mount.upper_directory, relative) else { return self };
        let upper = directory.join(mount.root.trim_start_matches('/')).join(relative);
        let shows = |other: &Self| match (&self.facts, &other.facts) {
            (Some(one), Some(other)) => one.shown == other.shown,
            _ => false,
        };
        let at = |path: &Path| Self::at(path).ok().filter(shows).map(|found| found.id);
        // The directory is a path of the mount namespace in which the overlay was mounted.
        self.upper = at(&upper).or_else(|| tables.all().iter().find_map(|table| at(&table.in_root(&upper))));
        self
    }

    /// Whether it is on overlayfs, and the file that would be written was not found below it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.may_be_on_overlay() && self.upper.is_none()
    }

    /// Whether only device and inode are known.
    pub(crate) fn is_unread(&self) -> bool {
        self.facts.is_none()
    }

    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// Whether another file may be this one under another device number.
    pub(crate) fn may_be_on_overlay(&self) -> bool {
        // Without facts: the numbers of overlayfs are among those without a device, whose major number is 0.
        self.facts.as_ref().map_or(rustix::fs::major(self.id.device) == 0, |facts| facts.is_on_overlay)
    }

    /// Whether both are one file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if self.id == other.id || self.upper == Some(other.id) || other.upper == Some(self.id) {
            return true;
        }
        if !self.may_be_on_overlay() && !other.may_be_on_overlay() {
            return false;
        }
        match (&self.facts, &other.facts) {
            (Some(one), Some(other)) => one.shown == other.shown,
            _ => self.id.inode == other.id.inode,
        }
    }
}
