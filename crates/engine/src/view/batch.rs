//! How many I/Os one call submits, and how the call's time is shared among them.
//!
//! A system call for each I/O costs most of what a tool spends on it; a call for many makes the first
//! wait for the last. A job that sets a batch gets it and its latencies as they are. For the others
//! the size follows from what was measured in the last 100 ms.

use crate::recorder::{OpRecorder, Recorder};
use trueio_model::Queue;

/// The largest batch of a job that does not set one.
pub(crate) const ADAPTED_BATCH_MAX: u32 = 8;

/// Returns how many I/Os one submission may carry so that the first does not wait noticeably for the last:
/// submitting the batch may take 2 % of the median latency.
///
/// With I/Os that complete inside the submission (page cache) that is one, and each latency is its
/// own; with a device of 100 µs and a submission of 0.5 µs it is four.
fn adapted_batch(latency_ns_p50: u64, submit_ns_per_io: u64) -> u32 {
    ((latency_ns_p50 / 50 / submit_ns_per_io.max(1)) as u32).clamp(1, ADAPTED_BATCH_MAX)
}

/// How the time of one call is shared among reads that it completed.
///
/// A buffered read whose pages are cached is a copy that the kernel makes inside `io_uring_enter`, one
/// read after another. Submitted eight at a time they cost a third of the tool's CPU, and then the
/// call's time is known but not each read's. Each is counted with its part of the call, unless the
/// call took more than twice the usual: then one I/O in it was slow, which one is unknown, and each
/// is counted with the whole of it.
///
/// What this hides: 8 reads in twice the usual time are 7 usual ones and one of 2 · 8 − 7 = 9 times the
/// usual, counted as twice the usual each. So tails between two and nine times the median are
/// understated; a longer delay is overstated, in length by its neighbours and in number eightfold.
/// Only where `iodepth_batch` is not set, only without O_DIRECT, and the record has a note about it.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// Buffered reads alone, through io_uring, in batches that are ours to choose.
    pub(crate) is_possible: bool,
    /// The usual time of one read, in nanoseconds; 0: not known, nothing is shared.
    pub(crate) usual_ns: u64,
    /// Reads that were counted with a part.
    pub(crate) count: u64,
}

impl Sharing {
    #[inline(always)]
    /// What each of `count` reads is counted with, of a call that completed them all.
    pub(crate) fn part_of(&mut self, call_ns: u64, count: u64) -> u64 {
        if self.usual_ns == 0 || call_ns > 2 * count * self.usual_ns {
            return call_ns;
        }
        self.count += count;
        call_ns / count
    }
}

/// The size of a submission, and what it is adapted by.
#[derive(Debug)]
pub(crate) struct Batch {
    /// I/Os that a submission may carry.
    pub(crate) size: usize,
    size_max: u32,
    is_adapted: bool,
    /// Time spent in submissions, and the I/Os that they carried, since the batch was adapted last.
    submit_ns: u64,
    submit_count: u64,
    pub(crate) sharing: Sharing,
}

impl Batch {
    /// `shares`: the time of a call may be shared among cached reads.
    pub(crate) fn new(queue: &Queue, shares: bool) -> Self {
        Self {
            size: queue.submit_batch.unwrap_or(1).clamp(1, queue.depth) as usize,
            size_max: queue.depth,
            is_adapted: queue.submit_batch.is_none(),
            submit_ns: 0,
            submit_count: 0,
            sharing: Sharing { is_possible: shares, usual_ns: 0, count: 0 },
        }
    }

    /// Notes a submission of `count` I/Os.
    #[inline(always)]
    pub(crate) fn note_submission(&mut self, ns: u64, count: u64) {
        self.submit_ns += ns;
        self.submit_count += count;
    }

    /// Adapts the size to what the interval that ends now has measured, unless the job set it.
    pub(crate) fn adapt(&mut self, recorder: &mut Recorder) {
        if !self.is_adapted || self.submit_count == 0 {
            return;
        }
        let count = |of: fn(&OpRecorder) -> u64| recorder.ops.iter().flatten().map(|r| of(r)).sum::<u64>();
        let inline_count = count(|r| r.inline.count());
        let is_inline = inline_count * 20 >= (inline_count + count(|r| r.interval.count())) * 19;
        recorder.fold_inline();
        let medians = recorder.ops.iter().flatten().filter_map(|r| {
            let n = r.interval.count();
            Some((n, r.interval.value_at_rank(n.div_ceil(2))?))
        });
        if let Some((_, p50)) = medians.max_by_key(|m| m.0) {
            let most = if is_inline && self.sharing.is_possible {
                self.sharing.usual_ns = p50.max(1);
                ADAPTED_BATCH_MAX
            } else {
                self.sharing.usual_ns = 0;
                adapted_batch(p50, self.submit_ns / self.submit_count)
            };
            self.size = most.min(self.size_max) as usize;
        }
        self.submit_ns = 0;
        self.submit_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_over_a_batch_takes_at_most_a_fiftieth_of_the_latency() {
        // 100 µs and 0.5 µs a submission: 4 · 0.5 = 2 µs is 2 %.
        assert_eq!(adapted_batch(100_000, 500), 4);
        // A submission that takes the whole latency: one at a time.
        assert_eq!(adapted_batch(1_000, 1_000), 1);
        assert_eq!(adapted_batch(20_000_000, 500), ADAPTED_BATCH_MAX);
        assert_eq!(adapted_batch(20_000_000, 0), ADAPTED_BATCH_MAX);
    }

    #[test]
    fn a_call_at_the_usual_pace_is_shared_and_a_slow_one_is_charged_whole_to_each() {
        let mut sharing = Sharing { is_possible: true, usual_ns: 900, count: 0 };
        assert_eq!(sharing.part_of(7_200, 8), 900);
        // The most that can hide: seven of 900 ns and one of 8,100.
        assert_eq!(sharing.part_of(7 * 900 + 8_100, 8), 1_800);
        assert_eq!(sharing.count, 16);
        // One of the eight took 100 µs: which one is unknown, so none is reported faster.
        assert_eq!(sharing.part_of(106_300, 8), 106_300);
        assert_eq!(sharing.count, 16);
    }

    #[test]
    fn nothing_is_shared_before_the_usual_pace_is_known() {
        let mut sharing = Sharing { is_possible: true, usual_ns: 0, count: 0 };
        assert_eq!(sharing.part_of(7_200, 8), 7_200);
        assert_eq!(sharing.count, 0);
    }
}
