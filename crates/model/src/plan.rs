//! What will be done: nothing optional that the run would have to guess, everything in bytes,
//! nanoseconds and seeds. A plan is complete before anything is touched; a request that cannot be
//! planned is refused instead.

use crate::{OpKind, Origin, SteadyPlan};
use serde::{Deserialize, Serialize};

/// Everything that a run does, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Jobs in the order of the job file. Jobs of equal [`JobPlan::phase`] run at the same time.
    pub jobs: Vec<JobPlan>,
    /// How long the disks are watched idle before each phase, in nanoseconds, so that others' I/O
    /// can be told from ours. 0: not at all.
    pub idle_baseline_ns: u64,
    /// Checks whose contradiction the user accepts: such a phase is suspect, and its figures stand.
    #[serde(default)]
    pub accepted_checks: Vec<String>,
    /// Sentences for the user: what was chosen for them and why.
    pub notes: Vec<String>,
}

/// One job: `workers` threads that do the same to the same files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The job's name.
    pub name: String,
    /// The phase it belongs to, from 0; a stonewall begins a new one.
    pub phase: u32,
    /// The I/O engine.
    pub engine: EngineKind,
    /// Threads.
    pub workers: u32,
    /// The files, shared by all workers.
    pub files: Vec<FilePlan>,
    /// Which file the next I/O goes to.
    pub file_selection: FileSelection,
    /// Which operations, where.
    pub pattern: Pattern,
    /// Queue depth and batches.
    pub queue: Queue,
    /// When it ends.
    pub limits: Limits,
    /// Rounds before the measured part, until it is steady; `None`: measured at once. Jobs of a phase
    /// all say the same.
    #[serde(default)]
    pub steady_state: Option<SteadyPlan>,
    /// Past the page cache, or not.
    pub direct: DirectPolicy,
    /// The open flags that make each write durable.
    pub sync: SyncMode,
    /// Flags of each single write.
    pub write_flags: WriteFlags,
    /// Sync calls between and after the writes.
    pub flush: Flush,
    /// An open-loop rate; `None`: closed loop, as fast as the depth allows.
    pub pace: Option<Pace>,
    /// Pauses.
    pub think: Option<Think>,
    /// What is written.
    pub content: Content,
    /// Whether what was written is read back and compared.
    pub verify: Option<Verify>,
    /// io_uring's own choices; other engines ignore them.
    pub uring: UringOptions,
    /// The model behind `engine = simulated`; `None` for every other engine.
    pub simulated: Option<SimulatedDevice>,
    /// Processors the workers are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Nice value, −20 to 19; `None`: left as it is.
    pub nice: Option<i32>,
    /// Drop the files' cached pages before the measured part.
    pub invalidate: bool,
    /// The seed of offsets, sizes, mix, arrivals and content. Worker `i` derives its own from it.
    pub seed: u64,
    /// Alignment of the I/O buffers' addresses, in bytes; a power of two.
    pub buffer_alignment_bytes: u32,
    /// Go on after a failed I/O (counting it) instead of ending the job at the first.
    pub continue_on_error: bool,
    /// Every option's value and origin, as `trueio explain` prints them, in the table's order.
    pub values: Vec<PlanValue>,
}

/// One option's final value and who said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanValue {
    /// The option's name.
    pub name: String,
    /// Its value in canonical text.
    pub value: String,
    /// Who said so.
    pub origin: Origin,
}

/// The I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// `pread` and `pwrite`.
    Sync,
    /// `preadv2` and `pwritev2` with RWF flags.
    Pvsync2,
    /// Linux native asynchronous I/O: `io_submit`, `io_getevents`.
    Libaio,
    /// io_uring.
    IoUring,
    /// Copies to and from a mapping.
    Mmap,
    /// Does nothing, at once: what is left is the tool's own cost.
    Null,
    /// A modelled disk in virtual time: no real I/O, exact and repeatable.
    Simulated,
}

impl EngineKind {
    /// All of them, in the order of the documentation.
    pub const ALL: [EngineKind; 7] = [
        EngineKind::Sync,
        EngineKind::Pvsync2,
        EngineKind::Libaio,
        EngineKind::IoUring,
        EngineKind::Mmap,
        EngineKind::Null,
        EngineKind::Simulated,
    ];

