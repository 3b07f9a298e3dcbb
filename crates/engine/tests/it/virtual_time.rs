//! Time itself: pacing, ramps, pauses, deadlines and stalls, exact to the nanosecond, on a modelled
//! disk whose time passes only when it is waited for.

use crate::common::{Job, KIB, MIB, MS, S, assert_clean, assert_consistent, op};
use std::time::Duration;
use trueio_model::{Arrivals, BlockSizes, EngineKind, OpKind, Pace};

const US: u64 = 1_000;

#[test]
fn a_closed_loop_does_its_channels_over_the_service_time() {
    for (channels, depth, expected) in [(1, 1, 1_000), (4, 4, 4_000), (4, 32, 4_000), (8, 2, 2_000)] {
        let report = Job::simulated(MS, channels).depth(depth).ios(expected).run();
        assert_clean(&report, "closed");
        assert_eq!(op(&report, OpKind::Read).io_count, expected);
        assert_eq!(report.elapsed_ns, S, "{channels} channels, depth {depth}");
    }
}

/// Goal: the number of I/Os in flight is the job's queue depth.
/// Method: Little's law without rounding. Eight are in flight on four channels of 1 ms for 100 ms; at
/// the deadline four have just ended and four go on for 1 ms: 8 · 100 + 4 · 1 = 804 ms of latency.
#[test]
fn the_set_depth_is_the_depth_achieved() {
    let report = Job::simulated(MS, 4).depth(8).time(100 * MS).run();
    assert_clean(&report, "depth");
    assert_eq!(op(&report, OpKind::Read).latency.total.sum_ns(), 804 * u128::from(MS));
    assert_eq!(report.elapsed_ns, 101 * MS);
    assert_eq!(op(&report, OpKind::Read).io_count, 404);
}

/// Goal: depths and batches are counted in their classes, and a depth is never above the set one.
/// Method: twelve at a time on twelve channels: the first twelve are submitted alone, at depths 1 to 12; then
/// all that end together are replaced one by one, or in batches of six.
#[test]
fn depths_and_batches_are_counted_in_their_classes() {
    let report = Job::simulated(MS, 12).depth(12).ios(1_200).run();
    let queue = report.queue.expect("a modelled disk holds a queue");
    assert_eq!(queue.depth.iter().sum::<u64>(), 1_200);
    assert_eq!(queue.depth[..3], [100, 200, 400]);
    assert_eq!(queue.depth[3], 500);
    assert_eq!(queue.submit, [0, 1_200, 0, 0, 0, 0, 0]);
    assert_eq!(queue.complete, [0, 0, 0, 100, 0, 0, 0]);
    let report = Job::simulated(MS, 12).depth(12).with(|plan| plan.queue.submit_batch = Some(6)).ios(1_200).run();
    let queue = report.queue.expect("a modelled disk holds a queue");
    assert_eq!(queue.submit, [0, 0, 200, 0, 0, 0, 0]);
    assert_eq!(queue.depth, [0, 0, 600, 600, 0, 0, 0]);
    assert!(Job::new(EngineKind::Null).ios(10).run().queue.is_none(), "one that blocks has no queue");
}

/// Goal: a queue that was full is filled again only when it has drained to the set mark.
/// Method: one channel of 1 ms, depth 8, low 4: the first eight go out at depths 1 to 8; then four end, a
/// millisecond each, and four follow at depths 5 to 8. Without the mark each that ends is replaced at once.
#[test]
fn a_full_queue_runs_low_before_it_is_filled_again() {
    let run = |low| Job::simulated(MS, 1).depth(8).with(|plan| plan.queue.low = low).ios(408).run();
    let low = run(4);
    assert_clean(&low, "low");
    assert_eq!(low.queue.expect("a queue").depth, [1, 2, 4 + 300, 1 + 100, 0, 0, 0]);
    assert_eq!(low.elapsed_ns, 408 * MS, "the channel is never idle: four are left");
    assert_eq!(run(0).queue.expect("a queue").depth, [1, 2, 4, 401, 0, 0, 0]);
    let empty = run(1).queue.expect("a queue");
    assert_eq!(empty.depth.iter().sum::<u64>(), 408);
    assert!(empty.depth[1] > 100, "almost empty in each turn: {empty:?}");
}

