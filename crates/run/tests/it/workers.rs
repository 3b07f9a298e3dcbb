//! Jobs without measured I/O, next to those that have some, and the settings of a worker's thread.

use crate::common::{
    Job, MIB, MS, Open, S, assert_clean, engines_with_priorities, filled, folder, op, share, side_by_side,
};
use std::sync::Arc;
use std::time::Duration;
use trueio_engine::Snapshot;
use trueio_model::{BlockSizes, CpuLoad, EngineKind, ExecPlan, Histogram, OpKind, PriorityShare};

fn new(engine: EngineKind) -> Job {
    Job { runner: trueio_run::run_worker, ..Job::new(engine) }
}

fn null() -> Job {
    new(EngineKind::Null)
}

/// A job that runs a shell's command.
fn shell(command: &str) -> Job {
    let arguments = ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
    let plan = ExecPlan { arguments, grace_ns: 100 * MS, output: None };
    new(EngineKind::Exec).with(|job| job.exec = Some(plan))
}

/// Goal: jobs without I/O are waited for, and wait, as all others.
/// Method: each of the programs fails if what stands before it has not ended.
#[test]
fn jobs_without_io_wait_and_are_waited_for() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (one, two) = (path("one"), path("two"));
    let jobs = [
        shell(&format!("sleep 0.3; touch {one}")),
        null().with(|plan| plan.handling.creates_only = true),
        shell(&format!("test -e {one} && touch {two}")),
        new(EngineKind::Cpuio).time(50 * MS).with(|plan| {
            plan.cpu_load = Some(CpuLoad { percent: 50, chunk_ns: 10 * MS, sorts: false, ends_with_io: false });
        }),
        shell(&format!("test -e {two}")),
        null().ios(10),
    ];
    let reports = side_by_side(&jobs, true);
    assert!(reports.iter().all(|report| !report.was_stopped && report.fatal.is_none()), "{reports:?}");
    assert_eq!(op(&reports[5], OpKind::Read).io_count, 10);
}

/// Goal: a load that ends with the I/O of other jobs ends after it, and at once if there is none.
/// Method: loads without a run time, and one of an hour. If the load ended first, it would end the I/O.
#[test]
fn a_load_that_ends_with_io_ends_after_the_io_of_other_jobs() {
    for (percent, sorts, runtime_ns) in [(100, false, None), (1, false, None), (50, true, Some(3_600_000 * MS))] {
        let load = || {
            new(EngineKind::Cpuio).with(|plan| {
                plan.limits.runtime_ns = runtime_ns;
                plan.cpu_load = Some(CpuLoad { percent, chunk_ns: 5 * MS, sorts, ends_with_io: true });
                plan.scheduling.ends_others = true;
            })
        };
        let reports = side_by_side(&[load(), null().ios(500_000), null().ios(10)], false);
        let what = format!("{percent} %, sorts: {sorts}");
        assert!(reports.iter().all(|report| !report.was_stopped && report.fatal.is_none()), "{what}");
        assert_eq!(op(&reports[1], OpKind::Read).io_count, 500_000, "{what}");
        let alone = side_by_side(&[load()], false);
        assert!(!alone[0].was_stopped, "{what}");
    }
}

/// Goal: the job that ends first ends the others if it is set to, in whichever way it ended; a job that only creates
/// files ends no other job.
#[test]
fn every_job_set_to_end_others_does_so_except_one_that_only_creates_files() {
    let ends = |job: Job| job.with(|plan| plan.scheduling.ends_others = true);
    let fails = |job: Job| job.with(|plan| plan.scheduling.ends_others_on_error = true);
    let cpuio = new(EngineKind::Cpuio).time(10 * MS).with(|plan| {
        plan.cpu_load = Some(CpuLoad { percent: 100, chunk_ns: MS, sorts: false, ends_with_io: false });
    });
    // Without a description, the simulated disk cannot be created.
    let impossible = || new(EngineKind::Simulated);
    for first in [ends(shell("true")), fails(shell("false")), ends(cpuio), ends(impossible()), fails(impossible())] {
        let what = format!("{:?}", first.plan.scheduling);
        let reports = side_by_side(&[first, null().ios(u64::MAX)], false);
        assert!(reports[1].was_stopped, "{what}");
    }
    let jobs = [ends(null().with(|plan| plan.handling.creates_only = true)), null().ios(500_000), fails(shell("true"))];
    let reports = side_by_side(&jobs, false);
    assert_eq!((op(&reports[1], OpKind::Read).io_count, reports[1].was_stopped), (500_000, false));
}

/// Goal: a worker without figures publishes an empty report, so that a request for results is answered at once.
#[test]
fn jobs_without_figures_publish_an_empty_report() {
    for mut job in [shell("true"), null().with(|plan| plan.handling.creates_only = true)] {
        let snapshot = Arc::new(Snapshot::default());
        job.snapshot = Some(snapshot.clone());
        job.run();
        snapshot.ask();
        assert!(snapshot.wait(Duration::ZERO).expect("a report").ops.is_empty());
    }
}

