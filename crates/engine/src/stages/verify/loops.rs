//! Reads back what a loop of the job wrote, before the next loop begins (`verify_each_loop`).
//!
//! Within the measured time, like a backlog; how long it took is counted, so that rates can be given without it.

use super::Verifier;
use super::last_writes::{Begin, Writes};
use super::pass::settle_files;
use crate::engines::EngineError;
use crate::pattern::Generator;
use crate::view::View;

/// What of a loop is read back.
#[derive(Debug)]
enum Reading {
    /// What its steps wrote.
    Steps(Box<Writes>),
    /// What a backlog has not come to.
    Waiting,
}

/// The loops of a job.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Where the present one begins; `None`: it is the first.
    begin: Option<Begin>,
    reading: Option<Reading>,
}

impl Loops {
    /// Returns true while what a loop wrote is read back.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Takes the beginning of the present loop.
    pub(super) fn take_begin(&mut self, view: &View<'_, '_>) -> Begin {
        let context = view.state.context;
        let first = || Begin::of(Generator::with_log(context.plan, context.worker, context.host.open_log));
        self.begin.take().unwrap_or_else(first)
    }

    /// The job is over: what is left of an earlier loop is not read back.
    pub(super) fn end(&mut self) {
        self.reading = None;
    }
}

impl Verifier<'_> {
    /// A loop ended: what it wrote is to be read back before the next I/O.
    pub(super) fn end_loop(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        if view.state.payload.sequence == 0 || !view.may_verify() || self.has_given_up() {
            return Ok(());
        }
        if !settle_files(view) {
            view.state.outcome.is_done = true;
            return Ok(());
        }
        self.begin_reading_back(view);
        let begin = self.loops.take_begin(view);
        // Without the step between the loops.
        let steps = view.state.steps.taken() - 1 - begin.steps;
        self.loops.reading = Some(match self.plan.backlog > 0 && self.plan.trim.is_none() {
            true => Reading::Waiting,
            false => Reading::Steps(Box::new(Writes::of(view, begin, [steps; 2], self.plan.compares_pieces())?)),
        });
        let (generator, sequence) = (view.state.steps.generator().state(), view.state.payload.sequence);
        self.loops.begin = Some(Begin { generator, sequence, steps: view.state.steps.taken() });
        Ok(())
    }

    /// With nothing in flight: goes on reading back what a loop wrote. Returns early, with nothing in flight, when the worker
    /// has to look at the clock or the job is over.
    #[cold]
    pub(super) fn read_back_loop(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        let began = view.clock.now();
        while !view.is_interrupted() {
            let next = match &mut self.loops.reading {
                Some(Reading::Steps(writes)) => writes.next(),
                Some(Reading::Waiting) => self.backlog.next_waiting(),
                None => None,
            };
            let Some((request, sequence)) = next else {
                self.reap_all(None, view)?;
                self.loops.reading = None;
                break;
            };
            if !self.is_undefined(sequence) && !self.read_later(&request, sequence, None, view)? {
                break;
            }
        }
        self.reap_all(None, view)?;
        if self.has_failed_to_read_back() {
            view.state.outcome.is_done = true;
        }
        let now = view.clock.now();
        if let Some(read_backs) = &mut self.read_backs {
            read_backs.note_loop(view.clock.to_ns(now - began));
        }
        view.state.time.last = now;
        Ok(())
    }
}
