//! Copies a file or disk, or a part of one, past the page cache.
//!
//! Both sides are opened as [`OpenOptions`] does, read and written in large aligned blocks through one buffer, and
//! flushed at the end. Under [`Policy::Prefer`], bytes of a source file that are in the page cache are read from there, which takes
//! a fifth of the time of a read from a fast disk, and adds no page to the cache. *(Linux)* Holes are found by `SEEK_DATA` and `SEEK_HOLE` (Linux, macOS, FreeBSD) and stay holes in a new
//! file. Space that is reserved and not written counts as a hole there, so `FIEMAP` would add nothing.
//!
//! Limits: one thread, so reads and writes alternate. On Windows all of a file counts as data. Owner, times, extended
//! attributes and access lists are not copied. A source that is changed meanwhile gives a mixture.
//!
//! Source: lseek(2); Linux `fs/iomap/seek.c`.

use crate::alignment::Alignment;
use crate::buffer::AlignedBuffer;
use crate::flush::sync_directory;
use crate::transfer::{self, TransferError};
use crate::types::{DirectFile, FlushLevel, Flushed, Granted, OpenError, OpenOptions, Policy};
use crate::unaligned::{read_unaligned_by_copy_at, write_unaligned_by_read_modify_write_at};
use crate::window::Units;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// The default size of the buffer. The thread waits for the device after each, and on a busy machine also for a processor: then copies through 1 MiB
/// took up to twice as long.
const BUFFER_BYTES: usize = 4 << 20;

/// How to copy a file: see [`copy_file`]. Defaults: everything, into a new file, [`Policy::Prefer`], through 4 MiB,
/// holes kept, flushed to [`FlushLevel::Device`].
#[derive(Clone, Debug)]
pub struct CopyOptions {
    overwrite: bool,
    policy: Policy,
    flush: Option<FlushLevel>,
    buffer_bytes: usize,
    range: Option<Range<u64>>,
    destination_offset: Option<u64>,
    keep_holes: bool,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CopyOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            overwrite: false,
            policy: Policy::Prefer,
            flush: Some(FlushLevel::Device),
            buffer_bytes: BUFFER_BYTES,
            range: None,
            destination_offset: None,
            keep_holes: true,
        }
    }

    /// Whether a destination that exists is written: a regular file is emptied first, unless
    /// [`destination_offset`](Self::destination_offset) is set; a disk keeps what is not written.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How much direct I/O matters, on both sides. Only [`Policy::Require`] reads everything from the device;
    /// [`Policy::Prefer`] reads what is in the page cache from there. *(Linux)*
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How durable the copy is at the end; [`None`] leaves it to the system. With a level, the name of a new file is
    /// made durable, too. *(Unix)*
    #[must_use]
    pub fn flush(mut self, flush: Option<FlushLevel>) -> Self {
        self.flush = flush;
        self
    }

    /// The size of the buffer, in bytes, rounded up to whole blocks.
    #[must_use]
    pub fn buffer_bytes(mut self, buffer_bytes: usize) -> Self {
        self.buffer_bytes = buffer_bytes;
        self
    }

    /// Copies only these bytes of the source, aligned or not.
    #[must_use]
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = Some(range);
        self
    }

    /// Where in the destination the copy begins; 0 if not set. An existing file then keeps its other bytes.
    #[must_use]
    pub fn destination_offset(mut self, offset: u64) -> Self {
        self.destination_offset = Some(offset);
        self
    }

    /// Whether holes of the source are skipped. Otherwise they are read, and written as zeros.
    #[must_use]
    pub fn keep_holes(mut self, keep_holes: bool) -> Self {
        self.keep_holes = keep_holes;
        self
    }
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// Bytes that are copied or skipped as holes.
    pub done_bytes: u64,
    /// Bytes to copy, with holes.
    pub total_bytes: u64,
}

/// A completed copy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Bytes that were read and written.
    pub data_bytes: u64,
    /// Of these, bytes that were in the page cache already, and were read from there.
    pub cached_bytes: u64,
    /// Bytes of holes that were not read. In an existing file or disk they were written as zeros.
    pub hole_bytes: u64,
    /// How the source was read.
    pub source: Granted,
    /// How the destination was written.
    pub destination: Granted,
    /// What the flush at the end did.
    pub flushed: Option<Flushed>,
}

