//! Ends a job that is slower than it may be: `rate_min`, `rate_iops_min`, `max_latency`.
//!
//! Looked at with each row, ten times a second; nothing of it is in the way of an I/O. As in fio, sync calls do not count,
//! and no rate is asked of a job that has issued its last I/O.
//!
//! Cannot: end a job in the middle of an I/O that hangs; it ends when the I/O has come back.

use crate::recorder::Recorder;
use trueio_model::{Guard, OpKind, units};

/// What was there when the cycle began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched {
    from_ns: u64,
    /// I/Os and bytes of reads, and of writes and trims.
    counts: [(u64, u64); 2],
}

impl Watched {
    /// Looks at the row that ends at `now_ns` of the measured part, before it is drained; a sentence if the job is
    /// too slow. Its rate counts while it `issues`; a sync call has neither a rate nor a longest latency, as in fio.
    pub(super) fn look(&mut self, guard: &Guard, recorder: &Recorder, now_ns: u64, issues: bool) -> Option<String> {
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
            let counted = ops.iter().filter_map(|op| recorder.ops[super::slot_of(*op)].as_ref());
            counted.fold((0, 0), |(ios, bytes), op| (ios + op.io_count, bytes + op.byte_count))
        };
        let counts = [of(&[OpKind::Read]), of(&[OpKind::Write, OpKind::Trim])];
        let before = std::mem::replace(self, Self { from_ns: now_ns, counts }).counts;
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

/// A sentence if so many I/Os and bytes in a span are less than the least bytes and I/Os a second.
fn too_slow(what: &str, (ios, bytes): (u64, u64), least: (u64, u64), span_ns: u64) -> Option<String> {
    let per_s = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(span_ns);
    let (ios, bytes) = (per_s(ios), per_s(bytes));
    if ios < u128::from(least.1) {
        return Some(format!("{ios} I/Os a second{what}, and `rate_iops_min` is {}", least.1));
    }
    (bytes < u128::from(least.0)).then(|| format!("{bytes} bytes a second{what}, and `rate_min` is {}", least.0))
}