/// Goal: a log has each I/O of the measured part once, and its figures are those of the record.
#[test]
fn a_log_holds_each_io_of_the_measured_part_with_the_latencies_of_the_record() {
    let mut queued = Job::simulated(MS, 4).depth(8).mixed(70).time(100 * MS);
    queued.plan.limits.ramp_ns = 20 * MS;
    let paced = Job::simulated(MS, 1).rate(500.0, Arrivals::Linear).time(100 * MS);
    for (name, job) in [("queued", queued), ("paced", paced), ("blocking", Job::new(EngineKind::Null).ios(10_000))] {
        let (report, ios) = job.run_logged();
        assert_clean(&report, name);
        for op in &report.ops {
            let of: Vec<_> = ios.iter().filter(|io| io.op == op.op).collect();
            assert_eq!(of.len() as u64, op.io_count, "{name}");
            assert_eq!(of.iter().map(|io| io.bytes).sum::<u64>(), op.byte_count, "{name}");
            let total = if name == "paced" { &op.latency.from_intended } else { &op.latency.total };
            let sum = |of: &[&trueio_engine::LoggedIo], ns: fn(&trueio_engine::LoggedIo) -> u64| {
                of.iter().map(|io| u128::from(ns(io))).sum::<u128>()
            };
            assert_eq!(sum(&of, |io| io.total_ns), total.sum_ns(), "{name}");
            assert_eq!(sum(&of, |io| io.completion_ns), op.latency.completion.sum_ns(), "{name}");
        }
        assert!(ios.windows(2).all(|pair| pair[0].end_ns <= pair[1].end_ns), "{name}");
        assert!(ios.iter().all(|io| io.end_ns <= report.elapsed_ns), "{name}");
    }
}

#[test]
fn a_deadline_lets_what_is_in_flight_end_and_issues_nothing_more() {
    let report = Job::simulated(3 * MS, 1).time(100 * MS).run();
    assert_clean(&report, "deadline");
    // 33 have ended after 99 ms; the 34th is in flight at the deadline and ends after 102 ms.
    assert_eq!(op(&report, OpKind::Read).io_count, 34);
    assert_eq!(report.elapsed_ns, 102 * MS);
    assert!(!report.was_stopped);
}

/// Goal: a block that `trimwrite` trimmed is written, also if the time is up or the run is stopped in between.
/// Method: each I/O takes 3 ms, and the deadlines lie within the trim, between trim and write, and within the write. A run that is
/// stopped beforehand does nothing.
#[test]
fn a_trimmed_block_is_written_although_the_time_is_up() {
    for (runtime_ns, ios) in [(97 * MS, 34), (99 * MS, 34), (100 * MS, 34), (102 * MS, 34), (103 * MS, 36)] {
        for depth in [1, 4] {
            let mut job = Job::simulated(3 * MS, 1).depth(depth).time(runtime_ns).op(OpKind::Write);
            job.plan.pattern.steps.trims_first = true;
            let report = job.run();
            assert_clean(&report, "trimwrite");
            let (trims, writes) = (op(&report, OpKind::Trim).io_count, op(&report, OpKind::Write).io_count);
            assert_eq!(trims, writes, "{runtime_ns} ns, depth {depth}");
            if depth == 1 {
                assert_eq!(trims + writes, ios, "{runtime_ns} ns");
            }
        }
    }
    let mut job = Job::simulated(MS, 1).op(OpKind::Write);
    job.plan.pattern.steps.trims_first = true;
    job.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let report = job.run();
    assert_eq!(report.ops.iter().map(|op| op.io_count).sum::<u64>(), 0);
}

#[test]
fn a_deadline_ends_a_job_whose_limits_are_far_and_limits_end_one_whose_deadline_is() {
    let mut job = Job::simulated(MS, 1);
    job.plan.limits.runtime_ns = Some(10 * MS);
    assert_eq!(op(&job.run(), OpKind::Read).io_count, 10);
    job.plan.limits.runtime_ns = Some(S);
    let report = job.run();
    assert_eq!((op(&report, OpKind::Read).io_count, report.elapsed_ns), (256, 256 * MS));
}

