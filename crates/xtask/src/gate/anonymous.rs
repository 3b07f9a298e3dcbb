//! The peak of a program's anonymous memory.
//!
//! Linux keeps no such peak: `VmHWM` and `ru_maxrss` count the mapped pages of the program's own file,
//! and a cgroup's `memory.peak` counts the page cache. But anonymous memory shrinks only in a few system
//! calls (`munmap`, `mremap`, `brk`, `madvise`, `mmap` over a mapping) and at the end of a process, so its
//! peak is its size immediately before one of them. A seccomp filter stops the program at these calls,
//! ptrace reports each stop and the exit, and `/proc/TID/smaps_rollup` is read there: it walks the page
//! tables, while `RssAnon` in `/proc/PID/status` is a counter with a batch per processor. Pages in swap count.
//! All other system calls run at full speed.
//!
//! Limits: the other threads run while one is stopped, so pages are missed that they touch during a reading
//! (some 0.1 ms) and that are freed before the next stop; a peak above 64 MiB is known to 1 %. A page written to in a private file mapping
//! (relocated data) is anonymous; clean pages of the program are not counted.
//!
//! Source: seccomp(2) `SECCOMP_RET_TRACE`, ptrace(2), Linux `Documentation/filesystems/proc.rst`
//! (`smaps_rollup`: `Pss_Anon`, `Pss_Shmem`, `SwapPss`; Linux 5.4).

use crate::process::{contents, memory_file};
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// System calls that can free anonymous memory.
const FREEING: [libc::c_long; 5] =
    [libc::SYS_munmap, libc::SYS_mremap, libc::SYS_brk, libc::SYS_madvise, libc::SYS_mmap];

/// Above this, in KiB, a peak is known to 1 %: a program with 4,000 threads is not stopped for minutes.
const LARGE_KIB: u64 = 64 << 10;

/// A run under the tracer.
#[derive(Debug)]
pub(super) struct Traced {
    /// Largest anonymous memory of one process, in KiB.
    pub(super) peak_kib: u64,
    /// Standard output.
    pub(super) stdout: Vec<u8>,
}

/// Runs a program to its end and returns its output and the peak of its anonymous memory.
///
/// # Errors
/// If the program cannot be started or traced, does not exit with 0, or runs longer than `limit_s` seconds
/// (SIGALRM then ends it).
pub(super) fn run(command: &mut Command, limit_s: u32) -> Result<Traced> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    // SAFETY: the closure runs in the child between fork and exec and makes only system calls;
    // it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            // An alarm survives exec, and a program that does not handle SIGALRM ends by it.
            libc::alarm(limit_s);
            check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))?;
            stop_at_freeing_calls()
        });
    }
    // `Child` is not waited for by std: its stops and its end are read by waitpid below.
    let pid = command.spawn().with_context(|| format!("`{name}` cannot be started"))?.id() as libc::pid_t;
    let (status, peak_kib) = follow(pid)?;
    let messages = String::from_utf8_lossy(&contents(&mut stderr)?).into_owned();
    let is_good = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    ensure!(is_good, "`{name}` failed (wait status {status:#x})\n  {}", messages.trim());
    Ok(Traced { peak_kib, stdout: contents(&mut stdout)? })
}

/// Installs the filter: the calls of [`FREEING`] stop for the tracer, all others run.
fn stop_at_freeing_calls() -> io::Result<()> {
    let code = |class: u32| class as u16;
    let count = FREEING.len();
    // struct seccomp_data begins with the number of the call.
    let load = libc::sock_filter { code: code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), jt: 0, jf: 0, k: 0 };
    let answer = |k: u32| libc::sock_filter { code: code(libc::BPF_RET | libc::BPF_K), jt: 0, jf: 0, k };
    let mut program = [load; FREEING.len() + 3];
    for (index, call) in FREEING.into_iter().enumerate() {
        // From a match the rest of the comparisons and the plain answer are skipped.
        let skip = (count - index) as u8;
        let compare = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
        program[index + 1] = libc::sock_filter { code: compare, jt: skip, jf: 0, k: call as u32 };
    }
    program[count + 1] = answer(libc::SECCOMP_RET_ALLOW);
    program[count + 2] = answer(libc::SECCOMP_RET_TRACE);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain calls; the kernel copies the program, which outlives the call.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter).into())
    }
}

