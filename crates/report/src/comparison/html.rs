//! A comparison as one self-contained HTML page, in the style of a record's page.

use super::answer::{HEADLINES_MAX, comparison_answer, shown};
use super::grid::Grid;
use super::json::answered;
use super::{plots, words};
use crate::badge::Badge;
use crate::page::{command_line, data, render};
use crate::text::clean;
use serde::Serialize;
use trueio_model::{Comparison, Conclusion, GateVerdict, Metric, Part};

const BODY: &str = include_str!("page.html");
/// With more sides than this, tables are folded, and curves of single sides are omitted.
const SIDES_MAX: usize = 8;

/// Renders the comparison as a self-contained HTML page.
pub fn comparison_html(comparison: &Comparison) -> String {
    let document = data(&answered(comparison));
    let answer = comparison_answer(comparison);
    let comparison = &*shown(comparison);
    let setting = comparison.setting.as_deref();
    let facts = setting.map(|record| {
        let lines = record.targets.iter().flat_map(crate::words::target_lines);
        lines
            .chain(crate::words::machine_lines(&record.environment))
            .map(|(name, text)| (name.to_owned(), cleaned(&text)))
            .collect()
    });
    let gates: Vec<Gate> = comparison
        .gates
        .iter()
        .map(|gate| Gate {
            word: words::gate_word(gate.verdict),
            class: match gate.verdict {
                GateVerdict::Shown => "bad",
                GateVerdict::Absent => "ok",
                GateVerdict::CannotTell => "warn",
            },
            condition: cleaned(&gate.condition),
            sentence: cleaned(&gate.sentence),
        })
        .collect();
    let started = comparison.started_at.replace('T', " ").replace('Z', " UTC");
    let title = format!("{} compare", comparison.tool.name);
    let subject = subject(comparison);
    let page = Page {
        title: cleaned(&title),
        subject: cleaned(&subject),
        started: cleaned(&started),
        method: words::method(comparison),
        command: cleaned(&command_line(&comparison.command)),
        outcome: crate::words::outcome_sentence(&comparison.outcome).map(|s| cleaned(&s)),
        class: ["bad", "warn", "ok"]
            .into_iter()
            .find(|class| gates.iter().any(|gate| gate.class == *class))
            .unwrap_or("none"),
        gates,
        answer: answer.headline.iter().map(|s| cleaned(s)).collect(),
        parts: comparison.parts.iter().map(|part| PagePart::of(comparison, part)).collect(),
        differences: words::differences(comparison).iter().map(|s| cleaned(s)).collect(),
        notes: comparison.notes.iter().map(|s| cleaned(s)).collect(),
        facts: facts.unwrap_or_default(),
        meaning: words::meaning(comparison),
        copy_markdown: data(&super::comparison_markdown(comparison)),
        copy_command: data(&command_line(&comparison.command)),
        document,
    };
    render(&cleaned(&format!("{title} {subject} – {started}")), BODY, &page)
}

/// Returns the names of the sides, or of the first and the number of the others.
fn subject(comparison: &Comparison) -> String {
    let sides = comparison.parts.first().map_or(&[][..], |part| &part.sides);
    match sides {
        [] => String::new(),
        [a, b] => format!("· {} and {}", a.name, b.name),
        [a, rest @ ..] => format!("· {} and {} more", a.name, rest.len()),
    }
}

fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

#[derive(Serialize)]
struct Page {
    title: String,
    subject: String,
    class: &'static str,
    answer: Vec<String>,
    copy_markdown: String,
    copy_command: String,
    started: String,
    method: String,
    command: String,
    outcome: Option<String>,
    gates: Vec<Gate>,
    parts: Vec<PagePart>,
    differences: Vec<String>,
    notes: Vec<String>,
    facts: Vec<(String, String)>,
    meaning: String,
    document: String,
}

#[derive(Serialize)]
struct Gate {
    word: &'static str,
    class: &'static str,
    condition: String,
    sentence: String,
}

#[derive(Serialize)]
struct PagePart {
    name: String,
    sides: Vec<PageSide>,
    /// Heat maps of a grid, and its figures over an option.
    maps: Vec<String>,
    lines: Vec<String>,
    tables: Vec<Table>,
    forest: Option<String>,
    plots: Vec<String>,
    /// What the levels of the sides are based on.
    levels: Option<String>,
    noise: Option<String>,
}

