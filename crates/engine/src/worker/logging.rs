//! What each I/O leaves in the logs of a job, if it has any.

use super::Worker;
use crate::clock::Clock;
use crate::engines::Engine;
use crate::log::{IoStep, IssuedIo, LoggedIo};
use crate::priority::{PriorityRecorder, of_thread};
use crate::request::Request;

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Logs an I/O that moved `bytes`.
    pub(super) fn log_one(&mut self, index: u32, bytes: u64, now: u64) {
        let Some(log) = &mut self.log else { return };
        let slot = &self.slots[index as usize];
        let of_share = |of: &PriorityRecorder| of.priority(slot.request.op, self.engine.share_of(index));
        let priority = self.recorder.priorities.as_deref().and_then(of_share);
        // What ends in the ramp is in no figure.
        if self.is_ramping {
            return;
        }
        let since = |from: u64| self.clock.to_ns(now.saturating_sub(from));
        let total_ns = since(if self.is_paced { slot.due } else { slot.issued });
        let (submission_ns, completion_ns) = if E::BLOCKS {
            (None, since(slot.issued))
        } else {
            (Some(self.clock.to_ns(slot.handed.saturating_sub(slot.issued))), since(slot.handed))
        };
        log.push(LoggedIo {
            op: slot.request.op,
            end_ns: since(self.measured_from),
            submission_ns,
            completion_ns,
            total_ns,
            bytes,
            offset: slot.request.offset,
            priority: priority.unwrap_or_else(|| of_thread(self.context.plan)),
        });
    }

    /// Counts an I/O with those of its priority; its completion latency counts from `handed`.
    #[cold]
    pub(super) fn record_priority(&mut self, index: u32, handed: u64, now: u64) {
        let Some(priorities) = &mut self.recorder.priorities else { return };
        let slot = &self.slots[index as usize];
        let since = |from: u64| self.clock.to_ns(now.saturating_sub(from));
        let from_due_ns = self.is_paced.then(|| since(slot.due));
        let share = self.engine.share_of(index);
        priorities.record(slot.request.op, share, since(slot.issued), since(handed), from_due_ns);
    }

    /// Writes down what is issued, if that is asked for.
    #[cold]
    pub(super) fn note_issued(&mut self, request: &Request, slot: u32) {
        self.note(request, slot, IoStep::Issued, None);
    }

    /// The same of an I/O that the generator gave last, with what was drawn for it if that is shown.
    #[cold]
    pub(super) fn note_generated(&mut self, request: &Request, slot: u32) {
        let shows_draws = self.context.plan.output.shows_draws;
        // In zones it goes elsewhere than was drawn.
        let drawn = shows_draws.then(|| self.generator.drawn(&self.block[self.block_at as usize - 1])).flatten();
        self.note(request, slot, IoStep::Issued, drawn);
    }

    /// Shows what is complete, if that is asked for.
    #[cold]
    pub(super) fn note_complete(&mut self, request: &Request, slot: u32) {
        if self.context.plan.output.shows_ios {
            self.note(request, slot, IoStep::Complete, None);
        }
    }

    /// Shows what is compared, if that is asked for.
    #[cold]
    pub(super) fn note_compared(&mut self, request: &Request, slot: u32) {
        if self.context.plan.output.shows_verify {
            self.note(request, slot, IoStep::Compared, None);
        }
    }

    fn note(&mut self, request: &Request, slot: u32, step: IoStep, drawn: Option<u64>) {
        if let Some(iolog) = &mut self.iolog {
            let at_ns = self.clock.to_ns(self.clock.now().saturating_sub(self.started));
            iolog.push(IssuedIo { at_ns, request: *request, slot, step, drawn });
        }
    }

    pub(super) fn flush_logs(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
        if let Some(iolog) = &mut self.iolog {
            iolog.flush();
        }
    }
}
