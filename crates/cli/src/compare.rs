//! `trueio compare`: sides interleaved live, or records of earlier runs, and gates for a CI service.
//!
//! Exit codes: 0 done, and no gate failed; 1 the comparison failed or was interrupted, or a gate's regression
//! is shown; 2 the request was refused; 3 a gate is undecided.

mod ranks;

use crate::failure::Failure;
use crate::live::Live;
use crate::output::{Outputs, made};
use crate::progress::Events;
use crate::run::read_job_file;
use crate::{baseline, flags, kept, limits, output, progress};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_compare::{
    Head, Interleaved, Named, SessionBench, Settings, Standing, StoredRun, check_gate, compare_runs, from_records,
    from_rounds, interleave, least_time_ns, metric_names, metric_of, precondition,
};
use trueio_fio::logs::FioLogs;
use trueio_job::{Machine, apply_flags, spec_from_flags};
use trueio_model::{
    Comparison, GateResult, GateVerdict, JobPlan, JobSpec, Limit, LimitSet, LimitValue, Metric, Origin, Outcome, Plan,
    SpecValue, SyscallTrace, error_chain, format_utc, side_letter, units,
};
use trueio_report::message;
use trueio_run::machine;
use trueio_run::planning::{may_run, planned_and_claimed};
use trueio_run::{Reporting, Request, Session, Targets, watch_signals};

/// Length of the idle baseline before each slice, in nanoseconds. Short, because slices are; effects of the
/// previous slice also settle in this pause.
const IDLE_NS: u64 = 30_000_000;
/// Maximum number of sides: with more, a round takes so long that the machine changes within it.
const SIDES_MAX: usize = 32;

const EXIT_CANNOT_TELL: u8 = 3;

/// One-line description of `trueio compare`.
pub(crate) const ABOUT: &str = "Is B better than A, or is it noise?";

/// Adds the arguments of `trueio compare`.
pub(crate) fn arguments(command: Command) -> Command {
    flags::table_options(own_arguments(command))
}

/// Builds the command line without the job options.
fn own_arguments(command: Command) -> Command {
    let value = |name: &'static str, value_name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value_name).help(help).help_heading("Comparison")
    };
    command
        .long_about(
            "Is B better than A, or is it noise? Prints, for bandwidth, IOPS, latency and CPU per I/O, the ratio with its interval and a conclusion.\n\n\
             With jobs it runs them in short slices, in random order, on the same files, until the answer is clear or the time is up \
             (`trueio compare A.toml B.toml`, `trueio compare --vary iodepth=1,4,16 JOB.toml`). With records (ids of the history, \
             JSON files, fio's JSON) it reports what one run a side can show.",
        )
        .after_help(
            "Exit codes: 0 done, no limit is missed; 1 a limit is missed, or the comparison failed; 2 refused; 3 a limit is undecided.\n\
             docs/statistics.md describes how the intervals are made and how often they are wrong; docs/ci.md has a complete example for CI.",
        )
        .arg(Arg::new("sides").value_name("A B …").num_args(0..).help(
            "Job files or presets (`baseline:rand-read-4k-q32`) to run; or records: IDs of the history, JSON files, fio's JSON",
        ))
        .arg(
            Arg::new("live")
                .long("live")
                .help("Follow it on the whole terminal: rate and latencies of each round, how the comparison stands")
                .long_help(
                    "Follow it on the whole terminal: rate and latencies of each round and side, and how the comparison stands; `q` ends it \
                     with the answer so far. Without a terminal it changes nothing: jobs run with and without it.",
                )
                .help_heading("Output")
                .action(ArgAction::SetTrue),
        )
        .arg(
            value("vary", "OPTION=V1,V2", "Create the sides from one job by varying this option; several options make a grid")
                .action(ArgAction::Append),
        )
        .arg(value("budget", "TIME", "Time limit, without preparation").default_value("60s"))
        .arg(value("slice", "TIME", "Length of a slice [default: 0.3 to 1 s, by the jobs' rate]"))
        .arg(value("margin", "PERCENT", "Differences up to this count as none").default_value("5%"))
        .arg(value(
            "until",
            "METRIC,…",
            "Continue until these are clear [default: iops, or p99 of a job with a rate; and those of --fail-if]",
        ))
        .arg(value("order-seed", "NUMBER", "Seed of the order and of the resampling [default: random]").value_parser(value_parser!(u64)))
        .arg(limits::fail_if())
        .arg(
            value("accept-difference", "NAME,…", "Compare records although these properties differ (disk, transport, size, …)")
                .action(ArgAction::Append)
                .value_delimiter(','),
        )
        .arg(flags::json("Write the comparison as JSON; without FILE to standard output"))
        .arg(flags::output_file("html", "Write a self-contained page with plots"))
        .arg(flags::output_file("markdown", "Write a summary for a pull request"))
        .arg(flags::output_file("junit", "Write JUnit XML: a gate is a test"))
        .arg(
            Arg::new("no-evidence")
                .long("no-evidence")
                .help("Do not collect evidence; verdicts then use only the results of the calls")
                .help_heading("Output")
                .action(ArgAction::SetTrue),
        )
        .arg(progress::argument())
        .arg(flags::verbose())
}

