//! Ends a server whose thread makes no progress, and reports progress to systemd.
//!
//! The kernel gets errors then, instead of waiting for ever.
//!
//! The server's loop takes a turn at least every second, also while the disk does not answer: commands have their own time
//! limits. A turn that takes longer than the limit is therefore a thread that hangs in the kernel.
//!
//! The time is counted in steps of this thread, so a process that was stopped or starved as a whole is not blamed.
//!
//! Source: sd_notify(3), `WATCHDOG=1`; sd_watchdog_enabled(3), `WATCHDOG_USEC`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The longest time between two looks.
const STEP: Duration = Duration::from_secs(1);

/// What a look at the server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Progress,
    None,
    Stalled,
}

/// Counts for how long the server took no turn.
#[derive(Debug, Default)]
struct Stall {
    turn: Option<u64>,
    without: Duration,
}

impl Stall {
    /// Takes the number of turns, `step` after the last look.
    fn look(&mut self, turn: u64, step: Duration, limit: Duration) -> Look {
        if self.turn.replace(turn) != Some(turn) {
            self.without = Duration::ZERO;
            return Look::Progress;
        }
        self.without += step;
        if self.without >= limit { Look::Stalled } else { Look::None }
    }
}

/// The socket of systemd, if it started this process with one.
#[derive(Debug)]
pub(super) struct Systemd {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Systemd {
    /// Reads `NOTIFY_SOCKET`.
    pub(super) fn of_environment() -> Option<Self> {
        Self::at(&std::env::var("NOTIFY_SOCKET").ok()?)
    }

    fn at(name: &str) -> Option<Self> {
        let address = match name.strip_prefix('@') {
            Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
            None => SocketAddr::from_pathname(name),
        };
        Some(Self { socket: UnixDatagram::unbound().ok()?, address: address.ok()? })
    }

    /// Sends a state. One that cannot be sent is missed by systemd, which then acts.
    pub(super) fn send(&self, state: &str) {
        let _ = self.socket.send_to_addr(state.as_bytes(), &self.address);
    }
}

/// Returns the time between two looks: four in each interval of systemd's watchdog.
fn step(watchdog_usec: Option<&str>) -> Duration {
    let interval = watchdog_usec.and_then(|text| text.parse().ok()).map(Duration::from_micros);
    interval.map_or(STEP, |interval| (interval / 4).clamp(Duration::from_millis(10), STEP))
}

/// Looks until `has_ended`: reports progress to systemd, and calls `stalled` once if there was none for `limit`.
pub(super) fn watch(
    turns: &AtomicU64,
    has_ended: &AtomicBool,
    limit: Duration,
    systemd: Option<&Systemd>,
    stalled: &dyn Fn(),
) {
    let step = step(std::env::var("WATCHDOG_USEC").ok().as_deref());
    let mut stall = Stall::default();
    while !has_ended.load(Relaxed) {
        match stall.look(turns.load(Relaxed), step, limit) {
            Look::Progress => {
                if let Some(systemd) = systemd {
                    systemd.send("WATCHDOG=1");
                }
            }
            Look::None => {}
            Look::Stalled => return stalled(),
        }
        std::thread::park_timeout(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a server that takes no turn is ended after the limit, and one that takes turns never is, however slow.
    #[test]
    fn a_server_without_turns_is_noticed_and_one_with_turns_is_not() {
        let (second, limit) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut stall = Stall::default();
        for second_turn in 0..10_000u64 {
            assert_ne!(stall.look(second_turn / 30, second, limit), Look::Stalled, "a turn in 30 s");
        }
        let mut stall = Stall::default();
        let looks: Vec<Look> = (0..=60).map(|_| stall.look(7, second, limit)).collect();
        assert_eq!(looks[0], Look::Progress);
        assert!(looks[1..60].iter().all(|look| *look == Look::None));
        assert_eq!(looks[60], Look::Stalled);
    }

    /// Goal: systemd gets a message for progress only; a stalled server is reported once, and a server that ends is not.
    #[test]
    fn progress_is_sent_to_systemd_and_a_stalled_server_is_reported_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).expect("a socket");
        let systemd = Systemd::at(path.to_str().expect("text")).expect("a socket");
        let count = AtomicU64::new(0);
        let stalled = || {
            count.fetch_add(1, Relaxed);
        };
        watch(&AtomicU64::new(3), &AtomicBool::new(true), Duration::ZERO, Some(&systemd), &stalled);
        assert_eq!(count.load(Relaxed), 0, "a server that has ended");
        watch(&AtomicU64::new(3), &AtomicBool::new(false), Duration::from_millis(1), Some(&systemd), &stalled);
        assert_eq!(count.load(Relaxed), 1);
        receiver.set_nonblocking(true).expect("a plain call");
        let mut message = [0; 32];
        let bytes = receiver.recv(&mut message).expect("one message");
        assert_eq!(&message[..bytes], b"WATCHDOG=1");
        assert!(receiver.recv(&mut message).is_err(), "no progress, no message");
    }

    #[test]
    fn four_looks_fit_into_the_interval_of_systemd() {
        assert_eq!(step(None), STEP);
        assert_eq!(step(Some("2000000")), Duration::from_millis(500));
        assert_eq!(step(Some("60000000")), STEP);
        assert_eq!(step(Some("x")), STEP);
    }
}
