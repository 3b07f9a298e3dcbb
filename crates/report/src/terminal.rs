//! A record as text for a terminal.
//!
//! Facts about the target, one table with a row per operation, the reasons, checks that observed nothing,
//! errors, notes, and the cost of the tool itself. Each column has one unit, so that figures can be compared
//! down the column; if the table is too wide, each row becomes two lines. A contradicted phase has no
//! figures: its rows are crossed out, and the reasons follow the table, grouped by cause.

use crate::answer::answer;
use crate::course::whole_course;
use crate::latency_parts::{REST, latency_parts};
use crate::layout::{Page, Paint, Style};
use crate::limits::limit_line;
use crate::priorities::priorities;
use crate::ranks::ranks;
use crate::summary::{Row, Scale, name_of_phase, summary};
use crate::syscalls::syscalls;
use crate::text::{clean, few_ios, figure, padded, width_of};
use crate::words::{
    failed_ios, footnotes, machine_lines, manners, outcome_sentence, ruler_sentences, steady_states, target_lines,
    verification,
};
use trueio_model::{
    AnsweredPhase, Environment, Histogram, RunAnswer, RunRecord, Statement, StatementKind, TargetFacts, units,
};

/// Renders the record as text, ending with a line feed.
pub fn terminal(record: &RunRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    let answered = answer(record, &[]);
    header(&mut page, record, &answered);
    table(&mut page, record, &answered);
    let limits: Vec<String> = answered.limits.iter().map(limit_line).collect();
    let statements: Vec<String> = answered.statements.iter().map(stated).collect();
    page.list("Limits", &limits);
    page.list("What follows", &statements);
    page.tree("Ranks", &ranks(record));
    reasons(&mut page, record, &answered);
    let parts = latency_parts(record);
    page.list("Where the time of an I/O went", &parts);
    if !parts.is_empty() {
        page.aside(Paint::Dim, &[REST.to_owned()]);
    }
    page.list("By priority", &priorities(record));
    page.list("Steady state", &steady_states(record));
    page.tree("System calls", &syscalls(record));
    page.list("Not checked", &answered.not_checked);
    page.tree("Failed I/Os", &failed_ios(record));
    page.tree("Verification", &verification(record));
    page.list("How", &manners(record));
    page.list("Notes", &answered.notes);
    page.list("Cost of the tool itself", &ruler_sentences(record));
    page.outcome(&record.outcome);
    page.finish()
}

/// Returns a statement as an item of a list. What limits a load names it.
fn stated(statement: &Statement) -> String {
    match (statement.kind(), statement.rests_on()) {
        (StatementKind::Limit, [load]) => format!("{}: {}", load.load, statement.sentence()),
        _ => statement.sentence().to_owned(),
    }
}

/// Renders a target and its machine as text: the head of every terminal page.
pub fn target(target: &TargetFacts, environment: &Environment, style: &Style) -> String {
    let mut page = Page::new(style);
    for (name, text) in target_lines(target).into_iter().chain(machine_lines(environment)) {
        page.fact(name, &text);
    }
    page.finish()
}

fn header(page: &mut Page, record: &RunRecord, answer: &RunAnswer) {
    let title = format!("{} {}", clean(&record.tool.name), clean(&record.kind));
    let title = page.paint(Paint::Bold, &title);
    page.out.push_str(&title);
    let id: String = record.id.chars().take(8).collect();
    let when = record.started_at.replace('T', " ").replace('Z', " UTC");
    page.out.push_str(&format!("  {}  record {}\n", clean(&when), clean(&id)));
    if let Some(sentence) = outcome_sentence(&record.outcome) {
        let sentence = page.paint(Paint::Bad, &clean(&sentence));
        page.line(&sentence);
    }
    page.line(&clean(&whole_course(record)));
    // Without a question of yes or no, the headline counts the loads, as the evidence does.
    let headline = answer.decision.map_or_else(String::new, |_| format!("{} ", answer.headline));
    page.sentence(&format!("{headline}{}", answer.evidence));
    page.out.push('\n');
    let lines = record.targets.iter().flat_map(target_lines).chain(machine_lines(&record.environment));
    for (name, text) in lines {
        page.fact(name, &text);
    }
}

