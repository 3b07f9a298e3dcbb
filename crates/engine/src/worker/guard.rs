//! Ends a job that is slower than it may be: `rate_min`, `rate_iops_min`, `max_latency`.
//!
//! Looked at with each row, ten times a second; nothing of it is in the way of an I/O.
//!
//! Cannot: end a job in the middle of an I/O that hangs; it ends when the I/O has come back.

use crate::recorder::Recorder;
use trueio_model::{Guard, OpKind, units};

/// What was there when the cycle began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched {
    from_ns: u64,
    io_count: u64,
    byte_count: u64,
}

impl Watched {
    /// Looks at the row that ends at `now_ns` of the measured part, before it is drained; a sentence if the job is
    /// too slow.
    pub(super) fn look(&mut self, guard: &Guard, recorder: &Recorder, now_ns: u64) -> Option<String> {
        let transfers = recorder.ops.iter().flatten();
        let slowest = transfers.clone().filter_map(|op| op.interval.max_ns().max(op.inline.max_ns())).max();
        if guard.latency_ns_max > 0
            && let Some(ns) = slowest.filter(|ns| *ns > guard.latency_ns_max)
        {
            let (took, most) = (units::format_duration_ns(ns), units::format_duration_ns(guard.latency_ns_max));
            return Some(format!("an I/O took {took}, and `max_latency` is {most}"));
        }
        let span_ns = now_ns.saturating_sub(self.from_ns);
        if span_ns < guard.cycle_ns.max(1) {
            return None;
        }
        let counted = [OpKind::Read, OpKind::Write, OpKind::Trim].map(|op| recorder.ops[super::slot_of(op)].as_ref());
        let io_count: u64 = counted.iter().flatten().map(|op| op.io_count).sum();
        let byte_count: u64 = counted.iter().flatten().map(|op| op.byte_count).sum();
        let before = std::mem::replace(self, Self { from_ns: now_ns, io_count, byte_count });
        let per_s = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(span_ns);
        let (ios, bytes) = (per_s(io_count - before.io_count), per_s(byte_count - before.byte_count));
        if ios < u128::from(guard.ios_per_s_min) {
            return Some(format!("{ios} I/Os a second, and `rate_iops_min` is {}", guard.ios_per_s_min));
        }
        (bytes < u128::from(guard.bytes_per_s_min))
            .then(|| format!("{bytes} bytes a second, and `rate_min` is {}", guard.bytes_per_s_min))
    }
}
