//! Handles events that are due at a time: the end of the ramp, the ends of intervals, the deadline.

use super::{View, Worker, view};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::stages::Stage;

/// Handles the events that are due by `now`.
#[cold]
pub(super) fn handle<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>, now: u64) {
    if std::mem::take(&mut worker.state.time.makes_way) {
        // The first I/O is complete, and `now` is its end.
        worker.state.context.start.make_way();
    }
    if worker.state.time.is_ramping && now >= worker.state.time.measured_from {
        end_ramp(worker, now);
    }
    if !worker.state.time.is_ramping {
        while now >= worker.state.time.interval_end() {
            let end = worker.state.time.interval_end();
            worker.state.batch.adapt(&mut worker.state.recorder);
            let end_ns = end_interval(worker, end);
            worker.state.time.interval_from = end;
            answer_snapshot(worker, end_ns);
        }
        worker.stages.at_event(now, &mut view!(worker));
        let deadline = worker.state.time.deadline;
        if now >= deadline {
            worker.state.outcome.end_at(deadline);
        }
    }
    set_next(worker);
}

/// Sets when events are handled next.
pub(super) fn set_next<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>) {
    if worker.state.time.makes_way {
        worker.state.time.next_event = 0;
        return;
    }
    let alarm = worker.state.time.next_alarm(worker.state.outcome.is_done);
    let is_ramping = worker.state.time.is_ramping;
    worker.state.time.next_event = if is_ramping { alarm } else { alarm.min(worker.stages.next_event()) };
}

fn end_ramp<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>, now: u64) {
    worker.state.time.is_ramping = false;
    worker.state.recorder.reset();
    if !E::BLOCKS {
        worker.state.count_submissions_in_flight(&worker.clock);
    }
    worker.state.usage_from = worker.state.context.usage();
    worker.stages.measure(now, &mut view!(worker));
}

/// Ends the present interval at `end`; returns the nanoseconds of the measured part until then.
pub(super) fn end_interval<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>, end: u64) -> u64 {
    let time = &worker.state.time;
    let end_ns = worker.clock.to_ns(end - time.measured_from);
    let span_ns = worker.clock.to_ns(end - time.interval_from);
    worker.stages.at_interval(end_ns, &mut view!(worker));
    let progress = worker.state.context.progress;
    worker.state.recorder.end_interval(end_ns, span_ns, progress);
    end_ns
}

/// Answers a request for a snapshot, if there is one.
fn answer_snapshot<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>, elapsed_ns: u64) {
    let Some(snapshot) = worker.state.context.snapshot else { return };
    if let Some(question) = snapshot.question(worker.state.outcome.answered) {
        worker.state.outcome.answered = question;
        snapshot.give(question, worker.state.report_so_far(elapsed_ns, !E::BLOCKS));
    }
}
