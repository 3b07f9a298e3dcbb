//! The answer of a run: what every output prints of it, ready to be laid out.
//!
//! `trueio_report::answer` makes it of a record, and a record written as JSON contains it. It is derived: reading a record drops
//! it, so a record of an earlier version gets the answer of the version that reads it.
//!
//! A [`Statement`] carries the figures on which it rests, and can only be made by [`Statement::on`], which drops or hedges it if
//! one of them is not confirmed.

use crate::{
    Cause, Check, CheckOutcome, EvidenceLevel, JudgedLimit, LimitOutcome, Mark, OpKind, PhaseRecord, finding_words,
    worst,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswer {
    /// The answer to the question of `baseline`: whether the disk is as fast as it should be. `None` for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The answer in a sentence or two.
    pub headline: String,
    /// What was judged of each phase, in the order of the record.
    #[serde(default)]
    pub phases: Vec<AnsweredPhase>,
    /// Each figure of each load, in the order of the record.
    pub figures: Vec<AnsweredFigure>,
    /// Each limit (`--fail-if`, `[limits]`) with its outcome, for each load that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<JudgedLimit>,
    /// What follows from confirmed figures.
    pub statements: Vec<Statement>,
    /// Why loads are not confirmed, the most serious cause first.
    pub findings: Vec<AnsweredFinding>,
    /// What to do, each step once, in the order of the findings.
    pub next_steps: Vec<String>,
    /// How many loads are confirmed, and by what: one sentence.
    pub evidence: String,
    /// What the evidence levels of the loads mean, and what would raise the lowest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<String>,
    /// How figures are shown in spite of the check that withholds them, and which are shown because it was accepted; `None` if neither
    /// is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_hint: Option<String>,
    /// What could not be checked, one sentence a check, with the loads if not all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
    /// What is worth knowing of the plan, the device and the engines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl RunAnswer {
    /// Returns the worst outcome of its limits; `None` without limits.
    pub fn worst_limit(&self) -> Option<LimitOutcome> {
        self.limits.iter().map(|limit| limit.outcome).max()
    }
}

/// What was judged of a phase: its word, and why. Outputs read this and no checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredPhase {
    /// Name of the phase.
    pub phase: String,
    /// Its mark: how far it can be trusted.
    pub verdict: Mark,
    /// The word with the finding that determines it: `disturbed: dd wrote 335 MiB`.
    pub words: String,
    /// How far its evidence reaches.
    pub level: EvidenceLevel,
    /// False if its figures are withheld.
    pub is_shown: bool,
    /// The checks that object: the one that determines the word, then the others in the order of the record.
    pub objections: Vec<Objection>,
    /// All checks, for the tables of details. The JSON of a record has them in its phases.
    #[serde(skip)]
    pub checks: Vec<Check>,
}

impl AnsweredPhase {
    /// Judges a phase.
    pub fn of(phase: &PhaseRecord) -> Self {
        let verdict = Mark::of(phase.verdict, &phase.checks);
        let checks = shown_checks(phase);
        let first = worst(&checks);
        let others = checks.iter().filter(|check| check.objects() && first.is_none_or(|it| !std::ptr::eq(it, *check)));
        Self {
            phase: phase.name.clone(),
            verdict,
            words: finding_words(phase.verdict, &phase.checks),
            level: phase.level,
            is_shown: verdict.is_shown(),
            objections: first.into_iter().chain(others).map(Objection::of).collect(),
            checks,
        }
    }

    /// Returns true if figures are doubted or withheld.
    pub fn is_doubted(&self) -> bool {
        self.verdict > Mark::Unverified
    }

    /// Returns why the phase is not confirmed, for its row: the finding in a few words, or whole if its figures are withheld. Empty if
    /// nothing is doubted.
    pub fn reason(&self) -> String {
        if !self.is_doubted() {
            return String::new();
        }
        match self.objections.first() {
            Some(first) if !self.is_shown || first.brief.is_empty() => first.whole_sentence(),
            Some(first) => first.brief.clone(),
            None => "the record does not contain the check that found it".to_owned(),
        }
    }
}

/// Returns the checks of a phase as readers see them: of figures that are withheld, without the values ([`Check::of_withheld`]).
pub fn shown_checks(phase: &PhaseRecord) -> Vec<Check> {
    match Mark::of(phase.verdict, &phase.checks).is_shown() {
        true => phase.checks.clone(),
        false => phase.checks.iter().map(Check::of_withheld).collect(),
    }
}

