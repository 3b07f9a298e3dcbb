//! Whatever a rank sends, rank 0 reads it or refuses it, and merges what it read.
//!
//! Run: `cargo +nightly fuzz run ranks`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/cluster/src/digest.rs` holds the same entry point to the same on stable, and `crates/cluster/src/member/hostile.rs` the connections.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(record) = trueio_cluster::digest(bytes) {
        serde_json::to_string(&record).expect("what was merged can be written");
        let _ = trueio_report::ranks_text(&record);
    }
});
