//! What the block layer's own trace says of sampled parts of a phase.

use crate::OpKind;
use serde::{Deserialize, Serialize};

/// One I/O of a job as its worker saw it, in a span of time in which requests were traced.
///
/// Moments are nanoseconds of `CLOCK_MONOTONIC`, read by the worker before it handed the I/O over and
/// after it collected the completion: the kernel's part lies between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledIo {
    /// The window in which it was sampled, from 1.
    pub window: u32,
    /// What it was. A sync call has no place: offset and length are 0.
    pub op: OpKind,
    /// Which of the job's files.
    pub file: u16,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Before the hand-over.
    pub issued_ns: u64,
    /// After the completion was collected, or the sync call returned.
    pub done_ns: u64,
}

/// Block requests of a phase, traced in short windows spread over its measured part, and what they
/// say of the I/Os that the workers sampled in the same windows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceRecord {
    /// Why no request was traced; `None` if some could be.
    pub missing: Option<String>,
    /// The disks whose requests were traced.
    pub disks: Vec<String>,
    /// Windows.
    pub window_count: u64,
    /// All windows together, in nanoseconds.
    pub window_ns: u64,
    /// CPU time of the thread that traced: tracepoints switched, events read and put in order. What the
    /// tracepoints themselves add to each request is not in it.
    pub thread_cpu_ns: u64,
    /// Events that found no room in the kernel's buffer. The windows end before the first of them.
    pub lost_event_count: u64,
    /// Requests in our files' places.
    pub ours: RequestSum,
    /// Requests elsewhere that the kernel marks as metadata, or that a journal's thread made.
    pub filesystem: RequestSum,
    /// Requests elsewhere that our own threads made: tables of the filesystem that a sync call writes, or
    /// whatever else this process does.
    pub own_elsewhere: RequestSum,
    /// Requests elsewhere that other programs made.
    pub others: RequestSum,
    /// Requests elsewhere that the kernel made on somebody's behalf: another file's data written back,
    /// or a table of the filesystem. Nobody says which.
    pub unattributed: RequestSum,
    /// Who the others were: their names as the kernel gives them, busiest first, a few.
    pub others_names: Vec<String>,
    /// Why requests elsewhere cannot be told from ours; `None` if they can.
    pub inseparable: Option<String>,
    /// Sampled direct transfers.
    pub transfers: TransferMatch,
    /// Sampled writes that were waited for until durable.
    pub syncs: SyncOrder,
}

/// Requests of one kind, in the windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestSum {
    /// Requests that carry data.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Sampled direct transfers beside the requests of their physical ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferMatch {
    /// Looked for.
    pub sampled_count: u64,
    /// Found: requests of the same direction covered every byte of the range on the disk, and began and
    /// ended within the I/O.
    pub matched_count: u64,
    /// Of these, by more than one request.
    pub split_count: u64,
    /// Of these, by a request that carried more than this I/O (neighbours merged).
    pub merged_count: u64,
    /// Not found, although the file's place is known and did not move.
    pub missing_count: u64,
    /// Not found, and the file's place is not known or moved.
    pub unplaced_count: u64,
    /// The first that was missing, in words.
    pub missing_example: Option<String>,
}

/// Sampled durable writes beside the order of requests on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncOrder {
    /// Writes looked for, each with the sync call or the flag that made it durable.
    pub sampled_count: u64,
    /// Data completed, then a flush was issued and completed, then the call returned.
    pub flushed_count: u64,
    /// The data requests themselves carried forced unit access.
    pub fua_count: u64,
    /// Data completed before the call returned, on a disk that declares no volatile cache.
    pub uncached_count: u64,
    /// Data completed, no flush did before the call returned.
    pub unflushed_count: u64,
    /// The call returned before the data was on the disk.
    pub unwritten_count: u64,
    /// The data was not found, and the file's place is not known or moved.
    pub unplaced_count: u64,
    /// The first that was not durable, in words.
    pub failure_example: Option<String>,
}

impl TraceRecord {
    /// Sampled I/Os whose requests were found on the disk.
    pub fn matched_count(&self) -> u64 {
        let SyncOrder { flushed_count, fua_count, uncached_count, unflushed_count, .. } = self.syncs;
        self.transfers.matched_count + flushed_count + fua_count + uncached_count + unflushed_count
    }
}

impl SyncOrder {
    /// Writes that were durable when the call returned.
    pub fn durable_count(&self) -> u64 {
        self.flushed_count + self.fua_count + self.uncached_count
    }

    /// Writes that were not.
    pub fn failed_count(&self) -> u64 {
        self.unflushed_count + self.unwritten_count
    }
}
