//! The completed steps of a run of checks: their table, their sums, and how another process passes its own on.

use crate::step::{Counts, Outcome};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A completed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Step {
    name: String,
    elapsed: Duration,
    outcome: Outcome,
    /// Its tests, if it is a test run.
    tests: Option<Counts>,
}

/// The checks so far.
pub(super) struct Report {
    is_ci: bool,
    steps: Vec<Step>,
    /// Lines below the table.
    notes: String,
}

/// Steps that another process runs next to ours.
pub(super) struct Lane {
    name: &'static str,
    process: Result<Child>,
    folder: tempfile::TempDir,
    begin: Instant,
}

impl Lane {
    /// Starts this program with `arguments` and the path that [`Report::save`] is to write.
    pub(super) fn start(name: &'static str, arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let start = || -> Result<Child> {
            let output = File::create(folder.path().join(OUTPUT))?;
            let mut program = Command::new(std::env::current_exe()?);
            program.args(arguments).arg(folder.path().join(STEPS)).stdin(Stdio::null());
            program.stderr(output.try_clone()?).stdout(output).spawn().context("xtask")
        };
        Ok(Self { name, process: start(), folder, begin: Instant::now() })
    }
}

/// What a lane prints.
const OUTPUT: &str = "output";
/// The steps of a lane, as JSON.
const STEPS: &str = "steps.json";

impl Report {
    /// A report without a step; `is_ci` as in [`Outcome::judged`].
    pub(super) fn new(is_ci: bool) -> Self {
        Self { is_ci, steps: Vec::new(), notes: String::new() }
    }

