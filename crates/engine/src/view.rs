//! What stages see of the worker's loop: its state in groups with methods of their own, the engine, and the clock.
//!
//! The loop ([`crate::worker`]) is generic over engine and clock; a view hides both types, so each stage is compiled
//! once.

mod batch;
mod exchange;
mod outcome;
mod payload;
mod queue;
mod schedule;
mod state;
mod steps;
mod tally;

pub(crate) use batch::{ADAPTED_BATCH_MAX, Batch};
pub(crate) use exchange::{Admission, Done, SyncDone};
pub(crate) use outcome::Outcome;
pub(crate) use payload::{Payload, io_bytes_max};
pub(crate) use queue::{Queue, Slot};
pub(crate) use schedule::Schedule;
pub(crate) use state::LoopState;
pub(crate) use steps::StepQueue;
pub(crate) use tally::{Call, Run};

use crate::clock::{Clock, TickScale};
use crate::engines::{Completion, Engine, EngineError, sync_range};
use crate::recorder::INTERVAL_NS;
use crate::request::{Request, Step};
use crate::target::TargetFile;
use std::io;
use std::os::fd::AsRawFd as _;
use trueio_model::{EngineKind, OpKind, RangeSync};

/// An engine, whatever its type.
pub(crate) trait AnyEngine {
    fn kind(&self) -> EngineKind;
    fn needs_ordered_clock(&self) -> bool;
    /// Notes an I/O for `slot`.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8);
    fn submit(&mut self) -> Result<(), EngineError>;
    fn reap(&mut self, min: usize, out: &mut [Completion]) -> Result<usize, EngineError>;
    fn sync_file(&mut self, file: u16, data_only: bool) -> i64;
    fn share_of(&self, slot: u32) -> u8;
    fn opened_again(&self) -> &[TargetFile];
    fn has_ready(&mut self) -> bool;
}

impl<E: Engine> AnyEngine for E {
    fn kind(&self) -> EngineKind {
        E::KIND
    }
    fn needs_ordered_clock(&self) -> bool {
        E::NEEDS_ORDERED_CLOCK
    }
    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        // SAFETY: the caller's promise is the same.
        unsafe { Engine::queue(self, slot, request, buffer) };
    }
    fn submit(&mut self) -> Result<(), EngineError> {
        Engine::submit(self)
    }
    fn reap(&mut self, min: usize, out: &mut [Completion]) -> Result<usize, EngineError> {
        Engine::reap(self, min, None, out)
    }
    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        Engine::sync_file(self, file, data_only)
    }
    fn share_of(&self, slot: u32) -> u8 {
        Engine::share_of(self, slot)
    }
    fn opened_again(&self) -> &[TargetFile] {
        Engine::opened_again(self)
    }
    fn has_ready(&mut self) -> bool {
        Engine::has_ready(self)
    }
}

/// What stages see of the loop.
pub(crate) struct View<'v, 'a> {
    pub(crate) state: &'v mut LoopState<'a>,
    pub(crate) engine: &'v mut dyn AnyEngine,
    pub(crate) clock: &'v dyn Clock,
    /// The clock's factor: a span is converted without a call of the trait object.
    pub(crate) scale: TickScale,
    /// [`Engine::BLOCKS`].
    pub(crate) blocks: bool,
}

impl View<'_, '_> {
    /// Returns the present after an I/O that may have been a memory copy.
    pub(crate) fn now_after(&self) -> u64 {
        if self.engine.needs_ordered_clock() { self.clock.now_ordered() } else { self.clock.now() }
    }

    /// Returns the nanoseconds from one tick to a later one; 0 if it is earlier.
    #[inline(always)]
    pub(crate) fn ns_between(&self, from: u64, to: u64) -> u64 {
        self.scale.to_ns(to.saturating_sub(from))
    }

    /// Waits until the job's `start_delay` is over, or the run is to stop.
    pub(crate) fn delay_start(&mut self) {
        let delay_ns = self.state.context.plan.limits.start_delay_ns;
        let started = &mut self.state.time.started;
        let until = *started + self.clock.to_ticks(delay_ns);
        while *started < until && !self.state.context.is_stopped() {
            let look_up = *started + self.clock.to_ticks(INTERVAL_NS / 2);
            *started = self.clock.wait_until(until.min(look_up));
        }
    }

    /// With nothing in flight: sleeps until `due`, the next event or a while has passed, so that the loop sees a request
    /// to stop. An event of a stage is not worth waking up for.
    pub(crate) fn sleep_until(&self, due: u64) {
        let look_up = self.clock.now() + self.clock.to_ticks(INTERVAL_NS / 2);
        let alarm = self.state.time.next_alarm(self.state.outcome.is_done);
        self.clock.wait_until(due.min(alarm).min(look_up));
    }

