//! Sentences of a study, shared by terminal and page.

use super::answer::row_mark;
use crate::verdicts::{Mark, outcome_words};
use trueio_model::{
    DurabilityKind, OpKind, PublishedFigure, Statistic, StudyFigure, StudyMetric, StudyMode, StudyRecord, StudyRow,
    units,
};

/// A figure of a row: its metric, the published value, the measured value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) row: &'a StudyRow,
    /// True for the first line of its row.
    pub(super) is_first: bool,
    pub(super) op: Option<OpKind>,
    pub(super) metric: StudyMetric,
    pub(super) statistic: Statistic,
    pub(super) published: Vec<&'a PublishedFigure>,
    pub(super) here: Option<&'a StudyFigure>,
}

/// Returns the metrics of a study's tables: the published ones and those that it names; else bandwidth and
/// latency.
fn metrics(study: &StudyRecord) -> Vec<(StudyMetric, Statistic)> {
    let mut found: Vec<(StudyMetric, Statistic)> = Vec::new();
    for figure in study.modes.iter().flat_map(|mode| &mode.rows).flat_map(|row| &row.published) {
        if !found.contains(&(figure.metric, figure.statistic)) {
            found.push((figure.metric, figure.statistic));
        }
    }
    if found.is_empty() && study.shown.is_empty() {
        found.extend([(StudyMetric::Bandwidth, Statistic::Median), (StudyMetric::LatP50, Statistic::Median)]);
    }
    for metric in &study.shown {
        if !found.contains(&(*metric, Statistic::Median)) {
            found.push((*metric, Statistic::Median));
        }
    }
    found
}

/// Returns true for the time that a whole row takes: it depends on the size.
fn is_total(metric: StudyMetric) -> bool {
    matches!(metric, StudyMetric::Elapsed | StudyMetric::ElapsedUnsynced | StudyMetric::SourceWait)
}

/// Returns true if the run is smaller than the source's, or other than the study's: published times do not compare then.
fn is_scaled(mode: &StudyMode) -> bool {
    !mode.scale.is_empty()
}

/// Returns what follows the name of the study in the title of a report.
pub(super) fn quick(study: &StudyRecord) -> &'static str {
    if study.is_quick { ", quick run" } else { "" }
}

/// Returns a title with the words for a quick run.
pub(super) fn titled(study: &StudyRecord, title: &str) -> String {
    if study.is_quick { format!("quick run: {title}") } else { title.to_owned() }
}

/// Returns the lines of a mode's table.
pub(super) fn lines<'a>(study: &StudyRecord, mode: &'a StudyMode) -> Vec<Line<'a>> {
    let wanted = metrics(study);
    let mut out = Vec::new();
    for row in &mode.rows {
        let begin = out.len();
        for &(metric, statistic) in &wanted {
            let fits = |m: StudyMetric, s: Statistic| m == metric && s == statistic;
            let published: Vec<_> = row.published.iter().filter(|f| fits(f.metric, f.statistic)).collect();
            let here: Vec<_> = row.figures.iter().filter(|f| fits(f.metric, f.statistic)).collect();
            let mut ops: Vec<Option<OpKind>> = Vec::new();
            let mut add = |op| {
                if !ops.contains(&op) {
                    ops.push(op)
                }
            };
            published.iter().for_each(|f| add(f.op));
            if published.is_empty() {
                // The whole row, or each operation if the metric exists for operations only.
                let whole = here.iter().any(|f| f.op.is_none());
                here.iter().filter(|f| f.op.is_none() || !whole).for_each(|f| add(f.op));
            }
            for op in ops {
                // If the source names no operation, the figure belongs to the row's only one.
                let of_op = here.iter().find(|f| f.op == op);
                let found = of_op.or_else(|| here.iter().find(|f| op.is_none() || f.op.is_none())).copied();
                out.push(Line {
                    row,
                    is_first: out.len() == begin,
                    op,
                    metric,
                    statistic,
                    published: published
                        .iter()
                        .filter(|f| f.op == op && !(is_total(metric) && is_scaled(mode)))
                        .copied()
                        .collect(),
                    here: found,
                });
            }
        }
        if out.len() == begin {
            out.push(Line {
                row,
                is_first: true,
                op: None,
                metric: wanted[0].0,
                statistic: wanted[0].1,
                published: Vec::new(),
                here: None,
            });
        }
    }
    out
}

