//! The phases of a page: plots, evidence, counters, plan.

use super::cleaned;
use super::table::TableRow;
use crate::badge::Badge;
use crate::latency_parts::{REST, phase_parts};
use crate::plot::Shade;
use crate::plot::job::{bandwidth, latency, percentiles, steady_state};
use crate::plot::places::places;
use crate::summary::{Row, manner_of, name_of, name_of_phase, plan_of, shape_of};
use crate::text::{UNKNOWN, clean, figure};
use crate::verdicts::outcome_words;
use crate::words::{is_same, outcome_sentence};
use serde::Serialize;
use trueio_model::{
    AnsweredPhase, Cause, Check, CheckOutcome, JobRecord, PhaseRecord, RunAnswer, RunRecord, Statement, StatementKind,
    units,
};

/// A phase of the page.
#[derive(Serialize)]
pub(super) struct Phase {
    anchor: String,
    name: String,
    mark: Badge,
    level: String,
    /// The finding that determines its word, in a few words.
    brief: String,
    pub(super) is_shaded: bool,
    outcome: Option<String>,
    /// False: the page has as many plots as it may have.
    is_plotted: bool,
    /// Plots of the rounds before the measured part, and of the ranks.
    rounds: Vec<String>,
    rows: Vec<TableRow>,
    limits: Vec<String>,
    /// Where the time of an I/O went, and what the rest is; empty without a trace.
    parts: Vec<String>,
    pub(super) jobs: Vec<Job>,
    pub(super) checks: Vec<CheckRow>,
    /// Checks with one result in every phase, which are shown once.
    pub(super) shared_check_count: usize,
    counters: Vec<Vec<String>>,
    residency: Vec<Vec<String>>,
}

/// A job of a phase: its description, plots and plan.
#[derive(Serialize)]
pub(super) struct Job {
    name: String,
    about: String,
    plots: Vec<String>,
    pub(super) plan: Vec<PlanRow>,
}

/// An option of a plan.
#[derive(Serialize, PartialEq)]
pub(super) struct PlanRow {
    name: String,
    value: String,
    origin: String,
}

/// A check and its result.
#[derive(Serialize, PartialEq)]
pub(super) struct CheckRow {
    name: String,
    outcome: String,
    class: &'static str,
    source: String,
    expected: String,
    found: String,
    sentence: String,
}

impl Phase {
    pub(super) fn of(record: &RunRecord, index: usize, rows: &[Row], answer: &RunAnswer, is_plotted: bool) -> Self {
        let (phase, judgement) = (&record.phases[index], &answer.phases[index]);
        let shades = shades(phase);
        let name = name_of_phase(record, index);
        let is_of_phase = |one: &&Statement| one.rests_on().iter().any(|ground| ground.load == name);
        let limits = super::of_kind(&answer.statements, StatementKind::Limit).filter(is_of_phase);
        Phase {
            anchor: format!("phase-{}", index + 1),
            name: cleaned(&name),
            mark: Badge::of(judgement.verdict),
            level: judgement.level.to_string(),
            brief: cleaned(&judgement.reason()),
            is_shaded: !shades.is_empty(),
            outcome: outcome_sentence(&phase.outcome).map(|s| cleaned(&s)),
            rounds: phase
                .steady_state
                .iter()
                .filter(|_| judgement.is_shown)
                .flat_map(steady_state)
                .chain(crate::ranks::heat_map(record, index))
                .chain(places(phase))
                .filter(|_| is_plotted)
                .collect(),
            is_plotted,
            rows: rows
                .iter()
                .filter(|row| row.phase_index == index)
                .map(|row| TableRow::of(record, phase, row, &shades))
                .collect(),
            limits: limits.map(|limit| cleaned(limit.sentence())).collect(),
            parts: {
                let parts = phase_parts(phase);
                let rest = (!parts.is_empty()).then(|| REST.to_owned());
                parts.into_iter().chain(rest).map(|sentence| cleaned(&sentence)).collect()
            },
            jobs: phase.jobs.iter().map(|job| Job::of(record, judgement, (index, job), is_plotted, &shades)).collect(),
            checks: judgement.checks.iter().map(CheckRow::of).collect(),
            shared_check_count: 0,
            counters: counters(phase),
            residency: residency(phase),
        }
    }
}

/// Returns the spans of a phase in which it was disturbed.
pub(super) fn shades(phase: &PhaseRecord) -> Vec<Shade> {
    let shades = phase.disturbances.iter().filter_map(|span| {
        let (class, label) = match span.cause {
            Cause::Neighbour => ("neighbour", "others"),
            Cause::Tool => ("processor", "waited"),
            Cause::Device => ("throttle", "throttled"),
            _ => return None,
        };
        let (from, until) = (span.from_ns as f64 / 1e9, span.until_ns as f64 / 1e9);
        let title = cleaned(&format!("{from:.1} to {until:.1} s: {}", span.what));
        Some(Shade { from, until, class, label: label.to_owned(), title })
    });
    merged(shades.collect())
}

