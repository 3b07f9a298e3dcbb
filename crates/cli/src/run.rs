//! `trueio run` and `trueio explain`: job files and flags.

use crate::failure::Failure;
use crate::machine::{IDLE_BASELINE_NS, Live, machine};
use crate::{arguments, output, progress};
use clap::ArgMatches;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_job::{Beside, FileUse, Machine, Refusal, Role, apply_flags, parse_job_file, spec_from_flags};
use trueio_model::{JobPlan, JobSpec, Plan, Prepare};
use trueio_run::{Request, watch_signals};

/// `trueio run`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    output::check(matches)?;
    let has_evidence = !matches.get_flag("no-evidence");
    let (spec, read) = specs(matches)?;
    let idle_ns = if has_evidence { IDLE_BASELINE_NS } else { 0 };
    let machine = Machine { beside: output::beside(matches, &read), ..machine(idle_ns) };
    let plan = planned(&spec, &machine, may_run)?;
    execute("run", spec, plan, has_evidence, matches)
}

/// `trueio explain`.
pub(crate) fn explain(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (spec, read) = specs(matches)?;
    let reads = read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input)).collect();
    let machine = Machine { beside: Beside { files: reads, sends_logs: false }, ..machine(IDLE_BASELINE_NS) };
    let plan = planned(&spec, &machine, |_| Ok(()))?;
    let text = if matches.get_flag("json") {
        let json = serde_json::to_string_pretty(&plan).map_err(|e| Failure::failed("the plan is no JSON", &e))?;
        format!("{json}\n")
    } else {
        trueio_job::explain(&plan)
    };
    output::print_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a plan and delivers its record.
pub(crate) fn execute(
    kind: &str,
    spec: Vec<JobSpec>,
    plan: Plan,
    has_evidence: bool,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    let accepted = matches.get_many::<String>("accept").into_iter().flatten();
    let plan = Plan { accepted_checks: accepted.cloned().collect(), ..plan };
    let request = Request { kind: kind.to_owned(), command: arguments::as_typed(), spec, plan, has_evidence };
    let mut line = progress::Line::new().without_idle(!has_evidence);
    let record = trueio_run::run(request, watch_signals(), &mut line);
    line.clear();
    output::deliver(&record, matches, true)
}

/// Refuses what only the program knows of a plan: files that this user may not use, ways of recording that are not here.
/// Touches nothing.
pub(crate) fn may_run(plan: &Plan) -> Result<(), Failure> {
    refuse_unreachable(plan)?;
    refuse_unrecordable(plan)
}

/// Refuses to record system calls, or to be followed by strace, where that cannot be had.
fn refuse_unrecordable(plan: &Plan) -> Result<(), Failure> {
    let refused = |asks: fn(&JobPlan) -> bool, what: &str, why_not: fn() -> Option<String>, hint: &str| {
        let Some(job) = plan.jobs.iter().find(|job| asks(job)) else { return Ok(()) };
        why_not().map_or(Ok(()), |reason| {
            let name = &job.name;
            Err(Failure::refused(format!(
                "job `{name}` was not started\n  because: {what}\n  because: {reason}\n\nhint: {hint}"
            )))
        })
    };
    refused(
        |job| job.trace_syscalls,
        "its system calls cannot be recorded (`trace_syscalls`)",
        trueio_evidence::why_no_syscall_trace,
        "leave `trace_syscalls` out, or run as root outside of containers",
    )?;
    refused(
        |job| job.strace,
        "it cannot run under strace (`strace`)",
        trueio_run::why_no_strace,
        "leave `strace` out, or install it",
    )
}

/// Refuses files and devices that exist and may not be read (or written, where a job writes) by
/// this user.
pub(crate) fn refuse_unreachable(plan: &Plan) -> Result<(), Failure> {
    use rustix::fs::Access;
    for job in plan.jobs.iter().filter(|job| job.engine.opens_files()) {
        let only_reads = !job.modifies_files();
        for file in job.files.iter().filter(|file| file.prepare == Prepare::UseExisting || file.extends_from.is_some())
        {
            let only_reads = only_reads && file.extends_from.is_none();
            let wanted = if only_reads { Access::READ_OK } else { Access::READ_OK | Access::WRITE_OK };
            if let Err(error) = rustix::fs::access(file.path.as_str(), wanted) {
                let verb = if only_reads { "read" } else { "read and write" };
                return Err(Failure::refused(format!(
                    "job `{}` was not started\n  because: this user may not {verb} `{}`\n  because: {}",
                    job.name,
                    file.path,
                    std::io::Error::from(error)
                )));
            }
        }
    }
    Ok(())
}

/// The jobs that files and flags ask for, and the files that were read.
fn specs(matches: &ArgMatches) -> Result<(Vec<JobSpec>, Vec<String>), Failure> {
    let flags = arguments::job_flags(matches);
    let files: Vec<&PathBuf> = matches.get_many("files").into_iter().flatten().collect();
    if files.is_empty() {
        if flags.is_empty() {
            return Err(Failure::refused(
                "there is nothing to run\n\nhint: name a job file (`trueio run JOB.toml`) or give options (`trueio run --rw randread --size 1g`)",
            ));
        }
        let name = matches.get_one::<String>("name").map_or("job", String::as_str);
        let spec = spec_from_flags(name, flags).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
        return Ok((vec![spec], Vec::new()));
    }
    let (mut all, mut read) = (Vec::new(), Vec::new());
    for path in files {
        all.extend(read_job_file(path, &mut read)?);
    }
    apply_flags(&mut all, flags).map_err(|e| Failure::refused_by(&e, e.hint.as_deref()))?;
    Ok((all, read))
}

/// The jobs of a file: TOML, or fio's language if its name ends as those files' names do. The files that were read,
/// included ones too, are added to `read`.
pub(crate) fn read_job_file(path: &Path, read: &mut Vec<String>) -> Result<Vec<JobSpec>, Failure> {
    if path.extension().is_some_and(|ending| ["fio", "job", "ini"].iter().any(|known| ending == *known)) {
        return crate::fio::read_job_file(path, read);
    }
    read.push(path.to_string_lossy().into_owned());
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::refused(format!("job file `{}` cannot be read\n  because: {e}", path.display())))?;
    parse_job_file(&path.to_string_lossy(), &text).map_err(|e| Failure::refused(e.render()))
}

/// The plan, or the refusal as text. `check` may refuse the plan, too.
///
/// A directory is asked about direct I/O through a file without a name, so it is asked last: first
/// everything that can be refused without opening anything for writing is.
pub(crate) fn planned(
    specs: &[JobSpec],
    machine: &Machine,
    check: impl Fn(&Plan) -> Result<(), Failure>,
) -> Result<Plan, Failure> {
    let plan = |live: &Live| {
        let refused = |refusal: Refusal| Failure::refused(trueio_job::explain_refusal(&refusal));
        trueio_job::plan(specs, live, machine).map_err(refused)
    };
    let untouched = Live::touching_nothing();
    let first = plan(&untouched)?;
    check(&first)?;
    if untouched.has_skipped() { plan(&Live::asking()) } else { Ok(first) }
}
