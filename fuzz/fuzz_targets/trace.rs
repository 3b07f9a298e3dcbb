//! A file of any bytes is a trace or an error, and its rows are read and replayed or an error.
//!
//! Run: `cargo +nightly fuzz run trace`, or without cargo-fuzz as fuzz/README.md says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::io::{Read, Write};
use trueio_iotrace::{IologText, TraceReader, is_trace};

/// A file with these bytes.
fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("there is room");
    file
}

fuzz_target!(|bytes: &[u8]| {
    let file = file_of(bytes);
    let _ = is_trace(&file);
    let Ok(reader) = TraceReader::open(file) else { return };
    let mut count = 0_u64;
    if reader.for_each(|_| count += 1).is_ok() {
        assert_eq!(count, reader.row_count());
    }
    // A log is as long as its trace.
    if let Ok(text) = IologText::of(file_of(bytes)) {
        let _ = text.take(64 << 20).read_to_end(&mut Vec::new());
    }
});
