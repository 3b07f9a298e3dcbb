//! Checks the order of data and flush on the disk for sampled durable writes.
//!
//! A count of flushes shows little: they may have come too early, from other processes, or may not be needed.
//! So for each sampled write that a sync call or a flag makes durable, three events are put in order: the
//! requests that cover its disk range completed, then a flush was issued and completed, then the call
//! returned. The flush may come from any process. Data requests with forced unit access need none, and a disk
//! that declares no volatile cache gets none; then only the data must have completed before the return.
//!
//! A loop device counts as a disk. Its flush must have become one of the disk of its file, after the data. If it declares no volatile
//! cache, it gets none, and the disk of its file must have flushed the data before the call returned all the same. That any other disk
//! has no volatile cache is what it declares: the sentence says that this is not proved.
//!
//! Cannot see: writes whose sync call is in a later window, or missing; which of several flushes in flight completed; whether the disk did the work that it reported (only a power cut shows that).
//!
//! Thresholds: more than 10 % of the sampled writes not durable, there or below a loop device, contradicts, any is suspect. If the trace
//! lost an event, a missing flush proves nothing, and the check is not seen. No counter shows the order, so none outweighs it.
//!
//! Source: Linux `Documentation/block/writeback_cache_control.rst`; see `trace/matching.rs`.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::format_count;
use trueio_model::{Check, CheckOutcome, TraceRecord};

pub(crate) const NAME: &str = "flush_order";

const FAILED_SHARE_MAX: f64 = 0.10;
/// About a disk without a volatile cache, without a full stop.
pub(crate) const DECLARED: &str = "That the disk has no volatile write cache is declared by the device, not proved";

/// `block_rq_issue, block_rq_complete of vda`.
pub(crate) fn source_of(trace: &TraceRecord) -> String {
    format!("block_rq_issue, block_rq_complete of {}", trace.disks.join(", "))
}

/// Returns why a trace that lost events proves nothing, as a sentence.
pub(crate) fn losses(trace: &TraceRecord) -> String {
    format!(
        "The kernel's trace lost {} events because its buffers were full; the windows with a loss are left out.",
        format_count(trace.lost_event_count)
    )
}

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.call_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if !works.iter().any(|work| work.writes() && work.syncs()) {
        return not_applicable(NAME, "No write was made durable by a sync call or a flag.");
    }
    let trace = match facts.traced() {
        Ok(trace) => trace,
        Err(why) => {
            let sentence = format!(
                "{why} With tracing, this check reports whether each flush came after its data and before the \
                         call returned."
            );
            return not_seen(NAME, "", sentence);
        }
    };
    let syncs = &trace.syncs;
    let (durable, failed) = (syncs.durable_count(), syncs.failed_count());
    if durable + failed == 0 {
        let sentence = match syncs.sampled_count {
            0 if trace.lost_event_count > 0 => losses(trace),
            0 => "No write and its sync were both within one traced window.".to_owned(),
            count => format!("The disk offsets of {} sampled writes are unknown.", format_count(count)),
        };
        return not_seen(NAME, source_of(trace), sentence);
    }
    let expected = format!("{} sampled writes durable when the call returned", format_count(durable + failed));
    let mut found = Vec::new();
    let kinds = [
        (syncs.flushed_count, "flushed after the data"),
        (syncs.fua_count, "with forced unit access"),
        (syncs.uncached_count, "to a disk that declares no volatile cache"),
        (syncs.unflushed_count, "not flushed before the return"),
        (syncs.unwritten_count, "not on the disk yet"),
    ];
    for (count, words) in kinds {
        if count > 0 {
            found.push(format!("{} {words}", format_count(count)));
        }
    }
    let report = |outcome, sentence| finding(NAME, outcome, source_of(trace), expected, found.join(", "), sentence);
    let below = trace.below.as_ref().map(|below| &below.syncs);
    let (reached, failed_below) = below.map_or((0, 0), |sum| (sum.durable_count(), sum.failed_count()));
    if failed + failed_below > 0 && trace.lost_event_count > 0 {
        let sentence = format!(
            "The trace has no flush for {} sampled writes, which proves nothing. {}",
            format_count(failed + failed_below),
            losses(trace)
        );
        return report(CheckOutcome::NotSeen, sentence);
    }
    if failed == 0 {
        let failed = failed_below;
        let end = facts.below_loops(trace, (reached, reached + failed), "were also durable");
        let mut sentence =
            "Each sampled write was on the disk, and durable according to the disk, before its call returned."
                .to_owned();
        if syncs.uncached_count > 0 && failed == 0 {
            sentence += &format!(" {DECLARED}.");
        }
        end.into_iter().for_each(|end| sentence += &format!(" {end}"));
        if failed == 0 {
            return report(CheckOutcome::Passed, sentence);
        }
        let share = failed as f64 / (reached + failed) as f64;
        let example = below.and_then(|sum| sum.failure_example.as_deref()).unwrap_or_default();
        return report(outcome_of(share), format!("{sentence} The others were not: {example}."))
            .with_brief(format!("{} not durable below", format_count(failed)))
            .explaining(Some(share));
    }
    let share = failed as f64 / (durable + failed) as f64;
    let outcome = outcome_of(share);
    let example = syncs.failure_example.as_deref().unwrap_or_default();
    let sentence = format!(
        "{} of {} sampled writes were not durable when their call returned: {example}.",
        format_count(failed),
        format_count(durable + failed)
    );
    report(outcome, sentence)
        .with_brief(format!("{} of {} not durable", format_count(failed), format_count(durable + failed)))
        .explaining(Some(share))
}

fn outcome_of(failed_share: f64) -> CheckOutcome {
    if failed_share > FAILED_SHARE_MAX { CheckOutcome::Contradicted } else { CheckOutcome::Suspect }
}
