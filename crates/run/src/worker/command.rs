//! A job whose I/O another program does.
//!
//! The program is started where a worker would begin, and the job ends when it ends; the sync calls that the job
//! asks for at its end are made here, after it. What it does in between cannot be seen from here, so it counts as one
//! operation, with the bytes that the kernel counted for its write calls (`/proc/PID/io`), and no latency but the
//! whole. Its start (fork, exec, linking) is part of its time, as for every user of it.
//!
//! The file is passed as a path: `/proc/PID/fd/N` of this process, which needs no name in any directory.
//! What it should have written is known if the job sets it (`verify = "pattern"`): then the file is read back after the
//! time, and each block compared.
//!
//! The program inherits nothing else: no standard input, output into nothing, messages into memory (the last
//! one is reported if it fails). It is not sandboxed; the plan decides which programs may be started at all.
//!
//! Sources: proc(5) `/proc/pid/io`, pidfd_open(2), wait4(2), getrusage(2).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::{BlockSeal, Difference, FAILURES_MAX, Progress, WorkerContext, WorkerReport, usage_of};
use trueio_model::{CommandPlan, Histogram, LatencySet, OpKind, OpRecord, SeriesRow, ThreadUsage, VerifyFailure};

/// How often the program is looked at while it runs.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The most of its messages that is read.
const MESSAGE_BYTES_MAX: u64 = 64 << 10;

/// What became of the program.
struct Ended {
    status: ExitStatus,
    usage: ThreadUsage,
    /// Its writes, messages included; `None` if the kernel does not count them.
    wrote: Option<Written>,
    was_stopped: bool,
}

/// Writes of a process.
#[derive(Debug, Clone, Copy)]
struct Written {
    bytes: u64,
    calls: u64,
}

/// Runs the program of a job, from the phase's start to the last sync call.
#[inline(never)]
pub(super) fn run(context: &WorkerContext<'_>, command: &CommandPlan) -> WorkerReport {
    let plan = context.plan;
    let prepared = prepare(context, command);
    context.reached();
    if plan.limits.start_delay_ns > 0 {
        std::thread::sleep(Duration::from_nanos(plan.limits.start_delay_ns));
    }
    let mut report = match prepared {
        Ok((program, messages)) => measure(context, command, program, messages),
        Err(reason) => WorkerReport::failed(reason),
    };
    context.finished(report.fatal.is_some());
    if report.fatal.is_none() && !report.was_stopped {
        compare(context, &mut report);
    }
    report
}

/// Reads back what the program should have written, and compares it. Not timed.
fn compare(context: &WorkerContext<'_>, report: &mut WorkerReport) {
    let Some(verify) = context.plan.verify.clone() else { return };
    let seal = BlockSeal::new(verify);
    let mut block = vec![0; context.plan.pattern.write_sizes.max_bytes().max(1) as usize];
    for (target, plan) in context.files.iter().zip(&context.plan.files) {
        // It is the disk that is to be read, and not the page cache.
        if let Err(error) = target.file.sync_data() {
            report.fatal = Some(format!("fdatasync of `{}` before it is compared failed: {error}", target.path));
            return;
        }
        let _ = trueio_direct::evict(&target.file, 0, 0);
        let (mut at, end) = (plan.offset_bytes, plan.offset_bytes + plan.size_bytes);
        while at < end {
            if context.stop.load(Relaxed) {
                report.was_stopped = true;
                return;
            }
            let length = (end - at).min(block.len() as u64) as usize;
            if let Err(error) = target.file.read_exact_at(&mut block[..length], at) {
                report.fatal = Some(format!("reading `{}` at offset {at} to compare it failed: {error}", target.path));
                return;
            }
            report.verified_block_count += 1;
            if let Err(Difference { expected, found, part, numbers, pattern_byte, .. }) =
                seal.check(&mut block[..length], 0, at, 0)
            {
                report.verify_failure_count += 1;
                if report.verify_failures.len() < FAILURES_MAX {
                    report.verify_failures.push(VerifyFailure {
                        path: target.path.clone(),
                        offset: at,
                        length: length as u64,
                        expected,
                        found,
                        part,
                        numbers,
                        pattern_byte,
                    });
                }
            }
            at += length as u64;
        }
    }
}

