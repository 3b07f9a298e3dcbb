//! The command `trueio fio`: fio's command line and exit codes.
//!
//! Exit codes: 0 success; 1 if the command line, a job file or a job was refused, or no I/O was issued; the number of jobs
//! that failed, or that have no size, at most 255; if none failed, 1 or 3 by the limits of `--fail-if`; 128 after SIGINT and SIGTERM, with the results until then, but 0
//! after the key `q` of `--live`. fio reports success for a run that was refused because a device is mounted, and for a run without a single I/O; this command does not.
//!
//! Standard output and `--output` hold only the results; standard error is empty unless something went
//! wrong. The lines of `--debug` about I/Os come before the results, as in fio.

mod anywhere;
mod around;
mod bandwidth;
mod dump_file;
mod exec;
mod idle;
mod parsed;
mod pinned;
mod program;
mod ranks;
mod remote;
mod status;
mod trigger;
mod unstarted;

pub use program::{Program, ProgressLine};

use around::Reading;
use bandwidth::BandwidthLog;
use program::Hidden;
use trueio_report::message;

use crate::language::{Action, Eta, FIO_VERSION, FioRequest, OutputFormat, Settings, Trigger, Written};
use crate::logs::{FioLogs, InflateError, inflate_log};
use crate::outputs::Format;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use trueio_job::{CommandFiles, FileUse, Machine, Refusal, Role, Rule, plan};
use trueio_model::{JobPlan, JobSpec, LimitOutcome, Outcome, Plan, RunRecord};
use trueio_report::clean_lines;
use trueio_run::planning::{self, PlanningError};
use trueio_run::{BY_KEY, Reporting, Request, Targets, machine, watch_signals, watch_status_signal};

/// The parts of `--debug` that print a line for each I/O.
const SHOWN: [&str; 4] = ["io", "random", "verify", "file"];

/// fio's exit code after SIGINT and SIGTERM.
const INTERRUPTED: u8 = 128;

/// Runs the command.
pub fn run(arguments: &[String], program: &Program) -> ExitCode {
    match arguments.split_first() {
        Some((word, rest)) if word == remote::LISTEN => return remote::listen(rest),
        Some((word, rest)) if word == remote::SESSION => return remote::session(rest, program),
        _ => {}
    }
    let reading = Reading::default();
    let request = match crate::language::read(arguments, &reading) {
        Ok(request) => request,
        // The other ranks, if there are any, end with this one.
        Err(error) => match (program.join)() {
            Ok(None) => return refused(&error.render()),
            Ok(Some(member)) => return ranks::run(member, Err(error.render()), Vec::new(), program),
            Err(code) => return code,
        },
    };
    let is_remote = matches!(request.action, Action::Serve(_) | Action::Clients(_));
    if is_remote && (program.has_limits)() {
        return refused(
            "`--fail-if` does not work with `--client` and `--server`\n  instead: run the jobs without them on the machine with the disk",
        );
    }
    if is_remote && matches!((program.wants_live)(), Ok(true) | Err(_)) {
        return refused("`--live` does not work with `--client` and `--server`\n  instead: leave it out");
    }
    if is_remote && let Err(code) = (program.refuse_several)() {
        return code;
    }
    let answer = match &request.action {
        Action::Version => Some(format!("{FIO_VERSION}\n")),
        Action::InflateLog(path) => return inflate(path),
        Action::Help { is_short } => Some(crate::language::program_help((program.own_help)().as_ref(), *is_short)),
        Action::CommandHelp(name) => match crate::language::command_help(name.as_deref()) {
            Some(text) => Some(text),
            None => return refused(&format!("`{}` is not an option", name.as_deref().unwrap_or(""))),
        },
        Action::EngineHelp(name) => match crate::language::engine_help(name.as_deref()) {
            Some(text) => Some(text),
            None => {
                let name = name.as_deref().unwrap_or("");
                return refused(&match name.split_once(',') {
                    Some((engine, option)) => format!("the engine `{engine}` is unknown, or has no option `{option}`"),
                    None => format!("the engine `{name}` is unknown"),
                });
            }
        },
        Action::DebugHelp => Some(crate::language::debug_help()),
        Action::CalibrateIdleness => Some(idle::calibrated()),
        Action::ShowCommand => Some(crate::language::show_command(&request.jobs)),
        Action::ParseOnly => match anywhere::refusal(&request) {
            Some(text) => return refused(&text),
            None => Some(what_was_read(&request)),
        },
        Action::Serve(serve) => return remote::serve(serve, &request.settings, program),
        Action::Clients(_) if request.settings.debugs(&SHOWN) => {
            return refused("`--debug` does not work with `--client`\n  instead: run the job without `--client`");
        }
        Action::Clients(_) if request.settings.bandwidth_log.is_some() => {
            return refused(
                "`--bandwidth-log` does not work with `--client`: servers send the bytes of their jobs only at the end\n  \
                 instead: `write_bw_log`, whose logs are sent to the client",
            );
        }
        Action::Clients(_) if request.settings.trigger != Trigger::default() => {
            return refused(
                "a trigger does not work with `--client`: a server runs no command of a client\n  \
                 instead: end the client with SIGINT, which ends its jobs",
            );
        }
        Action::Clients(clients) => return remote::clients(clients, &request, program),
        Action::Run => None,
    };
    print_warnings(&request);
    match answer {
        Some(text) => match (program.print)(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => refused(&text),
        },
        None => match (program.join)() {
            Ok(None) => run_jobs(request, reading.into_files(), program),
            Ok(Some(member)) => {
                let request = match (program.wants_live)() {
                    Ok(false) => Ok(request),
                    _ => Err("`--live` does not work with several ranks\n  instead: leave it out".to_owned()),
                };
                ranks::run(member, request, reading.into_files(), program)
            }
            Err(code) => code,
        },
    }
}

