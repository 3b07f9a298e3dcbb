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

/// Sync calls after every Nth write. Where calls of several kinds are due, the first of `fsync`, `fdatasync` and
/// `sync_file_range` is made, as in fio.
#[derive(Debug, Clone)]
pub(super) struct FlushEvery {
    /// Numbers of writes after which `fsync`, `fdatasync` and `sync_file_range` follow; 0: never.
    every: [u64; 3],
    writes: u64,
    /// A write came since the last call.
    is_written: bool,
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
        let every = [flush.fsync_every, flush.fdatasync_every, flush.range.map_or(0, |range| range.every)];
        let ranges = flush.range.map(|_| vec![NO_RANGE; plan.files.len().max(1)].into());
        flush.is_between().then_some(Self { every, writes: 0, is_written: false, file: 0, ranges })
    }

    /// Counts a write.
    pub(super) fn note(&mut self, file: usize, offset: u64, length: u64) {
        self.writes += 1;
        self.is_written = true;
        self.file = file as u16;
        if let Some(range) = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(file)) {
            *range = (range.0.min(offset), range.1.max(offset + length));
        }
    }

    /// Returns the call, if one is due.
    pub(super) fn take(&mut self) -> Option<Step> {
        let is_due = |every: &u64| *every > 0 && self.writes.is_multiple_of(*every);
        let due = self.every.iter().position(is_due).filter(|_| std::mem::take(&mut self.is_written))?;
        let file = self.file;
        let range = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(usize::from(file)));
        Some(match (due, range) {
            (2, Some(range)) => {
                let (begin, end) = std::mem::replace(range, NO_RANGE);
                Step::sync_range(file, begin, end)
            }
            (due, _) => Step::Sync { file, data_only: due == 1 },
        })
    }
}
