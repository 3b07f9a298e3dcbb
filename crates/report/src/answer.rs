//! The answer of a record: headline, figures, statements, findings, next steps.
//!
//! Every output takes its sentences from here, and only lays them out. A figure is the same in all of them, and a sentence about a
//! class, a database, a limit or a winner is a [`trueio_model::Statement`], which rests on confirmed figures.

use crate::classes::ClassFigure;
use crate::limits::judged;
use crate::standing::{PastRun, Placement, Position, Standing, only_disk, standing, with_article};
use crate::statements::{ground, statements};
use crate::summary::{Interval, Row, summary};
use crate::verdicts::{Mark, Reason, accept_hint, conclusion, levels, mark, reasons, row_words};
use crate::words::{MEMORY_LATENCY, not_seen, notes};
use trueio_model::{
    AnsweredFigure, AnsweredFinding, AnsweredPhase, Decision, Estimate, FoundDetail, FoundLoad, OpKind, PhaseRecord,
    Quantity, RunAnswer, RunRecord, Statement, StatementKind, Verdict, shown_checks, units, worst,
};

/// Answers a record. `past` are earlier runs of the same device, in any order.
pub fn answer(record: &RunRecord, past: &[PastRun]) -> RunAnswer {
    answer_of(record, &summary(record), &standing(record, past))
}

/// The same, of parts that an output needs, too.
pub(crate) fn answer_of(record: &RunRecord, rows: &[Row], standing: &Standing) -> RunAnswer {
    let reasons = reasons(record);
    let (decision, headline) = headline(record, standing, &reasons);
    let mut next_steps: Vec<String> = Vec::new();
    for reason in &reasons {
        if !next_steps.contains(&reason.next_step) {
            next_steps.push(reason.next_step.clone());
        }
    }
    let figures: Vec<AnsweredFigure> = rows.iter().flat_map(|row| figures(record, row)).collect();
    let findings: Vec<AnsweredFinding> = reasons.iter().map(finding).collect();
    RunAnswer {
        decision,
        headline,
        phases: record.phases.iter().map(AnsweredPhase::of).collect(),
        limits: judged(record, rows, &figures, &findings),
        figures,
        statements: statements(record, rows, standing),
        findings,
        next_steps,
        evidence: conclusion(record),
        levels: levels(record),
        accept_hint: accept_hint(record),
        not_checked: not_seen(record),
        notes: notes(record),
    }
}

fn finding(reason: &Reason) -> AnsweredFinding {
    let details = reason.findings.iter().flat_map(|finding| {
        finding.sentences.iter().map(|(loads, sentence)| FoundDetail {
            check: finding.check.clone(),
            outcome: finding.outcome.clone(),
            loads: loads.clone(),
            sentence: sentence.clone(),
        })
    });
    AnsweredFinding {
        cause: reason.cause,
        verdict: reason.mark,
        sentence: reason.headline(),
        extent: reason.extent(),
        loads: reason.found.clone(),
        details: details.collect(),
        next_step: reason.next_step.clone(),
    }
}

