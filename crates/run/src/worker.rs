//! One worker of a job, on a thread of its own: applies the thread's settings, then runs what the job is.
//!
//! A measured job goes to the engine. The others do no measured I/O: `exec` runs a program next to other jobs, `cpuio`
//! keeps a processor busy, a `command` is a program that does the I/O, `create_only` only prepares files.

mod command;
mod cpu_load;
mod exec;
mod thread;

use crate::control_group::join;
use crate::output_file::{Before, create_or_next_to};
use crate::replayed::open_log;
use crate::source::open_body;
use thread::{act_as_user, apply_scheduling};
use trueio_engine::{Host, WorkerContext, WorkerReport};
use trueio_job::Content;

/// What a run provides to its workers.
pub const HOST: Host = Host {
    create_file: |plan, path| {
        let created = create_or_next_to(path, Content::VerifyState, Before::planned(&plan.output, path))?;
        Ok((created.file, created.problem))
    },
    open_body,
    open_log,
};

/// Runs one worker to its end on the calling thread, which takes on the job's settings for good. Blocks until the
/// phase's start is opened.
pub fn run_worker(context: &WorkerContext<'_>) -> WorkerReport {
    let plan = context.plan;
    if plan.command.is_some() || !plan.is_measured() {
        // No figures exist while it runs.
        context.publish(WorkerReport::empty);
    }
    let report = match (&plan.command, &plan.exec, &plan.cpu_load) {
        (Some(command), ..) => Ok(command::run(context, command)),
        _ if plan.handling.creates_only => {
            context.reached();
            let mut report = WorkerReport::empty();
            match trueio_engine::save_empty_state(context) {
                Some(Ok(note)) => report.engine_notes.push(note),
                Some(Err(reason)) => report.fatal = Some(reason),
                None => {}
            }
            context.finished(report.fatal.is_some());
            Ok(report)
        }
        // The program takes on the user, this thread does not: it has to end the program.
        (_, Some(program), _) => {
            join(plan).and_then(|()| apply_scheduling(plan, context.worker)).map(|()| exec::run(context, program))
        }
        (.., Some(load)) => join(plan)
            .and_then(|()| apply_scheduling(plan, context.worker))
            .and_then(|()| act_as_user(plan))
            .map(|()| cpu_load::run(context, load)),
        _ => join(plan)
            .and_then(|()| apply_scheduling(plan, context.worker))
            .and_then(|()| act_as_user(plan))
            .map(|()| trueio_engine::run_worker(context)),
    };
    report.unwrap_or_else(|error| context.give_up(error))
}
