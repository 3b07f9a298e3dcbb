//! Transfers of any length at any offset on a file that requires alignment.
//!
//! A read transfers whole blocks to a buffer of its own and copies from it. A write first reads the blocks that it
//! covers in part, changes them in memory, and writes them whole.
//!
//! Read-modify-write is not atomic. Two concurrent writers in one block can overwrite each other's bytes, and a power loss
//! can tear a block with older data, not only the new bytes. Where that matters, align the records instead.

use crate::alignment::{round_down, round_up};
use crate::buffer::AlignedBuffer;
use crate::transfer::{Transfer, TransferError};
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
    /// The size of a block, in bytes.
    block: u64,
    /// Number of bytes of one piece: a multiple of `block`.
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
        Some(Self { offset, end, start, stop, block, step })
    }

    /// Returns the pieces from start to stop: for each its first byte and the byte after its last one.
    fn pieces(self) -> impl Iterator<Item = (u64, u64)> {
        (self.start..self.stop)
            .step_by(usize::try_from(self.step).expect("a step fits into memory"))
            .map(move |first| (first, (first + self.step).min(self.stop)))
    }
}

fn prepare(
    file: &DirectFile,
    offset: u64,
    length: usize,
    write: bool,
) -> Result<(Cover, AlignedBuffer), TransferError> {
    let failed = |source| TransferError::Io { write, offset, wanted: length, done: 0, source };
    let alignment = file.alignment().or_assumed();
    let bytes = |value: Option<u32>| value.expect("nothing is unknown after or_assumed");
    let read = u64::from(bytes(alignment.read_offset_bytes));
    let memory = bytes(alignment.memory_bytes);
    // A write also reads, so its blocks are multiples of both offsets; and of the memory alignment, because a block is
    // read into the middle of the buffer.
    let offsets = if write { common_multiple(read, u64::from(bytes(alignment.write_offset_bytes))) } else { read };
    let block = common_multiple(offsets, u64::from(memory));
    let cover = Cover::new(offset, length, block).ok_or_else(|| {
        failed(io::Error::new(io::ErrorKind::InvalidInput, "the transfer ends beyond the largest file offset"))
    })?;
    let align = memory.next_power_of_two() as usize;
    let step = usize::try_from(cover.step).map_err(|error| failed(io::Error::other(error)))?;
    let bounce = AlignedBuffer::new(step, align).map_err(|error| failed(io::Error::other(error)))?;
    Ok((cover, bounce))
}

/// Returns the least common multiple. Neither number is zero; both fit into 32 bits.
pub(crate) fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

/// Reads into `bounce` from `position` until the end of the file. Returns the number of bytes read and of calls;
/// the rest of `bounce` does not change.
fn read_as_far_as_it_goes(file: &DirectFile, bounce: &mut [u8], position: u64) -> Result<(usize, u32), TransferError> {
    file.read_at(bounce, position).map(|transfer| (transfer.bytes, transfer.calls))
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
    let (cover, mut bounce) = prepare(file, offset, wanted, false)?;
    let mut calls = 0;
    for (first, last) in cover.pieces() {
        let piece = &mut bounce[..(last - first) as usize];
        let (read, made) = read_as_far_as_it_goes(file, piece, first)?;
        calls += made;
        let (from, to) = (first.max(cover.offset), last.min(cover.end));
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

/// Writes all of `data` at `offset`: reads the blocks that it covers in part, changes them, and writes them whole. The
/// file must be open for reading, too.
///
/// This is not atomic. Two concurrent writers in one block can overwrite each other's bytes, and a power loss can tear
/// a block with older data, not only the new bytes. Where that matters, align the records instead.
///
/// If the file ends within the last block, it is cut to the length that a plain write would leave; until then, and
/// after a crash in between, it ends with the zeros of a whole block. A file that is opened through the page cache
/// is written without this.
///
/// # Errors
/// As [`DirectFile::write_all_at`]; `done` counts the bytes of `data`.
pub fn write_unaligned_by_read_modify_write_at(
    file: &DirectFile,
    data: &[u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let wanted = data.len();
    if wanted == 0 {
        return Ok(Transfer { bytes: 0, calls: 0 });
    }
    let (cover, mut bounce) = prepare(file, offset, wanted, true)?;
    let failed = |done, source| TransferError::Io { write: true, offset, wanted, done, source };
    let metadata = file.file().metadata().map_err(|source| failed(0, source))?;
    let length_before = metadata.is_file().then_some(metadata.len());
    let mut calls = 0;
    for (first, last) in cover.pieces() {
        let piece = &mut bounce[..(last - first) as usize];
        let (from, to) = (first.max(cover.offset), last.min(cover.end));
        let block = cover.block as usize;
        if first < from || to < last {
            // At most the first and the last block are covered in part; they may be the same one.
            let tail = piece.len() - block;
            let parts = [(first < from || (to < last && tail == 0), 0), (to < last && tail > 0, tail)];
            for (_, at) in parts.into_iter().filter(|(needed, _)| *needed) {
                let part = &mut piece[at..at + block];
                part.fill(0);
                calls += read_as_far_as_it_goes(file, part, first + at as u64)?.1;
            }
        }
        piece[(from - first) as usize..(to - first) as usize]
            .copy_from_slice(&data[(from - cover.offset) as usize..(to - cover.offset) as usize]);
        let done = (from - cover.offset) as usize;
        calls += file.write_all_at(piece, first).map_err(|error| with_done(error, offset, wanted, done))?.calls;
    }
    if let Some(before) = length_before
        && before.max(cover.end) < cover.stop
    {
        file.file().set_len(before.max(cover.end)).map_err(|source| failed(wanted, source))?;
    }
    Ok(Transfer { bytes: wanted, calls })
}

/// Converts the error of one piece to that of the whole transfer.
fn with_done(error: TransferError, offset: u64, wanted: usize, done: usize) -> TransferError {
    match error {
        TransferError::Io { write, source, .. } => TransferError::Io { write, offset, wanted, done, source },
        TransferError::NothingAccepted { .. } => TransferError::NothingAccepted { offset, wanted, done },
        TransferError::StoppedMisaligned { misaligned, .. } => {
            TransferError::StoppedMisaligned { offset, wanted, done, misaligned }
        }
        other => other,
    }
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
        DirectFile { file, granted: crate::Granted::Direct, alignment, reason: String::new() }
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
