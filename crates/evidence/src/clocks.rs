//! Readings of several clocks of the kernel at the same time.

use rustix::time::{ClockId, clock_gettime};

/// The kernel's clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Stands still while the machine is suspended; its rate is adjusted (NTP, `adjtimex`).
    monotonic_ns: i64,
    /// The hardware's counter at the rate that the kernel determined when it booted, without adjustments. It stands still during suspend.
    raw_ns: i64,
    /// Goes on during suspend.
    boot_ns: i64,
    /// The time of day, which can be set.
    real_ns: i64,
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec as i64
}

impl Clocks {
    /// Reads them, within a microsecond if nothing interrupts.
    pub(crate) fn now() -> Self {
        // Of three readings, the one whose two outer readings are closest together: an interrupt between them would
        // shift the pair.
        let pairs = (0..3).map(|_| {
            let before = read(ClockId::Monotonic);
            let raw_ns = read(ClockId::MonotonicRaw);
            let after = read(ClockId::Monotonic);
            (after - before, before + (after - before) / 2, raw_ns)
        });
        let (_, monotonic_ns, raw_ns) = pairs.min_by_key(|pair| pair.0).expect("three readings were taken");
        Self { monotonic_ns, raw_ns, boot_ns: read(ClockId::Boottime), real_ns: read(ClockId::Realtime) }
    }

    /// Returns by how much `CLOCK_MONOTONIC` ran faster than the hardware's counter since `earlier`, as a share; `None`
    /// if less than 10 ms passed, where reading the clocks one after another weighs more.
    pub(crate) fn slew_since(&self, earlier: &Self) -> Option<f64> {
        let raw_ns = self.raw_ns - earlier.raw_ns;
        (raw_ns >= 10_000_000).then(|| (self.monotonic_ns - earlier.monotonic_ns) as f64 / raw_ns as f64 - 1.0)
    }

    /// Returns the time of suspends since `earlier`, in nanoseconds.
    pub(crate) fn suspended_since(&self, earlier: &Self) -> u64 {
        let passed = self.boot_ns - earlier.boot_ns - (self.monotonic_ns - earlier.monotonic_ns);
        u64::try_from(passed).unwrap_or(0)
    }

    /// Returns by how much the time of day was set since `earlier`, in nanoseconds. A suspend is no setting.
    pub(crate) fn stepped_since(&self, earlier: &Self) -> i64 {
        self.real_ns - earlier.real_ns - (self.boot_ns - earlier.boot_ns)
    }
}

/// Returns how far `CLOCK_MONOTONIC` of this process's time namespace is ahead of the kernel's, in nanoseconds.
///
/// Source: time_namespaces(7).
pub(crate) fn namespace_offset_ns() -> i64 {
    // Linux before 5.6 has no such file, and no such namespaces.
    std::fs::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| offset_of(&text)).unwrap_or(0)
}

fn offset_of(text: &str) -> Option<i64> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let mut number = || words.next()?.parse::<i64>().ok();
    number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read_from_its_line() {
        let initial = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!(offset_of(initial), Some(0));
        assert_eq!(offset_of("monotonic  1000  500\nboottime 7 8\n"), Some(1_000_000_000_500));
        assert_eq!(offset_of("monotonic  -1  0\n"), Some(-1_000_000_000));
        for unknown in ["", "boottime 1 2\n", "monotonic 1\n", "monotonic x 0\n"] {
            assert_eq!(offset_of(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn a_suspend_and_a_set_clock_are_told_apart() {
        let earlier = Clocks { monotonic_ns: 100, raw_ns: 100, boot_ns: 200, real_ns: 1_000 };
        let suspended = Clocks { monotonic_ns: 150, boot_ns: 950, real_ns: 1_750, ..earlier };
        assert_eq!((suspended.suspended_since(&earlier), suspended.stepped_since(&earlier)), (700, 0));
        let set = Clocks { monotonic_ns: 150, boot_ns: 250, real_ns: 9, ..earlier };
        assert_eq!((set.suspended_since(&earlier), set.stepped_since(&earlier)), (0, -1_041));
    }

    #[test]
    fn a_constant_slew_is_the_ratio_to_the_raw_clock() {
        let earlier = Clocks { monotonic_ns: 7, raw_ns: 1_000, boot_ns: 0, real_ns: 0 };
        let after = |monotonic_ns, raw_ns| Clocks { monotonic_ns, raw_ns, ..earlier }.slew_since(&earlier);
        let slewed = after(1_100_000_007, 1_000_001_000).expect("a second");
        assert!((slewed - 0.1).abs() < 1e-12, "{slewed}");
        assert_eq!(after(1_000_007, 1_001_000), None, "a millisecond is too short");
    }
}
