//! The steps of a job: its I/Os, and what comes between them.

use trueio_model::OpKind;

/// One I/O: what, where, how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes. Above 0, except where a [`Step::Sync`] is described as a request.
    pub length: u32,
    /// Index into the job's files.
    pub file: u16,
    /// The operation.
    pub op: OpKind,
}

impl Request {
    /// The content of an unused slot.
    pub const NONE: Request = Request { offset: 0, length: 0, file: 0, op: OpKind::Read };
}

/// One step of a job. The generator writes steps in blocks of 64; the worker takes them one by one.
///
/// All steps but [`Step::Io`] wait until nothing is in flight, and are rare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A read, write or trim.
    Io(Request),
    /// `fsync`, or `fdatasync` if `data_only`.
    Sync {
        /// Index into the job's files.
        file: u16,
        /// `fdatasync` instead of `fsync`.
        data_only: bool,
    },
    /// `sync_file_range`.
    SyncRange {
        /// Index into the job's files.
        file: u16,
        /// First byte.
        offset: u64,
        /// Bytes; 0: to the end of the file.
        bytes: u64,
    },
    /// A further pass begins: cached pages are dropped, files are made again, or what a loop wrote is read back.
    NextPass {
        /// The file whose pass begins; `None`: all files.
        file: Option<u16>,
        /// One of the job's loops ended.
        ends_loop: bool,
    },
}

// A block of 64 steps stays in the first-level cache: 64 · 24 B = 1.5 KiB.
const _: () = assert!(size_of::<Step>() == 24);

impl Step {
    /// The content of an unused entry.
    pub(crate) const NONE: Step = Step::Io(Request::NONE);

    /// Returns a range that was written since the last call, in whole pages: the kernel writes out pages.
    pub(crate) fn sync_range(file: u16, begin: u64, end: u64) -> Step {
        Step::SyncRange { file, offset: begin, bytes: (end - begin).next_multiple_of(PAGE_BYTES) }
    }

    /// Returns the operation that records and logs count this step as.
    pub fn op(&self) -> OpKind {
        match self {
            Step::Io(request) => request.op,
            Step::Sync { .. } | Step::SyncRange { .. } | Step::NextPass { .. } => OpKind::Sync,
        }
    }

    /// Describes the step by operation, file, offset and length, as records, logs and failures hold it. The length of
    /// a step that moves no data is 0.
    pub fn request(&self) -> Request {
        match *self {
            Step::Io(request) => request,
            Step::Sync { file, .. } => Request { op: OpKind::Sync, file, ..Request::NONE },
            Step::SyncRange { file, offset, .. } => Request { op: OpKind::Sync, file, offset, length: 0 },
            Step::NextPass { file, .. } => Request { op: OpKind::Sync, file: file.unwrap_or(0), ..Request::NONE },
        }
    }
}

/// The smallest pages of any supported system.
const PAGE_BYTES: u64 = 4096;

/// Steps generated in one go: enough to keep the generator's state in registers, few enough that the block stays in
/// the first-level cache.
pub(crate) const REQUEST_BLOCK: usize = 64;
