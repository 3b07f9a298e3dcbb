//! Lock modes and lock errors.

use std::io;

/// Mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Compatible with other shared locks.
    Shared,
    /// Compatible with no other lock.
    Exclusive,
}

/// Error of a lock call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another open file holds a conflicting lock.
    #[error("the file is already locked")]
    Held(#[source] io::Error),
    /// The system has no such lock.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The call failed for any other reason.
    #[error("the file cannot be locked")]
    Io(#[source] io::Error),
}

impl LockError {
    #[cfg(unix)]
    pub(crate) fn from_system(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock { Self::Held(error) } else { Self::Io(error) }
    }

    /// Returns the system's error number, if the error is the system's.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Held(source) | Self::Io(source) => source.raw_os_error(),
            Self::Unsupported(_) => None,
        }
    }
}
