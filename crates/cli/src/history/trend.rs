//! `trueio history trend`: a device's figures over its runs, and where their level changed.
//!
//! Runs are alike if job, operation and load are. Each such series is searched for changes of level by
//! `trueio_stats::change_points`, which needs at least ten runs, and about twenty to be useful. Figures that
//! are contradicted, and runs that are incomplete or on several devices at once, are excluded and counted.
//! Each series is searched at 5 %: of many series without a change, one in twenty shows a change by chance,
//! and the output states how many were searched. The 5 % are not divided among them, because with about
//! twenty runs no change could then be shown: the method shuffles blocks of runs, and eight blocks fall into
//! an extreme order once in 35 times.
//!
//! Cannot see: slow drifts; changes within the first or last five runs; why a level changed. Other
//! differences between the runs on both sides of a change are named, and may or may not be the cause.

use super::digest::{self, Digest, PROPERTIES, Row};
use super::{filter, find_device, short, store, unreadable};
use crate::failure::Failure;
use crate::kept::Place;
use crate::output;
use clap::ArgMatches;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_device::{System, environment, target_facts_unasked};
use trueio_model::{
    Mark, RunRecord, TREND_FORMAT, TREND_VERSION, Trend as Document, TrendChange, TrendDevice, TrendLeftOut,
    TrendPoint, TrendRun, TrendSeries, Verdict, units,
};
use trueio_report::message;
use trueio_stats::{ChangePoint, SEGMENT_MIN, change_points};
use trueio_store::{Device, Entry, Filter, Source, Store};

/// Minimum factor of a change.
const RATIO_MIN: f64 = 1.05;
/// From this many runs on, a clear step in their middle is found. With fewer, the shuffles rarely distinguish
/// it from chance, so a search without a result means nothing.
const RUNS_ENOUGH: usize = 20;
/// The probability of a false change, in each series.
const P_MAX: f64 = 0.05;

/// The metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    Iops,
    Bandwidth,
    P50,
    P99,
    P999,
    Cpu,
}

impl Metric {
    const ALL: [Metric; 6] = [Metric::Iops, Metric::Bandwidth, Metric::P50, Metric::P99, Metric::P999, Metric::Cpu];

    /// Returns its name on the command line and in JSON.
    fn name(self) -> &'static str {
        match self {
            Metric::Iops => "iops",
            Metric::Bandwidth => "bandwidth",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::Cpu => "cpu",
        }
    }

    /// Returns its name in text.
    fn title(self) -> &'static str {
        match self {
            Metric::Iops => "IOPS",
            Metric::Bandwidth => "bandwidth",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::Cpu => "CPU per I/O",
        }
    }

    /// Returns its unit in JSON.
    fn unit(self) -> &'static str {
        match self {
            Metric::Iops => "1/s",
            Metric::Bandwidth => "bytes/s",
            _ => "ns",
        }
    }

    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Metric::Iops => row.ios_per_s,
            Metric::Bandwidth => row.bytes_per_s,
            Metric::P50 => row.latency_ns_p50.map(|ns| ns as f64),
            Metric::P99 => row.latency_ns_p99.map(|ns| ns as f64),
            Metric::P999 => row.latency_ns_p999.map(|ns| ns as f64),
            Metric::Cpu => row.cpu_ns_per_io,
        }
    }

    /// Formats a value in text.
    fn show(self, value: f64) -> String {
        match self {
            Metric::Iops => units::format_count(value.round() as u64),
            Metric::Bandwidth => units::format_bandwidth(value),
            _ => units::format_duration_ns(value.round() as u64),
        }
    }

    /// Returns true if a rise is an improvement.
    fn rises_to_the_better(self) -> bool {
        matches!(self, Metric::Iops | Metric::Bandwidth)
    }
}

/// A run of a series.
struct Point {
    entry: usize,
    row: Row,
}

/// Runs that are alike.
struct Series {
    job: String,
    op: String,
    load: String,
    points: Vec<Point>,
}

/// The number of excluded figures and runs.
#[derive(Default)]
struct LeftOut {
    older: u64,
    unreadable: u64,
    incomplete: u64,
    several_devices: u64,
    contradicted: u64,
}

/// A metric of a series, and its changes.
struct Followed {
    metric: Metric,
    /// Index into the series' points, and the value; runs without one are omitted.
    values: Vec<(usize, f64)>,
    changes: Vec<ChangePoint>,
}

