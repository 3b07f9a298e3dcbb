//! The latencies of an operation: submission, completion, total, and from the intended time.

use crate::{Histogram, HistogramError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies of one kind of operation. They contain every I/O; none is sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySet {
    /// slat: submission of the I/O. Empty for engines that block, which have no separate submission.
    pub submission: Histogram,
    /// clat: from the submission to the completion.
    pub completion: Histogram,
    /// lat: from just before the submission to the completion. The headline.
    pub total: Histogram,
    /// From the time at which the I/O was due to its completion; empty without a pace.
    pub from_intended: Histogram,
}

impl LatencySet {
    /// Adds all of `other`.
    ///
    /// # Errors
    /// Both together have more durations than 64 bits count. A part may have been added.
    pub fn checked_merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.submission.checked_merge(&other.submission)?;
        self.completion.checked_merge(&other.completion)?;
        self.total.checked_merge(&other.total)?;
        self.from_intended.checked_merge(&other.from_intended)
    }
}
