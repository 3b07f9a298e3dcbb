//! Gates on costs that grow with the number of workers: memory of a worker, calls that start it, instructions of a job and of a
//! section of a job file.
//!
//! The difference of two runs of different size, divided by the difference of their sizes, is the cost of one more.
//!
//! Calls of futex(2) depend on which thread comes first, so their bar is not close to today's count: it catches a cost
//! that grows with the square of the workers (419 calls a worker for 1,000, once).

use super::{LIMIT, collected, null_flags, record_of};
use crate::process::Program;
use crate::step::Outcome;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Workers of the smaller and of the larger run.
const WORKERS: [u32; 2] = [100, 1_000];
/// The same under callgrind, which runs one thread at a time.
const COUNTED_WORKERS: [u32; 2] = [20, 120];
/// Sections of the smaller and of the larger job file.
const SECTIONS: [u32; 2] = [500, 2_000];
/// Most calls of futex(2) a worker.
const FUTEX_MAX: f64 = 24.0;
/// Most calls of mmap(2) a worker: its stack, the stack of its signal handlers, its series, two histograms at its first
/// I/O, the slices of its latencies at the end of its first interval.
const MMAP_MAX: f64 = 7.4;
/// Runs of each size. Threads that wait for each other take other ways from run to run, and a wait only adds instructions, so
/// the smallest count of them is compared.
const COUNTED_RUNS: usize = 7;
/// Most instructions a worker: 39,000 to 41,000 on an idle machine, 51,300 next to a busy one on 2026-11-26, where the run takes
/// longer and has more slices of latencies. One run of each size gave 37,000 to 66,300.
const WORKER_MAX: f64 = 59_300.0;
/// Most instructions a section of a job file, parsed, planned and printed: 5 % above 281,939.
const SECTION_MAX: f64 = 296_000.0;
/// Most anonymous memory of a worker before its first I/O, in KiB; 54.5 on 2026-11-30: its parts are made by a function, whose
/// frame holds them once more, where a macro saved that (48.5).
const MEMORY_MAX_KIB: f64 = 58.0;

/// Measures all of them.
pub(super) fn outcome(program: &Path) -> Outcome {
    for tool in ["valgrind", "strace"] {
        if !workspace::has_program(tool) {
            return Outcome::skipped(&format!("no {tool}"));
        }
    }
    let measure = || -> Result<(Vec<String>, bool)> {
        let (mut lines, mut is_good) = (Vec::new(), true);
        let mut hold = |what: &str, value: f64, most: f64| {
            let is_kept = value <= most;
            is_good &= is_kept;
            lines.push(format!("{what}: {value:.1} (at most {most}){}", if is_kept { "" } else { " TOO MANY" }));
        };
        let per_worker = |[few, many]: [f64; 2], [from, to]: [u32; 2]| (many - few) / f64::from(to - from);
        let [few, many] = WORKERS.map(|workers| calls(program, workers));
        let (few, many) = (few?, many?);
        hold("calls of futex a worker", per_worker([few.0, many.0], WORKERS), FUTEX_MAX);
        hold("calls of mmap a worker", per_worker([few.1, many.1], WORKERS), MMAP_MAX);
        let [few, many] = COUNTED_WORKERS.map(|workers| fewest_instructions(program, &worker_flags(workers)));
        hold("instructions a worker", per_worker([few?, many?], COUNTED_WORKERS), WORKER_MAX);
        let [few, many] = SECTIONS.map(|sections| parse_instructions(program, sections));
        hold("instructions a section of a job file", per_worker([few?, many?], SECTIONS), SECTION_MAX);
        let sizes = [1, 257];
        let [few, many] = sizes.map(|workers| anonymous_kib(program, workers));
        hold("KiB of a worker before its first I/O", per_worker([few?, many?], sizes), MEMORY_MAX_KIB);
        Ok((lines, is_good))
    };
    Outcome::from_lines(measure())
}

/// One I/O of each of `workers` workers.
fn worker_flags(workers: u32) -> Vec<String> {
    let flags = null_flags().into_iter().map(str::to_owned);
    flags.chain(["--number_ios", "1", "--numjobs", &workers.to_string()].map(str::to_owned)).collect()
}

