//! Creates the worker of a measured job: its buffers, engine, clock and stages.

use super::Worker;
use crate::buffers::Buffers;
use crate::clock::{AnyClock, Clock, VirtualClock};
use crate::context::WorkerContext;
use crate::engines::{
    BlockingEngine, Dircreate, Dirdelete, Dirstat, Engine, EngineError, EngineSetup, Falloc, Filecreate, Filedelete,
    Filestat, Ftruncate, IoUringEngine, LibaioEngine, MmapEngine, NamesEngine, NullEngine, PageFaultEngine,
    PosixaioEngine, Psync, Pvsync, Pvsync2, SimulatedEngine, Splice, SyncCall, Vsync,
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
        writes: plan.modifies_files(),
        priorities: &plan.priorities,
        seed: worker_seed(plan.seed, context.worker),
        advice: plan.handling.advice,
    };
    let error = |e: EngineError| error_line(&e);
    match plan.engine {
        // One at a time, as fio's null engine: an I/O is complete when it is submitted.
        EngineKind::Null if plan.queue.depth == 1 => on_real_clock(context, NullEngine::<true>::new(&setup), pool),
        EngineKind::Null => on_real_clock(context, NullEngine::<false>::new(&setup), pool),
        EngineKind::Psync => on_real_clock(context, BlockingEngine::<Psync>::new(&setup).map_err(error)?, pool),
        EngineKind::Sync => on_real_clock(context, BlockingEngine::<SyncCall>::new(&setup).map_err(error)?, pool),
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
        EngineKind::PageFault => on_real_clock(context, PageFaultEngine::new(plan).map_err(error)?, pool),
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
            Ok(run_worker_on(context, SimulatedEngine::new(&setup, device, clock.clone()), clock, pool))
        }
    }
}

fn on_real_clock<E: Engine>(context: &WorkerContext<'_>, engine: E, pool: Buffers) -> Result<WorkerReport, String> {
    Ok(match context.clock {
        AnyClock::Tsc(clock) => run_worker_on(context, engine, clock, pool),
        AnyClock::Monotonic(clock) => run_worker_on(context, engine, clock, pool),
    })
}

/// Runs a worker on an engine that was made over `pool`'s region, with the stages of its job. A job without stages runs
/// a loop that was compiled without them.
///
/// # Panics
/// If `pool` has fewer buffers than the plan has slots, or shorter ones than its longest I/O.
pub fn run_worker_on<E: Engine, C: Clock>(
    context: &WorkerContext<'_>,
    engine: E,
    clock: C,
    pool: Buffers,
) -> WorkerReport {
    let steps = StepQueue::new(context);
    let (stages, fault) = JobStages::new(context, &clock, &steps);
    let state = LoopState::new::<E>(context, &clock, pool, steps, fault);
    match stages.is_empty() {
        true => Worker { engine, clock, state, stages: NoStages }.run(),
        false => Worker { engine, clock, state, stages }.run(),
    }
}
