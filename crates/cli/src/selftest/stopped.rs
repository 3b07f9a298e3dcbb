//! A run in a process of its own, which is stopped while it measures: a stop of this process would look to its shell like
//! one by the user.
//!
//! The process is killed if this one ends first, so that none stays stopped.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_model::RunRecord;

/// Measured time of the run.
const RUNTIME: &str = "1500ms";
/// How long it is stopped.
const STOP: Duration = Duration::from_millis(600);
/// More bytes than the samples of the file's content have: the job reads.
const BEGUN_BYTES: u64 = 1 << 20;
/// A run that has not begun until then is given up.
const BEGIN_MAX: Duration = Duration::from_secs(30);

/// Kills and reaps a process that is still there.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs direct reads in `directory`, stops them for [`STOP`], and returns their record.
pub(super) fn run(directory: &Path, stop: &AtomicBool) -> io::Result<RunRecord> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "run",
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
    ]);
    command.args(["--runtime", RUNTIME, "--time_based", "--json", "-", "--no-history", "--directory"]).arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let die = || {
        // SAFETY: a plain call with numbers.
        let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the closure makes one async-signal-safe call and allocates nothing.
    unsafe { command.pre_exec(die) };
    let mut child = Reaped(command.spawn()?);
    let process = rustix::process::Pid::from_child(&child.0);
    let deadline = Instant::now() + BEGIN_MAX;
    while read_bytes(child.0.id()) < BEGUN_BYTES {
        if child.0.try_wait()?.is_some() || Instant::now() > deadline || stop.load(Relaxed) {
            return Err(io::Error::other("the run did not begin"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    rustix::process::kill_process(process, rustix::process::Signal::STOP)?;
    std::thread::sleep(STOP);
    rustix::process::kill_process(process, rustix::process::Signal::CONT)?;
    let mut text = String::new();
    let mut output = child.0.stdout.take().ok_or_else(|| io::Error::other("the run has no output"))?;
    io::Read::read_to_string(&mut output, &mut text)?;
    trueio_report::parse(&text).map_err(io::Error::other)
}

/// Returns what a process read from disks so far, in bytes.
fn read_bytes(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}
