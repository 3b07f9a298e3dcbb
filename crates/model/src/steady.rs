//! The steady state of a phase before it was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule: rounds of the same work until it is steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyPlan {
    /// Length of a round, in nanoseconds.
    pub round_ns: u64,
    /// The maximum number of rounds; the phase is then given up.
    pub rounds_max: u32,
}

/// The result. The phase's figures are measured after the last round and do not include the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// Number of rounds that are evaluated together.
    pub window_rounds: u32,
    /// Largest range that counts as steady, in percent of the window's mean.
    pub range_percent_max: f64,
    /// Largest rise or fall of the fitted line over the window, in percent of its mean.
    pub excursion_percent_max: f64,
    /// The rounds, oldest first.
    pub rounds: Vec<SteadyRound>,
    /// Whether every variable was steady over the last window.
    pub is_attained: bool,
    /// The variables over the last window; empty as long as there were too few rounds.
    pub variables: Vec<SteadyVariable>,
}

/// A round: all jobs of the phase together, without sync calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyRound {
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// I/Os completed per second.
    pub ios_per_s: f64,
    /// Bytes transferred per second.
    pub bytes_per_s: f64,
    /// 99th percentile of the total latency, in nanoseconds; `None` if there were too few I/Os.
    pub latency_ns_p99: Option<u64>,
}

/// A variable over the last window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyVariable {
    /// `throughput` or `latency_p99`.
    pub name: String,
    /// Largest minus smallest, in percent of the mean; `None` if a round did not tell it.
    pub range_percent: Option<f64>,
    /// What the fitted line gains over the window, in percent of the mean; negative if it falls.
    pub excursion_percent: Option<f64>,
    /// Whether both are within the rule.
    pub is_steady: bool,
}
