//! Checks that need a nightly compiler: `crates/direct` and `crates/engine` under Miri and sanitizers.
//!
//! Miri interprets tests and detects undefined behaviour: reads outside of memory, forbidden
//! aliasing, uninitialised bytes, leaks. It supports plain files and no devices, so it runs the modules that need no
//! more. AddressSanitizer runs all tests as machine code. System calls go through the C library there, where it
//! checks each buffer that is passed to the kernel. ThreadSanitizer runs the tests of `crates/engine` with several workers.
//! All are steps of the deep tier (`cargo xtask ci deep`), and of `cargo xtask sanitize`.
//!
//! A missing compiler skips these steps, and a missing component is installed through rustup.
//!
//! Limit: the files of other systems are only compiled here, and not tested.

use crate::step::{Counts, Outcome, counted, of};
use crate::workspace::{self, command};
use std::process::{Command, Stdio};

/// The modules of `crates/direct` that Miri can run.
const MIRI_MODULES: [&str; 8] =
    ["alignment::", "block_locks::", "buffer::", "device::", "open::", "pool::", "transfer::", "unaligned::"];
/// The tests of `crates/engine` that Miri can run within minutes: memory of I/Os, locks between workers, verification.
const MIRI_TESTS_OF_ENGINE: [&str; 5] = [
    "buffers::tests::a_buffers_pointer",
    "content::lanes::tests::a_lane",
    "file_lock::",
    "verify::block::",
    "verify::digest::",
];
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Leaks of `crates/engine` that are meant.
const LEAKS: &str = "crates/engine/tests/leaks.txt";

/// Returns `cargo` of the nightly compiler, or the reason why there is none with these components.
pub(crate) fn nightly_cargo(components: &[&str]) -> Result<Command, String> {
    let list = command("rustup").args(["toolchain", "list"]).output();
    if !list.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nightly")) {
        return Err("no nightly toolchain".into());
    }
    if !components.is_empty() {
        // Does nothing if they are there.
        let add = command("rustup")
            .args(["component", "add", "--toolchain", "nightly"])
            .args(components)
            .stdin(Stdio::null())
            .output();
        match add {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(format!("rustup cannot install {}: {}", components.join(", "), last_line(&errors)));
            }
            Err(error) => return Err(format!("rustup: {error}")),
        }
    }
    let mut cargo = command("rustup");
    // Otherwise the nightly cargo would use this toolchain's compiler.
    cargo.args(["run", "nightly", "cargo"]).env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    Ok(cargo)
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default()
}

/// A folder of its own in the build directory, so that nothing of the stable compiler is thrown away.
fn target_dir(name: &str) -> Result<std::path::PathBuf, String> {
    workspace::target_dir().map(|target| target.join(name)).map_err(|error| format!("{error:#}"))
}

/// The library's own tests, interpreted.
pub(crate) fn miri() -> (Outcome, Option<Counts>) {
    interpreted("trueio-direct", &MIRI_MODULES)
}

/// Tests of `crates/engine`, interpreted.
pub(crate) fn miri_of_engine() -> (Outcome, Option<Counts>) {
    interpreted("trueio-engine", &MIRI_TESTS_OF_ENGINE)
}

fn interpreted(package: &str, tests: &[&str]) -> (Outcome, Option<Counts>) {
    let mut cargo = match nightly_cargo(&["miri", "rust-src"]) {
        Ok(cargo) => cargo,
        Err(why_not) => return (Outcome::optional(&why_not), None),
    };
    let target_dir = match target_dir("miri") {
        Ok(target_dir) => target_dir,
        Err(why) => return (Outcome::Failed(why), None),
    };
    // Isolation would forbid files. Short reads, which Miri invents, are an error of direct I/O.
    cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-no-short-fd-operations");
    cargo.args(["miri", "test", "--package", package, "--lib", "--target-dir"]).arg(target_dir);
    counted(&mut cargo, tests)
}

/// All tests of the library, compiled with AddressSanitizer.
pub(crate) fn address_sanitizer(required: &[&str]) -> (Outcome, Option<Counts>) {
    // A test runs the examples, and `cargo test --tests` does not build them.
    let examples = match with_address_sanitizer("trueio-direct", &["build", "--examples"], required) {
        Ok(mut build) => of(&mut build),
        Err(why_not) => return (Outcome::optional(&why_not), None),
    };
    let test = with_address_sanitizer("trueio-direct", &["test", "--lib", "--tests", "--no-fail-fast"], required);
    match (examples, test) {
        (Outcome::Passed(_), Ok(mut test)) => counted(&mut test, &[]),
        (outcome, _) => (outcome, None),
    }
}

/// All tests of `crates/engine`, compiled with AddressSanitizer.
pub(crate) fn address_sanitizer_of_engine(required: &[&str]) -> (Outcome, Option<Counts>) {
    match with_address_sanitizer("trueio-engine", &["test", "--no-fail-fast", "--lib", "--tests"], required) {
        Ok(mut test) => {
            test.env("LSAN_OPTIONS", format!("suppressions={}", workspace::root().join(LEAKS).display()));
            counted(&mut test, &[])
        }
        Err(why_not) => (Outcome::optional(&why_not), None),
    }
}

fn with_address_sanitizer(package: &str, what: &[&str], required: &[&str]) -> Result<Command, String> {
    let mut cargo = nightly_cargo(&[])?;
    // The sanitizer sees calls of the C library only. With a target named, build scripts go without.
    cargo.env("RUSTFLAGS", "-Zsanitizer=address --cfg=rustix_use_libc");
    // An allocation that is refused is an error of the library and tested as such.
    cargo.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
    if !required.is_empty() {
        cargo.env("TRUEIO_REQUIRE", required.join(","));
    }
    cargo.args(what).args(["--package", package, "--target", TARGET, "--target-dir"]).arg(target_dir("asan")?);
    Ok(cargo)
}

/// Tests of `crates/engine` with several workers, pauses and requests to stop, compiled with ThreadSanitizer. The standard
/// library is compiled with it, too: otherwise each of its locks would look like a race.
pub(crate) fn thread_sanitizer_of_engine(required: &[&str]) -> (Outcome, Option<Counts>) {
    let (mut cargo, target_dir) = match (nightly_cargo(&["rust-src"]), target_dir("tsan")) {
        (Ok(cargo), Ok(target_dir)) => (cargo, target_dir),
        (Err(why_not), _) | (_, Err(why_not)) => return (Outcome::optional(&why_not), None),
    };
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread --cfg=rustix_use_libc");
    if !required.is_empty() {
        cargo.env("TRUEIO_REQUIRE", required.join(","));
    }
    cargo.args(["-Zbuild-std", "test", "--no-fail-fast", "--package", "trueio-engine"]);
    cargo.args(["--test", "it", "--target", TARGET, "--target-dir"]).arg(target_dir);
    counted(&mut cargo, &["conformance::", "control::", "locks::"])
}
