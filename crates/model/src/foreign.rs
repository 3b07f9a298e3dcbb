//! Results of other tools, as those tools report them.
//!
//! A foreign result is not a record: no evidence was collected while it was measured, so it has no plan, no facts
//! about the target and no verdict. It can be listed, exported and compared, at evidence level E0. Today the only
//! tool is fio; `trueio-fio` reads its JSON.

use crate::Histogram;
use std::collections::BTreeMap;
use std::fmt;

/// A run of fio.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignRun {
    /// `fio-3.42`.
    pub version: String,
    /// When fio wrote the result, in seconds since 1970-01-01 UTC; 0 if unknown.
    pub timestamp_unix_s: u64,
    /// The global options, as fio lists them.
    pub global_options: BTreeMap<String, String>,
    /// The jobs, or groups with `group_reporting`, in fio's order.
    pub jobs: Vec<ForeignJob>,
    /// What was skipped while reading, one sentence each.
    pub notes: Vec<String>,
    /// The JSON text of the result, without surrounding output.
    pub json: String,
}

/// A job of fio, or a group of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignJob {
    /// Its name; with `--client` preceded by the host.
    pub name: String,
    /// The host on which it ran, with `--client`.
    pub host: Option<String>,
    /// The error number it ended with; 0 if none, 84 after a failed verification.
    pub error: i64,
    /// Its own options, as fio lists them.
    pub options: BTreeMap<String, String>,
    /// CPU time of its processes, in nanoseconds, from fio's percentages; `None` if unknown.
    pub cpu_ns: Option<f64>,
    /// Figures of each direction in which there was I/O.
    pub ops: Vec<ForeignOp>,
}

/// The kind of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All of them together (`unified_rw_reporting`).
    Mixed,
    /// Sync calls.
    Sync,
}

impl fmt::Display for ForeignDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignDirection::Read => "read",
            ForeignDirection::Write => "write",
            ForeignDirection::Trim => "trim",
            ForeignDirection::Mixed => "mixed",
            ForeignDirection::Sync => "sync",
        })
    }
}

/// Figures of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignOp {
    /// Which.
    pub direction: ForeignDirection,
    /// How many completed.
    pub io_count: u64,
    /// Bytes; 0 for sync calls.
    pub byte_count: u64,
    /// How many transferred fewer bytes than requested.
    pub short_count: u64,
    /// Duration, in nanoseconds; fio counts milliseconds. 0 for sync calls, for which fio reports none.
    pub elapsed_ns: u64,
    /// fio's own figure; `None` for sync calls.
    pub bytes_per_s: Option<f64>,
    /// fio's own figure; `None` for sync calls.
    pub ios_per_s: Option<f64>,
    /// The latencies that fio measured: slat, clat, lat, in this order.
    pub latencies: Vec<ForeignLatency>,
}

/// Which latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignLatencyKind {
    /// From issue to submission.
    Submission,
    /// From submission to completion.
    Completion,
    /// Both together.
    Total,
}

impl fmt::Display for ForeignLatencyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignLatencyKind::Submission => "slat",
            ForeignLatencyKind::Completion => "clat",
            ForeignLatencyKind::Total => "lat",
        })
    }
}

/// A latency as fio reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignLatency {
    /// Which.
    pub kind: ForeignLatencyKind,
    /// How many were measured.
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// The percentiles set in fio's job, smallest first: percent (99.9 for p99.9), nanoseconds.
    pub percentiles: Vec<(f64, u64)>,
    /// All of them, from the buckets of `json+`.
    pub histogram: Option<Histogram>,
}

impl ForeignLatency {
    /// Returns the percentile, if fio reported exactly this one.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        self.percentiles.iter().find(|(p, _)| (p - percent).abs() < 1e-9).map(|(_, ns)| *ns)
    }
}

impl ForeignOp {
    /// Returns the latency of which fio reported percentiles: lat if the job set them, otherwise clat.
    pub fn headline(&self) -> Option<&ForeignLatency> {
        let find = |kind| self.latencies.iter().find(|l| l.kind == kind && l.count > 0);
        let total = find(ForeignLatencyKind::Total);
        let completion = find(ForeignLatencyKind::Completion);
        match (total, completion) {
            (Some(total), _) if !total.percentiles.is_empty() => Some(total),
            (_, Some(completion)) if !completion.percentiles.is_empty() => Some(completion),
            (total, completion) => total.or(completion),
        }
    }
}

impl ForeignJob {
    /// Returns the value for this job: its own, or the global one.
    pub fn option<'a>(&'a self, run: &'a ForeignRun, name: &str) -> Option<&'a str> {
        self.options.get(name).or_else(|| run.global_options.get(name)).map(String::as_str)
    }
}
