//! What steers a job while it runs: loops that look at what was measured so far, and what they found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What steers a job while it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Control {
    /// The highest queue depth is looked for at which latencies stay within a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// The job ends as soon as what it measures is steady by fio's definition (`steadystate`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criterion: Option<CriterionPlan>,
    /// The job's progress is kept in proportion to that of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowPlan>,
    /// Jobs of the same phase whose workers must all have ended before this one begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

impl Control {
    /// True if nothing steers the job.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A latency that a share of the I/Os of each window may reach at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// A job's part of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPlan {
    /// Which flow: workers of equal `id` that run at the same time are kept in proportion.
    pub id: u64,
    /// I/Os of each worker, as a part of those of all.
    pub weight: u32,
    /// How long a worker that is ahead waits before it looks again, in nanoseconds; 0: it keeps looking.
    pub sleep_ns: u64,
    /// I/Os by which a worker may be ahead of its share before it waits, for each unit of its weight.
    #[serde(default = "FlowPlan::usual_watermark", skip_serializing_if = "FlowPlan::is_usual_watermark")]
    pub watermark: u32,
}

impl FlowPlan {
    /// Returns the watermark of records that do not contain one.
    pub const fn usual_watermark() -> u32 {
        4
    }

    fn is_usual_watermark(watermark: &u32) -> bool {
        *watermark == Self::usual_watermark()
    }
}

/// What is to be steady, and how much of it (fio's `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// The figure.
    pub variable: CriterionVariable,
    /// The slope of the straight line through the window's values is limited; otherwise the largest distance of one of
    /// them from their mean.
    pub is_slope: bool,
    /// What it must be below: of a slope its size.
    pub limit: f64,
    /// The limit is a percentage of the mean, not in the figure's own unit.
    pub is_percent: bool,
}

/// A figure that may become steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CriterionVariable {
    /// I/Os a second.
    Ios,
    /// Bytes a second.
    Bytes,
    /// The mean latency, in nanoseconds.
    Latency,
}

impl Criterion {
    /// fio's name: `iops_slope`.
    pub fn name(&self) -> String {
        let variable = match self.variable {
            CriterionVariable::Ios => "iops",
            CriterionVariable::Bytes => "bw",
            CriterionVariable::Latency => "lat",
        };
        format!("{variable}{}", if self.is_slope { "_slope" } else { "" })
    }
}

/// When a job ends because it is steady.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionPlan {
    /// What is to be steady.
    pub criterion: Criterion,
    /// For how long, in nanoseconds: a whole number of spans, two at least.
    pub window_ns: u64,
    /// Length of a span, in nanoseconds: each gives one value.
    pub span_ns: u64,
    /// How long the first span waits for, in nanoseconds from the beginning of the measured part.
    pub ramp_ns: u64,
}

/// How steady a job became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionRecord {
    /// The criterion was met, and ended the job.
    pub is_attained: bool,
    /// What was held against the limit last: a percentage, or in the figure's unit. 0 as long as the window was not
    /// full.
    pub value: f64,
    /// The largest distance of a value from the mean, where that is limited.
    pub deviation_max: f64,
    /// The slope a span, where that is limited.
    pub slope: f64,
    /// The last window's spans, oldest first.
    pub spans: Vec<CriterionSpan>,
}

/// What was measured in one span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionSpan {
    /// I/Os a second.
    pub ios_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// The mean latency, in nanoseconds; 0 without an I/O.
    pub latency_ns: f64,
}

/// How the search for a queue depth went, of one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
