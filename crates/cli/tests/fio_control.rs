//! What steers fio's jobs while they run: searches for a queue depth, and beside each the program that it is compared
//! with, where that is there.
//!
//! Cannot see: whether what was found is right for a disk (`crates/engine/tests/control.rs` has exact devices).

mod common;

use common::{Ran, Sandbox};
use serde_json::Value;
use std::process::Command;

/// Runs a command line of fio's, written as in a shell without quotes; it must be a success that says nothing.
fn fio(sandbox: &Sandbox, line: &str) -> Ran {
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    ran
}

/// The document of a run.
fn json(sandbox: &Sandbox, line: &str) -> Value {
    serde_json::from_str(&fio(sandbox, &format!("{line} --output-format=json")).out).expect("JSON")
}

/// The document that the real fio writes for the same line; `None` where it is not installed.
fn real(sandbox: &Sandbox, line: &str) -> Option<Value> {
    let mut command = Command::new("fio");
    let words = line.split_whitespace().chain(["--output-format=json"]);
    let Ok(ran) = command.args(words).current_dir(sandbox.path(".")).output() else {
        println!("skipped: fio is not installed");
        return None;
    };
    assert!(ran.status.success(), "fio {line}: {}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let begin = text.find('{').expect("a document");
    Some(serde_json::from_str(&text[begin..]).expect("fio's JSON"))
}

/// The part of a job's entry that tells of the search, without the keys that fio 3.33 does not have.
fn latency(document: &Value) -> Vec<(String, Value)> {
    let job = document["jobs"][0].as_object().expect("an entry");
    let keys = job.iter().filter(|(key, _)| key.starts_with("latency_") && !key.ends_with('s'));
    keys.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Goal: a depth that keeps the target is found as by fio, and told under the same keys.
/// Method: nothing is as fast as an engine that does nothing, so the first window, with the job's own depth, keeps a
/// target of a second; and no I/O takes 1 ns or less, so another target is kept by none, and the job runs to its end.
#[test]
fn a_latency_target_ends_the_job_at_the_depth_that_keeps_it_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --size=1g --bs=4k --rw=randread --norandommap --iodepth=16 --time_based \
                --runtime=20 --latency_target=1s --latency_window=50ms --latency_percentile=99.5";
    let ours = json(&sandbox, line);
    let job = &ours["jobs"][0];
    assert_eq!(job["latency_depth"], 16);
    assert_eq!(
        (&job["latency_target"], &job["latency_target_ns"]),
        (&1_000_000_000_u64.into(), &1_000_000_000_u64.into())
    );
    assert_eq!((&job["latency_window"], &job["latency_percentile"]), (&50_000.into(), &99.5.into()));
    let runtime = job["read"]["runtime"].as_u64().expect("a number");
    assert!((50..15_000).contains(&runtime), "it ended with its first window, not with its runtime: {runtime} ms");
    let warnings = ours["trueio"]["warnings"].to_string();
    assert!(warnings.contains("the queue depth of 16 that the job asks for keeps it"), "{warnings}");
    if let Some(theirs) = real(&sandbox, line) {
        let without_units = |of: &Value| -> Vec<_> {
            latency(of)
                .into_iter()
                .filter(|(key, _)| !matches!(&key[..], "latency_target_ns" | "latency_window_us"))
                .collect()
        };
        assert_eq!(without_units(&ours), without_units(&theirs));
    }
    let text = fio(&sandbox, line).out;
    assert!(text.contains("     latency   : target=1000000000, window=50000, percentile=99.50%, depth=16\n"), "{text}");
}

/// The depth goes down to one; if a share must keep the target, the job goes on, and if all must, it has failed.
#[test]
fn a_latency_target_that_nothing_keeps_runs_to_the_jobs_end_or_fails_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=posixaio --size=1m --bs=4k --rw=randread --filename=f --iodepth=8 --time_based \
                --runtime=1 --latency_target=1ns --latency_window=20ms";
    let share = format!("{line} --latency_percentile=90");
    let ours = json(&sandbox, &share);
    let job = &ours["jobs"][0];
    assert_eq!(job["latency_depth"], 1, "{job}");
    let runtime = job["read"]["runtime"].as_u64().expect("a number");
    assert!(runtime >= 990, "{runtime} ms");
    let warnings = ours["trueio"]["warnings"].to_string();
    assert!(warnings.contains("no queue depth that was tried keeps it"), "{warnings}");
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("longer than the `latency_target`"), "{}", ran.err);
    // fio rounds a target below a microsecond to none.
    if let Some(theirs) = real(&sandbox, &share.replace("1ns", "1us")) {
        assert_eq!(theirs["jobs"][0]["latency_depth"], 1);
        let line = line.replace("1ns", "1us");
        let ran = Command::new("fio").args(line.split_whitespace()).current_dir(sandbox.path(".")).output();
        assert_eq!(ran.expect("it is installed").status.code(), Some(1));
    }
}

#[test]
fn a_latency_target_without_a_window_is_refused_and_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["fio", "--name=a", "--size=1m", "--latency_target=5ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("latency_window"), "{}", ran.err);
}
