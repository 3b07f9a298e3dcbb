//! Samples single I/Os, to be matched with requests of the disk that are traced at the same time.
//!
//! The tracer counts windows in an atomic number: 0 while nothing is traced, else the number of
//! the window that is open. A worker looks at it every [`POLL_NS`] (where it looks for the end of a row
//! anyway, so an I/O costs nothing more while no window is open), and in an open window keeps the first
//! [`PER_WINDOW`] I/Os that began in it, with timestamps of `CLOCK_MONOTONIC`, which the kernel's trace
//! can use as well.
//!
//! The factor by which a counter's ticks become nanoseconds is good enough for latencies, not for timestamps: 25 parts in a
//! million are 7 µs at the end of a window, and ten times that where the processor was taken away while the factor was
//! measured; the request of an honest I/O would then lie outside of it. So both clocks are read together when a window
//! opens and again with each I/O that is kept, and the timestamps between the two are interpolated.
//!
//! Cannot see: I/Os that begin before a window or end after it, however long they take; I/Os after which the two
//! clocks could not be read within [`READ_WITHIN_NS`]. The room for samples is made before the loop runs; when it is
//! full, nothing more is kept.

use super::{Done, Hooks, Stage, SyncDone};
use crate::clock::{Clock, monotonic_ns};
use crate::context::WorkerContext;
use crate::recorder::WorkerReport;
use crate::request::Request;
use crate::view::View;
use std::sync::atomic::{AtomicU32, Ordering::Acquire};
use trueio_model::SampledIo;

/// How often a worker looks whether a window is open, in nanoseconds: 500 times a second, at about
/// 20 ns.
const POLL_NS: u64 = 2_000_000;
/// I/Os kept of a window.
const PER_WINDOW: usize = 128;
/// The kernel's clock is read between two readings of the worker's that lie no farther apart, so that a timestamp is wrong
/// by half of it at most. A comparison of timestamps allows for twice the error (`CLOCKS_DIFFER_NS` of the evidence).
const READ_WITHIN_NS: u64 = 2_000;
/// How often that is tried: an interrupt may come between.
const READ_TRIES: usize = 8;
/// I/Os kept of a run: of 256 windows. Memory that no sample reaches is never touched.
const KEPT: usize = PER_WINDOW * 256;

/// What a worker samples.
#[derive(Debug)]
pub(crate) struct Samples<'a> {
    window: &'a AtomicU32,
    /// The next look, in ticks.
    next_poll: u64,
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
    pub(crate) fn stage(context: &WorkerContext<'a>, clock: &dyn Clock) -> Option<Box<dyn Stage + 'a>> {
        Some(Box::new(Self::new(context.sample_window?, clock)))
    }

    fn new(window: &'a AtomicU32, clock: &dyn Clock) -> Self {
        Self {
            window,
            next_poll: 0,
            poll_ticks: clock.to_ticks(POLL_NS),
            open: 0,
            opened: 0,
            opened_ns: 0,
            left: 0,
            kept: Vec::with_capacity(KEPT),
        }
    }

    /// True while I/Os are to be offered.
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Looks whether a window was opened or closed.
    fn poll(&mut self, now: u64, clock: &dyn Clock) {
        self.next_poll = now + self.poll_ticks;
        // Pairs with the release that opens the window after tracing began.
        let number = self.window.load(Acquire);
        if number == self.open {
            return;
        }
        self.open = 0;
        self.left = 0;
        // Where the clocks could not be read together, the next look tries again.
        if number > 0
            && let Some(pair) = simultaneous(clock)
        {
            self.open = number;
            self.left = PER_WINDOW.min(KEPT - self.kept.len());
            (self.opened, self.opened_ns) = pair;
        }
    }

    /// Keeps an I/O that began within the open window. Moments are ticks.
    fn offer(&mut self, request: &Request, issued: u64, done: u64, clock: &dyn Clock) {
        if self.left == 0 || issued < self.opened {
            return;
        }
        self.left -= 1;
        let Some((now, now_ns)) = simultaneous(clock) else { return };
        let (ticks, ns) = (now - self.opened, now_ns.saturating_sub(self.opened_ns));
        let monotonic = |at: u64| {
            let since = u128::from(at - self.opened) * u128::from(ns);
            self.opened_ns + since.checked_div(u128::from(ticks)).map_or(0, |since| since as u64)
        };
        self.kept.push(SampledIo {
            window: self.open,
            op: request.op,
            file: request.file,
            offset: request.offset,
            length: request.length,
            issued_ns: monotonic(issued),
            done_ns: monotonic(done),
        });
    }

    /// What was kept, in the order of completion.
    fn take_kept(&mut self) -> Vec<SampledIo> {
        self.kept.shrink_to_fit();
        std::mem::take(&mut self.kept)
    }
}

