//! `trueio run` and `trueio explain`: job files and flags.

use crate::failure::Failure;
use crate::live::Live;
use crate::output::{Outputs, Printer};
use crate::progress::{Events, Lines};
use crate::request::{Claimed, accepting, request};
use crate::{flags, limits, live, output, ranks, traced};
use clap::{ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trueio_fio::language::Written;
use trueio_job::{CommandFiles, FileUse, JobFile, Machine, Role, apply_flags, parse_job_file, spec_from_flags};
use trueio_model::{JobSpec, Limit};
use trueio_run::machine::{IDLE_BASELINE_NS, machine};
use trueio_run::planning::{PlanningError, may_run, planned, planned_and_claimed};
use trueio_run::watch_signals;

/// One-line description of `trueio run`.
pub(crate) const ABOUT: &str = "Run job files, or a job given by flags";

/// One-line description of `trueio explain`.
pub(crate) const ABOUT_EXPLAIN: &str = "Print the plan of jobs, each value with its origin, without running them";

/// For how long a baseline measures disturbed loads once more if most of them were disturbed.
const SECOND_LOOK: Duration = Duration::from_secs(20);

/// Adds the arguments of `trueio run`.
pub(crate) fn arguments(command: Command) -> Command {
    let command = flags::run_outputs(command).arg(flags::output_file(
        "trace",
        "Write every I/O into a Parquet file, one row an I/O; `trueio report` draws it",
    ));
    flags::job_options(command).after_help(flags::JOB_FILE_HELP)
}

/// The command line of `trueio explain`.
pub(crate) fn explain_arguments(command: Command) -> Command {
    flags::job_options(command)
        .arg(flags::json("Print the plan as JSON instead of text, or write it to FILE"))
        .arg(flags::switch("all", "Print every option, those with their defaults, too").help_heading("Output"))
        .after_help(flags::JOB_FILE_HELP)
}

/// `trueio run`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let events = Events::of(matches)?;
    let has_evidence = !matches.get_flag("no-evidence");
    let member = ranks::join()?;
    let read = specs(matches);
    let idle_ns = if has_evidence { IDLE_BASELINE_NS } else { 0 };
    let Some(member) = member else {
        let Specs { jobs: mut spec, limits: of_files, read } = read?;
        trueio_cluster::for_rank(&mut spec, &trueio_cluster::Place::alone(trueio_cluster::host_name()));
        output::check(matches, read.iter().map(Path::new))?;
        let machine = Machine { command_files: output::command_files(matches, &read), ..machine(idle_ns) };
        let mut planned = planned_and_claimed(&spec, &machine, may_run).map_err(|e| refused_as_written(e, &spec))?;
        limits::of_files(&mut planned.0, &of_files);
        let outputs = Outputs::reserve(matches, read.iter().map(Path::new))?;
        return execute("run", spec, planned, events, outputs, matches, None);
    };
    let read = read.and_then(|read| refuse_of_one_rank(matches).map(|()| (read.jobs, (read.limits, read.read))));
    let plan = |member: &trueio_cluster::Member,
                mut spec: Vec<JobSpec>,
                (of_files, read): (Vec<Limit>, Vec<String>)| {
        trueio_cluster::for_rank(&mut spec, &member.place());
        let rank = Some(member.rank());
        let command_files = ranks::command_files(rank, matches, &read);
        let machine = Machine { command_files, rank, ..machine(idle_ns) };
        let mut claimed = planned_and_claimed(&spec, &machine, may_run).map_err(|e| refused_as_written(e, &spec))?;
        limits::of_files(&mut claimed.0, &of_files);
        let planned = accepting(claimed, "run", rank, matches)?;
        let outputs = ranks::outputs(member, matches, read.iter().map(Path::new))?;
        let follow = ranks::Follow::of(member, matches)?;
        Ok(ranks::Planned { spec, planned, outputs, has_evidence, follow })
    };
    ranks::run(member, "run", read, plan, matches, None)
}

/// Returns a refusal with options as the jobs were written: as flags, in a job file, or in fio's language.
fn refused_as_written(error: PlanningError, specs: &[JobSpec]) -> Failure {
    Failure::refused(error.into_text_in(&Written(specs)))
}

/// Refuses options that several ranks do not have.
pub(crate) fn refuse_of_one_rank(matches: &ArgMatches) -> Result<(), Failure> {
    let given = |name: &str| {
        matches.try_contains_id(name).is_ok()
            && matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
    };
    match ["trace", "progress-fd"].into_iter().find(|name| given(name)) {
        Some(name) => Err(Failure::refused(format!(
            "`--{name}` is for a run of one process, and a launcher started several\n\nhint: leave `--{name}` out, or run the \
             job without the launcher"
        ))),
        None => Ok(()),
    }
}

