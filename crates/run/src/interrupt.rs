//! Signals that end a run early, and the one that requests the results so far.
//!
//! The first SIGINT, SIGTERM or SIGHUP sets a flag that every worker reads before each I/O, so
//! that what was measured until then becomes a record. A second one ends the process at once, even if
//! a disk no longer answers. The files of a run have no name by then, so
//! no file is left either way. SIGUSR1 ends nothing where a command watches for it. SIGCONT is counted: it shows that the
//! process was stopped.
//!
//! A process that creates files before it can remove them at a signal holds the signals meanwhile ([`hold_signals`]).

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

static STOP: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static IS_BY_KEY: AtomicBool = AtomicBool::new(false);
static STATUS: AtomicBool = AtomicBool::new(false);
static CONTINUED: AtomicU32 = AtomicU32::new(0);
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Calls a function before a second signal ends the process at once. It is called in a signal handler: it must make only calls
/// that signal-safety(7) lists. The first one that is set stays.
pub fn before_abrupt_exit(hook: fn()) {
    BEFORE_EXIT.get_or_init(|| hook);
}

/// The signals that end a run.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

extern "C" fn on_signal(signal: libc::c_int) {
    // Only what is allowed in a signal handler: atomics and _exit.
    if STOP.swap(true, Relaxed) {
        if let Some(hook) = BEFORE_EXIT.get() {
            hook();
        }
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) }
    }
    SIGNAL.store(signal, Relaxed);
}

/// Returns the set of [`ENDING`].
fn ending() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the set, and the numbers are valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn change_mask(how: libc::c_int) {
    let set = ending();
    // SAFETY: the set is initialized; the former mask is not requested. It fails only for an unknown `how`.
    unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
}

/// Holds SIGINT, SIGTERM and SIGHUP in this thread, and in the processes and threads that it starts, until
/// [`watch_signals`] is called there or the value is dropped. A signal that arrives meanwhile takes effect then.
#[must_use = "the signals are held as long as this lives"]
pub fn hold_signals() -> HeldSignals {
    change_mask(libc::SIG_BLOCK);
    HeldSignals(())
}

/// The signals that end this process are held; see [`hold_signals`].
#[derive(Debug)]
pub struct HeldSignals(());

impl HeldSignals {
    /// Returns true if one of the signals has arrived meanwhile.
    pub fn has_arrived(&self) -> bool {
        let mut pending = MaybeUninit::uninit();
        // SAFETY: sigpending initializes the set if it succeeds; the numbers are valid signals.
        unsafe {
            libc::sigpending(pending.as_mut_ptr()) == 0
                && ENDING.iter().any(|signal| libc::sigismember(pending.as_ptr(), *signal) == 1)
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        change_mask(libc::SIG_UNBLOCK);
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on, also those that were held in this thread; returns the flag that they
/// set.
///
/// SIGXFSZ, which would end the process at the limit of a file's size (`ulimit -f`), is ignored:
/// the write fails with EFBIG instead, and the record contains that error.
pub fn watch_signals() -> &'static AtomicBool {
    // SAFETY: ignoring a signal runs nothing of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in ENDING {
        // SAFETY: the action is zeroed but for a handler that does only async-signal-safe things.
        // Without SA_RESTART, so that a wait for completions is woken.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    // SAFETY: as in `watch_status_signal`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_continue as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCONT, &action, std::ptr::null_mut());
    }
    change_mask(libc::SIG_UNBLOCK);
    &STOP
}

/// Ignores SIGHUP from now on: a process that others depend on goes on when its terminal is closed.
pub fn ignore_hangup() {
    // SAFETY: ignoring a signal runs nothing of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

extern "C" fn on_continue(_signal: libc::c_int) {
    CONTINUED.fetch_add(1, Relaxed);
}

/// How often SIGCONT came since [`watch_signals`].
pub(crate) fn continue_count() -> u32 {
    CONTINUED.load(Relaxed)
}

extern "C" fn on_status_signal(_signal: libc::c_int) {
    STATUS.store(true, Relaxed);
}

/// Catches SIGUSR1 from now on; returns the flag that it sets. For [`Reporting::interim_asked`](crate::Reporting).
pub fn watch_status_signal() -> &'static AtomicBool {
    // SAFETY: the action is zeroed but for a handler that only stores to an atomic. With SA_RESTART, so that no call of a
    // worker is interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_status_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    &STATUS
}

/// What ended a run that [`end_by_key`] ended, in its outcome.
pub const BY_KEY: &str = "the key q";

/// Ends the run as a first SIGINT does, but with [`BY_KEY`] in its outcome; a second call ends the process at once.
pub fn end_by_key() {
    IS_BY_KEY.store(true, Relaxed);
    // The signal wakes workers that wait in a system call.
    // SAFETY: a plain call that sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGINT) };
}

/// The signal that ended the run, by name, or [`BY_KEY`]; `None` if none came.
pub fn signal_received() -> Option<&'static str> {
    match SIGNAL.load(Relaxed) {
        0 => None,
        libc::SIGINT if IS_BY_KEY.load(Relaxed) => Some(BY_KEY),
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => Some("a signal"),
    }
}
