//! Limits of a run: `--fail-if`, `[limits]` of a job file, and `--against`, the record to which relative ones refer.
//!
//! They are read before anything is touched, checked against the plan, and kept in it, so the record has them. The answer of the
//! record judges them; [`exit_status`] is the one place where their outcome and that of the run become a status.

use crate::failure::Failure;
use crate::kept;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::Path;
use trueio_model::{JobPlan, Limit, LimitFigure, LimitOutcome, LimitSet, Outcome, Plan, RunRecord};
use trueio_report::{limit_line, mark, message, reference_of, shape_of};
use trueio_store::{Filter, Source};

/// The option for a limit, of every command that measures.
pub(crate) fn fail_if() -> Arg {
    Arg::new("fail-if")
        .long("fail-if")
        .value_name("LIMIT")
        .help("Exit with 1 if this holds, 3 if it is undecided: 'p99 > 10ms', 'IOPS < 50000', 'NAME: write p99 > 1ms', 'IOPS < 95%'")
        .help_heading("Limits")
        .allow_hyphen_values(true)
        .action(ArgAction::Append)
}

/// Adds the options for limits of a run.
pub(crate) fn options(command: Command) -> Command {
    command.arg(fail_if()).arg(
        Arg::new("against")
            .long("against")
            .value_name("RECORD")
            .help("What relative limits refer to: an ID of the history, the JSON file of a record, or `newest`")
            .help_heading("Limits")
            .requires("fail-if"),
    )
}

/// Reads the limits of `--fail-if`.
///
/// # Errors
/// The first that cannot be read.
pub(crate) fn read<'a>(texts: impl Iterator<Item = &'a String>) -> Result<Vec<Limit>, Failure> {
    let read = |text: &String| {
        Limit::parse(text).map_err(|e| {
            Failure::refused(format!(
                "--fail-if {e}\n\nhint: `p99 > 10ms`: a figure, `>` or `<`, and a value; the figures are {}",
                LimitFigure::names()
            ))
        })
    };
    texts.map(read).collect()
}

/// Adds the limits of the command line to those of a plan's job files, and the record to which they refer.
///
/// # Errors
/// A limit cannot be read or decided by the plan, or the record is not found.
pub(crate) fn set(plan: &mut Plan, kind: &str, matches: &ArgMatches) -> Result<(), Failure> {
    let texts = matches.try_get_many::<String>("fail-if").ok().flatten().into_iter().flatten();
    let against = matches.try_get_one::<String>("against").ok().flatten();
    set_words(plan, kind, read(texts)?, against.map(String::as_str))
}

/// The same, of limits that were read.
///
/// # Errors
/// As [`set`].
pub(crate) fn set_words(plan: &mut Plan, kind: &str, limits: Vec<Limit>, against: Option<&str>) -> Result<(), Failure> {
    let mut set = plan.limits.take().unwrap_or_default();
    set.conditions.extend(limits.into_iter().map(|limit| limit.text));
    let limits = read(set.conditions.iter())?;
    if let Some(name) = against {
        let record = match name {
            "newest" if !Path::new(name).exists() => newest(plan, kind, &limits)?,
            name => kept::find(name)?,
        };
        set.reference = Some(reference_of(&record));
    }
    trueio_report::check_limits(&limits, plan, set.reference.as_ref())
        .map_err(|e| Failure::refused(format!("limit {e}")))?;
    plan.limits = (!set.conditions.is_empty()).then_some(set);
    Ok(())
}

/// Puts the limits of job files into a plan.
pub(crate) fn of_files(plan: &mut Plan, limits: &[Limit]) {
    if !limits.is_empty() {
        let conditions = limits.iter().map(|limit| limit.text.clone()).collect();
        plan.limits = Some(Box::new(LimitSet { conditions, reference: None }));
    }
}

/// Records of the history that are searched for one that does the same.
const NEWEST_MAX: usize = 200;

