//! The plan of a run: without optional values that the run would have to guess, with all values in bytes,
//! nanoseconds and seeds. A plan is complete before anything is touched; a request that cannot be
//! planned is refused instead.

use crate::{
    Control, ControlGroupPlan, IoFailure, LimitSet, MemoryPolicy, OpKind, Origin, OutputPlan, PriorityShare,
    ReplayPlan, SourcePlan, SteadyPlan, UserPlan, Verify, ZonePlan,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

mod content;
mod durability;
mod engine;
mod files;
mod handling;
mod invariants;
mod names;
mod pace;
mod pattern;
mod programs;
mod tolerance;

pub use content::{CommonContents, Content, ContentKind};
pub use durability::{DirectPolicy, Flush, RangeSync, SyncMode, WriteFlags};
pub use engine::{EngineKind, SimulatedDevice, UringOptions};
pub use files::{BlockIdentity, FilePlan, FileSelection, Prepare, TargetIdentity};
pub use handling::{Advice, CpuLoad, FileAccess, Guard, Handling, Locking, Memory, StatCall, WriteHint};
pub use names::{Follow, FollowKind, NameSet};
pub use pace::{Arrivals, Pace, Think};
pub use pattern::{BlockSizes, Distribution, OpMix, Order, Pattern, Steps, WriteSteps, Zones};
pub use programs::{CommandPlan, ExecPlan};
use tolerance::is_full;
pub use tolerance::{IgnoredError, Tolerance};

/// Everything that a run executes, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Jobs in the order of the job file. Jobs of equal [`JobPlan::phase`] run at the same time.
    pub jobs: Vec<JobPlan>,
    /// Duration of the idle baseline before each phase, in nanoseconds: the I/O of other programs in it is
    /// distinguished from ours. 0: no baseline.
    pub idle_baseline_ns: u64,
    /// Before each phase the run waits until the disks are idle, at most for this time, in nanoseconds; `None`: it does not
    /// wait. A disk that is still busy then fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_wait_ns: Option<u64>,
    /// Checks whose objection the user accepts: such a phase is at most suspect.
    #[serde(default)]
    pub accepted_checks: Vec<String>,
    /// The limits that the figures must keep (`--fail-if`, `[limits]`); `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<LimitSet>>,
    /// Sentences for the user: what was chosen for them and why.
    pub notes: Vec<String>,
    /// The identities of existing targets at planning time, by [`FilePlan::path`]. They are valid only on this machine
    /// and are not kept in records.
    #[serde(skip)]
    pub identities: BTreeMap<String, TargetIdentity>,
}

