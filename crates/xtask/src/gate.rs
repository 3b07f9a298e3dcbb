//! Gates on the tool's own cost that do not depend on how busy the machine is.
//!
//! User instructions an I/O: callgrind counts those of two runs of the `null` engine; the difference
//! divided by the difference of their I/Os is what one I/O costs, start-up and end excluded. That
//! the runs did the I/Os asked for is read from their records.
//!
//! Memory: the peak of anonymous memory ([`anonymous`]) of a small job, and that it does not grow with the
//! run: after four seconds it is at most 1 MiB above that of one second (medians of three). Four seconds are
//! some 100 million I/Os more: a single byte an I/O would be 100 MiB. What does differ is the record's
//! intervals (ten a second). Pages of the program's file are not counted: the kernel shares them and can
//! drop them at any time.
//!
//! Cannot see: instructions in the kernel, and time. `cargo xtask bench engine` measures those.

mod anonymous;

use crate::process::Program;
use crate::step::Outcome;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use trueio_model::{Outcome as Ending, RunRecord};

const SHORT_COUNT: u64 = 200_000;
const LONG_COUNT: u64 = 600_000;
/// What a run four times as long may need more, in KiB.
const GROWTH_MAX_KIB: u64 = 1024;
/// A limit, not a measure: callgrind runs programs some fifty times slower.
const LIMIT: Duration = Duration::from_secs(300);

/// A case: its name, flags beside the common ones, most instructions an I/O.
const CASES: [(&str, &[&str], u64); 2] = [
    ("null, depth 1", &["--iodepth", "1"], 400),
    (
        "null, depth 32, batches of 16",
        &[
            "--iodepth",
            "32",
            "--iodepth_batch",
            "16",
            "--iodepth_batch_complete_min",
            "16",
            "--iodepth_batch_complete_max",
            "16",
        ],
        300,
    ),
];
/// Most instructions of a run with a single I/O.
const START_MAX: u64 = 5_000_000;
/// Largest peak of anonymous memory of a small job.
const PEAK_MAX_KIB: u64 = 4 * 1024;

/// Builds, measures, prints.
pub(crate) fn run() -> Result<bool> {
    let program = workspace::build_release()?;
    let outcomes = [("instructions", instructions(&program)), ("memory", memory(&program))];
    for (name, outcome) in &outcomes {
        println!("{name}: {outcome}");
    }
    Ok(outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Passed(_))))
}

/// The flags of every run here.
pub(crate) fn null_flags() -> Vec<&'static str> {
    // 8 GiB are 2,097,152 blocks: every block once, and the longest run does not come round.
    let text = "run --ioengine null --rw randread --bs 4k --size 8g --no-history --no-evidence --json -";
    text.split(' ').collect()
}

/// Reads a record that a run left on standard output.
///
/// # Errors
/// If it is none, or its run did not end well: then its figures are those of another job.
pub(crate) fn record_of(stdout: &[u8]) -> Result<RunRecord> {
    let record: RunRecord = serde_json::from_slice(stdout).context("standard output is not a record")?;
    ensure!(record.outcome == Ending::Complete, "the run did not complete: {:?}", record.outcome);
    Ok(record)
}

/// The I/Os that a record counts.
pub(crate) fn io_count(record: &RunRecord) -> u64 {
    record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops).map(|op| op.io_count).sum()
}

/// The gate on instructions.
pub(crate) fn instructions(program: &Path) -> Outcome {
    if !workspace::has_program("valgrind") {
        return Outcome::skipped("no valgrind");
    }
    let measure = || -> Result<(Vec<String>, bool)> {
        let mut lines = Vec::new();
        let mut is_good = true;
        let mut hold = |what: String, count: f64, most: u64| {
            let is_kept = count <= most as f64;
            is_good &= is_kept;
            lines.push(format!("{what}: {count:.0} (at most {most}){}", if is_kept { "" } else { " TOO MANY" }));
        };
        for (name, flags, most) in CASES {
            let short = count_instructions(program, flags, SHORT_COUNT)?;
            let long = count_instructions(program, flags, LONG_COUNT)?;
            hold(format!("{name}: an I/O"), per_io(short, long)?, most);
        }
        hold("a run with one I/O".into(), count_instructions(program, &["--iodepth", "1"], 1)? as f64, START_MAX);
        Ok((lines, is_good))
    };
    Outcome::from_lines(measure())
}

