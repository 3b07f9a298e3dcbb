//! Two or more earlier runs, one a side.
//!
//! Phases are compared by their names. The interval of a rate comes from blocks of the run's own series, long enough that
//! neighbours are nearly independent; seconds are never taken for samples. That of a percentile comes from the whole run's
//! latencies and how they depend on each other. It applies to these runs and not to later
//! ones: variation from run to run is in neither of them. So the sentences are in the past tense, and a gate with one run
//! a side is undecided.
//!
//! Not available: CPU per I/O with an interval (a record's series does not contain it), and any interval from fio's JSON.
//!
//! Source of a ratio's interval from those of its parts: G. Y. Zou & A. Donner, "Construction of confidence limits about
//! effect measures", Statistics in Medicine 27 (2008).

use crate::answer::{conclusion_of, figure_percent, shape_obstacle};
use crate::circumstances;
use crate::fio;
use crate::sample::{Sample, dependence_of};
use trueio_model::ForeignRun;
use trueio_model::{
    Answer, Basis, Circumstance, Conclusion, Dependence, EvidenceLevel, Figure, Histogram, JobRecord, Mark, Metric,
    Outcome, Part, PhaseRecord, Ratio, RunRecord, SeriesRow, Side, Slice, Verdict, format_utc, units,
};
use trueio_stats::{Interval, NoInterval, blocks, decide, log_ratio_of_means, quantile_interval};

/// A stored run.
#[derive(Debug, Clone)]
pub enum StoredRun {
    /// One of this program's.
    Record(Box<RunRecord>),
    /// One of fio's.
    Fio(ForeignRun),
}

/// A run and what it is called.
#[derive(Debug, Clone)]
pub struct Named {
    /// A file's name or an id.
    pub name: String,
    /// The run.
    pub run: StoredRun,
}

/// Stored runs cannot be compared at all.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordsError {
    /// No phase has a name that both have.
    #[error("`{first}` and `{this}` have no phase in common: {of_first} against {of_this}")]
    NothingInCommon {
        /// The name of the first side.
        first: String,
        /// The name of the other.
        this: String,
        /// The first side's phases.
        of_first: String,
        /// The other's.
        of_this: String,
    },
    /// A side holds no figures.
    #[error("`{0}` holds no phase: nothing was measured")]
    Empty(String),
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// One part for each phase that all sides have.
    pub parts: Vec<Part>,
    /// What differs between the sides.
    pub differences: Vec<Circumstance>,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// A phase as it is compared.
struct Entry {
    side: Side,
    shape: Option<crate::sample::Shape>,
    latency_kind: String,
    /// Equal rows, to be joined to blocks, of the metrics that have them.
    series: Vec<(Metric, Vec<f64>)>,
    /// How the I/Os depend on each other, if the record shows it.
    dependence: Option<Dependence>,
    /// Length of the measured part, in nanoseconds.
    elapsed_ns: u64,
    /// The span of one row.
    row_ns: u64,
    /// True if it is of a result of fio.
    is_of_fio: bool,
    /// Why the figures do not stand.
    objection: Option<String>,
    options: Vec<(String, String)>,
}

