//! What a comparison found: the answers, what they rest on, and what they cannot say.
//!
//! Like a record it is plain data with a version, so that it can be shown again later and elsewhere. It holds
//! every slice's figures and each side's latencies as one histogram, so that an answer can be worked out anew.

use crate::{EvidenceLevel, Histogram, Outcome, RunRecord, SyscallTrace, ToolFacts, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The value of [`Comparison::format`].
pub const COMPARISON_FORMAT: &str = "trueio-comparison";
/// The version written today. A later version reads every earlier one.
pub const COMPARISON_VERSION: u32 = 1;

/// One comparison, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARISON_FORMAT`].
    pub format: String,
    /// [`COMPARISON_VERSION`] of the writer.
    pub version: u32,
    /// When it began, for people: `2026-11-20T20:28:32Z`.
    pub started_at: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// How the figures were come by.
    pub method: Method,
    /// The margin of the answers: 0.05 asks for differences of more than 5 %.
    pub margin: f64,
    /// The share of wrong answers that is allowed, for each metric, over all sides together: 0.05.
    pub alpha: f64,
    /// Why the sides may not be comparable: each circumstance that differs.
    pub differences: Vec<Circumstance>,
    /// What was compared: one part when sides are interleaved, one for each phase that two records share.
    pub parts: Vec<Part>,
    /// Sentences for the user: what was chosen, and what this comparison cannot say.
    pub notes: Vec<String>,
    /// What was planned, on what, on which machine: a record without phases. `None` if records were compared.
    #[serde(default)]
    pub setting: Option<Box<RunRecord>>,
    /// What `--fail-if` asked, and the answers.
    #[serde(default)]
    pub gates: Vec<GateResult>,
    /// How it ended.
    pub outcome: Outcome,
}

/// One workload on all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The phase's name; empty if there is only one part.
    pub name: String,
    /// The sides; the first is what the others are compared with.
    pub sides: Vec<Side>,
    /// What was found, for each side but the first and each metric, in that order.
    pub answers: Vec<Answer>,
}

/// How the figures were come by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Method {
    /// Short slices of all sides in random order, round after round.
    Interleaved {
        /// The seed of the order, of the offsets and of what is resampled.
        seed: u64,
        /// The measured length of a slice, in nanoseconds.
        slice_ns: u64,
        /// What is run and discarded before each, in nanoseconds.
        head_ns: u64,
        /// Rounds that were run; in each, every side has one slice.
        round_count: u32,
        /// Rounds that the time would have allowed.
        round_max: u32,
        /// How often the answers were looked at, the end included.
        look_count: u32,
        /// How often they would have been looked at.
        look_max: u32,
    },
    /// Records of earlier runs, one a side.
    Records,
}

/// A circumstance in which two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstance {
    /// Which side differs from the first, as an index into [`Part::sides`].
    pub side: usize,
    /// What differs (`disk`, `kernel`, `engine`).
    pub name: String,
    /// What the first side had.
    pub first: String,
    /// What this side had.
    pub this: String,
    /// True if it was not what the comparison is about and makes the figures incomparable.
    pub forbids: bool,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// What it is, in a few words (`randread 4k q32`, `iodepth=16`, a record's id).
    pub detail: String,
    /// The worst verdict that stands.
    pub verdict: Verdict,
    /// How far the evidence reaches everywhere.
    pub level: EvidenceLevel,
    /// Why the verdict is not better, with how many slices it concerns.
    pub reasons: Vec<String>,
    /// The typical figure of each metric; absent where the side has none.
    pub figures: Vec<Figure>,
    /// All latencies, put together.
    pub latency: Histogram,
    /// Percentiles of a side of which there is no histogram (fio's JSON): (percent, nanoseconds), ascending.
    #[serde(default)]
    pub percentiles: Vec<(f64, f64)>,
    /// The system calls of its last slice, or of its record, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls: Option<SyscallTrace>,
    /// Its slices, or the rows of its record, oldest first.
    pub slices: Vec<Slice>,
}

/// A metric's typical value on one side: the geometric mean of its slices, or the whole run's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Which.
    pub metric: Metric,
    /// Its value, in the metric's unit.
    pub value: f64,
}

