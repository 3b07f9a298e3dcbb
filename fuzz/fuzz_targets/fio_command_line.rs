//! A command line of fio's, of any words, ends in jobs or in a report, and the jobs in a plan or a refusal.
//!
//! Run: `cargo +nightly fuzz run fio_command_line`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/fio/tests/it/never_panics.rs` holds the same entry points to the same on stable.

#![no_main]

#[path = "../shared/fio_language.rs"]
mod fio_language;

use fio_language::{World, check};
use libfuzzer_sys::fuzz_target;
use trueio_fio::language::read;

fuzz_target!(|text: &str| {
    let words: Vec<String> = text.split([' ', '\n']).map(str::to_owned).collect();
    check(read(&words, &World(text)));
});
