//! Replays of logs: operations, order and times; and logs of a job's own I/Os.

use crate::common;

use crate::common::{Job, MS, Open, S, assert_clean, assert_consistent, folder, op};
use std::path::{Path, PathBuf};
use trueio_model::{EngineKind, OpKind, ReplaySettings};

fn log(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("log");
    std::fs::write(&path, format!("fio version 3 iolog\n0 f add\n0 f open\n{lines}")).unwrap();
    path
}

/// The I/Os of a replay: time, operation, offset, length.
fn issued(job: Job) -> Vec<(u64, OpKind, u64, u32)> {
    let (report, ios) = job.run_issued();
    assert_clean(&report, "replay");
    assert_consistent(&report, "replay");
    ios.iter().map(|io| (io.at_ns, io.step.request().op, io.step.request().offset, io.step.request().length)).collect()
}

const LINES: &str =
    "0 f read 0 4096\n2000 f write 8192 512\n2000 f read 12288 4096\n7000 f datasync 0 0\n10000 f trim 0 4096\n";

/// Goal: each I/O is done at its line's time, exact to the nanosecond, one at a time and from a queue.
#[test]
fn a_log_is_replayed_in_its_order_at_its_times() {
    let folder = folder();
    let log = log(folder.path(), LINES);
    for depth in [1, 8] {
        let job = Job::simulated(MS / 2, 8).depth(depth).replaying(&log, ReplaySettings::default());
        let expected = [
            (0, OpKind::Read, 0, 4096),
            (2 * MS, OpKind::Write, 8192, 512),
            // With one slot it waits for the one before.
            (if depth == 1 { 2 * MS + MS / 2 } else { 2 * MS }, OpKind::Read, 12288, 4096),
            (7 * MS, OpKind::Sync, 0, 0),
            (10 * MS, OpKind::Trim, 0, 4096),
        ];
        assert_eq!(issued(job), expected, "depth {depth}");
    }
}

/// Goal: the latency of an I/O that waited for a slot includes the wait, and the record states the start of latencies.
#[test]
fn latency_counts_from_the_time_of_the_line() {
    let folder = folder();
    let log = log(folder.path(), "0 f read 0 512\n0 f read 512 512\n0 f read 1024 512\n");
    let report = Job::simulated(MS, 1).replaying(&log, ReplaySettings::default()).run();
    assert_clean(&report, "late");
    let latency = &op(&report, OpKind::Read).latency;
    assert_eq!(latency.from_intended.sum_ns(), u128::from((1 + 2 + 3) * MS));
    assert_eq!(latency.total.sum_ns(), u128::from(3 * MS));
    assert_eq!(report.backlog_count, 0);
}

#[test]
fn what_was_due_and_not_issued_when_the_time_was_up_is_counted() {
    let folder = folder();
    let lines: String = (0..5_000).map(|i| format!("{} f read 0 512\n", i * 100)).collect();
    let log = log(folder.path(), &lines);
    // One in 1 ms; ten a millisecond are due.
    let report = Job::simulated(MS, 1).replaying(&log, ReplaySettings::default()).time(100 * MS).run();
    assert_eq!(op(&report, OpKind::Read).io_count, 100);
    assert_eq!(report.backlog_count, 900);
}

#[test]
fn a_replay_is_scaled_in_time_or_does_not_wait() {
    let folder = folder();
    let log = log(folder.path(), LINES);
    let times = |settings| {
        let job = Job::simulated(MS / 10, 8).depth(8).replaying(&log, settings);
        issued(job).into_iter().map(|io| io.0).collect::<Vec<_>>()
    };
    let slower = ReplaySettings { time_scale_percent: 50, ..Default::default() };
    assert_eq!(times(slower), [0, 4 * MS, 4 * MS, 14 * MS, 20 * MS]);
    let at_once = ReplaySettings { is_paced: false, ..Default::default() };
    // The sync call waits for what is in flight, and the trim for the sync call.
    assert_eq!(times(at_once), [0, 0, 0, MS / 10, MS / 5]);
}

