//! The state of a switch: a small file, written before each step, so that the next run finishes or undoes a
//! switch that was killed.
//!
//! The file is below `/run`, which a restart empties. A restart undoes a switch by itself, because the kernel
//! probes every interface again with the quirks that it was booted with.
//!
//! Cannot see: whether a step that was begun also ended, except through sysfs. So only values that sysfs does
//! not show are read from the file: the previous quirk string and the disk's identity.

use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The version of the file.
const VERSION: u32 = 1;

/// The steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The quirk string is set.
    Quirks,
    /// The block devices are removed.
    Remove,
    /// The old driver is unbound.
    Unbind,
    /// The new driver is bound.
    Bind,
    /// The previous quirk string is restored.
    Restore,
    /// The command waits for the disk and compares it.
    Wait,
    /// The old driver is bound again.
    Undo,
    /// The switch is complete; the file is kept, so that the previous transport is known.
    Done,
}

impl Step {
    /// Describes the step, for "stopped at …".
    pub fn words(self) -> &'static str {
        match self {
            Self::Quirks => "setting the quirk string",
            Self::Remove => "removing the block devices",
            Self::Unbind => "unbinding the old driver",
            Self::Bind => "binding the new driver",
            Self::Restore => "restoring the quirk string",
            Self::Wait => "waiting for the disk",
            Self::Undo => "binding the old driver again",
            Self::Done => "the end",
        }
    }
}

/// The state of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchState {
    version: u32,
    /// The plan.
    pub plan: Plan,
    /// The step that was begun last.
    pub step: Step,
    /// Checksum of both ends of each block device.
    pub ends: Vec<u64>,
    /// The completed switch that was recorded for this interface before. Undoing the present switch restores
    /// it, so that `--restore` still finds the original transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<SwitchState>>,
}

/// The reason why a state could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("`{}` cannot be read", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// This version does not recognise the file's content.
    #[error("`{}` is not a valid state file; if no switch is in progress, remove it", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
}

impl SwitchState {
    pub(crate) fn new(plan: Plan, earlier: Option<SwitchState>) -> Self {
        let is_of_this = |state: &SwitchState| {
            state.step == Step::Done && state.plan.id == plan.id && state.plan.serial == plan.serial
        };
        // One earlier switch is enough: that one held the one before it.
        let earlier = earlier.filter(is_of_this).map(|state| Box::new(SwitchState { earlier: None, ..state }));
        Self { version: VERSION, plan, step: Step::Quirks, ends: Vec::new(), earlier }
    }

    /// Writes the state into `folder`, completely or not at all.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let path = file_of(folder, &self.plan.interface)?;
        let temporary = path.with_extension("new");
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        std::fs::write(&temporary, text)?;
        std::fs::rename(temporary, path)
    }

    /// Removes the file of an interface. A missing file is no error.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn clear(folder: &Path, interface: &str) -> io::Result<()> {
        match std::fs::remove_file(file_of(folder, interface)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// An interface's name has only digits and three signs; any other name is not one of our files.
fn file_of(folder: &Path, interface: &str) -> io::Result<PathBuf> {
    let is_plain = !interface.is_empty() && interface.bytes().all(|b| b.is_ascii_digit() || b"-.:".contains(&b));
    if is_plain {
        Ok(folder.join(format!("{interface}.json")))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{interface}` is not the name of an interface")))
    }
}

/// Returns every state in `folder`, by interface; empty if there is no such folder.
///
/// # Errors
/// [`StateError`]: a file is not a valid state. Then no disk may be switched.
pub fn pending(folder: &Path) -> Result<Vec<SwitchState>, StateError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut states = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| StateError::Io { path: path.clone(), source })?;
        let state: SwitchState =
            serde_json::from_str(&text).map_err(|source| StateError::Malformed { path: path.clone(), source })?;
        if state.version != VERSION {
            let source = serde::de::Error::custom(format!("unknown version {}", state.version));
            return Err(StateError::Malformed { path, source });
        }
        states.push(state);
    }
    states.sort_by(|a: &SwitchState, b| a.plan.interface.cmp(&b.plan.interface));
    Ok(states)
}