#[derive(Serialize)]
struct PageSide {
    letter: String,
    name: String,
    detail: String,
    mark: Badge,
    level: String,
    reasons: Vec<String>,
    /// A side's system calls: a summary, and one row per call.
    syscalls: Vec<String>,
}

#[derive(Serialize)]
struct Table {
    folded: bool,
    letter: String,
    /// The title of the column of changes.
    ratio_title: String,
    headline: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    metric: &'static str,
    first: String,
    this: String,
    ratio: String,
    interval: String,
    answer: String,
    class: &'static str,
    reason: String,
    p: String,
    pairs: String,
}

impl PagePart {
    fn of(comparison: &Comparison, part: &Part) -> Self {
        let grid = Grid::of(part);
        let metrics = [Metric::Iops, Metric::P99];
        let is_few = part.sides.len() <= SIDES_MAX;
        Self {
            name: cleaned(&part.name),
            maps: grid.iter().flat_map(|grid| metrics.into_iter().filter_map(|metric| grid.heat(metric))).collect(),
            lines: grid.iter().flat_map(|grid| metrics.into_iter().filter_map(|metric| grid.lines(metric))).collect(),
            sides: part
                .sides
                .iter()
                .enumerate()
                .map(|(index, side)| PageSide {
                    letter: words::letter(index),
                    name: cleaned(&side.name),
                    detail: cleaned(&words::detail_of(side)),
                    mark: Badge::of(side.mark()),
                    level: side.level.to_string(),
                    reasons: side.reasons.iter().map(|s| cleaned(s)).collect(),
                    syscalls: words::syscalls(index, side)
                        .iter()
                        .flat_map(|(item, rows)| std::iter::once(item).chain(rows))
                        .map(|s| cleaned(s))
                        .collect(),
                })
                .collect(),
            tables: (1..part.sides.len()).map(|side| Table::of(comparison, part, side)).collect(),
            forest: if is_few { plots::forest(part, comparison.margin) } else { None },
            plots: [plots::percentiles(part), plots::difference(part), plots::over_time(part)]
                .into_iter()
                .flatten()
                .filter(|_| is_few)
                .collect(),
            levels: words::levels(part),
            noise: words::noise(part),
        }
    }
}

impl Table {
    fn of(comparison: &Comparison, part: &Part, side: usize) -> Self {
        let figure = |index: usize, metric| {
            part.sides.get(index).map_or_else(String::new, |side| words::figure_of(side, metric))
        };
        let rows = part.answers.iter().filter(|answer| answer.side == side);
        Self {
            folded: part.sides.len() > HEADLINES_MAX,
            letter: words::letter(side),
            ratio_title: words::ratio_title(comparison, side),
            headline: cleaned(&words::headline(comparison, part, side)),
            rows: rows
                .map(|answer| {
                    let (why, needs) = match words::no_winner(part, answer.side) {
                        Some(why) => (why, String::new()),
                        None => (answer.reason.clone().unwrap_or_default(), words::needs(answer)),
                    };
                    let divergence = words::divergence(comparison, part, answer).unwrap_or_default();
                    let reason = [why, needs, divergence];
                    Row {
                        metric: words::metric_title(answer.metric),
                        first: figure(0, answer.metric),
                        this: figure(side, answer.metric),
                        ratio: answer.ratio.map_or_else(|| "–".to_owned(), |r| words::change_of(&r)),
                        interval: answer.ratio.map_or_else(
                            || "–".to_owned(),
                            |r| format!("{} and {}", words::change(r.low), words::change(r.high)),
                        ),
                        answer: words::conclusion(part, answer, comparison.margin),
                        class: match words::concluded(part, answer) {
                            Conclusion::Better | Conclusion::BetterSizeUnclear => "ok",
                            Conclusion::Worse | Conclusion::WorseSizeUnclear => "bad",
                            Conclusion::Same => "",
                            Conclusion::CannotTell => "none",
                        },
                        reason: cleaned(&reason.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("; ")),
                        p: answer.ratio.and_then(|r| r.p).map_or_else(String::new, |p| {
                            if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
                        }),
                        pairs: answer.ratio.map_or_else(String::new, |r| r.pair_count.to_string()),
                    }
                })
                .collect(),
        }
    }
}
