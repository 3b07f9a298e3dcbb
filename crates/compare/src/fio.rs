//! A result of fio, as far as a comparison needs it: rates and percentiles of each direction of each job.
//!
//! Latencies are `lat` percentiles where they were enabled (`lat_percentiles=1`), else `clat`: a name states
//! which, and the two are not compared with each other.
//!
//! Cannot give: an interval. The JSON holds no series; its `bw_dev` and `iops_stddev` are those of seconds that
//! depend on each other, and taken for independent they would pretend to a precision that is not there.
//!
//! Source: fio's own figures, read by `trueio-fio`.

use trueio_model::{Figure, Metric};
use trueio_model::{ForeignDirection, ForeignJob, ForeignOp, ForeignRun};

/// One direction of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRow {
    /// `seqread read`.
    pub name: String,
    /// The job's options, its own and the global ones.
    pub options: Vec<(String, String)>,
    /// What could be had.
    pub figures: Vec<Figure>,
    /// (percent, nanoseconds), ascending.
    pub percentiles: Vec<(f64, f64)>,
    /// `lat` or `clat`; empty without percentiles.
    pub latency_kind: String,
    /// fio's error number; 0 if there was none.
    pub error: i64,
}

/// The directions that moved something, in fio's order; sync calls are part of the writes they follow. If all jobs ran on one host, as
/// with one client, their names are without it: they are compared with a local result, or one of another host.
pub fn rows(run: &ForeignRun) -> Vec<FioRow> {
    let host = run.jobs.first().and_then(|job| job.host.as_ref());
    let is_one_host = run.jobs.iter().all(|job| job.host.as_ref() == host);
    let prefix = host.filter(|_| is_one_host).map_or_else(String::new, |host| format!("{host}: "));
    let of_job = |job: &ForeignJob| {
        let moved = |op: &&ForeignOp| op.direction != ForeignDirection::Sync && op.io_count > 0;
        let is_one = job.ops.iter().filter(moved).count() == 1;
        job.ops.iter().filter(moved).map(|op| row(run, job, op, is_one, &prefix)).collect::<Vec<_>>()
    };
    run.jobs.iter().flat_map(of_job).collect()
}

/// `is_one`: the job has no other direction, so its CPU time is this one's. `prefix` is left out of its name.
fn row(run: &ForeignRun, job: &ForeignJob, op: &ForeignOp, is_one: bool, prefix: &str) -> FioRow {
    let mut options = run.global_options.clone();
    options.extend(job.options.clone());
    let headline = op.headline().filter(|latency| !latency.percentiles.is_empty());
    let percentiles: Vec<(f64, f64)> = headline
        .into_iter()
        .flat_map(|latency| latency.percentiles.iter().map(|&(percent, ns)| (percent, ns as f64)))
        .filter(|(_, ns)| *ns > 0.0)
        .collect();
    let quantile = |metric: Metric| {
        let percent = metric.quantile()? * 100.0;
        percentiles.iter().find(|p| (p.0 - percent).abs() < 1e-6).map(|p| p.1)
    };
    let cpu_ns_per_io = job.cpu_ns.filter(|_| is_one).map(|ns| ns / op.io_count as f64);
    let figures = [
        (Metric::Bandwidth, op.bytes_per_s),
        (Metric::Iops, op.ios_per_s),
        (Metric::P50, quantile(Metric::P50)),
        (Metric::P99, quantile(Metric::P99)),
        (Metric::P999, quantile(Metric::P999)),
        (Metric::CpuPerIo, cpu_ns_per_io),
    ];
    // A rate of zero or none is no figure that a ratio could be made of.
    let figures = figures
        .into_iter()
        .filter_map(|(metric, value)| Some(Figure { metric, value: value.filter(|v| v.is_finite() && *v > 0.0)? }));
    FioRow {
        name: format!("{} {}", job.name.strip_prefix(prefix).unwrap_or(&job.name), op.direction),
        options: options.into_iter().collect(),
        figures: figures.collect(),
        latency_kind: headline.map_or_else(String::new, |latency| latency.kind.to_string()),
        percentiles,
        error: job.error,
    }
}