/// Compares stored runs with the first of them, at a margin.
///
/// # Errors
/// [`RecordsError`] if there is nothing to compare.
pub fn compare_runs(runs: &[Named], margin: f64) -> Result<Compared, RecordsError> {
    let sides: Vec<Vec<(String, Entry)>> = runs.iter().map(entries).collect();
    if let Some((run, _)) = runs.iter().zip(&sides).find(|(_, entries)| entries.is_empty()) {
        return Err(RecordsError::Empty(run.name.clone()));
    }
    let names_of = |side: &[(String, Entry)]| side.iter().map(|e| e.0.as_str()).collect::<Vec<_>>().join(", ");
    // Two runs of one phase each are meant for each other, whatever it is called.
    let is_single = sides.iter().all(|side| side.len() == 1);
    let mut compared = Compared { parts: Vec::new(), differences: Vec::new(), notes: Vec::new() };
    let Some((first_run, first)) = runs.first().zip(sides.first()) else { return Ok(compared) };
    for (index, (run, side)) in runs.iter().zip(&sides).enumerate().skip(1) {
        if !is_single && !side.iter().any(|e| first.iter().any(|f| f.0 == e.0)) {
            return Err(RecordsError::NothingInCommon {
                first: first_run.name.clone(),
                this: run.name.clone(),
                of_first: names_of(first),
                of_this: names_of(side),
            });
        }
        if let (StoredRun::Record(a), StoredRun::Record(b)) = (&first_run.run, &run.run) {
            compared.differences.extend(circumstances::of_records(index, a, b));
            for plan in &a.plan.jobs {
                let same = b.plan.jobs.iter().find(|p| p.name == plan.name);
                let same = same.or_else(|| b.plan.jobs.first().filter(|_| is_single));
                compared.differences.extend(same.into_iter().flat_map(|p| circumstances::of_jobs(index, plan, p)));
            }
        }
        if std::mem::discriminant(&first_run.run) != std::mem::discriminant(&run.run) {
            let program = |run: &StoredRun| match run {
                StoredRun::Record(r) => format!("{} {}", r.tool.name, r.tool.version),
                StoredRun::Fio(f) => f.version.clone(),
            };
            compared.differences.push(Circumstance {
                side: index,
                name: "program".to_owned(),
                first: program(&first_run.run),
                this: program(&run.run),
                forbids: false,
            });
        }
    }
    let alpha = 0.05;
    for (name, entry) in first {
        let of_sides: Option<Vec<&Entry>> = sides
            .iter()
            .map(|side| if is_single { side.first() } else { side.iter().find(|e| e.0 == *name) }.map(|e| &e.1))
            .collect();
        let Some(of_sides) = of_sides else {
            compared.notes.push(format!("phase {name} is not in all of them and is left out"));
            continue;
        };
        for (index, other) in of_sides.iter().enumerate().skip(1) {
            compared.differences.extend(circumstances::of_options(index, &entry.options, &other.options));
        }
        // Several sides share the error by Bonferroni: a run's interval has no later look.
        let alpha = alpha / (of_sides.len() - 1) as f64;
        let answers = (1..of_sides.len())
            .flat_map(|index| Metric::ALL.map(|metric| answer(entry, of_sides[index], index, metric, alpha, margin)))
            .collect();
        let part = Part {
            name: if is_single { String::new() } else { name.clone() },
            sides: of_sides.iter().map(|entry| entry.side.clone()).collect(),
            answers,
        };
        compared.parts.push(part);
    }
    let mut seen = Vec::new();
    compared.differences.retain(|difference| {
        let is_new = !seen.contains(difference);
        seen.push(difference.clone());
        is_new
    });
    compared.notes.push(
        "One run a side: an interval covers the variation within each run, and not what changes from run to run \
         (the time of day, the position on the disk, other programs). Only interleaved slices show whether a difference is \
         lasting: --live."
            .to_owned(),
    );
    Ok(compared)
}

fn entries(named: &Named) -> Vec<(String, Entry)> {
    match &named.run {
        StoredRun::Record(record) => {
            let started = record.started_at.as_str();
            let of = |phase: &PhaseRecord| (phase.name.clone(), entry_of_phase(&named.name, started, phase, record));
            record.phases.iter().map(of).collect()
        }
        StoredRun::Fio(run) => fio::rows(run)
            .into_iter()
            .map(|row| {
                let failed = (row.error != 0).then(|| format!("fio reports error {} of this job", row.error));
                let side = Side {
                    name: named.name.clone(),
                    detail: format!("{}, {} {}", row.name, run.version, when(run)).trim().to_owned(),
                    // fio collects no evidence: nothing supports the figures, nothing objects.
                    verdict: Verdict::Unverified,
                    word: Some(Mark::Unverified),
                    level: EvidenceLevel::E0,
                    reasons: vec!["fio collects no evidence of what reached the disk".to_owned()],
                    objections: Vec::new(),
                    figures: row.figures,
                    latency: Histogram::new(),
                    percentiles: row.percentiles,
                    syscalls: None,
                    slices: Vec::new(),
                };
                let entry = Entry {
                    side,
                    shape: None,
                    latency_kind: row.latency_kind,
                    series: Vec::new(),
                    dependence: None,
                    elapsed_ns: 0,
                    row_ns: 0,
                    is_of_fio: true,
                    objection: failed,
                    options: row.options,
                };
                (row.name, entry)
            })
            .collect(),
    }
}

