//! Keeps I/Os on the same bytes in order (`serialize_overlap`, `verify`, trims before writes).
//!
//! The order in which two writes to one block are carried out, and what a read sees next to a write, is undefined: the
//! later request waits. Where each block comes once a pass, it happens where one pass over the region ends and the next
//! begins. In zones the offset of an I/O is known only when the zones stage has placed it, and that stage checks.

use super::{Admission, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::operations::operations;
use crate::request::Request;
use crate::view::View;
use trueio_model::OpKind;

/// Lets an I/O wait while one in flight touches the same bytes, unless both only read.
#[derive(Debug)]
pub(crate) struct Overlap;

impl Overlap {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan;
        let is_asked_for = plan.verify.is_some() || plan.pattern.steps.trims_first || plan.queue.serializes_overlap;
        let modifies = operations(plan).iter().any(|op| matches!(op, OpKind::Write | OpKind::Trim));
        let is_needed = is_asked_for && plan.zones.is_none() && plan.queue.depth > 1 && modifies;
        is_needed.then(|| Box::new(Self) as Box<dyn Stage>)
    }
}

impl Stage for Overlap {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: false, ..Hooks::default() }
    }

    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        Ok(if view.state.queue.overlaps(request) { Admission::Drain } else { Admission::Ready })
    }
}
