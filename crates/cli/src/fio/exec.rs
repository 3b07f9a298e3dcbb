//! `exec_prerun` and `exec_postrun`: commands of a job, run before and after the phase it belongs to.
//!
//! Only with `--allow-exec`: a job file may come from a stranger. They are run by `/bin/sh -c`; what
//! they print goes to `JOB.prerun.txt` and `JOB.postrun.txt` in the working directory, as fio does it.
//! A command before a phase that fails ends the run before the phase: its jobs would do their work on what was not made
//! ready. One behind it is run however the phase ended, and if it fails the run has failed.
//!
//! When the run is ended, a command is asked to end with all that it started in its process group, and killed 5 s later;
//! one behind a phase, which undoes what was done, has a minute before.

use super::bandwidth::{self, BandwidthLog};
use super::status::Results;
use crate::progress;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_fio::language::{FioError, FioRequest};
use trueio_job::{FileUse, Role, user_said};
use trueio_model::{PhaseRecord, RunRecord, SteadyState, UserPlan};
use trueio_run::{BandwidthSpan, Observer, Tick, become_user, create_output, user_of, watch_signals};

/// The commands of one job, each with the file for what it prints.
#[derive(Debug)]
struct OfJob {
    /// Whom they act as, if it is not us.
    user: Option<UserPlan>,
    before: Option<(String, String)>,
    after: Option<(String, String)>,
}

/// The commands of all phases.
#[derive(Debug, Default)]
pub(super) struct Commands {
    phases: Vec<Vec<OfJob>>,
}

impl Commands {
    /// Those of a request. The reader has refused them unless they are allowed.
    pub(super) fn of(request: &FioRequest) -> Result<Self, FioError> {
        let mut phases = vec![Vec::new()];
        for job in &request.jobs {
            let Some(fio) = &job.fio else { continue };
            if job.options.get("stonewall").is_some_and(|value| value.text == "true") {
                phases.push(Vec::new());
            }
            let Some(phase) = phases.last_mut().filter(|_| fio.clone == 0) else { continue };
            let command = |name: &str| fio.said(name).map(|word| word.text.clone()).filter(|text| !text.is_empty());
            let file_name = fio.name.replace('/', "_");
            let (before, after) = (command("exec_prerun"), command("exec_postrun"));
            let user = match user_said(job).filter(|_| before.is_some() || after.is_some()) {
                Some((uid, gid)) if uid.is_some() || gid.is_some() => user_of(uid, gid).map_err(|error| {
                    FioError::of(format!("the commands of `{}` as its user: {error}", fio.name), None)
                })?,
                _ => None,
            };
            phase.push(OfJob {
                user,
                before: before.map(|command| (format!("{file_name}.prerun.txt"), command)),
                after: after.map(|command| (format!("{file_name}.postrun.txt"), command)),
            });
        }
        let has_any = phases.iter().flatten().any(|job| job.before.is_some() || job.after.is_some());
        if has_any && !request.settings.allows_exec {
            let hint = Some("if that is meant, say `--allow-exec`".to_owned());
            return Err(FioError::of("a job would run commands", hint));
        }
        Ok(Self { phases })
    }

    /// The files for what they print.
    pub(super) fn files(&self) -> Vec<FileUse> {
        let file = |(path, _): &(String, String)| FileUse::new(path, "a command of a job", Role::Output);
        let commands = self.phases.iter().flatten().flat_map(|job| job.before.iter().chain(&job.after));
        commands.map(file).collect()
    }
}

/// Runs the commands around the phases, and shows the progress between.
#[derive(Debug)]
pub(super) struct Around {
    line: progress::Line,
    commands: Commands,
    /// How many jobs of the phase have their first commands behind them.
    begun: usize,
    failed: Option<String>,
    results: Results,
    bandwidth: Option<BandwidthLog>,
}

impl Around {
    pub(super) fn new(
        line: progress::Line,
        commands: Commands,
        results: Results,
        bandwidth: Option<BandwidthLog>,
    ) -> Self {
        Self { line, commands, begun: 0, failed: None, results, bandwidth }
    }

