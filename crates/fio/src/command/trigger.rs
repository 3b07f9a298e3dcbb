//! `--trigger-file`, `--trigger-timeout`, `--trigger`: what ends a run early, and the command that runs then.
//!
//! The jobs end as by a signal: their results are printed, and verify states are saved. Then the command runs (fio runs it
//! while the jobs are ending), so that a command that cuts the power finds the states on the disk. The run is a success.
//!
//! A file that exists when the jobs begin ends them at once, as in fio, but is not removed: it may be any file. A file of another user than
//! this one and root is no trigger: it would decide when a command of this user runs.
//!
//! Limits: a trigger is looked for with each progress event, five times a second; while files are laid out, less often.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_report::message;

use crate::language::Trigger;

/// A trigger that is waited for.
#[derive(Debug)]
pub(super) struct Waiting {
    file: Option<PathBuf>,
    /// Device and inode of a file that existed at the start.
    existed: Option<(u64, u64)>,
    until: Option<Instant>,
    stop: &'static AtomicBool,
    has_fired: bool,
    /// Whether the note about a file of another user was printed.
    has_noted: bool,
}

impl Waiting {
    /// Time counts from now. `stop` ends the run.
    pub(super) fn new(trigger: &Trigger, stop: &'static AtomicBool) -> Self {
        let until = trigger.after_ns.and_then(|ns| Instant::now().checked_add(Duration::from_nanos(ns)));
        let file = trigger.file.as_ref().map(PathBuf::from);
        let existed = file.as_deref().and_then(identity);
        Self { file, existed, until, stop, has_fired: false, has_noted: false }
    }

    /// Ends the run if the file exists, or if the time is over. A file that appeared during the run is removed.
    pub(super) fn look(&mut self) {
        if self.has_fired || (self.file.is_none() && self.until.is_none()) {
            return;
        }
        let there = self.file.as_ref().and_then(|file| Some((file, file.symlink_metadata().ok()?)));
        if let Some((file, found)) = there.as_ref().filter(|(_, found)| !is_own(found) && !self.has_noted) {
            self.has_noted = true;
            message!(
                "note: the trigger file `{}` is ignored: it belongs to another user (UID {})",
                file.display(),
                found.uid()
            );
        }
        if let Some((file, _)) = there.filter(|(_, found)| is_own(found)) {
            // A directory or what cannot be removed stays, and has triggered nevertheless.
            if self.existed.is_some() && identity(file) == self.existed {
                message!("note: the trigger file `{}` existed before the run, so it is not removed", file.display());
            } else if let Err(error) = std::fs::remove_file(file) {
                message!("note: the trigger file `{}` stays: {error}", file.display());
            }
        } else if self.until.is_none_or(|until| Instant::now() < until) {
            return;
        }
        self.has_fired = true;
        self.stop.store(true, Relaxed);
    }

    /// Returns true if the trigger ended the run.
    pub(super) fn has_fired(&self) -> bool {
        self.has_fired
    }
}

/// True if a file belongs to the effective user or to root.
pub(super) fn is_own(found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw()
}

/// Returns device and inode of a file, without following a link; `None`: it does not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Runs the command of a trigger in a shell, with its output on standard error.
///
/// # Errors
/// Why it did not succeed.
pub(super) fn run_command(command: &str) -> Result<(), String> {
    let failed = |reason: String| format!("the command of `--trigger` failed: {reason}\n  command: {command}");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(std::io::stderr());
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}
