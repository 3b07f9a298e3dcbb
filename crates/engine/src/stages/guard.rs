//! Ends a job that is slower than it may be: `rate_min`, `rate_iops_min`, `max_latency`.
//!
//! Rates are checked at the end of each interval, ten times a second, so an I/O costs nothing more; with `max_latency` each
//! I/O is checked. As in fio, sync calls do not count, and a job that has issued its last I/O needs no rate.
//!
//! Limits: a job does not end in the middle of an I/O that hangs; it ends when that I/O has completed.

use super::{Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::recorder::{Recorder, slot_of};
use crate::view::View;
use std::io;
use trueio_model::{Guard, OpKind, units};

/// The limits, and what was counted when the present cycle began.
#[derive(Debug)]
pub(crate) struct Watch {
    guard: Guard,
    from_ns: u64,
    /// Of reads, and of writes and trims.
    counts: [Counts; 2],
}

/// I/Os and their bytes, or rates of them per second.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ios: u64,
    bytes: u64,
}

impl Watch {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let guard = context.plan.guard;
        (!guard.is_none())
            .then(|| Box::new(Self { guard, from_ns: 0, counts: [Counts::default(); 2] }) as Box<dyn Stage>)
    }

    /// Checks the interval that ends at `now_ns` of the measured part, before it is drained; returns why the job is
    /// too slow, if it is. Its rate counts while it `issues`.
    fn check(&mut self, recorder: &Recorder, now_ns: u64, issues: bool) -> Option<String> {
        let guard = self.guard;
        let span_ns = now_ns.saturating_sub(self.from_ns);
        let settles = guard.settle_ns > 0 && now_ns <= guard.settle_ns;
        if !issues || (!settles && span_ns < guard.cycle_ns.max(1)) {
            return None;
        }
        let of = |ops: &[OpKind]| {
            let counted = ops.iter().filter_map(|op| recorder.ops[slot_of(*op)].as_ref());
            counted.fold(Counts::default(), |sum, op| Counts {
                ios: sum.ios + op.io_count,
                bytes: sum.bytes + op.byte_count,
            })
        };
        let counts = [of(&[OpKind::Read]), of(&[OpKind::Write, OpKind::Trim])];
        let before = std::mem::replace(self, Self { guard, from_ns: now_ns, counts }).counts;
        if settles {
            return None;
        }
        let [reads, writes] =
            [0, 1].map(|i| Counts { ios: counts[i].ios - before[i].ios, bytes: counts[i].bytes - before[i].bytes });
        let all = Counts { ios: reads.ios + writes.ios, bytes: reads.bytes + writes.bytes };
        let least = Counts { ios: guard.ios_per_s_min, bytes: guard.bytes_per_s_min };
        match guard.of_writes {
            None => too_slow("", all, least, span_ns),
            Some((bytes, ios)) => too_slow(" of reads", reads, least, span_ns)
                .or_else(|| too_slow(" of writes", writes, Counts { ios, bytes }, span_ns)),
        }
    }
}

impl Stage for Watch {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: self.guard.latency_ns_max > 0, ..Hooks::default() }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let took_ns = view.ns_between(view.state.queue.slot(done.slot).issued, done.now);
        if self.guard.latency_ns_max > 0 && took_ns > self.guard.latency_ns_max {
            let took = units::format_duration_ns(took_ns);
            let most = units::format_duration_ns(self.guard.latency_ns_max);
            // The error number that fio reports for it.
            let late = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            view.state.outcome.fail(format!("an I/O took {took}, and `max_latency` is {most}: {late}"));
        }
    }

    fn at_interval(&mut self, end_ns: u64, view: &mut View<'_, '_>) {
        let issues = !view.state.outcome.is_done;
        if let Some(sentence) = self.check(&view.state.recorder, end_ns, issues) {
            view.state.outcome.fail(sentence);
        }
    }
}

/// Returns a sentence if the rate of `done` in a span is below `least`, which is per second.
fn too_slow(what: &str, done: Counts, least: Counts, span_ns: u64) -> Option<String> {
    let per_s = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(span_ns);
    let (ios, bytes) = (per_s(done.ios), per_s(done.bytes));
    if ios < u128::from(least.ios) {
        return Some(format!("{ios} I/Os a second{what}, and `rate_iops_min` is {}", least.ios));
    }
    (bytes < u128::from(least.bytes))
        .then(|| format!("{bytes} bytes a second{what}, and `rate_min` is {}", least.bytes))
}
