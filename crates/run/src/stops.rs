//! Spans in which no thread of this program ran although it was not waiting for a processor.
//!
//! The thread that follows a phase sleeps for at most one tick at a time. If it wakes later than it asked for, it was
//! either in the run queue, which the kernel counts, or it could not run at all: stopped by a signal, held by a debugger
//! or a frozen control group, or in a virtual machine that was paused.
//!
//! Cannot see: stops shorter than [`STOP_NS_MIN`], and those between two waits (a tick's callbacks). On a starved thread,
//! run queue time of the whole phase may hide a stop.

use std::time::{Duration, Instant};
use trueio_engine::thread_usage;
use trueio_evidence::Stop;

/// A sleeping thread is late by microseconds; on a virtual machine by some milliseconds of the hypervisor's.
const STOP_NS_MIN: u64 = 250_000_000;

/// Watches the waits of one thread.
pub(crate) struct Heartbeat {
    begin: Instant,
    /// The thread's time in the run queue at the last reading; `None` if the kernel does not count it.
    waited_ns: Option<u64>,
    pub(crate) stops: Vec<Stop>,
}

impl Heartbeat {
    /// Begins with the measured part.
    pub(crate) fn new(begin: Instant) -> Self {
        Self { begin, waited_ns: waited_ns(), stops: Vec::new() }
    }

    /// Takes note of a wait that began at `from`, was to last for at most `limit`, and ended at `until`.
    pub(crate) fn waited(&mut self, from: Instant, limit: Duration, until: Instant) {
        let late = until.saturating_duration_since(from).saturating_sub(limit);
        if late.as_nanos() < u128::from(STOP_NS_MIN) {
            return;
        }
        let now_ns = waited_ns();
        // Without a count every wait may have been one for a processor.
        let (Some(before_ns), Some(after_ns)) = (self.waited_ns, now_ns) else { return };
        self.waited_ns = now_ns;
        let since = |at: Instant| at.saturating_duration_since(self.begin).as_nanos() as u64;
        let (from_ns, until_ns) = (since(from), since(until));
        let limit_ns = limit.as_nanos() as u64;
        self.stops.extend(stop_in(from_ns, limit_ns, until_ns, after_ns.saturating_sub(before_ns)));
    }
}

/// Returns the stop in a wait from `from_ns` to `until_ns` that was to last for at most `limit_ns`, during which the
/// thread was in the run queue for at most `queued_ns`.
fn stop_in(from_ns: u64, limit_ns: u64, until_ns: u64, queued_ns: u64) -> Option<Stop> {
    let late_ns = until_ns.saturating_sub(from_ns).saturating_sub(limit_ns);
    let least_ns = late_ns.saturating_sub(queued_ns);
    // The stop began at some time within the wait.
    (least_ns >= STOP_NS_MIN).then_some(Stop {
        from_ns,
        until_ns,
        least_ns,
        most_ns: least_ns.saturating_add(limit_ns),
    })
}

fn waited_ns() -> Option<u64> {
    Some(thread_usage(true).waiting?.wait_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_wait_that_ends_late_without_waiting_for_a_processor_is_a_stop() {
        let found = stop_in(1_000 * MS, 200 * MS, 3_150 * MS, MS).expect("a stop");
        assert_eq!((found.from_ns, found.until_ns), (1_000 * MS, 3_150 * MS));
        assert_eq!((found.least_ns, found.most_ns), (1_949 * MS, 2_149 * MS), "2 s lie between");
    }

    #[test]
    fn a_stop_before_the_first_wait_is_seen() {
        let begin = Instant::now();
        let mut heartbeat = Heartbeat::new(begin);
        heartbeat.waited(begin, Duration::ZERO, begin + Duration::from_secs(2));
        // Whether it ran meanwhile is a matter of its own time in the run queue, which this test does not add to.
        let counts = waited_ns().is_some();
        assert_eq!(heartbeat.stops.len(), usize::from(counts));
        assert!(heartbeat.stops.iter().all(|stop| (stop.from_ns, stop.until_ns) == (0, 2_000 * MS)));
    }

    #[test]
    fn a_wait_that_ends_late_because_the_processor_was_busy_is_no_stop() {
        assert_eq!(stop_in(0, 200 * MS, 2_200 * MS, 1_990 * MS), None);
        assert_eq!(stop_in(0, 200 * MS, 449 * MS, 0), None, "too short to tell");
        assert_eq!(stop_in(0, 200 * MS, 100 * MS, 0), None, "woken early");
    }
}
