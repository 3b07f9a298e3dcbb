//! Compares what a disk declares about itself with what was measured.
//!
//! - **Reads** `queue/rotational` and `queue/write_cache`, the recorded latencies, the disk's flush counter.
//! - **Sees** a disk that declares rotation but reads at random, or without a volatile cache makes writes durable, faster than any
//!   rotating disk; one that declares none and is as slow; flushes, which a disk without a volatile cache would not receive.
//! - **Misses** a wrong declaration of a slow disk; reads within the drive's own cache; false values from firmware.
//! - **Thresholds**: a median below 1 ms, of uniform direct random reads over 1 GiB or more, or of durable writes, is suspect if the
//!   drive itself declares rotation (SATA or SAS, no virtual machine); elsewhere it is a note, because the kernel assumes rotation if
//!   the device reports nothing. So is one above 3 ms of single reads of a disk that declares none. Flushes of a disk that declares no
//!   volatile cache are suspect.
//! - **By hand**: `cat /sys/block/vda/queue/rotational` in a virtual machine, compared with `trueio baseline`.
//!
//! Half a rotation takes 2 ms at 15,000 rotations per minute: 60 s / 15,000 / 2.
//!
//! A cache in between may have replied, so none contradicts. Medians need 100 I/Os.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-block`, `Documentation/block/writeback_cache_control.rst`.

use crate::checks::pace::quantile;
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable};
use trueio_model::units::{format_bytes, format_count, format_duration_ns};
use trueio_model::{Check, CheckOutcome, DiskFacts, Distribution, OpKind, OpMix, Order, Transport, WriteCache};

pub(crate) const NAME: &str = "declared_values";

/// Half a rotation at 15,000 rotations per minute is twice this.
const SPINDLE_NS_MIN: u64 = 1_000_000;
/// Few other disks take this long for a single read.
const SPINDLE_NS_LIKELY: u64 = 3_000_000;
/// Caches of drives are 512 MiB at most.
const REGION_BYTES_MIN: u64 = 1 << 30;
/// Fewer samples do not give a median.
const COUNT_MIN: u64 = 100;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.call_works();
    // I/O of a loop device is served by its file, and memory devices declare nothing.
    let disks: Vec<&DiskFacts> = facts.disks().into_iter().filter(|disk| !is_stand_in(disk)).collect();
    let nothing = "This phase cannot confirm or refute what the disk declares.";
    if works.is_empty() || disks.is_empty() {
        return not_applicable(NAME, nothing);
    }
    let findings = [cache(facts, &disks), rotation(facts, &works, &disks), durable(facts, &works, &disks)];
    let mut findings: Vec<Check> = findings.into_iter().flatten().collect();
    findings.sort_by_key(|check| check.outcome != CheckOutcome::Suspect);
    // A note has precedence over an agreement.
    let remark = findings.iter().position(|check| check.outcome == CheckOutcome::Suspect || is_remark(check));
    match remark.or((!findings.is_empty()).then_some(0)) {
        Some(index) if findings[index].outcome == CheckOutcome::Suspect => {
            findings.swap_remove(index).with_brief("the disk declares otherwise")
        }
        Some(index) => findings.swap_remove(index),
        None => not_applicable(NAME, nothing),
    }
}

const AGREES: &str = "The measured latencies agree with the declared `rotational` flag.";

fn is_remark(check: &Check) -> bool {
    check.sentence != AGREES
}

fn is_stand_in(disk: &DiskFacts) -> bool {
    use Transport::{Loop, Nbd, Pmem, Ram, Rbd, Zram};
    matches!(disk.transport.value, Some(Loop | Zram | Ram | Pmem | Nbd | Rbd))
}

/// Returns true if the drive itself declares it: no hypervisor, bridge or network is in between.
fn is_own_word(facts: &PhaseFacts<'_>, disk: &DiskFacts) -> bool {
    let is_virtual = facts.environment.is_none_or(|machine| machine.hypervisor.value.is_some());
    !is_virtual && matches!(disk.transport.value, Some(Transport::Sata | Transport::Sas))
}

fn names(disks: &[&DiskFacts]) -> String {
    disks.iter().map(|disk| disk.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn source_of(disks: &[&DiskFacts], file: &str) -> String {
    let files: Vec<String> = disks.iter().map(|disk| format!("/sys/block/{}/queue/{file}", disk.name)).collect();
    format!("{}, the recorded latencies", files.join(", "))
}

/// Finds random reads over a region larger than any drive's cache: the shortest median, and the region.
fn random_reads(facts: &PhaseFacts<'_>, works: &[Work<'_>], depth_max: u64) -> Option<(u64, u64)> {
    let is_all_over = |work: &&Work<'_>| {
        let is_uniform = matches!(work.job.pattern.order, Order::Random { distribution: Distribution::Uniform, .. });
        let is_read = matches!(work.job.pattern.mix, OpMix::Only(OpKind::Read));
        let is_direct = facts.way(work.job) == Way::Direct;
        is_direct && is_uniform && is_read && work.region_bytes() >= REGION_BYTES_MIN && work.depth() <= depth_max
    };
    let median = |work: &Work<'_>| {
        let op = work.op(OpKind::Read).filter(|op| op.io_count >= COUNT_MIN)?;
        Some((quantile(&op.latency.total, 0.5)?, work.region_bytes()))
    };
    works.iter().filter(is_all_over).filter_map(median).min()
}

