//! fio's own black-box suites, run with fio and with `trueio`, called `fio`.
//!
//! The caller names a source tree of fio, as a folder or as a git repository. It is copied into the build directory, fio is built
//! there (with libaio, if its headers are installed), and the scripts of its folder `t/` run with both programs, and with
//! one that only creates its output file: what that passes shows nothing. Nothing of the tree enters this repository.
//!
//! Limits: a script counts its own tests; one that prints no count fails with all of them. Scripts for NVMe passthrough, SCSI
//! and zoned devices need hardware and are not in the list.

use crate::fio_plot::environment;
use crate::python::interpreter;
use crate::workspace::{self, command};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use trueio_testkit::loop_of;

/// The share that `trueio` must pass of what fio passes, in percent, net of what the program without content passes.
const SHARE_MIN: f64 = 95.0;
/// The device of suites that trim one.
const DEVICE_BYTES: u64 = 256 << 20;
/// A file of a suite's results that is larger is removed after the suite: data that jobs wrote, which would fill the disk.
const RESULT_BYTES_MAX: u64 = 1 << 20;
/// The longest run of a suite, in seconds.
const LONGEST: &str = "1800";
/// The longest run of a test, as the scripts' common file sets it, and here: some hang with fio itself.
const TEST_LONGEST: [&str; 2] = ["'timeout': 600", "'timeout': 30"];
/// The script that starts servers, and the ports that it has for them.
const SERVERS: &str = "client_server.py";
const SERVER_PORTS: [u16; 4] = [8765, 8766, 8767, 8768];
/// Suites whose programs run one after the other, because they measure, listen at the same port, or write gigabytes.
const ALONE: &[&str] = &[SERVERS, "steadystate_tests.py", "latency_percentiles.py", "run-fio-tests.py"];

/// A suite: the script in `t/`, and its arguments in addition to the program (`@`). `%` is the folder of its results, `^` that of
/// fio's source, and `--dut` is followed by a loop device, or left out where there is none.
struct Suite {
    script: &'static str,
    arguments: &'static [&'static str],
}

