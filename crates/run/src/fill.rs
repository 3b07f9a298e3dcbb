//! Creates and extends files. After an error or a signal, a created file is removed and an extended file is truncated
//! to its old length; data of other programs is neither removed nor truncated.
//!
//! A path is removed only while it refers to the created file. An existing file is truncated only while it ends where
//! this module stopped writing. Data is added to an existing file with `O_APPEND`, so that a line that another program
//! appends at the same time is not overwritten.
//!
//! Limit: Linux cannot truncate a file on a condition. Another program may append between the `fstat` that reads the
//! length and the `ftruncate` that follows.

use crate::Observer;
use crate::file_error::FileError;
use crate::held::{Held, HoldError};
use crate::sharing::Sharing;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_direct::{AlignedBuffer, DirectFile, LockError, LockMode, OpenOptions, Policy};
use trueio_engine::{FileFill, unlink_same};
use trueio_model::{Content, FilePlan, JobPlan, Prepare};

/// Bytes written at once when a file is filled.
const FILL_BYTES: usize = 4 << 20;

/// For how long a file that another run creates may keep its length before it counts as complete, or the other run as stuck.
pub(crate) const STILL: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(5) };

/// Creates a directory that only this user can access. A directory of the same user that appeared after planning is
/// accepted, because another run may have created it. A link, or a directory of another user, is refused.
pub(crate) fn make_directory(path: &str) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(path)?;
            let is_ours = found.uid() == rustix::process::geteuid().as_raw();
            match found.is_dir() && is_ours {
                true => Ok(()),
                false => Err(io::Error::other("another program created this path after the run was planned")),
            }
        }
        made => made,
    }
}

/// What is written to files before a run.
#[derive(Debug, Clone)]
pub(crate) struct Filling {
    content: Content,
    block_bytes: u64,
    seed: u64,
}

impl Filling {
    /// What the job would write.
    pub(crate) fn of(job: &JobPlan) -> Self {
        Self { content: job.content.clone(), block_bytes: job.pattern.write_sizes.max_bytes(), seed: job.seed ^ 0xf111 }
    }

    /// Returns the content of a file from offset `at` on.
    fn from(&self, at: u64) -> FileFill {
        FileFill::new(&self.content, self.block_bytes, self.seed, at)
    }
}

/// How a file got its space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Space {
    /// As planned.
    AsPlanned,
    /// Written out, because the filesystem does not allocate space ahead. The reason is the error of the call.
    WrittenInstead {
        /// The error of `fallocate`, as the system words it.
        reason: String,
    },
}

impl Space {
    /// Returns a sentence about a file whose space is not as planned.
    pub(crate) fn note(&self, path: &str) -> Option<String> {
        let Self::WrittenInstead { reason } = self else { return None };
        Some(format!(
            "`{path}`: its filesystem does not allocate space ahead (fallocate: {reason}), so the file was filled before the run \
             and the job overwrites it"
        ))
    }
}

/// Allocates space by `allocate`, or writes it by `write` where the filesystem does not support that (ext2, ext3, exFAT, many
/// FUSE filesystems, NFS before 4.2).
fn allocate_or_write(
    allocate: impl FnOnce() -> io::Result<()>,
    failed: impl FnOnce(io::Error) -> FileError,
    write: impl FnOnce() -> Result<(), FileError>,
) -> Result<Space, FileError> {
    match allocate() {
        Ok(()) => Ok(Space::AsPlanned),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            write()?;
            Ok(Space::WrittenInstead { reason: error.to_string() })
        }
        Err(error) => Err(failed(error)),
    }
}

/// A lock of a file against other runs while it gets its length (flock(2)), so that two runs do not fill one file at the same time.
/// Released when it is dropped.
struct FillLock<'a>(Option<&'a File>);

impl<'a> FillLock<'a> {
    /// Waits for the lock while the file grows, and for [`STILL`] at one length. Returns without the lock after that, and where the
    /// filesystem has no locks: the callers compare the length in any case.
    fn take(file: &'a File, stop: &AtomicBool) -> Result<Self, FileError> {
        let (mut is_held, mut is_stopped) = (false, false);
        await_growth(STILL, || {
            match trueio_direct::try_lock(file, LockMode::Exclusive) {
                Ok(()) => is_held = true,
                Err(LockError::Held(_)) if stop.load(Relaxed) => is_stopped = true,
                Err(LockError::Held(_)) => return file.metadata().ok().map(|found| found.len()),
                Err(_) => {}
            }
            None
        });
        // Another run has the file: it stays as it is. Without one, a stop ends the filling, which removes what it made.
        if is_stopped { Err(FileError::Stopped) } else { Ok(Self(is_held.then_some(file))) }
    }
}

