//! The figures of a run, one row per operation, in one form for records of trueio and results of fio.
//!
//! A record's rows are those of its report, with the same rules: a percentile that the sample does not
//! support is absent, and the verdict and its reasons are part of the row. A row of fio contains fio's
//! figures: level E0, no verdict, and only the percentiles that fio printed.

use std::fmt::Write as _;
use trueio_model::{Check, Mark, PhaseRecord, RunRecord, Verdict, shown_checks, units};
use trueio_model::{ForeignDirection, ForeignJob, ForeignOp, ForeignRun};
use trueio_report::clean;
use trueio_store::Entry;

/// The figures of one operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// The phase's name; the job's for fio.
    pub(super) phase: String,
    /// The job's name.
    pub(super) job: String,
    /// `read`, `write`, `trim`, `sync`, `mixed`.
    pub(super) op: String,
    /// Description of the load: runs with the same load are comparable.
    pub(super) load: String,
    /// `None`: withheld, as the rate that follows from it.
    pub(super) io_count: Option<u64>,
    pub(super) error_count: Option<u64>,
    pub(super) elapsed_ns: Option<u64>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) ios_per_s: Option<f64>,
    /// Kind of latency: `lat`, `lat from intended start`, `clat`, `slat`.
    pub(super) latency: Option<String>,
    pub(super) latency_ns_p50: Option<u64>,
    pub(super) latency_ns_p99: Option<u64>,
    pub(super) latency_ns_p999: Option<u64>,
    pub(super) latency_ns_max: Option<u64>,
    pub(super) cpu_ns_per_io: Option<f64>,
    /// `None`: no evidence was collected.
    pub(super) verdict: Option<Verdict>,
    /// What the screen says of the load: `disturbed: dd wrote 335 MiB`; empty without evidence.
    pub(super) words: String,
    /// `E0` to `E4`.
    pub(super) level: String,
    /// The sentences of the checks that object; otherwise empty.
    pub(super) reasons: String,
}

impl Figure {
    /// Returns the word of the load; `None` without evidence.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.verdict.map(|verdict| Mark::of_words(&self.words).unwrap_or_else(|| Mark::of(verdict, &[])))
    }
}

/// Returns a record's rows.
pub(super) fn of_record(record: &RunRecord) -> Vec<Figure> {
    let rows = trueio_report::summary(record);
    rows.iter()
        .map(|row| {
            let phase = &record.phases[row.phase_index];
            let job = &phase.jobs[row.job_index];
            let [p50, p99, p999] = row.quantiles.map(|quantile| quantile.map(|q| q.value_ns));
            Figure {
                phase: phase.name.clone(),
                job: job.name.clone(),
                op: row.op.to_string(),
                load: trueio_report::load_of(record, row.phase_index, job),
                io_count: row.shown_io_count(),
                error_count: Some(row.error_count),
                elapsed_ns: Some(job.elapsed_ns),
                bytes_per_s: row.bytes_per_s,
                ios_per_s: row.ios_per_s,
                latency: row
                    .latency_ns_max
                    .map(|_| if row.is_from_intended { "lat from intended start" } else { "lat" }.to_owned()),
                latency_ns_p50: p50,
                latency_ns_p99: p99,
                latency_ns_p999: p999,
                latency_ns_max: row.latency_ns_max,
                cpu_ns_per_io: row.cpu_ns_per_io,
                verdict: Some(phase.verdict),
                words: trueio_report::row_words(phase),
                level: phase.level.to_string(),
                reasons: reasons(phase),
            }
        })
        .collect()
}

/// Returns the sentences of the checks that flag the phase.
fn reasons(phase: &PhaseRecord) -> String {
    let objecting = shown_checks(phase).into_iter().filter(Check::objects);
    let text: Vec<String> = objecting.map(|check| format!("{}: {}", check.name, check.sentence)).collect();
    text.join(" ")
}

