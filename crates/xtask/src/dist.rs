//! The packages of the bindings: with binaries for other systems (`cargo xtask dist-bindings`), and what CI checks of them.
//!
//! Binaries are linked with zig and cargo-zigbuild from PyPI, in an environment in the build directory. A target that cannot be
//! linked here is skipped with its reason. The static programs that `cargo xtask dist` made of the same commit go into the wheels
//! of their processors, and a wheel for this machine is installed and used. Nothing is uploaded: `.github/workflows/release.yml` does that.
//!
//! Cannot do: link for windows-msvc, or macOS wheels with a signature.

use crate::dist_folder::{DistFolder, run};
use crate::step::Outcome;
use crate::workspace::{command, has_program};
use crate::{node, packages, python};
use anyhow::{Context, Result, anyhow};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Targets of wheels, and which systems they promise to run on.
const WHEELS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "manylinux2014"),
    ("aarch64-unknown-linux-gnu", "manylinux2014"),
    ("armv7-unknown-linux-gnueabihf", "manylinux2014"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// Makes all packages; returns `false` if one could not be made. Targets that cannot be linked here are no failure.
pub(crate) fn run_all() -> Result<bool> {
    let dist = DistFolder::new()?;
    dist.fetch_tools()?;
    let packages = dist.path.join("packages");
    let _ = std::fs::remove_dir_all(&packages);
    std::fs::create_dir_all(&packages)?;

    let mut pack = dist.program("python");
    // Through the environment's Python, so that node finds its programs.
    pack.args(["-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", "node", "scripts/pack.js"]);
    pack.args(["--platforms", "available", "--to"]).arg(&packages).current_dir(node::folder());
    run(&mut pack)?;
    run(dist.program("python").args(["-m", "build", "--sdist", "--outdir"]).arg(&packages))?;
    for (target, compatibility) in WHEELS {
        match wheel(&dist, target, compatibility) {
            Ok(made) => println!("{target}: {compatibility}, {}", completed(&dist, &packages, target, &made)?),
            Err(why) => println!("skipped {target}: {why:#}"),
        }
    }
    let made: Vec<PathBuf> = std::fs::read_dir(&packages)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_python = |path: &&PathBuf| path.extension().is_none_or(|extension| extension != "tgz");
    run(dist.program("twine").args(["check", "--strict"]).args(made.iter().filter(is_python)))?;
    made.iter().for_each(|path| println!("{}", path.display()));
    Ok(true)
}

/// Builds the wheel for `target`, without the program.
fn wheel(dist: &DistFolder, target: &str, compatibility: &str) -> Result<PathBuf> {
    // Does nothing if the target is installed.
    run(command("rustup").args(["target", "add", target]).stderr(Stdio::null()))
        .context("rustup has no such target")?;
    let fresh = dist.path.join("wheel").join(target);
    let _ = std::fs::remove_dir_all(&fresh);
    let mut maturin = dist.program("maturin");
    maturin.args(["build", "--release", "--locked", "--zig", "--target", target, "--compatibility", compatibility]);
    maturin.arg("--out").arg(&fresh).env("CARGO_TARGET_DIR", dist.path.join("cargo"));
    if target.ends_with("musl") {
        // A library that brings its own libc would have two in one process.
        maturin.env("RUSTFLAGS", "-C target-feature=-crt-static");
    }
    run(&mut maturin)?;
    Ok(std::fs::read_dir(&fresh)?.next().context("maturin made no wheel")??.path())
}

/// Checks what the library in a wheel needs, adds the program, and uses a wheel for this machine. Returns what is in it, for people.
fn completed(dist: &DistFolder, packages: &Path, target: &str, wheel: &Path) -> Result<String> {
    let fresh = dist.path.join("wheel").join(target);
    run(dist.program("python").args(["-m", "zipfile", "-e"]).arg(wheel).arg(fresh.join("content")))?;
    let library = fresh.join("content/trueio/direct/_native.abi3.so");
    run(command("node").arg(node::folder().join("scripts/glibc.js")).arg(library))?;
    let whole = packages.join(wheel.file_name().context("a wheel has a name")?);
    let arch = target.split('-').next().unwrap_or_default();
    let program = packages::static_program(dist, arch, &fresh)?;
    let mut complete = dist.program("python");
    run(complete.arg("scripts/complete_wheel.py").arg(wheel).arg(packages).args(&program))?;
    if program.is_none() {
        return Ok("without the program (`cargo xtask dist` of this commit makes it for x86_64 and aarch64)".to_owned());
    }
    let mib = std::fs::metadata(&whole)?.len() as f64 / (1 << 20) as f64;
    let is_usable = target == format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let used = if is_usable { installed(dist, &whole)? } else { "not run here" };
    Ok(format!("with the program, {mib:.1} MiB, {used}"))
}

/// Installs a wheel into an environment with nothing else and no compiler in its PATH, and runs a job by both of its ways in.
fn installed(dist: &DistFolder, wheel: &Path) -> Result<&'static str> {
    let fresh = dist.path.join("wheel/environment");
    let python = python::interpreter().ok_or_else(|| anyhow!("no Python of version 3.11 or later"))?;
    run(command(python).args(["-m", "venv", "--clear", "--without-pip"]).arg(&fresh))?;
    let mut pip = dist.program("python");
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "--python"]).arg(fresh.join("bin/python"));
    run(pip.args(["install", "--no-index", "--no-deps"]).arg(wheel))?;
    let script = "import trueio; from trueio import direct; direct.probe_directory('.'); \
        trueio.run({'ioengine': 'null', 'rw': 'read', 'size': '1g', 'number_ios': 9000}, evidence=False)";
    let inside = |name: &str| {
        let mut program = command(&fresh.join("bin").join(name).to_string_lossy());
        program.env_clear().env("PATH", fresh.join("bin")).env("HOME", &fresh);
        program
    };
    run(inside("python").args(["-I", "-c", script]))?;
    run(inside("trueio").arg("--version"))?;
    Ok("installed and used")
}

/// Checks the workflow that publishes. actionlint comes from its Go module where it is not installed.
pub(crate) fn workflows() -> Outcome {
    let mut lint = if has_program("actionlint") {
        command("actionlint")
    } else if has_program("go") {
        // The module is fetched first, so that a failure to fetch is not mistaken for a finding.
        let fetched = DistFolder::new().and_then(|dist| {
            let mut install = command("go");
            install.args(["install", ACTIONLINT]).env("GOBIN", &dist.path);
            run(install.stderr(Stdio::null()))?;
            Ok(dist.path.join("actionlint"))
        });
        match fetched {
            Ok(program) => command(&program.to_string_lossy()),
            Err(why) => return Outcome::optional(&format!("actionlint cannot be fetched: {why:#}")),
        }
    } else {
        return Outcome::optional("no actionlint, and no go that could fetch it");
    };
    crate::step::of(&mut lint)
}
