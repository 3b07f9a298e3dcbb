//! `trueio fio` on several ranks that a launcher started: each runs the jobs, and rank 0 prints the results.
//!
//! A job's figures are the sums of all ranks. Generated files begin with the rank (`rank3.job.0.0`), because ranks usually share a
//! directory. What fio's results have no place for (the common window, the ranks' own rates, checks across ranks) is printed to stderr.
//! Options that print or run something meanwhile are refused: each rank would do it.

use super::pinned::Pinned;
use super::program::Program;
use super::{ended, idle_baseline_ns, judge_limits, programs, refused, show_verify_errors, status};
use crate::language::{Eta, FioRequest, Trigger, Written};
use crate::logs::FioLogs;
use std::process::ExitCode;
use trueio_cluster::{Member, Refused, for_rank, guarded, ready};
use trueio_job::options::target::rows::FILENAME;
use trueio_job::{CommandFiles, FileUse, Machine, Role};
use trueio_model::{CheckOutcome, JobSpec, Origin, Plan, RunRecord};
use trueio_report::{clean_lines, message};
use trueio_run::planning;
use trueio_run::{Observer, Reporting, Request, Targets, contained, machine, watch_signals, watch_status_signal};

/// What one rank prepared.
struct Planned {
    spec: Vec<JobSpec>,
    plan: Plan,
    targets: Targets,
    /// The memory that `lockmem` keeps from the system, until the end.
    pinned: Option<Pinned>,
    /// Rank 0's.
    results: Option<status::Results>,
}

/// Runs the jobs on all ranks; `read` holds the paths of their job files. `request` is an error if this rank could not read them.
pub(super) fn run(
    member: Member,
    request: Result<FioRequest, String>,
    read: Vec<String>,
    program: &Program,
) -> ExitCode {
    let work = |member: &mut Member, known: &mut Option<RunRecord>| (whole(member, known, request, read, program), ());
    let rescue = |known: Option<RunRecord>, reason: &str| {
        let text = known.map(|record| contained(|| format!("{}\n", trueio_report::json(&record))));
        let what = match text.map(|text| text.and_then(|text| (program.print)(&text))) {
            None => "the run ended before there was a record",
            Some(Ok(())) => "the results were not delivered; the record is on stdout",
            Some(Err(_)) => "the results were not delivered; the record could not be written either",
        };
        refused(&format!("{what}\n  because: {reason}"));
    };
    ExitCode::from(guarded(member, work, rescue).0)
}

/// Does this rank's work; `known` is rank 0's record as soon as there is one. Returns the exit code of all ranks.
fn whole(
    member: &mut Member,
    known: &mut Option<RunRecord>,
    request: Result<FioRequest, String>,
    read: Vec<String>,
    program: &Program,
) -> u8 {
    let jobs = request.as_ref().map_err(String::clone).and_then(jobs_of);
    let plan = |member: &Member, specs: Vec<JobSpec>| {
        let planned = planned(member, request.as_ref().map_err(String::clone)?, specs, read, program)?;
        let phases = planned.plan.jobs.iter().map(|job| job.phase as usize + 1).max().unwrap_or(0);
        Ok((planned, phases))
    };
    let (planned, shared) = match ready(member, "fio", jobs, plan) {
        Ok(ready) => ready,
        Err(Refused { code, text }) => {
            // Printed first: a launcher may kill this process as soon as another one has ended with a code.
            if let Some(text) = text {
                refused(&text);
            }
            return code;
        }
    };
    let Planned { spec, plan, targets, pinned, results } = planned;
    // Interim results are of one process; without this the signal would end the rank.
    watch_status_signal();
    let has_line = member.is_first() && request.is_ok_and(|request| request.settings.eta != Eta::Never);
    let mut line = match has_line {
        true => (program.progress_line)(plan.idle_baseline_ns > 0),
        false => Box::new(super::program::Hidden),
    };
    let reporting = Reporting { logs: Some(FioLogs::writer()), ..Reporting::default() };
    let request = Request {
        kind: "fio".to_owned(),
        command: (program.command_line)(),
        spec,
        plan,
        targets,
        has_evidence: true,
        reporting,
    };
    let observer: &mut dyn Observer = &mut *line;
    let record = trueio_cluster::run(request, member, watch_signals(), observer, &mut |_| ());
    line.clear();
    drop((shared, pinned));
    *known = record;
    let (Some(record), Some(results)) = (known, results) else { return 1 };
    match results.end(record) {
        Ok(()) => {
            show_verify_errors(record);
            let (code, reason) = ended(record);
            if let Some(reason) = reason {
                refused(reason);
            }
            show_ranks(record);
            let judged = judge_limits(record);
            if code == 0 { judged } else { code }
        }
        Err(text) => {
            refused(&text);
            1
        }
    }
}