/// One job: `workers` threads with the same workload on the same files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Distance between the starts of the workers' regions in each file, in bytes; the region of the file holds all of them. 0:
    /// all workers use the whole region.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset_increment_bytes: u64,
    /// Missing directories in the paths of its new files. They are created before the files, with mode 0700, by the
    /// user that creates the files, and are not removed. Sorted, so that each follows its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// Which file the next I/O goes to.
    pub file_selection: FileSelection,
    /// I/Os to a file before the next file is chosen, unless its pass ends earlier; 0: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ios_per_file: u32,
    /// Number of files in use at a time: the next file begins when the pass over one of them ends. 0: all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_at_a_time: u32,
    /// Which operations, where.
    pub pattern: Pattern,
    /// How the files' zones are used, if the job follows zone rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZonePlan>,
    /// Queue depth and batches.
    pub queue: Queue,
    /// When it ends.
    pub limits: Limits,
    /// The earlier job from which its number of I/Os follows; [`Limits::io_count`] is set when its phase begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follow>,
    /// I/Os of the pattern that come before its first one; set when its phase begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_ios: u64,
    /// The names of a metadata engine that other jobs use, too; `None`: each worker has names of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<NameSet>,
    /// Rounds before the measured part, until it is steady; `None`: measured at once. Equal for all jobs of
    /// a phase.
    #[serde(default)]
    pub steady_state: Option<SteadyPlan>,
    /// Whether the page cache is bypassed.
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
    /// The source of the bytes to write, if they are fetched instead of generated; `content` is then unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourcePlan>,
    /// The log to replay; pattern, sizes and limits then only summarise it.
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
    /// The limits whose violation fails the job.
    #[serde(default, skip_serializing_if = "Guard::is_none")]
    pub guard: Guard,
    /// How it is controlled while it runs.
    #[serde(default, skip_serializing_if = "Control::is_none")]
    pub control: Control,
    /// Whether what was written is read back and compared.
    pub verify: Option<Verify>,
    /// Settings of io_uring; other engines ignore them.
    pub uring: UringOptions,
    /// The model of `engine = simulated`; `None` for every other engine.
    pub simulated: Option<SimulatedDevice>,
    /// Processors the workers are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Nice value, −20 to 19; `None`: left as it is.
    pub nice: Option<i32>,
    /// Further settings of processors and of the order of I/O.
    #[serde(default, skip_serializing_if = "Scheduling::is_default")]
    pub scheduling: Scheduling,
    /// Where the workers' memory comes from; `None`: left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<MemoryPolicy>,
    /// The user as which the workers act, and as which files are created and opened; `None`: the user of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserPlan>,
    /// The control group that the workers join; `None`: that of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<ControlGroupPlan>,
    /// Shares of the I/Os with priorities of their own, in the order in which they are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityShare>,
    /// How files and memory are handled.
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
    /// Alignment that direct I/O requires of offsets and lengths on every file, in bytes; 1: none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub offset_alignment_bytes: u32,
    /// Distance of each I/O buffer from an aligned address, in bytes: deliberately misaligned.
    #[serde(default)]
    pub buffer_offset_bytes: u32,
    /// Go on after a failed I/O (counting it) instead of ending the job at the first.
    pub continue_on_error: bool,
    /// The failed I/Os after which it continues, if not after all.
    #[serde(default, skip_serializing_if = "Tolerance::is_none")]
    pub tolerance: Tolerance,
    /// How the job is reported.
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
    /// Returns the region of a worker in a file: its first byte and its length.
    pub fn region_of(&self, file: &FilePlan, worker: u32) -> (u64, u64) {
        let spread_bytes = self.offset_increment_bytes * u64::from(self.workers.saturating_sub(1));
        let shift_bytes = self.offset_increment_bytes * u64::from(worker);
        (file.offset_bytes + shift_bytes, file.size_bytes - spread_bytes)
    }

    /// Returns true if what each loop wrote is read back before the next one begins.
    pub fn reads_back_each_loop(&self) -> bool {
        let wants =
            self.verify.as_ref().is_some_and(|verify| verify.each_loop && verify.reads_back && !verify.synced_only);
        let has_loops = self.limits.loops > 1 && !self.limits.is_time_based && self.replay.is_none();
        wants && has_loops && self.zones.is_none() && !self.handling.remakes_each_pass
    }

    /// Returns a job with default settings: one worker that reads random blocks of 4 KiB, each once, at depth 1, for
    /// `io_bytes`, without files. For jobs that are created without options: those of the ruler and of tests.
    pub fn plain(engine: EngineKind, io_bytes: u64) -> Self {
        let sizes = BlockSizes::Fixed(4096);
        Self {
            name: "job".to_owned(),
            phase: 0,
            engine,
            workers: 1,
            files: Vec::new(),
            offset_increment_bytes: 0,
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
                measures_short_ramp: false,
                start_delay_ns: 0,
                delays_from: DelayStart::Phase,
            },
            follows: None,
            skipped_ios: 0,
            names: None,
            steady_state: None,
            direct: DirectPolicy::Off,
            sync: SyncMode::None,
            write_flags: WriteFlags::default(),
            flush: Flush::default(),
            pace: None,
            think: None,
            content: Content::random(),
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
            control_group: None,
            priorities: Vec::new(),
            handling: Handling::default(),
            invalidate: false,
            pre_read: false,
            seed: 1,
            buffer_alignment_bytes: 4096,
            offset_alignment_bytes: 1,
            buffer_offset_bytes: 0,
            continue_on_error: false,
            tolerance: Tolerance::default(),
            output: OutputPlan::default(),
            trace_syscalls: false,
            strace: false,
            values: Vec::new(),
        }
    }

    /// Returns true if the job changes its files: existing ones must then be named, and are opened for writing. `falloc`
    /// allocates with every operation.
    pub fn modifies_files(&self) -> bool {
        let is_offline = self.verify.as_ref().is_some_and(|verify| verify.is_offline);
        let writes = match &self.replay {
            Some(replay) => replay.ops.iter().any(|op| matches!(op, OpKind::Write | OpKind::Trim)),
            None => !is_offline && !matches!(self.pattern.mix, OpMix::Only(OpKind::Read)),
        };
        self.engine == EngineKind::Falloc || writes
    }

    /// Returns true if the job trims: as its pattern, before each write (`trimwrite`), after writes (`trim_percentage`), or by
    /// its log.
    pub fn trims(&self) -> bool {
        let after_writes = self.verify.as_ref().is_some_and(|verify| verify.trim.is_some());
        let by_itself = match &self.replay {
            Some(replay) => replay.ops.contains(&OpKind::Trim),
            None => self.pattern.steps.trims_first || matches!(self.pattern.mix, OpMix::Only(OpKind::Trim)),
        };
        by_itself || after_writes
    }

    /// Returns the failed I/Os that the job is not set to ignore: they fail the run. A short write is ignored if space
    /// ran out; it may be short for other reasons, which only the next write shows.
    pub fn unexpected<'a>(&'a self, failures: &'a [IoFailure]) -> impl Iterator<Item = &'a IoFailure> {
        let is_explained = failures.iter().any(|failure| failure.op == OpKind::Write && is_full(failure.errno));
        failures
            .iter()
            .filter(move |failure| !self.ignores(failure.op, failure.errno) || (failure.errno == 0 && !is_explained))
    }

    /// Returns true if the job is set to ignore this failure: it is counted and reported, but does not fail the run. An
    /// `errno` of 0 is a short transfer; see [`JobPlan::unexpected`].
    pub fn ignores(&self, op: OpKind, errno: i32) -> bool {
        let op = if op == OpKind::Read { OpKind::Read } else { OpKind::Write };
        // When space runs out, the last write is short before the next one fails.
        self.tolerance.ignored.iter().any(|ignored| {
            ignored.op == op && (ignored.errno == errno || op == OpKind::Write && errno == 0 && is_full(ignored.errno))
        })
    }

    /// Returns true if this failure is the intended end of the job: no space is left. A short write is not: the next
    /// write shows its reason.
    pub fn is_ended_by(&self, op: OpKind, errno: i32) -> bool {
        self.tolerance.ends_when_full && op == OpKind::Write && is_full(errno)
    }

    /// Returns true if the job continues after this failure. An `errno` of 0 is a short transfer.
    pub fn goes_on_after(&self, op: OpKind, errno: i32) -> bool {
        let is_in_general = if op == OpKind::Read { self.tolerance.reads } else { self.tolerance.writes };
        self.continue_on_error || is_in_general || self.ignores(op, errno)
    }

    /// Returns true if the job is set to continue after some failed I/Os; filling until no space is left does not count.
    pub fn goes_on_after_some(&self) -> bool {
        let Tolerance { reads, writes, ignored, ends_when_full } = &self.tolerance;
        let mut others =
            ignored.iter().filter(|error| !(*ends_when_full && error.op == OpKind::Write && is_full(error.errno)));
        self.continue_on_error || *reads || *writes || others.next().is_some()
    }

    /// Returns the file of a worker's verify state (`verify_state_save`), named as in fio.
    pub fn verify_state_file(&self, worker: u32) -> String {
        // A job's name contains no slash (the planner refuses it).
        let named = self.verify.as_ref().and_then(|verify| verify.state_file.clone());
        named.unwrap_or_else(|| format!("local-{}-{worker}-verify.state", self.name))
    }

    /// Returns true if the job has I/O that is measured: it does not only create files, run a program or burn CPU time.
    pub fn is_measured(&self) -> bool {
        self.engine.does_io() && !self.handling.creates_only
    }

    /// Returns true if each I/O has a due time, from which latency is measured.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some() || self.replay.as_ref().is_some_and(|replay| replay.settings.is_paced)
    }
}