/// Returns the figures of a row.
fn figures(record: &RunRecord, row: &Row) -> Vec<AnsweredFigure> {
    let phase = &record.phases[row.phase_index];
    let load = phase.jobs.get(row.job_index).map_or_else(String::new, |job| job.name.clone());
    let of = |quantity: Quantity, value: Option<f64>, (low, high): (Option<f64>, Option<f64>)| AnsweredFigure {
        load: load.clone(),
        operation: Some(row.op),
        name: quantity.name().to_owned(),
        quantity: Some(quantity),
        value: value.filter(|value| value.is_finite()),
        unit: quantity.unit().to_owned(),
        low,
        high,
        sample_count: row.shown_io_count().unwrap_or(0),
        verdict: mark(phase),
        cause: cause(phase),
        is_shown: !row.is_withheld,
    };
    let ends = |estimate: Option<Estimate>, factor: f64| {
        (estimate.map(|one| one.low * factor), estimate.map(|one| one.high * factor))
    };
    let mut all = vec![of(Quantity::Iops, row.ios_per_s, ends(row.ios_per_s_interval, 1.0))];
    if row.op != OpKind::Sync {
        // The mean size of its I/Os is known exactly.
        let size = row.bytes_per_s.zip(row.ios_per_s).map(|(bytes, ios)| bytes / ios).filter(|size| size.is_finite());
        let interval = size.map_or((None, None), |size| ends(row.ios_per_s_interval, size));
        all.push(of(Quantity::Bandwidth, row.bytes_per_s, interval));
    }
    // With a pace it would be from the submission, and the percentiles are from the time each I/O was due.
    if !row.is_from_intended {
        all.push(of(Quantity::Mean, row.mean_ns, ends(row.mean_latency, 1.0)));
    }
    for (index, quantity) in [Quantity::P50, Quantity::P99, Quantity::P999].into_iter().enumerate() {
        let value = row.quantiles[index].map(|quantile| quantile.value_ns as f64);
        let interval = match row.intervals[index] {
            Interval::Given(low, high) => (Some(low as f64), Some(high as f64)),
            Interval::AtLeast(low) => (Some(low as f64), None),
            Interval::Needs(_) | Interval::Unknown => (None, None),
        };
        all.push(of(quantity, value, interval));
    }
    all.push(of(Quantity::Max, row.latency_ns_max.map(|ns| ns as f64), (None, None)));
    if row.has_memory_latency {
        let is_latency =
            |figure: &&mut AnsweredFigure| !matches!(figure.quantity, Some(Quantity::Iops | Quantity::Bandwidth));
        for figure in all.iter_mut().filter(is_latency) {
            (figure.verdict, figure.is_shown) = (Mark::NotTheDisk, false);
            figure.cause = MEMORY_LATENCY.to_owned();
        }
    }
    all
}

/// Returns why a phase is not confirmed, in a few words.
fn cause(phase: &PhaseRecord) -> String {
    let checks = shown_checks(phase);
    let found = worst(&checks).filter(|_| phase.verdict >= Verdict::Suspect);
    found.map_or_else(String::new, |check| check.brief.clone())
}

