//! Gates on what an option adds to an I/O: a log, a trace, a checksum, verification; and on an I/O of engines that make
//! system calls.
//!
//! As for the plain I/O, callgrind counts the instructions of two runs of different length, and the difference is
//! divided by that of their I/Os. A checksum is compared with a header alone (`verify=meta`) in runs of the same length: each
//! block is sealed once and compared once.
//!
//! Of jobs that make system calls, which take longer on a slower machine, only the workers' instructions are counted: how often their figures are read
//! meanwhile, and what can be said of them in the end, depends on the time that the run took.
//!
//! Limits: user instructions only. A trace's rows are written by a thread of its own, whose instructions count as well.
//! Valgrind has neither SHA nor AVX-512 instructions, so a processor with these takes fewer than are counted here.

use super::{BATCHES, LIMIT, collected, has_avx2, io_count, record_of, traced_ios};
use crate::process::Program;
use crate::step::Outcome;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use trueio_model::Checksum;

/// A measured cost: instructions, and the most that is allowed.
struct Case {
    name: &'static str,
    flags: Flags,
    /// What is written to the folder of the run, if anything: a flag and a file's name.
    output: Option<(&'static str, &'static str)>,
    counts: [u64; 2],
    /// 5 % above the larger value of two builds of 2026-11-26, whose code lay otherwise in memory; of jobs that make system calls, 8 and
    /// 13 % above that of 2026-11-30: two builds of one commit differed by 3 and 7 %. Infinite: what others are compared with.
    most: f64,
}

/// Groups of flags.
type Flags = &'static [&'static [&'static str]];

/// A null job.
const NULL: Flags = &[&["--ioengine", "null", "--rw", "randread", "--size", "8g"]];
/// Reads of an existing file of 512 MiB, each block once.
const READS: &[&str] = &["--rw", "randread", "--size", "512m", "--invalidate", "0"];
/// Its I/Os in the shorter and the longer run.
const READ_COUNTS: [u64; 2] = [4_000, 16_000];
const PSYNC: Flags = &[&["--ioengine", "psync"], READS];
const URING: Flags = &[&["--ioengine", "io_uring"], READS, &BATCHES];
/// Flags of a job that writes and verifies.
const VERIFIED: &[&str] = &["--ioengine", "psync", "--rw", "randwrite", "--size", "64m", "--verify"];

/// The cases whose I/Os are counted; the plain null job is what logs and traces are compared with.
const CASES: [Case; 5] = [
    Case { name: "null, depth 1", flags: NULL, output: None, counts: [20_000, 60_000], most: f64::INFINITY },
    Case {
        name: "a logged I/O, above one without a log",
        flags: NULL,
        output: Some(("--write_lat_log", "log")),
        counts: [20_000, 60_000],
        // 574.8 on 2026-11-28, 561 before a job of trims and writes ended with whole pairs.
        most: 590.0,
    },
    Case {
        name: "a traced I/O, above one without a trace",
        flags: NULL,
        output: Some(("--trace", "trace.parquet")),
        counts: [20_000, 60_000],
        most: 290.0,
    },
    Case { name: "an I/O of psync on tmpfs", flags: PSYNC, output: None, counts: READ_COUNTS, most: 385.0 },
    Case {
        name: "an I/O of io_uring, depth 32, batches of 16",
        flags: URING,
        output: None,
        counts: READ_COUNTS,
        most: 320.0,
    },
];

/// Most instructions of a MiB that is written with `verify=crc32c`, read back and compared.
const VERIFIED_MIB_MAX: f64 = 1_642_000.0;
/// Blocks of its shorter and its longer run.
const VERIFIED_COUNTS: [u64; 2] = [1_000, 5_000];
/// Blocks of a run with a checksum.
const CHECKSUM_COUNT: u64 = 500;
/// What a worker's thread calls.
const WORKER: &str = "trueio_run::worker::run_worker*";

/// Most instructions of a checksum of 4 KiB: 5 % above the value of 2026-11-26, as [`Case::most`].
fn checksum_max(checksum: Checksum) -> Option<f64> {
    Some(match checksum {
        Checksum::Crc32c => 2_290.0,
        Checksum::Xxhash => 2_249.0,
        Checksum::Md5 => 45_340.0,
        Checksum::Crc64 => 2_345.0,
        Checksum::Crc32 => 2_135.0,
        Checksum::Crc16 => 13_445.0,
        Checksum::Crc7 => 11_030.0,
        Checksum::Sha1 => 93_780.0,
        Checksum::Sha256 => 227_100.0,
        Checksum::Sha512 => 149_340.0,
        Checksum::Sha3_224 => 188_010.0,
        Checksum::Sha3_256 => 200_540.0,
        Checksum::Sha3_384 => 258_140.0,
        Checksum::Sha3_512 => 367_060.0,
        Checksum::Meta | Checksum::Pattern | Checksum::PatternHdr | Checksum::Null => return None,
    })
}

/// Measures all of them.
pub(super) fn outcome(program: &Path) -> Outcome {
    if !workspace::has_program("valgrind") {
        return Outcome::skipped("no valgrind");
    }
    if !has_avx2() {
        return Outcome::skipped("no AVX2: the bars are of a processor that has it");
    }
    // System calls on tmpfs take the same way each time, and no disk is waited for.
    match tempfile::Builder::new().prefix("trueio-gate").tempdir_in("/dev/shm") {
        Ok(folder) => Outcome::from_lines(measure(program, folder.path())),
        Err(error) => Outcome::skipped(&format!("no tmpfs in /dev/shm: {error}")),
    }
}

fn measure(program: &Path, folder: &Path) -> Result<(Vec<String>, bool)> {
    let (mut lines, mut is_good) = (Vec::new(), true);
    let mut hold = |what: &str, value: f64, most: f64| {
        let is_kept = value <= most && value > 0.0;
        is_good &= is_kept;
        let bar = if most.is_finite() { format!("at most {most}") } else { "not judged".to_owned() };
        lines.push(format!("{what}: {value:.1} ({bar}){}", if is_kept { "" } else { " TOO MANY" }));
    };
    let runs = Runs { program, folder };
    // A hole: its pages are read as zeros.
    std::fs::File::create(folder.join("file"))?.set_len(512 << 20)?;
    let mut plain = 0.0;
    for case in &CASES {
        let instructions = runs.per_io(case).with_context(|| case.name.to_owned())?;
        match (case.flags == NULL, case.output) {
            (true, None) => plain = instructions,
            (true, Some(_)) => hold(case.name, instructions - plain, case.most),
            (false, _) => hold(case.name, instructions, case.most),
        }
    }
    let [short, long] = VERIFIED_COUNTS.map(|count| runs.verified(Checksum::Crc32c, count));
    let instructions = super::per_io([short?, long?], VERIFIED_COUNTS)?;
    hold("a MiB written, read back and compared", instructions * 256.0, VERIFIED_MIB_MAX);
    let meta = runs.verified(Checksum::Meta, CHECKSUM_COUNT)? as f64;
    for checksum in Checksum::ALL {
        if let Some(most) = checksum_max(checksum) {
            let all = runs.verified(checksum, CHECKSUM_COUNT)? as f64;
            hold(&format!("{} of 4 KiB", checksum.name()), (all - meta) / (2 * CHECKSUM_COUNT) as f64, most);
        }
    }
    Ok((lines, is_good))
}

/// Runs of the program under callgrind, with their files in a folder.
struct Runs<'a> {
    program: &'a Path,
    folder: &'a Path,
}

