//! A record as one self-contained HTML page: style, plots and the record itself are in it.
//!
//! No script, font or image is loaded, so it opens without a network. The template is `page.html`; every text
//! from the record is escaped when it is inserted, and the plots are created here. The record is at the end
//! as JSON, with `<` written as `\u003c`, so that no text in it can become markup.

use crate::facts::{FactTable, machine_table, target_tables};
use crate::plot;
use crate::priorities::priorities;
use crate::summary::{Row, Scale, manner_of, plan_of, shape_of, summary};
use crate::syscalls::syscalls;
use crate::text::{UNKNOWN, clean, figure};
use crate::verdicts::{accept_hint, levels, outcome_words};
use crate::words::{
    failed_ios, footnotes, machine_lines, not_seen, notes, outcome_sentence, ruler_sentences, steady_states,
    target_lines, verification,
};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use trueio_model::{Check, CheckOutcome, PhaseRecord, RunRecord, Verdict, units};

pub(crate) const PAGE: &str = include_str!("page.html");

/// The style sheet of every page, with the plots' colours.
pub(crate) fn style() -> &'static str {
    let inside = PAGE.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
    inside.map_or("", |(style, _)| style)
}

/// Renders one of this program's page templates; every text is escaped when it is inserted.
pub(crate) fn render(name: &str, template: &str, page: &impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // A line with only a block tag leaves no empty line.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    let template = environment.template_from_named_str(name, template);
    // The templates are part of this program, and a test renders all of each.
    template.and_then(|t| t.render(Serde(page))).unwrap_or_else(|e| unreachable!("the page's template is valid: {e:#}"))
}

/// Renders the record as a self-contained HTML page.
pub fn html(record: &RunRecord) -> String {
    let rows = summary(record);
    let scale = Scale::of(&rows);
    let phases: Vec<Phase> =
        record.phases.iter().enumerate().map(|(i, phase)| Phase::of(record, phase, i, &rows, scale)).collect();
    let facts: Vec<Named> = record
        .targets
        .iter()
        .flat_map(target_lines)
        .chain(machine_lines(&record.environment))
        .map(|(name, text)| Named { name: name.to_owned(), text: cleaned(&text) })
        .collect();
    let paths: Vec<&str> = record.targets.iter().map(|t| t.path.as_str()).collect();
    let page = Page {
        title: cleaned(&format!("{} {}", record.tool.name, record.kind)),
        paths: cleaned(&paths.join(", ")),
        started: cleaned(&record.started_at.replace('T', " ").replace('Z', " UTC")),
        id: cleaned(&record.id),
        command: cleaned(&record.command.join(" ")),
        outcome: outcome_sentence(&record.outcome).map(|s| cleaned(&s)),
        facts,
        unit: scale.unit,
        phases,
        footnotes: footnotes(record, &rows).iter().chain(&accept_hint(record)).map(|s| cleaned(s)).collect(),
        levels: levels(record),
        sections: sections(record),
        sources: record.targets.iter().flat_map(target_tables).chain([machine_table(&record.environment)]).collect(),
        // In JSON `<` occurs only inside strings, where its escape has the same meaning.
        record: serde_json::to_string(record).unwrap_or_default().replace('<', "\\u003c"),
    };
    render("page.html", PAGE, &page)
}

fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

/// The template's variables.
#[derive(Serialize)]
struct Page {
    title: String,
    paths: String,
    started: String,
    id: String,
    command: String,
    outcome: Option<String>,
    facts: Vec<Named>,
    unit: &'static str,
    phases: Vec<Phase>,
    footnotes: Vec<String>,
    levels: Option<String>,
    sections: Vec<Section>,
    sources: Vec<FactTable>,
    record: String,
}

/// A name and a text.
#[derive(Serialize)]
struct Named {
    name: String,
    text: String,
}

/// A heading and its items.
#[derive(Serialize)]
struct Section {
    heading: &'static str,
    items: Vec<SectionItem>,
}

#[derive(Serialize)]
struct SectionItem {
    text: String,
    sub: Vec<String>,
}

/// Returns the sections about the whole record; sections without items are omitted.
fn sections(record: &RunRecord) -> Vec<Section> {
    let plain = |texts: Vec<String>| texts.into_iter().map(|t| (t, Vec::new())).collect::<Vec<_>>();
    [
        ("Failed I/Os", failed_ios(record)),
        ("Verification", verification(record)),
        ("By priority", plain(priorities(record))),
        ("Steady state", plain(steady_states(record))),
        ("System calls", syscalls(record)),
        ("Not checked", plain(not_seen(record))),
        ("Notes", plain(notes(record))),
        ("Cost of the tool itself", plain(ruler_sentences(record))),
    ]
    .into_iter()
    .filter(|(_, items)| !items.is_empty())
    .map(|(heading, items)| Section {
        heading,
        items: items
            .into_iter()
            .map(|(text, sub)| SectionItem { text: cleaned(&text), sub: sub.iter().map(|s| cleaned(s)).collect() })
            .collect(),
    })
    .collect()
}

/// A phase of the page.
#[derive(Serialize)]
struct Phase {
    anchor: String,
    name: String,
    verdict: String,
    level: String,
    outcome: Option<String>,
    /// Plots of the rounds before the measured part.
    rounds: Vec<String>,
    rows: Vec<TableRow>,
    /// Reasons of a phase that is not supported: the check's name and its sentence.
    reasons: Vec<Named>,
    jobs: Vec<Job>,
    checks: Vec<CheckRow>,
    counters: Vec<Vec<String>>,
    residency: Vec<Vec<String>>,
}