/// Compares the declared rotation with the latency of reads.
fn rotation(facts: &PhaseFacts<'_>, works: &[Work<'_>], disks: &[&DiskFacts]) -> Option<Check> {
    // A disk that does not rotate may have completed I/O for the others: a cache, one half of a mirror.
    let declared = |rotates: bool| disks.iter().all(|disk| disk.is_rotational.value == Some(rotates));
    let report = |outcome, (median, region): (u64, u64), expected: String, sentence: String| {
        let found = format!("median {} over {}", format_duration_ns(median), format_bytes(region));
        Some(finding(NAME, outcome, source_of(disks, "rotational"), expected, found, sentence))
    };
    if declared(true) {
        let reads = random_reads(facts, works, u64::MAX)?;
        let expected = format!("{} or more", format_duration_ns(SPINDLE_NS_MIN));
        if reads.0 >= SPINDLE_NS_MIN {
            return report(CheckOutcome::Passed, reads, expected, AGREES.to_owned());
        }
        let (outcome, why) = match disks.iter().all(|disk| is_own_word(facts, disk)) {
            true => (CheckOutcome::Suspect, "the declaration is wrong, or a cache in between completed the reads"),
            false => (
                CheckOutcome::Passed,
                "the kernel may have the wrong `rotational` flag; virtual disks and USB bridges often do not report \
                 it. The kernel still schedules I/O as for a rotating disk",
            ),
        };
        let sentence = format!(
            "{} declares that it rotates, but no rotating disk reads at random this fast: \
                     {why}.",
            names(disks)
        );
        return report(outcome, reads, expected, sentence);
    }
    if declared(false) {
        let reads = random_reads(facts, works, 1)?;
        let expected = format!("less than {}", format_duration_ns(SPINDLE_NS_LIKELY));
        if reads.0 < SPINDLE_NS_LIKELY {
            return report(CheckOutcome::Passed, reads, expected, AGREES.to_owned());
        }
        let sentence = format!(
            "{} declares that it does not rotate, but its random reads take as long as those of a rotating disk: a USB \
             bridge may report the wrong flag.",
            names(disks)
        );
        return report(CheckOutcome::Passed, reads, expected, sentence);
    }
    None
}

/// A spindle without a cache cannot make a write durable within a fraction of a rotation.
fn durable(facts: &PhaseFacts<'_>, works: &[Work<'_>], disks: &[&DiskFacts]) -> Option<Check> {
    let is_bare = |disk: &&DiskFacts| {
        disk.is_rotational.value == Some(true) && disk.write_cache.value == Some(WriteCache::WriteThrough)
    };
    if !disks.iter().all(is_bare) {
        return None;
    }
    let median = |work: &&Work<'_>| {
        let op = work.op(if work.has_dsync() { OpKind::Write } else { OpKind::Sync })?;
        (op.io_count >= COUNT_MIN).then(|| quantile(&op.latency.total, 0.5)).flatten()
    };
    let quickest = works.iter().filter(|work| work.syncs_every_write()).filter_map(|work| median(&work)).min()?;
    if quickest >= SPINDLE_NS_MIN {
        return None;
    }
    let is_word = disks.iter().all(|disk| is_own_word(facts, disk));
    let sentence = format!(
        "{} declares that it rotates and has no volatile cache, but no rotating disk makes writes durable this fast: a \
         cache that loses its content at a power cut may have completed the writes.",
        names(disks)
    );
    Some(finding(
        NAME,
        if is_word { CheckOutcome::Suspect } else { CheckOutcome::Passed },
        source_of(disks, "write_cache"),
        format!("{} or more", format_duration_ns(SPINDLE_NS_MIN)),
        format!("median {} per durable write", format_duration_ns(quickest)),
        sentence,
    ))
}

/// The kernel sends no flush to a disk that declares no volatile cache.
fn cache(facts: &PhaseFacts<'_>, disks: &[&DiskFacts]) -> Option<Check> {
    let declares_none = |name: &str| {
        disks.iter().any(|disk| disk.name == name && disk.write_cache.value == Some(WriteCache::WriteThrough))
    };
    let flushed = facts.devices().into_iter().find_map(|delta| {
        let count = delta.measured.flush_count.filter(|count| *count > 0 && declares_none(&delta.disk))?;
        Some((delta.disk.as_str(), count))
    });
    let (disk, count) = flushed?;
    Some(finding(
        NAME,
        CheckOutcome::Suspect,
        format!("/sys/block/{disk}/queue/write_cache, /sys/block/{disk}/stat"),
        "no flush",
        format!("{} flushes", format_count(count)),
        format!(
            "{disk} declares no volatile cache, but it was flushed: the declaration changed during the phase, and it \
             is unknown which writes were durable."
        ),
    ))
}
