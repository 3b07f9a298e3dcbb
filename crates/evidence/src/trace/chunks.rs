//! The chunk map of a btrfs: from the addresses in its extent maps to positions on its disks.
//!
//! `FIEMAP` gives addresses in btrfs' own space. Its chunk tree maps spans of that space to stripes on devices. Chunks do
//! not move, except by a balance; new ones are added, so the map is read before and after a phase.
//!
//! Needs CAP_SYS_ADMIN (`BTRFS_IOC_TREE_SEARCH`). Cannot see: compressed extents, which have no position of their own
//! (`Extent::ELSEWHERE`).
//!
//! Source: Linux `include/uapi/linux/btrfs.h`, `btrfs_tree.h`; `fs/btrfs/volumes.c` (`btrfs_map_block`).

use super::piece::Piece;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// `struct btrfs_ioctl_search_args`, which begins with its key.
#[repr(C)]
struct Search {
    tree_id: u64,
    min_objectid: u64,
    max_objectid: u64,
    min_offset: u64,
    max_offset: u64,
    min_transid: u64,
    max_transid: u64,
    min_type: u32,
    max_type: u32,
    item_count: u32,
    unused: u32,
    reserved: [u64; 4],
    items: [u8; 4096 - 104],
}
const _: () = assert!(size_of::<Search>() == 4096);

/// `struct btrfs_ioctl_dev_info_args`.
#[repr(C)]
struct DeviceInfo {
    id: u64,
    uuid: [u8; 16],
    bytes_used: u64,
    total_bytes: u64,
    rest: [u64; 379],
    path: [u8; 1024],
}
const _: () = assert!(size_of::<DeviceInfo>() == 4096);

/// `_IOWR(0x94, 17, struct btrfs_ioctl_search_args)`.
const BTRFS_IOC_TREE_SEARCH: libc::Ioctl = 0xD000_9411_u32 as libc::Ioctl;
/// `_IOWR(0x94, 30, struct btrfs_ioctl_dev_info_args)`.
const BTRFS_IOC_DEV_INFO: libc::Ioctl = 0xD000_941E_u32 as libc::Ioctl;
const CHUNK_TREE: u64 = 3;
const CHUNK_OBJECT: u64 = 256;
const CHUNK_ITEM: u32 = 228;
/// Bytes of an item's header: transaction, object, offset, type, length.
const HEADER_BYTES: usize = 32;
/// Bytes of a chunk item before its stripes, and of a stripe.
const CHUNK_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;

const RAID0: u64 = 1 << 3;
const RAID10: u64 = 1 << 6;
const RAID5: u64 = 1 << 7;
const RAID6: u64 = 1 << 8;

/// A stripe of a chunk: a device and the first byte there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stripe {
    device: u32,
    begin: u64,
}

/// A span of btrfs' addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    begin: u64,
    length: u64,
    /// Bytes of a strip: after them the next device follows.
    strip_bytes: u64,
    kind: u64,
    sub_stripe_count: usize,
    stripes: Vec<Stripe>,
}

/// All chunks, in the order of their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkMap(Vec<Chunk>);

impl ChunkMap {
    /// Reads the map of the filesystem of `file`. `device_at` returns the number of a device, and the start of it on that.
    ///
    /// # Errors
    /// A sentence with the reason why there is none.
    pub(crate) fn read(
        file: &File,
        mut device_at: impl FnMut(&Path) -> Result<(u32, u64), String>,
    ) -> Result<Self, String> {
        let mut devices: Vec<(u64, (u32, u64))> = Vec::new();
        let mut device = |id: u64| -> Result<(u32, u64), String> {
            if let Some((_, known)) = devices.iter().find(|(known, _)| *known == id) {
                return Ok(*known);
            }
            let path = device_path(file, id).map_err(|error| format!("device {id} of the btrfs: {error}"))?;
            let found = device_at(&path)?;
            devices.push((id, found));
            Ok(found)
        };
        let mut chunks = Vec::new();
        let mut from = 0;
        loop {
            let search = search(file, from).map_err(|error| format!("the chunk map of the btrfs: {error}"))?;
            let mut last = None;
            each_item(&search, |offset, item| {
                last = Some(offset);
                chunks.push(parse_chunk(offset, item, &mut device)?);
                Ok(())
            })?;
            match last.and_then(|last| last.checked_add(1)) {
                Some(next) => from = next,
                None => break,
            }
        }
        chunks.sort_by_key(|chunk| chunk.begin);
        Ok(Self(chunks))
    }

