//! Compares the flushes that the disk executed with sync calls and durable writes.
//!
//! - **Reads** the sixteenth value of `/sys/block/DISK/stat` (Linux 5.5), `queue/write_cache` and `queue/fua`.
//! - **Sees** sync calls that never became flushes although the disk has a volatile cache: `nobarrier`, a layer that drops them.
//! - **Misses** direct `O_DSYNC` writes to a disk with forced unit access (FUA), which need no flush and which no counter shows (not
//!   seen); whether a disk that declares no volatile cache has none ("declared by the device, not proved"); whose the flushes were, but
//!   any makes the data durable.
//! - **Thresholds**: 90 % of the sync points, divided by the number that can wait at once, because these share a flush. Fewer are
//!   suspect; none contradicts if the disk declares no FUA. Suspect, too, is a loop device that declares no cache, or a stacked device
//!   that declares none above a disk with one: no flush reaches what is below. Flushes within 20 µs pass with a warning: the cache
//!   survives a power cut, or the flush is not carried out.
//! - **Cost**: contained in `block_layer_bytes`.
//! - **By hand**: 100 synced writes cause at least 100 flushes; with `-o nobarrier` they cause none.
//!
//!   ```sh
//!   awk '{print $16}' /sys/block/vda/stat; dd if=/dev/zero of=log bs=4k count=100 oflag=dsync; awk '{print $16}' /sys/block/vda/stat
//!   ```
//!
//! Of several disks the one with the most flushes counts. A loop device without a cache passes if the trace shows that writes were
//! durable below it.
//!
//! Source: Linux `Documentation/block/stat.rst`, `Documentation/block/writeback_cache_control.rst`.

use super::flush_order::DECLARED;
use crate::checks::pace::quantile;
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use trueio_model::units::{format_count, format_duration_ns};
use trueio_model::{Check, CheckOutcome, Layer, LayerKind, OpKind, Transport, WriteCache};

pub(crate) const NAME: &str = "flushes";

/// Faster than flash is written (about 50 to 500 µs), with a margin for the transfer.
const QUICK_NS: u64 = 20_000;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.file_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if !works.iter().any(|work| work.writes()) {
        return not_applicable(NAME, "Nothing was written.");
    }
    let calls: u64 = works.iter().map(Work::durable_calls).sum();
    let flagged = || works.iter().filter(|work| work.has_dsync());
    let flagged_writes: u64 = flagged().map(|work| work.count(OpKind::Write)).sum();
    if calls + flagged_writes == 0 {
        let sentence = "The job sets no flush, so its writes may not survive a power cut.";
        return not_applicable(NAME, sentence);
    }
    if let Some(check) = kept_from_below(facts) {
        return check;
    }
    if let Some(why) = facts.why_no_counters() {
        return not_seen(NAME, facts.counter_files(), why);
    }
    let disks = facts.disks();
    if disks.iter().all(|disk| disk.write_cache.value == Some(WriteCache::WriteThrough)) {
        let sentence = format!("{DECLARED}. The kernel sends it no flushes, so there is nothing to count.");
        return not_seen(NAME, "queue/write_cache", sentence);
    }
    // Each member of a mirror or stripe is flushed: the one with the most flushes counts.
    let counts: Vec<u64> = facts.devices().iter().filter_map(|delta| delta.measured.flush_count).collect();
    let Some(counted) = counts.into_iter().max() else {
        return not_seen(NAME, facts.counter_files(), "This kernel does not count flushes (Linux 5.5 and later do).");
    };
    let has_fua = disks.iter().any(|disk| disk.has_fua.value != Some(false));
    let all_direct = flagged().all(|work| facts.way(work.job) == Way::Direct);
    // Writes that may be durable without a flush are not counted against the disk.
    let excused = if has_fua && all_direct { flagged_writes } else { 0 };
    let sync_points = calls + flagged_writes - excused;
    if sync_points == 0 {
        let sentence = "The disk supports forced unit access (FUA): its durable writes need no flush, and no counter \
                        shows them.";
        return not_seen(NAME, facts.counter_files(), sentence);
    }
    let waiting: u64 = works.iter().filter(|work| work.syncs()).map(|work| work.depth()).sum();
    let needed = (sync_points as f64 * 0.9 / waiting.max(1) as f64).ceil().max(1.0) as u64;
    let report = |outcome, sentence: String| {
        let shared = if waiting > 1 { format!(", shared by up to {waiting}") } else { String::new() };
        let expected = format!("{} sync points{shared}", format_count(sync_points));
        finding(NAME, outcome, facts.counter_files(), expected, format!("{} flushes", format_count(counted)), sentence)
    };
    if counted >= needed {
        return report(CheckOutcome::Passed, carried_out(facts, &works));
    }
    let barrier = facts
        .own_targets()
        .into_iter()
        .filter_map(|target| target.filesystem.as_ref())
        .any(|filesystem| filesystem.options.split(',').any(|o| o == "nobarrier" || o == "barrier=0"));
    let why = if barrier { " The filesystem is mounted without barriers." } else { "" };
    if counted == 0 {
        let outcome = if has_fua { CheckOutcome::Suspect } else { CheckOutcome::Contradicted };
        let sentence = format!(
            "The disk has a volatile write cache and received no flush: the synced writes are not durable.{why}"
        );
        return report(outcome, sentence).with_brief("no flush reached the disk");
    }
    let sentence = format!(
        "The disk received fewer flushes than the job made sync calls: not every sync was \
                            durable.{why}"
    );
    report(CheckOutcome::Suspect, sentence).with_brief("too few flushes")
}

