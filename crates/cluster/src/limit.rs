//! Limits of waits: every wait for a launcher or another rank has one.

use rustix::event::Timespec;
use std::time::{Duration, Instant};

/// The longest wait for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit(Duration);

impl Limit {
    /// A limit of this length.
    pub const fn new(length: Duration) -> Self {
        Self(length)
    }

    /// Returns the length in whole seconds, rounded up, for messages.
    pub fn seconds(self) -> u64 {
        self.0.as_millis().div_ceil(1000) as u64
    }

    /// Returns the length.
    pub fn length(self) -> Duration {
        self.0
    }

    /// Returns the end of a wait that begins now.
    pub(crate) fn begin(self) -> Until {
        Until(Instant::now() + self.0)
    }
}

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Until(Instant);

impl Until {
    /// Returns the time left; zero after the end.
    pub(crate) fn left(self) -> Timespec {
        let left = self.0.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    }

    /// Returns true after the end.
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}
