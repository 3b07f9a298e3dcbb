//! Whatever a peer of a fio client or server sends, it is a message or an error.
//!
//! Run: `cargo +nightly fuzz run fio_wire`, or without cargo-fuzz as fuzz/README.md says.
//! `crates/fio/tests/it/frames.rs` holds the same entry points to the same on stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trueio_fio::wire::frame::TO_SERVER_BYTES_MAX;
use trueio_fio::wire::{Address, ToClient, ToServer, read_magic, receive, send};

fuzz_target!(|bytes: &[u8]| {
    let _ = read_magic(&mut &bytes[..]);
    let _ = receive::<ToClient>(&mut &bytes[..], TO_SERVER_BYTES_MAX);
    let mut from = bytes;
    while let Ok(message) = receive::<ToServer>(&mut from, TO_SERVER_BYTES_MAX) {
        let mut again = Vec::new();
        send(&mut again, &message, u32::MAX).expect("a vector takes it");
        let heard: ToServer = receive(&mut &again[..], u32::MAX).expect("it was sent");
        assert_eq!(heard, message);
    }
    if let Some(Ok(address)) = std::str::from_utf8(bytes).ok().map(Address::parse) {
        let again = Address::parse(&address.to_string()).expect("it was shown");
        assert_eq!((again.hostname(), again.port()), (address.hostname(), address.port()));
    }
});
