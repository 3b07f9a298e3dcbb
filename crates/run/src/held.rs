//! A target of a run: kept open during the whole run and compared with the plan before each use.
//!
//! Each open of a target uses the held descriptor, not the path. If there are more files than descriptors, only the
//! identity is kept: each open then opens the path without following links, compares the identity of what it opened,
//! and opens the file through that descriptor.

use crate::file_error::FileError;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use trueio_device::{Links, identity_of, identity_of_name, open_name, path_of_descriptor, signatures_in_words};
use trueio_model::TargetIdentity;

/// How a run uses an existing target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// A job writes, trims or extends the target.
    pub(crate) is_written: bool,
    /// The run extends the target.
    pub(crate) is_extended: bool,
    /// The descriptor limit permits keeping the target open.
    pub(crate) keeps: bool,
}

/// A file or device that is used by a run.
#[derive(Debug)]
pub(crate) struct Held {
    path: String,
    identity: RefCell<TargetIdentity>,
    file: RefCell<Option<File>>,
    /// The target has a path, and the path must still refer to it. False for an unlinked file.
    is_named: bool,
    links: Links,
    usage: Usage,
    /// The run created the target.
    is_ours: bool,
    /// The run has begun to write to the target, so its signatures may change.
    was_written: Cell<bool>,
}

/// A path that opens one specific file for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    _name: Option<File>,
}

impl Held {
    /// Opens an existing target and compares it with the identity in the plan. `examined` is the descriptor through
    /// which the planner examined it; without one, the path is opened.
    ///
    /// # Errors
    /// The kernel's error, or the difference from the plan.
    pub(crate) fn existing(
        path: &str,
        examined: Option<File>,
        planned: Option<&TargetIdentity>,
        usage: Usage,
    ) -> Result<Self, HoldError> {
        let links = if usage.is_written { Links::NotFollowed } else { Links::Followed };
        let name = examined.map_or_else(|| open_name(Path::new(path), links), Ok)?;
        let mut found = identity_of(&name)?;
        let mut file = None;
        if planned.is_none_or(|planned| planned.is_same(&found)) && (usage.keeps || found.block.is_some()) {
            // Opened for reading only: udev probes a block device again when a writable descriptor is closed.
            let opened = File::open(path_of_descriptor(&name))?;
            found = identity_of(&opened)?;
            file = Some(opened);
        }
        if let Some(planned) = planned {
            if !planned.is_same(&found) {
                return Err(HoldError::Changed(leads_elsewhere(&found)));
            }
            found = planned.clone();
        }
        Ok(Self {
            path: path.to_owned(),
            identity: RefCell::new(found),
            file: RefCell::new(file),
            is_named: true,
            links,
            usage,
            is_ours: false,
            was_written: Cell::new(false),
        })
    }

