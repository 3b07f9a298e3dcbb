//! Opens a file with a policy for direct I/O and says what was really granted.
//!
//! Existing contents are never truncated, and an existing file is never replaced: [`OpenOptions::create_new`] and
//! [`OpenOptions::create`] make files only under names that do not exist yet.
//!
//! Limits: see [`crate::probe()`]. Where the effect of the flag is unknown, the file is granted as
//! [`Granted::Unconfirmed`] and the [reason](DirectFile::reason) names what was asked.

use crate::alignment::{ASSUMED_ALIGNMENT_BYTES, Alignment, AlignmentSource};
use crate::flush::{FlushLevel, Flushed};
use crate::probe::Support;
use crate::transfer::{self, Transfer, TransferError};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// How much direct I/O matters to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Direct, or no file: opening fails where the flag is refused and where it is known to be
    /// accepted and ignored.
    Require,
    /// Direct where it can be had; otherwise buffered, and [`DirectFile::granted`] says so.
    Prefer,
    /// Through the page cache.
    Off,
}

/// What every write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// Nothing: durability is a separate [`crate::flush()`].
    None,
    /// `O_DSYNC`: the data, and the metadata needed to read it back, are durable when the write
    /// returns. Windows: `FILE_FLAG_WRITE_THROUGH`.
    Dsync,
    /// `O_SYNC`: all metadata too. Windows: the same as [`Self::Dsync`].
    Sync,
}

/// What opening really gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granted {
    /// Transfers go past the page cache.
    Direct,
    /// The flag was accepted and its effect is unknown: FUSE, network filesystems, kernels that do not report it.
    /// Transfers keep to the alignment as if they were direct.
    Unconfirmed,
    /// The kernel was asked not to keep pages. Pages that were cached earlier are still served,
    /// and small writes may pass through the cache. (`F_NOCACHE` on macOS, `O_DIRECT` on files of
    /// FreeBSD.)
    NotKept,
    /// Transfers go through the page cache, or that must be expected.
    Buffered,
}

impl std::fmt::Display for Granted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Unconfirmed => "accepted, effect unknown",
            Self::NotKept => "not kept in the cache",
            Self::Buffered => "buffered",
        })
    }
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither reading nor writing was asked for, or a new file without writing.
    #[error("`{}` was asked to be opened {how}", path.display())]
    NothingAsked {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        how: &'static str,
    },
    /// A directory, a pipe, a socket, a terminal …: nothing that holds data at offsets.
    #[error("`{}` is a {kind}, and only regular files and disks can be opened", path.display())]
    NotAFile {
        /// Which one.
        path: PathBuf,
        /// What it is ("directory").
        kind: &'static str,
    },
    /// Under [`Policy::Require`]: the system refuses direct I/O.
    #[error("`{}` cannot be opened for direct I/O: {reason}", path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// Who says so.
        reason: String,
        /// What the system said, if it was asked.
        #[source]
        source: Option<io::Error>,
    },
    /// Under [`Policy::Require`]: the flag is accepted, and transfers would be buffered.
    #[error("direct I/O on `{}` would be accepted and silently buffered: {reason}", path.display())]
    Buffers {
        /// Which file.
        path: PathBuf,
        /// Who says so.
        reason: String,
    },
    /// With [`OpenOptions::exclusive`]: somebody else holds it (mounted, locked, opened).
    #[error("`{}` is in use by somebody else", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system said no for any other reason.
    #[error("`{}` cannot be opened", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// The system's error number, if this came from the system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Busy { source, .. } | Self::Io { source, .. } => source.raw_os_error(),
            Self::Refused { source, .. } => source.as_ref().and_then(io::Error::raw_os_error),
            Self::NothingAsked { .. } | Self::NotAFile { .. } | Self::Buffers { .. } => None,
        }
    }

    /// The file in question.
    pub fn path(&self) -> &Path {
        match self {
            Self::NothingAsked { path, .. }
            | Self::NotAFile { path, .. }
            | Self::Refused { path, .. }
            | Self::Buffers { path, .. }
            | Self::Busy { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

/// How to open a file. Defaults: not for reading, not for writing, [`Policy::Require`],
/// [`SyncMode::None`], shared, mode `0o600`.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// use trueio_direct::{OpenOptions, Policy, SyncMode};
///
/// let file = OpenOptions::new()
///     .read(true)
///     .write(true)
///     .create_new(true)
///     .policy(Policy::Prefer)
///     .sync(SyncMode::Dsync)
///     .open(&path)?;
/// println!("{}: {}", file.granted(), file.reason());
/// # Ok::<(), trueio_direct::OpenError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) policy: Policy,
    pub(crate) sync: SyncMode,
    pub(crate) exclusive: bool,
    pub(crate) mode: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read: false,
            write: false,
            create: false,
            create_new: false,
            policy: Policy::Require,
            sync: SyncMode::None,
            exclusive: false,
            mode: 0o600,
        }
    }

    /// Whether the file may be read.
    #[must_use]
    pub fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }

    /// Whether the file may be written.
    #[must_use]
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Whether a new file is to be made. Opening then fails if the name exists in any form. A file
    /// made here is removed again when opening it fails.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Whether a file is made if there is none. One that exists is opened as it is.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How much direct I/O matters.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What every write waits for.
    #[must_use]
    pub fn sync(mut self, sync: SyncMode) -> Self {
        self.sync = sync;
        self
    }

    /// Whether nobody else may use it while it is open.
    ///
    /// | system  | disk                                  | regular file                            |
    /// |---------|---------------------------------------|-----------------------------------------|
    /// | Linux   | `O_EXCL`: refused if mounted or held  | `flock`, which binds who asks for one   |
    /// | macOS   | `O_EXLOCK`, which binds who asks too  | `O_EXLOCK`                              |
    /// | FreeBSD | `O_EXLOCK`                            | `O_EXLOCK`                              |
    /// | Windows | share mode 0, binding for everybody; volumes see [`crate::lock_volume`] | share mode 0 |
    ///
    /// On Linux `O_EXCL` does not keep others from opening the device without `O_EXCL`.
    #[must_use]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Permissions of a new file, reduced by the process's umask; ignored on Windows.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Opens `path`.
    ///
    /// # Errors
    /// [`OpenError`]. Less than the policy asks for is granted only under [`Policy::Prefer`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<DirectFile, OpenError> {
        let path = path.as_ref();
        let nothing = |how| Err(OpenError::NothingAsked { path: path.to_owned(), how });
        if !self.read && !self.write {
            return nothing("neither for reading nor for writing");
        }
        if (self.create || self.create_new) && !self.write {
            return nothing("as a new file, but not for writing");
        }
        if self.create && !self.create_new { self.open_or_create(path) } else { crate::os::open(path, self) }
    }

    /// Another process may make or remove the file between two attempts; a dangling symbolic link always seems to.
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

