//! What the tests need of the machine: loop devices with sectors of a given size, and filesystems on them.
// Other systems than Linux use a part of it.
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

pub use trueio_testkit::{Loop, Mount, folder, loop_of, on_loop, skip, tool};

use proptest::prelude::*;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Lengths and offsets within two bytes of a multiple of 512, below `sectors` sectors.
pub fn around_sectors(sectors: usize) -> impl Strategy<Value = usize> {
    (0..sectors, -2..=2i64).prop_map(|(sectors, more)| (sectors as i64 * 512 + more).max(0) as usize)
}

/// Calls `check` with the root of a new filesystem of each kind: ext4, XFS and btrfs on loop devices with sectors of 512
/// and of 4096 bytes, and tmpfs. Kinds that this machine lacks are skipped with their reason.
pub fn on_each_filesystem(check: impl Fn(&Path)) {
    let on = |mount: Result<Mount, String>, need: &str| match mount {
        Ok(mount) => check(&mount.path),
        Err(reason) => skip(need, &reason),
    };
    for sector in [512, 4096] {
        on(on_loop("ext4", 64 * MIB, sector, ""), "loop");
        on(on_loop("xfs", 512 * MIB, sector, ""), "xfs");
        on(on_loop("btrfs", 256 * MIB, sector, ""), "btrfs");
    }
    on(Mount::create("tmpfs", "tmpfs", "size=16m"), "mount");
}
