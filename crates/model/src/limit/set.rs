//! The limits of a run, and what its figures decide of them.

use crate::{AnsweredFigure, OpKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of a run, as its plan and its record keep them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitSet {
    /// The limits as they were written, in the order of job files and flags.
    pub conditions: Vec<String>,
    /// What relative limits refer to (`--against`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// An earlier run, with the figures to which limits refer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// The ID of its record.
    pub record_id: String,
    /// When it began, as text.
    pub started_at: String,
    /// Its loads.
    pub loads: Vec<ReferenceLoad>,
    /// Their figures, as its answer has them.
    pub figures: Vec<AnsweredFigure>,
}

/// A load of a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceLoad {
    /// Its name.
    pub name: String,
    /// What it does: `randread 4k q32`. Only loads that do the same are compared.
    pub shape: String,
}

/// What the figures of a run decide of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// The whole interval of the figure is within the limit.
    Met,
    /// It does not stand: the figure is not confirmed, or its interval includes the limit.
    Undecided,
    /// The whole interval of the figure is beyond the limit.
    Missed,
}

impl LimitOutcome {
    /// Returns its word.
    pub const fn word(self) -> &'static str {
        match self {
            LimitOutcome::Met => "met",
            LimitOutcome::Undecided => "undecided",
            LimitOutcome::Missed => "missed",
        }
    }

    /// Returns the exit status of a command whose worst limit has this outcome: 0, 3, 1 (docs/ci.md).
    pub const fn exit_status(self) -> u8 {
        match self {
            LimitOutcome::Met => 0,
            LimitOutcome::Undecided => 3,
            LimitOutcome::Missed => 1,
        }
    }
}

/// A limit and what a load's figure decides of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedLimit {
    /// The limit as it was written.
    pub condition: String,
    /// The load; empty if no load has the figure.
    pub load: String,
    /// The operation; `None` for the sum of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OpKind>,
    /// What the figure decides.
    pub outcome: LimitOutcome,
    /// The figure; `None` if it is withheld.
    pub value: Option<f64>,
    /// The lower end of its 95 % interval; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of that interval; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The limit in the figure's unit; `None` if it refers to a figure that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The unit of value, low, high and threshold: `1/s`, `B/s`, `ns`.
    pub unit: String,
    /// The figure with its interval, and the limit, in one sentence without a full stop.
    pub sentence: String,
    /// What would decide it, without a full stop; empty if it is decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_step: String,
}
