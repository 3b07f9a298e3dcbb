//! Gates on the tool's own cost that do not depend on how busy the machine is.
//!
//! User instructions per I/O: callgrind counts the instructions of two runs of the `null` engine. The difference,
//! divided by the difference of their I/Os, is the cost of an I/O without start and end. The records confirm that the
//! runs did the requested I/Os.
//!
//! Vector code: named functions of the released program use the vector registers that they are compiled for.
//!
//! Memory: the peak of anonymous memory ([`anonymous`]) of a small job, and its growth: after four seconds it is at
//! most 1 MiB above that after one second (medians of three). Four seconds are some 100 million I/Os more, so a single
//! byte per I/O would be 100 MiB. Only the record's intervals (ten per second) may grow. Pages of the program's file are
//! not counted: the kernel shares them and can drop them at any time.
//!
//! Limits: instructions in the kernel and time are not measured here, but by `cargo xtask bench engine`.

mod anonymous;
mod extras;
mod growth;

use crate::process::Program;
use crate::step::Outcome;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use trueio_model::{Outcome as Ending, RunRecord};

/// Number of I/Os of the short and of the long run of a case.
const COUNTS: [u64; 2] = [200_000, 600_000];
/// The same for writes, which take ten times as long.
const FILL_COUNTS: [u64; 2] = [20_000, 60_000];
/// Allowed growth of the peak in a run that is four times as long, in KiB.
const GROWTH_MAX_KIB: u64 = 1024;
/// A generous limit, because callgrind runs programs some fifty times slower.
const LIMIT: Duration = Duration::from_secs(300);

/// A case: its name, flags in addition to the common ones, most instructions per I/O.
const CASES: [(&str, &[&str], u64); 2] =
    [("null, depth 1", &["--iodepth", "1"], 350), ("null, depth 32, batches of 16", &BATCHES, 223)];
/// A queue of 32, submitted and reaped 16 at a time.
const BATCHES: [&str; 8] = [
    "--iodepth",
    "32",
    "--iodepth_batch",
    "16",
    "--iodepth_batch_complete_min",
    "16",
    "--iodepth_batch_complete_max",
    "16",
];
/// Most instructions per write of 4 KiB of new random content above those of a write without it: 5 % above today's 1,690
/// with vectors of 256 bits, which valgrind runs where the processor has them, and of 128 bits elsewhere.
const FILL_MAX: [u64; 2] = [1_775, 3_900];
/// The flags of both kinds of writes.
const WRITES: [&str; 4] = ["--iodepth", "1", "--rw", "randwrite"];
/// Largest peak of anonymous memory of a small job.
const PEAK_MAX_KIB: u64 = 4 * 1024;

/// Measures a released program, and prints; returns `false` if a bar is missed.
pub(crate) fn run(program: &Path) -> Result<bool> {
    let outcomes = [
        ("instructions", instructions(program)),
        ("vector code", vector_code(program)),
        ("memory", memory(program)),
        ("what options add to an I/O", extras(program)),
        ("growth with workers and job files", growth(program)),
    ];
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

/// Returns how many I/Os a trace holds, by the program's line `trace: FILE (1,000 I/Os)`.
pub(crate) fn traced_ios(messages: &str) -> Option<u64> {
    let line = messages.lines().find(|line| line.starts_with("trace: "))?;
    let (count, _) = line.rsplit_once('(')?.1.split_once(" I/Os")?;
    count.replace(',', "").parse().ok()
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
            hold(format!("{name}: an I/O"), instructions_per_io(program, flags, COUNTS)?, most);
        }
        let of_writes = |flags: &[&str]| instructions_per_io(program, flags, FILL_COUNTS);
        let fill = of_writes(&[&WRITES[..], &["--refill_buffers"]].concat())? - of_writes(&WRITES)?;
        hold("4 KiB of random content".into(), fill, FILL_MAX[usize::from(!has_avx2())]);
        Ok((lines, is_good))
    };
    Outcome::from_lines(measure())
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Functions of the program by a part of their names, and the register that their code must use.
const VECTOR_CODE: [(&str, &str); 2] = [("fill_avx512", "%zmm"), ("fill_avx2", "%ymm")];

/// The gate on vector code: the named functions of the released program use the vectors that their names promise.
pub(crate) fn vector_code(program: &Path) -> Outcome {
    if cfg!(not(target_arch = "x86_64")) {
        return Outcome::optional("no function of this processor's kind is listed");
    }
    if !workspace::has_program("objdump") {
        return Outcome::skipped("no objdump");
    }
    let mut objdump = Command::new("objdump");
    objdump.args(["--disassemble", "--no-show-raw-insn"]).arg(program);
    let cost = match (Program { command: &mut objdump, cpu: None, limit: LIMIT })
        .run()
        .and_then(|cost| cost.checked("objdump"))
    {
        Ok(cost) => cost,
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let missing = scalar_functions(&String::from_utf8_lossy(&cost.stdout));
    match missing.is_empty() {
        true => Outcome::Passed(VECTOR_CODE.map(|(name, register)| format!("{name} uses {register}")).join("; ")),
        false => Outcome::Failed(format!("scalar code, or not in the program: {}", missing.join(", "))),
    }
}

/// The functions of [`VECTOR_CODE`] whose code in a disassembly uses no such register.
fn scalar_functions(disassembly: &str) -> Vec<&'static str> {
    let mut missing: Vec<(&str, &str)> = VECTOR_CODE.to_vec();
    let mut function = "";
    for line in disassembly.lines() {
        if line.ends_with(">:") {
            function = line;
        }
        missing.retain(|(name, register)| !(function.contains(name) && line.contains(register)));
    }
    missing.into_iter().map(|(name, _)| name).collect()
}