/// A check that doubts or contradicts figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Objection {
    /// The check's name.
    pub check: String,
    /// What the check found.
    pub outcome: CheckOutcome,
    /// True if the user accepted it.
    #[serde(default)]
    pub is_accepted: bool,
    /// What it is about.
    pub cause: Cause,
    /// The finding in a few words; empty in a document of an earlier version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
    /// The finding in one sentence.
    pub sentence: String,
    /// The value that the figures require, with its unit; empty if there is nothing to compare.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// The value that was found, with its unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
}

impl Objection {
    /// Returns what a check found.
    pub fn of(check: &Check) -> Self {
        Self {
            check: check.name.clone(),
            outcome: check.outcome,
            is_accepted: check.is_accepted,
            cause: check.cause,
            brief: check.brief.clone(),
            sentence: check.sentence.clone(),
            expected: check.expected.clone(),
            found: check.found.clone(),
        }
    }

    /// Returns the sentence with the two values that were compared.
    pub fn whole_sentence(&self) -> String {
        match (self.expected.is_empty(), self.found.is_empty()) {
            (false, false) => format!("{} (expected {}; found {})", self.sentence, self.expected, self.found),
            _ => self.sentence.clone(),
        }
    }
}

/// The answer of a comparison, a study or a trend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentAnswer {
    /// The answer: one sentence for each thing that was asked, in the order of the document.
    pub headline: Vec<String>,
    /// Each figure, in the order of the document.
    pub figures: Vec<AnsweredFigure>,
    /// What follows from confirmed figures.
    pub statements: Vec<Statement>,
    /// Why figures are not confirmed, or a question is undecided.
    pub doubts: Vec<String>,
    /// What to do, each step once: a sentence without a full stop, which may begin with a command.
    pub next_steps: Vec<String>,
}

/// The answer to a question of yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The figures that would decide it are not confirmed.
    CannotTell,
}

impl Decision {
    /// Returns the word with which the headline begins.
    pub const fn word(self) -> &'static str {
        match self {
            Decision::Yes => "Yes",
            Decision::No => "No",
            Decision::CannotTell => "Cannot tell",
        }
    }
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Quantity {
    /// Operations per second; of sync calls: commits per second.
    #[serde(rename = "iops")]
    Iops,
    /// Bytes per second.
    #[serde(rename = "bandwidth")]
    Bandwidth,
    /// The mean latency.
    #[serde(rename = "mean")]
    Mean,
    /// The median latency.
    #[serde(rename = "p50")]
    P50,
    /// The 99th percentile.
    #[serde(rename = "p99")]
    P99,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    P999,
    /// The longest latency.
    #[serde(rename = "max")]
    Max,
}

impl Quantity {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Iops => "iops",
            Quantity::Bandwidth => "bandwidth",
            Quantity::Mean => "mean",
            Quantity::P50 => "p50",
            Quantity::P99 => "p99",
            Quantity::P999 => "p99.9",
            Quantity::Max => "max",
        }
    }

    /// Returns the unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Iops => "1/s",
            Quantity::Bandwidth => "B/s",
            Quantity::Mean | Quantity::P50 | Quantity::P99 | Quantity::P999 | Quantity::Max => "ns",
        }
    }
}

/// A figure: of an operation of a load, of a side of a comparison, of a row of a study, of a run of a trend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredFigure {
    /// What it is a figure of: a load (the job's name), a side, a row, a run.
    pub load: String,
    /// The operation; `None` if it is of all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OpKind>,
    /// Its name: `iops`, `p99`, `change of iops`.
    pub name: String,
    /// Which figure of a run it is; `None` in other documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// Its value; `None` if it is withheld or unknown, or if the sample cannot support it.
    pub value: Option<f64>,
    /// The unit of value, low and high: `1/s`, `B/s`, `ns`, `ratio`.
    pub unit: String,
    /// The lower end of its 95 % interval; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of that interval; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of operations, pairs, samples or runs on which it rests; 0 if the figures of a run are withheld.
    pub sample_count: u64,
    /// Its mark: how far it can be trusted.
    pub verdict: Mark,
    /// Why it is not confirmed, in a few words; empty if it is, or if the document does not contain the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// False if it is withheld.
    pub is_shown: bool,
}

/// What a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    /// A class of devices.
    Class,
    /// A use, such as a database, with its published guideline.
    Database,
    /// What limits a figure.
    Limit,
    /// Earlier runs of the device.
    Past,
    /// Whether commits survive a loss of power, by earlier cuts of the device.
    PowerLoss,
    /// Which of several sides is better.
    Winner,
}

