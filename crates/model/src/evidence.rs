//! Verdicts, and the checks on which they are based.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The judgement of the evidence on a phase's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No check reports a difference, and at least one check applied.
    Supported,
    /// A check makes the figures doubtful.
    Suspect,
    /// The kernel or the device counted something that contradicts the figures.
    Contradicted,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Supported => "supported",
            Verdict::Suspect => "suspect",
            Verdict::Contradicted => "contradicted",
        })
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// How far the evidence reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The check's name, snake case (`block_layer_bytes`); `docs/evidence.md` has a section of it.
    pub name: String,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The source that it read (`/sys/block/vda/stat`).
    #[serde(rename = "witness")]
    pub source: String,
    /// The value that the figures require, with its unit; empty if there is nothing to compare.
    pub expected: String,
    /// The value that the source reported, with its unit.
    pub found: String,
    /// One sentence for the user.
    pub sentence: String,
    /// True if it contradicts the figures and the user accepted that before the run: it then only makes the
    /// phase suspect.
    #[serde(default)]
    pub is_accepted: bool,
}
