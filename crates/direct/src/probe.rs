//! Can direct I/O be had here, and who says so?
//!
//! That `open` accepts `O_DIRECT` proves nothing: tmpfs, ext4 with `data=journal` and older ZFS accept the flag and
//! use the page cache all the same; btrfs does so for writes to files with checksums and reads past the cache. So
//! reading and writing have an answer each. A probe asks the filesystem first
//! (`statx`), then what is known about filesystems of its type, then the device below, and says
//! which of them answered. A missing answer is "unknown"; an answer of zero is "no".
//!
//! Cannot see: what a FUSE daemon, a network server, a hypervisor or the drive does with the
//! request. Only counters of the block layer, and in the end power loss, show that.

use crate::alignment::Alignment;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Whether direct I/O can be had on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The filesystem or the block device says so itself.
    Direct,
    /// The flag is accepted and the page cache is used all the same, or that must be expected.
    SilentlyBuffered {
        /// Who says so, as a sentence without a full stop.
        reason: String,
    },
    /// The flag is refused.
    Refused {
        /// Who says so, as a sentence without a full stop.
        reason: String,
    },
    /// The flag is accepted, and nobody says what becomes of it.
    Unknown {
        /// What was asked and gave no answer, as a sentence without a full stop.
        reason: String,
    },
}

/// Yes, no, or nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Somebody says yes.
    Yes,
    /// Somebody says no.
    No,
    /// Nobody says, or it could not be asked.
    Unknown,
}

/// Limits of writes that a power loss cannot tear (`RWF_ATOMIC`). *(Linux 6.11 or later)*
///
/// An atomic write is a power of two bytes long, from `min_bytes` to `max_bytes`, at an offset
/// that is a multiple of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicWrite {
    /// The smallest, in bytes.
    pub min_bytes: u32,
    /// The largest, in bytes.
    pub max_bytes: u32,
    /// The largest that needs no slower path (software copy on write), in bytes; 0: not reported,
    /// and then statx(2) says to take `max_bytes`.
    pub max_fast_bytes: u32,
    /// How many buffers one such write may gather.
    pub segments_max: u32,
}

/// What a file offers. Nothing was written to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Whether reads and writes are direct. This is the answer for writing, which is the weaker one where the two differ.
    pub support: Support,
    /// The source of `support`, as a sentence without a full stop.
    pub reason: String,
    /// What direct reads and writes require. Where the page cache is used: nothing.
    pub alignment: Alignment,
    /// Whether reads are direct in a file that is opened for reading only.
    pub read_support: Support,
    /// What those reads require.
    pub read_alignment: Alignment,
    /// Limits of atomic writes; [`None`] unless `atomic_write_answer` is [`Answer::Yes`].
    pub atomic_write: Option<AtomicWrite>,
    /// Whether atomic writes can be had: a report of zeros is no, no report is unknown.
    pub atomic_write_answer: Answer,
    /// Whether buffered I/O that leaves nothing in the cache can be had (`RWF_DONTCACHE`, Linux
    /// 6.14). Unknown where the file is not open for reading.
    pub uncached_buffered: Answer,
    /// What kind of filesystem this is, in its own name ("ext4"); "the block device" on one.
    pub filesystem: String,
}

/// Why a probe gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A directory, a pipe, a socket, a terminal …: nothing that holds data at offsets.
    #[error("{} is a {kind}, and only regular files and disks can be probed", subject(path))]
    NotAFile {
        /// Which one; [`None`] if an open file was given.
        path: Option<PathBuf>,
        /// What it is ("directory").
        kind: &'static str,
    },
    /// It could not be opened or asked.
    #[error("{} cannot be probed", subject(path))]
    Io {
        /// Which one; [`None`] if an open file was given.
        path: Option<PathBuf>,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

fn subject(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(|| "the open file".to_owned(), |path| format!("`{}`", path.display()))
}

impl ProbeError {
    pub(crate) fn with_path(self, path: &Path) -> Self {
        let path = Some(path.to_owned());
        match self {
            Self::NotAFile { kind, .. } => Self::NotAFile { path, kind },
            Self::Io { source, .. } => Self::Io { path, source },
        }
    }

    /// The system's error number, if this came from the system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::NotAFile { .. } => None,
            Self::Io { source, .. } => source.raw_os_error(),
        }
    }
}

