//! `cpuio`: a job without I/O, which keeps a processor busy for a share of the time while other jobs measure.
//!
//! It is busy for a chunk, sleeps for what the share leaves, and begins again, until its time is over, or the other I/O
//! it if it ends with that. It has no figures: nothing of it is an operation.
//!
//! Cannot see: what else ran on its processor; the share is of its own thread's time.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::{WorkerContext, WorkerReport, thread_usage, usage_between};
use trueio_model::CpuLoad;

/// How long a request to stop may go unnoticed.
const LOOK: Duration = Duration::from_millis(50);

/// Burns from the phase's start to the end of the job's time.
#[inline(never)]
pub(super) fn run(context: &WorkerContext<'_>, load: &CpuLoad) -> WorkerReport {
    context.reached();
    let limits = &context.plan.limits;
    let begin = Instant::now();
    let mut report = WorkerReport::empty();
    let usage = thread_usage(true);
    let head = Duration::from_nanos(limits.start_delay_ns + limits.ramp_ns);
    let end = limits.runtime_ns.map(|ns| begin + head + Duration::from_nanos(ns));
    let at_most = |at: Instant| end.map_or(at, |end| at.min(end));
    let busy = Duration::from_nanos(load.chunk_ns);
    let idle = busy.mul_f64(f64::from(100 - load.percent) / f64::from(load.percent));
    let mut work = Work::new(load);
    let mut wait = sleep_until(begin + Duration::from_nanos(limits.start_delay_ns), context, false);
    while wait == Wait::Over {
        let chunk_end = at_most(Instant::now() + busy);
        let mut looked = Instant::now();
        while Instant::now() < chunk_end && wait == Wait::Over {
            work.some();
            if context.stop.load(Relaxed) {
                wait = Wait::Stopped;
            } else if looked.elapsed() >= LOOK {
                looked = Instant::now();
                wait = if is_io_done(context, load) { Wait::IoDone } else { wait };
            }
        }
        if wait != Wait::Over || end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        wait = sleep_until(at_most(Instant::now() + idle), context, load.ends_with_io);
        if wait == Wait::Over && is_io_done(context, load) {
            wait = Wait::IoDone;
        }
    }
    report.was_stopped = wait == Wait::Stopped;
    report.elapsed_ns = begin.elapsed().saturating_sub(head).as_nanos() as u64;
    report.threads = usage_between(&usage, &thread_usage(true), report.elapsed_ns);
    report.engine_notes.push(format!("cpuio: {} % of a processor, in chunks of {} µs", load.percent, busy.as_micros()));
    context.finished(false);
    report
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// It is over.
    Over,
    /// A request to stop came before.
    Stopped,
    /// The I/O of the other jobs ended before.
    IoDone,
}

/// True if the job ends with the I/O of the other jobs, and that has ended.
fn is_io_done(context: &WorkerContext<'_>, load: &CpuLoad) -> bool {
    load.ends_with_io && context.ends_with.iter().all(|gate| gate.count() == 0)
}

fn sleep_until(until: Instant, context: &WorkerContext<'_>, looks: bool) -> Wait {
    loop {
        if context.stop.load(Relaxed) {
            return Wait::Stopped;
        }
        if looks && context.ends_with.iter().all(|gate| gate.count() == 0) {
            return Wait::IoDone;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Wait::Over;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// Numbers that are sorted in one go: 256 KiB, more than a first-level cache.
const SORTED: usize = 1 << 16;

/// What keeps the processor busy.
struct Work {
    number: u64,
    /// Empty: numbers are multiplied and kept nowhere.
    sorted: Vec<u32>,
}

impl Work {
    fn new(load: &CpuLoad) -> Self {
        Self { number: 1, sorted: vec![0; if load.sorts { SORTED } else { 0 }] }
    }

    fn next(&mut self) -> u64 {
        self.number = black_box(self.number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        self.number
    }

    /// Some of it: a microsecond, or some milliseconds of sorting.
    fn some(&mut self) {
        if self.sorted.is_empty() {
            for _ in 0..256 {
                self.next();
            }
            return;
        }
        for index in 0..self.sorted.len() {
            self.sorted[index] = (self.next() >> 32) as u32;
        }
        self.sorted.sort_unstable();
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        black_box(&mut self.sorted);
    }
}
