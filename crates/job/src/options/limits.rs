//! When a job begins and ends.

pub(crate) mod ends;
pub(crate) mod follow;
pub mod rows;

use crate::input::{Decisions, JobInput};
use crate::options::engine::Engine;
use crate::options::pattern::replay::Replayed;
use crate::options::pattern::shares::{FileOrder, check_distribution, plan_file_order};
use crate::options::shape::Shape;
use crate::options::target::files::JobFile;
use crate::options::target::streams::spread_bytes;
use crate::refusal::Refusal;
use crate::value::write_bytes;
use ends::{PassLimits, Passing, plan_limits, plan_times, unit_of};
use rows::IO_SIZE;
use trueio_model::{FileSelection, Follow, Limits};

/// When a job ends, and the order in which it uses its files.
pub(crate) struct Ends {
    pub(crate) limits: Limits,
    pub(crate) follows: Option<Follow>,
    /// Bytes that one pass over the files transfers.
    pub(crate) pass_bytes: u64,
    pub(crate) selection: FileSelection,
    pub(crate) ios_per_file: u32,
    pub(crate) files_at_a_time: u32,
}

/// Plans when a job ends. `ends_otherwise`: zones, or a body that is fetched, end its passes.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    replayed: Option<&Replayed>,
    files: &[JobFile],
    ends_otherwise: bool,
) -> Result<(Ends, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    if replayed.is_none() {
        let unit_bytes = unit_of(&shape.used());
        check_distribution(job, &shape.order, files, unit_bytes)?;
    }
    let FileOrder { selection, ios_per_file, files_at_a_time } = plan_file_order(job, &mut decisions, files.len())?;
    let PassLimits { mut limits, pass_bytes } = match replayed {
        Some(replayed) => {
            decisions.derive(IO_SIZE, write_bytes(replayed.bytes()), "what the log transfers");
            let pass_bytes = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
            let limits = Limits { io_bytes: replayed.bytes(), loops: 1, io_count: None, ..plan_times(job) };
            PassLimits { limits, pass_bytes }
        }
        None => {
            let (order, steps, used) = (&shape.order, &shape.steps, &shape.used());
            let (engine, ops, spread_bytes) = (engine.kind, shape.ops, spread_bytes(job));
            let passing = Passing { engine, ops, order, steps, used, files, spread_bytes, ends_otherwise };
            plan_limits(job, &mut decisions, &passing)?
        }
    };
    if let Some(counted) = &engine.counted {
        counted.limit(&mut limits);
        decisions.derive(IO_SIZE, limits.io_bytes.to_string(), "names, one byte each");
    }
    let follows = follow::plan_follow(job)?;
    Ok((Ends { limits, follows, pass_bytes, selection, ios_per_file, files_at_a_time }, decisions))
}
