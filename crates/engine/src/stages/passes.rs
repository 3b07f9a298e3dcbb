//! What happens before each further pass: cached pages are dropped (`invalidate_each_pass`), or files are removed and
//! made again (`unlink_each_loop`).
//!
//! A file that is made again keeps its descriptor's number, so no engine notices: only an engine that registered its
//! files, or mapped them, would go on with the old ones, and the plan has no such job.
//!
//! Only files that the run itself created are removed: the plan refuses those that exist, and a name that leads to
//! another file by now is left alone.

use super::Stage;
use crate::context::WorkerContext;
use crate::engines::{advise, hint_writes};
use crate::target::TargetFile;
use crate::unlink::unlink_same;
use crate::view::View;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use trueio_model::{FilePlan, Handling};

/// How a further pass begins.
#[derive(Debug)]
pub(crate) struct Passes {
    remakes: bool,
}

impl Passes {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let (drops, remakes) = (context.plan.handling.invalidates_each_pass, context.plan.handling.remakes_each_pass);
        (drops || remakes).then(|| Box::new(Self { remakes }) as Box<dyn Stage>)
    }
}

impl Stage for Passes {
    fn next_pass(&mut self, file: Option<u16>, _ends_loop: bool, view: &mut View<'_, '_>) {
        match self.remakes {
            true => remake_all(view),
            false => drop_pages(file, view),
        }
        view.state.queue.room_since = view.clock.now();
    }
}

/// Drops the cached pages of a file, or of all. Dirty pages stay (the kernel begins to write them); a failure only
/// leaves pages where they are, and the evidence sees that.
fn drop_pages(file: Option<u16>, view: &mut View<'_, '_>) {
    let context = view.state.context;
    let all = context.files.iter().zip(&context.plan.files).zip(0_u16..);
    for ((target, plan), _) in all.filter(|(_, index)| file.is_none_or(|file| file == *index)) {
        let _ = trueio_direct::evict(&target.file, plan.offset_bytes, plan.size_bytes);
    }
}

/// Removes each file and makes it again, empty. A file that cannot be made again ends the job.
fn remake_all(view: &mut View<'_, '_>) {
    let context = view.state.context;
    let plan = context.plan;
    let again = view.engine.opened_again();
    let mut files = context.files.iter().zip(&plan.files).enumerate();
    let failed = files.find_map(|(index, (target, file))| {
        let error = remake(target, again.get(index), file, &plan.handling).err()?;
        Some(format!("`{}` cannot be removed and made again (`unlink_each_loop`): {error}", file.path))
    });
    if let Some(sentence) = failed {
        view.state.outcome.fail(sentence);
    }
}

/// Lets the descriptors of a removed file refer to a new one.
fn remake(target: &TargetFile, again: Option<&TargetFile>, plan: &FilePlan, handling: &Handling) -> io::Result<()> {
    let path = Path::new(&plan.path);
    if plan.remove_after {
        // It has no name, and others hold it: its space is free only if it is empty.
        target.file.set_len(0)?;
    } else {
        unlink_same(path, &target.file)?;
    }
    let kept = OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC;
    let flags = rustix::fs::fcntl_getfl(&*target.file)? & kept;
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags.bits() as i32);
    let new = options.clone().create_new(true).mode(handling.new_files.mode()).open(path)?;
    if plan.remove_after {
        unlink_same(path, &new)?;
    }
    if let Some(again) = again {
        let new = options.open(format!("/proc/self/fd/{}", new.as_raw_fd()))?;
        put(&new, &again.file, handling)?;
    }
    put(&new, &target.file, handling)
}

/// Lets the descriptor of `old` be one of `new`'s file.
fn put(new: &File, old: &File, handling: &Handling) -> io::Result<()> {
    advise(new, handling.advice, 0, 0)?;
    hint_writes(new, handling.write_hint)?;
    // SAFETY: a plain call on two open descriptors. `old` stays the owner of its number, which is open without a gap.
    match unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
