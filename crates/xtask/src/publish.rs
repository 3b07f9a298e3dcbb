//! `crates/direct` as a package of its own: its features, its oldest compiler, its public names, the C library that it
//! needs, and a publication that is tried and not made.
//!
//! Limits: nothing is uploaded. The oldest compiler and the nightly one are used if they are installed, and so is
//! `cargo public-api`; otherwise the step is skipped with the reason.

use crate::step::{Counts, Outcome, counted, of};
use crate::workspace::{self, cargo, command, has_program};
use crate::{nightly, setup};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A step, which may be a test run.
type Run = fn() -> (Outcome, Option<Counts>);

/// The steps by the names that `cargo xtask publish` takes.
pub(crate) const STEPS: [(&str, Run); 5] = [
    ("features", features),
    ("oldest-compiler", oldest_compiler),
    ("public-api", || (public_api(false), None)),
    ("dry-run", || (dry_run(), None)),
    ("c-library", || (old_c_library(), None)),
];

/// Runs the step with this name.
///
/// # Panics
/// If there is none.
pub(crate) fn run(name: &str) -> (Outcome, Option<Counts>) {
    let step = STEPS.iter().find(|(known, _)| *known == name);
    step.unwrap_or_else(|| panic!("`{name}` is not a step of the package")).1()
}

const PACKAGE: &str = "trueio-direct";
/// The file with the public names of the package.
const SNAPSHOT: &str = "crates/direct/public-api.txt";
/// The C library of manylinux2014, which is also the oldest that Rust's standard library supports.
const GLIBC: Version = (2, 17);
/// Programs link these from `libc_nonshared.a` of an older C library. Source: glibc 2.17, `Makeconfig`, `static-only-routines`.
const LINKED_STATICALLY: [&str; 12] = [
    "stat",
    "fstat",
    "lstat",
    "fstatat",
    "stat64",
    "fstat64",
    "lstat64",
    "fstatat64",
    "mknod",
    "mknodat",
    "atexit",
    "at_quick_exit",
];

/// C code that is compiled with the headers of an older C library calls another function instead of these.
const CHOSEN_BY_HEADERS: [&str; 1] = ["fcntl64"];

fn build_folder(name: &str) -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join(name))
}

/// Tests the features: `tokio` by the package's own tests, the others by a package that depends on the runtimes.
fn features() -> (Outcome, Option<Counts>) {
    let mut tokio = cargo();
    tokio.args(["test", "--package", PACKAGE, "--all-features", "--lib", "--test", "it"]);
    let (outcome, own) = counted(&mut tokio, &[]);
    let (Outcome::Passed(_), Some(own)) = (&outcome, own) else { return (outcome, own) };
    let target = match build_folder("runtimes") {
        Ok(target) => target,
        Err(error) => return (Outcome::Failed(format!("{error:#}")), Some(own)),
    };
    let mut runtimes = cargo();
    runtimes.args(["test", "--locked", "--manifest-path", "crates/direct/tests/runtimes/Cargo.toml", "--target-dir"]);
    let (outcome, counts) = counted(runtimes.arg(target), &[]);
    let counts = counts.map(|counts| Counts {
        passed: counts.passed + own.passed,
        failed: counts.failed + own.failed,
        skipped: counts.skipped + own.skipped,
    });
    (outcome, counts)
}

/// Compiles the package with the compiler that its manifest names as the oldest. Before a release
/// (`TRUEIO_DIST`) it runs the package's tests with that compiler instead, which takes two minutes of processor time.
fn oldest_compiler() -> (Outcome, Option<Counts>) {
    let version = match rust_version() {
        Ok(version) => version,
        Err(error) => return (Outcome::Failed(format!("{error:#}")), None),
    };
    let install = ["toolchain", "install", "--profile", "minimal", &version];
    let is_there = || {
        let run = command("rustup").args(["run", &version, "rustc", "--version"]).stdin(Stdio::null()).output();
        run.is_ok_and(|output| output.status.success())
    };
    if !is_there() {
        let _ = command("rustup").args(install).stdin(Stdio::null()).status();
        if !is_there() {
            return (Outcome::optional(&format!("rustup has no toolchain {version} and cannot install it")), None);
        }
    }
    let target = match build_folder("oldest-compiler") {
        Ok(target) => target,
        Err(error) => return (Outcome::Failed(format!("{error:#}")), None),
    };
    let cargo = |verb: &str| {
        let mut cargo = command("rustup");
        cargo.args(["run", &version, "cargo"]).env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
        // By their manifests, crates that only the tests use may need a newer compiler; compio-buf needs one.
        cargo.args([verb, "--package", PACKAGE, "--ignore-rust-version"]);
        cargo.args(["--features", "tokio,tokio-uring", "--target-dir"]).arg(&target);
        cargo
    };
    if std::env::var_os("TRUEIO_DIST").is_some() {
        return counted(cargo("test").arg("--no-fail-fast"), &[]);
    }
    (of(&mut cargo("check")), None)
}

