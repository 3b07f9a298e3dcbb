//! The tool itself as a suspect: what waiting for a processor can explain, from numbers alone.

use crate::support::*;
use trueio_evidence::{LimitSpan, LimitedIo, ProcessorUse, Stop};
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{
    Arrivals, CpuTime, DirectPolicy, EngineKind, Fact, IoLimit, IoLimitKind, OpKind, Pace, ProcessorWait, RequestSum,
    SeriesRow, ThreadUsage, TraceRecord, Verdict,
};

const CHECK: &str = "processor_wait";

/// 10,000 direct reads of 4 KiB in two seconds, of which the workers waited for `wait_ms` and the disk took `disk_ms`.
fn waited(wait_ms: u64, disk_ms: u64) -> Phase {
    let bytes = 10_000 * 4096;
    let mut phase = Phase::honest_reads();
    phase.records = vec![record(vec![op(OpKind::Read, 10_000, bytes, 198_000)])];
    phase.records[0].elapsed_ns = 2 * SECOND_NS;
    let waiting = ProcessorWait { wait_ns: wait_ms * 1_000_000, run_count: 0, involuntary_switch_count: 7 };
    phase.records[0].threads =
        ThreadUsage { elapsed_ns: 2 * SECOND_NS, waiting: Some(waiting), ..ThreadUsage::default() };
    let mut counters = counted(bytes, 0, 0);
    counters.read_ms = disk_ms;
    phase.observation.devices = vec![delta(counters)];
    phase.observation.process_read_bytes = Some(bytes);
    phase
}

#[test]
fn waiting_is_noted_above_one_percent_of_the_rate_and_suspect_above_five() {
    waited(19, 1_500).judge().assert(CHECK, Passed, "explains at most 1 % of the rate");
    waited(60, 1_500).judge().assert(CHECK, Passed, "explains at most 3.0 % of the rate");
    waited(100, 1_500).judge().assert(CHECK, Passed, "explains at most 5.0 % of the rate");
    let judgement = waited(102, 1_500).judge();
    judgement.assert(CHECK, Suspect, "in 5 % of the measured time, which can explain up to 5 % of the rate");
    judgement.assert(CHECK, Suspect, "other programs used the processors");
    assert_eq!(judgement.verdict, Verdict::Suspect);
    assert!(judgement.check(CHECK).found.contains("7 involuntary switches"), "{}", judgement.report());
    assert_eq!(waited(60, 1_500).judge().verdict, Verdict::Supported, "a note does not change the verdict");
}

/// Goal: waits that can explain a printed percentile make it doubtful although the rate hardly changes; a tail that needs more time
/// than the workers waited is the disk's.
/// Method: of 10,000 reads of 0.19 ms 20 took 4 ms, so p99.9 is 4 ms. Ten of them without their waits would make it 0.19 ms: 38 ms.
#[test]
fn waiting_is_compared_with_each_printed_percentile() {
    let tailed = |wait_ms, slow_ms: u64| {
        let mut phase = waited(wait_ms, 1_500);
        let mut latency = trueio_model::Histogram::new();
        latency.record_many(190_000, 9_980);
        latency.record_many(slow_ms * 1_000_000, 20);
        phase.records[0].ops[0].latency.total = latency;
        phase
    };
    let judgement = tailed(60, 4).judge();
    judgement.assert(
        CHECK,
        Suspect,
        "in 3 % of the measured time, which can explain up to 95 % of the p99.9 of read calls (",
    );
    assert_eq!(judgement.check(CHECK).brief, "waited for a processor 3 % of the time (≤ 95 % of p99.9)");
    assert_eq!((judgement.check(CHECK).explained_percent, judgement.verdict), (None, Verdict::Suspect));
    // A rate that is doubtful itself is enough.
    tailed(200, 4).judge().assert(CHECK, Suspect, "which can explain up to 10 % of the rate: other programs");
    // The same waits beside a tail of the disk, which takes 20 times as long.
    let judgement = tailed(60, 80).judge();
    judgement.assert(CHECK, Passed, "in 3 % of the measured time; this explains at most 3.0 % of the rate.");
    assert_eq!(judgement.verdict, Verdict::Supported);
    // Waits of less than a hundredth of the time occur on idle machines: a note.
    tailed(19, 1).judge().assert(
        CHECK,
        Passed,
        "explains at most 1 % of the rate, and up to 81 % of the p99.9 of read",
    );
    // One wait delays all I/Os in flight.
    let mut queued = tailed(60, 80);
    queued.jobs[0].engine = EngineKind::IoUring;
    queued.jobs[0].queue.depth = 32;
    queued.observation.devices[0].measured.read_ms = 2_000 * 31;
    queued.judge().assert(CHECK, Suspect, "which can explain up to 100 % of the p99.9 of read calls (");
}

