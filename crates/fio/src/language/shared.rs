//! Rules about the files that jobs of a run share.

use super::lowering::writes;
use super::targets::{paths, region};
use trueio_job::options::content::rows::{VERIFY_BACKLOG, VERIFY_BACKLOG_BATCH};
use trueio_job::options::limits::rows::STONEWALL;
use trueio_model::JobSpec;

/// Reads back at the end, not among the writes, where parallel jobs write to the same blocks: what one reads back, another one
/// may be writing. Returns a remark.
pub(super) fn shared_backlogs(jobs: &mut [JobSpec]) -> Option<String> {
    let backlog = |spec: &JobSpec| VERIFY_BACKLOG.value_in(spec) > 0;
    if jobs.len() < 2 || !jobs.iter().any(backlog) {
        return None;
    }
    let mut phase = 0;
    let uses = jobs.iter().map(|spec| {
        phase += u32::from(STONEWALL.value_in(spec));
        let written = if writes(spec) { paths(spec) } else { Vec::new() };
        (phase, written, region(spec))
    });
    let uses: Vec<_> = uses.collect();
    let is_shared = |at: usize| {
        let (phase, paths, (from, to)) = &uses[at];
        let mut others = uses.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, (of, theirs, (begin, end)))| {
            of == phase && from < end && begin < to && paths.iter().any(|path| theirs.contains(path))
        })
    };
    let shared: Vec<usize> = (0..jobs.len()).filter(|at| backlog(&jobs[*at]) && is_shared(*at)).collect();
    for at in &shared {
        jobs[*at].options.remove(VERIFY_BACKLOG.name);
        jobs[*at].options.remove(VERIFY_BACKLOG_BATCH.name);
    }
    (!shared.is_empty()).then(|| {
        "`verify_backlog` in files that parallel jobs write: all of it is read back at the end, because a block may be \
         written while it is read"
            .to_owned()
    })
}
