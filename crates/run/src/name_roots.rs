//! The directories of names that several jobs share (`name_directory`): made before their first job, removed at the end.
//!
//! Only a directory that this process made is removed, with the names that are as the engines write them; whatever another
//! program put there stays, and then the directories above it do, too. Other ranks wait until they see the directory.
//!
//! Limit: after SIGKILL the directory stays.

use crate::file_error::{FileError, acting};
use crate::observer::{Event, Observer};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_model::JobPlan;

/// The longest wait until a directory of rank 0 appears on another host: caches of network filesystems keep that a name is
/// missing.
const APPEARS: Duration = Duration::from_secs(60);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The directories of a run. Those that this process made are removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct NameRoots {
    /// By path; `None`: it is not removed here.
    roots: BTreeMap<String, Option<Root>>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    identity: (u64, u64),
}

impl NameRoots {
    /// Makes the directory of a job's names, or waits for it, unless an earlier job did.
    ///
    /// # Errors
    /// The directory cannot be made, or does not appear.
    pub(crate) fn begin(
        &mut self,
        job: &JobPlan,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), FileError> {
        let (Some(set), Some(file)) = (&job.names, job.files.first()) else { return Ok(()) };
        if self.roots.contains_key(&file.path) {
            return Ok(());
        }
        let failed = |source: io::Error| FileError::Directory { path: file.path.clone(), source };
        let mut root = None;
        if set.is_made_here {
            if set.is_new {
                acting(job.user, || {
                    DirBuilder::new().mode(job.handling.new_files.directory_mode()).create(&file.path).map_err(failed)
                })?;
            }
            if !set.stays {
                let found = std::fs::symlink_metadata(&file.path).map_err(failed)?;
                root = Some(Root { path: PathBuf::from(&file.path), identity: (found.dev(), found.ino()) });
            }
        } else {
            let began = Instant::now();
            while !Path::new(&file.path).is_dir() {
                if stop.load(Relaxed) {
                    return Err(FileError::Stopped);
                }
                if began.elapsed() > APPEARS {
                    let reason =
                        "rank 0 made it, and it is not visible on this host; mount the same filesystem on all hosts";
                    return Err(failed(io::Error::new(io::ErrorKind::NotFound, reason)));
                }
                observer.notify(Event::Preparing { path: &file.path, done_bytes: 0, size_bytes: 1 });
                std::thread::sleep(PAUSE);
            }
        }
        self.roots.insert(file.path.clone(), root);
        Ok(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let is_ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_ours {
            // What cannot be removed stays; the run has ended.
            let _ = remove(&self.path);
        }
    }
}

/// Removes a directory and the names of engines in it; an error if something else is left.
fn remove(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_directory = entry.file_type()?.is_dir();
        if is_directory && is_directory_name(name) {
            let _ = remove(&entry.path());
        } else if entry.file_type()?.is_file() && is_item(name, "f") {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir(directory)
}

/// Returns true for `tree`, `tree.2`, `7` and `d.2.17`.
fn is_directory_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name == "tree" || is_number(name) || name.strip_prefix("tree.").is_some_and(is_number) || is_item(name, "d")
}

/// Returns true for `f.2.17` with the letter `f`.
fn is_item(name: &str, letter: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = name.split('.');
    parts.next() == Some(letter)
        && parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_number)
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EngineKind, FilePlan, NameSet, Prepare};

    struct Silent;
    impl Observer for Silent {}

    fn job(path: &Path, is_made_here: bool) -> JobPlan {
        let mut job = JobPlan::plain(EngineKind::Filecreate, 4);
        job.files.push(FilePlan {
            path: path.to_str().expect("UTF-8").to_owned(),
            prepare: Prepare::Nothing,
            remove_after: true,
            offset_bytes: 0,
            size_bytes: 4,
            extends_from: None,
        });
        job.names = Some(NameSet {
            owner: 0,
            depth: 1,
            branch: 2,
            in_leaves: false,
            is_private: false,
            is_tree: false,
            file_bytes: 0,
            syncs_files: false,
            syncs_filesystem: false,
            is_compared: false,
            is_new: true,
            is_made_here,
            stays: false,
        });
        job
    }

    #[test]
    fn the_names_of_engines_are_removed_with_their_directory_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        let stop = AtomicBool::new(false);
        let mut roots = NameRoots::default();
        roots.begin(&job(&path, true), &stop, &mut Silent).expect("it is new");
        // Another rank finds it.
        NameRoots::default().begin(&job(&path, false), &stop, &mut Silent).expect("it is there");
        let error = NameRoots::default().begin(&job(&path, true), &stop, &mut Silent).expect_err("it exists");
        assert!(matches!(error, FileError::Directory { .. }));
        std::fs::create_dir_all(path.join("tree/1/d.0.3")).expect("directories");
        std::fs::write(path.join("tree/f.0.1"), "").expect("a file");
        std::fs::write(path.join("tree/1/f.12.7"), "").expect("a file");
        std::fs::create_dir(path.join("tree.3")).expect("a directory");
        drop(roots);
        assert!(!path.exists());

        let mut roots = NameRoots::default();
        roots.begin(&job(&path, true), &stop, &mut Silent).expect("it is new");
        std::fs::create_dir_all(path.join("tree/2")).expect("directories");
        for name in ["tree/notes", "tree/f.1", "tree/f.1.2.3", "tree/2/f.0.0"] {
            std::fs::write(path.join(name), "").expect("a file");
        }
        drop(roots);
        let left = |name: &str| path.join(name).exists();
        assert!(left("tree/notes") && left("tree/f.1") && left("tree/f.1.2.3") && !left("tree/2"));
    }

    #[test]
    fn a_rank_that_waits_for_the_directory_can_be_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let stopped = AtomicBool::new(true);
        let found = NameRoots::default().begin(&job(&folder.path().join("no"), false), &stopped, &mut Silent);
        assert!(matches!(found, Err(FileError::Stopped)));
    }
}
