//! Logs each step that is issued (`write_iolog`), and shows what happens to each I/O if the job sets that.

use super::logs::report_wait;
use super::{Done, Hooks, Stage, SyncDone};
use crate::context::WorkerContext;
use crate::log::{IoEvent, IssuedIo, LogBuffer};
use crate::recorder::WorkerReport;
use crate::request::{Request, Step};
use crate::view::View;
use std::cell::RefCell;
use std::rc::Rc;

/// A worker's log of issued I/Os, shared with the stages that do I/O of their own.
#[derive(Debug, Clone)]
pub(crate) struct SharedIolog {
    log: Rc<RefCell<LogBuffer<IssuedIo>>>,
    shows_ios: bool,
    shows_verify: bool,
    shows_draws: bool,
}

impl SharedIolog {
    /// `None` if the job has no such log.
    pub(crate) fn new(context: &WorkerContext<'_>) -> Option<Self> {
        let output = &context.plan.output;
        Some(Self {
            log: Rc::new(RefCell::new(LogBuffer::new(context.iolog.as_ref()?))),
            shows_ios: output.shows_ios,
            shows_verify: output.shows_verify,
            shows_draws: output.shows_draws,
        })
    }

    pub(crate) fn stage<'a>(self) -> Box<dyn Stage + 'a> {
        Box::new(Iolog { log: self, is_syncing: false })
    }

    /// Logs an I/O that is issued.
    pub(crate) fn issued(&self, request: &Request, slot: u32, view: &View<'_, '_>) {
        self.push(Step::Io(*request), slot, IoEvent::Issued, None, view);
    }

    /// Shows an I/O that completed, if I/Os are shown.
    pub(crate) fn completed(&self, request: &Request, slot: u32, view: &View<'_, '_>) {
        if self.shows_ios {
            self.push(Step::Io(*request), slot, IoEvent::Complete, None, view);
        }
    }

    /// Shows a block that is compared, if blocks are shown.
    pub(crate) fn compared(&self, request: &Request, slot: u32, view: &View<'_, '_>) {
        if self.shows_verify {
            self.push(Step::Io(*request), slot, IoEvent::Compared, None, view);
        }
    }

    fn push(&self, step: Step, slot: u32, event: IoEvent, drawn: Option<u64>, view: &View<'_, '_>) {
        let at_ns = view.ns_between(view.state.time.started, view.clock.now());
        self.log.borrow_mut().push(IssuedIo { at_ns, step, slot, event, drawn });
    }
}

/// The stage that logs the job's own steps.
#[derive(Debug)]
struct Iolog {
    log: SharedIolog,
    /// The sync call that is made is one of the job's steps.
    is_syncing: bool,
}

impl Stage for Iolog {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: self.log.shows_ios, ..Hooks::default() }
    }

    fn issued(&mut self, slot: u32, view: &mut View<'_, '_>) {
        // In zones an I/O goes elsewhere than was drawn.
        let drawn = if self.log.shows_draws { view.state.steps.drawn() } else { None };
        let request = view.state.queue.slot(slot).request;
        self.log.push(Step::Io(request), slot, IoEvent::Issued, drawn, view);
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let request = view.state.queue.slot(done.slot).request;
        self.log.completed(&request, done.slot, view);
    }

    fn syncing(&mut self, step: &Step, view: &mut View<'_, '_>) {
        self.is_syncing = true;
        self.log.push(*step, 0, IoEvent::Issued, None, view);
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        if std::mem::take(&mut self.is_syncing) && self.log.shows_ios {
            self.log.push(call.step, 0, IoEvent::Complete, None, view);
        }
    }

    fn at_interval(&mut self, _end_ns: u64, _view: &mut View<'_, '_>) {
        self.log.log.borrow_mut().flush();
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.log.log.borrow_mut().flush();
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report_wait(&mut self.log.log.borrow_mut(), report);
    }
}
