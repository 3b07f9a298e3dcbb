//! Traced requests: `flush_order`, `traced_requests`, and requests of others in the trace.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotSeen, Passed, Suspect};
use trueio_model::{
    BelowTrace, DeviceCounters, EvidenceLevel, RequestSum, SyncOrder, TraceRecord, TracedProcess, TransferMatch,
    Verdict,
};

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

/// Goal: a trace of a loop device ends there, and what passes says so; one of a disk does not.
#[test]
fn a_trace_that_ends_at_a_loop_device_names_the_file_and_the_disk_below() {
    let mut phase = traced_log(100, 0);
    assert!(!phase.judge().check("flush_order").sentence.contains("followed"), "a disk");
    phase.targets[0].stack = vec![
        layer("filesystem", "ext4 on /mnt", 0),
        layer("loop", "loop3 (direct)", 1),
        layer("file", "/images/disk.img", 2),
        layer("filesystem", "ext4 on /", 3),
        layer("disk", "vda", 4),
    ];
    let end = "Requests were not followed below loop3, whose data is in the file `/images/disk.img` on vda.";
    phase.judge().assert("flush_order", Passed, end);
    let mut reads = traced_reads(100, 0);
    reads.targets[0].stack = phase.targets[0].stack.clone();
    reads.judge().assert("traced_requests", Passed, end);
    // The file is another block device, or cannot be found any more.
    phase.targets[0].stack = vec![layer("loop", "loop3 (direct)", 0), layer("disk", "sdb", 1)];
    phase.judge().assert("flush_order", Passed, "below loop3, whose data is on sdb.");
    phase.targets[0].stack.truncate(1);
    phase.judge().assert("flush_order", Passed, "below loop3, whose data is elsewhere.");
}

/// Goal: a program that uses the disk of a loop device's file disturbs, if that disk is in the way and busy with it; else its disk was examined.
#[test]
fn a_program_on_the_disk_below_a_loop_device_disturbs_if_it_keeps_the_disk_busy() {
    let judged = |ours: u64, others: u64, others_busy_ns| {
        let mut phase = traced_reads(100, 0);
        phase.targets[0].stack = vec![layer("loop", "loop3 (direct)", 0), layer("disk", "vda", 1)];
        let process =
            TracedProcess { name: "dd".to_owned(), process: 12, disk: "vda".to_owned(), ..TracedProcess::default() };
        phase.trace.as_mut().expect("a trace").below = Some(BelowTrace {
            loops: vec!["loop3".to_owned()],
            disks: vec!["vda".to_owned()],
            window_ns: 40_000_000,
            ours: RequestSum { count: ours, bytes: ours * 4096 },
            others: RequestSum { count: others, bytes: others << 16 },
            others_busy_ns,
            other_processes: vec![TracedProcess { read_bytes: others << 16, ..process }],
            ..BelowTrace::default()
        });
        phase.judge()
    };
    let busy = judged(100, 400, 30_000_000);
    let sentence =
        "Other processes used vda, below loop3, at the same time: dd (process 12, read 25 MiB in the traced windows).";
    busy.assert("foreign_io", Suspect, sentence);
    let check = busy.check("foreign_io");
    assert_eq!(check.culprits, ["dd (pid 12)"]);
    assert_eq!(check.explained_percent, Some(75));
    for (ours, others, busy_ns) in [(100, 400, 9_000_000), (100, 2, 30_000_000), (0, 400, 30_000_000)] {
        judged(ours, others, busy_ns).assert("foreign_io", Passed, "No other process used the disk significantly");
    }
}

