//! Others' use of the same disks.
//!
//! Reads the disks' counters over an idle span just before the phase, when nothing of ours runs, and
//! compares its rates with the phase's. Within the phase, what goes the other way is others' too: a
//! phase that only reads causes no writes.
//!
//! Cannot see: others who come and go within the phase and do the same as we do; those beside us
//! below the disk (other guests of the host, other volumes of an array).
//!
//! Thresholds: in the baseline at least 8 requests, and requests or bytes a second above 5 % of the
//! phase's, or the disk busy for more than 10 % of the time; in the phase, requests or bytes the
//! other way above 10 % of ours (at least 256 requests, or 4 MiB). Suspect.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, DeviceCounters, DeviceDelta, OpKind};

pub(crate) const NAME: &str = "foreign_io";

const BASELINE_REQUEST_COUNT_MIN: u64 = 8;
const RATE_SHARE_MAX: f64 = 0.05;
const BUSY_SHARE_MAX: f64 = 0.10;
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
        let sentence = "No idle baseline was taken, so others' I/O cannot be told from ours.";
        return not_seen(NAME, facts.counter_files(), sentence);
    }
    let report = |outcome, found: String, sentence: String| {
        finding(NAME, outcome, facts.counter_files(), "nobody else", found, sentence)
    };
    for delta in &devices {
        if let Some((found, sentence)) = busy_before(delta).or_else(|| other_way(facts, delta)) {
            return report(CheckOutcome::Suspect, found, format!("{sentence}{}", suspects(facts)));
        }
    }
    let found: Vec<String> = devices.iter().map(|delta| format!("{} idle: {}", delta.disk, activity(delta))).collect();
    report(CheckOutcome::Passed, found.join(", "), "Nobody else used the disk to speak of.".to_owned())
}

/// Who it may have been.
fn suspects(facts: &PhaseFacts<'_>) -> String {
    let background = &facts.observation.background;
    if background.is_empty() { String::new() } else { format!(" Seen on this machine: {}.", background.join("; ")) }
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

fn busy_before(delta: &DeviceDelta) -> Option<(String, String)> {
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
    let sentence = format!("Others were using {} just before the phase, and may have gone on.", delta.disk);
    Some((found, sentence))
}

/// Writes in a phase that only reads, or reads in one that only writes past the page cache.
fn other_way(facts: &PhaseFacts<'_>, delta: &DeviceDelta) -> Option<(String, String)> {
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
    // Reads are added to direct writes by RAID 5 and by copy on write, too.
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
        "The phase {did}, so others used {} at the same time, or an earlier phase left work behind.",
        delta.disk
    );
    Some((found, sentence))
}
