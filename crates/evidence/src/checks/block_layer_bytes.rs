//! Compares the bytes that the disks transferred with those that the calls reported.
//!
//! - **Reads** `/sys/block/DISK/stat` of every disk under the target, before and after.
//! - **Sees** direct I/O that never reached the disk (`did_not_reach_device`), buffered reads from the page cache, writes that are
//!   still in it, I/O of other programs, which it names if they were traced.
//! - **Misses** the origin of I/O: the counters include all processes. Mirrors count a write once for each member, filesystems that
//!   compress write less, trims are not counted, and `mmap` makes no calls to compare.
//! - **Thresholds**: 98 % of the bytes of the calls, half of less than 1 MiB. Missing bytes contradict if the I/O was direct, each write
//!   had to be durable, or a flush at the end covered blocks written once; else they are suspect. I/O of others is suspect: a sum that is
//!   right only with the baseline's, unless the trace found all of at least 32 sampled transfers; more than 110 % and 4 MiB of direct
//!   reads; more than 125 % and 8 MiB of direct writes, unless syncs, new space, verification, RAID or copy on write explain it.
//! - **Amplification** is printed and legitimate: on Linux 6.18 direct 4 KiB overwrites on ext4 add nothing, synced appends without a
//!   journal write 2.9 times their bytes, btrfs up to 36 times.
//! - **Cost**: 1 µs per disk and reading.
//! - **By hand**: read a cached file; the third value, sectors read, does not change.
//!
//!   ```sh
//!   cat full > /dev/null
//!   awk '{print $3 * 512}' /sys/block/vda/stat; dd if=full of=/dev/null bs=4k; awk '{print $3 * 512}' /sys/block/vda/stat
//!   ```
//!
//! After a ramp, the I/Os that can be in flight at its end may be missing, because the disk may have completed them before the measured
//! part began. I/Os that failed, were short, or in flight at the end are not charged to others.
//!
//! Source: Linux `Documentation/block/stat.rst`.

use crate::checks::foreign_io::{PEERS_SENTENCE, culprits, culprits_of, moved_by_others, seen_of_others};
use crate::facts::{Counted, PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use trueio_model::units::{format_bytes, format_count};
use trueio_model::{Cause, Check, CheckOutcome, OpKind, OpMix, Order, Prepare, TraceRecord};

pub(crate) const NAME: &str = "block_layer_bytes";

/// Below this many bytes the lower threshold applies.
pub(crate) const SMALL_BYTES: u64 = 1 << 20;
const READ_EXCESS_BYTES: u64 = 4 << 20;
const WRITE_EXCESS_BYTES: u64 = 8 << 20;
/// So many transfers that were all found on the disk stand for the phase.
const SAMPLED_COUNT_MIN: u64 = 32;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.file_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if let Some(why) = facts.why_no_counters() {
        return not_seen(NAME, facts.counter_files(), why);
    }
    let claimed = |op| works.iter().map(|work| work.bytes(op)).sum::<u64>();
    let (read, written) = (claimed(OpKind::Read), claimed(OpKind::Write));
    if read + written == 0 {
        return not_applicable(NAME, "No bytes were read or written.");
    }
    let mut parts = Vec::new();
    if read > 0 {
        parts.push((read, reads(facts, &works), "read", facts.counted(|counters| counters.read_bytes)));
    }
    if written > 0 {
        parts.push((written, writes(facts, &works), "written", facts.counted(|counters| counters.write_bytes)));
    }
    // The finding is that of the worse direction; the other one adds its sentence if it is as bad.
    let worst = parts.iter().map(|part| &part.1).max_by_key(|direction| severity(direction.outcome));
    let worst = worst.expect("something was read or written").clone();
    if worst.cause == Cause::Neighbour && facts.observation.has_peers {
        return not_seen(NAME, facts.counter_files(), PEERS_SENTENCE);
    }
    let is_of_reads = parts.first().is_some_and(|part| part.2 == "read" && part.1.sentence == worst.sentence);
    let sentences = parts.iter().map(|part| &part.1).filter(|direction| direction.outcome == worst.outcome);
    let sentences: Vec<&str> = sentences.map(|direction| direction.sentence.as_str()).collect();
    let expected: Vec<String> =
        parts.iter().map(|(claimed, _, verb, _)| format!("{} {verb}", format_bytes(*claimed))).collect();
    let found: Vec<String> = parts.iter().map(|(claimed, _, verb, counted)| words(*claimed, verb, *counted)).collect();
    let expected = format!("{} in {} I/Os", expected.join(", "), format_count(io_count(&works)));
    let found =
        format!("{} in {} requests{}", found.join(", "), format_count(request_count(facts)), discards(facts, &works));
    let check = finding(NAME, worst.outcome, facts.counter_files(), expected, found, sentences.join(" "))
        .with_cause(worst.cause)
        .with_brief(worst.brief)
        .explaining(worst.explained);
    let op = if is_of_reads { OpKind::Read } else { OpKind::Write };
    if worst.cause == Cause::Neighbour { check.with_culprits(culprits_of(facts, Some(op))) } else { check }
}

