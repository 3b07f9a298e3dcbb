//! Verdicts, and the checks on which they are based.

mod withheld;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The judgement of the evidence on a phase's figures, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No check reports a difference, and a counter of the kernel or the device confirms the I/O.
    Supported,
    /// No check reports a difference, but none could see whether the I/O reached a device.
    Unverified,
    /// A check makes the figures doubtful.
    Suspect,
    /// The kernel or the device counted something that contradicts the figures.
    Contradicted,
}

/// Checks that read a counter which changes only if the I/O reached the disk. If none of them agrees with the figures,
/// only the results of the calls support them.
const CONFIRMING: [&str; 6] =
    ["block_layer_bytes", "process_read_bytes", "flushes", "flush_order", "traced_requests", "usb_transfers"];

impl Verdict {
    /// Returns the verdict of all findings on a phase together.
    ///
    /// Contradicted if any check contradicts; else suspect if any check doubts, or if an objection was accepted before
    /// the run; else supported, if a counter confirms the I/O; else unverified.
    pub fn of(checks: &[Check]) -> Self {
        let any = |outcome| checks.iter().any(|check| check.outcome == outcome && !check.is_accepted);
        if any(CheckOutcome::Contradicted) {
            Verdict::Contradicted
        } else if any(CheckOutcome::Suspect) || checks.iter().any(|check| check.is_accepted) {
            Verdict::Suspect
        } else if checks.iter().any(Check::confirms) {
            Verdict::Supported
        } else {
            Verdict::Unverified
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Supported => "supported",
            Verdict::Unverified => "unverified",
            Verdict::Suspect => "suspect",
            Verdict::Contradicted => "contradicted",
        })
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The source agrees with the figures.
    Passed,
    /// The source makes the figures doubtful.
    Suspect,
    /// The source contradicts the figures.
    Contradicted,
    /// The check could not read what it needs; its sentence states why. Counts neither for nor against.
    NotSeen,
    /// The check does not apply to this phase (no writes, so no flushes to count).
    NotApplicable,
}

impl CheckOutcome {
    /// Returns the outcome as text.
    pub const fn word(self) -> &'static str {
        match self {
            CheckOutcome::Passed => "passed",
            CheckOutcome::Suspect => "suspect",
            CheckOutcome::Contradicted => "contradicted",
            CheckOutcome::NotSeen => "not seen",
            CheckOutcome::NotApplicable => "does not apply",
        }
    }
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What kind of thing a finding is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Calls failed, transferred less than requested, or blocks read back differently.
    Calls,
    /// Memory served the I/O, not the disk.
    Cache,
    /// The set-up determines the figures: a sparse file, a limit of a control group, a source, a rate.
    #[default]
    Setup,
    /// The device itself: heat, its link, flushes that it did not execute, what it declares.
    Device,
    /// Other processes used the same disk.
    Neighbour,
    /// This program waited for a processor, was stopped, or is the limit.
    Tool,
    /// The rate changed while it was measured.
    Unsteady,
}

impl Cause {
    /// All causes, the most serious first.
    pub const ALL: [Cause; 7] =
        [Cause::Calls, Cause::Cache, Cause::Setup, Cause::Device, Cause::Neighbour, Cause::Tool, Cause::Unsteady];

    /// Returns the cause that the findings of a check usually have; `None` for a check that no version of this program has.
    pub fn usual_of(check: &str) -> Option<Self> {
        Some(match check {
            "call_results" => Cause::Calls,
            "direct_granted" | "block_layer_bytes" | "process_read_bytes" | "page_cache" | "traced_requests"
            | "working_set" | "latency_floor" | "same_host" | "same_blocks" => Cause::Cache,
            "holes" | "zero_blocks" | "source" | "memory_backed" | "content" | "io_limits" | "common_window"
            | "clock_agreement" => Cause::Setup,
            "flushes" | "flush_order" | "declared_values" | "usb_link" | "usb_transfers" | "heat" | "straggler" => {
                Cause::Device
            }
            "foreign_io" => Cause::Neighbour,
            "achieved_depth" | "clock_and_cpu" | "latency_origin" | "processor_wait" | "stops" | "late_start" => {
                Cause::Tool
            }
            "steadiness" | "pace" => Cause::Unsteady,
            _ => return None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Calls => "calls",
            Cause::Cache => "cache",
            Cause::Setup => "setup",
            Cause::Device => "device",
            Cause::Neighbour => "neighbour",
            Cause::Tool => "tool",
            Cause::Unsteady => "unsteady",
        })
    }
}

