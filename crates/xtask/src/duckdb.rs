//! Reads a trace of every I/O with DuckDB from PyPI. A step of `cargo xtask ci`.
//!
//! DuckDB has a Parquet reader of its own, so what it counts does not depend on the crate that wrote the file. Its counts,
//! bytes and longest latencies must be those of the record of the same run.

use crate::fio_plot::environment;
use crate::gate;
use crate::python;
use crate::step::Outcome;
use crate::workspace::{self, command};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trueio_model::{OpKind, RunRecord};

/// The version that is installed.
const VERSION: &str = "2.0.0";
/// Prints a line for each operation: its number, I/Os, bytes, longest latency, I/Os of all workers but the first.
const SCRIPT: &str = "
import duckdb, sys
rows = duckdb.sql(f\"\"\"select op, count(*), sum(length), max(slat_ns + clat_ns), count(*) filter (worker = 2)
    from '{sys.argv[1]}' where error = 0 group by op order by op\"\"\").fetchall()
print('\\n'.join(' '.join(str(int(value)) for value in row) for row in rows))
";

/// Returns the Python of an environment with DuckDB, which it makes at its first use. The error is a sentence.
pub(crate) fn python() -> Result<PathBuf, String> {
    let python = python::interpreter().ok_or("no Python of version 3.11 or later that can make environments")?;
    let build = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("duckdb");
    environment(python, &build, "duckdb", VERSION).map_err(|why| format!("DuckDB could not be had: {why}"))?;
    Ok(build.join("venv/bin/python"))
}

/// Traces a run of `program` and lets DuckDB read it.
pub(crate) fn run(program: &Path) -> Outcome {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return Outcome::skipped(&why),
    };
    match compare(program, &python) {
        Ok(count) => Outcome::Passed(format!("{count} rows")),
        Err(why) => Outcome::Failed(why),
    }
}

fn compare(program: &Path, python: &Path) -> Result<u64, String> {
    let trace = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("duckdb/trace.parquet");
    let _ = std::fs::remove_file(&trace);
    let mut traced: Command = command(&program.to_string_lossy());
    // 160,000 I/Os are more than one group of rows; at 80,000 a second the writer keeps up with them, on a busy machine, too.
    traced.args(["run", "--ioengine", "null", "--rw", "randrw", "--bs", "4k", "--size", "1g", "--numjobs", "2"]);
    traced.args(["--number_ios", "80000", "--rate_iops", "20000", "--no-history", "--no-evidence", "--json", "-"]);
    let output = traced.arg("--trace").arg(&trace).stderr(Stdio::null()).output().map_err(|error| error.to_string())?;
    let record: RunRecord = gate::record_of(&output.stdout).map_err(|error| format!("{error:#}"))?;
    let mut read = command(&python.to_string_lossy());
    let output = read.args(["-I", "-c", SCRIPT]).arg(&trace).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("python: {error}"))?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let expected: Vec<String> = record.phases[0].jobs[0].ops.iter().filter_map(line).collect();
    // Which worker an I/O is of is not in the record.
    let without_worker = |line: &str| line.rsplit_once(' ').map_or(String::new(), |(rest, _)| rest.to_owned());
    let of_second = |line: &str| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok()).unwrap_or(0);
    let figures: Vec<String> = found.lines().map(without_worker).collect();
    let second: u64 = found.lines().map(of_second).sum();
    if figures != expected || second != 80_000 {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("DuckDB counts {figures:?} ({second} of worker 2), the record {expected:?}; {errors}"));
    }
    Ok(gate::io_count(&record))
}

/// The line that DuckDB prints for an operation of a record.
fn line(op: &trueio_model::OpRecord) -> Option<String> {
    let number = [OpKind::Read, OpKind::Write].iter().position(|known| *known == op.op)?;
    Some(format!("{number} {} {} {}", op.io_count, op.byte_count, op.latency.total.max_ns()?))
}
