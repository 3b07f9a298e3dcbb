//! Logs in fio's columns, written while a job runs.
//!
//! Most of it on a modelled disk in virtual time, where each line is known beforehand.

use crate::common::*;
use std::fs;
use std::time::{Duration, Instant};
use trueio_model::OpKind;

/// Lines of numbers.
fn log(sandbox: &Sandbox, name: &str) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(sandbox.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(|line| line.split(", ").map(|field| field.parse().expect(line)).collect()).collect()
}

/// Goal: a log without averages has every I/O of the record, and the latencies add up to the record's.
#[test]
fn one_log_line_per_io_sums_to_the_record() {
    let sandbox = Sandbox::new();
    let mut arguments: Vec<&str> = "run --ioengine simulated --simulated service=100us,channels=4 --rw randrw --bs 4k \
         --size 16m --iodepth 4 --numjobs 2 --runtime 200ms --time_based --ramp_time 50ms --no-history"
        .split_whitespace()
        .collect();
    arguments.extend(["--write_lat_log", "x", "--write_bw_log", "x", "--write_iops_log", "x", "--log_offset"]);
    let (ran, record) = sandbox.record(&arguments);
    ran.assert_code(0);
    let job = only_job(&record);
    for (direction, kind) in [(0, OpKind::Read), (1, OpKind::Write)] {
        let op = job.ops.iter().find(|op| op.op == kind).expect("both directions");
        for (name, histogram) in
            [("slat", &op.latency.submission), ("clat", &op.latency.completion), ("lat", &op.latency.total)]
        {
            let lines: Vec<_> =
                ["1", "2"].into_iter().flat_map(|n| log(&sandbox, &format!("x_{name}.{n}.log"))).collect();
            let of: Vec<_> = lines.iter().filter(|line| line[2] == direction).collect();
            assert_eq!(of.len() as u64, op.io_count, "{name} {kind}");
            assert_eq!(of.iter().map(|line| u128::from(line[1])).sum::<u128>(), histogram.sum_ns(), "{name} {kind}");
            assert!(of.iter().all(|line| line.len() == 6 && line[3] == 4096 && line[4] < 16 << 20 && line[5] == 0));
        }
    }
    let iops = log(&sandbox, "x_iops.2.log");
    assert!(iops.iter().all(|line| line[1] == 1));
    // 4 KiB in 100 us.
    assert!(log(&sandbox, "x_bw.1.log").iter().all(|line| line[1] == 40_000));
}

/// Goal: the issue time is the end minus the latency, equal in all lines of an I/O, also in compressed logs. Averages have
/// the column, but no such time.
#[test]
fn the_issue_time_is_the_end_minus_the_latency() {
    let sandbox = Sandbox::new();
    let line = "run --ioengine simulated --simulated service=100us,channels=4 --rw randread --bs 4k --size 16m --iodepth 4 \
                --runtime 200ms --time_based --ramp_time 50ms --no-history --write_lat_log x --write_bw_log x \
                --write_iops_log x --log_offset --log_issue_time";
    let run = |more: &[&str]| {
        let mut arguments: Vec<&str> = line.split_whitespace().collect();
        arguments.extend(more);
        sandbox.run(&arguments).assert_code(0);
    };
    run(&[]);
    let clat = log(&sandbox, "x_clat.1.log");
    assert!(clat.len() > 1000);
    for line in &clat {
        let [ms, took_ns, .., issued_ns] = line[..] else { panic!("{line:?}") };
        assert_eq!(line.len(), 7);
        // What was issued in the ramp has 0.
        assert!((issued_ns + took_ns) / 1_000_000 == ms || issued_ns == 0, "{line:?}");
    }
    let issued = |lines: &[Vec<u64>]| lines.iter().map(|line| line[6]).collect::<Vec<_>>();
    assert!(issued(&clat).iter().filter(|ns| **ns == 0).count() <= 8, "of the ramp, and the first");
    assert_eq!(issued(&log(&sandbox, "x_slat.1.log")), issued(&clat));
    // As in fio, the other logs have the column, and 0 in it.
    for name in ["lat", "bw", "iops"] {
        assert!(issued(&log(&sandbox, &format!("x_{name}.1.log"))).iter().all(|ns| *ns == 0), "{name}");
    }
    run(&["--log_store_compressed", "--replace"]);
    let packed = sandbox.path("x_clat.1.log.fz");
    let there = sandbox.run(&["fio", &format!("--inflate-log={}", packed.display())]);
    assert_eq!(there.out, fs::read_to_string(sandbox.path("x_clat.1.log")).expect("the log"), "virtual time is exact");
    run(&["--log_avg_msec=100", "--replace"]);
    let averages = log(&sandbox, "x_clat.1.log");
    assert!(!averages.is_empty() && averages.iter().all(|line| line.len() == 7 && line[6] == 0), "{averages:?}");
}

