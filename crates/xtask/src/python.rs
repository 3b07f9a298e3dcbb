//! The tests of `bindings/python`, as a step of `cargo xtask ci`.
//!
//! A wheel is built with maturin, and the program is added to it. It is installed into a new empty environment, where it must import, and into one with
//! numpy, pytest, hypothesis and mypy, where its tests run. Each test counts as one. The environments are in the build
//! directory; that of the tests is kept until its requirements change.
//!
//! Limit: an installed Python is used, 3.11 or later; no newer one is fetched.

use crate::pages::browser::Browser;
use crate::setup;
use crate::step::{Counts, Outcome, ended};
use crate::workspace::{self, command};
use anyhow::{Context, Error};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A target for which the binding is compiled, too, if its standard library is installed.
const OTHER_TARGET: &str = "x86_64-pc-windows-gnu";

/// Builds, installs and runs the tests. A test that lacks one of the `required` needs fails instead of skipping.
pub(crate) fn tests(required: &[&str]) -> (Outcome, Option<Counts>) {
    let Some(python) = interpreter() else {
        return (Outcome::skipped("no Python of version 3.11 or later that can make environments"), None);
    };
    match prepare(python) {
        Ok(folders) => counted(&mut folders.pytest(required)),
        Err(why) => (Outcome::Failed(why), None),
    }
}

/// Renders notebooks as pages.
const NBCONVERT: &str = "nbconvert>=7.16,<8";

