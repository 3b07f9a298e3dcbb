//! Every check from numbers alone: a false result that it must detect, and correct phases that it must not
//! flag.

mod support;

use support::*;
use trueio_evidence::{CHECKS, ContentSample, Heat, Observation, describe_failure, explain_failure};
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{
    Arrivals, BlockSizes, ContentKind, DeviceCounters, DirectPolicy, DirectSupport, Distribution, EngineKind,
    EvidenceLevel, Fact, IoFailure, JobPlan, OpKind, OpMix, Order, Pace, Pattern, Prepare, RangeSync, RequestSum,
    SeriesRow, SteadyRound, SteadyState, SteadyVariable, SyncMode, SyncOrder, TargetKind, TraceRecord, TransferMatch,
    UsbFacts, Verdict, VerifyFailure,
};

#[test]
fn correct_phases_are_supported_with_every_source_and_no_flag() {
    for (name, phase) in
        [("reads", Phase::honest_reads()), ("writes", Phase::honest_writes()), ("log", Phase::honest_log())]
    {
        let judgement = phase.judge();
        assert_eq!(judgement.objections(), [], "{name}:\n{}", judgement.report());
        assert_eq!((judgement.verdict, judgement.level), (Verdict::Supported, EvidenceLevel::E2), "{name}");
    }
}

#[test]
fn every_check_returns_one_finding_with_its_name_and_a_whole_sentence() {
    for phase in [Phase::honest_reads(), Phase::honest_writes(), Phase::honest_log()] {
        let judgement = phase.judge();
        let names: Vec<&str> = judgement.checks.iter().map(|check| check.name.as_str()).collect();
        let expected: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected);
        for check in &judgement.checks {
            assert!(check.sentence.ends_with('.'), "{check:?}");
            assert!(!check.sentence.contains(".."), "{check:?}");
        }
    }
}

/// The page must have a section for each check, and none for a removed check.
#[test]
fn the_page_describes_every_check() {
    let page = include_str!("../../../docs/evidence.md");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(sections, names);
}

// call_results

fn failure(errno: i32) -> IoFailure {
    IoFailure {
        op: OpKind::Write,
        errno,
        path: "/data/file".to_owned(),
        offset: 131_072,
        length: 131_072,
        address: 0x7f00_0000_00a0,
        returned: 0,
        count: 1,
        explanation: String::new(),
    }
}

#[test]
fn one_failed_call_contradicts_and_is_explained() {
    let mut phase = Phase::honest_writes();
    phase.records[0].ops[0].error_count = 1;
    phase.records[0].failures = vec![failure(libc::EINVAL)];
    let judgement = phase.judge();
    judgement.assert("call_results", Contradicted, "The address is 160 bytes past a multiple of 512");
    assert_eq!(judgement.verdict, Verdict::Contradicted);
}

#[test]
fn many_failed_calls_are_counted_with_thousands_separated() {
    let mut phase = Phase::honest_writes();
    phase.records[0].ops[0].error_count = 4096;
    phase.records[0].ops[0].io_count = 0;
    phase.records[0].failures = vec![failure(libc::EINVAL)];
    phase.judge().assert("call_results", Contradicted, "4,096 of 4,096 I/Os failed or were short.");
}

#[test]
fn a_short_transfer_is_a_failure_and_an_existing_explanation_is_used() {
    let mut phase = Phase::honest_reads();
    phase.records[0].ops[0].short_count = 1;
    phase.records[0].failures = vec![IoFailure { explanation: "As explained.".to_owned(), ..failure(0) }];
    phase.judge().assert("call_results", Contradicted, "As explained.");
}

#[test]
fn a_block_that_reads_back_differently_contradicts() {
    let mut phase = Phase::honest_reads();
    phase.records[0].verify_failure_count = 1;
    phase.records[0].verify_failures = vec![VerifyFailure {
        path: "/data/file".to_owned(),
        offset: 4096,
        length: 4096,
        expected: "write 7".to_owned(),
        found: "write 3".to_owned(),
    }];
    phase.judge().assert("call_results", Contradicted, "expected write 7, found write 3");
}

#[test]
fn a_phase_without_a_completed_io_is_suspect() {
    let mut phase = Phase::honest_reads();
    phase.records[0].ops.clear();
    phase.judge().assert("call_results", Suspect, "nothing was measured");
}

#[test]
fn each_error_names_the_attempt_and_the_kernels_error() {
    let target = target();
    for (errno, words) in [
        (libc::EINVAL, "Invalid argument"),
        (libc::EIO, "kernel log (dmesg)"),
        (libc::ENOSPC, "No space is left"),
        (libc::EOPNOTSUPP, "RWF_DONTCACHE"),
        (libc::ENXIO, "The device is gone"),
        (libc::ENOMEM, "Cannot allocate memory"),
    ] {
        let sentence = explain_failure(&failure(errno), Some(&target));
        assert!(sentence.contains(words), "{sentence}");
    }
    let aligned = IoFailure { address: 0x1000, ..failure(libc::EINVAL) };
    assert!(explain_failure(&aligned, Some(&target)).contains("does not report which argument"));
    let offset = IoFailure { address: 0x1000, offset: 100, ..failure(libc::EINVAL) };
    assert!(explain_failure(&offset, Some(&target)).contains("The offset is 100 bytes past a multiple of 512"));
    assert!(explain_failure(&failure(0), None).contains("only 0 of 131072 bytes were transferred"));
    let sentence = describe_failure(&failure(libc::EINVAL), "Invalid argument (os error 22).");
    assert!(
        sentence.starts_with("write of 131072 bytes at offset 131072 of `/data/file` from address 0x7f"),
        "{sentence}"
    );
    let several = IoFailure { count: 3, ..failure(libc::EIO) };
    let sentence = describe_failure(&several, "Input/output error.");
    assert_eq!(
        sentence,
        "write of 131072 bytes at offset 131072 of `/data/file` failed (3 times): Input/output error."
    );
}

// block_layer_bytes

#[test]
fn direct_io_that_the_disk_did_not_count_is_contradicted() {
    for mut phase in [Phase::honest_reads(), Phase::honest_writes()] {
        phase.observation.devices = vec![delta(counted(MIB, MIB, 0))];
        let judgement = phase.judge();
        judgement.assert("block_layer_bytes", Contradicted, "did_not_reach_device: the calls reported 400 MiB");
    }
}

#[test]
fn two_percent_of_the_bytes_may_be_missing_and_three_may_not() {
    for (percent, outcome) in [(98, Passed), (97, Contradicted)] {
        let mut phase = Phase::honest_reads();
        phase.observation.devices = vec![delta(counted(4 * percent * MIB, 0, 0))];
        assert_eq!(phase.judge().check("block_layer_bytes").outcome, outcome, "{percent} %");
    }
}

