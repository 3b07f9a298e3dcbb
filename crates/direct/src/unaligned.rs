//! Transfers of any length at any offset on a file that requires alignment.
//!
//! A read transfers whole blocks to a buffer of its own and copies from it.
//!
//! A write transfers whole blocks directly. Of the blocks that it covers in part, at most the first and the last one, it
//! writes the caller's bytes only:
//!
//! | file         | how a part of a block is written                                                        |
//! |--------------|-----------------------------------------------------------------------------------------|
//! | regular file | through the page cache, on a second descriptor of the file that is not direct; its pages are then written to the device and evicted |
//! | disk         | the block is read, changed and written whole, locked within this process (`block_locks.rs`) |
//!
//! So nothing is padded, no byte is restored that another writer changed, and no file is ever truncated. The kernel
//! serialises both kinds of writes to a regular file, also those of other processes. Linux: a buffered write
//! holds the inode's lock, reads the rest of the page from the device, and a direct write first writes dirty pages of its range
//! back and drops them; both under that lock (`mm/filemap.c`, `kiocb_invalidate_pages`).
//!
//! Limits: asynchronous direct writes (io_uring, libaio) of other programs release the inode's lock before they are
//! complete, so they must not share a page with such a write: open(2), NOTES on `O_DIRECT`. On a disk, writers of other
//! processes in the same block can overwrite each other's bytes, and a power loss can tear the block.
//!
//! Source: open(2), sync_file_range(2), proc_pid_fd(5); Linux `fs/ext4/file.c`, `fs/xfs/xfs_file.c`.

use crate::alignment::{Alignment, check_transfer, round_down, round_up};
use crate::block_locks::{self, DiskKey};
use crate::buffer::AlignedBuffer;
use crate::transfer::{self, Transfer, TransferError};
use crate::types::DirectFile;
use std::io;

/// Size of the intermediate buffer; one block if that is larger.
const BOUNCE_BYTES: u64 = 1 << 20;

/// The aligned cover of an unaligned range, and how to walk it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cover {
    /// The first requested byte, and the byte after the last one.
    offset: u64,
    end: u64,
    /// The same, widened to whole blocks.
    start: u64,
    stop: u64,
    /// Number of bytes of one piece: whole blocks.
    step: u64,
}

impl Cover {
    /// [`None`] if the blocks end beyond the largest file offset.
    fn new(offset: u64, length: usize, block: u64) -> Option<Self> {
        assert!(block > 0, "a block of zero bytes");
        let end = offset.checked_add(length as u64)?;
        let stop = round_up(end, block).filter(|stop| i64::try_from(*stop).is_ok())?;
        let start = round_down(offset, block);
        let step = round_down(BOUNCE_BYTES, block).max(block).min((stop - start).max(block));
        Some(Self { offset, end, start, stop, step })
    }

    /// Returns the pieces from start to stop: for each its first byte and the byte after its last one.
    fn pieces(self) -> impl Iterator<Item = (u64, u64)> {
        (self.start..self.stop)
            .step_by(usize::try_from(self.step).expect("a step fits into memory"))
            .map(move |first| (first, (first + self.step).min(self.stop)))
    }
}

fn prepare(file: &DirectFile, offset: u64, length: usize) -> Result<(Cover, AlignedBuffer), TransferError> {
    let failed = |source| TransferError::Io { write: false, offset, wanted: length, done: 0, source };
    let alignment = file.alignment().or_assumed();
    let block = u64::from(alignment.read_offset_bytes.expect("nothing is unknown after or_assumed"));
    let cover = Cover::new(offset, length, block).ok_or_else(|| beyond_the_largest_offset(false, offset, length))?;
    let step = usize::try_from(cover.step).map_err(|error| failed(io::Error::other(error)))?;
    Ok((cover, bounce(file, step).map_err(failed)?))
}

/// Returns the least common multiple. Neither number is zero; both fit into 32 bits.
pub(crate) fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