/// Executes the notebook of `examples/`, renders it as a page, and takes a screenshot; `writes`: keeps that in `docs/images/`.
pub(crate) fn notebook(writes: bool) -> Outcome {
    let shown = || -> anyhow::Result<String> {
        setup::install(&[("chromium", "chromium")]).map_err(Error::msg)?;
        let python = interpreter().context("no Python of version 3.11 or later that can make environments")?;
        let folders = prepare(python).map_err(Error::msg)?;
        let (packages, folder) = (folders.build.join("nbconvert"), folders.build.join("notebook"));
        let mut pip = folders.python();
        pip.args(["pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--target"]).arg(&packages);
        run("pip", pip.arg(NBCONVERT)).map_err(Error::msg)?;
        let mut render = folders.program("python");
        render.args(["-m", "nbconvert", "--to", "html", "--execute", "--output-dir"]).arg(&folder);
        render.arg(workspace::root().join("examples/notebook.ipynb")).env("PYTHONPATH", &packages);
        // Its templates, too, are where it was installed to.
        render.env("JUPYTER_PATH", packages.join("share/jupyter"));
        run("nbconvert", &mut render).map_err(Error::msg)?;
        let mut browser = Browser::start(&folder.join("profile"))?;
        let picture = browser.picture(&folder.join("notebook.html"), (1000, 1500), "light", 0.6)?;
        let path = match writes {
            true => workspace::root().join("docs/images/notebook.png"),
            false => folder.join("notebook.png"),
        };
        std::fs::write(&path, picture).with_context(|| path.display().to_string())?;
        Ok(path.display().to_string())
    };
    match shown() {
        Ok(path) => Outcome::Passed(path),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// Compares the calls of `trueio.direct.aio` with `run_in_executor`; returns `false` if a row is above its bar.
pub(crate) fn bench(options: &[&str]) -> anyhow::Result<bool> {
    let python = interpreter()
        .ok_or_else(|| anyhow::anyhow!("no Python of version 3.11 or later that can make environments"))?;
    let folders = prepare(python).map_err(anyhow::Error::msg)?;
    let mut bench = folders.program("python");
    bench.arg("scripts/bench.py").args(options).stdin(Stdio::null());
    Ok(bench.status()?.success())
}

/// Returns the first Python that is new enough and has `venv` and `pip`.
pub(crate) fn interpreter() -> Option<&'static str> {
    let script = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11"].into_iter().find(|python| {
        let mut probe = command(python);
        probe.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// The folders of this step: the sources of the binding, and the build directory.
struct PythonFolders {
    sources: PathBuf,
    build: PathBuf,
}

impl PythonFolders {
    /// A program of the environment of the tests.
    fn program(&self, name: &str) -> Command {
        let mut program = command(&self.build.join("venv/bin").join(name).to_string_lossy());
        program.current_dir(&self.sources);
        program
    }

    fn python(&self) -> Command {
        let mut python = self.program("python");
        // Isolated from packages of the user, and from files of this folder that are not in the wheel.
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

fn prepare(python: &str) -> Result<PythonFolders, String> {
    let build = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("python");
    let folders = PythonFolders { sources: workspace::root().join("bindings/python"), build };
    let wheels = folders.build.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    std::fs::create_dir_all(folders.build.join("scratch"))
        .map_err(|error| format!("{}: {error}", folders.build.display()))?;
    environment(python, &folders)?;
    run("cargo fmt", folders.cargo().args(["fmt", "--check"]))?;
    run("clippy", folders.cargo().args(["clippy", "--quiet", "--locked", "--", "-D", "warnings"]))?;
    if target_is_installed(OTHER_TARGET) {
        run("the check for Windows", folders.cargo().args(["check", "--quiet", "--locked", "--target", OTHER_TARGET]))?;
    }
    let mut maturin = folders.program("maturin");
    maturin.args(["build", "--quiet", "--locked", "--profile", "dev", "--out"]).arg(&wheels);
    run("maturin", maturin.env("CARGO_TARGET_DIR", folders.build.join("cargo")))?;
    let wheel = std::fs::read_dir(&wheels)
        .ok()
        .and_then(|mut entries| entries.next()?.ok())
        .map(|entry| entry.path())
        .ok_or("maturin made no wheel")?;
    let wheel = with_program(&folders, &wheel)?;

    // The source package; then both are checked as a registry would. Wheels for other systems: `cargo xtask dist-bindings`.
    let packages = folders.build.join("packages");
    let _ = std::fs::remove_dir_all(&packages);
    let mut build = folders.python();
    build.args(["build", "--sdist", "--no-isolation", "--outdir"]).arg(&packages);
    // The build starts `maturin` by its name.
    let before = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::iter::once(folders.build.join("venv/bin")).chain(std::env::split_paths(&before));
    build.env("PATH", std::env::join_paths(programs).map_err(|error| error.to_string())?);
    run("build", &mut build)?;
    let source = packages.join(format!("trueio-{}.tar.gz", env!("CARGO_PKG_VERSION")));
    run("twine check", folders.python().args(["twine", "check", "--strict"]).arg(&wheel).arg(&source))?;

    // An environment with only the wheel, which must need nothing else.
    let fresh = folders.build.join("fresh");
    run("venv", command(python).args(["-m", "venv", "--clear", "--without-pip"]).arg(&fresh))?;
    let install = |environment: &Path| {
        let mut pip = folders.python();
        pip.args(["pip", "--quiet", "--python"]).arg(environment.join("bin/python"));
        pip.args(["install", "--no-index", "--no-deps", "--force-reinstall"]).arg(&wheel);
        run("pip", &mut pip)
    };
    install(&fresh)?;
    let script = "import trueio; from trueio import direct; print('in an empty environment:', direct.probe_directory('.').reason); \
        print(trueio.run({'ioengine': 'null', 'rw': 'read', 'size': '1g', 'number_ios': 9000}, evidence=False))";
    run("importing the wheel", command(&fresh.join("bin/python").to_string_lossy()).args(["-I", "-c", script]))?;
    run("the command of the wheel", command(&fresh.join("bin/trueio").to_string_lossy()).arg("--version"))?;
    install(&folders.build.join("venv"))?;
    Ok(folders)
}

/// Adds the program, as the tests of the workspace build it, to a wheel; returns the whole wheel.
fn with_program(folders: &PythonFolders, wheel: &Path) -> Result<PathBuf, String> {
    run("cargo build", workspace::cargo().args(["build", "--quiet", "--package", "trueio-cli"]))?;
    let program = folders.build.join("trueio");
    let built = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("debug/trueio");
    // Debug information is most of it, and would be compressed.
    run("strip", command("strip").arg("-o").arg(&program).arg(built))?;
    let whole = folders.build.join("wheels-with-program");
    let _ = std::fs::remove_dir_all(&whole);
    std::fs::create_dir_all(&whole).map_err(|error| format!("{}: {error}", whole.display()))?;
    let mut add = folders.program("python");
    run("adding the program", add.arg("scripts/complete_wheel.py").args([wheel, &whole, &program]))?;
    Ok(whole.join(wheel.file_name().unwrap_or_default()))
}

/// Creates the environment of the tests, anew if its requirements or its Python changed.
fn environment(python: &str, folders: &PythonFolders) -> Result<(), String> {
    let requirements = folders.sources.join("requirements-test.txt");
    let wanted = std::fs::read_to_string(&requirements).map_err(|error| format!("requirements-test.txt: {error}"))?;
    let version = command(python).args(["-c", "import sys; print(sys.version, sys.prefix)"]).output();
    let wanted = wanted + &String::from_utf8_lossy(&version.map_err(|error| error.to_string())?.stdout);
    let stamp = folders.build.join("venv/requirements");
    if std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    run("venv", command(python).args(["-m", "venv", "--clear"]).arg(folders.build.join("venv")))?;
    run(
        "pip",
        folders.python().args(["pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(requirements),
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

/// Runs a `pytest -q` and counts its tests.
fn counted(test: &mut Command) -> (Outcome, Option<Counts>) {
    let mut child = match test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("pytest: {error}")), None),
    };
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some(closing) = sums(&line) {
                counts = closing;
            }
            if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
                failures.push(line.chars().take(600).collect());
            }
            println!("{line}");
        }
    }
    if counts == Counts::default() {
        let why = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        return (Outcome::Failed(format!("pytest ran no test; {why}")), None);
    }
    ended(child, counts, &failures)
}

/// Parses the closing line of `pytest -q`: `2 failed, 97 passed, 1 skipped in 24.06s`.
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