#[test]
fn one_missing_request_of_a_small_phase_is_not_flagged() {
    for (blocks, outcome) in [(10, Passed), (6, Passed), (4, Contradicted)] {
        let mut phase = Phase::honest_reads();
        phase.records = vec![record(vec![op(OpKind::Read, 10, 10 * 4096, 90_000)])];
        phase.observation.devices = vec![delta(counted(blocks * 4096, 0, 0))];
        assert_eq!(phase.judge().check("block_layer_bytes").outcome, outcome, "{blocks} of 10 blocks");
    }
}

/// The disk may complete a ramp's last I/Os before the measured part begins, and they count as measured when
/// they are reaped: at depth 32 and 1 MiB that is 32 MiB of 400.
#[test]
fn after_a_ramp_the_ios_in_flight_may_be_missing() {
    for (ramp_ns, outcome) in [(SECOND_NS, Passed), (0, Contradicted)] {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].engine = EngineKind::IoUring;
        phase.jobs[0].queue.depth = 32;
        phase.jobs[0].pattern.read_sizes = BlockSizes::Fixed(MIB);
        phase.jobs[0].limits.ramp_ns = ramp_ns;
        phase.records[0].achieved_depth = Some(32.0);
        phase.observation.devices = vec![delta(counted(368 * MIB, 0, 0))];
        assert_eq!(phase.judge().check("block_layer_bytes").outcome, outcome, "ramp {ramp_ns}");
    }
}

#[test]
fn io_of_others_never_contradicts_and_does_not_replace_missing_io() {
    let mut phase = Phase::honest_reads();
    // 50 MiB in a quarter of a second: 200 MiB of the measured 400 may be others'.
    phase.observation.devices[0].baseline = counted(50 * MIB, 0, 0);
    let judgement = phase.judge();
    judgement.assert("block_layer_bytes", Suspect, "only if the I/O of other processes (about 200 MiB) is included");
    judgement.assert("foreign_io", Suspect, "Other processes used vda just before");
}

#[test]
fn many_more_direct_reads_than_requested_belong_to_others() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices = vec![delta(counted(500 * MIB, 0, 0))];
    phase.judge().assert("block_layer_bytes", Suspect, "read 100 MiB more than this phase requested");
}

#[test]
fn write_amplification_is_accepted_for_syncs_raid_and_copy_on_write_only() {
    let amplified = || {
        let mut phase = Phase::honest_writes();
        phase.observation.devices = vec![delta(counted(0, 900 * MIB, 0))];
        phase
    };
    amplified().judge().assert("block_layer_bytes", Suspect, "500 MiB more than this phase requested");

    let mut btrfs = amplified();
    btrfs.targets[0].filesystem.as_mut().expect("a filesystem").kind = "btrfs".into();
    let mut raid = amplified();
    raid.targets[0].stack.push(layer("md", "md0 (raid1)", 2));
    let [mut allocating, mut reserved] = [amplified(), amplified()];
    allocating.jobs[0].files[0].prepare = Prepare::CreateEmpty;
    reserved.jobs[0].files[0].prepare = Prepare::CreateReserved;
    for phase in [btrfs, raid, allocating, reserved] {
        phase.judge().assert("block_layer_bytes", Passed, "");
    }
}

#[test]
fn missing_buffered_reads_are_attributed_to_the_page_cache() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].direct = DirectPolicy::Off;
    phase.observation.devices = vec![delta(counted(100 * MIB, 0, 0))];
    let judgement = phase.judge();
    judgement.assert("block_layer_bytes", Suspect, "The page cache served 300 MiB of 400 MiB (75 %)");
    assert_eq!(judgement.verdict, Verdict::Suspect);
}

#[test]
fn buffered_writes_are_suspect_without_a_flush_and_contradicted_if_a_flush_wrote_nothing() {
    let mut phase = Phase::honest_writes();
    phase.jobs[0].direct = DirectPolicy::Off;
    phase.observation.devices = vec![delta(counted(0, 0, 1))];
    phase.judge().assert("block_layer_bytes", Suspect, "stayed in the page cache");
    phase.jobs[0].flush.end_fsync = true;
    phase.judge().assert("block_layer_bytes", Contradicted, "the flush at the end should have written 400 MiB");
    phase.jobs[0].flush.fsync_every = 1;
    phase.judge().assert("block_layer_bytes", Contradicted, "to be durable when it returned");
}

#[test]
fn blocks_overwritten_before_the_flush_reach_the_disk_once() {
    let mut phase = Phase::honest_writes();
    phase.jobs[0].direct = DirectPolicy::Off;
    phase.jobs[0].flush.end_fsync = true;
    phase.jobs[0].files[0].size_bytes = 64 * MIB;
    phase.observation.devices = vec![delta(counted(0, 64 * MIB, 1))];
    phase.judge().assert("block_layer_bytes", Suspect, "overwritten before they were flushed");
}

#[test]
fn without_a_disk_or_its_counters_the_check_is_not_seen() {
    let mut none = Phase::honest_reads();
    none.targets[0].disks.clear();
    let judgement = none.judge();
    judgement.assert("block_layer_bytes", NotSeen, "No disk is visible under the target");
    assert_eq!(judgement.level, EvidenceLevel::E0);
    let mut off = Phase::honest_reads();
    off.targets[0].disks[0].counts_io = Fact::known(false, "queue/iostats");
    off.judge().assert("block_layer_bytes", NotSeen, "iostats is 0");
    let mut gone = Phase::honest_reads();
    gone.observation.devices.clear();
    gone.judge().assert("block_layer_bytes", NotSeen, "could not be read");
}

// process_read_bytes

#[test]
fn reads_of_others_do_not_replace_missing_reads_of_this_process() {
    let mut phase = Phase::honest_reads();
    phase.observation.process_read_bytes = Some(0);
    let judgement = phase.judge();
    judgement.assert("block_layer_bytes", Passed, "");
    judgement.assert("process_read_bytes", Contradicted, "the kernel fetched 0 B for this process");
    phase.observation.process_read_bytes = None;
    phase.judge().assert("process_read_bytes", NotSeen, "/proc/self/io");
}

// direct_granted

#[test]
fn direct_io_is_judged_by_policy_and_filesystem_support() {
    use DirectSupport::{Direct, Refused, SilentlyBuffered, Unknown};
    for (policy, support, outcome) in [
        (DirectPolicy::Require, Direct, Passed),
        (DirectPolicy::Require, SilentlyBuffered, Contradicted),
        (DirectPolicy::Require, Refused, Contradicted),
        (DirectPolicy::Require, Unknown, Suspect),
        (DirectPolicy::Prefer, Direct, Passed),
        (DirectPolicy::Prefer, SilentlyBuffered, Suspect),
        (DirectPolicy::Prefer, Refused, Suspect),
        (DirectPolicy::Prefer, Unknown, Suspect),
        (DirectPolicy::Off, SilentlyBuffered, NotApplicable),
    ] {
        let mut phase = Phase::honest_writes();
        phase.jobs[0].direct = policy;
        phase.targets[0].direct.support = support;
        assert_eq!(phase.judge().check("direct_granted").outcome, outcome, "{policy:?} {support:?}");
    }
}

