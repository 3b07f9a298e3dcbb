//! Opens a file with a policy for direct I/O and reports what was really granted.
//!
//! Existing contents are never truncated, and an existing file is never replaced: [`OpenOptions::create_new`] and
//! [`OpenOptions::create`] create files only under names that do not exist yet.
//!
//! Limits: see [`crate::probe()`]. Where the effect of the flag is unknown, the file is granted as
//! [`Granted::Unconfirmed`], with the [reason](DirectFile::reason).

use crate::alignment::{ASSUMED_ALIGNMENT_BYTES, AlignmentSource};
use crate::transfer::{self, Transfer, TransferError};
use crate::types::{DirectFile, FlushLevel, Flushed, Granted, OpenError, OpenOptions, ProbeError};
use std::fs::File;
use std::io;
use std::path::Path;

impl OpenOptions {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`OpenError`]. Only [`Policy::Prefer`](crate::Policy::Prefer) grants less than direct I/O.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<DirectFile, OpenError> {
        let path = path.as_ref();
        let nothing = |how| Err(OpenError::NothingAsked { path: path.to_owned(), how });
        if !self.read && !self.write {
            return nothing("neither `read` nor `write` is set");
        }
        if (self.create || self.create_new) && !self.write {
            return nothing("a new file needs `write`");
        }
        if self.create && !self.create_new { self.open_or_create(path) } else { crate::os::open(path, self) }
    }

    /// Repeats both attempts, because another process may create or remove the file between them. With a dangling
    /// symbolic link both always fail.
    fn open_or_create(&self, path: &Path) -> Result<DirectFile, OpenError> {
        const ATTEMPTS: usize = 8;
        let is = |error: &OpenError, wanted| matches!(error, OpenError::Io { source, .. } if source.kind() == wanted);
        let mut outcome = crate::os::open(path, self);
        for _ in 0..ATTEMPTS {
            if !outcome.as_ref().is_err_and(|error| is(error, io::ErrorKind::NotFound)) {
                break;
            }
            outcome = crate::os::open(path, &self.clone().create_new(true));
            if !outcome.as_ref().is_err_and(|error| is(error, io::ErrorKind::AlreadyExists)) {
                break;
            }
            outcome = crate::os::open(path, self);
        }
        outcome
    }
}

impl DirectFile {
    /// Takes an open file, and determines from its flags and a probe what it grants.
    ///
    /// Linux and FreeBSD report `O_DIRECT` of an open file, Windows reports `FILE_FLAG_NO_BUFFERING`. macOS does not
    /// report `F_NOCACHE`, so a regular file counts as [`Granted::Buffered`] there; a raw disk is direct.
    ///
    /// # Errors
    /// [`ProbeError`]: neither a regular file nor a disk, or the probe failed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use trueio_direct::{DirectFile, Granted};
    ///
    /// let file = DirectFile::from_file(std::fs::File::create(folder.path().join("data")).unwrap())?;
    /// assert_eq!(file.granted(), Granted::Buffered);
    /// # Ok::<(), trueio_direct::ProbeError>(())
    /// ```
    pub fn from_file(file: File) -> Result<Self, ProbeError> {
        crate::os::adopt(file)
    }