#[test]
fn the_switch_to_a_thread_is_no_waiting() {
    // 300,000 runs of 2 µs each.
    let mut phase = waited(600, 1_300);
    let run =
        |phase: &mut Phase, count| phase.records[0].threads.waiting.as_mut().expect("set above").run_count = count;
    run(&mut phase, 300_000);
    phase.judge().assert(CHECK, Passed, "at most 1 %");
    run(&mut phase, 30_000);
    phase.judge().assert(CHECK, Suspect, "up to 27 % of the rate");
}

#[test]
fn figures_that_are_mostly_waiting_are_contradicted_if_the_disk_shows_it() {
    let starved = || waited(1_900, 80);
    let judgement = starved().judge();
    judgement.assert(CHECK, Contradicted, "starved: the workers of");
    judgement.assert(CHECK, Contradicted, "The disk took 8.00 µs per request and the job counted 198 µs per I/O");
    assert_eq!(judgement.verdict, Verdict::Contradicted);
    waited(1_000, 80).judge().assert(CHECK, Suspect, "in 50 % of the measured time");
    waited(1_020, 80).judge().assert(CHECK, Contradicted, "in 51 % of the measured time");
    // Slower requests of others are in the disk's mean. A worker without a queue has nothing in flight while it waits.
    waited(1_900, 1_900).judge().assert(CHECK, Contradicted, "the disk held 5 % of the I/Os");
    // With a queue, the disk may have been busy meanwhile.
    let mut queued = waited(1_900, 2_000 * 17);
    queued.jobs[0].engine = EngineKind::IoUring;
    queued.jobs[0].queue.depth = 32;
    queued.judge().assert(CHECK, Suspect, "up to 47 % of the rate");
    queued.observation.devices[0].measured.read_ms = 2_000 * 15;
    queued.judge().assert(CHECK, Contradicted, "the disk held 47 % of the I/Os");
    let mut short = starved();
    short.records[0].elapsed_ns = SECOND_NS - 1;
    short.judge().assert(CHECK, Suspect, "up to 95 % of the rate");
    let mut blind = starved();
    blind.observation.devices.clear();
    blind.judge().assert(CHECK, Suspect, "up to 95 % of the rate");
    let mut buffered = starved();
    buffered.jobs[0].direct = DirectPolicy::Off;
    buffered.judge().assert(CHECK, Suspect, "up to 95 % of the rate");
}

/// Goal: a worker that waits while enough I/Os are in flight costs no rate.
/// Method: depth 32, the worker waits for 30 % of the time. If the disk held 31 I/Os on average, at most 1/32 of the rate
/// was lost, if it held 16, up to 30 %.
#[test]
fn waiting_with_a_full_queue_costs_no_rate() {
    let queued = |held: u64| {
        let mut phase = waited(600, 2_000 * held);
        phase.jobs[0].engine = EngineKind::IoUring;
        phase.jobs[0].queue.depth = 32;
        phase
    };
    queued(31).judge().assert(CHECK, Passed, "explains at most 3.1 % of the rate");
    queued(16).judge().assert(CHECK, Suspect, "up to 30 % of the rate");
    // A disk that takes 32 requests at once is full although the job has 256 I/Os in flight.
    let mut deep = queued(32);
    deep.jobs[0].queue.depth = 256;
    deep.judge().assert(CHECK, Suspect, "up to 30 % of the rate");
    deep.targets[0].disks[0].request_count = Fact::known(32, "by hand");
    deep.judge().assert(CHECK, Passed, "at most 1 %");
    // Without counters nothing shows that the disk continued.
    let mut blind = queued(31);
    blind.observation.devices.clear();
    blind.judge().assert(CHECK, Suspect, "up to 30 % of the rate");
}

#[test]
fn waiting_of_a_paced_job_is_compared_with_its_latencies() {
    let paced = |wait_ms| {
        // 10,000 latencies of 198 µs: 1,980 ms.
        let mut phase = waited(wait_ms, 500);
        phase.jobs[0].pace =
            Some(Pace { ios_per_s: Some(5e3), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Poisson });
        phase
    };
    paced(90).judge().assert(CHECK, Passed, "at most 4.5 % of the mean latency");
    paced(110).judge().assert(CHECK, Suspect, "up to 6 % of the mean latency");
    paced(1_900).judge().assert(CHECK, Suspect, "up to 96 % of the mean latency");
}