impl Line<'_> {
    /// Formats `read bandwidth P90`.
    pub(super) fn figure_name(&self) -> String {
        let mut words: Vec<String> = self.op.map(|op| op.to_string()).into_iter().collect();
        words.push(metric_title(self.metric).to_owned());
        if self.statistic != Statistic::Median {
            words.push(self.statistic.name().to_owned());
        }
        words.join(" ")
    }

    /// Formats the published figures as the source prints them: `0.262 s`, or `925, 0.112*! s` of two machines, in the
    /// source's order; with `!` for an implausible figure.
    pub(super) fn published_text(&self) -> String {
        let mut text = String::new();
        for (index, figure) in self.published.iter().enumerate() {
            let printed = printed(figure);
            let (digits, unit) = printed.rsplit_once(' ').unwrap_or((&printed, ""));
            let next = self.published.get(index + 1).map(|next| self::printed(next));
            let has_next_unit = next.is_some_and(|next| next.rsplit_once(' ').is_some_and(|(_, next)| next == unit));
            text.push_str(if index > 0 { ", " } else { "" });
            text.push_str(digits);
            text.push_str(if figure.impossible.is_some() { "!" } else { "" });
            if !unit.is_empty() && !has_next_unit {
                text.push_str(&format!(" {unit}"));
            }
        }
        if text.is_empty() { "–".to_owned() } else { text }
    }

    /// Returns the word of the row; `None` if it was not judged.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.row.verdict.map(|_| row_mark(self.row))
    }

    /// Formats our figure, or the reason why it is missing.
    pub(super) fn here_text(&self) -> String {
        match self.here {
            Some(figure) => shown(self.metric, figure.value),
            None if self.row.failure.is_some() => "failed".to_owned(),
            None if self.mark().is_some_and(|mark| !mark.is_shown()) => "x".to_owned(),
            None => "–".to_owned(),
        }
    }

    /// Formats `118 MiB/s to 131 MiB/s`.
    pub(super) fn interval_text(&self) -> String {
        match self.here {
            Some(StudyFigure { interval: Some((low, high)), .. }) => {
                format!("{} to {}", shown(self.metric, *low), shown(self.metric, *high))
            }
            Some(StudyFigure { samples: 1, .. }) => "1 sample".to_owned(),
            Some(StudyFigure { samples, .. }) => format!("{samples} samples"),
            None => String::new(),
        }
    }
}

/// Returns a published figure as the source prints it; documents without that have it in our units.
pub(super) fn printed(figure: &PublishedFigure) -> String {
    match figure.printed.as_str() {
        "" => shown(figure.metric, figure.value),
        printed => crate::text::clean(printed).into_owned(),
    }
}

/// Returns a metric's name for a heading.
pub(super) fn metric_title(metric: StudyMetric) -> &'static str {
    match metric {
        StudyMetric::Elapsed => "time",
        StudyMetric::ElapsedUnsynced => "time without sync calls",
        StudyMetric::SourceWait => "source wait",
        StudyMetric::Bandwidth => "bandwidth",
        StudyMetric::Iops => "IOPS",
        StudyMetric::SlatMean => "slat mean",
        StudyMetric::ClatMean => "clat mean",
        StudyMetric::ClatMin => "clat min",
        StudyMetric::ClatMax => "clat max",
        StudyMetric::ClatStdev => "clat stdev",
        StudyMetric::ClatP50 => "clat p50",
        StudyMetric::ClatP99 => "clat p99",
        StudyMetric::Submission => "submission",
        StudyMetric::LatMean => "lat mean",
        StudyMetric::LatP50 => "lat p50",
        StudyMetric::LatP99 => "lat p99",
        StudyMetric::DiskBusy => "disk busy",
        StudyMetric::DiskRequests => "disk requests",
        StudyMetric::DiskMerges => "disk merges",
        StudyMetric::DiskWait => "time of requests",
        StudyMetric::Flushes => "flushes",
        StudyMetric::Errors => "errors",
    }
}