/// The finding on one direction.
#[derive(Debug, Clone)]
struct Direction {
    outcome: CheckOutcome,
    cause: Cause,
    sentence: String,
    brief: String,
    /// The part of the figure that it can explain, from 0 to 1.
    explained: Option<f64>,
}

impl Direction {
    fn passed(sentence: &str) -> Self {
        let sentence = sentence.to_owned();
        Self { outcome: CheckOutcome::Passed, cause: Cause::Cache, sentence, brief: String::new(), explained: None }
    }

    /// The page cache did the work of `missing` of `claimed` bytes.
    fn cached(outcome: CheckOutcome, sentence: String, brief: String, missing: u64, claimed: u64) -> Self {
        let explained = Some(missing as f64 / claimed.max(1) as f64);
        Self { outcome, cause: Cause::Cache, sentence, brief, explained }
    }

    /// Other processes transferred `foreign` of `counted` bytes, with requests in flight for a part of the time, `busy`, if that is known.
    fn disturbed(sentence: String, brief: String, (foreign, counted): (u64, u64), busy: Option<f64>) -> Self {
        let share = foreign as f64 / counted.max(1) as f64;
        let explained = Some(busy.map_or(share, |busy| share.min(busy)));
        Self { outcome: CheckOutcome::Suspect, cause: Cause::Neighbour, sentence, brief, explained }
    }
}

/// `96 % from memory`; all but the last fraction is not everything.
fn share_words(missing: u64, claimed: u64, words: &str) -> String {
    let percent = (missing as f64 / claimed.max(1) as f64 * 100.0).floor();
    format!("{percent:.0} % {words}")
}

/// Returns the number of reads and writes of the jobs.
fn io_count(works: &[Work<'_>]) -> u64 {
    works.iter().map(|work| work.count(OpKind::Read) + work.count(OpKind::Write)).sum()
}

/// Returns the number of requests that the disks counted: fewer than I/Os if they were merged or cached, more
/// if they were split or flushed.
fn request_count(facts: &PhaseFacts<'_>) -> u64 {
    facts.devices().iter().map(|delta| delta.measured.read_count + delta.measured.write_count).sum()
}

/// Describes discards although no job trims: a filesystem mounted with `discard` discards freed blocks.
fn discards(facts: &PhaseFacts<'_>, works: &[Work<'_>]) -> String {
    let bytes: u64 = facts.devices().iter().map(|delta| delta.measured.discard_bytes).sum();
    let trims = works.iter().any(|work| work.job.pattern.mix == OpMix::Only(OpKind::Trim));
    if bytes == 0 || trims { String::new() } else { format!(", {} discarded though no job trims", format_bytes(bytes)) }
}

fn severity(outcome: CheckOutcome) -> u8 {
    match outcome {
        CheckOutcome::Contradicted => 3,
        CheckOutcome::Suspect => 2,
        CheckOutcome::Passed => 1,
        CheckOutcome::NotSeen | CheckOutcome::NotApplicable => 0,
    }
}

/// `1.50 GiB written (1.2 times), of which others' 3 MiB`.
fn words(claimed: u64, verb: &str, counted: Counted) -> String {
    let ratio = counted.raw as f64 / claimed as f64;
    let times = if ratio >= 1.05 { format!(" ({ratio:.1} times)") } else { String::new() };
    let foreign = if counted.foreign > 0 {
        format!(
            ", of which about {} by other processes if they went on as before the phase",
            format_bytes(counted.foreign)
        )
    } else {
        String::new()
    };
    format!("{} {verb}{times}{foreign}", format_bytes(counted.raw))
}

/// Returns true if `counted` satisfies `claimed`; `missing_bytes` may be absent.
pub(crate) fn has_arrived(claimed: u64, counted: u64, missing_bytes: u64) -> bool {
    let needed = if claimed < SMALL_BYTES { claimed / 2 } else { claimed / 100 * 98 };
    counted >= needed.saturating_sub(missing_bytes.min(claimed / 2))
}

