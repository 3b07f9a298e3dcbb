//! `exec_prerun` and `exec_postrun`: commands that run before and after the phase of a job.
//!
//! They run only with `--allow-exec`, because a job file may come from a stranger. `/bin/sh -c` runs them; their output
//! goes to `JOB.prerun.txt` and `JOB.postrun.txt` in the working directory, as with fio.
//! If a command before a phase fails, the run ends before the phase, because its preparation is incomplete. A command
//! after a phase runs however the phase ended; if it fails, the run has failed.
//!
//! When the run is interrupted, a running command and its process group get SIGTERM, and SIGKILL 5 s later. A command
//! after a phase, which cleans up, first gets another minute.

use super::bandwidth::BandwidthLog;
use super::dump_file::DumpFile;
use super::program::ProgressLine;
use super::status::Results;
use super::trigger::Waiting;
use crate::language::{FioError, FioRequest, Refused};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_job::{Content, FileUse, GivenUser, Role, given_user};
use trueio_model::UserPlan;
use trueio_run::{BandwidthSpan, Before, Event, Observer, PrintedFile, become_user, user_of, watch_signals};

/// The commands of one job, each with the file for its output.
#[derive(Debug)]
struct OfJob {
    /// The user they run as; `None`: the user of this process.
    user: Option<UserPlan>,
    before: Option<Shell>,
    after: Option<Shell>,
}

/// A command, and the file for its output.
#[derive(Debug)]
struct Shell {
    file: String,
    /// What was under that name at the start.
    before: Before,
    command: String,
}

/// The commands of all phases.
#[derive(Debug, Default)]
pub(super) struct Commands {
    phases: Vec<Vec<OfJob>>,
}

impl Commands {
    /// Returns the commands of a request, or refuses them without `--allow-exec`.
    pub(super) fn of(request: &FioRequest) -> Result<Self, FioError> {
        let mut phases = vec![Vec::new()];
        for job in &request.jobs {
            let Some(fio) = &job.fio else { continue };
            if job.options.get("stonewall").is_some_and(|value| value.text == "true") {
                phases.push(Vec::new());
            }
            let Some(phase) = phases.last_mut().filter(|_| fio.clone == 0) else { continue };
            let command = |name: &str| fio.word(name).map(|word| word.text.clone()).filter(|text| !text.is_empty());
            let file_name = fio.name.replace('/', "_");
            let (before, after) = (command("exec_prerun"), command("exec_postrun"));
            let user = match given_user(job).filter(|_| before.is_some() || after.is_some()) {
                Some(GivenUser { uid, gid }) => user_of(uid, gid).map_err(|error| {
                    let message = format!("the commands of `{}` as its user: {error}", fio.name);
                    FioError::of(Refused::CommandUser, message, None)
                })?,
                None => None,
            };
            phase.push(OfJob {
                user,
                before: before.map(|command| Shell::of(format!("{file_name}.prerun.txt"), command)),
                after: after.map(|command| Shell::of(format!("{file_name}.postrun.txt"), command)),
            });
        }
        let has_any = phases.iter().flatten().any(|job| job.before.is_some() || job.after.is_some());
        if has_any && !request.settings.allows_exec {
            return Err(FioError::of(Refused::Commands, "a job would run commands", Refused::Commands.hint()));
        }
        Ok(Self { phases })
    }

    /// Returns the files for their output.
    pub(super) fn files(&self) -> Vec<FileUse> {
        let file = |shell: &Shell| FileUse::new(&shell.file, "a command of a job", Role::Output(Content::Printed));
        let commands = self.phases.iter().flatten().flat_map(|job| job.before.iter().chain(&job.after));
        commands.map(file).collect()
    }
}

/// Runs the commands before and after the phases, and shows the progress during them.
#[derive(Debug)]
pub(super) struct Around {
    line: Box<dyn ProgressLine>,
    commands: Commands,
    /// Number of jobs of the phase whose first commands have run.
    begun: usize,
    failed: Option<String>,
    results: Results,
    bandwidth: Option<BandwidthLog>,
    trigger: Waiting,
    dump_file: Option<DumpFile>,
    /// The results so far are for the line, which is a view on the whole terminal.
    is_live: bool,
}

impl Around {
    pub(super) fn new(
        line: Box<dyn ProgressLine>,
        commands: Commands,
        results: Results,
        bandwidth: Option<BandwidthLog>,
        trigger: Waiting,
    ) -> Self {
        Self { line, commands, begun: 0, failed: None, results, bandwidth, trigger, dump_file: None, is_live: false }
    }

    /// Looks for a file that requests the results so far, too.
    pub(super) fn with_dump_file(mut self, dump_file: DumpFile) -> Self {
        self.dump_file = Some(dump_file);
        self
    }

    /// Passes the results so far to the line, which draws them.
    pub(super) fn with_live(self, is_live: bool) -> Self {
        Self { is_live, ..self }
    }

