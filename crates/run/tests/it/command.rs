//! Jobs whose I/O another program does.

use crate::common::{Job, MIB, Open, folder, op};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::WorkerReport;
use trueio_model::{CommandPlan, EngineKind, OpKind};

/// A job on a file of `MIB` zeros by this program.
fn job(path: &Path, arguments: &[&str]) -> Job {
    std::fs::write(path, vec![0; MIB as usize]).unwrap();
    let job = Job { runner: trueio_run::run_worker, ..Job::new(EngineKind::Command) }
        .on(&[path], MIB, Open::ReadWrite)
        .op(OpKind::Write);
    let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    job.with(|plan| plan.command = Some(CommandPlan { arguments }))
}

fn why(report: &WorkerReport) -> &str {
    report.fatal.as_deref().unwrap_or("")
}

#[test]
fn a_program_writes_the_given_file_and_is_timed_with_the_sync_call_after_it() {
    let folder = folder();
    let path = folder.path().join("file");
    let source = folder.path().join("source");
    let content: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    std::fs::write(&source, &content).unwrap();
    let from = format!("if={}", source.display());
    let mut job = job(&path, &["dd", &from, "of={file}", "bs=65536", "count=16", "conv=notrunc"]);
    job.plan.flush.end_fsync = true;
    // It needs no name.
    std::fs::remove_file(&path).unwrap();
    let report = job.run();
    assert_eq!(report.fatal, None);
    let mut written = vec![0; MIB as usize];
    std::os::unix::fs::FileExt::read_exact_at(&*job.files[0].file, &mut written, 0).unwrap();
    assert!(written == content);
    let (writes, syncs) = (op(&report, OpKind::Write), op(&report, OpKind::Sync));
    assert_eq!((writes.io_count, writes.byte_count, syncs.io_count), (1, MIB, 1));
    let (program, sync) = (writes.latency.total.max_ns().unwrap(), syncs.latency.total.max_ns().unwrap());
    assert!(
        program + sync <= report.elapsed_ns + report.elapsed_ns / 20,
        "{program} + {sync} of {}",
        report.elapsed_ns
    );
    assert!(report.threads.user_ns + report.threads.system_ns > 0, "the program's CPU time is the job's");
    // Sixteen writes of data, and those of dd's own messages.
    let note = &report.engine_notes[0];
    let calls: u64 = note.split("counted ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((16..30).contains(&calls), "{note}");
}

#[test]
fn a_program_that_fails_or_writes_too_little_fails_the_job_and_its_last_message_is_reported() {
    let folder = folder();
    let path = folder.path().join("file");
    let report = job(&path, &["dd", "if=/nonexistent/file", "of={file}"]).run();
    assert!(
        why(&report).contains("`dd` ended with 1: dd: ") && why(&report).contains("/nonexistent/file"),
        "{report:?}"
    );
    let report = job(&path, &["dd", "if=/dev/zero", "of={file}", "bs=4096", "count=1", "conv=notrunc"]).run();
    assert!(
        why(&report).contains("`dd` ended well and wrote") && why(&report).contains("of 1048576 bytes"),
        "{report:?}"
    );
    let report = job(&path, &["no-such-program-anywhere", "{file}"]).run();
    assert!(why(&report).contains("cannot be started: No such file"), "{report:?}");
    assert!(report.ops.is_empty());
}

#[test]
fn a_program_that_does_not_end_is_ended_when_the_run_is_stopped() {
    let folder = folder();
    let path = folder.path().join("file");
    // `sleep` refuses the path as an interval.
    let report = job(&path, &["sleep", "30", "{file}"]).run();
    assert!(!report.was_stopped && why(&report).contains("ended with 1"), "{report:?}");
    let forever = ["dd", "if=/dev/zero", "of=/dev/null"];
    let (report, obeyed) = job(&path, &forever).run_and_stop(Duration::from_millis(300));
    assert!(report.was_stopped && report.fatal.is_none(), "{report:?}");
    assert!(obeyed < Duration::from_secs(60), "{obeyed:?}");
    let ready = folder.path().join("ready");
    let script = format!("trap '' TERM; touch {}; while :; do sleep 0.1; done", ready.display());
    let job = job(&path, &["sh", "-c", &script]);
    let (report, asked) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| job.run());
        while !ready.exists() && !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let asked = Instant::now();
        job.stop.store(true, Relaxed);
        (worker.join().expect("the worker does not panic"), asked)
    });
    assert!(report.was_stopped && asked.elapsed() > Duration::from_secs(2), "{report:?}");
}
