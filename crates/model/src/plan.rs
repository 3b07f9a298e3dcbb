//! What will be done: nothing optional that the run would have to guess, everything in bytes,
//! nanoseconds and seeds. A plan is complete before anything is touched; a request that cannot be
//! planned is refused instead.

use crate::{
    Control, IoFailure, MemoryPolicy, OpKind, Origin, OutputPlan, PriorityShare, ReplayPlan, SourcePlan, SteadyPlan,
    UserPlan, Verify, ZonePlan,
};
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

/// No space left on the device, as in errno(3).
const ENOSPC: i32 = 28;
/// The quota is used up, as in errno(3).
const EDQUOT: i32 = 122;

/// True for the errors of a write for which nothing is free.
fn is_full(errno: i32) -> bool {
    matches!(errno, ENOSPC | EDQUOT)
}

/// Failed I/Os after which a job goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tolerance {
    /// All failed reads; the run fails all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// All failed writes and trims; the run fails all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// Those that were announced, for which the run does not fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredError>,
    /// A write for which nothing is free is the job's end, and no failure: `ignored` has its errors, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_when_full: bool,
}

impl Tolerance {
    /// True if nothing is tolerated.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// An error that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredError {
    /// Reads, or writes with trims.
    pub op: OpKind,
    /// Its number, as in errno(3).
    pub errno: i32,
}

/// Another program that runs while other jobs measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecPlan {
    /// Its name and its arguments.
    pub arguments: Vec<String>,
    /// How long it may take to end when it was asked to, in nanoseconds.
    pub grace_ns: u64,
    /// What it prints goes to files of this name, with `.stdout` and `.stderr` behind it; `None`: to our standard
    /// error.
    pub output: Option<String>,
}

impl ExecPlan {
    /// The files for what it prints: standard output and standard error.
    pub fn output_files(&self) -> Option<[String; 2]> {
        self.output.as_ref().map(|prefix| ["stdout", "stderr"].map(|ending| format!("{prefix}.{ending}")))
    }
}

/// Another program that does a job's I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPlan {
    /// Its name and its arguments. `{file}` in them stands for the path of the job's file, which is known when it
    /// is started.
    pub arguments: Vec<String>,
}

/// Limits of slowness, for each worker; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guard {
    /// Bytes a second, at least.
    pub bytes_per_s_min: u64,
    /// I/Os a second, at least.
    pub ios_per_s_min: u64,
    /// Bytes a second and I/Os a second that writes must have; the two above are then of reads. `None`: they are of
    /// all I/Os together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<(u64, u64)>,
    /// Over how long these are averaged, in nanoseconds.
    pub cycle_ns: u64,
    /// Latency of an I/O, at most, in nanoseconds.
    pub latency_ns_max: u64,
}

impl Guard {
    /// True if nothing is limited.
    pub fn is_none(&self) -> bool {
        let has_none = |(bytes, ios): (u64, u64)| bytes == 0 && ios == 0;
        has_none((self.bytes_per_s_min, self.ios_per_s_min))
            && self.of_writes.is_none_or(has_none)
            && self.latency_ns_max == 0
    }
}

/// How busy `cpuio` keeps a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLoad {
    /// Percentage of the time, 1 to 100.
    pub percent: u8,
    /// Length of a busy span, in nanoseconds.
    pub chunk_ns: u64,
    /// It sorts numbers, which goes through the caches, too; otherwise it multiplies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sorts: bool,
    /// It ends when all jobs beside it that do I/O have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_io: bool,
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

/// How files and memory are handled beside the I/O itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handling {
    /// Files are made ready, and no I/O is done.
    pub creates_only: bool,
    /// What the kernel is told of the way the files will be used (posix_fadvise(2), madvise(2) of a mapping).
    pub advice: Advice,
    /// Cached pages are dropped again before each further pass over a file, within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidates_each_pass: bool,
    /// The files are removed before each further pass over all of them, and made again, empty; within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remakes_each_pass: bool,
    /// Locks between the workers of a phase that use one file.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub locking: Locking,
    /// Where the I/O buffers are.
    pub memory: Memory,
    /// Size of a huge page, in bytes, if the buffers are in huge pages.
    pub huge_page_bytes: u64,
    /// The call that asks about names.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub stat: StatCall,
}