const fn suite(script: &'static str, arguments: &'static [&'static str]) -> Suite {
    Suite { script, arguments }
}

const SUITES: &[Suite] = &[
    suite("verify.py", &["-f", "@", "-a", "%/a"]),
    suite("verify_state_save.py", &["-f", "@", "-a", "%/a"]),
    suite("verify-trim.py", &["-f", "@", "-a", "%/a", "--dut"]),
    suite("numberio_overlap.py", &["-f", "@", "-a", "%/a", "--file", "%/data", "--ioengines", "psync,io_uring"]),
    suite(SERVERS, &["-f", "@", "-a", "%/a"]),
    suite("steadystate_tests.py", &["@"]),
    suite("readonly.py", &["-f", "@", "-a", "%/a"]),
    suite("random_seed.py", &["-f", "@", "-a", "%/a"]),
    suite("sprandom.py", &["-f", "@", "-a", "%/a"]),
    suite("strided.py", &["-f", "@", "-a", "%/a"]),
    suite("latency_percentiles.py", &["-f", "@", "-a", "%/a"]),
    suite("log_compression.py", &["-f", "@"]),
    suite("jsonplus2csv_test.py", &["-f", "@", "-s", "^/tools/fio_jsonplus_clat2csv"]),
    suite("sequence.py", &["-f", "@", "-a", "%/a"]),
    suite("run-fio-tests.py", &["-f", "@", "-r", "^", "-a", "%/a", "-o", JOB_FILES]),
];

/// The tests of `run-fio-tests.py` that run job files: those from 1000 on are scripts of this list, or unit tests. Numbers that the tree
/// does not have yet are ignored.
const JOB_FILES: &str = "1-99";

/// What a suite counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Runs the suites whose names contain one of `only` (all, if there are none). Returns true if enough pass.
///
/// # Errors
/// If fio cannot be built, or a suite cannot be started.
pub(crate) fn run(tree: &Path, program: Option<&Path>, only: &[&str]) -> Result<bool> {
    let program = match program {
        Some(program) => fs::canonicalize(program).with_context(|| format!("no program at {}", program.display()))?,
        None => workspace::build_release()?,
    };
    let build = workspace::target_dir()?.join("fio-suite");
    let source = built(tree, &build)?;
    fs::create_dir_all(build.join("python"))?;
    let python = python_with_modules(&build);
    let bin = build.join("bin");
    let _ = fs::remove_dir_all(&bin);
    for folder in ["trueio", "nothing"] {
        fs::create_dir_all(bin.join(folder))?;
    }
    symlink(program, bin.join("trueio/fio"))?;
    fs::write(bin.join("nothing/fio"), NOTHING)?;
    fs::set_permissions(bin.join("nothing/fio"), fs::Permissions::from_mode(0o755))?;
    let programs =
        [("fio", source.join("fio")), ("trueio", bin.join("trueio/fio")), ("nothing", bin.join("nothing/fio"))];
    println!("{:<24}{:>7}{:>9}{:>7}{:>8}{:>9}{:>7}", "suite", "total", "skipped", "fio", "trueio", "nothing", "net");
    let mut sums = [0_u64; 2];
    for suite in SUITES {
        if !only.is_empty() && !only.iter().any(|name| suite.script.contains(name)) {
            continue;
        }
        let mut counts = [Counts::default(); 3];
        let is_alone = ALONE.contains(&suite.script);
        std::thread::scope(|scope| -> Result<()> {
            let mut threads = Vec::new();
            for (counts, (name, program)) in counts.iter_mut().zip(&programs) {
                let folder = build.join("results").join(name).join(suite.script);
                let (python, source) = (&python, &source);
                let mut count = move || counted(suite, python, source, program, &folder).map(|found| *counts = found);
                match is_alone {
                    true => count()?,
                    false => threads.push(scope.spawn(count)),
                }
            }
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let [fio, ours, nothing] = counts.map(|counts| counts.passed);
        let total = counts.iter().map(|counts| counts.passed + counts.failed + counts.skipped).max().unwrap_or(0);
        let net = [fio, ours].map(|passed| passed.saturating_sub(nothing));
        sums = [sums[0] + net[0], sums[1] + net[1].min(net[0])];
        let share = share(net);
        println!("{:<24}{total:>7}{:>9}{fio:>7}{ours:>8}{nothing:>9}{share:>6.1}%", suite.script, counts[0].skipped);
    }
    let share = share(sums);
    println!("trueio passes {share:.1} % of what fio passes, net of what a program without content passes");
    println!("results: {}", build.join("results").display());
    Ok(share >= SHARE_MIN)
}

/// The package of PyPI that the scripts import, with those that it needs (numpy, scipy).
const PACKAGE: [&str; 2] = ["statsmodels", "0.15.0"];

/// Returns a Python that has the modules of the scripts, in an environment in the build directory; without network that of the
/// machine.
fn python_with_modules(build: &Path) -> PathBuf {
    let python = interpreter().unwrap_or("python3");
    let folder = build.join("python");
    match environment(python, &folder, PACKAGE[0], PACKAGE[1]) {
        Ok(()) => folder.join("venv/bin/python"),
        Err(reason) => {
            println!("note: {reason}; without {}, run-fio-tests.py does not start", PACKAGE[0]);
            python.into()
        }
    }
}

/// Creates the file of `--output`, and nothing else.
const NOTHING: &str = "#!/bin/sh\nfor word; do case $word in --output=*) : > \"${word#--output=}\" ;; esac; done\n";

fn share([of, part]: [u64; 2]) -> f64 {
    if of == 0 { 100.0 } else { part as f64 * 100.0 / of as f64 }
}

/// Copies the tree into the build directory, and builds fio there. Returns the copy.
fn built(tree: &Path, build: &Path) -> Result<PathBuf> {
    let tree = fs::canonicalize(tree).with_context(|| format!("no source tree at {}", tree.display()))?;
    let source = build.join("source");
    let _ = fs::remove_dir_all(&source);
    fs::create_dir_all(build)?;
    match tree.join("configure").exists() {
        true => done(command("cp").arg("-a").arg(&tree).arg(&source), "copying the tree")?,
        false => done(command("git").args(["clone", "--quiet"]).arg(&tree).arg(&source), "cloning the tree")?,
    }
    ensure!(source.join("t/verify.py").exists(), "{} is no source tree of fio", tree.display());
    let log = fs::File::create(build.join("build.log"))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let mut configure = command("./configure");
    done(configure.current_dir(&source).stdout(log.try_clone()?).stderr(log.try_clone()?), "configuring fio")?;
    let mut make = command("make");
    done(make.args(["-j", &jobs]).current_dir(&source).stdout(log.try_clone()?).stderr(log), "building fio")?;
    let common = source.join("t/fiotestcommon.py");
    let [from, to] = TEST_LONGEST;
    fs::write(&common, fs::read_to_string(&common)?.replace(from, to))?;
    let engines = command(&source.join("fio").to_string_lossy()).arg("--enghelp").output()?;
    if !String::from_utf8_lossy(&engines.stdout).contains("libaio") {
        println!("note: without libaio (its headers are not installed), so its tests fail with fio, too");
    }
    Ok(source)
}

fn done(command: &mut std::process::Command, what: &str) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("{what}: it does not start"))?;
    ensure!(status.success(), "{what}: {status} (fio's messages are in target/fio-suite/build.log)");
    Ok(())
}

/// Runs a suite with a program in an empty folder, and returns what it counts.
fn counted(suite: &Suite, python: &Path, source: &Path, program: &Path, folder: &Path) -> Result<Counts> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let mut script = command("timeout");
    let path = source.join("t").join(suite.script);
    if suite.script == SERVERS {
        give_free_ports(&path)?;
    }
    script.arg(LONGEST).arg(python).arg(path);
    // Detached on drop.
    let device = suite.arguments.contains(&"--dut").then(|| loop_of(DEVICE_BYTES, 512));
    for argument in suite.arguments {
        match argument.strip_prefix(['@', '%', '^']) {
            _ if *argument == "--dut" => match &device {
                Some(Ok(device)) => script.args(["--dut", &device.device]),
                Some(Err(reason)) => {
                    println!("note: {} without a loop device: {reason}", suite.script);
                    &mut script
                }
                None => &mut script,
            },
            _ if *argument == JOB_FILES => script.args((1..=99).map(|number: u32| number.to_string())),
            None => script.arg(argument),
            Some(rest) if argument.starts_with('@') => script.arg(format!("{}{rest}", program.display())),
            Some(rest) if argument.starts_with('%') => script.arg(format!("{}{rest}", folder.display())),
            Some(rest) => script.arg(format!("{}{rest}", source.display())),
        };
    }
    let ran = script.current_dir(folder).stdin(Stdio::null()).output()?;
    remove_data(folder)?;
    let text = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    fs::write(folder.join("printed.txt"), &text)?;
    if text.contains("can't open file") {
        bail!("{} is not in the tree", suite.script);
    }
    Ok(counts_of(&text))
}

