//! Programs of the system that tests call.

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