impl Handling {
    /// True if nobody said anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a name is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatCall {
    /// statx(2), of a link itself.
    #[default]
    Statx,
    /// stat(2).
    Stat,
    /// lstat(2): of a link itself.
    Lstat,
}

/// Who may do I/O on a file while another worker does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locking {
    /// Everybody.
    #[default]
    None,
    /// Nobody.
    Exclusive,
    /// Readers beside readers.
    Readwrite,
}

/// What the kernel is told of the way a file will be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing.
    #[default]
    None,
    /// In no order: buffered reads are not read ahead.
    Random,
    /// From the beginning to the end: buffered reads are read further ahead.
    Sequential,
    /// Once: its pages need not be kept.
    Noreuse,
}

/// Where the I/O buffers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// In memory of the process, as an allocator gives it.
    #[default]
    Malloc,
    /// In a mapping of their own, private and anonymous.
    Mmap,
    /// In a shared anonymous mapping.
    MmapShared,
    /// In huge pages, mapped.
    MmapHuge,
    /// In a segment of System V shared memory.
    Shm,
    /// In such a segment, in huge pages.
    ShmHuge,
}

impl Memory {
    /// True for huge pages.
    pub fn is_huge(self) -> bool {
        matches!(self, Memory::MmapHuge | Memory::ShmHuge)
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

/// The I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// `lseek` where the position is another, then `read` or `write`.
    Sync,
    /// `pread` and `pwrite`. Records before version 2 call it `sync`.
    Psync,
    /// `lseek` where the position is another, then `readv` or `writev`.
    Vsync,
    /// `preadv` and `pwritev`.
    Pvsync,
    /// `preadv2` and `pwritev2` with RWF flags.
    Pvsync2,
    /// Linux native asynchronous I/O: `io_submit`, `io_getevents`.
    Libaio,
    /// io_uring.
    IoUring,
    /// Copies to and from a mapping.
    Mmap,
    /// `splice` and `vmsplice` through a pipe.
    Splice,
    /// A queue on threads that call `pread` and `pwrite`.
    Posixaio,
    /// `fallocate`: space and no data.
    Falloc,
    /// `ftruncate`: lengths and no data.
    Ftruncate,
    /// Makes files.
    Filecreate,
    /// Asks about files.
    Filestat,
    /// Removes files.
    Filedelete,
    /// Makes directories.
    Dircreate,
    /// Asks about directories.
    Dirstat,
    /// Removes directories.
    Dirdelete,
    /// Keeps a processor busy.
    Cpuio,
    /// Runs another program.
    Exec,
    /// Does nothing, at once: what is left is the tool's own cost.
    Null,
    /// A modelled disk in virtual time: no real I/O, exact and repeatable.
    Simulated,
    /// Another program, which a study names. No word of `ioengine`, so not in [`EngineKind::ALL`].
    Command,
}

impl EngineKind {
    /// All that a job may choose, in the order of the documentation.
    pub const ALL: [EngineKind; 22] = [
        EngineKind::Psync,
        EngineKind::Sync,
        EngineKind::Vsync,
        EngineKind::Pvsync,
        EngineKind::Pvsync2,
        EngineKind::Libaio,
        EngineKind::IoUring,
        EngineKind::Mmap,
        EngineKind::Splice,
        EngineKind::Posixaio,
        EngineKind::Falloc,
        EngineKind::Ftruncate,
        EngineKind::Filecreate,
        EngineKind::Filestat,
        EngineKind::Filedelete,
        EngineKind::Dircreate,
        EngineKind::Dirstat,
        EngineKind::Dirdelete,
        EngineKind::Cpuio,
        EngineKind::Exec,
        EngineKind::Null,
        EngineKind::Simulated,
    ];

