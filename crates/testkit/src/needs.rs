//! What a test needs of the machine, and how it is skipped where that is missing.
//!
//! The variable `TRUEIO_REQUIRE` lists needs (`root,loop,xfs`) whose absence is a failure. `cargo xtask ci`
//! counts a line that begins with `skipped` as a skipped test.

use crate::{Loop, Mount, tool};
use std::path::Path;

/// Prints why a test is skipped.
///
/// # Panics
/// If `TRUEIO_REQUIRE` lists the need.
#[track_caller]
pub fn skip(need: &str, reason: &str) {
    let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
    let is_required = required.split([',', ' ']).any(|listed| listed.trim() == need);
    assert!(!is_required, "TRUEIO_REQUIRE lists `{need}`, but {reason}");
    println!("skipped: {need}: {reason}");
}

/// True, after [`skip`], if this machine lacks `root`, `loop`, `tmpfs` or `strace`: the test then returns.
#[track_caller]
pub fn lacks(need: &str) -> bool {
    have(need).inspect_err(|reason| skip(need, reason)).is_err()
}

impl Loop {
    /// A device over a new sparse file; `None`, after [`skip`], where there is none.
    pub fn attach(size_bytes: u64) -> Option<Self> {
        Self::create(size_bytes, &[]).inspect_err(|reason| skip("loop", reason)).ok()
    }
}

fn have(need: &str) -> Result<(), String> {
    if need == "strace" {
        return tool("strace", &["-o", "/dev/null", "true"]).map(drop);
    }
    if !is_root() {
        return Err(format!("`{need}` needs root"));
    }
    match need {
        "root" => Ok(()),
        "loop" if Path::new("/dev/loop-control").exists() => Ok(()),
        "loop" => Err("there are no loop devices".to_owned()),
        "tmpfs" => Mount::create("tmpfs", "none", "size=1m").map(drop),
        other => panic!("unknown need `{other}`"),
    }
}

/// Whether this process runs as root.
#[cfg(unix)]
pub fn is_root() -> bool {
    // SAFETY: a plain call without arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Systems without user numbers have no root.
#[cfg(not(unix))]
pub fn is_root() -> bool {
    false
}
