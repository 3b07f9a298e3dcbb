//! Reads back, and trims, blocks while the job goes on (`verify_backlog`, `trim_backlog`).

use super::Verifier;
use crate::engines::{Completion, EngineError};
use crate::request::Request;
use crate::view::{Slot, View};
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use trueio_model::{OpKind, Verify, mix64};

/// Returns the size of a batch of a backlog of `length`; 0 stands for all of it.
fn batch_of(batch: u64, length: usize) -> usize {
    if batch > 0 { length.min(batch as usize) } else { length }
}

/// Returns true if the block of a write, numbered from 1, is trimmed. The share is kept over few writes, too: of each run of
/// 100 / `percent` writes one is drawn.
fn is_trimmed_later(seed: u64, sequence: u64, percent: u8) -> bool {
    let one_of_each = |percent: u64| {
        let at = sequence - 1;
        let run = at * percent / 100;
        let begin = |run: u64| (run * 100).div_ceil(percent);
        at == begin(run) + mix64(seed ^ run) % (begin(run + 1) - begin(run))
    };
    match u64::from(percent) {
        0 => false,
        percent @ ..=50 => one_of_each(percent),
        100.. => true,
        percent => !one_of_each(100 - percent),
    }
}

/// Writes that were not read back or trimmed yet, with their numbers.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Writes after which blocks are read back; 0: only at the end.
    reads_every: u64,
    /// Writes after which blocks are trimmed; `None`: never.
    trims_every: Option<u64>,
    waiting: VecDeque<(Request, u64)>,
    /// Blocks of the present batch that are still to be read back.
    read_count: usize,
    /// Writes since blocks were last trimmed.
    untrimmed: Vec<(Request, u64)>,
    /// Those of them that are to be trimmed, and how many in the present batch.
    to_trim: VecDeque<(Request, u64)>,
    trim_count: usize,
    /// The numbers of writes whose blocks were trimmed.
    trimmed: HashSet<u64>,
}

impl Backlog {
    pub(super) fn new(plan: &Verify) -> Self {
        let trims_every = plan.trim.map(|trim| trim.backlog);
        Self {
            reads_every: plan.backlog,
            trims_every,
            waiting: VecDeque::with_capacity(plan.backlog as usize),
            read_count: 0,
            untrimmed: Vec::with_capacity(trims_every.unwrap_or(0) as usize),
            to_trim: VecDeque::new(),
            trim_count: 0,
            trimmed: HashSet::new(),
        }
    }

    /// Returns true if the job reads back or trims blocks before its end.
    pub(super) fn is_kept(&self) -> bool {
        self.reads_every > 0 || self.trims_every.is_some()
    }

    fn reads_are_due(&self) -> bool {
        self.reads_every > 0 && self.waiting.len() as u64 >= self.reads_every
    }

    fn trims_are_due(&self) -> bool {
        self.trims_every.is_some_and(|every| self.untrimmed.len() as u64 >= every)
    }

    /// Returns true if writes wait for the next trims.
    pub(super) fn is_to_trim(&self) -> bool {
        !self.untrimmed.is_empty()
    }

    /// Returns true if blocks are to be read back or trimmed before the job goes on.
    pub(super) fn is_due(&self) -> bool {
        self.read_count > 0 || self.trim_count > 0 || self.reads_are_due() || self.trims_are_due()
    }

    pub(super) fn note_write(&mut self, request: &Request, sequence: u64) {
        if self.reads_every > 0 {
            self.waiting.push_back((*request, sequence));
        }
        if self.trims_every.is_some() {
            self.untrimmed.push((*request, sequence));
        }
    }

    pub(super) fn is_trimmed(&self, sequence: u64) -> bool {
        self.trimmed.contains(&sequence)
    }

    /// Takes the oldest write that was not read back.
    pub(super) fn next_waiting(&mut self) -> Option<(Request, u64)> {
        self.waiting.pop_front()
    }

    /// Blocks of a zone that was reset are not read back.
    pub(super) fn forget(&mut self, file: u16, bytes: &Range<u64>) {
        self.waiting.retain(|(request, _)| request.file != file || !bytes.contains(&request.offset));
    }
}