fn rust_version() -> Result<String> {
    let metadata = workspace::metadata()?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let package = packages.iter().find(|package| package["name"] == PACKAGE).context("no such package")?;
    Ok(package["rust_version"].as_str().context("the manifest has no `rust-version`")?.to_owned())
}

/// Packs and compiles what `cargo publish` would upload.
fn dry_run() -> Outcome {
    let target = match build_folder("publish") {
        Ok(target) => target,
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    of(cargo().args(["publish", "--dry-run", "--allow-dirty", "--package", PACKAGE, "--target-dir"]).arg(target))
}

/// Compares the package's public names with the snapshot, or writes it.
pub(crate) fn public_api(write: bool) -> Outcome {
    if let Err(why_not) = nightly::nightly_cargo(&[]) {
        return Outcome::optional(&why_not);
    }
    if !has_program("cargo-public-api") {
        return Outcome::optional("no cargo-public-api (`cargo install cargo-public-api`)");
    }
    match compare_api(write) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn compare_api(write: bool) -> Result<Outcome> {
    let mut list = command("cargo-public-api");
    list.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    list.args(["public-api", "--package", PACKAGE, "--all-features", "-sss", "--color=never"]);
    let output =
        list.arg("--target-dir").arg(build_folder("public-api")?).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output.output().context("cargo-public-api")?;
    if !output.status.success() {
        bail!("cargo-public-api: {}", output.status);
    }
    let (now, path) = (String::from_utf8(output.stdout)?, workspace::root().join(SNAPSHOT));
    if write {
        std::fs::write(&path, now)?;
        return Ok(Outcome::Passed(format!("wrote {SNAPSHOT}")));
    }
    if !path.exists() {
        return Ok(Outcome::optional(&format!("there is no {SNAPSHOT} yet: `cargo xtask public-api --write`")));
    }
    let before = std::fs::read_to_string(&path).context(SNAPSHOT)?;
    let changes = differences(&before, &now);
    if changes.is_empty() {
        return Ok(Outcome::Passed(format!("{} public names", now.lines().count())));
    }
    changes.iter().for_each(|line| println!("{line}"));
    Ok(Outcome::Failed(format!("{} lines differ from {SNAPSHOT}: `cargo xtask public-api --write`", changes.len())))
}

/// Returns the lines that only one of the texts has, with a leading `-` or `+`.
fn differences(before: &str, now: &str) -> Vec<String> {
    let only = |text: &'_ str, other: &'_ str, sign: char| -> Vec<String> {
        text.lines()
            .filter(|line| !other.lines().any(|known| known == *line))
            .map(|line| format!("{sign}{line}"))
            .collect()
    };
    [only(before, now, '-'), only(now, before, '+')].concat()
}

type Version = (u32, u32);

/// Checks that the compiled library, and the bindings if they were built, need no newer C library than [`GLIBC`].
fn old_c_library() -> Outcome {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Outcome::optional("not a Linux system with glibc");
    }
    if !has_program("nm") || !has_program("cc") {
        return Outcome::optional("no nm or no cc");
    }
    match newer_symbols() {
        Ok((objects, newer)) if newer.is_empty() => {
            Outcome::Passed(format!("{objects} objects link with glibc {}.{}", GLIBC.0, GLIBC.1))
        }
        Ok((_, newer)) => Outcome::Failed(newer.join("; ")),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn newer_symbols() -> Result<(usize, Vec<String>)> {
    let library = oldest_versions()?;
    let objects = objects()?;
    let mut newer = Vec::new();
    for object in &objects {
        newer.extend(newer_symbols_of(object, &library)?);
    }
    newer.sort();
    newer.dedup();
    Ok((objects.len(), newer))
}

/// Returns the functions that an object needs of a C library newer than [`GLIBC`].
fn newer_symbols_of(object: &Path, library: &BTreeMap<String, Version>) -> Result<Vec<String>> {
    let is_shared = object.extension().is_none_or(|extension| extension != "rlib");
    let dynamic: &[&str] = if is_shared { &["-D"] } else { &[] };
    let output = command("nm").args(dynamic).args(["--undefined-only", "--portability"]).arg(object).output()?;
    let file = object.file_name().unwrap_or_default().to_string_lossy();
    let newer = |name: &str| {
        let version = library.get(name).filter(|version| **version > GLIBC)?;
        (!LINKED_STATICALLY.contains(&name))
            .then(|| format!("{file} needs `{name}` of glibc {}.{}", version.0, version.1))
    };
    Ok(undefined(&String::from_utf8_lossy(&output.stdout)).filter_map(newer).collect())
}

/// Checks that a program that was linked with the installed C library could be linked with [`GLIBC`].
///
/// # Errors
/// The functions that it needs of a newer one.
pub(crate) fn links_with_old_c_library(program: &Path) -> Result<String> {
    let mut newer = newer_symbols_of(program, &oldest_versions()?)?;
    newer.retain(|sentence| !CHOSEN_BY_HEADERS.iter().any(|name| sentence.contains(&format!("`{name}`"))));
    if !newer.is_empty() {
        bail!("{}", newer.join("; "));
    }
    Ok(format!("needs no function newer than glibc {}.{}", GLIBC.0, GLIBC.1))
}

/// Returns the undefined symbols of a listing of `nm -P`, without weak ones, which may be missing.
fn undefined(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, kind) = (words.next()?, words.next()?);
        (kind == "U").then(|| name.split('@').next().unwrap_or(name))
    })
}

