//! Plans jobs on this machine, and checks that this user may run the plan.

use crate::machine::MachineFacts;
use crate::strace::why_no_strace;
use crate::targets::Targets;
use crate::{descriptors, limits};
use trueio_job::{FileUse, Language, Machine, Native, Refusal, Rule, check_outputs, explain_refusal_in};
use trueio_model::{JobPlan, JobSpec, Plan, Prepare};

/// A request that was refused before anything was touched.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct PlanningError {
    text: String,
    /// The refusal of the planner, if it is one.
    refusal: Option<Box<Refusal>>,
}

impl PlanningError {
    /// `text` is complete: what was refused, why, and what to do instead.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), refusal: None }
    }

    fn of(refusal: Refusal, specs: &[JobSpec]) -> Self {
        Self { text: explain_refusal_in(&refusal, &Native(specs)), refusal: Some(Box::new(refusal)) }
    }

    /// Returns true if a file exists that the job does not name for writing, or is empty where the job needs data. That is so, too, if
    /// another run created it after the job's files were looked at.
    pub fn is_of_new_file(&self) -> bool {
        let rule = self.refusal.as_ref().map(|refusal| &*refusal.rule);
        matches!(rule, Some(Rule::ExistingTargetNotNamed { .. } | Rule::SizeBeyondTarget { target_bytes: 0, .. }))
    }

    /// The complete text, with options as in job files, or as the flags that set them.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The complete text, with options as `language` writes them.
    pub fn into_text_in(self, language: &dyn Language) -> String {
        match self.refusal {
            Some(refusal) => explain_refusal_in(&refusal, language),
            None => self.text,
        }
    }
}

/// Refuses a plan whose files this user may not use, or that records in a way that is unavailable here. Touches nothing.
///
/// # Errors
/// The first job that is refused, and why.
pub fn may_run(plan: &Plan) -> Result<(), PlanningError> {
    refuse_unreachable(plan)?;
    refuse_beyond_limits(plan)?;
    refuse_unrecordable(plan)
}

/// Refuses more workers, or files, than this process may have at once.
///
/// # Errors
/// The limit, and how far the plan exceeds it.
pub fn refuse_beyond_limits(plan: &Plan) -> Result<(), PlanningError> {
    limits::check_threads(&plan.jobs)
        .and_then(|()| descriptors::check(&plan.jobs))
        .map_err(|reason| PlanningError::new(format!("nothing was started\n  because: {reason}")))
}

/// Returns the descriptors that a run of the plan holds at once, with one more for each file that it keeps.
pub fn descriptors_needed(plan: &Plan) -> u64 {
    descriptors::wanted(&plan.jobs)
}