    /// The name used in job files, output and records.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Sync => "sync",
            EngineKind::Pvsync2 => "pvsync2",
            EngineKind::Libaio => "libaio",
            EngineKind::IoUring => "io_uring",
            EngineKind::Mmap => "mmap",
            EngineKind::Null => "null",
            EngineKind::Simulated => "simulated",
        }
    }

    /// True if one thread can keep more than one I/O in flight.
    pub fn holds_a_queue(self) -> bool {
        matches!(self, EngineKind::Libaio | EngineKind::IoUring | EngineKind::Null | EngineKind::Simulated)
    }

    /// True if the engine performs real I/O on real files.
    pub fn touches_files(self) -> bool {
        !matches!(self, EngineKind::Null | EngineKind::Simulated)
    }
}

/// A file or device under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlan {
    /// Its path.
    pub path: String,
    /// What is done with it before the first phase that uses it.
    pub prepare: Prepare,
    /// True if it is removed when the run ends, in whatever way. Only ever true for a file that
    /// this program creates.
    pub remove_after: bool,
    /// First byte of the region, in bytes.
    pub offset_bytes: u64,
    /// Length of the region, in bytes; the file is at least `offset_bytes + size_bytes` long.
    pub size_bytes: u64,
}

/// What is done with a file before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepare {
    /// It is there and is used as it is: never truncated, extended or removed.
    UseExisting,
    /// Created under a name that must not exist yet, and really written with random content.
    CreateFilled,
    /// Created under a name that must not exist yet, space allocated, nothing written.
    CreateAllocated,
    /// Created under a name that must not exist yet, empty: the job extends it.
    CreateEmpty,
    /// Nothing is opened (`null` and `simulated`).
    Nothing,
}

/// Which file the next I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSelection {
    /// Each in turn.
    RoundRobin,
    /// One after another, each to its end.
    Sequential,
    /// At random.
    Random,
}

/// Which operations, where, how large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The operations.
    pub mix: OpMix,
    /// Where the next one goes.
    pub order: Order,
    /// Sizes of reads.
    pub read_sizes: BlockSizes,
    /// Sizes of writes.
    pub write_sizes: BlockSizes,
    /// Sizes of trims.
    pub trim_sizes: BlockSizes,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpMix {
    /// One kind only.
    Only(OpKind),
    /// Reads and writes, drawn for each I/O; the number is the percentage of reads, 0 to 100.
    ReadWrite {
        /// Percentage of reads, 0 to 100.
        read_percent: u8,
    },
}

/// Where the next I/O goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the region's first byte to its last, then again.
    Sequential,
    /// By a distribution.
    Random {
        /// How offsets are distributed.
        distribution: Distribution,
        /// Every block exactly once a pass (uniform only); no block comes twice before all came.
        each_block_once: bool,
    },
}

/// How random offsets are distributed over the blocks of the region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf with exponent `theta` > 0; the popular blocks are scattered over the region.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// Pareto with `h` in (0, 1): 0.2 sends about 80 % of the I/O to 20 % of the blocks.
    Pareto {
        /// The share's parameter.
        h: f64,
    },
    /// Normal around the region's middle, with this deviation in percent of the region.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
    },
    /// Zones in order: (percent of the I/O, percent of the region); both columns sum to 100.
    Zoned {
        /// The zones.
        zones: Vec<(f64, f64)>,
    },
}

/// Sizes of an operation, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockSizes {
    /// Always this many.
    Fixed(u64),
    /// Uniform over the multiples of `min_bytes` from `min_bytes` to `max_bytes`.
    Range {
        /// Smallest, and the step.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// (size, weight) pairs; weights sum to 100.
    Weighted(Vec<(u64, u32)>),
}

impl BlockSizes {
    /// The largest size, in bytes.
    pub fn max_bytes(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max_bytes, .. } => *max_bytes,
            BlockSizes::Weighted(pairs) => pairs.iter().map(|p| p.0).max().unwrap_or(0),
        }
    }

    /// The smallest size, in bytes.
    pub fn min_bytes(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min_bytes, .. } => *min_bytes,
            BlockSizes::Weighted(pairs) => pairs.iter().map(|p| p.0).min().unwrap_or(0),
        }
    }
}

/// Queue depth and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// I/Os that each worker keeps in flight; 1 for engines that block.
    pub depth: u32,
    /// I/Os handed over in one submission; `None`: the engine adapts it to the device's latency so
    /// that batching does not lengthen it.
    pub submit_batch: Option<u32>,
    /// Completions waited for at least, when the queue is full.
    pub complete_min: u32,
    /// Completions taken at most in one go; 0: all that are there.
    pub complete_max: u32,
}

