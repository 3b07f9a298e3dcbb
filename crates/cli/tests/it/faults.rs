//! Full disks, disks that fail, impossible requests: a record or a refusal, and no file.

use crate::common::*;
use std::fs;
use std::process::Command;
use trueio_model::{IoFailure, OpKind, Outcome, RunRecord, Verdict};

#[track_caller]
fn failure_reason(record: &RunRecord) -> &str {
    match &record.outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("the run did not fail: {other:?}"),
    }
}

#[track_caller]
fn only_failure(record: &RunRecord) -> &IoFailure {
    let failures: Vec<_> = record.phases.iter().flat_map(|p| &p.jobs).flat_map(|j| &j.failures).collect();
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures[0]
}

#[test]
fn a_job_that_needs_more_than_the_free_space_is_refused() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "full", "4m");
    for job in [&["--rw", "read"][..], &["--rw", "write"], &["--rw", "write", "--fallocate", "none"]] {
        let mut all = vec!["run", "--directory", "full", "--size", "8m"];
        all.extend(job);
        sandbox.run(&all).assert_refused(&["need 8 MiB", "has 4 MiB free", "rule: size_beyond_free_space"]);
    }
    assert_eq!(listing(&mount.path), [""; 0]);
}

/// Goal: a disk that fills while a test file is written ends the run with what was measured before.
/// Method: the second job's file fits when the run is planned; another file takes the space while the
/// first job runs.
#[test]
fn enospc_while_a_file_is_filled_leaves_a_record_of_the_phases_before_and_no_file() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "full", "8m");
    sandbox.write(
        "jobs.toml",
        "[defaults]\ndirectory = \"full\"\ntime_based = true\nruntime = \"1500ms\"\n[job.before]\nsize = \"64k\"\n\
         [job.filled]\nstonewall = true\nsize = \"4m\"\n",
    );
    let json = sandbox.aside("record.json");
    let mut command = sandbox.command(&["run", "jobs.toml", "--no-evidence", "--json"]);
    let running = Running::start(command.arg(&json));
    running.wait_for_worker("before-0");
    fs::write(mount.path.join("others"), vec![1; 6 << 20]).expect("another file");
    let (ran, _) = running.wait();
    ran.assert_code(1);
    let record = read_record(&json);
    let reason = failure_reason(&record);
    for word in ["`full/trueio-filled-0.dat`", "writing it before the run failed at byte", "of 4194304", "os error 28"]
    {
        assert!(reason.contains(word), "`{word}` is not in: {reason}");
    }
    assert_eq!(record.phases.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["before"]);
    assert_eq!(listing(&mount.path).len(), 1, "only the other file exists");
    assert!(sandbox.run(&["history"]).out.contains("run"), "it is not in the history");
}

#[test]
fn enospc_in_a_job_that_extends_its_file_is_named_with_offset_and_errno() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "full", "8m");
    let json = sandbox.aside("record.json");
    let job =
        ["run", "--directory", "full", "--rw", "write", "--size", "6m", "--fallocate", "none", "--name", "extend"];
    let mut command = sandbox.command(&job);
    // 1,000 blocks of 4 KiB a second: half of the file is not written when the space is taken.
    let running = Running::start(command.args(["--rate_iops", "1000", "--no-evidence", "--json"]).arg(&json));
    running.wait_for_worker("extend-0");
    fs::write(mount.path.join("others"), vec![1; 5 << 20]).expect("another file");
    let (ran, _) = running.wait();
    ran.assert_code(1);
    let record = read_record(&json);
    let failure = only_failure(&record);
    assert_eq!((failure.op, failure.errno, failure.length), (OpKind::Write, libc::ENOSPC, 4096));
    assert_eq!(failure.path, "full/trueio-extend-0.dat");
    let job = only_job(&record);
    assert_eq!(failure.offset, job.ops[0].byte_count, "the first write that failed follows the last that did not");
    assert_eq!(job.ops[0].error_count, 1);
    assert_every_io_is_recorded(&record);
    assert!(failure_reason(&record).contains("No space left"), "{}", failure_reason(&record));
    assert_eq!(record.phases[0].verdict, Verdict::Contradicted);
    assert_eq!(listing(&mount.path).len(), 1, "only the other file exists");
}