/// Refuses to record system calls, or to run under strace, if that is impossible here.
fn refuse_unrecordable(plan: &Plan) -> Result<(), PlanningError> {
    let refused = |asks: fn(&JobPlan) -> bool, what: &str, why_not: fn() -> Option<String>, hint: &str| {
        let Some(job) = plan.jobs.iter().find(|job| asks(job)) else { return Ok(()) };
        why_not().map_or(Ok(()), |reason| {
            let name = &job.name;
            Err(PlanningError::new(format!(
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
        why_no_strace,
        "leave `strace` out, or install it",
    )
}

/// Refuses existing files and devices that this user may not read, or may not write if a job writes them.
///
/// # Errors
/// The first file that is refused, and why.
pub fn refuse_unreachable(plan: &Plan) -> Result<(), PlanningError> {
    use rustix::fs::Access;
    // A USB disk that is driven in user space has no path, and is claimed already.
    let opens = |job: &&JobPlan| job.engine.opens_files() && !job.engine.drives_usb_disks();
    for job in plan.jobs.iter().filter(opens) {
        let only_reads = !job.modifies_files();
        for file in job.files.iter().filter(|file| file.prepare == Prepare::UseExisting || file.extends_from.is_some())
        {
            let only_reads = only_reads && file.extends_from.is_none();
            let wanted = if only_reads { Access::READ_OK } else { Access::READ_OK | Access::WRITE_OK };
            if let Err(error) = rustix::fs::access(file.path.as_str(), wanted) {
                let verb = if only_reads { "read" } else { "read and write" };
                return Err(PlanningError::new(format!(
                    "job `{}` was not started\n  because: this user may not {verb} `{}`\n  because: {}",
                    job.name,
                    file.path,
                    std::io::Error::from(error)
                )));
            }
            if let Some(source) = (!only_reads).then(|| read_only_by(&file.path)).flatten() {
                return Err(PlanningError::new(format!(
                    "job `{}` was not started\n  because: `{1}` is read-only (reported by {source})\n\nhint: `blockdev --setrw \
                     {1}` permits writing, if the disk itself does; jobs that read work",
                    job.name, file.path
                )));
            }
        }
    }
    Ok(())
}

/// Returns what reports that a path is a read-only block device; root may open one for writing, and each write fails.
fn read_only_by(path: &str) -> Option<String> {
    use rustix::fs::FileType;
    let stat = rustix::fs::stat(path).ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_block_device())?;
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let source = format!("/sys/dev/block/{major}:{minor}/ro");
    (std::fs::read_to_string(&source).ok()?.trim() == "1").then_some(source)
}

/// Returns the plan, or the refusal as text. `check` may refuse the plan, too.
///
/// # Errors
/// The refusal of the planner, or of `check`.
pub fn planned(
    specs: &[JobSpec],
    machine: &Machine,
    check: impl Fn(&Plan) -> Result<(), PlanningError>,
) -> Result<Plan, PlanningError> {
    planned_by(specs, machine, check).map(|(plan, _)| plan)
}

/// Returns the plan with its existing targets: open, compared with the plan, and claimed if they are block devices that it
/// writes.
///
/// # Errors
/// The refusal of the planner, or of `check`; a target that changed since it was examined, or cannot be opened or claimed.
pub fn planned_and_claimed(
    specs: &[JobSpec],
    machine: &Machine,
    check: impl Fn(&Plan) -> Result<(), PlanningError>,
) -> Result<(Plan, Targets), PlanningError> {
    let (plan, facts) = planned_by(specs, machine, check)?;
    let mut targets = Targets::default();
    targets
        .open(&plan, |path| facts.take(path))
        .map_err(|reason| PlanningError::new(format!("the run was not started\n  because: {reason}")))?;
    Ok((plan, targets))
}

/// Returns the plan, and the facts that it rests on.
///
/// A probe of direct I/O in a directory creates a file without a name. So the jobs are first planned and checked without
/// opening anything for writing.
fn planned_by(
    specs: &[JobSpec],
    machine: &Machine,
    check: impl Fn(&Plan) -> Result<(), PlanningError>,
) -> Result<(Plan, MachineFacts), PlanningError> {
    let plan = |facts: &MachineFacts| {
        trueio_job::plan(specs, facts, machine).map_err(|refusal| PlanningError::of(refusal, specs))
    };
    let untouched = MachineFacts::without_probing();
    let first = plan(&untouched)?;
    check(&first)?;
    if !untouched.has_skipped() {
        return Ok((first, untouched));
    }
    // `untouched` keeps USB disks claimed until the second plan has taken them.
    let probing = MachineFacts::probing();
    let second = plan(&probing)?;
    drop(untouched);
    Ok((second, probing))
}

/// Refuses outputs that would replace an input or each other, or that cannot be written. They may replace outputs of earlier
/// runs.
///
/// # Errors
/// The first file that is refused, and why.
pub fn check_files(files: &[FileUse]) -> Result<(), PlanningError> {
    let refused = |rule| Refusal { job: None, origin: None, rule: Box::new(rule) };
    check_outputs(files, true, &MachineFacts::without_probing()).map_err(|rule| PlanningError::of(refused(rule), &[]))
}
