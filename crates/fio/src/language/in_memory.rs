//! `direct=1` on tmpfs, which fio runs where the kernel accepts `O_DIRECT` there (Linux 6.6 on).
//!
//! The flag has no effect: the files are in memory. The job runs, and the checks report that no disk was measured.
//!
//! Limits: of a job with several files, the first decides.

use super::targets::paths;
use trueio_job::options::durability::rows::DIRECT;
use trueio_job::options::engine::rows::IOENGINE;
use trueio_job::plan::directory_of;
use trueio_job::{FactsSource, Target};
use trueio_model::{DirectPolicy, DirectSupport, FilesystemKind, JobSpec, Origin};

/// Lets a job whose files are on a tmpfs do without direct I/O, and returns a note about that.
pub(super) fn without_direct(spec: &mut JobSpec, facts: &dyn FactsSource) -> Option<String> {
    let opens_files = IOENGINE.value_in(spec).is_some_and(|engine| engine.opens_files());
    if DIRECT.value_in(spec) != DirectPolicy::Require || !opens_files {
        return None;
    }
    let path = paths(spec).into_iter().next()?;
    let found = match facts.look(&path) {
        Target::Present(found) => found,
        Target::Missing => match facts.look(directory_of(&path)) {
            Target::Present(found) => found,
            _ => return None,
        },
        _ => return None,
    };
    let is_in_memory = found.filesystem.as_ref().is_some_and(|of| of.kind == FilesystemKind::Tmpfs);
    if !is_in_memory || found.direct.support == DirectSupport::Refused {
        return None;
    }
    let reason = "the files of tmpfs are in memory, so no disk is measured".to_owned();
    let note = format!("`direct=1` has no effect on `{path}`: {reason}");
    DIRECT.set_in(spec, DirectPolicy::Prefer, Origin::Derived { reason });
    Some(note)
}
