//! The format of a trace.
//!
//! | column        | type  | meaning                                                                             |
//! |---------------|-------|-------------------------------------------------------------------------------------|
//! | `time_ns`     | INT64 | when the I/O completed, in nanoseconds since the run began                          |
//! | `worker`      | INT32 | the worker's number in the run, from 1                                              |
//! | `op`          | INT32 | 0: read, 1: write, 2: trim, 3: sync call                                            |
//! | `file`        | INT32 | the index of the file in its job's list, from 0                                     |
//! | `offset`      | INT64 | where, in bytes; 0 for a sync call                                                  |
//! | `length`      | INT32 | bytes transferred; of a failed I/O those that were requested                        |
//! | `slat_ns`     | INT64 | submission latency; 0 for an engine that blocks                                     |
//! | `clat_ns`     | INT64 | completion latency                                                                  |
//! | `intended_ns` | INT64 | when it was due, as `time_ns`: without a rate or a replay, when it was submitted    |
//! | `error`       | INT32 | 0, or the error number of the call                                                  |
//!
//! Times and latencies are as the worker counts them: docs/dev/performance.md, "Where timestamps are shared". Not traced are the
//! ramp and what verification reads back.
//!
//! Every column is required and encoded with DELTA_BINARY_PACKED: neighbours differ little, and a column that is always the
//! same takes 5 bytes per 128 rows. Rows are in the order in which workers sent them: those of one worker in the order of
//! their completion. The file's metadata has the key `trueio.trace` with [`TraceHeader`] as JSON.
//!
//! The magic number at the end of a Parquet file is written last. The trace of a run that was killed cannot be read.

use crate::parquet::ParquetError;
use serde::{Deserialize, Serialize};
use trueio_model::OpKind;

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// The key of the header in the file's metadata.
pub(crate) const HEADER_KEY: &str = "trueio.trace";

/// The columns: name, and whether values have 64 bits.
pub const COLUMNS: [(&str, bool); 10] = [
    ("time_ns", true),
    ("worker", false),
    ("op", false),
    ("file", false),
    ("offset", true),
    ("length", false),
    ("slat_ns", true),
    ("clat_ns", true),
    ("intended_ns", true),
    ("error", false),
];

/// One I/O of a trace; the fields are the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow {
    /// When it completed, in nanoseconds since its worker's measured part began.
    pub time_ns: u64,
    /// Number of its worker in the run, from 1.
    pub worker: u32,
    /// The operation.
    pub op: OpKind,
    /// Index of its file in [`TracedJob::files`].
    pub file: u32,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Requested length, in bytes.
    pub length: u32,
    /// From the start of submission to its end, in nanoseconds.
    pub slat_ns: u64,
    /// From the end of submission to completion, in nanoseconds.
    pub clat_ns: u64,
    /// When it was due.
    pub intended_ns: u64,
    /// The error number, or 0.
    pub error: u32,
}

impl TraceRow {
    /// Returns when it was submitted.
    pub fn submitted_ns(&self) -> u64 {
        self.time_ns.saturating_sub(self.slat_ns.saturating_add(self.clat_ns))
    }
}

/// A job of a traced run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedJob {
    /// Its name.
    pub name: String,
    /// The number of its first worker in the run, from 1.
    pub first_worker: u32,
    /// How many workers it has.
    pub workers: u32,
    /// The paths of its files; the column `file` is an index in them.
    pub files: Vec<String>,
}

/// Rows of a worker that are missing, because the writer was slower than the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Number of the worker in the run, from 1.
    pub worker: u32,
    /// How many rows.
    pub rows: u64,
    /// When the first of them completed, as `time_ns`.
    pub from_ns: u64,
    /// When the last of them completed.
    pub to_ns: u64,
}

/// What a trace tells of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The version of the format.
    pub version: u32,
    /// The jobs, in the order of their workers.
    pub jobs: Vec<TracedJob>,
    /// Rows that are missing, one entry for each worker that has some.
    pub dropped: Vec<Dropped>,
}

impl TraceHeader {
    /// Returns how many rows are missing.
    pub fn dropped_rows(&self) -> u64 {
        self.dropped.iter().fold(0, |sum, dropped| sum.saturating_add(dropped.rows))
    }

    /// Returns the job of a worker.
    pub fn job(&self, worker: u32) -> Option<&TracedJob> {
        let is_of = |job: &&TracedJob| worker.checked_sub(job.first_worker).is_some_and(|number| number < job.workers);
        self.jobs.iter().find(is_of)
    }
}

/// A trace that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is no Parquet file, is damaged or incomplete, or has what is not read.
    #[error(transparent)]
    Parquet(ParquetError),
    /// The kernel's reason.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A Parquet file of another program, or of a later version.
    #[error("it is not a trace of trueio: {0}")]
    NotATrace(String),
}

impl From<ParquetError> for TraceError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::Io(error) => Self::Io(error),
            error => Self::Parquet(error),
        }
    }
}

pub(crate) fn number_of(op: OpKind) -> i32 {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => 3,
    }
}

pub(crate) fn op_of(number: i32) -> Option<OpKind> {
    [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync].get(usize::try_from(number).ok()?).copied()
}
