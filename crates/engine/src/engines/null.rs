//! `null`: every I/O completes at once and whole. What is measured is the tool.
//!
//! Uses the same trait and loop as the others, so its cost is theirs without the kernel's
//! part. It reads and writes no buffer.

use super::{Completion, Engine, EngineError, EngineSetup};
use crate::request::Request;
use trueio_model::EngineKind;

/// Completes everything at once. `BLOCKS`: one slot, and no separate submission.
#[derive(Debug)]
pub struct NullEngine<const BLOCKS: bool> {
    done: Box<[Completion]>,
    noted: usize,
    submitted: usize,
}

impl<const BLOCKS: bool> NullEngine<BLOCKS> {
    /// Returns an engine with the setup's number of slots.
    pub fn new(setup: &EngineSetup<'_>) -> Self {
        Self { done: vec![Completion::NONE; setup.depth as usize].into(), noted: 0, submitted: 0 }
    }
}

impl<const BLOCKS: bool> Engine for NullEngine<BLOCKS> {
    const KIND: EngineKind = EngineKind::Null;
    const BLOCKS: bool = BLOCKS;

    #[inline(always)]
    unsafe fn queue(&mut self, slot: u32, request: &Request, _buffer: *mut u8) {
        self.done[self.noted] = Completion { slot, result: i64::from(request.length) };
        self.noted += 1;
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        self.submitted = self.noted;
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, _min: usize, _timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let n = self.submitted.min(out.len());
        for (out, done) in out[..n].iter_mut().zip(&self.done[..n]) {
            *out = *done;
        }
        if n < self.submitted {
            self.done.copy_within(n..self.submitted, 0);
        }
        self.submitted -= n;
        self.noted = self.submitted;
        Ok(n)
    }

    #[inline(always)]
    fn has_ready(&mut self) -> bool {
        self.submitted > 0
    }

    fn sync_file(&mut self, _file: u16, _data_only: bool) -> i64 {
        0
    }
}