/// A figure on which a statement rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ground {
    /// Its load, or the side of a comparison.
    pub load: String,
    /// The word of that load.
    pub verdict: Mark,
}

/// A sentence that follows from figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    kind: StatementKind,
    sentence: String,
    rests_on: Vec<Ground>,
}

impl Statement {
    /// Makes a statement of figures. `None` without a figure, and if one of them does not permit it:
    ///
    /// - A class, a database, a limit, a comparison with earlier runs or the result of cuts of power needs confirmed figures.
    /// - A winner needs figures that are confirmed or unverified; if one of them is unverified, a clause adds what that means.
    pub fn on(kind: StatementKind, sentence: impl Into<String>, rests_on: Vec<Ground>) -> Option<Self> {
        let worst = rests_on.iter().map(|ground| ground.verdict).max()?;
        let mut sentence = sentence.into();
        match (kind, worst) {
            (_, Mark::Confirmed) => {}
            (StatementKind::Winner, Mark::Unverified) => {
                let of = |ground: &&Ground| ground.verdict == worst;
                let names: Vec<&str> = rests_on.iter().filter(of).map(|ground| ground.load.as_str()).collect();
                let verb = if names.len() == 1 { "is" } else { "are" };
                let hedge = "this holds if the disk is what was measured";
                sentence.push_str(&format!(" {} {verb} {}: {hedge}.", names.join(" and "), worst.word()));
            }
            _ => return None,
        }
        Some(Self { kind, sentence, rests_on })
    }

    /// Returns what it is about.
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// Returns the sentence, with its hedge.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Returns the figures on which it rests.
    pub fn rests_on(&self) -> &[Ground] {
        &self.rests_on
    }
}

/// Why loads are not confirmed: everything of one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredFinding {
    /// The cause.
    pub cause: Cause,
    /// The worst word of its loads.
    pub verdict: Mark,
    /// The finding, with the loads that it concerns, in one sentence without a full stop.
    pub sentence: String,
    /// Which loads it concerns, and how much of them it can explain: the end of the sentence.
    #[serde(default)]
    pub extent: String,
    /// Each load with what was found of it.
    pub loads: Vec<FoundLoad>,
    /// What the checks found, in the words of the record, the worst first.
    #[serde(default)]
    pub details: Vec<FoundDetail>,
    /// What to do about it: one sentence without a full stop, which may begin with a command.
    pub next_step: String,
}

/// What a check found of one or more loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundDetail {
    /// The check's name.
    pub check: String,
    /// The word of a load with this finding alone: `not the disk`, `withheld`, `not the disk, accepted`.
    pub outcome: String,
    /// The loads of which the sentence is true, in the order of the record.
    pub loads: Vec<String>,
    /// The finding, with the values that were compared.
    pub sentence: String,
}

/// What was found of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundLoad {
    /// Name of the load, as the table prints it.
    pub load: String,
    /// The finding in a few words.
    pub brief: String,
    /// How much of the figure it can explain at most, in percent; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained_percent: Option<u8>,
    /// True if the load kept the rate that was set for it: the finding then explains the latencies of this share of its I/Os, and not
    /// its rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_latencies: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(kind: StatementKind, words: &[(&str, Mark)]) -> Option<Statement> {
        let ground = |(load, verdict): &(&str, Mark)| Ground { load: (*load).to_owned(), verdict: *verdict };
        Statement::on(kind, "A sentence.", words.iter().map(ground).collect())
    }

    #[test]
    fn a_statement_rests_on_confirmed_figures_only_and_a_winner_is_hedged() {
        use StatementKind::{Class, Database, Limit, Past, PowerLoss, Winner};
        for kind in [Class, Database, Limit, Past, PowerLoss, Winner] {
            assert_eq!(on(kind, &[]), None, "without a figure there is nothing to state");
            assert!(on(kind, &[("a", Mark::Confirmed)]).is_some_and(|it| it.sentence() == "A sentence."));
            for mark in [Mark::Unsteady, Mark::Disturbed, Mark::NotTheDisk, Mark::Withheld, Mark::Failed] {
                assert_eq!(on(kind, &[("a", Mark::Confirmed), ("b", mark)]), None);
            }
            let made = on(kind, &[("A", Mark::Unverified), ("B", Mark::Confirmed)]);
            assert_eq!(made.is_some(), kind == Winner, "{kind:?}");
        }
        let hedged = on(Winner, &[("A", Mark::Unverified), ("B", Mark::Unverified)]).expect("hedged");
        assert_eq!(
            hedged.sentence(),
            "A sentence. A and B are unverified: this holds if the disk is what was measured."
        );
    }
}