#[test]
fn the_cause_of_the_wait_is_named() {
    let mut throttled = waited(1_900, 80);
    throttled.observation.throttled_ns = Some(1_850_000_000);
    throttled.environment.cpu.quota = Some(0.02);
    let judgement = throttled.judge();
    judgement.assert(CHECK, Contradicted, "used up its CPU quota of 0.02 processors and was throttled for 1.85 s");
    throttled.observation.throttled_ns = Some(450_000_000);
    throttled.judge().assert(
        CHECK,
        Contradicted,
        ", and their control group used up its CPU quota of 0.02 processors and was",
    );
    // What carries this I/O in the kernel is no other program.
    let mut carried = waited(500, 80);
    carried.targets[0].stack.insert(2, layer("loop", "loop3 (direct)", 2));
    carried.worker_cpu = CpuTime { user_ns: 100 * MS, system_ns: 400 * MS };
    let used = |busy_ms, interrupts_ms, kernel_ms| {
        let [busy_ns, interrupts_ns, kernel_threads_ns] = [busy_ms, interrupts_ms, kernel_ms].map(|ms: u64| ms * MS);
        Some(ProcessorUse { busy_ns, interrupts_ns, kernel_threads_ns })
    };
    carried.observation.processors = used(1_400, 200, 600);
    let own = "the kernel's own work for this I/O (loop3 and interrupts) used the processors for 800 ms";
    carried.judge().assert(CHECK, Suspect, own);
    // Four busy loops next to it.
    carried.observation.processors = used(7_400, 200, 600);
    carried.judge().assert(CHECK, Suspect, "other programs used the processors");
    let mut crowded = waited(500, 80);
    crowded.jobs[0].workers = 16;
    crowded.judge().assert(CHECK, Suspect, "16 workers and other programs shared 4 usable processors");
}

#[test]
fn a_worker_that_uses_all_of_its_quota_limits_the_figures() {
    let mut phase = Phase::honest_reads();
    phase.judge().assert("clock_and_cpu", Passed, "did not use all of their processors");
    // 0.15 s of CPU time in a second.
    phase.environment.cpu.quota = Some(0.15);
    phase.judge().assert("clock_and_cpu", Suspect, "generator_limited");
}

#[test]
fn without_a_count_of_waits_the_check_is_not_seen_and_without_files_it_does_not_apply() {
    let mut phase = Phase::honest_reads();
    let judgement = phase.judge();
    judgement.assert(CHECK, NotSeen, "does not count how long");
    assert_eq!(judgement.verdict, Verdict::Supported);
    phase.jobs[0].engine = EngineKind::Null;
    phase.judge().assert(CHECK, NotApplicable, "");
}

// ---------------------------------------------------------------------------------------------
// Limits of control groups

const LIMITS: &str = "io_limits";

/// 400 MiB read in a second under a limit on vda of `value`, of which the group's processes used `moved`.
fn limited(kind: IoLimitKind, value: u64, moved: Option<u64>) -> Phase {
    let mut phase = Phase::honest_reads();
    let source = "/sys/fs/cgroup/jobs/io.max".to_owned();
    let (group, device) = ("/jobs".to_owned(), "vda".to_owned());
    let limit = IoLimit { group, device, device_number: (254, 0), kind, value, source };
    phase.targets[0].io_limits = Fact::known(vec![limit.clone()], "by hand");
    phase.observation.limited =
        vec![LimitedIo { limit, moved, delayed_ns: None, stalled_ns: None, span_ns: SECOND_NS }];
    phase
}

#[test]
fn a_limit_that_the_group_comes_near_is_suspect_and_one_far_above_is_a_note() {
    let read = |limit: u64| limited(IoLimitKind::ReadBytes, limit * MIB, Some(400 * MIB)).judge();
    let judgement = read(401);
    judgement.assert(LIMITS, Suspect, "The control group `/jobs` limits reads of vda to 401 MiB/s; its processes");
    judgement.assert(LIMITS, Suspect, "reached 400 MiB/s, so the figures describe this limit");
    assert_eq!(judgement.verdict, Verdict::Suspect, "never contradicted");
    read(800).assert(LIMITS, Suspect, "limits reads of vda to 800 MiB/s");
    let judgement = read(801);
    judgement.assert(LIMITS, Passed, "to 801 MiB/s, far above the 400 MiB/s that its processes reached");
    assert_eq!(judgement.verdict, Verdict::Supported, "a note does not change the verdict");
}