/// Returns the rows of a result of fio.
pub(super) fn of_fio(run: &ForeignRun) -> Vec<Figure> {
    let mut figures = Vec::new();
    for job in &run.jobs {
        let transfers: u64 =
            job.ops.iter().filter(|op| op.direction != ForeignDirection::Sync).map(|op| op.io_count).sum();
        let mut cpu_ns_per_io = job.cpu_ns.filter(|_| transfers > 0).map(|ns| ns / transfers as f64);
        figures.extend(job.ops.iter().map(|op| fio_row(run, job, op, cpu_ns_per_io.take())));
    }
    figures
}

fn fio_row(run: &ForeignRun, job: &ForeignJob, op: &ForeignOp, cpu_ns_per_io: Option<f64>) -> Figure {
    let latency = op.headline();
    let percentile = |percent| latency.and_then(|l| l.percentile_ns(percent));
    Figure {
        phase: job.name.clone(),
        job: job.name.clone(),
        op: op.direction.to_string(),
        load: fio_load(run, job),
        io_count: Some(op.io_count),
        // fio counts them only with continue_on_error, and not by direction.
        error_count: None,
        elapsed_ns: (op.elapsed_ns > 0).then_some(op.elapsed_ns),
        bytes_per_s: op.bytes_per_s,
        ios_per_s: op.ios_per_s,
        latency: latency.map(|l| l.kind.to_string()),
        latency_ns_p50: percentile(50.0),
        latency_ns_p99: percentile(99.0),
        latency_ns_p999: percentile(99.9),
        latency_ns_max: latency.map(|l| l.max_ns),
        cpu_ns_per_io,
        verdict: None,
        words: String::new(),
        level: "E0".to_owned(),
        reasons: if job.error == 0 {
            String::new()
        } else {
            format!("fio reports that the job ended with error {}", job.error)
        },
    }
}

/// Describes a job of fio by fio's options.
fn fio_load(run: &ForeignRun, job: &ForeignJob) -> String {
    const NAMES: [&str; 9] =
        ["rw", "bs", "ioengine", "iodepth", "numjobs", "direct", "fsync", "fdatasync", "rate_iops"];
    let given = NAMES.iter().filter_map(|name| Some(format!("{name}={}", job.option(run, name)?)));
    let text: Vec<String> = std::iter::once("fio".to_owned()).chain(given).collect();
    text.join(" ")
}

/// Formats a result of fio as text, with a statement of its limits.
pub(super) fn fio_text(run: &ForeignRun, entry: &Entry) -> String {
    let mut out = format!(
        "result of {}  {}  id {}\n\nThese are fio's figures. No counters of the kernel or the disk were read, so there \
         is no\nevidence (level E0) and no verdict.\n\n",
        clean(&run.version),
        entry.started_at,
        super::short(&entry.id)
    );
    let show = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let micros = |ns: Option<u64>| show(ns.map(|ns| units::three_digits(ns as f64 / 1e3)));
    let figures = of_fio(run);
    let label = |f: &Figure| clean(&format!("{} {}", f.job, f.op)).into_owned();
    let width = figures.iter().map(|f| trueio_report::width_of(&label(f))).max().unwrap_or(0);
    let _ = writeln!(
        out,
        "{:width$}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  latency\n{:width$}  {:>10}  {:>10}  {:>10}  \
         {:>10}  {:>10}  {:>10}",
        "", "bandwidth", "IOPS", "p50", "p99", "p99.9", "max", "", "MiB/s", "1/s", "µs", "µs", "µs", "µs"
    );
    for figure in &figures {
        let _ = writeln!(
            out,
            "{}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {}",
            trueio_report::padded(&label(figure), width),
            show(figure.bytes_per_s.map(|b| units::three_digits(b / f64::from(1 << 20)))),
            show(figure.ios_per_s.map(|n| units::format_count(n.round() as u64))),
            micros(figure.latency_ns_p50),
            micros(figure.latency_ns_p99),
            micros(figure.latency_ns_p999),
            micros(figure.latency_ns_max),
            figure.latency.as_deref().unwrap_or("–")
        );
    }
    out.push('\n');
    for job in &run.jobs {
        let _ = writeln!(out, "{}: {}", clean(&job.name), clean(&fio_load(run, job)));
        if job.error != 0 {
            let _ = writeln!(out, "  fio reports that it ended with error {}", job.error);
        }
    }
    for note in &run.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}