#[test]
fn reads_measured_as_direct_override_the_filesystems_declaration() {
    let mut phase = Phase::honest_reads();
    phase.targets[0].direct.support = DirectSupport::SilentlyBuffered;
    phase.judge().assert("direct_granted", Passed, "These reads were direct");
    phase.observation.residency[0].2 = residency(400 * MIB, 0, 1024 * MIB);
    phase.judge().assert("direct_granted", Contradicted, "accepts O_DIRECT and ignores it");
}

// page_cache

#[test]
fn a_page_cache_that_grows_under_direct_io_contradicts_it() {
    let mut phase = Phase::honest_reads();
    let region = 1024 * MIB;
    phase.observation.residency[0].2 = residency(400 * MIB, 0, region);
    phase.judge().assert("page_cache", Contradicted, "grew by 400 MiB during direct I/O");
    // A few pages may come from another program that read the file.
    phase.observation.residency[0].2 = residency(MIB / 8, 0, region);
    phase.judge().assert("page_cache", Passed, "");
    phase.observation.residency[0].2 = None;
    phase.judge().assert("page_cache", NotSeen, "Cannot count");
}

/// Goal: a neighbour that reads the file of an honest direct run does not contradict it, and silent buffering does.
/// Method: the cache grows by 400 MiB. A neighbour's reads are counted by the disk in addition to ours; the pages of
/// silent buffering are our own reads.
#[test]
fn pages_that_a_neighbour_read_do_not_contradict_direct_io() {
    let grow = |mut phase: Phase| {
        phase.observation.residency[0].2 = residency(400 * MIB, 0, 1024 * MIB);
        phase
    };
    let mut reads = grow(Phase::honest_reads());
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    reads.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    reads.judge().assert("page_cache", Suspect, "other processes read 400 MiB from the disk meanwhile");
    reads.observation.devices = vec![delta(counted(755 * MIB, 0, 0))];
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    // Our own reads are missing.
    reads.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    reads.observation.process_read_bytes = Some(380 * MIB);
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    let mut unknown = grow(Phase::honest_reads());
    unknown.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    unknown.targets[0].direct.support = DirectSupport::Unknown;
    unknown.judge().assert("page_cache", Contradicted, "was not direct");

    let mut writes = grow(Phase::honest_writes());
    writes.observation.process_read_bytes = Some(0);
    writes.judge().assert("page_cache", Contradicted, "was not direct");
    writes.observation.devices = vec![delta(counted(400 * MIB, 400 * MIB, 0))];
    writes.judge().assert("page_cache", Suspect, "Another process read the same files");
    // Buffered writes reach the disk later.
    writes.observation.devices = vec![delta(counted(400 * MIB, 300 * MIB, 0))];
    writes.judge().assert("page_cache", Contradicted, "was not direct");
}

#[test]
fn pages_cached_before_or_dirty_after_a_buffered_phase_are_reported() {
    let region = 1024 * MIB;
    let mut cached = Phase::honest_reads();
    cached.jobs[0].direct = DirectPolicy::Off;
    cached.judge().assert("page_cache", Passed, "not cached at the start");
    cached.observation.residency[0].1 = residency(512 * MIB, 0, region);
    cached.judge().assert("page_cache", Suspect, "50 % of the files were in the page cache");
    let mut dirty = Phase::honest_writes();
    dirty.jobs[0].direct = DirectPolicy::Off;
    dirty.observation.residency[0].2 = residency(400 * MIB, 400 * MIB, region);
    dirty.judge().assert("page_cache", Suspect, "400 MiB of the written data was in memory only");
}

// holes

#[test]
fn reads_of_holes_are_contradicted() {
    let set = |hole: u64, unwritten: u64, encoded: u64| {
        let mut phase = Phase::honest_reads();
        let map = &mut phase.observation.maps[0];
        map.stored_bytes = map.region_bytes - hole - unwritten;
        (map.hole_bytes, map.unwritten_bytes, map.encoded_bytes) = (hole, unwritten, encoded);
        phase
    };
    set(1024 * MIB, 0, 0).judge().assert("holes", Contradicted, "100 % of the read region is not stored");
    set(0, 512 * MIB, 0).judge().assert("holes", Contradicted, "50 %");
    set(MIB, 0, 0).judge().assert("holes", Suspect, "A small part");
    set(0, 0, 1024 * MIB).judge().assert("holes", Suspect, "compressed");
    // Data in memory for preallocated space is no hole.
    let mut waiting = set(0, 512 * MIB, 0);
    waiting.observation.residency[0].1 = residency(512 * MIB, 512 * MIB, 1024 * MIB);
    waiting.judge().assert("holes", Passed, "");
}

#[test]
fn holes_do_not_apply_to_devices_and_an_unmapped_file_is_not_seen() {
    let mut device = Phase::honest_reads();
    device.targets[0].kind = TargetKind::BlockDevice;
    device.judge().assert("holes", NotApplicable, "no extents");
    let mut unmapped = Phase::honest_reads();
    unmapped.observation.maps.clear();
    unmapped.observation.notes = vec!["`/data/file` could not be mapped (not supported)".to_owned()];
    unmapped.judge().assert("holes", NotSeen, "could not be mapped");
}

// flushes

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
    phase.judge().assert("flushes", NotSeen, "no counter can confirm");
    Phase::honest_writes().judge().assert("flushes", NotApplicable, "may not survive a power cut");
}

// foreign_io

#[test]
fn other_io_before_the_phase_is_detected_by_requests_bytes_or_busy_time() {
    let busy = |baseline: DeviceCounters| {
        let mut phase = Phase::honest_reads();
        phase.observation.devices[0].baseline = baseline;
        phase.judge()
    };
    let requests = DeviceCounters { write_count: 2000, write_bytes: 2000 * 512, ..Default::default() };
    busy(requests).assert("foreign_io", Suspect, "Other processes used vda");
    let bytes = DeviceCounters { read_count: 10, read_bytes: 10 * MIB, ..Default::default() };
    busy(bytes).assert("foreign_io", Suspect, "Other processes used vda");
    let time = DeviceCounters { write_count: 8, busy_ms: 200, ..Default::default() };
    busy(time).assert("foreign_io", Suspect, "Other processes used vda");
    let a_journal = DeviceCounters { write_count: 5, write_bytes: 20 * 4096, busy_ms: 3, ..Default::default() };
    busy(a_journal).assert("foreign_io", Passed, "");
}

#[test]
fn writes_in_a_read_only_phase_belong_to_others() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices[0].measured.write_count = 20_000;
    phase.observation.devices[0].measured.write_bytes = 80 * MIB;
    phase.judge().assert("foreign_io", Suspect, "only read, so other processes used vda at the same time");
}

#[test]
fn without_a_baseline_other_io_is_not_separated_and_the_level_is_lower() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices[0].baseline_ns = 0;
    let judgement = phase.judge();
    judgement.assert("foreign_io", NotSeen, "No idle baseline");
    assert_eq!(judgement.level, EvidenceLevel::E0);
}

// achieved_depth

