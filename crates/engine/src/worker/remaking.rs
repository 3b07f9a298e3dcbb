//! Files that are removed and made again before each further pass (`unlink_each_loop`).
//!
//! A file keeps its descriptor's number, so no engine knows of it: only one that has registered its files, or mapped
//! them, would go on with the old ones, and the plan gives those no such job.
//!
//! Only what the run itself created is removed: the plan refuses what exists, and a name that leads to another file by
//! now is left alone.

use super::Worker;
use crate::clock::Clock;
use crate::engines::{Engine, advise};
use crate::target::TargetFile;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use trueio_model::{Advice, FilePlan};

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Before a further pass, with nothing in flight: each file is removed and made again, empty. One that cannot be
    /// ends the job.
    #[cold]
    pub(super) fn remake_files(&mut self) {
        let plan = self.context.plan;
        let again = self.engine.opened_again();
        let mut files = self.context.files.iter().zip(&plan.files).enumerate();
        let failed = files.find_map(|(index, (target, file))| {
            let error = remake(target, again.get(index), file, plan.handling.advice).err()?;
            Some(format!("`{}` cannot be removed and made again (`unlink_each_loop`): {error}", file.path))
        });
        if let Some(sentence) = failed {
            self.fatal.get_or_insert(sentence);
            self.is_done = true;
        }
        self.free_since = self.clock.now();
    }
}

/// Puts a new file behind the descriptors of one that is removed.
fn remake(target: &TargetFile, again: Option<&TargetFile>, plan: &FilePlan, advice: Advice) -> io::Result<()> {
    let path = Path::new(&plan.path);
    if plan.remove_after {
        // It has no name, and others hold it: its space is free only if it is empty.
        target.file.set_len(0)?;
    } else {
        let (named, open) = (std::fs::symlink_metadata(path)?, target.file.metadata()?);
        if (named.dev(), named.ino()) != (open.dev(), open.ino()) {
            return Err(io::Error::other("its name leads to another file by now, which is left alone"));
        }
        std::fs::remove_file(path)?;
    }
    let kept = OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC;
    let flags = rustix::fs::fcntl_getfl(&*target.file)? & kept;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags.bits() as i32);
    let new = options.clone().create_new(true).mode(0o600).open(path)?;
    if plan.remove_after {
        std::fs::remove_file(path)?;
    }
    if let Some(again) = again {
        let new = options.open(format!("/proc/self/fd/{}", new.as_raw_fd()))?;
        put(&new, &again.file, advice)?;
    }
    put(&new, &target.file, advice)
}

/// Lets the descriptor of `old` be one of `new`'s file.
fn put(new: &File, old: &File, advice: Advice) -> io::Result<()> {
    advise(new, advice, 0, 0)?;
    // SAFETY: a plain call on two open descriptors. `old` stays the owner of its number, which is open without a gap.
    match unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
