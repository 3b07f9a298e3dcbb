//! Probes whether direct I/O is available, and names the source of the answer.
//!
//! That `open` accepts `O_DIRECT` proves nothing: tmpfs, ext4 with `data=journal` and older ZFS accept the flag and
//! use the page cache; btrfs does so for writes to files with checksums, and reads past the cache. Reading and writing
//! therefore have separate answers. A probe consults the filesystem (`statx`), then what is known of its type, then
//! the underlying device, and reports which of them answered. A missing answer is "unknown"; an answer of zero is "no".
//!
//! Limits: what a FUSE daemon, a network server, a hypervisor or the drive does with a request is not visible here.
//! Counters of the block layer show some of it, power loss the rest.

use crate::alignment::Alignment;
use crate::types::{Answer, Probe, ProbeError, Support};
use std::fs::File;
use std::io;
use std::path::Path;

/// Probes the existing file or disk at `path`. It is opened for reading and closed again; nothing is written. On
/// Linux a file without read permission is probed by its name.
///
/// # Errors
/// [`ProbeError`]: neither a regular file nor a disk, or it cannot be opened. A missing answer is not an
/// error but [`Support::Unknown`].
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
///     Support::SilentlyBuffered { reason } => println!("silently buffered: {reason}"),
///     Support::Refused { reason } => println!("refused: {reason}"),
///     Support::Unknown { reason } => println!("unknown: {reason}"),
///     other => println!("{other:?}"),
/// }
/// # Ok::<(), trueio_direct::ProbeError>(())
/// ```
pub fn probe(path: impl AsRef<Path>) -> Result<Probe, ProbeError> {
    let path = path.as_ref();
    crate::os::probe(path).map_err(|error| error.with_path(path))
}

/// Probes what a new file in the directory at `path` would offer.
///
/// It creates an empty file and probes that. On Linux the file has no name (`O_TMPFILE`); where that is not possible
/// it is named `.trueio-probe-` and a number, and removed afterwards. On a read-only filesystem an existing file of the
/// directory is probed; without one, the answer is [`Support::Unknown`].
///
/// # Errors
/// [`ProbeError`]: `path` is not a directory, or no file can be created in it.
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
    // Unlikely to exist; `create_new` fails if it does.
    let nanoseconds = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    let name = path.join(format!(".trueio-probe-{}-{nanoseconds}", std::process::id()));
    let file = match File::options().read(true).write(true).create_new(true).open(&name) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(probe_read_only(path)),
        other => other.map_err(failed)?,
    };
    let answer = probe_file(&file).map_err(|error| error.with_path(path));
    drop(file);
    std::fs::remove_file(&name).map_err(failed)?;
    answer
}

/// Probes an existing file in the directory at `path`, in which none can be created.
fn probe_read_only(path: &Path) -> Probe {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    if let Some(probe) = files.find_map(|entry| probe(entry.path()).ok()) {
        return probe;
    }
    let reason = "the filesystem is read-only, and the directory has no file to probe".to_owned();
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

/// Probes an open file, with or without direct I/O.
///
/// # Errors
/// As [`probe`].
pub fn probe_file(file: &File) -> Result<Probe, ProbeError> {
    crate::os::probe_file(file)
}
