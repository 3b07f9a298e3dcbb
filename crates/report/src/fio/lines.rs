//! A run as JSON lines, for who follows it: a line for each interval with what was done in it, and at the
//! end a line with the whole document.
//!
//! fio's own `--status-interval` writes whole documents one behind the other, each from the beginning on;
//! that is written here, too. These lines are ours: each is an object with `type` (`interval`, `result`).

use super::entry::{Document, Figures};
use super::tree::{Object, Tree};
use trueio_model::{RunRecord, SeriesRow};

/// What was done in the phase that runs, or ran last, since `since_ns` of its measured part.
pub(super) fn interval(document: &Document<'_>, record: &RunRecord, since_ns: u64) -> String {
    let mut line = Object::new();
    line.text("type", "interval");
    line.int("timestamp_ms", document.ended_unix_ms);
    let Some(phase) = record.phases.last() else { return line.line() };
    line.text("phase", &phase.name);
    line.int("elapsed_ms", phase.elapsed_ns / 1_000_000);
    let jobs = phase.jobs.iter().map(|job| {
        let rows: Vec<&SeriesRow> = job.series.iter().filter(|row| row.end_ns > since_ns).collect();
        let sum = |of: fn(&SeriesRow) -> u64| rows.iter().map(|row| of(row)).fold(0, u64::saturating_add);
        let span_ns = sum(|row| row.span_ns);
        let mut object = Object::new();
        object.text("jobname", &job.name).int("interval_ms", span_ns / 1_000_000);
        let directions = [
            ("read", sum(|row| row.read_count), sum(|row| row.read_bytes)),
            ("write", sum(|row| row.write_count), sum(|row| row.write_bytes)),
            ("trim", sum(|row| row.trim_count), sum(|row| row.trim_bytes)),
        ];
        for (name, io_count, byte_count) in directions {
            let figures = Figures { io_count, byte_count, elapsed_ns: span_ns, ..Figures::default() };
            let mut of = Object::new();
            of.int("ios", io_count).int("bytes", byte_count);
            of.float("iops", figures.ios_per_s()).int("bw_bytes", figures.bytes_per_s() as u64);
            object.object(name, of);
        }
        object.int("lat_ns_max", rows.iter().map(|row| row.latency_ns_max).max().unwrap_or(0));
        Tree::Object(object)
    });
    line.list("jobs", jobs.collect());
    line.line()
}