/// Counts the calls of futex(2) and mmap(2) of a run.
fn calls(program: &Path, workers: u32) -> Result<(f64, f64)> {
    let summary = tempfile::NamedTempFile::new()?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "calls,name", "-e", "trace=futex,mmap", "-o"]).arg(summary.path());
    strace.arg(program).args(worker_flags(workers));
    let cost = Program { command: &mut strace, cpu: None, limit: LIMIT }.run()?.checked("trueio under strace")?;
    let record = record_of(&cost.stdout)?;
    ensure!(super::io_count(&record) == u64::from(workers), "not every worker did its I/O");
    let text = std::fs::read_to_string(summary.path())?;
    let of = |name: &str| counted(&text, name).with_context(|| format!("strace counted no {name}"));
    Ok((of("futex")?, of("mmap")?))
}

/// The count of a call in strace's summary: `  9066 futex`.
fn counted(summary: &str, name: &str) -> Option<f64> {
    summary.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [count, call] if call == name => count.parse().ok(),
        _ => None,
    })
}

fn instructions(program: &Path, arguments: &[String]) -> Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--max-threads=2000"]);
    command.arg(program).args(arguments);
    let cost = Program { command: &mut command, cpu: None, limit: LIMIT }.run()?.checked("trueio under callgrind")?;
    Ok(collected(&cost.stderr).context("callgrind printed no sum")? as f64)
}

/// Counts the instructions of [`COUNTED_RUNS`] runs and returns the smallest count.
fn fewest_instructions(program: &Path, arguments: &[String]) -> Result<f64> {
    let mut fewest = f64::INFINITY;
    for _ in 0..COUNTED_RUNS {
        fewest = fewest.min(instructions(program, arguments)?);
    }
    Ok(fewest)
}

/// Counts the instructions that parse, plan and print a job file of `sections` sections.
fn parse_instructions(program: &Path, sections: u32) -> Result<f64> {
    let mut text = "[defaults]\nioengine = \"null\"\nsize = \"1m\"\n".to_owned();
    for section in 0..sections {
        let _ = writeln!(text, "[job.j{section}]\nrw = \"randread\"\nbs = \"4k\"\niodepth = 4");
    }
    let file = tempfile::Builder::new().suffix(".toml").tempfile()?;
    std::fs::write(file.path(), text)?;
    instructions(program, &["explain".to_owned(), file.path().to_string_lossy().into_owned()])
}

/// A program that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the anonymous memory of a run whose workers all wait for their first I/O.
fn anonymous_kib(program: &Path, workers: u32) -> Result<f64> {
    let mut command = Command::new(program);
    command.args(worker_flags(workers)).args(["--startdelay", "60s"]);
    let run = Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let path = format!("/proc/{}/status", run.0.id());
    let figure = |text: &str, name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let (begin, mut last) = (Instant::now(), 0);
    loop {
        ensure!(begin.elapsed() < Duration::from_secs(60), "the workers did not become ready");
        std::thread::sleep(Duration::from_millis(200));
        let text = std::fs::read_to_string(&path).context("the run ended")?;
        let (threads, anonymous) = (figure(&text, "Threads:"), figure(&text, "RssAnon:").context("no RssAnon")?);
        // Workers allocate right after they have started, and nothing while they wait.
        if threads > Some(u64::from(workers)) && anonymous == last {
            return Ok(anonymous as f64);
        }
        last = anonymous;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_calls_is_read_from_straces_summary() {
        let summary = "    calls syscall\n--------- ----------------\n     9066 futex\n     5883 mmap\n--------- ---\n    14949 total\n";
        assert_eq!((counted(summary, "futex"), counted(summary, "mmap")), (Some(9_066.0), Some(5_883.0)));
        assert_eq!(counted(summary, "munmap"), None);
    }

    #[test]
    fn a_program_that_does_nothing_passes_no_gate() {
        match outcome(Path::new("true")) {
            Outcome::Skipped { reason, .. } => println!("Skipped: {reason}"),
            outcome => assert!(matches!(outcome, Outcome::Failed(_))),
        }
    }
}
