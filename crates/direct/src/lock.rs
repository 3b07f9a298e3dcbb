//! Locks on whole files, on ranges, and on Windows volumes.
//!
//! On Unix all of them are advisory: they keep out those who ask for the same kind of lock, and
//! nobody else. `flock` and range locks of one file do not see each other (on Linux; on FreeBSD
//! and macOS they do). On Windows both are one mandatory kind.
//!
//! Source: flock(2), fcntl_locking(2) ("open file description locks"), Microsoft "LockFileEx",
//! "FSCTL_LOCK_VOLUME".

use std::fs::File;
use std::io;

/// Who may hold the lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Others that also ask for a shared one.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Why no lock was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds one.
    #[error("the file is already locked")]
    Held(#[source] io::Error),
    /// This system has no such lock.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The system said no for any other reason.
    #[error("the file cannot be locked")]
    Io(#[source] io::Error),
}

impl LockError {
    #[cfg(unix)]
    pub(crate) fn from_system(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock { Self::Held(error) } else { Self::Io(error) }
    }

    /// The system's error number, if this came from the system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Held(source) | Self::Io(source) => source.raw_os_error(),
            Self::Unsupported(_) => None,
        }
    }
}

/// Locks the whole file without waiting. Unix: `flock`, owned by the open file and given up when
/// its last descriptor is closed. Windows: `LockFileEx` over every byte, mandatory.
///
/// # Errors
/// [`LockError::Held`] if somebody else holds it.
pub fn try_lock(file: &File, mode: LockMode) -> Result<(), LockError> {
    crate::os::try_lock(file, mode)
}

/// Gives up the lock of [`try_lock`]. Unix: no error if there was none.
///
/// # Errors
/// What the system said.
pub fn unlock(file: &File) -> Result<(), LockError> {
    crate::os::unlock(file)
}

/// Locks bytes `offset .. offset + len` without waiting; a `len` of 0 means to the end, however far
/// the file grows. Linux and macOS: an open-file-description lock (`F_OFD_SETLK`), which belongs to
/// the open file and not to the process, so that closing another descriptor does not lose it.
/// Windows: `LockFileEx`, mandatory. FreeBSD has none of these.
///
/// Exclusive locks need a file open for writing, shared ones a file open for reading. *(Unix)*
///
/// # Errors
/// [`LockError::Held`] if somebody else holds it, [`LockError::Unsupported`] on FreeBSD.
pub fn try_lock_range(file: &File, mode: LockMode, offset: u64, len: u64) -> Result<(), LockError> {
    crate::os::lock_range(file, Some(mode), offset, len)
}

/// Gives up the lock of [`try_lock_range`]. Windows: the range must be the same.
///
/// # Errors
/// What the system said.
pub fn unlock_range(file: &File, offset: u64, len: u64) -> Result<(), LockError> {
    crate::os::lock_range(file, None, offset, len)
}

/// Locks a volume that was opened as `\\.\X:`, so that nobody else can open files on it and its
/// filesystem lets raw writes through. *(Windows)*
///
/// # Errors
/// [`LockError::Unsupported`] elsewhere; Windows refuses while any file on the volume is open.
pub fn lock_volume(file: &File) -> Result<(), LockError> {
    crate::os::lock_volume(file, true)
}

/// Gives up the lock of [`lock_volume`]. *(Windows)*
///
/// # Errors
/// [`LockError::Unsupported`] elsewhere.
pub fn unlock_volume(file: &File) -> Result<(), LockError> {
    crate::os::lock_volume(file, false)
}
