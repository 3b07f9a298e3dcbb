//! The block layer's trace of sampled parts of a phase.

use crate::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One I/O of a job with its worker's timestamps, from a window in which requests were traced.
///
/// Timestamps are nanoseconds of `CLOCK_MONOTONIC`, read by the worker before it submitted the I/O and
/// after it reaped the completion: the kernel's part is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledIo {
    /// The window in which it was sampled, from 1.
    pub window: u32,
    /// The operation. A sync call has no position: offset and length are 0.
    pub op: OpKind,
    /// Which of the job's files.
    pub file: u16,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Before the submission.
    pub issued_ns: u64,
    /// After the completion was reaped, or the sync call returned.
    pub done_ns: u64,
}

/// Block requests of a phase, traced in short windows spread over its measured part, and their match with
/// the I/Os that the workers sampled in the same windows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TraceRecord {
    /// Why no request was traced; `None` if some could be.
    pub missing: Option<String>,
    /// The disks whose requests were traced.
    pub disks: Vec<String>,
    /// Windows, without those that were opened because counters showed other programs: these name programs and count for no sum.
    pub window_count: u64,
    /// These windows together, in nanoseconds.
    pub window_ns: u64,
    /// CPU time of the tracing thread, which switches tracepoints and reads and sorts events; without the cost
    /// that the tracepoints add to each request.
    pub thread_cpu_ns: u64,
    /// Events that were lost because the kernel's buffer was full. The windows end before the first of them.
    pub lost_event_count: u64,
    /// Requests in the physical ranges of our files.
    pub ours: RequestSum,
    /// Of those, the ones that threads of the kernel submitted: write-back; of direct I/O, what a limit of a control group delayed, or what a layer such as
    /// dm-crypt passed on.
    pub ours_by_kernel: RequestSum,
    /// Requests elsewhere that the kernel marks as metadata, or that a journal's thread made.
    pub filesystem: RequestSum,
    /// Requests elsewhere that our own threads made: filesystem tables that a sync call writes, or
    /// other I/O of this process.
    pub own_elsewhere: RequestSum,
    /// Requests elsewhere that other programs made.
    pub others: RequestSum,
    /// Requests elsewhere from kernel threads, of unknown origin: another file's data written back,
    /// or a filesystem table.
    pub unattributed: RequestSum,
    /// Time in which a request that is not ours was in flight, in the windows, in nanoseconds.
    pub others_busy_ns: u64,
    /// A few other programs, busiest first, one entry for each disk. Where `others` and `unattributed` are hardly anything, what all windows saw.
    pub other_processes: Vec<TracedProcess>,
    /// What kernel threads did elsewhere, in words, busiest first, one entry for each disk.
    pub kernel_work: Vec<TracedProcess>,
    /// Programs whose dirty pages the kernel wrote back in the windows, or that dirtied pages of the measured files, busiest first, one entry for each
    /// disk. `write_bytes` is about what they were seen to dirty of these files.
    pub write_back: Vec<TracedProcess>,
    /// Why requests elsewhere cannot be distinguished from ours; `None` if they can.
    pub inseparable: Option<String>,
    /// How often the driver had no room for a request and returned it; it counts once.
    pub requeued_count: u64,
    /// Sampled direct transfers.
    pub transfers: TransferMatch,
    /// Where the time of the sampled direct transfers went, for each operation.
    pub latency: Vec<LatencyParts>,
    /// Where on the busiest disk requests were, over time; `None` without a request.
    pub places: Option<RequestPlaces>,
    /// Sampled writes that were waited for until durable.
    pub syncs: SyncOrder,
    /// How those found on loop devices were found on the disks of their files; `None` without a loop device.
    pub below: Option<BelowTrace>,
}

/// Requests of loop devices, followed to the disks of their files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BelowTrace {
    /// The loop devices.
    pub loops: Vec<String>,
    /// Their files, and those of loop devices below them.
    pub files: Vec<String>,
    /// The disks of the files.
    pub disks: Vec<String>,
    /// Why one of them was not followed, with its name; `None` if all were.
    pub missing: Option<String>,
    /// Sampled direct transfers whose requests to loop devices were found.
    pub transfers: TransferMatch,
    /// Of those that were missing, reads of holes in the files.
    pub hole_count: u64,
    /// A description of the first of them.
    pub hole_example: Option<String>,
    /// Sampled durable writes that a flush of a loop device followed.
    pub syncs: SyncOrder,
    /// All windows together, as far as the requests of the disks are known, in nanoseconds.
    pub window_ns: u64,
    /// Requests of the disks in the places of the files.
    pub ours: RequestSum,
    /// Requests of the disks that other programs made, anywhere.
    pub others: RequestSum,
    /// Time in which one of those was in flight, in the windows, in nanoseconds.
    pub others_busy_ns: u64,
    /// A few of these programs, busiest first, one entry for each disk.
    pub other_processes: Vec<TracedProcess>,
}

