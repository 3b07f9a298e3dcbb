//! A job file of fio's, of any text, ends in jobs or in a report, and the jobs in a plan or a refusal.
//!
//! Run: `cargo +nightly fuzz run fio_job_file`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/fio/tests/it/never_panics.rs` holds the same entry points to the same on stable.

#![no_main]

#[path = "../shared/fio_language.rs"]
mod fio_language;

use fio_language::{World, check};
use libfuzzer_sys::fuzz_target;
use trueio_fio::language::read_job_file;

fuzz_target!(|text: &str| {
    check(read_job_file("a.fio", text, &World(text)));
});