fn table(page: &mut Page, record: &RunRecord, answer: &RunAnswer) {
    page.out.push('\n');
    let rows = summary(record);
    let scale = Scale::of(&rows);
    let cells: Vec<Cells> =
        rows.iter().map(|row| Cells::of(row, record, &answer.phases[row.phase_index], scale)).collect();
    let heads: [(&str, &str); FIGURES] = [
        ("bandwidth", "MiB/s"),
        ("IOPS", "1/s"),
        ("lat p50", scale.unit),
        ("p99", scale.unit),
        ("p99.9", scale.unit),
        ("max", scale.unit),
        ("CPU/IO", "µs"),
    ];
    let name_width = cells.iter().map(|c| width_of(&c.name)).max().unwrap_or(0);
    let mut widths = heads.map(|(a, b)| width_of(a).max(width_of(b)));
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(&row.figures) {
            *width = (*width).max(width_of(cell));
        }
    }
    let verdict_width = cells.iter().map(|c| width_of(&c.verdict)).max().unwrap_or(0);
    let figures_width: usize = widths.iter().map(|w| w + 2).sum();
    let is_wide = name_width + figures_width + 2 + verdict_width <= page.style.width;
    // In the narrow layout the name has a separate line, with the figures below it.
    let indent = if is_wide { name_width } else { 0 };

    for line in 0..2 {
        let mut text = " ".repeat(indent);
        for ((a, b), width) in heads.iter().zip(widths) {
            text.push_str(&format!("  {:>width$}", if line == 0 { a } else { b }));
        }
        if line == 0 && is_wide {
            text.push_str("  evidence");
        }
        let text = page.paint(if line == 0 { Paint::Bold } else { Paint::Dim }, text.trim_end());
        page.line(&text);
    }
    for row in &cells {
        let mut figures = String::new();
        for (cell, width) in row.figures.iter().zip(widths) {
            figures.push_str(&format!("  {cell:>width$}"));
        }
        let verdict = page.paint(row.paint, &row.verdict);
        if is_wide {
            let name = padded(&row.name, name_width);
            page.out.push_str(&format!("{name}{figures}  {verdict}\n"));
        } else {
            let name = page.paint(Paint::Bold, &row.name);
            page.out.push_str(&format!("{name}  {verdict}\n{}\n", figures.trim_end()));
        }
    }
    for (index, phase) in record.phases.iter().enumerate() {
        if !rows.iter().any(|r| r.phase_index == index) {
            let text = format!("{}: nothing was measured", phase.name);
            page.item(&text);
        }
    }
    if record.phases.is_empty() {
        page.item("Nothing was measured.");
    }
    for text in footnotes(record, &rows) {
        page.out.push('\n');
        page.sentence(&text);
    }
    // Explains the levels that occur, next to the verdicts.
    if let Some(text) = &answer.levels {
        page.aside(Paint::Dim, std::slice::from_ref(text));
    }
}

/// Prints the reasons by cause, each with its findings once and one next step, and then how each phase ended if not as
/// planned. The advice to accept a contradiction comes last.
fn reasons(page: &mut Page, record: &RunRecord, answer: &RunAnswer) {
    if !answer.findings.is_empty() {
        page.heading("Reasons");
    }
    for finding in &answer.findings {
        let mark = format!("{} {} ({})", finding.verdict.symbol(), finding.verdict.word(), finding.cause);
        page.item(&format!("{mark} {}", finding.extent));
        for detail in &finding.details {
            let of = detail.loads.join(", ");
            page.sub_item(&format!("{} by {} ({of}): {}", detail.outcome, detail.check, detail.sentence));
        }
        page.sub_item(&format!("→ {}", finding.next_step));
    }
    let mut ends = Vec::new();
    for (index, (phase, judgement)) in record.phases.iter().zip(&answer.phases).enumerate() {
        let name = name_of_phase(record, index);
        let is_unexplained = judgement.is_doubted() && judgement.objections.is_empty();
        if let Some(sentence) = outcome_sentence(&phase.outcome) {
            ends.push(format!("{name}: {sentence}"));
        } else if is_unexplained {
            ends.push(format!("{name}: {}; the record does not contain the check that found it", judgement.words));
        }
    }
    page.list(if answer.findings.is_empty() { "Reasons" } else { "Ends" }, &ends);
    if let Some(text) = &answer.accept_hint {
        page.out.push('\n');
        page.sentence(text);
    }
}

/// Formats the figures of a row.
const FIGURES: usize = 7;

/// A row of the table, as text.
struct Cells {
    name: String,
    figures: [String; FIGURES],
    verdict: String,
    paint: Paint,
}

impl Cells {
    fn of(row: &Row, record: &RunRecord, judgement: &AnsweredPhase, scale: Scale) -> Self {
        // A mark in each column: an empty cell would look like a missing figure.
        let absent = || if row.is_withheld { "x".to_owned() } else { String::new() };
        let number = |value: Option<f64>| value.map_or_else(absent, figure);
        let [p50, p99, p999] = row.quantiles.map(|q| match q {
            Some(q) => scale.show(q.value_ns),
            None if row.withholds_latencies() => "x".to_owned(),
            None => "–".to_owned(),
        });
        let clipped = row.histogram(record).is_some_and(|h: &Histogram| h.overflow_count() > 0);
        Cells {
            name: clean(&row.label).into_owned(),
            figures: [
                number(row.bytes_per_s.map(|b| b / (1u64 << 20) as f64)),
                match row.ios_per_s {
                    Some(rate) if rate >= 99.95 => units::format_count(rate.round() as u64),
                    other => number(other),
                },
                p50,
                p99,
                p999,
                row.latency_ns_max.map_or_else(|| row.absent_max(), |ns| scale.show(ns)),
                number(row.cpu_ns_per_io.map(|ns| ns / 1e3)),
            ],
            verdict: {
                let mark = judgement.verdict;
                let clipped = if clipped { ", over 73 min" } else { "" };
                let few = row.shown_io_count().and_then(few_ios).map_or_else(String::new, |few| format!(", {few}"));
                format!("{} {} {}{few}{clipped}", mark.symbol(), mark.word(), judgement.level)
            },
            paint: Paint::of_mark(judgement.verdict),
        }
    }
}