impl Stage for Samples<'_> {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: self.is_open(), ..Hooks::default() }
    }

    fn measure(&mut self, now: u64, view: &mut View<'_, '_>) {
        self.poll(now, view.clock);
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        if done.is_whole && self.is_open() {
            let slot = *view.state.queue.slot(done.slot);
            self.offer(&slot.request, slot.issued, done.now, view.clock);
        }
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        if call.is_durable {
            self.offer(&call.step.request(), call.before, call.now, view.clock);
        }
    }

    fn next_event(&self) -> u64 {
        self.next_poll
    }

    fn at_event(&mut self, now: u64, view: &mut View<'_, '_>) {
        if now >= self.next_poll {
            self.poll(now, view.clock);
        }
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report.samples = self.take_kept();
    }
}

/// Reads the worker's clock and the kernel's at the same time; `None` if every attempt was interrupted.
fn simultaneous(clock: &dyn Clock) -> Option<(u64, u64)> {
    if clock.is_kernels() {
        let now = clock.now();
        return Some((now, clock.to_ns(now)));
    }
    (0..READ_TRIES).find_map(|_| {
        let before = clock.now();
        let ns = monotonic_ns();
        let apart = clock.now() - before;
        (clock.to_ns(apart) <= READ_WITHIN_NS).then_some((before + apart / 2, ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MonotonicClock;
    use std::sync::atomic::Ordering::Release;
    use trueio_model::OpKind;

    const WRITE: Request = Request { offset: 8192, length: 4096, file: 1, op: OpKind::Write };

    #[test]
    fn only_ios_that_began_in_an_open_window_are_kept_and_only_so_many() {
        let window = AtomicU32::new(0);
        let clock = MonotonicClock;
        let mut samples = Samples::new(&window, &clock);
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
        let kept = samples.take_kept();
        assert_eq!(kept.len(), PER_WINDOW);
        let SampledIo { window, op, file, offset, length, issued_ns, done_ns } = kept[0];
        assert_eq!((window, op, file, offset, length), (7, OpKind::Write, 1, 8192, 4096));
        assert_eq!(done_ns - issued_ns, 30);
        assert!(issued_ns.abs_diff(issued) < 10_000_000, "{issued_ns} against {issued}");
    }

    /// A counter of which is believed that a tick is 1.1 ns.
    struct Misjudged;

    impl Clock for Misjudged {
        fn now(&self) -> u64 {
            monotonic_ns()
        }
        fn to_ns(&self, ticks: u64) -> u64 {
            ticks + ticks / 10
        }
        fn to_ticks(&self, ns: u64) -> u64 {
            ns - ns / 11
        }
        fn wait_until(&self, tick: u64) -> u64 {
            MonotonicClock.wait_until(tick)
        }
    }

    #[test]
    fn moments_are_the_kernels_however_wrong_the_factor_of_the_counter_is() {
        let window = AtomicU32::new(1);
        let mut samples = Samples::new(&window, &Misjudged);
        // Until nothing came between the readings.
        for _ in 0..1000 {
            samples.poll(Misjudged.now(), &Misjudged);
            let issued = Misjudged.wait_until(Misjudged.now() + 3_000_000);
            let done = Misjudged.wait_until(issued + 1_000_000);
            samples.offer(&WRITE, issued, done, &Misjudged);
            if let Some(io) = samples.kept.last() {
                assert!(io.issued_ns.abs_diff(issued) <= READ_WITHIN_NS, "{} for {issued}", io.issued_ns);
                assert!(io.done_ns.abs_diff(done) <= READ_WITHIN_NS, "{} for {done}", io.done_ns);
                return;
            }
        }
        panic!("the clocks were never read together");
    }

    #[test]
    fn a_sample_without_a_known_timestamp_is_not_kept() {
        /// Every reading takes longer than is allowed.
        struct Interrupted;

        impl Clock for Interrupted {
            fn now(&self) -> u64 {
                MonotonicClock.wait_until(monotonic_ns() + READ_WITHIN_NS)
            }
            fn to_ns(&self, ticks: u64) -> u64 {
                ticks
            }
            fn to_ticks(&self, ns: u64) -> u64 {
                ns
            }
            fn wait_until(&self, tick: u64) -> u64 {
                MonotonicClock.wait_until(tick)
            }
        }

        let window = AtomicU32::new(1);
        let mut samples = Samples::new(&window, &Interrupted);
        samples.poll(1, &Interrupted);
        assert!(!samples.is_open());
        assert_eq!(simultaneous(&Interrupted), None);
    }
}