#[test]
fn a_ramp_is_left_out_of_every_figure() {
    let mut job = Job::simulated(MS, 1).time(200 * MS);
    job.plan.limits.ramp_ns = 50 * MS + MS / 2;
    let report = job.run();
    assert_clean(&report, "ramp");
    // Completions at 51, 52, … 250 ms, and the one in flight at the deadline of 250.5 ms.
    assert_eq!(op(&report, OpKind::Read).io_count, 201);
    assert_eq!(report.elapsed_ns, 200 * MS + MS / 2);
    assert_eq!(op(&report, OpKind::Read).latency.total.max_ns(), Some(MS));
    assert_eq!(report.series.iter().map(|r| r.read_count).collect::<Vec<_>>(), [100, 100, 1]);
}

#[test]
fn io_that_was_submitted_in_the_ramp_and_completes_after_it_is_counted_whole() {
    let mut job = Job::simulated(MS, 4).depth(6).mixed(50).time(20 * MS);
    job.plan.limits.ramp_ns = 10 * MS + MS / 2;
    let report = job.run();
    // Four a millisecond from 11 to 30 ms; of the six in flight at 30.5 ms four end at 31 and two at 32.
    assert_clean(&report, "ramp");
    let (read, write) = (op(&report, OpKind::Read), op(&report, OpKind::Write));
    assert_eq!(read.io_count + write.io_count, 86);
    assert_eq!(read.latency.submission.count() + write.latency.submission.count(), 86);
}

#[test]
fn a_stall_within_the_ramp_is_not_in_the_record() {
    let mut job = Job::simulated(MS, 1).time(100 * MS);
    job.plan.limits.ramp_ns = 100 * MS;
    job.device().stalls = vec![(10 * MS, 50 * MS)];
    let report = job.run();
    assert_eq!(op(&report, OpKind::Read).latency.total.max_ns(), Some(MS));
}

#[test]
fn a_job_that_ends_within_its_ramp_reports_that_nothing_was_measured() {
    let mut job = Job::simulated(MS, 1).ios(5);
    job.plan.limits.ramp_ns = S;
    let report = job.run();
    assert!(report.fatal.as_deref().is_some_and(|f| f.contains("within its ramp")), "{:?}", report.fatal);
    assert_eq!((op(&report, OpKind::Read).io_count, report.elapsed_ns), (0, 0));
}

#[test]
fn a_row_every_100_ms_holds_the_io_that_ended_in_it() {
    let mut job = Job::simulated(MS, 1).time(S);
    // Nothing is served from 250 to 550 ms: the series contains intervals without I/O.
    job.device().stalls = vec![(250 * MS, 300 * MS)];
    let report = job.run();
    assert_clean(&report, "rows");
    let counts: Vec<u64> = report.series.iter().map(|r| r.read_count).collect();
    // A completion on a boundary belongs to the row that begins there, the very last to the last row.
    assert_eq!(counts, [99, 100, 51, 0, 0, 49, 100, 100, 100, 101]);
    assert_eq!(report.series[5].latency_ns_max, 301 * MS);
    assert_eq!(
        report.series.iter().map(|r| r.end_ns).take(10).collect::<Vec<_>>(),
        (1..=10).map(|i| i * 100 * MS).collect::<Vec<_>>()
    );
}

/// Goal: a stall is charged to every request that was due while it lasted.
/// Method: 1,000 reads/s for 10 s, one at a time, on a simulated disk that answers in 100 µs and
/// stands still for 1 s. The i-th read due in the stall waits 1,000.1 − 0.9·i ms. With 10,000
/// reads, 100 waits exceed the p99, so it is near 910 ms; timed from submission it stays 0.1 ms.
#[test]
fn pace_a_stall_is_charged_to_every_request_due_in_it() {
    let mut job = Job::simulated(100 * US, 1).time(10 * S).rate(1_000.0, Arrivals::Linear);
    job.device().stalls = vec![(5 * S, S)];
    let report = job.run();
    assert_clean(&report, "stall");
    let read = op(&report, OpKind::Read);
    assert_eq!(read.io_count, 10_000);
    // The reads 0 to 1,111 of the stall wait; the 1,112th finds an idle disk.
    let charged: u64 = (0..=1_111).map(|i| 1_000_100_000 - 900_000 * i).sum();
    assert_eq!(read.latency.from_intended.sum_ns(), u128::from(charged + (10_000 - 1_112) * 100 * US));
    assert_eq!(read.latency.from_intended.max_ns(), Some(1_000_100_000));
    let p99 = read.latency.from_intended.value_at_rank(9_900).unwrap();
    assert!((910_100_000..=910_100_000 + 910_100_000 / 128).contains(&p99), "{p99}");
    // Timed from its submission, only the read in flight notices.
    assert_eq!(read.latency.total.sum_ns(), u128::from(1_000_100_000 + 9_999 * 100 * US));
    assert!(read.latency.total.value_at_rank(9_999).unwrap() <= 100 * US + 100 * US / 128);
    assert_eq!(report.pacing_lateness.max_ns(), Some(0), "the worker was never late, the disk was");
    assert_eq!(report.backlog_count, 0);
    assert_eq!(report.elapsed_ns, 10 * S);
}

