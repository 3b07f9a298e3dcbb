//! Whatever a rank sends, rank 0 reads it or refuses it, merges what it read, and prints it.
//!
//! Run: `cargo +nightly fuzz run ranks`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/cluster/src/digest.rs` holds the same entry point to the same on stable, and `crates/cluster/src/member/hostile.rs` the connections.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_report::{Style, html, json, parse, terminal};

fuzz_target!(|bytes: &[u8]| {
    if let Some(record) = trueio_cluster::digest(bytes) {
        let text = terminal(&record, &Style { width: 80, color: false, unicode: true });
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{0}']), "a control character: {text:?}");
        let _ = html(&record);
        parse(&json(&record)).expect("what was merged can be written and read");
    }
});
