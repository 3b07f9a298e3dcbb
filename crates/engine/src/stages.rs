//! What some jobs need between their I/Os.
//!
//! A stage is one file with its own state. It sees the loop through a [`View`] and takes part in it by the methods of
//! [`Stage`]; all of them have defaults. A job without stages is compiled without them ([`NoStages`]); a job with
//! stages has those that its plan needs ([`JobStages`]), chosen once.
//!
//! | stage          | job                                                        |
//! |----------------|------------------------------------------------------------|
//! | `overlap`      | `serialize_overlap`, `verify`, trims before writes         |
//! | `verify`       | `verify`: seals blocks, compares them, reads them back     |
//! | `think`        | `thinktime`                                                |
//! | `flow`         | `flow`                                                     |
//! | `pace`         | `rate`, `rate_iops`                                        |
//! | `replay`       | `read_iolog` with the log's times                          |
//! | `file_locks`   | `lockfile`                                                 |
//! | `zones`        | `zonemode = zbd`                                           |
//! | `source`       | bytes fetched from a server                                |
//! | `passes`       | pages dropped or files made again before a further pass    |
//! | `low_water`    | `iodepth_low`                                              |
//! | `search`       | `latency_target`                                           |
//! | `spans`        | `steadystate`                                              |
//! | `guard`        | `rate_min`, `rate_iops_min`, `max_latency`                 |
//! | `priorities`   | `cmdprio_*`                                                |
//! | `samples`      | runs whose requests are traced                             |
//! | `logs`         | logs of completed I/Os                                     |
//! | `trace`        | runs with a trace of every I/O                             |
//! | `iolog`        | `write_iolog`, I/Os shown one by one                       |
//!
//! I/Os are admitted in this order and completed in the reverse one: a stage sees an I/O complete after the stages
//! that admitted it later.

mod file_locks;
mod flow;
mod guard;
mod iolog;
mod logs;
mod low_water;
mod overlap;
mod pace;
mod passes;
mod priorities;
mod replay;
mod samples;
mod search;
mod source;
mod spans;
mod think;
mod trace;
mod verify;
mod zones;

pub(crate) use crate::view::{Admission, Done, SyncDone};
pub use verify::save_empty_state;

use crate::clock::Clock;
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::WorkerReport;
use crate::request::{Request, Step};
use crate::view::{StepQueue, View};
use std::fmt::Debug;
use std::ops::Range;

/// What a stage takes part in for each I/O.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hooks {
    /// [`Stage::admit`], [`Stage::issued`].
    pub(crate) is_issuing: bool,
    /// [`Stage::completed`].
    pub(crate) is_completing: bool,
    /// [`Stage::making_room`].
    pub(crate) is_making_room: bool,
}

/// What a job may need between its I/Os. Every method has a default that compiles to nothing.
pub(crate) trait Stage: Debug {
    /// Returns what the stage takes part in for each I/O.
    #[inline(always)]
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// Called before the worker waits for the phase's start.
    #[inline(always)]
    fn prepare(&mut self, _view: &mut View<'_, '_>) {}

    /// Called when the worker begins, before the ramp. Stages begin in the reverse order of admission.
    #[inline(always)]
    fn begin(&mut self, _view: &mut View<'_, '_>) {}

    /// Called when the measured part begins.
    #[inline(always)]
    fn measure(&mut self, _now: u64, _view: &mut View<'_, '_>) {}

    /// Changes a block of steps before it is used; returns how many of them are, `None` if the job has no more steps. `taken`
    /// steps came before.
    #[inline(always)]
    fn refilled(&mut self, steps: &mut [Step], _taken: u64) -> Option<usize> {
        Some(steps.len())
    }

    /// Admits the next I/O, or returns what it has to wait for. May change the request.
    ///
    /// # Errors
    /// If the engine failed at an I/O of the stage's own.
    #[inline(always)]
    fn admit(&mut self, _request: &mut Request, _view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        Ok(Admission::Ready)
    }

    /// Admits the next sync call. Nothing is in flight.
    #[inline(always)]
    fn admit_sync(&mut self, _view: &mut View<'_, '_>) -> Admission {
        Admission::Ready
    }

    /// Waits for what [`Admission::Outside`] stands for, briefly while I/Os are in flight.
    #[inline(always)]
    fn wait(&mut self, _view: &mut View<'_, '_>) {}

