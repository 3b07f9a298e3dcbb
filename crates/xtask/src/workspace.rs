//! Paths of the workspace, and calls of cargo.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("xtask lives in crates/xtask").to_owned()
}

/// `program`, run in the root of the repository, without the variables that `cargo run` set for us:
/// a nested cargo would pass them to build scripts, which would then be run again.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// The cargo that started this program.
pub(crate) fn cargo() -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

/// `cargo metadata` of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed");
    }
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")
}

/// The directory that cargo builds into.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    Ok(PathBuf::from(metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?))
}

/// Builds the program in release mode and returns its path.
pub(crate) fn build_release() -> Result<PathBuf> {
    let status = cargo().args(["build", "--release", "--package", "trueio-cli"]).status()?;
    if !status.success() {
        bail!("the release build failed");
    }
    Ok(target_dir()?.join("release/trueio"))
}

/// True if `name` is a program in PATH.
pub(crate) fn has_program(name: &str) -> bool {
    // Administrators' folders are often missing from a user's PATH, and mkfs lives there.
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(name).is_file())
}

/// True if this process is root's.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
