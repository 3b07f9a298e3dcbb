//! The latencies of an operation: submission, completion, total, and from the intended time.

use crate::Histogram;
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
    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.total.merge(&other.total);
        self.from_intended.merge(&other.from_intended);
    }
}
