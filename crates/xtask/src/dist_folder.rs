//! The folder in which packages are made, with the tools from PyPI that link for other systems and make Python's packages.

use crate::python;
use crate::workspace::{self, command};
use anyhow::{Context, Result, anyhow, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Tools that link for other systems, and that build and check Python packages.
const TOOLS: &[&str] = &[
    "ziglang==0.17.*",
    "cargo-zigbuild==0.24.*",
    "maturin>=1.10,<2",
    "build>=1.2,<2",
    "twine>=6,<8",
    "wheel>=0.45,<1",
];

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

/// Runs a program that must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| program.clone())?;
    if !status.success() {
        let args: Vec<_> = command.get_args().take(4).map(|arg| arg.to_string_lossy()).collect();
        bail!("`{program} {} …`: {status}", args.join(" "));
    }
    Ok(())
}
