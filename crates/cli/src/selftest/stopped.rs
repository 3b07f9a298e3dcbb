//! Runs that are stopped while they measure (SIGSTOP), and one that is not. They run at the same time, so that all take as long as one.

use super::Selftest;
use super::own_run::{OwnRun, wait_until_it_reads};
use super::rows::{Finding, Row};
use super::stage::{findings_of, iops_text};
use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trueio_model::RunRecord;

pub(super) const ONE: &str = "the tool is stopped for 0.6 s while it measures (SIGSTOP)";
pub(super) const SHORT: &str = "the tool is stopped for 0.3 s";
pub(super) const SIX: &str = "the tool is stopped six times for 0.15 s";
pub(super) const EACH_SECOND: &str = "the tool is stopped for 0.4 s in each second";
/// The false results.
const CASES: [&str; 4] = [ONE, SHORT, SIX, EACH_SECOND];
const NOT_STOPPED: &str = "the same reads, next to them and not stopped";

/// Measured time of each run.
const OPTIONS: &[&str] = &["--runtime", "3s"];

/// A run and its stops, each after a pause, in milliseconds.
struct Case {
    name: &'static str,
    stops: &'static [(u64, u64)],
}

const ALL: [Case; 5] = [
    Case { name: ONE, stops: &[(0, 600)] },
    Case { name: SHORT, stops: &[(200, 300)] },
    Case { name: SIX, stops: &[(250, 150); 6] },
    Case { name: EACH_SECOND, stops: &[(200, 400), (600, 400), (600, 400)] },
    Case { name: NOT_STOPPED, stops: &[] },
];

impl Case {
    fn stopped_s(&self) -> f64 {
        self.stops.iter().map(|(_, stop)| *stop as f64 / 1e3).sum()
    }

    /// Leaves out findings of `stops` that do not name most of the time for which the run was stopped. A process is not stopped while
    /// each of its threads waits for a processor.
    fn named(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let names_all = |finding: &Finding| named_s(&finding.sentence) >= self.stopped_s() * 0.7;
        findings.retain(|finding| finding.by != "stops" || names_all(finding));
        // The other runs use the same disk: whether it was idle as well is left to chance.
        for finding in &mut findings {
            finding.sentence = finding.sentence.replace(", and nothing was in flight at the disks", "");
        }
        findings
    }
}

/// Returns the time for which a sentence of `stops` says that the tool was stopped, in seconds: `for 0.60 s, 0.2 s after the phase
/// began, for 0.30 s, …`, or `6 times for 0.90 s together`.
fn named_s(sentence: &str) -> f64 {
    let until_colon = sentence.split(':').next().unwrap_or_default();
    let lengths = until_colon.split("for ").skip(1);
    lengths.filter_map(|rest| rest.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// Stops a run and lets it continue, once it reads.
fn stop(process: Pid, stops: &[(u64, u64)], interrupted: &AtomicBool) -> io::Result<()> {
    wait_until_it_reads(process, interrupted)?;
    for (pause, length) in stops {
        std::thread::sleep(Duration::from_millis(*pause));
        kill_process(process, Signal::STOP)?;
        std::thread::sleep(Duration::from_millis(*length));
        kill_process(process, Signal::CONT)?;
    }
    Ok(())
}

/// Runs all cases at the same time.
fn run_all(directory: &Path, interrupted: &AtomicBool) -> io::Result<Vec<RunRecord>> {
    // SAFETY: nothing is called between fork and exec.
    let start = |number: usize| unsafe { OwnRun::start(directory, number, OPTIONS, || Ok(())) };
    let mut runs = (0..ALL.len()).map(start).collect::<io::Result<Vec<OwnRun>>>()?;
    let stopped = std::thread::scope(|scope| {
        let threads: Vec<_> = runs
            .iter()
            .zip(&ALL)
            .map(|(run, case)| {
                let process = run.process();
                scope.spawn(move || stop(process, case.stops, interrupted))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    });
    if let Err(error) = stopped {
        let failed =
            runs.iter_mut().find_map(OwnRun::failure).map_or_else(String::new, |failure| format!(" ({failure})"));
        return Err(io::Error::other(format!("{error}{failed}")));
    }
    runs.into_iter().map(OwnRun::finish).collect()
}

impl Selftest {
    /// Further processes of this program, which are stopped and go on.
    pub(super) fn stopped(&mut self, at: &Path) -> Result<(), Failure> {
        if !self.continues() {
            return Ok(());
        }
        if trueio_engine::thread_usage(true).waiting.is_none() {
            return self.not_staged(&CASES, "the kernel does not count how long threads wait for a processor");
        }
        let records = match run_all(at, self.stage.stop) {
            Ok(records) => records,
            Err(error) => return self.not_staged(&CASES, &format!("no runs to stop: {error}")),
        };
        for (case, record) in ALL.iter().zip(&records) {
            let findings = findings_of(record);
            let row = if case.stops.is_empty() {
                Row::correct(case.name, iops_text(record), &findings, &["stops"])
            } else {
                // A stop within a wait for a processor is no stop of its own.
                let waits = findings.iter().find(|finding| finding.by == "processor_wait");
                let why_not = waits.map(|waits| format!("also while it was stopped: {}", waits.sentence));
                Row::false_result(case.name, iops_text(record), case.named(findings), &[&["stops"]]).unless(why_not)
            };
            self.add(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stopped_time_is_read_from_the_sentence() {
        for (sentence, seconds) in [
            ("This tool was stopped for 0.60 s, 0.2 s after the phase began: no thread of it ran for a time.", 0.6),
            (
                "This tool was stopped for 0.40 s, 0.2 s after the phase began, for 0.40 s, 1.2 s after the phase began: …",
                0.8,
            ),
            ("This tool was stopped 6 times for 0.91 s together, at most 0.16 s each: no thread of it ran", 0.91),
            ("The machine was suspended.", 0.0),
        ] {
            assert!((named_s(sentence) - seconds).abs() < 1e-9, "{sentence}");
        }
        let fit = |case: &Case| case.stops.iter().map(|(pause, stop)| pause + stop).sum::<u64>() < 3_000;
        assert!(ALL.iter().all(fit), "each stop lies within the run");
    }
}