/// Returns the jobs with names that differ between ranks, or why they do not run on several.
fn jobs_of(request: &FioRequest) -> Result<Vec<JobSpec>, String> {
    let settings = &request.settings;
    let has_command = request.jobs.iter().filter_map(|job| job.fio.as_ref()).any(|fio| {
        ["exec_prerun", "exec_postrun"].iter().any(|name| fio.word(name).is_some_and(|word| !word.text.is_empty()))
    });
    let of_one = [
        ("--status-interval", settings.status_interval_ns.is_some()),
        ("--bandwidth-log", settings.bandwidth_log.is_some()),
        ("--trigger", settings.trigger != Trigger::default()),
        ("--debug", !settings.debug.is_empty()),
        ("--idle-prof", settings.idle_prof.is_some()),
        ("exec_prerun and exec_postrun", has_command),
    ];
    if let Some((name, _)) = of_one.into_iter().find(|(_, is_set)| *is_set) {
        return Err(format!(
            "`{name}` is for a run of one process, and a launcher started several\n  instead: leave it out, or run the job without the \
             launcher"
        ));
    }
    let mut jobs = request.jobs.clone();
    for job in &mut jobs {
        let generated = job.options.get(FILENAME.name).filter(|value| matches!(value.origin, Origin::Preset { .. }));
        if let Some((names, origin)) = generated.map(|value| (of_rank(&value.text), value.origin.clone())) {
            job.set(FILENAME.name, names, origin);
        }
    }
    Ok(jobs)
}

/// Puts the rank before the name of each file of a list.
fn of_rank(names: &str) -> String {
    let one = |path: &str| match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/rank$rank.{name}"),
        None => format!("rank$rank.{path}"),
    };
    let mut paths = Vec::new();
    let mut begin = 0;
    // A colon that does not separate has a backslash before it.
    for (at, _) in names.match_indices(':').filter(|(at, _)| !names[..*at].ends_with('\\')) {
        paths.push(one(&names[begin..at]));
        begin = at + 1;
    }
    paths.push(one(&names[begin..]));
    paths.join(":")
}

/// Plans this rank's part, or returns the complete text of the refusal.
fn planned(
    member: &Member,
    request: &FioRequest,
    mut spec: Vec<JobSpec>,
    read: Vec<String>,
    program: &Program,
) -> Result<Planned, String> {
    for_rank(&mut spec, &member.place());
    let found = machine::MachineFacts::without_probing();
    let notes = crate::language::meet_targets(&mut spec, &found, &request.settings).map_err(|error| error.render())?;
    let mut files: Vec<FileUse> =
        read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    if member.is_first() {
        files.extend(request.settings.output.iter().map(|path| FileUse::new(path, "--output", Role::Document)));
        files.extend((program.history)());
    }
    let command_files = CommandFiles { files, sends_logs: false, may_replace: true };
    let check = |plan: &Plan| planning::refuse_unreachable(plan).and_then(|()| planning::refuse_beyond_limits(plan));
    let rank = Some(member.rank());
    let idle_ns = idle_baseline_ns(&spec);
    let machine = Machine { programs: programs(request), command_files, rank, ..machine::machine(idle_ns) };
    let (mut plan, targets) =
        planning::planned_and_claimed(&spec, &machine, check).map_err(|e| e.into_text_in(&Written(&spec)))?;
    plan.notes.splice(0..0, request.notes.iter().cloned().chain(notes));
    if member.is_first() {
        (program.set_limits)(&mut plan)?;
    }
    let results = match member.is_first() {
        true => Some(status::Results::new(&request.settings, *program)?),
        false => None,
    };
    let pinned = Pinned::of(&spec)?;
    Ok(Planned { spec, plan, targets, pinned, results })
}

/// Prints the figures across ranks, and the checks across ranks that object.
fn show_ranks(record: &RunRecord) {
    message!("{}", clean_lines(&trueio_report::ranks_text(record)));
    let checks = record.phases.iter().flat_map(|phase| &phase.checks);
    let objects = |outcome| matches!(outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted);
    for check in checks.filter(|check| trueio_cluster::CHECKS.contains(&check.name.as_str()) && objects(check.outcome))
    {
        message!("warning: {}: {}", check.name, clean_lines(&check.sentence));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_stands_before_the_name_of_each_file() {
        assert_eq!(of_rank("job.0.0"), "rank$rank.job.0.0");
        assert_eq!(of_rank("a/job.0.0:/b/c\\:d.0.1:e"), "a/rank$rank.job.0.0:/b/rank$rank.c\\:d.0.1:rank$rank.e");
    }
}
