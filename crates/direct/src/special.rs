//! Atomic writes, uncached reads and writes, and single durable writes.
//!
//! | function             | promise                                                    | available since           |
//! |----------------------|------------------------------------------------------------|---------------------------|
//! | [`write_atomic_at`]  | after a power loss all of the write is on the medium, or none of it | Linux 6.11 (`RWF_ATOMIC`) |
//! | [`write_uncached_at`], [`read_uncached_at`] | uses the page cache and leaves no page in it | Linux 6.14 (`RWF_DONTCACHE`) |
//! | [`write_dsync_at`]   | this one write is durable, as with `O_DSYNC`               | Linux 4.7 (`RWF_DSYNC`)   |
//!
//! On other systems they fail with [`std::io::ErrorKind::Unsupported`].
//!
//! Limits: whether the drive keeps the promise of atomicity is not visible.
//!
//! Source: pwritev2(2); Linux `include/uapi/linux/fs.h` for `RWF_DONTCACHE`.

use crate::alignment::Alignment;
use crate::transfer::{Transfer, TransferError, go_on, refuse_append};
use crate::types::{AtomicWrite, DirectFile, Special};
use std::fs::File;

/// Error of [`write_atomic_at`]. Lengths and offsets are in bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicError {
    /// The length is not a power of two.
    #[error("the length of an atomic write, {length}, is not a power of two")]
    LengthNotPowerOfTwo {
        /// The requested length, in bytes.
        length: usize,
    },
    /// The length is outside the limits of file and device.
    #[error("the length of an atomic write, {length}, is not between {min_bytes} and {max_bytes}")]
    LengthOutside {
        /// The requested length, in bytes.
        length: usize,
        /// The smallest possible length.
        min_bytes: u32,
        /// The largest possible length.
        max_bytes: u32,
    },
    /// The offset is not a multiple of the length.
    #[error("the offset of an atomic write, {offset}, is not a multiple of its length, {length}")]
    OffsetNotNatural {
        /// The requested offset in the file, in bytes.
        offset: u64,
        /// The length, of which the offset must be a multiple.
        length: usize,
    },
    /// The system wrote only a part, contrary to its specification.
    #[error("the system tore an atomic write: it wrote {done} of {length} bytes at offset {offset}")]
    Torn {
        /// The offset of the write.
        offset: u64,
        /// The requested length, in bytes.
        length: usize,
        /// Number of bytes written.
        done: usize,
    },
    /// The transfer failed for any other reason.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

impl AtomicWrite {
    /// Checks a write of `length` bytes at `offset`, without making it.
    ///
    /// # Errors
    /// [`AtomicError`] names the first rule that is violated.
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
/// `limits` are those of [`crate::Probe::atomic_write`]. An atomic write is not durable: flush as after any other
/// write. Filesystems require direct I/O for it.
///
/// # Errors
/// [`AtomicError`]; it never falls back to another kind of write.
pub fn write_atomic_at(file: &DirectFile, limits: &AtomicWrite, buffer: &[u8], offset: u64) -> Result<(), AtomicError> {
    limits.check(buffer.len(), offset)?;
    crate::check_transfer(file.alignment(), buffer.as_ptr().addr(), buffer.len(), offset, true)
        .map_err(TransferError::from)?;
    let length = buffer.len();
    let _lock = file.share(offset, length)?;
    match crate::os::write_special(file.file(), buffer, offset, Special::Atomic) {
        Ok(done) if done == length => Ok(()),
        Ok(done) => Err(AtomicError::Torn { offset, length, done }),
        Err(source) => Err(TransferError::Io { write: true, offset, wanted: length, done: 0, source }.into()),
    }
}

/// Writes all of `buffer` at `offset` through the page cache; the kernel drops the pages after writeback. *(Linux)*
///
/// For files without direct I/O. It does not wait for the writeback.
///
/// # Errors
/// [`TransferError::Io`] with `EOPNOTSUPP` where kernel or filesystem do not support it.
pub fn write_uncached_at(file: &File, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    refuse_append(file, offset, buffer.len())?;
    go_on(&Alignment::not_needed(), 0, buffer.len(), offset, true, |done, end| {
        crate::os::write_special(file, &buffer[done..end], offset + done as u64, Special::Uncached)
    })
}

/// Fills `buffer` from `offset` through the page cache, and drops the pages that it added. *(Linux)*
///
/// For files without direct I/O.
///
/// # Errors
/// [`TransferError::Io`] with `EOPNOTSUPP` where kernel or filesystem do not support it.
pub fn read_uncached_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
    go_on(&Alignment::not_needed(), 0, buffer.len(), offset, false, |done, end| {
        crate::os::read_uncached(file, &mut buffer[done..end], offset + done as u64)
    })
}

/// Writes all of `buffer` at `offset`, durable on return, as if the file had been opened with
/// [`crate::SyncMode::Dsync`]. *(Linux)*
///
/// # Errors
/// [`TransferError`]; [`std::io::ErrorKind::Unsupported`] on other systems, where a write and a flush have the
/// same effect.
pub fn write_dsync_at(file: &DirectFile, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
    let _lock = file.share(offset, buffer.len())?;
    go_on(file.alignment(), buffer.as_ptr().addr(), buffer.len(), offset, true, |done, end| {
        crate::os::write_special(file.file(), &buffer[done..end], offset + done as u64, Special::Dsync)
    })
}
