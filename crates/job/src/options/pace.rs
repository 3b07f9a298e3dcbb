//! Rates and pauses.

pub(crate) mod control;
pub(crate) mod rates;
pub mod rows;

use crate::input::{Decisions, JobInput};
use crate::options::engine::Engine;
use crate::options::limits::ends::plan_steady_state;
use crate::options::shape::Shape;
use crate::options::target::files::JobFile;
use crate::refusal::Refusal;
use trueio_model::{Control, Guard, Pace, SteadyPlan, Think, Verify};

/// How fast a job goes, and what steers it while it runs.
pub(crate) struct Speed {
    pub(crate) pace: Option<Pace>,
    pub(crate) guard: Guard,
    pub(crate) think: Option<Think>,
    pub(crate) steady_state: Option<SteadyPlan>,
    pub(crate) control: Control,
}

/// Plans rates, pauses, and what steers the job while it runs.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    files: &[JobFile],
    verify: Option<&Verify>,
) -> Result<(Speed, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let mut pace = rates::plan_pace(job, &mut decisions, shape.ops.mix, verify)?;
    let mut guard = rates::plan_guard(job, &mut decisions, shape.ops.mix);
    if let Some(counted) = &engine.counted {
        counted.slow(&mut pace, &mut guard);
    }
    let think = rates::plan_think(job, &mut decisions);
    let steady_state = plan_steady_state(job, &mut decisions, files, verify)?;
    let control = control::plan_control(job, &mut decisions)?;
    Ok((Speed { pace, guard, think, steady_state, control }, decisions))
}
