//! Commands that a launcher started as several ranks: all plan and measure, and rank 0 prints and stores the one record.

use crate::failure::Failure;
use crate::live::{INTERIM, Live};
use crate::output::{self, Outputs, Printer};
use crate::progress::{Line, Lines};
use crate::request::{Claimed, request};
use clap::ArgMatches;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use trueio_cluster::launcher::TOKEN_VARIABLE;
use trueio_cluster::star::StarError;
use trueio_cluster::{EXIT_UNREACHABLE, Limit, Member, Refused, guarded, launcher, ready};
use trueio_job::{CommandFiles, FileUse, Role};
use trueio_model::{JobSpec, LimitOutcome, Plan, RunRecord, error_chain};
use trueio_report::message;
use trueio_run::watch_signals;

/// Variable with the longest wait for another rank, in seconds.
const LIMIT_VARIABLE: &str = "TRUEIO_RANK_TIMEOUT";
/// The same without it.
const LIMIT_S: u64 = 60;

/// Returns this process's place among the ranks that a launcher started; `None`: it is alone.
///
/// # Errors
/// It was launched as one of several, and cannot reach the others.
pub(crate) fn join() -> Result<Option<Member>, Failure> {
    let variable = |name: &str| launcher::environment(name);
    if launcher::has_more_rights() && !launcher::announced(&|name: &str| std::env::var(name).ok()).signs.is_empty() {
        message!(
            "note: the launcher's variables are ignored, because this program has more rights than its caller (set-ID, \
             capabilities): each process measures alone"
        );
    }
    let launched_within = limit(variable(LIMIT_VARIABLE))?;
    let unreachable = |text: String| Failure::with_code(EXIT_UNREACHABLE, text);
    let launched = trueio_cluster::connect(&variable, launched_within).map_err(|e| unreachable(e.to_string()))?;
    let notify = |sentence: &str| message!("note: {sentence}");
    Member::join(launched, launched_within, &notify).map_err(|error| {
        let text = error_chain("the ranks of this run could not be connected", Some(&error));
        if let StarError::NoToken { .. } = error {
            // Refused before anything was tried.
            return Failure::refused(format!(
                "{text}\n\nhint: set {TOKEN_VARIABLE} to the same secret for each process, for example that of `openssl rand -hex 32`; a \
                 launcher with PMIx or PMI passes one by itself"
            ));
        }
        if let StarError::OtherToken(..) | StarError::OtherProtocol(..) = error {
            return Failure::refused(text);
        }
        unreachable(format!("{text}\n\nhint: {LIMIT_VARIABLE} is the longest wait for a rank, in seconds"))
    })
}

/// Refuses a command that does not know ranks, if a launcher started several processes: each would measure alone.
///
/// # Errors
/// This process is one of several.
pub(crate) fn refuse_several(command: &str) -> Result<(), Failure> {
    let found = launcher::announced(&|name: &str| launcher::environment(name));
    if found.signs.is_empty() && found.variables.is_none() {
        return Ok(());
    }
    let signs = if found.signs.is_empty() { "WORLD_SIZE".to_owned() } else { found.signs.join(" ") };
    Err(Failure::with_code(
        EXIT_UNREACHABLE,
        format!(
            "`trueio {command}` does not run on several ranks, and a launcher started several processes ({signs}): each would \
             measure alone\n\nhint: `trueio run`, `baseline`, `compare` of jobs, `fio`, `ior` and `mdtest` run on several ranks; \
             `TRUEIO_LAUNCHER=alone` lets each process measure by itself"
        ),
    ))
}

fn limit(text: Option<String>) -> Result<Limit, Failure> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Limit::new(Duration::from_secs(LIMIT_S))) };
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Limit::new(Duration::from_secs(seconds))),
        _ => Err(Failure::refused(format!("{LIMIT_VARIABLE} is `{text}`, and must be 1 to 86400 seconds"))),
    }
}