/// Returns the answer to the question of the command, and its decision for a baseline.
fn headline(record: &RunRecord, standing: &Standing, reasons: &[Reason]) -> (Option<Decision>, String) {
    let count = record.phases.len();
    if count == 0 {
        return (None, "Nothing was measured.".to_owned());
    }
    let open: Vec<&PhaseRecord> = record.phases.iter().filter(|phase| mark(phase) != Mark::Confirmed).collect();
    if record.kind != "baseline" {
        return (None, counted_words(&open, count));
    }
    let (decision, text) = decided(record, standing, &open, reasons);
    let text = format!("{}: {text}.", decision.word());
    (Some(decision), [Some(text), commits(record, standing)].into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Returns how many loads are confirmed, and the worst of the others.
fn counted_words(open: &[&PhaseRecord], count: usize) -> String {
    let worst = open.iter().rev().max_by_key(|phase| mark(phase));
    match (worst, count) {
        (None, 1) => "The load is confirmed.".to_owned(),
        (None, count) => format!("All {count} loads are confirmed."),
        (Some(phase), 1) => format!("The load is {}.", row_words(phase)),
        (Some(phase), count) => {
            let confirmed = count - open.len();
            let of = if confirmed == 1 { "is" } else { "are" };
            format!("{confirmed} of {count} loads {of} confirmed; {} is {}.", phase.name, row_words(phase))
        }
    }
}

/// Returns whether the disk is as fast as it should be, and the sentence without its full stop.
fn decided(record: &RunRecord, standing: &Standing, open: &[&PhaseRecord], reasons: &[Reason]) -> (Decision, String) {
    if let Some(failed) = open.iter().find(|phase| mark(phase) == Mark::Failed) {
        return (Decision::No, format!("{} {}", failed.name, row_words(failed)));
    }
    let confirmed: Vec<&Placement> = standing.placements.iter().filter(|placement| placement.is_confirmed()).collect();
    let reads: Vec<&Placement> = confirmed.iter().copied().filter(|one| READS.contains(&one.value.figure)).collect();
    let is_most_open = open.len() * 2 > record.phases.len();
    let claimed = class_of(record, &confirmed, &reads).filter(|_| !is_most_open);
    claimed.unwrap_or_else(|| {
        // The sentence of an earlier version, which has no short words, stands below.
        let is_short = |found: &&FoundLoad| found.brief.chars().count() <= BRIEF_MAX;
        let found = reasons.iter().flat_map(|reason| &reason.found).find(is_short);
        let why = match (found, reasons.is_empty()) {
            (Some(found), _) => format!(" ({}: {})", found.load, found.brief),
            (None, true) => " (no counter of a disk shows the I/O)".to_owned(),
            (None, false) => String::new(),
        };
        let loads = match (open.len(), record.phases.len()) {
            (count, all) if count == all => "no load is confirmed".to_owned(),
            (0, _) if !reads.is_empty() => "the latency of one read at a time does not decide it".to_owned(),
            (0, _) => "no load can be compared with device classes".to_owned(),
            (1, all) => format!("1 of {all} loads is not confirmed"),
            (count, all) => format!("{count} of {all} loads are not confirmed"),
        };
        let text = if open.is_empty() { loads } else { format!("{loads}{why}") };
        (Decision::CannotTell, text)
    })
}

/// The longest words of a finding that the headline repeats, in characters.
const BRIEF_MAX: usize = 60;

/// The figures of reads: without one of them there is no answer.
const READS: [ClassFigure; 3] = [ClassFigure::SeqRead, ClassFigure::RandReadLatency, ClassFigure::RandRead];

/// Compares the confirmed figures with the class that the disk should have; `None` if they do not permit it.
fn class_of(record: &RunRecord, confirmed: &[&Placement], reads: &[&Placement]) -> Option<(Decision, String)> {
    let rests_on = |placements: &[&Placement]| {
        placements.iter().map(|placement| ground(record, placement.value.phase_index)).collect::<Vec<_>>()
    };
    let state = |decision: Decision, text: String, on: &[&Placement]| {
        let made = Statement::on(StatementKind::Class, text, rests_on(on))?;
        Some((decision, made.sentence().to_owned()))
    };
    // The latency of one read at a time is that of many disks.
    if reads.iter().all(|one| one.value.figure == ClassFigure::RandReadLatency) {
        return None;
    }
    if let Some(group) = expected_group(record) {
        let slow: Vec<&Placement> = confirmed.iter().copied().filter(|one| one.is_worse_than(group)).collect();
        if let Some(first) = slow.first() {
            let more = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
            let text = format!(
                "slower than {}: {} {}{more}",
                with_article(group),
                first.value.figure.name().to_lowercase(),
                first.value.figure.show(first.value.value)
            );
            return state(Decision::No, text, &slow);
        }
        return state(Decision::Yes, format!("as fast as {}", with_article(group)), reads);
    }
    // The bandwidth first: readers compare it.
    let first = reads.first()?;
    let (decision, text) = match &first.position {
        Position::Within(_) => (Decision::Yes, first.position.words().replacen("like ", "as fast as ", 1)),
        Position::WorseThan(_) => (Decision::No, first.position.words()),
        Position::Between(..) | Position::BetterThan(_) => (Decision::Yes, first.position.words()),
    };
    state(decision, format!("its reads are {text}"), &[first])
}

/// Returns the group of the disk, as far as its facts show it: what a hypervisor presents may be anything.
fn expected_group(record: &RunRecord) -> Option<&'static str> {
    let disk = only_disk(record)?;
    if record.environment.hypervisor.value.is_some() {
        return None;
    }
    match disk.transport.value.as_ref()?.to_string().as_str() {
        "nvme" => Some("NVMe SSD"),
        "sata" if disk.is_rotational.value == Some(true) => Some("disk"),
        "sata" if disk.is_rotational.value == Some(false) => Some("SATA SSD"),
        _ => None,
    }
}

/// Returns the rate of durable commits, or why it is not stated; `None` if it was not measured.
fn commits(record: &RunRecord, standing: &Standing) -> Option<String> {
    if let Some(withheld) = standing.withheld.iter().find(|withheld| withheld.figure == ClassFigure::Commits) {
        return Some(format!("Durable commits: {}.", withheld.reason));
    }
    let commits = standing.of(ClassFigure::Commits)?;
    let phase = &record.phases[commits.value.phase_index];
    Some(match mark(phase) {
        Mark::Confirmed => {
            format!("Durable commits: {} per second.", units::format_count(commits.value.value.round() as u64))
        }
        _ => format!("Durable commits: {}.", row_words(phase)),
    })
}
