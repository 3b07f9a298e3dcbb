//! Builds the fuzz targets of fuzz/ and runs them on their kept corpora, two at a time on two processors.
//!
//! Each target begins with the inputs in `fuzz/seeds/TARGET` and adds to `target/fuzz/corpus/TARGET`, which a later run uses,
//! too. They are built with the flags of cargo-fuzz (coverage, AddressSanitizer), with overflow checks and debug assertions.
//! An input that ends a target (panic, memory error, 20 s, in CI 120 s, 2 GiB) is kept in `target/fuzz/artifacts/TARGET` and fails the run.
//!
//! Each target runs for a minute, in CI for 20 s, or for the hours of `--hours`. CI builds most crates without optimization, in a directory of
//! its own: an input takes longer then, and the instrumented build a third of the processor time.
//!
//! Source: LLVM's libFuzzer, <https://llvm.org/docs/LibFuzzer.html#options>

use crate::nightly::nightly_cargo;
use crate::step::{Outcome, of};
use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// What cargo-fuzz passes to the compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Zsanitizer=address";
/// Seconds of a target, unless `--hours` is set.
const SECONDS: u64 = 60;
/// The same in CI, where all targets take less than two minutes.
const SECONDS_IN_CI: u64 = 20;
/// Targets that also begin with the records that older versions wrote.
const OF_RECORDS: [&str; 2] = ["comparison", "record"];

/// How the targets are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// As the manifest sets it: for long runs.
    Optimized,
    /// Without optimization: for 20 s.
    Quick,
}

impl Build {
    /// The directory of the programs, below that of the inputs.
    fn directory(self) -> &'static str {
        match self {
            Build::Optimized => "",
            Build::Quick => "quick",
        }
    }

    /// Arguments of cargo.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Build::Optimized => &[],
            // Intervals of real records are sums of many terms: without optimization, one comparison takes half a minute.
            Build::Quick => &[
                "--config=profile.release.opt-level=0",
                "--config=profile.release.package.trueio-stats.opt-level=1",
                "--config=profile.release.package.trueio-compare.opt-level=1",
                "--config=profile.release.package.trueio-report.opt-level=1",
            ],
        }
    }

    /// The longest time of one input. It is of the wall clock, and CI's programs have idle priority next to the lab.
    fn timeout(self) -> &'static str {
        match self {
            Build::Optimized => "-timeout=20",
            Build::Quick => "-timeout=120",
        }
    }
}

/// Runs each target for 20 s.
pub(crate) fn in_ci() -> Outcome {
    run(None, SECONDS_IN_CI, Build::Quick)
}

/// Runs the targets that the command line names: `[TARGET] [--hours N]`.
pub(crate) fn from_arguments(args: &[&str]) -> Result<Outcome> {
    let (name, seconds) = parse(args)?;
    Ok(run(name, seconds, Build::Optimized))
}

fn parse<'a>(args: &[&'a str]) -> Result<(Option<&'a str>, u64)> {
    let hours = |text: &str| -> Result<u64> {
        let hours: f64 = text.parse().with_context(|| format!("`{text}` is not a number of hours"))?;
        ensure!(hours > 0.0 && hours < 1e6, "`{text}` is not a number of hours");
        Ok((hours * 3600.0).ceil() as u64)
    };
    Ok(match args {
        [] => (None, SECONDS),
        ["--hours", text] => (None, hours(text)?),
        [name, "--hours", text] if !name.starts_with('-') => (Some(*name), hours(text)?),
        [name] if !name.starts_with('-') => (Some(*name), SECONDS),
        _ => bail!("expected `cargo xtask fuzz [TARGET] [--hours N]`"),
    })
}

fn run(name: Option<&str>, seconds: u64, kind: Build) -> Outcome {
    let mut build = match nightly_cargo(&[]) {
        Ok(cargo) => cargo,
        Err(why_not) => return Outcome::optional(&why_not),
    };
    let mut run = || -> Result<Outcome> {
        let all = targets(&std::fs::read_to_string(workspace::root().join("fuzz/Cargo.toml"))?);
        let chosen: Vec<&str> =
            all.iter().map(String::as_str).filter(|known| name.is_none_or(|n| n == *known)).collect();
        ensure!(!chosen.is_empty(), "no such target: {}", all.join(", "));
        let folder = workspace::target_dir()?.join("fuzz");
        build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", TRIPLE, "--target-dir"]);
        build.arg(folder.join(kind.directory())).env("RUSTFLAGS", FLAGS);
        build.args(kind.settings());
        build.args(chosen.iter().flat_map(|target| ["--bin", *target]));
        match of(&mut build) {
            Outcome::Passed(_) => Ok(run_all(kind, &folder, &chosen, seconds)),
            failed => Ok(failed),
        }
    };
    run().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

/// The names of the programs in a manifest.
fn targets(manifest: &str) -> Vec<String> {
    let programs = manifest.split("[[bin]]").skip(1);
    let name =
        |program: &str| Some(program.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').into());
    programs.filter_map(name).collect()
}

/// Runs the targets, whose programs, inputs and logs are in `folder`.
fn run_all(kind: Build, folder: &Path, targets: &[&str], seconds: u64) -> Outcome {
    let parallel = std::thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    println!("{} targets, {parallel} at a time, {seconds} s each", targets.len());
    let waiting = Mutex::new(targets.iter());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..parallel {
            scope.spawn(|| {
                loop {
                    // A statement of its own: the lock is not held while the target runs.
                    let Some(target) = waiting.lock().expect("no thread panics with it").next() else { return };
                    let result = run_one(kind, folder, target, seconds);
                    results.lock().expect("no thread panics with it").push((*target, result));
                }
            });
        }
    });
    judge(results.into_inner().expect("no thread panics with it"))
}