/// Fills `buffer` from `offset` by reading whole blocks and copying.
///
/// # Errors
/// [`TransferError::EndOfFile`] if the file is shorter; otherwise as [`DirectFile::read_exact_at`].
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// # std::fs::write(&path, b"thirteen byte").unwrap();
/// use trueio_direct::{OpenOptions, Policy, read_unaligned_by_copy_at};
///
/// let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
/// let mut word = [0; 4];
/// read_unaligned_by_copy_at(&file, &mut word, 9)?;
/// assert_eq!(&word, b"byte");
/// # Ok::<(), trueio_direct::TransferError>(())
/// ```
pub fn read_unaligned_by_copy_at(file: &DirectFile, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
    let wanted = buffer.len();
    if wanted == 0 {
        return Ok(Transfer { bytes: 0, calls: 0 });
    }
    let (cover, mut bounce) = prepare(file, offset, wanted)?;
    let mut calls = 0;
    for (first, last) in cover.pieces() {
        let piece = &mut bounce[..(last - first) as usize];
        let (from, to) = (first.max(cover.offset), last.min(cover.end));
        let failed = |error: TransferError| error.at_start().within(offset, wanted, (from - cover.offset) as usize);
        let Transfer { bytes: read, calls: made } = file.read_at(piece, first).map_err(failed)?;
        calls += made;
        let known = first + read as u64;
        if known < to {
            let done = (known.max(from) - cover.offset) as usize;
            buffer[(from - cover.offset) as usize..done]
                .copy_from_slice(&piece[(from - first) as usize..][..done - (from - cover.offset) as usize]);
            return Err(TransferError::EndOfFile { offset, wanted, done });
        }
        buffer[(from - cover.offset) as usize..(to - cover.offset) as usize]
            .copy_from_slice(&piece[(from - first) as usize..(to - first) as usize]);
    }
    Ok(Transfer { bytes: wanted, calls })
}

/// Writes all of `data` at `offset`, with any address, length and offset.
///
/// Whole blocks are written directly. A part of a block of a regular file is written through the page cache, on a second
/// descriptor of the file that is not direct; its pages are then written to the device and evicted. Only the
/// bytes of `data` are written, so the length of the file is that of a plain write, and concurrent writers, also in the
/// same block and in other processes, lose nothing. A part of a block of a disk is read, changed and written whole: the
/// file must be open for reading, too. Calls of this process exclude each other there; another process in the same block
/// can overwrite the bytes, and a power loss can tear the block. Where that matters, align the records instead.
///
/// A file that is opened through the page cache is written without this.
///
/// # Errors
/// As [`DirectFile::write_all_at`]; `done` counts the bytes of `data`. [`TransferError::PartOfBlock`] if a regular file
/// cannot be opened a second time: without `/proc` (Linux), before FreeBSD 14, where its permissions forbid it
/// now, or if it is open for exclusive use (Windows).
pub fn write_unaligned_by_read_modify_write_at(
    file: &DirectFile,
    data: &[u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let wanted = data.len();
    if wanted == 0 {
        return Ok(Transfer { bytes: 0, calls: 0 });
    }
    file.refuse_append(offset, wanted)?;
    let block = file.grown_write_offset(offset, wanted).map_or_else(|| write_block(file), u64::from);
    let Some(parts) = Parts::new(offset, wanted, block) else {
        return Err(beyond_the_largest_offset(true, offset, wanted));
    };
    let (mut done, mut calls) = (0, 0);
    for (length, is_whole) in [(parts.head, false), (parts.middle, true), (parts.tail, false)] {
        let (part, at) = (&data[done..done + length], offset + done as u64);
        if length > 0 {
            let written = if is_whole { write_blocks(file, part, at) } else { write_part(file, part, at) };
            calls += written.map_err(|error| error.within(offset, wanted, done))?.calls;
        }
        done += length;
    }
    Ok(Transfer { bytes: wanted, calls })
}

/// The lengths of the parts of an unaligned write, in bytes, in the order of their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    /// Up to the first border of a block; everything if no block is covered as a whole.
    head: usize,
    /// Whole blocks.
    middle: usize,
    /// After the last border of a block.
    tail: usize,
}

impl Parts {
    /// [`None`] if the write ends beyond the largest file offset.
    fn new(offset: u64, length: usize, block: u64) -> Option<Self> {
        assert!(block > 0, "a block of zero bytes");
        let end = offset.checked_add(length as u64).filter(|end| i64::try_from(*end).is_ok())?;
        let last = round_down(end, block);
        Some(match round_up(offset, block).filter(|first| *first < last) {
            Some(first) => {
                Self { head: (first - offset) as usize, middle: (last - first) as usize, tail: (end - last) as usize }
            }
            None => Self { head: length, middle: 0, tail: 0 },
        })
    }
}

