//! The ruler's own marks: what measuring costs on this machine, measured before anything else.

use crate::clock::{AnyClock, Clock};
use crate::{Progress, Start, WorkerContext, run_worker};
use std::sync::atomic::AtomicBool;
use trueio_model::{EngineKind, FilePlan, JobPlan, Limits, Prepare, Ruler};

/// I/Os of the `null` run: at 30 ns each 0.03 ms, and 0.3 million instructions of every start.
const NULL_IOS: u64 = 1_024;

/// Measures clock and loop; takes about 0.3 ms.
pub fn measure_ruler(clock: AnyClock) -> Ruler {
    let (clock_cost_ns, clock_resolution_ns) = match clock {
        AnyClock::Tsc(clock) => clock_marks(&clock),
        AnyClock::Monotonic(clock) => clock_marks(&clock),
    };
    let plan = null_plan();
    let start = Start::new();
    start.open();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let context = WorkerContext::new(&plan, &[], &stop, &start, &progress, clock);
    let report = run_worker(&context);
    let reads = &report.ops[0].latency.total;
    Ruler {
        clock: clock.name().to_owned(),
        clock_cost_ns,
        clock_resolution_ns,
        // The loop never waits, so its time is its CPU time (unless it is interrupted).
        null_cpu_ns_per_io: report.elapsed_ns as f64 / NULL_IOS as f64,
        null_latency_ns_p50: reads.value_at_rank(reads.count().div_ceil(2)).unwrap_or(0),
    }
}

/// (cost of a reading, smallest step), in nanoseconds.
fn clock_marks<C: Clock>(clock: &C) -> (f64, f64) {
    const READINGS: u64 = 2_000;
    let first = clock.now();
    let mut last = first;
    let mut step = u64::MAX;
    for _ in 0..READINGS {
        let now = clock.now();
        if now > last {
            step = step.min(now - last);
        }
        last = now;
    }
    // A step is a difference of ticks; in nanoseconds with a fraction, since it may be below one.
    let ns_per_tick = clock.to_ns(1 << 20) as f64 / f64::from(1u32 << 20);
    let cost = (last - first) as f64 * ns_per_tick / READINGS as f64;
    (cost, if step == u64::MAX { cost } else { step as f64 * ns_per_tick })
}

/// 4 KiB random reads at depth 1, every block once, over 256 MiB of nothing.
fn null_plan() -> JobPlan {
    let plain = JobPlan::plain(EngineKind::Null, u64::MAX);
    JobPlan {
        name: "ruler".to_owned(),
        files: vec![FilePlan {
            path: String::new(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 256 << 20,
            extends_from: None,
        }],
        limits: Limits { io_count: Some(NULL_IOS), is_time_based: true, ..plain.limits },
        ..plain
    }
}
