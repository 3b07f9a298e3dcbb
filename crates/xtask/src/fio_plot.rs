//! Plots the output of `trueio fio` (JSON and logs) with fio-plot from PyPI. A step of `cargo xtask ci`.
//!
//! fio-plot is a common program for plots of fio's results. It reads all JSON files of a folder, their job options and
//! figures, and logs by their names. It is installed into a separate environment in the build directory, which is kept
//! until its version changes.
//!
//! Limit: the content of a picture is not checked, only that fio-plot succeeds and writes a picture.

use crate::python;
use crate::step::Outcome;
use crate::workspace::{self, command};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that is installed.
const VERSION: &str = "1.1.21";
/// Pictures: name and arguments.
const PICTURES: [(&str, &[&str]); 3] = [
    ("depths", &["-l", "-d", "1", "4", "-n", "1"]),
    ("histogram", &["-H", "-d", "4", "-n", "1"]),
    ("logs", &["-g", "-t", "iops", "lat", "bw", "-d", "1", "4", "-n", "1"]),
];

/// Runs two jobs with `program` and plots them.
pub(crate) fn run(program: &Path) -> Outcome {
    let Some(python) = python::interpreter() else {
        return Outcome::skipped("no Python of version 3.11 or later that can make environments");
    };
    let build = match workspace::target_dir() {
        Ok(target) => target.join("fio-plot"),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    if let Err(why) = environment(python, &build, "fio-plot", VERSION) {
        return Outcome::skipped(&format!("fio-plot could not be had: {why}"));
    }
    match draw(program, &build) {
        Ok(count) => Outcome::Passed(format!("{count} pictures")),
        Err(why) => Outcome::Failed(why),
    }
}

/// Makes an environment in `build` with this version of a package of PyPI, unless it is there.
pub(crate) fn environment(python: &str, build: &Path, package: &str, version: &str) -> Result<(), String> {
    let stamp = build.join("version");
    if std::fs::read_to_string(&stamp).is_ok_and(|there| there == version) {
        return Ok(());
    }
    run_one("venv", command(python).args(["-m", "venv", "--clear"]).arg(build.join("venv")))?;
    let mut pip = command(&build.join("venv/bin/python").to_string_lossy());
    pip.args(["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run_one("pip", pip.arg(format!("{package}=={version}")))?;
    std::fs::write(&stamp, version).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Writes results and logs under the names that fio-plot expects, and plots them.
fn draw(program: &Path, build: &Path) -> Result<usize, String> {
    let results = build.join("results");
    let _ = std::fs::remove_dir_all(&results);
    std::fs::create_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    for depth in ["1", "4"] {
        let log = format!("randread-iodepth-{depth}-numjobs-1");
        let mut fio = command(&program.to_string_lossy());
        fio.current_dir(&results).args(["fio", "--name=randread", "--filename=t", "--ioengine=libaio", "--direct=1"]);
        fio.args(["--rw=randread", "--bs=4k", "--size=4m", "--time_based", "--runtime=1", "--numjobs=1"]);
        fio.args(["--group_reporting", "--output-format=json", "--log_avg_msec=100", &format!("--iodepth={depth}")]);
        fio.arg(format!("--output=randread-{depth}-1.json"));
        for kind in ["bw", "iops", "lat"] {
            fio.arg(format!("--write_{kind}_log={log}"));
        }
        run_one("trueio fio", &mut fio)?;
    }
    for (name, flags) in PICTURES {
        let picture: PathBuf = results.join(format!("{name}.png"));
        let mut plot = command(&build.join("venv/bin/fio-plot").to_string_lossy());
        plot.current_dir(&results).args(["-i", ".", "-T", "trueio", "-r", "randread", "-o"]).arg(&picture).args(flags);
        // matplotlib keeps a cache of fonts.
        plot.env("MPLCONFIGDIR", build.join("matplotlib")).stdout(Stdio::null());
        run_one("fio-plot", &mut plot)?;
        let bytes = std::fs::read(&picture).map_err(|error| format!("{}: {error}", picture.display()))?;
        if !bytes.starts_with(b"\x89PNG") || bytes.len() < 10_000 {
            return Err(format!("{} is no picture", picture.display()));
        }
    }
    Ok(PICTURES.len())
}

fn run_one(what: &str, command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: {status}")),
        Err(error) => Err(format!("{what}: {}: {error}", command.get_program().to_string_lossy())),
    }
}