impl Drop for FillLock<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            let _ = trueio_direct::unlock(file);
        }
    }
}

/// A file that was created and prepared.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) file: File,
    pub(crate) space: Space,
    /// Time of the call that created it.
    pub(crate) create_ns: u64,
}

/// Creates a file that must not exist yet, and fills it or allocates its space.
pub(crate) fn create(
    file: &FilePlan,
    sharing: Sharing,
    filling: &Filling,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Created, FileError> {
    let path = Path::new(&file.path);
    let began = Instant::now();
    let created = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .policy(Policy::Prefer)
        .mode(sharing.access.mode())
        .open(path)
        .map_err(|source| FileError::Create { path: file.path.clone(), source: Box::new(source) })?;
    let create_ns = began.elapsed().as_nanos() as u64;
    if file.remove_after {
        unlink_same(path, created.file()).map_err(|source| FileError::Unlink { path: file.path.clone(), source })?;
    }
    let space = fill_created(&created, file, sharing, filling, stop, observer)?;
    Ok(Created { file: created.into_file(), space, create_ns })
}

/// Gives a file that was just created its length, unless another run that found it empty did that meanwhile.
fn fill_created(
    created: &DirectFile,
    file: &FilePlan,
    sharing: Sharing,
    filling: &Filling,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Space, FileError> {
    let (end_bytes, path) = (sharing.end_bytes, Path::new(&file.path));
    let has_length = !matches!(file.prepare, Prepare::CreateEmpty | Prepare::CreateReserved);
    let _lock = if has_length { Some(FillLock::take(created.file(), stop)?) } else { None };
    if has_length && sharing.may_appear && created.file().metadata().is_ok_and(|found| found.len() == end_bytes) {
        return Ok(Space::AsPlanned);
    }
    let (mut written, mut is_filled) = (0, false);
    let failed = |attempted, source| fill_error(file, attempted, 0, end_bytes, source);
    let mut fill_it = || {
        is_filled = true;
        fill(created, file, end_bytes, filling, &mut written, stop, observer)
    };
    let result = match file.prepare {
        Prepare::CreateFilled => fill_it().map(|()| Space::AsPlanned),
        Prepare::CreateAllocated => allocate_or_write(
            || trueio_direct::preallocate(created.file(), 0, end_bytes),
            |source| failed("allocating space", source),
            fill_it,
        ),
        Prepare::CreateReserved => reserve(created.file(), 0, end_bytes)
            .map(|()| Space::AsPlanned)
            .map_err(|source| failed("allocating space after its end", source)),
        Prepare::CreateSparse => created
            .file()
            .set_len(end_bytes)
            .map(|()| Space::AsPlanned)
            .map_err(|source| failed("setting its length", source)),
        _ => Ok(Space::AsPlanned),
    };
    let Err(error) = &result else { return result };
    // A partly filled file under its final name would be mistaken for a complete one, so it is removed. A file
    // longer than what was written here holds data that another program appended, and stays.
    let own_bytes = match error {
        FileError::Stopped => written,
        _ if is_filled => written + FILL_BYTES as u64,
        _ => end_bytes,
    };
    let is_own = created.file().metadata().is_ok_and(|found| found.len() <= own_bytes);
    if !file.remove_after && is_own {
        // Does not remove another file that has the path now.
        let _ = unlink_same(path, created.file());
    }
    result
}

/// Waits while `growing` returns the length of a file that another program fills, but no longer than `still` at one length. Returns
/// true if it waited.
pub(crate) fn await_growth(still: Duration, mut growing: impl FnMut() -> Option<u64>) -> bool {
    let (mut last, mut since, mut has_waited) = (None, Instant::now(), false);
    while let Some(length) = growing() {
        if last != Some(length) {
            (last, since) = (Some(length), Instant::now());
        } else if since.elapsed() >= still {
            break;
        }
        has_waited = true;
        std::thread::sleep(Duration::from_millis(5));
    }
    has_waited
}

/// Waits until a file that appeared after planning is as long as planned. Another run, or another server, may be creating it: two
/// runs that share a file do this at the same time. The file is neither truncated nor extended here.
///
/// # Errors
/// It is a link, belongs to another user, or does not get the planned length: then it is not the file that was planned.
pub(crate) fn await_appeared(file: &FilePlan, held: &Held, end_bytes: u64, stop: &AtomicBool) -> Result<(), FileError> {
    let is_filled_later = matches!(file.prepare, Prepare::CreateEmpty | Prepare::CreateReserved);
    let changed = |error: HoldError| error.of("", &file.path);
    let (mut length, mut still_since) = (u64::MAX, Instant::now());
    loop {
        let entry = held.entry().map_err(changed)?;
        let failed = |source| fill_error(file, "using the file that another program created", 0, end_bytes, source);
        let found = std::fs::metadata(&entry.path).map_err(failed)?;
        if !found.is_file() || found.nlink() != 1 || found.uid() != rustix::process::geteuid().as_raw() {
            let text = "after the run was planned, and it is no file of this user with one name";
            return Err(failed(io::Error::other(text)));
        }
        if found.len() == end_bytes || (is_filled_later && found.len() < end_bytes) {
            return Ok(());
        }
        if stop.load(Relaxed) {
            return Err(FileError::Stopped);
        }
        if found.len() != length {
            (length, still_since) = (found.len(), Instant::now());
        } else if still_since.elapsed() >= STILL {
            let text = format!("after the run was planned, and it has {length} bytes, which is not the planned length");
            return Err(failed(io::Error::other(text)));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Checks, before a later phase, that another program has not extended a file to which a job of that phase appends:
/// the job would overwrite the added data. Does nothing for a file that was extended to its final length before the
/// first phase.
pub(crate) fn check_growth(file: &FilePlan, held: &Held, sharing: Sharing) -> Result<(), FileError> {
    let Some(there) = file.extends_from.filter(|there| sharing.phase_begin_bytes_max >= *there) else { return Ok(()) };
    if !matches!(file.prepare, Prepare::CreateEmpty | Prepare::CreateReserved) {
        return Ok(());
    }
    let failed = |source| fill_error(file, "appending to it", file.offset_bytes, sharing.end_bytes, source);
    let entry = held.entry().map_err(|error| error.of("", &file.path))?;
    let length = std::fs::metadata(&entry.path).map_err(failed)?.len();
    if sharing.may_be_filled_by_others(there) && length <= sharing.end_bytes {
        return Ok(());
    }
    if length > sharing.earlier_end_bytes.max(there) {
        let grown = format!("another program extended it after the run was planned: it has {length} bytes");
        return Err(failed(std::io::Error::other(grown)));
    }
    Ok(())
}

/// Frees the space of a file that this process created; it keeps its length.
///
/// A hole is punched, so that other ranks never see another length; where the filesystem cannot do that, the file is truncated.
pub(crate) fn renew(file: &FilePlan, held: &Held, end_bytes: u64) -> Result<(), FileError> {
    let failed = |source| fill_error(file, "emptying it", 0, end_bytes, source);
    let entry = held.entry().map_err(|error| error.of("", &file.path))?;
    let opened = File::options().write(true).open(&entry.path).map_err(failed)?;
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&opened, flags, 0, end_bytes.max(1)) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            opened.set_len(0).and_then(|()| opened.set_len(end_bytes)).map_err(failed)
        }
        other => other.map_err(|errno| failed(errno.into())),
    }
}

/// Extends an existing file of at least `there` bytes and keeps its content. After an error, the file has its old
/// length again, unless another program appended to it.
pub(crate) fn extend(
    file: &FilePlan,
    held: &Held,
    there: u64,
    sharing: Sharing,
    filling: &Filling,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Space, FileError> {
    let end_bytes = sharing.end_bytes;
    let failed = |attempted, source: io::Error| fill_error(file, attempted, there, end_bytes, source);
    let changed = |error: HoldError| error.of("", &file.path);
    let entry = held.entry().map_err(changed)?;
    // Not with direct I/O: the existing content may end at an unaligned offset.
    let opened = std::fs::OpenOptions::new().read(true).append(true).open(&entry.path);
    let opened = opened.map_err(|source| failed("opening it to extend it", source))?;
    held.confirm(&opened).map_err(changed)?;
    let lock = FillLock::take(&opened, stop)?;
    let length_of = |file: &File| Ok(file.metadata()?.len());
    let length = length_of(&opened).map_err(|source| failed("reading its length", source))?;
    if length < there {
        let source = io::Error::other(format!("it became shorter after the run was planned: it has {length} bytes"));
        return Err(failed("extending it", source));
    }
    if length > there && sharing.may_be_filled_by_others(there) {
        drop(lock);
        return await_appeared(file, held, end_bytes, stop).map(|()| Space::AsPlanned);
    }
    if length > there && sharing.begin_bytes_max >= there {
        // A job that appends would overwrite what another program added.
        let source = io::Error::other(format!("it became longer after the run was planned: it has {length} bytes"));
        return Err(failed("appending to it", source));
    }
    if length >= end_bytes {
        return Ok(Space::AsPlanned);
    }
    // The contiguous range that was added here.
    let mut own = length..length;
    let mut append_to_it = || append(&opened, file, &mut own, end_bytes, filling, stop, observer);
    let result = match file.prepare {
        Prepare::CreateFilled => append_to_it().map(|()| Space::AsPlanned),
        Prepare::CreateAllocated => allocate_or_write(
            || trueio_direct::preallocate(&opened, length, end_bytes - length),
            |source| failed("allocating space", source),
            append_to_it,
        ),
        Prepare::CreateReserved => reserve(&opened, length, end_bytes - length)
            .map(|()| Space::AsPlanned)
            .map_err(|source| failed("allocating space after its end", source)),
        Prepare::CreateSparse => {
            own.end = end_bytes;
            let lengthened = opened.set_len(end_bytes).map_err(|source| failed("setting its length", source));
            lengthened.map(|()| Space::AsPlanned)
        }
        _ => Ok(Space::AsPlanned),
    };
    if result.is_err() && !own.is_empty() && length_of(&opened).is_ok_and(|length| length == own.end) {
        let _ = opened.set_len(own.start);
    }
    result
}

/// Appends random content to a file until it has `end_bytes`, and flushes it. `own` is the contiguous range that was
/// added. If another program appended in between, `own` is the range after that, and the call fails.
fn append(
    mut opened: &File,
    file: &FilePlan,
    own: &mut Range<u64>,
    end_bytes: u64,
    filling: &Filling,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), FileError> {
    let failed = |at, source: io::Error| fill_error(file, "writing it before the run", at, end_bytes, source);
    let mut content = filling.from(own.end);
    let mut buffer = vec![0; FILL_BYTES];
    while own.end < end_bytes {
        if stop.load(Relaxed) {
            return Err(FileError::Stopped);
        }
        let length = (end_bytes - own.end).min(FILL_BYTES as u64) as usize;
        content.fill(&mut buffer[..length]);
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let written = match opened.write(rest) {
                Ok(0) => return Err(failed(own.end, io::ErrorKind::WriteZero.into())),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(own.end, error)),
            };
            // After an append, the kernel sets the file position to the end of the appended bytes.
            let end = opened.stream_position().map_err(|source| failed(own.end, source))?;
            let begin = end.saturating_sub(written as u64);
            if begin != own.end {
                *own = begin..end;
                return Err(failed(begin, io::Error::other("another program appended to it at the same time")));
            }
            own.end = end;
            rest = &rest[written..];
        }
        observer.notify(crate::Event::Preparing { path: &file.path, done_bytes: own.end, size_bytes: end_bytes });
    }
    opened.sync_all().map_err(|source| fill_error(file, "flushing it before the run", own.end, end_bytes, source))
}

/// Allocates space and keeps the file's length. Fails on a filesystem that cannot do that; writes nothing instead.
fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, offset, length)?)
}

