//! `exec`: a job without I/O, which runs another program while other jobs measure.
//!
//! It ends when the program ends. At the end of the job's time, or when the run is ended, the program and what it has
//! started in its process group get SIGTERM, and after the time of grace SIGKILL. What a program
//! leaves running when it ends by itself is ended likewise. A program that ends by itself with an error makes the run
//! fail. It has no figures: nothing of it is an operation.
//!
//! The plan decides which programs may be started. What they print goes to `NAME.stdout` and `NAME.stderr` in the
//! working directory, or to our standard error: standard output is for results.
//!
//! Cannot see: what the program does; a process that leaves its group is not ended.
//!
//! Sources: kill(2), prctl(2) `PR_SET_PDEATHSIG`, waitid(2) `WNOWAIT`, wait4(2), proc(5) `/proc/pid/stat`.

use crate::credentials::become_user;
use crate::output_file::Before;
use crate::printed::PrintedFile;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::{WorkerContext, WorkerReport, usage_of};
use trueio_model::{ExecPlan, OutputPlan, UserPlan};

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long what was killed may take to be gone: it may be in the middle of an I/O.
const GONE: Duration = Duration::from_secs(30);

/// Runs the program from the phase's start to its end, or to the end of the job's time.
#[inline(never)]
pub(super) fn run(context: &WorkerContext<'_>, plan: &ExecPlan) -> WorkerReport {
    let prepared = prepare(plan, &context.plan.output, context.plan.user);
    context.reached();
    let limits = &context.plan.limits;
    let head = Duration::from_nanos(limits.start_delay_ns);
    let report = match prepared {
        Ok((command, printed)) if sleep(head, context) => {
            let mut report = follow(context, plan, command);
            for file in printed {
                if let Err(reason) = file.finish() {
                    report.fatal.get_or_insert(reason);
                }
            }
            report
        }
        Ok(_) => WorkerReport { was_stopped: true, ..WorkerReport::empty() },
        Err(reason) => WorkerReport::failed(reason),
    };
    context.finished(report.fatal.is_some());
    report
}

/// False if the run was ended before.
fn sleep(length: Duration, context: &WorkerContext<'_>) -> bool {
    let until = Instant::now() + length;
    while !context.stop.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(LOOK.min(left));
    }
    false
}

