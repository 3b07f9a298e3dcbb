//! Counts the bytes of each job in spans of a phase, while the jobs run.
//!
//! Workers update their counters every tenth of a second. A span consists of whole tenths, and is read half a tenth
//! after its end, so that it holds all of its tenths and nothing of the next one. Workers do nothing for it, and the
//! spans add up to all bytes that were transferred.
//!
//! The rest at the end of the phase is a span of its own if it is a tenth of a second or longer.
//!
//! Not counted: the ramp; I/Os that are not complete. A worker that waits for an I/O, or that began later than others
//! by a part of a tenth, is counted up to a tenth later.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::Progress;
use trueio_model::JobPlan;

/// What the jobs of a phase transferred in a span of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthSpan<'a> {
    /// The end of the span, since the run began.
    pub end: Duration,
    /// The length of the span.
    pub length: Duration,
    /// The jobs of the phase.
    pub jobs: Vec<JobBytes<'a>>,
}

/// What a job transferred until the beginning and until the end of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobBytes<'a> {
    /// The job.
    pub plan: &'a JobPlan,
    /// Bytes read, written and trimmed from the beginning of the measured part to the beginning of the span.
    pub before: [u64; 3],
    /// The same to the end of the span.
    pub after: [u64; 3],
}

/// Measures the spans of one phase.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    jobs: &'a [&'a JobPlan],
    progress: &'a [Progress],
    /// Length of a span.
    every: Duration,
    /// Beginning of the measured part.
    begin: Instant,
    /// From the beginning of the run to the beginning of the measured part.
    offset: Duration,
    /// End of the last span, since the measured part began.
    last_end: Duration,
    /// Counts of each job at that time.
    last_counts: Vec<[u64; 3]>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        jobs: &'a [&'a JobPlan],
        progress: &'a [Progress],
        every: Duration,
        begin: Instant,
        offset: Duration,
    ) -> Self {
        let every = every.max(Progress::INTERVAL);
        Self { jobs, progress, every, begin, offset, last_end: Duration::ZERO, last_counts: vec![[0; 3]; jobs.len()] }
    }

    /// Returns when [`look`](Self::look) is to be called next.
    pub(crate) fn due(&self) -> Instant {
        self.begin + self.last_end + self.every + Progress::INTERVAL / 2
    }

    /// Returns the span that has ended, if one has.
    pub(crate) fn look(&mut self, now: Instant) -> Option<BandwidthSpan<'a>> {
        let tenths = (now - self.begin).as_nanos() / Progress::INTERVAL.as_nanos();
        let end = Progress::INTERVAL * tenths as u32;
        (end >= self.last_end + self.every).then(|| self.end_at(end))
    }

    /// Returns the rest after all workers have ended.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<BandwidthSpan<'a>> {
        let end = now - self.begin;
        (end >= self.last_end + Progress::INTERVAL).then(|| self.end_at(end))
    }

    fn end_at(&mut self, end: Duration) -> BandwidthSpan<'a> {
        let mut rest = self.progress;
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for (plan, last) in self.jobs.iter().zip(&mut self.last_counts) {
            let (own, after) = rest.split_at(plan.workers as usize);
            rest = after;
            let counts = std::array::from_fn(|op| own.iter().map(|worker| worker.byte_counts[op].load(Relaxed)).sum());
            jobs.push(JobBytes { plan, before: std::mem::replace(last, counts), after: counts });
        }
        let before = std::mem::replace(&mut self.last_end, end);
        BandwidthSpan { end: self.offset + end, length: end - before, jobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    const MS: Duration = Duration::from_millis(1);

    /// Goal: spans end at whole tenths however late they are read, and together they hold all bytes.
    #[test]
    fn spans_are_whole_tenths_and_add_up() {
        let mut jobs = [JobPlan::plain(EngineKind::Null, 1 << 20), JobPlan::plain(EngineKind::Null, 1 << 20)];
        jobs[0].workers = 2;
        let progress: Vec<Progress> = (0..3).map(|_| Progress::default()).collect();
        let begin = Instant::now();
        let plans: Vec<&JobPlan> = jobs.iter().collect();
        let span = |end, length, counts: [[[u64; 3]; 2]; 2]| {
            let jobs = plans.iter().zip(counts).map(|(plan, [before, after])| JobBytes { plan, before, after });
            BandwidthSpan { end, length, jobs: jobs.collect() }
        };
        let mut meter = Meter::new(&plans, &progress, MS * 500, begin, MS * 7000);
        assert_eq!(meter.due(), begin + MS * 550);
        assert_eq!(meter.look(begin + MS * 499), None);
        progress[0].byte_counts[0].store(100, Relaxed);
        progress[1].byte_counts[1].store(20, Relaxed);
        progress[2].byte_counts[2].store(3, Relaxed);
        let first = span(MS * 7500, MS * 500, [[[0; 3], [100, 20, 0]], [[0; 3], [0, 0, 3]]]);
        assert_eq!(meter.look(begin + MS * 555), Some(first));
        assert_eq!((meter.due(), meter.look(begin + MS * 999)), (begin + MS * 1050, None));
        progress[0].byte_counts[0].store(150, Relaxed);
        let late = span(MS * 8200, MS * 700, [[[100, 20, 0], [150, 20, 0]], [[0, 0, 3]; 2]]);
        assert_eq!(meter.look(begin + MS * 1299), Some(late));
        // The last tenths, whatever their number; a shorter rest is in no span.
        progress[1].byte_counts[1].store(21, Relaxed);
        let rest = span(MS * 8333, MS * 133, [[[150, 20, 0], [150, 21, 0]], [[0, 0, 3]; 2]]);
        assert_eq!((meter.rest(begin + MS * 1333), meter.rest(begin + MS * 1400)), (Some(rest), None));
    }
}