/// When fio wrote its result; empty if not reported.
fn when(run: &ForeignRun) -> String {
    if run.timestamp_unix_s == 0 { String::new() } else { format_utc(run.timestamp_unix_s) }
}

fn entry_of_phase(name: &str, started: &str, phase: &PhaseRecord, record: &RunRecord) -> Entry {
    let (sample, latency) = Sample::of(phase);
    let mut reasons: Vec<String> =
        sample.objections.iter().map(|found| format!("{}: {}", found.check, found.sentence)).collect();
    let mut objection = (phase.verdict == Verdict::Contradicted).then(|| {
        let names: Vec<&str> = sample.objections.iter().map(|found| found.check.as_str()).collect();
        format!("the figures of `{name}` are withheld because of {}", names.join(", "))
    });
    if let Outcome::Failed { reason } = &phase.outcome {
        objection.get_or_insert_with(|| format!("`{name}` failed: {reason}"));
    }
    if phase.outcome != Outcome::Complete {
        reasons.push("the phase did not run to its end".to_owned());
    }
    let figures = Metric::ALL
        .into_iter()
        .filter_map(|metric| Some(Figure { metric, value: whole_value(&sample, &latency, metric)? }))
        .collect();
    let (rows, row_ns) = joined_rows(&phase.jobs);
    let (dependence, elapsed_ns) = dependence_of(phase);
    let id: String = record.id.chars().take(8).collect();
    let side = Side {
        name: name.to_owned(),
        detail: format!("{} {id}, {started}", phase.name),
        verdict: phase.verdict,
        word: Some(Mark::of(phase.verdict, &phase.checks)),
        level: phase.level,
        reasons,
        objections: sample.objections.clone(),
        figures,
        percentiles: Vec::new(),
        syscalls: phase.syscalls.clone(),
        slices: rows.iter().enumerate().map(|(i, row)| slice_of(i, row, phase)).collect(),
        latency,
    };
    Entry {
        side,
        shape: Some(sample.shape),
        latency_kind: "lat".to_owned(),
        series: series_of(&rows),
        dependence,
        elapsed_ns,
        row_ns,
        is_of_fio: false,
        objection,
        options: Vec::new(),
    }
}

/// A metric of a whole run; a percentile only if its sample supports it.
fn whole_value(sample: &Sample, latency: &Histogram, metric: Metric) -> Option<f64> {
    match metric.quantile() {
        Some(q) => trueio_stats::quantile(latency, q).map(|found| found.value_ns as f64).filter(|v| *v > 0.0),
        None => sample.value(metric),
    }
}

/// The rows of all jobs of a phase, added up by their ends; only those of the usual length (the last one is often
/// shorter). Also that length, in nanoseconds.
fn joined_rows(jobs: &[JobRecord]) -> (Vec<SeriesRow>, u64) {
    let mut spans: Vec<u64> = jobs.iter().flat_map(|job| &job.series).map(|row| row.span_ns).collect();
    spans.sort_unstable();
    let usual = spans.get(spans.len() / 2).copied().unwrap_or(0);
    let mut rows: std::collections::BTreeMap<u64, SeriesRow> = std::collections::BTreeMap::new();
    for row in jobs.iter().flat_map(|job| &job.series) {
        if usual == 0 || row.span_ns.abs_diff(usual) > usual / 20 {
            continue;
        }
        rows.entry(row.end_ns / usual.max(1))
            .and_modify(|known| {
                let add = u64::saturating_add;
                known.read_count = add(known.read_count, row.read_count);
                known.read_bytes = add(known.read_bytes, row.read_bytes);
                known.write_count = add(known.write_count, row.write_count);
                known.write_bytes = add(known.write_bytes, row.write_bytes);
                known.other_count = add(known.other_count, row.other_count);
                known.latency_ns_p50 = known.latency_ns_p50.max(row.latency_ns_p50);
                known.latency_ns_p99 = known.latency_ns_p99.max(row.latency_ns_p99);
            })
            .or_insert(*row);
    }
    (rows.into_values().collect(), usual)
}