/// Goal: what passes on a loop device says how much of it was found on the disk of its file; with direct I/O all must be there, and each flush.
#[test]
fn requests_that_are_missing_below_a_loop_device_are_flagged_unless_it_uses_the_page_cache() {
    let below = |matched_count, missing_count, durable, unflushed_count| BelowTrace {
        loops: vec!["loop3".to_owned()],
        disks: vec!["vda".to_owned()],
        transfers: TransferMatch {
            matched_count,
            missing_count,
            missing_example: Some("a request of 4096 bytes".to_owned()),
            ..TransferMatch::default()
        },
        syncs: SyncOrder {
            flushed_count: durable,
            unflushed_count,
            failure_example: Some("vda received none".to_owned()),
            ..SyncOrder::default()
        },
        ..BelowTrace::default()
    };
    let stack = |how: &str| vec![layer("loop", &format!("loop3 ({how})"), 0), layer("disk", "vda", 1)];
    let reads = |how: &str, below| {
        let mut phase = traced_reads(100, 0);
        phase.targets[0].stack = stack(how);
        phase.trace.as_mut().expect("a trace").below = Some(below);
        phase.judge()
    };
    let all = reads("direct", below(100, 0, 0, 0));
    all.assert(
        "traced_requests",
        Passed,
        "Of 100 followed below loop3, 100 were also found at the places of its file on vda.",
    );
    reads("direct", below(95, 5, 0, 0)).assert("traced_requests", Passed, "Of 100 followed below loop3, 95 were also");
    reads("direct", below(50, 50, 0, 0)).assert(
        "traced_requests",
        Suspect,
        "did not reach that disk: a request of 4096",
    );
    reads("buffered", below(0, 100, 0, 0)).assert(
        "traced_requests",
        Passed,
        "Of 100 followed below loop3, 0 were also",
    );
    // Holes of the file are on no disk, also if it uses the page cache.
    for how in ["direct", "buffered"] {
        let hole_example = Some("a read of 4096 bytes at byte 0 of loop3 completed without a disk".to_owned());
        let holes = BelowTrace { hole_count: 25, hole_example, ..below(75, 25, 0, 0) };
        reads(how, holes).assert(
            "traced_requests",
            Suspect,
            "25 of them read holes, which no disk stores: a read of 4096",
        );
        reads(how, BelowTrace { hole_count: 2, ..below(98, 2, 0, 0) }).assert(
            "traced_requests",
            Passed,
            "98 were also",
        );
    }
    let unknown = BelowTrace { missing: Some("loop3: deleted".to_owned()), ..below(0, 0, 0, 0) };
    reads("direct", unknown).assert(
        "traced_requests",
        Passed,
        "Requests were not followed below loop3, whose data is on vda (loop3: deleted).",
    );
    let log = |below| {
        let mut phase = traced_log(100, 0);
        phase.targets[0].stack = stack("direct");
        phase.trace.as_mut().expect("a trace").below = Some(below);
        phase.judge()
    };
    log(below(0, 0, 100, 0)).assert(
        "flush_order",
        Passed,
        "Of 100 followed below loop3, 100 were also durable on vda.",
    );
    log(below(0, 0, 95, 5)).assert(
        "flush_order",
        Suspect,
        "95 were also durable on vda. The others were not: vda received none.",
    );
    log(below(0, 0, 50, 50)).assert("flush_order", Contradicted, "The others were not: vda received none.");
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
    // Without the bytes of the missing requests in any counter.
    let missing = |found, missing| {
        let mut phase = traced_reads(found, missing);
        phase.observation.devices = vec![delta(counted(4 * found * MIB / 2, 0, 0))];
        phase.observation.process_read_bytes = Some(4 * found * MIB / 2);
        phase
    };
    missing(95, 5).judge().assert("traced_requests", Suspect, "5 of 100 sampled transfers did not reach");
    let lie = missing(0, 100).judge();
    lie.assert("traced_requests", Contradicted, "a read of 4096 bytes");
    assert_eq!(lie.level, EvidenceLevel::E2, "nothing was matched");
}

fn process(name: &str, process: i32, read_bytes: u64, write_bytes: u64) -> TracedProcess {
    let disk = "vda".to_owned();
    TracedProcess { name: name.to_owned(), process, disk, read_bytes, write_bytes, ..TracedProcess::default() }
}

