//! The I/O engine and its queue.

pub(crate) mod choice;
pub(crate) mod command;
pub mod rows;

use crate::input::{Decisions, JobInput};
use crate::options::durability::rows::{ATOMIC, NOWAIT, RWF_DSYNC, UNCACHED};
use crate::options::pattern::replay::Replayed;
use crate::options::pattern::rows::{BS, BSRANGE, BSSPLIT};
use crate::options::shape::Shape;
use crate::options::target::names::{CountedNames, counts_blocks};
use crate::refusal::{Case, Refusal, Rule};
use rows::{IOENGINE, SIMULATED};
use trueio_model::{CpuLoad, EngineKind, ExecPlan, Queue, SimulatedDevice, UringOptions, WriteFlags};

/// The engine of a job and how I/O is submitted to it.
pub(crate) struct Engine {
    pub(crate) kind: EngineKind,
    pub(crate) is_command: bool,
    pub(crate) flags: WriteFlags,
    pub(crate) uring: UringOptions,
    pub(crate) queue: Queue,
    pub(crate) counted: Option<CountedNames>,
    pub(crate) exec: Option<ExecPlan>,
    pub(crate) cpu_load: Option<CpuLoad>,
    pub(crate) simulated: Option<SimulatedDevice>,
}

/// Plans the engine and its queue.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    replayed: Option<&Replayed>,
) -> Result<(Engine, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let ops = shape.ops;
    let flags = WriteFlags {
        dsync: job.get(RWF_DSYNC),
        dontcache: job.get(UNCACHED),
        atomic: job.get(ATOMIC),
        hipri: false,
        hipri_percent: None,
        nowait: job.get(NOWAIT),
    };
    let is_command = command::check_command(job, ops.mix, ops.is_random)?;
    let kind = match is_command {
        true => {
            decisions.derive(IOENGINE, EngineKind::Command.name(), "`command` does the I/O");
            EngineKind::Command
        }
        false => choice::plan_engine(job, &mut decisions, ops, flags)?,
    };
    if let Some(replayed) = replayed {
        replayed.check_engine(job, kind)?;
    }
    let counted = match kind.works_on_names() {
        true if counts_blocks(job) => {
            let used: Vec<_> = shape.used().into_iter().map(|(_, sizes)| sizes).collect();
            Some(CountedNames::of(job, kind, &used, shape.sizes_option)?)
        }
        true => {
            decisions.note_unused(job, &[BS.row(), BSRANGE.row(), BSSPLIT.row()], "names have no size");
            None
        }
        false => None,
    };
    let (flags, uring) = choice::plan_engine_options(job, &mut decisions, kind, ops, flags)?;
    let queue = choice::plan_queue(job, &mut decisions, kind)?;
    let simulated = match kind {
        EngineKind::Simulated => Some(job.get(SIMULATED).clone()),
        _ if job.is_set(SIMULATED) => {
            let lack = "is no model of a disk".into();
            let rule = Rule::EngineLacks { engine: kind, lack, case: Case::Simulated };
            return Err(job.refuse(SIMULATED, rule));
        }
        _ => None,
    };
    let exec = command::plan_exec(job, &mut decisions, kind)?;
    let cpu_load = choice::plan_cpu_load(job, &mut decisions, kind)?;
    Ok((Engine { kind, is_command, flags, uring, queue, counted, exec, cpu_load, simulated }, decisions))
}
