//! Readings of several clocks of the kernel at the same time.

use rustix::time::{ClockId, clock_gettime};

/// The kernel's clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Stands still while the machine is suspended; its rate is adjusted (NTP, `adjtimex`).
    monotonic_ns: i64,
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
        Self {
            monotonic_ns: read(ClockId::Monotonic),
            boot_ns: read(ClockId::Boottime),
            real_ns: read(ClockId::Realtime),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspend_and_a_set_clock_are_told_apart() {
        let earlier = Clocks { monotonic_ns: 100, boot_ns: 200, real_ns: 1_000 };
        let suspended = Clocks { monotonic_ns: 150, boot_ns: 950, real_ns: 1_750 };
        assert_eq!((suspended.suspended_since(&earlier), suspended.stepped_since(&earlier)), (700, 0));
        let set = Clocks { monotonic_ns: 150, boot_ns: 250, real_ns: 9 };
        assert_eq!((set.suspended_since(&earlier), set.stepped_since(&earlier)), (0, -1_041));
    }
}