/// What one slice measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Its round, from 0.
    pub round: u32,
    /// Its place in the round, from 0.
    pub place: u32,
    /// When its measured part began, in nanoseconds since the comparison (or the run) began.
    pub begin_ns: u64,
    /// Each metric that the slice itself supports, in the order of [`Metric::ALL`].
    pub figures: Vec<Figure>,
    /// What the evidence says.
    pub verdict: Verdict,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bytes a second.
    Bandwidth,
    /// I/Os a second.
    Iops,
    /// Median latency, in nanoseconds.
    P50,
    /// 99th percentile, in nanoseconds.
    P99,
    /// 99.9th percentile, in nanoseconds.
    P999,
    /// CPU time per I/O, in nanoseconds.
    CpuPerIo,
}

impl Metric {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Metric; 6] =
        [Metric::Bandwidth, Metric::Iops, Metric::P50, Metric::P99, Metric::P999, Metric::CpuPerIo];

    /// Its name in conditions, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Bandwidth => "bandwidth",
            Metric::Iops => "iops",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::CpuPerIo => "cpu",
        }
    }

    /// The share of a latency metric's quantile; `None` for the others.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::P50 => Some(0.5),
            Metric::P99 => Some(0.99),
            Metric::P999 => Some(0.999),
            _ => None,
        }
    }

    /// True if more is better.
    pub fn is_more_better(self) -> bool {
        matches!(self, Metric::Bandwidth | Metric::Iops)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a comparison says of one metric of one side, against the first side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which side, as an index into [`Part::sides`].
    pub side: usize,
    /// Which metric.
    pub metric: Metric,
    /// The answer.
    pub conclusion: Conclusion,
    /// The ratio of this side to the first, with its interval; `None` if there is none to give.
    pub ratio: Option<Ratio>,
    /// How the interval was made.
    pub basis: Basis,
    /// Why there is no better answer; `None` if there is one.
    pub reason: Option<String>,
    /// About how much longer would tell; `None` if nobody can say or nothing is left to tell.
    pub needs: Option<Needs>,
    /// What equal sides differ by here, as a share, in a comparison of this length; `None` if not known.
    pub noise_floor: Option<f64>,
}

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// This side's value over the first side's.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval misses, as a share, at this look and step: never more than the comparison's alpha.
    pub alpha: f64,
    /// How often chance alone gives so large a mean difference; `None` where it was not worked out.
    pub p: Option<f64>,
    /// Pairs of slices, or blocks of the smaller run, that it rests on.
    pub pair_count: u32,
}

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From the ratio of each pair of slices: Hodges-Lehmann, signed ranks.
    PairRatios,
    /// From resampling whole pairs: BCa.
    ResampledPairs,
    /// From blocks of each run's series.
    Blocks,
    /// There is no interval.
    Nothing,
}

/// The kinds of answer. Better and worse are the metric's: less latency is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Better by more than the margin.
    Better,
    /// Better; by how much is unclear.
    BetterSizeUnclear,
    /// Worse by more than the margin.
    Worse,
    /// Worse; by how much is unclear.
    WorseSizeUnclear,
    /// No difference larger than the margin.
    Same,
    /// Cannot tell yet.
    CannotTell,
}

impl Conclusion {
    /// True if it names a winner.
    pub fn is_difference(self) -> bool {
        !matches!(self, Conclusion::Same | Conclusion::CannotTell)
    }
}

/// How much longer would tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// More pairs of slices.
    pub pair_count: u64,
    /// The time that they take, in nanoseconds.
    pub time_ns: u64,
}

/// What a condition of `--fail-if` came to, on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResult {
    /// The condition as it was written.
    pub condition: String,
    /// The part's name.
    pub part: String,
    /// Which side, as an index into [`Part::sides`].
    pub side: usize,
    /// What was found.
    pub verdict: GateVerdict,
    /// One sentence with the figures.
    pub sentence: String,
}

/// Whether a regression is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// It is shown to be absent.
    Absent,
    /// It cannot be told.
    CannotTell,
    /// It is shown.
    Shown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        let mut names: Vec<&str> = Metric::ALL.iter().map(|m| m.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Metric::ALL.len());
        assert!(Metric::ALL.iter().all(|m| !m.is_more_better() || m.quantile().is_none()));
    }
}