/// Runs `trueio compare` with these arguments, for another command.
pub(crate) fn with_words<'a>(words: impl Iterator<Item = &'a str>) -> Result<ExitCode, Failure> {
    let whole = || Command::new("trueio").subcommand(arguments(Command::new("compare").about(ABOUT)));
    let matches = flags::parse(whole, ["trueio", "compare"].into_iter().chain(words))
        .map_err(|e| Failure::refused(e.to_string().trim_start_matches("error: ").to_owned()))?;
    let (_, matches) = matches.subcommand().expect("the command is compare");
    command(matches)
}

/// `trueio compare`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let events = Events::of(matches)?;
    let mut gates = limits::read(matches.get_many::<String>("fail-if").into_iter().flatten())?;
    let margin = margin(matches)?;
    let names: Vec<&String> = matches.get_many("sides").into_iter().flatten().collect();
    let is_job = |name: &str| name.starts_with("baseline:") || name.ends_with(".toml");
    let has_flags = !flags::job_flags(matches).is_empty();
    let wants_live = matches.get_flag("live") || matches.contains_id("vary");
    let read = names.iter().map(|name| Path::new(name.as_str())).filter(|path| path.is_file());
    let (comparison, outputs) = if wants_live || has_flags || names.iter().any(|name| is_job(name)) {
        let member = crate::ranks::join()?;
        let asked = Asked::read(&names, matches, &gates, margin);
        gates.extend(asked.iter().flat_map(|asked| asked.of_files.iter().cloned()));
        if let Some(member) = member {
            return ranks::command(member, asked, &gates, matches);
        }
        output::check(matches, read)?;
        live(asked?, &gates, events, matches)?
    } else {
        crate::ranks::refuse_several("compare RECORD …")?;
        output::check(matches, read)?;
        records(&names, margin, &gates, matches)?
    };
    deliver(&comparison, outputs, matches)?;
    Ok(ExitCode::from(code_of(&comparison)))
}

fn code_of(comparison: &Comparison) -> u8 {
    let any = |verdict| comparison.gates.iter().any(|gate| gate.verdict == verdict);
    match &comparison.outcome {
        Outcome::Failed { .. } => 1,
        // The key `q` is an orderly end.
        Outcome::Interrupted { signal } if signal != trueio_run::BY_KEY => 1,
        _ if any(GateVerdict::Shown) => 1,
        _ if any(GateVerdict::CannotTell) => EXIT_CANNOT_TELL,
        _ => 0,
    }
}