    /// Adds chunks that are not known yet.
    pub(crate) fn join(&mut self, later: Self) {
        for chunk in later.0 {
            if !self.0.contains(&chunk) {
                self.0.push(chunk);
            }
        }
        self.0.sort_by_key(|chunk| chunk.begin);
    }

    /// Returns where the bytes from `begin` to `end` are stored: every copy. `None` if a part is unknown.
    pub(crate) fn pieces(&self, begin: u64, end: u64) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut at = begin;
        while at < end {
            let next = self.0.partition_point(|chunk| chunk.begin <= at);
            let chunk = self.0[..next].last().filter(|chunk| at - chunk.begin < chunk.length)?;
            at += chunk.pieces_of_strip(at, end, &mut pieces);
        }
        Some(pieces)
    }
}

impl Chunk {
    /// Adds the copies of the bytes from `at`, at most to the end of its strip; returns how many bytes these are.
    fn pieces_of_strip(&self, at: u64, end: u64, pieces: &mut Vec<Piece>) -> u64 {
        let from_begin = at - self.begin;
        let (strip, within) = (from_begin / self.strip_bytes, from_begin % self.strip_bytes);
        let count = self.stripes.len();
        let left = (self.length - from_begin).min(end - at);
        let of_strip = left.min(self.strip_bytes - within);
        // Which devices hold it, and at which offset from the begin of their stripe.
        let modulo = |of: u64, by: usize| (of % by as u64) as usize;
        let (length, holders, offset) = if self.kind & RAID0 != 0 {
            let row = strip / count as u64;
            (of_strip, modulo(strip, count)..modulo(strip, count) + 1, row * self.strip_bytes + within)
        } else if self.kind & RAID10 != 0 {
            let groups = count / self.sub_stripe_count;
            let first = modulo(strip, groups) * self.sub_stripe_count;
            (of_strip, first..first + self.sub_stripe_count, strip / groups as u64 * self.strip_bytes + within)
        } else if self.kind & (RAID5 | RAID6) != 0 {
            let data_count = count - if self.kind & RAID5 != 0 { 1 } else { 2 };
            let row = strip / data_count as u64;
            let first = modulo(row + strip % data_count as u64, count);
            (of_strip, first..first + 1, row * self.strip_bytes + within)
        } else {
            // One copy, or the same on each stripe.
            (left, 0..count, from_begin)
        };
        for stripe in &self.stripes[holders] {
            pieces.push(Piece { from: at, length, device: stripe.device, begin: stripe.begin + offset });
        }
        length
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..size].copy_from_slice(bytes.get(at..at + size)?);
    Some(u64::from_le_bytes(number))
}

