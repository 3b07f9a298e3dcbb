//! `trueio fio`, and the program called under the name `fio`: fio's command line, its exit codes.
//!
//! Exit codes: 0 done; 1 the command line, a job file or a job was refused, an I/O failed, or nothing was
//! done at all; 128 after SIGINT and SIGTERM, with the results until then. fio reports success for a
//! run that was refused because a device is mounted, and for one without a single I/O; this does not.
//!
//! Standard output and `--output` carry the results and nothing else; standard error is empty unless
//! something went wrong. What `--debug` asks for stands beside that: I/Os before the results, where fio has them.

mod around;
mod bandwidth;
mod exec;
mod idle;
mod parsed;
mod remote;
mod status;

use around::Reading;
use bandwidth::BandwidthLog;

use crate::failure::Failure;
use crate::machine;
use crate::{output, planning, progress};
use std::path::Path;
use std::process::ExitCode;
use trueio_fio::language::{Action, Eta, FIO_VERSION, FioError, FioRequest, OutputFormat};
use trueio_fio::outputs::Format;
use trueio_job::{Beside, FileUse, Machine, Role};
use trueio_model::{JobPlan, JobSpec, Outcome, Plan, RunRecord};
use trueio_run::{Request, watch_signals};

pub(crate) const ABOUT: &str = "fio's own command line and job files";

/// What `--debug` prints of each I/O.
const SHOWN: [&str; 4] = ["io", "random", "verify", "file"];

/// fio's exit code after SIGINT and SIGTERM.
const INTERRUPTED: u8 = 128;

/// fio's arguments, if the program was called for them: `trueio fio …`, or under the name `fio`.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if Path::new(&called).file_name().is_some_and(|name| name == "fio") {
        return Some(words);
    }
    match words.split_first() {
        Some((command, rest)) if command == "fio" => Some(rest.to_vec()),
        _ => None,
    }
}

/// The whole command.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    match arguments.split_first() {
        Some((word, rest)) if word == remote::LISTEN => return remote::listen(rest),
        Some((word, rest)) if word == remote::SESSION => return remote::session(rest),
        _ => {}
    }
    let reading = Reading::default();
    let request = match trueio_fio::language::read(arguments, &reading) {
        Ok(request) => request,
        Err(error) => return refused(&error.render()),
    };
    let answer = match &request.action {
        Action::Version => Some(format!("{FIO_VERSION}\n")),
        Action::InflateLog(path) => return inflate(path),
        Action::Help => Some(trueio_fio::language::program_help()),
        Action::CommandHelp(name) => match trueio_fio::language::command_help(name.as_deref()) {
            Some(text) => Some(text),
            None => return refused(&format!("`{}` is not an option", name.as_deref().unwrap_or(""))),
        },
        Action::EngineHelp(name) => match trueio_fio::language::engine_help(name.as_deref()) {
            Some(text) => Some(text),
            None => {
                let name = name.as_deref().unwrap_or("");
                return refused(&match name.split_once(',') {
                    Some((engine, option)) => format!("the engine `{engine}` is not here, or has no option `{option}`"),
                    None => format!("the engine `{name}` is not here"),
                });
            }
        },
        Action::DebugHelp => Some(trueio_fio::language::debug_help()),
        Action::CalibrateIdleness => Some(idle::calibrated()),
        Action::ShowCommand => Some(trueio_fio::language::show_command(&request.jobs)),
        Action::ParseOnly => Some(what_was_read(&request)),
        Action::Serve(serve) => return remote::serve(serve, &request.settings),
        Action::Clients(_) if request.settings.debugs(&SHOWN) => {
            return refused("`--debug` cannot print what a server does\n  instead: run the job without `--client`");
        }
        Action::Clients(_) if request.settings.has_bandwidth_log => {
            return refused(
                "`--bandwidth-log` cannot be written of jobs at a server, which tells what they moved at their end\n  \
                 instead: `write_bw_log`, whose logs come here",
            );
        }
        Action::Clients(clients) => return remote::clients(clients, &request),
        Action::Run => None,
    };
    match answer {
        Some(text) => match output::print_all(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                failure.show();
                ExitCode::FAILURE
            }
        },
        None => run_jobs(request, reading.into_files()),
    }
}

