//! Positioned reads and writes that transfer everything or say what stopped them.
//!
//! One call may transfer less than was asked for: at the end of the file, at 0x7ffff000 bytes on
//! Linux, when a signal comes, when the disk is full. These functions go on where a call stopped,
//! count the calls, and when they cannot go on they say how far they came and why. After a short
//! direct transfer the rest may begin at an offset that direct I/O refuses; that has its own error.
//!
//! Source: pread(2), pwrite(2), NOTES.
//!
//! Every read here is at an offset of its own, so that threads may share a file. (On Windows such a
//! call also moves the file's own position, which nothing here uses.)

use crate::alignment::{Alignment, Misaligned, check_transfer};
use std::fs::File;
use std::io;

/// No call is given more than this, 2 GiB less 64 KiB. Linux cuts at 0x7ffff000 bytes (pages of 4 KiB),
/// macOS refuses 2 GiB, Windows counts in 32 bits; this is below all and a multiple of every block.
const CALL_BYTES_MAX: usize = 0x7fff_0000;

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// How many bytes, as asked for.
    pub bytes: usize,
    /// How many calls of the system it took; more than one means that some were short.
    pub calls: u32,
}

/// Why a transfer was not completed. Offsets and lengths are in bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Refused before the call; nothing was transferred.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// The file ends within what was to be read.
    #[error("the file ended after {done} of {wanted} bytes, read from offset {offset}")]
    EndOfFile {
        /// Where the transfer began.
        offset: u64,
        /// How much was asked for.
        wanted: usize,
        /// How much was read.
        done: usize,
    },
    /// The system took no byte and gave no error.
    #[error("the system accepted 0 bytes after {done} of {wanted}, written from offset {offset}")]
    NothingAccepted {
        /// Where the transfer began.
        offset: u64,
        /// How much was asked for.
        wanted: usize,
        /// How much was written.
        done: usize,
    },
    /// A call was short, and direct I/O cannot go on from where it stopped.
    #[error(
        "a direct transfer from offset {offset} stopped after {done} of {wanted} bytes and cannot go on from there"
    )]
    StoppedMisaligned {
        /// Where the transfer began.
        offset: u64,
        /// How much was asked for.
        wanted: usize,
        /// How much was transferred.
        done: usize,
        /// What forbids the rest.
        #[source]
        misaligned: Misaligned,
    },
    /// The system reported an error.
    #[error(
        "{} {wanted} bytes at offset {offset} failed after {done}",
        if *write { "writing" } else { "reading" }
    )]
    Io {
        /// Whether it was a write.
        write: bool,
        /// Where the transfer began.
        offset: u64,
        /// How much was asked for.
        wanted: usize,
        /// How much was transferred before.
        done: usize,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl TransferError {
    /// The system's error number, if this came from the system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// How many bytes had been transferred.
    pub fn done(&self) -> usize {
        match self {
            Self::Misaligned(_) => 0,
            Self::EndOfFile { done, .. }
            | Self::NothingAccepted { done, .. }
            | Self::StoppedMisaligned { done, .. }
            | Self::Io { done, .. } => *done,
        }
    }
}

/// Fills `buffer` from `offset` of `file`, with as many calls as it takes.
///
/// # Errors
/// [`TransferError`]; [`TransferError::EndOfFile`] if the file is shorter. What was read until then
/// is in the buffer.
pub fn read_exact_at(
    file: &File,
    alignment: &Alignment,
    buffer: &mut [u8],
    offset: u64,
) -> Result<Transfer, TransferError> {
    let wanted = buffer.len();
    go_on(alignment, buffer.as_ptr().addr(), wanted, offset, false, |done, end| {
        crate::os::read_at(file, &mut buffer[done..end], offset + done as u64)
    })
}

/// Writes all of `buffer` at `offset` of `file`, with as many calls as it takes.
///
/// # Errors
/// [`TransferError`]. What was written until then stays written.
pub fn write_all_at(file: &File, alignment: &Alignment, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    go_on(alignment, buffer.as_ptr().addr(), buffer.len(), offset, true, |done, end| {
        crate::os::write_at(file, &buffer[done..end], offset + done as u64)
    })
}

/// Calls `step` with the bytes to transfer next, as the part `done..end` of the whole, until
/// `wanted` bytes are done.
pub(crate) fn go_on(
    alignment: &Alignment,
    address: usize,
    wanted: usize,
    offset: u64,
    write: bool,
    mut step: impl FnMut(usize, usize) -> io::Result<usize>,
) -> Result<Transfer, TransferError> {
    check_transfer(alignment, address, wanted, offset, write)?;
    if offset.checked_add(wanted as u64).is_none_or(|end| i64::try_from(end).is_err()) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the transfer ends beyond the largest file offset");
        return Err(TransferError::Io { write, offset, wanted, done: 0, source });
    }
    let mut done = 0;
    let mut calls = 0;
    while done < wanted {
        if done > 0 {
            check_transfer(alignment, address + done, wanted - done, offset + done as u64, write)
                .map_err(|misaligned| TransferError::StoppedMisaligned { offset, wanted, done, misaligned })?;
        }
        calls += 1;
        let end = wanted.min(done.saturating_add(CALL_BYTES_MAX));
        match step(done, end) {
            Ok(0) if write => return Err(TransferError::NothingAccepted { offset, wanted, done }),
            Ok(0) => return Err(TransferError::EndOfFile { offset, wanted, done }),
            Ok(count) => {
                assert!(count <= end - done, "the system reported more bytes than it was asked for");
                done += count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TransferError::Io { write, offset, wanted, done, source }),
        }
    }
    Ok(Transfer { bytes: wanted, calls })
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
    fn a_transfer_of_many_gigabytes_is_cut_where_every_alignment_allows() {
        let wanted = 5 << 30;
        let alignment = Alignment::uniform(65536, AlignmentSource::Statx);
        let transfer = go_on(&alignment, 0, wanted, 0, true, |done, end| Ok(end - done)).unwrap();
        assert_eq!(transfer, Transfer { bytes: wanted, calls: 3 });
    }

    #[test]
    fn a_signal_does_not_end_a_transfer() {
        let mut answers = [Err(io::ErrorKind::Interrupted.into()), Ok(512)].into_iter();
        let transfer = go_on(&Alignment::not_needed(), 0, 512, 0, true, |_, _| answers.next().unwrap()).unwrap();
        assert_eq!(transfer.bytes, 512);
    }

    #[test]
    fn a_direct_transfer_that_stops_between_sectors_says_why_it_cannot_go_on() {
        let alignment = Alignment::uniform(512, AlignmentSource::Statx);
        let error = go_on(&alignment, 0x1000, 4096, 0, true, |_, _| Ok(700)).unwrap_err();
        assert_eq!(error.done(), 700);
        assert_eq!(
            error.to_string(),
            "a direct transfer from offset 0 stopped after 700 of 4096 bytes and cannot go on from there"
        );
        assert!(matches!(error, TransferError::StoppedMisaligned { .. }));
    }

    #[test]
    fn an_error_says_how_far_the_transfer_came() {
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