    /// The data of a write is in the pool's buffer of this number.
    #[inline(always)]
    fn filled(&mut self, _buffer: usize, _request: &Request, _view: &mut View<'_, '_>) {}

    /// The I/O in `slot` was queued.
    #[inline(always)]
    fn issued(&mut self, _slot: u32, _view: &mut View<'_, '_>) {}

    /// A sync call is about to be made.
    #[inline(always)]
    fn syncing(&mut self, _step: &Step, _view: &mut View<'_, '_>) {}

    /// A sync call returned.
    #[inline(always)]
    fn synced(&mut self, _call: &SyncDone, _view: &mut View<'_, '_>) {}

    /// A further pass over a file begins, or over all (`None`), with the job's next loop or without. Nothing is in flight.
    #[inline(always)]
    fn next_pass(&mut self, _file: Option<u16>, _ends_loop: bool, _view: &mut View<'_, '_>) {}

    /// `count` slots become free at `now`.
    #[inline(always)]
    fn making_room(&mut self, _count: usize, _now: u64, _view: &mut View<'_, '_>) {}

    /// An I/O completed.
    #[inline(always)]
    fn completed(&mut self, _done: &Done, _view: &mut View<'_, '_>) {}

    /// What was written to these bytes of a file is gone.
    #[inline(always)]
    fn emptied(&mut self, _file: u16, _bytes: &Range<u64>) {}

    /// An interval of the series ends, `end_ns` after the beginning of the measured part.
    #[inline(always)]
    fn at_interval(&mut self, _end_ns: u64, _view: &mut View<'_, '_>) {}

    /// The clock has passed an event of the loop, or [`Stage::next_event`].
    #[inline(always)]
    fn at_event(&mut self, _now: u64, _view: &mut View<'_, '_>) {}

    /// Returns when [`Stage::at_event`] is to be called.
    #[inline(always)]
    fn next_event(&self) -> u64 {
        u64::MAX
    }

    /// The job has no more I/Os of its own: the stage does those that are still due, within the measured time.
    #[inline(always)]
    fn complete_rest(&mut self, _view: &mut View<'_, '_>) {}

    /// The last measured I/O was done: the stage gives back what it shares with other workers.
    #[inline(always)]
    fn leave(&mut self, _view: &mut View<'_, '_>) {}

    /// All workers of the phase have done their last measured I/O: what is not measured follows.
    #[inline(always)]
    fn finish(&mut self, _view: &mut View<'_, '_>) {}

    /// Adds the stage's results to the report.
    #[inline(always)]
    fn report(&mut self, _report: &mut WorkerReport, _view: &mut View<'_, '_>) {}
}

/// The stages of a job that has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoStages;

impl Stage for NoStages {}

/// The stages of a job, in the order of admission.
#[derive(Debug)]
pub(crate) struct JobStages<'a> {
    stages: Vec<Box<dyn Stage + 'a>>,
    hooks: Hooks,
    /// The stage that answered [`Admission::Outside`] last.
    waiting: usize,
}

impl<'a> JobStages<'a> {
    /// Chooses the stages of a worker. If one of them cannot be made, returns why as well.
    pub(crate) fn new(context: &'a WorkerContext<'a>, clock: &dyn Clock, steps: &StepQueue) -> (Self, Option<String>) {
        let mut stages: Vec<Box<dyn Stage + 'a>> = Vec::new();
        let mut fault = None;
        let mut keep = |stage: Result<Option<Box<dyn Stage + 'a>>, String>| match stage {
            Ok(stage) => stages.extend(stage),
            Err(sentence) => fault = fault.take().or(Some(sentence)),
        };
        let iolog = iolog::SharedIolog::new(context);
        let log = logs::SharedLog::new(context);
        keep(Ok(overlap::Overlap::stage(context)));
        keep(verify::Verifier::stage(context, iolog.clone(), log.clone()));
        keep(Ok(think::Thinking::stage(context)));
        keep(Ok(flow::FlowMember::stage(context)));
        keep(Ok(pace::Pace::stage(context)));
        keep(Ok(replay::LogTimes::stage(context)));
        keep(Ok(file_locks::FileLocks::stage(context)));
        keep(zones::Zoned::stage(context, steps.unit_bytes()));
        keep(Ok(source::Supply::stage(context)));
        keep(Ok(passes::Passes::stage(context)));
        keep(Ok(low_water::LowWater::stage(context)));
        keep(Ok(search::Search::stage(context, clock)));
        keep(Ok(spans::Spans::stage(context, clock)));
        keep(Ok(guard::Watch::stage(context)));
        keep(Ok(priorities::Priorities::stage(context)));
        keep(Ok(samples::Samples::stage(context, clock)));
        keep(Ok(log.map(|log| log.stage())));
        keep(Ok(trace::Trace::stage(context)));
        keep(Ok(iolog.map(|iolog| iolog.stage())));
        let mut stages = Self { stages, hooks: Hooks::default(), waiting: 0 };
        stages.renew_hooks();
        (stages, fault)
    }

    /// Returns true if the job needs no stage.
    pub(crate) fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    fn renew_hooks(&mut self) {
        let mut hooks = Hooks::default();
        for of in self.stages.iter().map(|stage| stage.hooks()) {
            hooks.is_issuing |= of.is_issuing;
            hooks.is_completing |= of.is_completing;
            hooks.is_making_room |= of.is_making_room;
        }
        self.hooks = hooks;
    }

    /// Notifies all stages of zones that one of them emptied.
    fn publish_emptied(&mut self, view: &mut View<'_, '_>) {
        while let Some((file, bytes)) = view.state.emptied.pop() {
            self.stages.iter_mut().for_each(|stage| stage.emptied(file, &bytes));
        }
    }
}