/// The jobs of one of fio's job files, for the commands that take job files; the files that were read are added to
/// `read`. What has no effect is told on stderr.
pub(crate) fn read_job_file(path: &Path, read: &mut Vec<String>) -> Result<Vec<JobSpec>, Failure> {
    let name = path.to_string_lossy();
    let reading = Reading::default();
    let text = trueio_fio::language::Surroundings::read_file(&reading, &name)
        .map_err(|reason| Failure::refused(format!("job file `{name}` cannot be read\n  because: {reason}")))?;
    let mut request = trueio_fio::language::read_job_file(&name, &text, &reading)
        .map_err(|error| Failure::refused(error.render()))?;
    trueio_fio::language::meet_targets(&mut request.jobs, &machine::Live::touching_nothing(), &request.settings)
        .map_err(|error| Failure::refused(error.render()))?;
    for note in &request.notes {
        eprintln!("note: {note}");
    }
    read.extend(reading.into_files());
    Ok(request.jobs)
}

fn refused(text: &str) -> ExitCode {
    let text = text.trim_end();
    if text.starts_with("error") {
        eprintln!("{text}")
    } else {
        eprintln!("error: {text}")
    }
    ExitCode::FAILURE
}

/// Prints the lines of a compressed log.
fn inflate(path: &str) -> ExitCode {
    use std::io::Write;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) => return refused(&format!("`{path}` cannot be read: {error}")),
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = trueio_run::inflate_log(file, &mut out);
    match result.and_then(|()| out.flush().map_err(trueio_run::InflateError::Write)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the lines has seen enough (`| head`).
        Err(trueio_run::InflateError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => refused(&format!("`{path}`: {}", trueio_model::error_line(&error))),
    }
}

/// Runs the jobs; `read` are the files in which they stood.
fn run_jobs(mut request: FioRequest, read: Vec<String>) -> ExitCode {
    let settings = &request.settings;
    let silent = settings.undebugged();
    if !silent.is_empty() {
        eprintln!("note: `--debug={}` prints nothing: the result says what was done", silent.join(","));
    }
    let is_shown = |index: usize| settings.debug_job.is_none_or(|only| only == index);
    let names_only_a_job = settings.debug.is_empty() && settings.debug_job.is_some();
    if names_only_a_job || settings.debugs(&["job", "process"]) {
        for job in request.jobs.iter().enumerate().filter(|(index, _)| is_shown(*index)).map(|(_, job)| job) {
            eprintln!("parse: job `{}`", job.name);
            for (name, value) in &job.options {
                eprintln!("parse:   {name}={} ({})", value.text, value.origin);
            }
        }
    }
    let commands = match exec::Commands::of(&request) {
        Ok(commands) => commands,
        Err(error) => return refused(&error.render()),
    };
    let mut files: Vec<FileUse> =
        read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    files.extend(request.settings.output.iter().map(|path| FileUse::new(path, "--output", Role::Document)));
    files.extend(commands.files());
    let shows = SHOWN.map(|part| settings.debugs(&[part]));
    let only = settings.debug_job;
    let logs_bandwidth = settings.has_bandwidth_log;
    if logs_bandwidth {
        files.extend(BandwidthLog::files());
    }
    let mut plan = match planned(&mut request, Beside { files, sends_logs: false }, |_| Ok(())) {
        Ok(plan) => plan,
        Err(text) => return refused(&text),
    };
    for (index, job) in plan.jobs.iter_mut().enumerate() {
        let [ios, draws, verify, files] = shows.map(|is_shown| is_shown && only.is_none_or(|only| only == index));
        let output = &mut job.output;
        (output.shows_ios, output.shows_draws, output.shows_verify, output.shows_files) = (ios, draws, verify, files);
    }
    let bandwidth = match logs_bandwidth.then(BandwidthLog::create).transpose() {
        Ok(bandwidth) => bandwidth,
        Err(failure) => return refused(&failure.into_text()),
    };
    let mut results = status::Results::new(&request.settings);
    let was_read = what_was_read(&request);
    if !was_read.is_empty()
        && let Err(failure) = results.write(&was_read)
    {
        return refused(&failure.into_text());
    }
    let has_baseline = plan.idle_baseline_ns > 0;
    let has_line = request.settings.eta != Eta::Never;
    let stop = watch_signals();
    let whole = Request {
        kind: "fio".to_owned(),
        command: crate::flags::as_typed(),
        spec: request.jobs.clone(),
        plan,
        has_evidence: true,
    };
    let line = if has_line { progress::Line::new() } else { progress::Line::hidden() };
    let mut observer = exec::Around::new(line.without_idle(!has_baseline), commands, results, bandwidth);
    let record = trueio_run::run(whole, stop, &mut observer);
    let (failed_command, results) = observer.finish();
    deliver(results, &record, failed_command)
}

