//! One I/O to be done.

use trueio_model::OpKind;

/// One I/O to be done: what, where, how much. The generator writes them in blocks of
/// 64, the worker consumes them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes; 0 for a sync call, 1 for the dropping of cached pages that is told as one.
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

    /// True for a request that drops cached pages and moves nothing.
    pub fn drops_pages(&self) -> bool {
        self.op == OpKind::Sync && self.length == 1
    }
}

/// Requests generated in one go: enough to keep the generator's state in registers, few enough
/// that the block stays in the first-level cache (64 · 24 B = 1.5 KiB).
pub(crate) const REQUEST_BLOCK: usize = 64;