/// Returns the bytes that the disk may have completed before the measured part began.
pub(crate) fn bytes_before_begin(works: &[Work<'_>]) -> u64 {
    works.iter().filter(|work| work.job.limits.ramp_ns > 0).map(|work| work.bytes_in_flight()).sum()
}

fn did_not_reach(verb: &str, claimed: u64, counted: u64) -> Direction {
    let sentence = format!(
        "did_not_reach_device: the calls reported {} {verb} with direct I/O, but the disk counted {}.",
        format_bytes(claimed),
        format_bytes(counted)
    );
    missing_on_disk(sentence, claimed, counted)
}

/// Of `claimed` bytes that had to reach the disk, it counted `counted`.
fn missing_on_disk(sentence: String, claimed: u64, counted: u64) -> Direction {
    let brief = format!("the disk counted {} of {}", format_bytes(counted), format_bytes(claimed));
    Direction::cached(CheckOutcome::Contradicted, sentence, brief, claimed.saturating_sub(counted), claimed)
}

/// Returns true if the trace, without a loss, found the requests of all sampled transfers: then others did not hide missing ones.
fn all_sampled_arrived(facts: &PhaseFacts<'_>) -> bool {
    facts.traced().is_ok_and(|trace| {
        let sampled = &trace.transfers;
        let are_all = sampled.matched_count == sampled.sampled_count && sampled.matched_count >= SAMPLED_COUNT_MIN;
        trace.lost_event_count == 0 && are_all
    })
}

fn hidden_by_others(facts: &PhaseFacts<'_>, op: OpKind, claimed: u64, counted: Counted) -> Direction {
    let sentence = format!(
        "The disk counted enough bytes only if the I/O of other processes (about {}{}) is included, so it is unknown \
         whether all {} of this phase reached it.",
        format_bytes(counted.foreign),
        culprits(facts, Some(op)),
        format_bytes(claimed)
    );
    let brief = format!("others may have moved up to {}", format_bytes(counted.foreign));
    // What may not have arrived is not bounded by the time of others.
    Direction::disturbed(sentence, brief, (counted.foreign, counted.raw), None)
}

fn reads(facts: &PhaseFacts<'_>, works: &[Work<'_>]) -> Direction {
    let of = |way| -> u64 {
        works.iter().filter(|work| facts.way(work.job) == way).map(|work| work.bytes(OpKind::Read)).sum()
    };
    let (direct, buffered) = (of(Way::Direct), of(Way::Buffered));
    let counted = facts.counted(|counters| counters.read_bytes);
    let early = bytes_before_begin(works);
    if !has_arrived(direct, counted.raw, early) {
        return did_not_reach("read", direct, counted.raw);
    }
    if !has_arrived(direct + buffered, counted.raw, early) {
        let missing = (direct + buffered).saturating_sub(counted.raw);
        let share = missing as f64 / buffered.max(1) as f64 * 100.0;
        let sentence = format!(
            "The page cache served {} of {} ({share:.0} %); these bytes were not read from the disk.",
            format_bytes(missing),
            format_bytes(buffered)
        );
        let all = direct + buffered;
        return Direction::cached(
            CheckOutcome::Suspect,
            sentence,
            share_words(missing, all, "from memory"),
            missing,
            all,
        );
    }
    if !has_arrived(direct, counted.ours(), early) && !all_sampled_arrived(facts) {
        return hidden_by_others(facts, OpKind::Read, direct, counted);
    }
    let verifies = works.iter().any(|work| work.job.verify.is_some());
    let allowance = direct + direct / 10 + READ_EXCESS_BYTES + bytes_at_end(works) + failed_bytes(works);
    if buffered == 0 && !verifies && !facts.amplifies() && counted.raw > allowance {
        let sentence = format!(
            "The disk read {} more than this phase requested: other processes used it at the same time{}.",
            format_bytes(counted.raw - direct),
            culprits(facts, Some(OpKind::Read))
        );
        return excess(facts, sentence, OpKind::Read, counted.raw - direct, counted.raw);
    }
    Direction::passed("The disk read as many bytes as the calls returned.")
}

/// Failed and short I/Os may have reached the disk, which counts them, but are not in the figures.
fn failed_bytes(works: &[Work<'_>]) -> u64 {
    let of_work = |work: &Work<'_>| {
        let pattern = &work.job.pattern;
        let longest = pattern.read_sizes.max_bytes().max(pattern.write_sizes.max_bytes());
        let failed: u64 = work.record.ops.iter().map(|op| op.error_count + op.short_count).sum();
        failed.saturating_mul(longest)
    };
    works.iter().map(of_work).fold(0, u64::saturating_add)
}