#[test]
fn a_paced_job_lasts_until_its_deadline_even_if_nothing_is_due_at_the_end() {
    let report = Job::simulated(MS, 1).time(10 * S).rate(1.0, Arrivals::Linear).run();
    assert_clean(&report, "idle end");
    // Due at 0, 1, … 9 s. Ten in ten seconds are one a second; measured to the last completion
    // (9.001 s) it would be 1.11.
    assert_eq!((op(&report, OpKind::Read).io_count, report.elapsed_ns), (10, 10 * S));
    assert_eq!(report.series.len(), 100);
}

/// Goal: a rate is met when it is finer than the time for which the worker polls.
/// Method: 100,000 a second are 10 µs apart; several are in flight on a disk of 1 ms.
#[test]
fn pace_a_rate_above_what_one_at_a_time_could_do_is_met_by_the_queue() {
    let report = Job::simulated(MS, 256).depth(256).ios(10_000).rate(100_000.0, Arrivals::Linear).run();
    assert_clean(&report, "fine pace");
    assert_eq!(report.elapsed_ns, 9_999 * 10 * US + MS);
    let read = op(&report, OpKind::Read);
    assert_eq!(read.latency.from_intended.max_ns(), Some(MS));
    assert_eq!(report.pacing_lateness.max_ns(), Some(0));
}

#[test]
fn poisson_arrivals_have_the_mean_rate_and_the_spread_of_a_poisson_process() {
    let report = Job::simulated(100, 64).depth(64).ios(100_000).rate(600_000.0, Arrivals::Poisson).run();
    assert_clean(&report, "poisson");
    // The sum of 100,000 exponential distances deviates by 1 / √100,000 = 0.32 %; four deviations.
    let expected = 100_000.0 / 600_000.0 * 1e9;
    assert!((report.elapsed_ns as f64 / expected - 1.0).abs() < 0.013, "{}", report.elapsed_ns);
    // Every full row of 100 ms expects 60,000 ± 245.
    let row = report.series[0].read_count;
    assert!((59_000..61_000).contains(&row), "{row}");
}

#[test]
fn a_rate_in_bytes_counts_bytes_independent_of_sizes() {
    let sizes = BlockSizes::Weighted(vec![(4 * KIB, 50), (64 * KIB, 50)]);
    let mut job = Job::simulated(US, 1).sizes(sizes).time(10 * S).region(64 * MIB);
    job.plan.pattern.order = trueio_model::Order::Sequential;
    job.plan.pace =
        Some(Pace { ios_per_s: None, bytes_per_s: Some(MIB as f64), of_writes: None, arrivals: Arrivals::Linear });
    let report = job.run();
    assert_clean(&report, "bytes");
    let bytes = op(&report, OpKind::Read).byte_count;
    assert!((10 * MIB..10 * MIB + 64 * KIB).contains(&bytes), "{bytes}");
    assert_eq!(report.backlog_count, 0);
}

#[test]
fn a_pause_begins_when_the_io_before_it_has_ended() {
    for (depth, every, ios, expected) in [
        // Ten I/Os of 1 ms and nine pauses of 4 ms.
        (1, 1, 10, 10 * MS + 9 * 4 * MS),
        // Pauses after the third, sixth and ninth.
        (1, 3, 10, 10 * MS + 3 * 4 * MS),
        // Two at a time: a pause waits for both. Five times 1 ms, four pauses.
        (2, 2, 10, 5 * MS + 4 * 4 * MS),
    ] {
        let report = Job::simulated(MS, 2).depth(depth).ios(ios).think(4 * MS, every).run();
        assert_clean(&report, "think");
        assert_eq!(report.elapsed_ns, expected, "depth {depth}, every {every}");
        assert_eq!(op(&report, OpKind::Read).io_count, ios);
    }
}

