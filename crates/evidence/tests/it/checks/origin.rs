//! Latency outside of the disk: `latency_origin`.

use crate::support::*;
use trueio_evidence::Stop;
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{
    Arrivals, EngineKind, Fact, IoLimit, IoLimitKind, LatencyParts, OpKind, OpMix, Pace, PartTimes, Prepare,
    ProcessorWait, ThreadUsage, TraceRecord, TransferMatch, Verdict,
};

const CHECK: &str = "latency_origin";

fn times(mean_ns: u64) -> PartTimes {
    PartTimes { mean_ns, p50_ns: mean_ns, p99_ns: mean_ns }
}

/// Reads of a mean of `mean_us`, of which the disk needed `device_us`, as traced and as it counted.
fn reads_of(mean_us: u64, device_us: u64) -> Phase {
    let mut phase = Phase::honest_reads();
    let (count, bytes) = (1_000, 1_000 * 4096);
    phase.records[0] = record(vec![op(OpKind::Read, count, bytes, mean_us * 1_000)]);
    phase.records[0].threads = ThreadUsage { elapsed_ns: count * mean_us * 1_000, ..ThreadUsage::default() };
    phase.observation.devices = vec![delta(counted(bytes, 0, 0))];
    phase.observation.devices[0].measured.read_ms = count * device_us / 1_000;
    phase.observation.process_read_bytes = Some(bytes);
    phase.trace = Some(TraceRecord {
        disks: vec!["vda".to_owned()],
        window_count: 4,
        window_ns: 40_000_000,
        transfers: TransferMatch { sampled_count: 100, matched_count: 100, ..TransferMatch::default() },
        latency: vec![LatencyParts {
            op: OpKind::Read,
            io_count: 100,
            total: times(mean_us * 1_000),
            scheduler: times(0),
            device: times(device_us * 1_000),
            rest: times((mean_us - device_us) * 1_000),
        }],
        ..TraceRecord::default()
    });
    phase
}

/// Goal: a library that delays reads is not the disk, and a disk that is slow is.
/// Method: 48 of 612 µs in the device; then 500 of them, and the same from counters alone.
#[test]
fn latency_that_the_disk_does_not_explain_is_suspect() {
    let delayed = reads_of(612, 48).judge();
    delayed.assert(CHECK, Suspect, "92 % of the latency of reads is outside the disk: of 612 µs on average");
    assert_eq!(delayed.check(CHECK).brief, "92 % of the latency is outside the disk");
    assert_eq!(delayed.verdict, Verdict::Suspect);
    let honest = reads_of(612, 500).judge();
    honest.assert(CHECK, Passed, "At least half of the latency of reads is that of the disk.");
    assert_eq!(honest.verdict, Verdict::Supported);
    // Slow requests between the windows.
    let mut between = reads_of(612, 48);
    between.observation.devices[0].measured.read_ms = 500;
    between.judge().assert(CHECK, Passed, "that of the disk");
    // Delays that do not fit into a window: the traced transfers are those without.
    let mut long = reads_of(612, 48);
    long.trace.as_mut().expect("a trace").latency[0].total = times(60_000);
    long.judge().assert(CHECK, Suspect, "92 % of the latency");
    long.observation.devices.clear();
    long.judge().assert(CHECK, Passed, "");
    // A few microseconds of system calls are no disturbance of a fast disk.
    reads_of(22, 8).judge().assert(CHECK, Passed, "outside the disk, in system calls");
}

/// Goal: what makes writes durable excuses no delay of reads, and a journal's threads are not mistaken for a library.
/// Method: a job whose writes are durable by a flag; its reads have 48 of 200 µs in the device, then its sync calls do, and then 48 of 612.
#[test]
fn only_calls_that_make_data_durable_may_wait_for_a_journal() {
    let durable = |op, mean_us| {
        let mut phase = reads_of(mean_us, 48);
        phase.jobs[0].pattern.mix = OpMix::ReadWrite { read_percent: 50 };
        phase.jobs[0].write_flags.dsync = true;
        (phase.worker_cpu.system_ns, phase.worker_cpu.user_ns) = (0, 0);
        phase.records[0].ops[0].op = op;
        phase.trace.as_mut().expect("a trace").latency[0].op = op;
        phase.judge()
    };
    durable(OpKind::Read, 200).assert(CHECK, Suspect, "76 % of the latency of reads is outside the disk");
    durable(OpKind::Sync, 200).assert(CHECK, Passed, "in the filesystem and its journal");
    durable(OpKind::Write, 200).assert(CHECK, Passed, "in the filesystem and its journal");
    durable(OpKind::Sync, 612).assert(CHECK, Suspect, "92 % of the latency of syncs is outside the disk");
    durable(OpKind::Write, 612).assert(CHECK, Suspect, "92 % of the latency of writes is outside the disk");
}

