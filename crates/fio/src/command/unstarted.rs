//! Jobs that cannot begin because of their own size or offset, or because their files are missing and may not be created. fio reports each of
//! them, and runs the others.
//!
//! Limit: such a job is in no output; fio prints an entry without I/Os.

use super::{planned, refused};
use crate::language::{FioRequest, Refused, Settings, Written, meet_targets};
use trueio_job::options::target::rows::{FILE_APPEND, FILESIZE, NRFILES, SIZE};
use trueio_job::value::Extent;
use trueio_job::{CommandFiles, Machine, Refusal, Rule, explain_refusal_in, plan};
use trueio_model::{JobSpec, Plan};
use trueio_run::Targets;
use trueio_run::machine::MachineFacts;

/// Most jobs that are left out; with more, the run is refused.
const JOBS_MAX: usize = 64;

/// Jobs that are left out for one reason.
struct Unstarted {
    /// The text of their refusal.
    text: String,
    /// How many of them count as failed.
    failures: usize,
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
    let failed = unstarted.iter().map(|jobs| jobs.failures).sum();
    let Some((last, before)) = unstarted.split_last() else { return (result, 0) };
    for jobs in before {
        refused(&jobs.text);
    }
    if others.jobs.is_empty() {
        return (Err(last.text.clone()), failed);
    }
    refused(&last.text);
    *request = others;
    (planned(request, command_files, |_| Ok(())), failed)
}

/// Removes the jobs of a refused request that are refused for their own size, offset or missing files. Empty, and nothing is removed, if
/// another reason refuses the others, too, or missing files refuse all.
fn take(request: &mut FioRequest) -> Vec<Unstarted> {
    let found = MachineFacts::without_probing();
    let mut jobs = request.jobs.clone();
    let mut taken = without_missing(&mut jobs, &found, &request.settings);
    if jobs.is_empty() || meet_targets(&mut jobs, &found, &request.settings).is_err() {
        return Vec::new();
    }
    while !jobs.is_empty()
        && let Err(refusal) = plan(&jobs, &found, &Machine::unknown())
    {
        let at = jobs.iter().position(|job| refusal.job.as_ref() == Some(&job.name));
        let Some(at) = at.filter(|at| is_its_own(&refusal, &jobs[*at])) else {
            return Vec::new();
        };
        let job = jobs.remove(at);
        let is_failure = match *refusal.rule {
            Rule::SizeBeyondTarget { offset_bytes, target_bytes, .. } => fails_beyond(&job, offset_bytes, target_bytes),
            // Of what is less than a block, too, fio expects I/Os only without a size.
            Rule::BlockBeyondSize { .. } => !has_size(&job) || FILESIZE.value_in(&job).is_some(),
            _ => true,
        };
        let text = explain_refusal_in(&refusal, &Written(&request.jobs));
        taken.push(Unstarted { text, failures: usize::from(is_failure) });
    }
    if request.jobs.len() - jobs.len() > JOBS_MAX {
        return Vec::new();
    }
    request.jobs.retain(|job| jobs.iter().any(|other| other.name == job.name));
    taken
}

/// Removes the jobs whose files are missing and may not be created. Returns their refusal, which is one for all of them.
fn without_missing(jobs: &mut Vec<JobSpec>, found: &MachineFacts, settings: &Settings) -> Vec<Unstarted> {
    let is_missing = |job: &mut JobSpec| {
        let error = meet_targets(&mut [job.clone()], found, settings).err();
        error.is_some_and(|error| error.problems.iter().all(|problem| problem.kind == Refused::FileMissing))
    };
    let mut missing: Vec<JobSpec> = jobs.extract_if(.., is_missing).collect();
    let refusal = meet_targets(&mut missing, found, settings).err();
    refusal.map(|error| Unstarted { text: error.render(), failures: missing.len() }).into_iter().collect()
}

/// Returns true if the refusal is about the size or offset of the job alone.
fn is_its_own(refusal: &Refusal, job: &JobSpec) -> bool {
    match *refusal.rule {
        Rule::SizeMissing { .. } | Rule::PercentOfNothing { .. } => true,
        Rule::SizeBeyondTarget { offset_bytes, target_bytes, .. } => {
            let is_beyond_filesize = FILESIZE.value_in(job).is_some_and(|(least, _)| offset_bytes >= least);
            (offset_bytes >= target_bytes || is_beyond_filesize) && !FILE_APPEND.value_in(job)
        }
        // What is left of the target is too short, not what the job sets.
        Rule::BlockBeyondSize { block_bytes, .. } => {
            let size_bytes = SIZE.value_in(job).and_then(Extent::bytes).unwrap_or(u64::MAX);
            size_bytes / NRFILES.value_in(job).max(1) >= block_bytes
        }
        _ => false,
    }
}

/// Returns true if the job has a size in bytes.
fn has_size(job: &JobSpec) -> bool {
    SIZE.value_in(job).is_some_and(|size| size.bytes().is_some())
}

/// Returns true if fio counts a job as failed whose region begins at `offset_bytes`, where its file or `filesize` ends or later.
///
/// Without a size there is nothing to transfer. A job with a size does not find a single I/O, and succeeds, unless its offset is beyond the
/// `filesize` that its file does not have. Source: fio 3.42, `setup_files`, and its exit codes on a loop device.
fn fails_beyond(job: &JobSpec, offset_bytes: u64, target_bytes: u64) -> bool {
    let has_size = has_size(job);
    match FILESIZE.value_in(job) {
        Some((least, most)) if (least..=most).contains(&target_bytes) => offset_bytes == target_bytes && !has_size,
        Some((least, _)) => offset_bytes > least || !has_size,
        None => !has_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::around::Reading;

    /// Goal: a job beyond the end is a failure where fio reports one.
    /// Method: the rows are exit codes of fio's HEAD for a loop device of 64 MiB.
    #[test]
    fn a_job_beyond_the_end_fails_where_it_fails_in_fio() {
        const MIB: u64 = 1 << 20;
        for (words, offset_mib, fails) in [
            ("", 64, true),
            ("", 65, true),
            ("--size=1M", 64, false),
            ("--size=1M", 65, false),
            ("--size=50%", 65, true),
            ("--filesize=64M", 64, true),
            ("--filesize=64M", 65, false),
            ("--filesize=64M --size=1M", 64, false),
            ("--filesize=64M --size=1M", 65, false),
            ("--filesize=1M", 1, true),
            ("--filesize=1M", 65, true),
            ("--filesize=1M --size=1M", 1, false),
            ("--filesize=1M --size=1M", 2, true),
        ] {
            let line = format!("--name=a --rw=read {words}");
            let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let request = crate::language::read(&line, &Reading::default()).expect("a job");
            assert_eq!(fails_beyond(&request.jobs[0], offset_mib * MIB, 64 * MIB), fails, "{words} at {offset_mib}");
        }
    }
}