fn print_warnings(request: &FioRequest) {
    for warning in &request.warnings {
        message!("warning: {}", clean_lines(warning));
    }
}

/// Returns the jobs of one of fio's job files, and adds the files that were read to `read`. Prints a note on stderr for
/// each option without effect.
///
/// # Errors
/// Why the file cannot be read, with the lines.
pub fn read_job_file(path: &Path, read: &mut Vec<String>) -> Result<Vec<JobSpec>, String> {
    let name = path.to_string_lossy();
    let reading = Reading::default();
    let text = crate::language::Surroundings::read_file(&reading, &name)
        .map_err(|reason| format!("job file `{name}` cannot be read\n  because: {reason}"))?;
    let mut request = crate::language::read_job_file(&name, &text, &reading).map_err(|error| error.render())?;
    let found = machine::MachineFacts::without_probing();
    let notes =
        crate::language::meet_targets(&mut request.jobs, &found, &request.settings).map_err(|error| error.render())?;
    for note in request.notes.iter().chain(&notes) {
        message!("note: {}", clean_lines(note));
    }
    read.extend(reading.into_files());
    Ok(request.jobs)
}

fn refused(text: &str) -> ExitCode {
    // Names in it may come from a job file, a client or a server.
    let text = clean_lines(text.trim_end());
    if text.starts_with("error") {
        message!("{text}")
    } else {
        message!("error: {text}")
    }
    ExitCode::FAILURE
}