impl Verifier<'_> {
    /// With nothing in flight: reads back the present batch, and trims. Returns early, with nothing in flight, when the
    /// loop has to look at the clock or the job is over; the batch goes on with the next call.
    #[cold]
    pub(super) fn settle_backlog(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        if self.backlog.read_count == 0 && self.backlog.trim_count == 0 && self.backlog.reads_are_due() {
            self.backlog.read_count = batch_of(self.plan.backlog_batch, self.backlog.waiting.len());
        }
        if self.backlog.read_count > 0 {
            self.begin_reading_back(view);
            while self.backlog.read_count > 0 && !view.is_interrupted() {
                let next = self.backlog.next_waiting();
                self.backlog.read_count -= 1;
                let Some((request, sequence)) = next else { break };
                if !self.read_later(&request, sequence, None, view)? {
                    break;
                }
            }
            self.reap_all(None, view)?;
            if self.has_failed_to_read_back() {
                view.state.outcome.is_done = true;
            }
            if self.backlog.waiting.is_empty() {
                self.backlog.read_count = 0;
            }
            if view.state.outcome.is_done || self.backlog.read_count > 0 {
                return Ok(());
            }
        }
        self.trim_backlog(view)
    }

    /// Trims the chosen share of the blocks that were written since the last time.
    fn trim_backlog(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        self.trim_chosen(true, view)
    }

    fn trim_chosen(&mut self, is_interruptible: bool, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        let Some(trim) = self.plan.trim else { return Ok(()) };
        let backlog = &mut self.backlog;
        if backlog.trim_count == 0 {
            if !backlog.trims_are_due() {
                return Ok(());
            }
            let seed = view.state.context.plan.seed;
            let is_chosen = |(_, sequence): &(Request, u64)| is_trimmed_later(seed, *sequence, trim.percent);
            backlog.to_trim.extend(backlog.untrimmed.drain(..).filter(is_chosen));
            backlog.trim_count = batch_of(trim.batch, backlog.to_trim.len());
        }
        while self.backlog.trim_count > 0 && !(is_interruptible && view.is_interrupted()) {
            self.backlog.trim_count -= 1;
            let Some((request, sequence)) = self.backlog.to_trim.pop_front() else { break };
            if !self.trim(&Request { op: OpKind::Trim, ..request }, view)? {
                return Ok(());
            }
            self.backlog.trimmed.insert(sequence);
        }
        Ok(())
    }

    /// At the job's end: trims the backlog that its last write filled, as in fio.
    pub(super) fn trim_last_backlog(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        if !self.backlog.trims_are_due() || !view.state.steps.is_exhausted() || !view.may_verify() {
            return Ok(());
        }
        // (Nothing interrupts it: the job is done.)
        self.trim_chosen(false, view)?;
        view.state.time.last = view.clock.now();
        Ok(())
    }

    /// Trims a block with nothing else in flight, and records that; false if it failed.
    fn trim(&mut self, request: &Request, view: &mut View<'_, '_>) -> Result<bool, EngineError> {
        if let Some(iolog) = &self.iolog {
            iolog.issued(request, 0, view);
        }
        let before = view.clock.now();
        let pointer = view.state.payload.pointer(0, request);
        // SAFETY: a trim uses no buffer, and nothing else is in flight.
        unsafe { view.engine.queue(0, request, pointer) };
        view.engine.submit()?;
        let mut out = [Completion::NONE];
        while view.engine.reap(1, &mut out)? == 0 {}
        let now = view.clock.now();
        let result = out[0].result;
        if let Some(iolog) = &self.iolog {
            iolog.completed(request, 0, view);
        }
        let ns = view.clock.to_ns(now - before);
        let recorder = view.state.recorder.op(OpKind::Trim);
        if result != i64::from(request.length) {
            recorder.error_count += 1;
            view.note_failure(request, (-result).max(0) as i32, result.max(0) as u64, 0);
            view.state.outcome.is_done = true;
            return Ok(false);
        }
        self.io_count += 1;
        recorder.io_count += 1;
        recorder.byte_count += u64::from(request.length);
        recorder.interval.record(ns);
        if !view.blocks {
            recorder.set.submission.record(ns);
            recorder.set.completion.record(0);
        }
        // Nothing else is in flight: the slot that it went through is free.
        *view.state.queue.slot_mut(0) =
            Slot { request: *request, issued: before, submitted: now, due: before, room_since: before };
        if let Some(log) = &self.log {
            log.push(0, u64::from(request.length), now, view);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_trimmed_writes_is_kept_over_few_writes() {
        for percent in [0, 1, 10, 33, 50, 70, 99, 100] {
            for count in [16, 64, 100, 1000] {
                let trimmed = (1..=count).filter(|sequence| is_trimmed_later(7, *sequence, percent)).count() as u64;
                let wanted = count * u64::from(percent) / 100;
                assert!(trimmed.abs_diff(wanted) <= 1, "{percent} % of {count}: {trimmed}");
            }
        }
        let all = |seed| (1..=64).map(|sequence| is_trimmed_later(seed, sequence, 50)).collect::<Vec<_>>();
        assert_ne!(all(1), all(2), "they are drawn");
    }
}