/// Returns the finding on a device above others that declares no volatile cache: the kernel ends flushes there. A loop device is a file, so
/// its declaration says nothing of the disk of that file; a stacked device's is wrong above a disk with a cache.
fn kept_from_below(facts: &PhaseFacts<'_>) -> Option<Check> {
    let below = facts.traced().ok().and_then(|trace| trace.below.as_ref());
    // The trace ends at the first disk below, which may be another loop device.
    let is_durable_below = |name: &str| {
        let below = below.filter(|below| below.loops.iter().any(|one| one == name));
        below.is_some_and(|below| below.syncs.durable_count() > 0 && below.syncs.failed_count() == 0)
    };
    let has_cache_below = facts
        .disks()
        .iter()
        .any(|disk| disk.write_cache.value.as_ref().is_some_and(|cache| *cache != WriteCache::WriteThrough));
    let ends_flushes = |layer: &&Layer| match layer.kind {
        LayerKind::Loop => layer.declares_no_cache() && !is_durable_below(name_of(layer)),
        _ => layer.kind.is_stacked() && layer.declares_no_cache() && has_cache_below,
    };
    let layer = facts.own_targets().into_iter().flat_map(|target| &target.stack).find(ends_flushes)?;
    let name = name_of(layer);
    let (what, below) = match layer.kind {
        LayerKind::Loop => ("loop device", "its file or the disk below"),
        _ => ("stacked device", "the disks below, which have one"),
    };
    let sentence = format!(
        "{name} is a {what} that declares no volatile write cache, so no flush reaches {below}: synced writes may be lost at a power cut."
    );
    let check = finding(NAME, CheckOutcome::Suspect, "queue/write_cache", "flushes", "none is sent", sentence);
    Some(check.with_brief(format!("{name} passes on no flush")))
}

/// The kernel's name of a device.
fn name_of(layer: &Layer) -> &str {
    layer.name.split(' ').next().unwrap_or_default()
}

/// Returns the sentence for a disk that completed the flushes. Flushes faster than any medium are reported: a
/// cache protected by capacitors and a disk that ignores flushes look the same.
fn carried_out(facts: &PhaseFacts<'_>, works: &[Work<'_>]) -> String {
    let is_memory =
        facts.disks().iter().any(|disk| disk.transport.value.as_ref().is_some_and(Transport::is_memory_or_loop));
    let medians = works
        .iter()
        .filter(|work| !work.writes_out())
        .filter_map(|work| quantile(&work.op(OpKind::Sync)?.latency.total, 0.5));
    match medians.min().filter(|median| *median < QUICK_NS && !is_memory) {
        Some(median) => format!(
            "The disk completed the flushes, half of them within {}. No medium is written this fast: either its cache \
             survives a power cut, or it ignores flushes. Only a power-cut test can show which.",
            format_duration_ns(median)
        ),
        None => "The disk completed the flushes.".to_owned(),
    }
}
