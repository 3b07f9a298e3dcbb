//! Loops that steer a job while it runs, exact on a modelled disk.

use crate::common::{Job, MS, S, assert_clean, assert_consistent, op, side_by_side};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trueio_engine::{Snapshot, SpanFigures, SpanJudge};
use trueio_model::{
    Arrivals, BlockSizes, Checksum, Criterion, CriterionPlan, CriterionVariable, DepthSearch, Distribution, EngineKind,
    FlowPlan, Guard, LatencyTarget, OpKind, Order, Pace, TrimVerify, Verify,
};

fn target(mut job: Job, target_ns: u64, percent: f64, keeps_running: bool) -> Job {
    job.plan.control.latency_target = Some(LatencyTarget { target_ns, window_ns: 100 * MS, percent, keeps_running });
    job
}

fn depths(search: &DepthSearch) -> Vec<u32> {
    search.windows.iter().map(|window| window.depth).collect()
}

/// Goal: the highest queue depth that keeps a latency is found, and the job ends with it.
/// Method: four channels of 1 ms. Sixteen in flight take 4 ms each, eight 2 ms, nine a mean of 2.25 ms: of them a fifth
/// or more take 3 ms.
#[test]
fn the_highest_depth_that_keeps_the_target_is_found_and_ends_the_job() {
    let report = target(Job::simulated(MS, 4).depth(16).time(60 * S), 2 * MS, 95.0, false).run();
    assert_clean(&report, "search");
    assert_consistent(&report, "search");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found), (8, true), "{search:?}");
    assert_eq!(depths(search), [16, 8, 12, 10, 9], "{search:?}");
    // Five windows, and what was in flight at the end of the last.
    assert!((500 * MS..504 * MS).contains(&report.elapsed_ns), "{}", report.elapsed_ns);
    assert!(!report.was_stopped);
    let max = op(&report, OpKind::Read).latency.total.max_ns();
    assert_eq!(max, Some(4 * MS), "nothing of the search is hidden");
}

#[test]
fn a_depth_that_keeps_the_target_at_once_ends_the_job_after_one_window() {
    let report = target(Job::simulated(MS, 4).depth(4).time(60 * S), 2 * MS, 100.0, false).run();
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found, depths(search)), (4, true, vec![4]));
    assert_eq!(report.elapsed_ns, 100 * MS);
}

/// Goal: with `latency_run` the depth follows the device, and the job runs to its own end.
/// Method: after one second the device takes three times as long.
#[test]
fn a_job_that_keeps_running_lowers_its_depth_when_the_device_slows_down() {
    let mut job = target(Job::simulated(MS, 4).depth(16).time(3 * S), 3 * MS, 90.0, true);
    job.device().slowdowns = vec![(S, 3.0)];
    let report = job.run();
    assert_clean(&report, "slower");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert!(report.elapsed_ns >= 3 * S, "{}", report.elapsed_ns);
    assert!(depths(search)[..8].contains(&12), "{search:?}");
    assert_eq!(search.depth, 4, "{search:?}");
}

#[test]
fn a_target_that_one_io_at_a_time_misses_lets_the_job_run_to_its_own_end() {
    let report = target(Job::simulated(5 * MS, 1).depth(8).time(S), MS, 99.0, false).run();
    assert_clean(&report, "missed");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found), (1, false));
    assert_eq!(depths(search)[..5], [8, 4, 2, 1, 1]);
    assert!(report.elapsed_ns >= S);
}

#[test]
fn a_target_for_every_io_that_one_at_a_time_misses_ends_the_job_as_failed() {
    let report = target(Job::simulated(5 * MS, 1).depth(8).time(S), MS, 100.0, false).run();
    let sentence = report.fatal.expect("it cannot be kept");
    assert!(sentence.contains("`latency_target` of 1.00 ms"), "{sentence}");
    // A window ends with its first late I/O: 8 in flight, 4, 2, and one after the rest of the last.
    assert!(report.elapsed_ns < 150 * MS, "{}", report.elapsed_ns);
}

