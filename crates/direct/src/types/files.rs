//! Options for opening a file, and the open file.

use super::support::Support;
use crate::alignment::Alignment;
use crate::block_locks::{self, DiskKey, RangeLock};
use crate::transfer::TransferError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Policy for direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Direct I/O is required. Opening fails where the flag is refused, and where it is known to be accepted and
    /// ignored.
    Require,
    /// Direct I/O is preferred. Where it is not available the file is buffered; [`DirectFile::granted`] reports that.
    Prefer,
    /// No direct I/O: the file uses the page cache.
    Off,
}

impl Policy {
    /// Returns the name that the bindings use: "require", "prefer" or "off".
    pub fn name(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::Prefer => "prefer",
            Self::Off => "off",
        }
    }
}

/// Durability of each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// Writes are not durable until a [`crate::flush()`].
    None,
    /// `O_DSYNC`: the data, and the metadata needed to read them, are durable when the write returns.
    /// Windows: `FILE_FLAG_WRITE_THROUGH`.
    Dsync,
    /// `O_SYNC`: all metadata, too. Windows: the same as [`Self::Dsync`].
    Sync,
}

/// What opening really granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granted {
    /// Transfers bypass the page cache.
    Direct,
    /// The flag was accepted and its effect is unknown: FUSE, network filesystems, kernels that do not report it.
    /// Transfers are checked against the alignment as if they were direct.
    Unconfirmed,
    /// The kernel is requested not to keep pages (`F_NOCACHE` on macOS, `O_DIRECT` on files of FreeBSD). Pages that
    /// were cached earlier are still used, and small writes may use the cache.
    NotKept,
    /// Transfers use the page cache, or that must be expected.
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

/// Error of opening a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The options contain neither reading nor writing, or a new file without writing.
    #[error("`{}` was not opened: {how}", path.display())]
    NothingAsked {
        /// The path.
        path: PathBuf,
        /// What is wrong with the options.
        how: &'static str,
    },
    /// A directory, a pipe, a socket, a terminal …: it has no data at offsets.
    #[error("`{}` is a {kind}, and only regular files and disks can be opened", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// Kind of the file ("directory").
        kind: &'static str,
    },
    /// Under [`Policy::Require`]: the system refuses direct I/O.
    #[error("`{}` cannot be opened for direct I/O: {reason}", path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// Reason and source.
        reason: String,
        /// The system's error, if there is one.
        #[source]
        source: Option<io::Error>,
    },
    /// Under [`Policy::Require`]: the flag is accepted, and transfers would be buffered.
    #[error("direct I/O on `{}` would be accepted and silently buffered: {reason}", path.display())]
    Buffers {
        /// The path.
        path: PathBuf,
        /// Reason and source.
        reason: String,
    },
    /// With [`OpenOptions::exclusive`]: it is in use (mounted, locked, opened).
    #[error("`{}` is in use by another process or mounted", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Opening failed for any other reason.
    #[error("`{}` cannot be opened", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// Returns the system's error number, if the error is the system's; on Unix, that of a directory is `EISDIR`.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Busy { source, .. } | Self::Io { source, .. } => source.raw_os_error(),
            Self::Refused { source, .. } => source.as_ref().and_then(io::Error::raw_os_error),
            Self::NotAFile { kind, .. } => crate::os::number_of_kind(kind),
            Self::NothingAsked { .. } | Self::Buffers { .. } => None,
        }
    }

    /// Returns the path of the file.
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

/// Options for opening a file.
///
/// Defaults: neither reading nor writing, [`Policy::Require`], [`SyncMode::None`], shared, mode `0o600`.
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
    /// Returns the defaults.
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

    /// Opens the file for reading.
    #[must_use]
    pub fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }

    /// Opens the file for writing.
    #[must_use]
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Creates a new file. Opening fails if the name exists in any form. If opening fails after the file was created,
    /// the file is removed.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Creates the file if it does not exist. An existing file is opened as it is.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets the policy for direct I/O.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the durability of each write.
    #[must_use]
    pub fn sync(mut self, sync: SyncMode) -> Self {
        self.sync = sync;
        self
    }

    /// Opens the file for exclusive use.
    ///
    /// | system  | disk                                  | regular file                            |
    /// |---------|---------------------------------------|-----------------------------------------|
    /// | Linux   | `O_EXCL`: fails if mounted or held    | `flock`, advisory                       |
    /// | macOS   | `O_EXLOCK`, advisory                  | `O_EXLOCK`, advisory                    |
    /// | FreeBSD | `O_EXLOCK`, advisory                  | `O_EXLOCK`, advisory                    |
    /// | Windows | share mode 0, mandatory; for volumes see [`crate::lock_volume`] | share mode 0, mandatory |
    ///
    /// On Linux, another process can still open the disk without `O_EXCL`.
    #[must_use]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets the permissions of a new file, reduced by the process's umask; ignored on Windows.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }
}