/// Returns the size of the blocks that can be written as a whole, in bytes. Of a disk they can also be read.
fn write_block(file: &DirectFile) -> u64 {
    let alignment = file.alignment().or_assumed();
    let bytes = |value: Option<u32>| u64::from(value.expect("nothing is unknown after or_assumed"));
    let write = bytes(alignment.write_offset_bytes);
    if file.disk().is_some() { common_multiple(write, bytes(alignment.read_offset_bytes)) } else { write }
}

fn beyond_the_largest_offset(write: bool, offset: u64, wanted: usize) -> TransferError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, "the transfer ends beyond the largest file offset");
    TransferError::Io { write, offset, wanted, done: 0, source }
}

/// Allocates memory for direct transfers of `bytes` bytes.
fn bounce(file: &DirectFile, bytes: usize) -> io::Result<AlignedBuffer> {
    let memory = file.alignment().or_assumed().memory_bytes.expect("nothing is unknown after or_assumed");
    Ok(AlignedBuffer::new(bytes, memory.next_power_of_two() as usize)?)
}

/// Writes whole blocks, through a copy unless the memory of `data` is aligned.
fn write_blocks(file: &DirectFile, data: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    let wanted = data.len();
    let alignment = file.alignment().or_assumed();
    if check_transfer(&alignment, data.as_ptr().addr(), wanted, offset, true).is_ok() {
        return file.write_all_at(data, offset);
    }
    let block = write_block(file);
    let step = round_down(BOUNCE_BYTES, block).max(block).min(wanted as u64) as usize;
    let mut copy =
        bounce(file, step).map_err(|source| TransferError::Io { write: true, offset, wanted, done: 0, source })?;
    let mut calls = 0;
    for (index, piece) in data.chunks(step).enumerate() {
        copy[..piece.len()].copy_from_slice(piece);
        let done = index * step;
        let written = file.write_all_at(&copy[..piece.len()], offset + done as u64);
        calls += written.map_err(|error| error.within(offset, wanted, done))?.calls;
    }
    Ok(Transfer { bytes: wanted, calls })
}

/// Writes parts of blocks: of one, or of two that follow one another.
fn write_part(file: &DirectFile, data: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    match file.disk() {
        Some(disk) => read_change_and_write(file, disk, data, offset),
        None => write_through_cache(file, data, offset),
    }
}

/// Writes a part of a block of a regular file.
fn write_through_cache(file: &DirectFile, data: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    let wanted = data.len();
    let second = file.buffered().map_err(|source| TransferError::PartOfBlock {
        offset,
        wanted,
        done: 0,
        block_bytes: write_block(file),
        source,
    })?;
    let failed = |source| TransferError::Io { write: true, offset, wanted, done: 0, source };
    crate::os::allocate_part(second, offset, wanted as u64).map_err(failed)?;
    let written = transfer::write_whole(second, &Alignment::not_needed(), data, offset)?;
    // As after a direct write, the data is with the device, and a failure to write it is this call's error.
    crate::os::write_back(second, offset, wanted as u64).map_err(failed)?;
    Ok(written)
}