/// How far the evidence reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum EvidenceLevel {
    /// Results of the calls.
    E0,
    /// Device counters, checked against an idle baseline.
    E1,
    /// Per process and per file: `read_bytes`, cachestat, FIEMAP, statx.
    E2,
    /// Block tracepoints matched by physical range; flush and FUA order proved on samples.
    E3,
    /// Power loss verified.
    E4,
}

impl fmt::Display for EvidenceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One check's finding on one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The check's name, snake case (`block_layer_bytes`); `docs/checks.md` has a section of it.
    pub name: String,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// What the finding is about. [`RunRecord::upgrade`](crate::RunRecord::upgrade) adds it to records of versions 1 and 2.
    #[serde(default)]
    pub cause: Cause,
    /// The source that it read (`/sys/block/vda/stat`).
    #[serde(rename = "witness")]
    pub source: String,
    /// The value that the figures require, with its unit; empty if there is nothing to compare.
    pub expected: String,
    /// The value that the source reported, with its unit.
    pub found: String,
    /// One sentence for the user.
    pub sentence: String,
    /// The finding in a few words that fit in a row of a table (`dd wrote 335 MiB`); empty if the check agrees, and in
    /// records of versions 1 and 2.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
    /// How much of the figure the finding can explain at most, in percent, rounded up; `None` if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_percent: Option<u8>,
    /// The processes that caused it, busiest first (`dd (pid 812)`); empty if they are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<String>,
    /// True if it doubts or contradicts the figures and the user accepted that before the run: it then makes the phase
    /// at most suspect.
    #[serde(default)]
    pub is_accepted: bool,
}

impl Check {
    /// Sets [`Check::cause`].
    #[must_use]
    pub fn with_cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Sets [`Check::brief`].
    #[must_use]
    pub fn with_brief(self, brief: impl Into<String>) -> Self {
        Self { brief: brief.into(), ..self }
    }

    /// Sets [`Check::explained_percent`] from a share of the figure, 0 to 1; more than 1 counts as 1.
    #[must_use]
    pub fn explaining(self, share: Option<f64>) -> Self {
        let percent = |share: f64| (share.clamp(0.0, 1.0) * 100.0).ceil() as u8;
        Self { explained_percent: share.filter(|share| !share.is_nan()).map(percent), ..self }
    }

    /// Sets [`Check::culprits`].
    #[must_use]
    pub fn with_culprits(self, culprits: Vec<String>) -> Self {
        Self { culprits, ..self }
    }

    /// Returns true if the finding makes the figures doubtful or contradicts them, also if that was accepted.
    pub fn objects(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted)
    }

    /// Returns the check of a load whose figures are withheld, as readers see it: without the values that were compared, and with `x` in
    /// place of each latency and rate in its words. The record keeps them.
    #[must_use]
    pub fn of_withheld(&self) -> Self {
        Self {
            expected: String::new(),
            found: String::new(),
            sentence: withheld::without_figures(&self.name, &self.sentence),
            brief: withheld::without_figures(&self.name, &self.brief),
            ..self.clone()
        }
    }

    /// Returns true if a counter that changes only with I/O on the disk agrees with the figures.
    pub fn confirms(&self) -> bool {
        self.outcome == CheckOutcome::Passed && CONFIRMING.contains(&self.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, outcome: CheckOutcome) -> Check {
        Check {
            name: name.to_owned(),
            outcome,
            cause: Cause::usual_of(name).unwrap_or_default(),
            source: String::new(),
            expected: String::new(),
            found: String::new(),
            sentence: String::new(),
            brief: String::new(),
            explained_percent: None,
            culprits: Vec::new(),
            is_accepted: false,
        }
    }

    #[test]
    fn a_phase_is_supported_only_if_a_counter_of_the_disk_agrees() {
        use CheckOutcome::{Contradicted, NotSeen, Passed, Suspect};
        let blind = [check("call_results", Passed), check("steadiness", Passed), check("block_layer_bytes", NotSeen)];
        assert_eq!(Verdict::of(&blind), Verdict::Unverified);
        assert_eq!(Verdict::of(&[]), Verdict::Unverified);
        let mut seen = blind.to_vec();
        seen[2].outcome = Passed;
        assert_eq!(Verdict::of(&seen), Verdict::Supported);
        seen[1].outcome = Suspect;
        assert_eq!(Verdict::of(&seen), Verdict::Suspect);
        seen[0].outcome = Contradicted;
        assert_eq!(Verdict::of(&seen), Verdict::Contradicted);
        seen[0].is_accepted = true;
        assert_eq!(Verdict::of(&seen), Verdict::Suspect);
    }

    #[test]
    fn verdicts_are_ordered_from_best_to_worst() {
        let all = [Verdict::Supported, Verdict::Unverified, Verdict::Suspect, Verdict::Contradicted];
        assert!(all.is_sorted());
    }
}
