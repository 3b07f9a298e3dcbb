//! The loop of a job's thread: next step → admission by stages → queue → submit → reap → record → events.
//!
//! Timestamps are shared: one reading just before a submission serves all I/Os of that submission, one just after it
//! serves as their submission time, and one after each reaping serves all its completions. If completions are already
//! there when the submission returns, the reading after it is theirs too. So a latency contains the time that its
//! neighbours in the same batch took to be submitted; the size of batches is therefore limited by the latency itself,
//! unless the job sets a size. Cached buffered reads are the one exception ([`crate::view::Batch`]).
//!
//! Once the loop runs, only the first use of a histogram allocates; failures take the cold path. What some jobs need: [`crate::stages`].

mod events;
mod finish;
mod launch;

pub use launch::{run_worker, run_worker_on};

use crate::clock::Clock;
use crate::engines::{Engine, EngineError};
use crate::recorder::WorkerReport;
use crate::request::{Request, Step};
use crate::stages::Stage;
use crate::view::{Admission, Call, Done, LoopState, Run, StepQueue, View};
use std::sync::atomic::Ordering::Relaxed;
use trueio_model::{OpKind, QueueCounts, error_line};

/// One thread of a job, on one engine and one clock, with the stages of the job.
#[derive(Debug)]
pub(crate) struct Worker<'a, E, C, S> {
    engine: E,
    clock: C,
    state: LoopState<'a>,
    stages: S,
}

/// What stages see of a worker.
macro_rules! view {
    ($worker:ident) => {
        View {
            state: &mut $worker.state,
            engine: &mut $worker.engine,
            clock: &$worker.clock,
            scale: $worker.clock.scale(),
            blocks: E::BLOCKS,
        }
    };
}
use view;