#[test]
fn a_job_that_mostly_waits_for_its_source_is_suspect() {
    let with = |waited_ns: u64| {
        let mut phase = Phase::honest_writes();
        phase.records[0].source_wait_ns = Some(waited_ns);
        phase
    };
    let elapsed_ns = Phase::honest_writes().records[0].elapsed_ns;
    with(elapsed_ns / 20).judge().assert("source", Passed, "spent 5.0 % of the time");
    with(elapsed_ns / 2).judge().assert("source", Suspect, "spent 50 % of its time waiting for its source");
    Phase::honest_writes().judge().assert("source", NotApplicable, "fetches the data");
}

#[test]
fn a_queue_below_its_depth_is_suspect_unless_a_pace_or_a_pause_explains_it() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].engine = EngineKind::IoUring;
    phase.jobs[0].workers = 2;
    phase.jobs[0].queue.depth = 32;
    phase.records[0].achieved_depth = Some(64.0);
    phase.judge().assert("achieved_depth", Passed, "kept at the requested depth.");
    phase.records[0].achieved_depth = Some(56.8);
    phase.judge().assert("achieved_depth", Passed, "11 % below the requested depth");
    phase.records[0].achieved_depth = Some(3.2);
    phase.judge().assert("achieved_depth", Suspect, "kept 3.20 I/Os in flight; its queue depth allows 64");
    // Zones accept one write at a time; reads of zones do not wait.
    phase.jobs[0].zones = Some(trueio_model::ZonePlan::emulated(1 << 20, 1 << 20));
    phase.judge().assert("achieved_depth", Suspect, "kept 3.20");
    let reads = std::mem::replace(&mut phase.jobs[0].pattern.mix, OpMix::ReadWrite { read_percent: 50 });
    phase.judge().assert("achieved_depth", NotApplicable, "waits for a source or for zones");
    phase.jobs[0].pattern.mix = reads;
    // Except for writers of the same zones.
    let writer = JobPlan { name: "writer".into(), ..phase.jobs[0].clone() };
    phase
        .jobs
        .push(JobPlan { pattern: Pattern { mix: OpMix::Only(OpKind::Write), ..writer.pattern.clone() }, ..writer });
    phase.records.push(phase.records[0].clone());
    phase.judge().assert("achieved_depth", NotApplicable, "waits for a source or for zones");
    phase.jobs.truncate(1);
    phase.records.truncate(1);
    phase.jobs[0].zones = None;
    phase.jobs[0].think = Some(trueio_model::Think { time_ns: 1, every: 1, after_ns: 0, spin_ns: 0 });
    phase.judge().assert("achieved_depth", NotApplicable, "");
    Phase::honest_reads().judge().assert("achieved_depth", NotApplicable, "one I/O in flight");
}

// pace

fn paced(backlog: u64, late_ns: u64) -> Phase {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].pace =
        Some(Pace { ios_per_s: Some(1e5), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Poisson });
    phase.records[0].backlog_count = backlog;
    phase.records[0].pacing_lateness.record_many(late_ns, 1000);
    let op = &mut phase.records[0].ops[0];
    op.latency.from_intended.record_many(95_000, op.io_count);
    phase
}

#[test]
fn a_rate_that_the_disk_or_the_tool_cannot_sustain_is_suspect() {
    paced(0, 500).judge().assert("pace", Passed, "The rate was kept");
    paced(50_000, 500).judge().assert("pace", Suspect, "50,000 due I/Os were never issued");
    paced(0, 40_000).judge().assert("pace", Suspect, "submitted I/Os of `job` late");
    Phase::honest_reads().judge().assert("pace", NotApplicable, "");
}

// working_set

#[test]
fn a_buffered_working_set_must_exceed_memory_or_be_read_from_the_disk() {
    let mut phase = Phase::honest_reads();
    phase.judge().assert("working_set", NotApplicable, "is unknown");
    phase.jobs[0].direct = DirectPolicy::Off;
    phase.judge().assert("working_set", Passed, "the disk read every requested byte");
    phase.observation.devices = vec![delta(counted(0, 0, 0))];
    phase.judge().assert("working_set", Suspect, "fit in memory");
    phase.jobs[0].files[0].size_bytes = 64 << 30;
    phase.judge().assert("working_set", Passed, "larger than memory");
    // Each write of a log waits for the disk.
    Phase::honest_log().judge().assert("working_set", NotApplicable, "");
}

// usb_link

/// Goal: a transport that hides the disk's facts, and a link that slows it, are suspect; correct USB disks
/// and other disks pass. Method: one disk, attached in every way.
#[test]
fn a_usb_disk_is_suspect_if_bot_hides_its_facts_or_a_usb_2_link_slows_it() {
    let with = |usb: Option<UsbFacts>, rotates: bool, sector: u32| {
        let mut phase = Phase::honest_reads();
        let mut disk = disk("vda", "usb");
        disk.is_rotational = Fact::known(rotates, "by hand");
        disk.physical_sector_bytes = Fact::known(sector, "by hand");
        disk.usb = usb;
        phase.targets[0].disks = vec![disk];
        phase.judge()
    };
    let usb = |transport, link: f64, port: f64, can: Option<bool>| {
        let none = || Fact::unknown("made by hand");
        let text = |text: &str| Fact::known(text.to_owned(), "by hand");
        Some(UsbFacts {
            device: "2-1".to_owned(),
            interface: "2-1:1.0".to_owned(),
            id: text("1209:0001"),
            release: none(),
            manufacturer: none(),
            product: none(),
            serial: none(),
            usb_version: none(),
            link_mbit_per_s: Fact::known(link, "by hand"),
            port_mbit_per_s: Fact::known(port, "by hand"),
            can_superspeed: Fact { value: can, source: "by hand".to_owned() },
            driver: none(),
            transport,
            offers: Fact::known(Vec::new(), "by hand"),
            queue_depth: Fact::known(30, "by hand"),
        })
    };
    use trueio_model::UsbTransport::{Bot, Uas};
    with(usb(Bot, 5000.0, 5000.0, Some(true)), true, 512).assert("usb_link", Suspect, "runs on BOT");
    with(usb(Uas, 480.0, 5000.0, Some(true)), false, 4096).assert("usb_link", Suspect, "try another cable");
    with(usb(Uas, 480.0, 480.0, Some(true)), false, 4096).assert("usb_link", Suspect, "use a USB 3 port");
    let both = with(usb(Bot, 480.0, 480.0, Some(true)), true, 512);
    both.assert("usb_link", Suspect, "runs on BOT");
    both.assert("usb_link", Suspect, "which is the limit");
    // A USB 2 stick that supports only BOT is not hidden by it.
    with(usb(Bot, 480.0, 5000.0, Some(false)), true, 512).assert("usb_link", Passed, "supports only BOT");
    // Before Linux 6.9 a disk's capabilities are unknown; its declared USB version may show them.
    let declares = |version: &str, transport, port: f64| {
        let facts = usb(transport, 480.0, port, None).expect("facts");
        Some(UsbFacts { usb_version: Fact::known(version.to_owned(), "by hand"), ..facts })
    };
    let likely = with(declares("2.10", Bot, 5000.0), true, 512);
    likely.assert("usb_link", Suspect, "declares USB 2.10 on a link of 480 Mbit/s");
    likely.assert("usb_link", Suspect, "try another cable");
    likely.assert("usb_link", Suspect, "runs on BOT");
    with(declares("2.10", Uas, 480.0), false, 4096).assert("usb_link", Suspect, "use a USB 3 port");
    with(declares("2.01", Bot, 5000.0), true, 512).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    with(usb(Bot, 480.0, 480.0, None), true, 512).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    with(usb(Uas, 480.0, 5000.0, None), false, 4096).assert("usb_link", NotSeen, "supports USB 3 is unknown");
    // Correct ones.
    with(usb(Uas, 5000.0, 5000.0, Some(true)), true, 512).assert("usb_link", Passed, "hides nothing");
    with(usb(Uas, 480.0, 480.0, Some(false)), false, 4096).assert("usb_link", Passed, "");
    with(usb(Bot, 5000.0, 5000.0, Some(true)), false, 4096).assert("usb_link", Passed, "");
    with(None, true, 512).assert("usb_link", NotApplicable, "no known USB disk");
}

