//! Flushes with a stated level of durability, directory flushes and preallocation.
//!
//! Each of the four levels makes one promise. Where a system has no call for a level, a stronger call replaces it,
//! never a weaker one; a level that no call keeps is an error. [`Flushed`] reports the call. [`FlushLevel`] has the
//! table.
//!
//! Limits: `Device` is void on a filesystem mounted with `nobarrier`, behind a controller that declares its cache
//! safe, and on a drive that ignores flushes. Only power loss shows this.
//!
//! Source: fsync(2) (Linux: "includes … flushing the disk cache if present"); macOS fsync(2), fcntl(2);
//! FreeBSD fsync(2); Microsoft, "FlushFileBuffers".

use crate::types::{FlushLevel, Flushed};
use std::fs::File;
use std::io;
use std::path::Path;

/// Flushes the data written to `file` to `level`, and waits for completion.
///
/// The name of a new or renamed file is not part of its data: see [`sync_directory`].
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] where no call keeps the promise of the level. After an error,
/// earlier writes may be lost even if a later flush succeeds: Linux reports a failed writeback once and marks
/// the pages clean.
pub fn flush(file: &File, level: FlushLevel) -> io::Result<Flushed> {
    let flushed = crate::os::flush(file, level)?;
    assert!(flushed.level >= level, "a flush fell short of its level without an error");
    Ok(flushed)
}

/// Makes the names in a directory durable, after a file in it was created, renamed or removed.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] on Windows, which has no such call.
pub fn sync_directory(path: impl AsRef<Path>) -> io::Result<()> {
    crate::os::sync_directory(path.as_ref())
}

/// Reserves space for bytes `offset .. offset + len` of `file`, and extends the file to that end if it is shorter.
///
/// Existing contents do not change; new bytes read as zeros. Never makes the file shorter. Linux reserves first and extends
/// the file after that, so after an error its length has not changed; a part of the space may stay reserved. Elsewhere,
/// the file may have become longer.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the filesystem cannot reserve space (zeros are never written instead), and on Windows
/// for a file that is open for exclusive use and shorter;
/// [`io::ErrorKind::StorageFull`] where there is no space; [`io::ErrorKind::InvalidInput`] for a length of zero.
pub fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a reservation of zero bytes"));
    }
    if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the reservation ends beyond the largest file offset"));
    }
    crate::os::preallocate(file, offset, len)
}
