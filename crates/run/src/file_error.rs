//! Errors of preparing and opening files, and acting as the user of a job.

use crate::credentials::Acting;
use std::io;
use trueio_model::UserPlan;

/// A file could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Creating it failed.
    #[error("`{path}` cannot be created")]
    Create {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<trueio_direct::OpenError>,
    },
    /// Making a directory failed.
    #[error("the directory `{path}` cannot be created")]
    Directory {
        /// The directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Unlinking our own new file failed.
    #[error("`{path}`, which was just created, cannot be unlinked")]
    Unlink {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Filling or allocating it failed.
    #[error("`{path}`: {attempted} failed at byte {offset} of {size_bytes}")]
    Fill {
        /// The file.
        path: String,
        /// What was attempted.
        attempted: &'static str,
        /// How far it had come, in bytes.
        offset: u64,
        /// How far it should have come, in bytes.
        size_bytes: u64,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Reading it into the page cache failed.
    #[error("`{path}` cannot be read into the page cache (`pre_read`)")]
    PreRead {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Opening it for a job failed.
    #[error("job `{job}` cannot open `{path}`")]
    Open {
        /// The job.
        job: String,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<trueio_direct::OpenError>,
    },
    /// An existing target cannot be opened at the beginning of the run.
    #[error("job `{job}` cannot open `{path}`")]
    Hold {
        /// The first job that uses it.
        job: String,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A target differs from the plan.
    #[error(
        "`{path}` has changed since the run was planned: {what}. The run ended, and nothing more was written to it"
    )]
    Changed {
        /// The file.
        path: String,
        /// How.
        what: String,
    },
    /// `fcntl` with `F_SET_RW_HINT` failed.
    #[error("`{path}`: the kernel rejected the lifetime that `write_hint` sets")]
    WriteHint {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `posix_fadvise` failed.
    #[error("`{path}`: the kernel rejected the advice that `fadvise_hint` sets")]
    Advise {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A USB disk that a job drives in user space cannot be claimed.
    #[error("`{path}` cannot be claimed: {reason}")]
    UsbDisk {
        /// The disk.
        path: String,
        /// Why.
        reason: String,
    },
    /// A block device that is to be written cannot be claimed.
    #[error("`{path}` cannot be claimed for writing (O_EXCL)")]
    Claim {
        /// The device.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The zones of a device cannot be read.
    #[error("`{path}`: the zones of the device cannot be read")]
    Zones {
        /// The device.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An operation as the job's user failed.
    #[error("acting as {user}")]
    As {
        /// The user.
        user: UserPlan,
        /// What failed.
        #[source]
        source: Box<FileError>,
    },
    /// The system does not let this process act as a job's user.
    #[error("this process cannot act as {user}")]
    User {
        /// The user.
        user: UserPlan,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A log cannot be created.
    #[error(transparent)]
    Log(#[from] crate::logs::LogError),
    /// The run was stopped during preparation.
    #[error("stopped while files were being prepared")]
    Stopped,
}

impl FileError {
    /// Returns true if a file of this name was created after planning.
    pub(crate) fn has_appeared(&self) -> bool {
        let Self::Create { source, .. } = self else { return false };
        matches!(&**source, trueio_direct::OpenError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// Calls `act` as the job's user, if the job sets one.
pub(crate) fn acting<T>(user: Option<UserPlan>, act: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    let Some(user) = user else { return act() };
    let _acting = Acting::begin(Some(user)).map_err(|source| FileError::User { user, source })?;
    act().map_err(|error| match error {
        FileError::Stopped => FileError::Stopped,
        error => FileError::As { user, source: Box::new(error) },
    })
}
