//! From specifications to a plan that this user may run.

use crate::failure::Failure;
use crate::machine::Live;
use trueio_job::{Machine, Refusal};
use trueio_model::{JobPlan, JobSpec, Plan, Prepare};

/// Refuses a plan whose files this user may not use, or whose way of recording is missing here. Touches nothing.
pub(crate) fn may_run(plan: &Plan) -> Result<(), Failure> {
    refuse_unreachable(plan)?;
    refuse_unrecordable(plan)
}

/// Refuses to record system calls, or to run under strace, where that is impossible.
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

/// Refuses files and devices that exist and that this user may not read, or not write where a job writes.
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

/// Returns the plan, or the refusal as text. `check` may refuse the plan, too.
///
/// Direct I/O in a directory is probed through a file without a name, so that comes last: first the plan is made
/// and checked without opening anything for writing.
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
