//! Runs a program and measures its cost.
//!
//! CPU time is wait4(2)'s: exact for the process, all its threads (io-wq and SQPOLL workers are
//! threads of it) and the children that it waited for. Kernel threads that serve all processes, such
//! as a loop device's, are not in it; [`Cost::others_cpu_ns`] shows them and other programs.
//!
//! While the program runs this process sleeps in poll(2). Output goes to memory files, not pipes,
//! so no process has to wake up to read it. A program that takes too long is ended with all its group,
//! and so is one that runs when this process receives a signal to stop.
//!
//! Cannot see: a peak of memory below this process's own anonymous pages. A fork carries them into the
//! child's peak until it calls exec, and the kernel keeps the larger figure (`setmax_mm_hiwater_rss`
//! in fs/exec.c). `gate/anonymous.rs` measures memory without that limit.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The cost of a run of a program, and its output.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    /// From just before the start to the end.
    pub(crate) wall_ns: u64,
    /// CPU time of the process tree in user mode. The sum with `system_ns` is exact; the division
    /// between the two is sampled at the timer's tick.
    pub(crate) user_ns: u64,
    /// CPU time of the process tree in the kernel.
    pub(crate) system_ns: u64,
    /// CPU time that everything else on the machine took meanwhile, kernel threads and idle
    /// neighbours' interrupts included; in ticks of 10 ms.
    pub(crate) others_cpu_ns: u64,
    /// Largest resident memory, of the largest process.
    pub(crate) peak_rss_kib: u64,
    /// Exit status; `None` if a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Cost {
    /// Returns itself, or an error with the last lines of the program's output if it did not exit with 0.
    pub(crate) fn checked(self, what: &str) -> Result<Self> {
        if self.exit_code == Some(0) {
            return Ok(self);
        }
        let output =
            if self.stderr.trim().is_empty() { String::from_utf8_lossy(&self.stdout).into() } else { self.stderr };
        let lines: Vec<&str> = output.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n  ");
        match self.exit_code {
            Some(code) => bail!("{what} exited with {code}\n  {last}"),
            None => bail!("{what} was ended by a signal\n  {last}"),
        }
    }
}

/// A program about to run.
pub(crate) struct Program<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a mut Command,
    /// The only processor it may use; `None`: all.
    pub(crate) cpu: Option<usize>,
    /// It is ended after this.
    pub(crate) limit: Duration,
}

impl Program<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// If it cannot be started, takes longer than its limit, or this process receives a signal to stop. That
    /// it failed is not an error here: see [`Cost::checked`].
    pub(crate) fn run(self) -> Result<Cost> {
        install_stop_handler()?;
        if is_stopped() {
            bail!("stopped");
        }
        let name = self.command.get_program().to_string_lossy().into_owned();
        let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
        self.command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let cpu = self.cpu;
        // SAFETY: the closure runs in the child between fork and exec and makes only system calls,
        // which are async-signal-safe; it neither allocates nor takes a lock.
        unsafe {
            self.command.pre_exec(move || {
                // A group of its own, so that it can be ended together with its children.
                check(libc::setpgid(0, 0))?;
                // And if this process is killed outright, so is it.
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                if let Some(cpu) = cpu {
                    let mut set: libc::cpu_set_t = std::mem::zeroed();
                    libc::CPU_SET(cpu, &mut set);
                    check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set))?;
                }
                Ok(())
            });
        }
        let busy_before = machine_busy_ns();
        let begin = Instant::now();
        // `Child` does not wait when it is dropped, so only wait4 below reaps it.
        let pid = self.command.spawn().with_context(|| format!("`{name}` cannot be started"))?.id() as libc::pid_t;
        let was_ended = wait_or_end(pid, begin + self.limit)?;
        let (status, usage) = reap(pid)?;
        let wall_ns = begin.elapsed().as_nanos() as u64;
        let busy_ns = machine_busy_ns().saturating_sub(busy_before);
        match was_ended {
            Some(End::Stopped) => bail!("stopped while `{name}` ran"),
            Some(End::Late) => bail!("`{name}` did not end within {} s", self.limit.as_secs()),
            None => {}
        }
        let (user_ns, system_ns) = (timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime));
        Ok(Cost {
            wall_ns,
            user_ns,
            system_ns,
            others_cpu_ns: busy_ns.saturating_sub(user_ns + system_ns),
            peak_rss_kib: usage.ru_maxrss as u64,
            exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            stdout: contents(&mut stdout)?,
            stderr: String::from_utf8_lossy(&contents(&mut stderr)?).into_owned(),
        })
    }
}

/// The reason why a program was killed.
enum End {
    Late,
    Stopped,
}

