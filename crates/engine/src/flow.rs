//! Keeps the progress of several workers in proportion (`flow`).
//!
//! Each worker has a weight. A worker that issued more than its weight's part of all the flow's I/Os waits until the
//! others have caught up. It may be ahead by the watermark of its plan, in I/Os for each unit of its weight. The one
//! that has made the least progress never waits, so one of them always continues. A worker that begins later begins at
//! par; a worker that ends is not waited for.
//!
//! Limits: a slow worker does not become faster. The others become as slow as it is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use trueio_model::FlowPlan;

/// What the workers of one flow share.
#[derive(Debug, Default)]
pub struct Flow {
    /// I/Os issued by the members, and the sum of their weights.
    count: AtomicU64,
    weight: AtomicU64,
    /// Held while a worker joins or leaves.
    changes: Mutex<()>,
}

/// A worker's share of a flow.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    flow: &'a Flow,
    plan: FlowPlan,
    count: u64,
}

impl<'a> Share<'a> {
    /// Joins a flow, at par with its members.
    pub(crate) fn join(flow: &'a Flow, plan: FlowPlan) -> Self {
        let _changes = flow.changes.lock().expect("no code panics while it joins a flow");
        let (all, weights) = (flow.count.load(Relaxed), flow.weight.load(Relaxed));
        let count =
            if weights == 0 { 0 } else { (u128::from(all) * u128::from(plan.weight) / u128::from(weights)) as u64 };
        flow.count.fetch_add(count, Relaxed);
        flow.weight.fetch_add(u64::from(plan.weight), Relaxed);
        Self { flow, plan, count }
    }

    /// Returns true if the next I/O must wait for other members.
    pub(crate) fn is_ahead(&self) -> bool {
        let (all, weights) = (self.flow.count.load(Relaxed), self.flow.weight.load(Relaxed));
        let (weight, watermark) = (self.plan.weight, u64::from(self.plan.watermark));
        let own = self.count.saturating_sub(watermark * u64::from(weight));
        u128::from(own) * u128::from(weights) > u128::from(all) * u128::from(weight)
    }

    /// Counts an I/O that was issued.
    pub(crate) fn count(&mut self) {
        self.count += 1;
        self.flow.count.fetch_add(1, Relaxed);
    }
}

/// Leaves the flow, in whatever way the worker ends, so that no member waits for it.
impl Drop for Share<'_> {
    fn drop(&mut self) {
        let _changes = self.flow.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.flow.count.fetch_sub(self.count, Relaxed);
        self.flow.weight.fetch_sub(u64::from(self.plan.weight), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(weight: u32) -> FlowPlan {
        FlowPlan { id: 0, weight, sleep_ns: 0, watermark: FlowPlan::usual_watermark() }
    }

    #[test]
    fn members_that_are_not_ahead_go_on_and_the_counts_keep_their_proportions() {
        let flow = Flow::default();
        let mut shares = [3, 2, 1].map(|weight| Share::join(&flow, plan(weight)));
        for _ in 0..6_000 {
            let next = shares.iter_mut().find(|share| !share.is_ahead()).expect("the last never waits");
            next.count();
        }
        let counts = shares.each_ref().map(|share| share.count);
        assert!(counts.iter().zip([3_000, 2_000, 1_000]).all(|(count, due)| count.abs_diff(due) <= 30), "{counts:?}");
        // Without the first the others go on, and one alone is never held.
        let [first, mut second, third] = shares;
        drop(first);
        drop(third);
        (0..100).for_each(|_| {
            assert!(!second.is_ahead());
            second.count();
        });
    }

    #[test]
    fn a_member_waits_when_it_is_ahead_by_its_watermark_times_its_weight() {
        for (watermark, weight) in [(1, 1), (4, 1), (1000, 3)] {
            let flow = Flow::default();
            let mut ahead = Share::join(&flow, FlowPlan { watermark, ..plan(weight) });
            let _behind = Share::join(&flow, plan(1));
            while !ahead.is_ahead() {
                ahead.count();
            }
            // Of all I/Os, which are its own, weight / (weight + 1) are its share: it is ahead by the rest.
            let limit = u64::from(watermark * weight);
            assert_eq!(ahead.count, limit * u64::from(weight + 1) + 1, "watermark {watermark}, weight {weight}");
        }
    }

    #[test]
    fn a_worker_that_panics_leaves_its_flow() {
        let flow = Flow::default();
        let mut stays = Share::join(&flow, plan(1));
        let joined = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _share = Share::join(&flow, plan(1));
                // As a panic, without its message in the tests' output.
                std::panic::resume_unwind(Box::new(()));
            });
            worker.join()
        });
        assert!(joined.is_err());
        (0..100).for_each(|_| {
            assert!(!stays.is_ahead(), "no other member is left");
            stays.count();
        });
    }

    #[test]
    fn a_later_member_begins_at_par_and_holds_no_other_up() {
        let flow = Flow::default();
        let mut early = Share::join(&flow, plan(2));
        (0..1_000).for_each(|_| early.count());
        let late = Share::join(&flow, plan(1));
        assert_eq!(late.count, 500);
        assert!(!early.is_ahead() && !late.is_ahead());
        (0..40).for_each(|_| early.count());
        assert!(early.is_ahead() && !late.is_ahead());
        drop(late);
        assert!(!early.is_ahead());
        drop(early);
        assert_eq!((flow.count.load(Relaxed), flow.weight.load(Relaxed)), (0, 0));
    }
}