/// Checks that each limit can be judged of these sides.
fn check_gates(gates: &[Limit], sides: &[&str]) -> Result<(), Failure> {
    gates.iter().try_for_each(|gate| check_gate(gate, sides)).map_err(|e| Failure::refused(format!("--fail-if {e}")))
}

/// Parses `5%`, `5` or `0.5 %` as a share.
fn margin(matches: &ArgMatches) -> Result<f64, Failure> {
    let text = matches.get_one::<String>("margin").expect("it has a default");
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|p| (0.01..=100.0).contains(p))
        .map(|p| p / 100.0)
        .ok_or_else(|| Failure::refused(format!("--margin `{text}`: a percentage from 0.01 to 100 is expected, `5%`")))
}

fn duration(matches: &ArgMatches, name: &str) -> Result<Option<u64>, Failure> {
    let Some(text) = matches.get_one::<String>(name) else { return Ok(None) };
    units::parse_duration_ns(text).map(Some).map_err(|e| Failure::refused(format!("--{name} `{text}`: {e}")))
}

/// Returns the metrics whose answers end the comparison; `None`: it depends on the jobs.
fn until(matches: &ArgMatches, gates: &[Limit]) -> Result<Option<Vec<Metric>>, Failure> {
    let mut metrics = Vec::new();
    if let Some(text) = matches.get_one::<String>("until") {
        for name in text.split(',') {
            metrics.push(metric_of(name).ok_or_else(|| {
                Failure::refused(format!(
                    "--until `{name}` is not a metric\n\nhint: the metrics are {}",
                    metric_names()
                ))
            })?);
        }
    }
    for gate in gates {
        if let Some(metric) = gate.figure.metric().filter(|metric| !metrics.contains(metric)) {
            metrics.push(metric);
        }
    }
    Ok((!metrics.is_empty()).then_some(metrics))
}

fn head(margin: f64, setting: Option<Box<trueio_model::RunRecord>>, started_at: String) -> Head {
    Head { setting, started_at, command: flags::as_typed(), tool: trueio_run::tool_facts(), margin }
}

// ---- live -------------------------------------------------------------------------------------

/// A side to be run: its name and its jobs.
struct LiveSide {
    name: String,
    jobs: Vec<JobSpec>,
}

/// What is to be compared live.
struct Asked {
    sides: Vec<LiveSide>,
    /// The limits of job files, each of its side.
    of_files: Vec<Limit>,
    /// The files that were read.
    read: Vec<String>,
    budget_ns: u64,
    slice_ns: Option<u64>,
    seed: Option<u64>,
    margin: f64,
    until: Option<Vec<Metric>>,
}

impl Asked {
    fn read(names: &[&String], matches: &ArgMatches, gates: &[Limit], margin: f64) -> Result<Self, Failure> {
        let slice_ns = duration(matches, "slice")?;
        if slice_ns.is_some_and(|ns| ns < 10_000_000) {
            return Err(Failure::refused("--slice must be at least 10 ms; shorter slices measure their own start"));
        }
        let mut read = Vec::new();
        let (sides, of_files) = live_sides(names, matches, &mut read)?;
        let gates = [gates, of_files.as_slice()].concat();
        check_gates(&gates, &sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>())?;
        Ok(Self {
            sides,
            of_files,
            read,
            budget_ns: duration(matches, "budget")?.unwrap_or(60_000_000_000),
            slice_ns,
            seed: matches.get_one::<u64>("order-seed").copied(),
            margin,
            until: until(matches, &gates)?,
        })
    }

    /// Returns the settings for a plan; `seed` is used unless one was asked for.
    fn settings(&self, plan: &Plan, seed: u64) -> Settings {
        // With a rate, both sides do the same number of I/Os, whatever each costs.
        let is_paced = plan.jobs.iter().any(JobPlan::is_paced);
        let deciding = if is_paced { Metric::P99 } else { Metric::Iops };
        Settings {
            sides: self.sides.len(),
            seed: self.seed.unwrap_or(seed),
            slice_ns: self.slice_ns,
            budget_ns: self.budget_ns,
            margin: self.margin,
            until: self.until.clone().unwrap_or_else(|| vec![deciding]),
        }
    }

