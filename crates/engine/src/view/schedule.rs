//! When the parts of a run begin and end, in ticks of the worker's clock.

use crate::clock::Clock;
use crate::recorder::INTERVAL_NS;
use trueio_model::Limits;

/// The times of a worker's run.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) started: u64,
    /// When the measured part begins: after the ramp.
    pub(crate) measured_from: u64,
    /// When the present interval of the series began.
    pub(crate) interval_from: u64,
    /// Ticks of an interval.
    interval: u64,
    pub(crate) deadline: u64,
    /// When the loop looks at the clock's events.
    pub(crate) next_event: u64,
    pub(crate) is_ramping: bool,
    /// The other workers are let go first, once.
    pub(crate) makes_way: bool,
    /// The last completion.
    pub(crate) last: u64,
}

impl Schedule {
    pub(crate) fn new(clock: &dyn Clock) -> Self {
        Self {
            started: 0,
            measured_from: 0,
            interval_from: 0,
            interval: clock.to_ticks(INTERVAL_NS),
            deadline: u64::MAX,
            next_event: 0,
            is_ramping: false,
            makes_way: false,
            last: 0,
        }
    }

    /// The worker has begun at `started`: sets the times that follow from its limits.
    pub(crate) fn begin(&mut self, limits: &Limits, clock: &dyn Clock) {
        self.measured_from = self.started + clock.to_ticks(limits.ramp_ns);
        self.is_ramping = limits.ramp_ns > 0;
        if let Some(runtime_ns) = limits.runtime_ns {
            self.deadline = self.measured_from + clock.to_ticks(runtime_ns);
        }
        self.interval_from = self.measured_from;
        self.last = self.measured_from;
    }

    /// The job ended within its ramp: the ramp becomes the measured part.
    pub(crate) fn measure_ramp(&mut self) {
        (self.is_ramping, self.measured_from, self.interval_from) = (false, self.started, self.started);
    }

    /// Returns when the present interval ends.
    pub(crate) fn interval_end(&self) -> u64 {
        self.interval_from + self.interval
    }

    /// Returns the next event that is worth waking up for: the ramp's end, an interval's end, or the deadline of a job
    /// that goes on.
    pub(crate) fn next_alarm(&self, is_done: bool) -> u64 {
        match (self.is_ramping, is_done) {
            (true, _) => self.measured_from,
            (false, true) => self.interval_end(),
            (false, false) => self.interval_end().min(self.deadline),
        }
    }
}
