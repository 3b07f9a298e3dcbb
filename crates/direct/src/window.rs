//! A part of a file in an aligned buffer: what [`crate::DirectReader`], [`crate::DirectWriter`] and
//! [`crate::copy_file`] have in common.
//!
//! The buffer begins at a multiple of the file's unit and is a whole number of units long, so that whole units of it
//! can be read and written without a copy. Parts of units are written as `unaligned.rs` describes.

use crate::alignment::{round_down, round_up};
use crate::buffer::AlignedBuffer;
use crate::types::DirectFile;
use crate::unaligned::common_multiple;
use std::io;

/// The units of reads and writes, in bytes: multiples of what offset, length and address must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) read: u64,
    /// A multiple of `read`.
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