fn transfers(row: &SeriesRow) -> f64 {
    let moved = row.read_count as f64 + row.write_count as f64;
    if moved > 0.0 { moved } else { row.other_count as f64 }
}

fn slice_of(index: usize, row: &SeriesRow, phase: &PhaseRecord) -> Slice {
    let seconds = row.span_ns as f64 / 1e9;
    let figure = |metric, value: f64| (value > 0.0 && value.is_finite()).then_some(Figure { metric, value });
    Slice {
        round: index as u32,
        place: 0,
        begin_ns: phase.begin_ns.saturating_add(row.end_ns.saturating_sub(row.span_ns)),
        figures: [
            figure(Metric::Bandwidth, (row.read_bytes as f64 + row.write_bytes as f64) / seconds),
            figure(Metric::Iops, transfers(row) / seconds),
            figure(Metric::P50, row.latency_ns_p50 as f64),
            figure(Metric::P99, row.latency_ns_p99 as f64),
        ]
        .into_iter()
        .flatten()
        .collect(),
        verdict: phase.verdict,
    }
}

/// The series that can be joined to blocks.
fn series_of(rows: &[SeriesRow]) -> Vec<(Metric, Vec<f64>)> {
    let of = |value: fn(&SeriesRow) -> f64| rows.iter().map(value).collect::<Vec<f64>>();
    vec![(Metric::Bandwidth, of(|r| r.read_bytes as f64 + r.write_bytes as f64)), (Metric::Iops, of(transfers))]
}

fn answer(first: &Entry, this: &Entry, side: usize, metric: Metric, alpha: f64, margin: f64) -> Answer {
    let mut answer = Answer {
        side,
        metric,
        conclusion: Conclusion::CannotTell,
        ratio: None,
        basis: Basis::Nothing,
        reason: None,
        needs: None,
        noise_floor: None,
    };
    let value = |entry: &Entry| entry.side.figures.iter().find(|f| f.metric == metric).map(|f| f.value);
    let is_latency = metric.quantile().is_some();
    let shapes = || {
        if !is_latency {
            None
        } else if first.latency_kind != this.latency_kind
            && !first.latency_kind.is_empty()
            && !this.latency_kind.is_empty()
        {
            Some(format!("one side's latencies are {}, the other's {}", first.latency_kind, this.latency_kind))
        } else {
            first.shape.zip(this.shape).and_then(|(a, b)| shape_obstacle(a, b))
        }
    };
    let objection = [first, this].into_iter().find_map(|entry| entry.objection.clone());
    let found = match (objection.or_else(shapes), value(first), value(this)) {
        (Some(reason), _, _) => Err(reason),
        (_, None, None) => Err("neither side has this figure".to_owned()),
        (_, None, _) => Err("the first side does not have this figure".to_owned()),
        (_, _, None) => Err("this side does not have this figure".to_owned()),
        (None, Some(a), Some(b)) => match metric.quantile() {
            Some(q) => percentile_interval(first, this, q, alpha, (b / a).ln()),
            None => interval(first, this, metric, alpha, (b / a).ln()),
        },
    };
    match found {
        Err(reason) => answer.reason = Some(reason),
        Ok((interval, blocks)) => {
            answer.basis = Basis::Blocks;
            answer.ratio = Some(Ratio {
                estimate: interval.estimate.exp(),
                low: interval.low.exp(),
                high: interval.high.exp(),
                alpha,
                p: None,
                pair_count: blocks,
            });
            answer.conclusion = conclusion_of(decide(&interval, margin), metric);
            if answer.conclusion == Conclusion::CannotTell {
                answer.reason = Some(format!(
                    "the interval holds both no difference and one of more than {} %",
                    figure_percent(margin)
                ));
            }
        }
    }
    answer
}

