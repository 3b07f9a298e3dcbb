//! Ends a job that is slower than it may be: `rate_min`, `rate_iops_min`, `max_latency`.
//!
//! Checked at the end of each interval, ten times a second, so an I/O costs nothing more. As in fio, sync calls do not
//! count, and a job that has issued its last I/O needs no rate.
//!
//! Limits: a job does not end in the middle of an I/O that hangs; it ends when that I/O has completed.

use super::Stage;
use crate::context::WorkerContext;
use crate::recorder::{Recorder, slot_of};
use crate::view::View;
use trueio_model::{Guard, OpKind, units};

/// The limits, and what was counted when the present cycle began.
#[derive(Debug)]
pub(crate) struct Watch {
    guard: Guard,
    from_ns: u64,
    /// I/Os and bytes of reads, and of writes and trims.
    counts: [(u64, u64); 2],
}

impl Watch {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let guard = context.plan.guard;
        (!guard.is_none()).then(|| Box::new(Self { guard, from_ns: 0, counts: [(0, 0); 2] }) as Box<dyn Stage>)
    }

    /// Checks the interval that ends at `now_ns` of the measured part, before it is drained; returns why the job is
    /// too slow, if it is. Its rate counts while it `issues`.
    fn check(&mut self, recorder: &Recorder, now_ns: u64, issues: bool) -> Option<String> {
        let guard = self.guard;
        // Sync calls come last.
        let transfers = recorder.ops[..3].iter().flatten();
        let slowest = transfers.filter_map(|op| op.interval.max_ns().max(op.inline.max_ns())).max();
        if guard.latency_ns_max > 0
            && let Some(ns) = slowest.filter(|ns| *ns > guard.latency_ns_max)
        {
            let (took, most) = (units::format_duration_ns(ns), units::format_duration_ns(guard.latency_ns_max));
            return Some(format!("an I/O took {took}, and `max_latency` is {most}"));
        }
        let span_ns = now_ns.saturating_sub(self.from_ns);
        if !issues || span_ns < guard.cycle_ns.max(1) {
            return None;
        }
        let of = |ops: &[OpKind]| {
            let counted = ops.iter().filter_map(|op| recorder.ops[slot_of(*op)].as_ref());
            counted.fold((0, 0), |(ios, bytes), op| (ios + op.io_count, bytes + op.byte_count))
        };
        let counts = [of(&[OpKind::Read]), of(&[OpKind::Write, OpKind::Trim])];
        let before = std::mem::replace(self, Self { guard, from_ns: now_ns, counts }).counts;
        let [reads, writes] = [0, 1].map(|i| (counts[i].0 - before[i].0, counts[i].1 - before[i].1));
        let all = (reads.0 + writes.0, reads.1 + writes.1);
        let least = (guard.bytes_per_s_min, guard.ios_per_s_min);
        match guard.of_writes {
            None => too_slow("", all, least, span_ns),
            Some(of_writes) => too_slow(" of reads", reads, least, span_ns)
                .or_else(|| too_slow(" of writes", writes, of_writes, span_ns)),
        }
    }
}

impl Stage for Watch {
    fn at_interval(&mut self, end_ns: u64, view: &mut View<'_, '_>) {
        let issues = !view.state.outcome.is_done;
        if let Some(sentence) = self.check(&view.state.recorder, end_ns, issues) {
            view.state.outcome.fail(sentence);
        }
    }
}

/// A sentence if so many I/Os and bytes in a span are less than the least bytes and I/Os a second.
fn too_slow(what: &str, (ios, bytes): (u64, u64), least: (u64, u64), span_ns: u64) -> Option<String> {
    let per_s = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(span_ns);
    let (ios, bytes) = (per_s(ios), per_s(bytes));
    if ios < u128::from(least.1) {
        return Some(format!("{ios} I/Os a second{what}, and `rate_iops_min` is {}", least.1));
    }
    (bytes < u128::from(least.0)).then(|| format!("{bytes} bytes a second{what}, and `rate_min` is {}", least.0))
}
