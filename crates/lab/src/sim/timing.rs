//! When a command is done: the latency × channels model.
//!
//! A disk works on `channels` commands at once, and each takes `latency`. So at depth 1 it does
//! 1 / latency commands a second, and at any greater depth up to channels / latency. Only reads and
//! writes take time.
//!
//! Cannot do: seek distances, transfer rates, queues that are served out of order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Commands in flight, each identified by a tag.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// When each channel is free.
    free_at: Vec<Instant>,
    due: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    sequence: u64,
}

impl Timing {
    /// Accepts a command; `latency` is zero for one that takes no time.
    pub(super) fn take(&mut self, tag: u64, now: Instant, latency: Duration, channels: usize) {
        let mut due = now;
        if !latency.is_zero() {
            self.free_at.resize(channels.max(1), now);
            let channel = self.free_at.iter_mut().min().expect("there is a channel");
            due = (*channel).max(now) + latency;
            *channel = due;
        }
        self.sequence += 1;
        self.due.push(Reverse((due, self.sequence, tag)));
    }

    /// When the next command is done.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due, ..))| *due)
    }

    /// The tag of a command that is done.
    pub(super) fn done(&mut self, now: Instant) -> Option<u64> {
        if self.next()? > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, _, tag))| tag)
    }

    /// Drops all commands.
    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.free_at.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_channels_of_four_milliseconds_do_a_thousand_commands_a_second() {
        let begin = Instant::now();
        let mut timing = Timing::default();
        (0..1000).for_each(|tag| timing.take(tag, begin, Duration::from_millis(4), 4));
        let end = begin + Duration::from_secs(1);
        let just_before = std::iter::from_fn(|| timing.done(end - Duration::from_nanos(1))).count();
        let last: Vec<u64> = std::iter::from_fn(|| timing.done(end)).collect();
        assert_eq!((just_before, last), (996, vec![996, 997, 998, 999]));
    }

    #[test]
    fn a_command_that_takes_no_time_overtakes_those_that_do() {
        let begin = Instant::now();
        let mut timing = Timing::default();
        timing.take(1, begin, Duration::from_millis(4), 1);
        timing.take(2, begin, Duration::ZERO, 1);
        assert_eq!(
            (timing.done(begin), timing.done(begin), timing.next()),
            (Some(2), None, Some(begin + Duration::from_millis(4)))
        );
    }
}
