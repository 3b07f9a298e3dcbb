//! From the request of each rank to a plan on all of them.

use crate::member::{Member, Refused};
use crate::shared::SharedFiles;
use trueio_job::Opt;
use trueio_job::options::output::rows::{WRITE_BW_LOG, WRITE_HIST_LOG, WRITE_IOLOG, WRITE_IOPS_LOG, WRITE_LAT_LOG};
use trueio_job::options::target::rows::RANKS;
use trueio_model::JobSpec;
use trueio_run::contained;

/// Agrees on a command and its jobs, makes the files that ranks share, and plans this rank's part.
///
/// `jobs` are what the ranks must have in common, or why this rank has none. `plan` gets them with the regions of shared files, and
/// returns the plan with its number of phases. The shared files are removed when they are dropped.
///
/// # Errors
/// The ranks refused, whichever of them had the reason.
pub fn ready<P>(
    member: &mut Member,
    kind: &str,
    jobs: Result<Vec<JobSpec>, String>,
    plan: impl FnOnce(&Member, Vec<JobSpec>) -> Result<(P, usize), String>,
) -> Result<(P, SharedFiles), Refused> {
    member.agree(kind, jobs.as_deref().map_err(String::clone))?;
    let mut specs = jobs.unwrap_or_default();
    if let Some(text) = common_log(&specs).filter(|_| member.size() > 1) {
        member.planned(Err(text))?;
    }
    let shared = shared_files(member, &mut specs)?;
    let planned = shared.find().and_then(|()| contained(|| plan(member, specs))?);
    let phase_count = match &planned {
        Ok((_, phase_count)) => Ok(*phase_count),
        Err(text) => Err(text.clone()),
    };
    if let Err(refused) = member.planned(phase_count) {
        // What the plan holds (a terminal, open targets) is given back before the refusal is printed.
        drop(planned);
        return Err(refused);
    }
    match planned {
        Ok((planned, _)) => Ok((planned, shared)),
        Err(text) => unreachable!("the ranks accepted a plan that this rank refused: {text}"),
    }
}

/// Returns the refusal of a job whose log all ranks would write under one name; `None`: there is none.
fn common_log(specs: &[JobSpec]) -> Option<String> {
    let logs = [WRITE_BW_LOG, WRITE_IOPS_LOG, WRITE_LAT_LOG, WRITE_HIST_LOG, WRITE_IOLOG];
    let is_common = |text: &str| !text.contains("$rank") && !text.contains("${rank8}");
    // A job that one rank runs has a number there.
    let is_of_one =
        |spec: &&JobSpec| spec.options.get(RANKS.name).is_some_and(|ranks| ranks.text.parse::<u32>().is_ok());
    specs.iter().filter(|spec| !is_of_one(spec)).find_map(|spec| {
        let common = |log: &Opt<Option<String>>| spec.options.get(log.name).is_some_and(|value| is_common(&value.text));
        let log = logs.iter().find(|log| common(log))?;
        Some(format!(
            "job `{}` was not planned\n  because: each rank would write the log of `{}` under the same name\n\nhint: put `$rank` \
             into it: `{} = {}-$rank`",
            spec.name, log.name, log.name, spec.options[log.name].text
        ))
    })
}

/// Makes the files that ranks share; every rank returns when all have created theirs.
fn shared_files(member: &mut Member, specs: &mut [JobSpec]) -> Result<SharedFiles, Refused> {
    let mut shared = SharedFiles::of(specs, &member.place());
    if shared.as_ref().is_ok_and(SharedFiles::is_empty) {
        return Ok(SharedFiles::default());
    }
    let made = match &mut shared {
        Ok(shared) => shared.create(),
        Err(text) => Err(text.clone()),
    };
    member.planned(made.map(|()| 0))?;
    Ok(shared.unwrap_or_default())
}
