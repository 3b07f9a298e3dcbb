//! What comes with time and not with an I/O: the ramp's end, a row's end, windows, the deadline.

use super::usage::{thread_usage, usage_between};
use super::{Worker, has_work_per_io};
use crate::batch::{ADAPTED_BATCH_MAX, adapted_batch};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::recorder::{INTERVAL_NS, OpRecorder, WorkerReport};

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    fn next_boundary(&self) -> u64 {
        self.row_from + self.clock.to_ticks(INTERVAL_NS)
    }

    /// The next row's end, or the deadline while it has not passed.
    pub(super) fn next_row_or_end(&self) -> u64 {
        if self.is_done { self.next_boundary() } else { self.next_boundary().min(self.deadline) }
    }

    /// The same, or the next look for a window in which I/Os are sampled.
    pub(super) fn next_look(&self) -> u64 {
        let look = self.next_row_or_end().min(self.samples.next_poll);
        let look = self.search.as_ref().map_or(look, |search| look.min(search.end));
        self.spans.as_ref().map_or(look, |spans| look.min(spans.end))
    }

    /// Looks whether I/Os are sampled from now on.
    pub(super) fn look_for_window(&mut self, now: u64) {
        self.samples.poll(now, &self.clock);
        self.has_work_per_io = has_work_per_io(self.context.plan) || self.log.is_some() || self.samples.is_open();
    }

    /// The ramp's end, a row's end, the deadline: whatever has come by `now`.
    #[cold]
    pub(super) fn handle_events(&mut self, now: u64) {
        if self.is_ramping && now >= self.measured_from {
            self.is_ramping = false;
            self.recorder.reset();
            if let Some(reading) = &mut self.reading_back {
                reading.forget_counts();
            }
            self.count_submissions_in_flight();
            self.usage_from = thread_usage();
            if let Some(zoned) = &mut self.zoned {
                (zoned.reset_count, zoned.finish_count) = (0, 0);
            }
            self.begin_search(now);
            self.begin_spans(now);
        }
        if !self.is_ramping {
            while now >= self.next_boundary() {
                let end = self.next_boundary();
                self.adapt_batch();
                let end_ns = self.clock.to_ns(end - self.measured_from);
                let span_ns = self.clock.to_ns(end - self.row_from);
                self.keep_guard(end_ns);
                self.recorder.end_interval(end_ns, span_ns, self.context.progress);
                self.row_from = end;
                self.row_ended(end_ns);
            }
            self.end_search_window(now);
            self.end_span(now);
            if now >= self.deadline && !self.is_done {
                self.is_done = true;
                self.ended = self.deadline;
            }
            if now >= self.samples.next_poll {
                self.look_for_window(now);
            }
        }
        self.next_event = if self.is_ramping { self.measured_from } else { self.next_look() };
    }

    /// Ends a job that is slower than it may be. One that issues no more is held to no rate.
    pub(super) fn keep_guard(&mut self, now_ns: u64) {
        let guard = self.context.plan.guard;
        if !guard.is_none()
            && let Some(sentence) = self.watched.look(&guard, &self.recorder, now_ns, !self.is_done)
        {
            self.fatal.get_or_insert(sentence);
            self.is_done = true;
        }
    }

    /// A row's end is where whoever follows the run is told.
    fn row_ended(&mut self, elapsed_ns: u64) {
        self.flush_logs();
        let Some(snapshot) = self.context.snapshot else { return };
        if let Some(question) = snapshot.question(self.answered) {
            self.answered = question;
            snapshot.give(question, self.so_far(elapsed_ns));
        }
    }

    /// The last I/O was done at `last`: what was counted until then is what anybody is told from now on.
    pub(super) fn give_last(&self, last: u64) {
        let elapsed_ns = if self.is_ramping { 0 } else { self.clock.to_ns(last.saturating_sub(self.measured_from)) };
        self.context.publish(|| self.so_far(elapsed_ns));
    }

    /// What was counted so far. Only right after the end of a row.
    fn so_far(&self, elapsed_ns: u64) -> WorkerReport {
        let (ops, series) = self.recorder.so_far(!E::BLOCKS);
        WorkerReport {
            ops,
            series,
            elapsed_ns,
            threads: usage_between(&self.usage_from, &thread_usage(), elapsed_ns),
            queue: (!E::BLOCKS).then_some(self.recorder.queue),
            failures: self.failures.clone(),
            ..WorkerReport::empty()
        }
    }

    /// At the ramp's end: what is in flight will complete in the measured part, so its submission
    /// belongs there too.
    fn count_submissions_in_flight(&mut self) {
        if E::BLOCKS {
            return;
        }
        for (slot, index) in self.slots.iter().zip(0..) {
            if !self.free[..self.free_count].contains(&index) {
                let ns = self.clock.to_ns(slot.handed.wrapping_sub(slot.issued));
                self.recorder.op(slot.request.op).set.submission.record(ns);
            }
        }
    }

    fn adapt_batch(&mut self) {
        if !self.is_batch_adapted || E::BLOCKS || self.submit_count == 0 {
            return;
        }
        let count = |of: fn(&OpRecorder) -> u64| self.recorder.ops.iter().flatten().map(|r| of(r)).sum::<u64>();
        let inline_count = count(|r| r.inline.count());
        let is_inline = inline_count * 20 >= (inline_count + count(|r| r.interval.count())) * 19;
        self.recorder.fold_inline();
        let median = self.recorder.ops.iter().flatten().filter_map(|r| {
            let n = r.interval.count();
            Some((n, r.interval.value_at_rank(n.div_ceil(2))?))
        });
        if let Some((_, p50)) = median.max_by_key(|m| m.0) {
            let most = if is_inline && self.sharing.is_possible {
                self.sharing.usual_ns = p50.max(1);
                ADAPTED_BATCH_MAX
            } else {
                self.sharing.usual_ns = 0;
                adapted_batch(p50, self.submit_ns / self.submit_count)
            };
            self.batch = most.min(self.slots.len() as u32) as usize;
        }
        self.submit_ns = 0;
        self.submit_count = 0;
    }
}