/// Why a file was not copied. A destination that the copy created is removed again, unless
/// [`CopyOptions::destination_offset`] is set: others may have written to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The destination exists, and [`CopyOptions::overwrite`] is not set.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// Source and destination are the same file or disk, perhaps under two names.
    #[error("`{}` is the source itself", path.display())]
    SameFile {
        /// The destination.
        path: PathBuf,
    },
    /// One of the two could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The range is not within the source, or the destination is a disk that is too small.
    #[error("{what}: {needed} bytes needed, {available} available")]
    TooShort {
        /// What is too short.
        what: &'static str,
        /// The end of the range, or of what would be written.
        needed: u64,
        /// The size of the source or of the disk.
        available: u64,
    },
    /// The progress function returned [`ControlFlow::Break`].
    #[error("the copy was stopped after {done} bytes")]
    Stopped {
        /// How many bytes had been copied or skipped.
        done: u64,
    },
    /// The system reported an error.
    #[error("{call} failed after {done} bytes of the copy")]
    Io {
        /// What failed ("reading the source").
        call: &'static str,
        /// How many bytes had been copied or skipped.
        done: u64,
        /// What the system reported.
        #[source]
        source: io::Error,
    },
}

impl CopyError {
    /// Returns the system's error number, if the error is the system's.
    pub fn raw_os_error(&self) -> Option<i32> {
        let source = match self {
            Self::Open(error) => return error.raw_os_error(),
            Self::Io { source, .. } => source,
            _ => return None,
        };
        let transfer = || source.get_ref()?.downcast_ref::<TransferError>()?.raw_os_error();
        source.raw_os_error().or_else(transfer)
    }
}

/// Copies `source` to `destination`, and calls `progress` after each block; it stops the copy by returning
/// [`ControlFlow::Break`].
///
/// A new file gets the permissions of a regular source, reduced by the process's umask. *(Unix)* A disk as the
/// destination is opened [exclusively](OpenOptions::exclusive), so that one that is mounted is refused.
///
/// # Errors
/// [`CopyError`]. An existing destination that was to be overwritten is left half written.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let (source, destination) = (folder.path().join("a"), folder.path().join("b"));
/// # std::fs::write(&source, vec![7; 10_000]).unwrap();
/// use std::ops::ControlFlow;
/// use trueio_direct::{CopyOptions, copy_file};
///
/// let copied = copy_file(&source, &destination, &CopyOptions::new(), |progress| {
///     println!("{} of {} bytes", progress.done_bytes, progress.total_bytes);
///     ControlFlow::Continue(())
/// })?;
/// println!("read {}, written {}", copied.source, copied.destination);
/// # Ok::<(), trueio_direct::CopyError>(())
/// ```
pub fn copy_file(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &CopyOptions,
    mut progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
) -> Result<Copied, CopyError> {
    let (source, path) = (source.as_ref(), destination.as_ref());
    let source = OpenOptions::new().read(true).policy(options.policy).open(source)?;
    let size =
        source.size().map_err(|error| CopyError::Io { call: "reading the source's size", done: 0, source: error })?;
    let range = options.range.clone().unwrap_or(0..size);
    if range.start > range.end || range.end > size {
        let needed = range.end.max(range.start);
        return Err(CopyError::TooShort { what: "the range ends beyond the source", needed, available: size });
    }
    let (destination, is_new) = open_destination(&source, path, options)?;
    let copied = Copying::new(&source, &destination, options, range, is_new)
        .and_then(|mut copying| copying.run(&mut progress).and_then(|()| copying.finish(path)));
    if copied.is_err() && is_new && options.destination_offset.is_none() {
        crate::os::remove_made(path, destination.file());
    }
    copied
}

/// Opens or creates the destination; returns whether it was created.
fn open_destination(source: &DirectFile, path: &Path, options: &CopyOptions) -> Result<(DirectFile, bool), CopyError> {
    let both = OpenOptions::new().read(true).write(true).policy(options.policy);
    let exists = std::fs::symlink_metadata(path).is_ok() || std::fs::metadata(path).is_ok();
    if !exists {
        let new = both.clone().create_new(true).mode(permissions(source));
        match new.open(path) {
            // Created by another process or thread meanwhile.
            Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            other => return Ok((other?, true)),
        }
    }
    let failed = |call| move |error| CopyError::Io { call, done: 0, source: error };
    if crate::os::is_same_file(source.file(), path).map_err(failed("comparing source and destination"))? {
        return Err(CopyError::SameFile { path: path.to_owned() });
    }
    if !options.overwrite {
        return Err(CopyError::Exists { path: path.to_owned() });
    }
    // Refuses a disk that is mounted; a file may have readers.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let existing = both.exclusive(!is_file).open(path)?;
    if is_file && options.destination_offset.is_none() {
        existing.file().set_len(0).map_err(failed("emptying the destination"))?;
    }
    Ok((existing, false))
}

