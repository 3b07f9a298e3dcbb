//! Issues the I/Os of a log at the log's times (`read_iolog`). The log itself is read by [`crate::replay`].

use super::{Admission, Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::WorkerReport;
use crate::request::Request;
use crate::view::View;

/// The times of a log.
#[derive(Debug)]
pub(crate) struct LogTimes {
    /// When the next step is due, once the log was read.
    due: Option<u64>,
    backlog_count: u64,
}

impl LogTimes {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let is_paced = context.plan.replay.as_ref().is_some_and(|replay| replay.settings.is_paced);
        is_paced.then(|| Box::new(Self { due: None, backlog_count: 0 }) as Box<dyn Stage>)
    }

    fn due(&mut self, view: &mut View<'_, '_>) -> u64 {
        if let Some(due) = self.due {
            return due;
        }
        let due_ns = view.state.steps.replay_due_ns().unwrap_or(0);
        *self.due.insert(view.state.time.started + view.clock.to_ticks(due_ns))
    }
}

impl Stage for LogTimes {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: true, is_making_room: true }
    }

    fn admit(&mut self, _request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        let due = self.due(view);
        Ok(view.admit_at(due))
    }

    fn admit_sync(&mut self, view: &mut View<'_, '_>) -> Admission {
        let due = self.due(view);
        if due > view.clock.now() {
            return Admission::Until(due);
        }
        self.due = None;
        Admission::Ready
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
        if view.state.steps.is_exhausted() {
            return;
        }
        let until = view.state.time.last.min(view.state.time.deadline);
        let until_ns = view.clock.to_ns(until.saturating_sub(view.state.time.started));
        self.backlog_count = view.state.steps.replay_backlog(until_ns);
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report.backlog_count = self.backlog_count;
    }
}