/// Returns the program, and the files for what it prints.
fn prepare(
    plan: &ExecPlan,
    output: &OutputPlan,
    user: Option<UserPlan>,
) -> Result<(Command, Vec<PrintedFile>), String> {
    let (program, arguments) = plan.arguments.split_first().ok_or("no program is named")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // What an earlier run printed is replaced.
    let mut printed = Vec::new();
    let mut create = |path: String| {
        let before = Before::planned(output, Path::new(&path));
        let created = PrintedFile::create(&path, before);
        let (file, pipe) = created.map_err(|error| format!("`{path}` cannot be made: {error}"))?;
        printed.push(file);
        Ok::<_, String>(File::from(pipe))
    };
    let (output, errors) = match plan.output_files() {
        Some([output, errors]) => (create(output)?, create(errors)?),
        None => {
            let ours = || std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
            let failed = |error| format!("copying a descriptor: {error}");
            (ours().map_err(failed)?, ours().map_err(failed)?)
        }
    };
    // A group of its own: a Ctrl-C is for this program, and what the other one starts ends with it.
    command.stdout(output).stderr(errors).process_group(0);
    // SAFETY: between fork and exec plain system calls are made, nothing else.
    unsafe {
        command.pre_exec(move || {
            // The program only: this thread ends it, whatever user it becomes.
            user.map_or(Ok(()), become_user)?;
            // Killed in whatever way, this program leaves no other running.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Ok((command, printed))
}

fn follow(context: &WorkerContext<'_>, plan: &ExecPlan, mut command: Command) -> WorkerReport {
    let name = plan.arguments.first().map_or("", String::as_str);
    let limits = &context.plan.limits;
    let begin = Instant::now();
    let end = limits.runtime_ns.map(|ns| begin + Duration::from_nanos(limits.ramp_ns + ns));
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return WorkerReport::failed(format!("`{name}` cannot be started: {error}")),
    };
    // The leader of its group. It is waited for at last, so that the number stays its own.
    let pid = child.id() as i32;
    let mut asked: Option<Instant> = None;
    let mut report = WorkerReport::empty();
    loop {
        match has_ended(pid) {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => return WorkerReport::failed(format!("waiting for `{name}` failed: {error}")),
        }
        report.was_stopped |= context.stop.load(Relaxed);
        let is_over = report.was_stopped || end.is_some_and(|end| Instant::now() >= end);
        if is_over || asked.is_some() {
            signal_group(pid, plan, &mut asked);
        }
        std::thread::sleep(LOOK);
    }
    report.elapsed_ns = begin.elapsed().as_nanos() as u64;
    let ended_by_itself = asked.is_none();
    let left = end_others(pid, plan, &mut asked);
    let (status, usage) = match reaped(pid) {
        Ok(reaped) => reaped,
        Err(error) => return WorkerReport::failed(format!("waiting for `{name}` failed: {error}")),
    };
    report.threads = usage_of(&usage);
    report.threads.elapsed_ns = report.elapsed_ns;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("with {code}"),
        (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
    };
    let words = plan.arguments.join(" ");
    report.engine_notes.push(match ended_by_itself {
        false => format!("exec: `{words}` was ended {how}"),
        true => format!("exec: `{words}` ended by itself {how}"),
    });
    if ended_by_itself && !status.success() {
        let hint = plan.output.as_ref().map_or_else(String::new, |prefix| format!(" (see `{prefix}.stderr`)"));
        report.fatal = Some(format!("`{name}` ended {how}{hint}"));
    }
    match left {
        Ok(false) => {}
        Ok(true) => report.engine_notes.push(format!("exec: what `{words}` had left running was ended")),
        Err(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
            report.fatal.get_or_insert(format!(
                "what `{name}` left running cannot be ended (process {}): it runs on while the next phases are measured",
                numbers.join(", ")
            ));
        }
    }
    report
}

/// Asks a group to end, or ends it when its time of grace, which begins with the first call, is over.
fn signal_group(group: i32, plan: &ExecPlan, asked: &mut Option<Instant>) {
    let signal = match *asked {
        None => libc::SIGTERM,
        Some(at) if at.elapsed() >= Duration::from_nanos(plan.grace_ns) => libc::SIGKILL,
        Some(_) => return,
    };
    asked.get_or_insert_with(Instant::now);
    // SAFETY: a plain call; the group is our child's, which was not waited for, so the number belongs to no other process.
    unsafe { libc::kill(-group, signal) };
}

/// Ends what a leader that has ended left running in its group; true if there was something, or the numbers of those
/// that do not end.
fn end_others(group: i32, plan: &ExecPlan, asked: &mut Option<Instant>) -> Result<bool, Vec<i32>> {
    let begin = Instant::now();
    let most = Duration::from_nanos(plan.grace_ns) + GONE;
    let mut had_some = false;
    loop {
        let others = others_of(group);
        if others.is_empty() {
            return Ok(had_some);
        }
        if begin.elapsed() > most {
            return Err(others);
        }
        had_some = true;
        signal_group(group, plan, asked);
        std::thread::sleep(LOOK);
    }
}

/// The running processes of a group, without its leader.
fn others_of(group: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_of_group = |pid: &i32| {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        // A name may hold anything; after its last bracket come the state, the parent, the group.
        let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        let state = fields.next().unwrap_or("");
        let of = fields.nth(1).and_then(|group| group.parse::<i32>().ok());
        of == Some(group) && !matches!(state, "Z" | "X")
    };
    numbers.filter(|pid| *pid != group).filter(is_of_group).collect()
}

/// True if a child has ended. It is not waited for.
fn has_ended(pid: i32) -> std::io::Result<bool> {
    // SAFETY: the kernel fills the structure; WNOWAIT leaves the child to be waited for.
    let (result, about) = unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(libc::P_PID, pid as libc::id_t, &mut about, flags), about)
    };
    if result != 0 {
        let error = std::io::Error::last_os_error();
        return if error.kind() == std::io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    // SAFETY: waitid filled it; the number is 0 if no child has ended.
    Ok(unsafe { about.si_pid() } == pid)
}

/// What became of a child that has ended.
fn reaped(pid: i32) -> std::io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: the kernel fills both structures.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if result == pid { Ok((ExitStatus::from_raw(status), usage)) } else { Err(std::io::Error::last_os_error()) }
}
