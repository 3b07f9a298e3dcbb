//! Maps the bytes of a file to offsets on its disk.
//!
//! The filesystem's extent map (`FIEMAP`) gives offsets on the device that it is mounted from. Adding the
//! start of the partition gives the offsets that the disk's requests carry. This holds for ext2, ext3, ext4
//! and XFS on a disk or a partition, and for block devices. A loop device counts as a disk.
//!
//! Cannot see: offsets below dm, md, bcache and similar layers, which map blocks themselves; btrfs and ZFS,
//! whose maps give virtual addresses; overlays; a real-time device of XFS; disks without a request queue
//! (zram, NVMe with native multipath).
//!
//! Source: Linux `Documentation/filesystems/fiemap.rst`; `/sys/dev/block/MAJOR:MINOR/start`.

use crate::filemap::{Extent, each_extent};
use rustix::fs::IFlags;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use trueio_device::System;
use trueio_model::{TargetFacts, WriteCache};

/// A disk whose requests can be traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedDisk {
    /// Kernel name (`vda`).
    pub name: String,
    /// Device number, in the kernel's internal encoding.
    pub device: u32,
    /// True if the disk declares a volatile write cache, so that only flushed data survives a power cut.
    pub has_volatile_cache: bool,
    /// True if an I/O scheduler may hold its requests back (`queue/scheduler` is not `none`).
    pub has_scheduler: bool,
}

/// An extent of a file and its offset on the disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedExtent {
    /// Offset in the file.
    pub logical: u64,
    /// Offset on the disk.
    pub physical: u64,
    /// Length.
    pub length: u64,
}

/// The extents of the region of a file that a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileExtents {
    /// Path of the file.
    pub path: String,
    /// Index of its disk in the list of disks.
    pub disk: usize,
    /// Extents at the start of the phase, in file order.
    pub before: Vec<MappedExtent>,
    /// Extents at the end of the phase.
    pub after: Vec<MappedExtent>,
}

/// The disk of a file, and the start of the file's device on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskLocation {
    pub(crate) disk: TracedDisk,
    /// Start of the file's device on the disk, in bytes.
    start_bytes: u64,
    /// True if the file is the device itself.
    is_device: bool,
}

const EXT_MAGIC: u64 = 0xEF53;
const XFS_MAGIC: u64 = 0x5846_5342;

impl DiskLocation {
    /// # Errors
    /// A sentence with the reason why the file's disk offsets are unknown.
    pub(crate) fn of(system: &System, file: &File, targets: &[TargetFacts]) -> Result<Self, String> {
        let metadata = file.metadata().map_err(|error| format!("stat: {error}"))?;
        let is_device = metadata.file_type().is_block_device();
        let number = if is_device { metadata.rdev() } else { metadata.dev() };
        if !is_device {
            is_simple(file, targets)?;
        }
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let read = |path: &str| std::fs::read_to_string(system.locate(path)).map(|text| text.trim().to_owned());
        let mut directory = format!("/sys/dev/block/{major}:{minor}");
        let mut start_bytes = 0;
        if let Ok(start) = read(&format!("{directory}/start")) {
            start_bytes = start.parse::<u64>().map_err(|_| format!("`{directory}/start` is no number"))? * 512;
            directory += "/..";
        }
        let dev = read(&format!("{directory}/dev")).map_err(|_| format!("/sys has no disk {major}:{minor}"))?;
        let name = std::fs::canonicalize(system.locate(&directory))
            .ok()
            .and_then(|found| Some(found.file_name()?.to_string_lossy().into_owned()))
            .ok_or_else(|| format!("`{directory}` cannot be resolved"))?;
        let is_stacked = std::fs::read_dir(system.locate(&format!("{directory}/slaves")))
            .is_ok_and(|mut slaves| slaves.next().is_some());
        if is_stacked {
            return Err(format!("{name} is stacked on other devices, so the disk offsets of its blocks are unknown"));
        }
        if !system.locate(&format!("{directory}/mq")).exists() {
            return Err(format!("{name} has no request queue, so its requests cannot be traced"));
        }
        let (major, minor) = dev
            .split_once(':')
            .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))
            .ok_or_else(|| format!("`{directory}/dev` is no device number"))?;
        let cache = read(&format!("{directory}/queue/write_cache"));
        // `none [mq-deadline] kyber`; the brackets mark the one in use.
        let scheduler = read(&format!("{directory}/queue/scheduler")).unwrap_or_default();
        // The kernel's internal device number has 20 bits for the minor number.
        let disk = TracedDisk {
            name,
            device: major << 20 | minor,
            has_volatile_cache: cache.is_ok_and(|text| WriteCache::from(text) == WriteCache::WriteBack),
            has_scheduler: !scheduler.is_empty() && scheduler != "none" && !scheduler.contains("[none]"),
        };
        Ok(Self { disk, start_bytes, is_device })
    }

    /// Returns the extents of `size_bytes` of the file from `offset_bytes` whose disk offset is known and
    /// whose content is stored as written. The second value is true if these are all: no extent is
    /// compressed, inline or not yet allocated.
    ///
    /// # Errors
    /// The filesystem has no extent map, or the file has more extents than are examined.
    pub(crate) fn pieces(
        &self,
        file: &File,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> Result<(Vec<MappedExtent>, bool), String> {
        let end = offset_bytes.saturating_add(size_bytes);
        if self.is_device {
            let physical = self.start_bytes + offset_bytes;
            return Ok((vec![MappedExtent { logical: offset_bytes, physical, length: size_bytes }], true));
        }
        let mut pieces = Vec::new();
        let mut has_all = true;
        let is_complete = each_extent(file, offset_bytes, end, |extent| {
            if extent.flags & Extent::ELSEWHERE == 0 {
                let cut = offset_bytes.saturating_sub(extent.logical);
                let length = extent.length.saturating_sub(cut).min(end - (extent.logical + cut).min(end));
                let (logical, physical) = (extent.logical + cut, self.start_bytes + extent.physical + cut);
                pieces.push(MappedExtent { logical, physical, length });
            } else {
                has_all = false;
            }
        })
        .map_err(|error| format!("the file has no extent map ({error})"))?;
        if is_complete { Ok((pieces, has_all)) } else { Err("the file has too many extents".to_owned()) }
    }
}