/// The instructions per I/O of runs with `counts` I/Os, start and end excluded.
fn instructions_per_io(program: &Path, flags: &[&str], counts: [u64; 2]) -> Result<f64> {
    let [short, long] = counts.map(|count| count_instructions(program, flags, count));
    per_io([short?, long?], counts)
}

fn per_io([short, long]: [u64; 2], counts: [u64; 2]) -> Result<f64> {
    ensure!(long > short, "the longer run took no more instructions ({long}) than the shorter ({short})");
    Ok((long - short) as f64 / (counts[1] - counts[0]) as f64)
}

fn count_instructions(program: &Path, flags: &[&str], count: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    // Only the sum of the profile is used, which valgrind prints on standard error.
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(null_flags());
    command.args(flags).args(["--number_ios", &count.to_string()]);
    let cost = Program { command: &mut command, cpu: None, limit: LIMIT }.run()?.checked("trueio under callgrind")?;
    let done = io_count(&record_of(&cost.stdout)?);
    ensure!(done == count, "{done} of {count} I/Os were done");
    collected(&cost.stderr).context("callgrind printed no sum")
}

/// The sum in callgrind's closing words: `==17== Collected : 281828`.
fn collected(output: &str) -> Option<u64> {
    let line = output.lines().find_map(|line| line.split("Collected :").nth(1))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The gate on costs that grow with workers and job files.
pub(crate) fn growth(program: &Path) -> Outcome {
    growth::outcome(program)
}

/// The gate on what options add to an I/O.
pub(crate) fn extras(program: &Path) -> Outcome {
    extras::outcome(program)
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

/// Runs a program to its end; returns the peak of its anonymous memory.
///
/// # Errors
/// It fails, or runs longer than `limit_s` seconds.
pub(crate) fn peak_kib(command: &mut Command, limit_s: u32) -> Result<u64> {
    Ok(anonymous::run(command, limit_s)?.peak_kib)
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
    fn rows_of_a_trace_are_counted_by_the_line_of_the_program() {
        assert_eq!(traced_ios("note: x\ntrace: /a (b)/t.parquet (1,000,000 I/Os)\n"), Some(1_000_000));
        let missing = "trace: t (3,590,400 I/Os; 409,600 rows are missing, of worker 1: the file was written more slowly than I/O was done)";
        assert_eq!(traced_ios(missing), Some(3_590_400));
        assert_eq!(traced_ios("no trace"), None);
    }

    #[test]
    fn the_sum_is_found_among_callgrinds_words() {
        let output = "==9== Events    : Ir\n==9== Collected : 281828\n==9== \n==9== I   refs:      281,828\n";
        assert_eq!(collected(output), Some(281_828));
        assert_eq!(collected("valgrind: not found"), None);
    }

    #[test]
    fn start_up_cancels_in_the_difference() {
        assert_eq!(per_io([200_000, 600_000].map(|count| 3_000_000 + count * 61), COUNTS).unwrap(), 61.0);
        assert!(per_io([5, 5], COUNTS).is_err());
    }

    #[test]
    fn memory_that_grows_with_the_run_or_is_large_from_the_start_is_caught() {
        assert!(judge_memory(3_000, 4_024).1);
        assert!(!judge_memory(3_000, 4_025).1);
        assert!(!judge_memory(5_000, 5_000).1);
    }

    /// Goal: code that lost its vectors is found; those of another function do not count for it.
    #[test]
    fn a_function_without_its_vectors_is_found() {
        let code = |body: &str| format!("01 <_ZN5lanes9fill_avx2E>:\n 01: vpaddq %ymm1,%ymm0,%ymm2\n{body}\n");
        let good = code("02 <_ZN5lanes11fill_avx512E>:\n 02: vprolq $0x18,%zmm0,%zmm3");
        assert!(scalar_functions(&good).is_empty());
        let scalar =
            code("02 <_ZN5lanes11fill_avx512E>:\n 02: rol $0x18,%rax\n03 <other>:\n 03: vpaddq %zmm1,%zmm2,%zmm3");
        assert_eq!(scalar_functions(&scalar), ["fill_avx512"]);
        assert_eq!(scalar_functions(""), ["fill_avx512", "fill_avx2"]);
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