/// Formats a figure with its unit.
pub(super) fn shown(metric: StudyMetric, value: f64) -> String {
    match metric {
        StudyMetric::Bandwidth => units::format_bandwidth(value),
        StudyMetric::Iops => crate::text::figure(value),
        StudyMetric::DiskBusy => format!("{} %", units::three_digits(value * 100.0)),
        StudyMetric::DiskRequests | StudyMetric::DiskMerges => units::format_count(value.round() as u64),
        StudyMetric::Flushes | StudyMetric::Errors => crate::text::figure(value),
        _ => units::format_duration_ns((value * 1e9) as u64),
    }
}

/// Describes whether the writes reached stable storage.
pub(super) fn durability_word(row: &StudyRow) -> &'static str {
    match row.durability.as_ref().map(|d| d.is) {
        None => "",
        Some(DurabilityKind::Shown) => "durable",
        Some(DurabilityKind::Declared) => "declared durable",
        Some(DurabilityKind::NotAsked) => "not requested",
        Some(DurabilityKind::Refuted) => "NOT durable",
        Some(DurabilityKind::NotShown) => "not shown",
    }
}

/// Returns the minimum and maximum number of flushes that the disk counted in the samples of a row that
/// writes.
pub(super) fn flushes(row: &StudyRow) -> String {
    if row.durability.is_none() {
        return String::new();
    }
    let counts = || row.samples.iter().filter_map(|sample| sample.flush_count);
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least == most => units::format_count(least),
        (Some(least), Some(most)) => format!("{} to {}", units::format_count(least), units::format_count(most)),
        _ => "–".to_owned(),
    }
}

/// Returns true if the flushes of any row that writes were counted.
pub(super) fn has_flushes(rows: &[StudyRow]) -> bool {
    rows.iter().any(|row| row.durability.is_some() && row.samples.iter().any(|sample| sample.flush_count.is_some()))
}

/// Describes how the samples of a mode were taken.
pub(super) fn method(mode: &StudyMode) -> String {
    let samples =
        if mode.samples == 1 { "one sample per row".to_owned() } else { format!("{} samples per row", mode.samples) };
    let order = match mode.order_seed {
        Some(seed) => format!("each round in a different order (seed {seed})"),
        None => "in the source's order".to_owned(),
    };
    let scale = if mode.scale.is_empty() { String::new() } else { format!("; scaled down: {}", mode.scale.join("; ")) };
    format!("{samples}, {order}{scale}.")
}

/// Returns the heading of the notes about the method, and the notes. They describe the study at its full size, so a smaller
/// run begins with what it did.
pub(super) fn notes(mode: &StudyMode) -> (&'static str, Vec<String>) {
    if !is_scaled(mode) {
        return ("Method", mode.notes.clone());
    }
    let this = format!("This run: {}", method(mode));
    ("Method: this run, and the study at its full size", [vec![this], mode.notes.clone()].concat())
}

/// Returns the sentence of each check that objects, with the rows it applies to.
pub(super) fn doubts(mode: &StudyMode) -> Vec<String> {
    let mut found: Vec<(String, String, Vec<&str>)> = Vec::new();
    for row in &mode.rows {
        let is_shown = row_mark(row).is_shown();
        for check in row.checks.iter().filter(|check| check.objects()) {
            let sentence = if is_shown { check.sentence.clone() } else { check.of_withheld().sentence };
            let key = format!("{}: {}", outcome_words(check), check.name);
            match found.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, _, rows)) => rows.push(&row.name),
                None => found.push((key, sentence, vec![&row.name])),
            }
        }
    }
    found
        .into_iter()
        .map(|(key, sentence, rows)| match rows.len() {
            1..=3 => format!("{key}: {}: {sentence}", rows.join(", ")),
            n => format!("{key}: {} and {} more rows: {sentence}", rows[0], n - 1),
        })
        .collect()
}

/// Returns the rows without a figure, and the reasons.
pub(super) fn failures(mode: &StudyMode) -> Vec<String> {
    mode.rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.failure.as_ref()?))).collect()
}

