//! [`std::io::Read`], [`std::io::BufRead`] and [`std::io::Seek`] over a direct file.
//!
//! Reads whole aligned blocks into a buffer of its own and serves any length at any position from it.
//!
//! Limits: no read-ahead; each buffer is read when the one before is used up.

use crate::alignment::check_transfer;
use crate::buffer::AlignedBuffer;
use crate::types::DirectFile;
use crate::window::{Units, seek_target, unit_start};
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// The default size of the buffer of [`DirectReader`] and [`crate::DirectWriter`]: 1 MiB. From there on larger
/// transfers are hardly faster on the disks of `docs/dev/performance.md`.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Reads a direct file as a stream, of any length and from any position.
///
/// A file that another writer makes longer can be read on after its end was reached.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("data");
/// # std::fs::write(&path, "first line\nsecond line\n").unwrap();
/// use std::io::{BufRead, Seek, SeekFrom};
/// use trueio_direct::{DirectReader, OpenOptions, Policy};
///
/// let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path)?;
/// let mut reader = DirectReader::new(file)?;
/// reader.seek(SeekFrom::Start(6))?;
/// let lines = reader.lines().collect::<Result<Vec<String>, _>>()?;
/// assert_eq!(lines, ["line", "second line"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct DirectReader {
    file: DirectFile,
    units: Units,
    buffer: AlignedBuffer,
    /// The buffer holds `filled` bytes of the file from `start` on.
    start: u64,
    filled: usize,
    position: u64,
}

impl DirectReader {
    /// Reads `file` from its start, through a buffer of 1 MiB.
    ///
    /// # Errors
    /// There is no memory for the buffer.
    pub fn new(file: DirectFile) -> io::Result<Self> {
        Self::with_capacity(BUFFER_BYTES, file)
    }

    /// Reads `file` from its start, through a buffer of at least `capacity` bytes, rounded up to whole blocks.
    ///
    /// # Errors
    /// There is no memory for the buffer.
    pub fn with_capacity(capacity: usize, file: DirectFile) -> io::Result<Self> {
        let units = Units::of(&file);
        let buffer = units.buffer(capacity, units.read)?;
        Ok(Self { file, units, buffer, start: 0, filled: 0, position: 0 })
    }

    /// The file.
    pub fn file(&self) -> &DirectFile {
        &self.file
    }

    /// Returns the file; what is buffered is dropped.
    pub fn into_file(self) -> DirectFile {
        self.file
    }

    /// Returns the size of the buffer, in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Returns what the buffer holds from the position on.
    fn buffered(&self) -> &[u8] {
        let skipped = self.position.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        skipped.and_then(|skipped| self.buffer[..self.filled].get(skipped..)).unwrap_or_default()
    }

    /// Whether `target` can be read into as it is: aligned, at an aligned position, and not smaller than the buffer.
    fn takes_directly(&self, target: &[u8]) -> bool {
        target.len() >= self.buffer.len()
            && check_transfer(self.file.alignment(), target.as_ptr().addr(), target.len(), self.position, false).is_ok()
            && self.position.is_multiple_of(self.units.read)
    }
}

impl Read for DirectReader {
    /// Reads at least one byte unless the file ends at the position. A large aligned `target` at an aligned position is
    /// read into without a copy.
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if target.is_empty() {
            return Ok(0);
        }
        if self.buffered().is_empty() && self.takes_directly(target) {
            let bytes = self.file.read_at(target, self.position)?.bytes;
            self.position += bytes as u64;
            return Ok(bytes);
        }
        let bytes = {
            let available = self.fill_buf()?;
            let bytes = available.len().min(target.len());
            target[..bytes].copy_from_slice(&available[..bytes]);
            bytes
        };
        self.consume(bytes);
        Ok(bytes)
    }
}

impl BufRead for DirectReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffered().is_empty() {
            // Nothing is known of the buffer if the read fails.
            self.filled = 0;
            self.start = unit_start(self.position, self.units.read);
            // The last buffer of the largest file would end beyond the largest offset.
            let room = usize::try_from(i64::MAX as u64 - self.start).unwrap_or(usize::MAX).min(self.buffer.len());
            let whole = room - room % self.units.read as usize;
            self.filled = self.file.read_at(&mut self.buffer[..whole], self.start)?.bytes;
        }
        Ok(self.buffered())
    }

    /// # Panics
    /// If `bytes` is more than [`fill_buf`](BufRead::fill_buf) returned.
    fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.buffered().len(), "more bytes were consumed than are buffered");
        self.position += bytes as u64;
    }
}

impl Seek for DirectReader {
    /// Sets the position. What is buffered stays buffered. On a disk, the end is its capacity.
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.position = seek_target(target, self.position, || self.file.size())?;
        Ok(self.position)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position)
    }
}
