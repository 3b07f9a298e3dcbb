//! Detects latencies too short for a disk.
//!
//! A direct transfer crosses a bus and ends with an interrupt. The fastest NVMe drives take about 8 µs, a
//! virtual disk about 9; a direct read of a hole takes 0.3 to 0.6 and of tmpfs 0.2 to 1.4 (measured on Linux
//! 6.18). A median below the floor was not served by a disk.
//!
//! Cannot see: a false result with a plausible latency. A failing write takes 3 to 13 µs, because its pages
//! are pinned before it is checked.
//!
//! Threshold: median total latency of direct transfers below 2 µs: suspect. Not applied to memory devices
//! (zram, ram, pmem) and loop devices.

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
