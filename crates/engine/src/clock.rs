//! Reading time, cheaply and honestly.
//!
//! A latency at memory speed is a few hundred nanoseconds, and the clock is read twice for it: on
//! a virtual machine `clock_gettime` costs 20 to 25 ns, the time stamp counter 8 to 10. So the
//! counter is used where the kernel itself trusts it as its clock source (it has then checked that
//! it is constant, never stops and agrees between processors), and `clock_gettime` everywhere else.
//!
//! Ticks become nanoseconds by one multiplication. The factor is measured against
//! `CLOCK_MONOTONIC` over at least [`CALIBRATION_NS`] when the clock is made: both ends are read
//! within about 50 ns, so the factor is good to 50 ns / 2 ms = 25 parts in a million, far below a
//! histogram bucket (1 / 128).
//!
//! Cannot see: a counter whose rate changes after that (a hypervisor that moves the machine).
//! [`AnyClock::mark`] allows a comparison of the two clocks at the end of the measured part.
//!
//! Source: Intel SDM 3B 18.17 (invariant TSC), Linux `Documentation/virt/kvm/x86/timekeeping.rst`.

use std::cell::Cell;
use std::rc::Rc;

/// How long the counter is compared with the kernel's clock, in nanoseconds.
const CALIBRATION_NS: u64 = 2_000_000;

/// A source of time for a worker: virtual in tests, real otherwise.
///
/// `now` counts ticks from an arbitrary origin; only differences mean something.
pub trait Clock {
    /// Before the time that it waits for, a worker polls for this long instead of sleeping: timers
    /// are late, by the timer slack (50 µs by default) and the time it takes to be scheduled.
    fn poll_ns(&self) -> u64 {
        60_000
    }

    /// The present, in ticks.
    fn now(&self) -> u64;
    /// The present, after every load and store before it is done. Needed where the I/O is a memory
    /// copy; a system call orders by itself.
    fn now_ordered(&self) -> u64 {
        self.now()
    }
    /// A span of ticks in nanoseconds.
    fn to_ns(&self, ticks: u64) -> u64;
    /// Returns the factor of [`Self::to_ns`], for callers that convert many spans and see the clock as a trait object.
    fn scale(&self) -> TickScale {
        TickScale { ns_per_tick_q32: self.to_ns(1 << 32) }
    }
    /// A span of nanoseconds in ticks.
    fn to_ticks(&self, ns: u64) -> u64;
    /// Waits until `tick` has come; returns the present.
    fn wait_until(&self, tick: u64) -> u64;
    /// True if it is `CLOCK_MONOTONIC` itself.
    fn is_kernels(&self) -> bool {
        false
    }
}

/// How long a tick is.
#[derive(Debug, Clone, Copy)]
pub struct TickScale {
    /// Nanoseconds, times 2^32.
    ns_per_tick_q32: u64,
}

impl TickScale {
    /// A span of ticks in nanoseconds.
    #[inline(always)]
    pub(crate) fn to_ns(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick_q32)) >> 32) as u64
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Sleeps until shortly before `deadline_ns` of `CLOCK_MONOTONIC`, and spins for the rest.
///
/// A timer fires late by the timer slack (50 µs by default) and by the time it takes to be
/// scheduled: 60 µs before the end we stop sleeping, so that a paced I/O is not late by that much.
fn sleep_until_ns(deadline_ns: u64) {
    const SPIN_NS: u64 = 60_000;
    let now = monotonic_ns();
    if deadline_ns > now + SPIN_NS {
        let until = deadline_ns - SPIN_NS;
        let request =
            rustix::time::Timespec { tv_sec: (until / 1_000_000_000) as i64, tv_nsec: (until % 1_000_000_000) as _ };
        // An interrupted sleep only means more spinning, and signals end the run anyway.
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request);
    }
    while monotonic_ns() < deadline_ns {
        std::hint::spin_loop();
    }
}

/// `clock_gettime(CLOCK_MONOTONIC)`: a tick is a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        monotonic_ns()
    }
    #[inline(always)]
    fn to_ns(&self, ticks: u64) -> u64 {
        ticks
    }
    #[inline(always)]
    fn to_ticks(&self, ns: u64) -> u64 {
        ns
    }
    fn wait_until(&self, tick: u64) -> u64 {
        sleep_until_ns(tick);
        self.now()
    }
    fn is_kernels(&self) -> bool {
        true
    }
}

