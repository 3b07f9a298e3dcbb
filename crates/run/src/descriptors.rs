//! Descriptors for all files of each phase, which stay open while it runs.
//!
//! The soft limit of this process is raised as far as it must be; beyond the hard limit only the privileged may go, and
//! everyone else gets an error before a file is created.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use trueio_model::{EngineKind, JobPlan, Prepare};

/// Descriptors for everything else: logs, counters, rings, the three standard ones.
const OTHERS: u64 = 256;

/// Checks that the hard limit allows the files of each phase to be open at once; raises nothing.
///
/// # Errors
/// As [`provide`].
pub(crate) fn check(jobs: &[JobPlan]) -> Result<(), String> {
    let (needed, limit) = (needed_at_once(jobs), getrlimit(Resource::Nofile));
    let may_raise = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_RESOURCE));
    let is_within = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if may_raise || is_within(limit.current) || is_within(limit.maximum) {
        return Ok(());
    }
    Err(beyond(needed, limit.maximum))
}

/// Makes sure that the files of each phase can be open at once, before the first of them is made. Returns whether there
/// is a further descriptor for each file of the run, by which it can be held from the begin to the end.
///
/// # Errors
/// Returns a sentence with the number of descriptors that are needed, and the limit.
pub(crate) fn provide(jobs: &[JobPlan]) -> Result<bool, String> {
    let needed = needed_at_once(jobs);
    if allow(wanted(jobs)).is_ok() {
        return Ok(true);
    }
    allow(needed).map(|()| false).map_err(|maximum| beyond(needed, maximum))
}

/// Returns the descriptors of the phase that needs most, and one for each file of the run.
pub(crate) fn wanted(jobs: &[JobPlan]) -> u64 {
    needed_at_once(jobs) + jobs.iter().map(opened).sum::<u64>()
}

fn beyond(needed: u64, maximum: Option<u64>) -> String {
    let maximum = maximum.map_or_else(|| "unlimited".to_owned(), |maximum| maximum.to_string());
    format!(
        "the jobs need {needed} open files at once, and the limit is {maximum} (RLIMIT_NOFILE): all files of a job \
         stay open, independent of `openfiles`; use fewer files, or raise the limit (`ulimit -Hn {needed}`, \
         LimitNOFILE= of a service)"
    )
}

/// The descriptors that are needed at once, in the phase that needs most.
fn needed_at_once(jobs: &[JobPlan]) -> u64 {
    let phases = jobs.iter().map(|job| job.phase as usize).max().map_or(0, |last| last + 1);
    (0..phases).map(|index| needed(jobs, index)).max().unwrap_or(0)
}

/// Raises the limit to `needed`, or returns the hard limit that forbids it.
fn allow(needed: u64) -> Result<(), Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let is_within = limit.maximum.is_none_or(|maximum| maximum >= needed);
    let maximum = if is_within { limit.maximum } else { Some(needed) };
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).map_err(|_| limit.maximum)
}

/// The files that a job opens.
fn opened(job: &JobPlan) -> u64 {
    job.files.iter().filter(|file| file.prepare != Prepare::Nothing).count() as u64
}

/// How many descriptors a phase needs at most: of files without a name one more, since the phase before, and of
/// engines that keep a position one for each worker.
fn needed(jobs: &[JobPlan], index: usize) -> u64 {
    let kept: u64 = jobs.iter().filter(|job| job.phase as usize <= index).map(opened).sum();
    let at_once = jobs.iter().filter(|job| job.phase as usize == index).map(|job| {
        let has_positions = matches!(job.engine, EngineKind::Sync | EngineKind::Vsync);
        opened(job) * if has_positions { 1 + u64::from(job.workers) } else { 1 }
    });
    kept + at_once.sum::<u64>() + OTHERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::FilePlan;

    #[test]
    fn files_of_this_phase_and_those_kept_from_before_are_counted() {
        let file = |prepare| FilePlan {
            path: String::new(),
            prepare,
            remove_after: true,
            offset_bytes: 0,
            size_bytes: 4096,
            extends_from: None,
        };
        let job = |engine, phase, files, prepare, workers| JobPlan {
            phase,
            workers,
            files: vec![file(prepare); files],
            ..JobPlan::plain(engine, 4096)
        };
        let jobs = [
            job(EngineKind::Psync, 0, 100, Prepare::UseExisting, 1),
            job(EngineKind::Sync, 1, 10, Prepare::CreateFilled, 3),
            job(EngineKind::Null, 1, 1000, Prepare::Nothing, 1),
            job(EngineKind::Psync, 2, 5000, Prepare::UseExisting, 1),
        ];
        assert_eq!(needed(&jobs, 0), 200 + OTHERS);
        assert_eq!(needed(&jobs, 1), 100 + 10 + 40 + OTHERS);
    }
}