/// Processor affinity, I/O priority, and how workers end each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The job's phase begins even if an earlier phase failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_after_failure: bool,
    /// The run ends with this job's phase: later phases do not begin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
}

impl Scheduling {
    /// Returns true if nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One option's final value and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanValue {
    /// The option's name.
    pub name: Cow<'static, str>,
    // Most are defaults of the option table, which are not copied: a plan of 1,000 jobs has hundreds of thousands.
    /// Its value in canonical text.
    pub value: Cow<'static, str>,
    /// Where it was set.
    pub origin: Origin,
}

/// Queue depth and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// I/Os that each worker keeps in flight; 1 for engines that block.
    pub depth: u32,
    /// I/Os per submission; `None`: the engine adapts it to the device's latency so
    /// that batching does not lengthen it.
    pub submit_batch: Option<u32>,
    /// Minimum number of completions to wait for when the queue is full.
    pub complete_min: u32,
    /// Maximum number of completions reaped at once; 0: all available.
    pub complete_max: u32,
    /// Once the queue is full, nothing is issued until this number is in flight; 0: at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub low: u32,
    /// An I/O waits for one in flight that overlaps it, if one of the two writes or trims.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serializes_overlap: bool,
}

/// When a job ends: at the first of the limits that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Bytes that each worker transfers in a loop. A remainder that is less than one I/O is transferred in the next loop;
    /// the remainder of all loops is rounded up to a whole I/O.
    pub io_bytes: u64,
    /// Number of loops.
    pub loops: u64,
    /// Maximum number of I/Os of each worker, in all loops together.
    pub io_count: Option<u64>,
    /// Measured time, ramp excluded.
    pub runtime_ns: Option<u64>,
    /// True: `io_bytes` and `loops` do not end the job, only the runtime does.
    pub is_time_based: bool,
    /// Time before the measured part: I/O is done but not recorded.
    pub ramp_ns: u64,
    /// A job that ends within this time is measured nevertheless: its figures are those of the ramp.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measures_short_ramp: bool,
    /// Wait before the job's first I/O.
    pub start_delay_ns: u64,
    /// What the wait counts from.
    #[serde(default)]
    pub delays_from: DelayStart,
}

/// What the wait before a job's first I/O counts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayStart {
    /// The start of the job's phase.
    #[default]
    Phase,
    /// The start of the run's first phase: the job waits only for what is left of it.
    Run,
}

/// The alignment in records of earlier versions.
fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Returns true for a value that records omit.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
