//! What will be done: nothing optional that the run would have to guess, everything in bytes,
//! nanoseconds and seeds. A plan is complete before anything is touched; a request that cannot be
//! planned is refused instead.

use crate::{
    Control, IoFailure, MemoryPolicy, OpKind, Origin, OutputPlan, PriorityShare, ReplayPlan, SourcePlan, SteadyPlan,
    UserPlan, Verify, ZonePlan,
};
use serde::{Deserialize, Serialize};

mod content;
mod durability;
mod engine;
mod files;
mod handling;
mod pace;
mod pattern;
mod programs;
mod tolerance;

pub use content::{Content, ContentKind};
pub use durability::{DirectPolicy, Flush, RangeSync, SyncMode, WriteFlags};
pub use engine::{EngineKind, SimulatedDevice, UringOptions};
pub use files::{FilePlan, FileSelection, Prepare};
pub use handling::{Advice, CpuLoad, Guard, Handling, Locking, Memory, StatCall};
pub use pace::{Arrivals, Pace, Think};
pub use pattern::{BlockSizes, Distribution, OpMix, Order, Pattern, Steps, WriteSteps, Zones};
pub use programs::{CommandPlan, ExecPlan};
use tolerance::is_full;
pub use tolerance::{IgnoredError, Tolerance};

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
    /// Directories that stand in the names of its new files and do not exist: made before the files, with mode 0700, for
    /// whoever makes those. They stay. Sorted, so that each stands behind the one that it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// Which file the next I/O goes to.
    pub file_selection: FileSelection,
    /// I/Os to a file before the next one is chosen, unless its pass is over before; 0: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ios_per_file: u32,
    /// How many of them are in use at a time: the next one begins when a pass over one of them is over. 0: all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_at_a_time: u32,
    /// Which operations, where.
    pub pattern: Pattern,
    /// How the files' zones are used, if they are written by the rules of zoned devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZonePlan>,
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
    /// What is written, if it is fetched instead of made; `content` says nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourcePlan>,
    /// The log that says what is done and when; pattern, sizes and limits then only sum it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<ReplayPlan>>,
    /// The program that does the I/O; the engine is then [`EngineKind::Command`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandPlan>,
    /// The program that `exec` runs; `None` for every other engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecPlan>,
    /// The load of `cpuio`; `None` for every other engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_load: Option<CpuLoad>,
    /// What ends the job as failed.
    #[serde(default, skip_serializing_if = "Guard::is_none")]
    pub guard: Guard,
    /// What steers it while it runs.
    #[serde(default, skip_serializing_if = "Control::is_none")]
    pub control: Control,
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
    /// What else is said about processors and the order of I/O.
    #[serde(default, skip_serializing_if = "Scheduling::is_default")]
    pub scheduling: Scheduling,
    /// Where the workers' memory comes from; `None`: left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<MemoryPolicy>,
    /// Whom the workers act as, and who makes and opens the files; `None`: who runs the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserPlan>,
    /// Shares of the I/Os with priorities of their own, in the order in which they are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityShare>,
    /// How files and memory are handled, where somebody said so.
    #[serde(default, skip_serializing_if = "Handling::is_default")]
    pub handling: Handling,
    /// Drop the files' cached pages before the measured part.
    pub invalidate: bool,
    /// Read the files into the page cache before the measured part.
    #[serde(default)]
    pub pre_read: bool,
    /// The seed of offsets, sizes, mix, arrivals and content. Worker `i` derives its own from it.
    pub seed: u64,
    /// Alignment of the I/O buffers' addresses, in bytes; a power of two.
    pub buffer_alignment_bytes: u32,
    /// How far behind an aligned address each I/O buffer begins, in bytes: deliberately misaligned.
    #[serde(default)]
    pub buffer_offset_bytes: u32,
    /// Go on after a failed I/O (counting it) instead of ending the job at the first.
    pub continue_on_error: bool,
    /// After which failed I/Os it goes on, if not after all.
    #[serde(default, skip_serializing_if = "Tolerance::is_none")]
    pub tolerance: Tolerance,
    /// How the job wants to be reported.
    #[serde(default, skip_serializing_if = "OutputPlan::is_default")]
    pub output: OutputPlan,
    /// Record every system call of the workers in the measured part.
    #[serde(default)]
    pub trace_syscalls: bool,
    /// Run the phase under `strace -f -tt`, which stops the workers twice in each call.
    #[serde(default)]
    pub strace: bool,
    /// Every option's value and origin, as `trueio explain` prints them, in the table's order.
    pub values: Vec<PlanValue>,
}

