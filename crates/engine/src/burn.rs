//! `cpuio`: a job without I/O, which keeps a processor busy for a share of the time while other jobs measure.
//!
//! It is busy for a chunk, sleeps for what the share leaves, and begins again, until its time is over. It has no
//! figures: nothing of it is an operation.
//!
//! Cannot see: what else ran on its processor; the share is of its own thread's time.

use crate::recorder::WorkerReport;
use crate::worker::{WorkerContext, thread_usage, used};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_model::CpuLoad;

/// How long a request to stop may go unnoticed.
const LOOK: Duration = Duration::from_millis(50);

/// Burns from the phase's start to the end of the job's time.
pub(crate) fn run(context: &WorkerContext<'_>, load: &CpuLoad) -> WorkerReport {
    context.reached();
    let limits = &context.plan.limits;
    let begin = Instant::now();
    let mut report = WorkerReport::empty();
    let usage = thread_usage();
    let head = Duration::from_nanos(limits.start_delay_ns + limits.ramp_ns);
    let end = begin + head + Duration::from_nanos(limits.runtime_ns.unwrap_or(0));
    let busy = Duration::from_nanos(load.chunk_ns);
    let idle = busy.mul_f64(f64::from(100 - load.percent) / f64::from(load.percent));
    sleep_until(begin + Duration::from_nanos(limits.start_delay_ns), context);
    'time: loop {
        let chunk_end = (Instant::now() + busy).min(end);
        let mut number = 1u64;
        while Instant::now() < chunk_end {
            if context.stop.load(Relaxed) {
                report.was_stopped = true;
                break 'time;
            }
            for _ in 0..256 {
                number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        }
        let now = Instant::now();
        if now >= end {
            break;
        }
        if !sleep_until((now + idle).min(end), context) {
            report.was_stopped = true;
            break;
        }
    }
    report.elapsed_ns = begin.elapsed().saturating_sub(head).as_nanos() as u64;
    report.threads = used(&usage, &thread_usage(), report.elapsed_ns);
    report.engine_notes.push(format!("cpuio: {} % of a processor, in chunks of {} µs", load.percent, busy.as_micros()));
    context.finished(false);
    report
}

/// False if a request to stop came before.
fn sleep_until(until: Instant, context: &WorkerContext<'_>) -> bool {
    loop {
        if context.stop.load(Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
}
