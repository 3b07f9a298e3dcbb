//! The loop.
//!
//! One thread of a job: takes requests, hands them to the engine, reads the clock, counts.
//!
//! Where time stamps are shared: one reading just before a submission serves all I/Os of that
//! submission, one just after it serves their hand-over, and one after each collection serves all
//! completions of that collection. If completions are already there when the submission returns,
//! the reading after it is theirs too. So a latency contains the time its neighbours in the same
//! batch took to be handed over; how large batches may grow is therefore bound by the latency itself
//! ([`adapted_batch`]), unless the job asks for a size. Cached buffered reads are the one exception, and
//! are told of in the record: [`Sharing`].
//!
//! Nothing here allocates once the loop runs: slots, buffers, histograms and request blocks are
//! made before. Failures take the cold path.

use crate::batch::{ADAPTED_BATCH_MAX, Sharing, adapted_batch};
use crate::buffers::Buffers;
use crate::clock::{AnyClock, Clock, VirtualClock};
use crate::content::ContentSource;
use crate::engines::{
    BlockingEngine, Completion, Dircreate, Dirdelete, Dirstat, Engine, EngineError, EngineSetup, Falloc, Filecreate,
    Filedelete, Filestat, Ftruncate, IoUringEngine, LibaioEngine, MmapEngine, NamesEngine, NullEngine, PosixaioEngine,
    Psync, Pvsync, Pvsync2, SimulatedEngine, Splice, Sync, TargetFile, Vsync,
};
use crate::log::{IssuedIo, LogBuffer, LogDoor, LoggedIo};
use crate::pace::Calendar;
use crate::pattern::{Generator, worker_seed};
use crate::recorder::{OpRecorder, Progress, Recorder, WorkerReport, slot_of};
use crate::replay::Replay;
use crate::request::{REQUEST_BLOCK, Request};
use crate::sample::Samples;
use crate::snapshot::Snapshot;
use crate::source::HttpSource;
use crate::{burn, command, exec};
use explain::explain;
use search::Search;
use spans::Spans;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use supply::{SOURCE_WAIT_BUSY, SOURCE_WAIT_IDLE, Supply};
use trueio_model::{
    BlockSizes, EngineKind, IoFailure, JobPlan, OpKind, OpMix, QueueCounts, ThreadUsage, VerifyFailure,
};
use verifying::Verifier;

mod explain;
mod flow;
mod guard;
mod search;
mod spans;
mod start;
mod state;
mod supply;
mod verifying;

pub use flow::Flow;
pub use spans::{SpanFigures, SpanJudge};
pub use start::{Gate, Start};

/// Length of a series row and of a progress update.
const INTERVAL_NS: u64 = 100_000_000;
/// Failures of different kinds that are kept; every failure is counted.
pub(crate) const FAILURES_MAX: usize = 16;

/// What a worker is given beside its plan.
#[derive(Debug)]
pub struct WorkerContext<'a> {
    /// The job.
    pub plan: &'a JobPlan,
    /// Which of the job's workers, from 0.
    pub worker: u32,
    /// The job's files, opened; empty for engines that touch none.
    pub files: &'a [TargetFile],
    /// Set by whoever wants the run to end early.
    pub stop: &'a AtomicBool,
    /// The phase's start.
    pub start: &'a Start,
    /// Where live figures go.
    pub progress: &'a Progress,
    /// The clock, made once for the run.
    pub clock: AnyClock,
    /// The number of the window in which requests are traced now, 0 for none; `None` if they never are.
    pub sample_window: Option<&'a AtomicU32>,
    /// Where each I/O goes, if it is to be logged.
    pub log: Option<LogDoor>,
    /// Where each I/O goes that is issued, if it is to be written down for a replay.
    pub iolog: Option<LogDoor<IssuedIo>>,
    /// Where results go that are asked for while the worker runs.
    pub snapshot: Option<&'a Snapshot>,
    /// Who judges the worker's spans, if the job ends when it is steady.
    pub judge: Option<&'a dyn SpanJudge>,
    /// The flow that the worker belongs to.
    pub flow: Option<&'a Flow>,
    /// The gates of the jobs that must have ended before this one begins.
    pub waits_for: &'a [&'a Gate],
    /// The gate at which others wait for this job.
    pub gate: Option<&'a Gate>,
}

impl WorkerContext<'_> {
    /// The worker is ready; returns when it may begin.
    pub(crate) fn reached(&self) {
        self.start.reached();
        self.waits_for.iter().for_each(|gate| gate.wait(self.stop));
    }

    /// The worker has done its last measured I/O; returns when the phase's end is released.
    pub(crate) fn finished(&self) {
        if let Some(gate) = self.gate {
            gate.leave();
        }
        self.start.finished();
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    request: Request,
    /// Clock readings: just before and just after the hand-over.
    issued: u64,
    handed: u64,
    /// When it was due (paced jobs).
    due: u64,
    /// Since when a slot was free when it was handed over (paced jobs).
    free_since: u64,
}