/// When a job ends: at the first of the limits that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes each worker transfers in a loop.
    pub io_bytes: u64,
    /// How often that is done.
    pub loops: u64,
    /// I/Os each worker issues at most.
    pub io_count: Option<u64>,
    /// Measured time, ramp excluded.
    pub runtime_ns: Option<u64>,
    /// True: `io_bytes` and `loops` do not end the job, only the runtime does.
    pub is_time_based: bool,
    /// Time before the measured part: I/O is done but not recorded.
    pub ramp_ns: u64,
    /// Wait before the first I/O of the phase.
    pub start_delay_ns: u64,
}

/// Past the page cache, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectPolicy {
    /// Direct or not at all: refused where the filesystem would quietly buffer.
    Require,
    /// Direct where it can be had; the record says what was granted.
    Prefer,
    /// Through the page cache.
    Off,
}

/// Open flags that make each write durable before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// None.
    None,
    /// `O_DSYNC`: the data, and what is needed to read it back.
    Dsync,
    /// `O_SYNC`: the data and all of the file's metadata.
    Sync,
}

/// RWF flags of each single I/O (`pvsync2`, `libaio`, `io_uring`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFlags {
    /// `RWF_DSYNC` on writes.
    pub dsync: bool,
    /// `RWF_DONTCACHE`: buffered, and the pages are dropped afterwards. Linux 6.14.
    pub dontcache: bool,
    /// `RWF_ATOMIC` on writes: all or nothing across a power cut. Linux 6.11.
    pub atomic: bool,
    /// `RWF_HIPRI`: poll for the completion.
    pub hipri: bool,
}

/// Sync calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flush {
    /// `fsync` after every so many writes; 0: never.
    pub fsync_every: u64,
    /// `fdatasync` after every so many writes; 0: never.
    pub fdatasync_every: u64,
    /// `fsync` once at the end, inside the measured time.
    pub end_fsync: bool,
}

/// An open-loop rate of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// I/Os a second; exclusive with `bytes_per_s`.
    pub ios_per_s: Option<f64>,
    /// Bytes a second; exclusive with `ios_per_s`.
    pub bytes_per_s: Option<f64>,
    /// How the I/Os are spread.
    pub arrivals: Arrivals,
}

/// How paced I/Os are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Linear,
    /// A Poisson process: exponential distances, in full nanosecond resolution.
    Poisson,
}

/// Pauses between I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Length of a pause, in nanoseconds.
    pub time_ns: u64,
    /// I/Os between two pauses.
    pub every: u64,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Random or zero.
    pub kind: ContentKind,
    /// Percentage of each 512 bytes that compresses away, 0 to 100.
    pub compressible_percent: u8,
    /// Percentage of blocks that repeat an earlier one, 0 to 100.
    pub duplicate_percent: u8,
    /// Fresh content for every write; without it the buffers are filled once and each block of
    /// 4 KiB is stamped, so that no two writes are alike.
    pub refill: bool,
}

/// The kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Pseudo-random, from the job's seed.
    Random,
    /// Zeros: many devices and filesystems never store them.
    Zero,
}

/// Reading back and comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// The checksum in each block's header.
    pub checksum: Checksum,
}

/// Checksums of verified blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// CRC-32C.
    Crc32c,
    /// XXH3, 64 bits.
    Xxhash,
}

/// io_uring's own choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringOptions {
    /// Register the buffers with the ring.
    pub registered_buffers: bool,
    /// Register the files with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub sqpoll: bool,
    /// Completions are polled for.
    pub iopoll: bool,
}

/// The modelled disk of the `simulated` engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedDevice {
    /// Service time of one I/O, in nanoseconds.
    pub service_ns: u64,
    /// Channels that serve at the same time.
    pub channels: u32,
    /// Spans in which nothing is served: (begin, length), nanoseconds of virtual time.
    pub stalls: Vec<(u64, u64)>,
    /// From these moments of virtual time on, an I/O takes so many times the service time: (begin in
    /// nanoseconds, factor), in order of time. A write cache that is full, a drive that throttles.
    #[serde(default)]
    pub slowdowns: Vec<(u64, f64)>,
    /// The I/Os (counted from 0) that fail with EIO.
    pub failing_ios: Vec<u64>,
}
