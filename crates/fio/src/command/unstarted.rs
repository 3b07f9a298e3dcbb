//! Jobs that cannot begin because of their own size or offset. fio reports each of them, and runs the others.
//!
//! Limit: such a job is in no output; fio prints an entry without I/Os.

use super::{planned, refused};
use crate::language::{FioRequest, Written, meet_targets};
use trueio_job::options::target::rows::{FILE_APPEND, REGION_NUMBER};
use trueio_job::{CommandFiles, Machine, Refusal, Rule, explain_refusal_in, plan};
use trueio_model::{JobSpec, Plan};
use trueio_run::Targets;
use trueio_run::machine::MachineFacts;

/// Most jobs that are left out; with more, the run is refused.
const JOBS_MAX: usize = 64;

/// A job that is left out.
struct Unstarted {
    /// The text of its refusal.
    text: String,
    /// True if it counts as failed; a further clone whose region begins beyond the end of its device is a success in fio.
    is_failure: bool,
}

/// Plans the jobs, without those that cannot begin: these are printed to stderr and removed from the request. Returns the plan, or
/// the text of the refusal, and how many jobs failed.
pub(super) fn planned_without(
    request: &mut FioRequest,
    command_files: CommandFiles,
) -> (Result<(Plan, Targets), String>, usize) {
    let mut others = request.clone();
    let result = planned(request, command_files.clone(), |_| Ok(()));
    if result.is_ok() {
        return (result, 0);
    }
    let unstarted = take(&mut others);
    if unstarted.is_empty() {
        return (result, 0);
    }
    for job in &unstarted {
        refused(&job.text);
    }
    *request = others;
    (planned(request, command_files, |_| Ok(())), unstarted.iter().filter(|job| job.is_failure).count())
}

/// Removes the jobs of a refused request that are refused for their own size or offset. Empty, and nothing is removed, if no job would be
/// left, or another reason refuses the others, too.
fn take(request: &mut FioRequest) -> Vec<Unstarted> {
    let found = MachineFacts::without_probing();
    let mut jobs = request.jobs.clone();
    if meet_targets(&mut jobs, &found, &request.settings).is_err() {
        return Vec::new();
    }
    let mut taken: Vec<(String, Unstarted)> = Vec::new();
    while let Err(refusal) = plan(&jobs, &found, &Machine::unknown()) {
        let at = jobs.iter().position(|job| refusal.job.as_ref() == Some(&job.name));
        let Some(at) = at.filter(|at| taken.len() < JOBS_MAX && is_its_own(&refusal, &jobs[*at])) else {
            return Vec::new();
        };
        let job = jobs.remove(at);
        let is_clone = matches!(*refusal.rule, Rule::SizeBeyondTarget { .. }) && REGION_NUMBER.value_in(&job) > 0;
        taken.push((
            job.name,
            Unstarted { text: explain_refusal_in(&refusal, &Written(&request.jobs)), is_failure: !is_clone },
        ));
    }
    if jobs.is_empty() {
        return Vec::new();
    }
    request.jobs.retain(|job| taken.iter().all(|(name, _)| *name != job.name));
    taken.into_iter().map(|(_, unstarted)| unstarted).collect()
}

/// Returns true if the refusal is about the size or offset of the job alone.
fn is_its_own(refusal: &Refusal, job: &JobSpec) -> bool {
    match *refusal.rule {
        Rule::SizeMissing { .. } | Rule::PercentOfNothing { .. } => true,
        Rule::SizeBeyondTarget { offset_bytes, target_bytes, .. } => {
            offset_bytes >= target_bytes && !FILE_APPEND.value_in(job)
        }
        _ => false,
    }
}