// declared_values

/// Goal: a declaration that the measurement contradicts is suspect if the drive made it, a note otherwise,
/// and correct disks are not flagged. Method: random reads of a given median over a given region, on disks
/// with different declarations.
#[test]
fn a_rotating_disk_that_is_too_fast_is_suspect_if_the_drive_declares_it_and_a_note_otherwise() {
    let with = |transport: &str, rotates: Option<bool>, median_ns: u64, region: u64| {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].files[0].size_bytes = region;
        let (count, bytes) = (phase.records[0].ops[0].io_count, phase.records[0].ops[0].byte_count);
        phase.records[0].ops = vec![op(OpKind::Read, count, bytes, median_ns)];
        let mut disk = disk("vda", transport);
        disk.is_rotational = Fact { value: rotates, source: "by hand".to_owned() };
        phase.targets[0].disks = vec![disk];
        phase.environment.hypervisor = Fact::unknown("no flag of the processor says so");
        phase
    };
    let (quick, slow, large) = (58_000, 8_000_000, 4096 * MIB);
    with("sata", Some(true), quick, large).judge().assert(
        "declared_values",
        Suspect,
        "no rotating disk reads at random this fast",
    );
    with("sas", Some(true), quick, large).judge().assert("declared_values", Suspect, "the declaration is wrong");
    with("sata", Some(true), slow, large).judge().assert("declared_values", Passed, "agree with the declared");
    with("sata", Some(false), quick, large).judge().assert("declared_values", Passed, "latencies agree");
    with("usb", Some(false), slow, large).judge().assert(
        "declared_values",
        Passed,
        "as long as those of a rotating disk",
    );
    with("sata", Some(true), quick, 64 * MIB).judge().assert(
        "declared_values",
        NotApplicable,
        "cannot confirm or refute",
    );
    with("sata", None, quick, large).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    with("loop", Some(true), quick, large).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    for bus in ["virtio", "usb", "nvme", "iscsi"] {
        let judgement = with(bus, Some(true), quick, large).judge();
        judgement.assert("declared_values", Passed, "vda declares that it rotates");
        assert_eq!(judgement.objections(), [], "{bus}: a remark leaves the verdict alone");
    }
    // An emulated SATA disk is virtual.
    let mut emulated = with("sata", Some(true), quick, large);
    emulated.environment.hypervisor = Fact::known("KVM".to_owned(), "by hand");
    emulated.judge().assert("declared_values", Passed, "virtual disks and USB bridges often do not report it");
    // An SSD in front of a rotating disk may have completed the reads.
    let mut cached = with("sata", Some(true), quick, large);
    let mut ssd = disk("nvme0n1", "nvme");
    ssd.is_rotational = Fact::known(false, "by hand");
    cached.targets[0].disks.push(ssd);
    cached.judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    // Reads of popular blocks may come from the drive's cache.
    let mut favourites = with("sata", Some(true), quick, large);
    favourites.jobs[0].pattern.order =
        Order::Random { distribution: Distribution::Zipf { theta: 1.2, center: None }, each_block_once: false };
    favourites.judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
}

#[test]
fn an_undeclared_cache_is_detected_by_flushes_and_by_fast_durable_writes() {
    let bare = |transport: &str, sync_ns: u64, flushes: u64| {
        let mut phase = Phase::honest_log();
        phase.records[0].ops = vec![op(OpKind::Write, 1_000, 4_096_000, 30_000), op(OpKind::Sync, 1_000, 0, sync_ns)];
        let mut disk = disk("vda", transport);
        disk.is_rotational = Fact::known(true, "by hand");
        disk.write_cache = Fact::known("write through".into(), "by hand");
        phase.targets[0].disks = vec![disk];
        phase.environment.hypervisor = Fact::unknown("no flag of the processor says so");
        phase.observation.devices[0].measured.flush_count = Some(flushes);
        phase
    };
    bare("sata", 100_000, 0).judge().assert("declared_values", Suspect, "loses its content at a power cut");
    bare("virtio", 100_000, 0).judge().assert("declared_values", Passed, "loses its content at a power cut");
    bare("sata", 8_000_000, 0).judge().assert("declared_values", NotApplicable, "cannot confirm or refute");
    bare("virtio", 8_000_000, 900).judge().assert(
        "declared_values",
        Suspect,
        "declares no volatile cache, but it was flushed",
    );
}

// memory_backed

#[test]
fn memory_below_the_target_is_suspect_unless_named_as_the_target() {
    let with = |stack: Vec<trueio_model::Layer>, transport: &str| {
        let mut phase = Phase::honest_reads();
        phase.targets[0].stack = stack;
        phase.targets[0].disks = vec![disk("vda", transport)];
        phase
    };
    let file = || layer("file", "/data/file", 0);
    let tmpfs = with(vec![file(), layer("filesystem", "tmpfs on /data", 1)], "virtio");
    tmpfs.judge().assert("memory_backed", Suspect, "no disk was measured");
    let zram = with(vec![file(), layer("filesystem", "ext4 on /data", 1), layer("disk", "zram0", 2)], "zram");
    zram.judge().assert("memory_backed", Suspect, "is memory");
    let buffered = with(vec![file(), layer("loop", "loop0 (buffered)", 1), layer("disk", "vda", 4)], "loop");
    buffered.judge().assert("memory_backed", Suspect, "page cache of its backing file");
    let direct = with(vec![file(), layer("loop", "loop0 (direct)", 1), layer("disk", "vda", 4)], "loop");
    direct.judge().assert("memory_backed", Passed, "");
    let mut named = with(vec![layer("disk", "zram0", 0)], "zram");
    named.targets[0].kind = TargetKind::BlockDevice;
    named.judge().assert("memory_backed", Passed, "is memory");
}

// content