/// Goal: averages are on a fixed grid, also during a stall; fio leaves such spans out.
/// Method: 10,000 I/Os per second; from 300 ms on the disk stalls for 250 ms with one I/O in flight.
#[test]
fn averages_are_on_a_grid_and_a_stall_is_a_zero() {
    let sandbox = Sandbox::new();
    let arguments: Vec<&str> = "run --ioengine simulated --simulated service=100us,channels=1,stall=300ms+250ms \
         --rw read --bs 4k --size 1g --runtime 1s --time_based --no-history --write_bw_log a --write_iops_log a \
         --write_lat_log a --log_avg_msec 100 --log_window_value both --write_hist_log a --log_hist_msec 500 \
         --log_hist_coarseness 6"
        .split_whitespace()
        .collect();
    let (ran, record) = sandbox.record(&arguments);
    ran.assert_code(0);
    let iops = log(&sandbox, "a_iops.1.log");
    assert_eq!(iops.iter().map(|line| line[0]).collect::<Vec<_>>(), (1..=10).map(|i| i * 100).collect::<Vec<_>>());
    let expected = [10_000, 10_000, 10_000, 0, 0, 5_000, 10_000, 10_000, 10_000, 10_000];
    assert!(iops.iter().zip(expected).all(|(line, truth)| line[1].abs_diff(truth) <= 10), "{iops:?}");
    assert!(log(&sandbox, "a_bw.1.log").iter().zip(expected).all(|(line, truth)| line[1].abs_diff(truth * 4) <= 40));
    let lat = log(&sandbox, "a_lat.1.log");
    assert!(lat.iter().all(|line| line[0] != 400 && line[0] != 500), "no latency where nothing ended: {lat:?}");
    let stalled = lat.iter().find(|line| line[0] == 600).expect("the I/O that waited ends there");
    assert!(stalled[2] > 249_000_000 && stalled[1] < stalled[2], "mean, then maximum: {stalled:?}");
    let histograms = log(&sandbox, "a_clat_hist.1.log");
    assert!(histograms.iter().all(|line| line.len() == 3 + (1856 >> 6) && line[2] == 4096), "{histograms:?}");
    let counted: u64 = histograms.iter().flat_map(|line| &line[3..]).sum();
    assert_eq!(counted, only_job(&record).ops[0].io_count);
}

/// Goal: the maximum of bandwidth and IOPS is that of spans of `bwavgtime` and `iopsavgtime`, as in fio.
/// Method: 10,000 I/Os per second with a stall from 300 to 550 ms: the second half has 4,500 I/Os, the first 3,000.
#[test]
fn maxima_of_bandwidth_are_those_of_shorter_spans() {
    for (window, columns) in [("avg", &[7_500][..]), ("max", &[9_000]), ("both", &[7_500, 9_000])] {
        let sandbox = Sandbox::new();
        let arguments = format!(
            "run --ioengine simulated --simulated service=100us,channels=1,stall=300ms+250ms --rw read --bs 4k --size 1g \
             --runtime 1s --time_based --no-history --write_bw_log a --write_iops_log a --log_avg_msec 1000 \
             --log_window_value {window}"
        );
        let (ran, _) = sandbox.record(&arguments.split_whitespace().collect::<Vec<_>>());
        ran.assert_code(0);
        for (name, unit) in [("a_iops.1.log", 1), ("a_bw.1.log", 4)] {
            let lines = log(&sandbox, name);
            let [line] = &lines[..] else { panic!("{window}: {lines:?}") };
            assert_eq!(line.len(), 4 + columns.len(), "{window}: {line:?}");
            let is_near = |(found, truth): (&u64, &u64)| found.abs_diff(truth * unit) <= 20 * unit;
            assert!(line[1..].iter().zip(columns).all(is_near), "{window}: {line:?}");
        }
    }
}