/// Sleeps until the program ends; kills its group at the time limit or after a signal to stop.
fn wait_or_end(pid: libc::pid_t, deadline: Instant) -> Result<Option<End>> {
    // SAFETY: pidfd_open takes a pid and flags and returns a new descriptor or −1. `pid` is our
    // child and not yet reaped, so the number cannot belong to another.
    let descriptor = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32)?;
    // SAFETY: the descriptor is new and has no other owner.
    let pidfd = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut reason = None;
    let mut deadline = deadline;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let stop = if reason.is_none() { STOP_PIPE.get().map_or(-1, |pipe| pipe.0.as_raw_fd()) } else { -1 };
        let mut waits = [pidfd.as_raw_fd(), stop].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // Rounded up, so that a poll that ends by time ends after the deadline.
        let timeout = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: `waits` is an array of two pollfd that lives through the call.
        let ready = unsafe { libc::poll(waits.as_mut_ptr(), 2, timeout) };
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(io::Error::last_os_error()).context("poll");
        }
        if waits[0].revents != 0 {
            return Ok(reason);
        }
        let signal = match (&reason, is_stopped(), Instant::now() >= deadline) {
            (None, true, _) => {
                reason = Some(End::Stopped);
                libc::SIGTERM
            }
            (None, false, true) => {
                reason = Some(End::Late);
                libc::SIGTERM
            }
            // It ignored SIGTERM.
            (Some(_), _, true) => libc::SIGKILL,
            _ => continue,
        };
        deadline = Instant::now() + Duration::from_secs(5);
        // SAFETY: the group is our child's own (setpgid before exec), and the child is not reaped.
        unsafe { libc::kill(-pid, signal) };
    }
}

/// Reaps our child `pid`: its status and what it and its children used.
fn reap(pid: libc::pid_t) -> Result<(libc::c_int, libc::rusage)> {
    loop {
        let mut status = 0;
        // SAFETY: rusage is a plain C struct for which all zeros are a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live variables; `pid` is our child, not yet reaped.
        let reaped = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
        match reaped {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()).context("wait4"),
            _ => return Ok((status, usage)),
        }
    }
}

static IS_STOPPED: AtomicBool = AtomicBool::new(false);
/// The write end, for the handler: it may not touch `STOP_PIPE`.
static STOP_WRITE: AtomicI32 = AtomicI32::new(-1);
static STOP_PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

/// True after this process received SIGINT, SIGTERM or SIGHUP.
pub(crate) fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Relaxed)
}

extern "C" fn stop(_: libc::c_int) {
    IS_STOPPED.store(true, Ordering::Relaxed);
    // SAFETY: write is async-signal-safe; the byte lives on the stack. That the pipe is full is
    // no harm: it is readable then.
    unsafe { libc::write(STOP_WRITE.load(Ordering::Relaxed), [1u8].as_ptr().cast(), 1) };
}

/// From now on a signal to stop makes [`Program::run`] fail instead of ending this process, so that
/// the guards of devices and files are dropped on the way out.
pub(crate) fn install_stop_handler() -> Result<()> {
    if STOP_PIPE.get().is_some() {
        return Ok(());
    }
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    // SAFETY: both descriptors are new and have no other owner.
    let ends_owned = unsafe { ends.map(|end| OwnedFd::from_raw_fd(end)) };
    STOP_WRITE.store(ends[1], Ordering::Relaxed);
    let [read, write] = ends_owned;
    if STOP_PIPE.set((read, write)).is_err() {
        return Ok(());
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `stop` is a handler of the right shape and does only what a handler may; all
        // zeros are a valid sigaction (no flags, empty mask).
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stop as extern "C" fn(libc::c_int) as usize;
            check(libc::sigaction(signal, &action, std::ptr::null_mut()))?;
        }
    }
    Ok(())
}

/// The last processor that this process may use: interrupts tend to go to the first.
pub(crate) fn last_cpu() -> Option<usize> {
    // SAFETY: all zeros are an empty set, and the size given is the set's.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set)).ok()?;
        (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set))
    }
}

/// The load averages of 1, 5 and 15 minutes, as /proc/loadavg gives them.
pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

/// A file without a name, in memory.
pub(crate) fn memory_file() -> Result<File> {
    // SAFETY: the name is a C string literal; a new descriptor or −1 is returned.
    let descriptor = check(unsafe { libc::memfd_create(c"xtask-output".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Everything that was written to a file.
pub(crate) fn contents(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// CPU time of the whole machine that was not idle, since boot: the first line of /proc/stat.
fn machine_busy_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> =
        text.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already. proc(5).
    let busy: u64 = ticks.iter().enumerate().filter(|(i, _)| !matches!(i, 3 | 4) && *i < 8).map(|(_, n)| n).sum();
    busy * 10_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Cost> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program { command: &mut command, cpu: None, limit }.run()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_programs_words_and_status_come_back() {
        let cost = shell("echo out; echo err >&2; exit 3", LONG).unwrap();
        assert_eq!((cost.exit_code, &*cost.stdout, &*cost.stderr), (Some(3), &b"out\n"[..], "err\n"));
        assert!(cost.checked("sh").unwrap_err().to_string().contains("exited with 3"));
    }

    /// Goal: what a grandchild burns is counted, as long as its parent waits for it.
    /// Method: a shell starts a shell that counts to 200,000; the same without counting is the floor.
    #[test]
    fn the_cpu_time_of_grandchildren_is_counted() {
        let idle = shell("sh -c 'exit 0'; true", LONG).unwrap();
        let busy = shell("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true", LONG).unwrap();
        let (idle, busy) = (idle.user_ns + idle.system_ns, busy.user_ns + busy.system_ns);
        assert!(busy > idle + 20_000_000, "idle {idle} ns, busy {busy} ns");
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_its_children() {
        let begin = Instant::now();
        let error = shell("sleep 100 & sleep 100", Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_pinned_program_sees_one_processor() {
        let mut command = Command::new("nproc");
        let cost = Program { command: &mut command, cpu: last_cpu(), limit: LONG }.run().unwrap();
        assert_eq!(String::from_utf8_lossy(&cost.stdout).trim(), "1");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let mut command = Command::new("/there/is/no/such/program");
        assert!(Program { command: &mut command, cpu: None, limit: LONG }.run().is_err());
    }
}