#[test]
fn zeros_are_suspect_and_compressible_content_is_reported() {
    let mut phase = Phase::honest_writes();
    phase.jobs[0].content.compressible_percent = 50;
    phase.judge().assert("content", Passed, "hold for such content");
    phase.jobs[0].content.kind = ContentKind::Zero;
    phase.judge().assert("content", Suspect, "The job wrote zeros");
    phase.jobs[0].content.kind = ContentKind::Pattern;
    phase.jobs[0].content.pattern = vec![0xff];
    phase.judge().assert("content", Suspect, "The job wrote the same bytes repeatedly");
    Phase::honest_reads().judge().assert("content", NotApplicable, "");
}

// latency_floor

#[test]
fn half_a_microsecond_is_suspect_for_a_disk_and_not_for_memory() {
    let mut phase = Phase::honest_reads();
    phase.records = vec![record(vec![op(OpKind::Read, 102_400, 400 * MIB, 500)])];
    phase.judge().assert("latency_floor", Suspect, "something else served it");
    phase.targets[0].disks = vec![disk("vda", "zram")];
    phase.judge().assert("latency_floor", NotApplicable, "");
}

// clock_and_cpu

#[test]
fn a_coarse_clock_a_busy_worker_and_steal_are_suspect() {
    let mut fast = Phase::honest_reads();
    fast.records = vec![record(vec![op(OpKind::Read, 102_400, 400 * MIB, 200)])];
    fast.judge().assert("clock_and_cpu", Suspect, "The clock's error is 24 ns");
    let mut busy = Phase::honest_reads();
    busy.worker_cpu.system_ns = SECOND_NS * 95 / 100;
    busy.judge().assert("clock_and_cpu", Suspect, "generator_limited");
    // Polling for completions uses the whole core by design.
    busy.jobs[0].write_flags.hipri = true;
    busy.judge().assert("clock_and_cpu", Passed, "");
    let mut stolen = Phase::honest_reads();
    stolen.observation.steal_share = Some(0.2);
    stolen.judge().assert("clock_and_cpu", Suspect, "took 20 % of the processors' time");
}

#[test]
fn more_workers_than_processors_share_the_available_processors() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].workers = 16;
    phase.environment.cpu.usable_count = 2;
    phase.worker_cpu.system_ns = SECOND_NS * 19 / 10;
    phase.judge().assert("clock_and_cpu", Suspect, "generator_limited");
}

// engines without a device

#[test]
fn engines_without_a_device_are_supported_for_their_calls_only() {
    for engine in [EngineKind::Null, EngineKind::Simulated] {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].engine = engine;
        phase.observation = Observation::default();
        phase.worker_cpu.user_ns = SECOND_NS;
        let judgement = phase.judge();
        assert_eq!((judgement.verdict, judgement.level), (Verdict::Supported, EvidenceLevel::E0), "{engine:?}");
        judgement.assert("call_results", Passed, "No device was involved");
        judgement.assert("block_layer_bytes", NotApplicable, engine.name());
    }
}

#[test]
fn calls_of_a_mapping_are_not_compared() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].engine = EngineKind::Mmap;
    phase.jobs[0].direct = DirectPolicy::Off;
    let judgement = phase.judge();
    judgement.assert("block_layer_bytes", NotApplicable, "mmap");
    assert_eq!(judgement.level, EvidenceLevel::E0);
}

#[test]
fn with_a_buffered_and_a_direct_job_the_direct_bytes_are_the_minimum() {
    let mut phase = Phase::honest_reads();
    let mut other = Phase::honest_writes();
    other.jobs[0].direct = DirectPolicy::Off;
    phase.jobs.append(&mut other.jobs);
    phase.records.append(&mut other.records);
    phase.observation.devices = vec![delta(counted(400 * MIB, 0, 0))];
    phase.judge().assert("block_layer_bytes", Suspect, "stayed in the page cache");
    phase.observation.devices = vec![delta(counted(0, 400 * MIB, 0))];
    phase.judge().assert("block_layer_bytes", Contradicted, "read with direct I/O");
}

#[test]
fn a_mix_of_reads_and_writes_is_judged_by_its_worse_direction() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].pattern.mix = OpMix::ReadWrite { read_percent: 70 };
    phase.records =
        vec![record(vec![op(OpKind::Read, 71_680, 280 * MIB, 90_000), op(OpKind::Write, 30_720, 120 * MIB, 90_000)])];
    phase.observation.process_read_bytes = Some(280 * MIB);
    phase.observation.devices = vec![delta(counted(280 * MIB, 120 * MIB, 0))];
    let judgement = phase.judge();
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!(judgement.check("block_layer_bytes").expected, "280 MiB read, 120 MiB written in 102,400 I/Os");
    phase.observation.devices = vec![delta(counted(280 * MIB, 0, 0))];
    phase.judge().assert("block_layer_bytes", Contradicted, "written with direct I/O, but the disk counted 0 B");
}

/// Goal: a run over two disks judges each phase by its own disks. Method: the same phase with a second target
/// on tmpfs, a second disk that is busy, and a file next to the one with a known target.
#[test]
fn a_phase_is_judged_by_the_disks_under_its_own_files() {
    let mut phase = Phase::honest_reads();
    let mut other = target();
    other.path = "/other".to_owned();
    other.filesystem.as_mut().expect("a filesystem").mount_point = "/other".to_owned();
    other.stack = vec![layer("filesystem", "tmpfs on /other", 0)];
    other.disks = vec![disk("vdb", "zram")];
    phase.targets.insert(0, other);
    let mut busy = delta(counted(900 * MIB, 900 * MIB, 5));
    "vdb".clone_into(&mut busy.disk);
    busy.baseline = counted(100 * MIB, 100 * MIB, 5);
    phase.observation.devices.push(busy);
    phase.targets[1].path = "/data/another".to_owned();
    let judgement = phase.judge();
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!(judgement.check("block_layer_bytes").source, "/sys/block/vda/stat");
}

// steadiness

/// A series of 100 ms intervals with `ios` I/Os of 4 KiB each.
fn series(counts: impl IntoIterator<Item = u64>) -> Vec<SeriesRow> {
    let row = |(index, read_count): (usize, u64)| SeriesRow {
        end_ns: (index as u64 + 1) * 100_000_000,
        span_ns: 100_000_000,
        read_count,
        read_bytes: read_count * 4096,
        write_count: 0,
        write_bytes: 0,
        other_count: 0,
        trim_count: 0,
        trim_bytes: 0,
        latency_ns_p50: 90_000,
        latency_ns_p99: 150_000,
        latency_ns_max: 200_000,
    };
    counts.into_iter().enumerate().map(row).collect()
}

/// Varies by up to 15 % around 10,000, as a normal disk does.
fn honest_rate(index: u64) -> u64 {
    let swing = [0, 7, -4, 11, -9, 3, 15, -6, -15, 5, 9, -2, -11, 1, 13, -8][(index % 16) as usize];
    (10_000 + swing * 100) as u64
}

#[test]
fn a_constant_rate_is_steady() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(honest_rate));
    let judgement = phase.judge();
    judgement.assert("steadiness", Passed, "stayed at one level");
    assert_eq!(judgement.verdict, Verdict::Supported);
}

