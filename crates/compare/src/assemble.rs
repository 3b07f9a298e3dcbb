//! The comparison's document, from what was found.

use crate::answer::{CONTRADICTED_MIN, typical};
use crate::gate::{change, judge};
use crate::live::{Interleaved, Settings};
use crate::records::Compared;
use crate::sample::Sample;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{
    Basis, COMPARISON_FORMAT, COMPARISON_VERSION, Comparison, EvidenceLevel, Figure, Histogram, Limit, Mark, Method,
    Metric, Objection, Outcome, Part, Side, Slice, ToolFacts, Verdict,
};

/// The share of wrong answers that is allowed.
const ALPHA: f64 = 0.05;

/// What stands at the head of a comparison.
#[derive(Debug, Clone)]
pub struct Head {
    /// What was planned, on what: a record without phases.
    pub setting: Option<Box<trueio_model::RunRecord>>,
    /// When it began.
    pub started_at: String,
    /// The words of the command line, the program first; the comparison keeps them.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// Relative difference that counts as none: 0.05 is 5 %.
    pub margin: f64,
}

/// A comparison of interleaved slices; `names` holds a name and a detail for each side. A panic leaves one without rounds, whose outcome has the
/// reason.
pub fn from_rounds(
    head: Head,
    names: &[(String, String)],
    settings: &Settings,
    found: Interleaved,
    gates: &[Limit],
) -> Comparison {
    let (same_head, notes) = (head.clone(), found.notes.clone());
    trueio_run::contained(|| of_rounds(head, names, settings, found, gates)).unwrap_or_else(|reason| {
        let found = Interleaved { notes, ..Interleaved::unmeasured(settings, Outcome::Failed { reason }) };
        of_rounds(same_head, names, settings, found, gates)
    })
}

fn of_rounds(
    head: Head,
    names: &[(String, String)],
    settings: &Settings,
    found: Interleaved,
    gates: &[Limit],
) -> Comparison {
    let mut notes = found.notes;
    let sides: Vec<Side> = names
        .iter()
        .enumerate()
        .map(|(index, (name, detail))| {
            let latency = found.latencies.get(index).cloned().unwrap_or_default();
            side_of(name, detail, &found.rounds, &found.places, index, latency)
        })
        .collect();
    if found.rounds.iter().flatten().any(|sample| sample.shape.has_syncs) {
        notes.push(
            "Latencies are those of the transfers; the sync calls between them are operations of their own and not in them. \
             I/Os a second hold both."
                .to_owned(),
        );
    }
    notes.extend(rare_slow_slices(&found.rounds, &found.answers, names));
    let method = Method::Interleaved {
        seed: settings.seed,
        slice_ns: found.order.slice_ns,
        head_ns: found.order.head_ns,
        round_count: found.rounds.len() as u32,
        round_max: found.round_max,
        look_count: found.looks.0,
        look_max: found.looks.1,
    };
    let part = Part { name: String::new(), sides, answers: found.answers };
    assembled(head, method, vec![part], Vec::new(), notes, gates, found.outcome)
}

/// A comparison of records.
pub fn from_records(head: Head, compared: Compared, gates: &[Limit]) -> Comparison {
    let Compared { parts, differences, notes } = compared;
    assembled(head, Method::Records, parts, differences, notes, gates, Outcome::Complete)
}

fn assembled(
    head: Head,
    method: Method,
    parts: Vec<Part>,
    differences: Vec<trueio_model::Circumstance>,
    notes: Vec<String>,
    gates: &[Limit],
    outcome: Outcome,
) -> Comparison {
    let mut comparison = Comparison {
        format: COMPARISON_FORMAT.to_owned(),
        version: COMPARISON_VERSION,
        started_at: head.started_at,
        command: head.command,
        tool: head.tool,
        method,
        margin: head.margin,
        alpha: ALPHA,
        differences,
        parts,
        notes,
        setting: head.setting,
        gates: Vec::new(),
        outcome,
        answer: None,
    };
    comparison.parts.iter_mut().for_each(withhold_winners);
    let results =
        comparison.parts.iter().flat_map(|part| gates.iter().flat_map(|gate| judge(gate, &comparison, part))).collect();
    comparison.gates = results;
    comparison
}

