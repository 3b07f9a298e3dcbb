//! Locks on whole files, on ranges, and on Windows volumes.
//!
//! On Unix all locks are advisory: they conflict only with locks of the same kind. `flock` and range locks of
//! one file are independent on Linux, and conflict on FreeBSD and macOS. On Windows both are one mandatory kind.
//!
//! Source: flock(2), fcntl_locking(2) ("open file description locks"), Microsoft "LockFileEx",
//! "FSCTL_LOCK_VOLUME".

use crate::types::{LockError, LockMode};
use std::fs::File;

/// Locks the whole file without waiting.
///
/// Unix: `flock`, owned by the open file and released when its last descriptor is closed. Windows: `LockFileEx` over
/// every byte, mandatory.
///
/// # Errors
/// [`LockError::Held`] if another open file holds a conflicting lock.
pub fn try_lock(file: &File, mode: LockMode) -> Result<(), LockError> {
    crate::os::try_lock(file, mode)
}

/// Releases the lock of [`try_lock`]. On Unix, releasing a lock that is not held is not an error.
///
/// # Errors
/// The system's error.
pub fn unlock(file: &File) -> Result<(), LockError> {
    crate::os::unlock(file)
}

/// Locks bytes `offset .. offset + len` without waiting; a `len` of 0 means to the end, also of a file that grows.
///
/// Linux and macOS: an open-file-description lock (`F_OFD_SETLK`). It belongs to the open file and not to the process,
/// so closing another descriptor does not release it. An exclusive lock needs a file open for writing, a shared one a
/// file open for reading. Windows: `LockFileEx`, mandatory. FreeBSD has no such lock.
///
/// # Errors
/// [`LockError::Held`] if another open file holds a conflicting lock; [`LockError::Unsupported`] on FreeBSD.
pub fn try_lock_range(file: &File, mode: LockMode, offset: u64, len: u64) -> Result<(), LockError> {
    crate::os::lock_range(file, Some(mode), offset, len)
}

/// Releases the lock of [`try_lock_range`]. On Windows the range must be the same.
///
/// # Errors
/// The system's error.
pub fn unlock_range(file: &File, offset: u64, len: u64) -> Result<(), LockError> {
    crate::os::lock_range(file, None, offset, len)
}

/// Locks a volume that was opened as `\\.\X:`. Until it is unlocked, no other process can open files on it, and its
/// filesystem permits raw writes. *(Windows)*
///
/// # Errors
/// [`LockError::Io`] while any file on the volume is open; [`LockError::Unsupported`] on other systems.
pub fn lock_volume(file: &File) -> Result<(), LockError> {
    crate::os::lock_volume(file, true)
}

/// Releases the lock of [`lock_volume`]. *(Windows)*
///
/// # Errors
/// The system's error; [`LockError::Unsupported`] on other systems.
pub fn unlock_volume(file: &File) -> Result<(), LockError> {
    crate::os::lock_volume(file, false)
}