/// Goal: a disk that fails under the run is named with errno, offset and what it means.
/// Method: the file under a loop device is cut to half; blocks beyond it fail with EIO. Reading in
/// order, the first that fails is the first that is gone.
#[test]
fn eio_of_a_disk_is_an_error_of_the_run_with_errno_and_offset() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 8 << 20);
    fs::OpenOptions::new().write(true).open(&device.backing).and_then(|f| f.set_len(4 << 20)).expect("a cut");
    for engine in ["psync", "sync", "pvsync2", "libaio", "io_uring"] {
        let job = ["run", "--filename", &device.device, "--rw", "read", "--direct", "require", "--ioengine", engine];
        let (ran, record) = sandbox.record(&job);
        ran.assert_code(1);
        let failure = only_failure(&record);
        assert_eq!((failure.op, failure.errno, failure.count), (OpKind::Read, libc::EIO, 1), "{engine}");
        assert_eq!((failure.offset, failure.length), (4 << 20, 4096), "{engine}");
        assert_eq!(failure.path, device.device, "{engine}");
        assert!(failure.explanation.contains("Input/output error"), "{engine}: {}", failure.explanation);
        assert_eq!(totals(&record.phases[0], OpKind::Read), (1024, 4 << 20), "{engine}: what was read until then");
        assert_eq!(record.phases[0].verdict, Verdict::Contradicted, "{engine}");
        let reason = format!("a read of 4096 bytes at offset 4194304 of `{}` failed", device.device);
        assert!(failure_reason(&record).contains(&reason), "{engine}: {}", failure_reason(&record));
        assert!(ran.out_joined().contains(&reason), "{engine}: {ran:?}");
    }
}

#[test]
fn with_continue_on_error_failures_are_counted_and_the_run_still_fails() {
    let sandbox = Sandbox::new();
    let model = "service=10us,fail=3,fail=5,fail=200";
    let base = ["run", "--ioengine", "simulated", "--simulated", model, "--size", "1m"];
    let (ran, record) = sandbox.record(&base);
    ran.assert_code(1);
    let job = only_job(&record);
    assert_eq!((job.ops[0].io_count, job.ops[0].error_count), (3, 1), "it ends at the first");

    let mut all = base.to_vec();
    all.extend(["--continue_on_error", "all"]);
    let (ran, record) = sandbox.record(&all);
    ran.assert_code(1);
    let job = only_job(&record);
    assert_eq!((job.ops[0].io_count, job.ops[0].error_count), (253, 3), "all 256 were issued");
    let failure = only_failure(&record);
    assert_eq!((failure.errno, failure.offset, failure.count), (libc::EIO, 3 * 4096, 3));
    assert!(failure_reason(&record).contains("(3 times)"), "{}", failure_reason(&record));
}

#[test]
fn a_failure_of_the_simulated_disk_names_it() {
    let sandbox = Sandbox::new();
    let (ran, record) =
        sandbox.record(&["run", "--ioengine", "simulated", "--simulated", "fail=0", "--size", "1m", "--no-history"]);
    ran.assert_code(1);
    assert!(failure_reason(&record).contains("offset 0 of `the simulated disk` failed"), "{}", failure_reason(&record));
    assert!(!ran.out.contains("``"), "a name is missing\n{ran:?}");
}

#[test]
fn misaligned_direct_io_is_refused_before_a_file_is_created() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let before = sandbox.listing();
    for job in [
        &["--filename", "data", "--bs", "1000"][..],
        &["--filename", "data", "--bs", "4k", "--offset", "100"],
        &["--filename", "data", "--bssplit", "4k/50:700/50"],
        &["--rw", "write", "--size", "64k", "--bs", "1000"],
    ] {
        let mut all = vec!["run", "--direct", "require"];
        all.extend(job);
        sandbox.run(&all).assert_refused(&["error: ", "direct I/O", "hint: "]);
        assert_eq!(sandbox.listing(), before, "{job:?}");
    }
}

#[test]
fn a_directory_on_a_filesystem_that_is_mounted_read_only_is_refused() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let _frozen = Mount::try_new("tmpfs", "size=400m,ro", "none", &sandbox.path("frozen")).expect("a tmpfs");
    let job = ["run", "--directory", "frozen", "--rw", "write", "--size", "1m"];
    sandbox.run(&job).assert_refused(&["is mounted read-only", "rule: cannot_create_here", "hint: choose another"]);
    sandbox.run(&["baseline", "frozen"]).assert_refused(&["os error 30", "hint: name a directory"]);
}

/// Lets no file of a command become longer.
fn limit_files(command: &mut Command, bytes: u64) {
    let limit = move || {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: setrlimit is async-signal-safe and reads the structure only.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, limit) };
}

