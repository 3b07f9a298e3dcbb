//! What each I/O leaves in the logs of a job, if it has any.

use super::{Slot, Worker};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::log::{IssuedIo, LoggedIo};
use crate::request::Request;

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Logs an I/O that moved `bytes`.
    pub(super) fn log_one(&mut self, slot: &Slot, bytes: u64, now: u64) {
        let Some(log) = &mut self.log else { return };
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
        });
    }

    /// Writes down what is issued, if that is asked for.
    #[cold]
    pub(super) fn note_issued(&mut self, request: &Request) {
        if let Some(iolog) = &mut self.iolog {
            let at_ns = self.clock.to_ns(self.clock.now().saturating_sub(self.started));
            iolog.push(IssuedIo { at_ns, request: *request });
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
