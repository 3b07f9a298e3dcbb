//! Which writes a job compares that only looks (`verify_only`): of each block the last one, as far as the run came that wrote it.
//!
//! Limits: a job that ends by time has no last write, and one whose steps depend on the time cannot be foreseen; these compare a
//! block each time that they come to it.

use super::last_writes::{LastWrites, write};
use crate::context::WorkerContext;
use crate::request::Step;

/// The writes that are compared, and how far the job came.
#[derive(Debug)]
pub(super) struct Offline {
    /// A bit for each write, in their order.
    is_last: Vec<u64>,
    /// Steps that are left of the run that wrote.
    left: u64,
    /// Writes that were taken.
    sequence: u64,
}

impl Offline {
    /// Of the first `most` steps, all if that is `None`. Returns `None` if no block is written twice.
    ///
    /// # Errors
    /// A sentence, if there is no memory for the bits.
    pub(super) fn of(
        context: &WorkerContext<'_>,
        most: Option<u64>,
        compares_pieces: bool,
    ) -> Result<Option<Self>, String> {
        let Some((mut last, left, writes)) = LastWrites::foreseen(context, most, compares_pieces)? else {
            return Ok(None);
        };
        let mut is_last = vec![0; writes.div_ceil(64) as usize];
        while let Some(span) = last.next_span() {
            for (_, sequence) in span {
                let at = sequence - 1;
                is_last[(at / 64) as usize] |= 1 << (at % 64);
            }
        }
        Ok(Some(Self { is_last, left, sequence: 0 }))
    }

    /// Keeps the steps that are no writes, and the writes that are compared, at the beginning; returns how many these are, `None`
    /// if no step is left.
    pub(super) fn keep_last(&mut self, steps: &mut [Step]) -> Option<usize> {
        let count = steps.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if count == 0 {
            return None;
        }
        self.left -= count as u64;
        let mut kept = 0;
        for at in 0..count {
            let mut is_kept = true;
            if write(&steps[at]).is_some() {
                is_kept = self.is_last[(self.sequence / 64) as usize] & 1 << (self.sequence % 64) != 0;
                self.sequence += 1;
            }
            if is_kept {
                steps.swap(kept, at);
                kept += 1;
            }
        }
        Some(kept)
    }
}