#[test]
fn a_full_write_cache_is_reported_with_time_and_amount() {
    let mut phase = Phase::honest_writes();
    let counts = (0..70).map(|i| if i < 30 { honest_rate(i) } else { honest_rate(i) / 4 });
    phase.records[0].series = series(counts)
        .into_iter()
        .map(|row| SeriesRow {
            write_count: row.read_count,
            write_bytes: row.read_bytes,
            read_count: 0,
            read_bytes: 0,
            ..row
        })
        .collect();
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "after 3.0 s and 1.15 GiB. Possible causes: a full write cache");
    assert_eq!(judgement.verdict, Verdict::Suspect);
}

#[test]
fn a_slowly_falling_rate_is_a_drift_and_one_stall_is_not() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(|i| honest_rate(i) * (140 - i) / 140));
    phase.judge().assert("steadiness", Suspect, "The rate");
    phase.records[0].series = series((0..70).map(|i| if i == 33 { 0 } else { honest_rate(i) }));
    phase.judge().assert("steadiness", Passed, "stayed at one level");
}

#[test]
fn rates_of_jobs_are_summed_until_the_first_one_ends() {
    let mut phase = Phase::honest_reads();
    // One falls while the other rises, until the first ends after 4 s.
    phase.records[0].series = series((0..40).map(|i| honest_rate(i) + 20_000 - i * 500));
    let mut other = Phase::honest_reads();
    other.records[0].series = series((0..70).map(|i| if i < 40 { honest_rate(i) + i * 500 } else { 100 }));
    phase.jobs.append(&mut other.jobs);
    phase.records.append(&mut other.records);
    phase.judge().assert("steadiness", Passed, "stayed at one level");
}

#[test]
fn a_phase_too_short_for_steadiness_is_not_judged() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..15).map(honest_rate));
    phase.judge().assert("steadiness", NotSeen, "1.5 s of intervals");
    // Shorter than a tick of the clock.
    phase.records[0].series = series([1]);
    (phase.records[0].series[0].end_ns, phase.records[0].series[0].span_ns) = (0, 0);
    phase.judge().assert("steadiness", NotSeen, "0.0 s of intervals");
}

fn rounds_until(is_attained: bool, drift: f64) -> SteadyState {
    let variable = |name: &str, drift: Option<f64>| SteadyVariable {
        name: name.to_owned(),
        range_percent: drift.map(f64::abs),
        excursion_percent: drift,
        is_steady: is_attained,
    };
    let round =
        SteadyRound { elapsed_ns: 10_000_000_000, ios_per_s: 1e4, bytes_per_s: 4e7, latency_ns_p99: Some(150_000) };
    SteadyState {
        window_rounds: 5,
        range_percent_max: 20.0,
        excursion_percent_max: 10.0,
        rounds: vec![round; 7],
        is_attained,
        variables: vec![variable("throughput", Some(drift)), variable("latency_p99", Some(drift))],
    }
}

#[test]
fn a_steady_state_that_was_not_reached_is_suspect_with_its_drift() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(honest_rate));
    phase.steady_state = Some(rounds_until(false, -31.0));
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "No steady state after 7 rounds");
    assert!(
        judgement.check("steadiness").found.contains("throughput range 31 %, drift -31 %"),
        "{}",
        judgement.report()
    );
    phase.steady_state = Some(rounds_until(true, -3.0));
    phase.judge().assert("steadiness", Passed, "SNIA rule, 7 rounds");
    let mut unknown = rounds_until(false, 0.0);
    unknown.variables[1].range_percent = None;
    phase.steady_state = Some(unknown);
    phase.judge().assert("steadiness", Suspect, "use longer rounds");
}

// zero_blocks, heat, pressure, clock, background, discards, acceptance

#[test]
fn an_unwritten_device_is_suspect_and_a_few_zero_blocks_are_not() {
    let mut phase = Phase::honest_reads();
    let sample = |zero_count| vec![ContentSample { path: "/dev/vda".to_owned(), block_count: 32, zero_count }];
    phase.observation.samples = sample(30);
    phase.judge().assert("zero_blocks", Suspect, "Write them first");
    phase.observation.samples = sample(5);
    phase.judge().assert("zero_blocks", Passed, "contain data");
    phase.observation.samples = Vec::new();
    phase.judge().assert("zero_blocks", NotSeen, "do not support direct I/O");
    Phase::honest_writes().judge().assert("zero_blocks", NotApplicable, "Nothing is read");
}

#[test]
fn a_disk_above_its_limit_and_a_throttled_processor_are_suspect() {
    let mut phase = Phase::honest_reads();
    let heat = |after_millidegrees| {
        vec![Heat {
            disk: "vda".to_owned(),
            before_millidegrees: 40_000,
            after_millidegrees,
            limit_millidegrees: Some(70_000),
        }]
    };
    phase.observation.heats = heat(70_000);
    phase.judge().assert("heat", Suspect, "vda is at or above its own temperature limit");
    phase.observation.heats = heat(69_000);
    phase.observation.throttle_count = Some(0);
    phase.judge().assert("heat", Passed, "All reported temperatures were below");
    phase.observation.throttle_count = Some(2);
    phase.judge().assert("heat", Suspect, "processors throttled");
    phase.observation.heats[0].disk = "sdz".to_owned();
    phase.observation.throttle_count = None;
    phase.judge().assert("heat", NotSeen, "report temperatures");
}

#[test]
fn memory_stalls_and_clock_drift_are_suspect_and_waiting_for_processors_is_reported() {
    let mut phase = Phase::honest_reads();
    phase.observation.cpu_pressure_share = Some(0.6);
    phase.observation.memory_pressure_share = Some(0.01);
    phase.observation.clock_drift = Some(-4e-4);
    let judgement = phase.judge();
    judgement.assert("clock_and_cpu", Passed, "did not use all of their processors");
    assert!(
        judgement.check("clock_and_cpu").found.contains("waiting for a processor 60.0 %"),
        "{}",
        judgement.report()
    );
    phase.observation.memory_pressure_share = Some(0.08);
    phase.judge().assert("clock_and_cpu", Suspect, "Memory was short");
    phase.observation.memory_pressure_share = None;
    phase.observation.clock_drift = Some(0.02);
    phase.judge().assert("clock_and_cpu", Suspect, "drifted +2.00 % from the kernel's clock");
}

#[test]
fn background_work_of_the_system_is_named() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices[0].baseline = counted(50 * MIB, 50 * MIB, 0);
    phase.observation.background = vec!["a filesystem is trimmed (fstrim, process 7)".to_owned()];
    phase.judge().assert("foreign_io", Suspect, "Active on this machine: a filesystem is trimmed (fstrim, process 7).");
}

#[test]
fn discards_without_a_trim_job_are_in_the_finding() {
    let mut phase = Phase::honest_writes();
    phase.observation.devices[0].measured.discard_bytes = 3 * MIB;
    let judgement = phase.judge();
    assert!(
        judgement.check("block_layer_bytes").found.ends_with("3 MiB discarded though no job trims"),
        "{}",
        judgement.report()
    );
}

