//! A comparison as one self-contained HTML page, in the style of a record's page.

use super::{plots, words};
use crate::text::clean;
use serde::Serialize;
use trueio_model::{Comparison, Conclusion, GateVerdict, Part};

const PAGE: &str = include_str!("page.html");

/// Renders the comparison as a self-contained HTML page.
pub fn comparison_html(comparison: &Comparison) -> String {
    let setting = comparison.setting.as_deref();
    let facts = setting.map(|record| {
        let lines = record.targets.iter().flat_map(crate::words::target_lines);
        lines
            .chain(crate::words::machine_lines(&record.environment))
            .map(|(name, text)| (name.to_owned(), cleaned(&text)))
            .collect()
    });
    let page = Page {
        title: format!("{} compare", cleaned(&comparison.tool.name)),
        style: crate::html::style(),
        started: cleaned(&comparison.started_at.replace('T', " ").replace('Z', " UTC")),
        method: words::method(comparison),
        command: cleaned(&comparison.command.join(" ")),
        outcome: crate::words::outcome_sentence(&comparison.outcome).map(|s| cleaned(&s)),
        gates: comparison
            .gates
            .iter()
            .map(|gate| Gate {
                word: words::gate_word(gate.verdict),
                class: match gate.verdict {
                    GateVerdict::Shown => "worse",
                    GateVerdict::Absent => "better",
                    GateVerdict::CannotTell => "unclear",
                },
                condition: cleaned(&gate.condition),
                sentence: cleaned(&gate.sentence),
            })
            .collect(),
        parts: comparison.parts.iter().map(|part| PagePart::of(comparison, part)).collect(),
        differences: words::differences(comparison).iter().map(|s| cleaned(s)).collect(),
        notes: comparison.notes.iter().map(|s| cleaned(s)).collect(),
        facts: facts.unwrap_or_default(),
        meaning: words::meaning(comparison),
        // In JSON `<` occurs only inside strings, where its escape has the same meaning.
        document: serde_json::to_string(comparison).unwrap_or_default().replace('<', "\\u003c"),
    };
    crate::html::render("comparison.html", PAGE, &page)
}

fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
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
    tables: Vec<Table>,
    forest: Option<String>,
    plots: Vec<String>,
    noise: Option<String>,
}

#[derive(Serialize)]
struct PageSide {
    letter: String,
    name: String,
    detail: String,
    verdict: String,
    level: String,
    reasons: Vec<String>,
    /// A side's system calls: a summary, and one row per call.
    syscalls: Vec<String>,
}

#[derive(Serialize)]
struct Table {
    letter: String,
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
        Self {
            name: cleaned(if part.name.is_empty() { "Sides" } else { &part.name }),
            sides: part
                .sides
                .iter()
                .enumerate()
                .map(|(index, side)| PageSide {
                    letter: words::letter(index),
                    name: cleaned(&side.name),
                    detail: cleaned(&side.detail),
                    verdict: side.verdict.to_string(),
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
            forest: plots::forest(part, comparison.margin),
            plots: [plots::percentiles(part), plots::difference(part), plots::over_time(part)]
                .into_iter()
                .flatten()
                .collect(),
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
            letter: words::letter(side),
            headline: cleaned(&words::headline(comparison, part, side)),
            rows: rows
                .map(|answer| {
                    let needs = words::needs(answer);
                    let divergence = words::divergence(comparison, part, answer).unwrap_or_default();
                    let reason = [answer.reason.clone().unwrap_or_default(), needs, divergence];
                    Row {
                        metric: words::metric_title(answer.metric),
                        first: figure(0, answer.metric),
                        this: figure(side, answer.metric),
                        ratio: answer.ratio.map_or_else(|| "–".to_owned(), |r| words::change(r.estimate)),
                        interval: answer.ratio.map_or_else(
                            || "–".to_owned(),
                            |r| format!("{} and {}", words::change(r.low), words::change(r.high)),
                        ),
                        answer: words::conclusion(answer, comparison.margin),
                        class: match answer.conclusion {
                            Conclusion::Better | Conclusion::BetterSizeUnclear => "better",
                            Conclusion::Worse | Conclusion::WorseSizeUnclear => "worse",
                            Conclusion::Same => "",
                            Conclusion::CannotTell => "unclear",
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