/// Parses `struct btrfs_chunk`.
fn parse_chunk(
    begin: u64,
    item: &[u8],
    device: &mut impl FnMut(u64) -> Result<(u32, u64), String>,
) -> Result<Chunk, String> {
    let short = || "a chunk of the btrfs is shorter than its header".to_owned();
    let field = |at, size| number(item, at, size).ok_or_else(short);
    let stripe_count = field(44, 2)? as usize;
    let mut stripes = Vec::new();
    for index in 0..stripe_count {
        let at = CHUNK_BYTES + index * STRIPE_BYTES;
        let (device, start_bytes) = device(field(at, 8)?)?;
        stripes.push(Stripe { device, begin: start_bytes + field(at + 8, 8)? });
    }
    let kind = field(24, 8)?;
    let chunk = Chunk {
        begin,
        length: field(0, 8)?,
        strip_bytes: field(16, 8)?,
        kind,
        sub_stripe_count: field(46, 2)?.max(1) as usize,
        stripes,
    };
    let data_min = if kind & RAID6 != 0 { 3 } else { 1 + usize::from(kind & RAID5 != 0) };
    let is_valid = chunk.strip_bytes > 0
        && chunk.stripes.len() >= data_min.max(chunk.sub_stripe_count)
        && chunk.stripes.len().is_multiple_of(if kind & RAID10 != 0 { chunk.sub_stripe_count } else { 1 });
    if is_valid { Ok(chunk) } else { Err("a chunk of the btrfs has an unknown layout".to_owned()) }
}

