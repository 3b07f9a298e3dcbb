//! Ends a job when it is steady (`steadystate`): publishes the figures of spans of equal length to a [`SpanJudge`].
//!
//! A span ends when its time is over, with whatever had completed by then; the next begins there. The judge may see
//! several workers together, and decides when the job is over.
//!
//! Limits: a span is published only when the I/O has completed in which the worker waits. Spans that passed meanwhile
//! have no completion.

use super::Stage;
use crate::clock::Clock;
use crate::context::WorkerContext;
use crate::recorder::Recorder;
use crate::span::{SpanFigures, SpanJudge};
use crate::view::View;
use trueio_model::CriterionPlan;

/// A worker's spans.
#[derive(Debug)]
pub(crate) struct Spans<'a> {
    judge: &'a dyn SpanJudge,
    plan: CriterionPlan,
    length: u64,
    /// When the present span ends; before the first, when that begins.
    end: u64,
    /// `None` before the first.
    index: Option<u64>,
    /// What was counted when the present span began.
    counted: SpanFigures,
    has_left: bool,
}

impl<'a> Spans<'a> {
    pub(crate) fn stage(context: &WorkerContext<'a>, clock: &dyn Clock) -> Option<Box<dyn Stage + 'a>> {
        let (judge, plan) = context.judge.zip(context.plan.control.criterion)?;
        let length = clock.to_ticks(plan.span_ns).max(1);
        let counted = SpanFigures::default();
        Some(Box::new(Self { judge, plan, length, end: u64::MAX, index: None, counted, has_left: false }))
    }

    /// Notifies the judge, once, that no further span follows.
    fn end_last(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.judge.leaves(self.index.unwrap_or(0));
        }
        self.end = u64::MAX;
    }
}

/// Returns what was counted so far.
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

impl Stage for Spans<'_> {
    fn measure(&mut self, now: u64, view: &mut View<'_, '_>) {
        self.end = now + view.clock.to_ticks(self.plan.ramp_ns);
    }

    fn next_event(&self) -> u64 {
        self.end
    }

    fn at_event(&mut self, now: u64, view: &mut View<'_, '_>) {
        if self.has_left {
            return;
        }
        let mut is_over = self.judge.is_over();
        let length_ns = view.clock.to_ns(self.length);
        while now >= self.end && !is_over {
            // What was counted completed before this span's end: the loop looks at the clock right after it. Where it
            // looks later, the spans between have nothing.
            let all = counted(&view.state.recorder);
            if let Some(index) = self.index {
                let figures = SpanFigures {
                    io_count: all.io_count - self.counted.io_count,
                    byte_count: all.byte_count - self.counted.byte_count,
                    latency_sum_ns: all.latency_sum_ns - self.counted.latency_sum_ns,
                    elapsed_ns: length_ns,
                };
                is_over |= self.judge.span(index, figures);
            }
            self.index = Some(self.index.map_or(0, |index| index + 1));
            self.counted = all;
            self.end += self.length;
        }
        if is_over {
            view.state.outcome.end_at(now);
        }
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.end_last();
    }
}

/// The worker ended, or panicked: the judge does not wait for its further spans.
impl Drop for Spans<'_> {
    fn drop(&mut self) {
        self.end_last();
    }
}