#[test]
fn an_accepted_contradiction_makes_the_phase_suspect_and_another_one_does_not() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices = vec![delta(counted(0, 0, 0))];
    phase.observation.process_read_bytes = Some(400 * MIB);
    assert_eq!(phase.judge().verdict, Verdict::Contradicted);
    phase.accepted_checks = vec!["block_layer_bytes".to_owned()];
    let judgement = phase.judge();
    assert_eq!(judgement.verdict, Verdict::Suspect, "{}", judgement.report());
    let check = judgement.check("block_layer_bytes");
    assert!(check.is_accepted && check.outcome == Contradicted, "the finding itself stays");
    phase.accepted_checks = vec!["holes".to_owned()];
    assert_eq!(phase.judge().verdict, Verdict::Contradicted);
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

// flush_order, traced_requests and requests of others in the trace

/// A log whose requests were traced: 100 sampled writes, flushed or not.
fn traced_log(flushed: u64, unflushed: u64) -> Phase {
    let mut phase = Phase::honest_log();
    let example = (unflushed > 0).then(|| "a write of 4096 bytes, and no flush".to_owned());
    phase.trace = Some(TraceRecord {
        disks: vec!["vda".to_owned()],
        window_count: 4,
        window_ns: 40_000_000,
        ours: RequestSum { count: 100, bytes: 100 * 4096 },
        filesystem: RequestSum { count: 100, bytes: 100 * 4096 },
        syncs: SyncOrder {
            sampled_count: flushed + unflushed,
            flushed_count: flushed,
            unflushed_count: unflushed,
            failure_example: example,
            ..SyncOrder::default()
        },
        ..TraceRecord::default()
    });
    phase
}

#[test]
fn sampled_writes_flushed_in_order_raise_the_level_and_others_are_flagged() {
    let honest = traced_log(100, 0).judge();
    honest.assert("flush_order", Passed, "durable according to the disk");
    assert_eq!((honest.verdict, honest.level), (Verdict::Supported, EvidenceLevel::E3));
    traced_log(95, 5).judge().assert("flush_order", Suspect, "5 of 100 sampled writes were not durable");
    traced_log(80, 20).judge().assert("flush_order", Contradicted, "a write of 4096 bytes, and no flush");
}

#[test]
fn without_a_trace_the_level_stays_and_the_finding_names_what_root_adds() {
    let mut phase = traced_log(100, 0);
    let why = "the kernel allows tracing only to root (CAP_SYS_ADMIN)".to_owned();
    phase.trace = Some(TraceRecord { missing: Some(why), ..TraceRecord::default() });
    let judgement = phase.judge();
    judgement.assert("flush_order", NotSeen, "only to root");
    judgement.assert("traced_requests", NotSeen, "at its offset on the disk");
    assert_eq!((judgement.verdict, judgement.level), (Verdict::Supported, EvidenceLevel::E2));
}

#[test]
fn a_trace_without_matches_does_not_raise_the_level() {
    let mut phase = traced_log(0, 0);
    phase.judge().assert("flush_order", NotSeen, "No write and its sync");
    assert_eq!(phase.judge().level, EvidenceLevel::E2);
    phase.judge().assert("traced_requests", NotSeen, "averaged 4 KiB, calls 4 KiB");
    phase.trace.as_mut().expect("a trace").syncs.unplaced_count = 7;
    phase.trace.as_mut().expect("a trace").syncs.sampled_count = 7;
    phase.judge().assert("flush_order", NotSeen, "disk offsets of 7 sampled writes");
}

fn traced_reads(matched: u64, missing: u64) -> Phase {
    let mut phase = Phase::honest_reads();
    phase.trace = traced_log(0, 0).trace;
    let trace = phase.trace.as_mut().expect("a trace");
    trace.transfers = TransferMatch {
        sampled_count: matched + missing,
        matched_count: matched,
        merged_count: 3,
        missing_count: missing,
        missing_example: (missing > 0).then(|| "a read of 4096 bytes".to_owned()),
        ..TransferMatch::default()
    };
    phase
}

#[test]
fn direct_transfers_without_a_request_at_their_offset_are_flagged() {
    let honest = traced_reads(100, 0).judge();
    honest.assert("traced_requests", Passed, "at its offset on the disk");
    assert_eq!(honest.check("traced_requests").found, "100 found, 3 merged with neighbours");
    assert_eq!((honest.verdict, honest.level), (Verdict::Supported, EvidenceLevel::E3));
    traced_reads(95, 5).judge().assert("traced_requests", Suspect, "5 of 100 sampled transfers did not reach");
    let lie = traced_reads(0, 100).judge();
    lie.assert("traced_requests", Contradicted, "a read of 4096 bytes");
    assert_eq!(lie.level, EvidenceLevel::E2, "nothing was matched");
}

#[test]
fn traced_processes_are_named_and_unknown_origins_are_suspect() {
    let with = |change: fn(&mut TraceRecord)| {
        let mut phase = traced_reads(100, 0);
        change(phase.trace.as_mut().expect("a trace"));
        phase
    };
    let others = with(|trace| {
        trace.others = RequestSum { count: 20, bytes: 20 * 65536 };
        trace.others_names = vec!["dd".to_owned()];
    });
    others.judge().assert("foreign_io", Suspect, "outside the measured files: dd.");
    assert!(others.judge().check("foreign_io").found.contains("1.25 MiB in 20 of 220 requests traced in 40 ms"));
    let few = with(|trace| trace.others = RequestSum { count: 7, bytes: 7 << 20 });
    few.judge().assert("foreign_io", Passed, "");
    let nameless = with(|trace| trace.unattributed = RequestSum { count: 40, bytes: 40 * 4096 });
    nameless.judge().assert("foreign_io", Suspect, "for other processes or for the filesystem");

    // The trace of the phase itself has precedence over a busy baseline.
    let busy = |phase: &mut Phase| {
        let delta = &mut phase.observation.devices[0];
        delta.baseline = DeviceCounters { write_count: 5000, write_bytes: 5000 * 4096, ..delta.baseline };
    };
    let mut alone = traced_reads(100, 0);
    busy(&mut alone);
    alone.judge().assert("foreign_io", Passed, "while requests were traced");
    let mut own = with(|trace| trace.own_elsewhere = RequestSum { count: 100, bytes: 100 * 4096 });
    own.judge().assert("foreign_io", Passed, "");
    busy(&mut own);
    own.judge().assert("foreign_io", Suspect, "just before the phase");
    let mut unsure = with(|trace| {
        trace.inseparable = Some(
            "the disk offsets of a part of the measured files are \
                                                            unknown"
                .to_owned(),
        )
    });
    unsure.judge().assert("foreign_io", Passed, "");
    busy(&mut unsure);
    unsure.judge().assert(
        "foreign_io",
        Suspect,
        "could not be attributed: the disk offsets of a part of the measured \
                                                  files are unknown.",
    );
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
