//! The smallest runs: no file, no disk, exact counts; and outputs that machines read.

use crate::common::*;
use trueio_model::{Outcome, RunRecord};

#[test]
fn a_null_run_needs_no_file_and_leaves_none() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["run", "--ioengine", "null", "--number_ios", "1", "--no-history", "-v"]);
    ran.assert_code(0);
    assert_eq!((ran.err.as_str(), sandbox.listing().len()), ("", 0));
    assert!(ran.out.contains("null engine"), "{ran:?}");
}

#[test]
fn number_ios_is_exact_for_every_worker_pattern_and_depth() {
    let sandbox = Sandbox::new();
    for (number, jobs, depth, rw) in [(1, 1, 1, "read"), (7, 3, 4, "randwrite"), (10_000, 2, 32, "randrw")] {
        let (number_text, jobs_text, depth_text) = (number.to_string(), jobs.to_string(), depth.to_string());
        let (ran, record) = sandbox.record(&[
            "run",
            "--ioengine",
            "null",
            "--number_ios",
            &number_text,
            "--numjobs",
            &jobs_text,
            "--iodepth",
            &depth_text,
            "--rw",
            rw,
            "--no-history",
        ]);
        ran.assert_code(0);
        let total: u64 = only_job(&record).ops.iter().map(|op| op.io_count).sum();
        assert_eq!(total, number * jobs, "{rw}");
        let bytes: u64 = only_job(&record).ops.iter().map(|op| op.byte_count).sum();
        assert_eq!(bytes, total * 4096, "{rw}");
        assert_every_io_is_recorded(&record);
    }
}

#[test]
fn with_json_on_stdout_there_is_one_document_and_nothing_else() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["run", "--ioengine", "null", "--number_ios", "5", "--no-history", "--json", "-"]);
    ran.assert_code(0);
    let record: RunRecord = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(record.outcome, Outcome::Complete);
    assert_eq!(only_job(&record).ops[0].io_count, 5);
    assert_eq!(ran.err, "");
    assert!(record.command[1..].starts_with(&["run".to_owned(), "--ioengine".to_owned()]), "{:?}", record.command);
}

/// Virtual time: 1,000 I/Os of 1 ms each on one channel take exactly a second, at once.
#[test]
fn simulated_time_is_exact_from_the_command_line_to_the_record() {
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(&[
        "run",
        "--ioengine",
        "simulated",
        "--simulated",
        "service=1ms",
        "--number_ios",
        "1000",
        "--size",
        "1g",
        "--no-history",
    ]);
    ran.assert_code(0);
    let job = only_job(&record);
    assert_eq!((job.ops[0].io_count, job.elapsed_ns), (1000, 1_000_000_000));
    assert_eq!(
        (job.ops[0].latency.total.min_ns(), job.ops[0].latency.total.max_ns()),
        (Some(1_000_000), Some(1_000_000))
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "--ioengine", "null", "--number_ios", "1", "--no-history"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    command.stdout(writer);
    drop(reader);
    let output = command.output().expect("the program runs");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_full_stdout_is_an_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "--ioengine", "null", "--number_ios", "1", "--no-history"]);
    command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"));
    let ran = Ran::of(command.output().expect("the program runs"));
    ran.assert_code(1);
    assert!(ran.err.contains("stdout could not be written"), "{ran:?}");
}

#[test]
fn doctor_lists_features_in_text_and_in_json() {
    let sandbox = Sandbox::new();
    let words = sandbox.run(&["doctor"]);
    words.assert_code(0);
    let json = sandbox.run(&["doctor", "--json"]);
    json.assert_code(0);
    let document: serde_json::Value = serde_json::from_str(&json.out).expect("one document");
    let engines = document["engines"].as_array().expect("engines");
    assert_eq!(engines.len(), trueio_model::EngineKind::ALL.len());
    for engine in engines {
        let name = engine["engine"].as_str().expect("a name");
        assert!(words.out.contains(name), "{name} is missing\n{words:?}");
        assert!(!engine["reason"].as_str().expect("a reason").is_empty(), "{name} has no reason");
    }
    assert_eq!((words.err.as_str(), json.err.as_str()), ("", ""));
}

#[test]
fn malformed_requests_exit_with_2_and_answers_with_0() {
    let sandbox = Sandbox::new();
    for request in [&["frobnicate"][..], &["run", "--nonsense"], &["baseline", "--quick", "--thorough"], &["run"]] {
        let ran = sandbox.run(request);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{request:?}\n{ran:?}");
        assert!(!ran.err.is_empty());
    }
    for request in [&[][..], &["--help"], &["--version"], &["run", "--help"], &["help", "baseline"]] {
        let ran = sandbox.run(request);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{request:?}\n{ran:?}");
    }
}

#[test]
fn an_error_of_the_simulated_disk_is_reported_as_such() {
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(&[
        "run",
        "--ioengine",
        "simulated",
        "--simulated",
        "service=1ms,channels=1,fail=2",
        "--number_ios",
        "5",
        "--no-history",
    ]);
    ran.assert_code(1);
    let failure = &only_job(&record).failures[0];
    assert!(failure.explanation.contains("The simulated disk was set to fail this I/O"), "{failure:?}");
    assert!(!ran.out.contains("dmesg"), "{ran:?}");
}
