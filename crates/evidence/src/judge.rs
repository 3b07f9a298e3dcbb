//! Combines the findings of the checks into a verdict and a level.

use crate::checks;
use crate::facts::PhaseFacts;
use trueio_model::{Cause, Check, CheckOutcome, EvidenceLevel, Verdict};

/// A check: a pure function of a phase.
type CheckFn = fn(&PhaseFacts<'_>) -> Check;

/// Every check, by name, in the order of the findings. `docs/checks.md` has a section for each.
pub const CHECKS: &[(&str, CheckFn)] = &[
    (checks::call_results::NAME, checks::call_results::check),
    (checks::direct_granted::NAME, checks::direct_granted::check),
    (checks::block_layer_bytes::NAME, checks::block_layer_bytes::check),
    (checks::process_read_bytes::NAME, checks::process_read_bytes::check),
    (checks::page_cache::NAME, checks::page_cache::check),
    (checks::holes::NAME, checks::holes::check),
    (checks::zero_blocks::NAME, checks::zero_blocks::check),
    (checks::flushes::NAME, checks::flushes::check),
    (checks::flush_order::NAME, checks::flush_order::check),
    (checks::traced_requests::NAME, checks::traced_requests::check),
    (checks::foreign_io::NAME, checks::foreign_io::check),
    (checks::achieved_depth::NAME, checks::achieved_depth::check),
    (checks::pace::NAME, checks::pace::check),
    (checks::source::NAME, checks::source::check),
    (checks::steadiness::NAME, checks::steadiness::check),
    (checks::working_set::NAME, checks::working_set::check),
    (checks::memory_backed::NAME, checks::memory_backed::check),
    (checks::declared_values::NAME, checks::declared_values::check),
    (checks::usb_link::NAME, checks::usb_link::check),
    (checks::usb_transfers::NAME, checks::usb_transfers::check),
    (checks::content::NAME, checks::content::check),
    (checks::latency_floor::NAME, checks::latency_floor::check),
    (checks::latency_origin::NAME, checks::latency_origin::check),
    (checks::heat::NAME, checks::heat::check),
    (checks::clock_and_cpu::NAME, checks::clock_and_cpu::check),
    (checks::processor_wait::NAME, checks::processor_wait::check),
    (checks::io_limits::NAME, checks::io_limits::check),
    (checks::stops::NAME, checks::stops::check),
];

/// Returns the verdict, the level and the findings of a phase.
///
/// [`Verdict::of`] combines the findings. An objection that the user accepted before the run (`--accept CHECK`) makes the
/// phase at most suspect and stays in the findings. At [`EvidenceLevel::E0`], where only the results of the
/// calls are known, no phase is supported; of the engines `null` and `simulated` the checks' sentences state that no device was involved.
pub fn judge(facts: &PhaseFacts<'_>) -> (Verdict, EvidenceLevel, Vec<Check>) {
    let mut findings: Vec<Check> = CHECKS.iter().map(|(_, check)| check(facts)).collect();
    attribute_to_holes(facts, &mut findings);
    leave_delay_to_its_name(&mut findings);
    for check in &mut findings {
        check.is_accepted = check.objects() && facts.accepted_checks.contains(&check.name);
    }
    let level = level(facts, &findings);
    let verdict = match Verdict::of(&findings) {
        Verdict::Supported if level == EvidenceLevel::E0 => Verdict::Unverified,
        verdict => verdict,
    };
    (verdict, level, findings)
}

/// Sets the cause of counters that miss the bytes of a file with holes: the set-up, and not a cache. A file that was modified while it was only
/// read may have had holes that were filled again.
fn attribute_to_holes(facts: &PhaseFacts<'_>, findings: &mut [Check]) {
    const COUNTERS: [&str; 4] = [
        checks::block_layer_bytes::NAME,
        checks::process_read_bytes::NAME,
        checks::traced_requests::NAME,
        checks::latency_floor::NAME,
    ];
    let has_holes = |check: &Check| check.name == checks::holes::NAME && check.outcome == CheckOutcome::Contradicted;
    let has_holes = findings.iter().any(has_holes);
    let is_modified = facts.observation.is_modified && facts.works().all(|work| work.reads() && !work.writes());
    let is_counter = |check: &&mut Check| check.cause == Cause::Cache && COUNTERS.contains(&check.name.as_str());
    for check in findings.iter_mut().filter(|check| check.objects()).filter(is_counter) {
        if has_holes {
            check.cause = Cause::Setup;
        // What buffered reads find in the page cache may have been written by others.
        } else if is_modified && check.outcome == CheckOutcome::Contradicted {
            check.cause = Cause::Setup;
            check.sentence += " The files were modified meanwhile: perhaps parts were cut out and filled again.";
        }
    }
}

/// Lets `latency_origin` pass if another check names what delays I/Os before the disk.
fn leave_delay_to_its_name(findings: &mut [Check]) {
    let is_delay = |check: &Check| check.objects() && check.name == checks::latency_origin::NAME;
    let Some(index) = findings.iter().position(is_delay) else { return };
    let delayed = findings[index].explained_percent.unwrap_or(0);
    let left = (checks::latency_origin::UNEXPLAINED_SHARE_MAX * 100.0) as u8;
    let names = |check: &&Check| {
        check.objects()
            && checks::latency_origin::NAMED_BY.contains(&check.name.as_str())
            && check.explained_percent.is_none_or(|percent| delayed.saturating_sub(percent) <= left)
    };
    let Some(named) = findings.iter().find(names).map(|check| check.name.clone()) else { return };
    let check = &mut findings[index];
    (check.outcome, check.explained_percent) = (CheckOutcome::Passed, None);
    check.brief.clear();
    check.sentence = format!("Much of the latency is outside the disk, which `{named}` explains.");
}

/// Returns the level. For disks that are driven in user space it is E1 if the kernel counted their transfers. Otherwise E1 needs the disks' counters and an idle baseline of each, E2 also a counter of the
/// file or the process, E3 sampled I/Os whose requests were found on the disk.
fn level(facts: &PhaseFacts<'_>, findings: &[Check]) -> EvidenceLevel {
    let saw = |name: &str| {
        findings.iter().any(|check| {
            check.name == name && !matches!(check.outcome, CheckOutcome::NotSeen | CheckOutcome::NotApplicable)
        })
    };
    if facts.jobs.iter().all(|job| job.engine.drives_usb_disks()) && saw(checks::usb_transfers::NAME) {
        return EvidenceLevel::E1;
    }
    let devices = facts.devices();
    let has_baseline = !devices.is_empty() && devices.iter().all(|delta| delta.baseline_ns > 0);
    if !has_baseline || !saw(checks::block_layer_bytes::NAME) {
        return EvidenceLevel::E0;
    }
    if facts.trace.is_some_and(|trace| trace.matched_count() > 0) {
        return EvidenceLevel::E3;
    }
    let closer = [checks::process_read_bytes::NAME, checks::page_cache::NAME, checks::holes::NAME];
    if closer.into_iter().any(saw) { EvidenceLevel::E2 } else { EvidenceLevel::E1 }
}