pub(crate) fn fill_error(
    file: &FilePlan,
    attempted: &'static str,
    offset: u64,
    size_bytes: u64,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> FileError {
    FileError::Fill { path: file.path.clone(), attempted, offset, size_bytes, source: source.into() }
}

/// Fills the file with random content, in pieces whose lengths are multiples of its alignment, and flushes it.
/// `written` is the number of bytes written so far, also after an error.
fn fill(
    created: &DirectFile,
    file: &FilePlan,
    end_bytes: u64,
    filling: &Filling,
    written: &mut u64,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), FileError> {
    let alignment = created.alignment().write_offset_bytes.unwrap_or(4096).max(512);
    let memory = created.alignment().memory_bytes.unwrap_or(4096).max(512);
    let mut buffer = AlignedBuffer::new(FILL_BYTES, memory as usize)
        .map_err(|source| fill_error(file, "allocating a buffer", 0, end_bytes, source))?;
    let mut content = filling.from(*written);
    while *written < end_bytes {
        if stop.load(Relaxed) {
            return Err(FileError::Stopped);
        }
        // The last piece is rounded up to the alignment, and what is too much is cut off below.
        let length = (end_bytes - *written).min(FILL_BYTES as u64).next_multiple_of(u64::from(alignment)) as usize;
        let piece = &mut buffer[..length.min(FILL_BYTES)];
        content.fill(piece);
        created
            .write_all_at(piece, *written)
            .map_err(|source| fill_error(file, "writing it before the run", *written, end_bytes, source))?;
        *written += piece.len() as u64;
        let done_bytes = (*written).min(end_bytes);
        observer.notify(crate::Event::Preparing { path: &file.path, done_bytes, size_bytes: end_bytes });
    }
    let ends_with_ours = |length: u64| length == *written && length > end_bytes;
    if created.file().metadata().is_ok_and(|found| ends_with_ours(found.len())) {
        created.file().set_len(end_bytes).map_err(|source| {
            fill_error(file, "cutting off its last bytes before the run", *written, end_bytes, source)
        })?;
    }
    created
        .file()
        .sync_all()
        .map_err(|source| fill_error(file, "flushing it before the run", *written, end_bytes, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a file that grows is waited for, however long it takes, and one that does not grow only for a time.
    /// Method: the file grows by a block at each look, so there is no race.
    #[test]
    fn a_file_that_grows_is_waited_for_and_one_that_is_stuck_is_not() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("shared");
        let mut filling = File::create(&path).expect("a file");
        let looks = std::cell::Cell::new(0);
        let has_waited = await_growth(Duration::from_secs(3600), || {
            looks.set(looks.get() + 1);
            filling.write_all(&[1; 4096]).expect("it is written");
            let length = std::fs::metadata(&path).expect("a file").len();
            (length < 20 * 4096).then_some(length)
        });
        assert!(has_waited && looks.get() == 20, "{looks:?}");
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 20 * 4096, "it is not truncated");
        assert!(!await_growth(Duration::from_secs(3600), || None), "a file that is not filled is not waited for");
        assert!(await_growth(Duration::from_millis(20), || Some(4096)), "the wait for a stuck run is bounded");
    }

    /// Goal: a run that created a file does not fill it once more after another run that found it empty.
    /// Method: the file has its length before the first run has the lock.
    #[test]
    fn a_new_file_that_another_run_has_filled_is_not_filled_again() {
        let folder = tempfile::tempdir().expect("a directory");
        struct Silent;
        impl Observer for Silent {}
        let filled = |prepare, may_appear| {
            let path = folder.path().join("shared");
            std::fs::write(&path, [7; 4096]).expect("a file");
            let created = OpenOptions::new().read(true).write(true).open(&path).expect("a file");
            let file = FilePlan {
                path: path.to_str().expect("UTF-8").to_owned(),
                prepare,
                remove_after: false,
                offset_bytes: 0,
                size_bytes: 4096,
                extends_from: None,
            };
            let sharing = Sharing { end_bytes: 4096, may_appear, ..Sharing::of(&[], &file.path, 0) };
            let filling = Filling { content: Content::random(), block_bytes: 4096, seed: 1 };
            let stop = AtomicBool::new(false);
            let made = fill_created(&created, &file, sharing, &filling, &stop, &mut Silent);
            made.expect("it is filled");
            trueio_direct::try_lock(created.file(), LockMode::Exclusive).expect("the lock was released");
            std::fs::read(&path).expect("a file") == [7; 4096]
        };
        assert!(filled(Prepare::CreateFilled, true), "it is not filled again");
        assert!(!filled(Prepare::CreateFilled, false), "no other run may fill it");
    }
}