/// An open file with what was granted and the alignment of its transfers.
#[derive(Debug)]
pub struct DirectFile {
    pub(crate) file: File,
    pub(crate) granted: Granted,
    pub(crate) alignment: Alignment,
    pub(crate) reason: String,
    /// The file was opened to append, so the system ignores the offsets of writes.
    appends: bool,
    /// The number of the disk, which is the key of its locks; [`None`] for regular files.
    disk: OnceLock<Option<DiskKey>>,
    /// The same file without direct I/O; it is opened when a part of a block is written first.
    buffered: OnceLock<File>,
    /// Held while the file is opened again.
    opening: Mutex<()>,
    /// The block to which the alignment of writes can grow while the file is open; [`None`] if it cannot.
    shared_block: OnceLock<Option<u32>>,
    /// A direct read into memory that is not present would go through the page cache.
    reads_need_present_memory: OnceLock<bool>,
}

impl DirectFile {
    pub(crate) fn new(file: File, granted: Granted, alignment: Alignment, reason: String) -> Self {
        Self {
            file,
            granted,
            alignment,
            reason,
            appends: false,
            disk: OnceLock::new(),
            buffered: OnceLock::new(),
            opening: Mutex::new(()),
            shared_block: OnceLock::new(),
            reads_need_present_memory: OnceLock::new(),
        }
    }

    /// As [`Self::new`], for a file that was opened elsewhere, perhaps to append.
    pub(crate) fn adopted(file: File, granted: Granted, alignment: Alignment, reason: String) -> io::Result<Self> {
        let appends = crate::os::appends(&file)?;
        Ok(Self { appends, ..Self::new(file, granted, alignment, reason) })
    }

    /// Refuses writes to a file that was opened to append.
    pub(crate) fn refuse_append(&self, offset: u64, wanted: usize) -> Result<(), TransferError> {
        if self.appends { Err(TransferError::Appends { offset, wanted }) } else { Ok(()) }
    }

    /// Returns the key of the disk's locks; [`None`] for regular files.
    pub(crate) fn disk(&self) -> Option<DiskKey> {
        *self.disk.get_or_init(|| crate::os::disk_key(&self.file))
    }

    /// Waits until no part of a block in the range is being read, changed and written, and keeps others from that until
    /// the result is dropped. Of a regular file, nothing is locked.
    ///
    /// # Errors
    /// The file was opened to append, or the write would be buffered by now: see [`Self::grown_write_offset`].
    pub(crate) fn share(&self, offset: u64, length: usize) -> Result<Option<RangeLock>, TransferError> {
        self.refuse_append(offset, length)?;
        if let Some(grown) = self.grown_write_offset(offset, length) {
            let alignment = Alignment { write_offset_bytes: Some(grown), ..self.alignment.clone() };
            // The address is checked with the alignment at the time of opening.
            crate::check_transfer(&alignment, 0, length, offset, true)?;
        }
        Ok(self.disk().map(|disk| block_locks::shared(disk, offset..offset.saturating_add(length as u64))))
    }

    /// Returns the alignment of the offset of a write, in bytes, if it has grown since the file was opened; [`None`] if not,
    /// or if the write suits every alignment. Once blocks of a file of XFS are shared with another file (`cp --reflink`), a direct
    /// write of a part of a block is accepted and buffered. The kernel is asked only for writes of parts of such blocks.
    ///
    /// Limits: blocks that become shared between this call and the write; kernels before 6.16 report no such growth.
    pub(crate) fn grown_write_offset(&self, offset: u64, length: usize) -> Option<u32> {
        let known = self.alignment.write_offset_bytes.filter(|_| self.granted == Granted::Direct)?;
        let block = (*self.shared_block.get_or_init(|| crate::os::shared_block(&self.file)))?;
        if known >= block || (offset | length as u64).is_multiple_of(u64::from(block)) {
            return None;
        }
        crate::os::write_offset_now(&self.file).filter(|now| *now > known)
    }

    /// Prepares memory for a read. A read of a file that is not direct needs nothing.
    pub(crate) fn prepare(&self, memory: &mut [u8]) {
        if self.granted != Granted::Buffered
            && *self.reads_need_present_memory.get_or_init(|| crate::os::reads_need_present_memory(&self.file))
        {
            crate::os::make_present(memory);
        }
    }

    /// Returns a second descriptor of the file that is not direct, opened for writing. It is kept until the file is
    /// closed, because closing a descriptor releases the process's POSIX locks on the file: fcntl_locking(2).
    ///
    /// # Errors
    /// The file cannot be opened again.
    pub(crate) fn buffered(&self) -> io::Result<&File> {
        if let Some(file) = self.buffered.get() {
            return Ok(file);
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match self.buffered.get() {
            Some(file) => Ok(file),
            None => crate::os::open_buffered(&self.file).map(|file| self.buffered.get_or_init(|| file)),
        }
    }

    /// Returns the file, for any other call.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file, without what was granted and its alignment.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Returns what opening really granted. It holds for every later transfer that is not refused: on XFS, a write of a part of a block
    /// that has become shared with another file is refused as misaligned. To ask again, open the file again.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Returns the alignment of transfers. Where the page cache is used, none is required.
    pub fn alignment(&self) -> &Alignment {
        &self.alignment
    }

    /// Returns the reason for what was granted, with its source, as a sentence without a full stop.
    pub fn reason(&self) -> &str {
        &self.reason
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

/// Applies the policy to the support that was found, for every system. `best` is the most that the system grants.
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
            reason: format!("this system grants at most \"{best}\"; the policy `Prefer` accepts that"),
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

    /// Each policy with each support.
    #[test]
    fn only_prefer_grants_less_than_direct() {
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
}
