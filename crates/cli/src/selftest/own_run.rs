//! A run in a process of its own, for what must not happen to this process: a stop, which would look to its shell like one by the
//! user, or a filter of system calls, which no process can remove.
//!
//! The process is killed if this one ends first, so that none stays stopped.

use super::stage::worker_read_bytes;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_model::RunRecord;

/// Name of the job, before its number. Its worker has the first 15 bytes of it, which are the same in all.
const NAME: &str = "selftest-own-run";
/// A run that has not begun until then is given up.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// Direct reads, one at a time.
const READS: &[&str] = &[
    "--rw",
    "randread",
    "--bs",
    "4k",
    "--ioengine",
    "psync",
    "--direct",
    "require",
    "--size",
    "4m",
    "--time_based",
    "--no-history",
    "--json",
    "-",
];

/// The process; killed and reaped on drop.
pub(super) struct OwnRun(Child);

impl OwnRun {
    /// Starts direct reads in `directory` for the time in `options`. Runs at the same time have different numbers: each makes a file of that
    /// number, which has a name until it is open. The new process calls `prepare` before it executes the program. The calling
    /// thread must live as long as the run: it is killed when that thread ends.
    ///
    /// # Safety
    /// `prepare` runs between fork and exec: it makes async-signal-safe calls only, and allocates nothing.
    pub(super) unsafe fn start(
        directory: &Path,
        number: usize,
        options: &[&str],
        mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        // The scratch files may cover the path of this program, but not its file.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("trueio")
            .args(["run", "--name", &format!("{NAME}-{number}")])
            .args(READS)
            .args(options)
            .arg("--directory")
            .arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let prepare = move || {
            // SAFETY: a plain call with numbers.
            if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
                return Err(io::Error::last_os_error());
            }
            prepare()
        };
        // SAFETY: the call above is async-signal-safe and allocates nothing; the caller upholds the same for `prepare`.
        unsafe { command.pre_exec(prepare) };
        Ok(Self(command.spawn()?))
    }

    /// Returns the process for signals.
    pub(super) fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    /// Returns the first lines that a run printed which has ended without a success; `None`: it has not.
    pub(super) fn failure(&mut self) -> Option<String> {
        let ended = self.0.try_wait().ok().flatten().filter(|status| !status.success())?;
        let mut text = String::new();
        io::Read::read_to_string(self.0.stderr.as_mut()?, &mut text).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
        Some(format!("{ended}: {}", lines.join(" ")))
    }

    /// Waits for the end, and returns the record.
    pub(super) fn finish(mut self) -> io::Result<RunRecord> {
        let mut text = String::new();
        let mut output = self.0.stdout.take().ok_or_else(|| io::Error::other("the run has no output"))?;
        io::Read::read_to_string(&mut output, &mut text)?;
        trueio_report::parse(&text).map_err(io::Error::other)
    }
}

impl Drop for OwnRun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the worker of a run has read from its disk.
pub(super) fn wait_until_it_reads(process: rustix::process::Pid, stop: &AtomicBool) -> io::Result<()> {
    let deadline = Instant::now() + BEGIN_MAX;
    while worker_read_bytes(process.as_raw_nonzero().get() as u32, NAME) == 0 {
        if Instant::now() > deadline || stop.load(Relaxed) {
            return Err(io::Error::other("the run did not begin"));
        }
        if has_ended(process) {
            return Err(io::Error::other("the run ended before it read"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Returns true if a process of ours has ended; it need not be reaped. An error of procfs is none of the process.
fn has_ended(process: rustix::process::Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    state.is_ok_and(|text| text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ends_before_it_reads_is_not_waited_for() {
        let mut ended = Command::new("true").spawn().expect("true");
        let process = rustix::process::Pid::from_child(&ended);
        let error = wait_until_it_reads(process, &AtomicBool::new(false)).expect_err("it reads nothing");
        assert_eq!(error.to_string(), "the run ended before it read");
        ended.wait().expect("it ended");
    }
}
