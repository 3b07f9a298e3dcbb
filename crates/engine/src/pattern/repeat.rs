//! Draws that come again in each pass of a job that verifies.
//!
//! Random blocks without a map miss a third of the region in a pass. A job that reads what another one wrote must read blocks that were
//! written, however many passes each of them had time for: so, as in fio with `randrepeat`, each pass draws the same.

use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::JobPlan;

/// The state in which each pass begins.
#[derive(Debug, Clone)]
pub(super) struct Repeat {
    first: Xoshiro256PlusPlus,
    pass_bytes: u64,
    /// Until this pass ends.
    left_bytes: u64,
}

impl Repeat {
    /// `None` for a job that does not verify or has one pass.
    pub(super) fn new(plan: &JobPlan, first: &Xoshiro256PlusPlus) -> Option<Self> {
        let limits = &plan.limits;
        let has_passes = limits.is_time_based || limits.loops > 1;
        let pass_bytes = limits.io_bytes;
        (plan.verify.is_some() && has_passes && pass_bytes > 0).then(|| Self {
            first: first.clone(),
            pass_bytes,
            left_bytes: pass_bytes,
        })
    }

    /// Returns how many I/Os of a size are left in the pass, at least one; a pass that is over begins again.
    pub(super) fn left(&mut self, size: u64, rng: &mut Xoshiro256PlusPlus) -> usize {
        if self.left_bytes == 0 {
            (*rng, self.left_bytes) = (self.first.clone(), self.pass_bytes);
        }
        usize::try_from(self.left_bytes.div_ceil(size.max(1))).unwrap_or(usize::MAX)
    }

    /// Counts transferred bytes.
    pub(super) fn take(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }
}