/// Goal: what a neighbour did is given by its own bytes, in its own direction, and what that can explain by bytes and time, the smaller one.
/// Method: a phase of 400 MiB in a second, of which 40 ms were traced: a writer of 20 MiB and a small reader; the counters show 500 MiB more
/// reads, of others that the trace does not name.
#[test]
fn a_neighbour_is_blamed_for_its_own_bytes_in_its_own_direction() {
    let mut phase = traced_reads(100, 0);
    let trace = phase.trace.as_mut().expect("a trace");
    trace.ours = RequestSum { count: 4096, bytes: 16 * MIB };
    trace.others = RequestSum { count: 36, bytes: 20 * MIB + 65536 };
    trace.others_busy_ns = 30_000_000;
    let reader = TracedProcess { has_ended: true, in_files_bytes: 65536, ..process("reader", 13, 65536, 0) };
    trace.other_processes = vec![process("writer", 12, 0, 20 * MIB), reader];
    let judgement = phase.judge();
    let named = "also in the measured files: writer (process 12, wrote 20 MiB in the traced windows), reader (thread 13, which has \
                 ended, read 64 KiB in the traced windows, also of the measured files).";
    judgement.assert("foreign_io", Suspect, named);
    let check = judgement.check("foreign_io");
    assert_eq!(check.brief, "writer wrote 20 MiB in 40 ms");
    assert_eq!(check.culprits, ["writer (pid 12)"], "to stop who read 64 KiB would change nothing");
    // 20 of 36 MiB in the windows, and 500 MiB extrapolated next to 400 MiB: 56 %; in flight for 75 % of the time.
    assert_eq!(check.explained_percent, Some(56));
    phase.trace.as_mut().expect("a trace").others_busy_ns = 4_000_000;
    assert_eq!(phase.judge().check("foreign_io").explained_percent, Some(10), "bounded by time");
    phase.trace.as_mut().expect("a trace").others_busy_ns = 390_000;
    phase.judge().assert("foreign_io", Passed, "");
    phase.trace.as_mut().expect("a trace").others_busy_ns = 4_000_000;
    phase.observation.devices[0].measured.read_bytes += 500 * MIB;
    let check = phase.judge().check("block_layer_bytes").clone();
    assert_eq!((check.brief.as_str(), check.culprits.len()), ("others read 500 MiB", 1), "64 KiB name no reader");
    assert!(check.culprits[0].starts_with("reader (thread 13"), "{check:?}");
    // 20 MiB in 40 ms are 500 MiB in a second, in flight for a tenth of the time; of 1 MiB in 40 ms the windows tell nothing about the rest.
    assert_eq!(check.explained_percent, Some(10));
    let mut burst = phase.clone();
    burst.trace.as_mut().expect("a trace").others = RequestSum { count: 36, bytes: MIB };
    assert_eq!(burst.judge().check("block_layer_bytes").explained_percent, Some(56));
    phase.trace.as_mut().expect("a trace").other_processes[1].read_bytes = 8 * MIB;
    assert_eq!(phase.judge().check("block_layer_bytes").brief, "reader read about 500 MiB");
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
        trace.other_processes = vec![process("dd", 0, 0, 20 * 65536)];
    });
    others.judge().assert(
        "foreign_io",
        Suspect,
        "outside the measured files: dd (wrote 1.25 MiB in the traced windows).",
    );
    assert!(others.judge().check("foreign_io").found.contains("1.25 MiB in 20 of 220 requests traced in 40 ms"));
    let few = with(|trace| trace.others = RequestSum { count: 7, bytes: 7 * 65536 });
    few.judge().assert("foreign_io", Passed, "");
    // Large requests are few.
    let large = with(|trace| {
        trace.others = RequestSum { count: 3, bytes: 3 << 20 };
        trace.other_processes = vec![process("dd", 12, 3 << 20, 0)];
    });
    large.judge().assert("foreign_io", Suspect, "files: dd (process 12, read 3 MiB in the traced windows).");
    let mut surplus = large.clone();
    surplus.observation.devices[0].measured.read_bytes += 400 * MIB;
    surplus.judge().assert("block_layer_bytes", Suspect, "used it at the same time: dd (process 12,");
    let nameless = with(|trace| {
        trace.unattributed = RequestSum { count: 40, bytes: 40 * 65536 };
        trace.kernel_work = vec![process("write-back of dirty pages", 0, 0, 40 * 65536)];
    });
    let unseen = "at the same time: write-back of dirty pages of programs that were not seen to write, or tables of the filesystem (wrote 2.50 MiB";
    nameless.judge().assert("foreign_io", Suspect, unseen);
    assert!(nameless.judge().check("foreign_io").culprits.is_empty(), "nothing that could be stopped");
    let mut named = nameless.clone();
    let dd = TracedProcess { has_ended: true, ..process("dd", 812, 0, 8 * MIB) };
    named.trace.as_mut().expect("a trace").write_back = vec![dd.clone()];
    let by = "write-back of dirty pages, by dd (thread 812, which has ended, dirtied about 8 MiB of them) (wrote 2.50 MiB in the traced windows).";
    named.judge().assert("foreign_io", Suspect, by);
    let check = named.judge().check("foreign_io").clone();
    assert_eq!(check.brief, "write-back of dirty pages, by dd, wrote 2.50 MiB in 40 ms");
    assert_eq!(check.culprits, ["dd (thread 812, which has ended)"]);
    let mut of_kernel = nameless.clone();
    of_kernel.trace.as_mut().expect("a trace").kernel_work = vec![process("swapping", 0, 0, 40 * 65536)];
    assert_eq!(of_kernel.judge().check("foreign_io").brief, "swapping wrote 2.50 MiB in 40 ms");
    // A few pages of another file are no neighbour; those of the measured file are.
    let mut dirtied = traced_reads(100, 0);
    dirtied.trace.as_mut().expect("a trace").write_back = vec![dd.clone()];
    dirtied.judge().assert("foreign_io", Passed, "");
    dirtied.trace.as_mut().expect("a trace").write_back = vec![TracedProcess { in_files_bytes: 8 * MIB, ..dd.clone() }];
    let files = "Other programs wrote the measured files at the same time, through the page cache: dd (thread 812, which has ended, dirtied about 8 MiB";
    dirtied.judge().assert("foreign_io", Suspect, files);
    // Little of it was traced: the disk's counters show that it was written while the phase only read.
    let trace = dirtied.trace.as_mut().expect("a trace");
    trace.write_back = vec![TracedProcess { in_files_bytes: MIB / 2, ..dd }];
    dirtied.judge().assert("foreign_io", Passed, "");
    dirtied.observation.devices[0].measured.write_bytes += 300 * MIB;
    dirtied.judge().assert("foreign_io", Suspect, files);
    assert_eq!(dirtied.judge().check("foreign_io").found.split(" in ").next(), Some("vda wrote 300 MiB"));

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