/// Goal: a job with `fill_device` succeeds when no space is free, and only then.
/// Method: a limit of a file's length, in the middle of a block: that write is short, and the next one fails. If the short
/// write is the job's last, the kernel returns no error.
#[test]
fn a_write_shortened_by_a_limit_does_not_end_a_job_with_fill_device() {
    for (more, errnos) in [("", &[0, libc::EFBIG][..]), ("--size 1028k", &[0])] {
        let sandbox = Sandbox::new();
        let json = sandbox.aside("record.json");
        let line = format!("run --rw write --bs 4k --fill_device --direct 0 --no-evidence {more} --json");
        let mut command = sandbox.command(&line.split_whitespace().collect::<Vec<_>>());
        command.arg(&json);
        limit_files(&mut command, (1 << 20) + 100);
        let (ran, signal) = Running::start(&mut command).wait();
        assert_eq!(signal, None, "{ran:?}");
        ran.assert_code(1);
        let record = read_record(&json);
        let failures = &only_job(&record).failures;
        assert_eq!(failures.iter().map(|failure| failure.errno).collect::<Vec<_>>(), errnos, "{more}");
        assert_eq!((failures[0].offset, failures[0].returned), (1 << 20, 100), "{more}");
        assert!(!ran.out_joined().contains("ignored as set by the job"), "{more}: {}", ran.out);
    }
}

/// `ulimit -f`: if SIGXFSZ is not handled, the kernel ends the process and there is no record.
#[test]
fn the_limit_of_a_files_size_is_an_error_of_the_run() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("record.json");
    let mut command =
        sandbox.command(&["run", "--rw", "write", "--size", "64m", "--fallocate", "none", "--no-evidence", "--json"]);
    command.arg(&json);
    limit_files(&mut command, 32 << 20);
    let (ran, signal) = Running::start(&mut command).wait();
    assert_eq!(signal, None, "{ran:?}");
    ran.assert_code(1);
    let record = read_record(&json);
    let failure = only_failure(&record);
    assert_eq!((failure.errno, failure.offset), (libc::EFBIG, 32 << 20));
    assert_eq!(sandbox.listing(), [""; 0]);
}

/// Goal: a file that is truncated during the run ends it with a record of the reads until then, with
/// every engine: a mapping gets SIGBUS, which would end the process.
/// Method: reads all over a file at a steady rate; while they run, the file is truncated to a block.
#[test]
fn a_file_truncated_during_the_run_leaves_a_record_with_every_engine() {
    for engine in ["psync", "sync", "pvsync2", "libaio", "io_uring", "mmap"] {
        let sandbox = Sandbox::new();
        let path = sandbox.data_file("data", 4 << 20);
        let json = sandbox.aside("record.json");
        let job = ["run", "--filename", "data", "--rw", "randread", "--rate_iops", "2000", "--name", "cut"];
        let time = ["--runtime", "30s", "--time_based", "--no-evidence", "--ioengine", engine, "--json"];
        let mut command = sandbox.command(&[&job[..], &time[..]].concat());
        let running = Running::start(command.arg(&json).arg("--write_iops_log").arg(sandbox.aside("seen")));
        running.wait_for_io(&sandbox.aside("seen_iops.1.log"));
        fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(4096)).expect("a cut");
        let (ran, signal) = running.wait();
        assert_eq!(signal, None, "{engine}: {ran:?}");
        ran.assert_code(1);
        let record = read_record(&json);
        let failure = only_failure(&record);
        assert_eq!((failure.op, failure.errno, failure.returned), (OpKind::Read, 0, 0), "{engine}");
        assert!(failure.offset >= 4096, "{engine}: the first block is still there");
        assert!(failure_reason(&record).contains("may have been truncated"), "{engine}: {}", failure_reason(&record));
        assert!(only_job(&record).ops[0].io_count > 0, "{engine}: what was read until then is lost");
        assert_every_io_is_recorded(&record);
        assert_eq!(sandbox.run(&["history"]).out.lines().count(), 1, "{engine}: it is not in the history");
    }
}

/// Goal: a disk that is gone under the run is an error of the run.
/// Method: the file under a loop device is cut to nothing while the device is read.
#[test]
fn a_disk_that_fails_during_the_run_leaves_a_record() {
    if lacks("loop") {
        return;
    }
    for engine in ["io_uring", "mmap"] {
        let sandbox = Sandbox::new();
        let device = Loop::new(&sandbox, "disk.img", 8 << 20);
        let json = sandbox.aside("record.json");
        let job = ["run", "--filename", &device.device, "--rw", "randread", "--rate_iops", "500", "--name", "gone"];
        let time = ["--runtime", "30s", "--time_based", "--no-evidence", "--ioengine", engine, "--json"];
        let mut command = sandbox.command(&[&job[..], &time[..]].concat());
        let running = Running::start(command.arg(&json).arg("--write_iops_log").arg(sandbox.aside("seen")));
        running.wait_for_io(&sandbox.aside("seen_iops.1.log"));
        fs::OpenOptions::new().write(true).open(&device.backing).and_then(|f| f.set_len(0)).expect("a cut");
        // A mapping answers from the page cache what was read before.
        if engine == "mmap" {
            tool("blockdev", &["--flushbufs", &device.device]).expect("an empty cache");
        }
        let (ran, signal) = running.wait();
        assert_eq!(signal, None, "{engine}: {ran:?}");
        ran.assert_code(1);
        let record = read_record(&json);
        assert_eq!(only_failure(&record).errno, libc::EIO, "{engine}");
        assert!(only_job(&record).ops[0].io_count > 0, "{engine}: what was read until then is lost");
    }
}

