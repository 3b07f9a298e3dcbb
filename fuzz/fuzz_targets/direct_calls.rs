//! Any bytes as calls of `trueio-direct` on a new file, held against a plain model: see
//! `crates/direct/tests/it/operations.rs`, which this shares with the tests on stable.
//!
//! The file lies in the folder that TRUEIO_FUZZ_DIRECTORY names, or where temporary files are: on tmpfs every call is
//! buffered and quick, on ext4 or XFS it is direct.

#![no_main]

#[path = "../../crates/direct/tests/it/operations.rs"]
mod operations;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let place = std::env::var_os("TRUEIO_FUZZ_DIRECTORY").map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(place).expect("a folder for the file");
    operations::run(input, folder.path());
});