#[test]
fn the_search_begins_after_the_ramp() {
    let mut job = target(Job::simulated(MS, 4).depth(16).time(60 * S), 2 * MS, 95.0, false);
    job.plan.limits.ramp_ns = 250 * MS;
    let report = job.run();
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, depths(search)[0]), (8, 16), "{search:?}");
    assert!((500 * MS..504 * MS).contains(&report.elapsed_ns), "{}", report.elapsed_ns);
}

#[test]
fn io_over_a_target_is_still_counted_once_in_every_figure() {
    let report = target(Job::simulated(MS, 4).depth(16).mixed(50).time(S), 2 * MS, 95.0, true).run();
    assert_clean(&report, "mixed");
    assert_consistent(&report, "mixed");
}

/// Ends the job after `most` spans.
#[derive(Debug)]
struct Counted {
    spans: Mutex<Vec<SpanFigures>>,
    left: Mutex<Option<u64>>,
    most: usize,
}

impl SpanJudge for Counted {
    fn span(&self, index: u64, figures: SpanFigures) -> bool {
        let mut spans = self.spans.lock().unwrap();
        assert_eq!(index, spans.len() as u64);
        spans.push(figures);
        spans.len() >= self.most
    }

    fn is_over(&self) -> bool {
        false
    }

    fn leaves(&self, index: u64) {
        *self.left.lock().unwrap() = Some(index);
    }
}

/// Goal: after the ramps, spans follow each other without a gap, and the job ends with the span that the judge accepts.
/// Method: one I/O per millisecond; a ramp of 50 ms that is not measured, and one of 100 ms for the judge.
#[test]
fn spans_contain_all_ios_completed_in_them_and_the_judge_ends_the_job() {
    let judge = Arc::new(Counted { spans: Mutex::default(), left: Mutex::default(), most: 4 });
    let mut job = Job::simulated(MS, 1).mixed(50).time(60 * S);
    job.plan.limits.ramp_ns = 50 * MS;
    let criterion = Criterion { variable: CriterionVariable::Ios, is_slope: false, limit: 1.0, is_percent: true };
    job.plan.control.criterion =
        Some(CriterionPlan { criterion, window_ns: 400 * MS, span_ns: 200 * MS, ramp_ns: 100 * MS });
    job.judge = Some(judge.clone());
    let report = job.run();
    assert_clean(&report, "spans");
    assert_consistent(&report, "spans");
    let span = SpanFigures {
        io_count: 200,
        byte_count: 200 * 4096,
        latency_sum_ns: 200 * u128::from(MS),
        elapsed_ns: 200 * MS,
    };
    assert_eq!(*judge.spans.lock().unwrap(), [span; 4]);
    assert_eq!(*judge.left.lock().unwrap(), Some(4));
    assert_eq!((report.elapsed_ns, report.was_stopped), (900 * MS, false));
}

fn in_flow(mut job: Job, weight: u32, sleep_ns: u64) -> Job {
    job.plan.control.flow = Some(FlowPlan { id: 0, weight, sleep_ns, watermark: FlowPlan::usual_watermark() });
    job
}

/// Goal: a job that ends others does so before it leaves a shared flow: no other job continues without it.
/// Method: it leaves the judge of its spans at the same point as its flow.
#[test]
fn a_job_that_ends_others_ends_them_before_it_leaves_them() {
    #[derive(Debug)]
    struct Left {
        stop: Arc<AtomicBool>,
        was_stopped: AtomicBool,
    }
    impl SpanJudge for Left {
        fn span(&self, _: u64, _: SpanFigures) -> bool {
            false
        }
        fn is_over(&self) -> bool {
            false
        }
        fn leaves(&self, _: u64) {
            self.was_stopped.store(self.stop.load(Relaxed), Relaxed);
        }
    }
    for ends_others in [true, false] {
        let mut job = Job::simulated(MS, 1).ios(10).with(|plan| plan.scheduling.ends_others = ends_others);
        let criterion = Criterion { variable: CriterionVariable::Ios, is_slope: false, limit: 1.0, is_percent: true };
        job.plan.control.criterion =
            Some(CriterionPlan { criterion, window_ns: 400 * MS, span_ns: 200 * MS, ramp_ns: 0 });
        let left = Arc::new(Left { stop: job.stop.clone(), was_stopped: AtomicBool::new(false) });
        job.judge = Some(left.clone());
        assert_clean(&job.run(), "ends others");
        assert_eq!(left.was_stopped.load(Relaxed), ends_others);
    }
}

