//! Detects I/O of other processes on the same disks.
//!
//! Reads the disks' counters over an idle span just before the phase, while no job runs, and compares its
//! rates with the phase's. Within the phase, I/O in the other direction belongs to other processes, too: a
//! phase that only reads causes no writes. Where requests were traced, those outside our files' positions are
//! attributed: to other processes by name, to the filesystem (metadata, journal), to our own threads, or to
//! kernel threads, which write for processes that the trace does not name.
//!
//! Cannot see: processes that start and end within the phase and do the same I/O as the job (as root: between
//! two traced windows); those below the disk (other guests of the host, other volumes of an array).
//!
//! Thresholds: in the baseline at least 8 requests, and requests or bytes per second above 5 % of the
//! phase's, or the disk busy for more than 10 % of the time; in the phase, requests or bytes in the other
//! direction above 10 % of ours (at least 256 requests, or 4 MiB); in the traced windows at least 8 requests or 1 MiB,
//! and 5 % of all requests or bytes by others, or 10 % of unknown origin. Suspect. A busy baseline is ignored
//! if three windows with 32 requests and without a lost event show no I/O of others.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, DeviceCounters, DeviceDelta, OpKind, RequestSum, TraceRecord};

pub(crate) const NAME: &str = "foreign_io";

const BASELINE_REQUEST_COUNT_MIN: u64 = 8;
const RATE_SHARE_MAX: f64 = 0.05;
const BUSY_SHARE_MAX: f64 = 0.10;
const TRACED_REQUEST_COUNT_MIN: u64 = 8;
/// Fewer requests count, too, if they are large.
const TRACED_BYTES_MIN: u64 = 1 << 20;
const OTHERS_SHARE_MAX: f64 = 0.05;
const UNATTRIBUTED_SHARE_MAX: f64 = 0.10;
/// The minimum trace that can stand for a whole phase.
const WINDOW_COUNT_MIN: u64 = 3;
const ALL_COUNT_MIN: u64 = 32;
const OTHER_WAY_SHARE_MAX: f64 = 0.10;
const OTHER_WAY_REQUEST_COUNT_MIN: u64 = 256;
const OTHER_WAY_BYTES_MIN: u64 = 4 << 20;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.jobs.iter().any(|job| job.engine.touches_files()) {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if let Some(why) = facts.why_no_counters() {
        return not_seen(NAME, facts.counter_files(), why);
    }
    let devices = facts.devices();
    if devices.iter().any(|delta| delta.baseline_ns == 0) {
        let sentence = "No idle baseline was taken, so the I/O of other processes cannot be separated from this \
                        phase's.";
        return not_seen(NAME, facts.counter_files(), sentence);
    }
    let report = |outcome, found: String, sentence: String| {
        finding(NAME, outcome, facts.counter_files(), "no other I/O", found, sentence)
    };
    let disturbed = |found: Disturbance, sentence: String| {
        report(CheckOutcome::Suspect, found.found, sentence)
            .with_brief(found.brief)
            .explaining(Some(found.share))
            .with_culprits(culprits_of(facts))
    };
    let trace = facts.traced().ok();
    if let Some(mut found) = trace.and_then(|trace| others_traced(facts, trace)) {
        let sentence = std::mem::take(&mut found.sentence);
        return disturbed(found, sentence);
    }
    let is_free = trace.is_some_and(|trace| {
        // Our own threads write the filesystem's metadata, and may do other I/O, so a large amount proves
        // nothing.
        let is_ours = !exceeds(trace, trace.own_elsewhere, UNATTRIBUTED_SHARE_MAX);
        let is_long = trace.window_count >= WINDOW_COUNT_MIN && all(trace).count >= ALL_COUNT_MIN;
        trace.inseparable.is_none() && is_ours && is_long && trace.lost_event_count == 0
    });
    for delta in &devices {
        let before = if is_free { None } else { busy_before(delta) };
        if let Some(found) = before.or_else(|| other_way(facts, delta)) {
            let unsure = trace.and_then(|trace| trace.inseparable.as_deref());
            let unsure = unsure.map(|why| format!(" Traced requests could not be attributed: {why}."));
            let sentence = format!("{}{}{}", found.sentence, unsure.unwrap_or_default(), suspects(facts));
            return disturbed(found, sentence);
        }
    }
    if let Some(trace) = trace.filter(|_| is_free) {
        let others = trace.others.count + trace.unattributed.count;
        let found = format!("{} of {} traced requests", format_count(others), format_count(all(trace).count));
        let sentence = "No other process used the disk significantly while requests were traced.";
        return report(CheckOutcome::Passed, found, sentence.to_owned());
    }
    let found: Vec<String> = devices.iter().map(|delta| format!("{} idle: {}", delta.disk, activity(delta))).collect();
    report(CheckOutcome::Passed, found.join(", "), "No other process used the disk significantly.".to_owned())
}

