//! A job file of any text ends in jobs or in a report, and the jobs in a plan or a refusal.
//!
//! Run: `cargo +nightly fuzz run job_toml`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/job/tests/it/never_panics.rs` holds the same entry points to the same on stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_job::{Machine, Target, explain, explain_refusal, parse_job_file, plan};

fuzz_target!(|text: &str| {
    let jobs = match parse_job_file("job.toml", text).map(|file| file.jobs) {
        Ok(jobs) => jobs,
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(error.render().starts_with("error: "));
            return;
        }
    };
    assert!(!jobs.is_empty());
    let machine = Machine { memory_bytes: Some(1 << 30), cpus: vec![0, 1], ..Machine::unknown() };
    // Nothing exists, so only jobs that touch nothing are planned; no file is ever opened.
    match plan(&jobs, &|_: &str| Target::Missing, &machine) {
        Ok(plan) => assert!(explain(&plan, false).starts_with("job ")),
        Err(refusal) => assert!(explain_refusal(&refusal).starts_with("error: ")),
    }
});