/// What `--debug=parse` prints; empty if it is not asked for.
fn what_was_read(request: &FioRequest) -> String {
    match request.settings.debugs(&["parse"]) {
        true => parsed::lines(&request.jobs, request.settings.debug_job, std::process::id()),
        false => String::new(),
    }
}

/// The plan of what was read, or the whole text of why there is none; `beside` is what is read and written beside the
/// jobs, `may_run` may refuse the plan, too. Touches nothing.
fn planned(
    request: &mut FioRequest,
    beside: Beside,
    may_run: impl Fn(&Plan) -> Result<(), Failure>,
) -> Result<Plan, String> {
    let found = machine::Live::touching_nothing();
    trueio_fio::language::meet_targets(&mut request.jobs, &found, &request.settings).map_err(|error| error.render())?;
    let check = |plan: &Plan| may_run(plan).and_then(|()| planning::refuse_unreachable(plan));
    let machine = Machine { programs: programs(request), beside, ..machine::machine(idle_baseline_ns(&request.jobs)) };
    let mut plan = planning::planned(&request.jobs, &machine, check).map_err(Failure::into_text)?;
    plan.notes.splice(0..0, request.notes.iter().cloned());
    Ok(plan)
}

/// How long the disks are watched idle before each phase, in nanoseconds: where it does not show. Scripts
/// run short jobs by the hundred, and without it others' I/O cannot be told from ours.
fn idle_baseline_ns(jobs: &[JobSpec]) -> u64 {
    let runtime_s = |job: &JobSpec| job.options.get("runtime")?.text.strip_suffix('s')?.parse::<u64>().ok();
    if jobs.iter().filter_map(runtime_s).max().unwrap_or(0) >= 5 { machine::IDLE_BASELINE_NS } else { 0 }
}

fn deliver(results: status::Results, record: &RunRecord, failed_command: Option<FioError>) -> ExitCode {
    if let Err(failure) = results.end(record) {
        failure.show();
        return ExitCode::FAILURE;
    }
    if let Some(error) = failed_command {
        return refused(&error.render());
    }
    match ended(record) {
        (code, None) => ExitCode::from(code),
        (_, Some(reason)) => refused(reason),
    }
}

/// The exit code of a run, and what is wrong with it.
fn ended(record: &RunRecord) -> (u8, Option<&str>) {
    match &record.outcome {
        Outcome::Interrupted { .. } => (INTERRUPTED, None),
        Outcome::Failed { reason } => (1, Some(reason)),
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

/// The programs that the jobs name, if the command line allows to start them.
fn programs(request: &FioRequest) -> Vec<String> {
    let words = request.jobs.iter().filter(|_| request.settings.allows_exec);
    let words = words.filter_map(|job| job.options.get("program")?.text.split_whitespace().next());
    words.map(str::to_owned).collect()
}

/// True if a job is there to do I/O.
fn should_issue(job: &JobPlan) -> bool {
    job.engine.does_io() && !job.handling.creates_only
}

/// I/Os of all jobs in the measured time.
fn issued(record: &RunRecord) -> u64 {
    record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops).map(|op| op.io_count).sum()
}
