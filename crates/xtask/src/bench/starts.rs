//! `cargo xtask bench starts`: how far apart the first I/Os of 64 workers are.
//!
//! The times are those of a trace (`--trace`), read with DuckDB, so they are of I/Os and not of readings before them. A run
//! whose trace has fewer rows than the job has I/Os is an error: a missing row may be a worker's first.
//!
//! Cannot see: what a busy machine adds. The load average is printed.

use super::growth::circumstances;
use super::table::write_between;
use crate::duckdb;
use crate::workspace::{self, command};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const WORKERS: u64 = 64;
/// Runs of a row.
const RUNS: usize = 15;

/// Prints the I/Os, the workers, and the nanoseconds from the first I/O of the first worker to that of the last.
const SCRIPT: &str = "
import duckdb, sys
print(*duckdb.sql(f\"\"\"select sum(n), count(*), max(first) - min(first) from
    (select worker, count(*) as n, min(intended_ns) as first from '{sys.argv[1]}' group by worker)\"\"\").fetchall()[0])
";

/// What a worker does, its I/Os, and the options.
const CASES: [(&str, u64, &str); 5] = [
    ("null, one I/O", 1, "--ioengine null"),
    ("null, 1,000 I/Os", 1_000, "--ioengine null"),
    ("psync, direct reads", 10, "--ioengine psync --direct 1"),
    ("io_uring, direct reads", 10, "--ioengine io_uring --direct 1"),
    ("io_uring, direct reads, depth 32", 100, "--ioengine io_uring --direct 1 --iodepth 32"),
];

/// Measures and prints; with `--markdown FILE` also writes the table between the markers of a page.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (mut program, mut markdown) = (None, None);
    let mut args = args.iter();
    while let Some(&flag) = args.next() {
        match flag {
            "--self" => program = Some(std::fs::canonicalize(args.next().context("`--self` needs a program")?)?),
            "--markdown" => markdown = Some(PathBuf::from(args.next().context("`--markdown` needs a file")?)),
            _ => bail!("`{flag}` is not an option of `cargo xtask bench starts`"),
        }
    }
    let program = match program {
        Some(program) => program,
        None => workspace::build_release()?,
    };
    let python = duckdb::python().map_err(|why| anyhow!("{why}"))?;
    // Not in memory: direct I/O.
    let folder = tempfile::Builder::new().prefix("starts").tempdir_in(workspace::target_dir()?)?;
    let file = folder.path().join("data");
    std::fs::write(&file, vec![1; 64 << 20]).with_context(|| file.display().to_string())?;
    let mut text = format!("{}\n\n{HEAD}", circumstances(&program));
    for (what, ios, flags) in CASES {
        let flags = match flags.contains("null") {
            true => format!("{flags} --size 1g"),
            false => format!("{flags} --size 64m --filename {}", file.display()),
        };
        let mut spreads = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            spreads.push(spread_ns(&program, &python, folder.path(), ios, &flags).context(what)?);
        }
        spreads.sort_unstable();
        let us = |ns: u64| ns / 1_000;
        let (least, median, most) = (us(spreads[0]), us(spreads[RUNS / 2]), us(spreads[RUNS - 1]));
        let row = format!("| {what} | {median} µs | {least} to {most} µs |\n");
        eprint!("{row}");
        write!(text, "{row}")?;
    }
    println!("{text}");
    if let Some(path) = &markdown {
        write_between(path, "starts", &text)?;
    }
    Ok(true)
}

const HEAD: &str = "| 64 workers | first I/Os within, median of 15 runs | least to most |\n|---|---|---|\n";

/// Runs a job of 64 workers once.
fn spread_ns(program: &Path, python: &Path, folder: &Path, ios: u64, flags: &str) -> Result<u64> {
    let trace = folder.join("trace.parquet");
    let _ = std::fs::remove_file(&trace);
    let mut run = command(&program.to_string_lossy());
    run.args(["run", "--rw", "randread", "--bs", "4k", "--no-history", "--no-evidence", "--json", "-"]);
    run.args(flags.split_whitespace()).args(["--numjobs", &WORKERS.to_string(), "--number_ios", &ios.to_string()]);
    let status = run.arg("--trace").arg(&trace).stdout(Stdio::null()).status().context("trueio")?;
    ensure!(status.success(), "trueio ended with {status}");
    let output =
        command(&python.to_string_lossy()).args(["-I", "-c", SCRIPT]).arg(&trace).output().context("python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let &[rows, workers, spread_ns] = figures.as_slice() else {
        bail!("DuckDB printed `{}{}`", text.trim(), String::from_utf8_lossy(&output.stderr).trim());
    };
    ensure!((rows, workers) == (WORKERS * ios, WORKERS), "the trace has {rows} I/Os of {workers} workers");
    Ok(spread_ns)
}
