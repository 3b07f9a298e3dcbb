//! Counts submissions and completions.

use super::{LoopState, Slot};
use crate::clock::Clock;
use crate::engines::Engine;
use trueio_model::{OpKind, QueueCounts};

/// A submission whose I/Os are not counted as submitted yet.
#[derive(Debug)]
pub(crate) struct Call {
    /// How many I/Os it carried; 0: they are counted already.
    pub(crate) queued: u64,
    /// How long it took, in nanoseconds.
    pub(crate) ns: u64,
    /// Nothing else was in flight.
    pub(crate) is_alone: bool,
}

/// Neighbouring completions that were submitted together.
#[derive(Debug)]
pub(crate) struct Run {
    op: OpKind,
    issued: u64,
    submitted: u64,
    pub(crate) io_count: u64,
    pub(crate) byte_count: u64,
}

impl Run {
    pub(crate) const NONE: Run = Run { op: OpKind::Read, issued: 0, submitted: 0, io_count: 0, byte_count: 0 };

    /// Begins a run with this I/O.
    #[inline(always)]
    pub(crate) fn of(slot: &Slot) -> Self {
        Self { op: slot.request.op, issued: slot.issued, submitted: slot.submitted, io_count: 0, byte_count: 0 }
    }

    #[inline(always)]
    pub(crate) fn includes(&self, slot: &Slot) -> bool {
        slot.issued == self.issued && slot.request.op == self.op
    }
}

impl LoopState<'_> {
    /// Notes when the queued I/Os were submitted; returns how long that took, in nanoseconds.
    #[inline(always)]
    pub(crate) fn note_submission<E: Engine>(
        &mut self,
        clock: &impl Clock,
        queued: usize,
        before: u64,
        after: u64,
    ) -> u64 {
        self.queue.note_submission(queued, before, after);
        let ns = clock.to_ns(after - before);
        if !E::BLOCKS {
            self.batch.note_submission(ns, queued as u64);
            let depth = QueueCounts::depth_class(self.queue.in_flight() as u64);
            self.recorder.queue.depth[depth] += queued as u64;
            self.recorder.queue.submit[QueueCounts::batch_class(queued as u64)] += 1;
        }
        ns
    }

    /// Counts the submission of I/Os that were not complete when it returned.
    #[inline(always)]
    pub(crate) fn count_submission<E: Engine>(&mut self, call: &Call) {
        if E::BLOCKS {
            return;
        }
        match self.single_op {
            Some(op) => self.recorder.op(op).set.submission.record_many(call.ns, call.queued),
            None => {
                for op in self.queue.queued_ops(call.queued as usize) {
                    self.recorder.op(op).set.submission.record(call.ns);
                }
            }
        }
    }

    /// Counts neighbours; returns how many of them it counted as complete when their call returned, submission included.
    #[inline(always)]
    pub(crate) fn count_run<E: Engine>(&mut self, clock: &impl Clock, run: &Run, now: u64, call: &Call) -> u64 {
        if run.io_count == 0 {
            return 0;
        }
        let recorder = self.recorder.op(run.op);
        recorder.io_count += run.io_count;
        recorder.byte_count += run.byte_count;
        if !E::BLOCKS && call.queued > 0 && run.submitted == now {
            // One latency stands for all three: the submission was all of it.
            let mut ns = call.ns;
            if run.io_count > 1 && run.io_count == call.queued && call.is_alone {
                ns = self.batch.sharing.part_of(ns, run.io_count);
            }
            recorder.inline.record_many(ns, run.io_count);
            return run.io_count;
        }
        recorder.interval.record_many(clock.to_ns(now.wrapping_sub(run.issued)), run.io_count);
        if !E::BLOCKS {
            let ns = clock.to_ns(now.wrapping_sub(run.submitted));
            recorder.set.completion.record_many(ns, run.io_count);
        }
        0
    }

    /// At the ramp's end: what is in flight will complete in the measured part, so its submission belongs there too.
    pub(crate) fn count_submissions_in_flight(&mut self, clock: &impl Clock) {
        for slot in self.queue.iter_in_flight() {
            let ns = clock.to_ns(slot.submitted.wrapping_sub(slot.issued));
            self.recorder.op(slot.request.op).set.submission.record(ns);
        }
    }
}
