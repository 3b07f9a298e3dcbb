//! When the next I/O is due, and pauses between I/Os.

use super::{Slot, Worker};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::recorder::INTERVAL_NS;
use crate::request::Request;
use std::sync::atomic::Ordering::Relaxed;

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// When the next request may be issued: its place in the calendar, or the end of a pause.
    pub(super) fn due(&mut self, request: &Request) -> u64 {
        let due = match (self.pending_due, &mut self.calendar) {
            (Some(due), _) => due,
            (None, Some(calendar)) => {
                let due = match calendar.next(request.op, request.length) {
                    Some(due_ns) => self.started + self.clock.to_ticks(due_ns),
                    None => self.clock.now(),
                };
                self.pending_due = Some(due);
                due
            }
            (None, None) => match self.generator.replay().and_then(|replay| replay.due_ns(self.block_at as usize)) {
                Some(due_ns) => {
                    let due = self.started + self.clock.to_ticks(due_ns);
                    self.pending_due = Some(due);
                    due
                }
                None => 0,
            },
        };
        due.max(self.not_before)
    }

    /// Notes when a timed I/O was due, and that a pause comes next where one is due.
    pub(super) fn note_timing(&mut self, slot: u32) {
        if let Some(share) = &mut self.share {
            share.count();
        }
        if let Some(due) = self.pending_due.take() {
            let slot = &mut self.slots[slot as usize];
            slot.due = due;
            slot.free_since = self.free_since;
        }
        if self.iolog.is_some() {
            let request = self.slots[slot as usize].request;
            self.note_generated(&request, slot);
        }
        if let Some(think) = self.context.plan.think
            && ((think.every > 0 && self.issued() - self.thought_at >= think.every)
                || (think.after_ns > 0
                    && self.clock.to_ns(self.clock.now().saturating_sub(self.not_before)) >= think.after_ns))
        {
            self.thought_at = self.issued();
            self.is_pausing = true;
        }
    }

    /// A pause begins when everything before it has ended, at `last`: what an application does
    /// between two I/Os takes its time after the first has answered.
    #[cold]
    pub(super) fn begin_pause(&mut self, last: u64) {
        self.is_pausing = false;
        let think = self.context.plan.think;
        self.not_before = last + self.clock.to_ticks(think.map_or(0, |think| think.time_ns));
        // The part that is work, not idleness.
        let busy_until = last + self.clock.to_ticks(think.map_or(0, |think| think.spin_ns));
        let mut now = self.clock.now();
        while now < busy_until && !self.context.stop.load(Relaxed) {
            let before = std::mem::replace(&mut now, self.clock.now());
            if now == before {
                // Virtual time passes only when it is waited for.
                now = self.clock.wait_until(busy_until);
            }
        }
        self.free_since = self.free_since.max(self.not_before);
    }

    /// Nothing is in flight and nothing is due: sleeps, looking up for the deadline, the next row
    /// and a request to stop.
    #[cold]
    pub(super) fn wait_idle(&mut self, due: u64) {
        let look_up = self.clock.now() + self.clock.to_ticks(INTERVAL_NS / 2);
        // A look for a window is not worth waking up for.
        let event = if self.is_ramping { self.measured_from } else { self.next_row_or_end() };
        let now = self.clock.wait_until(due.min(event).min(look_up));
        if now >= self.next_event {
            self.handle_events(now);
        }
    }

    /// Latency from the due moment, and how late the hand-over was although a slot was free.
    #[cold]
    pub(super) fn record_paced(&mut self, slot: &Slot, now: u64) {
        let from_due = self.clock.to_ns(now.saturating_sub(slot.due));
        self.recorder.op(slot.request.op).set.from_intended.record(from_due);
        let could_begin = slot.due.max(slot.free_since);
        let late = self.clock.to_ns(slot.issued.saturating_sub(could_begin));
        if let Some(lateness) = &mut self.recorder.pacing_lateness {
            lateness.record(late);
        }
    }
}