    /// The name used in job files, output and records.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Sync => "sync",
            EngineKind::Psync => "psync",
            EngineKind::Vsync => "vsync",
            EngineKind::Pvsync => "pvsync",
            EngineKind::Pvsync2 => "pvsync2",
            EngineKind::Libaio => "libaio",
            EngineKind::IoUring => "io_uring",
            EngineKind::Mmap => "mmap",
            EngineKind::Splice => "splice",
            EngineKind::Posixaio => "posixaio",
            EngineKind::Falloc => "falloc",
            EngineKind::Ftruncate => "ftruncate",
            EngineKind::Filecreate => "filecreate",
            EngineKind::Filestat => "filestat",
            EngineKind::Filedelete => "filedelete",
            EngineKind::Dircreate => "dircreate",
            EngineKind::Dirstat => "dirstat",
            EngineKind::Dirdelete => "dirdelete",
            EngineKind::Cpuio => "cpuio",
            EngineKind::Exec => "exec",
            EngineKind::Null => "null",
            EngineKind::Simulated => "simulated",
            EngineKind::Command => "command",
        }
    }

    /// True if one thread can keep more than one I/O in flight.
    pub fn holds_a_queue(self) -> bool {
        use EngineKind::{IoUring, Libaio, Null, Posixaio, Simulated};
        matches!(self, Libaio | IoUring | Posixaio | Null | Simulated)
    }

    /// True if it moves the position of an open file, which is then its own and nobody else's.
    pub fn moves_position(self) -> bool {
        matches!(self, EngineKind::Sync | EngineKind::Vsync)
    }

    /// True if the engine moves data to or from real files.
    pub fn touches_files(self) -> bool {
        self.opens_files() && !self.moves_no_data()
    }

    /// True if the engine works on real files, whether it moves data or not.
    pub fn opens_files(self) -> bool {
        self.does_io() && !matches!(self, EngineKind::Null | EngineKind::Simulated) && !self.works_on_names()
    }

    /// True if a job of the engine has operations at all, which are measured.
    pub fn does_io(self) -> bool {
        !matches!(self, EngineKind::Cpuio | EngineKind::Exec)
    }

    /// True if the engine makes, asks for or removes names in a directory of its own.
    pub fn works_on_names(self) -> bool {
        use EngineKind::{Dircreate, Dirdelete, Dirstat, Filecreate, Filedelete, Filestat};
        matches!(self, Filecreate | Filestat | Filedelete | Dircreate | Dirstat | Dirdelete)
    }

    /// True if each name can be used once only: it is made, or removed.
    pub fn uses_names_up(self) -> bool {
        self.works_on_names() && !matches!(self, EngineKind::Filestat | EngineKind::Dirstat)
    }

    /// True if the engine changes files without moving data.
    pub fn moves_no_data(self) -> bool {
        matches!(self, EngineKind::Falloc | EngineKind::Ftruncate)
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
    /// The file exists with this length, in bytes, which is too short: `prepare` is done to what is added, and what it
    /// holds stays. Such a file is never removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends_from: Option<u64>,
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
    /// Created under a name that must not exist yet, empty, with space allocated behind its end: the job extends it.
    CreateReserved,
    /// Created under a name that must not exist yet, as long as it will be, and a hole from its first byte to
    /// its last: no space allocated, nothing written.
    CreateSparse,
    /// Nothing is opened (`null` and `simulated`).
    Nothing,
}

/// Which file the next I/O goes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSelection {
    /// Each in turn.
    RoundRobin,
    /// One after another, each to its end.
    Sequential,
    /// At random.
    Random,
    /// Drawn by a distribution over the files in their order, whatever has passed: one whose pass is over begins the next.
    Drawn {
        /// Zipf, Pareto or normal.
        distribution: Distribution,
    },
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
    /// What is not the next block, nor one drawn anew.
    #[serde(default, skip_serializing_if = "Steps::is_none")]
    pub steps: Steps,
}