/// Goal: a limit is blamed only for the time in which it can have applied.
/// Method: 400 MiB/s under a limit of 40: nine of ten intervals far above it, and one under it; then none.
#[test]
fn a_limit_that_is_lifted_is_blamed_for_its_time_only() {
    let mut phase = limited(IoLimitKind::ReadBytes, 40 * MIB, Some(400 * MIB));
    phase.records[0].series = stopped(0, |_| true).records[0].series[..10].to_vec();
    phase.records[0].series.iter_mut().for_each(|row| row.read_bytes = 43 * MIB);
    phase.records[0].series[0].read_bytes = 4 * MIB;
    let judgement = phase.judge();
    judgement.assert(
        LIMITS,
        Suspect,
        "reached 400 MiB/s on average, so it applied for at most 10 % of the time and was lifted",
    );
    assert_eq!(judgement.check(LIMITS).explained_percent, Some(10));
    phase.records[0].series[0].read_bytes = 43 * MIB;
    phase.judge().assert(LIMITS, Passed, "which did not apply: its processes reached 400 MiB/s");
    // A group that was idle begins with a burst: 1.4 times the limit in a second are below it.
    let mut burst = limited(IoLimitKind::ReadBytes, 286 * MIB, Some(400 * MIB));
    burst.records[0].series = phase.records[0].series.clone();
    burst.judge().assert(LIMITS, Suspect, "reached 400 MiB/s, so the figures describe this limit");
}

/// Goal: a limit that was set and lifted during the phase is named with its time, and one that its rate was far from is a note.
/// Method: 43 MiB in each tenth of a second except the six from 0.3 s on, with 4 MiB; the plan knows no limit. Then the same limit all the
/// time, of which the file says that it was set for 0.7 s.
#[test]
fn a_limit_that_was_set_for_a_part_of_the_phase_is_named_with_its_time() {
    let mut phase = limited(IoLimitKind::ReadBytes, 40 * MIB, Some(400 * MIB));
    phase.records[0].series = stopped(0, |_| true).records[0].series[..10].to_vec();
    phase.records[0].series.iter_mut().for_each(|row| row.read_bytes = 43 * MIB);
    phase.records[0].series[3..9].iter_mut().for_each(|row| row.read_bytes = 4 * MIB);
    let limit = phase.targets[0].io_limits.value.clone().expect("known").remove(0);
    let ms = |from: u64, until: u64| LimitSpan {
        limit: limit.clone(),
        from_ns: from * 1_000_000,
        until_ns: until * 1_000_000,
        first_seen_ns: 300_000_000,
        last_seen_ns: 850_000_000,
    };
    phase.observation.limit_spans = Some(vec![ms(250, 950)]);
    let sentence = "The control group `/jobs` limited reads of vda to 40.0 MiB/s for 0.7 s, from 0.2 s on; its processes reached \
                    40.0 MiB/s then, so the figures describe this limit for that time.";
    let known = phase.judge();
    known.assert(LIMITS, Suspect, sentence);
    phase.targets[0].io_limits = Fact::known(Vec::new(), "by hand");
    phase.observation.limited.clear();
    let judgement = phase.judge();
    judgement.assert(LIMITS, Suspect, sentence);
    assert_eq!(judgement.check(LIMITS).explained_percent, Some(70));
    assert_eq!(judgement.check(LIMITS).brief, "limited to 40.0 MiB/s for 0.7 s");
    // The thread that reads the limits waited, so begin and end are far off: only what lies between two readings counts.
    phase.observation.limit_spans = Some(vec![ms(0, 700)]);
    phase.judge().assert(LIMITS, Suspect, "for 0.7 s, from 0.0 s on; its processes reached 40.0 MiB/s then");
    // A single reading found it: no interval was certainly limited.
    let once = LimitSpan { last_seen_ns: 290_000_000, ..ms(0, 700) };
    phase.observation.limit_spans = Some(vec![once]);
    phase.judge().assert(LIMITS, Suspect, "it applied for at most 60 % of the time and was lifted, or set, meanwhile");
    phase.observation.limit_spans = Some(vec![ms(250, 950)]);
    phase.records[0].series.iter_mut().for_each(|row| row.read_bytes = 43 * MIB);
    phase.judge().assert(LIMITS, Passed, "for 0.7 s, from 0.2 s on; its processes reached 430 MiB/s then.");
    // Nearly all the time: as a limit of the whole phase.
    phase.observation.limit_spans = Some(vec![ms(100, 1_000)]);
    phase.observation.limited.clear();
    phase.records[0].series.clear();
    phase.records[0].ops = vec![op(OpKind::Read, 10_240, 40 * MIB, 90_000)];
    phase.judge().assert(LIMITS, Suspect, "reached 40.0 MiB/s, so the figures describe this limit");
}

