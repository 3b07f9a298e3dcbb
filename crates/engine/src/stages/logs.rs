//! Logs each I/O that completed (`write_bw_log`, `write_lat_log` and others).

use super::{Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::log::{LogBuffer, LoggedIo};
use crate::priority::{PriorityRecorder, of_thread};
use crate::recorder::WorkerReport;
use crate::view::View;
use std::cell::RefCell;
use std::rc::Rc;
use trueio_model::IoPriority;

/// A worker's log of completed I/Os, shared with the stages that do I/O of their own.
#[derive(Debug, Clone)]
pub(crate) struct SharedLog {
    buffer: Rc<RefCell<LogBuffer>>,
    is_paced: bool,
    /// Of I/Os that have none of their own.
    priority: IoPriority,
}

impl SharedLog {
    /// `None` if the job has no log.
    pub(crate) fn new(context: &WorkerContext<'_>) -> Option<Self> {
        let buffer = Rc::new(RefCell::new(LogBuffer::new(context.log.as_ref()?)));
        Some(Self { buffer, is_paced: context.plan.is_paced(), priority: of_thread(context.plan) })
    }

    pub(crate) fn stage<'a>(self) -> Box<dyn Stage + 'a> {
        Box::new(CompletionLog(self))
    }

    /// Logs the I/O in `slot`, which moved `bytes`. The ramp is in no log, as it is in no figure.
    pub(crate) fn push(&self, slot: u32, bytes: u64, now: u64, view: &View<'_, '_>) {
        let state = &*view.state;
        if state.time.is_ramping {
            return;
        }
        let of_share =
            |of: &PriorityRecorder| of.priority(state.queue.slot(slot).request.op, view.engine.share_of(slot));
        let priority = state.recorder.priorities.as_deref().and_then(of_share);
        let slot = state.queue.slot(slot);
        let (submission_ns, completion_ns) = match view.blocks {
            true => (None, view.ns_between(slot.issued, now)),
            false => (Some(view.ns_between(slot.issued, slot.submitted)), view.ns_between(slot.submitted, now)),
        };
        self.buffer.borrow_mut().push(LoggedIo {
            op: slot.request.op,
            end_ns: view.ns_between(state.time.measured_from, now),
            submission_ns,
            completion_ns,
            total_ns: view.ns_between(if self.is_paced { slot.due } else { slot.issued }, now),
            bytes,
            offset: slot.request.offset,
            priority: priority.unwrap_or(self.priority),
        });
    }
}

/// The stage that logs the job's own I/Os.
#[derive(Debug)]
struct CompletionLog(SharedLog);

impl Stage for CompletionLog {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, ..Hooks::default() }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        if done.is_whole || done.moved() > 0 {
            self.0.push(done.slot, done.moved(), done.now, view);
        }
    }

    fn at_interval(&mut self, _end_ns: u64, _view: &mut View<'_, '_>) {
        self.0.buffer.borrow_mut().flush();
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.0.buffer.borrow_mut().flush();
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report_wait(&mut self.0.buffer.borrow_mut(), report);
    }
}

/// Submits the rest of a log, and notes how long the worker waited for its reader.
pub(super) fn report_wait<T>(log: &mut LogBuffer<T>, report: &mut WorkerReport) {
    log.flush();
    if log.waited_ns > 0 {
        report.engine_notes.push(format!(
            "logs were written more slowly than I/O was done: the worker waited {} ms for them, between I/Os",
            log.waited_ns.div_ceil(1_000_000)
        ));
    }
}