/// Runs the command.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let html = matches.get_one::<PathBuf>("html");
    let html = html.map(|path| output::reserve("--html", path)).transpose()?;
    let mut store = store()?;
    let mut wanted = filter(&store, matches)?;
    let limit = *matches.get_one::<u32>("limit").expect("it has a default") as usize;
    let subject = match matches.get_one::<String>("of") {
        Some(name) => named(&store, name)?,
        None => newest(&store, &wanted)?,
    };
    let Selected { mut entries, older_count } = subject.select(&store, &mut wanted, limit)?;
    entries.reverse();
    let metrics: Vec<Metric> = match matches.get_many::<String>("metric") {
        Some(names) => Metric::ALL.into_iter().filter(|m| names.clone().any(|name| name == m.name())).collect(),
        None => vec![Metric::Iops, Metric::P99],
    };
    let Gathered { series, digests, mut left_out } = gather(&mut store, &subject, &entries)?;
    left_out.older = older_count;
    let followed: Vec<Vec<Followed>> =
        series.iter().map(|s| metrics.iter().map(|&metric| follow(s, metric)).collect()).collect();

    let trend = Trend {
        subject: &subject,
        entries: &entries,
        digests: &digests,
        series: &series,
        followed: &followed,
        left_out: &left_out,
    };
    let trend = trend.document();
    if !output::print_json(matches, || format!("{}\n", trueio_report::trend_json(&trend)))? {
        output::print_all(&trueio_report::trend_terminal(&trend, &output::style_of(&std::io::stdout())))?;
    }
    if let Some(reserved) = html {
        let path = reserved.path().to_owned();
        output::write(reserved, trueio_report::trend_html(&trend).as_bytes())?;
        message!("page: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Which runs a trend follows.
enum Subject {
    /// Those on a device.
    Device(Device),
    /// Those at a path of a machine, where the device has no identity.
    Place(Place),
    /// Those with the tags of `--tag`, because the newest of them was on no device that can be recognised.
    Tags(String),
}

/// The runs of a trend, newest first.
struct Selected {
    entries: Vec<Entry>,
    /// Number of those that `--limit` leaves out.
    older_count: u64,
}

impl Subject {
    /// Returns the runs.
    fn select(&self, store: &Store, wanted: &mut Filter, limit: usize) -> Result<Selected, Failure> {
        if let Subject::Device(device) = self {
            wanted.device = Some(device.id);
        }
        if let Subject::Place(place) = self {
            // Only its record holds where a run was.
            let mut entries = store.list(wanted).map_err(|e| unreadable(&e))?;
            entries.retain(|entry| {
                entry.devices.is_empty() && record_of(store, entry).is_some_and(|record| place.is_of(&record))
            });
            let older_count = entries.len().saturating_sub(limit) as u64;
            entries.truncate(limit);
            return Ok(Selected { entries, older_count });
        }
        let all = Filter { limit: None, ..wanted.clone() };
        wanted.limit = Some(limit);
        let entries = store.list(wanted).map_err(|e| unreadable(&e))?;
        let older_count = store.count(&all).map_err(|e| unreadable(&e))? - entries.len() as u64;
        Ok(Selected { entries, older_count })
    }

    /// Returns what the runs have in common, for the first sentence.
    fn words(&self) -> String {
        match self {
            Subject::Device(device) => format!("on device #{} {}", device.id, device.label),
            Subject::Place(_) | Subject::Tags(_) => self.label(),
        }
    }

    fn label(&self) -> String {
        match self {
            Subject::Device(device) => device.label.clone(),
            Subject::Place(place) => place.by_path().unwrap_or_default(),
            Subject::Tags(tags) => format!("by tag, whatever the device: {tags}"),
        }
    }

    /// Returns the number of the device; 0 without one.
    fn device_id(&self) -> i64 {
        match self {
            Subject::Device(device) => device.id,
            Subject::Place(_) | Subject::Tags(_) => 0,
        }
    }

    /// Returns true if a run is on more devices than one.
    fn is_on_several(&self, entry: &Entry) -> bool {
        match self {
            Subject::Device(_) => entry.devices.len() != 1,
            Subject::Place(_) | Subject::Tags(_) => entry.devices.len() > 1,
        }
    }
}

/// Returns the record of a run, if it can be read.
fn record_of(store: &Store, entry: &Entry) -> Option<RunRecord> {
    trueio_report::parse(&store.get(&entry.id).ok()?.json).ok()
}

/// Returns the runs that a name selects: a device of the history, or the path of one without an identity.
fn named(store: &Store, name: &str) -> Result<Subject, Failure> {
    let path = Path::new(name);
    if path.exists() {
        let system = System::live();
        let facts = target_facts_unasked(&system, path).map_err(|e| Failure::refused_by(&e, None))?;
        let place = Place::of(&facts, &environment(&system));
        if place.by_path().is_some() {
            return Ok(Subject::Place(place));
        }
    }
    find_device(store, name).map(Subject::Device)
}

/// Returns the subject of the newest run of a selection. The device of another run would not be the one that the user means.
fn newest(store: &Store, wanted: &Filter) -> Result<Subject, Failure> {
    const HINT: &str = "hint: a device is recognised by world-wide identifier, serial number or filesystem UUID \
                        (docs/history.md); `trueio history trend DEVICE` follows one of `trueio history devices`, and \
                        `--tag TAG` the runs with a tag";
    let newest = Filter { limit: Some(1), ..wanted.clone() };
    let newest = store.list(&newest).map_err(|e| unreadable(&e))?.into_iter().next();
    let Some(run) = newest else {
        let tags: Vec<String> = wanted.tags.iter().map(|tag| format!(" with the tag `{tag}`")).collect();
        let of = tags.join(" and");
        return Err(Failure::refused(format!("the history holds no run{of}, so there is no trend\n\n{HINT}")));
    };
    // Of a run on several, the one with the newest run; of equal ones, the first that the history learnt of.
    let devices = run.devices.iter().map(|id| store.device(*id)).collect::<Result<Vec<_>, _>>();
    let devices = devices.map_err(|e| unreadable(&e))?.into_iter().flatten();
    if let Some(device) = devices.min_by_key(|device| (Reverse(device.newest_unix_s), device.id)) {
        return Ok(Subject::Device(device));
    }
    if !wanted.tags.is_empty() {
        return Ok(Subject::Tags(wanted.tags.join(", ")));
    }
    let place = record_of(store, &run).and_then(|record| Place::of_record(&record));
    place.filter(|place| place.by_path().is_some()).map(Subject::Place).ok_or_else(|| {
        Failure::refused(format!(
            "the newest run {} ({}) was on a device that cannot be recognised, so which earlier runs were on it is \
             unknown\n\n{HINT}",
            short(&run.id),
            run.target
        ))
    })
}

/// The series of a device's runs.
struct Gathered {
    /// Each oldest first.
    series: Vec<Series>,
    /// Of each run; `None` for one that is in no series.
    digests: Vec<Option<Digest>>,
    left_out: LeftOut,
}

fn gather(store: &mut Store, subject: &Subject, entries: &[Entry]) -> Result<Gathered, Failure> {
    let mut left_out = LeftOut::default();
    let mut wanted = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if subject.is_on_several(entry) {
            left_out.several_devices += 1;
        } else if entry.outcome != "complete" || entry.source != Source::Trueio {
            left_out.incomplete += 1;
        } else {
            wanted.push(index);
        }
    }
    let followed: Vec<&Entry> = wanted.iter().map(|&index| &entries[index]).collect();
    let mut digests = vec![None; entries.len()];
    for (index, digest) in wanted.into_iter().zip(digest::digests(store, &followed)?) {
        left_out.unreadable += u64::from(digest.is_none());
        digests[index] = digest;
    }
    let mut series: Vec<Series> = Vec::new();
    for (entry, digest) in digests.iter().enumerate() {
        for row in digest.iter().flat_map(|digest| &digest.rows) {
            if row.verdict == Some(Verdict::Contradicted) {
                left_out.contradicted += 1;
                continue;
            }
            let is_it = |s: &&mut Series| (&s.job, &s.op, &s.load) == (&row.job, &row.op, &row.load);
            let point = Point { entry, row: row.clone() };
            match series.iter_mut().find(is_it) {
                Some(found) => found.points.push(point),
                None => series.push(Series {
                    job: row.job.clone(),
                    op: row.op.clone(),
                    load: row.load.clone(),
                    points: vec![point],
                }),
            }
        }
    }
    Ok(Gathered { series, digests, left_out })
}

/// Returns what makes runs doubtful, the worst first: `2 not the disk: 96 % from memory; 3 disturbed`. The words of a single run, or
/// of several that are the same, are whole; of others only the word is the same.
fn doubts<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<(Mark, Vec<&str>)> = Vec::new();
    for words in words {
        let mark = Mark::of_words(words).unwrap_or(Mark::Disturbed);
        match all.iter_mut().find(|(known, _)| *known == mark) {
            Some((_, texts)) => texts.push(words),
            None => all.push((mark, vec![words])),
        }
    }
    all.sort_by_key(|(mark, _)| Reverse(*mark));
    let text = |(mark, texts): &(Mark, Vec<&str>)| {
        let is_one = texts.iter().all(|text| text == &texts[0]);
        format!("{} {}", texts.len(), if is_one { texts[0] } else { mark.word() })
    };
    all.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn follow(series: &Series, metric: Metric) -> Followed {
    let of = |(index, point): (usize, &Point)| Some((index, metric.of(&point.row)?));
    let values: Vec<(usize, f64)> = series.points.iter().enumerate().filter_map(of).collect();
    let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    Followed { metric, changes: change_points(&plain, P_MAX, RATIO_MIN), values }
}

/// Everything that is printed.
struct Trend<'a> {
    subject: &'a Subject,
    entries: &'a [Entry],
    digests: &'a [Option<Digest>],
    series: &'a [Series],
    followed: &'a [Vec<Followed>],
    left_out: &'a LeftOut,
}

