//! When I/Os are due: rates, arrivals, and pauses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An open-loop rate of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pace {
    /// I/Os per second; exclusive with `bytes_per_s`.
    pub ios_per_s: Option<f64>,
    /// Bytes per second; exclusive with `ios_per_s`.
    pub bytes_per_s: Option<f64>,
    /// The rate of writes, with a schedule of its own; the other rate is then that of reads, and one of the two
    /// may be 0: such I/Os are issued whenever none of the others is due. `None`: one schedule for all I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<f64>,
    /// The distribution of the I/Os over time.
    pub arrivals: Arrivals,
}

/// The distribution of paced I/Os over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Equal distances.
    Linear,
    /// A Poisson process: exponential distances, in full nanosecond resolution.
    Poisson,
}

/// Pauses between I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Think {
    /// Length of a pause, in nanoseconds.
    pub time_ns: u64,
    /// I/Os between two pauses; 0: only `after_ns` counts.
    pub every: u64,
    /// Time of I/O after which a pause comes; 0: only `every` counts.
    #[serde(default)]
    pub after_ns: u64,
    /// The part of a pause that keeps the processor busy, in nanoseconds.
    #[serde(default)]
    pub spin_ns: u64,
}
