//! Runs a phase under strace, to repeat measurements that were made under it, and to measure its cost.
//!
//! `strace -f -tt -o /dev/null -p PID` follows this process from just before the measured part to just
//! after it. Its output is discarded, so it costs slightly less than a strace that
//! writes a file.
//!
//! Source: strace(1); ptrace(2), prctl(2) (`PR_SET_PTRACER`, for kernels where Yama restricts tracing).

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long strace may take to attach, and to detach.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);

/// Why phases cannot run under strace here; `None` if they can.
pub fn why_no_strace() -> Option<String> {
    let mut command = Command::new("strace");
    match command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => None,
        Err(error) => Some(format!("`strace` cannot be started ({error}); it is in a package of that name")),
    }
}

/// strace, while it follows this process.
#[derive(Debug)]
pub(crate) struct Strace {
    child: Child,
}

impl Strace {
    /// Starts it and waits until it follows all of these threads.
    ///
    /// # Errors
    /// strace could not be started, or may not trace this process: its message. It has ended by then.
    pub(crate) fn attach(threads: &[i32]) -> Result<Self, String> {
        may_be_followed(true);
        let mut command = Command::new("strace");
        command.args(["-f", "-tt", "-q", "-o", "/dev/null", "-p", &std::process::id().to_string()]);
        // In a process group of its own: Ctrl-C reaches only this process, which then ends strace.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("`strace` cannot be started ({error})"))?;
        let mut strace = Self { child };
        let began = Instant::now();
        loop {
            if threads.iter().all(|thread| is_followed(*thread)) {
                return Ok(strace);
            }
            if let Ok(Some(status)) = strace.child.try_wait() {
                let mut message = String::new();
                if let Some(mut stderr) = strace.child.stderr.take() {
                    let _ = stderr.read_to_string(&mut message);
                }
                return Err(format!("it ended ({status}): {}", message.trim()));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("it did not follow all threads within {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Detaches strace and waits for its end.
    pub(crate) fn detach(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // It detaches from all threads on SIGTERM, in order.
        // SAFETY: a plain call; the child was not waited for, so its number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > PATIENCE {
                // The kernel detaches then.
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(LOOK);
        }
        may_be_followed(false);
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.end();
    }
}

/// Permits a child to trace its parent, which Yama forbids by default; without Yama it has no effect.
fn may_be_followed(by_any: bool) {
    const ANY: libc::c_ulong = libc::c_ulong::MAX;
    // SAFETY: a plain call with integer arguments; a kernel without Yama refuses it.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, if by_any { ANY } else { 0 }, 0, 0, 0) };
}

fn is_followed(thread: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