/// Goal: a trace that lost events, or that a counter outweighs, contradicts nothing.
#[test]
fn requests_that_are_missing_in_a_trace_with_losses_or_against_a_counter_prove_nothing() {
    // The counters of `traced_reads` are those of an honest run.
    let counted_all = traced_reads(10, 90).judge();
    counted_all.assert(
        "traced_requests",
        NotSeen,
        "90 of 100 sampled transfers, which proves nothing. A counter shows",
    );
    counted_all.assert("traced_requests", NotSeen, "(`process_read_bytes`)");
    assert_eq!(counted_all.verdict, Verdict::Supported);
    // A thin volume answers half without its disks; the process's bytes are counted above it.
    let mut thin = traced_reads(50, 50);
    thin.observation.devices = vec![delta(counted(200 * MIB, 0, 0))];
    thin.judge().assert("process_read_bytes", Passed, "");
    thin.judge().assert("traced_requests", Contradicted, "50 of 100");
    let mut lossy = traced_reads(10, 90);
    lossy.observation.process_read_bytes = None;
    lossy.observation.devices = vec![delta(counted(100 * MIB, 0, 0))];
    lossy.judge().assert("traced_requests", Contradicted, "");
    lossy.trace.as_mut().expect("a trace").lost_event_count = 1;
    lossy.judge().assert("traced_requests", NotSeen, "The kernel's trace lost 1 events");
    // Where others use the disk, its bytes may be theirs.
    let mut hidden = Phase::honest_writes();
    hidden.trace = traced_reads(10, 90).trace;
    hidden.judge().assert("traced_requests", NotSeen, "(`block_layer_bytes`)");
    let trace = hidden.trace.as_mut().expect("a trace");
    trace.others = RequestSum { count: 300, bytes: 300 * 4096 };
    hidden.judge().assert("traced_requests", Contradicted, "90 of 100");

    let mut log = traced_log(80, 20);
    log.judge().assert("flush_order", Contradicted, "20 of 100");
    log.trace.as_mut().expect("a trace").lost_event_count = 7;
    log.judge().assert(
        "flush_order",
        NotSeen,
        "no flush for 20 sampled writes, which proves nothing. The kernel's trace lost 7",
    );
    let mut none = traced_log(0, 0);
    none.trace.as_mut().expect("a trace").lost_event_count = 7;
    none.judge().assert("flush_order", NotSeen, "windows with a loss are left out");
    none.judge().assert("traced_requests", NotSeen, "windows with a loss are left out");
    // Nor does it show that others did nothing.
    let mut busy = traced_reads(100, 0);
    let baseline = &mut busy.observation.devices[0].baseline;
    (baseline.write_count, baseline.write_bytes) = (5000, 5000 * 4096);
    busy.judge().assert("foreign_io", Passed, "while requests were traced");
    busy.trace.as_mut().expect("a trace").lost_event_count = 1;
    busy.judge().assert("foreign_io", Suspect, "just before the phase");
}
