//! Determines which parts of a file are stored on the disk: neither holes nor preallocated space.
//!
//! A read of a hole, or of an extent that was allocated and never written, returns zeros without accessing
//! the disk, also with direct I/O: 0.3 µs instead of 9 to 18 (measured on ext4, XFS and btrfs, Linux 6.18).
//!
//! Cannot see: blocks of zeros that a thin-provisioned device never stored. On filesystems without `FIEMAP`,
//! `SEEK_HOLE` is used, which may report unwritten space as data or as a hole.
//!
//! Source: Linux `Documentation/filesystems/fiemap.rst`; lseek(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Maximum number of extents that are examined; a map with more is marked incomplete.
const EXTENT_COUNT_MAX: u64 = 16_384;

/// The stored bytes of a region of a file. In a complete map the three kinds of bytes sum to the region, up
/// to the file's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMap {
    /// Path of the file.
    pub path: String,
    /// First byte of the region.
    pub offset_bytes: u64,
    /// Length of the region, up to the file's end, in bytes.
    pub region_bytes: u64,
    /// Bytes that are stored on the disk, or allocated and still in memory.
    pub stored_bytes: u64,
    /// Bytes of space that was preallocated and never written.
    pub unwritten_bytes: u64,
    /// Bytes without allocated space.
    pub hole_bytes: u64,
    /// The ranges of the bytes without allocated space, in rising order: the first byte and the byte after the last.
    pub holes: Vec<(u64, u64)>,
    /// The ranges of the bytes that were never written.
    pub unwritten: Vec<(u64, u64)>,
    /// Of the stored bytes, those that the filesystem compressed or encrypted.
    pub encoded_bytes: u64,
    /// Number of extents examined.
    pub extent_count: u64,
    /// False if the file has more extents than were examined.
    pub is_complete: bool,
    /// `FIEMAP` or `SEEK_HOLE`.
    pub source: &'static str,
}

impl FileMap {
    /// Returns the byte after the region.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.region_bytes
    }

    /// Returns the bytes without allocated space, and those that were never written, in a part of the region.
    pub fn absent_in(&self, begin: u64, end: u64) -> (u64, u64) {
        let within = |ranges: &[(u64, u64)]| {
            ranges.iter().map(|range| range.1.min(end).saturating_sub(range.0.max(begin))).sum::<u64>()
        };
        (within(&self.holes), within(&self.unwritten))
    }

    /// Adds a stored or unwritten extent of the region, after those before it; what lies between them is a hole.
    fn add(&mut self, begin: u64, end: u64, is_unwritten: bool) {
        let known = self.offset_bytes + self.stored_bytes + self.unwritten_bytes + self.hole_bytes;
        self.add_hole(known, begin);
        let begin = begin.max(known);
        let length = end.saturating_sub(begin);
        if is_unwritten {
            self.unwritten_bytes += length;
            push(&mut self.unwritten, begin, end);
        } else {
            self.stored_bytes += length;
        }
        self.extent_count += 1;
    }

    fn add_hole(&mut self, begin: u64, end: u64) {
        self.hole_bytes += end.saturating_sub(begin);
        push(&mut self.holes, begin, end);
    }
}

/// Adds a range that is not empty; adjoining ranges become one.
fn push(ranges: &mut Vec<(u64, u64)>, begin: u64, end: u64) {
    match ranges.last_mut() {
        _ if begin >= end => {}
        Some(last) if last.1 == begin => last.1 = end,
        _ => ranges.push((begin, end)),
    }
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    reserved64: [u64; 2],
    pub(crate) flags: u32,
    reserved: [u32; 3],
}
const _: () = assert!(size_of::<Extent>() == 56);

impl Extent {
    /// Flags of extents whose content is not stored as written at the given offset: offset unknown, not yet
    /// allocated, encoded, not aligned, inline, tail packed.
    pub(crate) const ELSEWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
}

const BATCH: usize = 128;

/// `struct fiemap` with room for a batch of extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}
const _: () = assert!(size_of::<Request>() == 32 + 56 * BATCH);