/// Removes the large files below a folder.
fn remove_data(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
        if kind?.is_dir() {
            remove_data(&path)?;
        } else if fs::symlink_metadata(&path)?.len() > RESULT_BYTES_MAX {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Rewrites the script of the servers (in the copy of the tree), so that they listen at ports that are free now: those of an earlier run,
/// or of another program, do not matter.
fn give_free_ports(script: &Path) -> Result<()> {
    let original = script.with_extension("py.original");
    if !original.exists() {
        fs::copy(script, &original).with_context(|| format!("no script at {}", script.display()))?;
    }
    // All at once, so that they differ.
    let listeners = SERVER_PORTS.map(|_| TcpListener::bind(("0.0.0.0", 0)));
    let mut text = fs::read_to_string(&original)?;
    for (port, listener) in SERVER_PORTS.iter().zip(listeners) {
        let free = listener.context("no port is free")?.local_addr()?.port();
        text = text.replace(&format!("\",{port}\""), &format!("\",{free}\""));
    }
    fs::write(script, text)?;
    Ok(())
}

/// Reads the last line of counts: `3 test(s) passed, 0 failed, 1 skipped`.
fn counts_of(text: &str) -> Counts {
    let lines = text.lines().rev().map(str::to_lowercase);
    let number_before = |line: &str, word: &str| -> Option<u64> {
        let before = line.split(word).next().filter(|before| before.len() < line.len())?;
        let number = before.trim_end_matches(" test(s) ").trim_end_matches(" tests ").trim_end();
        number.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let counts = |line: String| {
        let (passed, failed) = (number_before(&line, "passed")?, number_before(&line, "failed")?);
        Some(Counts { passed, failed, skipped: number_before(&line, "skipped").unwrap_or(0) })
    };
    lines.filter_map(counts).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_ports_that_are_free_and_differ() {
        let folder = trueio_testkit::folder();
        let script = folder.path().join("servers.py");
        fs::write(&script, "LIST = [\",8765\", \",8766\", \",8767\", \",8768\"]\n").expect("a script");
        for _ in 0..2 {
            give_free_ports(&script).expect("ports");
            let text = fs::read_to_string(&script).expect("the script");
            let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u16>().ok());
            let mut ports: Vec<u16> = numbers.collect();
            ports.sort_unstable();
            ports.dedup();
            assert!(ports.len() == 4 && !ports.iter().any(|port| SERVER_PORTS.contains(port)), "{text}");
        }
    }

    #[test]
    fn data_is_removed_from_results_and_their_texts_stay() {
        let folder = trueio_testkit::folder();
        fs::create_dir(folder.path().join("a")).expect("a folder");
        for (name, bytes) in [("a/data", 2 << 20), ("data", 2 << 20), ("a/printed.txt", 100)] {
            fs::File::create(folder.path().join(name)).and_then(|file| file.set_len(bytes)).expect("a file");
        }
        remove_data(folder.path()).expect("it removes them");
        let is_there = ["a/data", "data", "a/printed.txt"].map(|name| folder.path().join(name).exists());
        assert_eq!(is_there, [false, false, true]);
    }

    #[test]
    fn the_last_line_of_counts_is_read_as_each_script_prints_it() {
        let of = |passed, failed, skipped| Counts { passed, failed, skipped };
        for (text, counts) in [
            ("1 test(s) passed, 2 failed, 3 skipped\n\n\n30 test(s) passed, 24 failed, 12 skipped\n", of(30, 24, 12)),
            ("1 tests passed, 0 failed\n", of(1, 0, 0)),
            ("Test 1 PASSED 1\n7 test(s) PASSED, 2 test(s) FAILED\n", of(7, 2, 0)),
            ("Traceback\n", Counts::default()),
        ] {
            assert_eq!(counts_of(text), counts, "{text}");
        }
    }
}
