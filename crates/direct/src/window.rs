//! A part of a file in an aligned buffer: what [`crate::DirectReader`], [`crate::DirectWriter`] and
//! [`crate::copy_file`] have in common.
//!
//! The buffer begins at a multiple of the file's unit and is a whole number of units long, so that whole units of it
//! can be read and written. A unit that is written in part is completed from the file, or with zeros beyond its end.

use crate::alignment::{round_down, round_up};
use crate::buffer::AlignedBuffer;
use crate::types::DirectFile;
use crate::unaligned::common_multiple;
use std::io;
use std::ops::Range;

/// The units of reads and writes, in bytes: multiples of what offset, length and address must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) read: u64,
    /// A multiple of `read`: a unit that is written in part is read first.
    pub(crate) write: u64,
    memory: usize,
}

impl Units {
    pub(crate) fn of(file: &DirectFile) -> Self {
        let alignment = file.alignment().or_assumed();
        let bytes = |value: Option<u32>| value.expect("nothing is unknown after or_assumed");
        let memory = bytes(alignment.memory_bytes).next_power_of_two();
        let read = common_multiple(u64::from(bytes(alignment.read_offset_bytes)), u64::from(memory));
        let write = common_multiple(u64::from(bytes(alignment.write_offset_bytes)), read);
        Self { read, write, memory: memory as usize }
    }

    /// Units that suit both files.
    pub(crate) fn with(self, other: Self) -> Self {
        let read = common_multiple(self.read, other.read);
        let write = common_multiple(self.write, other.write);
        Self { read, write: common_multiple(read, write), memory: self.memory.max(other.memory) }
    }

    /// Allocates a buffer of at least `bytes` bytes, rounded up to whole `unit`s.
    pub(crate) fn buffer(self, bytes: usize, unit: u64) -> io::Result<AlignedBuffer> {
        let too_large =
            || io::Error::new(io::ErrorKind::OutOfMemory, format!("a buffer of {bytes} bytes is too large"));
        let bytes = round_up(bytes.max(1) as u64, unit).and_then(|bytes| usize::try_from(bytes).ok());
        Ok(AlignedBuffer::new(bytes.ok_or_else(too_large)?, self.memory)?)
    }
}

/// Writes the part `dirty` of `buffer`, which holds the file from `start` on.
///
/// `known` is the part of `buffer` that holds what the file holds or is about to hold; it includes `dirty`. Units that
/// are written in part are completed from the file. A regular file that becomes longer than the data, because its
/// last unit is padded with zeros, is cut again.
pub(crate) fn write_window(
    file: &DirectFile,
    units: Units,
    buffer: &mut [u8],
    start: u64,
    known: &mut Range<usize>,
    dirty: Range<usize>,
) -> io::Result<()> {
    debug_assert!(known.start <= dirty.start && dirty.end <= known.end);
    if dirty.is_empty() {
        return Ok(());
    }
    let unit = units.write as usize;
    let (first, last) = (dirty.start - dirty.start % unit, dirty.end.next_multiple_of(unit));
    let mut cut_to = None;
    if first < dirty.start || dirty.end < last {
        let size = file.size()?;
        complete(file, units, buffer, start, known, first, size)?;
        complete(file, units, buffer, start, known, last - unit, size)?;
        let end = size.max(start + dirty.end as u64);
        if end < start + last as u64 && file.file().metadata()?.is_file() {
            cut_to = Some(end);
        }
    }
    file.write_all_at(&buffer[first..last], start + first as u64)?;
    known.start = known.start.min(first);
    if let Some(end) = cut_to {
        file.file().set_len(end)?;
    }
    Ok(())
}

/// Fills what is not `known` of the unit at `at` in `buffer`: from the file, and with zeros beyond its end, `size`.
fn complete(
    file: &DirectFile,
    units: Units,
    buffer: &mut [u8],
    start: u64,
    known: &Range<usize>,
    at: usize,
    size: u64,
) -> io::Result<()> {
    let end = at + units.write as usize;
    let parts = [at..known.start.min(end), known.end.max(at)..end];
    let is_in_file = |part: &Range<usize>| !part.is_empty() && start + (part.start as u64) < size;
    let mut unit = units.buffer(units.write as usize, units.write)?;
    if parts.iter().any(is_in_file) {
        file.read_at(&mut unit, start + at as u64).map_err(|error| {
            let error = io::Error::from(error);
            let bytes = units.write;
            let sentence = format!(
                "the rest of a block of {bytes} bytes that is written in part cannot be read (is the file open for \
                 reading?): {error}"
            );
            io::Error::new(error.kind(), sentence)
        })?;
    }
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        buffer[part.clone()].copy_from_slice(&unit[part.start - at..part.end - at]);
    }
    Ok(())
}

/// Returns where `seek` leads from `position`; `size` is only called for a position relative to the end.
pub(crate) fn seek_target(
    seek: io::SeekFrom,
    position: u64,
    size: impl FnOnce() -> io::Result<u64>,
) -> io::Result<u64> {
    let target = match seek {
        io::SeekFrom::Start(target) => Some(target),
        io::SeekFrom::Current(by) => position.checked_add_signed(by),
        io::SeekFrom::End(by) => size()?.checked_add_signed(by),
    };
    target.filter(|target| i64::try_from(*target).is_ok()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "a position before the start or beyond the largest file offset")
    })
}

/// The start of the unit that holds `position`.
pub(crate) fn unit_start(position: u64, unit: u64) -> u64 {
    round_down(position, unit)
}
