//! The figures of a job that ends when it is steady (`steadystate`), as fio prints them.
//!
//! As in fio, a window that is not full is filled with zeros, which the means include.

use super::entry::Entry;
use super::tree::{Object, Tree};
use trueio_model::{CriterionPlan, CriterionRecord, CriterionSpan, CriterionVariable};

/// More spans than this in a window are not filled with zeros: a plan has fewer.
const SPANS_MAX: u64 = 1 << 20;

/// Returns the spans of a window, with zeros for those that were not measured.
pub(super) fn window(plan: &CriterionPlan, record: Option<&CriterionRecord>) -> Vec<CriterionSpan> {
    let mut spans = record.map_or(Vec::new(), |record| record.spans.clone());
    let count = plan.window_ns.checked_div(plan.span_ns).unwrap_or(0).min(SPANS_MAX) as usize;
    let nothing = CriterionSpan { ios_per_s: 0.0, bytes_per_s: 0.0, latency_ns: 0.0 };
    spans.resize(count.max(spans.len()), nothing);
    spans
}

/// The mean of a figure over the window.
pub(super) fn mean(spans: &[CriterionSpan], of: fn(&CriterionSpan) -> f64) -> f64 {
    if spans.is_empty() { 0.0 } else { spans.iter().map(of).sum::<f64>() / spans.len() as f64 }
}

/// The value that was compared with the limit, as fio prints it in JSON and in normal text: `28.948618%`.
pub(super) fn value(plan: &CriterionPlan, value: f64, digits: usize) -> String {
    format!("{value:.digits$}{}", if plan.criterion.is_percent { "%" } else { "" })
}

/// Returns the object of a document; `None` if the job has no steady-state rule.
pub(super) fn object(entry: &Entry<'_>) -> Option<Object> {
    let plan = entry.criterion_plan?;
    let record = entry.criterion;
    let spans = &window(&plan, record)[..];
    let mut object = Object::new();
    object.text("ss", format!("{}:{}", plan.criterion.name(), value(&plan, plan.criterion.limit, 6)));
    object.int("duration", plan.window_ns / 1_000_000_000);
    object.int("attained", u64::from(record.is_some_and(|record| record.is_attained)));
    object.text("criterion", value(&plan, record.map_or(0.0, |record| record.value), 6));
    object.float("max_deviation", record.map_or(0.0, |record| record.deviation_max));
    object.float("slope", record.map_or(0.0, |record| record.slope));
    let mut data = Object::new();
    data.int("bw_mean", mean(spans, |span| span.bytes_per_s) as u64);
    data.int("iops_mean", mean(spans, |span| span.ios_per_s) as u64);
    let list = |of: fn(&CriterionSpan) -> f64| spans.iter().map(|span| Tree::Int(of(span) as i128)).collect();
    if plan.criterion.variable == CriterionVariable::Latency {
        data.int("lat_mean", mean(spans, |span| span.latency_ns) as u64);
        data.list("lat_ns", list(|span| span.latency_ns));
    }
    data.list("iops", list(|span| span.ios_per_s));
    data.list("bw", list(|span| span.bytes_per_s));
    object.object("data", data);
    Some(object)
}
