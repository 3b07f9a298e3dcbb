//! The tests of `bindings/python`, as a step of `cargo xtask ci`.
//!
//! A wheel is built with maturin, installed into a new environment that holds nothing else, where it must
//! import, and into one with numpy, pytest, hypothesis and mypy, where its tests run. Each test counts as one.
//! The environments lie in the build directory; that of the tests is kept until its requirements change.
//!
//! Cannot do: get a newer Python. One that is here is used, from 3.11 on.

use crate::step::{Counts, Outcome, ended};
use crate::workspace::{self, command};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target for which the binding is compiled too, if its standard library is here.
const OTHER_TARGET: &str = "x86_64-pc-windows-gnu";

/// Builds, installs and runs. `required` are the needs whose lack makes a test fail, not skip.
pub(crate) fn tests(required: &[&str]) -> (Outcome, Option<Counts>) {
    let Some(python) = interpreter() else {
        return (Outcome::skipped("no Python of version 3.11 or later that can make environments"), None);
    };
    match prepare(python) {
        Ok(place) => counted(&mut place.pytest(required)),
        Err(why) => (Outcome::Failed(why), None),
    }
}

/// The first Python that is new enough and has `venv` and `pip`.
pub(crate) fn interpreter() -> Option<&'static str> {
    let script = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11"].into_iter().find(|python| {
        let mut probe = command(python);
        probe.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// Where everything of this step lies.
struct Place {
    sources: PathBuf,
    build: PathBuf,
}

impl Place {
    /// A program of the environment of the tests.
    fn program(&self, name: &str) -> Command {
        let mut program = command(&self.build.join("venv/bin").join(name).to_string_lossy());
        program.current_dir(&self.sources);
        program
    }

    fn python(&self) -> Command {
        let mut python = self.program("python");
        // Not seen: packages of the user, and files of this folder, which are not the wheel's.
        python.args(["-I", "-X"]).arg(format!("pycache_prefix={}", self.build.join("pycache").display())).arg("-m");
        python
    }

    fn cargo(&self) -> Command {
        let mut cargo = workspace::cargo();
        cargo.current_dir(&self.sources).env("CARGO_TARGET_DIR", self.build.join("cargo"));
        cargo.env("PYO3_PYTHON", self.build.join("venv/bin/python"));
        cargo
    }

    fn pytest(&self, required: &[&str]) -> Command {
        let mut pytest = self.python();
        pytest.args(["pytest", "-q", "-p", "no:cacheprovider", "--color=no"]);
        pytest.env("TRUEIO_TEST_DIRECTORY", self.build.join("scratch"));
        pytest.env("HYPOTHESIS_STORAGE_DIRECTORY", self.build.join("hypothesis"));
        if !required.is_empty() {
            pytest.env("TRUEIO_REQUIRE", required.join(","));
        }
        pytest
    }
}

fn prepare(python: &str) -> Result<Place, String> {
    let build = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("python");
    let place = Place { sources: workspace::root().join("bindings/python"), build };
    let wheels = place.build.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    std::fs::create_dir_all(place.build.join("scratch"))
        .map_err(|error| format!("{}: {error}", place.build.display()))?;
    environment(python, &place)?;
    run("cargo fmt", place.cargo().args(["fmt", "--check"]))?;
    run("clippy", place.cargo().args(["clippy", "--quiet", "--locked", "--", "-D", "warnings"]))?;
    if target_is_installed(OTHER_TARGET) {
        run("the check for Windows", place.cargo().args(["check", "--quiet", "--locked", "--target", OTHER_TARGET]))?;
    }
    let mut maturin = place.program("maturin");
    maturin.args(["build", "--quiet", "--locked", "--profile", "dev", "--out"]).arg(&wheels);
    run("maturin", maturin.env("CARGO_TARGET_DIR", place.build.join("cargo")))?;
    let wheel = std::fs::read_dir(&wheels)
        .ok()
        .and_then(|mut entries| entries.next()?.ok())
        .map(|entry| entry.path())
        .ok_or("maturin made no wheel")?;

    // An environment with nothing but the wheel: it must need nothing else.
    let fresh = place.build.join("fresh");
    run("venv", command(python).args(["-m", "venv", "--clear", "--without-pip"]).arg(&fresh))?;
    let install = |environment: &Path| {
        let mut pip = place.python();
        pip.args(["pip", "--quiet", "--python"]).arg(environment.join("bin/python"));
        pip.args(["install", "--no-index", "--no-deps", "--force-reinstall"]).arg(&wheel);
        run("pip", &mut pip)
    };
    install(&fresh)?;
    let script = "from trueio import direct; print('in an empty environment:', direct.probe_directory('.').reason)";
    run("importing the wheel", command(&fresh.join("bin/python").to_string_lossy()).args(["-I", "-c", script]))?;
    install(&place.build.join("venv"))?;
    Ok(place)
}

/// The environment of the tests, new if its requirements or its Python changed.
fn environment(python: &str, place: &Place) -> Result<(), String> {
    let requirements = place.sources.join("requirements-test.txt");
    let wanted = std::fs::read_to_string(&requirements).map_err(|error| format!("requirements-test.txt: {error}"))?;
    let version = command(python).args(["-c", "import sys; print(sys.version, sys.prefix)"]).output();
    let wanted = wanted + &String::from_utf8_lossy(&version.map_err(|error| error.to_string())?.stdout);
    let stamp = place.build.join("venv/requirements");
    if std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    run("venv", command(python).args(["-m", "venv", "--clear"]).arg(place.build.join("venv")))?;
    run(
        "pip",
        place.python().args(["pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(requirements),
    )?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn target_is_installed(target: &str) -> bool {
    let list = command("rustup").args(["target", "list", "--installed"]).output();
    list.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|line| line == target))
}

fn run(what: &str, command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: {status}")),
        Err(error) => Err(format!("{what}: {}: {error}", command.get_program().to_string_lossy())),
    }
}

/// Runs a `pytest -q` and counts.
fn counted(test: &mut Command) -> (Outcome, Option<Counts>) {
    let mut child = match test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("pytest: {error}")), None),
    };
    let mut counts = Counts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some(closing) = sums(&line) {
                counts = closing;
            }
            println!("{line}");
        }
    }
    if counts == Counts::default() {
        let why = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        return (Outcome::Failed(format!("pytest ran no test; {why}")), None);
    }
    ended(child, counts)
}

/// The closing line of `pytest -q`: `2 failed, 97 passed, 1 skipped in 24.06s`.
fn sums(line: &str) -> Option<Counts> {
    let (sums, seconds) = line.rsplit_once(" in ")?;
    seconds.split('s').next()?.parse::<f64>().ok()?;
    let mut counts = Counts::default();
    for sum in sums.split(", ") {
        let (number, word) = sum.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match word {
            "passed" => counts.passed += number,
            "failed" | "error" | "errors" | "xpassed" => counts.failed += number,
            "skipped" | "xfailed" => counts.skipped += number,
            "warning" | "warnings" | "deselected" => {}
            _ => return None,
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_pytest_is_counted_and_no_other_is() {
        let counts = |passed, failed, skipped| Some(Counts { passed, failed, skipped });
        assert_eq!(sums("97 passed in 24.06s"), counts(97, 0, 0));
        assert_eq!(sums("2 failed, 97 passed, 1 skipped, 3 warnings, 1 error in 84.06s (0:01:24)"), counts(97, 3, 1));
        for other in ["3 passed in the morning", "FAILED tests/a.py::b in 3s", "no tests ran in 0.01s", "... [100%]"] {
            assert_eq!(sums(other), None, "{other}");
        }
    }
}
