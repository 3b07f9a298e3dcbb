//! A tool that is stopped while it measures: the verdict names the stop, and the disk is not charged with it.

use crate::common::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use trueio_model::{Check, CheckOutcome, RunRecord};

/// Starts direct reads with a record at `path`.
fn reads(sandbox: &Sandbox, path: &Path) -> Command {
    let reads = ["run", "--rw", "randread", "--bs", "4k", "--ioengine", "psync", "--direct", "require", "--size", "4m"];
    sandbox
        .command(&[&reads[..], &["--runtime", "3s", "--time_based", "--json", path.to_str().expect("UTF-8")]].concat())
}

fn check<'a>(record: &'a RunRecord, name: &str) -> &'a Check {
    record.phases[0].checks.iter().find(|check| check.name == name).expect("the check ran")
}

/// Waits until `is_so`; the limit only ends a test that would hang.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes that a process read from disks so far.
fn read_bytes(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn is_stopped(process: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

fn signal(process: u32, name: &str) {
    tool("kill", &["-s", name, &process.to_string()]).expect("a signal");
}

/// Runs a command that reads, and stops it for more than a second once it does.
fn run_with_a_stop(command: &mut Command) -> Ran {
    let running = command.spawn().expect("the program starts");
    let process = running.id();
    // More than the content samples: the job reads.
    wait_until("the job reads", || read_bytes(process) > 1 << 20);
    signal(process, "STOP");
    wait_until("the process is stopped", || is_stopped(process));
    std::thread::sleep(Duration::from_millis(1_200));
    signal(process, "CONT");
    Ran::of(running.wait_with_output().expect("the program ends"))
}

/// True, with the reason printed, if a stop cannot be seen here.
fn cannot_run(sandbox: &Sandbox) -> bool {
    let probe = sandbox.run(&["device", ".", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&probe.out).unwrap_or_default();
    let has_disk = facts["disks"].as_array().is_some_and(|disks| !disks.is_empty());
    if !has_disk || facts["direct"]["support"] != "direct" {
        println!("skipped: the build directory has no direct I/O, or no disk is visible below it");
        return true;
    }
    if !fs::read_to_string("/proc/thread-self/schedstat").is_ok_and(|text| !text.starts_with("0 0 0")) {
        println!("skipped: the kernel does not count how long threads wait for a processor");
        return true;
    }
    false
}

/// Goal: a baseline measures its disturbed loads once more and says so.
/// Method: the process is stopped while it measures its only load.
#[test]
fn a_baseline_measures_a_disturbed_load_once_more() {
    let sandbox = Sandbox::new();
    if cannot_run(&sandbox) {
        return;
    }
    let path = sandbox.aside("again.json");
    let json = path.to_str().expect("UTF-8");
    let alone = ["baseline", ".", "--size", "16m", "--runtime", "2s", "--loads", "rand-read-4k-q1", "--json", json];
    let ran = run_with_a_stop(&mut sandbox.command(&alone));
    let record = read_record(&path);
    let job = only_job(&record);
    let notes: Vec<&String> = job.engine_notes.iter().filter(|note| note.contains("second measurement")).collect();
    assert_eq!(notes.len(), 1, "{:?}\n{ran:?}", job.engine_notes);
    // The stop was in the first one; other programs may have disturbed the second.
    let is_second = notes[0].starts_with("this is a second measurement; the first (");
    assert!(is_second || notes[0].contains("was no better: "), "{notes:?}");
    assert_eq!(check(&record, "stops").outcome == CheckOutcome::Passed, is_second, "{notes:?}");
}

/// Goal: a stop by SIGSTOP is named with its time and cause, and steadiness does not charge the disk; an undisturbed run has
/// no stop.
/// Method: the process is stopped once it reads, and continued when it has been stopped for longer than a second.
#[test]
fn a_stopped_tool_is_named_and_an_undisturbed_one_is_not() {
    let sandbox = Sandbox::new();
    if cannot_run(&sandbox) {
        return;
    }
    let path = sandbox.aside("stopped.json");
    let ran = run_with_a_stop(&mut reads(&sandbox, &path));
    let record = read_record(&path);
    let found = check(&record, "stops");
    assert_eq!(found.outcome, CheckOutcome::Suspect, "{found:?}\n{ran:?}");
    assert!(found.sentence.starts_with("This tool was stopped for "), "{found:?}");
    assert!(found.sentence.contains("Cause: a signal such as SIGSTOP"), "{found:?}");
    // Other programs may use the same disk meanwhile.
    let mut listed = found.clone();
    listed.sentence = found.sentence.replace(", and nothing was in flight at the disks", "");
    assert_listed("the tool is stopped with SIGSTOP while it measures", Some(&listed));
    let steadiness = check(&record, "steadiness");
    assert!(!steadiness.sentence.contains("no I/O"), "{steadiness:?}");

    let path = sandbox.aside("honest.json");
    let ran = Ran::of(reads(&sandbox, &path).output().expect("the program starts"));
    let record = read_record(&path);
    let found = check(&record, "stops");
    // A busy machine may pause a program for less than the 50 ms from which a stop counts.
    assert_eq!(found.outcome, CheckOutcome::Passed, "{found:?}\n{ran:?}");
    assert_listed("the same run without a stop", None);
}
