//! Spans in which no thread of this program ran although it was not waiting for a processor.
//!
//! The thread that follows a phase sleeps for at most one [`BEAT`] at a time, and reads its clock and its time in the run queue
//! (`/proc/thread-self/schedstat`) after each sleep. The gap between two readings, without the sleep and the run queue, is the length of a
//! stop: by a signal, a debugger or a frozen control group, or of a virtual machine that was paused. The check `stops` compares it with the
//! latencies of the workers, whose clocks contain the same gap.
//!
//! All of these stop every thread of a process at once, and all threads read one clock, so this thread's gap is that of each worker. A worker that
//! read clock and run queue after each I/O would find the same gap, at the cost of a system call per I/O; and while it waits for an I/O, only
//! the latency shows it.
//!
//! Cannot see: a single worker that a debugger stops; stops shorter than [`STOP_NS_MIN`], and those while the thread waits for results so far or looks for other programs.

use std::time::{Duration, Instant};
use trueio_engine::thread_usage;
use trueio_evidence::Stop;

/// The longest sleep. A stop begins at some time within it, so its length is known to this precision. Fifty readings a second take about
/// 0.1 % of a processor.
pub(crate) const BEAT: Duration = Duration::from_millis(20);

/// A stop of 50 ms is a gap of at least that, of which up to one beat may be sleep. A sleeping thread is late by microseconds; on a virtual
/// machine by some milliseconds of the hypervisor's.
const STOP_NS_MIN: u64 = 30_000_000;

/// Watches the waits of one thread.
pub(crate) struct Heartbeat {
    begin: Instant,
    /// The last reading of the clock.
    last: Instant,
    /// The thread's time in the run queue at the last reading; `None` if the kernel does not count it.
    waited_ns: Option<u64>,
    pub(crate) stops: Vec<Stop>,
}

impl Heartbeat {
    /// Begins with the measured part.
    pub(crate) fn new(begin: Instant) -> Self {
        Self { begin, last: begin, waited_ns: waited_ns(), stops: Vec::new() }
    }

    /// Judges the time since the last reading, in which the thread slept for at most `limit`.
    pub(crate) fn slept(&mut self, limit: Duration) {
        self.slept_until(limit, Instant::now(), waited_ns());
    }

    /// Leaves out the time since the last reading: the thread waited for something else.
    pub(crate) fn skip(&mut self) {
        self.last = Instant::now();
    }

    /// As [`Heartbeat::slept`], at `until`, when the thread had been in the run queue for `now_ns`.
    fn slept_until(&mut self, limit: Duration, until: Instant, now_ns: Option<u64>) {
        let from = std::mem::replace(&mut self.last, until);
        let before_ns = std::mem::replace(&mut self.waited_ns, now_ns);
        // Without a count every wait may have been one for a processor.
        let (Some(before_ns), Some(now_ns)) = (before_ns, now_ns) else { return };
        let since = |at: Instant| at.saturating_duration_since(self.begin).as_nanos() as u64;
        let queued_ns = now_ns.saturating_sub(before_ns);
        self.stops.extend(stop_in(since(from), limit.as_nanos() as u64, since(until), queued_ns));
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

    /// Goal: each stop of 50 ms or longer is found, whenever in a beat it begins, and by its own length.
    /// Method: beats in virtual time; a stop of 50, 150 and 400 ms in each second, which begins 0 to 19 ms into a beat. The thread waits for a
    /// processor for 5 ms in each beat, or for the whole gap.
    #[test]
    fn each_stop_is_found_by_its_own_length_and_each_wait_for_a_processor_is_not() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let beat = BEAT.as_millis() as u64;
        for (stop, into) in [50, 150, 400].into_iter().flat_map(|stop| (0..beat).map(move |into| (stop, into))) {
            for is_in_run_queue in [false, true] {
                let mut heartbeat = Heartbeat { begin, last: begin, waited_ns: Some(0), stops: Vec::new() };
                let (mut now, mut queued) = (0, 0);
                for second in 1..=3 {
                    while now < second * 1_000 {
                        now += beat + 5;
                        queued += 5;
                        heartbeat.slept_until(BEAT, at(now), Some(queued * MS));
                    }
                    // The stop ends after the beat would have: that is over when the thread goes on.
                    now += (into + stop).max(beat);
                    queued += if is_in_run_queue { stop } else { 0 };
                    heartbeat.slept_until(BEAT, at(now), Some(queued * MS));
                }
                let found = heartbeat.stops.len();
                assert_eq!(found, if is_in_run_queue { 0 } else { 3 }, "{stop} ms, {into} ms into a beat");
                for found in &heartbeat.stops {
                    assert!((found.least_ns..=found.most_ns).contains(&(stop * MS)), "{stop} ms: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_stop_before_the_first_wait_is_seen() {
        let begin = Instant::now();
        let mut heartbeat = Heartbeat { begin, last: begin, waited_ns: Some(0), stops: Vec::new() };
        heartbeat.slept_until(Duration::ZERO, begin + Duration::from_secs(2), Some(MS));
        assert_eq!(heartbeat.stops.len(), 1);
        assert_eq!((heartbeat.stops[0].from_ns, heartbeat.stops[0].until_ns), (0, 2_000 * MS));
        // Without a count every wait may have been one for a processor.
        let mut uncounted = Heartbeat { begin, last: begin, waited_ns: None, stops: Vec::new() };
        uncounted.slept_until(Duration::ZERO, begin + Duration::from_secs(2), None);
        assert_eq!(uncounted.stops, []);
    }

    #[test]
    fn a_wait_that_ends_late_because_the_processor_was_busy_is_no_stop() {
        assert_eq!(stop_in(0, 200 * MS, 2_200 * MS, 1_990 * MS), None);
        assert_eq!(stop_in(0, 20 * MS, 49 * MS, 0), None, "too short to tell");
        assert_eq!(stop_in(0, 200 * MS, 100 * MS, 0), None, "woken early");
    }
}
