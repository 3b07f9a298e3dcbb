//! The bandwidth of all jobs of a phase together, told while they run.
//!
//! Workers renew their figures every tenth of a second; a span is some of these tenths, and is looked at half a tenth
//! behind its end, so that it holds what was done in it and no tenth of another one. Nothing is done for it by a worker,
//! and spans add up to what was transferred.
//!
//! What is left at the phase's end is a span of its own if it is a tenth of a second or more.
//!
//! Cannot see: the ramp; I/Os that are not complete. A worker that waits for an I/O, or begins later than others by
//! what is no tenth, is counted up to a tenth later.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::Progress;
use trueio_model::{JobPlan, Unified};

/// What all jobs of a phase did in a span of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandwidthSpan {
    /// When it ended, since the run began.
    pub end: Duration,
    /// How long it was.
    pub length: Duration,
    /// Bytes read, written and trimmed; of names those that fio counts for them. Those of jobs that report all as one are read.
    pub byte_counts: [u64; 3],
}

/// Tells the spans of one phase.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    jobs: &'a [&'a JobPlan],
    progress: &'a [Progress],
    /// The length of a span.
    every: Duration,
    /// When the measured part began, and how long that is after the run's beginning.
    begin: Instant,
    offset: Duration,
    /// Where the last span ended, since the measured part began, and what was done until then.
    told: (Duration, [u64; 3]),
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        jobs: &'a [&'a JobPlan],
        progress: &'a [Progress],
        every: Duration,
        begin: Instant,
        offset: Duration,
    ) -> Self {
        Self { jobs, progress, every: every.max(Progress::INTERVAL), begin, offset, told: (Duration::ZERO, [0; 3]) }
    }

    /// When it is to be asked next.
    pub(crate) fn due(&self) -> Instant {
        self.begin + self.told.0 + self.every + Progress::INTERVAL / 2
    }

    /// The span that is over, if one is.
    pub(crate) fn look(&mut self, now: Instant) -> Option<BandwidthSpan> {
        let tenths = (now - self.begin).as_nanos() / Progress::INTERVAL.as_nanos();
        let end = Progress::INTERVAL * tenths as u32;
        (end >= self.told.0 + self.every).then(|| self.end_at(end))
    }

    /// What is left when the workers have ended.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<BandwidthSpan> {
        let end = now - self.begin;
        (end >= self.told.0 + Progress::INTERVAL).then(|| self.end_at(end))
    }

    fn end_at(&mut self, end: Duration) -> BandwidthSpan {
        let mut counts = [0; 3];
        let mut rest = self.progress;
        for job in self.jobs {
            let (own, after) = rest.split_at(job.workers as usize);
            rest = after;
            for (op, of_op) in own.iter().flat_map(|progress| progress.byte_counts.iter().enumerate()) {
                let op = if job.output.unified == Unified::No { op } else { 0 };
                let bytes = of_op.load(Relaxed);
                counts[op] += job.output.names.map_or(bytes, |names| names.of(bytes).1);
            }
        }
        let (before, counted) = std::mem::replace(&mut self.told, (end, counts));
        BandwidthSpan {
            end: self.offset + end,
            length: end - before,
            byte_counts: std::array::from_fn(|op| counts[op].saturating_sub(counted[op])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EngineKind, NameCounts};

    const MS: Duration = Duration::from_millis(1);

    /// Goal: spans end at whole tenths however late somebody looks, and together they hold all that was done.
    #[test]
    fn spans_are_whole_tenths_and_add_up() {
        let mut jobs = [JobPlan::plain(EngineKind::Null, 1 << 20), JobPlan::plain(EngineKind::Null, 1 << 20)];
        jobs[0].workers = 2;
        jobs[1].output.unified = Unified::Mixed;
        let progress: Vec<Progress> = (0..3).map(|_| Progress::default()).collect();
        let begin = Instant::now();
        let plans: Vec<&JobPlan> = jobs.iter().collect();
        let mut meter = Meter::new(&plans, &progress, MS * 500, begin, MS * 7000);
        assert_eq!(meter.due(), begin + MS * 550);
        assert_eq!(meter.look(begin + MS * 499), None);
        progress[0].byte_counts[0].store(100, Relaxed);
        progress[1].byte_counts[1].store(20, Relaxed);
        progress[2].byte_counts[2].store(3, Relaxed);
        let first = BandwidthSpan { end: MS * 7500, length: MS * 500, byte_counts: [103, 20, 0] };
        assert_eq!(meter.look(begin + MS * 555), Some(first));
        assert_eq!((meter.due(), meter.look(begin + MS * 999)), (begin + MS * 1050, None));
        progress[0].byte_counts[0].store(150, Relaxed);
        let late = BandwidthSpan { end: MS * 8200, length: MS * 700, byte_counts: [50, 0, 0] };
        assert_eq!(meter.look(begin + MS * 1299), Some(late));
        // The last tenths, whatever they are; what is less is told by nobody.
        progress[1].byte_counts[1].store(21, Relaxed);
        let rest = BandwidthSpan { end: MS * 8333, length: MS * 133, byte_counts: [0, 1, 0] };
        assert_eq!((meter.rest(begin + MS * 1333), meter.rest(begin + MS * 1400)), (Some(rest), None));
    }

    #[test]
    fn names_are_told_with_the_bytes_that_fio_counts() {
        let mut jobs = [JobPlan::plain(EngineKind::Filestat, 10)];
        jobs[0].output.names = Some(NameCounts { names: 5, ios: 20, block_bytes: 1024 });
        let progress = [Progress::default()];
        let begin = Instant::now();
        let plans: Vec<&JobPlan> = jobs.iter().collect();
        let mut meter = Meter::new(&plans, &progress, MS * 500, begin, Duration::ZERO);
        progress[0].byte_counts[0].store(3, Relaxed);
        assert_eq!(meter.look(begin + MS * 555).map(|span| span.byte_counts), Some([12 << 10, 0, 0]));
    }
}
