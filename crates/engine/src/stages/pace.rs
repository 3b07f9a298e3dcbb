//! Issues I/Os at a rate (`rate`, `rate_iops`): each when the arrival schedule makes it due.
//!
//! Latency counts from the intended start as well (no coordinated omission), and how late an I/O was submitted although
//! a slot was free is recorded.

use super::{Admission, Done, Hooks, Stage};
use crate::arrivals::ArrivalSchedule;
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::WorkerReport;
use crate::request::Request;
use crate::view::View;

/// The arrival schedule of a worker.
#[derive(Debug)]
pub(crate) struct Pace {
    schedule: ArrivalSchedule,
    /// When the next I/O is due, once the schedule was read.
    due: Option<u64>,
    backlog_count: u64,
}

impl Pace {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let schedule = ArrivalSchedule::new(context.plan, context.worker)?;
        Some(Box::new(Self { schedule, due: None, backlog_count: 0 }))
    }
}

impl Stage for Pace {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: true, is_making_room: true }
    }

    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        let schedule = &mut self.schedule;
        let due = *self.due.get_or_insert_with(|| match schedule.next(request.op, request.length) {
            Some(due_ns) => view.state.time.started + view.clock.to_ticks(due_ns),
            None => view.clock.now(),
        });
        Ok(view.admit_at(due))
    }

    fn issued(&mut self, slot: u32, view: &mut View<'_, '_>) {
        if let Some(due) = self.due.take() {
            view.state.queue.note_due(slot, due);
        }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        view.record_from_due(done);
    }

    fn finish(&mut self, view: &mut View<'_, '_>) {
        // What comes after the job's last I/O was never due.
        if view.state.steps.is_exhausted() {
            return;
        }
        let until = view.state.time.last.min(view.state.time.deadline);
        let taken = u64::from(self.due.is_some_and(|due| due < until));
        let until_ns = view.clock.to_ns(until.saturating_sub(view.state.time.started));
        self.backlog_count =
            taken + self.schedule.backlog(until_ns, |op| view.state.steps.generator().mean_size_bytes(op));
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report.backlog_count = self.backlog_count;
    }
}