/// `trueio explain`.
pub(crate) fn explain(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let Specs { jobs: spec, limits: of_files, read } = specs(matches)?;
    let reads = read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    let command_files = CommandFiles { files: reads, sends_logs: false, may_replace: output::may_replace(matches) };
    let machine = Machine { command_files, ..machine(IDLE_BASELINE_NS) };
    let mut plan = planned(&spec, &machine, |_| Ok(())).map_err(|e| refused_as_written(e, &spec))?;
    limits::of_files(&mut plan, &of_files);
    let json = || serde_json::to_string_pretty(&plan).expect("the keys of a plan are text") + "\n";
    if !output::print_json(matches, json)? {
        output::print_all(&trueio_job::explain(&plan, matches.get_flag("all")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a plan on its open targets, and delivers the record.
pub(crate) fn execute(
    kind: &str,
    spec: Vec<JobSpec>,
    planned: Claimed,
    events: Option<Events>,
    mut outputs: Outputs,
    matches: &ArgMatches,
    printer: Option<Printer<'_>>,
) -> Result<ExitCode, Failure> {
    let has_evidence = !matches.get_flag("no-evidence");
    let planned = accepting(planned, kind, None, matches)?;
    let trace = outputs.take("trace").map(|reserved| traced::start(reserved, &planned.0)).transpose()?;
    let (trace, channel) = trace.unzip();
    let is_live = matches.try_get_one::<bool>("live").ok().flatten() == Some(&true);
    let mut lines =
        Lines::new(&planned.0, has_evidence, is_live || output::is_json_to_stdout(matches)).with_events(events);
    let mut request = request(kind, spec, planned, has_evidence, is_live || lines.is_shown());
    request.reporting.trace = channel;
    let second_look = if kind == "baseline" { SECOND_LOOK } else { Duration::ZERO };
    let mut record = if is_live {
        request.reporting.interim_every = Some(live::INTERIM);
        // Dropped before anything is printed, so that the terminal is as it was.
        let mut live = Live::start().map_err(Failure::refused)?.naming(&request.plan);
        trueio_run::run_looking_again(request, second_look, watch_signals(), &mut live)
    } else {
        trueio_run::run_looking_again(request, second_look, watch_signals(), &mut lines)
    };
    lines.clear();
    if !matches.get_flag("no-history") {
        record.power_loss = crate::kept::power_loss(&record.targets);
    }
    let traced = trace.map_or(Ok(()), traced::Trace::finish);
    let code = output::deliver_as(&record, outputs, matches, true, printer)?;
    traced.map(|()| code)
}

/// The jobs of files and flags.
struct Specs {
    jobs: Vec<JobSpec>,
    /// The limits of the files.
    limits: Vec<Limit>,
    /// The files that were read.
    read: Vec<String>,
}

/// Returns the jobs of files and flags.
fn specs(matches: &ArgMatches) -> Result<Specs, Failure> {
    let flags = flags::job_flags(matches);
    let files: Vec<&PathBuf> = matches.get_many("files").into_iter().flatten().collect();
    if files.is_empty() {
        if flags.is_empty() {
            return Err(Failure::refused(
                "there is nothing to run\n\nhint: name a job file (`trueio run JOB.toml`) or give options (`trueio run --rw randread --size 1g`)",
            ));
        }
        let name = matches.get_one::<String>("name").map_or("job", String::as_str);
        let spec = spec_from_flags(name, flags).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
        return Ok(Specs { jobs: vec![spec], limits: Vec::new(), read: Vec::new() });
    }
    let mut all = Specs { jobs: Vec::new(), limits: Vec::new(), read: Vec::new() };
    for path in files {
        let file = read_job_file(path, &mut all.read)?;
        all.jobs.extend(file.jobs);
        all.limits.extend(file.limits);
    }
    apply_flags(&mut all.jobs, flags).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
    Ok(all)
}

/// The longest job file, in bytes.
const JOB_FILE_BYTES_MAX: u64 = 16 << 20;

/// Returns the jobs and limits of a file: TOML, or fio's language if the name ends as those files' names do. Adds the
/// files that were read, including included ones, to `read`.
pub(crate) fn read_job_file(path: &Path, read: &mut Vec<String>) -> Result<JobFile, Failure> {
    if path.extension().is_some_and(|ending| ["fio", "job", "ini"].iter().any(|known| ending == *known)) {
        let jobs = trueio_fio::command::read_job_file(path, read).map_err(Failure::refused)?;
        return Ok(JobFile { jobs, limits: Vec::new() });
    }
    read.push(path.to_string_lossy().into_owned());
    let text = trueio_files::read_text(path, JOB_FILE_BYTES_MAX)
        .map_err(|e| Failure::refused(format!("job file `{}` cannot be read\n  because: {e}", path.display())))?;
    parse_job_file(&path.to_string_lossy(), &text).map_err(|e| Failure::refused(e.render()))
}