    /// Refuses a budget in which no answer is possible. A simulated device takes no time.
    fn check_budget(&self, settings: &Settings, plan: &Plan, idle_ns: u64) -> Result<(), Failure> {
        let least_ns = least_time_ns(settings, idle_ns);
        let is_simulated = plan.jobs.iter().all(|job| job.simulated.is_some());
        if is_simulated || least_ns <= self.budget_ns {
            return Ok(());
        }
        let whole_s = least_ns.div_ceil(1_000_000_000);
        Err(Failure::refused(format!(
            "--budget {} is too short for an answer\n  because: the fewest rounds of {} sides take {}\n\nhint: set --budget {}s or more{}",
            units::format_duration_ns(self.budget_ns),
            settings.sides,
            units::format_duration_ns(least_ns),
            whole_s + whole_s.div_ceil(5),
            if settings.slice_ns.is_none() { ", or shorter slices with --slice" } else { "" },
        )))
    }

    /// Returns each side's name and what it does.
    fn described(&self, plan: &Plan) -> Vec<(String, String)> {
        let sides = self.sides.iter().enumerate();
        sides.map(|(index, side)| (side.name.clone(), detail(plan, index))).collect()
    }
}

fn live(
    asked: Asked,
    gates: &[Limit],
    events: Option<Events>,
    matches: &ArgMatches,
) -> Result<(Comparison, Outputs), Failure> {
    let mut specs = joined(&asked.sides, "")?;
    trueio_cluster::for_rank(&mut specs, &trueio_cluster::Place::alone(trueio_cluster::host_name()));
    let has_evidence = !matches.get_flag("no-evidence");
    let idle_ns = if has_evidence { IDLE_NS } else { 0 };
    let machine = Machine { command_files: output::command_files(matches, &asked.read), ..machine::machine(idle_ns) };
    let (mut plan, targets) = planned_and_claimed(&specs, &machine, may_run)?;
    let mut notes = precondition(&mut plan);
    let settings = asked.settings(&plan, machine::entropy());
    asked.check_budget(&settings, &plan, idle_ns)?;
    let described = asked.described(&plan);
    notes.extend(plan.notes.iter().cloned());
    let outputs = Outputs::reserve(matches, asked.read.iter().map(Path::new))?;

    let stop = watch_signals();
    // Without a terminal the option does nothing: in earlier versions it chose to run jobs.
    let is_live = matches.get_flag("live") && std::io::stderr().is_terminal() && !trueio_report::is_dumb();
    let line = if is_live { progress::Line::hidden() } else { progress::Line::new() };
    let mut line = line.with_events(events);
    let mut view = if is_live { Some(Live::start().map_err(Failure::refused)?) } else { None };
    let session = Session::new(request(specs, plan, targets, has_evidence), stop);
    let started_at = session.record().started_at.clone();
    let prepared = match &mut view {
        Some(view) => SessionBench::new(session, view),
        None => SessionBench::new(session, &mut line),
    };
    let (mut found, (setting, syscalls)) = match prepared {
        Ok(bench) => {
            let (found, bench) = interleaved(bench, &asked, &settings, &mut line, view.as_ref());
            let (session, syscalls) = bench.into_parts();
            (found, (Some(Box::new(session.finish(Outcome::Complete))), syscalls))
        }
        Err(outcome) => (Interleaved::unmeasured(&settings, outcome), (None, Vec::new())),
    };
    // Before anything is printed, so that the terminal is as it was.
    drop(view);
    line.clear();
    found.notes.splice(0..0, notes);
    let head = head(asked.margin, setting, started_at);
    let mut comparison = from_rounds(head, &described, &settings, found, gates);
    take_syscalls(&mut comparison, &syscalls);
    Ok((comparison, outputs))
}

