//! The packages of the bindings: with binaries for other systems (`cargo xtask dist-bindings`), and what CI checks of them.
//!
//! Binaries are linked with zig and cargo-zigbuild from PyPI, in an environment in the build directory. A target that cannot be
//! linked here is skipped with its reason. Nothing is uploaded: `.github/workflows/release.yml` does that.
//!
//! Cannot do: link for windows-msvc, or macOS wheels with a signature.

use crate::step::Outcome;
use crate::workspace::{self, command, has_program};
use crate::{node, python};
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tools that link for other systems, and that build and check Python packages.
const TOOLS: &[&str] =
    &["ziglang==0.17.*", "cargo-zigbuild==0.24.*", "maturin>=1.10,<2", "build>=1.2,<2", "twine>=6,<8"];

/// Targets of wheels, and which systems they promise to run on.
const WHEELS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "manylinux2014"),
    ("aarch64-unknown-linux-gnu", "manylinux2014"),
    ("armv7-unknown-linux-gnueabihf", "manylinux2014"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// The folder in which packages are built, with an environment of the tools.
pub(crate) struct DistFolder {
    pub(crate) path: PathBuf,
}

impl DistFolder {
    pub(crate) fn new() -> Result<Self> {
        let path = workspace::target_dir()?.join("dist");
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self { path })
    }

    /// A program of the environment.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut program = self.with_tools(&self.path.join("venv/bin").join(name).to_string_lossy());
        program.current_dir(workspace::root().join("bindings/python"));
        program
    }

    /// Any program, with the environment first in its PATH: cargo looks for zigbuild there, and build scripts for compilers.
    pub(crate) fn with_tools(&self, name: &str) -> Command {
        let mut program = command(name);
        let before = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::iter::once(self.path.join("venv/bin"));
        let path = std::env::join_paths(programs.chain(std::env::split_paths(&before)));
        program.env("PATH", path.unwrap_or(before));
        program
    }

    pub(crate) fn fetch_tools(&self) -> Result<()> {
        let python = python::interpreter().ok_or_else(|| anyhow!("no Python of version 3.11 or later"))?;
        if !self.path.join("venv/bin/python").exists() {
            run(command(python).args(["-m", "venv"]).arg(self.path.join("venv")))?;
        }
        run(self.program("python").args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(TOOLS))
    }
}

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
        match wheel(&dist, &packages, target, compatibility) {
            Ok(()) => println!("{target}: {compatibility}"),
            Err(why) => println!("skipped {target}: {why:#}"),
        }
    }
    let made: Vec<PathBuf> = std::fs::read_dir(&packages)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_python = |path: &&PathBuf| path.extension().is_none_or(|extension| extension != "tgz");
    run(dist.program("twine").args(["check", "--strict"]).args(made.iter().filter(is_python)))?;
    made.iter().for_each(|path| println!("{}", path.display()));
    Ok(true)
}

/// Builds the wheel for `target` and checks the requirements of its library.
fn wheel(dist: &DistFolder, packages: &Path, target: &str, compatibility: &str) -> Result<()> {
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
    let made = std::fs::read_dir(&fresh)?.next().context("maturin made no wheel")??;
    run(dist.program("python").args(["-m", "zipfile", "-e"]).arg(made.path()).arg(fresh.join("content")))?;
    let library = fresh.join("content/trueio/direct/_native.abi3.so");
    run(command("node").arg(node::folder().join("scripts/glibc.js")).arg(library))?;
    std::fs::copy(made.path(), packages.join(made.file_name()))?;
    Ok(())
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

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| program.clone())?;
    if !status.success() {
        let args: Vec<_> = command.get_args().take(4).map(|arg| arg.to_string_lossy()).collect();
        bail!("`{program} {} …`: {status}", args.join(" "));
    }
    Ok(())
}
