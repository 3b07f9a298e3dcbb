//! Load of others and of the job itself: `foreign_io`, `achieved_depth`, `pace`, `background`, discards.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{
    Arrivals, Cause, DeviceCounters, DiskFacts, EngineKind, EvidenceLevel, Fact, JobPlan, OpKind, OpMix, Pace, Pattern,
};

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

/// Goal: ranks of one host do not accuse each other by counters, which include both, and what is missing on the disk is found all the same.
#[test]
fn with_other_ranks_on_the_host_counters_blame_no_other_process() {
    let with = |change: &dyn Fn(&mut Phase)| {
        let mut phase = Phase::honest_reads();
        phase.observation.has_peers = true;
        change(&mut phase);
        phase.judge()
    };
    with(&|_| ()).assert("foreign_io", Passed, "");
    let writes = with(&|phase| phase.observation.devices[0].measured.write_bytes = 80 * MIB);
    writes.assert("foreign_io", NotSeen, "Other ranks of this run are on this host");
    let before = DeviceCounters { write_count: 2000, write_bytes: 2000 * 512, ..Default::default() };
    with(&|phase| phase.observation.devices[0].baseline = before).assert("foreign_io", NotSeen, "Other ranks");
    let more = with(&|phase| phase.observation.devices[0].measured.read_bytes = 800 * MIB);
    more.assert("block_layer_bytes", NotSeen, "Other ranks of this run are on this host");
    let less = with(&|phase| phase.observation.devices[0].measured.read_bytes = 8 * MIB);
    less.assert("block_layer_bytes", Contradicted, "did_not_reach_device");
}

#[test]
fn without_a_baseline_other_io_is_not_separated_and_the_level_is_lower() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices[0].baseline_ns = 0;
    let judgement = phase.judge();
    judgement.assert("foreign_io", NotSeen, "No idle baseline");
    assert_eq!(judgement.level, EvidenceLevel::E0);
}

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

/// Goal: writes into the page cache are not accused of a short queue, which is empty during the sync call at their end. Method: 1 of 32
/// in flight; their twins read through the page cache, write past it, or are made durable one by one.
#[test]
fn the_queue_of_writes_into_the_page_cache_is_the_kernels() {
    let outcome = |change: fn(&mut JobPlan)| {
        let mut phase = Phase::honest_writes();
        phase.jobs[0].engine = EngineKind::IoUring;
        phase.jobs[0].queue.depth = 32;
        phase.records[0].achieved_depth = Some(1.0);
        change(&mut phase.jobs[0]);
        phase.judge().check("achieved_depth").outcome
    };
    let off = trueio_model::DirectPolicy::Off;
    let buffered = outcome(|job| (job.direct, job.flush.end_fsync) = (trueio_model::DirectPolicy::Off, true));
    assert_eq!(buffered, NotApplicable);
    assert_eq!(outcome(|_| ()), Suspect);
    assert_eq!(outcome(|job| (job.direct, job.write_flags.dsync) = (trueio_model::DirectPolicy::Off, true)), Suspect);
    let mut reads = Phase::honest_reads();
    (reads.jobs[0].engine, reads.jobs[0].queue.depth, reads.jobs[0].direct) = (EngineKind::IoUring, 32, off);
    reads.records[0].achieved_depth = Some(1.0);
    reads.judge().assert("achieved_depth", Suspect, "kept 1.00");
}

/// Goal: a queue that the disk's own limit keeps short is named by that limit, and not the tool's fault; a queue that is shorter still is.
/// Method: depth 32 on a disk with `nr_requests`, a virtio ring, or a SCSI queue of 4.
#[test]
fn a_queue_that_the_disk_does_not_hold_is_named_by_its_limit() {
    let with = |achieved, limit: fn(&mut DiskFacts)| {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].engine = EngineKind::IoUring;
        phase.jobs[0].queue.depth = 32;
        phase.records[0].achieved_depth = Some(achieved);
        phase.targets[0].disks[0].request_count = Fact::known(256, "by hand");
        limit(&mut phase.targets[0].disks[0]);
        phase.judge()
    };
    let check = "achieved_depth";
    let requests = with(4.26, |disk| disk.request_count = Fact::known(4, "by hand"));
    requests.assert(
        check,
        Suspect,
        "At most 4 requests are in flight at vda (nr_requests: `/sys/block/vda/queue/nr_requests`)",
    );
    assert_eq!(requests.check(check).cause, Cause::Setup);
    assert_eq!(requests.check(check).brief, "4.26 of 32 in flight: at most 4 at vda");
    let scheduled = with(4.26, |disk| {
        disk.request_count = Fact::known(4, "by hand");
        disk.scheduler = Fact::known("mq-deadline".to_owned(), "by hand");
    });
    scheduled.assert(check, Suspect, "nr_requests, the tags of its scheduler");
    with(4.26, |disk| disk.limits.tag_count = Fact::known(4, "by hand")).assert(
        check,
        Suspect,
        "nr_tags, the ring of virtio",
    );
    let scsi = with(4.26, |disk| disk.limits.queue_depth = Fact::known(4, "by hand"));
    scsi.assert(check, Suspect, "queue_depth of SCSI: `/sys/block/vda/device/queue_depth`");
    // Hardware queues that one worker does not use do not count.
    let queues = with(4.26, |disk| {
        disk.request_count = Fact::known(4, "by hand");
        disk.limits.hardware_queue_count = Fact::known(8, "by hand");
    });
    queues.assert(check, Suspect, "At most 4 requests");
    // The limit is not reached, so it explains nothing.
    let short = with(1.2, |disk| disk.request_count = Fact::known(4, "by hand"));
    assert_eq!((short.check(check).cause, short.check(check).sentence.contains("nr_requests")), (Cause::Tool, false));
    let large = with(4.26, |_| ());
    assert_eq!(large.check(check).cause, Cause::Tool);
    // The queue is kept before the disk.
    with(31.0, |disk| disk.request_count = Fact::known(4, "by hand")).assert(check, Passed, "kept at 31.0. At most 4");
    with(31.0, |_| ()).assert(check, Passed, "kept at the requested depth");
    // Sixteen workers of calls.
    let mut calls = Phase::honest_reads();
    (calls.jobs[0].engine, calls.jobs[0].workers) = (EngineKind::Psync, 16);
    calls.targets[0].disks[0].request_count = Fact::known(4, "by hand");
    calls.judge().assert(
        check,
        NotApplicable,
        "one I/O in flight, is paced, writes to memory, or waits for a source or for zones. At most",
    );
}

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
