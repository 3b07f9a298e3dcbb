//! What was acknowledged: one number per region, and which epoch it belongs to.
//!
//! Memory is bounded: epochs of equal length are one entry, times are kept for the last seconds only.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Writes that were acknowledged within this time before the cut may still have been in a volatile cache, in ms.
pub const RISK_WINDOW_MS: u64 = 10_000;
/// Distance of the times that are kept, in ms.
const MARK_MS: u64 = 100;
/// Times that are kept.
const MARKS: usize = (2 * RISK_WINDOW_MS / MARK_MS) as usize;
/// Runs of equal epochs that are kept; older ones are dropped.
const RUNS: usize = 1024;

/// The writes that one sync covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 1 on.
    pub number: u64,
    /// Sequence number of its first write.
    pub first: u64,
    /// Sequence number of its last write.
    pub last: u64,
}

/// Epochs of equal length.
#[derive(Debug, Clone, Copy)]
struct Run {
    first_epoch: u64,
    first_sequence: u64,
    length: u64,
}

/// What was issued and acknowledged in one region.
#[derive(Debug, Clone, Default)]
pub struct RegionLog {
    issued: u64,
    acknowledged: u64,
    epochs: u64,
    runs: VecDeque<Run>,
    /// Time of the mark in ms, and what was acknowledged before.
    marks: VecDeque<(u64, u64)>,
    last_ms: u64,
}

impl RegionLog {
    /// Returns a log of which only the last numbers are known.
    pub fn of(issued: u64, acknowledged: u64, at_risk: u64) -> Self {
        assert!(acknowledged <= issued && at_risk <= acknowledged);
        let marks = VecDeque::from([(0, acknowledged - at_risk)]);
        Self { issued, acknowledged, marks, ..Self::default() }
    }

    /// Returns the last write that was begun.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Returns the last write that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the number of epochs that were acknowledged.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Returns the time of the last acknowledgement, in ms.
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// Notes that writes up to this one are about to begin.
    pub fn issue(&mut self, through: u64) {
        assert!(through >= self.issued);
        self.issued = through;
    }

    /// Notes that all writes that were issued are acknowledged, as one epoch.
    pub fn acknowledge(&mut self, now_ms: u64) {
        let length = self.issued - self.acknowledged;
        if length == 0 {
            return;
        }
        self.epochs += 1;
        if self.runs.back().is_none_or(|run| run.length != length) {
            let run = Run { first_epoch: self.epochs, first_sequence: self.acknowledged + 1, length };
            self.runs.push_back(run);
            if self.runs.len() > RUNS {
                self.runs.pop_front();
            }
        }
        if self.marks.back().is_none_or(|(ms, _)| now_ms >= ms + MARK_MS) {
            self.marks.push_back((now_ms, self.acknowledged));
            if self.marks.len() > MARKS {
                self.marks.pop_front();
            }
        }
        self.last_ms = now_ms;
        self.acknowledged = self.issued;
    }

    /// Returns the epoch of an acknowledged write; `None`: it is too long ago, or not acknowledged.
    pub fn epoch_of(&self, sequence: u64) -> Option<Epoch> {
        if sequence > self.acknowledged {
            return None;
        }
        let after = self.runs.partition_point(|run| run.first_sequence <= sequence);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let index = (sequence - run.first_sequence) / run.length;
        let first = run.first_sequence + index * run.length;
        Some(Epoch { number: run.first_epoch + index, first, last: first + run.length - 1 })
    }

    /// Returns the last write that was acknowledged before `safe_ms`.
    pub fn safe_through(&self, safe_ms: u64) -> u64 {
        self.marks.iter().find(|(ms, _)| *ms >= safe_ms).map_or(self.acknowledged, |(_, acknowledged)| *acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Goal: the epoch of each write is the one in which it was acknowledged, and only writes of the last seconds are at risk.
        #[test]
        fn epochs_and_times_are_those_of_a_full_list(steps in prop::collection::vec((1_u64..5, 0_u64..900), 1..300)) {
            let (mut log, mut table, mut now) = (RegionLog::default(), Vec::new(), 0);
            for (number, (length, pause)) in (1..).zip(&steps) {
                now += pause;
                let first = log.issued() + 1;
                log.issue(first + length - 1);
                log.acknowledge(now);
                let epoch = Epoch { number, first, last: first + length - 1 };
                table.extend((0..*length).map(|_| (epoch, now)));
            }
            for (sequence, (epoch, _)) in (1..).zip(&table) {
                prop_assert_eq!(log.epoch_of(sequence), Some(*epoch));
            }
            prop_assert_eq!(log.epoch_of(log.acknowledged() + 1), None);
            let exact = table.iter().filter(|(_, at)| *at + RISK_WINDOW_MS < now).count() as u64;
            let safe = log.safe_through(now.saturating_sub(RISK_WINDOW_MS));
            // Exact to the distance of marks.
            let later = table.iter().filter(|(_, at)| *at + RISK_WINDOW_MS < now + MARK_MS + 1).count() as u64;
            prop_assert!((exact..=later).contains(&safe), "{} {} {}", exact, safe, later);
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_writes() {
        let mut log = RegionLog::default();
        for step in 0..200_000 {
            log.issue(log.issued() + 1 + step % 7);
            log.acknowledge(step * 13);
        }
        assert!(log.runs.len() <= RUNS && log.marks.len() <= MARKS);
        assert!(log.epoch_of(1).is_none() && log.epoch_of(log.acknowledged()).is_some());
    }
}
