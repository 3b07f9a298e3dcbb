//! Reads back what was written, with the job's queue depth, and counts that.
//!
//! Nothing else is in flight meanwhile. These reads are no I/O of the job, and are counted apart. Blocks are compared in
//! the order in which their reads complete, not in that of their writes.

use super::Verifier;
use super::pass::Item;
use crate::engines::{Completion, EngineError};
use crate::recorder::empty_op;
use crate::request::Request;
use crate::view::{Slot, View};
use std::sync::mpsc::SyncSender;
use trueio_model::{OpKind, ReadBack};

/// What is being read back, and what was.
#[derive(Debug)]
pub(super) struct ReadBacks {
    /// The numbers of the writes that are expected, by slot.
    expected: Box<[u64]>,
    counts: ReadBack,
    has_failed: bool,
}

impl ReadBacks {
    fn new(depth: usize) -> Self {
        let mut counts = ReadBack { reads: empty_op(OpKind::Read), within_count: 0, elapsed_ns: 0, loops_ns: 0 };
        counts.reads.latency.total.reserve();
        Self { expected: vec![0; depth].into(), counts, has_failed: false }
    }

    /// The ramp is over: what was read in it does not count.
    pub(super) fn forget_counts(&mut self) {
        self.counts.reads = empty_op(OpKind::Read);
        self.counts.within_count = 0;
        self.counts.loops_ns = 0;
    }

    /// Records how long the pass at the end took.
    pub(super) fn note_pass(&mut self, elapsed_ns: u64) {
        self.counts.elapsed_ns = elapsed_ns;
    }

    /// Adds to how long what loops wrote was read back.
    pub(super) fn note_loop(&mut self, elapsed_ns: u64) {
        self.counts.loops_ns += elapsed_ns;
    }

    /// Returns what was read, if anything. `has_submission`: as for the job's own I/Os.
    pub(super) fn into_counts(mut self, has_submission: bool) -> Option<ReadBack> {
        let reads = &mut self.counts.reads;
        if !has_submission {
            reads.latency.completion = reads.latency.total.clone();
        }
        (reads.io_count + reads.error_count > 0).then_some(self.counts)
    }
}

impl Verifier<'_> {
    /// Called before anything is read back.
    pub(super) fn begin_reading_back(&mut self, view: &View<'_, '_>) {
        let depth = view.state.queue.depth();
        self.read_backs.get_or_insert_with(|| Box::new(ReadBacks::new(depth)));
    }

    /// Returns true if a read failed or was short.
    pub(super) fn has_failed_to_read_back(&self) -> bool {
        self.read_backs.as_ref().is_some_and(|read| read.has_failed)
    }

    /// Reads `request`'s block as soon as a slot is free; blocks that were read until then are compared, here or by the
    /// threads that receive from `threads`. False if a read failed: then nothing more is read.
    pub(super) fn read_later(
        &mut self,
        request: &Request,
        sequence: u64,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<bool, EngineError> {
        while view.state.queue.free_count() == 0 {
            self.reap_read_backs(1, threads, view)?;
        }
        let Some(read_backs) = self.read_backs.as_mut().filter(|read| !read.has_failed) else { return Ok(false) };
        if self.lost.skips(request) {
            return Ok(true);
        }
        let request = Request { op: OpKind::Read, ..*request };
        let slot = view.state.queue.take();
        self.io_count += 1;
        read_backs.expected[slot as usize] = sequence;
        if let Some(iolog) = self.iolog.as_ref().filter(|_| !self.is_final_pass && !self.loops.is_reading()) {
            iolog.issued(&request, slot, view);
        }
        let issued = view.clock.now();
        let pointer = view.state.payload.pointer(slot as usize, &request);
        // SAFETY: as in the worker's loop: the slot's own buffer, which is compared only after its completion was reaped.
        unsafe { view.engine.queue(slot, &request, pointer) };
        view.engine.submit()?;
        let submitted = view.now_after();
        *view.state.queue.slot_mut(slot) = Slot { request, issued, submitted, due: issued, room_since: issued };
        // Waits only with a full queue; what has completed by then is compared without a wait.
        let is_full = view.state.queue.free_count() == 0;
        if is_full || view.engine.has_ready() {
            self.reap_read_backs(usize::from(is_full), threads, view)?;
        }
        Ok(true)
    }

    /// Waits for all that is being read back, and compares it.
    pub(super) fn reap_all(
        &mut self,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        while view.state.queue.in_flight() > 0 {
            self.reap_read_backs(1, threads, view)?;
        }
        Ok(())
    }

    /// Waits until `min` blocks have been read, and compares all that have.
    fn reap_read_backs(
        &mut self,
        min: usize,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        let count = view.engine.reap(min, &mut view.state.completions)?;
        let now = view.now_after();
        for at in 0..count {
            let completion = view.state.completions[at];
            self.complete_read_back(completion, now, threads, view);
            view.state.queue.give_back(completion.slot);
        }
        Ok(())
    }

    fn complete_read_back(
        &mut self,
        Completion { slot, result }: Completion,
        now: u64,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) {
        let Slot { request, issued, submitted, .. } = *view.state.queue.slot(slot);
        if let Some(iolog) = self.iolog.as_ref().filter(|_| !self.is_final_pass && !self.loops.is_reading()) {
            iolog.completed(&request, slot, view);
        }
        let (done, length) = (result.max(0) as u64, u64::from(request.length));
        let (total_ns, completion_ns) = (view.clock.to_ns(now - issued), view.clock.to_ns(now - submitted));
        let Some(read_backs) = &mut self.read_backs else { return };
        let ReadBack { reads, within_count, .. } = &mut read_backs.counts;
        if result > 0 {
            reads.io_count += 1;
            reads.byte_count += done;
            reads.short_count += u64::from(done < length);
            *within_count += u64::from(!self.is_final_pass);
            reads.latency.total.record(total_ns);
            if !view.blocks {
                reads.latency.submission.record(total_ns - completion_ns);
                reads.latency.completion.record(completion_ns);
            }
        } else {
            reads.error_count += 1;
        }
        let expected = read_backs.expected[slot as usize];
        if done < length {
            read_backs.has_failed = true;
            let address = view.state.payload.address(&request, slot);
            view.note_failure(&request, (-result).max(0) as i32, done, address);
        } else if !self.has_given_up() {
            match threads {
                None => self.compare(slot as usize, &request, expected, view),
                Some(threads) => self.compare_on_thread(slot as usize, &request, expected, threads, view),
            }
        }
    }
}
