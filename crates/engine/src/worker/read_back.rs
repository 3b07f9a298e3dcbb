//! Reading back what was written, with the job's queue depth, and counting that.
//!
//! Nothing else is in flight meanwhile. What is read is no I/O of the job: it is counted by itself. Blocks are compared in
//! the order in which their reads end, not in that of their writes.

use super::{Slot, Worker};
use crate::clock::Clock;
use crate::engines::{Completion, Engine, EngineError};
use crate::recorder::empty_op;
use crate::request::Request;
use trueio_model::{OpKind, ReadBack};

/// Compares the block that was read into the pool's buffer of this number with what the write of this number, the last one,
/// left there.
pub(super) type Check<'c, W> = dyn FnMut(&mut W, usize, &Request, u64) + 'c;

/// What is being read back, and what was.
#[derive(Debug)]
pub(super) struct ReadingBack {
    /// The numbers of the writes that are expected, by slot.
    expected: Box<[u64]>,
    counts: ReadBack,
    has_failed: bool,
}

impl ReadingBack {
    pub(super) fn new(depth: usize) -> Self {
        let counts = ReadBack { reads: empty_op(OpKind::Read), within_count: 0, elapsed_ns: 0 };
        Self { expected: vec![0; depth].into(), counts, has_failed: false }
    }

    /// True if a read failed or was short.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The ramp is over: what was read in it does not count.
    pub(super) fn forget_counts(&mut self) {
        self.counts.reads = empty_op(OpKind::Read);
        self.counts.within_count = 0;
    }

    /// The pass at the end took so long.
    pub(super) fn note_pass(&mut self, elapsed_ns: u64) {
        self.counts.elapsed_ns = elapsed_ns;
    }

    /// What was read, if anything. `has_submission`: as for the job's own I/Os.
    pub(super) fn into_counts(mut self, has_submission: bool) -> Option<ReadBack> {
        let reads = &mut self.counts.reads;
        if !has_submission {
            reads.latency.completion = reads.latency.total.clone();
        }
        (reads.io_count + reads.error_count > 0).then_some(self.counts)
    }
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Reads `request`'s block as soon as there is a slot; what ended until then is compared. False if a read failed:
    /// then nothing more is read.
    pub(super) fn read_later(
        &mut self,
        request: &Request,
        sequence: u64,
        check: &mut Check<'_, Self>,
    ) -> Result<bool, EngineError> {
        while self.free_count == 0 {
            self.collect_read_back(check)?;
        }
        let Some(reading) = self.reading_back.as_mut().filter(|reading| !reading.has_failed) else { return Ok(false) };
        let read = Request { op: OpKind::Read, ..*request };
        self.free_count -= 1;
        let slot = self.free[self.free_count];
        reading.expected[slot as usize] = sequence;
        if self.is_measuring() {
            self.note_issued(&read, slot);
        }
        let issued = self.clock.now();
        self.engine.queue(slot, &read, self.pool.buffer_ptr(slot as usize));
        self.engine.submit()?;
        let handed = self.now_after();
        self.slots[slot as usize] = Slot { request: read, issued, handed, due: issued, free_since: issued };
        if self.free_count == 0 || self.engine.has_ready() {
            self.collect_read_back(check)?;
        }
        Ok(true)
    }

    /// Waits for all that is being read back, and compares it.
    pub(super) fn collect_rest(&mut self, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        while self.in_flight() > 0 {
            self.collect_read_back(check)?;
        }
        Ok(())
    }

    /// Waits until a block has been read, and compares all that have.
    fn collect_read_back(&mut self, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        let count = self.engine.reap(1, None, &mut self.completions)?;
        let now = self.now_after();
        for at in 0..count {
            let Completion { slot, result, .. } = self.completions[at];
            let (index, is_measuring) = (slot as usize, self.is_measuring());
            let Slot { request, issued, handed, .. } = self.slots[index];
            if is_measuring {
                self.note_complete(&request, slot);
            }
            let (done, length) = (result.max(0) as u64, u64::from(request.length));
            let (total_ns, completion_ns) = (self.clock.to_ns(now - issued), self.clock.to_ns(now - handed));
            let Some(reading) = &mut self.reading_back else { break };
            let ReadBack { reads, within_count, .. } = &mut reading.counts;
            match result > 0 {
                true => {
                    reads.io_count += 1;
                    reads.byte_count += done;
                    reads.short_count += u64::from(done < length);
                    *within_count += u64::from(is_measuring);
                    reads.latency.total.record(total_ns);
                    if !E::BLOCKS {
                        reads.latency.submission.record(total_ns - completion_ns);
                        reads.latency.completion.record(completion_ns);
                    }
                }
                false => reads.error_count += 1,
            }
            let expected = reading.expected[index];
            if done < length {
                reading.has_failed = true;
                self.note_failure(&request, (-result).max(0) as i32, done, self.pool.buffer_ptr(index) as u64);
            } else if !self.has_given_up() {
                check(self, index, &request, expected);
            }
            self.free[self.free_count] = slot;
            self.free_count += 1;
        }
        Ok(())
    }

    /// True until the job's own I/O is over.
    fn is_measuring(&self) -> bool {
        !self.is_reading_all_back
    }
}
