//! The word of a load, and of a run: what its verdict and its findings mean to a reader.
//!
//! A record holds a verdict, and findings with a cause each. Screens, pages and the history's list show one word made of both
//! (`disturbed`), with the words of the finding that determines it (`dd wrote 335 MiB`). All of them take it from here.

use crate::{Cause, Check, CheckOutcome, PhaseRecord, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The word for a load, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The disk's own counters agree with the figures.
    Confirmed,
    /// Nothing objects, but no counter could show that the I/O reached a device.
    Unverified,
    /// The rate changed while it was measured.
    Unsteady,
    /// Other processes, heat or a lack of processors affected the figures.
    Disturbed,
    /// The figures describe something else: memory, a hole, a limit, a link, missing flushes. They are shown.
    #[serde(rename = "not the disk")]
    NotTheDisk,
    /// A counter contradicts the figures: no output shows rate, latencies or number of I/Os, nor sentences that contain them. The checks
    /// of the record have them.
    Withheld,
    /// I/Os failed, or blocks did not read back as written: no output shows the figures.
    Failed,
}

impl Mark {
    /// All of them, from best to worst.
    pub const ALL: [Mark; 7] = [
        Mark::Confirmed,
        Mark::Unverified,
        Mark::Unsteady,
        Mark::Disturbed,
        Mark::NotTheDisk,
        Mark::Withheld,
        Mark::Failed,
    ];

    /// Returns true if outputs show the figures. Every output takes the answer from here: a figure that is not shown has its word and the
    /// reason in its place.
    pub const fn is_shown(self) -> bool {
        !matches!(self, Mark::Withheld | Mark::Failed)
    }

    /// Returns true if a winner may be named between figures of this word: they are confirmed, or no counter could show whether they
    /// are, which is stated with it.
    pub const fn permits_a_winner(self) -> bool {
        matches!(self, Mark::Confirmed | Mark::Unverified)
    }

    /// Returns the word of a load from its verdict and its findings.
    pub fn of(verdict: Verdict, checks: &[Check]) -> Self {
        match (verdict, worst(checks)) {
            (Verdict::Supported, _) => Mark::Confirmed,
            (Verdict::Unverified, _) => Mark::Unverified,
            (Verdict::Contradicted, Some(check)) => Self::of_cause(check.cause, &check.name, true),
            (Verdict::Suspect, Some(check)) => Self::of_finding(check),
            // The record does not contain the check that found it.
            (Verdict::Suspect, None) => Mark::Disturbed,
            (Verdict::Contradicted, None) => Mark::Withheld,
        }
    }

    /// Returns the word for a finding that objects.
    pub fn of_finding(check: &Check) -> Self {
        let contradicts = check.outcome == CheckOutcome::Contradicted && !check.is_accepted;
        match Self::of_cause(check.cause, &check.name, contradicts) {
            // Its figures are shown, because the user wants them.
            Mark::Failed if check.is_accepted => Mark::NotTheDisk,
            mark => mark,
        }
    }

    /// Returns the word for figures of which only the verdict and the names of the checks that object are known.
    pub fn of_names<'a>(verdict: Verdict, names: impl Iterator<Item = &'a str>) -> Self {
        let contradicts = verdict == Verdict::Contradicted;
        let of_name = |name| Self::of_cause(Cause::usual_of(name).unwrap_or_default(), name, contradicts);
        let worst = names.map(of_name).max().filter(|_| verdict >= Verdict::Suspect);
        worst.unwrap_or_else(|| Self::of(verdict, &[]))
    }

    /// Returns the word with which a text of [`finding_words`] or [`run_words`] begins.
    pub fn of_words(words: &str) -> Option<Self> {
        let word = words.split_once(": ").map_or(words, |(word, _)| word);
        Self::ALL.into_iter().find(|mark| mark.word() == word)
    }

    fn of_cause(cause: Cause, check: &str, contradicts: bool) -> Self {
        match cause {
            Cause::Calls => Mark::Failed,
            _ if contradicts => Mark::Withheld,
            Cause::Cache | Cause::Setup => Mark::NotTheDisk,
            // Heat slows a disk; the others are about what else the figures describe.
            Cause::Device if check == "heat" => Mark::Disturbed,
            Cause::Device => Mark::NotTheDisk,
            Cause::Tool | Cause::Neighbour => Mark::Disturbed,
            Cause::Unsteady => Mark::Unsteady,
        }
    }

    /// Returns the word that is shown.
    pub const fn word(self) -> &'static str {
        match self {
            Mark::Confirmed => "confirmed",
            Mark::Unverified => "unverified",
            Mark::Unsteady => "unsteady",
            Mark::Disturbed => "disturbed",
            Mark::NotTheDisk => "not the disk",
            Mark::Withheld => "withheld",
            Mark::Failed => "failed",
        }
    }

    /// Returns the symbol in front of the word, an ASCII character, so that meaning does not rest on colour.
    pub const fn symbol(self) -> char {
        match self {
            Mark::Confirmed => '+',
            Mark::Unverified => '?',
            Mark::Unsteady => '~',
            Mark::Disturbed => '!',
            Mark::NotTheDisk => '*',
            // As in the place of each figure that is withheld.
            Mark::Withheld => 'x',
            Mark::Failed => '#',
        }
    }

    /// Returns what the word means, as a clause.
    pub const fn meaning(self) -> &'static str {
        match self {
            Mark::Confirmed => "the disk's own counters agree",
            Mark::Unverified => "no counter could show whether the I/O reached a device",
            Mark::Unsteady => "the rate changed while it was measured",
            Mark::Disturbed => "something else affected the disk or this program",
            Mark::NotTheDisk => "the figure describes something other than the disk",
            Mark::Withheld => "a counter contradicts the figure",
            Mark::Failed => "I/Os failed or returned wrong data",
        }
    }
}