impl Stage for JobStages<'_> {
    #[inline(always)]
    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn prepare(&mut self, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.prepare(view));
    }

    fn begin(&mut self, view: &mut View<'_, '_>) {
        self.stages.iter_mut().rev().for_each(|stage| stage.begin(view));
        self.publish_emptied(view);
    }

    fn measure(&mut self, now: u64, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.measure(now, view));
        self.renew_hooks();
    }

    fn refilled(&mut self, steps: &mut [Step], taken: u64) -> Option<usize> {
        let mut count = steps.len();
        for stage in &mut self.stages {
            count = stage.refilled(&mut steps[..count], taken)?;
        }
        Some(count)
    }

    #[cold]
    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        for index in 0..self.stages.len() {
            match self.stages[index].admit(request, view)? {
                Admission::Ready => {}
                answer => {
                    self.waiting = index;
                    self.publish_emptied(view);
                    return Ok(answer);
                }
            }
        }
        self.publish_emptied(view);
        Ok(Admission::Ready)
    }

    fn admit_sync(&mut self, view: &mut View<'_, '_>) -> Admission {
        let answers = self.stages.iter_mut().map(|stage| stage.admit_sync(view));
        answers.into_iter().find(|answer| *answer != Admission::Ready).unwrap_or(Admission::Ready)
    }

    fn wait(&mut self, view: &mut View<'_, '_>) {
        self.stages[self.waiting].wait(view);
    }

    fn filled(&mut self, buffer: usize, request: &Request, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.filled(buffer, request, view));
    }

    #[cold]
    fn issued(&mut self, slot: u32, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.issued(slot, view));
    }

    fn syncing(&mut self, step: &Step, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.syncing(step, view));
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        self.stages.iter_mut().rev().for_each(|stage| stage.synced(call, view));
    }

    fn next_pass(&mut self, file: Option<u16>, ends_loop: bool, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.next_pass(file, ends_loop, view));
    }

    fn making_room(&mut self, count: usize, now: u64, view: &mut View<'_, '_>) {
        view.state.queue.note_room(now);
        self.stages.iter_mut().for_each(|stage| stage.making_room(count, now, view));
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        self.stages.iter_mut().rev().for_each(|stage| stage.completed(done, view));
        self.publish_emptied(view);
    }

    fn at_interval(&mut self, end_ns: u64, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.at_interval(end_ns, view));
    }

    fn at_event(&mut self, now: u64, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.at_event(now, view));
        self.renew_hooks();
    }

    fn next_event(&self) -> u64 {
        self.stages.iter().map(|stage| stage.next_event()).min().unwrap_or(u64::MAX)
    }

    fn complete_rest(&mut self, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.complete_rest(view));
    }

    fn leave(&mut self, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.leave(view));
    }

    fn finish(&mut self, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.finish(view));
    }

    fn report(&mut self, report: &mut WorkerReport, view: &mut View<'_, '_>) {
        self.stages.iter_mut().for_each(|stage| stage.report(report, view));
    }
}