/// Goal: a limit near a rate that jobs set and keep is a note if nothing waited for it.
/// Method: reads at the job's own rate of 95 a second under a limit of 100, which took 0.2 ms; longer ones, of which the disk a small part or the
/// most; then one condition less each time; then with a trace of who submitted the requests.
#[test]
fn a_limit_near_the_rate_that_a_job_sets_is_a_note_if_nothing_waited_for_it() {
    let paced = |call_ns, disk_us: u64, change: fn(&mut Phase)| {
        let mut phase = limited(IoLimitKind::ReadCount, 100, Some(95));
        phase.records[0] = record(vec![op(OpKind::Read, 9_500, 9_500 * 4096, call_ns)]);
        phase.observation.devices = vec![delta(counted(9_500 * 4096, 0, 0))];
        phase.observation.devices[0].measured.read_ms = 9_500 * disk_us / 1_000;
        phase.observation.process_read_bytes = Some(9_500 * 4096);
        let arrivals = Arrivals::Linear;
        phase.jobs[0].pace = Some(Pace { ios_per_s: Some(95.0), bytes_per_s: None, of_writes: None, arrivals });
        change(&mut phase);
        phase.judge()
    };
    let note = "which did not apply: the jobs kept the rate that they set, 95 per second, and their I/Os did not wait";
    paced(200_000, 150, |_| ()).assert(LIMITS, Passed, note);
    let describes = "reached 95 per second, so the figures describe this limit";
    // A busy machine: the processors delay, and no I/O waits for a tick of the kernel.
    paced(900_000, 90, |_| ()).assert(LIMITS, Passed, note);
    paced(1_100_000, 90, |_| ()).assert(LIMITS, Suspect, describes);
    paced(9_000_000, 8_000, |_| ()).assert(LIMITS, Passed, note);
    // Four in a hundred waited.
    let some_wait = |phase: &mut Phase| phase.records[0].ops[0].latency.total.record_many(20_000_000, 400);
    paced(200_000, 90, some_wait).assert(LIMITS, Suspect, describes);
    paced(12_000_000, 11_000, |_| ()).assert(LIMITS, Suspect, describes);
    paced(200_000, 150, |phase| phase.records[0].backlog_count = 500).assert(LIMITS, Suspect, describes);
    paced(200_000, 150, |phase| phase.jobs[0].pace = None).assert(LIMITS, Suspect, describes);
    paced(200_000, 150, |phase| phase.jobs[0].direct = DirectPolicy::Off).assert(LIMITS, Suspect, describes);
    // The processors delay more than a tick, but the trace shows who submitted the requests.
    paced(1_100_000, 90, |phase| phase.trace = Some(of_own_threads(180, 3))).assert(LIMITS, Passed, note);
    paced(1_100_000, 90, |phase| phase.trace = Some(of_own_threads(180, 16))).assert(LIMITS, Suspect, describes);
    paced(1_100_000, 90, |phase| phase.trace = Some(of_own_threads(47, 0))).assert(LIMITS, Suspect, describes);
    let lost = |phase: &mut Phase| phase.trace = Some(TraceRecord { lost_event_count: 1, ..of_own_threads(180, 0) });
    paced(1_100_000, 90, lost).assert(LIMITS, Suspect, describes);
}

/// A trace of `count` requests of the job, `by_kernel` of which threads of the kernel submitted.
fn of_own_threads(count: u64, by_kernel: u64) -> TraceRecord {
    let sum = |count| RequestSum { count, bytes: count * 4096 };
    let disks = vec!["vda".to_owned()];
    TraceRecord {
        disks,
        window_count: 6,
        window_ns: 1_800_000_000,
        ours: sum(count),
        ours_by_kernel: sum(by_kernel),
        ..TraceRecord::default()
    }
}