/// Writes a part of a block of a disk.
fn read_change_and_write(
    file: &DirectFile,
    disk: DiskKey,
    data: &[u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let wanted = data.len();
    let size = write_block(file);
    let failed = |source| TransferError::Io { write: true, offset, wanted, done: 0, source };
    let mut block = bounce(file, size as usize).map_err(failed)?;
    let (mut done, mut calls) = (0, 0);
    while done < wanted {
        let at = offset + done as u64;
        let start = round_down(at, size);
        let skip = (at - start) as usize;
        let length = (block.len() - skip).min(wanted - done);
        let _lock = block_locks::exclusive(disk, start..start.saturating_add(size));
        // A disk may end within a block; what is beyond its end is not written.
        block.fill(0);
        let read = file.read_at(&mut block, start);
        calls += read.map_err(|error| error.at_start().within(offset, wanted, done))?.calls;
        block[skip..skip + length].copy_from_slice(&data[done..done + length]);
        // Not the method of the file, which waits for this lock.
        let written = transfer::write_whole(file.file(), file.alignment(), &block, start);
        calls += written.map_err(|error| error.at_start().within(offset, wanted, done))?.calls;
        done += length;
    }
    Ok(Transfer { bytes: wanted, calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_suit_reads_and_writes() {
        assert_eq!(common_multiple(512, 4096), 4096);
        assert_eq!(common_multiple(4096, 512), 4096);
        assert_eq!(common_multiple(28_672, 4096), 28_672);
        assert_eq!(common_multiple(3 * 4096, 2 * 4096), 6 * 4096);
        assert_eq!(common_multiple(1, 1), 1);
    }

    /// Each byte once, in order, in whole blocks; block sizes are powers of two, and one that is not.
    #[test]
    fn pieces_follow_one_another_in_whole_blocks() {
        for block in [1, 512, 4096, 28_672, 2 << 20] {
            for (offset, length) in [(0, 1), (1, 1), (4095, 2), (100, 3 << 20), (28_671, 28_673)] {
                let cover = Cover::new(offset, length, block).unwrap();
                let pieces: Vec<(u64, u64)> = cover.pieces().collect();
                assert!(pieces[0].0 <= offset && offset - pieces[0].0 < block);
                let (end, stop) = (offset + length as u64, pieces[pieces.len() - 1].1);
                assert!(stop >= end && stop - end < block);
                assert!(pieces.windows(2).all(|pair| pair[0].1 == pair[1].0));
                for (first, last) in pieces {
                    assert!(first.is_multiple_of(block) && last.is_multiple_of(block));
                    assert!(last - first <= cover.step && cover.step <= BOUNCE_BYTES.max(block));
                }
            }
        }
    }

    /// A plain file marked as direct, with alignments that no filesystem here has.
    fn pretended(folder: &std::path::Path, memory: u32, write_offset: u32, read_offset: u32) -> DirectFile {
        use crate::alignment::{Alignment, AlignmentSource};
        let options = std::fs::File::options().read(true).write(true).create_new(true).to_owned();
        let mut alignment = Alignment::uniform(memory, AlignmentSource::Statx);
        alignment.write_offset_bytes = Some(write_offset);
        alignment.read_offset_bytes = Some(read_offset);
        let file = options.open(folder.join("data")).unwrap();
        DirectFile::new(file, crate::Granted::Direct, alignment, String::new())
    }

    /// Goal: blocks of any size, also where reads and writes differ, and where memory needs a larger alignment than
    /// offsets. Method: writes around the borders of blocks, compared with a `Vec`. Miri runs this, too.
    #[test]
    fn odd_blocks_are_read_changed_and_written_whole() {
        for (memory, write_offset, read_offset) in [(64, 64, 64), (512, 128, 64), (64, 192, 64), (256, 64, 128)] {
            let folder = tempfile::tempdir().unwrap();
            let file = pretended(folder.path(), memory, write_offset, read_offset);
            let mut model: Vec<u8> = Vec::new();
            for (mark, (offset, length)) in
                [(0, 1), (63, 2), (1000, 500), (191, 194), (1499, 2), (384, 384), (3000, 7)].into_iter().enumerate()
            {
                let data = vec![mark as u8 + 1; length];
                write_unaligned_by_read_modify_write_at(&file, &data, offset as u64).unwrap();
                model.resize(model.len().max(offset + length), 0);
                model[offset..offset + length].copy_from_slice(&data);
                assert_eq!(file.file().metadata().unwrap().len(), model.len() as u64);
            }
            let mut back = vec![0xff; model.len()];
            read_unaligned_by_copy_at(&file, &mut back, 0).unwrap();
            assert!(back == model);
            let mut part = [0; 9];
            read_unaligned_by_copy_at(&file, &mut part, 1495).unwrap();
            assert_eq!(part, model[1495..1504]);
            let error = read_unaligned_by_copy_at(&file, &mut part, 3000).unwrap_err();
            assert!(matches!(error, TransferError::EndOfFile { done: 7, .. }), "{error}");
            let misaligned = file.write_all_at(&back[..64], 1).unwrap_err();
            assert!(matches!(misaligned, TransferError::Misaligned(_)), "{misaligned}");
        }
    }

    #[test]
    fn a_cover_beyond_the_largest_offset_is_none() {
        assert_eq!(Cover::new(u64::MAX, 1, 512), None);
        assert_eq!(Cover::new(i64::MAX as u64 - 10, 5, 512), None);
    }
}