/// Joins shades of one kind that overlap, such as those of several ranks: drawn over each other they would hide the curves.
fn merged(mut shades: Vec<Shade>) -> Vec<Shade> {
    shades.sort_by(|a, b| a.class.cmp(b.class).then(a.from.total_cmp(&b.from)));
    let mut joined: Vec<Shade> = Vec::new();
    for shade in shades {
        match joined.last_mut().filter(|last| last.class == shade.class && shade.from < last.until) {
            Some(last) => {
                last.until = last.until.max(shade.until);
                if !last.title.contains(&shade.title) {
                    last.title = format!("{}\n{}", last.title, shade.title);
                }
            }
            None => joined.push(shade),
        }
    }
    joined
}

impl Job {
    fn of(
        record: &RunRecord,
        judgement: &AnsweredPhase,
        (index, job): (usize, &JobRecord),
        is_plotted: bool,
        shades: &[Shade],
    ) -> Self {
        let plan = plan_of(record, index, job);
        let shape = plan.map(shape_of).filter(|shape| !is_same(shape, &name_of(record, index, job)));
        let depth = job.achieved_depth.filter(|_| judgement.is_shown);
        let about =
            [shape, plan.map(manner_of), depth.map(|depth| format!("{} I/Os in flight on average", figure(depth)))];
        let plots = [bandwidth(job, shades), latency(job, shades), percentiles(job)];
        Job {
            name: cleaned(&name_of(record, index, job)),
            about: cleaned(&about.into_iter().flatten().collect::<Vec<_>>().join("; ")),
            plots: plots.into_iter().flatten().filter(|_| is_plotted && judgement.is_shown).collect(),
            plan: plan.map_or_else(Vec::new, |plan| {
                let values = plan.values.iter().map(|value| PlanRow {
                    name: cleaned(&value.name),
                    value: cleaned(&value.value),
                    origin: cleaned(&value.origin.to_string()),
                });
                values.collect()
            }),
        }
    }
}

impl CheckRow {
    /// Returns true if the check has no objection.
    pub(super) fn is_calm(&self) -> bool {
        matches!(self.class, "ok" | "quiet")
    }

    fn of(check: &Check) -> Self {
        let class = match check.outcome {
            CheckOutcome::Passed => "ok",
            CheckOutcome::Suspect => "warn",
            CheckOutcome::Contradicted => "bad",
            CheckOutcome::NotSeen | CheckOutcome::NotApplicable => "quiet",
        };
        CheckRow {
            name: cleaned(&check.name),
            outcome: outcome_words(check),
            class,
            source: cleaned(&check.source),
            expected: cleaned(&check.expected),
            found: cleaned(&check.found),
            sentence: cleaned(&check.sentence),
        }
    }
}

/// Returns the disks' counters, one row per disk.
fn counters(phase: &PhaseRecord) -> Vec<Vec<String>> {
    let count = units::format_count;
    phase
        .devices
        .iter()
        .map(|device| {
            let (m, b) = (&device.measured, &device.baseline);
            let idle = if device.baseline_ns == 0 {
                "not measured".to_owned()
            } else {
                let moved = b.read_bytes.saturating_add(b.write_bytes);
                format!("{} in {}", units::format_bytes(moved), units::format_duration_ns(device.baseline_ns))
            };
            vec![
                cleaned(&device.disk),
                format!("{} in {} requests", units::format_bytes(m.read_bytes), count(m.read_count)),
                format!("{} in {} requests", units::format_bytes(m.write_bytes), count(m.write_count)),
                m.flush_count.map_or_else(|| "not counted".to_owned(), count),
                format!("{} ms of {}", count(m.busy_ms), units::format_duration_ns(device.measured_ns)),
                idle,
            ]
        })
        .collect()
}

/// Returns the targets' pages in the page cache, one row per path.
fn residency(phase: &PhaseRecord) -> Vec<Vec<String>> {
    let shown = |r: &Option<trueio_model::Residency>| match r {
        Some(r) => format!(
            "{} of {} pages ({})",
            units::format_count(r.cached_pages),
            units::format_count(r.region_pages),
            clean(&r.source)
        ),
        None => UNKNOWN.to_owned(),
    };
    phase.residency.iter().map(|(path, before, after)| vec![cleaned(path), shown(before), shown(after)]).collect()
}
