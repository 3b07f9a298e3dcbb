//! The rows of a page's table, as text.

use super::cleaned;
use crate::plot::Shade;
use crate::plot::job::spark;
use crate::summary::{Interval, QUANTILES, Row, plan_of, shape_of};
use crate::text::{few_ios, figure};
use crate::words::{is_same, percentile_name};
use serde::Serialize;
use trueio_model::{OpKind, PhaseRecord, RunRecord, units};

/// From this mean size on, the bandwidth is the headline of a load; below it, its rate.
const LARGE_BYTES: f64 = 65_536.0;

/// A row of the table of all loads.
#[derive(Serialize)]
pub(super) struct TableRow {
    label: String,
    shape: String,
    rate: String,
    rate_other: String,
    rate_interval: String,
    mean: String,
    latencies: Vec<Latency>,
    max: String,
    cpu: String,
    spark: String,
    errors: String,
}

/// A percentile and its interval, or what it is at least; empty if the record shows neither.
#[derive(Serialize)]
struct Latency {
    name: String,
    value: String,
    interval: String,
}

impl TableRow {
    pub(super) fn of(record: &RunRecord, phase: &PhaseRecord, row: &Row, shades: &[Shade]) -> Self {
        // A mark in each column: an empty cell would look like a missing figure.
        let absent = || if row.is_withheld { "x".to_owned() } else { String::new() };
        let ns = units::format_duration_ns;
        let (rate, rate_other) = rates(row, phase.jobs[row.job_index].elapsed_ns);
        let plan = plan_of(record, row.phase_index, &phase.jobs[row.job_index]);
        let shape = plan.map(shape_of).filter(|shape| !is_same(shape, &row.label)).unwrap_or_default();
        Self {
            label: cleaned(&row.label),
            shape: cleaned(&shape),
            rate: if row.is_withheld { absent() } else { rate },
            rate_other: if row.is_withheld { String::new() } else { rate_other },
            rate_interval: row
                .ios_per_s_interval
                .map_or_else(String::new, |of| format!("{} – {} /s", figure(of.low), figure(of.high))),
            mean: row.mean_latency.map_or_else(String::new, |of| {
                let [value, low, high] = [of.value, of.low, of.high].map(|of| ns(of.round() as u64));
                format!("mean {value}: {low} – {high}")
            }),
            latencies: row
                .quantiles
                .iter()
                .zip(row.intervals)
                .zip(QUANTILES)
                .map(|((found, interval), q)| {
                    let name = percentile_name(q);
                    match found {
                        Some(q) => Latency {
                            name,
                            value: ns(q.value_ns),
                            interval: match interval {
                                Interval::Given(low, high) => format!("{} – {}", ns(low), ns(high)),
                                Interval::AtLeast(ns) => format!("≥ {}", units::format_duration_ns(ns)),
                                Interval::Needs(_) | Interval::Unknown => String::new(),
                            },
                        },
                        None => {
                            let value = if row.withholds_latencies() { "x" } else { "–" }.to_owned();
                            Latency { name, value, interval: String::new() }
                        }
                    }
                })
                .collect(),
            max: row.latency_ns_max.map_or_else(|| row.absent_max(), ns),
            cpu: row.cpu_ns_per_io.map_or_else(String::new, |cpu| ns(cpu.round() as u64)),
            spark: if row.is_withheld {
                String::new()
            } else {
                spark(&phase.jobs[row.job_index], row.op, shades).unwrap_or_default()
            },
            errors: match (row.error_count, row.short_count) {
                (0, 0) => String::new(),
                (errors, 0) => format!("{} failed", units::format_count(errors)),
                (0, short) => format!("{} short", units::format_count(short)),
                (errors, short) => {
                    format!("{} failed, {} short", units::format_count(errors), units::format_count(short))
                }
            },
        }
    }
}

/// Returns the headline of a load, and its other rate.
fn rates(row: &Row, elapsed_ns: u64) -> (String, String) {
    let per_s = row.ios_per_s.map(|rate| match row.op {
        OpKind::Sync => format!("{} /s", figure(rate)),
        _ => format!("{} IOPS", figure(rate)),
    });
    let bytes = row.bytes_per_s.map(units::format_bandwidth);
    let count = units::format_count(row.io_count);
    let is_large = match (row.bytes_per_s, row.ios_per_s) {
        (Some(bytes), Some(ios)) => ios > 0.0 && bytes / ios >= LARGE_BYTES,
        _ => false,
    };
    let of_few = |rate: String| few_ios(row.io_count).map_or_else(|| rate.clone(), |few| format!("{rate}, {few}"));
    let total = format!("{count} in {}", units::format_duration_ns(elapsed_ns));
    match (bytes, per_s) {
        (Some(bytes), Some(per_s)) if is_large => (bytes, of_few(per_s)),
        (Some(bytes), Some(per_s)) => (per_s, of_few(bytes)),
        (None, Some(per_s)) => (per_s, total),
        (Some(bytes), None) => (bytes, total),
        (None, None) => (String::new(), total),
    }
}