/// Returns the finding that determines the word of a load: the most serious one that objects; `None` if none does.
///
/// A contradiction comes before a doubt. Then findings about the figures as a whole come before those that affect a part of
/// them; of the latter, the one that can explain most, before those of its cause that do not tell. Of equal ones the first.
pub fn worst(checks: &[Check]) -> Option<&Check> {
    let is_measured = |cause: Cause| {
        checks.iter().any(|check| check.objects() && check.cause == cause && check.explained_percent.is_some())
    };
    let key = |check: &&Check| {
        let contradicts = match (check.outcome, check.is_accepted) {
            (CheckOutcome::Contradicted, false) => 2,
            (CheckOutcome::Contradicted, true) => 1,
            _ => 0,
        };
        let is_whole = matches!(check.cause, Cause::Calls | Cause::Cache | Cause::Setup | Cause::Device);
        // What a finding explains without saying how much may be all, unless another one of its cause says it: workers that use
        // all of a quota also wait for a processor, and how long is known.
        let unknown = if is_measured(check.cause) { 0 } else { 100 };
        let explained = check.explained_percent.unwrap_or(unknown);
        (contradicts, is_whole, explained, is_reason(&check.name), std::cmp::Reverse(check.cause))
    };
    // `max_by_key` returns the last of equal ones.
    let worst = checks.iter().filter(|check| check.objects()).rev().max_by_key(key)?;
    // How long a stop was is measured; what waits explain is a limit, and they follow a stop.
    let stop = checks.iter().find(|check| check.objects() && check.name == STOPS);
    let is_wait = worst.name == "processor_wait" && worst.outcome != CheckOutcome::Contradicted;
    Some(stop.filter(|_| is_wait).unwrap_or(worst))
}

/// The check whether this tool was stopped.
pub const STOPS: &str = "stops";

/// Returns true for a check whose finding is the reason of what counters find, such as missing bytes.
pub fn is_reason(check: &str) -> bool {
    check == "holes"
}

/// Returns the words for a load with this verdict and these findings: `disturbed: dd wrote 335 MiB`.
pub fn finding_words(verdict: Verdict, checks: &[Check]) -> String {
    let mark = Mark::of(verdict, checks);
    let worst = worst(checks).filter(|_| verdict >= Verdict::Suspect);
    let brief = worst.map(|check| if mark.is_shown() { check.brief.clone() } else { check.of_withheld().brief });
    match brief {
        Some(brief) if !brief.is_empty() => format!("{}: {brief}", mark.word()),
        _ => mark.word().to_owned(),
    }
}

/// Returns the words for a run, in one line: [`finding_words`] of its worst phase; empty without a phase.
///
/// Phases are compared by their word, then by the share of the figure that the worst finding can explain (unknown counts as 100 %). Of
/// equal phases, the first one is used.
pub fn run_words(phases: &[PhaseRecord]) -> String {
    let key = |phase: &&PhaseRecord| {
        let explained = worst(&phase.checks).map_or(0, |check| check.explained_percent.unwrap_or(100));
        (Mark::of(phase.verdict, &phase.checks), explained)
    };
    // `max_by_key` returns the last of equal ones.
    let worst = phases.iter().rev().max_by_key(key);
    worst.map_or_else(String::new, |phase| finding_words(phase.verdict, &phase.checks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_text_is_recognised_and_other_texts_have_none() {
        for mark in Mark::ALL {
            assert_eq!(Mark::of_words(mark.word()), Some(mark));
            assert_eq!(Mark::of_words(&format!("{}: dd wrote 335 MiB: twice", mark.word())), Some(mark));
        }
        for text in ["", "suspect", "disturbed by dd", "confirmed:"] {
            assert_eq!(Mark::of_words(text), None, "{text}");
        }
    }
}