/// An open file, what was granted for it, and what its transfers must keep to.
#[derive(Debug)]
pub struct DirectFile {
    pub(crate) file: File,
    pub(crate) granted: Granted,
    pub(crate) alignment: Alignment,
    pub(crate) reason: String,
}

impl DirectFile {
    /// Takes over a file that is open already, and finds out from its flags and from a probe what it gives.
    ///
    /// *(Linux, Android)* Elsewhere an open file does not report whether it bypasses the cache.
    ///
    /// # Errors
    /// [`crate::ProbeError`]: neither a regular file nor a disk, or the probe failed;
    /// [`io::ErrorKind::Unsupported`] on other systems.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use trueio_direct::{DirectFile, Granted};
    ///
    /// let file = DirectFile::from_file(std::fs::File::create(folder.path().join("data")).unwrap())?;
    /// assert_eq!(file.granted(), Granted::Buffered);
    /// # }
    /// # Ok::<(), trueio_direct::ProbeError>(())
    /// ```
    pub fn from_file(file: File) -> Result<Self, crate::ProbeError> {
        crate::os::adopt(file)
    }

    /// The file itself, for any other call.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file itself; what was known of it is given up.
    pub fn into_file(self) -> File {
        self.file
    }

    /// What opening really gave.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// What transfers must keep to. Where the page cache is used: nothing.
    pub fn alignment(&self) -> &Alignment {
        &self.alignment
    }

    /// Why that was granted and who says so, as a sentence without a full stop.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Fills `buffer` from `offset`: see [`crate::read_exact_at`].
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<Transfer, TransferError> {
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
        transfer::read_at(&self.file, &self.alignment, buffer, offset)
    }