/// The kernel keeps a loop device that is detached until its last user is gone.
#[test]
fn a_device_detached_during_the_run_is_measured_to_the_end() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 8 << 20);
    let json = sandbox.aside("record.json");
    let job = ["run", "--filename", &device.device, "--rw", "randread", "--rate_iops", "500", "--name", "held"];
    let mut command = sandbox.command(&[&job[..], &["--runtime", "1500ms", "--time_based", "--json"]].concat());
    let running = Running::start(command.arg(&json));
    running.wait_for_worker("held-0");
    device.detach().expect("a detach");
    let (ran, _) = running.wait();
    ran.assert_code(0);
    let record = read_record(&json);
    assert_eq!((&record.outcome, only_job(&record).ops[0].error_count), (&Outcome::Complete, 0));
    assert_every_io_is_recorded(&record);
}

/// Runs that measure nothing real, with their history in a directory.
fn run_with_history(sandbox: &Sandbox, history: &std::path::Path, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command(arguments);
    Ran::of(command.env("XDG_DATA_HOME", history).output().expect("the program starts"))
}

const NULL_RUN: [&str; 5] = ["run", "--ioengine", "null", "--number_ios", "10"];

/// Goal: a history that cannot be written loses neither the record nor what it held before.
/// Method: a history on a small tmpfs; the space is taken, a run is made, the space is freed.
#[test]
fn a_full_history_disk_is_a_warning_and_loses_nothing() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "data", "2m");
    run_with_history(&sandbox, &mount.path, &NULL_RUN).assert_code(0);
    let before = run_with_history(&sandbox, &mount.path, &["history"]).out;
    assert!(!before.is_empty());

    let filler = mount.path.join("filler");
    fs::write(&filler, vec![1; 4 << 20]).expect_err("it is full now");
    let json = sandbox.aside("record.json");
    let all = [&NULL_RUN[..], &["--json", json.to_str().expect("UTF-8")]].concat();
    let ran = run_with_history(&sandbox, &mount.path, &all);
    ran.assert_code(0);
    assert!(ran.err.contains("warning: the record was not stored in the history"), "{ran:?}");
    assert!(ran.err.contains("full"), "{ran:?}");
    assert_eq!(read_record(&json).outcome, Outcome::Complete);
    assert!(!ran.out.is_empty());

    fs::remove_file(&filler).expect("the space is free again");
    assert_eq!(run_with_history(&sandbox, &mount.path, &["history"]).out, before, "the history was damaged");
    run_with_history(&sandbox, &mount.path, &NULL_RUN).assert_code(0);
    let after = run_with_history(&sandbox, &mount.path, &["history"]).out;
    assert_eq!(after.lines().count(), before.lines().count() + 1);
}

#[test]
fn a_history_that_is_read_only_is_a_warning_and_the_record_is_printed() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "data", "2m");
    run_with_history(&sandbox, &mount.path, &NULL_RUN).assert_code(0);
    mount.make_read_only();
    let json = sandbox.aside("record.json");
    let all = [&NULL_RUN[..], &["--json", json.to_str().expect("UTF-8")]].concat();
    let ran = run_with_history(&sandbox, &mount.path, &all);
    ran.assert_code(0);
    assert!(ran.err.contains("warning: the record was not stored in the history"), "{ran:?}");
    assert_eq!(read_record(&json).outcome, Outcome::Complete);
}

#[test]
fn an_output_on_a_full_disk_fails_the_command_and_the_history_has_the_record() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "full", "64k");
    fs::write(mount.path.join("filler"), vec![1; 1 << 20]).expect_err("it is full now");
    let ran = sandbox.run(&[&NULL_RUN[..], &["--json", "full/record.json"]].concat());
    ran.assert_code(1);
    assert!(ran.err.contains("`full/record.json` could not be written"), "{ran:?}");
    assert!(ran.err.contains("No space left"), "{ran:?}");
    assert_eq!(sandbox.run(&["history"]).out.lines().count(), 1);
}