/// I/O of other processes.
struct Disturbance {
    found: String,
    sentence: String,
    brief: String,
    /// Their part of the disk's requests, bytes or time, from 0 to 1: an upper limit of what they took from the figure.
    share: f64,
}

/// Returns the background work that may have caused the I/O, and the programs whose requests were traced.
fn suspects(facts: &PhaseFacts<'_>) -> String {
    let background = &facts.observation.background;
    let traced = culprits(facts);
    let traced = if traced.is_empty() { traced } else { format!(" Traced{traced}.") };
    if background.is_empty() { traced } else { format!(" Active on this machine: {}.{traced}", background.join("; ")) }
}

/// Returns the same as a list: `dd (pid 812)`.
pub(crate) fn culprits_of(facts: &PhaseFacts<'_>) -> Vec<String> {
    let trace = facts.traced().ok().filter(|trace| trace.inseparable.is_none());
    let names = trace.into_iter().flat_map(|trace| &trace.others_names);
    names.map(|name| culprit_of(name)).collect()
}

/// Shortens `dd (process 812, 3 MiB in the traced windows)` to `dd (pid 812)`.
fn culprit_of(described: &str) -> String {
    let Some((name, rest)) = described.rsplit_once(" (") else { return described.to_owned() };
    match rest.strip_prefix("process ").and_then(|rest| rest.split([',', ')']).next()) {
        Some(process) => format!("{name} (pid {process})"),
        None => name.to_owned(),
    }
}

/// Returns the busiest other program: `dd`; `others` if none is known.
pub(crate) fn who(facts: &PhaseFacts<'_>) -> String {
    match culprits_of(facts).first() {
        Some(culprit) => culprit.split(" (pid ").next().unwrap_or(culprit).to_owned(),
        None => "others".to_owned(),
    }
}

/// Returns the programs whose requests were traced outside of the measured files, after a colon; empty if there are none.
pub(crate) fn culprits(facts: &PhaseFacts<'_>) -> String {
    let Some(trace) = facts.traced().ok().filter(|trace| trace.inseparable.is_none()) else { return String::new() };
    if trace.others_names.is_empty() { String::new() } else { format!(": {}", trace.others_names.join(", ")) }
}

/// Returns everything that was traced.
fn all(trace: &TraceRecord) -> RequestSum {
    let sums = [trace.ours, trace.filesystem, trace.own_elsewhere, trace.others, trace.unattributed];
    RequestSum { count: sums.iter().map(|sum| sum.count).sum(), bytes: sums.iter().map(|sum| sum.bytes).sum() }
}

/// Returns true if `sum` exceeds a share of all traced requests or bytes.
fn exceeds(trace: &TraceRecord, sum: RequestSum, most: f64) -> bool {
    let all = all(trace);
    let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let share = of(sum.count, all.count).max(of(sum.bytes, all.bytes));
    (sum.count >= TRACED_REQUEST_COUNT_MIN || sum.bytes >= TRACED_BYTES_MIN) && share > most
}

/// Returns what the trace attributes to other processes, or cannot attribute.
fn others_traced(facts: &PhaseFacts<'_>, trace: &TraceRecord) -> Option<Disturbance> {
    // Without all positions, our own requests would be attributed to others.
    if trace.inseparable.is_some() {
        return None;
    }
    let all = all(trace);
    let disks = trace.disks.join(", ");
    let found = |sum: RequestSum| {
        format!(
            "{} in {} of {} requests traced in {} ms",
            format_bytes(sum.bytes),
            format_count(sum.count),
            format_count(all.count),
            trace.window_ns / 1_000_000
        )
    };
    let share = |sum: RequestSum| {
        let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        of(sum.count, all.count).max(of(sum.bytes, all.bytes))
    };
    let brief = |who: &str, sum: RequestSum| {
        format!("{who} moved {} in {} ms", format_bytes(sum.bytes), trace.window_ns / 1_000_000)
    };
    if exceeds(trace, trace.others, OTHERS_SHARE_MAX) {
        let names = trace.others_names.join(", ");
        let sentence = format!("Other processes used {disks} at the same time, outside the measured files: {names}.");
        return Some(Disturbance {
            found: found(trace.others),
            sentence,
            brief: brief(&who(facts), trace.others),
            share: share(trace.others),
        });
    }
    exceeds(trace, trace.unattributed, UNATTRIBUTED_SHARE_MAX).then(|| {
        let sentence = format!(
            "The kernel wrote to {disks} outside the measured files at the same time, for other processes or for the \
             filesystem."
        );
        Disturbance {
            found: found(trace.unattributed),
            sentence,
            brief: brief("the kernel", trace.unattributed),
            share: share(trace.unattributed),
        }
    })
}

