//! Looks for the request of each sampled direct transfer at its own disk offset.
//!
//! - **Reads** the tracepoints of `flush_order`, and the positions of the files on the disk (`FIEMAP` and the start of the partition).
//! - **Sees** whether requests covered the transfer's position between submission and completion, also on the disk of a loop device's
//!   file. Splits, merges and, for buffered jobs, the sizes of requests and calls (read-ahead) are reported.
//! - **Misses** buffered transfers, which have no request of their own; transfers between windows; files with unknown positions, or
//!   that moved or grew; the content.
//! - **Thresholds**: more than 10 % without a request contradicts, any is suspect; so is more than 10 % without one below a loop device
//!   with direct I/O, or in holes of the file below a loop device. Not seen if the trace lost an event, or a counter shows that all
//!   bytes arrived.
//! - **Cost**: that of the trace.
//! - **By hand**: as for `flush_order`; `filefrag -v -b512 FILE` prints the sectors, relative to the start of the partition.
//!
//! That counter is `process_read_bytes`, if `block_layer_bytes` does not contradict it (the process is counted at the top of a stack of
//! devices), or `block_layer_bytes` without I/O of others. Worker timestamps agree with the trace's within 1 µs: both clocks are read
//! together when a window opens and after each sampled I/O, which is dropped if that took more than 2 µs.

use super::flush_order::{losses, source_of};
use super::{block_layer_bytes, foreign_io, process_read_bytes};
use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::{format_bytes, format_count};
use trueio_model::{Cause, Check, CheckOutcome, OpKind, TraceRecord};

pub(crate) const NAME: &str = "traced_requests";

const MISSING_SHARE_MAX: f64 = 0.10;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if facts.call_works().is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let trace = match facts.traced() {
        Ok(trace) => trace,
        Err(why) => {
            let sentence = format!(
                "{why} With tracing, this check looks for each sampled transfer at its offset on \
                                    the disk."
            );
            return not_seen(NAME, "", sentence);
        }
    };
    let sum = &trace.transfers;
    if sum.matched_count + sum.missing_count == 0 {
        let sentence = match (sum.sampled_count, trace.ours.count) {
            (0, _) if trace.lost_event_count > 0 => losses(trace),
            (0, 0) => "No direct transfer began and ended within a traced window.".to_owned(),
            (0, _) => format!(
                "Buffered transfers have no request of their own; requests to the measured files averaged {}, calls \
                 {}.",
                mean(trace.ours.bytes, trace.ours.count),
                asked(facts)
            ),
            (count, _) => format!("The disk offsets of {} sampled transfers are unknown.", format_count(count)),
        };
        return not_seen(NAME, source_of(trace), sentence);
    }
    let judged = sum.matched_count + sum.missing_count;
    let expected = format!("{} sampled transfers at their disk offsets", format_count(judged));
    let found = format!("{} found{}", format_count(sum.matched_count), shapes(trace));
    let report = |outcome, sentence| finding(NAME, outcome, source_of(trace), expected, found, sentence);
    if sum.missing_count == 0 {
        let below = trace.below.as_ref().map(|below| &below.transfers);
        let (reached, missing) = below.map_or((0, 0), |sum| (sum.matched_count, sum.missing_count));
        let end = facts.below_loops(trace, (reached, reached + missing), "were also found at the places of its file");
        let mut sentence = "Each sampled transfer had a request at its offset on the disk.".to_owned();
        end.into_iter().for_each(|end| sentence += &format!(" {end}"));
        let share = missing as f64 / (reached + missing).max(1) as f64;
        let holes = trace.below.as_ref().map_or(0, |below| below.hole_count);
        let in_holes = holes as f64 / (reached + missing).max(1) as f64;
        if in_holes > MISSING_SHARE_MAX && trace.lost_event_count == 0 {
            let example = trace.below.as_ref().and_then(|below| below.hole_example.as_deref()).unwrap_or_default();
            let sentence =
                format!("{sentence} {} of them read holes, which no disk stores: {example}.", format_count(holes));
            return report(CheckOutcome::Suspect, sentence)
                .with_cause(Cause::Setup)
                .with_brief(format!("{:.0} % of the reads found holes in the file below", in_holes * 100.0))
                .explaining(Some(in_holes));
        }
        if share <= MISSING_SHARE_MAX || facts.has_buffered_loop() || trace.lost_event_count > 0 {
            return report(CheckOutcome::Passed, sentence);
        }
        let example = below.and_then(|sum| sum.missing_example.as_deref()).unwrap_or_default();
        return report(CheckOutcome::Suspect, format!("{sentence} Those missing did not reach that disk: {example}."))
            .with_brief(format!("{} not on the disk below", format_count(missing)))
            .explaining(Some(share));
    }
    if let Some(why) = why_unproven(facts, trace) {
        let sentence = format!(
            "The trace has no request for {} of {} sampled transfers, which proves nothing. {why}",
            format_count(sum.missing_count),
            format_count(judged)
        );
        return report(CheckOutcome::NotSeen, sentence);
    }
    let share = sum.missing_count as f64 / judged as f64;
    let outcome = if share > MISSING_SHARE_MAX { CheckOutcome::Contradicted } else { CheckOutcome::Suspect };
    let example = sum.missing_example.as_deref().unwrap_or_default();
    let sentence = format!(
        "{} of {} sampled transfers did not reach their offset on the disk: {example}.",
        format_count(sum.missing_count),
        format_count(judged)
    );
    report(outcome, sentence)
        .with_brief(format!("{} of {} not on the disk", format_count(sum.missing_count), format_count(judged)))
        .explaining(Some(share))
}

/// Returns why a request that is missing in the trace proves nothing, as a sentence.
fn why_unproven(facts: &PhaseFacts<'_>, trace: &TraceRecord) -> Option<String> {
    if trace.lost_event_count > 0 {
        return Some(losses(trace));
    }
    let has_passed = |check: Check| check.outcome == CheckOutcome::Passed;
    let of_disks = block_layer_bytes::check(facts);
    let counter = if has_passed(process_read_bytes::check(facts)) && of_disks.outcome != CheckOutcome::Contradicted {
        process_read_bytes::NAME
    // Where others use the disk, its bytes may be theirs.
    } else if has_passed(of_disks) && !foreign_io::check(facts).objects() {
        block_layer_bytes::NAME
    } else {
        return None;
    };
    Some(format!("A counter shows that all bytes were transferred (`{counter}`)."))
}

/// Returns `, 12 split, 30 merged with neighbours`.
fn shapes(trace: &TraceRecord) -> String {
    let mut words = String::new();
    for (count, what) in
        [(trace.transfers.split_count, "split"), (trace.transfers.merged_count, "merged with neighbours")]
    {
        if count > 0 {
            words += &format!(", {} {what}", format_count(count));
        }
    }
    words
}

fn mean(bytes: u64, count: u64) -> String {
    format_bytes(bytes / count.max(1))
}

/// Returns the mean size of the calls.
fn asked(facts: &PhaseFacts<'_>) -> String {
    let sum = |of: fn(&trueio_model::OpRecord) -> u64| -> u64 {
        let ops = facts.call_works().into_iter().flat_map(|work| work.record.ops.iter());
        ops.filter(|record| matches!(record.op, OpKind::Read | OpKind::Write)).map(of).sum()
    };
    mean(sum(|record| record.byte_count), sum(|record| record.io_count))
}
