//! Signals that end a run early, and the one that asks for the results so far.
//!
//! The first SIGINT, SIGTERM or SIGHUP sets a flag that every worker looks at before each I/O, so
//! that what was measured until then becomes a record. A second one ends the process at once: a
//! disk that no longer answers must not hold anybody. Files of ours have no name by then, so
//! no file is left either way. SIGUSR1 ends nothing where a command watches for it. SIGCONT is counted: it shows that the
//! process was stopped.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

static STOP: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static STATUS: AtomicBool = AtomicBool::new(false);
static CONTINUED: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    // Only what is allowed in a signal handler: atomics and _exit.
    if STOP.swap(true, Relaxed) {
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) }
    }
    SIGNAL.store(signal, Relaxed);
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on; returns the flag that they set.
///
/// SIGXFSZ, which would end the process at the limit of a file's size (`ulimit -f`), is ignored:
/// the write fails with EFBIG instead, and the record contains that error.
pub fn watch_signals() -> &'static AtomicBool {
    // SAFETY: ignoring a signal runs nothing of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
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
    &STOP
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

/// The signal that ended the run, by name; `None` if none came.
pub fn signal_received() -> Option<&'static str> {
    match SIGNAL.load(Relaxed) {
        0 => None,
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => Some("a signal"),
    }
}