fn requests(counters: &DeviceCounters) -> u64 {
    counters.read_count + counters.write_count + counters.discard_count
}

fn bytes(counters: &DeviceCounters) -> u64 {
    counters.read_bytes + counters.write_bytes
}

/// `12 requests/s, 48 KiB/s`.
fn activity(delta: &DeviceDelta) -> String {
    let seconds = delta.baseline_ns as f64 / 1e9;
    format!(
        "{:.0} requests/s, {}",
        requests(&delta.baseline) as f64 / seconds,
        format_bandwidth(bytes(&delta.baseline) as f64 / seconds)
    )
}

fn busy_before(delta: &DeviceDelta) -> Option<Disturbance> {
    if requests(&delta.baseline) < BASELINE_REQUEST_COUNT_MIN {
        return None;
    }
    let share = |value: fn(&DeviceCounters) -> u64| {
        let idle = value(&delta.baseline) as f64 / delta.baseline_ns as f64;
        let measured = value(&delta.measured) as f64 / delta.measured_ns.max(1) as f64;
        if measured > 0.0 { idle / measured } else { f64::INFINITY }
    };
    let busy = delta.baseline.busy_ms as f64 * 1e6 / delta.baseline_ns as f64;
    let rate = share(requests).max(share(bytes));
    if rate <= RATE_SHARE_MAX && busy <= BUSY_SHARE_MAX {
        return None;
    }
    let found = format!("{} before the phase: {}, busy {:.0} %", delta.disk, activity(delta), busy * 100.0);
    let sentence = format!("Other processes used {} just before the phase and may have continued.", delta.disk);
    let brief = format!("others: {} just before", activity(delta));
    Some(Disturbance { found, sentence, brief, share: rate.min(1.0).max(busy.min(1.0)) })
}

/// Finds writes in a phase that only reads, or reads in one that only writes past the page cache.
fn other_way(facts: &PhaseFacts<'_>, delta: &DeviceDelta) -> Option<Disturbance> {
    let works: Vec<_> = facts.works().filter(|work| work.job.engine.touches_files()).collect();
    let only_reads = works.iter().all(|work| work.reads() && !work.writes());
    let only_writes = works.iter().all(|work| {
        work.writes()
            && !work.reads()
            && work.job.verify.is_none()
            && work.bytes(OpKind::Write) > 0
            && facts.way(work.job) == crate::facts::Way::Direct
    });
    let counters = &delta.measured;
    // RAID 5 and copy on write add reads to direct writes.
    let (verb, others, ours) = if only_reads {
        ("wrote", (counters.write_count, counters.write_bytes), (counters.read_count, counters.read_bytes))
    } else if only_writes && !facts.amplifies() {
        ("read", (counters.read_count, counters.read_bytes), (counters.write_count, counters.write_bytes))
    } else {
        return None;
    };
    let exceeds = |others: u64, ours: u64, min: u64| others >= min && others as f64 > ours as f64 * OTHER_WAY_SHARE_MAX;
    if !exceeds(others.0, ours.0, OTHER_WAY_REQUEST_COUNT_MIN) && !exceeds(others.1, ours.1, OTHER_WAY_BYTES_MIN) {
        return None;
    }
    let found = format!("{} {verb} {} in {} requests", delta.disk, format_bytes(others.1), format_count(others.0));
    let did = if only_reads { "only read" } else { "only wrote" };
    let sentence = format!(
        "The phase {did}, so other processes used {} at the same time, or an earlier phase left work to do.",
        delta.disk
    );
    let of = |part: u64, whole: u64| part as f64 / (part + whole).max(1) as f64;
    let brief = format!("{} {verb} {}", who(facts), format_bytes(others.1));
    Some(Disturbance { found, sentence, brief, share: of(others.0, ours.0).max(of(others.1, ours.1)) })
}