/// How ranks plan a command.
pub(crate) struct Planned {
    /// The jobs of this rank.
    pub(crate) spec: Vec<JobSpec>,
    /// Their plan, and its open targets.
    pub(crate) planned: Claimed,
    /// The outputs; empty on other ranks than 0.
    pub(crate) outputs: Outputs,
    /// Whether evidence is collected.
    pub(crate) has_evidence: bool,
    /// How the run is followed.
    pub(crate) follow: Follow,
}

/// How a run of several ranks is followed.
pub(crate) enum Follow {
    /// On rank 0's terminal, line by line; nothing is sent while ranks measure.
    Lines,
    /// Rank 0's whole terminal (`--live`).
    Live(Live),
    /// Another rank of a run with `--live`: it sends its results so far.
    Sends,
}

impl Follow {
    /// Takes over rank 0's terminal with `--live`.
    ///
    /// # Errors
    /// Rank 0 has none.
    pub(crate) fn of(member: &Member, matches: &ArgMatches) -> Result<Self, Failure> {
        let is_live = matches.try_get_one::<bool>("live").ok().flatten() == Some(&true);
        let hint = "\n\nhint: a launcher connects pipes; `srun --pty` gives rank 0 a terminal";
        Ok(match (is_live, member.is_first()) {
            (false, _) => Follow::Lines,
            (true, true) => Follow::Live(Live::start().map_err(|why| Failure::refused(format!("{why}{hint}")))?),
            (true, false) => Follow::Sends,
        })
    }
}

/// Runs a command on all ranks. `jobs` are what the ranks must have in common; `plan` plans this rank's.
///
/// # Errors
/// This rank's, or on rank 0 that of any rank.
pub(crate) fn run<J>(
    member: Member,
    kind: &str,
    jobs: Result<(Vec<JobSpec>, J), Failure>,
    plan: impl FnOnce(&Member, Vec<JobSpec>, J) -> Result<Planned, Failure>,
    matches: &ArgMatches,
    printer: Option<Printer<'_>>,
) -> Result<ExitCode, Failure> {
    let began = SystemTime::now();
    let work = |member: &mut Member, known: &mut Option<RunRecord>| {
        whole(member, known, (kind, jobs), plan, (matches, began), printer)
    };
    let rescue = |known: Option<RunRecord>, reason: &str| Err(output::rescue(known, reason, matches));
    ended(guarded(member, work, rescue))
}

/// Returns the result of this rank; one that has none ends with the code of all ranks.
pub(crate) fn ended((code, result): (u8, Result<Option<ExitCode>, Failure>)) -> Result<ExitCode, Failure> {
    result.map(|own| own.unwrap_or(ExitCode::from(code)))
}

/// Does this rank's work; `known` is its record as soon as there is one. Returns the exit code of all ranks, and this one's result if it has
/// one of its own.
fn whole<J>(
    member: &mut Member,
    known: &mut Option<RunRecord>,
    (kind, jobs): (&str, Result<(Vec<JobSpec>, J), Failure>),
    plan: impl FnOnce(&Member, Vec<JobSpec>, J) -> Result<Planned, Failure>,
    (matches, began): (&ArgMatches, SystemTime),
    printer: Option<Printer<'_>>,
) -> (u8, Result<Option<ExitCode>, Failure>) {
    let (specs, rest) = match jobs {
        Ok((specs, rest)) => (Ok(specs), Some(rest)),
        Err(failure) => (Err(failure.into_text()), None),
    };
    let plan = |member: &Member, specs: Vec<JobSpec>| {
        let rest = rest.expect("a rank whose jobs were refused does not plan");
        let planned = plan(member, specs, rest).map_err(Failure::into_text)?;
        let phases = phase_count(&planned.planned.0);
        Ok((planned, phases))
    };
    let (planned, shared) = match ready(member, kind, specs, plan) {
        Ok(ready) => ready,
        Err(refused) => {
            if member.orphaned().is_some() {
                output::remove_reserved(matches, began);
            }
            return stop(refused);
        }
    };
    let Planned { spec, planned, outputs, has_evidence, follow } = planned;
    let has_lines = !output::is_json_to_stdout(matches);
    *known = measure(member, kind, spec, planned, has_evidence, (follow, has_lines));
    drop(shared);
    let Some(record) = known else {
        if let Some(reason) = member.orphaned() {
            message!("error: rank {} of {} ends: {reason}, and its results are lost", member.rank(), member.size());
            output::remove_reserved(matches, began);
        }
        return (1, Ok(None));
    };
    let delivered = output::deliver_as(record, outputs, matches, true, printer);
    // The other ranks end as rank 0 does.
    let code = [0, LimitOutcome::Undecided.exit_status()]
        .into_iter()
        .find(|code| delivered.as_ref().is_ok_and(|delivered| *delivered == ExitCode::from(*code)));
    let code = code.unwrap_or(1);
    (code, delivered.map(Some))
}

