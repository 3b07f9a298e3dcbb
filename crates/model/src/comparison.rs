//! The result of a comparison: the answers, their basis, and their limits.
//!
//! Like a record it is plain data with a version, so that it can be shown again later and elsewhere. It contains
//! every slice's figures and each side's latencies as one histogram, so that an answer can be computed again.

use crate::{
    Cause, CheckOutcome, DocumentAnswer, EvidenceLevel, Histogram, LimitOutcome, Mark, Objection, Outcome, RunRecord,
    SyscallTrace, ToolFacts, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The value of [`Comparison::format`].
pub const COMPARISON_FORMAT: &str = "trueio-comparison";
/// The version written today. A later version reads every earlier one.
pub const COMPARISON_VERSION: u32 = 1;

/// One comparison, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`COMPARISON_FORMAT`].
    pub format: String,
    /// [`COMPARISON_VERSION`] of the writer.
    pub version: u32,
    /// When it began, as text: `2026-11-20T20:28:32Z`.
    pub started_at: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// How the figures were measured.
    pub method: Method,
    /// The margin of the answers: 0.05 means differences of more than 5 %.
    pub margin: f64,
    /// The share of wrong answers that is allowed, for each metric, over all sides together: 0.05.
    pub alpha: f64,
    /// Why the sides may not be comparable: each circumstance that differs.
    pub differences: Vec<Circumstance>,
    /// What was compared: one part when sides are interleaved, one for each phase that two records share.
    pub parts: Vec<Part>,
    /// Sentences for the user: what was chosen, and the limits of this comparison.
    pub notes: Vec<String>,
    /// What was planned, on what, on which machine: a record without phases. `None` if records were compared.
    #[serde(default)]
    pub setting: Option<Box<RunRecord>>,
    /// The conditions of `--fail-if`, and the answers.
    #[serde(default)]
    pub gates: Vec<GateResult>,
    /// How it ended.
    pub outcome: Outcome,
    /// Headline, figures, statements, doubts and next steps. A document in memory has none: it is derived, and written with the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<DocumentAnswer>>,
}

/// One workload on all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The phase's name; empty if there is only one part.
    pub name: String,
    /// The sides; the first is what the others are compared with.
    pub sides: Vec<Side>,
    /// The answers, for each side except the first and each metric, in that order.
    pub answers: Vec<Answer>,
}

/// How the figures were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        /// How often the answers were evaluated, including the end.
        look_count: u32,
        /// The planned number of evaluations.
        look_max: u32,
    },
    /// Records of earlier runs, one per side.
    Records,
}

/// A circumstance in which two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Circumstance {
    /// Which side differs from the first, as an index into [`Part::sides`].
    pub side: usize,
    /// What differs (`disk`, `kernel`, `engine`).
    pub name: String,
    /// What the first side had.
    pub first: String,
    /// What this side had.
    pub this: String,
    /// True if it is not the subject of the comparison and makes the figures incomparable.
    pub forbids: bool,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Name of the side, which tables print.
    pub name: String,
    /// What it is, in a few words (`randread 4k q32`, `iodepth=16`, a record's id).
    pub detail: String,
    /// The worst verdict.
    pub verdict: Verdict,
    /// The word of its figures, as `run` prints it: of the recorded causes. `None` in comparisons of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Mark>,
    /// The lowest evidence level.
    pub level: EvidenceLevel,
    /// Why the verdict is not better, with how many slices it concerns.
    pub reasons: Vec<String>,
    /// The checks of these reasons, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<Objection>,
    /// The typical figure of each metric that the side has.
    pub figures: Vec<Figure>,
    /// All latencies, merged.
    pub latency: Histogram,
    /// Percentiles of a side without a histogram (fio's JSON): (percent, nanoseconds), ascending.
    #[serde(default)]
    pub percentiles: Vec<(f64, f64)>,
    /// The system calls of its last slice, or of its record, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls: Option<SyscallTrace>,
    /// Its slices, or the rows of its record, oldest first.
    pub slices: Vec<Slice>,
}

/// A metric's typical value on one side: the geometric mean of its slices, or the whole run's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Which.
    pub metric: Metric,
    /// Its value, in the metric's unit.
    pub value: f64,
}

/// What one slice measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// Its round, from 0.
    pub round: u32,
    /// Its position in the round, from 0.
    pub place: u32,
    /// When its measured part began, in nanoseconds since the comparison (or the run) began.
    pub begin_ns: u64,
    /// Each metric that the slice itself supports, in the order of [`Metric::ALL`].
    pub figures: Vec<Figure>,
    /// The verdict of the evidence.
    pub verdict: Verdict,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
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

/// The answer for one metric of one side, compared with the first side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Which side, as an index into [`Part::sides`].
    pub side: usize,
    /// Which metric.
    pub metric: Metric,
    /// The answer.
    pub conclusion: Conclusion,
    /// The ratio of this side to the first, with its interval; `None` if there is none.
    pub ratio: Option<Ratio>,
    /// How the interval was computed.
    pub basis: Basis,
    /// Why the answer is not definite; `None` if it is.
    pub reason: Option<String>,
    /// Estimate of how much longer a definite answer takes; `None` if unknown, or if the answer is definite.
    pub needs: Option<Needs>,
    /// The noise floor: the difference of equal sides in a comparison of this length, as a share; `None` if unknown.
    pub noise_floor: Option<f64>,
}

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// This side's value over the first side's.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The error rate of such an interval, as a share, at this evaluation and step: at most the comparison's alpha.
    pub alpha: f64,
    /// The probability of so large a mean difference by chance; `None` if it was not computed.
    pub p: Option<f64>,
    /// Number of pairs of slices, or of blocks of the smaller run, on which it is based.
    pub pair_count: u32,
}

