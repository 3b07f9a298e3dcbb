//! One I/O to be done.

use trueio_model::OpKind;

/// One I/O to be done: what, where, how much. The generator writes them in blocks of
/// 64, the worker consumes them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes; 0 for a sync call, 1 for the dropping of cached pages that is told as one, more for `sync_file_range`.
    pub length: u32,
    /// Which of the job's files.
    pub file: u16,
    /// What to do. A sync call waits until nothing else is in flight.
    pub op: OpKind,
    /// Sync calls only: `fdatasync` instead of `fsync`. For the dropping of cached pages: of all files.
    pub data_only: bool,
}

impl Request {
    /// What an unused slot holds.
    pub const NONE: Request = Request { offset: 0, length: 0, file: 0, op: OpKind::Read, data_only: false };

    /// Not an I/O: the cached pages of a file, or of all files, are dropped before a further pass. It is told as a
    /// sync call, because both wait until nothing is in flight, and are rare.
    pub(crate) fn drop_pages(file: Option<u16>) -> Request {
        Request { op: OpKind::Sync, length: 1, file: file.unwrap_or(0), data_only: file.is_none(), ..Request::NONE }
    }

    /// `sync_file_range` from `offset` on, told as a sync call. Pages are what the kernel writes out, so the length is
    /// kept in units of the smallest ones.
    pub(crate) fn sync_range(file: u16, offset: u64, bytes: u64) -> Request {
        let length = u32::try_from(bytes.div_ceil(RANGE_UNIT_BYTES).max(1) + 1).unwrap_or(u32::MAX);
        Request { op: OpKind::Sync, offset, length, file, data_only: false }
    }

    /// The length of a range that is to be written out, in bytes, 0: to the end of the file; `None` for all else.
    pub fn range_bytes(&self) -> Option<u64> {
        match self.length {
            u32::MAX if self.op == OpKind::Sync => Some(0),
            units @ 2.. if self.op == OpKind::Sync => Some(u64::from(units - 1) * RANGE_UNIT_BYTES),
            _ => None,
        }
    }

    /// True for a request that drops cached pages and moves nothing.
    pub fn drops_pages(&self) -> bool {
        self.op == OpKind::Sync && self.length == 1
    }
}

/// The smallest pages that any system has.
const RANGE_UNIT_BYTES: u64 = 4096;

/// Requests generated in one go: enough to keep the generator's state in registers, few enough
/// that the block stays in the first-level cache (64 · 24 B = 1.5 KiB).
pub(crate) const REQUEST_BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_told_in_whole_pages_and_is_no_other_kind_of_sync_call() {
        for (bytes, told) in [(1, 4096), (4096, 4096), (4097, 8192), (1 << 43, 1 << 43), (1 << 44, 0), (u64::MAX, 0)] {
            let request = Request::sync_range(3, 512, bytes);
            assert_eq!((request.file, request.offset, request.range_bytes()), (3, 512, Some(told)), "{bytes}");
            assert!(!request.drops_pages());
        }
        let sync = Request { op: OpKind::Sync, ..Request::NONE };
        for other in [sync, Request::drop_pages(None), Request { length: 4096, ..Request::NONE }] {
            assert_eq!(other.range_bytes(), None);
        }
    }
}