/// Runs one worker to its end, on the engine and clock that the plan names. Blocks until the
/// phase's start is opened.
pub fn run_worker(context: &WorkerContext<'_>) -> WorkerReport {
    if let Some(command) = &context.plan.command {
        return command::run(context, command);
    }
    if context.plan.handling.creates_only {
        context.start.reached();
        context.start.finished();
        return WorkerReport::empty();
    }
    if let Some(program) = &context.plan.exec {
        return exec::run(context, program);
    }
    if let Some(load) = &context.plan.cpu_load {
        return burn::run(context, load);
    }
    match prepared(context) {
        Ok(report) => report,
        Err(error) => {
            // Nobody waits for a worker that could not be made.
            context.start.reached();
            if context.plan.scheduling.ends_others_on_error {
                context.stop.store(true, Relaxed);
            }
            context.finished();
            WorkerReport::failed(error)
        }
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn prepared(context: &WorkerContext<'_>) -> Result<WorkerReport, String> {
    let plan = context.plan;
    apply_scheduling(plan, context.worker)?;
    let pattern = &plan.pattern;
    let largest = |sizes: &BlockSizes| sizes.max_bytes();
    let size = match pattern.mix {
        OpMix::Only(OpKind::Read) => largest(&pattern.read_sizes),
        OpMix::Only(OpKind::Write) => largest(&pattern.write_sizes),
        // A trim has no data; one page keeps the arithmetic the same.
        OpMix::Only(OpKind::Trim | OpKind::Sync) => 4096,
        OpMix::ReadWrite { .. } => largest(&pattern.read_sizes).max(largest(&pattern.write_sizes)),
    };
    let size = plan.replay.as_ref().map_or(size, |replay| replay.length_bytes_max.max(4096));
    // Reads and writes of a mixed job have buffers of their own: a write would otherwise carry what
    // the slot's last read brought.
    let buffers = plan.queue.depth as usize * if matches!(pattern.mix, OpMix::ReadWrite { .. }) { 2 } else { 1 };
    let align = plan.buffer_alignment_bytes as usize;
    let pool = Buffers::new(&plan.handling, buffers, size as usize, align, plan.buffer_offset_bytes)?;
    let setup = EngineSetup {
        files: context.files,
        depth: plan.queue.depth,
        buffers: pool.region(),
        flags: plan.write_flags,
        uring: plan.uring,
        writes: plan.modifies_files(),
        advice: plan.handling.advice,
    };
    let error = |e: EngineError| chain(&e);
    match plan.engine {
        // One at a time, as fio's null engine: an I/O that is done when it is handed over.
        EngineKind::Null if plan.queue.depth == 1 => on_real_clock(context, NullEngine::<true>::new(&setup), pool),
        EngineKind::Null => on_real_clock(context, NullEngine::<false>::new(&setup), pool),
        EngineKind::Psync => on_real_clock(context, BlockingEngine::<Psync>::new(&setup).map_err(error)?, pool),
        EngineKind::Sync => on_real_clock(context, BlockingEngine::<Sync>::new(&setup).map_err(error)?, pool),
        EngineKind::Vsync => on_real_clock(context, BlockingEngine::<Vsync>::new(&setup).map_err(error)?, pool),
        EngineKind::Pvsync => on_real_clock(context, BlockingEngine::<Pvsync>::new(&setup).map_err(error)?, pool),
        EngineKind::Pvsync2 => on_real_clock(context, BlockingEngine::<Pvsync2>::new(&setup).map_err(error)?, pool),
        EngineKind::Splice => on_real_clock(context, BlockingEngine::<Splice>::new(&setup).map_err(error)?, pool),
        EngineKind::Falloc => on_real_clock(context, BlockingEngine::<Falloc>::new(&setup).map_err(error)?, pool),
        EngineKind::Ftruncate => on_real_clock(context, BlockingEngine::<Ftruncate>::new(&setup).map_err(error)?, pool),
        EngineKind::Filecreate => {
            on_real_clock(context, NamesEngine::<Filecreate>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Filestat => {
            on_real_clock(context, NamesEngine::<Filestat>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Filedelete => {
            on_real_clock(context, NamesEngine::<Filedelete>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Dircreate => {
            on_real_clock(context, NamesEngine::<Dircreate>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Dirstat => {
            on_real_clock(context, NamesEngine::<Dirstat>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Dirdelete => {
            on_real_clock(context, NamesEngine::<Dirdelete>::new(plan, context.worker).map_err(error)?, pool)
        }
        EngineKind::Exec => Err("a job of `exec` needs its program".to_owned()),
        EngineKind::Cpuio => Err("a job of `cpuio` needs its load".to_owned()),
        EngineKind::Posixaio => on_real_clock(context, PosixaioEngine::new(&setup).map_err(error)?, pool),
        EngineKind::Mmap => on_real_clock(context, MmapEngine::new(&setup).map_err(error)?, pool),
        EngineKind::Libaio => on_real_clock(context, LibaioEngine::new(&setup).map_err(error)?, pool),
        EngineKind::IoUring => on_real_clock(context, IoUringEngine::new(&setup).map_err(error)?, pool),
        EngineKind::Command => Err("a job of the engine `command` without a command".to_owned()),
        EngineKind::Simulated => {
            let device = plan.simulated.as_ref().ok_or("engine `simulated` needs a device model")?;
            let clock = VirtualClock::default();
            Ok(Worker::new(context, SimulatedEngine::new(&setup, device, clock.clone()), clock, pool).run())
        }
    }
}

fn on_real_clock<E: Engine>(context: &WorkerContext<'_>, engine: E, pool: Buffers) -> Result<WorkerReport, String> {
    Ok(match context.clock {
        AnyClock::Tsc(clock) => Worker::new(context, engine, clock, pool).run(),
        AnyClock::Monotonic(clock) => Worker::new(context, engine, clock, pool).run(),
    })
}

/// Pins and renices the calling thread.
fn apply_scheduling(plan: &JobPlan, worker: u32) -> Result<(), String> {
    if !plan.cpus.is_empty() {
        let own = [plan.cpus[worker as usize % plan.cpus.len()]];
        let cpus = if plan.scheduling.shares_cpus { &plan.cpus[..] } else { &own[..] };
        let mut set = rustix::thread::CpuSet::new();
        for cpu in cpus {
            if *cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
                return Err(format!("pinning a worker to processor {cpu}: there is none"));
            }
            set.set(*cpu as usize);
        }
        rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
            format!(
                "pinning a worker to processor {}: {e}",
                cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
            )
        })?;
    }
    if let Some((class, level)) = plan.scheduling.io_priority {
        // ioprio_set(2): the class in the bits from 13 on.
        const IOPRIO_WHO_PROCESS: libc::c_long = 1;
        let priority = (libc::c_long::from(class) << 13) | libc::c_long::from(level);
        // SAFETY: a plain call with integer arguments; 0 names the calling thread.
        if unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0 as libc::c_long, priority) } != 0 {
            let error = io::Error::last_os_error();
            return Err(format!("setting the I/O priority {class}.{level}: {error}"));
        }
    }
    if let Some(nice) = plan.nice {
        // SAFETY: a plain call; 0 names the calling thread.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
            return Err(format!("setting the nice value {nice}: {}", io::Error::last_os_error()));
        }
    }
    if plan.is_paced() || plan.think.is_some() {
        // Timers of this thread fire as exactly as the kernel can.
        // SAFETY: a plain call with integer arguments.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    }
    Ok(())
}

/// What the calling thread has used so far.
pub(crate) fn thread_usage() -> ThreadUsage {
    // SAFETY: the kernel fills the structure that is handed to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    usage_of(&usage)
}

/// What the kernel accounts for, without a measured time.
pub(crate) fn usage_of(usage: &libc::rusage) -> ThreadUsage {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    ThreadUsage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switch_count: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        major_fault_count: count(usage.ru_majflt),
        minor_fault_count: count(usage.ru_minflt),
        elapsed_ns: 0,
    }
}

/// One thread of a job, on one engine and one clock.
#[derive(Debug)]
pub struct Worker<'a, E, C> {
    context: &'a WorkerContext<'a>,
    engine: E,
    clock: C,
    /// Freed by hand, when nothing is in flight any more. If the worker fails or panics before, the
    /// kernel may still write to these buffers after the engine is closed (a closed io_uring ends its
    /// I/Os in the background): the memory is then given up rather than given to somebody else.
    pool: ManuallyDrop<Buffers>,
    generator: Generator,
    content: ContentSource,
    /// Where the bytes come from, if they are fetched.
    supply: Option<Supply>,
    /// The first of the pool's buffers that writes use: slot `i` writes from this one plus `i`.
    write_buffers_from: usize,
    writes_need_data: bool,
    sharing: Sharing,
    /// Paced and verified jobs; all others while I/Os are sampled.
    has_work_per_io: bool,
    samples: Samples<'a>,
    log: Option<LogBuffer>,
    iolog: Option<Box<LogBuffer<IssuedIo>>>,
    /// The last question that was answered with a snapshot.
    answered: u32,
    calendar: Option<Calendar>,
    /// Each I/O has a moment at which it is due.
    is_paced: bool,
    recorder: Recorder,
    slots: Box<[Slot]>,
    free: Box<[u32]>,
    free_count: usize,
    /// The slots queued since the last submission.
    queued: Box<[u32]>,
    completions: Box<[Completion]>,
    block: [Request; REQUEST_BLOCK],
    // Narrower than `free_count`: of two neighbours of one width LLVM makes a single vector addition, and
    // reading back one half of what was stored as a whole stalls (6 ns an I/O on the null engine).
    block_at: u32,
    block_end: u32,
    batch: usize,
    is_batch_adapted: bool,
    single_op: Option<OpKind>,
    write_sequence: u64,
    verifier: Option<Verifier>,
    watched: guard::Watched,
    /// The search for a queue depth, if the job has a latency target.
    search: Option<Box<Search>>,
    /// Spans that somebody judges, if the job ends when it is steady.
    spans: Option<Box<Spans<'a>>>,
    /// Its part in a flow, while it is in it.
    share: Option<flow::Share<'a>>,
    /// Free slots that are not used: the queue is to be less deep than it could be, or runs low before it is refilled.
    reserve: usize,
    /// Requests taken from the generator before this block; see [`Worker::issued`].
    issued_before: u64,
    /// The due time of the request at `block_at`, once the calendar was asked for it.
    pending_due: Option<u64>,
    thought_at: u64,
    /// A pause begins as soon as nothing is in flight.
    is_pausing: bool,
    not_before: u64,
    /// Since when at least one slot is free and may be used.
    free_since: u64,
    started: u64,
    measured_from: u64,
    row_from: u64,
    deadline: u64,
    next_event: u64,
    is_ramping: bool,
    is_done: bool,
    /// The generator has no more: every I/O of the job was issued.
    is_exhausted: bool,
    was_stopped: bool,
    /// When the deadline or the request to stop ended the job; 0 if its limits did.
    ended: u64,
    submit_ns: u64,
    submit_count: u64,
    usage_from: ThreadUsage,
    failures: Vec<IoFailure>,
    fatal: Option<String>,
    notes: Vec<String>,
    verify_failures: Vec<VerifyFailure>,
    verified_block_count: u64,
    verify_failure_count: u64,
}

impl<'a, E: Engine, C: Clock> Worker<'a, E, C> {
    /// A worker that is ready to run. The engine was made over `pool`'s region.
    pub fn new(context: &'a WorkerContext<'a>, engine: E, clock: C, mut pool: Buffers) -> Self {
        let plan = context.plan;
        let depth = plan.queue.depth as usize;
        assert!(depth > 0 && (!E::BLOCKS || depth == 1), "the plan gives blocking engines one slot");
        let mut content = ContentSource::new(plan.content.clone(), worker_seed(plan, context.worker));
        let (mut ops, single_op) = match plan.pattern.mix {
            _ if plan.verify.as_ref().is_some_and(|verify| verify.is_offline) => {
                (vec![OpKind::Read], Some(OpKind::Read))
            }
            _ if let Some(replay) = &plan.replay => {
                let transfers: Vec<_> = replay.ops.iter().copied().filter(|op| *op != OpKind::Sync).collect();
                (replay.ops.clone(), <[_; 1]>::try_from(transfers).ok().map(|[op]| op))
            }
            OpMix::Only(op) => (vec![op], Some(op)),
            OpMix::ReadWrite { .. } => (vec![OpKind::Read, OpKind::Write], None),
        };
        // A pool that is twice as large as the queue keeps reads and writes apart.
        let write_buffers_from = pool.count() - depth;
        if ops.contains(&OpKind::Write) {
            (write_buffers_from..pool.count()).for_each(|i| content.fill_initial(pool.slice_mut(i)));
        }
        let trims = plan.verify.as_ref().is_some_and(|verify| verify.trim.is_some());
        let single_op = single_op.filter(|_| !plan.pattern.steps.trims_first);
        if trims || plan.pattern.steps.trims_first {
            ops.push(OpKind::Trim);
        }
        if plan.flush.fsync_every > 0 || plan.flush.fdatasync_every > 0 || plan.flush.is_at_end() {
            ops.push(OpKind::Sync);
        }
        let is_batch_adapted = plan.queue.submit_batch.is_none();
        let batch = plan.queue.submit_batch.unwrap_or(1).clamp(1, plan.queue.depth) as usize;
        let slot = Slot { request: Request::NONE, issued: 0, handed: 0, due: 0, free_since: 0 };
        let complete_max = match plan.queue.complete_max {
            0 => depth,
            most => (most as usize).min(depth),
        };
        let samples = Samples::new(context.sample_window, &clock);
        let target = plan.control.latency_target;
        let judged = context.judge.zip(plan.control.criterion);
        let spans = judged.map(|(judge, plan)| Box::new(Spans::new(judge, &plan, &clock)));
        let search = target.map(|target| Box::new(Search::new(target, plan.queue.depth, &clock)));
        let (verifier, fatal) = match Verifier::new(plan, context.worker) {
            Ok(verifier) => (verifier, None),
            Err(sentence) => (None, Some(sentence)),
        };
        Self {
            context,
            engine,
            clock,
            samples,
            log: context.log.as_ref().map(LogBuffer::new),
            iolog: context.iolog.as_ref().map(|door| Box::new(LogBuffer::new(door))),
            answered: 0,
            pool: ManuallyDrop::new(pool),
            generator: Generator::new(plan, context.worker),
            content,
            supply: None,
            write_buffers_from,
            sharing: Sharing {
                is_possible: E::KIND == EngineKind::IoUring
                    && is_batch_adapted
                    && single_op == Some(OpKind::Read)
                    && context.log.is_none()
                    && context.files.iter().all(is_buffered),
                usual_ns: 0,
                count: 0,
            },
            // What is fetched is in the buffer before its slot is taken.
            writes_need_data: plan.source.is_none() && (E::KIND.touches_files() || plan.content.refill),
            has_work_per_io: has_work_per_io(plan) || context.log.is_some(),
            calendar: Calendar::new(plan, context.worker),
            is_paced: plan.is_paced(),
            recorder: Recorder::new(&ops, plan.is_paced()),
            slots: vec![slot; depth].into(),
            free: (0..depth as u32).rev().collect(),
            free_count: depth,
            queued: vec![0; depth].into(),
            completions: vec![Completion::NONE; complete_max].into(),
            block: [Request::NONE; REQUEST_BLOCK],
            block_at: 0,
            block_end: 0,
            batch,
            is_batch_adapted,
            single_op,
            write_sequence: 0,
            verifier,
            watched: guard::Watched::default(),
            search,
            spans,
            share: None,
            reserve: 0,
            issued_before: 0,
            pending_due: None,
            thought_at: 0,
            is_pausing: false,
            not_before: 0,
            free_since: 0,
            started: 0,
            measured_from: 0,
            row_from: 0,
            deadline: u64::MAX,
            next_event: 0,
            is_ramping: false,
            is_done: fatal.is_some(),
            is_exhausted: false,
            was_stopped: false,
            ended: 0,
            submit_ns: 0,
            submit_count: 0,
            usage_from: ThreadUsage::default(),
            failures: Vec::with_capacity(FAILURES_MAX),
            fatal,
            notes: Vec::new(),
            verify_failures: Vec::new(),
            verified_block_count: 0,
            verify_failure_count: 0,
        }
    }

    /// A job that compares offline reads what it would write, as far as the run came that wrote it.
    #[cold]
    fn read_instead(&mut self) {
        let Some(verifier) = self.verifier.as_ref().filter(|verifier| verifier.plan.is_offline) else { return };
        let left =
            verifier.issued_max.unwrap_or(u64::MAX) - self.issued_before.min(verifier.issued_max.unwrap_or(u64::MAX));
        self.block_end = self.block_end.min(u32::try_from(left).unwrap_or(u32::MAX));
        for request in self.block[..self.block_end as usize].iter_mut().filter(|request| request.op == OpKind::Write) {
            request.op = OpKind::Read;
        }
    }

    /// Requests taken from the generator so far: what a verify pass replays.
    fn issued(&self) -> u64 {
        self.issued_before + u64::from(self.block_at)
    }

    #[inline(always)]
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free_count
    }

    /// The present after an I/O that may have been a memory copy.
    #[inline(always)]
    fn now_after(&self) -> u64 {
        if E::NEEDS_ORDERED_CLOCK { self.clock.now_ordered() } else { self.clock.now() }
    }

    /// Waits for the start, does everything, and reports.
    pub fn run(mut self) -> WorkerReport {
        if let Some(source) = &self.context.plan.source {
            // The connection is made before the start; what is sent on it is asked for within the measured time.
            match HttpSource::connect(&source.address, source.length_bytes) {
                Ok(source) => self.supply = Some(Supply { source, filled: 0, waited: 0, is_tail: false }),
                Err(error) => {
                    self.fatal = Some(chain(&error));
                    self.is_done = true;
                }
            }
        }
        if self.context.plan.limits.start_delay_ns == 0 && self.context.waits_for.is_empty() {
            // All together, before the first of them is on its way.
            self.join_flow();
        }
        self.context.reached();
        let limits = &self.context.plan.limits;
        self.started = self.clock.now();
        if limits.start_delay_ns > 0 {
            let until = self.started + self.clock.to_ticks(limits.start_delay_ns);
            while self.started < until && !self.context.stop.load(Relaxed) {
                let look_up = self.started + self.clock.to_ticks(INTERVAL_NS / 2);
                self.started = self.clock.wait_until(until.min(look_up));
            }
        }
        self.join_flow();
        self.not_before = self.started;
        self.measured_from = self.started + self.clock.to_ticks(limits.ramp_ns);
        self.is_ramping = limits.ramp_ns > 0;
        if let Some(runtime_ns) = limits.runtime_ns {
            self.deadline = self.measured_from + self.clock.to_ticks(runtime_ns);
        }
        self.row_from = self.measured_from;
        self.usage_from = thread_usage();
        if !self.is_ramping {
            self.look_for_window(self.started);
            self.begin_search(self.started);
            self.begin_spans(self.started);
        }
        self.next_event = if self.is_ramping { self.measured_from } else { self.next_look() };
        let mut last = self.measured_from;
        let result = self.issue_all(&mut last);
        if let Err(error) = result {
            self.fatal.get_or_insert(chain(&error));
        }
        self.finish(last)
    }

    /// The loop itself. `last` becomes the moment of the last completion.
    fn issue_all(&mut self, last: &mut u64) -> Result<(), EngineError> {
        let is_replayed = self.context.plan.replay.is_some();
        let is_timed = self.calendar.is_some()
            || self.context.plan.think.is_some()
            || self.share.is_some()
            || is_replayed
            || self.iolog.is_some();
        let has_supply = self.supply.is_some();
        let trims_first = self.context.plan.pattern.steps.trims_first;
        let is_serial = (self.verifier.is_some() || trims_first) && self.slots.len() > 1 && self.writes();
        let has_backlog = self.verifier.as_ref().is_some_and(|v| v.plan.backlog > 0 || v.plan.trim.is_some());
        let complete_min = (self.context.plan.queue.complete_min.max(1) as usize).min(self.completions.len());
        loop {
            if self.context.stop.load(Relaxed) && !self.is_done {
                self.is_done = true;
                self.was_stopped = true;
                self.ended = self.clock.now();
            }
            let mut queued = 0;
            let mut wait = if self.is_done { Wait::Everything } else { Wait::No };
            if !self.is_done {
                while queued < self.batch && self.free_count > self.reserve {
                    if self.block_at == self.block_end {
                        self.issued_before += u64::from(self.block_end);
                        self.block_end = self.generator.refill(&mut self.block) as u32;
                        self.block_at = 0;
                        if self.verifier.is_some() {
                            self.read_instead();
                        }
                        if self.block_end == 0 {
                            self.is_done = true;
                            self.is_exhausted = true;
                            if let Some(fault) = self.generator.replay().and_then(Replay::fault) {
                                self.fatal.get_or_insert(fault);
                            }
                            wait = Wait::Everything;
                            break;
                        }
                    }
                    let request = self.block[self.block_at as usize];
                    if request.op == OpKind::Sync {
                        if queued > 0 || self.in_flight() > 0 {
                            wait = Wait::Everything;
                            break;
                        }
                        if is_replayed {
                            let due = self.due(&request);
                            if due > self.clock.now() {
                                wait = Wait::Until(due);
                                break;
                            }
                            self.pending_due = None;
                        }
                        self.block_at += 1;
                        self.note_issued(&request);
                        *last = self.sync_now(&request);
                        if self.is_done {
                            break;
                        }
                        continue;
                    }
                    if is_serial && self.overlaps_in_flight(&request) {
                        wait = Wait::Everything;
                        break;
                    }
                    if has_backlog && self.verifier.as_ref().is_some_and(Verifier::is_due) {
                        if queued > 0 || self.in_flight() > 0 {
                            wait = Wait::Everything;
                            break;
                        }
                        self.settle_backlog()?;
                        if self.is_done {
                            break;
                        }
                    }
                    if is_timed {
                        if self.is_pausing {
                            if queued > 0 || self.in_flight() > 0 {
                                wait = Wait::Everything;
                                break;
                            }
                            self.begin_pause(*last);
                        }
                        if let Some(until) = self.held_by_flow() {
                            wait = if until == 0 { Wait::Flow } else { Wait::Until(until) };
                            break;
                        }
                        let due = self.due(&request);
                        if due > self.clock.now() {
                            wait = Wait::Until(due);
                            break;
                        }
                    }
                    if has_supply && let Some(for_what) = self.collect_from_source(&request, queued) {
                        wait = for_what;
                        break;
                    }
                    self.block_at += 1;
                    self.free_count -= 1;
                    let slot = self.free[self.free_count];
                    let mut index = slot as usize;
                    if request.op == OpKind::Write {
                        index += self.write_buffers_from;
                        if self.writes_need_data {
                            self.fill(index, &request);
                        }
                    }
                    self.engine.queue(slot, &request, self.pool.buffer_ptr(index));
                    self.slots[slot as usize].request = request;
                    if is_timed {
                        self.note_timing(slot);
                    }
                    self.queued[queued] = slot;
                    queued += 1;
                }
            }
            let mut count = 0;
            let mut now = 0;
            let mut call = Call { queued: 0, ns: 0, is_alone: false };
            if queued > 0 {
                let is_alone = self.in_flight() == queued;
                let before = self.clock.now();
                self.engine.submit()?;
                now = self.now_after();
                let ns = self.note_submission(queued, before, now);
                if self.engine.has_ready() {
                    count = self.engine.reap(0, None, &mut self.completions)?;
                }
                // During the ramp everything is counted at once, because its end counts what is in
                // flight again.
                call = Call { queued: queued as u64, ns, is_alone };
                if E::BLOCKS || self.single_op.is_none() || self.is_ramping || count == 0 {
                    self.count_submission(&call);
                    call.queued = 0;
                }
            }
            if count == 0 {
                let in_flight = self.in_flight();
                let (min, timeout_ns) = match wait {
                    Wait::Everything if in_flight == 0 => {
                        if self.is_done {
                            return Ok(());
                        }
                        continue;
                    }
                    Wait::Everything => (1, None),
                    Wait::Source if in_flight == 0 => {
                        self.wait_for_source(SOURCE_WAIT_IDLE);
                        continue;
                    }
                    Wait::Source => {
                        self.wait_for_source(SOURCE_WAIT_BUSY);
                        // A wait, if of no length: only within a call does io_uring bring completions to its ring.
                        (1, Some(1))
                    }
                    Wait::Flow if in_flight == 0 => {
                        std::thread::yield_now();
                        self.wait_idle(0);
                        continue;
                    }
                    // As for a source: only within a call does io_uring bring completions to its ring.
                    Wait::Flow => (1, Some(1)),
                    Wait::Until(due) => {
                        let left_ns = self.clock.to_ns(due.min(self.deadline).saturating_sub(self.clock.now()));
                        if in_flight == 0 {
                            self.wait_idle(due);
                            continue;
                        }
                        if left_ns > C::POLL_NS { (1, Some(left_ns - C::POLL_NS)) } else { (0, None) }
                    }
                    Wait::No if self.free_count <= self.reserve => (complete_min.min(in_flight), None),
                    Wait::No => {
                        // The queue is not full yet: the next submission. Filling a deep one may take
                        // longer than a row, and end behind the deadline.
                        if now >= self.next_event {
                            self.handle_events(now);
                        }
                        continue;
                    }
                };
                count = self.engine.reap(min, timeout_ns, &mut self.completions)?;
                now = self.clock.now();
            }
            if now >= self.next_event {
                self.handle_events(now);
            }
            self.complete(count, now, &call);
            if count > 0 {
                *last = now;
            }
        }
    }

    /// Counts the completions collected at `now`.
    ///
    /// Neighbours that were handed over together have the same latency and are counted in one go.
    #[inline(always)]
    fn complete(&mut self, count: usize, now: u64, call: &Call) {
        if self.has_work_per_io {
            self.note_room(count, now);
        }
        if !E::BLOCKS {
            self.recorder.queue.complete[QueueCounts::batch_class(count as u64)] += 1;
        }
        let mut counted = 0;
        let mut run = Run { op: OpKind::Read, issued: 0, handed: 0, io_count: 0, byte_count: 0 };
        for i in 0..count {
            let completion = self.completions[i];
            let slot = &self.slots[completion.slot as usize];
            let (request, issued) = (&slot.request, slot.issued);
            if completion.result == i64::from(request.length) {
                if issued != run.issued || request.op != run.op {
                    let next = Run { op: request.op, issued, handed: slot.handed, io_count: 0, byte_count: 0 };
                    counted += self.count_run(&std::mem::replace(&mut run, next), now, call);
                }
                run.io_count += 1;
                run.byte_count += u64::from(self.slots[completion.slot as usize].request.length);
                if self.has_work_per_io {
                    self.after_one(completion.slot, now);
                }
            } else {
                self.failed(completion, now);
            }
            self.free[self.free_count] = completion.slot;
            self.free_count += 1;
        }
        counted += self.count_run(&run, now, call);
        if counted < call.queued {
            self.count_submission(&Call { queued: call.queued - counted, ..*call });
        }
    }

    /// Before `count` slots become free at `now`: since when there is room, and whether it may be used.
    #[cold]
    fn note_room(&mut self, count: usize, now: u64) {
        let low = self.context.plan.queue.low as usize;
        if self.free_count <= self.reserve {
            // The queue was full until now: whatever was due meanwhile waited for the device.
            self.free_since = now;
            if low > 0 {
                self.reserve = self.slots.len() - 1 - low;
            }
        }
        if low > 0 && self.free_count + count > self.reserve {
            self.reserve = 0;
        }
    }

    /// Counts neighbours; returns how many of them it counted as complete when their call returned,
    /// submission included.
    #[inline(always)]
    fn count_run(&mut self, run: &Run, now: u64, call: &Call) -> u64 {
        if run.io_count == 0 {
            return 0;
        }
        let recorder = self.recorder.op(run.op);
        recorder.io_count += run.io_count;
        recorder.byte_count += run.byte_count;
        if !E::BLOCKS && call.queued > 0 && run.handed == now {
            // One latency stands for all three: the hand-over was all of it.
            let mut ns = call.ns;
            if run.io_count > 1 && run.io_count == call.queued && call.is_alone {
                ns = self.sharing.part_of(ns, run.io_count);
            }
            recorder.inline.record_many(ns, run.io_count);
            return run.io_count;
        }
        recorder.interval.record_many(self.clock.to_ns(now.wrapping_sub(run.issued)), run.io_count);
        if !E::BLOCKS {
            let ns = self.clock.to_ns(now.wrapping_sub(run.handed));
            recorder.set.completion.record_many(ns, run.io_count);
        }
        0
    }

    /// What paced and verified jobs do with each completion, and others with those that are sampled.
    #[cold]
    fn after_one(&mut self, index: u32, now: u64) {
        let slot = self.slots[index as usize];
        if self.samples.is_open() {
            self.samples.offer(&slot.request, slot.issued, now, &self.clock);
        }
        self.log_one(&slot, u64::from(slot.request.length), now);
        if let Some(search) = &mut self.search
            && search.count(slot.issued, now)
        {
            self.next_event = now;
        }
        if self.is_paced {
            self.record_paced(&slot, now);
        }
        if slot.request.op == OpKind::Read && self.context.plan.verify.is_some() {
            self.compare(index, &slot.request, 0);
        }
    }

    /// Logs an I/O that moved `bytes`.
    fn log_one(&mut self, slot: &Slot, bytes: u64, now: u64) {
        let Some(log) = &mut self.log else { return };
        // What ends in the ramp is in no figure.
        if self.is_ramping {
            return;
        }
        let since = |from: u64| self.clock.to_ns(now.saturating_sub(from));
        let total_ns = since(if self.is_paced { slot.due } else { slot.issued });
        let (submission_ns, completion_ns) = if E::BLOCKS {
            (None, since(slot.issued))
        } else {
            (Some(self.clock.to_ns(slot.handed.saturating_sub(slot.issued))), since(slot.handed))
        };
        log.push(LoggedIo {
            op: slot.request.op,
            end_ns: since(self.measured_from),
            submission_ns,
            completion_ns,
            total_ns,
            bytes,
            offset: slot.request.offset,
        });
    }

    /// Notes when the queued I/Os were handed over; how long that took, in nanoseconds.
    #[inline(always)]
    fn note_submission(&mut self, queued: usize, before: u64, after: u64) -> u64 {
        for &slot in &self.queued[..queued] {
            let slot = &mut self.slots[slot as usize];
            slot.issued = before;
            slot.handed = after;
        }
        let ns = self.clock.to_ns(after - before);
        if !E::BLOCKS {
            self.submit_ns += ns;
            self.submit_count += queued as u64;
            let depth = QueueCounts::depth_class(self.in_flight() as u64);
            self.recorder.queue.depth[depth] += queued as u64;
            self.recorder.queue.submit[QueueCounts::batch_class(queued as u64)] += 1;
        }
        ns
    }

    /// Counts the hand-over of I/Os that were not complete when it returned.
    #[inline(always)]
    fn count_submission(&mut self, call: &Call) {
        if E::BLOCKS {
            return;
        }
        match self.single_op {
            Some(op) => self.recorder.op(op).set.submission.record_many(call.ns, call.queued),
            None => {
                for &slot in &self.queued[..call.queued as usize] {
                    let op = self.slots[slot as usize].request.op;
                    self.recorder.op(op).set.submission.record(call.ns);
                }
            }
        }
    }

    /// When the next request may be issued: its place in the calendar, or the end of a pause.
    fn due(&mut self, request: &Request) -> u64 {
        let due = match (self.pending_due, &mut self.calendar) {
            (Some(due), _) => due,
            (None, Some(calendar)) => {
                let due = self.started + self.clock.to_ticks(calendar.next(request.op, request.length));
                self.pending_due = Some(due);
                due
            }
            (None, None) => match self.generator.replay().and_then(|replay| replay.due_ns(self.block_at as usize)) {
                Some(due_ns) => {
                    let due = self.started + self.clock.to_ticks(due_ns);
                    self.pending_due = Some(due);
                    due
                }
                None => 0,
            },
        };
        due.max(self.not_before)
    }

    /// Notes when a timed I/O was due, and that a pause comes next where one is due.
    fn note_timing(&mut self, slot: u32) {
        if let Some(share) = &mut self.share {
            share.count();
        }
        if let Some(due) = self.pending_due.take() {
            let slot = &mut self.slots[slot as usize];
            slot.due = due;
            slot.free_since = self.free_since;
        }
        if self.iolog.is_some() {
            let request = self.slots[slot as usize].request;
            self.note_issued(&request);
        }
        if let Some(think) = self.context.plan.think
            && ((think.every > 0 && self.issued() - self.thought_at >= think.every)
                || (think.after_ns > 0
                    && self.clock.to_ns(self.clock.now().saturating_sub(self.not_before)) >= think.after_ns))
        {
            self.thought_at = self.issued();
            self.is_pausing = true;
        }
    }

    /// Writes down what is issued, if that is asked for.
    #[cold]
    fn note_issued(&mut self, request: &Request) {
        if let Some(iolog) = &mut self.iolog {
            let at_ns = self.clock.to_ns(self.clock.now().saturating_sub(self.started));
            iolog.push(IssuedIo { at_ns, request: *request });
        }
    }

    /// A pause begins when everything before it has ended, at `last`: what an application does
    /// between two I/Os takes its time after the first has answered.
    #[cold]
    fn begin_pause(&mut self, last: u64) {
        self.is_pausing = false;
        let think = self.context.plan.think;
        self.not_before = last + self.clock.to_ticks(think.map_or(0, |think| think.time_ns));
        // The part that is work, not idleness.
        let busy_until = last + self.clock.to_ticks(think.map_or(0, |think| think.spin_ns));
        let mut now = self.clock.now();
        while now < busy_until && !self.context.stop.load(Relaxed) {
            let before = std::mem::replace(&mut now, self.clock.now());
            if now == before {
                // Virtual time passes only when it is waited for.
                now = self.clock.wait_until(busy_until);
            }
        }
        self.free_since = self.free_since.max(self.not_before);
    }

    /// True if the job writes.
    fn writes(&self) -> bool {
        self.recorder.ops[slot_of(OpKind::Write)].is_some()
    }

    /// Verified jobs: true if the request touches what an I/O in flight touches. Which of two writes
    /// to one block is carried out last, and what a read beside a write sees, nobody promises: the later
    /// request waits. (It happens where one pass over the region ends and the next begins.)
    #[cold]
    fn overlaps_in_flight(&self, request: &Request) -> bool {
        let is_free = |slot: u32| self.free[..self.free_count].contains(&slot);
        let end = request.offset + u64::from(request.length);
        self.slots.iter().zip(0..).any(|(slot, index)| {
            let other = &slot.request;
            (request.op == OpKind::Write || other.op == OpKind::Write)
                && other.file == request.file
                && other.offset < end
                && request.offset < other.offset + u64::from(other.length)
                && !is_free(index)
        })
    }

    /// Nothing is in flight and nothing is due: sleeps, looking up for the deadline, the next row
    /// and a request to stop.
    #[cold]
    fn wait_idle(&mut self, due: u64) {
        let look_up = self.clock.now() + self.clock.to_ticks(INTERVAL_NS / 2);
        // A look for a window is not worth waking up for.
        let event = if self.is_ramping { self.measured_from } else { self.next_row_or_end() };
        let now = self.clock.wait_until(due.min(event).min(look_up));
        if now >= self.next_event {
            self.handle_events(now);
        }
    }

    /// Latency from the due moment, and how late the hand-over was although a slot was free.
    #[cold]
    fn record_paced(&mut self, slot: &Slot, now: u64) {
        let from_due = self.clock.to_ns(now.saturating_sub(slot.due));
        self.recorder.op(slot.request.op).set.from_intended.record(from_due);
        let could_begin = slot.due.max(slot.free_since);
        let late = self.clock.to_ns(slot.issued.saturating_sub(could_begin));
        if let Some(lateness) = &mut self.recorder.pacing_lateness {
            lateness.record(late);
        }
    }

    /// A sync call, with nothing in flight. Returns the moment it was done.
    #[cold]
    fn sync_now(&mut self, request: &Request) -> u64 {
        let before = self.clock.now();
        let result = self.engine.sync_file(request.file, request.data_only);
        let now = self.clock.now();
        self.free_since = now;
        if now >= self.next_event {
            self.handle_events(now);
        }
        if result == 0 {
            let recorder = self.recorder.op(OpKind::Sync);
            recorder.io_count += 1;
            recorder.interval.record(self.clock.to_ns(now - before));
            self.samples.offer(request, before, now, &self.clock);
        } else {
            // Whatever was written before is lost or not, nobody knows: never retried, always fatal.
            self.recorder.op(OpKind::Sync).error_count += 1;
            self.note_failure(request, -result as i32, 0, 0);
            let what = if request.data_only { "fdatasync" } else { "fsync" };
            let path = self.path(request.file);
            let error = io::Error::from_raw_os_error(-result as i32);
            self.fatal.get_or_insert(format!(
                "{what} of `{path}` failed: {error}; after a failed sync no earlier write is known to be safe"
            ));
            self.is_done = true;
        }
        now
    }

    fn next_boundary(&self) -> u64 {
        self.row_from + self.clock.to_ticks(INTERVAL_NS)
    }

    /// The next row's end, or the deadline while it has not passed.
    fn next_row_or_end(&self) -> u64 {
        if self.is_done { self.next_boundary() } else { self.next_boundary().min(self.deadline) }
    }

    /// The same, or the next look for a window in which I/Os are sampled.
    fn next_look(&self) -> u64 {
        let look = self.next_row_or_end().min(self.samples.next_poll);
        let look = self.search.as_ref().map_or(look, |search| look.min(search.end));
        self.spans.as_ref().map_or(look, |spans| look.min(spans.end))
    }

    /// Looks whether I/Os are sampled from now on.
    fn look_for_window(&mut self, now: u64) {
        self.samples.poll(now, &self.clock);
        self.has_work_per_io = has_work_per_io(self.context.plan) || self.log.is_some() || self.samples.is_open();
    }

    /// The ramp's end, a row's end, the deadline: whatever has come by `now`.
    #[cold]
    fn handle_events(&mut self, now: u64) {
        if self.is_ramping && now >= self.measured_from {
            self.is_ramping = false;
            self.recorder.reset();
            self.count_submissions_in_flight();
            self.usage_from = thread_usage();
            self.begin_search(now);
            self.begin_spans(now);
        }
        if !self.is_ramping {
            while now >= self.next_boundary() {
                let end = self.next_boundary();
                self.adapt_batch();
                let end_ns = self.clock.to_ns(end - self.measured_from);
                let span_ns = self.clock.to_ns(end - self.row_from);
                self.keep_guard(end_ns);
                self.recorder.end_interval(end_ns, span_ns, self.context.progress);
                self.row_from = end;
                self.row_ended(end_ns);
            }
            self.end_search_window(now);
            self.end_span(now);
            if now >= self.deadline && !self.is_done {
                self.is_done = true;
                self.ended = self.deadline;
            }
            if now >= self.samples.next_poll {
                self.look_for_window(now);
            }
        }
        self.next_event = if self.is_ramping { self.measured_from } else { self.next_look() };
    }

    /// Ends a job that is slower than it may be.
    fn keep_guard(&mut self, now_ns: u64) {
        let guard = self.context.plan.guard;
        if !guard.is_none()
            && let Some(sentence) = self.watched.look(&guard, &self.recorder, now_ns)
        {
            self.fatal.get_or_insert(sentence);
            self.is_done = true;
        }
    }

    fn flush_logs(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
        if let Some(iolog) = &mut self.iolog {
            iolog.flush();
        }
    }

    /// A row's end is where whoever follows the run is told.
    fn row_ended(&mut self, elapsed_ns: u64) {
        self.flush_logs();
        let Some(snapshot) = self.context.snapshot else { return };
        if let Some(question) = snapshot.question(self.answered) {
            self.answered = question;
            let (ops, series) = self.recorder.so_far(!E::BLOCKS);
            let report = WorkerReport {
                ops,
                series,
                elapsed_ns,
                threads: used(&self.usage_from, &thread_usage(), elapsed_ns),
                queue: (!E::BLOCKS).then_some(self.recorder.queue),
                failures: self.failures.clone(),
                fatal: None,
                ..WorkerReport::failed(String::new())
            };
            snapshot.give(question, report);
        }
    }

    /// At the ramp's end: what is in flight will complete in the measured part, so its submission
    /// belongs there too.
    fn count_submissions_in_flight(&mut self) {
        if E::BLOCKS {
            return;
        }
        for (slot, index) in self.slots.iter().zip(0..) {
            if !self.free[..self.free_count].contains(&index) {
                let ns = self.clock.to_ns(slot.handed.wrapping_sub(slot.issued));
                self.recorder.op(slot.request.op).set.submission.record(ns);
            }
        }
    }

    fn adapt_batch(&mut self) {
        if !self.is_batch_adapted || E::BLOCKS || self.submit_count == 0 {
            return;
        }
        let count = |of: fn(&OpRecorder) -> u64| self.recorder.ops.iter().flatten().map(|r| of(r)).sum::<u64>();
        let inline_count = count(|r| r.inline.count());
        let is_inline = inline_count * 20 >= (inline_count + count(|r| r.interval.count())) * 19;
        self.recorder.fold_inline();
        let median = self.recorder.ops.iter().flatten().filter_map(|r| {
            let n = r.interval.count();
            Some((n, r.interval.value_at_rank(n.div_ceil(2))?))
        });
        if let Some((_, p50)) = median.max_by_key(|m| m.0) {
            let most = if is_inline && self.sharing.is_possible {
                self.sharing.usual_ns = p50.max(1);
                ADAPTED_BATCH_MAX
            } else {
                self.sharing.usual_ns = 0;
                adapted_batch(p50, self.submit_ns / self.submit_count)
            };
            self.batch = most.min(self.slots.len() as u32) as usize;
        }
        self.submit_ns = 0;
        self.submit_count = 0;
    }

    fn path(&self, file: u16) -> String {
        self.context.files.get(usize::from(file)).map_or_else(String::new, |f| f.path.clone())
    }

    /// An I/O that failed or moved less than it should.
    #[cold]
    fn failed(&mut self, completion: Completion, now: u64) {
        let slot = self.slots[completion.slot as usize];
        let request = slot.request;
        let total_ns = self.clock.to_ns(now.wrapping_sub(slot.issued));
        let recorder = self.recorder.op(request.op);
        // A transfer of nothing (a read behind the file's end) has no latency worth counting.
        if completion.result > 0 {
            recorder.io_count += 1;
            recorder.byte_count += completion.result as u64;
            recorder.short_count += 1;
            recorder.interval.record(total_ns);
            if !E::BLOCKS {
                recorder.set.completion.record(total_ns);
            }
            if self.is_paced {
                self.record_paced(&slot, now);
            }
            self.log_one(&slot, completion.result as u64, now);
        } else {
            recorder.error_count += 1;
        }
        let errno = (-completion.result).max(0) as i32;
        let base = if request.op == OpKind::Write { self.write_buffers_from } else { 0 };
        let address = self.pool.buffer_ptr(base + completion.slot as usize) as u64;
        self.note_failure(&request, errno, completion.result.max(0) as u64, address);
        if !self.context.plan.continue_on_error {
            self.is_done = true;
        }
    }

    fn note_failure(&mut self, request: &Request, errno: i32, returned: u64, address: u64) {
        if let Some(known) = self.failures.iter_mut().find(|f| f.op == request.op && f.errno == errno) {
            known.count += 1;
            return;
        }
        if self.failures.len() < FAILURES_MAX {
            let target = self.context.files.get(usize::from(request.file));
            self.failures.push(IoFailure {
                op: request.op,
                errno,
                path: self.path(request.file),
                offset: request.offset,
                length: u64::from(request.length),
                address,
                returned,
                count: 1,
                explanation: explain(request, errno, returned, address, target),
            });
        }
    }

    fn finish(mut self, mut last: u64) -> WorkerReport {
        let plan = self.context.plan;
        // A job that had nothing in flight at its end was measured until then all the same.
        last = last.max(self.ended);
        let flush = plan.flush;
        for (is_asked_for, data_only) in [(flush.end_fdatasync, true), (flush.end_fsync || flush.fsync_on_close, false)]
        {
            for file in 0..self.context.files.len().max(1) {
                if is_asked_for && self.fatal.is_none() {
                    let request = Request { op: OpKind::Sync, file: file as u16, data_only, ..Request::NONE };
                    last = self.sync_now(&request);
                }
            }
        }
        if !self.is_ramping && last >= self.row_from {
            let end_ns = self.clock.to_ns(last - self.measured_from);
            let span_ns = self.clock.to_ns(last - self.row_from);
            self.keep_guard(end_ns);
            self.recorder.end_interval(end_ns, span_ns, self.context.progress);
        }
        if self.is_ramping {
            self.recorder.reset();
            if self.fatal.is_none() && !self.was_stopped {
                self.fatal = Some("the job ended within its ramp: nothing was measured".to_owned());
            }
        }
        self.leave_spans();
        if let Some(share) = self.share.take() {
            share.leave();
        }
        let usage = thread_usage();
        self.flush_logs();
        let has_failed = self.fatal.is_some() || !self.failures.is_empty();
        let scheduling = &self.context.plan.scheduling;
        if scheduling.ends_others || scheduling.ends_others_on_error && has_failed {
            // The phase has a flag of its own where a job ends others.
            self.context.stop.store(true, Relaxed);
        }
        self.context.finished();
        let backlog_count = match &mut self.calendar {
            // What comes after the job's last I/O was never due.
            Some(calendar) if !self.is_exhausted => {
                let until = last.min(self.deadline);
                let taken = u64::from(self.pending_due.is_some_and(|due| due < until));
                let until_ns = self.clock.to_ns(until.saturating_sub(self.started));
                taken + calendar.backlog(until_ns, |op| self.generator.mean_size_bytes(op))
            }
            None if self.is_paced && !self.is_exhausted => {
                let until = last.min(self.deadline);
                let until_ns = self.clock.to_ns(until.saturating_sub(self.started));
                let (at, filled) = (self.block_at as usize, self.block_end as usize);
                self.generator.replay().map_or(0, |replay| replay.backlog(at, filled, until_ns))
            }
            _ => 0,
        };
        let wrote = self.write_sequence > 0;
        if let Some(verifier) = self.verifier.as_ref().filter(|verifier| wrote && verifier.plan.saves_state) {
            let state = verifier.state(plan, self.context.worker, self.issued());
            self.notes.push(state.save());
        }
        let can_verify = self.fatal.is_none() && self.failures.is_empty() && !self.was_stopped;
        if wrote
            && can_verify
            && !self.has_given_up()
            && let Err(error) = self.verify_written()
        {
            self.fatal = Some(chain(&error));
        }
        if wrote && can_verify && plan.source.as_ref().is_some_and(|source| source.is_verified) {
            self.verify_against_source();
        }
        let elapsed_ns = if self.is_ramping { 0 } else { self.clock.to_ns(last.saturating_sub(self.measured_from)) };
        let mut engine_notes = self.engine.notes();
        engine_notes.append(&mut self.notes);
        let waited_ns =
            self.log.take().map_or(0, |log| log.waited_ns) + self.iolog.take().map_or(0, |log| log.waited_ns);
        if waited_ns > 0 {
            engine_notes.push(format!(
                "logs were written more slowly than I/O was done: the worker waited {} ms for them, between I/Os",
                waited_ns.div_ceil(1_000_000)
            ));
        }
        if self.sharing.count > 0 {
            engine_notes.push(format!(
                "reads that were complete when io_uring_enter returned (page cache) were handed over up to \
                 {ADAPTED_BATCH_MAX} at a time, each counted with its part of the call, or with all of a call that took \
                 more than twice the usual, so one of up to nine times the usual may hide among them; iodepth_batch = 1 times each alone"
            ));
        }
        if self.supply.is_some() && self.slots.len() > 1 {
            engine_notes.push(format!(
                "while the source was waited for, completions were looked for every {} µs: latencies may be that \
                 much too long",
                SOURCE_WAIT_BUSY.as_micros()
            ));
        }
        engine_notes.extend(self.search.as_ref().map(|search| search.sentence()));
        let source_wait_ns = self.supply.as_ref().map_or(0, |supply| self.clock.to_ns(supply.waited));
        let queue = (!E::BLOCKS).then_some(self.recorder.queue);
        let (ops, series, pacing_lateness) = self.recorder.finish(!E::BLOCKS);
        // The engine goes first: it may hold registrations of the pool's memory.
        let has_lost_ios = self.slots.len() > self.free_count;
        drop(self.engine);
        if !has_lost_ios {
            ManuallyDrop::into_inner(self.pool);
        }
        WorkerReport {
            ops,
            series,
            elapsed_ns,
            pacing_lateness,
            backlog_count,
            threads: used(&self.usage_from, &usage, elapsed_ns),
            queue,
            failures: self.failures,
            verify_failures: self.verify_failures,
            verified_block_count: self.verified_block_count,
            verify_failure_count: self.verify_failure_count,
            samples: self.samples.into_kept(),
            source_wait_ns,
            depth_search: self.search.map(|search| search.result()),
            criterion: None,
            engine_notes,
            fatal: self.fatal,
            was_stopped: self.was_stopped,
        }
    }
}

/// True if each completion is looked at, whether I/Os are sampled or logged or not.
fn has_work_per_io(plan: &JobPlan) -> bool {
    plan.is_paced() || plan.verify.is_some() || plan.control.latency_target.is_some() || plan.queue.low > 0
}

/// What was used between two readings of a thread that measured for `elapsed_ns`.
pub(crate) fn used(from: &ThreadUsage, to: &ThreadUsage, elapsed_ns: u64) -> ThreadUsage {
    ThreadUsage {
        user_ns: to.user_ns.saturating_sub(from.user_ns),
        system_ns: to.system_ns.saturating_sub(from.system_ns),
        context_switch_count: to.context_switch_count.saturating_sub(from.context_switch_count),
        major_fault_count: to.major_fault_count.saturating_sub(from.major_fault_count),
        minor_fault_count: to.minor_fault_count.saturating_sub(from.minor_fault_count),
        elapsed_ns,
    }
}

/// One hand-over whose I/Os are not counted as submitted yet.
#[derive(Debug)]
struct Call {
    /// How many I/Os it carried; 0: they are counted already.
    queued: u64,
    /// How long it took, in nanoseconds.
    ns: u64,
    /// Nothing else was in flight.
    is_alone: bool,
}

/// Neighbouring completions that were handed over together.
#[derive(Debug)]
struct Run {
    op: OpKind,
    issued: u64,
    handed: u64,
    io_count: u64,
    byte_count: u64,
}

/// Why the loop has to wait before it can go on.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// It has not.
    No,
    /// The source has not sent the next write's bytes.
    Source,
    /// Others of the flow are behind.
    Flow,
    /// Nothing more is issued until all is reaped.
    Everything,
    /// The next request is not due before this tick.
    Until(u64),
}

/// True if a file was opened without O_DIRECT.
fn is_buffered(target: &TargetFile) -> bool {
    rustix::fs::fcntl_getfl(&*target.file).is_ok_and(|flags| !flags.contains(rustix::fs::OFlags::DIRECT))
}
