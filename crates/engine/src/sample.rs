//! Samples of single I/Os, for whoever traces the disk's requests at the same time.
//!
//! Whoever traces counts windows in an atomic number: 0 while nothing is traced, else the number of
//! the window that is open. A worker looks at it every [`POLL_NS`] (where it looks for the end of a row
//! anyway, so an I/O costs nothing more while no window is open), and in an open window keeps the first
//! [`PER_WINDOW`] I/Os that began in it, with the moments of `CLOCK_MONOTONIC`, which the kernel's trace
//! can use as well.
//!
//! Cannot see: I/Os that begin before a window or end after it, however long they take. The room for
//! samples is made before the loop runs; when it is full, nothing more is kept.

use crate::clock::{Clock, monotonic_ns};
use crate::request::Request;
use std::sync::atomic::{AtomicU32, Ordering::Acquire};
use trueio_model::SampledIo;

/// How often a worker looks whether a window is open, in nanoseconds: 500 times a second, at about
/// 20 ns.
const POLL_NS: u64 = 2_000_000;
/// I/Os kept of a window.
const PER_WINDOW: usize = 128;
/// I/Os kept of a run: of 256 windows. Memory that no sample reaches is never touched.
const KEPT: usize = PER_WINDOW * 256;

/// What a worker samples.
#[derive(Debug)]
pub(crate) struct Samples<'a> {
    window: Option<&'a AtomicU32>,
    /// The next look, in ticks.
    pub(crate) next_poll: u64,
    poll_ticks: u64,
    /// The window that is open, 0 if none.
    open: u32,
    /// When it opened for this worker: in ticks, and in nanoseconds of `CLOCK_MONOTONIC`.
    opened: u64,
    opened_ns: u64,
    left: usize,
    kept: Vec<SampledIo>,
}

impl<'a> Samples<'a> {
    /// Samples nothing if there is nobody who traces.
    pub(crate) fn new<C: Clock>(window: Option<&'a AtomicU32>, clock: &C) -> Self {
        Self {
            window,
            next_poll: if window.is_some() { 0 } else { u64::MAX },
            poll_ticks: clock.to_ticks(POLL_NS),
            open: 0,
            opened: 0,
            opened_ns: 0,
            left: 0,
            kept: if window.is_some() { Vec::with_capacity(KEPT) } else { Vec::new() },
        }
    }

    /// True while I/Os are to be offered.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Looks whether a window was opened or closed.
    pub(crate) fn poll<C: Clock>(&mut self, now: u64, clock: &C) {
        let Some(window) = self.window else { return };
        self.next_poll = now + self.poll_ticks;
        // Pairs with the release of whoever opens the window after tracing began.
        let number = window.load(Acquire);
        if number == self.open {
            return;
        }
        self.open = number;
        self.left = 0;
        if number > 0 {
            self.left = PER_WINDOW.min(KEPT - self.kept.len());
            (self.opened, self.opened_ns) = simultaneous(clock);
        }
    }

    /// Keeps an I/O that began within the open window. Moments are ticks.
    pub(crate) fn offer<C: Clock>(&mut self, request: &Request, issued: u64, done: u64, clock: &C) {
        if self.left == 0 || issued < self.opened {
            return;
        }
        self.left -= 1;
        self.kept.push(SampledIo {
            window: self.open,
            op: request.op,
            file: request.file,
            offset: request.offset,
            length: request.length,
            issued_ns: self.opened_ns + clock.to_ns(issued - self.opened),
            done_ns: self.opened_ns + clock.to_ns(done - self.opened),
        });
    }

    /// What was kept, in the order of completion.
    pub(crate) fn into_kept(mut self) -> Vec<SampledIo> {
        self.kept.shrink_to_fit();
        self.kept
    }
}

/// The worker's clock and the kernel's at one moment: of three readings the one that was interrupted
/// least.
fn simultaneous<C: Clock>(clock: &C) -> (u64, u64) {
    (0..3)
        .map(|_| {
            let before = clock.now();
            let ns = monotonic_ns();
            let after = clock.now();
            (after - before, before + (after - before) / 2, ns)
        })
        .min_by_key(|reading| reading.0)
        .map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MonotonicClock;
    use std::sync::atomic::Ordering::Release;
    use trueio_model::OpKind;

    const WRITE: Request = Request { offset: 8192, length: 4096, file: 1, op: OpKind::Write, data_only: false };

    #[test]
    fn only_ios_that_began_in_an_open_window_are_kept_and_only_so_many() {
        let window = AtomicU32::new(0);
        let clock = MonotonicClock;
        let mut samples = Samples::new(Some(&window), &clock);
        samples.poll(clock.now(), &clock);
        samples.offer(&WRITE, clock.now(), clock.now(), &clock);
        assert!(!samples.is_open());
        let early = clock.now();
        window.store(7, Release);
        samples.poll(clock.now(), &clock);
        assert!(samples.is_open());
        samples.offer(&WRITE, early, clock.now(), &clock);
        let issued = clock.now();
        (0..PER_WINDOW + 5).for_each(|_| samples.offer(&WRITE, issued, issued + 30, &clock));
        assert!(!samples.is_open());
        window.store(0, Release);
        samples.poll(clock.now(), &clock);
        let kept = samples.into_kept();
        assert_eq!(kept.len(), PER_WINDOW);
        let SampledIo { window, op, file, offset, length, issued_ns, done_ns } = kept[0];
        assert_eq!((window, op, file, offset, length), (7, OpKind::Write, 1, 8192, 4096));
        assert_eq!(done_ns - issued_ns, 30);
        assert!(issued_ns.abs_diff(issued) < 10_000_000, "{issued_ns} against {issued}");
    }

    #[test]
    fn without_a_tracer_nothing_is_ever_looked_at() {
        let clock = MonotonicClock;
        let mut samples = Samples::new(None, &clock);
        assert_eq!(samples.next_poll, u64::MAX);
        samples.poll(1, &clock);
        samples.offer(&WRITE, 1, 2, &clock);
        assert_eq!(samples.into_kept(), []);
    }
}