/// Returns for each symbol of the installed C library the oldest version of the library that has it.
fn oldest_versions() -> Result<BTreeMap<String, Version>> {
    let mut versions = BTreeMap::new();
    for name in ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"] {
        let path = command("cc").arg(format!("-print-file-name={name}")).output()?;
        let path = String::from_utf8(path.stdout)?.trim().to_owned();
        let output = command("nm").args(["-D", "--defined-only", "--portability", &path]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        for (symbol, version) in text.lines().filter_map(defined) {
            versions
                .entry(symbol.to_owned())
                .and_modify(|oldest: &mut Version| *oldest = version.min(*oldest))
                .or_insert(version);
        }
    }
    if versions.len() < 1000 {
        bail!("nm lists only {} symbols of the C library", versions.len());
    }
    Ok(versions)
}

/// Parses `pthread_create@@GLIBC_2.34 T …` into name and version.
fn defined(line: &str) -> Option<(&str, Version)> {
    let (symbol, version) = line.split_whitespace().next()?.split_once('@')?;
    let mut numbers = version.trim_start_matches('@').strip_prefix("GLIBC_")?.split('.');
    Some((symbol, (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?)))
}

/// Returns the compiled library with its dependencies, and the compiled bindings if they exist.
fn objects() -> Result<Vec<PathBuf>> {
    let mut build = cargo();
    build
        .args(["build", "--package", PACKAGE, "--message-format", "json"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = build.output()?;
    if !output.status.success() {
        bail!("the build of {PACKAGE}: {}", output.status);
    }
    let mut objects: Vec<PathBuf> = String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rlib"))
        .collect();
    if objects.is_empty() {
        bail!("cargo reported no compiled library");
    }
    let mut add = |folder: &Path| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_binding = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libtrueio_") && name.ends_with(".so")
        };
        objects.extend(files.filter(is_binding));
    };
    let target = workspace::target_dir()?;
    add(&target.join("release"));
    add(&target.join("debug"));
    add(&target.join("python/cargo/release"));
    add(&target.join("python/cargo/debug"));
    Ok(objects)
}

/// Checks that the package is refused for `target` with a sentence that contains `words`.
pub(crate) fn is_refused(target: &str, words: &str) -> Outcome {
    if let Err(why_not) = setup::add_target(target) {
        return Outcome::skipped(&why_not);
    }
    let mut check = cargo();
    check.args(["check", "--package", PACKAGE, "--target", target]).stdin(Stdio::null());
    match check.output() {
        Ok(output) if output.status.success() => Outcome::Failed(format!("{PACKAGE} compiles for {target}")),
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains(words) => Outcome::Passed(String::new()),
        Ok(output) => Outcome::Failed(format!("`{words}` is not in: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Outcome::Failed(format!("cargo: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_read_from_nm() {
        assert_eq!(defined("pthread_create@@GLIBC_2.34 T 8ff20 a9"), Some(("pthread_create", (2, 34))));
        assert_eq!(defined("pthread_create@GLIBC_2.2.5 T 8ff20 a9"), Some(("pthread_create", (2, 2))));
        assert_eq!(defined("_rtld_global@GLIBC_PRIVATE D 0"), None);
        let listing = "a.o:\nopen64 U\npreadv2@GLIBC_2.26 U\ngetrandom w\n";
        assert_eq!(undefined(listing).collect::<Vec<_>>(), ["open64", "preadv2"]);
    }

    #[test]
    fn a_changed_public_name_is_shown_on_both_sides() {
        assert_eq!(differences("a\nb\n", "a\nc\n"), ["-b", "+c"]);
        assert!(differences("a\n", "a\n").is_empty());
    }
}
