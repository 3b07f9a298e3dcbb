//! A worker that is not scheduled for a while, at any of its clock readings.
//!
//! The clock is simulated: a reading takes a microsecond, and one of them some milliseconds. In the last test the time is real.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_engine::{
    Buffers, Clock, Engine, EngineSetup, MonotonicClock, NullEngine, Progress, Start, WorkerContext, WorkerReport,
    choose_clock, run_worker_on, thread_usage,
};
use trueio_model::{Advice, Arrivals, EngineKind, FilePlan, JobPlan, OpKind, Pace, Prepare, UringOptions, WriteFlags};

const MS: u64 = 1_000_000;

/// Stalls for `stall_ns` when it is looked at for the `at`th time.
#[derive(Debug)]
struct Stalling {
    now: Cell<u64>,
    looks: Cell<u64>,
    at: u64,
    stall_ns: u64,
}

impl Clock for Stalling {
    fn poll_ns(&self) -> u64 {
        0
    }

    fn now(&self) -> u64 {
        self.looks.set(self.looks.get() + 1);
        let stall = if self.looks.get() == self.at { self.stall_ns } else { 0 };
        self.now.set(self.now.get() + 1_000 + stall);
        self.now.get()
    }
    fn to_ns(&self, ticks: u64) -> u64 {
        ticks
    }
    fn to_ticks(&self, ns: u64) -> u64 {
        ns
    }
    fn wait_until(&self, tick: u64) -> u64 {
        self.now.set(self.now.get().max(tick));
        self.now()
    }
}

fn run<E: Engine>(plan: &JobPlan, at: u64, engine: impl FnOnce(&EngineSetup<'_>) -> E) -> (WorkerReport, u64) {
    let clock = Stalling { now: Cell::new(MS), looks: Cell::new(0), at, stall_ns: 3 * MS };
    run_on(clock, plan, engine)
}

fn run_on<E: Engine, C: Clock>(
    clock: C,
    plan: &JobPlan,
    engine: impl FnOnce(&EngineSetup<'_>) -> E,
) -> (WorkerReport, u64) {
    let (stop, start, progress) = (AtomicBool::new(false), Start::new(), Progress::default());
    start.open();
    let context = WorkerContext::new(plan, &[], &stop, &start, &progress, choose_clock());
    let depth = plan.queue.depth;
    let pool = Buffers::new(&plan.handling, depth as usize, 4096, 4096, 0).expect("memory");
    let setup = EngineSetup {
        is_synchronous: false,
        verifies: false,
        files: &[],
        depth,
        buffers: (std::ptr::null_mut(), 0),
        flags: WriteFlags::default(),
        uring: UringOptions::default(),
        writes: false,
        priorities: &[],
        seed: 0,
        advice: Advice::default(),
    };
    let report = run_worker_on(&context, engine(&setup), clock, pool);
    let read = report.ops.iter().find(|op| op.op == OpKind::Read).expect("it reads").io_count;
    (report, read)
}

fn plan() -> JobPlan {
    let mut plan = JobPlan::plain(EngineKind::Null, 1 << 20);
    plan.files.push(FilePlan {
        path: String::new(),
        prepare: Prepare::Nothing,
        remove_after: false,
        offset_bytes: 0,
        size_bytes: 1 << 20,
        extends_from: None,
    });
    plan
}

/// Goal: I/Os due at the deadline or later are never issued, and all I/Os due before it are issued or reported.
/// Method: eight I/Os are due in 8 ms, and the worker stalls for 3 ms at its first look at the clock, its second, …
#[test]
fn a_stalled_worker_issues_no_io_that_is_due_after_its_deadline() {
    let mut plan = plan();
    plan.limits.runtime_ns = Some(8 * MS);
    plan.limits.is_time_based = true;
    plan.pace = Some(Pace { ios_per_s: Some(1_000.0), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Linear });
    for depth in [1, 4] {
        plan.queue.depth = depth;
        for at in 1..150 {
            let (report, count) = match depth {
                1 => run(&plan, at, NullEngine::<true>::new),
                _ => run(&plan, at, NullEngine::<false>::new),
            };
            assert_eq!(count + report.backlog_count, 8, "depth {depth}, a stall at look {at}: {count}");
        }
    }
}

/// Real time. After the `at`th look the thread waits for its processor, on which another thread is busy.
struct Contended {
    looks: Cell<u64>,
    at: u64,
}

/// Longer than the tolerance of the test.
const WAIT_NS: u64 = 8 * MS;

fn waited_ns() -> u64 {
    thread_usage(true).waiting.map_or(0, |waiting| waiting.wait_ns)
}

impl Clock for Contended {
    fn now(&self) -> u64 {
        let now = MonotonicClock.now();
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() == self.at {
            let from_ns = waited_ns();
            while waited_ns() < from_ns + WAIT_NS {
                std::hint::spin_loop();
            }
        }
        now
    }
    fn to_ns(&self, ticks: u64) -> u64 {
        MonotonicClock.to_ns(ticks)
    }
    fn to_ticks(&self, ns: u64) -> u64 {
        MonotonicClock.to_ticks(ns)
    }
    fn wait_until(&self, tick: u64) -> u64 {
        MonotonicClock.wait_until(tick)
    }
}

/// Goal: a wait for a processor that is in the measured time is among the counted waits, from the first instant on. A starved worker that
/// lost its processor between the start of its time and the first reading of its waits had none, and no check objected.
/// Method: the worker shares its processor with a busy thread, and waits after its first look at the clock, its second, … Time on the processor
/// and waits together must be no less than the measured time. Time that a hypervisor takes is neither, so the best of three runs counts.
#[test]
fn waits_from_the_first_instant_of_the_measured_time_are_counted() {
    let cpu = rustix::thread::sched_getcpu();
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if thread_usage(true).waiting.is_none() || rustix::thread::sched_setaffinity(None, &set).is_err() {
        return trueio_testkit::skip("schedstat", "the kernel does not count waits, or the thread cannot be pinned");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It inherits the processor.
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        let unexplained_ns = |at| {
            let clock = Contended { looks: Cell::new(0), at };
            let mut plan = plan();
            plan.limits.io_count = Some(8);
            let used = run_on(clock, &plan, NullEngine::<true>::new).0.threads;
            let waits_ns = used.waiting.expect("counted").wait_ns;
            used.elapsed_ns.saturating_sub(waits_ns + used.user_ns + used.system_ns)
        };
        let least: Vec<u64> = (1..8).map(|at| (0..3).map(|_| unexplained_ns(at)).min().unwrap_or(0)).collect();
        stop.store(true, Relaxed);
        assert!(least.iter().all(|ns| *ns < WAIT_NS / 2), "{least:?}");
    });
}
