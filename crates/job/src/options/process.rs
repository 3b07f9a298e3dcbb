//! Processors, priorities and errors.

pub(crate) mod control_group;
pub(crate) mod numa;
pub(crate) mod priority;
pub mod rows;
pub(crate) mod tolerance;
pub(crate) mod user;

use crate::input::{Decisions, JobInput};
use crate::options::engine::Engine;
use crate::options::limits::rows::{EXIT_WHAT, EXITALL, EXITALL_ON_ERROR, ExitWhat, START_AFTER_FAILURE};
use crate::options::shape::Shape;
use crate::refusal::{Refusal, Rule};
use rows::{CPUS_ALLOWED, CPUS_ALLOWED_POLICY, CpusPolicy, NICE, PRIOHINT};
use trueio_model::{ControlGroupPlan, DirectPolicy, MemoryPolicy, PriorityShare, Scheduling, Tolerance, UserPlan};

/// How a job's workers run.
pub(crate) struct Workers {
    pub(crate) tolerance: Tolerance,
    pub(crate) priorities: Vec<PriorityShare>,
    pub(crate) cpus: Vec<u32>,
    pub(crate) memory_policy: Option<MemoryPolicy>,
    pub(crate) scheduling: Scheduling,
    pub(crate) nice: Option<i32>,
    pub(crate) user: Option<UserPlan>,
    pub(crate) control_group: Option<ControlGroupPlan>,
}

/// Plans processors, priorities, the user, and errors that are tolerated.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    direct: DirectPolicy,
    fills: bool,
) -> Result<(Workers, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let priorities = priority::plan_shares(job, &mut decisions, shape, engine.kind, direct)?;
    let tolerance = tolerance::plan_tolerance(job, fills);
    let nodes = numa::plan_nodes(job)?;
    let (runs_on_nodes, memory_policy) = (nodes.cpus.is_some(), nodes.memory_policy);
    let cpus = nodes.cpus.unwrap_or_else(|| job.get(CPUS_ALLOWED).unwrap_or(&[]).to_vec());
    if let Some(cpu) = cpus.iter().find(|cpu| !job.machine.cpus.is_empty() && !job.machine.cpus.contains(cpu)) {
        return Err(job.refuse(CPUS_ALLOWED, Rule::ProcessorNotThere { option: CPUS_ALLOWED.name, cpu: *cpu }));
    }
    let user = user::plan_user(job, &mut decisions)?;
    let control_group = control_group::plan_control_group(job, &mut decisions)?;
    let nice = job.get(NICE).map(|nice| i32::try_from(nice).expect("the row's bounds keep it small"));
    let scheduling = plan_scheduling(job, &mut decisions)?;
    let scheduling = Scheduling { shares_cpus: runs_on_nodes || scheduling.shares_cpus, ..scheduling };
    Ok((Workers { tolerance, priorities, cpus, memory_policy, scheduling, nice, user, control_group }, decisions))
}

/// Processors and I/O priority.
fn plan_scheduling(job: &JobInput<'_>, decisions: &mut Decisions) -> Result<Scheduling, Refusal> {
    if job.get(CPUS_ALLOWED).is_none() {
        decisions.note_unused(job, &[CPUS_ALLOWED_POLICY.row()], "no processors are named");
    }
    if !job.get(EXITALL) {
        decisions.note_unused(job, &[EXIT_WHAT.row()], "the job ends no others (`exitall`)");
    }
    let io_hint = u16::try_from(job.get(PRIOHINT)).unwrap_or(0);
    Ok(Scheduling {
        shares_cpus: job.get(CPUS_ALLOWED_POLICY) == CpusPolicy::Shared,
        io_priority: priority::plan_own_priority(job, io_hint)?,
        io_hint,
        ends_others: job.get(EXITALL),
        ends_others_on_error: job.get(EXITALL_ON_ERROR),
        starts_after_failure: job.get(START_AFTER_FAILURE),
        ends_run: job.get(EXITALL) && job.get(EXIT_WHAT) == ExitWhat::All,
    })
}
