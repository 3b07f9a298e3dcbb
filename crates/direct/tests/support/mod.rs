//! What the tests need of the machine: loop devices with sectors of a given size, and filesystems on them.
// Each test program uses a part of it.
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

pub use trueio_testkit::{Loop, Mount, folder, skip, tool};

/// A loop device over a new sparse file.
pub fn loop_of(size_bytes: u64, sector_bytes: u32) -> Result<Loop, String> {
    Loop::create(size_bytes, &["--sector-size", &sector_bytes.to_string()])
}

/// A new filesystem on a new loop device.
pub fn on_loop(kind: &str, size_bytes: u64, sector_bytes: u32, options: &str) -> Result<Mount, String> {
    Mount::on(kind, loop_of(size_bytes, sector_bytes)?, options)
}