/// Interleaves the sides, and draws how they stand.
fn interleaved<'a>(
    mut bench: SessionBench<'a>,
    asked: &Asked,
    settings: &Settings,
    line: &mut progress::Line,
    view: Option<&Live>,
) -> (Interleaved, SessionBench<'a>) {
    let Some(view) = view else {
        let found = interleave(&mut bench, settings, &mut |standing| line.show_standing(standing));
        return (found, bench);
    };
    let names: Vec<&str> = asked.sides.iter().map(|side| side.name.as_str()).collect();
    let mut sides = view.sides(bench, &names);
    let mut show = |standing: &Standing| {
        line.show_standing(standing);
        view.show_standing(standing);
    };
    let found = interleave(&mut sides, settings, &mut show);
    (found, sides.into_bench())
}

/// Adds each side's recorded system calls.
fn take_syscalls(comparison: &mut Comparison, syscalls: &[Option<SyscallTrace>]) {
    for part in &mut comparison.parts {
        part.sides.iter_mut().zip(syscalls).for_each(|(side, syscalls)| side.syscalls.clone_from(syscalls));
    }
}

/// Returns the request for the slices of a plan.
fn request(spec: Vec<JobSpec>, plan: Plan, targets: Targets, has_evidence: bool) -> Request {
    let reporting = Reporting { logs: Some(FioLogs::writer()), ..Reporting::default() };
    let (kind, command) = ("compare".to_owned(), flags::as_typed());
    Request { kind, command, spec, plan, targets, has_evidence, reporting }
}

/// Returns the sides of the command line, and the limits of their job files; adds the files that were read to `read`.
fn live_sides(
    names: &[&String],
    matches: &ArgMatches,
    read: &mut Vec<String>,
) -> Result<(Vec<LiveSide>, Vec<Limit>), Failure> {
    let flags = flags::job_flags(matches);
    let is_varied = matches.contains_id("vary");
    let mut limits = Vec::new();
    let mut jobs_of = |name: &str| -> Result<Vec<JobSpec>, Failure> {
        let mut jobs = match name.strip_prefix("baseline:") {
            Some(preset) => vec![baseline::preset_job(preset)?],
            None => {
                let file = read_job_file(Path::new(name), read)?;
                // With --vary the file is that of all sides.
                let side = (!is_varied).then(|| names.iter().position(|known| known.as_str() == name)).flatten();
                for limit in file.limits {
                    limits.push(of_side(limit, &file.jobs, side)?);
                }
                file.jobs
            }
        };
        apply_flags(&mut jobs, flags.iter().map(|(n, v)| (*n, v.as_str())))
            .map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
        Ok(jobs)
    };
    let varied: Vec<&String> = matches.get_many("vary").into_iter().flatten().collect();
    let sides = if varied.is_empty() {
        names
            .iter()
            .map(|name| Ok(LiveSide { name: (*name).clone(), jobs: jobs_of(name)? }))
            .collect::<Result<Vec<_>, Failure>>()?
    } else {
        let base = match names {
            [] if !flags.is_empty() => {
                vec![spec_from_flags("job", flags).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?]
            }
            [one] => jobs_of(one)?,
            _ => {
                return Err(Failure::refused(
                    "--vary creates the sides from one job: name one job file, one preset, or job options only",
                ));
            }
        };
        grid(&base, &varied)?
    };
    match sides.len() {
        2..=SIDES_MAX => Ok((sides, limits)),
        0 | 1 => Err(Failure::refused(
            "a comparison needs at least two sides\n\nhint: `trueio compare A.toml B.toml`, or `trueio compare --vary iodepth=1,4 JOB.toml`",
        )),
        count => Err(Failure::refused(format!("{count} sides are more than {SIDES_MAX}: a round would take too long"))),
    }
}

