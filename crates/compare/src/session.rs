//! Slices of a plan whose phases are the sides: a [`Bench`] on the real machine.
//!
//! Files are prepared once, before the first slice, and written whole, so that no side pays for first touching a
//! block. What a slice wrote is flushed before the next one begins, outside any measured time; cached pages are
//! dropped before a slice if its job has `invalidate` (the default). Each slice is a phase of its own, with evidence and
//! a verdict.
//!
//! Cannot reset: what a device keeps to itself (its cache, its garbage collection, its temperature). The
//! random order spreads that over both sides.

use crate::live::{Bench, SliceOrder};
use crate::sample::Sample;
use std::time::Instant;
use trueio_model::{Histogram, JobPlan, Outcome, Plan, Prepare, SyscallTrace};
use trueio_run::{Observer, Session};

/// A session as a bench.
pub struct SessionBench<'a> {
    session: Session<'a>,
    began: Instant,
    /// Each side's system calls in its last slice, where they were recorded.
    syscalls: Vec<Option<SyscallTrace>>,
}

impl<'a> SessionBench<'a> {
    /// Prepares the files of every side.
    ///
    /// # Errors
    /// How the comparison ends: a file could not be made, or it was interrupted meanwhile.
    pub fn new(mut session: Session<'a>, observer: &mut dyn Observer) -> Result<Self, Outcome> {
        for side in 0..session.phase_count() {
            session.prepare(side, observer)?;
        }
        let syscalls = vec![None; session.phase_count()];
        Ok(Self { session, began: Instant::now(), syscalls })
    }

    /// The session, and each side's system calls in its last slice, where they were recorded.
    pub fn into_parts(self) -> (Session<'a>, Vec<Option<SyscallTrace>>) {
        (self.session, self.syscalls)
    }
}

impl SessionBench<'_> {
    /// Returns true if this process has a job of the side; a rank of several may have none.
    pub fn has_work(&mut self, side: usize) -> bool {
        self.session.has_work(side)
    }

    /// As [`Bench::slice`]; `observer` gets the events of the measured part.
    ///
    /// # Errors
    /// How the comparison ends: interrupted, or failed.
    pub fn slice_with(
        &mut self,
        side: usize,
        order: &SliceOrder,
        observer: &mut dyn Observer,
    ) -> Result<(Sample, Histogram), Outcome> {
        let change = |job: &mut JobPlan, runtime_ns: u64, seed: u64| {
            job.limits.ramp_ns = 0;
            job.limits.start_delay_ns = 0;
            job.limits.runtime_ns = Some(runtime_ns);
            job.limits.is_time_based = true;
            job.limits.io_count = None;
            job.seed ^= seed;
        };
        // A phase of its own and not a ramp: where a ramp ends, the counters are read when this thread is woken, which
        // on a busy machine is milliseconds late. Of a run of seconds that is nothing; a slice's evidence would miss I/Os.
        self.session.warm_up(side, |job| change(job, order.head_ns, !order.seed))?;
        // The head has left the cached pages that a slice should begin with.
        let measured = |job: &mut JobPlan| {
            change(job, order.slice_ns, order.seed);
            job.invalidate = false;
        };
        let mut phase = self.session.run_phase(side, measured, observer)?;
        if let Some(syscalls) = phase.syscalls.take() {
            self.syscalls[side] = Some(syscalls);
        }
        if phase.outcome != Outcome::Complete {
            return Err(phase.outcome);
        }
        self.session.settle(side)?;
        Ok(Sample::of(&phase))
    }
}

impl Bench for SessionBench<'_> {
    fn slice(&mut self, side: usize, order: &SliceOrder) -> Result<(Sample, Histogram), Outcome> {
        self.slice_with(side, order, &mut Quiet)
    }

    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// Ignores the events of slices: the comparison has a progress line of its own.
#[derive(Debug)]
pub struct Quiet;

impl Observer for Quiet {}

/// Makes a plan's files fit for comparing: files that the run creates are written completely before, whichever job uses them.
/// Returns a sentence for each file of which that is a change.
pub fn precondition(plan: &mut Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for file in plan.jobs.iter_mut().flat_map(|job| &mut job.files) {
        let is_unwritten = matches!(
            file.prepare,
            Prepare::CreateAllocated | Prepare::CreateReserved | Prepare::CreateSparse | Prepare::CreateEmpty
        );
        if is_unwritten {
            file.prepare = Prepare::CreateFilled;
            let note = format!(
                "`{}` is written whole before the first slice: overwriting is compared, not first writing",
                file.path
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}
