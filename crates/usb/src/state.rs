//! Where a switch stands: a small file, written before each step, so that a run that was killed is
//! finished or undone by the next.
//!
//! It lies below `/run`, which a restart empties: a restart undoes everything by itself, because
//! the kernel probes every interface anew with the quirks it was started with.
//!
//! Cannot see: a step that was begun and not ended, but for what sysfs shows of it. So nothing is
//! taken from the file but what sysfs cannot tell: the old quirk string and the disk's identity.

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
    /// The quirk string is put back.
    Restore,
    /// The disk is waited for and compared.
    Wait,
    /// The old driver is bound again.
    Undo,
    /// It is done; kept so that the way back is known.
    Done,
}

impl Step {
    /// In words, for "stopped at …".
    pub fn words(self) -> &'static str {
        match self {
            Self::Quirks => "setting the quirk string",
            Self::Remove => "removing the block devices",
            Self::Unbind => "unbinding the old driver",
            Self::Bind => "binding the new driver",
            Self::Restore => "putting the quirk string back",
            Self::Wait => "waiting for the disk",
            Self::Undo => "binding the old driver again",
            Self::Done => "the end",
        }
    }
}

/// Where a switch stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// What is done.
    pub plan: Plan,
    /// The step that was begun last.
    pub step: Step,
    /// What stands at both ends of each block device, as one number each.
    pub ends: Vec<u64>,
    /// The switch that was noted of this interface before, if it was done: the way back from it is known again when
    /// this one is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<State>>,
}

/// Why a state could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("`{}` cannot be read", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is not a state that this version understands.
    #[error("`{}` is not understood; if no switch is under way, remove it", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl State {
    pub(crate) fn new(plan: Plan, earlier: Option<State>) -> Self {
        let is_of_this =
            |state: &State| state.step == Step::Done && state.plan.id == plan.id && state.plan.serial == plan.serial;
        // One step back is enough: what was before that one, it said itself.
        let earlier = earlier.filter(is_of_this).map(|state| Box::new(State { earlier: None, ..state }));
        Self { version: VERSION, plan, step: Step::Quirks, ends: Vec::new(), earlier }
    }

    /// Writes it into `folder`, whole or not at all.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let path = file_of(folder, &self.plan.interface)?;
        let beside = path.with_extension("new");
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        std::fs::write(&beside, text)?;
        std::fs::rename(beside, path)
    }

    /// Removes the file of an interface; that there is none is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn clear(folder: &Path, interface: &str) -> io::Result<()> {
        match std::fs::remove_file(file_of(folder, interface)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// An interface's name is digits and three signs; anything else is no name of a file of ours.
fn file_of(folder: &Path, interface: &str) -> io::Result<PathBuf> {
    let is_plain = !interface.is_empty() && interface.bytes().all(|b| b.is_ascii_digit() || b"-.:".contains(&b));
    if is_plain {
        Ok(folder.join(format!("{interface}.json")))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{interface}` is no interface")))
    }
}

/// Every state in `folder`, by interface; empty if there is no such folder.
///
/// # Errors
/// [`StateError`]: a file there is not understood. Then nothing may be switched.
pub fn pending(folder: &Path) -> Result<Vec<State>, StateError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut states = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| StateError::Io { path: path.clone(), source })?;
        let state: State =
            serde_json::from_str(&text).map_err(|source| StateError::Malformed { path: path.clone(), source })?;
        if state.version != VERSION {
            let source = serde::de::Error::custom(format!("version {} is not known", state.version));
            return Err(StateError::Malformed { path, source });
        }
        states.push(state);
    }
    states.sort_by(|a: &State, b| a.plan.interface.cmp(&b.plan.interface));
    Ok(states)
}
