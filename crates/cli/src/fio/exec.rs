//! `exec_prerun` and `exec_postrun`: commands of a job, run before and after the phase it belongs to.
//!
//! Only with `--allow-exec`: a job file may come from a stranger. They are run by `/bin/sh -c`; what
//! they print goes to `JOB.prerun.txt` and `JOB.postrun.txt` in the working directory, as fio does it.
//! A command that fails makes the run fail, after its phase.

use super::status::Results;
use crate::progress;
use std::process::{Command, Stdio};
use trueio_engine::create_output;
use trueio_job::fio::{FioError, FioRequest};
use trueio_job::{FileUse, Role};
use trueio_model::{PhaseRecord, RunRecord, SteadyState};
use trueio_run::{Observer, Tick};

/// The commands of one phase.
#[derive(Debug, Default, Clone)]
struct OfPhase {
    before: Vec<(String, String)>,
    after: Vec<(String, String)>,
}

/// The commands of all phases.
#[derive(Debug, Default)]
pub(super) struct Commands {
    phases: Vec<OfPhase>,
}

impl Commands {
    /// Those of a request. The reader has refused them unless they are allowed.
    pub(super) fn of(request: &FioRequest) -> Result<Self, FioError> {
        let mut phases = vec![OfPhase::default()];
        for job in &request.jobs {
            let Some(fio) = &job.fio else { continue };
            if job.options.get("stonewall").is_some_and(|value| value.text == "true") {
                phases.push(OfPhase::default());
            }
            let Some(phase) = phases.last_mut().filter(|_| fio.clone == 0) else { continue };
            let command = |name: &str| fio.said(name).map(|word| word.text.clone()).filter(|text| !text.is_empty());
            let file_name = fio.name.replace('/', "_");
            phase.before.extend(command("exec_prerun").map(|command| (format!("{file_name}.prerun.txt"), command)));
            phase.after.extend(command("exec_postrun").map(|command| (format!("{file_name}.postrun.txt"), command)));
        }
        let has_any = phases.iter().any(|phase| !phase.before.is_empty() || !phase.after.is_empty());
        if has_any && !request.settings.allows_exec {
            let hint = Some("if that is meant, say `--allow-exec`".to_owned());
            return Err(FioError::of("a job would run commands", hint));
        }
        Ok(Self { phases })
    }

    /// The files for what they print.
    pub(super) fn files(&self) -> Vec<FileUse> {
        let of_phase = |phase: &OfPhase| {
            let file = |(path, _): &(String, String)| FileUse::new(path, "a command of a job", Role::Output);
            phase.before.iter().chain(&phase.after).map(file).collect::<Vec<_>>()
        };
        self.phases.iter().flat_map(of_phase).collect()
    }
}

/// Runs the commands around the phases, and shows the progress between.
#[derive(Debug)]
pub(super) struct Around {
    line: progress::Line,
    commands: Commands,
    index: usize,
    failed: Option<String>,
    results: Results,
}

impl Around {
    pub(super) fn new(line: progress::Line, commands: Commands, results: Results) -> Self {
        Self { line, commands, index: 0, failed: None, results }
    }

    /// Removes the progress; the first command that failed, and where the results go.
    pub(super) fn finish(self) -> (Option<FioError>, Results) {
        self.line.clear();
        (self.failed.map(|message| FioError::of(message, None)), self.results)
    }

    fn run(&mut self, commands: &[(String, String)]) {
        for (file, command) in commands {
            // What an earlier run printed is replaced.
            let result =
                create_output(file).map_err(|error| format!("`{file}` cannot be made: {error}")).and_then(|output| {
                    let errors = output.try_clone().map_err(|error| error.to_string())?;
                    let status = Command::new("/bin/sh")
                        .args(["-c", command])
                        .stdin(Stdio::null())
                        .stdout(output)
                        .stderr(errors)
                        .status()
                        .map_err(|error| error.to_string())?;
                    if status.success() { Ok(()) } else { Err(format!("{status}; what it printed is in `{file}`")) }
                });
            if let Err(reason) = result {
                self.failed.get_or_insert(format!("the command `{command}` failed: {reason}"));
            }
        }
    }
}

impl Observer for Around {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        self.line.preparing(path, done_bytes, size_bytes);
    }

    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        self.index = index;
        let commands = self.commands.phases.get(index).map(|phase| phase.before.clone()).unwrap_or_default();
        self.run(&commands);
        self.line.phase_begins(index, count, name);
    }

    fn settling(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        self.line.settling(round, rounds_max, so_far);
    }

    fn settled(&mut self, state: &SteadyState) {
        self.line.settled(state);
    }

    fn progress(&mut self, tick: &Tick) {
        self.line.progress(tick);
    }

    fn status_every(&self) -> Option<std::time::Duration> {
        self.results.every()
    }

    fn status(&mut self, so_far: &RunRecord) {
        self.results.meanwhile(so_far);
    }

    fn phase_ends(&mut self, phase: &PhaseRecord) {
        self.line.phase_ends(phase);
        let commands = self.commands.phases.get(self.index).map(|phase| phase.after.clone()).unwrap_or_default();
        self.run(&commands);
    }
}