/// Returns a limit of a job file as one of its side: a side is compared as a whole.
///
/// # Errors
/// It is of one of several jobs.
fn of_side(mut limit: Limit, jobs: &[JobSpec], side: Option<usize>) -> Result<Limit, Failure> {
    if let Some(load) = limit.load.take().filter(|load| jobs.len() > 1 || jobs.iter().all(|job| job.name != *load)) {
        return Err(Failure::refused(format!(
            "`{}` in `[limits]` is of the load `{load}`, and a side is compared as a whole\n\nhint: leave the name out, or use \
             `trueio run`",
            limit.text
        )));
    }
    limit.load = side.map(side_letter);
    Ok(limit)
}

/// Returns one side per combination of the varied values; the first value of each is side A.
fn grid(base: &[JobSpec], varied: &[&String]) -> Result<Vec<LiveSide>, Failure> {
    let mut sides = vec![LiveSide { name: String::new(), jobs: base.to_vec() }];
    let mut names: Vec<&str> = Vec::new();
    for text in varied {
        let (option, values) = text.split_once('=').filter(|(option, _)| !option.is_empty()).ok_or_else(|| {
            Failure::refused(format!("--vary `{text}`: an option and its values are expected, `iodepth=1,4,16`"))
        })?;
        if names.contains(&option) {
            return Err(Failure::refused(format!("--vary `{option}` is given twice: list all values in one flag")));
        }
        names.push(option);
        let values: Vec<&str> = values.split(',').collect();
        if values.len() < 2 || values.iter().any(|v| v.is_empty()) {
            return Err(Failure::refused(format!(
                "--vary `{text}`: at least two values are expected, separated by commas"
            )));
        }
        let mut grown = Vec::new();
        for side in &sides {
            for value in &values {
                let mut jobs = side.jobs.clone();
                apply_flags(&mut jobs, [(option, *value)]).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
                let name = format!("{}{}{option}={value}", side.name, if side.name.is_empty() { "" } else { " " });
                grown.push(LiveSide { name, jobs });
            }
        }
        sides = grown;
    }
    Ok(sides)
}

/// Returns all sides as one list of jobs, one phase per side, on shared files. `of_rank` is a part of their names.
fn joined(sides: &[LiveSide], of_rank: &str) -> Result<Vec<JobSpec>, Failure> {
    let tag = format!("{:08x}", machine::entropy() as u32);
    let mut all = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        if let Some(job) = side.jobs.iter().skip(1).find(|job| value_of(job, "stonewall") == Some("true")) {
            return Err(Failure::refused(format!(
                "side `{}` has phases that follow each other (job `{}` has `stonewall`)\n\nhint: compare one phase at a time",
                side.name, job.name
            )));
        }
        for (position, job) in side.jobs.iter().enumerate() {
            let mut job = job.clone();
            job.name = format!("{}.{}", prefix_of_side(index), job.name);
            let because = |reason: &str| Origin::Derived { reason: reason.to_owned() };
            job.set(
                "stonewall",
                if position == 0 && index > 0 { "true" } else { "false" },
                because("each side is a separate phase"),
            );
            // Files without a given name are shared by all sides, because the position of a file on the disk
            // affects the result.
            let touches = !matches!(value_of(&job, "ioengine"), Some("null" | "simulated"));
            if touches && !job.options.contains_key("filename") {
                let count = value_of(&job, "nrfiles").and_then(|n| n.parse::<u32>().ok()).unwrap_or(1).clamp(1, 10_000);
                let names: Vec<String> =
                    (0..count).map(|i| format!("trueio-compare-{tag}{of_rank}-{position}-{i}.dat")).collect();
                job.options.remove("nrfiles");
                job.set("filename", names.join(":"), because("all sides use the same files"));
            }
            all.push(job);
        }
    }
    Ok(all)
}

fn value_of<'a>(job: &'a JobSpec, option: &str) -> Option<&'a str> {
    job.options.get(option).map(|value: &SpecValue| value.text.as_str())
}

