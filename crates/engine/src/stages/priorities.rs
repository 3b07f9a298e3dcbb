//! Records latencies by priority, if shares of the I/Os have priorities of their own (`cmdprio_percentage`,
//! `cmdprio_bssplit`).

use super::{Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::view::View;

/// Routes each completed I/O to the recorder of its priority.
#[derive(Debug)]
pub(crate) struct Priorities {
    is_paced: bool,
}

impl Priorities {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan;
        (!plan.priorities.is_empty()).then(|| Box::new(Self { is_paced: plan.is_paced() }) as Box<dyn Stage>)
    }
}

impl Stage for Priorities {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, ..Hooks::default() }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let slot = *view.state.queue.slot(done.slot);
        // A short transfer's completion latency is all of it.
        let submitted = match done.is_whole {
            true => slot.submitted,
            false if done.moved() > 0 && !view.blocks => slot.issued,
            false => return,
        };
        let from_due_ns = self.is_paced.then(|| view.ns_between(slot.due, done.now));
        let (total_ns, completion_ns) = (view.ns_between(slot.issued, done.now), view.ns_between(submitted, done.now));
        let share = view.engine.share_of(done.slot);
        if let Some(priorities) = &mut view.state.recorder.priorities {
            priorities.record(slot.request.op, share, total_ns, completion_ns, from_due_ns);
        }
    }
}