/// Goal: a limit that throttles in bursts is named although the mean rate is far below it; a far limit of a slow disk is not.
/// Method: 100 reads of 20 ms at a seventh of the limit, of which the disk needs 0.1 or 19 ms, or whose workers waited for a processor.
#[test]
fn a_limit_that_throttles_bursts_is_named_at_a_rate_far_below_it() {
    let slow = |disk_ms: u64, limit: u64| {
        let mut phase = limited(IoLimitKind::ReadCount, limit, Some(100));
        phase.records[0] = record(vec![op(OpKind::Read, 100, 100 * 4096, 20_000_000)]);
        phase.records[0].threads = ThreadUsage { elapsed_ns: SECOND_NS, ..ThreadUsage::default() };
        phase.observation.devices = vec![delta(counted(100 * 4096, 0, 0))];
        phase.observation.devices[0].measured.read_ms = disk_ms;
        phase.observation.process_read_bytes = Some(100 * 4096);
        phase
    };
    let judgement = slow(10, 700).judge();
    judgement.assert(
        LIMITS,
        Suspect,
        "reached 100 per second, and an I/O took 20.0 ms, of which the disk 100 µs: it was throttled",
    );
    slow(1_900, 700).judge().assert(LIMITS, Passed, "far above the 100 per second");
    slow(10, 7_000).judge().assert(LIMITS, Passed, "far above the 100 per second");
    let mut waiting = slow(10, 700);
    let waited = ProcessorWait { wait_ns: SECOND_NS / 2, run_count: 1, involuntary_switch_count: 1 };
    waiting.records[0].threads.waiting = Some(waited);
    waiting.judge().assert(LIMITS, Passed, "far above");
}

#[test]
fn a_limit_of_reads_per_second_is_compared_with_reads_and_one_of_writes_not_with_them() {
    let reads = limited(IoLimitKind::ReadCount, 110_000, Some(102_400)).judge();
    reads.assert(
        LIMITS,
        Suspect,
        "limits reads of vda to 110,000 per second; its processes reached 102,400 per second",
    );
    limited(IoLimitKind::WriteBytes, MIB, Some(0)).judge().assert(LIMITS, Passed, "did no such I/O");
}

#[test]
fn where_the_group_is_not_counted_the_calls_results_are_the_measure() {
    limited(IoLimitKind::ReadBytes, 500 * MIB, None).judge().assert(LIMITS, Suspect, "reached 400 MiB/s");
    limited(IoLimitKind::ReadCount, 900_000, None).judge().assert(LIMITS, Passed, "above the 102,400 per second");
}

#[test]
fn a_weight_is_a_note_until_it_delays_the_group() {
    let mut phase = limited(IoLimitKind::CostWeight, 25, None);
    phase.judge().assert(LIMITS, Passed, "limits its use of vda to weight 25 (io.cost).");
    phase.observation.limited[0].delayed_ns = Some(40_000_000);
    phase.judge().assert(LIMITS, Passed, "weight 25");
    phase.observation.limited[0].delayed_ns = Some(60_000_000);
    phase.judge().assert(LIMITS, Suspect, "io.cost delayed its I/O for 60.0 ms");
}

#[test]
fn without_limits_the_check_passes_and_unknown_ones_are_not_seen() {
    let mut phase = Phase::honest_reads();
    phase.judge().assert(LIMITS, Passed, "No control group limits I/O");
    phase.targets[0].io_limits = Fact::unknown("no control group of this process is mounted");
    let judgement = phase.judge();
    judgement.assert(LIMITS, NotSeen, "unknown: no control group of this process is mounted.");
    assert_eq!(judgement.verdict, Verdict::Supported);
    phase.jobs[0].engine = EngineKind::Null;
    phase.judge().assert(LIMITS, NotApplicable, "");
}

// ---------------------------------------------------------------------------------------------
// Stops of the tool

const STOPS: &str = "stops";
const MS: u64 = 1_000_000;