/// I/Os in flight when the measured part ends reach the disk but are not in the figures.
fn bytes_at_end(works: &[Work<'_>]) -> u64 {
    works.iter().map(|work| work.bytes_in_flight()).sum()
}

/// Other processes moved `excess` of the `counted` bytes.
fn excess(facts: &PhaseFacts<'_>, sentence: String, op: OpKind, excess: u64, counted: u64) -> Direction {
    // If the traced windows show the most of it, they also show for how long.
    let is_seen = |trace: &&TraceRecord| trace.inseparable.is_none() && seen_of_others(facts, trace) >= excess / 2;
    let busy = facts.traced().ok().filter(is_seen);
    let busy = busy.map(|trace| trace.others_busy_ns as f64 / trace.window_ns.max(1) as f64);
    Direction::disturbed(sentence, moved_by_others(facts, op, excess), (excess, counted), busy)
}

fn writes(facts: &PhaseFacts<'_>, works: &[Work<'_>]) -> Direction {
    let counted = facts.counted(|counters| counters.write_bytes);
    let early = bytes_before_begin(works);
    let sum = |filter: &dyn Fn(&Work<'_>) -> bool| -> u64 {
        works.iter().filter(|work| filter(work)).map(|work| work.bytes(OpKind::Write)).sum()
    };
    let is_direct = |work: &Work<'_>| facts.way(work.job) == Way::Direct;
    let direct = sum(&is_direct);
    if !has_arrived(direct, counted.raw, early) {
        return did_not_reach("written", direct, counted.raw);
    }
    let durable = sum(&|work| !is_direct(work) && work.syncs_every_write());
    if !has_arrived(direct + durable, counted.raw, early) {
        let sentence = format!(
            "did_not_reach_device: every write had to be durable when it returned ({} in all), but the disk counted \
             {}.",
            format_bytes(durable),
            format_bytes(counted.raw)
        );
        return missing_on_disk(sentence, direct + durable, counted.raw);
    }
    let buffered: Vec<Work<'_>> =
        works.iter().copied().filter(|work| !is_direct(work) && !work.syncs_every_write()).collect();
    let cached: u64 = buffered.iter().map(|work| work.bytes(OpKind::Write)).sum();
    if cached > 0 && !has_arrived(direct + durable + cached, counted.raw, early) {
        return in_the_cache(facts, &buffered, cached, counted.raw.saturating_sub(direct + durable));
    }
    if !has_arrived(direct, counted.ours(), early) && !all_sampled_arrived(facts) {
        return hidden_by_others(facts, OpKind::Write, direct, counted);
    }
    let allocates = works.iter().any(|work| {
        let is_unwritten = |prepare| {
            use Prepare::{CreateAllocated, CreateEmpty, CreateReserved, CreateSparse};
            matches!(prepare, CreateEmpty | CreateReserved | CreateSparse | CreateAllocated)
        };
        work.job.files.iter().any(|file| is_unwritten(file.prepare))
    });
    let is_plain = durable + cached == 0
        && !allocates
        && !facts.amplifies()
        && works.iter().all(|work| !work.syncs() && work.job.verify.is_none());
    if is_plain && counted.raw > direct + direct / 4 + WRITE_EXCESS_BYTES + bytes_at_end(works) + failed_bytes(works) {
        let sentence = format!(
            "The disk wrote {} more than this phase requested, and no sync call, RAID or copy on write explains it: \
             other processes used it at the same time{}.",
            format_bytes(counted.raw - direct),
            culprits(facts, Some(OpKind::Write))
        );
        return excess(facts, sentence, OpKind::Write, counted.raw - direct, counted.raw);
    }
    Direction::passed("The disk wrote as many bytes as the calls reported.")
}

/// Judges buffered writes that the disk did not count in full.
fn in_the_cache(facts: &PhaseFacts<'_>, works: &[Work<'_>], claimed: u64, counted: u64) -> Direction {
    let dirty: u64 = facts
        .observation
        .residency
        .iter()
        .filter_map(|(_, _, after)| after.as_ref())
        .filter_map(|after| Some(after.dirty_pages? * after.page_bytes))
        .sum();
    let still = if dirty > 0 { format!(" {} are still in memory only.", format_bytes(dirty)) } else { String::new() };
    // A page that is overwritten in the cache reaches the disk once.
    let each_once = works.iter().all(|work| {
        let in_order = match &work.job.pattern.order {
            Order::Sequential => true,
            Order::Random { each_block_once, .. } => *each_block_once,
        };
        in_order && work.bytes(OpKind::Write) <= work.region_bytes()
    });
    let flushed_at_end = works.iter().all(|work| work.job.flush.is_at_end());
    if flushed_at_end && each_once {
        let sentence = format!(
            "did_not_reach_device: the flush at the end should have written {} to the disk, but the disk counted \
             {}.{still}",
            format_bytes(claimed),
            format_bytes(counted)
        );
        return missing_on_disk(sentence, claimed, counted);
    }
    let reason = if flushed_at_end {
        "Blocks were overwritten before they were flushed"
    } else {
        "The writes stayed in the page cache, so the figures describe memory, not the disk"
    };
    let sentence = format!("{reason}; of {} the disk counted {}.{still}", format_bytes(claimed), format_bytes(counted));
    let missing = claimed.saturating_sub(counted);
    Direction::cached(CheckOutcome::Suspect, sentence, share_words(missing, claimed, "into memory"), missing, claimed)
}