/// Makes the file at least `length` bytes long, of which the last one is a zero of the copy. Never makes it shorter, also
/// when another writer makes it longer meanwhile.
fn extend(file: &DirectFile, length: u64) -> io::Result<()> {
    if length == 0 || file.size()? >= length || crate::os::extend(file.file(), length)? {
        return Ok(());
    }
    write_unaligned_by_read_modify_write_at(file, &[0], length - 1).map(drop).map_err(io::Error::from)
}

#[cfg(unix)]
fn permissions(source: &DirectFile) -> u32 {
    use std::os::unix::fs::MetadataExt;
    let regular = source.file().metadata().ok().filter(std::fs::Metadata::is_file);
    regular.map_or(0o600, |metadata| metadata.mode() & 0o777)
}

#[cfg(not(unix))]
fn permissions(_source: &DirectFile) -> u32 {
    0o600
}

/// Returns a second descriptor of the source that reads through the page cache; [`None`] if the policy forbids that, the first one does so
/// already, or the source is a disk.
fn cache_of(source: &DirectFile, policy: Policy) -> Option<File> {
    let is_past_the_cache = matches!(source.granted(), Granted::Direct | Granted::Unconfirmed);
    let is_wanted = policy == Policy::Prefer && is_past_the_cache && source.disk().is_none();
    is_wanted.then(|| crate::os::open_to_read(source.file()).ok()).flatten()
}

struct Copying<'a> {
    source: &'a DirectFile,
    destination: &'a DirectFile,
    options: &'a CopyOptions,
    units: Units,
    buffer: AlignedBuffer,
    /// A second descriptor of the source that is not direct, if cached bytes are to be read through it.
    cache: Option<File>,
    range: Range<u64>,
    /// Where in the destination the range begins.
    to: u64,
    is_new: bool,
    /// Holes need not be written, because nothing is in their place.
    is_empty: bool,
    data_bytes: u64,
    cached_bytes: u64,
    hole_bytes: u64,
}

impl<'a> Copying<'a> {
    fn new(
        source: &'a DirectFile,
        destination: &'a DirectFile,
        options: &'a CopyOptions,
        range: Range<u64>,
        is_new: bool,
    ) -> Result<Self, CopyError> {
        let failed = |call| move |error| CopyError::Io { call, done: 0, source: error };
        let (to, length) = (options.destination_offset.unwrap_or(0), range.end - range.start);
        let is_file = destination.file().metadata().map_err(failed("reading the destination"))?.is_file();
        let available =
            if is_file { i64::MAX as u64 } else { destination.size().map_err(failed("reading its size"))? };
        let needed = to.saturating_add(length);
        if needed > available {
            return Err(CopyError::TooShort { what: "the destination is too small", needed, available });
        }
        let units = Units::of(source).with(Units::of(destination));
        let buffer = units.buffer(options.buffer_bytes, units.write).map_err(failed("allocating the buffer"))?;
        let is_empty = is_file && (is_new || options.destination_offset.is_none());
        let cache = cache_of(source, options.policy);
        Ok(Self {
            source,
            destination,
            options,
            units,
            buffer,
            cache,
            range,
            to,
            is_new,
            is_empty,
            data_bytes: 0,
            cached_bytes: 0,
            hole_bytes: 0,
        })
    }

    fn failed(&self, call: &'static str) -> impl Fn(io::Error) -> CopyError + use<> {
        let done = self.done();
        move |source| CopyError::Io { call, done, source }
    }

    fn done(&self) -> u64 {
        self.data_bytes + self.hole_bytes
    }