/// Goal: memory does not depend on the log, and nothing of a long one is lost.
#[test]
fn a_long_log_is_replayed_to_its_end() {
    let folder = folder();
    let count: u64 = 100_000;
    let lines: String = (0..count).map(|i| format!("0 f read {} 512\n", i * 512)).collect();
    let log = log(folder.path(), &lines);
    let mut job = Job::new(EngineKind::Null).replaying(&log, ReplaySettings { is_paced: false, ..Default::default() });
    job.plan.files = vec![common::file_plan("f", 0, count * 512)];
    let (report, ios) = job.run_issued();
    assert_clean(&report, "long");
    assert_eq!(op(&report, OpKind::Read).io_count, count);
    assert!(ios.iter().zip(0..).all(|(io, i)| io.step.request().offset == i * 512));
}

/// Goal: a log that changes after it was planned does nothing that was not planned.
/// Method: planned with one log, run with another: another file, beyond the region, longer than the buffers, a write in
/// a log of reads.
#[test]
fn a_log_that_changed_since_it_was_planned_ends_the_job_at_that_line() {
    for bad in
        ["0 g read 0 512", "0 f read 1099511627776 512", "0 f read 0 1048576", "0 f write 0 512", "0 f rea 0 512"]
    {
        let folder = folder();
        let path = log(folder.path(), "0 f read 0 4096\n0 f read 0 4096\n");
        let job = Job::simulated(MS, 1).replaying(&path, ReplaySettings::default());
        log(folder.path(), &format!("0 f read 0 4096\n{bad}\n"));
        let report = job.run();
        let fatal = report.fatal.clone().expect(bad);
        assert!(fatal.contains("line 5"), "{bad}: {fatal}");
        assert!(op(&report, OpKind::Read).io_count <= 1, "{bad}");
        assert!(report.ops.iter().all(|op| op.op == OpKind::Read), "{bad}");
    }
    let folder = folder();
    let path = log(folder.path(), "0 f read 0 512\n");
    let job = Job::simulated(MS, 1).replaying(&path, ReplaySettings::default());
    std::fs::remove_file(&path).unwrap();
    assert!(job.run().fatal.expect("gone").contains("cannot be opened"));
}

/// Goal: the log of a paced job contains the times of issue.
#[test]
fn the_ios_that_a_job_issues_are_logged_with_their_times() {
    let job = Job::simulated(MS, 1).rate(100.0, trueio_model::Arrivals::Linear).ios(5);
    let times: Vec<u64> = issued(job).into_iter().map(|io| io.0).collect();
    assert_eq!(times, [0, S / 100, S / 50, S * 3 / 100, S / 25]);
}

/// Goal: a replay changes a file as its log describes, with each engine.
/// Method: the file is written block by block; then its content is compared with the log.
#[test]
fn each_engine_writes_at_the_offsets_of_the_log() {
    for engine in [EngineKind::Psync, EngineKind::Libaio, EngineKind::IoUring, EngineKind::Posixaio, EngineKind::Mmap] {
        let folder = folder();
        let file = folder.path().join("f");
        std::fs::write(&file, vec![0; 1 << 16]).unwrap();
        let name = file.to_str().unwrap();
        let text = format!(
            "fio version 2 iolog\n{name} add\n{name} open\n{name} write 4096 4096\n{name} write 20480 512\n{name} sync 0 0\n\
             {name} read 0 8192\n{name} close\n"
        );
        let path = folder.path().join("log");
        std::fs::write(&path, text).unwrap();
        if let Some(reason) =
            trueio_engine::availability().into_iter().find(|known| known.engine == engine && !known.works)
        {
            common::skip(engine.name(), &reason.reason);
            continue;
        }
        let job = Job::new(engine).on(&[&file], 1 << 16, Open::ReadWrite);
        let report = job.replaying(&path, ReplaySettings::default()).run();
        assert_clean(&report, engine.name());
        assert_eq!((op(&report, OpKind::Write).byte_count, op(&report, OpKind::Read).byte_count), (4608, 8192));
        assert_eq!(op(&report, OpKind::Sync).io_count, 1);
        let content = std::fs::read(&file).unwrap();
        let written: Vec<usize> = content
            .chunks(512)
            .enumerate()
            .filter(|(_, block)| block.iter().any(|b| *b != 0))
            .map(|(i, _)| i)
            .collect();
        assert_eq!(written, [8, 9, 10, 11, 12, 13, 14, 15, 40], "{}", engine.name());
    }
}