/// The processor's time stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct TscClock {
    scale: TickScale,
    /// Ticks a nanosecond, times 2^32.
    ticks_per_ns_q32: u64,
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: reads a register; RDTSC exists on every x86-64 processor, and a kernel that forbids
    // it (PR_SET_TSC) would not use it for its own vDSO clock.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter_ordered() -> u64 {
    // SAFETY: a fence and a register read; LFENCE waits until every earlier load has its value.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    unreachable!("the counter is only offered on x86-64")
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_ordered() -> u64 {
    counter()
}

/// Reads the counter and the kernel's clock at the same time. Of five readings, the one whose two counter
/// readings lie closest together: an interrupt between them would shift the pair.
fn simultaneous() -> (u64, u64) {
    (0..5)
        .map(|_| {
            let before = counter();
            let ns = monotonic_ns();
            let after = counter();
            (after - before, before + (after - before) / 2, ns)
        })
        .min_by_key(|reading| reading.0)
        .map(|(_, ticks, ns)| (ticks, ns))
        .expect("five readings were taken")
}

impl TscClock {
    /// Calibrates against the kernel's clock; takes [`CALIBRATION_NS`].
    fn calibrated() -> Self {
        let (ticks_a, ns_a) = simultaneous();
        while monotonic_ns() < ns_a + CALIBRATION_NS {
            std::hint::spin_loop();
        }
        let (ticks_b, ns_b) = simultaneous();
        let (ticks, ns) = (u128::from(ticks_b - ticks_a), u128::from(ns_b - ns_a));
        let scale = TickScale { ns_per_tick_q32: ((ns << 32) / ticks) as u64 };
        Self { scale, ticks_per_ns_q32: ((ticks << 32) / ns) as u64 }
    }
}

impl Clock for TscClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        counter()
    }
    #[inline(always)]
    fn now_ordered(&self) -> u64 {
        counter_ordered()
    }
    #[inline(always)]
    fn to_ns(&self, ticks: u64) -> u64 {
        self.scale.to_ns(ticks)
    }
    #[inline(always)]
    fn scale(&self) -> TickScale {
        self.scale
    }
    #[inline(always)]
    fn to_ticks(&self, ns: u64) -> u64 {
        ((u128::from(ns) * u128::from(self.ticks_per_ns_q32)) >> 32) as u64
    }
    fn wait_until(&self, tick: u64) -> u64 {
        let now = self.now();
        if tick > now {
            sleep_until_ns(monotonic_ns() + self.to_ns(tick - now));
        }
        loop {
            let now = self.now();
            if now >= tick {
                return now;
            }
            std::hint::spin_loop();
        }
    }
}

/// Time that passes only when it is advanced: by the `simulated` engine and by waiting.
///
/// A tick is a nanosecond. Clones share the same time.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock {
    now: Rc<Cell<u64>>,
}

impl VirtualClock {
    /// Moves time forward to `tick`, never back.
    pub fn advance_to(&self, tick: u64) {
        self.now.set(self.now.get().max(tick));
    }
}

impl Clock for VirtualClock {
    /// Virtual time is never late, and does not pass during polling.
    fn poll_ns(&self) -> u64 {
        0
    }

    fn now(&self) -> u64 {
        self.now.get()
    }
    fn to_ns(&self, ticks: u64) -> u64 {
        ticks
    }
    fn to_ticks(&self, ns: u64) -> u64 {
        ns
    }
    fn wait_until(&self, tick: u64) -> u64 {
        self.advance_to(tick);
        self.now()
    }
}

/// One point in time on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockMark {
    ticks: u64,
    kernel_ns: u64,
}

/// The clock that suits this machine.
#[derive(Debug, Clone, Copy)]
pub enum AnyClock {
    /// The time stamp counter.
    Tsc(TscClock),
    /// The kernel's clock.
    Monotonic(MonotonicClock),
}