/// Goal: on busy processors, which delay completions, nothing is accused.
/// Method: the workers use their processors, or wait for them, or another task does, or a hypervisor takes them, for most of the time.
#[test]
fn latency_that_busy_processors_explain_is_not_suspect() {
    let mut using = reads_of(612, 48);
    let of_time = |phase: &Phase, percent| phase.records[0].threads.elapsed_ns * percent / 100;
    using.worker_cpu.system_ns = of_time(&using, 70);
    using.judge().assert(CHECK, Passed, "while processors were busy");
    // In user mode the engine reaps, except between a call and its return: a library that computes there is no disk.
    let mut computing = reads_of(612, 48);
    computing.worker_cpu.user_ns = of_time(&computing, 70);
    computing.judge().assert(CHECK, Suspect, "92 % of the latency");
    computing.jobs[0].engine = EngineKind::IoUring;
    computing.judge().assert(CHECK, Passed, "while processors were busy");
    let mut pressed = reads_of(612, 48);
    pressed.observation.cpu_pressure_share = Some(0.7);
    pressed.judge().assert(CHECK, Passed, "while processors were busy");
    pressed.observation.cpu_pressure_share = Some(0.2);
    pressed.judge().assert(CHECK, Suspect, "");
    // The worker that made the call also completes a read: other tasks that wait do not delay it. They do if another thread completes it.
    pressed.observation.cpu_pressure_share = Some(0.7);
    let waited = ProcessorWait { wait_ns: of_time(&pressed, 10), run_count: 1, involuntary_switch_count: 1 };
    pressed.records[0].threads.waiting = Some(waited);
    pressed.judge().assert(CHECK, Suspect, "92 % of the latency");
    pressed.jobs[0].engine = EngineKind::Posixaio;
    pressed.judge().assert(CHECK, Passed, "while processors were busy");
    // What waiting for a processor explains is named by another check; what it does not explain is not.
    let mut waiting = reads_of(612, 48);
    let waited = |percent| ProcessorWait {
        wait_ns: of_time(&reads_of(612, 48), percent),
        run_count: 1,
        involuntary_switch_count: 1,
    };
    for (percent, wait, outcome) in [(70, Contradicted, Passed), (10, Suspect, Suspect)] {
        waiting.records[0].threads.waiting = Some(waited(percent));
        let judgement = waiting.judge();
        judgement.assert("processor_wait", wait, "");
        judgement.assert(CHECK, outcome, "");
    }
}

/// Goal: writes, which workers of the kernel complete, are accused although all processors are busy, unless those workers waited.
/// Method: 48 of 612 µs in the device, while some task waited for a processor all the time; the kernel's workers waited for 5 % of it, or for 80 %.
#[test]
fn delayed_writes_are_suspect_on_busy_processors_unless_the_kernels_workers_waited() {
    let waited = |kernel_percent: Option<u64>| {
        let mut phase = reads_of(612, 48);
        phase.jobs[0].pattern.mix = OpMix::Only(OpKind::Write);
        phase.jobs[0].engine = EngineKind::Psync;
        phase.records[0].ops[0].op = OpKind::Write;
        let elapsed_ns = phase.records[0].threads.elapsed_ns;
        let waiting = ProcessorWait { wait_ns: elapsed_ns / 20, run_count: 1, involuntary_switch_count: 1 };
        phase.records[0].threads.waiting = Some(waiting);
        let bytes = 1_000 * 4096;
        phase.observation.devices = vec![delta(counted(0, bytes, 0))];
        phase.observation.devices[0].measured.write_ms = 48;
        phase.trace.as_mut().expect("a trace").latency[0].op = OpKind::Write;
        phase.observation.cpu_pressure_share = Some(1.0);
        phase.observation.kernel_worker_wait_ns = kernel_percent.map(|percent| elapsed_ns * percent / 100);
        phase.judge()
    };
    waited(Some(5)).assert(CHECK, Suspect, "92 % of the latency of writes is outside the disk");
    waited(Some(80)).assert(CHECK, Passed, "while processors were busy");
    waited(None).assert(CHECK, Passed, "while processors were busy");
}

