//! The statements of a record: sentences about device classes, uses, limits, earlier runs and power loss.
//!
//! Each is made by [`Statement::on`] with the loads on which it rests, so none stands next to a figure that is not confirmed. A new
//! statement belongs here, and every output prints it.

use crate::classes::ClassFigure;
use crate::powercut::power_loss_sentence;
use crate::standing::{PastValues, Placement, Standing, joined};
use crate::summary::{Row, name_of_phase, plan_of};
use crate::text::counted;
use crate::verdicts::mark;
use crate::words::percentile_name;
use trueio_model::{
    CheckOutcome, DeviceIdentity, Ground, OpKind, PhaseRecord, RunRecord, Statement, StatementKind, units,
};

/// A figure is at its link's limit from this share of what devices reach on it.
const LINK_SHARE_MIN: f64 = 0.9;
/// Workers that are busy for this share of the time are limited by their processors.
const BUSY_SHARE_MIN: f64 = 0.9;
/// A write rate that falls by this factor, and stays, looks like a full write cache.
const FALL_MIN: f64 = 1.3;

/// Returns the statements of a record: class, earlier runs, uses, limits, power loss.
pub(crate) fn statements(record: &RunRecord, rows: &[Row], standing: &Standing) -> Vec<Statement> {
    let confirmed: Vec<&Placement> = standing.placements.iter().filter(|placement| placement.is_confirmed()).collect();
    let mut all: Vec<Statement> = Vec::new();
    all.extend(class(record, &confirmed));
    all.extend(past(record, &confirmed));
    all.extend(commits(record, rows, &confirmed));
    all.extend(limits(record, &confirmed));
    all.extend(power_loss(record, &confirmed));
    all
}

/// Returns the load of a phase, as a statement rests on it.
pub(crate) fn ground(record: &RunRecord, phase_index: usize) -> Ground {
    let phase = &record.phases[phase_index];
    Ground { load: name_of_phase(record, phase_index), verdict: mark(phase) }
}

fn grounds(record: &RunRecord, placements: &[&Placement]) -> Vec<Ground> {
    placements.iter().map(|placement| ground(record, placement.value.phase_index)).collect()
}

/// Compares the figures with device classes.
fn class(record: &RunRecord, placements: &[&Placement]) -> Option<Statement> {
    let verb = |figure| match figure {
        ClassFigure::SeqRead => Some("reads"),
        ClassFigure::SeqWrite => Some("writes"),
        ClassFigure::RandReadLatency => Some("answers a random read"),
        ClassFigure::Commits => Some("commits"),
        ClassFigure::RandRead | ClassFigure::RandWrite => None,
    };
    // Figures with one position share it.
    let mut groups: Vec<(String, Vec<&'static str>)> = Vec::new();
    let mut rests_on: Vec<&Placement> = Vec::new();
    for placement in placements {
        let Some(verb) = verb(placement.value.figure) else { continue };
        let words = placement.position.words();
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, verbs)) => verbs.push(verb),
            None => groups.push((words, vec![verb])),
        }
        rests_on.push(placement);
    }
    let parts: Vec<String> =
        groups.into_iter().map(|(words, verbs)| format!("{} {words}", joined(&verbs, "and"))).collect();
    Statement::on(StatementKind::Class, capitalised(&format!("{}.", parts.join("; "))), grounds(record, &rests_on))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// Compares the figures with earlier runs of the device of an equal load. A figure is in the range of earlier ones up to a