/// Goal: the I/O counts of the jobs of a flow are proportional to their weights, at any speed and queue depth.
/// Method: the job that ends ends the others, before it leaves the flow.
#[test]
fn jobs_of_one_flow_keep_their_proportions_at_any_speed() {
    for (depth, sleep_ns) in [(1, 0), (8, 0), (4, 100_000)] {
        let ends = |job: Job| job.with(|plan| plan.scheduling.ends_others = true);
        let jobs = [
            ends(in_flow(Job::simulated(MS, 4).depth(depth).ios(3_000), 3, sleep_ns)),
            in_flow(Job::simulated(MS / 100, 4).depth(depth).ios(1 << 40), 1, sleep_ns),
            in_flow(Job::simulated(MS / 7, 2).depth(depth).ios(1 << 40), 2, sleep_ns),
        ];
        let reports = side_by_side(&jobs, false);
        let counts: Vec<u64> = reports.iter().map(|report| op(report, OpKind::Read).io_count).collect();
        assert_eq!(counts[0], 3_000);
        for (count, expected) in [(counts[1], 1_000), (counts[2], 2_000)] {
            assert!(count.abs_diff(expected) <= 40, "{counts:?} at depth {depth}");
        }
    }
}

/// Goal: a job that waits for another begins when that has ended.
/// Method: the job that waits ends the others; the first one has still done all its I/Os.
#[test]
fn a_job_that_waits_begins_when_the_other_has_ended() {
    let null = || Job::new(EngineKind::Null);
    let jobs = [null().ios(200_000), null().ios(10).with(|plan| plan.scheduling.ends_others = true)];
    let reports = side_by_side(&jobs, true);
    assert_eq!(reports.iter().map(|report| op(report, OpKind::Read).io_count).collect::<Vec<_>>(), [200_000, 10]);
    assert!(reports.iter().all(|report| !report.was_stopped && report.fatal.is_none()), "{reports:?}");
}

/// Goal: reads and writes keep rates of their own, by I/Os and by bytes, and neither is late because of the other.
/// Method: a much faster disk; the I/Os due in two seconds are those done in them.
#[test]
fn reads_and_writes_keep_rates_of_their_own() {
    let paced = |ios_per_s, bytes_per_s, of_writes| Pace {
        ios_per_s,
        bytes_per_s,
        of_writes: Some(of_writes),
        arrivals: Arrivals::Linear,
    };
    for (pace, reads, writes) in [
        (paced(Some(300.0), None, 100.0), 600, 200),
        (paced(Some(7.0), None, 1_000.0), 14, 2_000),
        (paced(None, Some(4096.0 * 50.0), 16_384.0 * 200.0), 100, 400),
    ] {
        let mut job = Job::simulated(MS / 10, 4).depth(4).mixed(50).time(2 * S).region(64 << 20);
        job.plan.pattern.write_sizes = BlockSizes::Fixed(16 << 10);
        job.plan.pattern.order = Order::Random { distribution: Distribution::Uniform, each_block_once: false };
        job.plan.pace = Some(pace);
        let report = job.run();
        assert_clean(&report, "rates");
        let count = |kind| op(&report, kind).io_count;
        // One more where the last falls due a rounding error before the end.
        let (read_count, write_count) = (count(OpKind::Read), count(OpKind::Write));
        assert!((reads..=reads + 1).contains(&read_count), "{pace:?}: {read_count}");
        assert!((writes..=writes + 1).contains(&write_count), "{pace:?}: {write_count}");
        assert_eq!(report.backlog_count, 0, "{pace:?}");
        for kind in [OpKind::Read, OpKind::Write] {
            let waited = op(&report, kind).latency.from_intended.max_ns().expect("it has some");
            // At most two may be due at the same time.
            assert!(waited <= MS / 5, "{pace:?}: {waited}");
        }
    }
}