/// Checks that the filesystem's extent map gives offsets on its device and that data is written there.
///
/// # Errors
/// The reason why it does not.
fn is_simple(file: &File, targets: &[TargetFacts]) -> Result<(), String> {
    let filesystems = || targets.iter().filter_map(|target| target.filesystem.as_ref());
    let magic = rustix::fs::fstatfs(file).map_err(|error| format!("statfs: {error}"))?.f_type as u64;
    if ![EXT_MAGIC, XFS_MAGIC].contains(&magic) {
        let kinds: Vec<&str> = filesystems().map(|filesystem| filesystem.kind.as_str()).collect();
        return Err(format!("the extent map of {} does not give disk offsets", kinds.join(", ")));
    }
    let journals_file = rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::JOURNALING));
    // If the file may belong to one of several targets, one target with a data journal is enough.
    if magic == EXT_MAGIC && (journals_file || filesystems().any(|fs| fs.options.contains("data=journal"))) {
        return Err("data=journal writes data to the journal first, not to the file's extents".to_owned());
    }
    if magic == XFS_MAGIC && is_realtime(file) {
        return Err("the file is on a real-time device, whose number XFS does not report".to_owned());
    }
    Ok(())
}

/// Returns true if the file's data is on XFS's real-time device.
fn is_realtime(file: &File) -> bool {
    /// `struct fsxattr`: flags, and 24 bytes that are not needed here.
    #[repr(C)]
    struct Attributes {
        flags: u32,
        rest: [u32; 6],
    }
    const _: () = assert!(size_of::<Attributes>() == 28);
    /// `_IOR('X', 31, struct fsxattr)`.
    const FS_IOC_FSGETXATTR: libc::Ioctl = 0x801C_581F_u32 as libc::Ioctl;
    const REALTIME: u32 = 1;
    let mut attributes = Attributes { flags: 0, rest: [0; 6] };
    // SAFETY: the kernel writes one structure, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR, &raw mut attributes) };
    result == 0 && attributes.flags & REALTIME != 0
}

impl FileExtents {
    /// Returns the disk ranges of a range of the file, and whether they are certain: the same before and
    /// after the phase. `None` if the disk offset of a part is unknown.
    pub(crate) fn of_range(&self, offset: u64, length: u64) -> Option<(Vec<(u64, u64)>, bool)> {
        let after = cut_out(&self.after, offset, length);
        let before = cut_out(&self.before, offset, length);
        let is_certain = after.is_some() && after == before;
        Some((after.or(before)?, is_certain))
    }

    /// Returns every disk range that belongs to the file.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.before.iter().chain(&self.after).map(|piece| (piece.physical, piece.physical + piece.length))
    }
}

/// Returns the disk ranges of the bytes from `offset`, with neighbours joined; `None` if the disk offset of
/// some is unknown.
fn cut_out(pieces: &[MappedExtent], offset: u64, length: u64) -> Option<Vec<(u64, u64)>> {
    let end = offset + length;
    let mut at = offset;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let first = pieces.partition_point(|piece| piece.logical + piece.length <= offset);
    for piece in &pieces[first..] {
        if at >= end {
            break;
        }
        if piece.logical > at {
            return None;
        }
        let until = end.min(piece.logical + piece.length);
        let from = piece.physical + (at - piece.logical);
        let to = piece.physical + (until - piece.logical);
        match ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => ranges.push((from, to)),
        }
        at = until;
    }
    (at >= end).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(logical: u64, physical: u64, length: u64) -> MappedExtent {
        MappedExtent { logical, physical, length }
    }

    #[test]
    fn a_range_over_several_extents_has_several_disk_ranges_and_neighbours_are_joined() {
        let pieces = [piece(0, 1000, 100), piece(100, 1100, 50), piece(150, 5000, 100)];
        assert_eq!(cut_out(&pieces, 90, 70), Some(vec![(1090, 1150), (5000, 5010)]));
        assert_eq!(cut_out(&pieces, 0, 250), Some(vec![(1000, 1150), (5000, 5100)]));
        assert_eq!(cut_out(&pieces, 200, 60), None);
        assert_eq!(cut_out(&[piece(0, 0, 10), piece(20, 20, 10)], 5, 20), None);
    }

    #[test]
    fn a_disk_range_is_certain_only_if_it_did_not_move() {
        let place = |before, after| FileExtents { path: String::new(), disk: 0, before, after };
        let stayed = place(vec![piece(0, 100, 50)], vec![piece(0, 100, 50)]);
        assert_eq!(stayed.of_range(10, 10), Some((vec![(110, 120)], true)));
        let moved = place(vec![piece(0, 100, 50)], vec![piece(0, 300, 50)]);
        assert_eq!(moved.of_range(10, 10), Some((vec![(310, 320)], false)));
        let appended = place(Vec::new(), vec![piece(0, 300, 50)]);
        assert_eq!(appended.of_range(10, 10), Some((vec![(310, 320)], false)));
        assert_eq!(appended.of_range(45, 10), None);
    }
}