impl JobPlan {
    /// What a job is before anything is said of it: one worker that reads blocks of 4 KiB at random, each once, one
    /// at a time, for `io_bytes` on no file yet. For jobs that are made without options: the ruler's, and those of
    /// tests.
    pub fn plain(engine: EngineKind, io_bytes: u64) -> Self {
        let sizes = BlockSizes::Fixed(4096);
        Self {
            name: "job".to_owned(),
            phase: 0,
            engine,
            workers: 1,
            files: Vec::new(),
            directories: Vec::new(),
            file_selection: FileSelection::RoundRobin,
            ios_per_file: 0,
            files_at_a_time: 0,
            pattern: Pattern {
                mix: OpMix::Only(OpKind::Read),
                order: Order::Random { distribution: Distribution::Uniform, each_block_once: true },
                read_sizes: sizes.clone(),
                write_sizes: sizes.clone(),
                trim_sizes: sizes,
                steps: Steps::default(),
            },
            zones: None,
            queue: Queue {
                depth: 1,
                submit_batch: Some(1),
                complete_min: 1,
                complete_max: 0,
                low: 0,
                serializes_overlap: false,
            },
            limits: Limits {
                io_bytes,
                loops: 1,
                io_count: None,
                runtime_ns: None,
                is_time_based: false,
                ramp_ns: 0,
                start_delay_ns: 0,
            },
            steady_state: None,
            direct: DirectPolicy::Off,
            sync: SyncMode::None,
            write_flags: WriteFlags::default(),
            flush: Flush::default(),
            pace: None,
            think: None,
            content: Content {
                kind: ContentKind::Random,
                pattern: Vec::new(),
                compressible_percent: 0,
                compressible_bytes: Content::compressible_bytes(),
                duplicate_percent: 0,
                duplicate_count: 0,
                refill: false,
            },
            source: None,
            replay: None,
            command: None,
            exec: None,
            cpu_load: None,
            guard: Guard::default(),
            control: Control::default(),
            verify: None,
            uring: UringOptions::default(),
            simulated: None,
            cpus: Vec::new(),
            nice: None,
            scheduling: Scheduling::default(),
            memory_policy: None,
            user: None,
            priorities: Vec::new(),
            handling: Handling::default(),
            invalidate: false,
            pre_read: false,
            seed: 1,
            buffer_alignment_bytes: 4096,
            buffer_offset_bytes: 0,
            continue_on_error: false,
            tolerance: Tolerance::default(),
            output: OutputPlan::default(),
            trace_syscalls: false,
            strace: false,
            values: Vec::new(),
        }
    }

    /// True if the job changes its files: what exists must then be named, and is opened for writing. `falloc`
    /// allocates whatever the operation is called.
    pub fn modifies_files(&self) -> bool {
        let is_offline = self.verify.as_ref().is_some_and(|verify| verify.is_offline);
        let writes = match &self.replay {
            Some(replay) => replay.ops.iter().any(|op| matches!(op, OpKind::Write | OpKind::Trim)),
            None => !is_offline && !matches!(self.pattern.mix, OpMix::Only(OpKind::Read)),
        };
        self.engine == EngineKind::Falloc || writes
    }

    /// Those of the job's failed I/Os that it was not told to ignore: the run fails for them. A write that was short is
    /// ignored if space ran out; it may be short for other reasons, which only the next write says.
    pub fn unexpected<'a>(&'a self, failures: &'a [IoFailure]) -> impl Iterator<Item = &'a IoFailure> {
        let is_explained = failures.iter().any(|failure| failure.op == OpKind::Write && is_full(failure.errno));
        failures
            .iter()
            .filter(move |failure| !self.ignores(failure.op, failure.errno) || (failure.errno == 0 && !is_explained))
    }