#[test]
fn shared_logs_have_no_number_and_epoch_times_if_set() {
    let sandbox = Sandbox::new();
    let arguments: Vec<&str> =
        "run --ioengine null --rw read --bs 4k --size 1m --numjobs 3 --number_ios 100 --no-history \
         --write_lat_log s --per_job_logs=false --log_alternate_epoch"
            .split_whitespace()
            .collect();
    let (ran, record) = sandbox.record(&arguments);
    ran.assert_code(0);
    let lines = log(&sandbox, "s_lat.log");
    assert_eq!(lines.len(), 300);
    let begin = record.started_unix_ms;
    assert!(lines.iter().all(|line| line.len() == 5 && (begin..begin + 60_000).contains(&line[0])), "{lines:?}");
    // A blocking engine has no submission latency: the log exists and is empty, as in fio.
    assert!(log(&sandbox, "s_slat.log").is_empty());
}

/// Goal: logs can be followed while the job runs; fio writes them at its end.
#[test]
fn a_log_grows_while_its_job_runs_and_survives_a_kill() {
    let sandbox = Sandbox::new();
    let arguments: Vec<&str> =
        "run --ioengine null --rw read --bs 4k --size 1m --rate_iops 500 --runtime 120s --time_based \
         --no-history --no-evidence --write_lat_log g"
            .split_whitespace()
            .collect();
    let mut child = sandbox.command(&arguments).spawn().expect("it starts");
    let path = sandbox.path("g_lat.1.log");
    let lines = || fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let until = Instant::now() + Duration::from_secs(100);
    while lines() < 100 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen = lines();
    child.kill().expect("it runs still");
    child.wait().expect("it ends");
    assert!(seen >= 100, "{seen} lines");
    assert!(lines() >= seen);
}

#[test]
fn a_log_that_cannot_be_created_is_refused() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["run", "--filename=t_bw.1.log", "--size=64k", "--no-history", "--write_bw_log=t"]);
    ran.assert_refused(&["`--write_bw_log` of job `job` would replace `t_bw.1.log`", "rule: output_replaces"]);
    let ran = sandbox.run(&["run", "--ioengine=null", "--size=1m", "--no-history", "--write_bw_log=nowhere/x"]);
    ran.assert_refused(&["`nowhere/x_bw.1.log` cannot be written", "rule: output_impossible"]);
}

/// Goal: jobs whose logs are not per job write one whole log, clones and phases of fio's language too: each line is there
/// once, and whole. fio has the same lines, in another order.
/// Method: two clones that write, then a phase that reads, each I/O a line; twice, since fio adds to what is there and this
/// program begins anew.
#[test]
fn a_shared_log_contains_every_line_of_its_clones_and_phases() {
    const JOB: &str = "[global]\nsize=4m\nbs=4k\nper_job_logs=0\nwrite_bw_log=x\nwrite_lat_log=x\nlog_offset=1\n\
                       [a]\nrw=write\nnumjobs=2\n[b]\nstonewall\nrw=read\nfilename=a.0.0\nwrite_iops_log=x\n";
    let of = |sandbox: &Sandbox, name: &str| {
        let mut lines: Vec<(u64, u64)> = log(sandbox, name)
            .into_iter()
            .map(|line| {
                assert!(line.len() == 6 && line[3] == 4096 && line[5] == 0, "{name}: {line:?}");
                (line[2], line[4])
            })
            .collect();
        lines.sort_unstable();
        lines
    };
    let ours = Sandbox::new();
    ours.write("j.fio", JOB);
    for _ in 0..2 {
        ours.run(&["fio", "j.fio"]).assert_code(0);
    }
    let offsets = || (0..1024).map(|block| block * 4096);
    let mut expected: Vec<(u64, u64)> = offsets().map(|offset| (0, offset)).collect();
    expected.extend(offsets().flat_map(|offset| [(1, offset), (1, offset)]));
    for name in ["x_bw.log", "x_clat.log", "x_lat.log"] {
        assert_eq!(of(&ours, name), expected, "{name}");
    }
    assert_eq!(of(&ours, "x_iops.log"), expected[..1024], "the read job alone has one");
    if std::process::Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    let theirs = Sandbox::new();
    theirs.write("j.fio", JOB);
    let ran = std::process::Command::new("fio").arg("j.fio").current_dir(theirs.root()).output().expect("fio runs");
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(of(&theirs, "x_bw.log"), expected);
}
