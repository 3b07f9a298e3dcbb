//! What a rank may make rank 0 do in one step of a run: messages, bytes and time.
//!
//! Memory is bounded over the whole run: rank 0 keeps the results of each rank until the end. They may take [`KEPT_BYTES`], and four times
//! as much as rank 0's own results, since ranks run the same jobs.
//!
//! Time: a step of all ranks takes as long as [`Limit`](crate::Limit). Only where ranks fill files or measure work without a planned
//! end, a rank that reports that it comes forward renews its time, at most [`RENEWALS_MAX`] times.

use crate::range::{OutOfRange, at_most};

/// Memory of the messages that are kept of a rank, in bytes, in addition to the multiple of rank 0's own results.
const KEPT_BYTES: u64 = 32 << 20;
/// How many times as much memory as rank 0's own results those of another rank may take.
const OWN_FACTOR: u64 = 4;
/// Messages of a rank in one step, without those that it sends by time.
const MESSAGES_MAX: u64 = 64;
/// Results so far that a rank may send in a second, and their bytes; it sends two, of which the latest one is kept.
const SAMPLES_PER_S: u64 = 8;
const SAMPLE_BYTES_PER_S: u64 = 2 << 20;
/// How often a rank that still works may renew its time in a step.
pub(crate) const RENEWALS_MAX: u32 = 100;

/// What a rank has used of its budget.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// Messages of this step.
    message_count: u64,
    /// Bytes of messages of this step.
    byte_count: u64,
    /// Memory of what is kept of the run, in bytes.
    kept_bytes: u64,
}

/// The budget of each rank.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget {
    /// Memory of rank 0's own results, in bytes.
    own_bytes: u64,
}

impl Budget {
    /// Counts results of rank 0.
    pub(crate) fn add_own(&mut self, bytes: u64) {
        self.own_bytes = self.own_bytes.saturating_add(bytes);
    }

    /// Returns the memory that results of a rank may take, in bytes; as JSON they are shorter.
    pub(crate) fn kept_max(&self) -> u64 {
        KEPT_BYTES.saturating_add(self.own_bytes.saturating_mul(OWN_FACTOR))
    }

    /// Returns how long a message may be, in bytes.
    pub(crate) fn frame_bytes_max(&self) -> u32 {
        u32::try_from(self.kept_max()).unwrap_or(u32::MAX)
    }
}

impl Account {
    /// Begins the next step.
    pub(crate) fn begin_step(&mut self) {
        (self.message_count, self.byte_count) = (0, 0);
    }

    /// Counts a message that was received, `elapsed_s` after the step began.
    ///
    /// # Errors
    /// The rank has sent too many messages in this step, or too long ones.
    pub(crate) fn receive(&mut self, bytes: u64, elapsed_s: u64, budget: &Budget) -> Result<(), OutOfRange> {
        self.message_count += 1;
        self.byte_count = self.byte_count.saturating_add(bytes);
        let messages_max = MESSAGES_MAX + u64::from(RENEWALS_MAX) + SAMPLES_PER_S.saturating_mul(elapsed_s);
        at_most("the number of its messages in one step", self.message_count, messages_max)?;
        let bytes_max = budget.kept_max().saturating_add(SAMPLE_BYTES_PER_S.saturating_mul(elapsed_s));
        at_most("the length of its messages in one step, in bytes,", self.byte_count, bytes_max)
    }

    /// Checks that a message of this memory fits in addition to what is kept.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check(&self, weight: u64, budget: &Budget) -> Result<(), OutOfRange> {
        let bytes = self.kept_bytes.saturating_add(weight);
        at_most("the memory of its results, in bytes,", bytes, budget.kept_max())
    }

    /// Counts a message that is kept.
    pub(crate) fn keep(&mut self, weight: u64) {
        self.kept_bytes = self.kept_bytes.saturating_add(weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_messages_and_bytes_for_a_step_and_memory_for_the_run() {
        let mut budget = Budget::default();
        let mut account = Account::default();
        for _ in 0..MESSAGES_MAX + u64::from(RENEWALS_MAX) {
            account.receive(1, 0, &budget).expect("within the budget");
        }
        assert!(account.receive(1, 0, &budget).is_err());
        account.receive(1, 1, &budget).expect("results so far come by time");
        account.begin_step();
        assert!(account.receive(KEPT_BYTES + 1, 0, &budget).is_err());
        account.begin_step();
        account.check(KEPT_BYTES, &budget).expect("within the budget");
        account.keep(KEPT_BYTES);
        assert!(account.check(1, &budget).is_err());
        budget.add_own(1 << 20);
        account.check(4 << 20, &budget).expect("rank 0 has results of this size, too");
        assert!(account.check((4 << 20) + 1, &budget).is_err());
    }
}