/// `_IOWR('f', 11, struct fiemap)`: its size is that of the header alone, 32 bytes.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// Maps `size_bytes` of `file` from `offset_bytes`. Nothing is flushed for it: data that is still in memory
/// may belong to an extent that is not written yet.
///
/// # Errors
/// Neither `FIEMAP` nor `SEEK_HOLE` is supported, or the file is no regular file.
pub fn map_file(file: &File, path: &str, offset_bytes: u64, size_bytes: u64) -> io::Result<FileMap> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not a regular file"));
    }
    let end = offset_bytes.saturating_add(size_bytes).min(metadata.len());
    let mut map = FileMap {
        path: path.to_owned(),
        offset_bytes,
        region_bytes: end.saturating_sub(offset_bytes),
        stored_bytes: 0,
        unwritten_bytes: 0,
        hole_bytes: 0,
        holes: Vec::new(),
        unwritten: Vec::new(),
        encoded_bytes: 0,
        extent_count: 0,
        is_complete: true,
        source: "FIEMAP",
    };
    match by_fiemap(file, offset_bytes, end, &mut map) {
        Ok(()) => {}
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) => {
            map.source = "SEEK_HOLE";
            by_seek(file, offset_bytes, end, &mut map)?;
        }
        Err(error) => return Err(error),
    }
    if map.is_complete {
        let known = offset_bytes + map.stored_bytes + map.unwritten_bytes + map.hole_bytes;
        map.add_hole(known, end);
    }
    Ok(map)
}

fn by_fiemap(file: &File, begin: u64, end: u64, map: &mut FileMap) -> io::Result<()> {
    map.is_complete = each_extent(file, begin, end, |extent| {
        let stored = map.stored_bytes;
        let extent_end = extent.logical.saturating_add(extent.length).min(end);
        map.add(extent.logical.max(begin), extent_end, extent.flags & EXTENT_UNWRITTEN != 0);
        if extent.flags & EXTENT_ENCODED != 0 {
            map.encoded_bytes += map.stored_bytes - stored;
        }
    })?;
    Ok(())
}

/// Calls `piece` for the extents between `begin` and `end`, in order, by `FIEMAP`; nothing is flushed for it.
/// The first and the last may reach beyond. Returns false if there are more than are examined.
pub(crate) fn each_extent(file: &File, begin: u64, end: u64, mut each: impl FnMut(&Extent)) -> io::Result<bool> {
    let mut at = begin;
    let mut count = 0;
    while at < end {
        let mut request = Request {
            start: at,
            length: end - at,
            flags: 0,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: the kernel writes the head and at most `extent_count` extents, for which there is
        // room; the request outlives the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &request.extents[..(request.mapped_extents as usize).min(BATCH)];
        for extent in found {
            each(extent);
            count += 1;
            at = at.max(extent.logical.saturating_add(extent.length));
        }
        match found.last() {
            // A file that ends in a hole has no extent there.
            None => return Ok(true),
            Some(last) if last.flags & EXTENT_LAST != 0 => return Ok(true),
            Some(_) if count >= EXTENT_COUNT_MAX => return Ok(at >= end),
            Some(_) => {}
        }
    }
    Ok(true)
}

fn by_seek(file: &File, begin: u64, end: u64, map: &mut FileMap) -> io::Result<()> {
    let mut at = begin;
    while at < end {
        // SAFETY: moves the descriptor's own position, which nothing here depends on: transfers are
        // made at explicit offsets, and the caller opened the file for watching.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, libc::SEEK_DATA) };
        if data < 0 {
            let error = io::Error::last_os_error();
            // Only a hole up to the end.
            return if error.raw_os_error() == Some(libc::ENXIO) { Ok(()) } else { Err(error) };
        }
        // SAFETY: as above.
        let hole = unsafe { libc::lseek(file.as_raw_fd(), data, libc::SEEK_HOLE) };
        if hole < 0 {
            return Err(io::Error::last_os_error());
        }
        let (data, hole) = ((data as u64).min(end), (hole as u64).min(end));
        map.add(data, hole, false);
        at = hole;
        if map.extent_count >= EXTENT_COUNT_MAX && at < end {
            map.is_complete = false;
            return Ok(());
        }
    }
    Ok(())
}