    /// Reads into `buffers`, one after another, until all are full or the file ends: see
    /// [`crate::read_vectored_at`].
    ///
    /// # Errors
    /// [`TransferError`], never [`TransferError::EndOfFile`].
    pub fn read_vectored_at(&self, buffers: &mut [io::IoSliceMut<'_>], offset: u64) -> Result<Transfer, TransferError> {
        transfer::read_vectored_at(&self.file, &self.alignment, buffers, offset)
    }

    /// Writes all of `buffers`, one after another, at `offset`: see [`crate::write_vectored_at`].
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn write_vectored_at(&self, buffers: &mut [io::IoSlice<'_>], offset: u64) -> Result<Transfer, TransferError> {
        transfer::write_vectored_at(&self.file, &self.alignment, buffers, offset)
    }

    /// Returns the length of the file, or the capacity of the disk, in bytes.
    ///
    /// # Errors
    /// What the system reported.
    pub fn size(&self) -> io::Result<u64> {
        crate::os::size_bytes(&self.file)
    }

    /// Writes all of `buffer` at `offset`: see [`crate::write_all_at`].
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn write_all_at(&self, buffer: &[u8], offset: u64) -> Result<Transfer, TransferError> {
        transfer::write_all_at(&self.file, &self.alignment, buffer, offset)
    }

    /// What a failed transfer on this file is likely to mean, where the system's word for it is poor;
    /// a guess, and to be shown as one.
    ///
    /// `EINVAL` on a direct file says that something about address, length or offset is wrong. Where
    /// the alignment is known, the check before the call would have named it; where it is not, this does.
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

    /// Makes what was written durable as far as `level`: see [`crate::flush()`].
    ///
    /// # Errors
    /// What the system said. After a failed flush, what was written before it may be lost.
    pub fn flush(&self, level: FlushLevel) -> io::Result<Flushed> {
        crate::flush::flush(&self.file, level)
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for DirectFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsHandle for DirectFile {
    fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
        self.file.as_handle()
    }
}

/// What a policy makes of the support that was found. `best` is what the system gives at best.
///
/// The one place where the policy is decided, for every system.
pub(crate) fn settle(
    path: &Path,
    policy: Policy,
    support: &Support,
    best: Granted,
    refusal: Option<io::Error>,
) -> Result<Granted, OpenError> {
    match (policy, support) {
        (Policy::Off, _) => Ok(Granted::Buffered),
        (Policy::Require | Policy::Prefer, Support::Unknown { .. }) if best == Granted::Direct => {
            Ok(Granted::Unconfirmed)
        }
        (Policy::Require, Support::Direct) if best == Granted::Direct => Ok(Granted::Direct),
        (Policy::Require, Support::Direct | Support::Unknown { .. }) => Err(OpenError::Refused {
            path: path.to_owned(),
            reason: format!("this system offers no more than \"{best}\", which the policy `Prefer` would accept"),
            source: refusal,
        }),
        (Policy::Require, Support::SilentlyBuffered { reason }) => {
            Err(OpenError::Buffers { path: path.to_owned(), reason: reason.clone() })
        }
        (Policy::Require, Support::Refused { reason }) => {
            Err(OpenError::Refused { path: path.to_owned(), reason: reason.clone(), source: refusal })
        }
        (Policy::Prefer, Support::Direct | Support::Unknown { .. }) => Ok(best),
        (Policy::Prefer, Support::SilentlyBuffered { .. } | Support::Refused { .. }) => Ok(Granted::Buffered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(policy: Policy, support: &Support, best: Granted) -> Result<Granted, OpenError> {
        settle(Path::new("data"), policy, support, best, None)
    }

    /// Every policy against every support, in one table: the rule of the whole crate.
    #[test]
    fn less_than_asked_for_is_granted_only_under_prefer() {
        let reason = || "because".to_owned();
        let (direct, unknown) = (Support::Direct, Support::Unknown { reason: reason() });
        let (buffers, refused) =
            (Support::SilentlyBuffered { reason: reason() }, Support::Refused { reason: reason() });
        for support in [&direct, &unknown, &buffers, &refused] {
            assert_eq!(settled(Policy::Off, support, Granted::Direct).unwrap(), Granted::Buffered);
        }
        for (support, granted) in [(&direct, Granted::Direct), (&unknown, Granted::Unconfirmed)] {
            assert_eq!(settled(Policy::Require, support, Granted::Direct).unwrap(), granted);
            assert_eq!(settled(Policy::Prefer, support, Granted::Direct).unwrap(), granted);
            assert_eq!(settled(Policy::Prefer, support, Granted::NotKept).unwrap(), Granted::NotKept);
            assert!(matches!(settled(Policy::Require, support, Granted::NotKept), Err(OpenError::Refused { .. })));
        }
        for support in [&buffers, &refused] {
            assert_eq!(settled(Policy::Prefer, support, Granted::Direct).unwrap(), Granted::Buffered);
        }
        assert!(matches!(settled(Policy::Require, &buffers, Granted::Direct), Err(OpenError::Buffers { .. })));
        assert!(matches!(settled(Policy::Require, &refused, Granted::Direct), Err(OpenError::Refused { .. })));
    }

    #[test]
    fn an_unexplained_refusal_is_guessed_at_only_where_the_alignment_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("data")).unwrap();
        let mut file =
            DirectFile { file, granted: Granted::Direct, alignment: Alignment::unknown(), reason: String::new() };
        let error = |kind: io::ErrorKind| TransferError::Io {
            write: true,
            offset: 0,
            wanted: 512,
            done: 0,
            source: kind.into(),
        };
        let guess = file.likely_cause(&error(io::ErrorKind::InvalidInput)).unwrap();
        assert!(guess.contains("not known, as nobody reports it"), "{guess}");
        assert_eq!(file.likely_cause(&error(io::ErrorKind::StorageFull)), None);
        file.alignment = Alignment::uniform(512, AlignmentSource::Statx);
        assert_eq!(file.likely_cause(&error(io::ErrorKind::InvalidInput)), None);
    }
}