fn side_of(
    name: &str,
    detail: &str,
    rounds: &[Vec<Sample>],
    places: &[Vec<u32>],
    index: usize,
    latency: Histogram,
) -> Side {
    let samples = || rounds.iter().filter_map(|round| round.get(index));
    let count = samples().count();
    let contradicted = samples().filter(|s| s.verdict == Verdict::Contradicted).count();
    let suspect = samples().filter(|s| s.verdict == Verdict::Suspect).count();
    // One slice in a hundred that is contradicted leaves the side in doubt; one in twenty contradicts it.
    let verdict = if contradicted > 0 && contradicted as f64 >= CONTRADICTED_MIN * count as f64 {
        Verdict::Contradicted
    } else if contradicted > 0 || suspect as f64 > CONTRADICTED_MIN * count as f64 {
        Verdict::Suspect
    } else if !samples().any(|s| s.verdict == Verdict::Supported) {
        Verdict::Unverified
    } else {
        Verdict::Supported
    };
    let mut objections: BTreeMap<&str, (usize, &Objection)> = BTreeMap::new();
    for sample in samples() {
        // Of several ranks, each may have the same objection to a slice.
        let mut seen = BTreeSet::new();
        for found in sample.objections.iter().filter(|found| seen.insert(&found.check)) {
            objections.entry(&found.check).or_insert((0, found)).0 += 1;
        }
    }
    let reasons = objections.iter().map(|(name, (n, why))| format!("{name} ({n} of {count} slices): {}", why.sentence));
    let reasons = reasons.collect();
    let objections = objections.into_values().map(|(_, found)| found.clone()).collect();
    Side {
        name: name.to_owned(),
        detail: detail.to_owned(),
        verdict,
        word: Some(word_of(verdict, samples())),
        level: samples().map(|s| s.level).min().unwrap_or(EvidenceLevel::E0),
        reasons,
        objections,
        figures: Metric::ALL
            .into_iter()
            .filter_map(|metric| Some(Figure { metric, value: typical(samples(), metric)? }))
            .collect(),
        latency,
        percentiles: Vec::new(),
        syscalls: None,
        slices: rounds
            .iter()
            .zip(places)
            .enumerate()
            .filter_map(|(round, (samples, places))| {
                let sample = samples.get(index)?;
                Some(Slice {
                    round: round as u32,
                    place: places.get(index).copied().unwrap_or(0),
                    begin_ns: sample.begin_ns,
                    figures: sample.figures(),
                    verdict: sample.verdict,
                })
            })
            .collect(),
    }
}

/// Makes answers undecided between sides of which one is not confirmed: what was faster may be the disturbance, or no disk.
fn withhold_winners(part: &mut Part) {
    for index in 0..part.answers.len() {
        let side = part.answers[index].side;
        let Some(reason) = part.obstacle_to_a_winner(side, |side| part.sides[side].name.clone()) else { continue };
        let answer = &mut part.answers[index];
        answer.conclusion = trueio_model::Conclusion::CannotTell;
        // An answer without a ratio has its reason already: the check that contradicts a side.
        answer.reason = answer.reason.take().filter(|_| answer.ratio.is_none()).or(Some(reason));
        answer.needs = None;
    }
}

/// Returns the word of a side's slices: the worst one that as many of them have as make a side doubtful.
fn word_of<'a>(verdict: Verdict, samples: impl Iterator<Item = &'a Sample>) -> Mark {
    let marks: Vec<Mark> = samples.map(|sample| sample.mark).collect();
    let is_frequent = |mark: &Mark| {
        let count = marks.iter().filter(|known| *known >= mark).count();
        count > 0 && count as f64 >= CONTRADICTED_MIN * marks.len() as f64
    };
    match verdict {
        Verdict::Supported => Mark::Confirmed,
        Verdict::Unverified => Mark::Unverified,
        // A single slice that is not the disk's leaves the side in doubt.
        Verdict::Suspect | Verdict::Contradicted => {
            let objecting = Mark::ALL.into_iter().rev().filter(|mark| *mark > Mark::Unverified);
            objecting.into_iter().find(is_frequent).unwrap_or(Mark::Disturbed)
        }
    }
}

/// The typical ratio does not move when one slice in thirty stalls; what is moved in all does. Where the two
/// say different things, say both.
fn rare_slow_slices(
    rounds: &[Vec<Sample>],
    answers: &[trueio_model::Answer],
    names: &[(String, String)],
) -> Vec<String> {
    let mut notes = Vec::new();
    for answer in answers.iter().filter(|a| a.metric == Metric::Iops && a.basis == Basis::PairRatios) {
        let Some(ratio) = answer.ratio else { continue };
        let total = |side: usize| rounds.iter().filter_map(|round| round.get(side)).map(|s| s.iops).sum::<f64>();
        let of_all = total(answer.side) / total(0);
        if of_all.is_finite() && of_all > 0.0 && (of_all < ratio.low / 1.05 || of_all > ratio.high * 1.05) {
            let name = names.get(answer.side).map_or("this side", |n| n.0.as_str());
            notes.push(format!(
                "{name}: over all slices together I/Os a second differ by {}, in the typical slice by {}: a few slices are far from the others",
                change(of_all),
                change(ratio.estimate)
            ));
        }
    }
    notes
}
