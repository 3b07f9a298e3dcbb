//! Positioned reads and writes that transfer everything or report what stopped them.
//!
//! One call may transfer less than requested: at the end of the file, at 0x7ffff000 bytes on Linux, after a signal, on a
//! full disk. These functions continue after a short call and count the calls. If they cannot continue, the error
//! contains the number of bytes transferred and the reason. The rest of a short direct write may begin at a
//! misaligned offset; that has its own error.
//!
//! A transfer of zero bytes succeeds without a call, whatever its address and offset.
//!
//! After a short read, the size of the file is compared with the offset that the read reached. A file of 1,000 bytes
//! read into 4,096 ends there, although no direct read may begin at byte 1,000. If the file has become longer by then, the
//! read continues from the start of the block that it reached, and reads the first bytes of that block again.
//!
//! Source: pread(2), pwrite(2), NOTES; preadv(2).
//!
//! Each call has its own offset, so threads can share a file. (On Windows the call also moves the file's position,
//! which this crate does not use.)

use crate::alignment::{Alignment, Misaligned, check_transfer};
use crate::unaligned::common_multiple;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};

/// Most bytes of one call: 2 GiB less 64 KiB. Linux stops at 0x7ffff000 bytes (pages of 4 KiB), macOS refuses 2 GiB,
/// Windows counts in 32 bits; this is below all of them and a multiple of every block.
const CALL_BYTES_MAX: usize = 0x7fff_0000;

/// Most buffers of one vectored call: `IOV_MAX` of the supported systems.
const CALL_BUFFERS_MAX: usize = 1024;

/// Most calls of one read that read a block again and reached no further. A file that is cut and becomes longer
/// again in the same moment causes one.
const STALLS_MAX: u32 = 64;

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// Number of bytes transferred. Fewer than requested only from [`read_at`] and [`read_vectored_at`], and only
    /// at the end that the file had at the time of the call.
    pub bytes: usize,
    /// Number of system calls made; more than one means that some were short.
    pub calls: u32,
}

impl Transfer {
    /// Returns the number of bytes transferred: see the field.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of system calls made.
    pub fn calls(&self) -> u32 {
        self.calls
    }
}