/// The requests of another program to one disk, in the windows: what was seen, not more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TracedProcess {
    /// Its name when it submitted them, as the kernel reports it; what they do, of threads of the kernel.
    pub name: String,
    /// The thread that submitted; 0 if its number is of another PID namespace, and for threads of the kernel.
    pub process: i32,
    /// The disk.
    pub disk: String,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub write_bytes: u64,
    /// Of both, those in the measured files.
    pub in_files_bytes: u64,
    /// True if it had ended when the phase ended.
    pub has_ended: bool,
}

/// Requests of one kind, in the windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestSum {
    /// Requests that carry data.
    pub count: u64,
    /// Bytes that they transfer.
    pub bytes: u64,
}

/// The match of sampled direct transfers with requests to their physical ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TransferMatch {
    /// Number of transfers to match.
    pub sampled_count: u64,
    /// Found: requests of the same direction covered every byte of the range on the disk, and began and
    /// ended within the I/O.
    pub matched_count: u64,
    /// Of these, by more than one request.
    pub split_count: u64,
    /// Of these, by a request that carried more than this I/O (neighbours merged).
    pub merged_count: u64,
    /// Not found, although the file's physical ranges are known and did not change.
    pub missing_count: u64,
    /// Not found, and the file's physical ranges are unknown or changed.
    pub unplaced_count: u64,
    /// A description of the first that was missing.
    pub missing_example: Option<String>,
}

/// The parts of the latency of sampled direct transfers, by the request of each that completed last, and of sampled sync calls and durable
/// writes, by the time in which the disks had a request of anybody. The parts of one I/O add up to its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyParts {
    /// Read, write or sync.
    pub op: OpKind,
    /// Number of I/Os.
    pub io_count: u64,
    /// From the submission by the worker to the completion that it saw.
    pub total: PartTimes,
    /// In the queue of the I/O scheduler: from entry to the last issue to the driver. 0 without a scheduler.
    pub scheduler: PartTimes,
    /// In the driver and the device: from the last issue to the completion.
    pub device: PartTimes,
    /// The rest: system calls, the filesystem, waits for a free request, this program.
    pub rest: PartTimes,
}

/// The requests of all windows on one disk, counted in a grid of time by position: columns of equal time, rows of equal length.
/// Cells without requests are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestPlaces {
    /// The disk.
    pub disk: String,
    /// First byte of the first row.
    pub begin_bytes: u64,
    /// The byte after the last row.
    pub end_bytes: u64,
    /// From the begin of the first window to the end of the last, in nanoseconds.
    pub span_ns: u64,
    /// Number of columns.
    pub column_count: u32,
    /// Number of rows.
    pub row_count: u32,
    /// Requests before the first row and after the last: few, and far away.
    #[serde(skip_serializing_if = "is_zero")]
    pub outside_count: u64,
    /// Which cell: row · `column_count` + column, in rising order.
    pub index: Vec<u32>,
    /// Its requests in our files, of this process or of the filesystem.
    pub own_count: Vec<u32>,
    /// Its requests of other programs or of unknown origin.
    pub other_count: Vec<u32>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Mean and percentiles of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartTimes {
    /// Mean, in nanoseconds.
    pub mean_ns: u64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
}

/// The match of sampled durable writes with the order of requests on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyncOrder {
    /// Writes to match, each with the sync call or the flag that made it durable.
    pub sampled_count: u64,
    /// Data completed, then a flush was issued and completed, then the call returned.
    pub flushed_count: u64,
    /// The data requests themselves carried forced unit access.
    pub fua_count: u64,
    /// Data completed before the call returned, on a disk that declares no volatile cache.
    pub uncached_count: u64,
    /// Data completed, but no flush completed before the call returned.
    pub unflushed_count: u64,
    /// The call returned before the data was on the disk.
    pub unwritten_count: u64,
    /// The data was not found, and the file's physical ranges are unknown or changed.
    pub unplaced_count: u64,
    /// A description of the first that was not durable.
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