/// The interval of the logarithm of the ratio around the whole runs' own ratio, and the blocks of the shorter run.
fn interval(
    first: &Entry,
    this: &Entry,
    metric: Metric,
    alpha: f64,
    log_ratio: f64,
) -> Result<(Interval, u32), String> {
    let series = |entry: &'_ Entry| entry.series.iter().find(|s| s.0 == metric).map(|s| s.1.clone());
    let (Some(a), Some(b)) = (series(first), series(this)) else {
        return Err(if first.row_ns == 0 || this.row_ns == 0 {
            "there is no series, and without one no interval".to_owned()
        } else {
            "the series does not contain this figure, and without a series there is no interval".to_owned()
        });
    };
    let too_short = || {
        "a run is too short for its own ups and downs: not even eight stretches of it are independent of each other"
            .to_owned()
    };
    let (a, b) = (blocks(&a).ok_or_else(too_short)?, blocks(&b).ok_or_else(too_short)?);
    let found = log_ratio_of_means(&a, &b, alpha).ok_or("a mean is zero: there is no ratio")?;
    if !log_ratio.is_finite() {
        return Err("the ratio is not a number".to_owned());
    }
    // Around the runs' own figures, with the width from the series.
    let shift = log_ratio - found.estimate;
    let interval = Interval { estimate: log_ratio, low: found.low + shift, high: found.high + shift };
    if !crate::answer::is_shown(&interval) {
        return Err("the figures vary so much that the interval holds everything".to_owned());
    }
    Ok((interval, a.means.len().min(b.means.len()) as u32))
}