/// twentieth beyond it.
fn past(record: &RunRecord, placements: &[&Placement]) -> Option<Statement> {
    let known = placements.iter().filter_map(|placement| Some((*placement, placement.past?)));
    let known: Vec<(&Placement, PastValues)> = known.collect();
    let count = known.iter().map(|(_, past)| past.count).max()?;
    let is_within = |value: f64, past: &PastValues| (past.low * 0.95..=past.high * 1.05).contains(&value);
    let outside: Vec<String> = known
        .iter()
        .filter(|(placement, past)| !is_within(placement.value.value, past))
        .map(|(placement, past)| {
            let figure = placement.value.figure;
            let (low, high) = (figure.show(past.low), figure.show(past.high));
            let range = if low == high { low } else { format!("{low} to {high}") };
            format!("{} {}, was {range}", figure.name(), figure.show(placement.value.value))
        })
        .collect();
    let runs = if count == 1 { "The earlier run".to_owned() } else { format!("{count} earlier runs") };
    let all = if placements.len() == known.len() { "all" } else { "these" };
    let names = || joined(&known.iter().map(|(placement, _)| placement.value.figure.name()).collect::<Vec<_>>(), "and");
    // The history has then found them by path and machine.
    let is_known = record.targets.iter().all(|target| !DeviceIdentity::of(target).is_empty());
    let of = if is_known { "of this device" } else { "at this path of this machine (the device has no identity)" };
    let text = match (outside.is_empty(), outside.len() == known.len()) {
        (true, _) if all == "all" => format!("{runs} {of}: all confirmed figures are within their range."),
        (true, _) => format!("{runs} {of}: within their range: {}.", names().to_lowercase()),
        (false, true) => format!("{runs} {of}: {}.", outside.join("; ")),
        (false, false) => format!("{runs} {of}: {}; the others are within their range.", outside.join("; ")),
    };
    let rests_on: Vec<&Placement> = known.iter().map(|(placement, _)| *placement).collect();
    Statement::on(StatementKind::Past, text, grounds(record, &rests_on))
}

/// Returns what earlier cuts of power show of the commits that were measured.
fn power_loss(record: &RunRecord, placements: &[&Placement]) -> Option<Statement> {
    let found = record.power_loss.as_deref()?;
    let commits = placements.iter().find(|placement| placement.value.figure == ClassFigure::Commits)?;
    let rests_on = vec![ground(record, commits.value.phase_index)];
    Statement::on(StatementKind::PowerLoss, power_loss_sentence(found), rests_on)
}

/// Returns what limits the loads, in their order.
fn limits(record: &RunRecord, placements: &[&Placement]) -> Vec<Statement> {
    let mut limits = Vec::new();
    for (phase_index, phase) in record.phases.iter().enumerate() {
        let placement = placements.iter().find(|placement| placement.value.phase_index == phase_index);
        // A limit of a control group and heat are findings: their figures are not confirmed.
        let sentences = [
            placement.and_then(|placement| at_link(placement)),
            busy_workers(record, phase_index, phase),
            falling_writes(phase),
            placement.and_then(|placement| one_at_a_time(phase, placement)),
        ];
        let on = |sentence| Statement::on(StatementKind::Limit, sentence, vec![ground(record, phase_index)]);
        limits.extend(sentences.into_iter().flatten().filter_map(on));
    }
    limits
}

fn at_link(placement: &Placement) -> Option<String> {
    let link = placement.link.as_ref()?;
    (placement.value.value >= link.reached_bytes_per_s * LINK_SHARE_MIN).then(|| {
        format!(
            "The link {} limits it: {} of {} (devices reach {} on it).",
            link.name,
            units::format_bandwidth(placement.value.value),
            units::format_bandwidth(link.bytes_per_s),
            units::format_bandwidth(link.reached_bytes_per_s),
        )
    })
}

fn one_at_a_time(phase: &PhaseRecord, placement: &Placement) -> Option<String> {
    match placement.value.figure {
        // By Little's law the mean, and not the median that is placed.
        ClassFigure::RandReadLatency => {
            let ops = phase.jobs.iter().flat_map(|job| &job.ops);
            let mean = ops.filter(|op| op.op == OpKind::Read).find_map(|op| op.latency.total.mean_ns())?;
            Some(format!(
                "One read at a time: the mean latency of {} limits the rate, not the bandwidth.",
                units::format_duration_ns(mean.round() as u64)
            ))
        }
        ClassFigure::Commits => Some(format!(
            "One commit at a time: a commit takes {} on average, and the next one waits for it.",
            units::format_duration_ns((1e9 / placement.value.value) as u64)
        )),
        _ => None,
    }
}