/// A row of the summary table, as text.
#[derive(Serialize)]
struct TableRow {
    label: String,
    bandwidth: String,
    rate: String,
    latencies: Vec<Latency>,
    max: String,
    cpu: String,
    count: String,
    errors: String,
}

/// A percentile and its interval; the interval is empty if the sample does not support it.
#[derive(Serialize)]
struct Latency {
    value: String,
    interval: String,
}

/// A job of a phase: its description and plots.
#[derive(Serialize)]
struct Job {
    name: String,
    shape: String,
    manner: String,
    depth: String,
    plots: Vec<String>,
    values: Vec<PlanRow>,
}

#[derive(Serialize)]
struct PlanRow {
    name: String,
    value: String,
    origin: String,
}

#[derive(Serialize)]
struct CheckRow {
    name: String,
    outcome: &'static str,
    class: &'static str,
    source: String,
    expected: String,
    found: String,
    sentence: String,
}

impl Phase {
    fn of(record: &RunRecord, phase: &PhaseRecord, index: usize, rows: &[Row], scale: Scale) -> Self {
        let is_withheld = phase.verdict == Verdict::Contradicted;
        let mut reasons: Vec<Named> = phase
            .checks
            .iter()
            .filter(|check| check.objects())
            .map(|check| Named {
                name: cleaned(&format!("{} by {}", outcome_words(check), check.name)),
                text: cleaned(&crate::words::check_sentence(check)),
            })
            .collect();
        if reasons.is_empty() && phase.verdict >= Verdict::Suspect {
            let text = "the record does not contain the check that found it".to_owned();
            reasons.push(Named { name: phase.verdict.to_string(), text });
        }
        Phase {
            anchor: format!("phase-{}", index + 1),
            name: cleaned(&phase.name),
            verdict: phase.verdict.to_string(),
            level: phase.level.to_string(),
            outcome: outcome_sentence(&phase.outcome).map(|s| cleaned(&s)),
            rounds: phase.steady_state.iter().flat_map(plot::steady_state).collect(),
            rows: rows.iter().filter(|r| r.phase_index == index).map(|r| TableRow::of(r, scale)).collect(),
            reasons,
            jobs: phase
                .jobs
                .iter()
                .map(|job| {
                    let plan = plan_of(record, index, job);
                    let shape = plan.map(|p| cleaned(&shape_of(p))).unwrap_or_default();
                    Job {
                        shape: if crate::words::is_same(&shape, &job.name) { String::new() } else { shape },
                        name: cleaned(&job.name),
                        manner: plan.map(|p| cleaned(&manner_of(p))).unwrap_or_default(),
                        depth: job.achieved_depth.filter(|_| !is_withheld).map(figure).unwrap_or_default(),
                        plots: [plot::bandwidth(job), plot::latency(job), plot::percentiles(job)]
                            .into_iter()
                            .flatten()
                            .filter(|_| !is_withheld)
                            .collect(),
                        values: plan.map_or_else(Vec::new, |p| {
                            p.values
                                .iter()
                                .map(|v| PlanRow {
                                    name: cleaned(&v.name),
                                    value: cleaned(&v.value),
                                    origin: cleaned(&v.origin.to_string()),
                                })
                                .collect()
                        }),
                    }
                })
                .collect(),
            checks: phase.checks.iter().map(CheckRow::of).collect(),
            counters: counters(phase),
            residency: residency(phase),
        }
    }
}

impl TableRow {
    fn of(row: &Row, scale: Scale) -> Self {
        let absent = || if row.is_withheld { "x".to_owned() } else { String::new() };
        let number = |value: Option<f64>| value.map_or_else(absent, figure);
        TableRow {
            label: cleaned(&row.label),
            bandwidth: number(row.bytes_per_s.map(|b| b / (1u64 << 20) as f64)),
            rate: number(row.ios_per_s),
            latencies: row
                .quantiles
                .iter()
                .map(|q| match q {
                    Some(q) => Latency {
                        value: scale.show(q.value_ns),
                        interval: format!("{} – {}", scale.show(q.low_ns), scale.show(q.high_ns)),
                    },
                    None => {
                        Latency { value: if row.is_withheld { "x" } else { "–" }.to_owned(), interval: String::new() }
                    }
                })
                .collect(),
            max: row.latency_ns_max.map_or_else(absent, |ns| scale.show(ns)),
            cpu: number(row.cpu_ns_per_io.map(|ns| ns / 1e3)),
            count: units::format_count(row.io_count),
            errors: match (row.error_count, row.short_count) {
                (0, 0) => String::new(),
                (errors, 0) => format!("{} failed", units::format_count(errors)),
                (0, short) => format!("{} short", units::format_count(short)),
                (errors, short) => {
                    format!("{} failed, {} short", units::format_count(errors), units::format_count(short))
                }
            },
        }
    }
}

impl CheckRow {
    fn of(check: &Check) -> Self {
        let class = match check.outcome {
            CheckOutcome::Passed => "supported",
            CheckOutcome::Suspect => "suspect",
            CheckOutcome::Contradicted => "contradicted",
            CheckOutcome::NotSeen | CheckOutcome::NotApplicable => "quiet",
        };
        CheckRow {
            name: cleaned(&check.name),
            outcome: check.outcome.word(),
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
