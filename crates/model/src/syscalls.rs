//! The system calls of a phase's workers, and their cost.

use crate::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// System calls of a phase's workers, as the kernel's tracepoints recorded them: each one of the measured
/// part, from the kernel's entry to its return.
///
/// Not in it: what other threads of this process do; what the kernel does on our behalf without a call of
/// ours (io_uring's worker and polling threads).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallTrace {
    /// Why nothing was traced; `None` if it was.
    pub missing: Option<String>,
    /// How long the workers' calls were recorded, in nanoseconds: the whole measured part.
    pub span_ns: u64,
    /// Events (two per call) that were lost because the kernel's buffer was full. If there are any, every count here
    /// is a lower bound.
    pub lost_event_count: u64,
    /// CPU time of the thread that read the events, in nanoseconds, without the cost that the tracepoints add to each call.
    pub thread_cpu_ns: u64,
    /// The jobs, in their order.
    pub jobs: Vec<JobSyscalls>,
}

/// The calls of one job's workers and of their engine's further threads (`posixaio`), together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobSyscalls {
    /// The job's name.
    pub name: String,
    /// Number of its workers' threads that were traced.
    pub thread_count: u32,
    /// One row a system call, by the time spent in it, longest first.
    pub calls: Vec<SyscallRow>,
}

/// One system call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallRow {
    /// Its name (`pwrite64`); `syscall 999` if this program does not know the number.
    pub name: String,
    /// Its number on this architecture.
    pub number: i64,
    /// Number of calls, including unfinished ones.
    pub count: u64,
    /// Made before the recording ended, and not returned by then; or returned, and made before it began.
    pub unfinished_count: u64,
    /// Time from the kernel's entry to its return, of those with both in the recording.
    pub latency: Histogram,
    /// Those that failed, by error number.
    pub errors: Vec<SyscallError>,
    /// Details of calls that transfer, position, submit or flush data.
    pub io: Option<SyscallIo>,
}

/// Calls that failed with one error number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallError {
    /// Error number, positive, as errno(3) lists it.
    pub errno: i32,
    /// How many.
    pub count: u64,
}

/// The I/O of a call, from its arguments and results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallIo {
    /// What `asked` and `returned` count.
    pub unit: SyscallUnit,
    /// Requested size of each call; empty for calls whose arguments do not contain it (vectors).
    pub asked: SyscallSizes,
    /// Size that each successful call returned.
    pub returned: SyscallSizes,
    /// Calls by the flags with which their file was open: (`O_RDWR|O_DIRECT`, calls), most frequent first.
    pub opened: Vec<(String, u64)>,
    /// Calls by the flags of the call itself: (`RWF_DSYNC`, calls). Calls without one are not in it.
    pub flags: Vec<(String, u64)>,
    /// Positions in the file; `None` for calls without a position, or whose arguments do not contain it.
    pub places: Option<SyscallPlaces>,
}

/// The unit of a call's sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyscallUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// I/Os: calls that submit or reap several.
    Ios,
}

/// How often each size occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallSizes {
    /// (size, calls), smallest first; the number of different sizes is limited.
    pub counts: Vec<(u64, u64)>,
    /// Calls of further sizes.
    pub other_count: u64,
    /// All together.
    pub sum: u64,
}

/// Where calls began in their files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallPlaces {
    /// Calls whose offset is known.
    pub placed_count: u64,
    /// Of these, calls with an earlier one of the same thread on the same descriptor.
    pub following_count: u64,
    /// Of these, calls that began where that one had ended.
    pub sequential_count: u64,
    /// Different offsets (in different files they are different).
    pub unique_count: u64,
    /// There were more different ones than are stored: `unique_count` is a lower bound.
    pub is_unique_least: bool,
    /// Smallest offset, in bytes.
    pub begin_bytes: u64,
    /// Largest end, in bytes.
    pub end_bytes: u64,
}

impl SyscallTrace {
    /// The calls of one name, of all jobs.
    pub fn calls(&self, name: &str) -> impl Iterator<Item = &SyscallRow> {
        self.jobs.iter().flat_map(|job| &job.calls).filter(move |call| call.name == name)
    }

    /// How often a call was made, by all jobs.
    pub fn count(&self, name: &str) -> u64 {
        self.calls(name).map(|call| call.count).sum()
    }
}

impl SyscallRow {
    /// Calls that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }

    /// Returns true for calls that write out data: `fsync`, `fdatasync` and similar ones, and `sync_file_range`, which
    /// makes nothing durable.
    pub fn is_flush(&self) -> bool {
        ["fsync", "fdatasync", "sync_file_range", "sync_file_range2", "syncfs", "sync", "msync"]
            .contains(&self.name.as_str())
    }
}
