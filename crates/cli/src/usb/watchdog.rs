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

use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

    /// The descriptor of the socket.
    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
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

/// Looks until `has_ended` at the number of `turns`: reports progress to systemd, and calls `stalled` once if there was none
/// for `limit`.
pub(super) fn watch(
    turns: &dyn Fn() -> u64,
    has_ended: &AtomicBool,
    limit: Duration,
    systemd: Option<&Systemd>,
    stalled: &dyn Fn(),
) {
    let step = step(std::env::var("WATCHDOG_USEC").ok().as_deref());
    let mut stall = Stall::default();
    while !has_ended.load(Relaxed) {
        match stall.look(turns(), step, limit) {
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
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
    use std::process::{Command, Stdio};
    use std::sync::atomic::AtomicU64;

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
        watch(&|| 3, &AtomicBool::new(true), Duration::ZERO, Some(&systemd), &stalled);
        assert_eq!(count.load(Relaxed), 0, "a server that has ended");
        watch(&|| 3, &AtomicBool::new(false), Duration::from_millis(1), Some(&systemd), &stalled);
        assert_eq!(count.load(Relaxed), 1);
        receiver.set_nonblocking(true).expect("a plain call");
        let mut message = [0; 32];
        let bytes = receiver.recv(&mut message).expect("one message");
        assert_eq!(&message[..bytes], b"WATCHDOG=1");
        assert!(receiver.recv(&mut message).is_err(), "no progress, no message");
    }

    /// Looks of one turn, of the limit, until the process is stopped, and until it ends.
    const LOOKS: (u64, u64, u64, u64) = (10, 20, 15, 100);
    /// Names the part of the process that is stopped: `alive` or `hanging`.
    const PART: &str = "TRUEIO_TEST_WATCHED";

    /// The process that is stopped in the midst of a turn. Prints the last look, and whether the server was reported.
    fn be_watched(is_alive: bool) {
        let (looks, has_ended, is_reported) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        let (of_turn, of_limit, stopped_at, last) = LOOKS;
        let turns = || {
            let look = looks.fetch_add(1, Relaxed) + 1;
            if look == stopped_at {
                kill_process(getpid(), Signal::STOP).expect("a signal to itself");
            }
            has_ended.store(look == last, Relaxed);
            if is_alive { look / of_turn } else { look.min(stopped_at) / of_turn }
        };
        let limit = step(std::env::var("WATCHDOG_USEC").ok().as_deref()) * u32::try_from(of_limit).expect("a few");
        watch(&turns, &has_ended, limit, None, &|| is_reported.store(true, Relaxed));
        println!("look {}, reported {}", looks.load(Relaxed), is_reported.load(Relaxed));
    }

    /// Goal: the time for which a process is stopped counts neither against a server nor for it.
    /// Method: this test is its own child, whose watchdog looks each 10 ms, with a limit of 20 looks. The server takes a turn
    /// at each tenth look. At the 15th the child stops itself, for five times the limit; how fast either process runs
    /// changes nothing. A server that takes turns afterwards is not reported; one that takes none is, 20 looks
    /// after its last turn, the stop included.
    #[test]
    fn a_stopped_process_is_not_blamed_for_the_time_of_the_stop() {
        if let Ok(part) = std::env::var(PART) {
            return be_watched(part == "alive");
        }
        for (part, expected) in [("alive", "look 100, reported false"), ("hanging", "look 30, reported true")] {
            let name = "usb::watchdog::tests::a_stopped_process_is_not_blamed_for_the_time_of_the_stop";
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args(["--exact", name, "--nocapture"]).env(PART, part).env("WATCHDOG_USEC", "40000");
            let child = child.stdout(Stdio::piped()).spawn().expect("a process");
            let process = Pid::from_child(&child);
            let (_, status) = waitpid(Some(process), WaitOptions::UNTRACED).expect("a child").expect("it blocks");
            assert!(status.stopped(), "{part}: {status:?}");
            std::thread::sleep(Duration::from_secs(1));
            kill_process(process, Signal::CONT).expect("a child");
            let output = child.wait_with_output().expect("a child");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains(expected), "{part}: {text}");
        }
    }

    #[test]
    fn four_looks_fit_into_the_interval_of_systemd() {
        assert_eq!(step(None), STEP);
        assert_eq!(step(Some("2000000")), Duration::from_millis(500));
        assert_eq!(step(Some("60000000")), STEP);
        assert_eq!(step(Some("x")), STEP);
    }
}
