//! From a plan to a worker that runs: what kind of job it is, its thread's scheduling, buffers, engine and clock.
//!
//! Sources: ioprio_set(2), sched_setaffinity(2), set_mempolicy(2), setpriority(2), prctl(2).

use super::{Worker, WorkerContext};
use crate::buffers::Buffers;
use crate::clock::{AnyClock, VirtualClock};
use crate::credentials::become_user;
use crate::engines::{
    BlockingEngine, Dircreate, Dirdelete, Dirstat, Engine, EngineError, EngineSetup, Falloc, Filecreate, Filedelete,
    Filestat, Ftruncate, IoUringEngine, LibaioEngine, MmapEngine, NamesEngine, NullEngine, PosixaioEngine, Psync,
    Pvsync, Pvsync2, SimulatedEngine, Splice, SyncCall, Vsync,
};
use crate::recorder::WorkerReport;
use crate::seed::worker_seed;
use crate::{burn, command, exec};
use std::io;
use trueio_model::{BlockSizes, EngineKind, IoPriority, JobPlan, MemoryMode, MemoryPolicy, OpKind, OpMix};

/// Runs one worker to its end, on the engine and clock that the plan names. Blocks until the
/// phase's start is opened.
pub fn run_worker(context: &WorkerContext<'_>) -> WorkerReport {
    let plan = context.plan;
    if plan.command.is_some() || !plan.is_measured() {
        // Nothing is counted while it runs.
        context.tell(WorkerReport::empty);
    }
    let report = match (&plan.command, &plan.exec, &plan.cpu_load) {
        (Some(command), ..) => Ok(command::run(context, command)),
        _ if plan.handling.creates_only => {
            context.reached();
            context.finished(false);
            Ok(WorkerReport::empty())
        }
        (_, Some(program), _) => apply_scheduling(plan, context.worker).map(|()| exec::run(context, program)),
        (.., Some(load)) => {
            apply_scheduling(plan, context.worker).and_then(|()| act_as_user(plan)).map(|()| burn::run(context, load))
        }
        _ => prepared(context),
    };
    report.unwrap_or_else(|error| {
        // Nobody waits for a worker that could not be made.
        context.tell(WorkerReport::empty);
        if let Some(judge) = context.judge {
            judge.leaves(0);
        }
        context.ready();
        context.finished(true);
        WorkerReport::failed(error)
    })
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
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
    act_as_user(plan)?;
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
        priorities: (&plan.priorities, worker_seed(plan, context.worker)),
        advice: plan.handling.advice,
    };
    let error = |e: EngineError| chain(&e);
    match plan.engine {
        // One at a time, as fio's null engine: an I/O that is done when it is handed over.
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

/// From now on the calling thread, and what it starts, has the rights of the job's user.
fn act_as_user(plan: &JobPlan) -> Result<(), String> {
    let Some(user) = plan.user else { return Ok(()) };
    become_user(user).map_err(|error| format!("acting as {user}: {error}"))
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
    if let Some(policy) = &plan.memory_policy {
        set_memory_policy(policy)?;
    }
    try_priorities(plan)?;
    if let Some((class, level)) = plan.scheduling.io_priority {
        let priority = IoPriority { class, level, hint: plan.scheduling.io_hint };
        set_priority(priority.value()).map_err(|error| {
            let needs = match error.raw_os_error() {
                Some(libc::EINVAL) if priority.hint > 0 => "; hints need Linux 6.5",
                _ => "",
            };
            format!("setting the I/O priority {priority}: {error}{needs}")
        })?;
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

/// ioprio_set(2) and ioprio_get(2): the thread's own.
const IOPRIO_WHO_PROCESS: libc::c_long = 1;

fn set_priority(value: u16) -> io::Result<()> {
    let value = libc::c_long::from(value);
    // SAFETY: a plain call with integer arguments; 0 names the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0 as libc::c_long, value) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's word on the priorities of single I/Os, before any I/O has one: it judges them as it judges those of
/// threads (Linux `block/ioprio.c`, `ioprio_check_cap`).
fn try_priorities(plan: &JobPlan) -> Result<(), String> {
    if plan.priorities.is_empty() {
        return Ok(());
    }
    // SAFETY: a plain call with integer arguments; 0 names the calling thread.
    let before = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0 as libc::c_long) };
    for share in &plan.priorities {
        set_priority(share.priority.value()).map_err(|error| {
            let needs = match (error.raw_os_error(), share.priority.class) {
                (Some(libc::EPERM), IoPriority::REAL_TIME) => "; real time needs CAP_SYS_NICE or CAP_SYS_ADMIN",
                (Some(libc::EINVAL), _) if share.priority.hint > 0 => "; hints need Linux 6.5",
                _ => "",
            };
            format!("the kernel refuses the I/O priority {} (`cmdprio_bssplit`): {error}{needs}", share.priority)
        })?;
    }
    set_priority(u16::try_from(before).unwrap_or(0)).map_err(|error| format!("setting the I/O priority back: {error}"))
}

/// Where the thread's new pages come from, its buffers' among them: they are made afterwards.
fn set_memory_policy(policy: &MemoryPolicy) -> Result<(), String> {
    let mode: libc::c_long = match policy.mode {
        MemoryMode::Default => 0,
        MemoryMode::Prefer => 1,
        MemoryMode::Bind => 2,
        MemoryMode::Interleave => 3,
        MemoryMode::Local => 4,
    };
    const BITS: usize = libc::c_ulong::BITS as usize;
    let words = policy.nodes.iter().max().map_or(0, |node| *node as usize / BITS + 1);
    let mut mask: Vec<libc::c_ulong> = vec![0; words];
    for node in &policy.nodes {
        mask[*node as usize / BITS] |= 1 << (*node as usize % BITS);
    }
    // The kernel looks at one bit less than it is told.
    let (pointer, bits) = if words > 0 { (mask.as_ptr(), words * BITS + 1) } else { (std::ptr::null(), 0) };
    // SAFETY: the kernel reads `bits` bits less one from `mask`, which lives until the call returns.
    if unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) } != 0 {
        let error = io::Error::last_os_error();
        let name = policy.mode.name();
        return Err(format!("setting the memory policy `{name}` of nodes {:?}: {error}", policy.nodes));
    }
    Ok(())
}
