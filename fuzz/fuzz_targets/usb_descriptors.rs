//! A USB device's descriptors of any bytes end in settings or an error.
//!
//! Run: `cargo +nightly fuzz run usb_descriptors`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/device/src/usb/descriptors.rs` holds the same entry points to the same on stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_device::usb::{parse_can_superspeed, parse_descriptors};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_can_superspeed(bytes);
    let Ok(found) = parse_descriptors(bytes) else { return };
    // What is given is never more than the bytes can hold: nothing is read twice.
    let count: usize = found.configurations.iter().map(|configuration| configuration.settings.len()).sum();
    assert!(count * 9 <= bytes.len());
    for configuration in &found.configurations {
        for setting in &configuration.settings {
            assert!(setting.alternate.pipes.len() <= 4);
            let _ = found.storage_settings(Some(configuration.value), setting.interface);
        }
    }
});
