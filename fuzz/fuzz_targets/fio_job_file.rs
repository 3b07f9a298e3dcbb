//! A job file of fio's, of any text, ends in jobs or in a report, and the jobs in a plan or a refusal.
//!
//! Run: `cargo +nightly fuzz run fio_job_file`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/fio/tests/never_panics.rs` holds the same entry points to the same on stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_fio::language::{Surroundings, meet_targets, read_job_file, show_command};
use trueio_job::{Machine, Target, explain, explain_refusal, plan};

/// Every file is the input, so that what includes includes itself.
struct World<'a>(&'a str);

impl Surroundings for World<'_> {
    fn read_file(&self, _path: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
    fn files_below(&self, _: &str) -> Result<(Vec<String>, u64), String> {
        Err("no such directory".to_owned())
    }
    fn variable(&self, name: &str) -> Option<String> {
        (name.len() < 2).then(|| "4k".to_owned())
    }
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn memory_bytes(&self) -> u64 {
        1 << 30
    }
    fn processors(&self) -> u64 {
        2
    }
}

fuzz_target!(|text: &str| {
    let result = read_job_file("a.fio", text, &World(text));
    let mut request = match result {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(error.render().starts_with("error: "));
            return;
        }
    };
    assert!(show_command(&request.jobs).starts_with("fio"));
    let nothing = |_: &str| Target::Missing;
    if meet_targets(&mut request.jobs, &nothing, &request.settings).is_err() {
        return;
    }
    let machine = Machine { memory_bytes: Some(1 << 30), cpus: vec![0, 1], ..Machine::unknown() };
    request.jobs.truncate(20);
    match plan(&request.jobs, &nothing, &machine) {
        Ok(plan) => assert!(request.jobs.is_empty() || explain(&plan).starts_with("job ")),
        Err(refusal) => assert!(explain_refusal(&refusal).starts_with("error: ")),
    }
});