/// The interval of the logarithm of the ratio of two runs' percentiles, and the slices of the shorter run.
fn percentile_interval(
    first: &Entry,
    this: &Entry,
    q: f64,
    alpha: f64,
    log_ratio: f64,
) -> Result<(Interval, u32), String> {
    // (Also one with buckets: how wide an interval of them is depends on how the I/Os follow each other.)
    if let Some(entry) = [first, this].into_iter().find(|entry| entry.is_of_fio) {
        let name = &entry.side.name;
        return Err(format!(
            "the result of `{name}` does not show how its I/Os depend on each other, as no result of fio does"
        ));
    }
    let ends = |entry: &Entry| -> Result<(f64, f64), String> {
        let name = &entry.side.name;
        let (low, high) = quantile_interval(&entry.side.latency, q, entry.dependence.as_ref(), entry.elapsed_ns, alpha)
            .map_err(|why| match why {
                NoInterval::Short { .. } if entry.side.latency.is_empty() || entry.elapsed_ns == 0 => {
                    "there is no histogram, and without one no interval".to_owned()
                }
                NoInterval::Short { .. } if entry.dependence.is_none() => format!(
                    "the record of `{name}` does not show how its I/Os depend on each other: the run was shorter than 5 s, or \
                     an earlier version wrote it"
                ),
                NoInterval::Short { missing_ns, .. } => format!(
                    "the record of `{name}` is too short for an interval of this percentile, because its I/Os depend on each \
                     other: a new record of about {} has one (`--runtime`), and jobs measured in turn need none of that length \
                     (`trueio compare A.toml B.toml`)",
                    units::format_duration_ns(entry.elapsed_ns.saturating_add(missing_ns))
                ),
                NoInterval::NoPercentile => "there is no histogram, and without one no interval".to_owned(),
            })?;
        if low == 0 {
            return Err("a latency is zero: there is no ratio".to_owned());
        }
        Ok(((low as f64).ln(), (high as f64).ln()))
    };
    let middle =
        |entry: &Entry| trueio_stats::quantile(&entry.side.latency, q).map(|found| (found.value_ns as f64).ln());
    let (Some(a), Some(b)) = (middle(first), middle(this)) else {
        return Err("there is no histogram, and without one no interval".to_owned());
    };
    let ((low_a, high_a), (low_b, high_b)) = (ends(first)?, ends(this)?);
    let interval = Interval {
        estimate: log_ratio,
        low: log_ratio - (b - low_b).hypot(high_a - a),
        high: log_ratio + (high_b - b).hypot(a - low_a),
    };
    if !crate::answer::is_shown(&interval) {
        return Err("the figures vary so much that the interval holds everything".to_owned());
    }
    let slices = |entry: &Entry| entry.dependence.as_ref().map_or(0, |of| of.slice_count);
    Ok((interval, slices(first).min(slices(this))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Inflation;

    /// A run with latencies from `ns` to 20 µs more that depend on each other by `factor`.
    fn entry(ns: u64, factor: Option<f64>, elapsed_ns: u64) -> Entry {
        let mut latency = Histogram::new();
        (0..100_000u64).for_each(|i| latency.record(ns + i * 7_919 % 20_011));
        let side = Side {
            name: format!("{ns} ns"),
            detail: String::new(),
            verdict: Verdict::Supported,
            word: None,
            level: EvidenceLevel::E2,
            reasons: Vec::new(),
            objections: Vec::new(),
            figures: Vec::new(),
            latency,
            percentiles: Vec::new(),
            syscalls: None,
            slices: Vec::new(),
        };
        let inflations = |factor| [0.5, 0.1, 0.01].map(|share_above| Inflation { share_above, factor }).to_vec();
        let dependence = factor.map(|factor| Dependence {
            slice_count: 40,
            span_ns: elapsed_ns,
            inflations: inflations(factor),
            mean_factor: Some(factor),
        });
        Entry {
            side,
            shape: None,
            latency_kind: String::new(),
            series: Vec::new(),
            dependence,
            elapsed_ns,
            row_ns: 0,
            is_of_fio: false,
            objection: None,
            options: Vec::new(),
        }
    }

    #[test]
    fn the_ratio_of_percentiles_has_an_interval_that_grows_with_the_dependence() {
        let at = |a: &Entry, b: &Entry, q| percentile_interval(a, b, q, 0.05, 1.5f64.ln());
        let run = |ns, factor| entry(ns, Some(factor), 30_000_000_000);
        let (interval, slices) = at(&run(20_000, 3.0), &run(30_000, 3.0), 0.5).expect("an interval");
        assert!(interval.low > 0.35 && interval.high < 0.46 && slices == 40, "{interval:?}");
        let (wide, _) = at(&run(20_000, 45.0), &run(30_000, 45.0), 0.9).expect("an interval");
        let (narrow, _) = at(&run(20_000, 1.5), &run(30_000, 1.5), 0.9).expect("an interval");
        assert!(wide.high - wide.low > 1.5 * (narrow.high - narrow.low), "{wide:?} {narrow:?}");
    }

    #[test]
    fn a_run_that_is_too_short_or_shows_no_dependence_has_no_ratio_of_percentiles() {
        let reason = |a: &Entry, b: &Entry| percentile_interval(a, b, 0.99, 0.05, 0.0).expect_err("no interval");
        let long = entry(20_000, Some(3.0), 30_000_000_000);
        let short = reason(&long, &entry(30_000, Some(3.0), 8_000_000_000));
        assert!(
            short.starts_with("the record of `30000 ns` is too short for an interval of this percentile"),
            "{short}"
        );
        assert!(
            short.contains("a new record of about 25.0 s has one") && short.contains("trueio compare A.toml"),
            "{short}"
        );
        assert!(!short.contains("longer"), "a stored record cannot be measured longer: {short}");
        let dependent = reason(&long, &entry(30_000, Some(200.0), 30_000_000_000));
        assert!(dependent.contains("a new record of about 60.0 s has one"), "{dependent}");
        let unknown = reason(&long, &entry(30_000, None, 30_000_000_000));
        assert!(unknown.contains("does not show how its I/Os depend on each other"), "{unknown}");
        let fios = reason(&long, &Entry { is_of_fio: true, ..entry(30_000, None, 0) });
        assert!(fios.contains("as no result of fio does"), "{fios}");
    }
}