impl<E: Engine, C: Clock, S: Stage> Worker<'_, E, C, S> {
    /// Waits for the start, does everything, and reports.
    pub(crate) fn run(mut self: Box<Self>) -> WorkerReport {
        self.stages.prepare(&mut view!(self));
        if !E::BLOCKS {
            // A worker that blocks in its first I/O needs one of them only, and others run meanwhile.
            self.state.recorder.reserve();
        }
        let context = self.state.context;
        // Its first reading looks up the thread's folder in /proc, which takes longer than the reading itself.
        context.usage();
        context.reached();
        self.state.time.started = self.clock.now();
        view!(self).delay_start();
        // Before the time begins: a wait for a processor in between would be in the time, and not among the waits.
        self.state.usage_from = context.usage();
        self.state.time.started = self.clock.now();
        self.stages.begin(&mut view!(self));
        self.state.time.begin(&context.plan.limits, &self.clock);
        if !self.state.time.is_ramping {
            self.stages.measure(self.state.time.started, &mut view!(self));
        }
        // Yielding the processor would delay the completions of other I/Os in flight, and traced system calls must be those of the I/Os.
        self.state.time.makes_way =
            context.start.is_crowded() && context.plan.queue.depth == 1 && !context.plan.trace_syscalls;
        events::set_next(&mut self);
        if let Err(error) = self.issue_all() {
            self.state.outcome.fatal.get_or_insert(error_line(&error));
        }
        finish::finish(self)
    }

    /// The loop itself.
    fn issue_all(&mut self) -> Result<(), EngineError> {
        let complete_min = self.state.complete_min();
        loop {
            self.heed_stop();
            let (queued, wait) = self.queue_steps()?;
            let (mut count, mut now, mut call) = (0, 0, Call { queued: 0, ns: 0, is_alone: false });
            if queued > 0 {
                (count, now, call) = self.submit(queued)?;
            }
            if count == 0 {
                let in_flight = self.state.queue.in_flight();
                let (min, timeout_ns) = match wait {
                    Admission::Ready if !self.state.queue.has_room() => (complete_min.min(in_flight), None),
                    Admission::Ready => {
                        // The queue is not full yet: the next submission. Filling a deep one may take longer than an
                        // interval, and end after the deadline.
                        self.handle_events_by(now);
                        continue;
                    }
                    Admission::Drain if in_flight == 0 && self.state.outcome.is_done => return self.complete_pair(),
                    Admission::Drain if in_flight == 0 => continue,
                    Admission::Drain => (1, None),
                    _ => match self.wait(wait, in_flight) {
                        Some(limits) => limits,
                        None => continue,
                    },
                };
                count = self.engine.reap(min, timeout_ns, &mut self.state.completions)?;
                now = self.clock.now();
            }
            self.handle_events_by(now);
            self.complete(count, now, &call);
            if count > 0 {
                self.state.time.last = now;
            }
        }
    }

    /// Takes steps until a submission is full; returns how many I/Os were queued, and what the next step waits for.
    #[inline(always)]
    fn queue_steps(&mut self) -> Result<(usize, Admission), EngineError> {
        let mut queued = 0;
        if self.state.outcome.is_done {
            return Ok((queued, Admission::Drain));
        }
        while queued < self.state.batch.size && self.state.queue.has_room() {
            let Some(step) = self.state.steps.peek() else {
                if self.refill() {
                    continue;
                }
                return Ok((queued, Admission::Drain));
            };
            // A copy of the whole step is written in overlapping halves, and reading a field of it waits for both.
            let &Step::Io(mut request) = step else {
                let step = *step;
                match self.step_alone(step) {
                    Admission::Ready => continue,
                    wait => return Ok((queued, wait)),
                }
            };
            if self.stages.hooks().is_issuing {
                match self.stages.admit(&mut request, &mut view!(self))? {
                    Admission::Ready => {}
                    Admission::Skip => {
                        self.state.steps.advance();
                        return Ok((queued, Admission::Again));
                    }
                    wait => return Ok((queued, wait)),
                }
            }
            self.queue_io(&request);
            queued += 1;
        }
        Ok((queued, Admission::Ready))
    }

    /// Queues an I/O that was admitted, in a free slot.
    #[inline(always)]
    fn queue_io(&mut self, request: &Request) {
        StepQueue::assert_planned(self.state.context, request);
        self.state.steps.advance();
        let slot = self.state.queue.take();
        let mut buffer = slot as usize;
        if request.op == OpKind::Write {
            buffer += self.state.payload.writes_from;
            if self.state.payload.needs_data() {
                self.state.payload.fill(buffer, request);
                self.stages.filled(buffer, request, &mut view!(self));
            }
        }
        let pointer = self.state.payload.pointer(buffer, request);
        // SAFETY: the buffer is the slot's own and holds the I/O (`Payload::pointer`). Until the slot is given back, after
        // its completion was reaped, nothing borrows it, and it is freed only with nothing in flight (`finish`).
        unsafe { self.engine.queue(slot, request, pointer) };
        self.state.queue.slot_mut(slot).request = *request;
        if self.stages.hooks().is_issuing {
            self.stages.issued(slot, &mut view!(self));
        }
    }

    /// Writes the block that a job of trims and writes has trimmed, if the job ended between the two: the pair is one step, also
    /// when the time is up or the run is stopped. Nothing is in flight.
    ///
    /// Limit: a write that `thinktime` or `flow` holds back is not made.
    #[cold]
    fn complete_pair(&mut self) -> Result<(), EngineError> {
        let plan = self.state.context.plan;
        if !plan.pattern.steps.trims_first || self.state.steps.is_exhausted() || self.state.outcome.has_failed(plan) {
            return Ok(());
        }
        if self.state.steps.peek().is_none() && !self.refill() {
            return Ok(());
        }
        let Some(&Step::Io(mut request)) = self.state.steps.peek() else { return Ok(()) };
        if request.op != OpKind::Write
            || (self.stages.hooks().is_issuing
                && self.stages.admit(&mut request, &mut view!(self))? != Admission::Ready)
        {
            return Ok(());
        }
        self.queue_io(&request);
        let (mut count, mut now, call) = self.submit(1)?;
        while count == 0 {
            count = self.engine.reap(1, None, &mut self.state.completions)?;
            now = self.clock.now();
        }
        self.handle_events_by(now);
        self.complete(count, now, &call);
        self.state.time.last = now;
        Ok(())
    }

    /// Takes the next block of steps; false if the job has no more.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        let (clock, started, stages) = (&self.clock, self.state.time.started, &mut self.stages);
        let elapsed_ns = || clock.to_ns(clock.now().saturating_sub(started));
        let has_steps = self.state.steps.refill(elapsed_ns, |steps, taken| stages.refilled(steps, taken));
        if !has_steps {
            self.state.outcome.is_done = true;
            self.state.outcome.fatal = self.state.outcome.fatal.take().or_else(|| self.state.steps.fault());
        }
        has_steps
    }

    /// Does a step that needs nothing else in flight.
    #[cold]
    fn step_alone(&mut self, step: Step) -> Admission {
        if self.state.queue.in_flight() > 0 {
            return Admission::Drain;
        }
        if let Step::NextPass { file, ends_loop } = step {
            self.state.steps.advance();
            self.stages.next_pass(file, ends_loop, &mut view!(self));
        } else {
            let wait = self.stages.admit_sync(&mut view!(self));
            if wait != Admission::Ready {
                return wait;
            }
            self.state.steps.advance();
            self.stages.syncing(&step, &mut view!(self));
            self.sync(step);
        }
        if self.state.outcome.is_done { Admission::Again } else { Admission::Ready }
    }

    /// Makes a sync call, with nothing in flight.
    #[cold]
    fn sync(&mut self, step: Step) {
        let before = self.clock.now();
        let result = view!(self).sync(&step);
        let now = self.clock.now();
        self.handle_events_by(now);
        let call = view!(self).record_sync(step, result, (before, now));
        self.stages.synced(&call, &mut view!(self));
        self.state.time.last = now;
    }

    /// Submits the queued I/Os; returns how many completions are there already, when the call returned, and the call.
    #[inline(always)]
    fn submit(&mut self, queued: usize) -> Result<(usize, u64, Call), EngineError> {
        let is_alone = self.state.queue.in_flight() == queued;
        let before = self.clock.now();
        self.engine.submit()?;
        let now = if E::NEEDS_ORDERED_CLOCK { self.clock.now_ordered() } else { self.clock.now() };
        let ns = self.state.note_submission::<E>(&self.clock, queued, before, now);
        let ready = self.engine.has_ready();
        let count = if ready { self.engine.reap(0, None, &mut self.state.completions)? } else { 0 };
        // During the ramp everything is counted at once, because its end counts what is in flight again.
        let mut call = Call { queued: queued as u64, ns, is_alone };
        if E::BLOCKS || self.state.single_op.is_none() || self.state.time.is_ramping || count == 0 {
            self.state.count_submission::<E>(&call);
            call.queued = 0;
        }
        Ok((count, now, call))
    }

    /// Waits for what the next step waits for. If I/Os are in flight, returns how many to reap, and for how long to wait.
    #[cold]
    fn wait(&mut self, wait: Admission, in_flight: usize) -> Option<(usize, Option<u64>)> {
        match wait {
            Admission::Until(due) if in_flight > 0 => {
                let left = due.min(self.state.time.deadline).saturating_sub(self.clock.now());
                let (left_ns, poll_ns) = (self.clock.to_ns(left), self.clock.poll_ns());
                return Some(if left_ns > poll_ns { (1, Some(left_ns - poll_ns)) } else { (0, Some(0)) });
            }
            Admission::Until(due) => view!(self).sleep_until(due),
            Admission::Outside => {
                self.stages.wait(&mut view!(self));
                if in_flight > 0 {
                    // A wait, if of no length: only within a call does io_uring bring completions to its ring.
                    return Some((1, Some(1)));
                }
            }
            Admission::Ready | Admission::Drain | Admission::Again | Admission::Skip => {}
        }
        self.handle_events_by(self.clock.now());
        None
    }

    /// Records the completions reaped at `now`. Neighbours of one submission have one latency and are counted together.
    #[inline(always)]
    fn complete(&mut self, count: usize, now: u64, call: &Call) {
        if self.stages.hooks().is_making_room {
            self.stages.making_room(count, now, &mut view!(self));
        }
        if !E::BLOCKS {
            self.state.recorder.queue.complete[QueueCounts::batch_class(count as u64)] += 1;
        }
        let mut counted = 0;
        let mut run = Run::NONE;
        for i in 0..count {
            let completion = self.state.completions[i];
            let slot = self.state.queue.slot(completion.slot);
            let is_whole = completion.result == i64::from(slot.request.length);
            if is_whole {
                if !run.includes(slot) {
                    let next = Run::of(slot);
                    counted += self.state.count_run::<E>(&self.clock, &std::mem::replace(&mut run, next), now, call);
                }
                run.io_count += 1;
                run.byte_count += completion.result as u64;
            } else {
                view!(self).record_failure(completion, now);
            }
            if self.stages.hooks().is_completing {
                let done = Done { slot: completion.slot, result: completion.result, is_whole, now };
                self.stages.completed(&done, &mut view!(self));
            }
            self.state.queue.give_back(completion.slot);
        }
        counted += self.state.count_run::<E>(&self.clock, &run, now, call);
        if counted < call.queued {
            self.state.count_submission::<E>(&Call { queued: call.queued - counted, ..*call });
        }
    }

    /// Ends the job if that was requested.
    #[inline(always)]
    fn heed_stop(&mut self) {
        if self.state.context.stop.load(Relaxed) && !self.state.outcome.is_done {
            self.state.outcome.was_stopped = true;
            self.state.outcome.end_at(self.clock.now());
        }
    }

    /// Handles events that are due.
    #[inline(always)]
    fn handle_events_by(&mut self, now: u64) {
        if now >= self.state.time.next_event {
            events::handle(self, now);
        }
    }
}
