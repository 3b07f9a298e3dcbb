//! Tests of the engine's Neon code, under QEMU's emulation of a 64-bit Arm processor. A step of `cargo xtask ci`.
//!
//! Random content and checksums must be the same bytes on every processor: what one machine wrote, another compares. On x86-64
//! the tests compare each width of vectors with single words; here the same tests run with Neon, and with the checksums' own
//! choice of instructions (CRC, AES).
//!
//! Limits: emulation shows values, not speed. Only tests of content and checksums run: the others need a kernel of their own.

use crate::setup;
use crate::step::{Counts, Outcome, counted};
use crate::workspace::cargo;

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Packages with a file that each installs: compiler, C library, emulator. The library is found from a folder of PATH.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "../aarch64-linux-gnu/lib/libc.so"),
    ("qemu-user-static", "qemu-aarch64-static"),
];
/// Parts of names of the tests that run.
const TESTS: [&str; 3] = ["content::", "verify::digest", "verify::md5"];

/// Builds and runs the tests, or says why they cannot be.
pub(crate) fn tests() -> (Outcome, Option<Counts>) {
    match setup::install(PACKAGES) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::optional(&why_not), None),
    }
    if let Err(why_not) = setup::add_target(TARGET) {
        return (Outcome::optional(&why_not), None);
    }
    let mut test = cargo();
    test.args(["test", "--package", "trueio-engine", "--lib", "--target", TARGET, "--"]).args(TESTS);
    test.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    test.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64-static -L /usr/aarch64-linux-gnu");
    match counted(&mut test, &[]) {
        // A name that no test has any more would leave nothing to run.
        (Outcome::Passed(_), Some(counts)) if counts.passed == 0 => {
            (Outcome::Failed("no test ran".into()), Some(counts))
        }
        ended => ended,
    }
}