fn per_io(short: u64, long: u64) -> Result<f64> {
    ensure!(long > short, "the longer run took no more instructions ({long}) than the shorter ({short})");
    Ok((long - short) as f64 / (LONG_COUNT - SHORT_COUNT) as f64)
}

fn count_instructions(program: &Path, flags: &[&str], count: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    // The profile itself is not wanted, only its sum, which valgrind says on standard error.
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(null_flags());
    command.args(flags).args(["--number_ios", &count.to_string()]);
    let cost = Program { command: &mut command, cpu: None, limit: LIMIT }.run()?.checked("trueio under callgrind")?;
    let done = io_count(&record_of(&cost.stdout)?);
    ensure!(done == count, "{count} I/Os were asked for and {done} done");
    collected(&cost.stderr).context("callgrind said no sum")
}

/// The sum in callgrind's closing words: `==17== Collected : 281828`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split("Collected :").nth(1))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The gate on memory.
pub(crate) fn memory(program: &Path) -> Outcome {
    let measure = || -> Result<(Vec<String>, bool)> {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            for (peaks, seconds) in runs.iter_mut().zip([1, 4]) {
                peaks.push(timed_peak_kib(program, seconds)?);
            }
        }
        let [short, long] = runs.map(|mut peaks| {
            peaks.sort_unstable();
            peaks[1]
        });
        Ok(judge_memory(short, long))
    };
    Outcome::from_lines(measure())
}

/// The peak of a run of the `null` engine that lasts `seconds`.
fn timed_peak_kib(program: &Path, seconds: u64) -> Result<u64> {
    let mut command = Command::new(program);
    command.args(null_flags()).args(["--iodepth", "1", "--time_based", "--runtime", &format!("{seconds}s")]);
    let traced = anonymous::run(&mut command, 60)?;
    // A program that ends at once is small, too.
    let record = record_of(&traced.stdout)?;
    let elapsed_ns: u64 = record.phases.iter().map(|phase| phase.elapsed_ns).sum();
    ensure!(io_count(&record) > 0 && elapsed_ns >= seconds * 999_000_000, "it ran for {elapsed_ns} ns only");
    Ok(traced.peak_kib)
}

fn judge_memory(short_kib: u64, long_kib: u64) -> (Vec<String>, bool) {
    let is_small = short_kib <= PEAK_MAX_KIB;
    let is_constant = long_kib.saturating_sub(short_kib) <= GROWTH_MAX_KIB;
    let lines = vec![
        format!("anonymous memory of a small job, peak: {short_kib} KiB (at most {PEAK_MAX_KIB})"),
        format!("after 1 s and 4 s: {short_kib} and {long_kib} KiB (at most {GROWTH_MAX_KIB} more)"),
    ];
    (lines, is_small && is_constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found_among_callgrinds_words() {
        let said = "==9== Events    : Ir\n==9== Collected : 281828\n==9== \n==9== I   refs:      281,828\n";
        assert_eq!(collected(said), Some(281_828));
        assert_eq!(collected("valgrind: not found"), None);
    }

    #[test]
    fn start_up_cancels_in_the_difference() {
        assert_eq!(per_io(3_000_000 + 200_000 * 61, 3_000_000 + 600_000 * 61).unwrap(), 61.0);
        assert!(per_io(5, 5).is_err());
    }

    #[test]
    fn memory_that_grows_with_the_run_or_is_large_from_the_start_is_caught() {
        assert!(judge_memory(3_000, 4_024).1);
        assert!(!judge_memory(3_000, 4_025).1);
        assert!(!judge_memory(5_000, 5_000).1);
    }

    #[test]
    fn a_program_that_does_nothing_passes_no_gate() {
        let failed = |outcome| matches!(outcome, Outcome::Failed(_));
        assert!(failed(memory(Path::new("true"))));
        match instructions(Path::new("true")) {
            Outcome::Skipped { reason, .. } => println!("Skipped(valgrind): {reason}"),
            outcome => assert!(failed(outcome)),
        }
    }

    #[test]
    fn what_is_not_a_record_is_not_a_run() {
        assert!(record_of(b"").is_err());
        assert!(record_of(b"{}").is_err());
    }
}