    fn run(&mut self, progress: &mut dyn FnMut(CopyProgress) -> ControlFlow<()>) -> Result<(), CopyError> {
        let is_file = self.source.file().metadata().map_err(self.failed("reading the source"))?.is_file();
        let mut position = self.range.start;
        while position < self.range.end {
            let rest = position..self.range.end;
            let data = if self.options.keep_holes && is_file {
                crate::os::next_data(self.source.file(), rest).map_err(self.failed("finding the source's holes"))?
            } else {
                rest
            };
            while position < data.end {
                let is_hole = position < data.start;
                let bytes = if is_hole { self.skip(position, data.start)? } else { self.copy(position, data.end)? };
                *(if is_hole { &mut self.hole_bytes } else { &mut self.data_bytes }) += bytes;
                position += bytes;
                let total_bytes = self.range.end - self.range.start;
                if progress(CopyProgress { done_bytes: self.done(), total_bytes }).is_break() {
                    return Err(CopyError::Stopped { done: self.done() });
                }
            }
        }
        Ok(())
    }

    /// Skips a hole of the source, or the part of it that fits into the buffer; returns its length.
    fn skip(&mut self, position: u64, end: u64) -> Result<u64, CopyError> {
        if self.is_empty {
            return Ok(end - position);
        }
        let (start, part) = self.locate(position, end);
        self.buffer[part.clone()].fill(0);
        self.put(start, part.clone())?;
        Ok(part.len() as u64)
    }

    /// Copies the data from `position` on, as much as fits into the buffer; returns how much that is.
    fn copy(&mut self, position: u64, end: u64) -> Result<u64, CopyError> {
        let (start, mut part) = self.locate(position, end);
        let failed = self.failed("reading the source");
        let unit = self.units.write;
        if self.read_cached(position, part.clone()) {
            self.cached_bytes += part.len() as u64;
        } else if (position % unit) as usize == part.start {
            // The offset within a block is the same on both sides: whole blocks are read into the bytes that are written.
            let whole = part.end.next_multiple_of(unit as usize);
            let read = self.source.read_at(&mut self.buffer[..whole], position - part.start as u64);
            let read = read.map_err(|error| failed(error.into()))?.bytes;
            part.end = part.end.min(read);
            if part.is_empty() {
                return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, "the source became shorter")));
            }
        } else {
            read_unaligned_by_copy_at(self.source, &mut self.buffer[part.clone()], position)
                .map_err(|error| failed(error.into()))?;
        }
        self.put(start, part.clone())?;
        Ok(part.len() as u64)
    }

    /// Fills `part` of the buffer with the bytes from `position` on, and returns true, if all of them are in the page cache.
    fn read_cached(&mut self, position: u64, part: Range<usize>) -> bool {
        let Some(cache) = &self.cache else { return false };
        match crate::os::residency(cache, position, part.len() as u64) {
            Ok(found) if found.cached_pages < found.file_pages => false,
            // A short read or an error is that of the direct read, which follows.
            Ok(_) => transfer::read_at(cache, &Alignment::not_needed(), &mut self.buffer[part.clone()], position)
                .is_ok_and(|read| read.bytes == part.len()),
            Err(_) => {
                // The kernel does not reveal what is cached.
                self.cache = None;
                false
            }
        }
    }

    /// Returns the destination offset of the buffer, and the part of the buffer that holds `position..end` of the
    /// source, as much as fits.
    fn locate(&self, position: u64, end: u64) -> (u64, Range<usize>) {
        let at = self.to + (position - self.range.start);
        let first = (at % self.units.write) as usize;
        let bytes = usize::try_from(end - position).unwrap_or(usize::MAX).min(self.buffer.len() - first);
        (at - first as u64, first..first + bytes)
    }

    fn put(&self, start: u64, part: Range<usize>) -> Result<(), CopyError> {
        let failed = self.failed("writing the destination");
        let offset = start + part.start as u64;
        write_unaligned_by_read_modify_write_at(self.destination, &self.buffer[part], offset)
            .map(drop)
            .map_err(|error| failed(error.into()))
    }

    fn finish(&self, path: &Path) -> Result<Copied, CopyError> {
        let file = self.destination;
        if self.is_empty {
            let length = self.to + (self.range.end - self.range.start);
            extend(file, length).map_err(self.failed("setting the destination's length"))?;
        }
        let flushed = self.options.flush.map(|level| file.flush(level)).transpose();
        let flushed = flushed.map_err(self.failed("flushing the destination"))?;
        if self.is_new && flushed.is_some() && cfg!(unix) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            sync_directory(folder).map_err(self.failed("flushing the destination's folder"))?;
        }
        Ok(Copied {
            data_bytes: self.data_bytes,
            cached_bytes: self.cached_bytes,
            hole_bytes: self.hole_bytes,
            source: self.source.granted(),
            destination: file.granted(),
            flushed,
        })
    }
}
