//! Spans of equal length whose figures somebody outside judges while the worker runs (`steadystate`).
//!
//! A span ends when its time is over, with whatever had completed by then; the next begins there. The judge may see
//! several workers together, and says when the job is over.
//!
//! Cannot: tell of a span before an I/O has ended in which the worker waits. It tells of all that have passed then, of
//! those without a completion that there was none.

use super::Worker;
use crate::clock::Clock;
use crate::engines::Engine;
use crate::recorder::Recorder;
use std::fmt::Debug;
use trueio_model::CriterionPlan;

/// What a worker did in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpanFigures {
    /// I/Os that completed; sync calls are none.
    pub io_count: u64,
    /// Bytes that they moved.
    pub byte_count: u64,
    /// Their latencies together, in nanoseconds.
    pub latency_sum_ns: u128,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Judges the spans of one worker, or of several that are to end together. Called a few times a second at most.
pub trait SpanJudge: Debug + Send + Sync {
    /// A worker has ended its span number `index`, from 0; true if the job is over.
    fn span(&self, index: u64, figures: SpanFigures) -> bool;
    /// True if the job is over, because another worker's span said so.
    fn is_over(&self) -> bool;
    /// A worker ends: of the spans from `index` on it gives none.
    fn leaves(&self, index: u64);
}

/// A worker's spans.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    judge: &'a dyn SpanJudge,
    length: u64,
    /// When the present span is over; before the first, when that begins.
    pub(super) end: u64,
    /// `None` before the first.
    index: Option<u64>,
    /// What was counted when the present span began.
    counted: SpanFigures,
}

impl<'a> Spans<'a> {
    pub(super) fn new(judge: &'a dyn SpanJudge, plan: &CriterionPlan, clock: &impl Clock) -> Self {
        let length = clock.to_ticks(plan.span_ns).max(1);
        Self { judge, length, end: u64::MAX, index: None, counted: SpanFigures::default() }
    }
}

/// What was counted so far.
fn counted(recorder: &Recorder) -> SpanFigures {
    let mut figures = SpanFigures::default();
    // Sync calls come last.
    for op in recorder.ops[..3].iter().flatten() {
        figures.io_count += op.io_count;
        figures.byte_count += op.byte_count;
        figures.latency_sum_ns += op.set.total.sum_ns() + op.interval.sum_ns() + op.inline.sum_ns();
    }
    figures
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// The measured part begins at `now`.
    pub(super) fn begin_spans(&mut self, now: u64) {
        if let (Some(spans), Some(plan)) = (&mut self.spans, self.context.plan.control.criterion) {
            spans.end = now + self.clock.to_ticks(plan.ramp_ns);
        }
    }

    /// Looks whether a span is over, and whether that ends the job.
    #[cold]
    pub(super) fn end_span(&mut self, now: u64) {
        let Some(spans) = &mut self.spans else { return };
        let mut is_over = spans.judge.is_over();
        let length_ns = self.clock.to_ns(spans.length);
        while now >= spans.end && !is_over {
            // What was counted completed before this span's end: the worker looks up at the first moment behind it.
            // Where it looks up later still, the spans between have nothing.
            let all = counted(&self.recorder);
            if let Some(index) = spans.index {
                let figures = SpanFigures {
                    io_count: all.io_count - spans.counted.io_count,
                    byte_count: all.byte_count - spans.counted.byte_count,
                    latency_sum_ns: all.latency_sum_ns - spans.counted.latency_sum_ns,
                    elapsed_ns: length_ns,
                };
                is_over |= spans.judge.span(index, figures);
            }
            spans.index = Some(spans.index.map_or(0, |index| index + 1));
            spans.counted = all;
            spans.end += spans.length;
        }
        if is_over && !self.is_done {
            self.is_done = true;
            self.ended = now;
        }
    }
}

/// The worker's last I/O was done, or it panicked: nobody waits for what it would have told.
impl Drop for Spans<'_> {
    fn drop(&mut self) {
        self.judge.leaves(self.index.unwrap_or(0));
    }
}