/// Explains the marks that occur in a table.
pub(super) fn marks(study: &StudyRecord, mode: &StudyMode, lines: &[Line<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    if has_flushes(&mode.rows) {
        out.push(
            "flushes: the disk's flush counter during a sample, including flushes of other processes; minimum and \
             maximum."
                .to_owned(),
        );
    }
    let hidden = |row: &StudyRow| row.published.iter().any(|figure| is_total(figure.metric));
    if is_scaled(mode) && mode.rows.iter().any(hidden) {
        out.push(
            "published times are left out, because this run is not of the published size; the ratios are compared."
                .to_owned(),
        );
    }
    let published = || lines.iter().flat_map(|line| &line.published);
    let machines = lines.iter().find(|line| line.published.len() > 1);
    if let Some(line) = machines {
        let names: Vec<&str> = line.published.iter().map(|figure| figure.setting.as_str()).collect();
        out.push(format!("published: on {} machines, in this order: {}.", names.len(), names.join("; ")));
    }
    if let Some(note) =
        study.source.asterisk.as_ref().filter(|_| published().any(|figure| figure.printed.contains('*')))
    {
        out.push(format!("* the author's mark: \"{note}\"."));
    }
    if published().any(|figure| figure.impossible.is_some()) {
        out.push("! an implausible published figure; the reasons are below.".to_owned());
    }
    if lines.iter().any(|line| line.here_text() == "x") {
        out.push("x no figure, because the evidence contradicts it; the reasons are below.".to_owned());
    }
    out
}

/// Returns the system calls per I/O of each row that recorded them.
pub(super) fn syscalls(mode: &StudyMode) -> Vec<String> {
    mode.rows
        .iter()
        .filter_map(|row| {
            let trace = row.syscalls.as_ref()?;
            if let Some(reason) = &trace.missing {
                return Some(format!("{}: not recorded: {reason}", row.name));
            }
            let ios = row.samples.last().map_or(0, |sample| sample.io_count).max(1) as f64;
            // A worker waits for the others and reads its CPU time at its start and end; these calls and rare
            // ones are not part of an I/O.
            let is_aside = |name: &str| ["futex", "getrusage"].contains(&name);
            let calls = trace.jobs.iter().flat_map(|job| &job.calls);
            let (of_ios, few): (Vec<_>, Vec<_>) =
                calls.partition(|call| !is_aside(&call.name) && call.count as f64 > ios / 100.0);
            let calls: f64 = of_ios.iter().map(|call| call.count as f64).sum();
            let time_ns: f64 = of_ios.iter().map(|call| call.latency.sum_ns() as f64).sum();
            let each: Vec<String> = of_ios
                .iter()
                .map(|call| {
                    let mean = call.latency.mean_ns().map_or_else(String::new, |ns| {
                        format!(", {} on average", units::format_duration_ns(ns as u64))
                    });
                    let failed = match call.error_count() {
                        0 => String::new(),
                        count => format!(", {} failed", units::format_count(count)),
                    };
                    format!("{} × {}{mean}{failed}", call.name, units::format_count(call.count))
                })
                .collect();
            let few: Vec<String> = few.iter().map(|call| format!("{} × {}", call.name, call.count)).collect();
            let few = if few.is_empty() { String::new() } else { format!("; also {}", few.join(", ")) };
            let lost = match trace.lost_event_count {
                0 => String::new(),
                count => format!("; {} events were lost, so these counts are lower bounds", units::format_count(count)),
            };
            Some(format!(
                "{}: {} calls per I/O, {} in all: {}{few}{lost}",
                row.name,
                units::three_digits(calls / ios),
                units::format_duration_ns((time_ns / ios) as u64),
                each.join("; "),
            ))
        })
        .collect()
}

/// Returns the implausible published figures: all if there are few, otherwise the first ones.
pub(super) fn impossible(study: &StudyRecord) -> Vec<String> {
    let all = &study.source.impossible;
    let shown = if all.len() > 16 { 4 } else { all.len() };
    let mut out: Vec<String> = all.iter().take(shown).map(|one| one.sentence.clone()).collect();
    if all.len() > shown {
        out.push(format!(
            "And {} more figures beyond the same limit (the JSON and the HTML page list all).",
            all.len() - shown
        ));
    }
    out
}