/// Prints the lines of a compressed log.
fn inflate(path: &str) -> ExitCode {
    use std::io::Write;
    let file = match trueio_files::TextFile::open(std::path::Path::new(path), u64::MAX) {
        Ok(file) => file,
        Err(error) => return refused(&format!("`{path}` cannot be read: {error}")),
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = inflate_log(file, &mut out);
    match result.and_then(|()| out.flush().map_err(InflateError::Write)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe (`| head`).
        Err(InflateError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => refused(&format!("`{path}`: {}", trueio_model::error_line(&error))),
    }
}

/// Runs the jobs; `read` holds the paths of their job files.
fn run_jobs(mut request: FioRequest, read: Vec<String>, program: &Program) -> ExitCode {
    let is_live = match (program.wants_live)().and_then(|is_live| may_be_live(is_live, &request.settings)) {
        Ok(is_live) => is_live,
        Err(text) => return refused(&text),
    };
    let settings = &request.settings;
    show_options(&request);
    let commands = match exec::Commands::of(&request) {
        Ok(commands) => commands,
        Err(error) => return refused(&error.render()),
    };
    let mut files: Vec<FileUse> =
        read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    files.extend(request.settings.output.iter().map(|path| FileUse::new(path, "--output", Role::Document)));
    files.extend(commands.files());
    files.extend(settings.trigger.file.iter().map(|path| FileUse::new(path, "--trigger-file", Role::Document)));
    files.extend((program.history)());
    let bandwidth_log = settings.bandwidth_log.clone();
    files.extend(bandwidth_log.iter().flat_map(|prefix| BandwidthLog::files(prefix)));
    let command_files = CommandFiles { files, sends_logs: false, may_replace: true };
    let (result, unstarted) = unstarted::planned_without(&mut request, command_files);
    let (mut plan, targets) = match result {
        Ok(planned) => planned,
        Err(text) => {
            refused(&text);
            let failed = failed_at_files(&request.jobs).max(without_files(&request.jobs));
            return ExitCode::from(failed.max(u8::try_from(unstarted).unwrap_or(u8::MAX)).max(1));
        }
    };
    let commands = if unstarted > 0 { exec::Commands::of(&request).unwrap_or(commands) } else { commands };
    show(&mut plan, &request.settings);
    if let Err(text) = (program.set_limits)(&mut plan) {
        return refused(&text);
    }
    let bandwidth = match bandwidth_log.as_deref().map(BandwidthLog::create).transpose() {
        Ok(bandwidth) => bandwidth,
        Err(text) => return refused(&text),
    };
    let mut results = match status::Results::new(&request.settings, *program) {
        Ok(results) => results,
        Err(text) => return refused(&text),
    };
    let was_read = what_was_read(&request) + &seeds(&request, &plan);
    if !was_read.is_empty()
        && let Err(text) = results.write(&was_read)
    {
        return refused(&text);
    }
    let has_baseline = plan.idle_baseline_ns > 0;
    let (stop, asked) = (watch_signals(), watch_status_signal());
    let shows_any = plan.jobs.iter().any(|job| job.output.shows_any());
    let reporting = Reporting {
        hides_contents: false,
        interim_every: if is_live { Some(program.live_every) } else { results.every() },
        // What it prints would be drawn over.
        interim_asked: (!is_live).then_some(asked),
        bandwidth_every: bandwidth.is_some().then_some(bandwidth::EVERY),
        watches_disks: is_live,
        logs: Some(FioLogs::writer_with_io_lines(if shows_any { results.shown_in().map(Arc::new) } else { None })),
        trace: None,
    };
    let pinned = match pinned::Pinned::of(&request.jobs) {
        Ok(pinned) => pinned,
        Err(text) => return refused(&text),
    };
    let whole = Request {
        kind: "fio".to_owned(),
        command: (program.command_line)(),
        spec: request.jobs.clone(),
        plan,
        targets,
        has_evidence: true,
        reporting,
    };
    let line = match line_of(is_live, request.settings.eta, has_baseline, program) {
        Ok(line) => line,
        Err(text) => return refused(&text),
    };
    let waiting = trigger::Waiting::new(&request.settings.trigger, stop);
    let dump_file = dump_file::DumpFile::new(asked);
    let mut observer = exec::Around::new(line, commands, results, bandwidth, waiting);
    observer = observer.with_dump_file(dump_file).with_live(is_live);
    let record = trueio_run::run(whole, stop, &mut observer);
    drop(pinned);
    let (failed_command, results, fired) = observer.finish();
    let code = deliver(results, &record, failed_command, fired, unstarted);
    match request.settings.trigger.command.filter(|_| fired).map(|command| trigger::run_command(&command)) {
        Some(Err(reason)) => refused(&reason),
        _ => code,
    }
}

/// Returns what shows the progress.
fn line_of(is_live: bool, eta: Eta, has_baseline: bool, program: &Program) -> Result<Box<dyn ProgressLine>, String> {
    Ok(match (is_live, eta) {
        (true, _) => (program.live)()?,
        (false, Eta::Never) => Box::new(Hidden),
        (false, _) => (program.progress_line)(has_baseline),
    })
}

/// Returns `is_live`, or why these settings exclude the view on the whole terminal.
fn may_be_live(is_live: bool, settings: &Settings) -> Result<bool, String> {
    let prints =
        [("--status-interval", settings.status_interval_ns.is_some()), ("--debug", !settings.debug.is_empty())];
    match prints.into_iter().find(|(_, is_given)| is_live && *is_given) {
        Some((name, _)) => Err(format!(
            "`--live` does not work with `{name}`, which prints while the jobs run\n  instead: leave one of them out"
        )),
        None => Ok(is_live),
    }
}

/// Prints the options of the jobs that `--debug` asks for.
fn show_options(request: &FioRequest) {
    let settings = &request.settings;
    let silent = settings.undebugged();
    if !silent.is_empty() {
        message!("note: `--debug={}` prints nothing; the results hold what was done", silent.join(","));
    }
    let is_shown = |index: usize| settings.debug_job.is_none_or(|only| only == index);
    let names_only_a_job = settings.debug.is_empty() && settings.debug_job.is_some();
    if names_only_a_job || settings.debugs(&["job", "process"]) {
        for job in request.jobs.iter().enumerate().filter(|(index, _)| is_shown(*index)).map(|(_, job)| job) {
            message!("parse: job `{}`", job.name);
            for (name, value) in &job.options {
                message!("parse:   {name}={} ({})", value.text, value.origin);
            }
        }
    }
}

/// Sets what `--debug` prints of each job.
fn show(plan: &mut Plan, settings: &Settings) {
    let shows = SHOWN.map(|part| settings.debugs(&[part]));
    for (index, job) in plan.jobs.iter_mut().enumerate() {
        let is_meant = settings.debug_job.is_none_or(|only| only == index);
        let [ios, draws, verify, files] = shows.map(|is_shown| is_shown && is_meant);
        let output = &mut job.output;
        (output.shows_ios, output.shows_draws, output.shows_verify, output.shows_files) = (ios, draws, verify, files);
    }
}

/// Returns the lines of `--debug=parse`; empty without that option.
fn what_was_read(request: &FioRequest) -> String {
    match request.settings.debugs(&["parse"]) {
        true => parsed::lines(request, std::process::id()),
        false => String::new(),
    }
}

/// Returns the lines of `--debug=random` about seeds, of which a job has one; empty without that option.
fn seeds(request: &FioRequest, plan: &Plan) -> String {
    let settings = &request.settings;
    let is_shown = |index: usize| settings.debug_job.is_none_or(|only| only == index);
    let shown = plan.jobs.iter().enumerate().filter(|(index, _)| settings.debugs(&["random"]) && is_shown(*index));
    let process = std::process::id();
    shown.map(|(_, job)| format!("{:<8} {process:<5} rand_seeds[0]={}\n", "random", job.seed)).collect()
}

/// How often jobs are planned again because a file appeared meanwhile.
const ATTEMPTS_MAX: u32 = 3;

/// Plans the jobs, or returns the complete text of the refusal. `command_files` lists the files that are read and written in
/// addition to the jobs' own; `may_run` may refuse the plan, too. The targets are open and claimed.
fn planned(
    request: &mut FioRequest,
    command_files: CommandFiles,
    may_run: impl Fn(&Plan) -> Result<(), PlanningError>,
) -> Result<(Plan, Targets), String> {
    let check = |plan: &Plan| {
        may_run(plan)
            .and_then(|()| planning::refuse_unreachable(plan))
            .and_then(|()| planning::refuse_beyond_limits(plan))
    };
    let machine =
        Machine { programs: programs(request), command_files, ..machine::machine(idle_baseline_ns(&request.jobs)) };
    let read = request.jobs.clone();
    let mut attempts = 0;
    let (mut plan, targets) = loop {
        request.jobs.clone_from(&read);
        let found = machine::MachineFacts::without_probing();
        let notes = crate::language::meet_targets(&mut request.jobs, &found, &request.settings)
            .map_err(|error| error.render())?;
        match planning::planned_and_claimed(&request.jobs, &machine, check) {
            // Another run created the file of a job since the job's files were looked at.
            Err(error) if attempts < ATTEMPTS_MAX && error.is_of_new_file() => attempts += 1,
            Err(error) => return Err(error.into_text_in(&Written(&request.jobs))),
            Ok(planned) => {
                request.notes.extend(notes);
                break planned;
            }
        }
    };
    plan.notes.splice(0..0, request.notes.iter().cloned());
    Ok((plan, targets))
}

/// Returns the number of jobs that fail in fio when they open their files: neither they nor their files have a size, or the files
/// do not support `atomic`. 0 if the first job that is refused is refused for another reason, or any job for its engine, which fio
/// detects before any job starts.
fn failed_at_files(jobs: &[JobSpec]) -> u8 {
    let found = machine::MachineFacts::without_probing();
    let refusals = jobs.iter().filter_map(|job| plan(std::slice::from_ref(job), &found, &Machine::unknown()).err());
    let is_of_files = |refusal: &Refusal| {
        matches!(
            *refusal.rule,
            Rule::SizeMissing { .. } | Rule::PercentOfNothing { .. } | Rule::AtomicImpossible { .. }
        )
    };
    let refusals: Vec<Refusal> = refusals.collect();
    let is_refused_at_once = refusals.iter().any(|refusal| matches!(*refusal.rule, Rule::EngineLacks { .. }));
    match refusals.first() {
        Some(first) if is_of_files(first) && !is_refused_at_once => {
            u8::try_from(refusals.iter().filter(|refusal| is_of_files(refusal)).count()).unwrap_or(u8::MAX)
        }
        _ => 0,
    }
}

/// Returns the number of jobs that fail in fio because `allow_file_create=0` forbids to create one of their files.
fn without_files(jobs: &[JobSpec]) -> u8 {
    let found = machine::MachineFacts::without_probing();
    let lacking = jobs.iter().filter(|job| crate::language::lacks_forbidden_file(job, &found));
    u8::try_from(lacking.count()).unwrap_or(u8::MAX)
}

/// Returns how long the disks are watched idle before each phase, in nanoseconds. Short jobs have no idle baseline,
/// because scripts run hundreds of them; without one, I/O of other programs cannot be separated from ours.
fn idle_baseline_ns(jobs: &[JobSpec]) -> u64 {
    let runtime_s = |job: &JobSpec| job.options.get("runtime")?.text.strip_suffix('s')?.parse::<u64>().ok();
    if jobs.iter().filter_map(runtime_s).max().unwrap_or(0) >= 5 { machine::IDLE_BASELINE_NS } else { 0 }
}

/// `fired`: a trigger ended the run. `unstarted`: as many jobs failed before it.
fn deliver(
    results: status::Results,
    record: &RunRecord,
    failed_command: Option<String>,
    fired: bool,
    unstarted: usize,
) -> ExitCode {
    if let Err(text) = results.end(record) {
        return refused(&text);
    }
    if let Some(message) = failed_command {
        return refused(&message);
    }
    show_verify_errors(record);
    match ended(record) {
        (INTERRUPTED, None) if fired => ExitCode::SUCCESS,
        (INTERRUPTED, None) => ExitCode::from(INTERRUPTED),
        (code, reason) => {
            if let Some(reason) = reason {
                refused(reason);
            }
            let code = u8::try_from(unstarted).unwrap_or(u8::MAX).saturating_add(code);
            let judged = judge_limits(record);
            ExitCode::from(if code == 0 { judged } else { code })
        }
    }
}

/// Prints the limits that are not met on stderr, and returns the exit status that they give the run.
fn judge_limits(record: &RunRecord) -> u8 {
    if record.plan.limits.is_none() {
        return 0;
    }
    let answer = trueio_report::answer(record, &[]);
    for limit in answer.limits.iter().filter(|limit| limit.outcome != LimitOutcome::Met) {
        message!("{}", clean_lines(&trueio_report::limit_line(limit)));
    }
    answer.worst_limit().map_or(0, LimitOutcome::exit_status)
}

/// Prints fio's lines about blocks that differ, which scripts look for.
fn show_verify_errors(record: &RunRecord) {
    crate::outputs::verify_errors(record).lines().for_each(|line| message!("{}", clean_lines(line)));
}

/// Returns the exit code of a run, and why it failed.
fn ended(record: &RunRecord) -> (u8, Option<&str>) {
    match &record.outcome {
        // The key q of the live view is an orderly end.
        Outcome::Interrupted { signal } if signal == BY_KEY => (0, None),
        Outcome::Interrupted { .. } => (INTERRUPTED, None),
        // As in fio, the number of failed jobs.
        Outcome::Failed { reason } => {
            (u8::try_from(crate::outputs::failed_jobs(record)).unwrap_or(u8::MAX).max(1), Some(reason))
        }
        Outcome::Complete if issued(record) == 0 && record.plan.jobs.iter().any(should_issue) => {
            (1, Some("the jobs did not issue a single I/O"))
        }
        Outcome::Complete => (0, None),
    }
}

fn format_of(format: OutputFormat) -> Format {
    match format {
        OutputFormat::Normal => Format::Normal,
        OutputFormat::Terse => Format::Terse,
        OutputFormat::Json => Format::Json,
        OutputFormat::JsonPlus => Format::JsonPlus,
        OutputFormat::JsonLines => Format::JsonLines,
    }
}

/// Returns the programs that the jobs name, if the command line allows starting them (`--allow-exec`).
fn programs(request: &FioRequest) -> Vec<String> {
    let words = request.jobs.iter().filter(|_| request.settings.allows_exec);
    let words = words.filter_map(|job| job.options.get("program")?.text.split_whitespace().next());
    words.map(str::to_owned).collect()
}

/// Returns true if a job is expected to issue I/O.
fn should_issue(job: &JobPlan) -> bool {
    job.engine.does_io() && !job.handling.creates_only
}

/// Returns the number of I/Os of all jobs in the measured time.
fn issued(record: &RunRecord) -> u64 {
    record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops).map(|op| op.io_count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Goal: two runs may create one file at the same time.
    /// Method: the check between the two plans of a run creates the file, as another run would. The second plan finds a file that the
    /// job did not name, because it was missing when the job's files were looked at.
    #[test]
    fn a_file_that_appears_while_a_job_is_planned_is_used() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("shared");
        let words = ["--name=a".to_owned(), "--rw=write".to_owned(), "--size=8k".to_owned()];
        let words = words.into_iter().chain([format!("--filename={}", path.display())]).collect::<Vec<_>>();
        let mut request = crate::language::read(&words, &Reading::default()).expect("a job");
        let checks = Cell::new(0);
        let appear = |_: &Plan| {
            if checks.replace(checks.get() + 1) == 0 {
                std::fs::write(&path, [0; 8192]).expect("a file");
            }
            Ok(())
        };
        let (plan, _) = planned(&mut request, CommandFiles::default(), appear).expect("a plan");
        assert_eq!(plan.jobs[0].files[0].prepare, trueio_model::Prepare::UseExisting);
        assert_eq!(checks.get(), 2);
    }
}