    /// Holds a file that the run has just created.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn created(path: &str, file: File, is_named: bool, keeps: bool) -> io::Result<Self> {
        let identity = identity_of(&file)?;
        Ok(Self {
            path: path.to_owned(),
            identity: RefCell::new(identity),
            file: RefCell::new((keeps || !is_named).then_some(file)),
            is_named,
            links: Links::NotFollowed,
            usage: Usage { is_written: true, is_extended: true, keeps },
            is_ours: true,
            was_written: Cell::new(true),
        })
    }

    /// Replaces the held file by the file that was created again under the same path.
    pub(crate) fn replace(&self, file: File) {
        let Ok(identity) = identity_of(&file).inspect(|_| debug_assert!(self.is_ours)) else { return };
        self.identity.replace(identity);
        let mut held = self.file.borrow_mut();
        if held.is_some() {
            *held = Some(file);
        }
    }

    /// Returns whether the target is an unlinked file, without a path.
    pub(crate) fn is_anonymous(&self) -> bool {
        !self.is_named
    }

    /// Returns the device number of a block device; `None` for a file.
    pub(crate) fn device(&self) -> Option<u64> {
        self.identity.borrow().block.as_ref().map(|block| block.number)
    }

    /// Returns the `/proc/self/fd` path of the held descriptor; `None` if no descriptor is held.
    pub(crate) fn descriptor(&self) -> Option<PathBuf> {
        self.file.borrow().as_ref().map(path_of_descriptor)
    }

    /// Returns a path that opens this target and no other.
    ///
    /// # Errors
    /// The difference, if the path of the target now refers to something else.
    pub(crate) fn entry(&self) -> Result<Entry, HoldError> {
        if let Some(path) = self.descriptor() {
            return Ok(Entry { path, _name: None });
        }
        let name = open_name(Path::new(&self.path), self.links)?;
        self.confirm(&name)?;
        Ok(Entry { path: path_of_descriptor(&name), _name: Some(name) })
    }

    /// Compares a newly opened descriptor with this target, before the descriptor is used.
    ///
    /// # Errors
    /// How the target differs from the plan, or why it cannot be examined.
    pub(crate) fn confirm(&self, opened: &File) -> Result<(), HoldError> {
        let found = identity_of(opened)?;
        match self.identity.borrow().is_same(&found) {
            true => Ok(()),
            false => Err(HoldError::Changed(leads_elsewhere(&found))),
        }
    }

    /// Records that the run begins to write to this target. Later checks no longer compare its signatures.
    pub(crate) fn writes_begin(&self) {
        self.was_written.set(true);
    }

    /// Compares the target, and what its path refers to, with the plan. Called before each phase; the phase uses the
    /// bytes of the target up to `end_bytes`.
    ///
    /// # Errors
    /// How the target differs from the plan, or why it cannot be examined.
    pub(crate) fn check(&self, end_bytes: u64) -> Result<(), HoldError> {
        let planned = self.identity.borrow();
        let changed = |what: String| Err(HoldError::Changed(what));
        if self.is_named {
            let named = identity_of_name(Path::new(&self.path), self.links)?;
            if !planned.is_same(&named) {
                return changed(leads_elsewhere(&named));
            }
            if self.file.borrow().is_none() {
                return self.check_size(&planned, &named, end_bytes);
            }
        }
        let file = self.file.borrow();
        let Some(file) = &*file else { return Ok(()) };
        let found = identity_of(file)?;
        if !planned.is_same(&found) {
            return changed("its device number now belongs to another disk".to_owned());
        }
        self.check_size(&planned, &found, end_bytes)?;
        let signatures = planned.block.as_ref().and_then(|block| block.signatures.as_ref());
        if let Some(planned) = signatures.filter(|_| self.usage.is_written && !self.was_written.get()) {
            let found = signatures_in_words(file)?;
            let words = |list: &[String]| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
            if *planned != found {
                return changed(format!("its signatures were {}, and are {} now", words(planned), words(&found)));
            }
        }
        Ok(())
    }

    fn check_size(&self, planned: &TargetIdentity, found: &TargetIdentity, end_bytes: u64) -> Result<(), HoldError> {
        if self.is_ours || self.usage.is_extended {
            return Ok(());
        }
        let (Some(before), Some(now)) = (planned.size_bytes, found.size_bytes) else { return Ok(()) };
        let may_grow = found.block.is_none() && !self.usage.is_written;
        if before == now || may_grow && now >= end_bytes.min(before) {
            return Ok(());
        }
        Err(HoldError::Changed(format!("its size was {before} bytes, and is {now} bytes now")))
    }
}

fn leads_elsewhere(found: &TargetIdentity) -> String {
    let what = if found.block.is_some() { "disk" } else { "file" };
    format!("its path now refers to another {what}")
}

/// Why a target cannot be held or used.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// A system call failed.
    Kernel(io::Error),
    /// The target differs from the plan: the difference.
    Changed(String),
}

impl From<io::Error> for HoldError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Changed("its path no longer exists".to_owned()),
            // A symbolic link, or neither a file nor a block device.
            io::ErrorKind::InvalidInput => Self::Changed(error.to_string()),
            _ => Self::Kernel(error),
        }
    }
}

impl HoldError {
    /// Converts to the error of a job's file.
    pub(crate) fn of(self, job: &str, path: &str) -> FileError {
        let path = path.to_owned();
        match self {
            Self::Changed(what) => FileError::Changed { path, what },
            Self::Kernel(source) => FileError::Hold { job: job.to_owned(), path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: if no descriptor is held, each open compares what the path refers to.
    #[test]
    fn without_a_descriptor_the_name_is_compared_at_each_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let [name, kept] = ["data", "kept"].map(|name| folder.path().join(name));
        let path = name.to_str().expect("UTF-8");
        std::fs::write(&name, "ours").expect("a file");
        let usage = Usage { is_written: true, is_extended: false, keeps: false };
        let held = Held::existing(path, None, None, usage).expect("a file");
        assert_eq!(held.descriptor(), None);
        let entry = held.entry().expect("it is there");
        std::fs::rename(&name, &kept).expect("moved");
        std::os::unix::fs::symlink("kept", &name).expect("a link");
        assert_eq!(std::fs::read(&entry.path).expect("the file, not the link"), b"ours");
        for result in [held.check(4).err(), held.entry().err()] {
            let Some(HoldError::Changed(what)) = result else { panic!("{result:?}") };
            assert_eq!(what, "it is a symbolic link");
        }
        std::fs::remove_file(&name).expect("removed");
        std::fs::write(&name, "theirs").expect("a file");
        let Err(HoldError::Changed(what)) = held.entry() else { panic!("it is another file") };
        assert_eq!(what, "its path now refers to another file");
        let other = File::open(&name).expect("a file");
        held.confirm(&other).expect_err("it is another file");
        // A job that only reads may use a link, as long as it refers to the same file.
        std::fs::remove_file(&name).expect("removed");
        std::os::unix::fs::symlink("kept", &name).expect("a link");
        let usage = Usage { is_written: false, ..usage };
        let held = Held::existing(path, None, None, usage).expect("a file");
        held.check(4).and_then(|()| held.entry().map(drop)).expect("the link refers to the file");
    }
}
