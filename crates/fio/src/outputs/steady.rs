//! The figures of a job that ends when it is steady (`steadystate`), as fio prints them.
//!
//! fio fills an incomplete window with zeros and includes them in the mean. Here the window holds only measured spans.

use super::entry::Entry;
use super::tree::{Object, Tree};
use trueio_model::{CriterionPlan, CriterionSpan, CriterionVariable};

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
    let spans = record.map_or(&[][..], |record| &record.spans);
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
