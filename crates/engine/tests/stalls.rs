//! A worker that is not scheduled for a while, at any of its clock readings.
//!
//! The clock is simulated: a reading takes a microsecond, and one of them some milliseconds.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use trueio_engine::{
    Buffers, Clock, Engine, EngineSetup, NullEngine, Progress, Start, WorkerContext, WorkerReport, choose_clock,
    run_worker_on,
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
    let (stop, start, progress) = (AtomicBool::new(false), Start::new(), Progress::default());
    start.open();
    let context = WorkerContext::new(plan, &[], &stop, &start, &progress, choose_clock());
    let depth = plan.queue.depth;
    let pool = Buffers::new(&plan.handling, depth as usize, 4096, 4096, 0).expect("memory");
    let setup = EngineSetup {
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
    let clock = Stalling { now: Cell::new(MS), looks: Cell::new(0), at, stall_ns: 3 * MS };
    let report = run_worker_on(&context, engine(&setup), clock, pool);
    let read = report.ops.iter().find(|op| op.op == OpKind::Read).expect("it reads").io_count;
    (report, read)
}

/// Goal: I/Os due at the deadline or later are never issued, and all I/Os due before it are issued or reported.
/// Method: eight I/Os are due in 8 ms, and the worker stalls for 3 ms at its first look at the clock, its second, …
#[test]
fn a_stalled_worker_issues_no_io_that_is_due_after_its_deadline() {
    let mut plan = JobPlan::plain(EngineKind::Null, 1 << 20);
    plan.files.push(FilePlan {
        path: String::new(),
        prepare: Prepare::Nothing,
        remove_after: false,
        offset_bytes: 0,
        size_bytes: 1 << 20,
        extends_from: None,
    });
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
