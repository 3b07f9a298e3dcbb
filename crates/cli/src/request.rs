//! The request of a command that runs jobs: its plan with open targets, the checks that are accepted, and its logs.

use crate::failure::Failure;
use crate::{flags, limits};
use clap::ArgMatches;
use trueio_fio::logs::FioLogs;
use trueio_model::{JobSpec, Plan};
use trueio_run::{Reporting, Request, Targets};

/// A plan and its open targets.
pub(crate) type Claimed = (Plan, Targets);

/// Sets the checks whose findings are accepted, how long a phase waits for idle disks, and the limits. `rank` is that of a run of several:
/// rank 0 judges.
///
/// # Errors
/// A limit cannot be read, or the plan cannot decide it.
pub(crate) fn accepting(
    (mut plan, targets): Claimed,
    kind: &str,
    rank: Option<u32>,
    matches: &ArgMatches,
) -> Result<Claimed, Failure> {
    if rank.is_none_or(|rank| rank == 0) {
        limits::set(&mut plan, kind, matches)?;
    }
    let accepted = matches.get_many::<String>("accept").into_iter().flatten();
    let idle_wait_ns = matches.get_one::<u64>("wait-idle").copied();
    Ok((Plan { accepted_checks: accepted.cloned().collect(), idle_wait_ns, ..plan }, targets))
}

/// The request of a command that runs jobs. `watches_disks`: the other users of the disks are shown while it runs.
pub(crate) fn request(
    kind: &str,
    spec: Vec<JobSpec>,
    (plan, targets): Claimed,
    has_evidence: bool,
    watches_disks: bool,
) -> Request {
    let reporting = Reporting { logs: Some(FioLogs::writer()), watches_disks, ..Reporting::default() };
    let (kind, command) = (kind.to_owned(), flags::as_typed());
    Request { kind, command, spec, plan, targets, has_evidence, reporting }
}
