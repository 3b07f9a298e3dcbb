//! I/Os that failed or moved less than they should.

use super::{FAILURES_MAX, Worker};
use crate::clock::Clock;
use crate::engines::{Completion, Engine};
use crate::request::Request;
use trueio_model::{IoFailure, OpKind};

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// An I/O that failed or moved less than it should.
    #[cold]
    pub(super) fn failed(&mut self, completion: Completion, now: u64) {
        let slot = self.slots[completion.slot as usize];
        let request = slot.request;
        self.unlock_file(&request);
        self.note_complete(&request, completion.slot);
        let total_ns = self.clock.to_ns(now.wrapping_sub(slot.issued));
        let recorder = self.recorder.op(request.op);
        // A transfer of nothing (a read behind the file's end) has no latency worth counting.
        if completion.result > 0 {
            recorder.io_count += 1;
            recorder.byte_count += completion.result as u64;
            recorder.short_count += 1;
            recorder.interval.record(total_ns);
            if !E::BLOCKS {
                recorder.set.completion.record(total_ns);
            }
            if self.is_paced {
                self.record_paced(&slot, now);
            }
            self.log_one(completion.slot, completion.result as u64, now);
            if !E::BLOCKS {
                // As above: a short transfer's completion latency is all of it.
                self.record_priority(completion.slot, slot.issued, now);
            }
        } else {
            recorder.error_count += 1;
        }
        self.fail_zone(&request, completion.result.max(0) as u64);
        let errno = (-completion.result).max(0) as i32;
        let base = if request.op == OpKind::Write { self.write_buffers_from } else { 0 };
        let address = self.pool.buffer_ptr(base + completion.slot as usize) as u64;
        self.note_failure(&request, errno, completion.result.max(0) as u64, address);
        let plan = self.context.plan;
        if !plan.goes_on_after(request.op, errno) || plan.is_ended_by(request.op, errno) {
            self.is_done = true;
        }
    }

    pub(super) fn note_failure(&mut self, request: &Request, errno: i32, returned: u64, address: u64) {
        if let Some(known) = self.failures.iter_mut().find(|f| f.op == request.op && f.errno == errno) {
            known.count += 1;
            return;
        }
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(IoFailure {
                op: request.op,
                errno,
                path: self.path(request.file),
                offset: request.offset,
                length: u64::from(request.length),
                address,
                returned,
                count: 1,
                // The record's maker has the facts of the target.
                explanation: String::new(),
            });
        }
    }

    /// True if an I/O failed, and not as the job was told to ignore.
    pub(super) fn has_failures(&self) -> bool {
        self.context.plan.unexpected(&self.failures).next().is_some()
    }

    pub(super) fn path(&self, file: u16) -> String {
        self.context.files.get(usize::from(file)).map_or_else(String::new, |f| f.path.clone())
    }
}