/// Sums the numbers of inputs, or names the targets that failed.
fn judge(mut results: Vec<(&str, Result<u64>)>) -> Outcome {
    results.sort_by_key(|(target, _)| *target);
    let mut lines = Vec::new();
    let mut is_good = true;
    for (target, result) in results {
        match result {
            Ok(count) => lines.push(format!("{target} {count} inputs")),
            Err(error) => {
                is_good = false;
                lines.push(format!("{target} FAILED: {error:#}"));
            }
        }
    }
    Outcome::from_lines(Ok((lines, is_good)))
}

/// Runs a target; returns how many inputs it read.
fn run_one(kind: Build, folder: &Path, target: &str, seconds: u64) -> Result<u64> {
    let of_target = |kind: &str| -> Result<PathBuf> {
        let path = folder.join(kind).join(target);
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(path)
    };
    let (corpus, artifacts) = (of_target("corpus")?, of_target("artifacts")?);
    let log = of_target("logs")?.join("last.txt");
    let root = workspace::root();
    let mut seeds = vec![root.join("fuzz/seeds").join(target)];
    if OF_RECORDS.contains(&target) {
        seeds.push(root.join("crates/store/tests/records"));
    }
    let mut program = Command::new(folder.join(kind.directory()).join(TRIPLE).join("release").join(target));
    program.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
    program.args([kind.timeout(), "-rss_limit_mb=2048", "-print_final_stats=1"]);
    program.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}/", artifacts.display()));
    program.arg(corpus).args(seeds.iter().filter(|path| path.exists()));
    let status = program.status().with_context(|| program.get_program().display().to_string())?;
    let output = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    if !status.success() {
        let from = output.lines().count().saturating_sub(40);
        output.lines().skip(from).for_each(|line| println!("{target}: {line}"));
        bail!("{status}; see {} and {}", artifacts.display(), log.display());
    }
    inputs(&output).filter(|count| *count > 0).with_context(|| format!("it read no input; see {}", log.display()))
}

/// The number of inputs in libFuzzer's closing words.
fn inputs(output: &str) -> Option<u64> {
    output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_manifest_is_found() {
        let root = workspace::root();
        let mut found = targets(&std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap());
        found.sort();
        let mut files: Vec<String> = std::fs::read_dir(root.join("fuzz/fuzz_targets"))
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(found, files);
        assert!(found.contains(&"outputs".to_owned()));
    }

    #[test]
    fn a_target_runs_for_a_minute_or_the_hours_that_are_set() {
        assert_eq!(parse(&[]).unwrap(), (None, 60));
        assert_eq!(parse(&["record"]).unwrap(), (Some("record"), 60));
        assert_eq!(parse(&["--hours", "8"]).unwrap(), (None, 28_800));
        assert_eq!(parse(&["record", "--hours", "0.5"]).unwrap(), (Some("record"), 1800));
        for wrong in [&["--hours"][..], &["--hours", "x"], &["--hours", "-1"], &["a", "b"], &["a", "--hours"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    /// Goal: neither a finding nor a target that reads nothing passes.
    /// Method: programs in place of targets: one that fails, one that is silent, one with libFuzzer's closing words.
    #[test]
    fn a_finding_or_a_silent_target_fails() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join(TRIPLE).join("release");
        std::fs::create_dir_all(&programs).unwrap();
        let is_passed = |target: &str, script: &str| {
            let path = programs.join(target);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            matches!(judge(vec![("x", run_one(Build::Optimized, folder.path(), target, 1))]), Outcome::Passed(_))
        };
        let words = "echo 'stat::number_of_executed_units: 17' >&2";
        assert!(is_passed("good", words));
        assert!(!is_passed("found", &format!("{words}; exit 77")));
        assert!(!is_passed("silent", "true"));
        assert!(!is_passed("idle", "echo 'stat::number_of_executed_units: 0' >&2"));
    }
}
