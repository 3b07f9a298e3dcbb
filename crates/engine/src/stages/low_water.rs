//! Lets a full queue run low before it is refilled (`iodepth_low`).

use super::{Hooks, Stage};
use crate::context::WorkerContext;
use crate::view::View;

/// The depth to which the queue runs low.
#[derive(Debug)]
pub(crate) struct LowWater {
    low: usize,
}

impl LowWater {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let low = context.plan.queue.low as usize;
        (low > 0).then(|| Box::new(Self { low }) as Box<dyn Stage>)
    }
}

impl Stage for LowWater {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, is_making_room: true }
    }

    fn making_room(&mut self, count: usize, _now: u64, view: &mut View<'_, '_>) {
        let queue = &mut view.state.queue;
        if !queue.has_room() {
            queue.reserve = queue.depth() - 1 - self.low;
        }
        if queue.free_count() + count > queue.reserve {
            queue.reserve = 0;
        }
    }
}
