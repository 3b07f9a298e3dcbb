//! Suspends of the machine: that one has ended, and how long all have taken.
//!
//! The end is noticed by a timer of the real-time clock that is cancelled when the clock is set: the kernel sets it after a suspend. It is
//! also set by people and by NTP, so the reader compares [`suspended_ns`].
//!
//! Source: Linux `fs/timerfd.c` (`timerfd_resume`); timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET` (Linux 3.0).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A timer that never expires.
#[derive(Debug)]
pub(super) struct Wake(OwnedFd);

impl Wake {
    /// Starts it.
    ///
    /// # Errors
    /// No descriptor.
    pub(super) fn start() -> io::Result<Self> {
        /// Some 250 years after 1970, where the type can hold that.
        const LATE: libc::time_t = if size_of::<libc::time_t>() == 8 { (1 << 33) - 1 } else { libc::time_t::MAX };
        // SAFETY: plain call.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if timer < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was created just now.
        let timer = unsafe { OwnedFd::from_raw_fd(timer) };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time = libc::itimerspec { it_interval: never, it_value: libc::timespec { tv_sec: LATE, tv_nsec: 0 } };
        let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        // SAFETY: the call reads the time.
        let result = unsafe { libc::timerfd_settime(timer.as_raw_fd(), flags, &raw const time, std::ptr::null_mut()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(timer)) }
    }

    /// Makes it wait for the next time that the clock is set.
    pub(super) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes. It fails with ECANCELED if the clock was set, and with EAGAIN if it was not.
        let _ = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns for how long the machine was suspended so far, in nanoseconds, or up to a millisecond less: the boot clock counts a suspend, and
/// the monotonic one does not.
pub(super) fn suspended_ns() -> u64 {
    const LONGEST_NS: u64 = 1_000_000;
    let read = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel fills the structure; both clocks are in every kernel that has streams.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let mut before_ns = read(libc::CLOCK_MONOTONIC);
    loop {
        let boot_ns = read(libc::CLOCK_BOOTTIME);
        let after_ns = read(libc::CLOCK_MONOTONIC);
        // This thread may have waited for a processor in between.
        if after_ns - before_ns <= LONGEST_NS {
            return boot_ns.saturating_sub(after_ns);
        }
        before_ns = after_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn is_readable(wake: &Wake) -> bool {
        let mut entry = libc::pollfd { fd: wake.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        unsafe { libc::poll(&raw mut entry, 1, 0) == 1 }
    }

    /// Goal: it is silent without a suspend. That it is not silent after one is a case of the lab.
    #[test]
    fn without_a_suspend_nothing_is_noticed() {
        let wake = Wake::start().expect("a timer");
        let first_ns = suspended_ns();
        for _ in 0..1000 {
            assert!(
                suspended_ns().abs_diff(first_ns) <= 1_000_000,
                "the machine was suspended, or the clocks are not read well"
            );
        }
        std::thread::sleep(Duration::from_millis(5));
        // Another program may set the clock, but not each time.
        let is_silent = (0..3).any(|_| {
            wake.clear();
            !is_readable(&wake)
        });
        assert!(is_silent);
    }
}
