//! One I/O to be done.

use trueio_model::OpKind;

/// One I/O to be done: what, where, how much. The generator writes them in blocks of
/// 64, the worker consumes them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes; 0 for a sync call.
    pub length: u32,
    /// Which of the job's files.
    pub file: u16,
    /// What to do. A sync call waits until nothing else is in flight.
    pub op: OpKind,
    /// Sync calls only: `fdatasync` instead of `fsync`.
    pub data_only: bool,
}

impl Request {
    /// What an unused slot holds.
    pub const NONE: Request = Request { offset: 0, length: 0, file: 0, op: OpKind::Read, data_only: false };
}

/// Requests generated in one go: enough to keep the generator's state in registers, few enough
/// that the block stays in the first-level cache (64 · 24 B = 1.5 KiB).
pub(crate) const REQUEST_BLOCK: usize = 64;