/// Returns the number of phases of a plan.
pub(crate) fn phase_count(plan: &Plan) -> usize {
    plan.jobs.iter().map(|job| job.phase as usize + 1).max().unwrap_or(0)
}

/// Prints a refusal on rank 0, and returns how all ranks end.
pub(crate) fn stop(Refused { code, text }: Refused) -> (u8, Result<Option<ExitCode>, Failure>) {
    // Printed first: a launcher may kill this process as soon as another one has ended with a code.
    if let Some(text) = text {
        Failure::with_code(code, text).show();
    }
    (code, Ok(None))
}

/// Runs this rank's part; rank 0 returns the record.
fn measure(
    member: &mut Member,
    kind: &str,
    spec: Vec<JobSpec>,
    (mut plan, targets): Claimed,
    has_evidence: bool,
    (follow, has_lines): (Follow, bool),
) -> Option<RunRecord> {
    let stop = watch_signals();
    let is_followed = !matches!(follow, Follow::Lines);
    if is_followed {
        plan.notes
            .push("--live: while it measured, each rank sent its results so far to rank 0, twice a second".to_owned());
    }
    let mut lines = Lines::new(&plan, has_evidence, !has_lines || is_followed || !member.is_first());
    let watches_disks = lines.is_shown() || matches!(follow, Follow::Live(_));
    let mut request = request(kind, spec, (plan, targets), has_evidence, watches_disks);
    request.reporting.interim_every = is_followed.then_some(INTERIM);
    let record = match follow {
        // Dropped before anything is printed, so that the terminal is as it was.
        Follow::Live(mut live) => {
            let mut of_ranks = live.of_ranks();
            trueio_cluster::run(request, member, stop, &mut live, &mut of_ranks)
        }
        Follow::Sends => trueio_cluster::run(request, member, stop, &mut Line::hidden(), &mut |_| ()),
        Follow::Lines => trueio_cluster::run(request, member, stop, &mut lines, &mut |_| ()),
    };
    lines.clear();
    record
}

/// Returns the files that a command reads and writes in addition to its jobs. Only rank 0, or a process that is alone,
/// writes.
pub(crate) fn command_files(rank: Option<u32>, matches: &ArgMatches, reads: &[String]) -> CommandFiles {
    if rank.is_none_or(|rank| rank == 0) {
        return output::command_files(matches, reads);
    }
    let files = reads.iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    CommandFiles { files, sends_logs: false, may_replace: output::may_replace(matches) }
}

/// Reserves the outputs on rank 0; the others write none.
pub(crate) fn outputs<'a>(
    member: &Member,
    matches: &ArgMatches,
    reads: impl Iterator<Item = &'a Path>,
) -> Result<Outputs, Failure> {
    if member.is_first() { Outputs::reserve(matches, reads) } else { Ok(Outputs::default()) }
}