/// Calls `each` for each chunk item of a result, with its address.
fn each_item(search: &Search, mut each: impl FnMut(u64, &[u8]) -> Result<(), String>) -> Result<(), String> {
    let mut at = 0;
    // The headers are in the byte order of this machine.
    let word =
        |at: usize| search.items.get(at..at + 4).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four")));
    let long =
        |at: usize| search.items.get(at..at + 8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight")));
    for _ in 0..search.item_count {
        let (Some(offset), Some(kind), Some(length)) = (long(at + 16), word(at + 24), word(at + 28)) else { break };
        at += HEADER_BYTES;
        let Some(item) = search.items.get(at..at + length as usize) else { break };
        if kind == CHUNK_ITEM {
            each(offset, item)?;
        }
        at += length as usize;
    }
    Ok(())
}

fn search(file: &File, from: u64) -> io::Result<Box<Search>> {
    let mut search = Box::new(Search {
        tree_id: CHUNK_TREE,
        min_objectid: CHUNK_OBJECT,
        max_objectid: CHUNK_OBJECT,
        min_offset: from,
        max_offset: u64::MAX,
        min_transid: 0,
        max_transid: u64::MAX,
        min_type: CHUNK_ITEM,
        max_type: CHUNK_ITEM,
        item_count: u32::MAX,
        unused: 0,
        reserved: [0; 4],
        items: [0; 4096 - 104],
    });
    // SAFETY: the kernel reads and writes one structure of 4,096 bytes, which outlives the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_IOC_TREE_SEARCH, &raw mut *search) } {
        0 => Ok(search),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the path of a device of the filesystem.
fn device_path(file: &File, id: u64) -> io::Result<PathBuf> {
    let mut info =
        Box::new(DeviceInfo { id, uuid: [0; 16], bytes_used: 0, total_bytes: 0, rest: [0; 379], path: [0; 1024] });
    // SAFETY: as in `search`.
    if unsafe { libc::ioctl(file.as_raw_fd(), BTRFS_IOC_DEV_INFO, &raw mut *info) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let end = info.path.iter().position(|&byte| byte == 0).unwrap_or(info.path.len());
    if end == 0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is missing"));
    }
    Ok(PathBuf::from(std::ffi::OsStr::new(&*String::from_utf8_lossy(&info.path[..end]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// A chunk of 64 MiB at 1 GiB, whose stripe on device `n` begins at `n` MiB.
    fn chunk(kind: u64, sub_stripe_count: u16, device_count: u16) -> Chunk {
        let mut item = vec![0; CHUNK_BYTES + STRIPE_BYTES * usize::from(device_count)];
        item[0..8].copy_from_slice(&(64u64 << 20).to_le_bytes());
        item[16..24].copy_from_slice(&(64 * KIB).to_le_bytes());
        item[24..32].copy_from_slice(&(kind | 1).to_le_bytes());
        item[44..46].copy_from_slice(&device_count.to_le_bytes());
        item[46..48].copy_from_slice(&sub_stripe_count.to_le_bytes());
        for index in 0..u64::from(device_count) {
            let at = CHUNK_BYTES + STRIPE_BYTES * index as usize;
            item[at..at + 8].copy_from_slice(&index.to_le_bytes());
            item[at + 8..at + 16].copy_from_slice(&(index << 20).to_le_bytes());
        }
        parse_chunk(1 << 30, &item, &mut |id| Ok((id as u32, 0))).expect("a chunk")
    }

    /// Returns device, offset in its stripe and length, in KiB, of 160 KiB from 9 MiB + 32 KiB of the chunk.
    fn places(chunk: Chunk) -> Vec<(u32, u64, u64)> {
        let begin = (1 << 30) + 9 * 1024 * KIB + 32 * KIB;
        let pieces = ChunkMap(vec![chunk]).pieces(begin, begin + 160 * KIB).expect("known");
        let covered: u64 = pieces.iter().filter(|piece| piece.device == pieces[0].device).map(|p| p.length).sum();
        assert!(covered <= 160 * KIB);
        let place =
            |piece: &Piece| (piece.device, (piece.begin - (u64::from(piece.device) << 20)) / KIB, piece.length / KIB);
        pieces.iter().map(place).collect()
    }

    /// Goal: the positions are those that a kernel used. Method: the layouts of `btrfs_map_block`, by hand: 9 MiB + 32 KiB are
    /// strip 144 and 32 KiB.
    #[test]
    fn each_profile_places_its_strips_as_the_kernel_does() {
        assert_eq!(places(chunk(0, 1, 1)), [(0, 9248, 160)], "single");
        assert_eq!(places(chunk(1 << 4, 1, 2)), [(0, 9248, 160), (1, 9248, 160)], "RAID1");
        // Strips 144, 145, 146 of three devices are row 48.
        assert_eq!(places(chunk(RAID0, 1, 3)), [(0, 3104, 32), (1, 3072, 64), (2, 3072, 64)], "RAID0");
        // Two pairs: strips 144 and 146 on the first, 145 on the second; row 72 and 73.
        let raid10 = [(0, 4640, 32), (1, 4640, 32), (2, 4608, 64), (3, 4608, 64), (0, 4672, 64), (1, 4672, 64)];
        assert_eq!(places(chunk(RAID10, 2, 4)), raid10, "RAID10");
        // Two data strips a row: 144 and 145 are row 72, which begins at device 0; 146 is row 73, at device 1.
        assert_eq!(places(chunk(RAID5, 1, 3)), [(0, 4640, 32), (1, 4608, 64), (1, 4672, 64)], "RAID5");
        assert_eq!(places(chunk(RAID6, 1, 4)), [(0, 4640, 32), (1, 4608, 64), (1, 4672, 64)], "RAID6");
    }

    #[test]
    fn addresses_outside_of_the_chunks_are_unknown_and_later_chunks_are_added_once() {
        let mut map = ChunkMap(vec![chunk(0, 1, 1)]);
        assert_eq!(map.pieces((1 << 30) - 4096, (1 << 30) + 4096), None);
        let end = (1 << 30) + (64 << 20);
        assert_eq!(map.pieces(end - 4096, end + 4096), None);
        let later = Chunk { begin: end, ..chunk(0, 1, 1) };
        map.join(ChunkMap(vec![chunk(0, 1, 1), later]));
        assert_eq!(map.0.len(), 2);
        assert_eq!(map.pieces(end - 4096, end + 4096).map(|pieces| pieces.len()), Some(2));
    }

    #[test]
    fn a_chunk_with_an_impossible_layout_is_refused() {
        let parse = |item: &[u8]| parse_chunk(0, item, &mut |id| Ok((id as u32, 0)));
        assert!(parse(&[0; 20]).expect_err("short").contains("shorter"));
        assert!(parse(&[0; CHUNK_BYTES]).expect_err("no stripe").contains("unknown layout"));
    }
}