#[test]
fn a_start_delay_is_not_measured() {
    let mut job = Job::simulated(MS, 1).ios(10);
    job.plan.limits.start_delay_ns = 5 * S;
    // A stall at exactly that time proves that the first I/O was issued then.
    job.device().stalls = vec![(5 * S, 7 * MS)];
    let report = job.run();
    assert_clean(&report, "delay");
    assert_eq!(report.elapsed_ns, 17 * MS);
    assert_eq!(op(&report, OpKind::Read).latency.total.max_ns(), Some(8 * MS));
}

#[test]
fn what_was_due_and_not_issued_is_the_backlog() {
    for arrivals in [Arrivals::Linear, Arrivals::Poisson] {
        let report = Job::simulated(MS, 1).time(S).rate(2_000.0, arrivals).run();
        assert_clean(&report, "backlog");
        let done = op(&report, OpKind::Read).io_count;
        match arrivals {
            // 2,000 were due before the deadline, the disk did 1,000.
            Arrivals::Linear => assert_eq!((done, report.backlog_count), (1_000, 1_000)),
            Arrivals::Poisson => assert!((done + report.backlog_count).abs_diff(2_000) < 4 * 45, "{report:?}"),
        }
        assert_eq!(report.pacing_lateness.max_ns(), Some(0), "the disk's slowness is not the worker's");
    }
}

#[test]
fn a_paced_job_that_did_all_its_io_has_no_backlog() {
    let mut job = Job::simulated(10 * MS, 1).ios(10).rate(1_000.0, Arrivals::Linear);
    assert_eq!(job.run().backlog_count, 0);
    job.plan.limits.runtime_ns = Some(10 * S);
    assert_eq!(job.run().backlog_count, 0);
}

