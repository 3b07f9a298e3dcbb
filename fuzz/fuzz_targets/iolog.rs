//! A log of any bytes ends in a summary or an error, and its replay is what the summary says.
//!
//! Run: `cargo +nightly fuzz run iolog`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/model/tests/it/iolog_never_panics.rs` holds the same entry points to the same on stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_model::{ReplaySettings, Replayer, scan_iolog};

fuzz_target!(|bytes: &[u8]| {
    let settings = ReplaySettings { align_bytes: 512, offset_divisor: 3, ..ReplaySettings::default() };
    let Ok(summary) = scan_iolog(bytes, &settings) else { return };
    let mut replayer = Replayer::new(bytes, settings).expect("it was read before");
    let (mut count, mut before) = (0, 0);
    while let Some((name, io)) = replayer.next_io().expect("it was read before") {
        let (_, end) = summary.files.iter().find(|(known, _)| known == name).expect("a file of the summary");
        assert!(io.offset + u64::from(io.length) <= *end && io.due_ns >= before);
        (count, before) = (count + 1, io.due_ns);
    }
    assert_eq!(count, summary.ops.iter().map(|ops| ops.count).sum::<u64>());
});
