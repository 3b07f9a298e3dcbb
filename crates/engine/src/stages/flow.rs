//! A worker's membership in a [`Flow`] (`flow`): it waits while it is ahead of its share.

use super::{Admission, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::flow::{Flow, Share};
use crate::request::Request;
use crate::view::View;
use trueio_model::FlowPlan;

/// A worker's membership in a flow.
#[derive(Debug)]
pub(crate) struct FlowMember<'a> {
    flow: &'a Flow,
    plan: FlowPlan,
    /// `None` before it joins, and after it left.
    share: Option<Share<'a>>,
}

impl<'a> FlowMember<'a> {
    pub(crate) fn stage(context: &WorkerContext<'a>) -> Option<Box<dyn Stage + 'a>> {
        let (flow, plan) = (context.flow?, context.plan.control.flow?);
        Some(Box::new(Self { flow, plan, share: None }))
    }

    fn join(&mut self) {
        self.share.get_or_insert_with(|| Share::join(self.flow, self.plan));
    }
}

impl Stage for FlowMember<'_> {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: false, ..Hooks::default() }
    }

    fn prepare(&mut self, view: &mut View<'_, '_>) {
        let context = view.state.context;
        if context.plan.limits.start_delay_ns == 0 && context.waits_for.is_empty() {
            // All members join before the first of them issues an I/O.
            self.join();
        }
    }

    fn begin(&mut self, _view: &mut View<'_, '_>) {
        self.join();
    }

    fn admit(&mut self, _request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        // A worker that queues for a file lock goes on until it had the lock: others queue after it, and if it waited
        // for them, none would go on.
        let is_held = !view.state.queue.awaits_lock && self.share.as_ref().is_some_and(Share::is_ahead);
        Ok(match self.plan.sleep_ns {
            _ if !is_held => Admission::Ready,
            0 => Admission::Outside,
            ns => Admission::Until(view.clock.now() + view.clock.to_ticks(ns)),
        })
    }

    fn wait(&mut self, view: &mut View<'_, '_>) {
        if view.state.queue.in_flight() == 0 {
            std::thread::yield_now();
        }
    }

    fn issued(&mut self, _slot: u32, _view: &mut View<'_, '_>) {
        if let Some(share) = &mut self.share {
            share.count();
        }
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.share = None;
    }
}