impl Ratio {
    /// Returns the end of the interval next to 1, if the interval shows the direction of a change and not its size: one end is more than twice the
    /// other. Six pairs cannot show more than that of a change that differs between them.
    pub fn least(&self) -> Option<f64> {
        const UNSURE: f64 = 2.0;
        if self.high < self.low * UNSURE {
            return None;
        }
        match (self.low > 1.0, self.high < 1.0) {
            (true, _) => Some(self.low),
            (_, true) => Some(self.high),
            _ => None,
        }
    }
}

/// How an interval was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Better by more than the margin.
    Better,
    /// Better by an unclear amount.
    BetterSizeUnclear,
    /// Worse by more than the margin.
    Worse,
    /// Worse by an unclear amount.
    WorseSizeUnclear,
    /// No difference larger than the margin.
    Same,
    /// Undecided so far.
    CannotTell,
}

/// Returns the letter of a side by its index: `A`, `B`, … `Z`, then `side 27`.
pub fn side_letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(number @ 0..26) => char::from(b'A' + number).to_string(),
        _ => format!("side {}", index + 1),
    }
}

impl Side {
    /// Returns the word of its figures.
    pub fn mark(&self) -> Mark {
        self.word.unwrap_or_else(|| Mark::of(self.verdict, &[]))
    }

    /// Adds the word and the objections that comparisons of earlier versions lack: their reasons begin with the names of the checks.
    pub fn upgrade(&mut self) {
        let contradicts = self.verdict == Verdict::Contradicted;
        let outcome = if contradicts { CheckOutcome::Contradicted } else { CheckOutcome::Suspect };
        let of = |reason: &String| {
            let check = reason.split([' ', ':']).next()?;
            Some(Objection {
                check: check.to_owned(),
                outcome,
                is_accepted: false,
                cause: Cause::usual_of(check)?,
                brief: String::new(),
                sentence: reason.clone(),
                expected: String::new(),
                found: String::new(),
            })
        };
        if self.word.is_none() {
            let names = self.reasons.iter().filter_map(|reason| reason.split([' ', ':']).next());
            let names = names.filter(|name| Cause::usual_of(name).is_some());
            self.word = Some(Mark::of_names(self.verdict, names));
        }
        // Earlier versions had one word for figures that are withheld and others that describe something else.
        if contradicts && self.word == Some(Mark::NotTheDisk) {
            self.word = Some(Mark::Withheld);
        }
        if self.objections.is_empty() && self.verdict >= Verdict::Suspect {
            self.objections = self.reasons.iter().filter_map(of).collect();
        }
    }
}

impl Part {
    /// Returns those of a side and the first one between which there is no winner, as indices: their figures are disturbed, unsteady, not
    /// the disk's, or of failed I/Os.
    pub fn without_a_winner(&self, side: usize) -> Vec<usize> {
        let is_open = |index: &usize| self.sides.get(*index).is_some_and(|side| !side.mark().permits_a_winner());
        [0, side].into_iter().filter(is_open).collect()
    }

    /// Returns why there is no winner between a side and the first one (`B is disturbed`); `None` if there may be one. `name` returns the
    /// name of a side by its index.
    pub fn obstacle_to_a_winner(&self, side: usize, name: impl Fn(usize) -> String) -> Option<String> {
        let open: Vec<(String, Mark)> =
            self.without_a_winner(side).into_iter().map(|index| (name(index), self.sides[index].mark())).collect();
        Some(match open.as_slice() {
            [] => return None,
            [(one, mark)] => format!("{one} is {}", mark.word()),
            [(one, mark), (other, same)] if mark == same => format!("{one} and {other} are {}", mark.word()),
            several => {
                several.iter().map(|(one, mark)| format!("{one} is {}", mark.word())).collect::<Vec<_>>().join(", ")
            }
        })
    }
}

impl Conclusion {
    /// Returns true if it names a winner.
    pub fn is_difference(self) -> bool {
        !matches!(self, Conclusion::Same | Conclusion::CannotTell)
    }
}

/// An estimate of how much longer a definite answer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// More pairs of slices.
    pub pair_count: u64,
    /// The time that they take, in nanoseconds.
    pub time_ns: u64,
}

/// The result of a condition of `--fail-if` for one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The condition as it was written.
    pub condition: String,
    /// The part's name.
    pub part: String,
    /// Which side, as an index into [`Part::sides`].
    pub side: usize,
    /// The result.
    pub verdict: GateVerdict,
    /// One sentence with the figures.
    pub sentence: String,
}

/// Whether there is a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// No: its absence is shown.
    Absent,
    /// Undecided.
    CannotTell,
    /// Yes: it is shown.
    Shown,
}

impl From<LimitOutcome> for GateVerdict {
    fn from(outcome: LimitOutcome) -> Self {
        match outcome {
            LimitOutcome::Missed => GateVerdict::Shown,
            LimitOutcome::Met => GateVerdict::Absent,
            LimitOutcome::Undecided => GateVerdict::CannotTell,
        }
    }
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