    /// True if the job was told beforehand to ignore this failure: it is counted and told of, and the run does not
    /// fail for it. An `errno` of 0 is a transfer that was short; see [`JobPlan::unexpected`].
    pub fn ignores(&self, op: OpKind, errno: i32) -> bool {
        let op = if op == OpKind::Read { OpKind::Read } else { OpKind::Write };
        // What is written when space runs out is short before it fails.
        self.tolerance.ignored.iter().any(|ignored| {
            ignored.op == op && (ignored.errno == errno || op == OpKind::Write && errno == 0 && is_full(ignored.errno))
        })
    }

    /// True if this failure is the end that the job waits for: nothing is free. A write that was short is not: what
    /// shortened it, the next one says.
    pub fn is_ended_by(&self, op: OpKind, errno: i32) -> bool {
        self.tolerance.ends_when_full && op == OpKind::Write && is_full(errno)
    }

    /// True if the job goes on after this failure. An `errno` of 0 is a transfer that was short.
    pub fn goes_on_after(&self, op: OpKind, errno: i32) -> bool {
        let is_in_general = if op == OpKind::Read { self.tolerance.reads } else { self.tolerance.writes };
        self.continue_on_error || is_in_general || self.ignores(op, errno)
    }

    /// True if the job was told to go on after some failed I/Os at least; that it fills until nothing is free is not that.
    pub fn goes_on_after_some(&self) -> bool {
        let Tolerance { reads, writes, ignored, ends_when_full } = &self.tolerance;
        let mut others =
            ignored.iter().filter(|error| !(*ends_when_full && error.op == OpKind::Write && is_full(error.errno)));
        self.continue_on_error || *reads || *writes || others.next().is_some()
    }

    /// Where a worker keeps how far it came (`verify_state_save`): fio's name for it.
    pub fn verify_state_file(&self, worker: u32) -> String {
        // A job's name holds no slash (the plan refuses it).
        format!("local-{}-{worker}-verify.state", self.name)
    }

    /// True if the job does I/O that is measured: it does not only make files, nor run or burn beside others.
    pub fn is_measured(&self) -> bool {
        self.engine.does_io() && !self.handling.creates_only
    }

    /// True if each I/O has a moment at which it is due, so that latency counts from then.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some() || self.replay.as_ref().is_some_and(|replay| replay.settings.is_paced)
    }
}

/// How workers stand to the processors, to other programs' I/O and to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// Each worker may run on all of [`JobPlan::cpus`], instead of on one of them.
    #[serde(default)]
    pub shares_cpus: bool,
    /// The workers' I/O priority, as ioprio_set(2) takes it: class (1 real time, 2 best effort, 3 idle) and level
    /// within it (0 highest, to 7); `None`: left as it is.
    #[serde(default)]
    pub io_priority: Option<(u8, u8)>,
    /// The hint for the device that goes with it, 0 to 1023; 0: none (Linux 6.5).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub io_hint: u16,
    /// When a worker of this job ends, all others of the phase are ended.
    #[serde(default)]
    pub ends_others: bool,
    /// When a worker of this job fails, all others of the phase are ended.
    #[serde(default)]
    pub ends_others_on_error: bool,
    /// The run ends with this job's phase: those behind it do not begin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
}

impl Scheduling {
    /// True if nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
    /// Once the queue is full, nothing is issued until so few are in flight; 0: at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub low: u32,
    /// An I/O that touches what one in flight writes or trims, and one that writes or trims what one in flight
    /// touches, waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serializes_overlap: bool,
}

/// When a job ends: at the first of the limits that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes each worker transfers in a loop. What is left of one for no whole I/O is transferred in the next, and what is
    /// left of all of several is rounded up to a whole one.
    pub io_bytes: u64,
    /// How often that is done.
    pub loops: u64,
    /// I/Os each worker issues at most, in all loops together.
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

/// True for what is left out of a record.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
