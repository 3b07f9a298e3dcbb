//! What follows the last I/O: sync calls at the end, stages that verify, and the report.

use super::{View, Worker, events, view};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::recorder::WorkerReport;
use crate::request::Step;
use crate::stages::Stage;
use crate::usage::usage_between;
use crate::view::{ADAPTED_BATCH_MAX, LoopState};
use trueio_model::ThreadUsage;

/// Ends a worker that issues no more; returns its report. Its frame, in which the report is made, is not that of the loop.
#[inline(never)]
pub(super) fn finish<E: Engine, C: Clock, S: Stage>(mut worker: Box<Worker<'_, E, C, S>>) -> WorkerReport {
    let context = worker.state.context;
    let plan = context.plan;
    // A job that had nothing in flight at its end was measured until then all the same.
    worker.state.time.last = worker.state.time.last.max(worker.state.outcome.ended);
    worker.stages.complete_rest(&mut view!(worker));
    sync_at_end(&mut worker);
    end_measuring(&mut worker);
    context.end_others(worker.state.outcome.has_failed(plan));
    let usage = context.usage();
    worker.stages.leave(&mut view!(worker));
    let elapsed_ns = elapsed_ns(&worker);
    context.publish(|| worker.state.report_so_far(elapsed_ns, !E::BLOCKS));
    context.finished(worker.state.outcome.has_failed(plan));
    worker.stages.finish(&mut view!(worker));

    let mut report = WorkerReport::empty();
    report.engine_notes = worker.engine.notes();
    begin_report(&mut report, &mut worker.state, &usage, elapsed_ns, !E::BLOCKS);
    worker.stages.report(&mut report, &mut view!(worker));
    let Worker { engine, state, stages, .. } = *worker;
    drop(stages);
    // The engine goes first: it may hold registrations of the buffers' memory.
    drop(engine);
    end_report(&mut report, state, !E::BLOCKS);
    report
}

/// Reports what stages may add to. Not generic: it would be compiled for each engine.
#[inline(never)]
fn begin_report(
    report: &mut WorkerReport,
    state: &mut LoopState<'_>,
    usage: &ThreadUsage,
    elapsed_ns: u64,
    has_submission: bool,
) {
    report.elapsed_ns = elapsed_ns;
    report.threads = usage_between(&state.usage_from, usage, elapsed_ns);
    report.queue = has_submission.then_some(state.recorder.queue);
    report.engine_notes.append(&mut state.outcome.notes);
    report.engine_notes.extend(sharing_note(state.batch.sharing.count));
}

/// Reports what was recorded, and frees the buffers if no I/O was lost. The engine must be gone.
#[inline(never)]
fn end_report(report: &mut WorkerReport, mut state: LoopState<'_>, has_submission: bool) {
    let recorded = state.recorder.finish(has_submission);
    (report.ops, report.slices, report.series) = (recorded.ops, recorded.slices, recorded.series);
    report.pacing_lateness = recorded.pacing_lateness;
    (report.failures, report.fatal) = (state.outcome.failures, state.outcome.fatal);
    report.was_stopped = state.outcome.was_stopped;
    if state.queue.in_flight() == 0 {
        state.payload.free();
    }
}

/// Makes the sync calls that the job makes at its end.
fn sync_at_end<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>) {
    let flush = worker.state.context.plan.flush;
    let files = worker.state.context.files.len().max(1);
    for (is_asked_for, data_only) in [(flush.end_fdatasync, true), (flush.end_fsync || flush.fsync_on_close, false)] {
        for file in 0..files {
            if is_asked_for && worker.state.outcome.fatal.is_none() {
                worker.sync(Step::Sync { file: file as u16, data_only });
            }
        }
    }
}

/// Ends the last interval.
fn end_measuring<E: Engine, C: Clock, S: Stage>(worker: &mut Worker<'_, E, C, S>) {
    if worker.state.time.is_ramping && worker.state.context.plan.limits.measures_short_ramp {
        worker.state.time.measure_ramp();
    }
    let last = worker.state.time.last;
    if !worker.state.time.is_ramping && last >= worker.state.time.interval_from {
        events::end_interval(worker, last);
    }
    if worker.state.time.is_ramping {
        worker.state.recorder.reset();
        if worker.state.outcome.fatal.is_none() && !worker.state.outcome.was_stopped {
            worker.state.outcome.fatal = Some("the job ended within its ramp: nothing was measured".to_owned());
        }
    }
}

/// Returns how long was measured, in nanoseconds.
fn elapsed_ns<E: Engine, C: Clock, S: Stage>(worker: &Worker<'_, E, C, S>) -> u64 {
    let time = &worker.state.time;
    if time.is_ramping { 0 } else { worker.clock.to_ns(time.last.saturating_sub(time.measured_from)) }
}

/// Returns a note on reads that were counted with a part of their call's time.
fn sharing_note(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "cached reads completed within io_uring_enter and were submitted up to {ADAPTED_BATCH_MAX} at a time. The latency of such a \
             read is its share of the call; if the call took more than twice the usual time, it is the whole call. A read of up to \
             nine times the usual latency can be hidden. Set iodepth_batch = 1 to time each read alone"
        )
    })
}
