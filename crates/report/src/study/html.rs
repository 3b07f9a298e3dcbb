//! A study as one self-contained HTML page, in the style of a record's page.

use super::words::{self, Line};
use super::{plots, words::metric_title};
use crate::text::clean;
use serde::Serialize;
use trueio_model::{StudyMetric, StudyMode, StudyRecord};

const PAGE: &str = include_str!("page.html");

/// Renders the study as a self-contained HTML page.
pub fn study_html(study: &StudyRecord) -> String {
    let source = &study.source;
    let lines = study.targets.iter().flat_map(crate::words::target_lines);
    let facts = lines.chain(crate::words::machine_lines(&study.environment));
    let page = Page {
        title: cleaned(&format!("{} study {}", study.tool.name, study.study)),
        style: crate::html::style(),
        started: cleaned(&study.started_at.replace('T', " ").replace('Z', " UTC")),
        command: cleaned(&study.command.join(" ")),
        about: cleaned(&study.title),
        question: cleaned(&study.question),
        source: cleaned(&format!("{}, {}, {}; on {}", source.title, source.by, source.date, source.setting)),
        is_quick: study.is_quick,
        outcome: crate::words::outcome_sentence(&study.outcome).map(|s| cleaned(&s)),
        facts: facts.map(|(name, text)| (name.to_owned(), cleaned(&text))).collect(),
        modes: study.modes.iter().map(|mode| PageMode::of(study, mode)).collect(),
        lists: [
            ("Implausible published figures", source.impossible.iter().map(|one| one.sentence.clone()).collect()),
            ("Units that the source labels wrongly", source.corrections.clone()),
            ("Limits of the source's method", source.doubts.clone()),
        ]
        .into_iter()
        .filter(|(_, items): &(_, Vec<String>)| !items.is_empty())
        .map(|(title, items)| List { title, items: items.iter().map(|s| cleaned(s)).collect() })
        .collect(),
        // `<` occurs in JSON only inside strings, where its escape means the same.
        document: serde_json::to_string(study).unwrap_or_default().replace('<', "\\u003c"),
    };
    crate::html::render("study.html", PAGE, &page)
}

fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
    started: String,
    command: String,
    about: String,
    question: String,
    source: String,
    is_quick: bool,
    outcome: Option<String>,
    facts: Vec<(String, String)>,
    modes: Vec<PageMode>,
    lists: Vec<List>,
    document: String,
}

#[derive(Serialize)]
struct List {
    title: &'static str,
    items: Vec<String>,
}

#[derive(Serialize)]
struct PageMode {
    name: String,
    title: String,
    method: String,
    heat: Option<String>,
    dots: Vec<String>,
    contrast_plot: Option<String>,
    rows: Vec<Row>,
    contrasts: Vec<(String, Vec<String>)>,
    marks: Vec<&'static str>,
    lists: Vec<List>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    shape: String,
    figure: String,
    published: String,
    here: String,
    interval: String,
    verdict: String,
    durability: &'static str,
    durability_source: String,
    flushes: String,
    samples: String,
}

impl PageMode {
    fn of(study: &StudyRecord, mode: &StudyMode) -> Self {
        let lines = words::lines(study, mode);
        let mut metrics: Vec<StudyMetric> = Vec::new();
        for line in &lines {
            if !metrics.contains(&line.metric) {
                metrics.push(line.metric);
            }
        }
        let heat = metrics.first().and_then(|metric| plots::heat(mode, *metric, &lines));
        let dots = metrics.iter().filter_map(|metric| {
            let of: Vec<&Line<'_>> = lines
                .iter()
                .filter(|l| l.metric == *metric && l.statistic == trueio_model::Statistic::Median)
                .collect();
            plots::dots(metric_title(*metric), *metric, &of)
                .map(|plot| format!("<h4>{}</h4>{plot}", metric_title(*metric)))
        });
        let mut contrasts: Vec<(String, Vec<String>)> = Vec::new();
        for contrast in &mode.contrasts {
            match contrasts.iter_mut().find(|(title, _)| *title == cleaned(&contrast.title)) {
                Some((_, all)) => all.push(cleaned(&contrast.sentence)),
                None => contrasts.push((cleaned(&contrast.title), vec![cleaned(&contrast.sentence)])),
            }
        }
        let lists = [
            ("No figure", words::failures(mode)),
            ("Conclusions", mode.answers.clone()),
            ("System calls of the last sample", words::syscalls(mode)),
            ("Evidence", words::doubts(mode)),
            ("Method", mode.notes.clone()),
        ];
        Self {
            name: cleaned(&mode.name),
            title: cleaned(&mode.title),
            method: cleaned(&words::method(mode)),
            heat,
            dots: dots.collect(),
            contrast_plot: plots::contrasts(&mode.contrasts),
            rows: lines.iter().map(row).collect(),
            contrasts,
            marks: words::marks(mode, &lines),
            lists: lists
                .into_iter()
                .filter(|(_, items)| !items.is_empty())
                .map(|(title, items)| List { title, items: items.iter().map(|s| cleaned(s)).collect() })
                .collect(),
        }
    }
}

fn row(line: &Line<'_>) -> Row {
    let row = line.row;
    let only_first = |text: String| if line.is_first { text } else { String::new() };
    Row {
        name: only_first(cleaned(&row.name)),
        shape: only_first(cleaned(&row.shape)),
        figure: line.figure_name(),
        published: line.published_text(),
        here: line.here_text(),
        interval: line.interval_text(),
        verdict: only_first(row.verdict.map_or_else(String::new, |verdict| verdict.to_string())),
        durability: if line.is_first { words::durability_word(row) } else { "" },
        durability_source: row.durability.as_ref().map_or_else(String::new, |d| cleaned(&d.source)),
        flushes: only_first(words::flushes(row)),
        samples: only_first(row.samples.len().to_string()),
    }
}
