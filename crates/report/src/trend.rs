//! Every output of a trend: text, JSON, Markdown, and a page with one plot per metric of a load.
//!
//! Pure functions of the document; changes are not searched here. Runs are plotted at their dates; runs that the evidence
//! does not support are hollow.

use crate::layout::{Page, Style};
use crate::markdown::escaped;
use crate::page::{command_line, data, render};
use crate::plot::runs::{RunPoint, trend};
use crate::text::clean;
use minijinja::context;
use trueio_model::{
    AnsweredFigure, Document, DocumentAnswer, Ground, Mark, Statement, StatementKind, TREND_FORMAT, TREND_VERSION,
    Trend, TrendChange, TrendPoint, TrendSeries, Verdict, parse_utc, units,
};

/// The reason why a text could not be read as a trend.
#[derive(Debug, thiserror::Error)]
pub enum TrendError {
    /// The text is not JSON, or not of this kind.
    #[error("this is not a trend of trueio")]
    NotATrend,
    /// A newer trueio wrote it.
    #[error("this trend has version {0}; this program reads up to version {TREND_VERSION}")]
    Newer(u64),
    /// Format and version are right, the rest is invalid.
    #[error("this trend is damaged")]
    Damaged(#[source] serde_json::Error),
}

/// Reads a trend. Never panics, whatever the text.
///
/// # Errors
/// [`TrendError`], which describes the text.
pub fn parse_trend(text: &str) -> Result<Trend, TrendError> {
    let (format, version) = crate::json::head(text).ok_or(TrendError::NotATrend)?;
    match (format.as_str(), version) {
        (TREND_FORMAT, version) if version > u64::from(TREND_VERSION) => Err(TrendError::Newer(version)),
        // The answer is derived.
        (TREND_FORMAT, 1..) => {
            let mut trend = Trend { answer: None, ..Trend::from_json(text).map_err(TrendError::Damaged)? };
            trend.series.iter_mut().for_each(upgrade);
            Ok(trend)
        }
        _ => Err(TrendError::NotATrend),
    }
}

/// Gives the changes of an earlier program's trend their sentences, which it wrote among the others in the order of the changes.
fn upgrade(series: &mut TrendSeries) {
    let is_of_a_change = |sentence: &&String| sentence.contains(" rose ") || sentence.contains(" fell ");
    if series.changes.iter().all(|change| change.sentence.is_empty()) {
        let sentences = series.sentences.iter().filter(is_of_a_change);
        series.changes.iter_mut().zip(sentences).for_each(|(change, sentence)| change.sentence.clone_from(sentence));
    }
}

/// Formats the trend as indented JSON with its answer, without a line feed at its end.
pub fn trend_json(trend: &Trend) -> String {
    let answer = Some(Box::new(trend_answer(trend)));
    crate::json::indented(&Trend { answer, ..trend.clone() })
}

/// Answers a trend. A change is stated if most runs of both levels are confirmed.
pub fn trend_answer(trend: &Trend) -> DocumentAnswer {
    let open: Vec<String> = trend.series.iter().filter_map(unstated).collect();
    DocumentAnswer {
        headline: headline(trend),
        figures: trend.series.iter().flat_map(figures).collect(),
        statements: trend.series.iter().flat_map(statements).collect(),
        doubts: open,
        next_steps: Vec::new(),
    }
}

pub(crate) fn point_mark(point: &TrendPoint) -> Mark {
    Mark::of_words(&point.words).unwrap_or_else(|| Mark::of(point.verdict.unwrap_or(Verdict::Unverified), &[]))
}

fn figures(series: &TrendSeries) -> Vec<AnsweredFigure> {
    let of = |point: &TrendPoint| {
        let verdict = point_mark(point);
        let is_shown = verdict.is_shown();
        AnsweredFigure {
            load: format!("{}, run {}", name_of(series), point.run.run_id),
            operation: None,
            quantity: None,
            name: series.metric.clone(),
            value: Some(point.value).filter(|value| is_shown && value.is_finite()),
            unit: series.unit.clone(),
            low: None,
            high: None,
            sample_count: 1,
            verdict,
            cause: point.words.split_once(": ").map_or_else(String::new, |(_, cause)| cause.to_owned()),
            is_shown,
        }
    };
    series.points.iter().map(of).collect()
}

/// Returns the words of the levels on both sides of a change: as a level is the median of its runs, its word is the middle one.
fn grounds(series: &TrendSeries, index: usize) -> Vec<Ground> {
    let at = |id: &str| series.points.iter().position(|point| point.run.run_id == id);
    let start = |index: usize| series.changes.get(index).and_then(|change| at(&change.at.run_id));
    let (Some(middle), before) = (start(index), index.checked_sub(1).and_then(start).unwrap_or(0)) else {
        return Vec::new();
    };
    let end = start(index + 1).unwrap_or(series.points.len());
    let of = |name: &str, points: Option<&[TrendPoint]>| {
        let mut marks: Vec<Mark> = points?.iter().map(point_mark).collect();
        marks.sort_unstable();
        Some(Ground { load: name.to_owned(), verdict: *marks.get(marks.len() / 2)? })
    };
    let levels = [
        of("the earlier level", series.points.get(before..middle)),
        of("the later level", series.points.get(middle..end)),
    ];
    levels.into_iter().flatten().collect()
}

/// Returns the changes of a series that may be stated, oldest first.
fn statements(series: &TrendSeries) -> Vec<Statement> {
    let of = |(index, change): (usize, &TrendChange)| {
        let text = format!("{}, {}", name_of(series), change.sentence);
        Statement::on(StatementKind::Winner, text, grounds(series, index))
    };
    series.changes.iter().enumerate().filter(|(_, change)| !change.sentence.is_empty()).filter_map(of).collect()
}

/// Returns why changes of a series are not stated; `None` if all are.
fn unstated(series: &TrendSeries) -> Option<String> {
    let grounds = (0..series.changes.len()).flat_map(|index| grounds(series, index));
    let worst = grounds.map(|ground| ground.verdict).filter(|mark| !mark.permits_a_winner()).max()?;
    Some(format!(
        "{}, {}: a change of level is not stated, because most runs of a level are {}.",
        name_of(series),
        title_of(&series.metric).0,
        worst.word()
    ))
}

/// Returns the sentences about a series; of a change that is not stated, the reason.
pub(crate) fn sentences(series: &TrendSeries) -> Vec<String> {
    let Some(why) = unstated(series) else { return series.sentences.clone() };
    let is_of_a_change = |sentence: &&String| series.changes.iter().any(|change| change.sentence == **sentence);
    series.sentences.iter().filter(|sentence| !is_of_a_change(sentence)).cloned().chain([why]).collect()
}

/// Returns the changes first; without a change the answer is the first sentence about all runs.
fn headline(trend: &Trend) -> Vec<String> {
    let changed: Vec<&TrendSeries> = trend.series.iter().filter(|series| !series.changes.is_empty()).collect();
    if changed.is_empty() {
        return vec![if trend.series.iter().any(|series| series.is_enough) {
            "No change of level is shown.".to_owned()
        } else {
            "Too few runs to show a change of level or its absence.".to_owned()
        }];
    }
    let of = |series: &&TrendSeries| {
        let stated = statements(series).first().map(|statement| statement.sentence().to_owned());
        stated.or_else(|| unstated(series))
    };
    let more = changed.len().saturating_sub(CHANGES_MAX);
    let rest = (more > 0).then(|| format!("The level of {more} more figures changed, see below."));
    changed.iter().filter_map(of).take(CHANGES_MAX).chain(rest).collect()
}

/// Returns true if the newest change of a series is stated, and for the worse.
pub(crate) fn is_worse(series: &TrendSeries) -> bool {
    let is_more_better = matches!(series.metric.as_str(), "iops" | "bandwidth");
    let is_worse = series.changes.last().is_some_and(|change| (change.ratio < 1.0) == is_more_better);
    is_worse && unstated(series).is_none()
}

/// Formats the trend as text, ending with a line feed.
pub fn trend_terminal(trend: &Trend, style: &Style) -> String {
    let mut page = Page::new(style);
    trend.sentences.iter().for_each(|sentence| page.sentence(sentence));
    for load in loads(trend) {
        page.out.push('\n');
        page.sentence(&format!("{}: {}", name_of(load[0]), load[0].load));
        load.iter().flat_map(|series| sentences(series)).for_each(|sentence| page.item(&sentence));
    }
    page.finish()
}

/// Formats the trend as Markdown, ending with a line feed.
pub fn trend_markdown(trend: &Trend) -> String {
    let mut out = format!("## trueio history trend: {}\n\n", escaped(&trend.device.label));
    trend.sentences.iter().for_each(|sentence| out.push_str(&format!("- {}\n", escaped(sentence))));
    for load in loads(trend) {
        out.push_str(&format!("\n### {}\n\n{}\n\n", escaped(&name_of(load[0])), escaped(&load[0].load)));
        for sentence in load.iter().flat_map(|series| sentences(series)) {
            out.push_str(&format!("- {}\n", escaped(&sentence)));
        }
    }
    out
}

/// Renders the trend as a self-contained page.
pub fn trend_html(trend: &Trend) -> String {
    let sections: Vec<_> = loads(trend)
        .into_iter()
        .map(|load| {
            let plots: Vec<String> = load.iter().filter_map(|series| plot(series)).collect();
            let texts: Vec<String> =
                load.iter().flat_map(|series| sentences(series)).map(|s| clean(&s).into_owned()).collect();
            context! { name => clean(&name_of(load[0])), load => clean(&load[0].load), plots, sentences => texts }
        })
        .collect();
    let sentences: Vec<String> = trend.sentences.iter().map(|s| clean(s).into_owned()).collect();
    let answer: Vec<String> = headline(trend).iter().map(|text| clean(text).into_owned()).collect();
    let device = clean(&trend.device.label).into_owned();
    let title = format!("trend of {device}");
    let page = context! {
        device, sentences, sections, answer,
        command => clean(&command_line(&trend.command)),
        copy_markdown => data(&trend_markdown(trend)),
        copy_command => data(&command_line(&trend.command)),
        document => data(&Trend { answer: Some(Box::new(trend_answer(trend))), ..trend.clone() }),
    };
    render(&title, BODY, &page)
}

/// Changes that the answer names; the others stand at their plots.
const CHANGES_MAX: usize = 3;
const BODY: &str = include_str!("trend.html");

/// Returns the series of each load together.
fn loads(trend: &Trend) -> Vec<Vec<&TrendSeries>> {
    let mut loads: Vec<Vec<&TrendSeries>> = Vec::new();
    for series in &trend.series {
        let is_it = |load: &&mut Vec<&TrendSeries>| {
            (&load[0].job, &load[0].op, &load[0].load) == (&series.job, &series.op, &series.load)
        };
        match loads.iter_mut().find(is_it) {
            Some(load) => load.push(series),
            None => loads.push(vec![series]),
        }
    }
    loads
}

/// Returns a series' name: the job, and the operation unless the job's name contains it.
fn name_of(series: &TrendSeries) -> String {
    if series.job.contains(&series.op) { series.job.clone() } else { format!("{} {}", series.job, series.op) }
}

/// The title of a metric's plot, and the number of its units in one unit of the plot.
fn title_of(metric: &str) -> (&'static str, f64) {
    match metric {
        "iops" => ("IOPS", 1.0),
        "bandwidth" => ("bandwidth, MiB/s", f64::from(1 << 20)),
        "p50" => ("p50, µs", 1e3),
        "p99" => ("p99, µs", 1e3),
        "p99.9" => ("p99.9, µs", 1e3),
        "cpu" => ("CPU per I/O, µs", 1e3),
        _ => ("value", 1.0),
    }
}

fn plot(series: &TrendSeries) -> Option<String> {
    let (title, unit) = title_of(&series.metric);
    let shown = |value: f64| match series.unit.as_str() {
        "bytes/s" => units::format_bandwidth(value),
        "ns" => units::format_duration_ns(value.max(0.0).round() as u64),
        _ => crate::text::figure(value),
    };
    let point = |point: &TrendPoint| {
        let words = match (Mark::of_words(&point.words), point.verdict) {
            (Some(mark), _) => format!("{} {}", mark.symbol(), clean(&point.words)),
            // A trend of an earlier program.
            (None, Some(_)) => point_mark(point).word().to_owned(),
            (None, None) => "no evidence".to_owned(),
        };
        let id: String = point.run.run_id.chars().take(8).collect();
        Some(RunPoint {
            at_unix_s: parse_utc(&point.run.started_at)?,
            value: Some(point.value / unit).filter(|value| value.is_finite())?,
            is_hollow: point.verdict != Some(Verdict::Supported),
            text: format!("{} · {} · {words} · run {id}", point.run.started_at, shown(point.value)),
        })
    };
    let points: Vec<RunPoint> = series.points.iter().map(point).collect::<Option<_>>()?;
    let index_of = |id: &str| series.points.iter().position(|point| point.run.run_id == id);
    let changes: Vec<usize> = series.changes.iter().filter_map(|change| index_of(&change.at.run_id)).collect();
    trend(title, &points, &changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { width: 300, color: false, unicode: true };
    use trueio_model::{TrendDevice, TrendLeftOut, TrendRun};

    fn run(index: u64) -> TrendRun {
        TrendRun {
            run_id: format!("run{index:05}"),
            started_at: trueio_model::format_utc(1_795_206_512 + index * 86_400),
        }
    }

    fn document() -> Trend {
        let points = (0..12u64).map(|i| TrendPoint {
            run: run(i),
            value: if i < 6 { 100.0 } else { 50.0 },
            verdict: Some(if i == 3 { Verdict::Suspect } else { Verdict::Supported }),
            words: match i {
                2 => String::new(),
                3 => "not the disk: 96 % from memory".into(),
                _ => "confirmed".into(),
            },
        });
        let series = TrendSeries {
            job: "job \u{1b}[2J<script>".into(),
            op: "read".into(),
            load: "randread 4k".into(),
            metric: "iops".into(),
            unit: "1/s".into(),
            points: points.collect(),
            changes: vec![TrendChange {
                from: run(5),
                at: run(6),
                before: 100.0,
                after: 50.0,
                ratio: 0.5,
                p: 0.01,
                also_changed: vec!["system".into()],
                sentence: "IOPS: fell from 100 to 50".into(),
            }],
            is_enough: false,
            sentences: vec!["IOPS: fell from 100 to 50".into()],
        };
        Trend {
            format: TREND_FORMAT.into(),
            version: TREND_VERSION,
            command: vec!["trueio".into(), "history".into(), "trend".into()],
            device: TrendDevice { id: 1, label: "disk <script>alert(1)</script>".into() },
            run_count: 12,
            left_out: TrendLeftOut::default(),
            p_max: 0.05,
            searched_count: 1,
            ratio_min: 1.05,
            sentences: vec!["12 runs".into()],
            series: vec![series],
            answer: None,
        }
    }

    #[test]
    fn a_page_opens_with_the_change_and_marks_disturbed_runs() {
        let html = trend_html(&document());
        assert!(!html.contains("<script>alert") && !html.contains('\u{1b}'), "{html}");
        let answer = html.split("class=\"verdict").nth(1).unwrap();
        assert!(answer.split("</div>").next().unwrap().contains("IOPS: fell from 100 to 50"));
        assert_eq!(html.matches("class=\"ring").count(), 1);
        for words in [" · * not the disk: 96 % from memory · run ", " · + confirmed · run ", " · confirmed · run "]
        {
            assert!(html.contains(words), "{words}\n{html}");
        }
    }

    /// Goal: the sentence about a change is known without reading it. Method: a trend of an earlier program, whose changes have none, and
    /// one whose words are others.
    #[test]
    fn the_sentence_of_a_change_is_its_own_and_an_earlier_trend_is_upgraded() {
        let written = document();
        let mut earlier = written.clone();
        earlier.series[0].changes[0].sentence.clear();
        assert_eq!(parse_trend(&trend_json(&earlier)).expect("a trend"), written);
        let mut other = written;
        other.series[0].changes[0].sentence = "IOPS: halved".into();
        other.series[0].sentences = vec!["IOPS: halved".into(), "IOPS: what fell was more than what rose again".into()];
        other.series[0].points.iter_mut().skip(6).for_each(|point| point.words = "disturbed".into());
        assert!(trend_answer(&other).statements.is_empty());
        let text = trend_terminal(&other, &STYLE);
        assert!(!text.contains("halved") && text.contains("what fell was more than what rose again"), "{text}");
        assert_eq!(parse_trend(&trend_json(&other)).expect("a trend"), other);
    }

    /// Goal: a change is stated if most runs of both levels are confirmed, in every output. Method: the later level, with each word.
    #[test]
    fn a_change_between_levels_that_are_not_confirmed_is_not_stated() {
        for mark in Mark::ALL {
            let mut trend = document();
            for point in &mut trend.series[0].points[6..] {
                point.words = format!("{}: a reason", mark.word());
            }
            let answer = trend_answer(&trend);
            assert_eq!(answer.statements.len(), usize::from(mark.permits_a_winner()), "{mark:?}");
            let page = trend_html(&trend).split("<script").next().unwrap().to_owned();
            for text in [trend_terminal(&trend, &STYLE), trend_markdown(&trend), page, answer.headline.join(" ")] {
                assert_eq!(text.contains("fell from 100 to 50"), mark.permits_a_winner(), "{mark:?}: {text}");
                assert_eq!(text.contains("is not stated, because"), !mark.permits_a_winner(), "{mark:?}: {text}");
            }
            assert_eq!(crate::junit::trend_junit(&trend).contains("<failure"), mark.permits_a_winner(), "{mark:?}");
            let value: serde_json::Value = serde_json::from_str(&trend_json(&trend)).unwrap();
            assert_eq!(value["answer"], serde_json::to_value(&answer).unwrap());
        }
    }

    #[test]
    fn a_trend_is_read_back_from_its_json_and_other_texts_are_refused() {
        let trend = document();
        assert_eq!(parse_trend(&trend_json(&trend)).unwrap(), trend);
        assert!(matches!(parse_trend("{}"), Err(TrendError::NotATrend)));
        let newer = trend_json(&trend).replace("\"version\": 1", "\"version\": 9");
        assert!(matches!(parse_trend(&newer), Err(TrendError::Newer(9))));
        let damaged = trend_json(&trend).replace("\"series\"", "\"serious\"");
        assert!(matches!(parse_trend(&damaged), Err(TrendError::Damaged(_))));
        for text in [trend_terminal(&trend, &STYLE), trend_markdown(&trend)] {
            assert!(text.contains("fell from 100 to 50") && !text.contains('\u{1b}'), "{text}");
        }
    }
}