fn busy_workers(record: &RunRecord, phase_index: usize, phase: &PhaseRecord) -> Option<String> {
    let workers: u32 =
        phase.jobs.iter().filter_map(|job| plan_of(record, phase_index, job)).map(|plan| plan.workers).sum();
    let time_ns = phase.elapsed_ns as f64 * f64::from(workers);
    let cpu_ns = phase.worker_cpu.user_ns as f64 + phase.worker_cpu.system_ns as f64;
    let share = if time_ns > 0.0 { cpu_ns / time_ns } else { 0.0 };
    (share >= BUSY_SHARE_MIN).then(|| {
        format!(
            "The processor limits it: {} for {:.0} % of the time; more workers may be faster.",
            if workers == 1 {
                "the worker was busy".to_owned()
            } else {
                format!("{} were busy", counted(u64::from(workers), "worker"))
            },
            (share * 100.0).min(100.0)
        )
    })
}

/// Finds a fall of the write rate that lasts. Each side of it has a quarter of the intervals or more.
fn falling_writes(phase: &PhaseRecord) -> Option<String> {
    let job = phase.jobs.first().filter(|_| phase.jobs.len() == 1)?;
    let rows: Vec<_> = job.series.iter().filter(|row| row.span_ns > 0).collect();
    let rates: Vec<f64> = rows.iter().map(|row| row.write_bytes as f64 / row.span_ns as f64 * 1e9).collect();
    let is_writing = rows.iter().all(|row| row.read_count == 0) && rates.len() >= 20;
    let median = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    if !is_writing {
        return None;
    }
    // The step that explains most of the variance of the logarithms: dips weigh little.
    let logs: Vec<f64> = rates.iter().map(|rate| rate.max(1.0).ln()).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let gain = |at: usize| (mean(&logs[..at]) - mean(&logs[at..])) * (at as f64 * (logs.len() - at) as f64).sqrt();
    let quarter = rates.len() / 4;
    let at = (quarter..rates.len() - quarter).max_by(|a, b| gain(*a).total_cmp(&gain(*b)))?;
    let (before, after) = (median(&rates[..at]), median(&rates[at..]));
    // Nearly every interval before is faster than nearly every one after.
    let slow_before = rates[..at].iter().filter(|rate| **rate < (before * after).sqrt()).count();
    let fast_after = rates[at..].iter().filter(|rate| **rate > (before * after).sqrt()).count();
    let is_clear = slow_before * 10 <= at && fast_after * 10 <= rates.len() - at;
    (after > 0.0 && before / after >= FALL_MIN && is_clear).then(|| {
        format!(
            "The write rate fell from {} to {} after {} and stayed there: a full write cache looks like that.",
            units::format_bandwidth(before),
            units::format_bandwidth(after),
            units::format_duration_ns(rows[at - 1].end_ns)
        )
    })
}

/// Returns true if no flush could be counted because the disk declares no volatile write cache.
fn declares_no_cache(phase: &PhaseRecord) -> bool {
    let is_declared = |check: &trueio_model::Check| {
        check.name == "flushes" && check.outcome == CheckOutcome::NotSeen && check.source == "queue/write_cache"
    };
    phase.checks.iter().any(is_declared)
}

/// Returns what the rate of durable commits is good for.
fn commits(record: &RunRecord, rows: &[Row], placements: &[&Placement]) -> Option<Statement> {
    let commits = placements.iter().find(|placement| placement.value.figure == ClassFigure::Commits)?;
    let sync = rows.iter().find(|row| row.phase_index == commits.value.phase_index && row.op == OpKind::Sync);
    let mut text = format!(
        "A database with one writer that waits for each commit makes at most {} commits per second",
        units::format_count(commits.value.value.round() as u64)
    );
    if let Some(p99) = sync.and_then(|row| row.quantiles[1].map(|q| q.value_ns)) {
        let name = percentile_name(0.99);
        text.push_str(&format!(" (flush {name} {})", units::format_duration_ns(p99)));
        // Source 81 of classes.toml.
        let limit = 10_000_000;
        let word = if p99 < limit { "met" } else { "missed" };
        text.push_str(&format!("; etcd's guideline of less than 10 ms at {name} is {word}"));
    }
    text.push('.');
    if record.phases.get(commits.value.phase_index).is_some_and(declares_no_cache) {
        text.push_str(
            " That a power cut loses none of them is declared by the device (no volatile write cache), not proved.",
        );
    }
    Statement::on(StatementKind::Database, text, grounds(record, &[commits]))
}
