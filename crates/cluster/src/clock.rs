//! How far the clocks of ranks are apart, and how a rank waits for an instant of rank 0's clock.
//!
//! A rank sends a ping at t1 of its own clock; rank 0 receives it at t2 and answers at t3 of its clock; the rank receives
//! the answer at t4. Of many pings the one with the shortest round trip counts: the offset is
//! ((t2 − t1) + (t3 − t4)) / 2, and its error is at most half of that round trip, whatever the ways there and back are.
//!
//! Both sides read without sleeping: with sleeping readers the errors were 3 to 13 µs between processors of one machine,
//! without 0.02 to 0.17 µs. Nothing here reads the wall clock.
//!
//! Limit: `CLOCK_MONOTONIC` is slewed on each host by up to 500 ppm, which is 30 ms in a minute. Clocks are therefore
//! compared before and after each phase.

use crate::limit::Until;
use crate::message::PingCount;
use crate::range::at_most;
use crate::star::link::{Link, LinkError};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;
use trueio_model::ClockOffset;

/// The last part of a wait, which does not sleep: a timer wakes a thread later than requested.
const SPIN_NS: i64 = 1_000_000;

/// A clock of one host, in nanoseconds. Tests use clocks that are shifted or that lie.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    /// `CLOCK_MONOTONIC`.
    pub fn monotonic() -> Self {
        Self::of(|| {
            let now = clock_gettime(ClockId::Monotonic);
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        })
    }

    /// A clock that returns what a function returns.
    pub fn of(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time.
    pub fn now_ns(&self) -> i64 {
        (self.0)()
    }

    /// Waits until an instant; the last part by spinning, if a processor is free for that.
    pub fn wait_until(&self, at_ns: i64, spins: bool) {
        let spin_ns = if spins { SPIN_NS } else { 0 };
        loop {
            let left_ns = at_ns - self.now_ns() - spin_ns;
            if left_ns <= 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left_ns as u64));
        }
        while self.now_ns() < at_ns {
            std::hint::spin_loop();
        }
    }
}

/// Number of pings for each rank: 200 take about 2 ms for each rank; of many ranks each gets fewer.
pub(crate) fn ping_count(size: u32) -> PingCount {
    PingCount::clamped(u64::from(20_000 / size.max(1)).max(20))
}

/// Rank 0's side: answers pings until the rank ends them.
///
/// # Errors
/// The connection is over, the time is, or the rank sends more than `count` pings.
pub(crate) fn answer_pings(link: &mut Link, clock: &Clock, count: u64, until: Until) -> Result<(), LinkError> {
    let mut answered = 0;
    loop {
        let mut question = [0; 8];
        link.spin_read(&mut question, until)?;
        let received_ns = clock.now_ns();
        if question == [0; 8] {
            return Ok(());
        }
        answered += 1;
        at_most("the number of pings", answered, count)?;
        let mut answer = [0; 16];
        answer[..8].copy_from_slice(&received_ns.to_be_bytes());
        answer[8..].copy_from_slice(&clock.now_ns().to_be_bytes());
        link.write_raw(&answer, until)?;
    }
}

/// A rank's side: sends pings and returns the offset of rank 0's clock.
///
/// # Errors
/// The connection is over, or the time is.
pub(crate) fn ping(link: &mut Link, clock: &Clock, count: PingCount, until: Until) -> Result<ClockOffset, LinkError> {
    let count = count.get() as u32;
    let mut round_trips = Vec::with_capacity(count as usize);
    let mut best: Option<(i128, i128)> = None;
    for _ in 0..count {
        let sent_ns = clock.now_ns();
        // Zero ends the pings; no clock shows it twice.
        link.write_raw(&sent_ns.max(1).to_be_bytes(), until)?;
        let mut answer = [0; 16];
        link.spin_read(&mut answer, until)?;
        let back_ns = clock.now_ns();
        let (there, away) = answer.split_at(8);
        // The other side may send any number.
        let number = |bytes: &[u8]| i128::from(i64::from_be_bytes(bytes.try_into().expect("8 bytes")));
        let (received_ns, answered_ns) = (number(there), number(away));
        let (sent_ns, back_ns) = (i128::from(sent_ns), i128::from(back_ns));
        let round_trip_ns = (back_ns - sent_ns) - (answered_ns - received_ns);
        round_trips.push(round_trip_ns);
        if best.is_none_or(|(shortest, _)| round_trip_ns < shortest) {
            best = Some((round_trip_ns, ((received_ns - sent_ns) + (answered_ns - back_ns)) / 2));
        }
    }
    link.write_raw(&[0; 8], until)?;
    round_trips.sort_unstable();
    let (shortest, offset_ns) = best.unwrap_or_default();
    // A lying clock may make a round trip negative; the check of clocks then finds what it needs in the offsets.
    let length_ns = |ns: i128| u64::try_from(ns.max(0)).unwrap_or(u64::MAX);
    Ok(ClockOffset {
        offset_ns: i64::try_from(offset_ns).unwrap_or(if offset_ns < 0 { i64::MIN } else { i64::MAX }),
        bound_ns: length_ns(shortest) / 2 + 1,
        round_trip_ns_median: length_ns(round_trips.get(round_trips.len() / 2).copied().unwrap_or(0)),
        ping_count: count,
    })
}
