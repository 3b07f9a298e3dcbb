//! A part of a range of a file, and its place on a device.

use super::window::Remap;

/// A part of a range, and where it lies on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its first address in the space of the file's extents.
    pub(crate) from: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
    /// Its first byte on the device.
    pub(crate) begin: u64,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.begin + self.length
    }

    /// Returns the part that a hop passed on, and where to.
    pub(crate) fn passed_on(&self, remap: &Remap) -> Option<Self> {
        let (begin, end) = (self.begin.max(remap.from_begin), self.end().min(remap.from_begin + remap.length));
        (remap.from_device == self.device && begin < end).then(|| Self {
            from: self.from + (begin - self.begin),
            length: end - begin,
            device: remap.device,
            begin: remap.begin + (begin - remap.from_begin),
        })
    }
}