/// Error of a transfer that was not completed. Offsets and lengths are in bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Misaligned. It was refused before the call, and nothing was transferred.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// The file was opened to append, so the system would ignore the offset and write at its end. It was refused before
    /// the call.
    #[error(
        "writing {wanted} bytes at offset {offset} was refused: the file is open to append (O_APPEND), so the system would \
         write them at its end; open it without that flag"
    )]
    Appends {
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
    },
    /// The file ended before the buffer was full.
    #[error("the file ended after {done} of {wanted} bytes, read from offset {offset}")]
    EndOfFile {
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
        /// Number of bytes read.
        done: usize,
    },
    /// The system accepted no byte and returned no error.
    #[error("the system accepted 0 bytes after {done} of {wanted}, written from offset {offset}")]
    NothingAccepted {
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
        /// Number of bytes written.
        done: usize,
    },
    /// A call was short, and the rest is misaligned for direct I/O.
    #[error("a direct transfer from offset {offset} stopped after {done} of {wanted} bytes and cannot continue there")]
    StoppedMisaligned {
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
        /// Number of bytes transferred.
        done: usize,
        /// The misaligned part of the rest.
        #[source]
        misaligned: Misaligned,
    },
    /// The write covers a part of a block, which goes through the page cache, and the file could not be opened a
    /// second time for that.
    #[error(
        "writing {wanted} bytes at offset {offset} stopped after {done}: a part of a block of {block_bytes} bytes needs a \
         second descriptor of the file without direct I/O; write whole blocks, or open the file with the policy `Off`"
    )]
    PartOfBlock {
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
        /// Number of bytes written before.
        done: usize,
        /// The size of a block, in bytes.
        block_bytes: u64,
        /// Why the file could not be opened again.
        #[source]
        source: io::Error,
    },
    /// The system reported an error.
    #[error(
        "{} {wanted} bytes at offset {offset} failed after {done}",
        if *write { "writing" } else { "reading" }
    )]
    Io {
        /// True for a write, false for a read.
        write: bool,
        /// Offset of the transfer.
        offset: u64,
        /// Number of bytes requested.
        wanted: usize,
        /// Number of bytes transferred before the error.
        done: usize,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl TransferError {
    /// Returns the system's error number, if the error is the system's.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } | Self::PartOfBlock { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Converts the error of one piece to that of the whole transfer: `before` bytes were transferred before the piece.
    pub(crate) fn within(mut self, whole_offset: u64, whole: usize, before: usize) -> Self {
        if let Some((offset, wanted, done)) = self.progress() {
            (*offset, *wanted, *done) = (whole_offset, whole, (before + *done).min(whole));
        }
        self
    }

    /// Sets the number of bytes transferred to zero: those of a block are not those of the caller.
    pub(crate) fn at_start(mut self) -> Self {
        if let Some((_, _, done)) = self.progress() {
            *done = 0;
        }
        self
    }

    /// Returns offset, number of bytes requested and number of bytes transferred, unless it was refused before the call.
    fn progress(&mut self) -> Option<(&mut u64, &mut usize, &mut usize)> {
        match self {
            Self::Misaligned(_) | Self::Appends { .. } => None,
            Self::EndOfFile { offset, wanted, done }
            | Self::NothingAccepted { offset, wanted, done }
            | Self::StoppedMisaligned { offset, wanted, done, .. }
            | Self::PartOfBlock { offset, wanted, done, .. }
            | Self::Io { offset, wanted, done, .. } => Some((offset, wanted, done)),
        }
    }

    /// Returns the number of bytes transferred before the error.
    pub fn done(&self) -> usize {
        match self {
            Self::Misaligned(_) | Self::Appends { .. } => 0,
            Self::EndOfFile { done, .. }
            | Self::NothingAccepted { done, .. }
            | Self::StoppedMisaligned { done, .. }
            | Self::PartOfBlock { done, .. }
            | Self::Io { done, .. } => *done,
        }
    }
}

/// Fills `buffer` from `offset` of `file`, with as many calls as it takes.
///
/// # Errors
/// [`TransferError`]; [`TransferError::EndOfFile`] if the file is shorter. Bytes read before the error are in the
/// buffer.
pub fn read_exact_at(
    file: &File,
    alignment: &Alignment,
    buffer: &mut [u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let wanted = buffer.len();
    exact(read_at(file, alignment, buffer, offset)?, wanted, offset)
}

/// Reads from `offset` of `file` into `buffer`, until the buffer is full or the file ends.
///
/// [`Transfer::bytes`] is smaller than the buffer only where the file ended at the time of the call, and 0 at or beyond that
/// end. Of a file that others make longer, the next call reads on; it begins at the block in which this one ended.
///
/// # Errors
/// [`TransferError`], never [`TransferError::EndOfFile`].
pub fn read_at(file: &File, alignment: &Alignment, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
    let (address, wanted) = (buffer.as_ptr().addr(), buffer.len());
    let check = |done: usize| check_transfer(alignment, address + done, wanted - done, offset + done as u64, false);
    let block = read_block(alignment);
    transfer(
        wanted,
        offset,
        false,
        check,
        |done| done - done % block,
        |position| ends_at(file, position),
        |done, end| read_to_end(file, block, &mut buffer[done..end], offset + done as u64),
    )
}

/// Reads in one call. If that fails where the request reaches beyond the end of the file, reads up to the block of the end.
///
/// XFS fails a direct read with EIO whose range includes space that it reserved for buffered writes and that has no data, and it reserves
/// such space beyond the end ("Direct I/O collision with buffered writes"). That lasts until the last descriptor is closed.
/// Source: Linux 6.18 `fs/iomap/direct-io.c`, `iomap_dio_iter`; `fs/xfs/xfs_iomap.c`, `xfs_iomap_prealloc_size`.
fn read_to_end(file: &File, block: usize, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let error = match crate::os::read_at(file, buffer, position) {
        Err(error) if crate::os::may_collide(&error) => error,
        outcome => return outcome,
    };
    let left = crate::os::size_bytes(file)?.saturating_sub(position).checked_next_multiple_of(block as u64);
    match left.and_then(|left| usize::try_from(left).ok()) {
        Some(left) if (1..buffer.len()).contains(&left) => crate::os::read_at(file, &mut buffer[..left], position),
        _ => Err(error),
    }
}

/// Reads from `offset` of `file` into `buffers`, one after another, until all are full or the file ends.
///
/// Address and length of each buffer must be aligned. Linux and FreeBSD read them in one call, macOS and Windows in
/// one call for each. [`Transfer::bytes`] is as for [`read_at`].
///
/// # Errors
/// [`TransferError`], never [`TransferError::EndOfFile`].
pub fn read_vectored_at(
    file: &File,
    alignment: &Alignment,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let parts: Vec<(usize, usize)> = buffers.iter().map(|buffer| (buffer.as_ptr().addr(), buffer.len())).collect();
    let wanted = total(&parts, offset, false)?;
    let block = read_block(alignment);
    transfer(
        wanted,
        offset,
        false,
        |done| check_parts(&parts, alignment, done, offset, false),
        |done| done - located(&parts, done).1 % block,
        |position| ends_at(file, position),
        |done, _| {
            let (index, within) = located(&parts, done);
            let position = offset + done as u64;
            let count =
                if within == 0 { within_one_call(buffers[index..].iter().map(|buffer| buffer.len())) } else { 0 };
            if count > 0 {
                match crate::os::read_vectored_at(file, &mut buffers[index..index + count], position) {
                    // The same may be read from a part.
                    Err(error) if crate::os::may_collide(&error) => {}
                    outcome => return outcome,
                }
            }
            // The rest of a buffer, or one that exceeds the limit of one call.
            let end = buffers[index].len().min(within.saturating_add(CALL_BYTES_MAX));
            read_to_end(file, block, &mut buffers[index][within..end], position)
        },
    )
}

/// Writes all of `buffer` at `offset` of `file`, with as many calls as it takes.
///
/// To a disk of which other calls write parts of blocks, write with [`crate::DirectFile::write_all_at`], which excludes them.
///
/// # Errors
/// [`TransferError`]. Bytes written before the error stay written.
pub fn write_all_at(file: &File, alignment: &Alignment, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    refuse_append(file, offset, buffer.len())?;
    write_whole(file, alignment, buffer, offset)
}

/// Refuses writes to a file that is open to append.
pub(crate) fn refuse_append(file: &File, offset: u64, wanted: usize) -> Result<(), TransferError> {
    match crate::os::appends(file) {
        Ok(false) => Ok(()),
        Ok(true) => Err(TransferError::Appends { offset, wanted }),
        Err(source) => Err(TransferError::Io { write: true, offset, wanted, done: 0, source }),
    }
}

/// As [`write_all_at`], for callers in this crate, which have locked the range of a disk.
pub(crate) fn write_whole(
    file: &File,
    alignment: &Alignment,
    buffer: &[u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    go_on(alignment, buffer.as_ptr().addr(), buffer.len(), offset, true, |done, end| {
        crate::os::write_at(file, &buffer[done..end], offset + done as u64)
    })
}

/// Writes all of `buffers`, one after another, at `offset` of `file`. Alignment and calls: see [`read_vectored_at`].
///
/// # Errors
/// [`TransferError`]. Bytes written before the error stay written.
pub fn write_vectored_at(
    file: &File,
    alignment: &Alignment,
    buffers: &mut [IoSlice<'_>],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let parts: Vec<(usize, usize)> = buffers.iter().map(|buffer| (buffer.as_ptr().addr(), buffer.len())).collect();
    let wanted = total(&parts, offset, true)?;
    refuse_append(file, offset, wanted)?;
    transfer(
        wanted,
        offset,
        true,
        |done| check_parts(&parts, alignment, done, offset, true),
        |done| done,
        |_| false,
        |done, _| {
            let (index, within) = located(&parts, done);
            let position = offset + done as u64;
            let count =
                if within == 0 { within_one_call(buffers[index..].iter().map(|buffer| buffer.len())) } else { 0 };
            if count == 0 {
                let end = buffers[index].len().min(within.saturating_add(CALL_BYTES_MAX));
                return crate::os::write_at(file, &buffers[index][within..end], position);
            }
            crate::os::write_vectored_at(file, &buffers[index..index + count], position)
        },
    )
}

/// Returns the multiple, in bytes, of which a direct read continues after a short call: it suits offset and address.
fn read_block(alignment: &Alignment) -> usize {
    let alignment = alignment.or_assumed();
    let bytes = |value: Option<u32>| u64::from(value.expect("nothing is unknown after or_assumed"));
    common_multiple(bytes(alignment.read_offset_bytes), bytes(alignment.memory_bytes)) as usize
}

/// Returns the buffer of `parts` (address and length) that holds the byte after `done` bytes, and its index within it.
fn located(parts: &[(usize, usize)], done: usize) -> (usize, usize) {
    let mut start = 0;
    for (index, (_, length)) in parts.iter().enumerate() {
        if done - start < *length {
            return (index, done - start);
        }
        start += length;
    }
    unreachable!("{done} bytes are not all")
}

/// Returns whether the file ends at or before `position`; `false` if its size cannot be read.
fn ends_at(file: &File, position: u64) -> bool {
    crate::os::size_bytes(file).is_ok_and(|size| size <= position)
}

fn exact(transfer: Transfer, wanted: usize, offset: u64) -> Result<Transfer, TransferError> {
    if transfer.bytes == wanted {
        return Ok(transfer);
    }
    Err(TransferError::EndOfFile { offset, wanted, done: transfer.bytes })
}

/// Returns how many of the buffers with these lengths fit into one call.
fn within_one_call(lengths: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0usize;
    lengths
        .take(CALL_BUFFERS_MAX)
        .take_while(|length| {
            bytes = bytes.saturating_add(*length);
            bytes <= CALL_BYTES_MAX
        })
        .count()
}

fn total(parts: &[(usize, usize)], offset: u64, write: bool) -> Result<usize, TransferError> {
    parts.iter().try_fold(0usize, |sum, (_, length)| sum.checked_add(*length)).ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the buffers are longer than the address space");
        TransferError::Io { write, offset, wanted: usize::MAX, done: 0, source }
    })
}

/// Checks the rest of the buffers `parts` (address and length) after `done` bytes.
fn check_parts(
    parts: &[(usize, usize)],
    alignment: &Alignment,
    done: usize,
    offset: u64,
    write: bool,
) -> Result<(), Misaligned> {
    let mut start = 0;
    for (address, length) in parts {
        let skipped = done.saturating_sub(start).min(*length);
        if skipped < *length {
            let position = offset.wrapping_add((start + skipped) as u64);
            check_transfer(alignment, address + skipped, length - skipped, position, write)?;
        }
        start += length;
    }
    Ok(())
}

/// Transfers exactly `wanted` bytes of one buffer through `step`: see [`transfer`].
pub(crate) fn go_on(
    alignment: &Alignment,
    address: usize,
    wanted: usize,
    offset: u64,
    write: bool,
    step: impl FnMut(usize, usize) -> io::Result<usize>,
) -> Result<Transfer, TransferError> {
    let check = |done: usize| check_transfer(alignment, address + done, wanted - done, offset + done as u64, write);
    exact(transfer(wanted, offset, write, check, |done| done, |_| false, step)?, wanted, offset)
}

/// Calls `step` with the bytes to transfer next, as the part `done..end` of the whole, until `wanted` bytes are
/// done or a read reaches the end of the file.
///
/// `check` returns whether the transfer may continue after a number of bytes; `resume` returns the number of bytes, at
/// most as many, after which a read may continue; `ends_at` is called after a short read.
fn transfer(
    wanted: usize,
    offset: u64,
    write: bool,
    check: impl Fn(usize) -> Result<(), Misaligned>,
    resume: impl Fn(usize) -> usize,
    ends_at: impl Fn(u64) -> bool,
    mut step: impl FnMut(usize, usize) -> io::Result<usize>,
) -> Result<Transfer, TransferError> {
    if wanted == 0 {
        return Ok(Transfer { bytes: 0, calls: 0 });
    }
    check(0)?;
    if offset.checked_add(wanted as u64).is_none_or(|end| i64::try_from(end).is_err()) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the transfer ends beyond the largest file offset");
        return Err(TransferError::Io { write, offset, wanted, done: 0, source });
    }
    let (mut done, mut calls, mut stalls) = (0, 0, 0);
    while done < wanted {
        let from = if write || stalls > STALLS_MAX { done } else { resume(done) };
        if from > 0 {
            check(from).map_err(|misaligned| TransferError::StoppedMisaligned { offset, wanted, done, misaligned })?;
        }
        calls += 1;
        let end = wanted.min(from.saturating_add(CALL_BYTES_MAX));
        match step(from, end) {
            Ok(0) if write => return Err(TransferError::NothingAccepted { offset, wanted, done }),
            Ok(count) => {
                assert!(count <= end - from, "the system reported more bytes than were requested");
                stalls += u32::from(from + count <= done);
                // Less than before if the file was cut meanwhile.
                done = from + count;
                if count == 0 || (!write && done < end && ends_at(offset + done as u64)) {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TransferError::Io { write, offset, wanted, done, source }),
        }
    }
    Ok(Transfer { bytes: done, calls })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignmentSource;

    #[test]
    fn a_short_call_is_continued_and_counted() {
        let mut answers = [100, 400, 12].into_iter();
        let transfer = go_on(&Alignment::not_needed(), 0, 512, 0, false, |_, _| Ok(answers.next().unwrap())).unwrap();
        assert_eq!(transfer, Transfer { bytes: 512, calls: 3 });
    }

    #[test]
    fn a_transfer_of_5_gib_is_split_at_aligned_offsets() {
        let wanted = 5 << 30;
        let alignment = Alignment::uniform(65536, AlignmentSource::Statx);
        let transfer = go_on(&alignment, 0, wanted, 0, true, |done, end| Ok(end - done)).unwrap();
        assert_eq!(transfer, Transfer { bytes: wanted, calls: 3 });
    }

    #[test]
    fn a_vectored_call_takes_at_most_1024_buffers_and_2_gib() {
        assert_eq!(within_one_call(std::iter::repeat_n(1, 5000)), 1024);
        assert_eq!(within_one_call([1 << 30, 1 << 29, 1 << 29].into_iter()), 2);
        assert_eq!(within_one_call([3 << 30].into_iter()), 0);
    }

    #[test]
    fn each_buffer_of_a_vectored_transfer_is_checked() {
        let alignment = Alignment::uniform(512, AlignmentSource::Statx);
        let parts = [(0x1000, 1024), (0x3001, 512), (0x5000, 512)];
        let wrong = check_parts(&parts, &alignment, 0, 0, true).unwrap_err();
        assert_eq!((wrong.part, wrong.value), (crate::TransferPart::Address, 0x3001));
        assert!(check_parts(&parts, &alignment, 1536, 0, true).is_ok(), "the second buffer is done");
        let wrong = check_parts(&parts, &alignment, 1600, 0, true).unwrap_err();
        assert_eq!((wrong.part, wrong.value), (crate::TransferPart::Address, 0x5040));
    }

    #[test]
    fn a_short_read_at_the_end_of_the_file_ends_the_transfer() {
        let alignment = Alignment::uniform(512, AlignmentSource::Statx);
        let check = |done: usize| check_transfer(&alignment, 0x1000 + done, 4096 - done, done as u64, false);
        let ends_at = |position| position == 1000;
        let read = transfer(4096, 0, false, check, |done| done - done % 512, ends_at, |_, _| Ok(1000)).unwrap();
        assert_eq!(read, Transfer { bytes: 1000, calls: 1 });
    }

    /// Reads 4,096 bytes at offset 0 of a file that has the lengths of `lengths` one after another: at each read and each
    /// comparison of its size with the offset reached.
    fn read_of_a_changing_file(lengths: &[usize]) -> Result<Transfer, TransferError> {
        let alignment = Alignment::uniform(512, AlignmentSource::Statx);
        let check = |done: usize| check_transfer(&alignment, 0x1000 + done, 4096 - done, done as u64, false);
        let lengths = std::cell::RefCell::new(lengths.iter().cycle());
        let next = || *lengths.borrow_mut().next().unwrap();
        let ends_at = |position| next() as u64 <= position;
        let step = |done: usize, end: usize| {
            assert!(done.is_multiple_of(512) && end.is_multiple_of(512), "{done}..{end}");
            Ok(next().clamp(done, end) - done)
        };
        transfer(4096, 0, false, check, |done| done - done % 512, ends_at, step)
    }

    #[test]
    fn a_read_of_a_file_that_becomes_longer_continues_from_the_block_that_it_reached() {
        assert_eq!(read_of_a_changing_file(&[1000, 9000, 9000]).unwrap(), Transfer { bytes: 4096, calls: 2 });
        assert_eq!(read_of_a_changing_file(&[1000, 1001, 1001, 1001]).unwrap(), Transfer { bytes: 1001, calls: 2 });
        assert_eq!(read_of_a_changing_file(&[1024, 1025, 4096]).unwrap(), Transfer { bytes: 4096, calls: 2 });
    }

    #[test]
    fn a_read_of_a_file_that_is_cut_meanwhile_ends_where_the_file_ends() {
        assert_eq!(read_of_a_changing_file(&[1000, 2000, 600, 600]).unwrap(), Transfer { bytes: 600, calls: 2 });
        assert_eq!(read_of_a_changing_file(&[1000, 2000, 0, 0]).unwrap(), Transfer { bytes: 512, calls: 2 });
        // A file that is always longer than what can be read of it: a defect of the filesystem.
        let stopped = read_of_a_changing_file(&[1000, 9000]).unwrap_err();
        assert!(matches!(stopped, TransferError::StoppedMisaligned { done: 1000, .. }), "{stopped}");
    }

    /// Goal: after a short read, each buffer is continued in itself, and none is skipped.
    #[test]
    fn a_position_in_several_buffers_is_located() {
        let parts = [(0x1000, 512), (0x3000, 0), (0x5000, 1024)];
        let all: Vec<(usize, usize)> = [0, 511, 512, 1535].map(|done| located(&parts, done)).to_vec();
        assert_eq!(all, [(0, 0), (0, 511), (2, 0), (2, 1023)]);
    }

    #[test]
    fn a_signal_does_not_end_a_transfer() {
        let mut answers = [Err(io::ErrorKind::Interrupted.into()), Ok(512)].into_iter();
        let transfer = go_on(&Alignment::not_needed(), 0, 512, 0, true, |_, _| answers.next().unwrap()).unwrap();
        assert_eq!(transfer.bytes, 512);
    }

    #[test]
    fn a_direct_transfer_that_stops_between_sectors_is_an_error_with_its_reason() {
        let alignment = Alignment::uniform(512, AlignmentSource::Statx);
        let error = go_on(&alignment, 0x1000, 4096, 0, true, |_, _| Ok(700)).unwrap_err();
        assert_eq!(error.done(), 700);
        assert_eq!(
            error.to_string(),
            "a direct transfer from offset 0 stopped after 700 of 4096 bytes and cannot continue there"
        );
        assert!(matches!(error, TransferError::StoppedMisaligned { .. }));
    }

    #[test]
    fn an_error_contains_the_number_of_bytes_transferred() {
        let mut answers = [Ok(512), Err(io::Error::other("broken"))].into_iter();
        let error = go_on(&Alignment::not_needed(), 0, 1024, 4096, true, |_, _| answers.next().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "writing 1024 bytes at offset 4096 failed after 512");
    }

    #[test]
    fn a_transfer_beyond_the_largest_offset_is_refused_before_the_call() {
        let step = |_, _| -> io::Result<usize> { panic!("the call was made") };
        assert!(go_on(&Alignment::not_needed(), 0, 512, u64::MAX - 511, false, step).is_err());
        assert!(go_on(&Alignment::not_needed(), 0, 512, i64::MAX as u64, true, step).is_err());
    }
}