/// Goal: reads keep their rate and writes without a rate use the remaining time, and vice versa; if the mix has no
/// writes, reads wait.
#[test]
fn what_has_no_rate_fills_what_the_other_leaves() {
    let run = |read_percent, reads: f64, writes: f64| {
        let mut job = Job::simulated(MS, 1).mixed(read_percent).time(2 * S).region(64 << 20);
        let ios_per_s = Some(reads);
        job.plan.pace =
            Some(Pace { ios_per_s, bytes_per_s: None, of_writes: Some(writes), arrivals: Arrivals::Linear });
        let report = job.run();
        assert_clean(&report, "rates");
        let count = |kind| op(&report, kind).io_count;
        let waited = |kind| op(&report, kind).latency.from_intended.max_ns().unwrap_or(0);
        (count(OpKind::Read), count(OpKind::Write), waited(OpKind::Read), waited(OpKind::Write))
    };
    // An I/O takes 1 ms: there is room for 2000.
    let (reads, writes, _, free) = run(50, 100.0, 0.0);
    assert!((195..=201).contains(&reads) && (1_790..=1_810).contains(&writes), "{reads} {writes}");
    assert!(free <= MS + MS / 10, "what is never late has not waited: {free}");
    let (reads, writes, ..) = run(50, 0.0, 100.0);
    assert!((195..=201).contains(&writes) && (1_790..=1_810).contains(&reads), "{reads} {writes}");
    // More than the mix draws is not done.
    let (reads, writes, ..) = run(10, 1_000.0, 0.0);
    assert!((140..=260).contains(&reads) && reads + writes >= 1_990, "{reads} {writes}");
    let (reads, writes, ..) = run(100, 100.0, 0.0);
    assert!((199..=201).contains(&reads) && writes == 0, "{reads} {writes}");
}

/// Goal: the rate of `trimwrite` is that of its writes, as in fio: a trim is issued when its write is due.
#[test]
fn a_trim_before_a_write_is_not_in_the_arrival_schedule() {
    let mut job = Job::simulated(MS / 10, 4).op(OpKind::Write).sequential().time(2 * S).region(64 << 20);
    job.plan.pattern.steps.trims_first = true;
    job.plan.pace =
        Some(Pace { ios_per_s: Some(100.0), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Linear });
    let report = job.run();
    assert_clean(&report, "rates");
    let (trims, writes) = (op(&report, OpKind::Trim).io_count, op(&report, OpKind::Write).io_count);
    assert!((200..=201).contains(&trims) && (200..=201).contains(&writes), "{trims} {writes}");
}

/// Goal: I/Os due during a stall are caught up in each direction, and their delay is reported.
#[test]
fn a_stall_is_charged_to_reads_and_writes_alike_and_both_catch_up() {
    let mut job = Job::simulated(MS / 10, 4).depth(4).mixed(50).time(2 * S);
    job.plan.pace =
        Some(Pace { ios_per_s: Some(300.0), bytes_per_s: None, of_writes: Some(100.0), arrivals: Arrivals::Poisson });
    let steady = job.run();
    job.device().stalls = vec![(S / 2, S / 2)];
    let stalled = job.run();
    for kind in [OpKind::Read, OpKind::Write] {
        assert_eq!(op(&stalled, kind).io_count, op(&steady, kind).io_count, "{kind}");
        assert!(op(&stalled, kind).latency.from_intended.max_ns() > Some(S / 4), "{kind}");
    }
    let (reads, writes) = (op(&steady, OpKind::Read).io_count, op(&steady, OpKind::Write).io_count);
    assert!((500..700).contains(&reads) && (140..260).contains(&writes), "{reads} {writes}");
}

#[test]
fn a_minimum_rate_of_writes_ends_a_job_whose_reads_are_fast_enough() {
    let mut job = Job::simulated(MS, 1).mixed(90).time(2 * S);
    job.plan.guard = Guard { ios_per_s_min: 500, of_writes: Some((0, 300)), cycle_ns: 500 * MS, ..Guard::default() };
    let sentence = job.run().fatal.expect("writes are a tenth");
    assert!(sentence.contains("of writes, and `rate_iops_min` is 300"), "{sentence}");
    job.plan.guard.of_writes = Some((0, 30));
    assert_eq!(job.run().fatal, None);
}