/// The program with its arguments, and where its messages go.
fn prepare(context: &WorkerContext<'_>, plan: &CommandPlan) -> Result<(Command, File), String> {
    let target = context.files.first().ok_or("a program without a file")?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), target.file.as_raw_fd());
    let words: Vec<String> = plan.arguments.iter().map(|word| word.replace("{file}", &path)).collect();
    let (program, arguments) = words.split_first().ok_or("an empty command")?;
    let messages = memory_file().map_err(|e| format!("creating a file for the messages of `{program}`: {e}"))?;
    let copy = messages.try_clone().map_err(|e| format!("copying a descriptor: {e}"))?;
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null()).stderr(copy);
    // A Ctrl-C is for this program: it ends the other one itself, and reports what was measured.
    command.process_group(0);
    // SAFETY: between fork and exec a plain system call is made, nothing else.
    unsafe {
        command.pre_exec(|| {
            // Killed in whatever way, this program leaves no writer running. (It is this thread's end that counts, and
            // it stays until the other program's.)
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Ok((command, messages))
}

fn measure(
    context: &WorkerContext<'_>,
    command: &CommandPlan,
    mut program: Command,
    mut messages: File,
) -> WorkerReport {
    let name = command.arguments.first().map_or("", String::as_str);
    let begin = Instant::now();
    let child = match program.spawn() {
        Ok(child) => child,
        Err(error) => return WorkerReport::failed(format!("`{name}` cannot be started: {error}")),
    };
    let ended = match follow(child.id() as i32, context, begin) {
        Ok(ended) => ended,
        Err(error) => return WorkerReport::failed(format!("waiting for `{name}` failed: {error}")),
    };
    let program_ns = begin.elapsed().as_nanos() as u64;
    let expected: u64 = context.plan.files.iter().map(|file| file.size_bytes).sum();
    // Its messages are among the bytes that it wrote.
    let bytes = ended.wrote.map_or(expected, |wrote| wrote.bytes.min(expected));
    let mut report = WorkerReport::empty();
    report.fatal = failure(name, &ended, bytes, expected, &mut messages);
    report.was_stopped = ended.was_stopped;
    report.threads = ended.usage;
    report.ops.push(operation(OpKind::Write, bytes, &[program_ns]));
    report.engine_notes.push(match ended.wrote {
        Some(Written { bytes, calls }) => format!(
            "`{}` is one operation here: of what it did within its {:.3} s the kernel counted {calls} write calls and \
             {bytes} bytes, its messages included",
            command.arguments.join(" "),
            program_ns as f64 / 1e9
        ),
        None => format!(
            "`{}` is one operation here, and the kernel did not say what it wrote: its bytes are those it was asked for",
            command.arguments.join(" ")
        ),
    });
    let syncs = match report.fatal.is_none() && !ended.was_stopped {
        true => sync_calls(context),
        false => Ok(Vec::new()),
    };
    match syncs {
        Ok(latencies) if latencies.is_empty() => {}
        Ok(latencies) => report.ops.push(operation(OpKind::Sync, 0, &latencies)),
        Err(reason) => report.fatal = Some(reason),
    }
    report.elapsed_ns = begin.elapsed().as_nanos() as u64;
    report.threads.elapsed_ns = report.elapsed_ns;
    report.series.push(SeriesRow {
        end_ns: report.elapsed_ns,
        span_ns: report.elapsed_ns,
        write_count: 1,
        write_bytes: bytes,
        other_count: report.ops.iter().filter(|op| op.op == OpKind::Sync).map(|op| op.io_count).sum(),
        latency_ns_p50: program_ns,
        latency_ns_p99: program_ns,
        latency_ns_max: program_ns,
        read_count: 0,
        read_bytes: 0,
        trim_count: 0,
        trim_bytes: 0,
    });
    report
}

/// An operation with these latencies.
fn operation(op: OpKind, byte_count: u64, latencies: &[u64]) -> OpRecord {
    let mut total = Histogram::new();
    latencies.iter().for_each(|ns| total.record(*ns));
    let empty = Histogram::new;
    OpRecord {
        op,
        io_count: latencies.len() as u64,
        byte_count,
        short_count: 0,
        error_count: 0,
        latency: LatencySet { submission: empty(), completion: total.clone(), total, from_intended: empty() },
        priorities: Vec::new(),
        percentiles: Vec::new(),
        dependence: None,
        mean_latency_ns: None,
        ios_per_s: None,
    }
}

/// Why the program did not do what it should; `None` if it did.
fn failure(name: &str, ended: &Ended, bytes: u64, expected: u64, messages: &mut File) -> Option<String> {
    if ended.was_stopped {
        return None;
    }
    if !ended.status.success() {
        let how = match (ended.status.code(), ended.status.signal()) {
            (Some(code), _) => format!("with {code}"),
            (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
        };
        let message = last_message(messages).map_or_else(String::new, |message| format!(": {message}"));
        return Some(format!("`{name}` ended {how}{message}"));
    }
    (bytes < expected).then(|| format!("`{name}` ended well and wrote {bytes} of {expected} bytes"))
}

/// Returns the last line of the program's messages.
fn last_message(messages: &mut File) -> Option<String> {
    messages.seek(SeekFrom::Start(0)).ok()?;
    let mut text = Vec::new();
    messages.take(MESSAGE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// The sync calls that end the job, file by file: how long each took, in nanoseconds.
fn sync_calls(context: &WorkerContext<'_>) -> Result<Vec<u64>, String> {
    let flush = context.plan.flush;
    let mut latencies = Vec::new();
    for (is_asked_for, data_only) in [(flush.end_fdatasync, true), (flush.end_fsync || flush.fsync_on_close, false)] {
        for target in context.files.iter().filter(|_| is_asked_for) {
            let begin = Instant::now();
            let result = if data_only { target.file.sync_data() } else { target.file.sync_all() };
            let what = if data_only { "fdatasync" } else { "fsync" };
            result.map_err(|e| {
                format!(
                    "{what} of `{}` failed: {e}; after a failed sync no earlier write is known to be safe",
                    target.path
                )
            })?;
            latencies.push(begin.elapsed().as_nanos() as u64);
        }
    }
    Ok(latencies)
}

/// Waits for the program's end, reports its progress, and ends it if the run is stopped.
fn follow(pid: i32, context: &WorkerContext<'_>, begin: Instant) -> io::Result<Ended> {
    // SAFETY: a plain call with integers; the descriptor it returns is ours alone.
    let pidfd = unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    };
    let mut stopped_at: Option<Instant> = None;
    while !has_ended(pid, pidfd.as_ref())? {
        show_progress(pid, context.progress, begin);
        if !context.stop.load(Relaxed) {
            continue;
        }
        let signal = match stopped_at {
            None => libc::SIGTERM,
            Some(at) if at.elapsed() > GRACE => libc::SIGKILL,
            Some(_) => continue,
        };
        stopped_at.get_or_insert_with(Instant::now);
        // SAFETY: our own child, which was not waited for: the number belongs to no other process.
        unsafe { libc::kill(pid, signal) };
    }
    // It has ended and was not waited for, so the kernel still keeps its counters.
    let wrote = written(pid);
    let mut status = 0;
    // SAFETY: the kernel fills both structures.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if waited != pid {
        return Err(io::Error::last_os_error());
    }
    let usage = usage_of(&usage);
    Ok(Ended { status: ExitStatus::from_raw(status), usage, wrote, was_stopped: stopped_at.is_some() })
}

/// True if the program has ended; looks for at most [`LOOK`]. It is not waited for.
fn has_ended(pid: i32, pidfd: Option<&OwnedFd>) -> io::Result<bool> {
    match pidfd {
        Some(fd) => {
            let mut waiting = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: the kernel reads and writes one structure that lives until it returns.
            unsafe { libc::poll(&mut waiting, 1, LOOK.as_millis() as i32) };
        }
        // Before Linux 5.3: looked at every millisecond.
        None => std::thread::sleep(Duration::from_millis(1)),
    }
    // SAFETY: the kernel fills the structure; WNOWAIT leaves the child to be waited for.
    let (result, about) = unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(libc::P_PID, pid as libc::id_t, &mut about, flags), about)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: waitid filled it; the number is 0 if no child has ended.
    Ok(unsafe { about.si_pid() } == pid)
}

/// Returns the writes of a process until now.
fn written(pid: i32) -> Option<Written> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Written { bytes: of("wchar:")?, calls: of("syscw:")? })
}

fn show_progress(pid: i32, progress: &Progress, begin: Instant) {
    if let Some(Written { bytes, calls }) = written(pid) {
        progress.byte_counts[1].store(bytes, Relaxed);
        progress.io_count.store(calls, Relaxed);
        let mean_ns = begin.elapsed().as_nanos() as u64 / calls.max(1);
        progress.latency_ns_p50.store(mean_ns, Relaxed);
        progress.latency_ns_p99.store(mean_ns, Relaxed);
    }
}

/// A file in memory.
fn memory_file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("trueio-messages", rustix::fs::MemfdFlags::CLOEXEC)?))
}
