//! Creates the worker of a measured job: its buffers, engine, clock and stages.

use super::Worker;
use crate::buffers::Buffers;
use crate::clock::{AnyClock, Clock, VirtualClock};
use crate::context::WorkerContext;
use crate::engines::{
    BlockingEngine, Dircreate, Dirdelete, Dirstat, E4defrag, Engine, EngineError, EngineSetup, Falloc, Filecreate,
    Filedelete, Fileread, Filestat, Ftruncate, IoUringEngine, LibaioEngine, MmapEngine, NamesEngine, NullEngine,
    PageFaultEngine, PosixaioEngine, Psync, Pvsync, Pvsync2, SimulatedEngine, Splice, SyncCall, UasEngine, Vsync,
};
use crate::recorder::WorkerReport;
use crate::stages::{JobStages, NoStages};
use crate::view::{LoopState, StepQueue, io_bytes_max};
use trueio_model::{EngineKind, OpMix, error_line, worker_seed};

/// Runs the worker of a measured job to its end, on the engine and clock that the plan names. Blocks until the
/// phase's start is opened.
///
/// The calling thread is used as it is: the caller has set its processors, priorities and credentials. Jobs
/// without measured I/O (`exec`, `cpuio`, a command, `create_only`) fail here; crate `run` has their runners.
pub fn run_worker(context: &WorkerContext<'_>) -> WorkerReport {
    prepared(context).unwrap_or_else(|error| context.give_up(error))
}

fn prepared(context: &WorkerContext<'_>) -> Result<WorkerReport, String> {
    let plan = context.plan;
    // What moves no data gets a page, which keeps the arithmetic the same.
    let size = match (io_bytes_max(plan), &plan.replay) {
        (0, _) => 4096,
        (most, Some(_)) => most.max(4096),
        (most, None) => most,
    };
    // Reads and writes of a mixed job have buffers of their own: a write would otherwise carry what
    // the slot's last read brought.
    let buffers = plan.queue.depth as usize * if matches!(plan.pattern.mix, OpMix::ReadWrite { .. }) { 2 } else { 1 };
    let align = plan.buffer_alignment_bytes as usize;
    let pool = Buffers::new(&plan.handling, buffers, size as usize, align, plan.buffer_offset_bytes)?;
    let setup = EngineSetup {
        files: context.files,
        depth: plan.queue.depth,
        buffers: pool.region(),
        flags: plan.write_flags,
        uring: plan.uring,
        is_synchronous: plan.sync != trueio_model::SyncMode::None,
        verifies: plan.verify.is_some(),
        writes: plan.modifies_files(),
        priorities: &plan.priorities,
        seed: worker_seed(plan.seed, context.worker),
        advice: plan.handling.advice,
    };
    // Each engine is made in a frame of its own: a worker's stack is memory that every worker takes.
    match plan.engine {
        // One at a time, as fio's null engine: an I/O is complete when it is submitted.
        EngineKind::Null if plan.queue.depth == 1 => {
            on_real_clock(context, pool, || Ok(NullEngine::<true>::new(&setup)))
        }
        EngineKind::Null => on_real_clock(context, pool, || Ok(NullEngine::<false>::new(&setup))),
        EngineKind::Psync => on_real_clock(context, pool, || BlockingEngine::<Psync>::new(&setup)),
        EngineKind::Sync => on_real_clock(context, pool, || BlockingEngine::<SyncCall>::new(&setup)),
        EngineKind::Vsync => on_any_clock(context, pool, || BlockingEngine::<Vsync>::new(&setup)),
        EngineKind::Pvsync => on_any_clock(context, pool, || BlockingEngine::<Pvsync>::new(&setup)),
        EngineKind::Pvsync2 => on_real_clock(context, pool, || BlockingEngine::<Pvsync2>::new(&setup)),
        EngineKind::Splice => on_any_clock(context, pool, || BlockingEngine::<Splice>::new(&setup)),
        EngineKind::Falloc => on_any_clock(context, pool, || BlockingEngine::<Falloc>::new(&setup)),
        EngineKind::Ftruncate => on_any_clock(context, pool, || BlockingEngine::<Ftruncate>::new(&setup)),
        EngineKind::E4defrag if plan.handling.allocates_each_donor => {
            on_any_clock(context, pool, || BlockingEngine::<E4defrag<true>>::new(&setup))
        }
        EngineKind::E4defrag => on_any_clock(context, pool, || BlockingEngine::<E4defrag<false>>::new(&setup)),
        EngineKind::Filecreate => on_any_clock(context, pool, || NamesEngine::<Filecreate>::new(plan, context.worker)),
        EngineKind::Filestat => on_any_clock(context, pool, || NamesEngine::<Filestat>::new(plan, context.worker)),
        EngineKind::Fileread => on_any_clock(context, pool, || NamesEngine::<Fileread>::new(plan, context.worker)),
        EngineKind::Filedelete => on_any_clock(context, pool, || NamesEngine::<Filedelete>::new(plan, context.worker)),
        EngineKind::Dircreate => on_any_clock(context, pool, || NamesEngine::<Dircreate>::new(plan, context.worker)),
        EngineKind::Dirstat => on_any_clock(context, pool, || NamesEngine::<Dirstat>::new(plan, context.worker)),
        EngineKind::Dirdelete => on_any_clock(context, pool, || NamesEngine::<Dirdelete>::new(plan, context.worker)),
        EngineKind::PageFault => on_any_clock(context, pool, || PageFaultEngine::new(plan)),
        EngineKind::Exec => Err("a job of `exec` needs its program".to_owned()),
        EngineKind::Cpuio => Err("a job of `cpuio` needs its load".to_owned()),
        EngineKind::Posixaio => on_any_clock(context, pool, || PosixaioEngine::new(&setup)),
        EngineKind::Mmap => on_real_clock(context, pool, || MmapEngine::new(&setup)),
        EngineKind::Libaio => on_real_clock(context, pool, || LibaioEngine::new(&setup)),
        EngineKind::IoUring => on_real_clock(context, pool, || IoUringEngine::new(&setup)),
        EngineKind::Uas => on_any_clock(context, pool, || UasEngine::new(&setup)),
        EngineKind::Command => Err("a job of the engine `command` without a command".to_owned()),
        EngineKind::Simulated => {
            let device = plan.simulated.as_ref().ok_or("engine `simulated` needs a device model")?;
            let clock = VirtualClock::default();
            Ok(run_worker_on(context, SimulatedEngine::new(&setup, device, clock.clone()), clock, pool))
        }
    }
}