#[test]
fn counting_a_backlog_takes_no_time_however_long_it_is() {
    let begin = std::time::Instant::now();
    let report = Job::simulated(S, 1).time(3_600 * S).rate(1e9, Arrivals::Linear).run();
    assert_eq!(report.backlog_count + op(&report, OpKind::Read).io_count, 3_600_000_000_000);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn a_full_queue_is_the_disks_lateness_and_not_the_workers() {
    // Two at a time on one channel of 1 ms, due every 0.4 ms: the queue is full most of the time.
    let report = Job::simulated(MS, 1).depth(2).time(S).rate(2_500.0, Arrivals::Linear).run();
    assert_clean(&report, "lateness");
    assert_eq!(report.pacing_lateness.max_ns(), Some(0));
    assert_eq!(report.pacing_lateness.count(), op(&report, OpKind::Read).io_count);
}

#[test]
fn a_failed_io_ends_the_job_with_its_error_and_everything_until_then_is_kept() {
    let mut job = Job::simulated(MS, 1).ios(100);
    job.device().failing_ios = vec![5];
    let report = job.run();
    assert_consistent(&report, "failing");
    assert_eq!(report.fatal, None);
    assert_eq!(report.failures.len(), 1);
    let failure = &report.failures[0];
    assert_eq!((failure.errno, failure.count, failure.op), (libc::EIO, 1, OpKind::Read));
    let read = op(&report, OpKind::Read);
    assert_eq!((read.io_count, read.error_count), (5, 1));
    assert_eq!(report.elapsed_ns, 6 * MS);
}

#[test]
fn io_in_flight_together_with_a_failed_one_is_still_counted() {
    let mut job = Job::simulated(MS, 4).depth(4).ios(100);
    job.device().failing_ios = vec![5];
    let report = job.run();
    assert_consistent(&report, "failing");
    let read = op(&report, OpKind::Read);
    assert_eq!((read.io_count, read.error_count), (7, 1));
}

#[test]
fn a_job_that_goes_on_after_errors_counts_them_all() {
    let mut job = Job::simulated(MS, 1).ios(100);
    job.plan.continue_on_error = true;
    job.device().failing_ios = (0..100).filter(|i| i % 4 == 0).collect();
    let report = job.run();
    let read = op(&report, OpKind::Read);
    assert_eq!((read.io_count, read.error_count), (75, 25));
    assert_eq!((report.failures.len(), report.failures[0].count), (1, 25));
}

#[test]
fn a_failed_io_frees_its_slot_so_that_the_next_is_not_called_late() {
    // 1 ms of service, one due each 0.5 ms, every second one fails.
    let mut job = Job::simulated(MS, 1).ios(100).rate(2_000.0, Arrivals::Linear);
    job.plan.continue_on_error = true;
    job.device().failing_ios = (0..100).filter(|i| i % 2 == 0).collect();
    assert_eq!(job.run().pacing_lateness.max_ns(), Some(0));
}

#[test]
fn a_stopped_job_keeps_what_it_did_until_then() {
    let job = Job::simulated(MS, 4).depth(8).time(u64::MAX / 4);
    let (report, _) = job.run_and_stop(Duration::from_millis(500));
    assert!(report.was_stopped);
    assert_clean(&report, "stopped");
    assert!(op(&report, OpKind::Read).io_count > 1_000);
}

#[test]
fn a_job_stopped_before_its_start_does_nothing_and_is_reported_as_stopped() {
    let job = Job::simulated(MS, 1).time(S);
    job.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let report = job.run();
    assert!(report.was_stopped);
    assert_eq!((op(&report, OpKind::Read).io_count, report.fatal), (0, None));
}

#[test]
fn sync_calls_wait_for_what_is_in_flight_and_are_measured() {
    let mut job = Job::simulated(MS, 4).depth(4).op(OpKind::Write).ios(40);
    job.plan.flush.fdatasync_every = 4;
    let report = job.run();
    assert_clean(&report, "sync");
    // Four writes at once for 1 ms, then a sync call of 1 ms, ten times.
    assert_eq!(report.elapsed_ns, 20 * MS);
    let sync = op(&report, OpKind::Sync);
    assert_eq!((sync.io_count, sync.latency.total.sum_ns()), (10, 10 * u128::from(MS)));
    assert_eq!(op(&report, OpKind::Write).latency.total.max_ns(), Some(MS));
}

#[test]
fn a_due_io_held_back_by_a_sync_call_is_not_the_workers_lateness() {
    let mut job = Job::simulated(MS, 4).depth(4).op(OpKind::Write).ios(100).rate(4_000.0, Arrivals::Linear);
    job.plan.flush.fsync_every = 4;
    let report = job.run();
    assert_clean(&report, "sync");
    assert_eq!(report.pacing_lateness.max_ns(), Some(0));
}

#[test]
fn the_same_seed_gives_the_same_record() {
    let job = || {
        let mut job = Job::simulated(150 * US, 3).depth(5).mixed(70).time(2 * S).rate(9_000.0, Arrivals::Poisson);
        job.device().stalls = vec![(S, 20 * MS)];
        job
    };
    let (a, b) = (job().run(), job().run());
    assert_eq!((a.ops, &a.series, a.elapsed_ns), (b.ops, &b.series, b.elapsed_ns));
    let other = job().seed(8).run();
    assert_ne!(other.series, a.series);
}

#[test]
fn a_pause_follows_the_set_time_of_io_and_may_be_busy() {
    let think = |after_ns, spin_ns| Some(trueio_model::Think { time_ns: 10 * MS, every: 0, after_ns, spin_ns });
    for spin_ns in [0, 4 * MS] {
        let job = Job::simulated(MS, 1).ios(20).with(|plan| plan.think = think(4 * MS, spin_ns));
        let report = job.run();
        assert_clean(&report, "think");
        let reads = op(&report, OpKind::Read).io_count;
        let pauses = (report.elapsed_ns - reads * MS) / (10 * MS);
        // After each four to five I/Os of 1 ms, none after the last.
        assert_eq!(reads, 20);
        assert!((3..=4).contains(&pauses), "{pauses} pauses in {} ns", report.elapsed_ns);
    }
}

#[test]
fn a_job_that_is_too_slow_ends_as_failed_and_one_that_is_not_goes_on() {
    // 1,000 I/Os of 4 KiB a second.
    let run = |guard: trueio_model::Guard| Job::simulated(MS, 1).time(3 * S).with(|plan| plan.guard = guard).run();
    let none = trueio_model::Guard { cycle_ns: 500 * MS, ..trueio_model::Guard::default() };
    for (guard, word) in [
        (trueio_model::Guard { ios_per_s_min: 1_001, ..none }, "`rate_iops_min` is 1001"),
        (trueio_model::Guard { bytes_per_s_min: 1000 * 4096 + 1, ..none }, "`rate_min`"),
        (trueio_model::Guard { latency_ns_max: MS - 1, ..none }, "`max_latency`"),
    ] {
        let report = run(guard);
        let fatal = report.fatal.unwrap_or_else(|| panic!("{guard:?}"));
        assert!(fatal.contains(word) && report.elapsed_ns <= 600 * MS, "{fatal}: {}", report.elapsed_ns);
    }
    // The first I/O that is too slow is the last one.
    assert_eq!(run(trueio_model::Guard { latency_ns_max: MS - 1, ..none }).ops[0].io_count, 1);
    // The first cycle begins when the time to settle is over.
    let settled = run(trueio_model::Guard { ios_per_s_min: 1_001, settle_ns: S, ..none });
    assert!(settled.fatal.is_some() && settled.elapsed_ns == 1500 * MS, "{}", settled.elapsed_ns);
    let kept = trueio_model::Guard { ios_per_s_min: 990, bytes_per_s_min: 4_000_000, latency_ns_max: 2 * MS, ..none };
    assert_clean(&run(kept), "fast enough");
}

/// Goal: as in fio, a minimum rate is checked when something completes, so fewer than one I/O in a cycle is no fault.
/// Method: an I/O takes seven cycles; then pauses of seven cycles; then reads of a millisecond with rare writes.
#[test]
fn a_minimum_rate_is_checked_when_an_io_completes() {
    let guard = |ios: u64| trueio_model::Guard { ios_per_s_min: ios, cycle_ns: 100 * MS, ..Default::default() };
    let run = |job: Job, guard| job.with(|plan| plan.guard = guard).run().fatal;
    for settle_ns in [0, 2 * S] {
        let settles = |ios| trueio_model::Guard { settle_ns, ..guard(ios) };
        let slow = || Job::simulated(700 * MS, 1).time(7 * S);
        assert_eq!(run(slow(), settles(1)), None);
        assert_eq!(run(slow().depth(4), settles(1)), None);
        assert!(run(slow(), settles(2)).is_some_and(|sentence| sentence.starts_with("1 I/Os a second")));
        let pauses = || Job::simulated(MS, 1).time(7 * S).think(699 * MS, 1);
        assert_eq!(run(pauses(), settles(1)), None);
        assert!(run(pauses(), settles(2)).is_some());
        let paced = || Job::simulated(MS, 1).time(7 * S).rate(2.0, Arrivals::Linear);
        assert_eq!(run(paced(), settles(2)), None);
        assert!(run(paced(), settles(3)).is_some());
    }
    // Completions of reads check writes, too, from the first write on.
    let both = trueio_model::Guard { of_writes: Some((0, 1)), cycle_ns: 5 * MS, ..Default::default() };
    assert!(run(Job::simulated(MS, 1).mixed(90).time(S), both).is_some_and(|sentence| sentence.contains(" of writes")));
    assert_eq!(run(Job::simulated(MS, 1).time(S), both), None);
}

/// Goal: an I/O that hangs beyond the end of the job ends it as failed; sync calls are checked, and not counted.
/// Method: the fifth I/O hangs; each second step is a sync call that takes as long as a write.
#[test]
fn an_io_that_hangs_is_below_the_minimum_rate() {
    let guard = trueio_model::Guard { ios_per_s_min: 1, cycle_ns: 100 * MS, ..Default::default() };
    let mut job = Job::simulated(MS, 1).time(2 * S).with(|plan| plan.guard = guard);
    job.device().stalls = vec![(5 * MS, 30 * S)];
    let sentence = job.run().fatal.expect("an I/O took half a minute");
    assert!(sentence.starts_with("0 I/Os a second"), "{sentence}");
    // What was issued together and completes together is counted together.
    let batches = Job::simulated(400 * MS, 8).depth(8).time(8 * S);
    assert_eq!(batches.with(|plan| plan.guard = trueio_model::Guard { ios_per_s_min: 20, ..guard }).run().fatal, None);
    // A trim and its write are one step: 500 a second.
    let pairs = |least| {
        Job::simulated(MS, 1).op(OpKind::Write).time(2 * S).with(|plan| {
            plan.pattern.steps.trims_first = true;
            plan.guard = trueio_model::Guard { ios_per_s_min: least, ..guard };
        })
    };
    assert_eq!(pairs(490).run().fatal, None);
    assert!(pairs(510).run().fatal.is_some());
}