/// Reads for 6 s; the thread that follows the phase slept from 1.2 s to 3.3 s instead of 0.2 s, `queued_ms` of it in the run
/// queue. I/Os completed in the intervals that `has_ios` names by the number of their hundredth.
fn stopped(queued_ms: u64, has_ios: impl Fn(u64) -> bool) -> Phase {
    let mut phase = Phase::honest_reads();
    phase.elapsed_ns = 6 * SECOND_NS;
    phase.records[0].elapsed_ns = 6 * SECOND_NS;
    let row = |index: u64| SeriesRow {
        end_ns: (index + 1) * 100 * MS,
        span_ns: 100 * MS,
        read_count: if has_ios(index) { 1_700 } else { 0 },
        read_bytes: if has_ios(index) { 1_700 * 4096 } else { 0 },
        write_count: 0,
        write_bytes: 0,
        other_count: 0,
        trim_count: 0,
        trim_bytes: 0,
        latency_ns_p50: 90_000,
        latency_ns_p99: 150_000,
        latency_ns_max: 200_000,
    };
    phase.records[0].series = (0..60).map(row).collect();
    let least_ns = (1_900 - queued_ms) * MS;
    let stop = Stop { from_ns: 1_200 * MS, until_ns: 3_300 * MS, least_ns, most_ns: least_ns + 200 * MS };
    phase.observation.stops = Some(vec![stop]);
    let delta = &mut phase.observation.devices[0];
    (delta.measured_ns, delta.measured.busy_ms) = (6 * SECOND_NS, 3_900);
    phase
}

/// Intervals outside of a stop from 1.3 s to 3.3 s.
fn outside(index: u64) -> bool {
    !(13..33).contains(&index)
}

#[test]
fn a_stop_of_the_tool_is_named_with_its_time_and_not_charged_to_the_disk() {
    let mut phase = stopped(0, outside);
    phase.observation.continue_count = 1;
    let judgement = phase.judge();
    judgement.assert(STOPS, Suspect, "This tool was stopped for 2.0 s, 1.2 s after the phase began");
    judgement.assert(
        STOPS,
        Suspect,
        "no I/O completed, and nothing was in flight at the disks. Cause: a signal such as SIGSTOP",
    );
    judgement.assert("steadiness", Passed, "apart from the time for which this tool was stopped");
    assert!(!judgement.report().contains("a cache that"), "{}", judgement.report());
    assert_eq!(judgement.verdict, Verdict::Suspect);
    phase.observation.devices[0].measured.busy_ms = 5_900;
    phase.judge().assert(STOPS, Suspect, "no I/O completed. Cause");
}

#[test]
fn the_cause_of_a_stop_is_named_as_far_as_it_left_a_trace() {
    let mut phase = stopped(0, outside);
    phase.judge().assert(STOPS, Suspect, "a paused virtual machine, a frozen control group or a debugger");
    phase.observation.clock_step_ns = 2_000 * MS as i64;
    phase.judge().assert(STOPS, Suspect, "the virtual machine was paused, and its time of day was set afterwards");
    phase.observation.tracer = Some("`gdb`, process 12".to_owned());
    phase.judge().assert(STOPS, Suspect, "Cause: a debugger or tracer (`gdb`, process 12)");
}

#[test]
fn workers_that_went_on_were_not_stopped() {
    let judgement = stopped(0, |_| true).judge();
    judgement.assert(STOPS, Passed, "was stopped, but the workers went on");
    assert_eq!(judgement.verdict, Verdict::Supported);
    // The thread that follows the phase waited for a processor for 0.3 s after the stop, while the workers went on.
    let resumed_earlier = |index: u64| !(13..30).contains(&index);
    stopped(300, resumed_earlier).judge().assert(STOPS, Suspect, "was stopped for 1.7 s");
    // One interval with I/Os of twenty lies just before the stop, or just after it.
    stopped(0, |index| outside(index) || index == 29).judge().assert(STOPS, Suspect, "was stopped for 2.0 s");
}

/// Goal: short stops count together, if the workers' clocks contain them, too; a thread that alone was held is no stop.
/// Method: six gaps of 0.15 s in 3 s; the slowest I/O of each interval took 150 ms, or 2 ms. Then a hypervisor that took that time.
#[test]
fn short_stops_are_seen_in_their_sum() {
    let six = |latency_ns_max| {
        let mut phase = stopped(0, |_| true);
        phase.elapsed_ns = 3 * SECOND_NS;
        phase.records[0].series.truncate(30);
        phase.records[0].series.iter_mut().for_each(|row| row.latency_ns_max = latency_ns_max);
        let stop = |index: u64| {
            let from_ns = (index * 500 + 95) * MS;
            Stop { from_ns, until_ns: from_ns + 160 * MS, least_ns: 140 * MS, most_ns: 160 * MS }
        };
        phase.observation.stops = Some((0..6).map(stop).collect());
        phase
    };
    let judgement = six(151 * MS).judge();
    judgement.assert(STOPS, Suspect, "This tool was stopped 6 times for 0.90 s together, at most 0.15 s each");
    let check = judgement.check(STOPS);
    assert_eq!((check.explained_percent, check.brief.as_str()), (Some(30), "stopped for 900 ms"));
    six(2 * MS).judge().assert(STOPS, Passed, "they went on, or had none in flight");
    // A job with a rate had no I/O in flight: those that became due meanwhile were issued late.
    let late = |count, by_ns| {
        let mut phase = six(2 * MS);
        let arrivals = Arrivals::Linear;
        phase.jobs[0].pace = Some(Pace { ios_per_s: Some(1e3), bytes_per_s: None, of_writes: None, arrivals });
        phase.records[0].pacing_lateness.record_many(by_ns, count);
        phase.judge()
    };
    late(6, 100 * MS).assert(STOPS, Suspect, "stopped 6 times for 0.90 s together");
    late(5, 100 * MS).assert(STOPS, Passed, "they went on, or had none in flight");
    late(6, 60 * MS).assert(STOPS, Passed, "they went on, or had none in flight");
    let mut stolen = six(151 * MS);
    stolen.observation.steal_share = Some(0.3);
    stolen.judge().assert(STOPS, Passed, "stopped 6 times");
}

