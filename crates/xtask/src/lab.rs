//! The cases of the lab: what its machines need, and running them.
//!
//! The cases are tests of `crates/lab`; see docs/lab.md. They are not run with the other tests,
//! because each waits for a machine that boots.

use crate::ci::{Counts, Outcome, counted};
use crate::setup;
use crate::workspace::{cargo, command};
use std::process::Stdio;

/// A package, and the program by which it is recognised. Kernels and what goes into a machine are
/// fetched by the lab itself.
const PACKAGES: [(&str, &str); 4] = [
    ("qemu-system-x86", "qemu-system-x86_64"),
    ("kmod", "depmod"),
    // SQLite is C, and the program inside is linked with musl.
    ("musl-tools", "musl-gcc"),
    ("xz-utils", "xz"),
];

/// Installs what is missing and runs the cases whose name contains `case`; all without one. Where
/// `is_required`, a machine that cannot be had is a failure.
pub(crate) fn run(case: Option<&str>, is_required: bool) -> (Outcome, Option<Counts>) {
    match setup::install(&PACKAGES) {
        Ok(what) => println!("{what}"),
        // The cases say what they lack.
        Err(why_not) => println!("{why_not}"),
    }
    let mut rustup = command("rustup");
    let got = rustup.args(["target", "add", "x86_64-unknown-linux-musl"]).stdin(Stdio::null()).output();
    if !got.is_ok_and(|output| output.status.success()) {
        println!("rustup did not add the target x86_64-unknown-linux-musl");
    }
    let mut test = cargo();
    test.args(["test", "--package", "trueio-lab", "--no-fail-fast"]);
    match case {
        None => {}
        Some(case) => {
            test.args(["--test", "*", case]);
        }
    }
    // There is one machine at a time; in order, cases that share one come after each other.
    test.env("RUST_TEST_THREADS", "1");
    if is_required {
        test.env("TRUEIO_REQUIRE", "lab");
    }
    counted(&mut test, &[])
}