    /// Fills `buffer` from `offset`: see [`crate::read_exact_at`].
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
        self.prepare(buffer);
        transfer::read_exact_at(&self.file, &self.alignment, buffer, offset)
    }

    /// Reads into `buffer` until it is full or the file ends: see [`crate::read_at`].
    ///
    /// # Errors
    /// [`TransferError`], never [`TransferError::EndOfFile`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("data");
    /// # std::fs::write(&path, vec![7; 1000]).unwrap();
    /// use trueio_direct::{AlignedBuffer, OpenOptions, Policy};
    ///
    /// let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path)?;
    /// let mut buffer = AlignedBuffer::new(4096, 4096)?;
    /// assert_eq!(file.read_at(&mut buffer, 0)?.bytes, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
        self.prepare(buffer);
        transfer::read_at(&self.file, &self.alignment, buffer, offset)
    }

    /// Reads into `buffers`, one after another, until all are full or the file ends: see
    /// [`crate::read_vectored_at`].
    ///
    /// # Errors
    /// [`TransferError`], never [`TransferError::EndOfFile`].
    pub fn read_vectored_at(&self, buffers: &mut [io::IoSliceMut<'_>], offset: u64) -> Result<Transfer, TransferError> {
        for buffer in &mut *buffers {
            self.prepare(buffer);
        }
        transfer::read_vectored_at(&self.file, &self.alignment, buffers, offset)
    }

    /// Writes all of `buffers`, one after another, at `offset`: see [`crate::write_vectored_at`].
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn write_vectored_at(&self, buffers: &mut [io::IoSlice<'_>], offset: u64) -> Result<Transfer, TransferError> {
        let length = buffers.iter().fold(0usize, |sum, buffer| sum.saturating_add(buffer.len()));
        let _lock = self.share(offset, length)?;
        transfer::write_vectored_at(&self.file, &self.alignment, buffers, offset)
    }

    /// Returns the length of the file, or the capacity of the disk, in bytes.
    ///
    /// # Errors
    /// The system's error.
    pub fn size(&self) -> io::Result<u64> {
        crate::os::size_bytes(&self.file)
    }

    /// Sets the length of the file to `length` bytes, which need not be aligned. A shorter file loses its end, a longer one
    /// ends with a hole that reads as zeros.
    ///
    /// Concurrent writes below `length` keep their bytes. No other call of this crate makes a file shorter. The length is
    /// durable after a [`Self::flush`], whatever the [`SyncMode`](crate::SyncMode). Where `length` is within a block, the system writes
    /// zeros to the rest of that block through the page cache.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a disk, whose capacity is fixed, and beyond the largest file offset; otherwise
    /// the system's error (`EBADF` on Unix for a file that is not open for writing).
    ///
    /// # Source
    /// ftruncate(2); Microsoft, "FILE_END_OF_FILE_INFO".
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use trueio_direct::{OpenOptions, Policy};
    ///
    /// let options = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer);
    /// let file = options.open(folder.path().join("data"))?;
    /// file.truncate(1000)?;
    /// assert_eq!(file.size()?, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn truncate(&self, length: u64) -> io::Result<()> {
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if self.disk().is_some() {
            return refused("the length of a disk cannot be set; only that of a regular file");
        }
        if i64::try_from(length).is_err() {
            return refused("the length is beyond the largest file offset");
        }
        crate::os::set_length(&self.file, length)
    }

    /// Writes all of `buffer` at `offset`: see [`crate::write_all_at`]. To a disk, it waits for writes of parts of the same
    /// blocks.
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
        let _lock = self.share(offset, buffer.len())?;
        transfer::write_whole(&self.file, &self.alignment, buffer, offset)
    }

    /// Returns the likely cause of a failed transfer on this file, where the system's error does not name it. It is
    /// a guess and should be shown as one.
    ///
    /// `EINVAL` on a direct file means that address, length or offset is misaligned. Where the alignment is known, the
    /// check before the call has already reported that, and this returns [`None`].
    pub fn likely_cause(&self, error: &TransferError) -> Option<String> {
        let TransferError::Io { source, .. } = error else { return None };
        let is_known =
            self.alignment.or_assumed() == self.alignment && self.alignment.source != AlignmentSource::Assumed;
        if source.kind() != io::ErrorKind::InvalidInput || self.granted == Granted::Buffered || is_known {
            return None;
        }
        Some(format!(
            "address, length or offset is misaligned for direct I/O; the alignment is {}, so try {} bytes or more",
            self.alignment.source, ASSUMED_ALIGNMENT_BYTES
        ))
    }

    /// Flushes written data to `level`: see [`crate::flush()`].
    ///
    /// # Errors
    /// The system's error. After a failed flush, earlier writes may be lost.
    pub fn flush(&self, level: FlushLevel) -> io::Result<Flushed> {
        crate::flush::flush(&self.file, level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::Alignment;

    #[test]
    fn a_likely_cause_is_returned_only_where_the_alignment_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("data")).unwrap();
        let mut file = DirectFile::new(file, Granted::Direct, Alignment::unknown(), String::new());
        let error = |kind: io::ErrorKind| TransferError::Io {
            write: true,
            offset: 0,
            wanted: 512,
            done: 0,
            source: kind.into(),
        };
        let guess = file.likely_cause(&error(io::ErrorKind::InvalidInput)).unwrap();
        assert!(guess.contains("unknown, as none is reported"), "{guess}");
        assert_eq!(file.likely_cause(&error(io::ErrorKind::StorageFull)), None);
        file.alignment = Alignment::uniform(512, AlignmentSource::Statx);
        assert_eq!(file.likely_cause(&error(io::ErrorKind::InvalidInput)), None);
    }
}
