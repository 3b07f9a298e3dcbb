//! `fio-dump-status` in the directory of temporary files: when it exists, the results so far are printed, and it is removed.
//!
//! Limits: only a regular file of this user or of root is taken: the directory is everybody's. One that cannot be removed is noted, and not
//! looked for again.

use super::trigger::is_own;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_report::message;

/// The file that is looked for.
#[derive(Debug)]
pub(super) struct DumpFile {
    /// `None` after it could not be removed.
    path: Option<PathBuf>,
    asked: &'static AtomicBool,
    /// Whether the note about a file of another user was printed.
    has_noted: bool,
}

impl DumpFile {
    /// `asked` requests the results so far.
    pub(super) fn new(asked: &'static AtomicBool) -> Self {
        let directory = ["TMPDIR", "TEMP"].into_iter().find_map(std::env::var_os).filter(|name| !name.is_empty());
        let directory = directory.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        Self { path: Some(directory.join("fio-dump-status")), asked, has_noted: false }
    }

    /// Requests the results so far, and removes the file, if it exists.
    pub(super) fn look(&mut self) {
        let Some(path) = &self.path else { return };
        let Some(found) = path.symlink_metadata().ok().filter(Metadata::is_file) else { return };
        if !is_own(&found) {
            if !self.has_noted {
                self.has_noted = true;
                message!("note: `{}` is ignored: it belongs to another user (UID {})", path.display(), found.uid());
            }
            return;
        }
        self.asked.store(true, Relaxed);
        if let Err(error) = std::fs::remove_file(path) {
            message!("note: `{}` stays: {error}", path.display());
            self.path = None;
        }
    }
}
