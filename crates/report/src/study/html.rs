//! A study as one self-contained HTML page, in the style of a record's page.

use super::answer::power_loss;
use super::words::{self, Line};
use super::{plots, words::metric_title};
use crate::badge::Badge;
use crate::page::{command_line, data, render};
use crate::text::clean;
use serde::Serialize;
use trueio_model::{StudyMetric, StudyMode, StudyRecord};

const BODY: &str = include_str!("page.html");

/// Renders the study as a self-contained HTML page.
pub fn study_html(study: &StudyRecord) -> String {
    let source = &study.source;
    let lines = study.targets.iter().flat_map(crate::words::target_lines);
    let facts = lines.chain(crate::words::machine_lines(&study.environment));
    let title = format!("{} study {}{}", study.tool.name, study.study, words::quick(study));
    let started = study.started_at.replace('T', " ").replace('Z', " UTC");
    let page = Page {
        title: cleaned(&title),
        started: cleaned(&started),
        command: cleaned(&command_line(&study.command)),
        about: cleaned(&format!("· {}", study.title)),
        question: cleaned(&study.question),
        source: cleaned(&format!("{}, {}, {}; on {}", source.title, source.by, source.date, source.setting)),
        is_quick: study.is_quick,
        outcome: crate::words::outcome_sentence(&study.outcome).map(|s| cleaned(&s)),
        facts: facts.map(|(name, text)| (name.to_owned(), cleaned(&text))).collect(),
        modes: study.modes.iter().map(|mode| PageMode::of(study, mode)).collect(),
        lists: [
            ("Power loss", power_loss(study).iter().map(|one| one.sentence().to_owned()).collect()),
            ("Implausible published figures", source.impossible.iter().map(|one| one.sentence.clone()).collect()),
            ("Units that the source labels wrongly", source.corrections.clone()),
            ("Limits of the source's method", source.doubts.clone()),
        ]
        .into_iter()
        .filter(|(_, items): &(_, Vec<String>)| !items.is_empty())
        .map(|(title, items)| List { title, entries: items.iter().map(|s| cleaned(s)).collect() })
        .collect(),
        copy_markdown: data(&super::study_markdown(study)),
        copy_command: data(&command_line(&study.command)),
        document: data(study),
    };
    render(&cleaned(&format!("{title} – {started}")), BODY, &page)
}

fn cleaned(text: &str) -> String {
    clean(text).into_owned()
}

#[derive(Serialize)]
struct Page {
    title: String,
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
    copy_markdown: String,
    copy_command: String,
    document: String,
}

#[derive(Serialize)]
struct List {
    title: &'static str,
    entries: Vec<String>,
}

#[derive(Serialize)]
struct PageMode {
    name: String,
    title: String,
    method: String,
    answers: Vec<String>,
    heat: Option<Vec<String>>,
    dots: Vec<(String, String)>,
    ratios_title: String,
    contrasts_title: String,
    contrast_plot: Option<String>,
    rows: Vec<Row>,
    contrasts: Vec<(String, Vec<String>)>,
    marks: Vec<String>,
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
    mark: Option<Badge>,
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
        let heat = metrics.first().and_then(|metric| plots::heat(study, mode, *metric, &lines));
        let dots = metrics.iter().filter_map(|metric| {
            let of: Vec<&Line<'_>> = lines
                .iter()
                .filter(|l| l.metric == *metric && l.statistic == trueio_model::Statistic::Median)
                .collect();
            let title = words::titled(study, metric_title(*metric));
            plots::dots(&title, *metric, &of).map(|plot| (title, plot))
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
            ("System calls of the last sample", words::syscalls(mode)),
            ("Evidence", words::doubts(mode)),
            words::notes(mode),
        ];
        Self {
            name: cleaned(&words::titled(study, &mode.name)),
            title: cleaned(&mode.title),
            method: cleaned(&words::method(mode)),
            answers: mode.answers.iter().map(|s| cleaned(s)).collect(),
            heat,
            dots: dots.collect(),
            ratios_title: words::titled(study, "Ratios, published and here"),
            contrasts_title: words::titled(study, "Published and measured here"),
            contrast_plot: plots::contrasts(&mode.contrasts),
            rows: lines.iter().map(row).collect(),
            contrasts,
            marks: words::marks(study, mode, &lines).iter().map(|mark| cleaned(mark)).collect(),
            lists: lists
                .into_iter()
                .filter(|(_, items)| !items.is_empty())
                .map(|(title, items)| List { title, entries: items.iter().map(|s| cleaned(s)).collect() })
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
        mark: line.mark().filter(|_| line.is_first).map(Badge::of),
        durability: if line.is_first { words::durability_word(row) } else { "" },
        durability_source: row.durability.as_ref().map_or_else(String::new, |d| cleaned(&d.source)),
        flushes: only_first(words::flushes(row)),
        samples: only_first(row.samples.len().to_string()),
    }
}