#[test]
fn cpuio_is_busy_for_its_share_and_has_no_figures() {
    let mut shares = Vec::new();
    for percent in [10, 100] {
        let job = new(EngineKind::Cpuio).time(400 * MS).with(|plan| {
            plan.cpu_load = Some(CpuLoad { percent, chunk_ns: 20 * MS, sorts: false, ends_with_io: false });
        });
        let report = job.run();
        assert_eq!((report.fatal, report.ops.len()), (None, 0));
        assert!((400..20_000).contains(&(report.elapsed_ns / MS)), "{}", report.elapsed_ns);
        shares.push((report.threads.user_ns + report.threads.system_ns) * 100 / report.elapsed_ns);
    }
    // How much CPU time it got in its busy spans depends on other processes.
    assert!(shares[0] <= 15 && shares[0] < shares[1] && shares[1] <= 101, "{shares:?} % for 10 % and 100 %");
    let job = new(EngineKind::Cpuio).time(600 * S);
    let job = job.with(|plan| {
        plan.cpu_load = Some(CpuLoad { percent: 1, chunk_ns: 100_000_000_000, sorts: true, ends_with_io: false })
    });
    let (report, obeyed) = job.run_and_stop(Duration::from_millis(50));
    assert!(report.was_stopped && obeyed < Duration::from_secs(30), "{obeyed:?}");
}

/// Goal: the latencies by priority together are all latencies, and the shares are as set.
/// Method: a mixed job of 20,000 I/Os with a fixed seed, of two sizes. A share may be off by 5 deviations of the binomial
/// distribution of as many draws.
#[test]
fn latencies_by_priority_add_up_to_all_and_shares_are_as_set() {
    let folder = folder();
    for engine in engines_with_priorities() {
        for depth in [1, 8] {
            let path = filled(folder.path(), engine.name(), MIB);
            let job = new(engine).depth(depth).on(&[&path], MIB, Open::ReadWrite).mixed(60).seed(5);
            let sizes = BlockSizes::Weighted(vec![(4096, 50), (8192, 50)]);
            let job = job.sizes(sizes).ios(20_000).with(|plan| {
                plan.scheduling.io_priority = Some((2, 4));
                plan.priorities = vec![
                    PriorityShare { length_bytes: Some(8192), ..share(OpKind::Read, 30, 2, 1) },
                    PriorityShare { length_bytes: Some(8192), ..share(OpKind::Read, 20, 3, 0) },
                    // The worker's own priority, given again, is not a second one.
                    share(OpKind::Write, 10, 2, 4),
                    share(OpKind::Write, 25, 2, 7),
                ];
            });
            let report = job.run();
            assert_clean(&report, engine.name());
            for (kind, priorities, percents) in [
                (OpKind::Read, &["2/4", "2/1", "3/0"][..], &[50.0, 30.0, 20.0][..]),
                (OpKind::Write, &["2/4", "2/7"][..], &[75.0, 25.0][..]),
            ] {
                let record = op(&report, kind);
                let found: Vec<String> = record.priorities.iter().map(|of| of.priority.to_string()).collect();
                assert_eq!(found, priorities);
                // Of reads those of 8 KiB are drawn for; those of 4 KiB all have the worker's own.
                let large = record.byte_count / 4096 - record.io_count;
                let drawn = if kind == OpKind::Read { large } else { record.io_count };
                let (mut completion, mut total) = (Histogram::new(), Histogram::new());
                for (index, (of, percent)) in record.priorities.iter().zip(percents).enumerate() {
                    completion.merge(&of.latency.completion);
                    total.merge(&of.latency.total);
                    let (n, p) = (drawn as f64, percent / 100.0);
                    let others = if index == 0 { record.io_count - drawn } else { 0 };
                    let off = (of.latency.total.count() as f64 - others as f64 - n * p).abs();
                    assert!(off <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{kind} {} is off by {off} of {n}", of.priority);
                }
                assert_eq!(completion, record.latency.completion, "{} {kind}", engine.name());
                assert_eq!(total, record.latency.total, "{} {kind}", engine.name());
            }
        }
    }
}

/// Goal: a priority that the kernel refuses fails the worker before its first I/O, with the reason.
#[test]
fn a_priority_that_the_kernel_refuses_is_reported_before_the_first_io() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    for engine in engines_with_priorities() {
        let job = new(engine).on(&[&path], MIB, Open::ReadOnly);
        let report = job.with(|plan| plan.priorities = vec![share(OpKind::Read, 1, 7, 0)]).run();
        let fatal = report.fatal.expect("it is refused");
        assert!(fatal.contains("I/O priority 7/0") && fatal.contains("Invalid argument"), "{fatal}");
        assert!(report.ops.is_empty(), "{:?}", report.ops);
    }
}

#[test]
fn a_worker_that_cannot_start_reports_why_and_does_not_block_others() {
    let folder = folder();
    let path = filled(folder.path(), "cpu", MIB);
    let job = new(EngineKind::Psync).on(&[&path], MIB, Open::ReadOnly).with(|plan| plan.cpus = vec![1000]);
    let fatal = job.run().fatal.expect("a reason");
    assert!(fatal.contains("processor 1000"), "{fatal}");
}