    /// Writes the steps for [`Report::join`].
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_vec(&self.steps)?).with_context(|| path.display().to_string())
    }

    /// Waits for a lane to end, prints what it printed, and adds its steps. A lane that ends without its steps is a step that failed.
    pub(super) fn join(&mut self, lane: Lane) {
        let Lane { name, process, folder, begin } = lane;
        let steps = process.and_then(|mut process| {
            let status = process.wait()?;
            println!("{}", String::from_utf8_lossy(&std::fs::read(folder.path().join(OUTPUT))?));
            let steps = std::fs::read(folder.path().join(STEPS)).with_context(|| format!("{name} ended: {status}"))?;
            Ok(serde_json::from_slice::<Vec<Step>>(&steps)?)
        });
        match steps {
            Ok(steps) => {
                println!("{name} took {} s", begin.elapsed().as_secs());
                self.steps.extend(steps);
            }
            Err(error) => self.step(name, || Outcome::Failed(format!("{error:#}"))),
        }
    }

    /// Adds lines that are printed below the table.
    pub(super) fn add_note(&mut self, lines: String) {
        self.notes += &lines;
    }

    /// The names of the steps that passed.
    pub(super) fn passed(&self) -> Vec<&str> {
        let passed = self.steps.iter().filter(|step| matches!(step.outcome, Outcome::Passed(_)));
        passed.map(|step| step.name.as_str()).collect()
    }

    /// The steps that are test runs, and their tests.
    pub(super) fn tests(&self) -> impl Iterator<Item = Counts> {
        self.steps.iter().filter_map(|step| step.tests)
    }

    pub(super) fn step(&mut self, name: &str, body: impl FnOnce() -> Outcome) {
        self.counted_step(name, || (body(), None));
    }

    /// Adds the outcome of a step that another thread ran, with the time that it took there.
    pub(super) fn joined_step(&mut self, name: &str, thread: JoinHandle<(Outcome, Duration)>) {
        let panicked = || (Outcome::Failed("xtask panicked".into()), Duration::ZERO);
        let (outcome, elapsed) = thread.join().unwrap_or_else(|_| panicked());
        self.ended_step(name, (outcome, None), elapsed);
    }

    /// Adds a step that has ended, with the time that it took.
    pub(super) fn ended_step(&mut self, name: &str, ended: (Outcome, Option<Counts>), elapsed: Duration) {
        let (outcome, tests) = ended;
        let outcome = outcome.judged(self.is_ci);
        println!("\n=== {name}\n--- {name}: {outcome}");
        self.steps.push(Step { name: name.into(), elapsed, outcome, tests });
    }

    pub(super) fn counted_step(&mut self, name: &str, body: impl FnOnce() -> (Outcome, Option<Counts>)) {
        println!("\n=== {name}");
        let begin = Instant::now();
        let (outcome, tests) = body();
        let outcome = outcome.judged(self.is_ci);
        println!("--- {name}: {outcome}");
        self.steps.push(Step { name: name.into(), elapsed: begin.elapsed(), outcome, tests });
    }

    /// Renders the table and computes the sums.
    pub(super) fn closing(&self) -> (String, Counts) {
        let mut sums = Counts::default();
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        let mut text = format!("\n{:width$}  {:>8}  result\n", "step", "time");
        for Step { name, elapsed, outcome, tests } in &self.steps {
            text += &format!("{name:width$}  {:>6.1} s  {outcome}\n", elapsed.as_secs_f64());
            let tests = tests.unwrap_or_default();
            sums.passed += tests.passed;
            sums.failed += tests.failed;
            sums.skipped += tests.skipped;
            // A test run counts by its tests; one that failed without a failed test (a compile error) counts as one.
            let is_counted = tests != Counts::default();
            match outcome {
                Outcome::Passed(_) if !is_counted => sums.passed += 1,
                Outcome::Failed(_) if tests.failed == 0 => sums.failed += 1,
                Outcome::Skipped { .. } => sums.skipped += 1,
                _ => {}
            }
        }
        text += &format!("\n{}{} passed, {} failed, {} skipped", self.notes, sums.passed, sums.failed, sums.skipped);
        (text, sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the closing line counts every step and test, whatever the failure.
    /// Method: one step of each outcome, a test run with tests, and one that did not compile.
    #[test]
    fn the_closing_line_counts_tests_and_steps() {
        let step = |outcome, tests| Step { name: "s".into(), elapsed: Duration::ZERO, outcome, tests };
        let mut report = Report::new(false);
        report.steps.push(step(Outcome::Passed(String::new()), None));
        report.steps.push(step(Outcome::optional("why"), None));
        let counts = Counts { passed: 7, failed: 0, skipped: 2 };
        report.steps.push(step(Outcome::Passed(String::new()), Some(counts)));
        let last = |report: &Report| report.closing().0.lines().last().unwrap_or_default().to_owned();
        assert_eq!(last(&report), "8 passed, 0 failed, 3 skipped");
        report.steps.push(step(Outcome::Failed("did not compile".into()), Some(Counts::default())));
        report.steps.push(step(Outcome::Failed("b".into()), Some(Counts { passed: 1, failed: 2, skipped: 0 })));
        assert_eq!(last(&report), "9 passed, 3 failed, 3 skipped");
    }

    /// Goal: the steps of a lane are those of the run, and a lane that ends early is a failure.
    /// Method: a lane that is a shell script: one copies saved steps, one prints and ends.
    #[test]
    fn the_steps_of_a_lane_are_added_and_a_lane_without_steps_fails() {
        let folder = tempfile::tempdir().unwrap();
        let saved = folder.path().join("saved");
        let mut lane = Report::new(true);
        let counts = Counts { passed: 7, failed: 1, skipped: 2 };
        lane.counted_step("tests", || (Outcome::Failed("one".into()), Some(counts)));
        lane.step("pages", || Outcome::optional("no browser"));
        lane.save(&saved).unwrap();
        let joined = |script: String| {
            let folder = tempfile::tempdir().unwrap();
            let output = File::create(folder.path().join(OUTPUT)).unwrap();
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg("sh").arg(folder.path().join(STEPS)).stdout(output);
            let process = shell.spawn().context("sh");
            let mut report = Report::new(true);
            report.join(Lane { name: "a lane", process, folder, begin: Instant::now() });
            report
        };
        let report = joined(format!("cp {} \"$1\"", saved.display()));
        assert_eq!(report.steps, lane.steps);
        assert!(report.closing().0.ends_with("7 passed, 1 failed, 3 skipped"));
        let report = joined("echo begun; exit 3".into());
        assert_eq!(report.closing().1.failed, 1);
        assert!(matches!(&report.steps[0].outcome, Outcome::Failed(why) if why.contains("exit status: 3")));
    }
}