/// How the next offset follows from the last, where that is not plainly the next block or one drawn anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    /// Random offsets are multiples of so many bytes; 0: of the block size.
    pub align_bytes: u64,
    /// Sizes of a range are any number of bytes, not multiples of the smallest.
    pub is_unaligned: bool,
    /// Percentage of a random job's offsets that go on where the last I/O ended.
    pub sequential_percent: u8,
    /// Both of the writes of a mixed job, if the reads have others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<WriteSteps>,
    /// I/Os to one random offset; 0 and 1: each has its own.
    pub random_every: u64,
    /// Those I/Os are all at the same offset; otherwise they go on from it.
    pub repeats: bool,
    /// Bytes between the end of a sequential I/O and the next; negative: backwards.
    pub skip_bytes: i64,
    /// Each block is trimmed before it is written.
    pub trims_first: bool,
    /// Zones that are used one after another.
    pub zones: Option<Zones>,
}

impl Steps {
    /// True if nothing of it is asked for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// True if nothing of it says where an I/O goes.
    pub fn places_plainly(&self) -> bool {
        Self { trims_first: false, ..*self }.is_none()
    }

    /// I/Os of `block_bytes` after which an order that skips forward is over in a region: the last of them ends with it, or
    /// the next one would begin in it and end behind it. `None`: none does, for the next one begins behind the region, and
    /// so at its beginning again. Source: what fio 3.33 reads.
    pub fn skipping_ios(&self, region_bytes: u64, block_bytes: u64) -> Option<u64> {
        let skip_bytes = u64::try_from(self.skip_bytes).ok().filter(|bytes| *bytes > 0)?;
        let step = block_bytes.checked_add(skip_bytes)?;
        let is_over = (1..=block_bytes).contains(&(region_bytes % step));
        Some(region_bytes.checked_sub(block_bytes)? / step + 1).filter(|_| is_over)
    }
}

/// What the random offsets of writes are, where those of reads are others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteSteps {
    /// They are multiples of so many bytes; 0: of the block size.
    pub align_bytes: u64,
    /// Percentage of them that go on where the last write ended.
    pub sequential_percent: u8,
}

/// Zones that are used one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    /// Bytes transferred in a zone before the next.
    pub zone_bytes: u64,
    /// Length of a zone, in bytes.
    pub range_bytes: u64,
    /// Bytes between two zones.
    pub skip_bytes: u64,
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
        /// Where in the region the most popular block is, as a part of it from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Pareto with `h` in (0, 1): 0.2 sends about 80 % of the I/O to 20 % of the blocks.
    Pareto {
        /// The share's parameter.
        h: f64,
        /// Where in the region the most popular block is, as a part of it from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Normal around the region's middle, or around `center`, with this deviation in percent of the region.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Where in the region its middle is, as a part of it from 0 to 1; `None`: in the region's middle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Zones in order: (percent of the I/O, percent of the region); both columns sum to 100.
    Zoned {
        /// The zones.
        zones: Vec<(f64, f64)>,
    },
    /// Zones one after the other from the region's beginning: (percent of the I/O, bytes); the percentages sum to 100, and
    /// what is behind the last zone is not used.
    ZonedBytes {
        /// The zones.
        zones: Vec<(f64, u64)>,
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
    /// Of how many I/Os in a hundred, drawn at random (`pvsync2`); `None`: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hipri_percent: Option<u8>,
    /// `RWF_NOWAIT`: what would have to wait fails with EAGAIN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nowait: bool,
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
    /// `fdatasync` once at the end, inside the measured time.
    #[serde(default)]
    pub end_fdatasync: bool,
    /// `fsync` of each file before it is closed, inside the measured time.
    #[serde(default)]
    pub fsync_on_close: bool,
    /// `sync_file_range` between the writes, which makes nothing durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSync>,
}

/// `sync_file_range(2)` on what was written since the last call: it has the kernel write out pages, or waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSync {
    /// After how many writes.
    pub every: u64,
    /// Waits for pages that are being written out already.
    pub waits_before: bool,
    /// Begins to write out what is dirty.
    pub writes: bool,
    /// Waits until it is written out.
    pub waits_after: bool,
}

