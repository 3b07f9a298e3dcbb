//! Programs of the system that tests call.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program and returns its trimmed standard output.
///
/// # Errors
/// The program, its arguments and its standard error, if it cannot be started or fails.
pub fn tool(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{name} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Copies a program, for a test that starts the copy. Another process writes it: a child that a parallel test forks meanwhile
/// would inherit a descriptor of this process that is open for writing, and the start would fail with ETXTBSY.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let mut copy = Command::new("cp");
    let status = copy.arg("--").arg(from.as_ref()).arg(to.as_ref()).status().expect("cp starts");
    assert!(status.success(), "`cp` copied no program to `{}`", to.as_ref().display());
}
