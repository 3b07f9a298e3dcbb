//! Sentences about the latencies of each I/O priority.

use crate::summary::{QUANTILES, label_of};
use crate::verdicts::mark;
use crate::words::percentile_name;
use trueio_model::{OpRecord, PriorityRecord, RunRecord, units};
use trueio_stats::quantile;

/// Returns one sentence per priority of jobs whose I/Os had several; none for contradicted phases.
pub(crate) fn priorities(record: &RunRecord) -> Vec<String> {
    let phases = record.phases.iter().filter(|phase| mark(phase).is_shown());
    let mut sentences = Vec::new();
    for job in phases.flat_map(|phase| &phase.jobs) {
        for op in &job.ops {
            let used = op.priorities.iter().filter(|of| !of.latency.total.is_empty());
            sentences.extend(used.map(|of| sentence(&label_of(job, op), op, of)));
        }
    }
    sentences
}

fn sentence(label: &str, op: &OpRecord, of: &PriorityRecord) -> String {
    let intended = &of.latency.from_intended;
    let histogram = if intended.is_empty() { &of.latency.total } else { intended };
    let name = match of.priority.class {
        0 => "the worker's own priority".to_owned(),
        _ => format!("priority {}", of.priority),
    };
    let percent = of.latency.total.count() as f64 * 100.0 / op.latency.total.count().max(1) as f64;
    let mut figures: Vec<String> = QUANTILES
        .iter()
        .filter_map(|&q| Some((q, quantile(histogram, q)?)))
        .map(|(q, found)| format!("{} {}", percentile_name(q), units::format_duration_ns(found.value_ns)))
        .collect();
    figures.extend(histogram.max_ns().map(|ns| format!("max {}", units::format_duration_ns(ns))));
    let count = units::format_count(of.latency.total.count());
    format!("{label}, {name}: {count} I/Os ({percent:.1} %), {}", figures.join(", "))
}