/// Goal: a delay that another check names is not reported twice, and a small finding of another check does not hide it.
#[test]
fn a_delay_that_another_check_names_is_left_to_it() {
    let mut limited = reads_of(612, 48);
    let limit = IoLimit {
        group: "/sys/fs/cgroup/job".to_owned(),
        device: "vda".to_owned(),
        device_number: (254, 0),
        kind: IoLimitKind::ReadBytes,
        value: 1_000 * 4096,
        source: "by hand".to_owned(),
    };
    limited.targets[0].io_limits = Fact::known(vec![limit], "by hand");
    let judgement = limited.judge();
    judgement.assert("io_limits", Suspect, "");
    judgement.assert(CHECK, Passed, "which `io_limits` explains");
    // Half of the time cannot explain 92 % of the latency, and a job that cannot keep its rate delays none of its I/Os.
    let mut stopped = reads_of(612, 48);
    let half_ns = stopped.elapsed_ns / 2;
    stopped.records[0].ops[0].latency.total.record(half_ns);
    stopped.observation.stops = Some(vec![Stop { from_ns: 0, until_ns: half_ns, least_ns: half_ns, most_ns: half_ns }]);
    let judgement = stopped.judge();
    judgement.assert("stops", Suspect, "");
    judgement.assert(CHECK, Suspect, "of the latency of reads is outside the disk");
    let mut paced = reads_of(612, 48);
    let arrivals = Arrivals::Poisson;
    paced.jobs[0].pace = Some(Pace { ios_per_s: Some(2_000.0), bytes_per_s: None, of_writes: None, arrivals });
    paced.records[0].backlog_count = 1_000;
    let judgement = paced.judge();
    judgement.assert("pace", Suspect, "could not keep its rate");
    judgement.assert(CHECK, Suspect, "of the latency of reads is outside the disk");
}

#[test]
fn what_waits_outside_of_the_disk_by_design_is_not_judged() {
    let changed = |change: fn(&mut Phase)| {
        let mut phase = reads_of(612, 48);
        change(&mut phase);
        phase.judge()
    };
    let deep = |phase: &mut Phase| {
        phase.jobs[0].engine = EngineKind::IoUring;
        phase.jobs[0].queue.depth = 32;
    };
    let mut batches = reads_of(612, 48);
    deep(&mut batches);
    batches.judge().assert(CHECK, Suspect, "");
    batches.jobs[0].queue.complete_min = 8;
    batches.judge().assert(CHECK, NotApplicable, "in batches");
    let mut full = reads_of(612, 48);
    deep(&mut full);
    full.targets[0].disks[0].request_count = Fact::known(4, "by hand");
    full.judge().assert(CHECK, NotApplicable, "keeps more I/Os in flight than vda (4 requests)");
    changed(|phase| phase.jobs[0].trace_syscalls = true).assert(CHECK, NotApplicable, "are traced");
    changed(|phase| phase.targets[0].stack.push(layer("dm", "dm-0", 3))).assert(CHECK, NotApplicable, "dm-0");
    changed(|phase| phase.trace = None).assert(CHECK, NotSeen, "Requests were not traced");
    changed(|phase| phase.trace.as_mut().expect("a trace").latency[0].io_count = 29).assert(
        CHECK,
        NotSeen,
        "Fewer than 30",
    );
    Phase::honest_log().judge().assert(CHECK, NotSeen, "Requests were not traced");
    let mut parallel = Phase::honest_writes();
    parallel.jobs[0].workers = 4;
    parallel.jobs[0].files[0].prepare = Prepare::UseExisting;
    parallel.judge().assert(CHECK, NotApplicable, "Parallel writes");
}
