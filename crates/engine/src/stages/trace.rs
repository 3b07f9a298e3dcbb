//! Traces each I/O that completed or failed, and each sync call (`--trace`).
//!
//! A worker never waits for the trace's writer: what the writer cannot take is dropped, counted and reported.

use super::{Done, Hooks, Stage, SyncDone};
use crate::context::WorkerContext;
use crate::log::{LogBuffer, TracedIo};
use crate::recorder::WorkerReport;
use crate::view::View;
use std::time::Instant;
use trueio_model::OpKind;

/// A worker's part of the trace.
#[derive(Debug)]
pub(crate) struct Trace {
    buffer: LogBuffer<TracedIo>,
    began: Instant,
    /// When the measured part began, in nanoseconds since the trace did.
    base_ns: u64,
    is_measuring: bool,
    is_paced: bool,
}

impl Trace {
    /// `None` if the run is not traced.
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let trace = context.trace.as_ref()?;
        let buffer = LogBuffer::new(&trace.channel);
        let is_paced = context.plan.is_paced();
        Some(Box::new(Self { buffer, began: trace.began, base_ns: 0, is_measuring: false, is_paced }))
    }
}

impl Stage for Trace {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, ..Hooks::default() }
    }

    fn measure(&mut self, _now: u64, _view: &mut View<'_, '_>) {
        self.base_ns = self.began.elapsed().as_nanos() as u64;
        self.is_measuring = true;
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        if !self.is_measuring {
            return;
        }
        let state = &*view.state;
        let slot = state.queue.slot(done.slot);
        let (slat_ns, clat_ns) = match view.blocks {
            true => (0, view.ns_between(slot.issued, done.now)),
            false => (view.ns_between(slot.issued, slot.submitted), view.ns_between(slot.submitted, done.now)),
        };
        let from = state.time.measured_from;
        let intended = if self.is_paced { slot.due } else { slot.issued };
        let moved = done.moved();
        self.buffer.push_or_drop(TracedIo {
            op: slot.request.op,
            file: slot.request.file,
            length: if moved > 0 { moved as u32 } else { slot.request.length },
            error: (-done.result).max(0) as i32,
            offset: slot.request.offset,
            end_ns: self.base_ns + view.ns_between(from, done.now),
            slat_ns,
            clat_ns,
            intended_ns: self.base_ns + view.ns_between(from, intended),
        });
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        if !self.is_measuring {
            return;
        }
        let from = view.state.time.measured_from;
        self.buffer.push_or_drop(TracedIo {
            op: OpKind::Sync,
            file: call.step.request().file,
            length: 0,
            error: call.errno,
            offset: 0,
            end_ns: self.base_ns + view.ns_between(from, call.now),
            slat_ns: 0,
            clat_ns: view.ns_between(call.before, call.now),
            intended_ns: self.base_ns + view.ns_between(from, call.before),
        });
    }

    fn at_interval(&mut self, _end_ns: u64, _view: &mut View<'_, '_>) {
        self.buffer.flush_or_keep();
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.buffer.flush();
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        self.buffer.flush();
        if self.buffer.dropped_count > 0 {
            report.engine_notes.push(format!(
                "{} rows are missing in the trace, because its file was written more slowly than I/O was done; the \
                 trace names the workers and the times",
                self.buffer.dropped_count
            ));
        }
    }
}
