//! Bytes that the disks and the process counted: `block_layer_bytes`, `process_read_bytes`.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotSeen, Passed, Suspect};
use trueio_model::{
    BlockSizes, DirectPolicy, EngineKind, EvidenceLevel, Fact, OpKind, Prepare, RequestSum, TraceRecord, TransferMatch,
    Transport, Verdict,
};

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
    assert_eq!(judgement.check("block_layer_bytes").explained_percent, Some(50), "what may not have arrived");
    // They cannot have moved more than the disk counted.
    phase.observation.devices[0].baseline = counted(500 * MIB, 0, 0);
    phase.judge().assert("block_layer_bytes", Suspect, "(about 400 MiB)");
    // They had ended before the phase: none of the traced requests was theirs.
    phase.trace = Some(TraceRecord {
        disks: vec!["vda".to_owned()],
        window_count: 4,
        window_ns: 40_000_000,
        ours: RequestSum { count: 100, bytes: 100 * 4096 },
        ..TraceRecord::default()
    });
    let traced = phase.judge();
    traced.assert("block_layer_bytes", Passed, "as many bytes as the calls returned");
    traced.assert("foreign_io", Passed, "while requests were traced");
    // With lost events, what was traced says nothing about them.
    phase.trace.as_mut().expect("a trace").lost_event_count = 1;
    phase.judge().assert("block_layer_bytes", Suspect, "only if the I/O of other processes");
    phase.trace.as_mut().expect("a trace").lost_event_count = 0;
    phase.trace.as_mut().expect("a trace").others = RequestSum { count: 50, bytes: 50 * 4096 };
    phase.judge().assert("block_layer_bytes", Suspect, "only if the I/O of other processes");
    // Whatever others did, the request of each sampled transfer was found.
    let mut sampled = |missing_count, lost_event_count| {
        let trace = phase.trace.as_mut().expect("a trace");
        trace.transfers = TransferMatch {
            sampled_count: 32 + missing_count,
            matched_count: 32,
            missing_count,
            ..TransferMatch::default()
        };
        trace.lost_event_count = lost_event_count;
        phase.judge()
    };
    sampled(0, 0).assert("block_layer_bytes", Passed, "as many bytes as the calls returned");
    sampled(0, 0).assert("foreign_io", Suspect, "");
    sampled(1, 0).assert("block_layer_bytes", Suspect, "only if the I/O of other processes");
    sampled(0, 1).assert("block_layer_bytes", Suspect, "only if the I/O of other processes");
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
    let judgement = off.judge();
    judgement.assert("block_layer_bytes", NotSeen, "iostats is 0");
    assert_eq!((judgement.verdict, judgement.level), (Verdict::Unverified, EvidenceLevel::E0));
    off.targets[0].disks[0].transport = Fact::known(Transport::Zram, "by hand");
    let memory = off.judge();
    memory.assert("block_layer_bytes", NotSeen, "is memory: the device is the processor");
    assert_ne!(memory.verdict, Verdict::Supported, "{}", memory.report());
    let mut gone = Phase::honest_reads();
    gone.observation.devices.clear();
    gone.judge().assert("block_layer_bytes", NotSeen, "could not be read");
}

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

/// Goal: what the disk counted of this phase's own failed I/Os is not charged to others.
/// Method: 20,000 of the phase's reads failed on the disk, which counted their bytes.
#[test]
fn own_failed_io_is_not_the_io_of_others() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices[0].measured.read_bytes += 20_000 * 4096;
    phase.judge().assert("block_layer_bytes", Suspect, "other processes used it");
    phase.records[0].ops[0].error_count = 20_000;
    phase.judge().assert("block_layer_bytes", Passed, "as many bytes as the calls returned");
}
