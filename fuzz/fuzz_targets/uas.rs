//! Any bytes of a UAS device end in units, sense data and facts or in errors, and any behaviour of one in the end of every command.
//!
//! Run: `cargo +nightly fuzz run uas`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/uas/tests/it/never_hangs.rs` holds the same entry points to the same on stable.

#![no_main]

#[path = "../shared/uas_chaos.rs"]
mod uas_chaos;

use libfuzzer_sys::fuzz_target;
use trueio_uas::{iu, scsi, sense};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(iu::Unit::Sense { sense, .. }) = iu::parse(bytes) {
        assert!(sense.len() <= bytes.len());
    }
    if let Some(sense) = sense::Sense::parse(bytes) {
        assert!(!sense.to_string().is_empty());
    }
    if let Some(capacity) = scsi::parse_capacity_16(bytes).or_else(|| scsi::parse_capacity_10(bytes)) {
        assert!(capacity.block_count > 0 && capacity.physical_bytes >= capacity.block_bytes);
    }
    let _ = (scsi::parse_inquiry(bytes), scsi::parse_caching(bytes), scsi::parse_luns(bytes));
    for page in [0x00, 0x80, 0xb0, 0xb2] {
        if let Some(body) = scsi::page_body(bytes, page) {
            let _ = (scsi::parse_block_limits(body), scsi::parse_provisioning(body), scsi::parse_serial(body));
        }
    }
    uas_chaos::run(bytes);
});