/// Returns what the names of a side's jobs begin with.
fn prefix_of_side(index: usize) -> String {
    format!(
        "{}{}",
        char::from(b'a' + (index % 26) as u8),
        if index < 26 { String::new() } else { (index / 26).to_string() }
    )
}

/// Describes a side's load, from its plan.
fn detail(plan: &Plan, side: usize) -> String {
    let jobs = plan.jobs.iter().filter(|job| job.phase as usize == side);
    jobs.map(|job| format!("{} {}", trueio_report::shape_of(job), job.engine.name())).collect::<Vec<_>>().join(" + ")
}

// ---- records ----------------------------------------------------------------------------------

fn records(
    names: &[&String],
    margin: f64,
    gates: &[Limit],
    matches: &ArgMatches,
) -> Result<(Comparison, Outputs), Failure> {
    if names.len() < 2 {
        return Err(Failure::refused(
            "a comparison needs at least two sides\n\nhint: `trueio history` lists records; jobs are named by their files: `trueio compare A.toml B.toml`",
        ));
    }
    let runs: Vec<Named> = names.iter().map(|name| stored(name)).collect::<Result<_, Failure>>()?;
    check_gates(gates, &runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>())?;
    let mut compared = compare_runs(&runs, margin).map_err(|e| Failure::refused(e.to_string()))?;
    let accepted: Vec<&str> =
        matches.get_many::<String>("accept-difference").into_iter().flatten().map(|n| n.trim()).collect();
    for difference in &mut compared.differences {
        difference.forbids &= !accepted.contains(&difference.name.as_str());
    }
    let forbidding: Vec<_> = compared.differences.iter().filter(|d| d.forbids).collect();
    if !forbidding.is_empty() {
        let mut text = "these runs are not comparable".to_owned();
        let mut together: Vec<&str> = Vec::new();
        for d in &forbidding {
            text.push_str(&format!(
                "\n  because: {} differs: {} in `{}`, {} in `{}`",
                d.name,
                d.first,
                names[0],
                d.this,
                names.get(d.side).map_or("?", |n| n.as_str())
            ));
            if !together.contains(&d.name.as_str()) {
                together.push(&d.name);
            }
        }
        return Err(Failure::refused(format!(
            "{text}\n\nhint: to compare across this difference, set --accept-difference {}",
            together.join(",")
        )));
    }
    let started_at = match &runs[0].run {
        StoredRun::Record(record) => record.started_at.clone(),
        StoredRun::Fio(run) => format_utc(run.timestamp_unix_s),
    };
    let read = names.iter().map(|name| Path::new(name.as_str()));
    let outputs = Outputs::reserve(matches, read)?;
    let (absolute, relative): (Vec<Limit>, Vec<Limit>) =
        gates.iter().cloned().partition(|gate| matches!(gate.value, LimitValue::Absolute(_)));
    let mut comparison = from_records(head(margin, None, started_at), compared, &relative);
    comparison.gates.extend(absolute_gates(&runs, &absolute));
    Ok((comparison, outputs))
}

/// Judges absolute limits of records by their own figures: of the side that a limit names, else of each but the first.
fn absolute_gates(runs: &[Named], gates: &[Limit]) -> Vec<GateResult> {
    let mut results = Vec::new();
    for (gate, (side, run)) in gates.iter().flat_map(|gate| runs.iter().enumerate().map(move |run| (gate, run))) {
        let is_concerned = match &gate.load {
            Some(name) => *name == run.name || name.eq_ignore_ascii_case(&side_letter(side)),
            None => side > 0,
        };
        if !is_concerned {
            continue;
        }
        let result = |part: String, verdict, sentence: String| GateResult {
            condition: gate.text.clone(),
            part,
            side,
            verdict,
            sentence: format!("{}: {sentence}", run.name),
        };
        let StoredRun::Record(record) = &run.run else {
            let why = "a result of fio has no evidence; run its jobs with `trueio fio --fail-if`";
            results.push(result(String::new(), GateVerdict::CannotTell, why.to_owned()));
            continue;
        };
        // Without the name of the side.
        let condition = gate.text.rsplit(':').next().unwrap_or(&gate.text).trim().to_owned();
        let mut record = record.clone();
        record.plan.limits = Some(Box::new(LimitSet { conditions: vec![condition], reference: None }));
        for limit in trueio_report::answer(&record, &[]).limits {
            // The record is stored: only another run can have a narrower interval.
            let next =
                if limit.next_step.is_empty() { String::new() } else { format!("; in a new run: {}", limit.next_step) };
            results.push(result(limit.load, limit.outcome.into(), limit.sentence + &next));
        }
    }
    results
}

