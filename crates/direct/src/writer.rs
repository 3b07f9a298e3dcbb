//! [`std::io::Write`] and [`std::io::Seek`] over a direct file.
//!
//! Collects what is written in an aligned buffer and writes whole blocks directly, and parts of blocks as
//! [`crate::write_unaligned_by_read_modify_write_at`] does: nothing is padded, and the file is never longer than its data.

use crate::buffer::AlignedBuffer;
use crate::reader::BUFFER_BYTES;
use crate::types::DirectFile;
use crate::unaligned::write_unaligned_by_read_modify_write_at;
use crate::window::{Units, seek_target, unit_start};
use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

/// Writes a direct file as a stream, of any length and at any position.
///
/// Call [`finish`](Self::finish): it writes the rest, reports errors and returns the file. [`Write::flush`] writes what
/// is buffered, too. Neither makes anything durable: see [`DirectFile::flush`].
///
/// A writer that is dropped writes what is buffered, unless an error was returned before. An error of that is lost. After
/// an error the data stays in the buffer, and the next call tries again.
///
/// Other writers may write to the same file, also within the same blocks; on a disk, only those of this process.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// use std::io::Write;
/// use trueio_direct::{DirectWriter, FlushLevel, OpenOptions, Policy};
///
/// let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
/// let mut writer = DirectWriter::new(file)?;
/// for number in 0..1000 {
///     writeln!(writer, "record {number}")?;
/// }
/// let file = writer.finish()?;
/// file.flush(FlushLevel::Device)?;
/// assert_eq!(file.size()?, 10_890);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "call `finish`, which reports errors"]
pub struct DirectWriter {
    /// [`None`] only after `finish`.
    file: Option<DirectFile>,
    units: Units,
    /// Stands for the file from `start` on, a multiple of the unit of writes.
    buffer: AlignedBuffer,
    start: u64,
    /// The part of the buffer that is not written yet. Nothing else of the buffer is ever written, because other writers
    /// may have changed it in the file.
    dirty: Range<usize>,
    position: u64,
    /// The last attempt to write failed, and its error was returned.
    has_failed: bool,
}

impl DirectWriter {
    /// Writes `file` from its start, through a buffer of 1 MiB.
    ///
    /// # Errors
    /// There is no memory for the buffer.
    pub fn new(file: DirectFile) -> io::Result<Self> {
        Self::with_capacity(BUFFER_BYTES, file)
    }

    /// Writes `file` from its start, through a buffer of at least `capacity` bytes, rounded up to whole blocks.
    ///
    /// # Errors
    /// There is no memory for the buffer.
    pub fn with_capacity(capacity: usize, file: DirectFile) -> io::Result<Self> {
        let units = Units::of(&file);
        let buffer = units.buffer(capacity, units.write)?;
        let file = Some(file);
        Ok(Self { file, units, buffer, start: 0, dirty: 0..0, position: 0, has_failed: false })
    }

    /// The file. What is buffered is not in it yet.
    ///
    /// # Panics
    /// Never: a writer without a file cannot be reached.
    pub fn file(&self) -> &DirectFile {
        self.file.as_ref().expect("only `finish` takes the file")
    }

    /// Returns the size of the buffer, in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the number of bytes that are buffered and not written yet.
    pub fn unwritten_bytes(&self) -> usize {
        self.dirty.len()
    }

    /// Writes what is buffered and returns the file. It is not durable yet: see [`DirectFile::flush`].
    ///
    /// # Errors
    /// [`FinishError`], which holds the error and the writer with its data.
    pub fn finish(mut self) -> Result<DirectFile, FinishError> {
        match self.write_buffered() {
            Ok(()) => Ok(self.file.take().expect("only `finish` takes the file")),
            Err(error) => Err(FinishError { error, writer: Box::new(self) }),
        }
    }

    fn write_buffered(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let offset = self.start + self.dirty.start as u64;
        let written = write_unaligned_by_read_modify_write_at(file, &self.buffer[self.dirty.clone()], offset);
        self.has_failed = written.is_err();
        written?;
        self.dirty = self.dirty.end..self.dirty.end;
        Ok(())
    }

    /// Returns the position within the buffer, if a write there continues or changes what is not written yet.
    fn offset_in_buffer(&self) -> Option<usize> {
        let offset = usize::try_from(self.position.checked_sub(self.start)?).ok()?;
        let continues = !self.dirty.is_empty() && (self.dirty.start..=self.dirty.end).contains(&offset);
        (continues && offset < self.buffer.len()).then_some(offset)
    }
}

impl Write for DirectWriter {
    /// Takes data into the buffer, which is written first if it is full or holds another part of the file.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        if self.position.checked_add(data.len() as u64).is_none_or(|end| i64::try_from(end).is_err()) {
            let sentence = "the write ends beyond the largest file offset";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        let offset = match self.offset_in_buffer() {
            Some(offset) => offset,
            None => {
                self.write_buffered()?;
                self.start = unit_start(self.position, self.units.write);
                let offset = (self.position - self.start) as usize;
                self.dirty = offset..offset;
                offset
            }
        };
        let bytes = data.len().min(self.buffer.len() - offset);
        let end = offset + bytes;
        self.buffer[offset..end].copy_from_slice(&data[..bytes]);
        self.dirty.end = self.dirty.end.max(end);
        self.position += bytes as u64;
        Ok(bytes)
    }

    /// Writes what is buffered.
    fn flush(&mut self) -> io::Result<()> {
        self.write_buffered()
    }
}

impl Seek for DirectWriter {
    /// Sets the position. What is buffered is written when something is written elsewhere. On a disk, the end is its
    /// capacity.
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        let size = || {
            let buffered = if self.dirty.is_empty() { 0 } else { self.start + self.dirty.end as u64 };
            Ok(self.file().size()?.max(buffered))
        };
        self.position = seek_target(target, self.position, size)?;
        Ok(self.position)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position)
    }
}

impl Drop for DirectWriter {
    fn drop(&mut self) {
        if self.has_failed {
            return;
        }
        // A destructor cannot return the error, and a panic in one would end the program: `finish` returns it.
        let _ = self.write_buffered();
    }
}

/// Why [`DirectWriter::finish`] failed; it holds the writer, whose data is still buffered.
#[derive(Debug)]
pub struct FinishError {
    error: io::Error,
    writer: Box<DirectWriter>,
}

impl FinishError {
    /// The error of the system.
    pub fn error(&self) -> &io::Error {
        &self.error
    }

    /// Returns the writer, to try again.
    pub fn into_writer(self) -> DirectWriter {
        *self.writer
    }

    /// Returns the error; the data that was not written is dropped.
    pub fn into_error(self) -> io::Error {
        self.error
    }
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the last {} bytes could not be written", self.writer.unwritten_bytes())
    }
}

impl std::error::Error for FinishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<FinishError> for io::Error {
    fn from(error: FinishError) -> Self {
        error.into_error()
    }
}
