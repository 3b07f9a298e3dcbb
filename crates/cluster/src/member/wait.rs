//! The time of a step, and the reports of work that renew it, in both directions.

use crate::Limit;
use crate::budget::RENEWALS_MAX;
use crate::limit::Until;
use std::time::Instant;

/// The time that a rank, or rank 0, has left in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    limit: Limit,
    /// What a renewal gives.
    renewal: Limit,
    renewals_left: u32,
    until: Until,
    renewed: Instant,
    /// What the work had reached.
    done: u64,
}

impl Wait {
    /// Begins a wait for a rank, whose work gives it the whole limit again.
    pub(super) fn begin(limit: Limit) -> Self {
        Self::renewed_by(limit, limit, RENEWALS_MAX)
    }

    /// Begins a wait for rank 0, which passes on the work of all ranks.
    pub(super) fn for_first(limit: Limit, renewal: Limit) -> Self {
        Self::renewed_by(limit, renewal, 2 * RENEWALS_MAX)
    }

    fn renewed_by(limit: Limit, renewal: Limit, renewals_left: u32) -> Self {
        Self { limit, renewal, renewals_left, until: limit.begin(), renewed: Instant::now(), done: 0 }
    }

    /// Renews the time if the work came forward; returns whether it did.
    pub(super) fn renew(&mut self, done: u64) -> bool {
        if done <= self.done || self.renewals_left == 0 {
            return false;
        }
        self.done = done;
        // Messages that waited come at once.
        let is_renewed = self.renewed.elapsed() * 4 >= self.renewal.length();
        if is_renewed {
            self.renewals_left -= 1;
            (self.until, self.renewed) = (self.until.max(self.renewal.begin()), Instant::now());
        }
        is_renewed
    }

    pub(super) fn is_over(&self) -> bool {
        self.until.is_over()
    }

    /// Returns the limit in seconds, for messages.
    pub(super) fn seconds(&self) -> u64 {
        self.limit.seconds()
    }
}

/// What was reported of the work of this rank in a step.
#[derive(Debug)]
pub(super) struct Reports {
    last: Instant,
    count: u32,
}

impl Reports {
    pub(super) fn none() -> Self {
        Self { last: Instant::now(), count: 0 }
    }

    /// Returns how many reports there are with the next one, if that is due.
    pub(super) fn next(&mut self, limit: Limit) -> Option<u32> {
        let is_due = self.last.elapsed() * 4 >= limit.length() * 3;
        is_due.then(|| {
            *self = Self { last: Instant::now(), count: self.count.saturating_add(1) };
            self.count
        })
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }
}
