//! Pauses between I/Os (`thinktime`).
//!
//! A pause begins when everything before it has completed: an application thinks after its I/O has answered.

use super::{Admission, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::request::Request;
use crate::view::View;
use std::sync::atomic::Ordering::Relaxed;
use trueio_model::Think;

/// The pauses of a worker.
#[derive(Debug)]
pub(crate) struct Thinking {
    plan: Think,
    /// Steps taken before the last pause.
    taken: u64,
    /// A pause begins as soon as nothing is in flight.
    is_due: bool,
    /// When the last pause ends.
    not_before: u64,
}

impl Thinking {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan.think?;
        Some(Box::new(Self { plan, taken: 0, is_due: false, not_before: 0 }))
    }

    /// Begins a pause at the last completion.
    fn begin_pause(&mut self, view: &mut View<'_, '_>) {
        self.is_due = false;
        let last = view.state.time.last;
        self.not_before = last + view.clock.to_ticks(self.plan.time_ns);
        // The part that is work, not idleness.
        let busy_until = last + view.clock.to_ticks(self.plan.spin_ns);
        let mut now = view.clock.now();
        while now < busy_until && !view.state.context.stop.load(Relaxed) {
            let before = std::mem::replace(&mut now, view.clock.now());
            if now == before {
                // Virtual time passes only when it is waited for.
                now = view.clock.wait_until(busy_until);
            }
        }
        let queue = &mut view.state.queue;
        queue.room_since = queue.room_since.max(self.not_before);
    }
}

impl Stage for Thinking {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: false, ..Hooks::default() }
    }

    fn begin(&mut self, view: &mut View<'_, '_>) {
        self.not_before = view.state.time.started;
    }

    fn admit(&mut self, _request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        if self.is_due {
            if view.state.queue.in_flight() > 0 {
                return Ok(Admission::Drain);
            }
            self.begin_pause(view);
        }
        Ok(view.admit_at(self.not_before))
    }

    fn issued(&mut self, _slot: u32, view: &mut View<'_, '_>) {
        let Think { every, after_ns, .. } = self.plan;
        let taken = view.state.steps.taken();
        let elapsed_ns = || view.clock.to_ns(view.clock.now().saturating_sub(self.not_before));
        if (every > 0 && taken - self.taken >= every) || (after_ns > 0 && elapsed_ns() >= after_ns) {
            self.taken = taken;
            self.is_due = true;
        }
    }
}
