//! Maps the bytes of a file to addresses on the device below its filesystem.
//!
//! The filesystem's extent map (`FIEMAP`) gives offsets on the device that it is mounted from. Adding the
//! start of the partition gives the offsets on the whole device. This holds for ext2, ext3, ext4
//! and XFS, and for block devices. btrfs gives addresses of its own, which its chunk map ([`super::chunks`]) leads to disks.
//! A loop device counts as a disk: what others do on the disk of its file is counted apart, and through the page
//! cache its requests have none of the same place below. The checks print that the trace ends there.
//!
//! Cannot see: ZFS, overlays; a real-time device of XFS; places to which btrfs moved data more than once in a phase.
//!
//! Source: Linux `Documentation/filesystems/fiemap.rst`; `/sys/dev/block/MAJOR:MINOR/start`.

use super::chunks::ChunkMap;
use super::layers::Layers;
use super::places::AddressSpace;
use crate::filemap::{Extent, each_extent};
use rustix::fs::IFlags;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use trueio_device::System;
use trueio_model::TargetFacts;

/// An extent of a file and its address, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedExtent {
    /// Offset in the file.
    pub logical: u64,
    /// Address in the space of the file's extents.
    pub physical: u64,
    /// Length.
    pub length: u64,
}

/// The extents of the region of a file that a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileExtents {
    /// Path of the file.
    pub path: String,
    /// What the extents' addresses mean.
    pub space: AddressSpace,
    /// True if each write goes to a new place (copy on write).
    pub moves_on_write: bool,
    /// Extents at the start of the phase, in file order.
    pub before: Vec<MappedExtent>,
    /// Extents at the end of the phase.
    pub after: Vec<MappedExtent>,
}

/// Where the extents of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLocation {
    pub(crate) layers: Layers,
    pub(crate) space: AddressSpace,
    pub(crate) moves_on_write: bool,
    /// Start of the file's device on the whole device, in bytes.
    start_bytes: u64,
    /// True if the file is the device itself.
    is_device: bool,
}

const BTRFS_MAGIC: u64 = 0x9123_683E;
const EXT_MAGIC: u64 = 0xEF53;
const XFS_MAGIC: u64 = 0x5846_5342;

impl FileLocation {
    /// # Errors
    /// A sentence with the reason why the file's disk offsets are unknown.
    pub(crate) fn of(system: &System, file: &File, targets: &[TargetFacts]) -> Result<Self, String> {
        let metadata = file.metadata().map_err(|error| format!("stat: {error}"))?;
        let is_device = metadata.file_type().is_block_device();
        let number = if is_device { metadata.rdev() } else { metadata.dev() };
        let mut layers = Layers::default();
        if !is_device && has_own_addresses(file, targets)? {
            let chunks = read_chunks(system, file, &mut layers)?;
            let flags = rustix::fs::ioctl_getflags(file).map_err(|error| format!("the flags of the file: {error}"))?;
            return Ok(Self {
                layers,
                space: AddressSpace::Btrfs(Arc::new(chunks)),
                moves_on_write: !flags.contains(IFlags::NOCOW),
                start_bytes: 0,
                is_device,
            });
        }
        let (device, start_bytes) = layers.add(system, rustix::fs::major(number), rustix::fs::minor(number))?;
        Ok(Self { layers, space: AddressSpace::Device(device), moves_on_write: false, start_bytes, is_device })
    }

    /// Reads the chunk map again, for space that was added meanwhile.
    pub(crate) fn refresh(&mut self, system: &System, file: &File) -> Result<(), String> {
        let AddressSpace::Btrfs(chunks) = &mut self.space else { return Ok(()) };
        let later = read_chunks(system, file, &mut self.layers)?;
        Arc::make_mut(chunks).join(later);
        Ok(())
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

fn read_chunks(system: &System, file: &File, layers: &mut Layers) -> Result<ChunkMap, String> {
    ChunkMap::read(file, |path: &Path| {
        let found = rustix::fs::stat(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        layers.add(system, rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev))
    })
}

/// Checks that the filesystem's extent map gives the places of its data. Returns true if it gives addresses of the filesystem's own
/// (btrfs), and false for offsets on its device.
///
/// # Errors
/// The reason why it does not.
fn has_own_addresses(file: &File, targets: &[TargetFacts]) -> Result<bool, String> {
    let filesystems = || targets.iter().filter_map(|target| target.filesystem.as_ref());
    let magic = rustix::fs::fstatfs(file).map_err(|error| format!("statfs: {error}"))?.f_type as u64;
    if magic == BTRFS_MAGIC {
        return Ok(true);
    }
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
    Ok(false)
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
    /// Returns the addresses of a range of the file, and whether they are certain: the same before and
    /// after the phase. `None` if the address of a part is unknown.
    pub(crate) fn of_range(&self, offset: u64, length: u64) -> Option<(Vec<(u64, u64)>, bool)> {
        let after = cut_out(&self.after, offset, length);
        let before = cut_out(&self.before, offset, length);
        let is_certain = after.is_some() && after == before;
        Some((after.or(before)?, is_certain))
    }

    /// Returns true if every byte of a range had an address after the phase.
    pub(crate) fn has_after(&self, offset: u64, length: u64) -> bool {
        cut_out(&self.after, offset, length).is_some()
    }

    /// Returns every range of addresses that belongs to the file.
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
        let space = || AddressSpace::Device(1);
        let place =
            |before, after| FileExtents { path: String::new(), space: space(), moves_on_write: false, before, after };
        let stayed = place(vec![piece(0, 100, 50)], vec![piece(0, 100, 50)]);
        assert_eq!(stayed.of_range(10, 10), Some((vec![(110, 120)], true)));
        let moved = place(vec![piece(0, 100, 50)], vec![piece(0, 300, 50)]);
        assert_eq!(moved.of_range(10, 10), Some((vec![(310, 320)], false)));
        let appended = place(Vec::new(), vec![piece(0, 300, 50)]);
        assert_eq!(appended.of_range(10, 10), Some((vec![(310, 320)], false)));
        assert_eq!(appended.of_range(45, 10), None);
    }
}
