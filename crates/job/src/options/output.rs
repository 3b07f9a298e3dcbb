//! Logs and fio's outputs.

pub(crate) mod logs;
pub mod rows;

use crate::input::{Decisions, JobInput};
use crate::options::engine::Engine;
use crate::options::output::rows::WRITE_IOLOG;
use crate::options::pattern::replay::plan_iolog;
use crate::options::target::files::JobFile;
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::OutputPlan;

/// Plans logs and reporting.
pub(crate) fn plan(job: &JobInput<'_>, engine: &Engine, files: &[JobFile]) -> Result<(OutputPlan, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let paths: Vec<&str> = files.iter().map(|file| file.plan.path.as_str()).collect();
    let iolog = plan_iolog(job, &paths)?;
    let kind = engine.kind;
    if iolog.is_some() && (engine.is_command || kind.works_on_names() || !kind.does_io()) {
        let lack = "issues no I/O that `write_iolog` could record".into();
        let rule = Rule::EngineLacks { engine: kind, lack, case: Case::EngineLogs };
        return Err(job.refuse(WRITE_IOLOG, rule));
    }
    let mut output = logs::plan_output(job, &mut decisions);
    output.logs.iolog = iolog;
    output.names = engine.counted.as_ref().map(|counted| counted.counts());
    Ok((output, decisions))
}
