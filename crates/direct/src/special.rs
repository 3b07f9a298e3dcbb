//! Writes and reads with one more promise each: atomic, uncached, durable.
//!
//! | function             | promise                                                    | where                     |
//! |----------------------|------------------------------------------------------------|---------------------------|
//! | [`write_atomic_at`]  | after a power loss all of it is there, or none             | Linux 6.11 (`RWF_ATOMIC`) |
//! | [`write_uncached_at`], [`read_uncached_at`] | through the page cache, leaving nothing there | Linux 6.14 (`RWF_DONTCACHE`) |
//! | [`write_dsync_at`]   | this one write is durable, as by `O_DSYNC`                 | Linux 4.7 (`RWF_DSYNC`)   |
//!
//! Elsewhere they fail with [`std::io::ErrorKind::Unsupported`], and never do less in silence.
//!
//! Cannot see: whether the drive keeps the promise of atomicity.
//!
//! Source: pwritev2(2); Linux `include/uapi/linux/fs.h` for `RWF_DONTCACHE`.

use crate::alignment::Alignment;
use crate::open::DirectFile;
use crate::probe::AtomicWrite;
use crate::transfer::{Transfer, TransferError, go_on};
use std::fs::File;

/// Which promise a write carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Atomic,
    Uncached,
    Dsync,
}

/// Why a write is not atomic here. Numbers are in bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicError {
    /// The length is not a power of two.
    #[error("an atomic write of {length} bytes is not a power of two")]
    LengthNotPowerOfTwo {
        /// What was asked for.
        length: usize,
    },
    /// The length is outside what file and device can do.
    #[error("an atomic write of {length} bytes is outside {min_bytes} to {max_bytes}")]
    LengthOutside {
        /// What was asked for.
        length: usize,
        /// The smallest that can be done.
        min_bytes: u32,
        /// The largest that can be done.
        max_bytes: u32,
    },
    /// The offset is not a multiple of the length.
    #[error("the offset of an atomic write, {offset}, is not a multiple of its length, {length}")]
    OffsetNotNatural {
        /// What was asked for.
        offset: u64,
        /// What it must be a multiple of.
        length: usize,
    },
    /// The system took a part of it, which it must not.
    #[error("the system tore an atomic write: it took {done} of {length} bytes at offset {offset}")]
    Torn {
        /// Where it began.
        offset: u64,
        /// How much was asked for.
        length: usize,
        /// How much was written.
        done: usize,
    },
    /// It failed as any write may.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

impl AtomicWrite {
    /// Checks a write of `length` bytes at `offset` before it is made.
    ///
    /// # Errors
    /// [`AtomicError`] names the first rule that is broken.
    ///
    /// ```
    /// # use trueio_direct::AtomicWrite;
    /// let limits = AtomicWrite { min_bytes: 4096, max_bytes: 65536, max_fast_bytes: 0, segments_max: 1 };
    /// assert!(limits.check(16384, 32768).is_ok());
    /// assert_eq!(
    ///     limits.check(16384, 4096).unwrap_err().to_string(),
    ///     "the offset of an atomic write, 4096, is not a multiple of its length, 16384"
    /// );
    /// ```
    pub fn check(&self, length: usize, offset: u64) -> Result<(), AtomicError> {
        if !length.is_power_of_two() {
            return Err(AtomicError::LengthNotPowerOfTwo { length });
        }
        if !(self.min_bytes as usize..=self.max_bytes as usize).contains(&length) {
            let (min_bytes, max_bytes) = (self.min_bytes, self.max_bytes);
            return Err(AtomicError::LengthOutside { length, min_bytes, max_bytes });
        }
        if !offset.is_multiple_of(length as u64) {
            return Err(AtomicError::OffsetNotNatural { offset, length });
        }
        Ok(())
    }
}

/// Writes all of `buffer` at `offset` so that a power loss leaves all of it or none. *(Linux)*
///
/// `limits` are those of [`crate::Probe::atomic_write`]. Atomic is not durable: flush as for any
/// other write. Filesystems demand direct I/O for it.
///
/// # Errors
/// [`AtomicError`]; the write is never made in another way.
pub fn write_atomic_at(file: &DirectFile, limits: &AtomicWrite, buffer: &[u8], offset: u64) -> Result<(), AtomicError> {
    limits.check(buffer.len(), offset)?;
    crate::check_transfer(file.alignment(), buffer.as_ptr().addr(), buffer.len(), offset, true)
        .map_err(TransferError::from)?;
    let length = buffer.len();
    match crate::os::write_special(file.file(), buffer, offset, Special::Atomic) {
        Ok(done) if done == length => Ok(()),
        Ok(done) => Err(AtomicError::Torn { offset, length, done }),
        Err(source) => Err(TransferError::Io { write: true, offset, wanted: length, done: 0, source }.into()),
    }
}

/// Writes all of `buffer` at `offset` through the page cache, and lets the pages go once they are
/// written out. *(Linux)* For a file without direct I/O. It waits for nothing.
///
/// # Errors
/// [`TransferError::Io`] with `EOPNOTSUPP` where kernel or filesystem cannot.
pub fn write_uncached_at(file: &File, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    go_on(&Alignment::not_needed(), 0, buffer.len(), offset, true, |done, end| {
        crate::os::write_special(file, &buffer[done..end], offset + done as u64, Special::Uncached)
    })
}

/// Fills `buffer` from `offset` through the page cache, and leaves no page there that was not there
/// before. *(Linux)* For a file without direct I/O.
///
/// # Errors
/// [`TransferError::Io`] with `EOPNOTSUPP` where kernel or filesystem cannot.
pub fn read_uncached_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
    go_on(&Alignment::not_needed(), 0, buffer.len(), offset, false, |done, end| {
        crate::os::read_uncached(file, &mut buffer[done..end], offset + done as u64)
    })
}

/// Writes all of `buffer` at `offset`, durable when it returns, as if the file had been opened with
/// [`crate::SyncMode::Dsync`]. *(Linux)*
///
/// # Errors
/// [`TransferError`]; [`std::io::ErrorKind::Unsupported`] elsewhere: write and flush there.
pub fn write_dsync_at(file: &DirectFile, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    go_on(file.alignment(), buffer.as_ptr().addr(), buffer.len(), offset, true, |done, end| {
        crate::os::write_special(file.file(), &buffer[done..end], offset + done as u64, Special::Dsync)
    })
}
