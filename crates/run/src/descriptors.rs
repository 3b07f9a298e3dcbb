//! Descriptors for all files of each phase, which stay open while it runs.
//!
//! The soft limit of this process is raised as far as it must be; beyond the hard limit only the privileged may go, and
//! everybody else is told before a file is made.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trueio_model::{EngineKind, JobPlan, Prepare};

/// Descriptors for everything else: logs, counters, rings, the three standard ones.
const OTHERS: u64 = 256;

/// Makes sure that the files of each phase can be open at once, before the first of them is made.
///
/// # Errors
/// A sentence that says how many descriptors are needed, and how many there may be.
pub(crate) fn provide(jobs: &[JobPlan]) -> Result<(), String> {
    let phases = jobs.iter().map(|job| job.phase as usize);
    let needed = phases.max().map_or(0, |last| (0..=last).map(|index| needed(jobs, index)).max().unwrap_or(0));
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let within = Rlimit { current: Some(needed), maximum: limit.maximum };
    let beyond = Rlimit { current: Some(needed), maximum: Some(needed) };
    let is_within = limit.maximum.is_none_or(|maximum| maximum >= needed);
    if is_within && setrlimit(Resource::Nofile, within).is_ok() {
        return Ok(());
    }
    if !is_within && setrlimit(Resource::Nofile, beyond).is_ok() {
        return Ok(());
    }
    let maximum = limit.maximum.map_or_else(|| "unlimited".to_owned(), |maximum| maximum.to_string());
    Err(format!(
        "the jobs need {needed} open files at once, and the limit is {maximum} (RLIMIT_NOFILE): all files of a job stay \
         open, whatever `openfiles` says; use fewer files, or raise the limit (`ulimit -Hn {needed}`, LimitNOFILE= of a \
         service)"
    ))
}

/// How many descriptors a phase needs at most: of files without a name one more, since the phase before, and of
/// engines that keep a position one for each worker.
fn needed(jobs: &[JobPlan], index: usize) -> u64 {
    let of = |job: &JobPlan| job.files.iter().filter(|file| file.prepare != Prepare::Nothing).count() as u64;
    let kept: u64 = jobs.iter().filter(|job| job.phase as usize <= index).map(of).sum();
    let opened = jobs.iter().filter(|job| job.phase as usize == index).map(|job| {
        let has_positions = matches!(job.engine, EngineKind::Sync | EngineKind::Vsync);
        of(job) * if has_positions { 1 + u64::from(job.workers) } else { 1 }
    });
    kept + opened.sum::<u64>() + OTHERS
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