/// Follows a traced child from its exec to its end: its wait status and the peak.
fn follow(pid: libc::pid_t) -> Result<(libc::c_int, u64)> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK;
    let (_, status) = wait(pid)?;
    ensure!(libc::WIFSTOPPED(status), "the program ended before it could be traced (wait status {status:#x})");
    // SAFETY: `pid` is our stopped tracee; the options are an integer.
    check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) }).context("PTRACE_SETOPTIONS")?;
    resume(pid, 0)?;
    let mut peak_kib = 0;
    let error_kib = counter_error_kib();
    loop {
        let (tid, status) = wait(-1)?;
        if !libc::WIFSTOPPED(status) {
            if tid == pid {
                return Ok((status, peak_kib));
            }
            continue;
        }
        let signal = match status >> 16 {
            libc::PTRACE_EVENT_SECCOMP | libc::PTRACE_EVENT_EXIT => {
                let resolved = if peak_kib > LARGE_KIB { peak_kib / 100 } else { 0 };
                if counted_kib(tid).is_none_or(|counted| counted + error_kib >= peak_kib + resolved) {
                    peak_kib = peak_kib.max(anonymous_kib(tid)?);
                }
                0
            }
            // A new thread or process begins with a SIGSTOP from the kernel.
            0 if libc::WSTOPSIG(status) != libc::SIGSTOP => libc::WSTOPSIG(status),
            _ => 0,
        };
        resume(tid, signal)?;
    }
}

/// Waits for the next change of a tracee of this thread; −1: of any.
fn wait(pid: libc::pid_t) -> Result<(libc::pid_t, libc::c_int)> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a live variable.
        let tid = unsafe { libc::waitpid(pid, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        match tid {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()).context("waitpid"),
            tid => return Ok((tid, status)),
        }
    }
}

fn resume(tid: libc::pid_t, signal: libc::c_int) -> Result<()> {
    // SAFETY: `tid` is our stopped tracee; the signal is an integer.
    match check(unsafe { libc::ptrace(libc::PTRACE_CONT, tid, 0, signal) }) {
        // It was killed meanwhile: its end is reported next.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other.context("PTRACE_CONT"),
    }
}

/// Most that the kernel's counters of memory are off, in KiB: each processor counts up to 32 pages by itself, or twice the number of
/// processors if that is more, in each of the three counters (`percpu_counter_batch`).
fn counter_error_kib() -> u64 {
    // SAFETY: plain calls without pointers.
    let [processors, page_bytes] =
        [libc::_SC_NPROCESSORS_CONF, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    let [processors, page_bytes] = [processors, page_bytes].map(|number| u64::try_from(number).unwrap_or(1).max(1));
    3 * processors * (2 * processors).max(32) * page_bytes / 1024
}

/// The kernel's counters of the same, in KiB: quick to read, and off by up to [`counter_error_kib`].
fn counted_kib(tid: libc::pid_t) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    ["RssAnon:", "RssShmem:", "VmSwap:"].into_iter().map(|name| kib_of(&text, name)).sum()
}

/// Anonymous and shared memory of a process by one of its threads, in KiB.
fn anonymous_kib(tid: libc::pid_t) -> Result<u64> {
    let path = format!("/proc/{tid}/smaps_rollup");
    let mut text = String::new();
    match File::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => sum_of(&text).with_context(|| format!("{path} has no `Pss_Anon` (Linux 5.4)")),
        // The thread group's other threads have let go of the memory already.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(0),
        Err(error) => bail!("{path}: {error}"),
    }
}

fn sum_of(smaps_rollup: &str) -> Option<u64> {
    ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"].into_iter().map(|name| kib_of(smaps_rollup, name)).sum()
}

/// The value of a line `NAME: 123 kB` of a file in /proc.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn check(returned: libc::c_long) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak_kib(program: &str, arguments: &[&str]) -> u64 {
        run(Command::new(program).args(arguments), 60).unwrap().peak_kib
    }

    /// Goal: memory that is freed before the program ends is in the peak.
    /// Method: a string doubles to 32 MiB and is dropped; its last two stages exist together.
    #[test]
    fn the_peak_holds_memory_that_was_freed_again() {
        let script = r#"BEGIN { s = "x"; for (i = 0; i < 25; i++) s = s s; s = ""; t = s s; print length(t) }"#;
        let peak = peak_kib("awk", &[script]);
        assert!((32 << 10..160 << 10).contains(&peak), "{peak} KiB");
    }

    #[test]
    fn mapped_files_are_not_counted() {
        // The program, its loader and the C library are more than 1 MiB of mapped files.
        let peak = peak_kib("true", &[]);
        assert!(peak > 0 && peak < 1024, "{peak} KiB");
    }

    #[test]
    fn children_and_threads_are_followed() {
        let script = r#"awk 'BEGIN { s = "x"; for (i = 0; i < 25; i++) s = s s }' && true"#;
        assert!(peak_kib("sh", &["-c", script]) >= 32 << 10);
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_an_error() {
        let failed = |script: &str, limit_s| run(Command::new("sh").args(["-c", script]), limit_s).unwrap_err();
        assert!(failed("echo no >&2; exit 3", 60).to_string().contains("no"));
        failed("exec sleep 100", 1);
    }
}