fn judged(mut job: Job, most: usize) -> (Job, Arc<Counted>) {
    let judge = Arc::new(Counted { spans: Mutex::default(), left: Mutex::default(), most });
    let criterion = Criterion { variable: CriterionVariable::Ios, is_slope: false, limit: 1.0, is_percent: true };
    job.plan.control.criterion = Some(CriterionPlan { criterion, window_ns: 400 * MS, span_ns: 200 * MS, ramp_ns: 0 });
    job.judge = Some(judge.clone());
    (job, judge)
}

#[test]
fn a_worker_that_cannot_be_made_leaves_its_group() {
    let (job, judge) = judged(Job::new(EngineKind::Simulated), 4);
    assert!(job.run().fatal.is_some());
    assert_eq!(*judge.left.lock().unwrap(), Some(0));
}

/// Goal: a stall results in spans without I/O, and later spans keep their numbers.
/// Method: one I/O per millisecond; from 250 ms on the disk stalls for 600 ms.
#[test]
fn spans_of_a_stall_are_empty_and_the_next_ones_keep_their_numbers() {
    let (mut job, judge) = judged(Job::simulated(MS, 1).time(60 * S), 6);
    job.device().stalls = vec![(250 * MS, 600 * MS)];
    let report = job.run();
    assert_clean(&report, "stalled");
    let counts: Vec<u64> = judge.spans.lock().unwrap().iter().map(|span| span.io_count).collect();
    // An I/O that completes at the end of a span belongs to the next one.
    assert_eq!(counts, [199, 51, 0, 0, 149, 200]);
    assert!(judge.spans.lock().unwrap().iter().all(|span| span.elapsed_ns == 200 * MS));
    assert_eq!((report.elapsed_ns, *judge.left.lock().unwrap()), (1200 * MS, Some(6)));
}

/// Goal: the minimum rate applies while a job issues I/Os, and the maximum latency to its transfers.
/// Method: ten writes, and a sync call that hangs for 3 s; then a write that hangs.
#[test]
fn a_slow_sync_call_at_the_end_is_no_slow_io() {
    let mut job = Job::simulated(MS, 1).op(OpKind::Write).ios(10);
    job.plan.flush.end_fsync = true;
    job.plan.guard = Guard { ios_per_s_min: 100, cycle_ns: 500 * MS, latency_ns_max: 100 * MS, ..Guard::default() };
    job.device().stalls = vec![(10 * MS, 3 * S)];
    let report = job.run();
    assert_clean(&report, "a slow sync call");
    assert!(report.elapsed_ns >= 3 * S);
    job.plan.guard.ios_per_s_min = 0;
    job.device().stalls = vec![(9 * MS, 3 * S)];
    let sentence = job.run().fatal.expect("the last write took 3 s");
    assert!(sentence.contains("`max_latency`"), "{sentence}");
}

/// Goal: a snapshot request returns the final results of a worker that has ended at once, also of one without figures.
#[test]
fn results_of_a_worker_that_has_ended_are_its_last() {
    let asked = |mut job: Job| {
        let snapshot = Arc::new(Snapshot::default());
        job.snapshot = Some(snapshot.clone());
        let report = job.run();
        snapshot.ask();
        (report, snapshot.wait(Duration::ZERO).expect("it is there"))
    };
    let (report, snapshot) = asked(Job::simulated(MS, 1).mixed(50).ios(1_234));
    assert_eq!(
        snapshot.ops.iter().map(|op| op.io_count).collect::<Vec<_>>(),
        [op(&report, OpKind::Read).io_count, op(&report, OpKind::Write).io_count]
    );
    assert_eq!((snapshot.series, snapshot.elapsed_ns), (report.series, report.elapsed_ns));
    assert!(asked(Job::new(EngineKind::Simulated)).1.ops.is_empty());
}

fn with_backlog(change: impl FnOnce(&mut Verify)) -> Job {
    let mut verify = Verify { reads_back: false, ..Verify::new(Checksum::Null) };
    change(&mut verify);
    Job::simulated(MS, 1).op(OpKind::Write).sequential().region(64 << 20).with(|plan| {
        plan.verify = Some(verify);
        // Otherwise buffers of an engine that keeps nothing are not made ready.
        plan.content.refill = true;
    })
}

