//! A record as one self-contained HTML page: the answer first, then tiles, an overview, the table, reasons, phases, and
//! last the machine and the plan, folded.
//!
//! The template is `html/record.html`. The record is at the end as JSON, a long one compressed.

mod phases;
mod shared;
mod table;
mod tiles;

use crate::answer::answer_of;
use crate::badge::Badge;
use crate::classes::{ClassFigure, class_sources};
use crate::course::whole_course;
use crate::facts::{FactTable, machine_table, target_tables};
use crate::limits::limit_line;
use crate::page::{Data, command_line, data, render};
use crate::plot::overview::{Point, overview};
use crate::priorities::priorities;
use crate::ranks::ranks;
use crate::standing::{PastRun, Standing, standing};
use crate::summary::{Interval, Row, summary};
use crate::syscalls::syscalls;
use crate::text::{clean, rough_time};
use crate::words::{
    Item, failed_ios, footnotes, machine_lines, manners, outcome_sentence, ruler_sentences, steady_states,
    target_lines, title_of, verification,
};
use phases::{CheckRow, Phase, PlanRow};
use serde::Serialize;
use shared::Shared;
use tiles::Tile;
use trueio_model::{AnsweredFinding, Mark, RunAnswer, RunRecord, Statement, StatementKind};

const BODY: &str = include_str!("html/record.html");

/// Renders the record as a self-contained HTML page.
pub fn html(record: &RunRecord) -> String {
    html_with(record, &[])
}

/// Renders the record as a self-contained HTML page. `past` are earlier runs of the same device, in any order.
pub(crate) fn html_with(record: &RunRecord, past: &[PastRun]) -> String {
    let rows = summary(record);
    let placements = standing(record, past);
    let answered = answer_of(record, &rows, &placements);
    let (name, about) = title_of(record);
    let worst = answered.phases.iter().map(|phase| phase.verdict).max();
    let plotted = plotted(&answered);
    let of_phase = |index| Phase::of(record, index, &rows, &answered, plotted.contains(&index));
    let mut phases: Vec<Phase> = (0..record.phases.len()).map(of_phase).collect();
    let Shared { plan: shared_plan, checks: shared_checks } = Shared::take(&mut phases);
    let facts = record.targets.iter().flat_map(target_lines).chain(machine_lines(&record.environment));
    let started = record.started_at.replace('T', " ").replace('Z', " UTC");
    let page = Page {
        name: cleaned(&name),
        about: cleaned(&about),
        tool: cleaned(&format!("{} {}", record.tool.name, record.kind)),
        started: cleaned(&started),
        id: cleaned(&record.id.chars().take(8).collect::<String>()),
        course: cleaned(&whole_course(record)),
        command: cleaned(&command_line(&record.command)),
        outcome: outcome_sentence(&record.outcome).map(|s| cleaned(&s)),
        class: worst.map_or("none", |worst| Badge::of(worst).class),
        answer: answer(&answered),
        tiles: tiles::tiles(&answered, &rows, &placements),
        overview: overview(&points(&answered, &rows)),
        limits: limits(&answered.statements),
        uses: of_kind(&answered.statements, StatementKind::Database).map(|one| cleaned(one.sentence())).collect(),
        shaded: phases.iter().any(|phase| phase.is_shaded),
        phases,
        plotted_max: PLOTTED_MAX,
        shared_plan,
        shared_checks,
        footnotes: footnotes(record, &rows).iter().map(|s| cleaned(s)).collect(),
        accept: answered.accept_hint.as_ref().map(|s| cleaned(s)),
        reasons: answered.findings.iter().map(ReasonItem::of).collect(),
        sections: sections([
            ("Ranks", ranks(record)),
            ("Failed I/Os", failed_ios(record)),
            ("Verification", verification(record)),
        ]),
        facts: facts.map(|(name, text)| Named { name: name.to_owned(), text: cleaned(&text) }).collect(),
        folded: sections([
            ("How", plain(manners(record))),
            ("By priority", plain(priorities(record))),
            ("Steady state", plain(steady_states(record))),
            ("System calls", syscalls(record)),
            ("Not checked", plain(answered.not_checked.clone())),
            ("Notes", plain(answered.notes.clone())),
            ("Cost of the tool itself", plain(ruler_sentences(record))),
        ]),
        sources: record.targets.iter().flat_map(target_tables).chain([machine_table(&record.environment)]).collect(),
        classes: classes(&placements),
        missing: missing(&rows),
        levels: answered.levels.as_ref().map(|s| cleaned(s)).unwrap_or_default(),
        copy_markdown: data(&crate::markdown::markdown(record, past)),
        copy_command: data(&command_line(&record.command)),
        record: Data::of(record),
    };
    render(&cleaned(&format!("{name} – {} {} – {started}", record.tool.name, record.kind)), BODY, &page)
}

/// Returns how much longer the run must be for an interval of each load's median; empty if none is missing.
fn missing(rows: &[Row]) -> String {
    let needs = rows.iter().filter_map(|row| match row.intervals[0] {
        Interval::Needs(ns) => Some(ns),
        _ => None,
    });
    needs
        .max()
        .map_or_else(String::new, |ns| format!("A load must run about {} longer for all intervals.", rough_time(ns)))
}

pub(crate) fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

