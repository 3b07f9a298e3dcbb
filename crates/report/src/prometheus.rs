//! Documents in Prometheus' text format, for node_exporter's textfile collector: gauges in base units.
//!
//! Each metric has one HELP and one TYPE line, then its samples. A figure that the evidence contradicts has no sample;
//! `trueio_confirmed` is 0 for it, so that a rule can tell it from a missing run.
//!
//! Source: Prometheus, "Exposition formats", text format 0.0.4.

use crate::summary::{QUANTILES, summary};
use crate::text::clean;
use crate::words::title_of;
use std::fmt::Write as _;
use trueio_model::{AnsweredPhase, Comparison, Mark, Metric, RunRecord, StudyMetric, StudyRecord, Trend};

/// Metrics under construction, in the order of their first sample.
#[derive(Default)]
struct Metrics {
    all: Vec<(&'static str, &'static str, String)>,
}

impl Metrics {
    fn add(&mut self, name: &'static str, help: &'static str, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let sample = format!("{name}{{{}}} {value}\n", labels.join(","));
        match self.all.iter_mut().find(|metric| metric.0 == name) {
            Some(metric) => metric.2.push_str(&sample),
            None => self.all.push((name, help, sample)),
        }
    }

    fn finish(self) -> String {
        let mut out = String::new();
        for (name, help, samples) in self.all {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{samples}");
        }
        out
    }
}

/// Escapes the value of a label: backslash, quote and line feed; control characters are replaced.
fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// Formats a record.
pub(crate) fn record(record: &RunRecord) -> String {
    let mut metrics = Metrics::default();
    let (device, _) = title_of(record);
    let started = record.started_unix_s as f64;
    let of_run = [("device", device.as_str()), ("kind", record.kind.as_str())];
    metrics.add("trueio_run_started_timestamp_seconds", "When the run began.", &of_run, started);
    for row in summary(record) {
        let phase = &record.phases[row.phase_index];
        let op = row.op.to_string();
        let labels =
            [("device", device.as_str()), ("job", phase.jobs[row.job_index].name.as_str()), ("op", op.as_str())];
        let mut add = |name, help, value: Option<f64>| {
            value.into_iter().for_each(|value| metrics.add(name, help, &labels, value));
        };
        add("trueio_bandwidth_bytes_per_second", "Bytes transferred per second.", row.bytes_per_s);
        add("trueio_operations_per_second", "Operations per second.", row.ios_per_s);
        add("trueio_cpu_seconds_per_operation", "CPU time per I/O.", row.cpu_ns_per_io.map(|ns| ns / 1e9));
        add("trueio_errors", "Operations that failed.", Some(row.error_count as f64));
        let is_confirmed = AnsweredPhase::of(phase).verdict == Mark::Confirmed;
        add(
            "trueio_confirmed",
            "1 if the disk's own counters confirm the load, else 0.",
            Some(f64::from(u8::from(is_confirmed))),
        );
        for (found, q) in row.quantiles.iter().zip(QUANTILES) {
            let Some(found) = found else { continue };
            let quantile = q.to_string();
            let labels = [labels[0], labels[1], labels[2], ("quantile", quantile.as_str())];
            metrics.add(
                "trueio_latency_seconds",
                "Total latency of an operation.",
                &labels,
                found.value_ns as f64 / 1e9,
            );
        }
    }
    metrics.finish()
}

/// Formats a comparison.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let comparison = &*crate::comparison::shown(comparison);
    let mut metrics = Metrics::default();
    for part in &comparison.parts {
        for answer in &part.answers {
            let name = |index: usize| part.sides.get(index).map_or("", |side| side.name.as_str());
            let labels = [
                ("part", part.name.as_str()),
                ("first", name(0)),
                ("side", name(answer.side)),
                ("metric", answer.metric.name()),
            ];
            let Some(ratio) = answer.ratio else { continue };
            metrics.add("trueio_compare_ratio", "This side's value over the first side's.", &labels, ratio.estimate);
            metrics.add("trueio_compare_ratio_low", "Lower end of the interval.", &labels, ratio.low);
            metrics.add("trueio_compare_ratio_high", "Upper end of the interval.", &labels, ratio.high);
        }
        for side in &part.sides {
            for figure in &side.figures {
                let labels =
                    [("part", part.name.as_str()), ("side", side.name.as_str()), ("metric", figure.metric.name())];
                let seconds = figure.metric.quantile().is_some() || figure.metric == Metric::CpuPerIo;
                let value = if seconds { figure.value / 1e9 } else { figure.value };
                metrics.add(
                    "trueio_compare_value",
                    "A side's value, in seconds, bytes per second or I/Os per second.",
                    &labels,
                    value,
                );
            }
        }
    }
    for gate in &comparison.gates {
        let labels = [("condition", gate.condition.as_str()), ("part", gate.part.as_str())];
        let failed = f64::from(u8::from(gate.verdict == trueio_model::GateVerdict::Shown));
        metrics.add("trueio_compare_gate_failed", "1 if the regression is shown.", &labels, failed);
    }
    metrics.finish()
}

/// Formats a study: the figures that were measured here.
pub(crate) fn study(study: &StudyRecord) -> String {
    let mut metrics = Metrics::default();
    for mode in &study.modes {
        for row in &mode.rows {
            for figure in &row.figures {
                let op = figure.op.map_or_else(String::new, |op| op.to_string());
                let labels = [
                    ("study", study.study.as_str()),
                    ("mode", mode.name.as_str()),
                    ("row", row.name.as_str()),
                    ("op", op.as_str()),
                    ("metric", StudyMetric::name(figure.metric)),
                    ("statistic", figure.statistic.name()),
                ];
                metrics.add("trueio_study_value", "A figure of a study, in base units.", &labels, figure.value);
            }
        }
    }
    metrics.finish()
}

/// Formats a trend: the newest value and the number of changes of each series.
pub(crate) fn trend(trend: &Trend) -> String {
    let mut metrics = Metrics::default();
    for series in &trend.series {
        let labels = [
            ("device", trend.device.label.as_str()),
            ("job", series.job.as_str()),
            ("op", series.op.as_str()),
            ("metric", series.metric.as_str()),
        ];
        let unit = if series.unit == "ns" { 1e9 } else { 1.0 };
        if let Some(newest) = series.points.last() {
            metrics.add("trueio_trend_newest", "The newest value, in base units.", &labels, newest.value / unit);
        }
        metrics.add("trueio_trend_changes", "Changes of level that were found.", &labels, series.changes.len() as f64);
    }
    metrics.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_one_head_and_escaped_labels() {
        let mut metrics = Metrics::default();
        metrics.add("a", "A.", &[("x", "one \"two\" \\ \n")], 1.5);
        metrics.add("b", "B.", &[], 2.0);
        metrics.add("a", "A.", &[("x", "3")], 4.0);
        metrics.add("a", "A.", &[("x", "nan")], f64::NAN);
        let text = metrics.finish();
        assert_eq!(
            text,
            "# HELP a A.\n# TYPE a gauge\na{x=\"one \\\"two\\\" \\\\ \u{fffd}\"} 1.5\na{x=\"3\"} 4\n# HELP b B.\n# TYPE b gauge\nb{} 2\n"
        );
    }
}