impl Runs<'_> {
    fn per_io(&self, case: &Case) -> Result<f64> {
        let [short, long] = case.counts.map(|count| {
            let mut arguments: Vec<String> = case.flags.concat().into_iter().map(str::to_owned).collect();
            if case.flags != NULL {
                arguments.extend(["--filename".to_owned(), self.path("file").display().to_string()]);
            }
            let outputs: Vec<PathBuf> = case.output.iter().map(|(_, name)| self.path(name)).collect();
            if let (Some((flag, _)), [path]) = (case.output, &outputs[..]) {
                arguments.extend([flag.to_owned(), path.display().to_string()]);
            }
            let instructions = self.count(&arguments, count);
            self.remove_outputs();
            instructions
        });
        super::per_io([short?, long?], case.counts)
    }

    /// Counts the instructions of a run that writes `count` blocks with a checksum, and compares them.
    fn verified(&self, checksum: Checksum, count: u64) -> Result<u64> {
        let mut arguments: Vec<String> = VERIFIED.iter().map(|&flag| flag.to_owned()).collect();
        arguments.extend([checksum.name().to_owned(), "--filename".to_owned(), self.path("new").display().to_string()]);
        let instructions = self.count(&arguments, count);
        self.remove_outputs();
        instructions.with_context(|| format!("verify={}", checksum.name()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes all files but the one that is read.
    fn remove_outputs(&self) {
        for entry in std::fs::read_dir(self.folder).into_iter().flatten().flatten() {
            if entry.file_name() != "file" {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn count(&self, arguments: &[String], count: u64) -> Result<u64> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        // A job with a file; the engine null has none.
        let makes_system_calls = arguments.iter().any(|argument| argument == "--filename");
        if makes_system_calls {
            command.arg(format!("--toggle-collect={WORKER}"));
        }
        command.arg(self.program);
        command.args([
            "run",
            "--bs",
            "4k",
            "--no-history",
            "--no-evidence",
            "--verify_state_save=false",
            "--json",
            "-",
        ]);
        command.args(arguments).args(["--number_ios", &count.to_string()]).current_dir(self.folder);
        let cost =
            Program { command: &mut command, cpu: None, limit: LIMIT }.run()?.checked("trueio under callgrind")?;
        let record = record_of(&cost.stdout)?;
        ensure!(io_count(&record) == count, "{} of {count} I/Os were done", io_count(&record));
        if arguments.iter().any(|argument| argument == "--trace") {
            ensure!(traced_ios(&cost.stderr) == Some(count), "not all {count} I/Os are in the trace: {}", cost.stderr);
        }
        let instructions = collected(&cost.stderr).context("callgrind printed no sum")?;
        ensure!(instructions > 0, "callgrind counted nothing: is {WORKER} inlined?");
        Ok(instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checksum_that_computes_something_has_a_bar() {
        let without = Checksum::ALL.into_iter().filter(|checksum| checksum_max(*checksum).is_none());
        let expected = [Checksum::Meta, Checksum::Pattern, Checksum::PatternHdr, Checksum::Null];
        assert!(without.eq(expected));
    }

    #[test]
    fn a_program_that_does_nothing_passes_no_gate() {
        match outcome(Path::new("true")) {
            Outcome::Skipped { reason, .. } => println!("Skipped: {reason}"),
            outcome => assert!(matches!(outcome, Outcome::Failed(_))),
        }
    }
}