/// Asks what the existing file or disk at `path` offers. It is opened for reading and closed again;
/// nothing is written. On Linux a file that may not be read is asked all the same, by its name.
///
/// # Errors
/// [`ProbeError`]: it is neither a regular file nor a disk, or cannot be opened. A system that does
/// not answer is not an error: that is [`Support::Unknown`].
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// # std::fs::write(&path, b"x").unwrap();
/// use trueio_direct::{Support, probe};
///
/// let probe = probe(&path)?;
/// match &probe.support {
///     Support::Direct => println!("direct: {}", probe.alignment),
///     Support::SilentlyBuffered { reason } => println!("accepted and ignored: {reason}"),
///     Support::Refused { reason } => println!("refused: {reason}"),
///     Support::Unknown { reason } => println!("nobody says: {reason}"),
/// }
/// # Ok::<(), trueio_direct::ProbeError>(())
/// ```
pub fn probe(path: impl AsRef<Path>) -> Result<Probe, ProbeError> {
    let path = path.as_ref();
    crate::os::probe(path).map_err(|error| error.with_path(path))
}

/// Asks what a new file in the folder at `path` would be offered, before there is one.
///
/// An empty file is made and asked. On Linux it has no name (`O_TMPFILE`) and nobody sees it; where
/// there are no such files it is called `.trueio-probe-` and a number, and removed again. On a read-only filesystem a
/// file that is already in the folder is probed; without one, the answer is [`Support::Unknown`].
///
/// # Errors
/// [`ProbeError`]: this is not a folder, or no file can be made in it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let probe = trueio_direct::probe_directory(folder.path())?;
/// println!("a new file here: {}", probe.reason);
/// # Ok::<(), trueio_direct::ProbeError>(())
/// ```
pub fn probe_directory(path: impl AsRef<Path>) -> Result<Probe, ProbeError> {
    let path = path.as_ref();
    let failed = |source| ProbeError::Io { path: Some(path.to_owned()), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    if let Ok(file) = crate::os::unnamed_file(path) {
        return probe_file(&file).map_err(|error| error.with_path(path));
    }
    // Any number that no living process uses at the same time; `create_new` guards against the rest.
    let moment = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    let name = path.join(format!(".trueio-probe-{}-{moment}", std::process::id()));
    let file = match File::options().read(true).write(true).create_new(true).open(&name) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(probe_read_only(path)),
        other => other.map_err(failed)?,
    };
    let answer = probe_file(&file).map_err(|error| error.with_path(path));
    drop(file);
    std::fs::remove_file(&name).map_err(failed)?;
    answer
}

/// Probes a file in the folder at `path`, in which none can be made.
fn probe_read_only(path: &Path) -> Probe {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    if let Some(probe) = files.find_map(|entry| probe(entry.path()).ok()) {
        return probe;
    }
    let reason = "the filesystem is read-only, and the folder holds no file that could be probed".to_owned();
    let support = Support::Unknown { reason: reason.clone() };
    Probe {
        read_support: support.clone(),
        read_alignment: Alignment::unknown(),
        support,
        reason,
        alignment: Alignment::unknown(),
        atomic_write: None,
        atomic_write_answer: Answer::Unknown,
        uncached_buffered: Answer::Unknown,
        filesystem: "a read-only filesystem".to_owned(),
    }
}

/// The same of a file that is already open, with or without direct I/O.
///
/// # Errors
/// As [`probe`].
pub fn probe_file(file: &File) -> Result<Probe, ProbeError> {
    crate::os::probe_file(file)
}
