//! Checks that sampled durable writes were flushed after their data and before the call returned.
//!
//! - **Reads** the tracepoints `block_rq_issue` and `block_rq_complete` in windows ([Level E3](tracing.md#level-e3)), and the
//!   timestamps of sampled writes and their sync calls.
//! - **Sees** `nobarrier`, layers that drop flushes, sync calls that do nothing (libeatmydata), and loop devices whose flush reaches no
//!   disk, or that declare no cache while the disk of their file has one.
//! - **Misses** writes whose sync call is in another window, such as a single `fsync` at the end; which of several flushes in flight
//!   completed; what the disk does with a flush.
//! - **Thresholds**: more than 10 % of the sampled writes not durable at the return, on the disk or below a loop device, contradicts;
//!   any is suspect. Not seen if the trace lost an event.
//! - **Cost**: that of [the trace](tracing.md#level-e3).
//! - **By hand**, on a loop device or a disk with a volatile cache, once with and once without `nobarrier`:
//!
//!   ```sh
//!   mount -t tracefs none /sys/kernel/tracing
//!   cd /sys/kernel/tracing && mkdir instances/me && cd instances/me
//!   echo 1 > events/block/block_rq_issue/enable; echo 1 > events/block/block_rq_complete/enable
//!   dd if=/dev/zero of=/mnt/log bs=4k count=3 oflag=direct,dsync; cat trace      # WS … FF … or WS alone
//!   cd .. && rmdir me
//!   ```
//!
//! Three events are put in order: the requests that cover the write's disk range completed, then a flush of any process was issued and
//! completed, then the call returned. Data with forced unit access needs no flush, and a disk that declares no volatile cache gets
//! none; then only the data must have completed. The flush of a loop device must have become one of the disk of its file, after the
//! data. No counter shows the order, so none outweighs it.
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