/// The template's variables.
#[derive(Serialize)]
struct Page {
    name: String,
    about: String,
    tool: String,
    started: String,
    id: String,
    course: String,
    command: String,
    outcome: Option<String>,
    class: &'static str,
    answer: Vec<String>,
    tiles: Vec<Tile>,
    overview: Option<String>,
    limits: Vec<Named>,
    uses: Vec<String>,
    shaded: bool,
    phases: Vec<Phase>,
    plotted_max: usize,
    shared_plan: Vec<PlanRow>,
    shared_checks: Vec<CheckRow>,
    footnotes: Vec<String>,
    accept: Option<String>,
    reasons: Vec<ReasonItem>,
    sections: Vec<Section>,
    facts: Vec<Named>,
    folded: Vec<Section>,
    sources: Vec<FactTable>,
    classes: Vec<ClassRow>,
    /// How much longer the run must be for intervals of all medians, as a sentence; empty if none is missing.
    missing: String,
    levels: String,
    copy_markdown: String,
    copy_command: String,
    record: Data,
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
    entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    text: String,
    sub: Vec<String>,
}

#[derive(Serialize)]
struct ReasonItem {
    mark: Badge,
    headline: String,
    sentences: Vec<String>,
    next_step: String,
}

#[derive(Serialize)]
struct ClassRow {
    class: String,
    figure: &'static str,
    range: String,
    trust: &'static str,
    sources: String,
}

impl ReasonItem {
    fn of(finding: &AnsweredFinding) -> Self {
        let sentences = finding.details.iter().map(|detail| {
            format!("{} by {} ({}): {}", detail.outcome, detail.check, detail.loads.join(", "), detail.sentence)
        });
        Self {
            mark: Badge::of(finding.verdict),
            headline: cleaned(&finding.sentence),
            sentences: sentences.map(|s| cleaned(&s)).collect(),
            next_step: cleaned(&finding.next_step),
        }
    }
}

/// Returns the lines of the answer: the headline, what the evidence is, what disturbed the figures with the next step, and what the device
/// is like.
fn answer(answered: &RunAnswer) -> Vec<String> {
    let mut lines = vec![answered.headline.clone(), answered.evidence.clone()];
    lines.extend(answered.limits.iter().map(limit_line));
    if let Some(worst) = answered.findings.first() {
        let mark = Badge::of(worst.verdict);
        lines.push(format!("{} {}: {}. Next: {}.", mark.symbol, mark.word, worst.sentence, worst.next_step));
    }
    let compared = [StatementKind::Class, StatementKind::Past, StatementKind::PowerLoss].into_iter();
    lines.extend(compared.flat_map(|kind| of_kind(&answered.statements, kind)).map(|one| one.sentence().to_owned()));
    lines.iter().map(|line| cleaned(line)).collect()
}

/// Returns the statements of a kind.
fn of_kind(statements: &[Statement], kind: StatementKind) -> impl Iterator<Item = &Statement> {
    statements.iter().filter(move |statement| statement.kind() == kind)
}

/// Most phases with plots. The plots of a phase take up to 20 kB, and a page of 200 phases is to have 2 MB.
const PLOTTED_MAX: usize = 50;

/// Returns the phases with plots, by index: the most that a page has, and first those that are not confirmed.
fn plotted(answer: &RunAnswer) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..answer.phases.len()).collect();
    indices.sort_by_key(|&index| answer.phases[index].verdict == Mark::Confirmed);
    indices.truncate(PLOTTED_MAX);
    indices
}

fn points(answer: &RunAnswer, rows: &[Row]) -> Vec<Point> {
    let points = rows.iter().filter_map(|row| {
        Some(Point {
            name: cleaned(&row.label),
            op: row.op,
            ios_per_s: row.ios_per_s.filter(|rate| *rate > 0.0)?,
            p99_ns: row.quantiles[1]?.value_ns.max(1),
            is_hollow: answer.phases[row.phase_index].verdict != Mark::Confirmed,
        })
    });
    points.collect()
}

fn limits(statements: &[Statement]) -> Vec<Named> {
    let named = |limit: &Statement| {
        let load = limit.rests_on().first()?.load.as_str();
        Some(Named { name: cleaned(load), text: cleaned(limit.sentence()) })
    };
    of_kind(statements, StatementKind::Limit).filter_map(named).collect()
}

fn plain(texts: Vec<String>) -> Vec<Item> {
    texts.into_iter().map(|text| (text, Vec::new())).collect()
}

/// Returns the sections; those without items are omitted.
fn sections<const N: usize>(all: [(&'static str, Vec<Item>); N]) -> Vec<Section> {
    let has_items = |section: &(&'static str, Vec<Item>)| !section.1.is_empty();
    all.into_iter()
        .filter(has_items)
        .map(|(heading, items)| Section {
            heading,
            entries: items
                .into_iter()
                .map(|(text, sub)| Entry { text: cleaned(&text), sub: sub.iter().map(|s| cleaned(s)).collect() })
                .collect(),
        })
        .collect()
}

/// Returns the classes of the scales with their sources.
fn classes(placements: &Standing) -> Vec<ClassRow> {
    let all = placements.placements.iter().flat_map(|placement| {
        let figure: ClassFigure = placement.value.figure;
        placement.bands.iter().flat_map(|band| &band.classes).map(move |class| (figure, *class))
    });
    all.map(|(figure, class)| {
        let sources = class_sources(&class.sources);
        let names = sources.iter().map(|source| match source.year {
            Some(year) => format!("{} ({year})", source.title),
            None => source.title.clone(),
        });
        ClassRow {
            class: class.class.clone(),
            figure: figure.name(),
            range: format!("{} to {}", figure.show(class.low), figure.show(class.high)),
            trust: class.trust.words(),
            sources: cleaned(&names.collect::<Vec<_>>().join("; ")),
        }
    })
    .collect()
}
