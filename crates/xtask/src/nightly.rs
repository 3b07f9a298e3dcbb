//! What needs a nightly compiler: `crates/direct` under Miri and under AddressSanitizer, and the fuzz targets.
//!
//! Miri interprets the library's own tests and finds what the compiler may not assume: reads outside of memory,
//! aliasing that is not allowed, uninitialised bytes, leaks. It knows plain files and no device, so it runs the
//! modules that need no more. AddressSanitizer runs all tests as machine code, with the system's calls
//! through the C library, where it checks each buffer that is handed to the kernel.
//!
//! A missing compiler skips these steps, and a missing component is installed through rustup.
//!
//! Cannot see: what happens in the other systems' files, which are only compiled here.

use crate::step::{Counts, Outcome, counted, of};
use crate::workspace::{self, command};
use std::process::{Command, Stdio};

/// The modules of `crates/direct` that Miri can run.
const MIRI_MODULES: [&str; 6] = ["alignment::", "buffer::", "device::", "open::", "transfer::", "unaligned::"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// `cargo` of the nightly compiler; why not, if there is none with these components.
fn nightly_cargo(components: &[&str]) -> Result<Command, String> {
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
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("rustup cannot install {}: {}", components.join(", "), last_line(&said)));
            }
            Err(error) => return Err(format!("rustup: {error}")),
        }
    }
    let mut cargo = command("rustup");
    // Else the nightly cargo would be told to use this one's compiler.
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
    cargo.args(["miri", "test", "--package", "trueio-direct", "--lib", "--target-dir"]).arg(target_dir);
    counted(&mut cargo, &MIRI_MODULES)
}

/// All tests of the library, compiled with AddressSanitizer.
pub(crate) fn address_sanitizer(required: &[&str]) -> (Outcome, Option<Counts>) {
    let target_dir = match target_dir("asan") {
        Ok(target_dir) => target_dir,
        Err(why) => return (Outcome::Failed(why), None),
    };
    let cargo = |what: &[&str]| -> Result<Command, String> {
        let mut cargo = nightly_cargo(&[])?;
        // The sanitizer sees calls of the C library only. With a target named, build scripts go without.
        cargo.env("RUSTFLAGS", "-Zsanitizer=address --cfg=rustix_use_libc");
        // An allocation that is refused is an error of the library and tested as such.
        cargo.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
        if !required.is_empty() {
            cargo.env("TRUEIO_REQUIRE", required.join(","));
        }
        cargo.args(what).args(["--package", "trueio-direct", "--target", TARGET, "--target-dir"]).arg(&target_dir);
        Ok(cargo)
    };
    // A test runs them, and `cargo test --tests` does not build them.
    let examples = match cargo(&["build", "--examples"]) {
        Ok(mut build) => of(&mut build),
        Err(why_not) => return (Outcome::optional(&why_not), None),
    };
    match (examples, cargo(&["test", "--lib", "--tests", "--no-fail-fast"])) {
        (Outcome::Passed(_), Ok(mut test)) => counted(&mut test, &[]),
        (outcome, _) => (outcome, None),
    }
}

/// The fuzz targets compile.
pub(crate) fn fuzz_targets() -> Outcome {
    let manifest = workspace::root().join("fuzz/Cargo.toml");
    if !manifest.exists() {
        return Outcome::optional("no fuzz/Cargo.toml");
    }
    match nightly_cargo(&[]) {
        Ok(mut cargo) => of(cargo.args(["check", "--manifest-path"]).arg(manifest)),
        Err(why_not) => Outcome::optional(&why_not),
    }
}