/// Goal: reading back a backlog ends with the job's time, and when the run is stopped.
/// Method: a thousand writes of a millisecond, then as many reads, in the middle of which the job is to end.
#[test]
fn a_backlog_ends_with_its_job() {
    let of_trims = TrimVerify { percent: 100, backlog: 1_000, batch: 0, is_zero: false };
    for (name, job) in [
        ("reads", with_backlog(|verify| verify.backlog = 1_000)),
        ("trims", with_backlog(|verify| verify.trim = Some(of_trims))),
    ] {
        let job = job.time(1500 * MS);
        let report = job.run();
        assert_clean(&report, name);
        assert_eq!(op(&report, OpKind::Write).io_count, 1_000, "{name}");
        assert!((1500 * MS..1502 * MS).contains(&report.elapsed_ns), "{name}: {}", report.elapsed_ns);
        if name == "trims" {
            assert!(op(&report, OpKind::Trim).io_count.abs_diff(500) <= 1, "{report:?}");
        }
        // The judge stops it.
        let (mut job, _) = judged(job.time(60 * S), 0);
        job.judge = Some(Arc::new(Stops(job.stop.clone())));
        let report = job.run();
        assert!(report.was_stopped, "{name}");
        assert!((1200 * MS..1202 * MS).contains(&report.elapsed_ns), "{name}: {}", report.elapsed_ns);
    }
}

/// Requests the run's end with the sixth span.
#[derive(Debug)]
struct Stops(Arc<AtomicBool>);

impl SpanJudge for Stops {
    fn span(&self, index: u64, _: SpanFigures) -> bool {
        self.0.fetch_or(index == 5, Relaxed);
        false
    }

    fn is_over(&self) -> bool {
        false
    }

    fn leaves(&self, _: u64) {}
}

/// Goal: reads and trims of verification are logged like the job's own I/Os.
#[test]
fn reads_and_trims_of_a_backlog_are_in_the_logs() {
    let job = || {
        with_backlog(|verify| {
            verify.backlog = 10;
            verify.trim = Some(TrimVerify { percent: 100, backlog: 10, batch: 0, is_zero: false });
        })
        // 100 writes, and what is read back and trimmed.
        .ios(300)
    };
    let (report, issued) = job().run_issued();
    assert_clean(&report, "issued");
    let ops: Vec<OpKind> = issued.iter().map(|io| io.step.request().op).collect();
    let of_ten = [[OpKind::Write; 10], [OpKind::Read; 10], [OpKind::Trim; 10]].concat();
    assert_eq!(ops, of_ten.repeat(10));
    assert!(issued.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    assert!(issued[..10].iter().zip(&issued[10..]).all(|(a, b)| a.step.request().offset == b.step.request().offset));
    let (report, logged) = job().run_logged();
    let trims: Vec<_> = logged.iter().filter(|io| io.op == OpKind::Trim).collect();
    assert_eq!(trims.len() as u64, op(&report, OpKind::Trim).io_count);
    assert!(trims.iter().all(|io| io.total_ns == MS && io.bytes == 4096), "{trims:?}");
}

/// Goal: a permitted depth that was never reached is not reported as measured.
#[test]
fn a_depth_that_was_never_reached_is_reported_as_such() {
    let mut job = target(Job::simulated(MS, 4).depth(32).time(10 * S), 2 * MS, 100.0, false);
    job.plan.queue.submit_batch = Some(1);
    job.plan.pace =
        Some(Pace { ios_per_s: Some(100.0), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Linear });
    let sentence = job.run().engine_notes.concat();
    assert!(sentence.contains("32 that the job asks for keeps it, although no more than 1 were"), "{sentence}");
    let reached = target(Job::simulated(MS, 4).depth(4).time(10 * S), 2 * MS, 100.0, false).run().engine_notes.concat();
    assert!(reached.contains("the queue depth of 4 that the job asks for keeps it (windows"), "{reached}");
}
