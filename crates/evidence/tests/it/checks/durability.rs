//! Sync calls and flushes: `flushes`, and which calls need one.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{BelowTrace, Fact, Layer, NamedFact, OpKind, RangeSync, SyncMode, SyncOrder, TraceRecord};

/// 1,000 direct writes with `O_DSYNC` and as many flushes as the disk counted.
fn dsync(flushes: u64, fua: Option<bool>) -> Phase {
    let bytes = 1000 * 4096;
    let mut phase = Phase::honest_writes();
    phase.jobs[0].sync = SyncMode::Dsync;
    phase.records = vec![record(vec![op(OpKind::Write, 1000, bytes, 150_000)])];
    phase.observation.devices = vec![delta(counted(0, bytes, flushes))];
    phase.targets[0].disks[0].has_fua = Fact { value: fua, source: "by hand".to_owned() };
    phase
}

#[test]
fn sync_calls_without_flushes_contradict_durability() {
    let mut phase = Phase::honest_log();
    phase.observation.devices[0].measured.flush_count = Some(0);
    phase.judge().assert("flushes", Contradicted, "received no flush");
    phase.targets[0].filesystem.as_mut().expect("a filesystem").options = "rw,nobarrier".to_owned();
    phase.judge().assert("flushes", Contradicted, "without barriers");
    phase.observation.devices[0].measured.flush_count = Some(500);
    phase.judge().assert("flushes", Suspect, "fewer flushes");
    phase.observation.devices[0].measured.flush_count = None;
    phase.judge().assert("flushes", NotSeen, "does not count flushes");
}

#[test]
fn a_disk_with_fua_is_durable_without_a_flush_and_one_without_is_not() {
    dsync(1000, Some(false)).judge().assert("flushes", Passed, "");
    dsync(0, Some(false)).judge().assert("flushes", Contradicted, "received no flush");
    for fua in [Some(true), None] {
        dsync(0, fua).judge().assert("flushes", NotSeen, "forced unit access");
    }
    // Sync calls always flush; but if the disk has FUA, missing flushes are only suspect.
    let mut calls = Phase::honest_log();
    calls.targets[0].disks[0].has_fua = Fact::known(true, "by hand");
    calls.observation.devices[0].measured.flush_count = Some(0);
    calls.judge().assert("flushes", Suspect, "");
}

#[test]
fn workers_that_wait_at_the_same_time_share_a_flush() {
    let mut phase = Phase::honest_log();
    phase.jobs[0].workers = 8;
    phase.observation.devices[0].measured.flush_count = Some(120);
    phase.judge().assert("flushes", Passed, "");
    phase.observation.devices[0].measured.flush_count = Some(100);
    phase.judge().assert("flushes", Suspect, "");
}

#[test]
fn flushes_of_a_disk_without_a_volatile_cache_are_not_judged() {
    let mut phase = Phase::honest_log();
    phase.targets[0].disks[0].write_cache = Fact::known("write through".into(), "by hand");
    phase.observation.devices[0].measured.flush_count = Some(0);
    phase.judge().assert("flushes", NotSeen, "is declared by the device, not proved");
    Phase::honest_writes().judge().assert("flushes", NotApplicable, "may not survive a power cut");
}

#[test]
fn a_flush_faster_than_any_medium_passes_with_a_warning() {
    let mut phase = Phase::honest_log();
    let sync = phase.records[0].ops.iter_mut().find(|op| op.op == OpKind::Sync).expect("a log syncs");
    let count = sync.io_count;
    sync.latency.total = trueio_model::Histogram::new();
    (0..count).for_each(|_| sync.latency.total.record(6_000));
    phase.judge().assert("flushes", Passed, "No medium is written this fast");
}

/// Goal: ranges that `sync_file_range` wrote out do not count as durable. Method: a log whose calls are
/// `sync_file_range`, which promise no durability. With one `fsync` at its end one flush is needed, and not
/// one per call.
#[test]
fn sync_file_range_calls_do_not_count_as_sync_calls() {
    let mut phase = Phase::honest_log();
    phase.jobs[0].flush = trueio_model::Flush {
        range: Some(RangeSync { every: 1, waits_before: true, writes: true, waits_after: true }),
        ..Default::default()
    };
    let of = |flushes| vec![delta(counted(0, 11_488 * 1024, flushes))];
    phase.observation.devices = of(0);
    phase.judge().assert("flushes", NotApplicable, "its writes may not survive a power cut");
    phase.jobs[0].flush.end_fsync = true;
    phase.judge().assert("flushes", Contradicted, "received no flush");
    phase.observation.devices = of(1);
    phase.judge().assert("flushes", Passed, "");
}

/// Goal: a loop device that declares no volatile cache keeps flushes from the disk of its file, and the finding says so; other disks'
/// declarations are named as such.
#[test]
fn a_declared_cache_is_never_proved_and_that_of_a_loop_device_is_suspect() {
    let mut phase = Phase::honest_log();
    phase.targets[0].disks[0].write_cache = Fact::known("write through".into(), "by hand");
    phase.observation.devices[0].measured.flush_count = Some(0);
    let syncs = SyncOrder { sampled_count: 100, uncached_count: 100, ..SyncOrder::default() };
    phase.trace = Some(TraceRecord { syncs, ..TraceRecord::default() });
    let declared = "That the disk has no volatile write cache is declared by the device, not proved.";
    phase.judge().assert("flush_order", Passed, declared);
    phase.judge().assert("flushes", NotSeen, declared);
    let declares = |kind, name, text: &str| {
        let fact = NamedFact { name: Layer::WRITE_CACHE.to_owned(), fact: Fact::known(text.to_owned(), "by hand") };
        Layer { facts: vec![fact], ..layer(kind, name, 3) }
    };
    phase.targets[0].stack.push(declares("loop", "loop3 (direct)", "write through"));
    phase.judge().assert("flushes", Suspect, "loop3 is a loop device that declares no volatile write cache");
    let below = |flushed_count, unflushed_count| BelowTrace {
        loops: vec!["loop3".to_owned()],
        syncs: SyncOrder { flushed_count, unflushed_count, ..SyncOrder::default() },
        ..BelowTrace::default()
    };
    phase.trace.as_mut().expect("a trace").below = Some(below(0, 100));
    phase.judge().assert("flushes", Suspect, "no flush reaches its file");
    phase.judge().assert("flush_order", Contradicted, "The others were not");
    phase.trace.as_mut().expect("a trace").below = Some(below(100, 0));
    phase.judge().assert("flushes", NotSeen, declared);
    // In the middle of a stack, without a trace.
    let mut middle = phase.clone();
    middle.trace = None;
    middle.targets[0].disks[0].write_cache = Fact::known("write back".into(), "by hand");
    middle.observation.devices[0].measured.flush_count = Some(100_000);
    middle.judge().assert("flushes", Suspect, "loop3 is a loop device that declares no volatile write cache");
    *middle.targets[0].stack.last_mut().expect("pushed") = declares("loop", "loop3 (direct)", "write back");
    middle.judge().assert("flushes", Passed, "");
    // A stacked device above a disk with a cache, and above one without.
    *middle.targets[0].stack.last_mut().expect("pushed") = declares("dm", "dm-0 (linear)", "write through");
    middle.judge().assert("flushes", Suspect, "dm-0 is a stacked device that declares no volatile write cache");
    middle.targets[0].disks[0].write_cache = Fact::known("write through".into(), "by hand");
    middle.judge().assert("flushes", NotSeen, declared);
}
