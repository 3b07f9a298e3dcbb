//! Ends a job that is slower than it may be: `rate_min`, `rate_iops_min`, `max_latency`.
//!
//! As in fio, a rate is checked when an I/O or a sync call completes, and only then: a cycle grows until the next one. So
//! a job that issues fewer than one I/O in a cycle is not too slow because of that. A direction is checked from its
//! first I/O on. A sync call is not counted as an I/O.
//!
//! Limits: a job does not end in the middle of an I/O that hangs; it ends when that I/O has completed.
//!
//! Source: fio 3.42 `backend.c`, `__check_min_rate`.

use super::{Done, Hooks, Stage, SyncDone};
use crate::context::WorkerContext;
use crate::view::View;
use std::io;
use trueio_model::{Guard, OpKind, units};

/// The limits, and what was counted since they were checked.
#[derive(Debug)]
pub(crate) struct Watch {
    guard: Guard,
    /// All I/Os; or reads, and writes with trims.
    sides: Vec<Side>,
    /// Of a job that trims each block before it writes it, only the writes are counted.
    counts_trims: bool,
    /// Completions of the present reap that were not handled yet.
    left: usize,
}

/// I/Os that have a minimum rate of their own.
#[derive(Debug)]
struct Side {
    what: &'static str,
    least: Counts,
    /// The tick at which the present cycle began.
    from: Option<u64>,
    /// Counted since then.
    done: Counts,
    /// An I/O of it completed, also during the ramp.
    has_begun: bool,
}

/// I/Os and their bytes, or rates of them per second.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ios: u64,
    bytes: u64,
}

impl Watch {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan;
        let guard = plan.guard;
        if guard.is_none() {
            return None;
        }
        let side = |what, ios, bytes| Side {
            what,
            least: Counts { ios, bytes },
            from: None,
            done: Counts::default(),
            has_begun: false,
        };
        let (ios, bytes) = (guard.ios_per_s_min, guard.bytes_per_s_min);
        let sides = match guard.of_writes {
            None if ios == 0 && bytes == 0 => Vec::new(),
            None => vec![side("", ios, bytes)],
            Some((write_bytes, write_ios)) => {
                vec![side(" of reads", ios, bytes), side(" of writes", write_ios, write_bytes)]
            }
        };
        Some(Box::new(Self { guard, sides, counts_trims: !plan.pattern.steps.trims_first, left: 0 }))
    }

    /// Checks the rates after what completed at `now`.
    fn check(&mut self, now: u64, view: &mut View<'_, '_>) {
        let (guard, time) = (self.guard, &view.state.time);
        if time.is_ramping || (guard.settle_ns > 0 && view.ns_between(time.measured_from, now) < guard.settle_ns) {
            return;
        }
        let first = (guard.settle_ns == 0).then_some(time.measured_from);
        let sentence = self.sides.iter_mut().find_map(|side| {
            if !side.has_begun {
                return None;
            }
            let Some(from) = side.from.or(first) else {
                side.begin(now);
                return None;
            };
            let span_ns = view.ns_between(from, now);
            if span_ns < guard.cycle_ns.max(1) {
                return None;
            }
            let done = side.done;
            side.begin(now);
            too_slow(side.what, done, side.least, span_ns)
        });
        if let Some(sentence) = sentence {
            view.state.outcome.fail(sentence);
        }
    }
}

impl Side {
    /// Begins a cycle.
    fn begin(&mut self, now: u64) {
        self.from = Some(now);
        self.done = Counts::default();
    }
}

impl Stage for Watch {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, is_making_room: !self.sides.is_empty() }
    }

    fn measure(&mut self, _now: u64, _view: &mut View<'_, '_>) {
        self.sides.iter_mut().for_each(|side| side.done = Counts::default());
    }

    fn making_room(&mut self, count: usize, _now: u64, _view: &mut View<'_, '_>) {
        self.left = count;
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let slot = view.state.queue.slot(done.slot);
        let (op, took_ns) = (slot.request.op, view.ns_between(slot.issued, done.now));
        if self.guard.latency_ns_max > 0 && took_ns > self.guard.latency_ns_max {
            let took = units::format_duration_ns(took_ns);
            let most = units::format_duration_ns(self.guard.latency_ns_max);
            // The error number that fio reports for it.
            let late = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            view.state.outcome.fail(format!("an I/O took {took}, and `max_latency` is {most}: {late}"));
        }
        if self.sides.is_empty() {
            return;
        }
        if done.moved() > 0 && (op != OpKind::Trim || self.counts_trims) {
            let index = if op == OpKind::Read { 0 } else { self.sides.len() - 1 };
            let side = &mut self.sides[index];
            side.has_begun = true;
            side.done.ios += 1;
            side.done.bytes += done.moved();
        }
        // What was reaped together completed together.
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.check(done.now, view);
        }
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        // Those after the last I/O belong to no rate.
        if !view.state.outcome.is_done {
            self.check(call.now, view);
        }
    }
}

/// Returns a sentence if the rate of `done` in a span is below `least`, which is per second.
fn too_slow(what: &str, done: Counts, least: Counts, span_ns: u64) -> Option<String> {
    // In whole milliseconds, as in fio: 1,000 I/Os in 1,000.9 ms are 1,000 a second.
    let span_ms = u128::from(span_ns / 1_000_000).max(1);
    let per_s = |count: u64| u128::from(count) * 1000 / span_ms;
    let (ios, bytes) = (per_s(done.ios), per_s(done.bytes));
    if ios < u128::from(least.ios) {
        return Some(format!("{ios} I/Os a second{what}, and `rate_iops_min` is {}", least.ios));
    }
    (bytes < u128::from(least.bytes))
        .then(|| format!("{bytes} bytes a second{what}, and `rate_min` is {}", least.bytes))
}