    /// Removes the progress; the first command or log that failed, and where the results go.
    pub(super) fn finish(self) -> (Option<FioError>, Results) {
        self.line.clear();
        (self.failed.map(|message| FioError::of(message, None)), self.results)
    }
}

/// When a command is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// With the run: nothing is to be undone yet.
    None,
    /// Some time after the run was ended: it undoes what was done before.
    Some,
}

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long a command may go on after it was asked to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long a command behind a phase may go on when the run was ended.
const UNDOING: Duration = Duration::from_secs(60);

/// Runs a command to its end, or until the run is ended; or says why it failed.
fn run((file, command): &(String, String), user: Option<UserPlan>, patience: Patience) -> Result<(), String> {
    let told = |reason: String| format!("the command `{command}` failed: {reason}");
    // What an earlier run printed is replaced.
    let output = create_output(file).map_err(|error| told(format!("`{file}` cannot be made: {error}")))?;
    let errors = output.try_clone().map_err(|error| told(error.to_string()))?;
    let mut shell = Command::new("/bin/sh");
    // A group of its own: a Ctrl-C is for this program, and what the shell starts ends with it.
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    // SAFETY: between fork and exec plain system calls are made, nothing else.
    unsafe {
        shell.pre_exec(move || {
            // Before the next call, which a change of user undoes.
            user.map_or(Ok(()), become_user)?;
            // Killed in whatever way, this program leaves no shell behind.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = shell.spawn().map_err(|error| told(error.to_string()))?;
    let group = child.id() as i32;
    let stop = watch_signals();
    let (mut stopped, mut asked): (Option<Instant>, Option<Instant>) = (None, None);
    loop {
        match child.try_wait() {
            Ok(Some(_)) if asked.is_some() => return Err(told("it was ended with the run".to_owned())),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(told(format!("{status}; what it printed is in `{file}`"))),
            Ok(None) => {}
            Err(error) => return Err(told(error.to_string())),
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
            // SAFETY: a plain call; the group is our child's, which was not waited for, so the number is nobody else's.
            unsafe { libc::kill(-group, signal) };
        }
        std::thread::sleep(LOOK);
    }
}

impl Observer for Around {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        self.line.preparing(path, done_bytes, size_bytes);
    }

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
        // As in fio, a job whose first command failed has nothing to be undone.
        let begun = self.commands.phases.get(index).into_iter().flatten().take(self.begun);
        for (after, user) in begun.filter_map(|commands| Some((commands.after.as_ref()?, commands.user))) {
            if let Err(reason) = run(after, user, Patience::Some) {
                self.failed.get_or_insert(reason);
            }
        }
    }

    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        self.line.phase_begins(index, count, name);
    }

    fn settling(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        self.line.settling(round, rounds_max, so_far);
    }

    fn settled(&mut self, state: &SteadyState) {
        self.line.settled(state);
    }

    fn measuring(&mut self) {
        self.results.measuring();
    }

    fn measured(&mut self) {
        self.results.measured();
    }

    fn progress(&mut self, tick: &Tick) {
        self.line.progress(tick);
    }

    fn bandwidth_every(&self) -> Option<Duration> {
        self.bandwidth.is_some().then_some(bandwidth::EVERY)
    }

    fn bandwidth(&mut self, span: &BandwidthSpan) {
        if let Some(log) = &mut self.bandwidth
            && let Err(reason) = log.write(span)
        {
            self.failed.get_or_insert(reason);
            self.bandwidth = None;
        }
    }

    fn shown_in(&mut self) -> Option<File> {
        self.results.shown_in()
    }

    fn status_every(&self) -> Option<Duration> {
        self.results.every()
    }

    fn status(&mut self, so_far: &RunRecord) {
        self.results.meanwhile(so_far);
    }

    fn phase_ends(&mut self, phase: &PhaseRecord) {
        self.line.phase_ends(phase);
    }
}
