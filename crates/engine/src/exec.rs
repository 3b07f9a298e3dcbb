//! `exec`: a job without I/O, which runs another program while other jobs measure.
//!
//! It ends when the program ends. At the end of the job's time, or when the run is ended, the program and what it has
//! started in its process group are asked to end (SIGTERM), and after the time of grace they are killed. A program that
//! ends by itself with an error makes the run fail. It has no figures: nothing of it is an operation.
//!
//! Which programs may be started the plan decides. What they print goes to `NAME.stdout` and `NAME.stderr` in the
//! working directory, or to our standard error: standard output is for results.
//!
//! Cannot see: what the program does; a process that leaves its group is not ended.
//!
//! Sources: kill(2), prctl(2) `PR_SET_PDEATHSIG`, wait4(2).

use crate::output_file::create_output;
use crate::recorder::WorkerReport;
use crate::worker::{WorkerContext, usage_of};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_model::ExecPlan;

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the program from the phase's start to its end, or to the end of the job's time.
pub(crate) fn run(context: &WorkerContext<'_>, plan: &ExecPlan) -> WorkerReport {
    let prepared = prepare(plan);
    context.start.reached();
    let limits = &context.plan.limits;
    let head = Duration::from_nanos(limits.start_delay_ns);
    let report = match prepared {
        Ok(command) if sleep(head, context) => follow(context, plan, command),
        Ok(_) => WorkerReport { was_stopped: true, ..WorkerReport::empty() },
        Err(reason) => WorkerReport::failed(reason),
    };
    context.start.finished();
    report
}

/// False if the run was ended before.
fn sleep(length: Duration, context: &WorkerContext<'_>) -> bool {
    let until = Instant::now() + length;
    while Instant::now() < until {
        if context.stop.load(Relaxed) {
            return false;
        }
        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
    true
}

/// The program, and where its messages go.
fn prepare(plan: &ExecPlan) -> Result<Command, String> {
    let (program, arguments) = plan.arguments.split_first().ok_or("no program is named")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // What an earlier run printed is replaced.
    let file = |path: &String| create_output(path).map_err(|error| format!("`{path}` cannot be made: {error}"));
    let (output, errors) = match plan.output_files() {
        Some([output, errors]) => (file(&output)?, file(&errors)?),
        None => {
            let ours = || std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
            let failed = |error| format!("copying a descriptor: {error}");
            (ours().map_err(failed)?, ours().map_err(failed)?)
        }
    };
    // A group of its own: a Ctrl-C is for this program, and what the other one starts ends with it.
    command.stdout(output).stderr(errors).process_group(0);
    // SAFETY: between fork and exec a plain system call is made, nothing else.
    unsafe {
        command.pre_exec(|| {
            // Killed in whatever way, this program leaves no other behind.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Ok(command)
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
    let pid = child.id() as i32;
    let mut asked: Option<Instant> = None;
    let mut report = WorkerReport::empty();
    let (status, usage) = loop {
        match waited(pid, libc::WNOHANG) {
            Ok(Some(ended)) => break ended,
            Ok(None) => {}
            Err(error) => return WorkerReport::failed(format!("waiting for `{name}` failed: {error}")),
        }
        report.was_stopped |= context.stop.load(Relaxed);
        let is_over = report.was_stopped || end.is_some_and(|end| Instant::now() >= end);
        let signal = match asked {
            None if is_over => Some(libc::SIGTERM),
            Some(at) if at.elapsed() >= Duration::from_nanos(plan.grace_ns) => Some(libc::SIGKILL),
            _ => None,
        };
        if let Some(signal) = signal {
            asked.get_or_insert_with(Instant::now);
            // SAFETY: a plain call; the group is our child's, which was not waited for, so the number is nobody else's.
            unsafe { libc::kill(-pid, signal) };
        }
        std::thread::sleep(LOOK);
    };
    report.threads = usage_of(&usage);
    report.elapsed_ns = begin.elapsed().as_nanos() as u64;
    report.threads.elapsed_ns = report.elapsed_ns;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("with {code}"),
        (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
    };
    let words = plan.arguments.join(" ");
    report.engine_notes.push(match asked {
        Some(_) => format!("exec: `{words}` was ended {how}"),
        None => format!("exec: `{words}` ended by itself {how}"),
    });
    if asked.is_none() && !status.success() {
        let place = plan.output.as_ref().map_or_else(String::new, |prefix| format!(" (see `{prefix}.stderr`)"));
        report.fatal = Some(format!("`{name}` ended {how}{place}"));
    }
    report
}

/// What became of a child, if it has ended.
fn waited(pid: i32, flags: i32) -> std::io::Result<Option<(ExitStatus, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: the kernel fills both structures.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, flags, &mut usage), usage)
    };
    match result {
        0 => Ok(None),
        -1 => {
            let error = std::io::Error::last_os_error();
            if error.kind() == std::io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
        }
        _ => Ok(Some((ExitStatus::from_raw(status), usage))),
    }
}