    /// Removes the progress line; returns the first failure of a command or log, the results, and whether a trigger ended the
    /// run.
    pub(super) fn finish(self) -> (Option<String>, Results, bool) {
        self.line.clear();
        let ended = self.bandwidth.map_or(Ok(()), BandwidthLog::end);
        (self.failed.or(ended.err()), self.results, self.trigger.has_fired())
    }
}

/// When a command gets SIGTERM after an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// At once: there is nothing to clean up yet.
    None,
    /// After [`UNDOING`]: the command cleans up.
    Some,
}

/// Interval at which a command's state is read.
const LOOK: Duration = Duration::from_millis(10);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long a command after a phase may run after an interrupt, before SIGTERM.
const UNDOING: Duration = Duration::from_secs(60);

impl Shell {
    fn of(file: String, command: String) -> Self {
        Self { before: Before::now(Path::new(&file)), file, command }
    }
}

/// Runs a command to its end, or until the run is interrupted; returns why it failed, or that its output has another name.
fn run(shell: &Shell, user: Option<UserPlan>, patience: Patience) -> Result<(), String> {
    let Shell { file, before, command } = shell;
    let failed = |reason: String| format!("the command `{command}` failed: {reason}");
    // Replaces the output of an earlier run.
    let (printed, output) =
        PrintedFile::create(file, *before).map_err(|error| failed(format!("`{file}` cannot be made: {error}")))?;
    let ended = follow(shell, output, user, patience);
    // What it printed is kept in any case.
    ended.and(printed.finish().map_err(failed))
}

/// Runs a command to its end; it prints to `output`.
fn follow(
    Shell { file, command, .. }: &Shell,
    output: OwnedFd,
    user: Option<UserPlan>,
    patience: Patience,
) -> Result<(), String> {
    let failed = |reason: String| format!("the command `{command}` failed: {reason}");
    let errors = output.try_clone().map_err(|error| failed(error.to_string()))?;
    let mut shell = Command::new("/bin/sh");
    // A process group of its own: Ctrl-C reaches only this program, and signals reach all that the shell starts.
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    // SAFETY: between fork and exec plain system calls are made, nothing else.
    unsafe {
        shell.pre_exec(move || {
            // Before prctl: a change of user clears the death signal.
            user.map_or(Ok(()), become_user)?;
            // The shell ends with this program, even after SIGKILL.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = shell.spawn().map_err(|error| failed(error.to_string()))?;
    // Its ends of the pipe.
    drop(shell);
    let group = child.id() as i32;
    let stop = watch_signals();
    let (mut stopped, mut asked): (Option<Instant>, Option<Instant>) = (None, None);
    loop {
        match child.try_wait() {
            Ok(Some(_)) if asked.is_some() => return Err(failed("it was ended with the run".to_owned())),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(format!("{status}; what it printed is in `{file}`"))),
            Ok(None) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        if stop.load(Relaxed) {
            stopped.get_or_insert_with(Instant::now);
        }
        let is_over = stopped.is_some_and(|at| patience == Patience::None || at.elapsed() >= UNDOING);
        let signal = match asked {
            None if is_over => Some(libc::SIGTERM),
            Some(at) if at.elapsed() >= GRACE => Some(libc::SIGKILL),
            _ => None,
        };
        if let Some(signal) = signal {
            asked.get_or_insert_with(Instant::now);
            // SAFETY: a plain call; the group is our child's; the child was not waited for, so its number is still in use.
            unsafe { libc::kill(-group, signal) };
        }
        std::thread::sleep(LOOK);
    }
}

impl Around {
    fn before_phase(&mut self, index: usize) -> Result<(), String> {
        self.begun = 0;
        for commands in self.commands.phases.get(index).into_iter().flatten() {
            if let Some(before) = &commands.before {
                run(before, commands.user, Patience::None)?;
            }
            self.begun += 1;
        }
        Ok(())
    }

    fn after_phase(&mut self, index: usize) {
        // As in fio, the second command of a job does not run if its first command failed.
        let begun = self.commands.phases.get(index).into_iter().flatten().take(self.begun);
        for (after, user) in begun.filter_map(|commands| Some((commands.after.as_ref()?, commands.user))) {
            if let Err(reason) = run(after, user, Patience::Some) {
                self.failed.get_or_insert(reason);
            }
        }
    }

    fn log_bandwidth(&mut self, span: &BandwidthSpan<'_>) {
        if let Some(log) = &mut self.bandwidth
            && let Err(reason) = log.write(span)
        {
            self.failed.get_or_insert(reason);
            self.bandwidth = None;
        }
    }
}

impl Observer for Around {
    fn notify(&mut self, event: Event<'_>) {
        self.trigger.look();
        self.dump_file.iter_mut().for_each(DumpFile::look);
        match event {
            Event::BeforePhase { index, failure } => *failure = self.before_phase(index).err(),
            Event::AfterPhase { index } => self.after_phase(index),
            Event::MeasuringBegins => self.results.measuring(),
            Event::MeasuringEnds => self.results.measured(),
            Event::Interim(so_far) if !self.is_live => self.results.meanwhile(so_far),
            Event::Bandwidth(span) => self.log_bandwidth(span),
            event => self.line.notify(event),
        }
    }
}
