//! Jobs without a measured part: those that only create files (`create_only`), and engines without I/O
//! (`exec`, `cpuio`).
//!
//! Options about measuring have no effect there, which is noted, and none of them stays in the plan: no log
//! is replaced by an empty one, and no job waits for a part that is never measured.

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope};
use crate::options::content::rows::VERIFY_ONLY;
use crate::options::limits::rows::{RAMP_TIME, RUNTIME};
use crate::options::target::rows::CREATE_ONLY;
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{EngineKind, Guard, JobPlan, LogPlan, Verify};

/// Notes the options that have no effect on a job without a measured part.
///
/// # Errors
/// A job that would succeed without doing what it sets.
pub(super) fn note_idle(values: &JobInput<'_>, engine: EngineKind) -> Result<((), Decisions), Refusal> {
    let mut decisions = Decisions::default();
    if values.get(CREATE_ONLY) {
        if values.get(VERIFY_ONLY) {
            let rule = Rule::Contradiction {
                one: values.quote(CREATE_ONLY),
                other: values.quote(VERIFY_ONLY),
                reason: "nothing would be compared",
                case: Case::CreatesAndVerifies,
            };
            return Err(values.refuse(VERIFY_ONLY, rule));
        }
        note(values, &mut decisions, "the job only creates files (`create_only`)", |row| {
            row.scope.contains(&Scope::Measured)
        });
    } else if !engine.does_io() {
        let because = format!("{} does no I/O", engine.name());
        // With an end, the program runs through the ramps of parallel jobs.
        let has_ramp = values.get(RUNTIME).is_some();
        note(values, &mut decisions, &because, |row| {
            !(row.scope.contains(&Scope::WithoutIo) || has_ramp && *row == RAMP_TIME.row())
        });
    }
    Ok(((), decisions))
}

/// Notes these options if they were set, unless a note already reports that they have no effect.
fn note(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    because: &str,
    is_meant: impl Fn(&&'static OptionRow) -> bool,
) {
    for name in values.all_set().filter(|row| values.is_explicit(row) && is_meant(row)) {
        let sentence = format!("{} has no effect", values.quote(name));
        let beginning = format!("job `{}`: {sentence}", values.job);
        if !values.notes.iter().any(|note| note.starts_with(&beginning)) {
            decisions.note(format!("{sentence}: {because}"));
        }
    }
}

/// Removes everything from the plan of a job without a measured part that only a measured part has.
pub(super) fn strip(job: &mut JobPlan) {
    if job.is_measured() {
        return;
    }
    (job.pace, job.think, job.replay) = (None, None, None);
    // A job that only creates files saves the state of no write, as in fio.
    let saves_state = |verify: &Verify| verify.saves_state && job.handling.creates_only;
    job.verify = job.verify.take().filter(saves_state).map(|verify| Verify { reads_back: false, ..verify });
    job.guard = Guard::default();
    (job.control.latency_target, job.control.criterion, job.control.flow) = (None, None, None);
    job.output.logs = LogPlan::default();
    (job.trace_syscalls, job.strace, job.pre_read) = (false, false, false);
}