impl AnyClock {
    /// The name that stands in the record.
    pub fn name(&self) -> &'static str {
        match self {
            AnyClock::Tsc(_) => "tsc",
            AnyClock::Monotonic(_) => "clock_gettime",
        }
    }

    /// Reads this clock and the kernel's at the same time; `None` if it is the kernel's own.
    pub fn mark(&self) -> Option<ClockMark> {
        let AnyClock::Tsc(_) = self else { return None };
        let (ticks, kernel_ns) = simultaneous();
        Some(ClockMark { ticks, kernel_ns })
    }

    /// By how much this clock ran faster than the kernel's between two marks, as a share; `None` if
    /// they lie less than 100 ms apart, where reading the two clocks one after another weighs more.
    pub fn drift(&self, from: ClockMark, to: ClockMark) -> Option<f64> {
        let AnyClock::Tsc(clock) = self else { return None };
        let kernel_ns = to.kernel_ns.checked_sub(from.kernel_ns).filter(|ns| *ns >= 100_000_000)?;
        let own_ns = clock.to_ns(to.ticks.checked_sub(from.ticks)?);
        Some(own_ns as f64 / kernel_ns as f64 - 1.0)
    }
}

/// For engines that are not compiled for each clock.
impl Clock for AnyClock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            AnyClock::Tsc(clock) => clock.now(),
            AnyClock::Monotonic(clock) => clock.now(),
        }
    }
    #[inline]
    fn now_ordered(&self) -> u64 {
        match self {
            AnyClock::Tsc(clock) => clock.now_ordered(),
            AnyClock::Monotonic(clock) => clock.now_ordered(),
        }
    }
    #[inline]
    fn to_ns(&self, ticks: u64) -> u64 {
        match self {
            AnyClock::Tsc(clock) => clock.to_ns(ticks),
            AnyClock::Monotonic(clock) => clock.to_ns(ticks),
        }
    }
    fn to_ticks(&self, ns: u64) -> u64 {
        match self {
            AnyClock::Tsc(clock) => clock.to_ticks(ns),
            AnyClock::Monotonic(clock) => clock.to_ticks(ns),
        }
    }
    fn wait_until(&self, tick: u64) -> u64 {
        match self {
            AnyClock::Tsc(clock) => clock.wait_until(tick),
            AnyClock::Monotonic(clock) => clock.wait_until(tick),
        }
    }
    fn is_kernels(&self) -> bool {
        matches!(self, AnyClock::Monotonic(_))
    }
}

/// Chooses the clock: the counter if the kernel uses it itself, otherwise `clock_gettime`.
pub fn choose_clock() -> AnyClock {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if cfg!(target_arch = "x86_64") && source.is_ok_and(|s| s.trim() == "tsc") {
        AnyClock::Tsc(TscClock::calibrated())
    } else {
        AnyClock::Monotonic(MonotonicClock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibrated_counter_agrees_with_the_kernels_clock_to_one_part_in_a_thousand() {
        let AnyClock::Tsc(clock) = choose_clock() else {
            eprintln!("skipped: the kernel's clock source is not tsc");
            return;
        };
        let (ticks_a, ns_a) = simultaneous();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let (ticks_b, ns_b) = simultaneous();
        let (counted, truth) = (clock.to_ns(ticks_b - ticks_a) as f64, (ns_b - ns_a) as f64);
        assert!((counted / truth - 1.0).abs() < 1e-3, "{counted} against {truth}");
    }

    #[test]
    fn ticks_and_nanoseconds_convert_there_and_back() {
        let clock = TscClock { scale: TickScale { ns_per_tick_q32: (1 << 32) / 2 }, ticks_per_ns_q32: 2 << 32 };
        assert_eq!(clock.to_ns(10), 5);
        assert_eq!(clock.to_ticks(5), 10);
        assert_eq!(clock.to_ns(u64::MAX / 4), u64::MAX / 8);
    }

    #[test]
    fn virtual_time_never_runs_backwards() {
        let clock = VirtualClock::default();
        clock.advance_to(50);
        clock.advance_to(20);
        assert_eq!(clock.now(), 50);
        assert_eq!(clock.wait_until(70), 70);
    }
}