impl RangeSync {
    /// Its parts by fio's names, with the kernel's numbers.
    pub const PARTS: [(&'static str, u32); 3] = [("wait_before", 1), ("write", 2), ("wait_after", 4)];

    /// The flags of the call.
    pub fn flags(self) -> u32 {
        let parts = [self.waits_before, self.writes, self.waits_after];
        Self::PARTS.iter().zip(parts).filter(|(_, is_set)| *is_set).map(|((_, flag), _)| flag).sum()
    }
}

impl std::fmt::Display for RangeSync {
    /// As it is asked for: `wait_before,write:8`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = self.flags();
        let parts: Vec<&str> =
            Self::PARTS.iter().filter(|(_, flag)| flags & flag != 0).map(|(name, _)| *name).collect();
        write!(f, "{}:{}", parts.join(","), self.every)
    }
}

impl Flush {
    /// True if calls between the writes are counted as sync calls, durable or not.
    pub fn is_between(&self) -> bool {
        self.fsync_every > 0 || self.fdatasync_every > 0 || self.range.is_some()
    }

    /// True if a sync call ends the job.
    pub fn is_at_end(&self) -> bool {
        self.end_fsync || self.end_fdatasync || self.fsync_on_close
    }

    /// The names of the sync calls that end the job, in their order.
    pub fn at_end(&self) -> impl Iterator<Item = &'static str> {
        let calls = [(self.end_fdatasync, "fdatasync"), (self.end_fsync || self.fsync_on_close, "fsync")];
        calls.into_iter().filter(|call| call.0).map(|call| call.1)
    }
}

/// An open-loop rate of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// I/Os a second; exclusive with `bytes_per_s`.
    pub ios_per_s: Option<f64>,
    /// Bytes a second; exclusive with `ios_per_s`.
    pub bytes_per_s: Option<f64>,
    /// What writes have of the same, each by its own schedule; the other rate is then that of reads, and one of the two
    /// may be 0: such I/Os are made whenever the others are not due. `None`: one schedule for all I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<f64>,
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
    /// I/Os between two pauses; 0: only `after_ns` counts.
    pub every: u64,
    /// Time of I/O after which a pause comes; 0: only `every` counts.
    #[serde(default)]
    pub after_ns: u64,
    /// How much of a pause keeps the processor busy, in nanoseconds.
    #[serde(default)]
    pub spin_ns: u64,
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Random, zero, or a pattern.
    pub kind: ContentKind,
    /// The bytes that are repeated from the beginning of each buffer to its end, if `kind` is a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pattern: Vec<u8>,
    /// Percentage of each piece of content that compresses away, 0 to 100.
    pub compressible_percent: u8,
    /// Length of such a piece, in bytes; 0: the whole block.
    #[serde(default = "Content::compressible_bytes", skip_serializing_if = "is_usual_piece")]
    pub compressible_bytes: u32,
    /// Percentage of blocks that repeat an earlier one, 0 to 100.
    pub duplicate_percent: u8,
    /// How many different contents they have; 0: a few.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicate_count: u64,
    /// Fresh content for every write; without it the buffers are filled once and each block of
    /// 4 KiB is stamped, so that no two writes are alike.
    pub refill: bool,
}

impl Content {
    /// Usual length of the pieces of which a part compresses away, in bytes: fio's.
    pub const fn compressible_bytes() -> u32 {
        512
    }
}

fn is_usual_piece(bytes: &u32) -> bool {
    *bytes == Content::compressible_bytes()
}

/// The kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Pseudo-random, from the job's seed.
    Random,
    /// Zeros: many devices and filesystems never store them.
    Zero,
    /// The same few bytes over and over, the same in every write.
    Pattern,
}

/// True for what is left out of a record.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// io_uring's own choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringOptions {
    /// Register the buffers with the ring.
    pub registered_buffers: bool,
    /// Register the files with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub sqpoll: bool,
    /// Completions are polled for.
    pub iopoll: bool,
    /// Each I/O begins when all before it have completed (`IOSQE_IO_DRAIN`).
    #[serde(default)]
    pub drain: bool,
    /// The processor of the kernel thread that polls the submission queue; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqpoll_cpu: Option<u32>,
    /// Every so manyth transfer is given to the kernel's own threads at once (`IOSQE_ASYNC`); 0: none is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub async_every: u32,
    /// Transfers are `READV` and `WRITEV` with one piece, unless their buffers are registered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vectored: bool,
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
