//! What comes between I/Os: sync calls after every Nth write, and the begins of further passes.

use crate::request::Step;
use trueio_model::JobPlan;

/// Pages are dropped, or files made again, where a pass ends and another request follows; and what a loop wrote is read back
/// where the loop ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Passes {
    /// Something happens between passes, not only between loops.
    counts_passes: bool,
    /// Something happens between loops.
    counts_loops: bool,
    /// A loop ended.
    is_loop_over: bool,
    /// Which files a pass ended of, where only a pass over all of them counts; else empty.
    over: Vec<bool>,
    /// Before the next request: of this file, or of all (`Some(None)`).
    due: Option<Option<u16>>,
    /// A request came since pages were dropped.
    is_begun: bool,
}

impl Passes {
    /// `None` if nothing happens between passes.
    pub(super) fn new(plan: &JobPlan, file_count: usize) -> Option<Self> {
        let handling = plan.handling;
        let over = vec![false; if handling.remakes_each_pass { file_count } else { 0 }];
        let counts_passes = handling.invalidates_each_pass || handling.remakes_each_pass;
        let counts_loops = plan.reads_back_each_loop();
        (counts_passes || counts_loops).then(|| Self { over, counts_passes, counts_loops, ..Self::default() })
    }

    /// One of the job's loops ended.
    pub(super) fn end_loop(&mut self) {
        self.is_loop_over = self.counts_loops && self.is_begun;
        self.end(None);
    }

    /// An I/O of a pass was given.
    pub(super) fn begin(&mut self) {
        self.is_begun = true;
    }

    /// A pass over a file ended, or one over all of them.
    pub(super) fn end(&mut self, file: Option<u16>) {
        if !self.is_begun || !self.counts_passes {
            return;
        }
        match file {
            Some(file) if !self.over.is_empty() => {
                self.over[usize::from(file)] = true;
                if self.over.iter().all(|is_over| *is_over) {
                    self.due = Some(None);
                }
            }
            file => self.due = Some(file),
        }
    }

    /// True if files are made again, so that all of them are gone over from their beginnings.
    pub(super) fn begins_anew(&self) -> bool {
        !self.over.is_empty()
    }

    /// What is to be dropped before the next request.
    pub(super) fn take(&mut self) -> Option<Step> {
        let (due, ends_loop) = (self.due.take(), std::mem::take(&mut self.is_loop_over));
        if due.is_none() && !ends_loop {
            return None;
        }
        self.is_begun = false;
        self.over.fill(false);
        Some(Step::NextPass { file: due.flatten(), ends_loop })
    }
}

/// Sync calls after every Nth write.
#[derive(Debug, Clone)]
pub(super) struct FlushEvery {
    every: u64,
    data_only: bool,
    writes: u64,
    /// The file written last: a sync call is for it.
    file: u16,
    /// For calls on ranges, of each file: where what was written since the last call begins and ends.
    ranges: Option<Box<[(u64, u64)]>>,
}

/// Nothing was written since the last call.
const NO_RANGE: (u64, u64) = (u64::MAX, 0);

impl FlushEvery {
    pub(super) fn new(plan: &JobPlan) -> Option<Self> {
        let flush = plan.flush;
        let (every, data_only) = match (flush.fsync_every, flush.fdatasync_every, flush.range) {
            (0, 0, None) => return None,
            (0, 0, Some(range)) => (range.every, false),
            (0, every, _) => (every, true),
            (every, _, _) => (every, false),
        };
        let ranges = flush.range.map(|_| vec![NO_RANGE; plan.files.len().max(1)].into());
        Some(Self { every, data_only, writes: 0, file: 0, ranges })
    }

    /// Counts a write.
    pub(super) fn note(&mut self, file: usize, offset: u64, length: u64) {
        self.writes += 1;
        self.file = file as u16;
        if let Some(range) = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(file)) {
            *range = (range.0.min(offset), range.1.max(offset + length));
        }
    }

    /// Returns the call, if it is due.
    pub(super) fn take(&mut self) -> Option<Step> {
        if self.writes < self.every {
            return None;
        }
        self.writes = 0;
        let file = self.file;
        let range = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(usize::from(file)));
        Some(range.map_or(Step::Sync { file, data_only: self.data_only }, |range| {
            let (begin, end) = std::mem::replace(range, NO_RANGE);
            Step::sync_range(file, begin, end)
        }))
    }
}