impl Trend<'_> {
    /// Returns the run of a value of a series.
    fn entry(&self, series: &Series, followed: &Followed, index: usize) -> &Entry {
        &self.entries[series.points[followed.values[index].0].entry]
    }

    /// Returns the sentences about a metric.
    fn sentences(&self, series: &Series, followed: &Followed) -> Vec<String> {
        let name = followed.metric.title();
        let count = followed.values.len();
        let show = |value: f64| followed.metric.show(value);
        let values = || followed.values.iter().map(|(_, value)| *value);
        let Some(last) = values().next_back() else {
            return vec![format!("{name}: in no run")];
        };
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let runs = format!("{count} run{}", if count == 1 { "" } else { "s" });
        let mut sentences = if count == 1 {
            vec![format!("{name}: {} in one run", show(last))]
        } else {
            vec![format!("{name}: {} in the newest of {runs}, {} to {} in all", show(last), show(low), show(high))]
        };
        let rows = followed.values.iter().map(|(index, _)| &series.points[*index].row);
        let suspect: Vec<&Row> = rows.filter(|row| row.verdict == Some(Verdict::Suspect)).collect();
        if !suspect.is_empty() {
            sentences.push(format!(
                "{name}: in {} of {runs} the evidence makes it doubtful ({})",
                suspect.len(),
                doubts(suspect.iter().map(|row| row.words.as_str()))
            ));
        }
        if followed.changes.is_empty() && count < RUNS_ENOUGH {
            sentences.push(format!(
                "{name}: {runs} are too few to show a change of level or its absence; {RUNS_ENOUGH} are enough"
            ));
        } else if followed.changes.is_empty() {
            sentences
                .push(format!("{name}: no change of level of {:.0} % or more is shown", (RATIO_MIN - 1.0) * 100.0));
        }
        for change in &followed.changes {
            sentences.push(self.change_sentence(series, followed, change));
            let differences = self.differences(series, followed, change.index);
            if !differences.is_empty() {
                sentences.push(format!("{name}: between these two runs also changed: {}", differences.join("; ")));
            }
        }
        sentences
    }

    /// Returns the sentence about a change.
    fn change_sentence(&self, series: &Series, followed: &Followed, change: &ChangePoint) -> String {
        let (name, show) = (followed.metric.title(), |value: f64| followed.metric.show(value));
        let entry = self.entry(series, followed, change.index);
        let before = self.entry(series, followed, change.index - 1);
        let percent = (change.after / change.before - 1.0) * 100.0;
        let is_better = (percent > 0.0) == followed.metric.rises_to_the_better();
        format!(
            "{name}: {} from {} to {} ({percent:+.0} %), {}, between run {} ({}) and run {} ({}); p {:.3}",
            if percent > 0.0 { "rose" } else { "fell" },
            show(change.before),
            show(change.after),
            if is_better { "better" } else { "worse" },
            short(&before.id),
            before.started_at,
            short(&entry.id),
            entry.started_at,
            change.p
        )
    }

    /// Returns the other differences between the runs on both sides of a change.
    fn differences(&self, series: &Series, followed: &Followed, index: usize) -> Vec<String> {
        let properties = |index: usize| {
            let digest = self.digests[series.points[followed.values[index].0].entry].as_ref();
            digest.map(|digest| digest.properties.as_slice()).unwrap_or_default()
        };
        let pairs = properties(index - 1).iter().zip(properties(index));
        let named = PROPERTIES.iter().zip(pairs).filter(|(_, (before, after))| before != after);
        named.map(|(name, (before, after))| format!("{name} ({before} → {after})")).collect()
    }

    /// Returns sentences about all series.
    fn head(&self) -> Vec<String> {
        let count = self.entries.len();
        let mut sentences = vec![format!("{count} run{} {}", if count == 1 { "" } else { "s" }, self.subject.words())];
        let left_out = self.left_out;
        for (n, noun, why) in [
            (left_out.older, "run", "older than those that `--limit` allows"),
            (left_out.incomplete, "run", "not complete"),
            (left_out.several_devices, "run", "on several devices at once"),
            (left_out.unreadable, "run", "its record cannot be read"),
            (left_out.contradicted, "figure", "it is withheld (`trueio report` prints why)"),
        ] {
            if n > 0 {
                let s = if n == 1 { "" } else { "s" };
                sentences.push(format!("{} {noun}{s} excluded: {why}", units::format_count(n)));
            }
        }
        let searched = self.searched_count();
        if searched > 1 {
            sentences.push(format!(
                "{searched} series were searched for changes, each at {:.0} %: of those that did not change, one in {:.0} \
                 shows a change by chance",
                P_MAX * 100.0,
                1.0 / P_MAX
            ));
        }
        sentences
    }

    /// Returns the number of series that were long enough to be searched.
    fn searched_count(&self) -> usize {
        self.followed.iter().flatten().filter(|one| one.values.len() >= 2 * SEGMENT_MIN).count()
    }

    /// Returns the document.
    fn document(&self) -> Document {
        let mut series = Vec::new();
        for (alike, followed) in self.series.iter().zip(self.followed) {
            series.extend(followed.iter().map(|one| self.document_of(alike, one)));
        }
        let left_out = self.left_out;
        Document {
            format: TREND_FORMAT.to_owned(),
            version: TREND_VERSION,
            command: crate::flags::as_typed(),
            device: TrendDevice { id: self.subject.device_id(), label: self.subject.label() },
            run_count: self.entries.len() as u64,
            left_out: TrendLeftOut {
                older_runs: left_out.older,
                incomplete_runs: left_out.incomplete,
                runs_on_several_devices: left_out.several_devices,
                unreadable_runs: left_out.unreadable,
                contradicted_figures: left_out.contradicted,
            },
            p_max: P_MAX,
            searched_count: self.searched_count() as u64,
            ratio_min: RATIO_MIN,
            sentences: self.head(),
            series,
            answer: None,
        }
    }

    fn document_of(&self, series: &Series, one: &Followed) -> TrendSeries {
        let run = |index: usize| {
            let entry = self.entry(series, one, index);
            TrendRun { run_id: entry.id.clone(), started_at: entry.started_at.clone() }
        };
        let points = one.values.iter().enumerate().map(|(index, (point, value))| TrendPoint {
            run: run(index),
            value: *value,
            verdict: series.points[*point].row.verdict,
            words: series.points[*point].row.words.clone(),
        });
        let changes = one.changes.iter().map(|change| TrendChange {
            from: run(change.index - 1),
            at: run(change.index),
            before: change.before,
            after: change.after,
            ratio: change.after / change.before,
            p: change.p,
            also_changed: self.differences(series, one, change.index),
            sentence: self.change_sentence(series, one, change),
        });
        TrendSeries {
            job: series.job.clone(),
            op: series.op.clone(),
            load: series.load.clone(),
            metric: one.metric.name().to_owned(),
            unit: one.metric.unit().to_owned(),
            points: points.collect(),
            changes: changes.collect(),
            is_enough: one.values.len() >= RUNS_ENOUGH,
            sentences: self.sentences(series, one),
        }
    }
}
