//! A result of fio, as far as a comparison needs it: rates and percentiles of each direction of each job.
//!
//! Latencies are `lat` percentiles where they were asked for (`lat_percentiles=1`), else `clat`: a name says
//! which, and the two are not compared with each other.
//!
//! Cannot give: an interval. The JSON holds no series; its `bw_dev` and `iops_stddev` are those of seconds that
//! depend on each other, and taken for independent they would pretend to a precision that is not there.
//!
//! Source: fio's own figures, read by `trueio_foreign`.

use trueio_foreign::{FioDirection, FioJob, FioOp, FioRun};
use trueio_model::{Figure, Metric};

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

/// The directions that moved something, in fio's order; sync calls are part of the writes they follow.
pub fn rows(run: &FioRun) -> Vec<FioRow> {
    let of_job = |job: &FioJob| {
        let moved = |op: &&FioOp| op.direction != FioDirection::Sync && op.io_count > 0;
        let is_one = job.ops.iter().filter(moved).count() == 1;
        job.ops.iter().filter(moved).map(|op| row(run, job, op, is_one)).collect::<Vec<_>>()
    };
    run.jobs.iter().flat_map(of_job).collect()
}

/// `is_one`: the job has no other direction, so its CPU time is this one's.
fn row(run: &FioRun, job: &FioJob, op: &FioOp, is_one: bool) -> FioRow {
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
        name: format!("{} {}", job.name, op.direction),
        options: options.into_iter().collect(),
        figures: figures.collect(),
        latency_kind: headline.map_or_else(String::new, |latency| latency.kind.to_string()),
        percentiles,
        error: job.error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trueio_foreign::parse_fio;

    fn sample() -> String {
        r#"{"fio version":"fio-3.42","time":"Fri","global options":{"bs":"4k"},"jobs":[{"jobname":"j","error":0,
            "job options":{"rw":"randread"},"usr_cpu":10.0,"sys_cpu":20.0,"job_runtime":2000,
            "read":{"io_bytes":4096000,"total_ios":1000,"short_ios":0,"runtime":2000,"bw_bytes":2048000,"iops":500.5,
                "clat_ns":{"min":100,"max":1000,"mean":200.0,"stddev":1.0,"N":1000,
                           "percentile":{"50.000000":150,"99.000000":900}}},
            "write":{"io_bytes":0,"total_ios":0,"short_ios":0,"runtime":0,"bw_bytes":0,"iops":0.0}}]}"#
            .to_owned()
    }

    #[test]
    fn rates_percentiles_and_cpu_are_read_and_idle_directions_left_out() {
        let rows = rows(&parse_fio(&sample()).unwrap());
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((row.name.as_str(), row.latency_kind.as_str(), row.percentiles.len()), ("j read", "clat", 2));
        let of = |metric| row.figures.iter().find(|f| f.metric == metric).map(|f| f.value);
        assert_eq!(of(Metric::Iops), Some(500.5));
        assert_eq!((of(Metric::P50), of(Metric::P99), of(Metric::P999)), (Some(150.0), Some(900.0), None));
        // 30 % of 2 s over 1,000 I/Os.
        assert!((of(Metric::CpuPerIo).unwrap() - 600_000.0).abs() < 1e-6);
        assert_eq!(row.options, [("bs".to_owned(), "4k".to_owned()), ("rw".to_owned(), "randread".to_owned())]);
    }

    proptest! {
        #[test]
        fn whatever_can_be_read_has_figures_that_are_positive_numbers(
            at in 0usize..700, with in "[-0-9.e\"{}\\[\\],:a-z]{0,6}"
        ) {
            // A damaged run: some of its text replaced.
            let mut whole = sample();
            let at = at.min(whole.len());
            if whole.is_char_boundary(at) {
                whole.insert_str(at, &with);
            }
            if let Ok(run) = parse_fio(&whole) {
                for figure in rows(&run).iter().flat_map(|row| &row.figures) {
                    prop_assert!(figure.value.is_finite() && figure.value > 0.0);
                }
            }
        }
    }
}