/// Goal: a short stop across the end of the phase is seen, although the interval with its slow I/O is not complete.
/// Method: a gap from 2.9 s to 3.1 s; the whole intervals end at 2.9 s, and the slowest I/O of the job took 190 ms, or 2 ms, or 190 ms in an
/// earlier interval, or in a job that had ended.
#[test]
fn a_short_stop_across_the_end_is_found_in_the_slowest_io() {
    let ending = |latency_ns, change: fn(&mut Phase)| {
        let mut phase = stopped(0, |_| true);
        phase.elapsed_ns = 3 * SECOND_NS;
        phase.records[0].series.truncate(29);
        phase.records[0].ops = vec![op(OpKind::Read, 1, 4096, latency_ns)];
        let (from_ns, until_ns) = (2_900 * MS, 3_100 * MS);
        phase.observation.stops = Some(vec![Stop { from_ns, until_ns, least_ns: 180 * MS, most_ns: 200 * MS }]);
        change(&mut phase);
        phase.judge()
    };
    ending(190 * MS, |_| ()).assert(STOPS, Suspect, "This tool was stopped for 0.19 s, 2.9 s after the phase began");
    let went_on = "they went on, or had none in flight";
    ending(2 * MS, |_| ()).assert(STOPS, Passed, went_on);
    ending(190 * MS, |phase| phase.records[0].series[5].latency_ns_max = 190 * MS).assert(STOPS, Passed, went_on);
    ending(190 * MS, |phase| phase.records[0].elapsed_ns = SECOND_NS).assert(STOPS, Passed, went_on);
}

#[test]
fn a_stop_of_less_than_one_percent_is_a_note() {
    let mut phase = stopped(0, outside);
    phase.elapsed_ns = 600 * SECOND_NS;
    let judgement = phase.judge();
    judgement.assert(STOPS, Passed, "This tool was stopped for 2.0 s");
    assert_eq!(judgement.check("steadiness").outcome, Passed, "{}", judgement.report());
}

#[test]
fn a_suspend_is_named_and_an_honest_run_has_no_stop() {
    let mut phase = Phase::honest_reads();
    phase.judge().assert(STOPS, NotSeen, "not observed");
    phase.observation.stops = Some(Vec::new());
    phase.observation.suspended_ns = 50;
    let judgement = phase.judge();
    judgement.assert(STOPS, Passed, "This tool was not stopped.");
    assert_eq!(judgement.verdict, Verdict::Supported);
    phase.observation.suspended_ns = 3_600 * SECOND_NS;
    phase.judge().assert(STOPS, Suspect, "The machine was suspended for 60.0 min during the phase.");
}

#[test]
fn a_constant_slew_of_the_kernels_clock_is_suspect() {
    let mut phase = Phase::honest_reads();
    phase.observation.clock_drift = Some(0.0);
    phase.observation.clock_slew = Some(5e-4);
    phase.judge().assert("clock_and_cpu", Passed, "precise enough");
    phase.observation.clock_slew = Some(0.1);
    let judgement = phase.judge();
    judgement.assert("clock_and_cpu", Suspect, "runs 10.0 % fast against the hardware's counter (adjtimex)");
    let found = &judgement.check("clock_and_cpu").found;
    assert!(found.contains("kernel's clock +100000 ppm from the hardware's"), "{found}");
    phase.observation.clock_slew = Some(-0.02);
    phase.judge().assert("clock_and_cpu", Suspect, "runs 2.0 % slow");
}