/// Runs a worker whose loop is compiled for the time stamp counter, with stages and without. For engines with short I/Os: a reading
/// of the clock is a noticeable part of their cost. If the run uses the kernel's clock, the loop of [`on_any_clock`] runs.
#[inline(never)]
fn on_real_clock<E: Engine>(
    context: &WorkerContext<'_>,
    pool: Buffers,
    engine: impl FnOnce() -> Result<E, EngineError>,
) -> Result<WorkerReport, String> {
    match context.clock {
        AnyClock::Tsc(clock) => {
            let engine = engine().map_err(|error| error_line(&error))?;
            Ok(run_worker_on(context, engine, clock, pool))
        }
        AnyClock::Monotonic(_) => on_any_clock(context, pool, engine),
    }
}

/// Runs a worker whose loop is compiled once for all clocks, with stages. For engines whose I/Os are long compared with a reading of the
/// clock, for rarely used engines, and for the kernel's clock.
#[inline(never)]
fn on_any_clock<E: Engine>(
    context: &WorkerContext<'_>,
    pool: Buffers,
    engine: impl FnOnce() -> Result<E, EngineError>,
) -> Result<WorkerReport, String> {
    let engine = engine().map_err(|error| error_line(&error))?;
    let clock = context.clock;
    let (state, stages) = parts::<E>(context, &clock, pool);
    Ok(Box::new(Worker { engine, clock, state, stages }).run())
}

/// Runs a worker on an engine that was made over `pool`'s region, with the stages of its job. A job without stages runs
/// a loop that was compiled without them.
///
/// # Panics
/// If `pool` has fewer buffers than the plan has slots, or shorter ones than its longest I/O.
#[inline(never)]
pub fn run_worker_on<E: Engine, C: Clock>(
    context: &WorkerContext<'_>,
    engine: E,
    clock: C,
    pool: Buffers,
) -> WorkerReport {
    match assembled(context, engine, clock, pool) {
        Assembled::Plain(worker) => worker.run(),
        Assembled::Staged(worker) => worker.run(),
    }
}

/// Makes the state of a worker's loop, and the stages of its job.
fn parts<'a, E: Engine>(
    context: &'a WorkerContext<'a>,
    clock: &dyn Clock,
    pool: Buffers,
) -> (LoopState<'a>, JobStages<'a>) {
    let steps = StepQueue::new(context);
    let (stages, fault) = JobStages::new(context, clock, &steps);
    (LoopState::new::<E>(context, clock, pool, steps, fault), stages)
}

/// A worker that is ready to run: without stages, or with those of its job.
enum Assembled<'a, E, C> {
    Plain(Box<Worker<'a, E, C, NoStages>>),
    Staged(Box<Worker<'a, E, C, JobStages<'a>>>),
}

/// Makes a worker. It is not on the stack while it runs: there it would be several times, once for each function that
/// passed it on.
#[inline(never)]
fn assembled<'a, E: Engine, C: Clock>(
    context: &'a WorkerContext<'a>,
    engine: E,
    clock: C,
    pool: Buffers,
) -> Assembled<'a, E, C> {
    let (state, stages) = parts::<E>(context, &clock, pool);
    match stages.is_empty() {
        true => Assembled::Plain(Box::new(Worker { engine, clock, state, stages: NoStages })),
        false => Assembled::Staged(Box::new(Worker { engine, clock, state, stages })),
    }
}