    /// Admits an I/O that is due at a tick, if it is now. What is due after the deadline is never issued, however late
    /// the loop looks.
    pub(crate) fn admit_at(&self, due: u64) -> Admission {
        if due >= self.state.time.deadline || due > self.clock.now() { Admission::Until(due) } else { Admission::Ready }
    }

    /// Returns true if the loop has to look at the clock, at the request to stop, or at its end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.state.outcome.is_done || self.state.context.is_stopped() || self.clock.now() >= self.state.time.next_event
    }

    /// Returns true if what was written may be compared: nothing failed, and the run was not stopped.
    pub(crate) fn may_verify(&self) -> bool {
        let outcome = &self.state.outcome;
        !outcome.has_failed(self.state.context.plan) && !outcome.was_stopped
    }

    /// Records the latency of an I/O from when it was due, and how late it was submitted although a slot was free.
    pub(crate) fn record_from_due(&mut self, done: &Done) {
        if done.moved() == 0 && !done.is_whole {
            return;
        }
        let Slot { request, due, room_since, issued, .. } = *self.state.queue.slot(done.slot);
        let from_due_ns = self.ns_between(due, done.now);
        let late_ns = self.ns_between(due.max(room_since), issued);
        let recorder = &mut self.state.recorder;
        recorder.op(request.op).from_due.record(from_due_ns);
        if let Some(lateness) = &mut recorder.pacing_lateness {
            lateness.record(late_ns);
        }
    }

    /// Records an I/O that failed or moved less than it should, and ends the job if it is to end then.
    pub(crate) fn record_failure(&mut self, completion: Completion, now: u64) {
        let Slot { request, issued, .. } = *self.state.queue.slot(completion.slot);
        let total_ns = self.clock.to_ns(now.wrapping_sub(issued));
        let moved = completion.result.max(0) as u64;
        let recorder = self.state.recorder.op(request.op);
        // A transfer of nothing (a read beyond the file's end) has no latency worth counting.
        if moved > 0 {
            recorder.io_count += 1;
            recorder.byte_count += moved;
            recorder.short_count += 1;
            recorder.interval.record(total_ns);
            if !self.blocks {
                recorder.set.completion.record(total_ns);
            }
        } else {
            recorder.error_count += 1;
        }
        let errno = (-completion.result).max(0) as i32;
        let address = self.state.payload.address(&request, completion.slot);
        self.note_failure(&request, errno, moved, address);
        let plan = self.state.context.plan;
        if !plan.goes_on_after(request.op, errno) || plan.is_ended_by(request.op, errno) {
            self.state.outcome.is_done = true;
        }
    }

    /// Keeps a failed I/O for the report: the first of its kind with its details, and a count.
    pub(crate) fn note_failure(&mut self, request: &Request, errno: i32, returned: u64, address: u64) {
        let path = self.state.context.path(request.file);
        self.state.outcome.note_failure(request, errno, returned, address, path);
    }

    /// Makes a sync call, with nothing in flight; returns its result, 0 or the negative error number.
    pub(crate) fn sync(&mut self, step: &Step) -> i64 {
        match *step {
            Step::Sync { file, data_only } => self.engine.sync_file(file, data_only),
            Step::SyncRange { file, offset, bytes } => {
                let flags = self.state.context.plan.flush.range.map_or(0, RangeSync::flags);
                match self.state.context.files.get(usize::from(file)) {
                    Some(target) if self.engine.kind().touches_files() => {
                        sync_range(target.file.as_raw_fd(), offset, bytes, flags)
                    }
                    _ => 0,
                }
            }
            Step::Io(_) | Step::NextPass { .. } => unreachable!("the loop makes sync calls of sync steps"),
        }
    }

    /// Records a sync call that returned `result`. A failed one ends the job: whether what was written before is lost is
    /// unknown, so it is never retried.
    pub(crate) fn record_sync(&mut self, step: Step, result: i64, (before, now): (u64, u64)) -> SyncDone {
        let ns = self.clock.to_ns(now - before);
        self.state.queue.room_since = now;
        let recorder = self.state.recorder.op(OpKind::Sync);
        if result == 0 {
            recorder.io_count += 1;
            recorder.interval.record(ns);
        } else {
            recorder.error_count += 1;
            let request = step.request();
            self.note_failure(&request, -result as i32, 0, 0);
            let what = match step {
                Step::SyncRange { .. } => "sync_file_range",
                Step::Sync { data_only: true, .. } => "fdatasync",
                _ => "fsync",
            };
            let path = self.state.context.path(request.file);
            let error = io::Error::from_raw_os_error(-result as i32);
            self.state.outcome.fail(format!(
                "{what} of `{path}` failed: {error}; after a failed sync no earlier write is known to be safe"
            ));
        }
        // Whether a range that was written out is durable is unknown.
        let is_durable = result == 0 && matches!(step, Step::Sync { .. });
        SyncDone { step, before, now, errno: -result as i32, is_durable }
    }
}
