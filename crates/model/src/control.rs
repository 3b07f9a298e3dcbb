//! What steers a job while it runs: loops that look at what was measured so far, and what they found.

use serde::{Deserialize, Serialize};

/// What steers a job while it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    /// The highest queue depth is looked for at which latencies stay within a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
}

impl Control {
    /// True if nothing steers the job.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A latency that a share of the I/Os of each window may reach at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// The latency, in nanoseconds, from the submission to the completion.
    pub target_ns: u64,
    /// How long a queue depth is tried, in nanoseconds.
    pub window_ns: u64,
    /// The share of a window's I/Os that must keep it, in percent, above 0 up to 100.
    pub percent: f64,
    /// Go on to the job's own end, adjusting the depth, instead of ending with the depth that was looked for.
    pub keeps_running: bool,
}

/// How the search for a queue depth went, of one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DepthSearch {
    /// The highest depth that was seen to keep the target; if none was, the depth at the job's end.
    pub depth: u32,
    /// The search ended: one more than this depth does not keep the target, or is more than the job may have. False
    /// if the job ended before, or if one I/O at a time does not keep it.
    pub is_found: bool,
    /// Windows that were judged.
    pub window_count: u64,
    /// The last of them, oldest first.
    pub windows: Vec<DepthWindow>,
}

/// One window of such a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepthWindow {
    /// I/Os in flight at most.
    pub depth: u32,
    /// I/Os that were issued and completed in it.
    pub io_count: u64,
    /// How many of them took longer than the target.
    pub late_count: u64,
    /// Enough of them kept it.
    pub is_met: bool,
}