/// Returns the newest record of the same command with the loads that relative limits concern, on the same device; without an identity of
/// the device, at the same path of this machine.
fn newest(plan: &Plan, kind: &str, limits: &[Limit]) -> Result<RunRecord, Failure> {
    let store = kept::store()?;
    let filter = Filter { kind: Some(kind.to_owned()), limit: Some(NEWEST_MAX), ..Filter::default() };
    let concerned: Vec<&JobPlan> = plan
        .jobs
        .iter()
        .filter(|job| limits.iter().any(|limit| limit.load.as_ref().is_none_or(|name| *name == job.name)))
        .collect();
    let here = kept::place_of(plan);
    for entry in store.list(&filter).map_err(|e| kept::unreadable(&e))? {
        if entry.source != Source::Trueio || entry.outcome != "complete" {
            continue;
        }
        let Some(record) = store.get(&entry.id).ok().and_then(|stored| trueio_report::parse(&stored.json).ok()) else {
            continue;
        };
        let has =
            |job: &&JobPlan| record.plan.jobs.iter().any(|of| of.name == job.name && shape_of(of) == shape_of(job));
        if concerned.iter().all(has) && here.as_ref().is_none_or(|here| here.is_of(&record)) {
            return Ok(record);
        }
    }
    Err(Failure::refused(format!(
        "`--against newest`: the history has no complete `trueio {kind}` with these loads on this device\n\nhint: run it once without \
         `--against`, or name a record: `--against ID` (`trueio history` lists them)"
    )))
}

/// Returns the exit status of a run that measured, and whose outputs were written.
///
/// The first of these that is true: 1, it failed or was interrupted by a signal; 1, a limit is missed; 3, a limit is undecided; 1, a figure is
/// withheld; 0. An undecided limit comes before a figure that is withheld, because it is the reason why it is undecided.
pub(crate) fn exit_status(record: &RunRecord, limits: Option<LimitOutcome>) -> u8 {
    let is_withheld = record.phases.iter().any(|phase| !mark(phase).is_shown());
    let has_failed = match &record.outcome {
        Outcome::Complete => false,
        // The user ended it in the live view, as planned.
        Outcome::Interrupted { signal } => signal != trueio_run::BY_KEY,
        Outcome::Failed { .. } => true,
    };
    match limits {
        _ if has_failed => 1,
        Some(outcome @ (LimitOutcome::Missed | LimitOutcome::Undecided)) => outcome.exit_status(),
        // A command that measures must return a figure, and there is none.
        _ if is_withheld => 1,
        _ => 0,
    }
}

/// Returns the worst outcome of a record's limits, and prints those that are not met on stderr if the text on stdout has no place for
/// them.
pub(crate) fn judged(record: &RunRecord, is_printed: bool) -> Option<LimitOutcome> {
    record.plan.limits.as_ref()?;
    let answer = trueio_report::answer(record, &[]);
    if !is_printed {
        for limit in answer.limits.iter().filter(|limit| limit.outcome != LimitOutcome::Met) {
            message!("{}", trueio_report::clean_lines(&limit_line(limit)));
        }
    }
    answer.worst_limit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Verdict;

    #[test]
    fn the_first_reason_of_the_table_gives_the_exit_status() {
        let path = format!("{}/../store/tests/records/v1.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a record");
        let clean = trueio_report::parse(&text).expect("a record");
        let mut contradicted = clean.clone();
        contradicted.phases[0].verdict = Verdict::Contradicted;
        let mut interrupted = clean.clone();
        interrupted.outcome = Outcome::Interrupted { signal: "SIGINT".to_owned() };
        let [met, undecided, missed] = [LimitOutcome::Met, LimitOutcome::Undecided, LimitOutcome::Missed].map(Some);
        let cases = [
            (&clean, [(None, 0), (met, 0), (undecided, 3), (missed, 1)]),
            (&contradicted, [(None, 1), (met, 1), (undecided, 3), (missed, 1)]),
            (&interrupted, [(None, 1), (met, 1), (undecided, 1), (missed, 1)]),
        ];
        for (record, expected) in cases {
            for (limits, code) in expected {
                assert_eq!(exit_status(record, limits), code, "{:?} {limits:?}", record.outcome);
            }
        }
    }
}