/// Reads a record by its file or ID, or a result of fio by its file.
fn stored(name: &str) -> Result<Named, Failure> {
    let path = Path::new(name);
    if kept::is_text(name) {
        // Once: a pipe has no second reading, and a file may be another one by then.
        let text = kept::text(path)?;
        let is_fio = text.contains("\"fio version\"") && !text.contains("trueio-record");
        if is_fio {
            let run = trueio_fio::results::parse(&text).map_err(|e| {
                Failure::refused(error_chain(&format!("`{name}` is not a valid result of fio"), Some(&e)))
            })?;
            if trueio_compare::fio::rows(&run).is_empty() {
                let why = "it contains no I/O";
                return Err(Failure::refused(format!("`{name}` cannot be compared\n  because: {why}")));
            }
            run.notes.iter().for_each(|note| message!("note: {}: {}", path.display(), trueio_report::clean(note)));
            return Ok(Named { name: stem(path), run: StoredRun::Fio(run) });
        }
        let record = kept::parsed(name, &text)?;
        return Ok(Named { name: stem(path), run: StoredRun::Record(Box::new(record)) });
    }
    let record = kept::find(name)?;
    Ok(Named { name: kept::short(name), run: StoredRun::Record(Box::new(record)) })
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |s| s.to_string_lossy().into_owned())
}

// ---- outputs ----------------------------------------------------------------------------------

fn json(comparison: &Comparison) -> String {
    format!("{}\n", trueio_report::comparison_json(comparison))
}

/// Delivers what is known after a panic between the parts of the work that contain their own: the comparison, if there is one, as JSON on stdout.
/// Returns the failure.
fn rescue(known: Option<Comparison>, reason: &str) -> Failure {
    let printed = known.map(|comparison| made("the comparison", || json(&comparison)));
    let what = match printed.map(|text| text.and_then(|text| output::print_all(&text))) {
        None => "the comparison ended before there was a result",
        Some(Ok(())) => "the results were not delivered; the comparison is on stdout",
        Some(Err(_)) => "the results were not delivered; the comparison could not be written either",
    };
    Failure::with_code(1, format!("{what}\n  because: {reason}"))
}

fn deliver(comparison: &Comparison, outputs: Outputs, matches: &ArgMatches) -> Result<(), Failure> {
    let json_to_stdout = matches.get_one::<PathBuf>("json").is_some_and(|p| p == Path::new("-"));
    let mut results = Vec::new();
    let text = made("the results", || match json_to_stdout {
        true => json(comparison),
        false => {
            let style = output::style_of(&std::io::stdout());
            match matches.get_flag("verbose") {
                true => trueio_report::comparison_terminal(comparison, &style),
                false => trueio_report::comparison_screen(comparison, &style, "add -v"),
            }
        }
    });
    results.push(text.and_then(|text| output::print_all(&text)));
    results.push(outputs.write(|name| {
        made(&format!("--{name}"), || match name {
            "json" => json(comparison),
            "html" => trueio_report::comparison_html(comparison),
            "markdown" => trueio_report::comparison_markdown(comparison),
            _ => trueio_report::comparison_junit(comparison),
        })
    }));
    results.into_iter().collect()
}
