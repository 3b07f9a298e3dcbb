//! Detects latencies that no bus allows.
//!
//! - **Reads** the median latency of direct transfers: the fastest NVMe drives take about 8 µs, a direct read of a hole 0.3 to 0.6.
//! - **Misses** false results with plausible latencies: a write that fails takes 3 to 13 µs, because its pages are pinned first.
//! - **Thresholds**: below 2 µs is suspect. Not for zram, pmem, RAM disks and loop devices.
//! - **By hand**: as for `holes`.

use crate::checks::pace::quantile;
use crate::facts::{PhaseFacts, Way, finding, not_applicable};
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, OpKind, Transport};

pub(crate) const NAME: &str = "latency_floor";

const FLOOR_NS: u64 = 2_000;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<_> = facts.call_works().into_iter().filter(|work| facts.way(work.job) == Way::Direct).collect();
    if works.is_empty() {
        return not_applicable(NAME, "The phase made no direct transfers.");
    }
    let is_memory =
        facts.disks().iter().any(|disk| disk.transport.value.as_ref().is_some_and(Transport::is_memory_or_loop));
    if is_memory || facts.disks().is_empty() {
        return not_applicable(NAME, "There is no physical or virtual disk under the target.");
    }
    let median = works
        .iter()
        .flat_map(|work| &work.record.ops)
        .filter(|op| matches!(op.op, OpKind::Read | OpKind::Write))
        .filter_map(|op| quantile(&op.latency.total, 0.5))
        .min();
    let Some(median) = median else { return not_applicable(NAME, "No transfer latency was recorded.") };
    let (outcome, sentence) = if median < FLOOR_NS {
        (CheckOutcome::Suspect, "No disk completes a transfer this fast; something else served it.")
    } else {
        (CheckOutcome::Passed, "The latency is plausible for a disk.")
    };
    let (expected, found) = (format_duration_ns(FLOOR_NS), format_duration_ns(median));
    let expected = format!("{expected} or more");
    let check = finding(NAME, outcome, "the recorded latencies", expected, format!("median {found}"), sentence);
    match outcome {
        CheckOutcome::Suspect => check.with_brief(format!("{found}: too fast for a disk")),
        _ => check,
    }
}
