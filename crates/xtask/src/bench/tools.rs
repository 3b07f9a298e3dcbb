//! Runs trueio and fio with the same options, and reads their results.
//!
//! trueio's options have fio's names and values, so both get the same flags. Of a result, the number of I/Os, their rate,
//! the median of the total latency, and the CPU time that trueio reports are read.
//!
//! `{out}` in flags is a folder in memory that is made for the run; the bytes of its files are counted. `{jobs:N}` is a job file
//! of fio's with N sections.

use crate::gate::{io_count, record_of, traced_ios};
use crate::process::{Cost, Program};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use trueio_model::{Histogram, RunRecord};

/// A program under comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Ours.
    Trueio,
    /// The installed fio.
    Fio,
    /// fio's `t/io_uring`, which does nothing but I/O.
    UringLimit,
    /// Ours, which only reads a job file.
    TrueioParse,
    /// The installed fio, which only reads a job file.
    FioParse,
}

/// Paths of the programs.
pub(crate) struct Tools {
    pub(crate) trueio: PathBuf,
    pub(crate) fio: PathBuf,
    /// `t/io_uring`, which distributions do not package.
    pub(crate) uring_limit: Option<PathBuf>,
}

impl Tools {
    /// Runs `tool` with `flags`, which are fio's.
    ///
    /// # Errors
    /// If it fails or has no readable result: figures of a run that did not do its work are worthless.
    pub(crate) fn run(&self, tool: Tool, flags: &str, cpu: Option<usize>, limit: Duration) -> Result<Sample> {
        let (mut command, name) = match tool {
            Tool::Trueio | Tool::TrueioParse => (Command::new(&self.trueio), "trueio"),
            Tool::Fio | Tool::FioParse => (Command::new(&self.fio), "fio"),
            Tool::UringLimit => {
                (Command::new(self.uring_limit.as_ref().context("t/io_uring is not here")?), "t/io_uring")
            }
        };
        match tool {
            Tool::Trueio => command.args(["run", "--no-history", "--no-evidence", "--json", "-"]),
            Tool::Fio => command.args(["--name=j", "--output-format=json"]),
            Tool::UringLimit => &mut command,
            Tool::TrueioParse => command.args(["fio", "--parse-only"]),
            Tool::FioParse => command.arg("--parse-only"),
        };
        let files = Files::of(flags)?;
        command.args(files.flags.split_whitespace());
        let cost = Program { command: &mut command, cpu, limit }.run()?;
        let mut cost = cost.checked(&format!("`{name} {}`", flags.trim()))?;
        let answer = match tool {
            Tool::Trueio => trueio_answer(&record_of(&cost.stdout)?),
            Tool::Fio => fio_answer(&cost.stdout),
            Tool::UringLimit => limit_answer(&cost.stdout, cost.wall_ns),
            Tool::TrueioParse | Tool::FioParse => Ok(Answer { io_count: files.sections, ..Answer::default() }),
        };
        let answer = answer.map(|answer| Answer { output_bytes: files.bytes(), ..answer });
        if files.flags.contains("--trace=") {
            let io_count = answer.as_ref().map_or(0, |answer| answer.io_count);
            ensure!(
                traced_ios(&cost.stderr) == Some(io_count),
                "not all {io_count} I/Os are in the trace: {}",
                cost.stderr
            );
        }
        // Dropped now: memory of this process counts in the peak of the next child.
        cost.stdout = Vec::new();
        Ok(Sample { answer: answer.with_context(|| format!("the output of `{name} {}`", flags.trim()))?, cost })
    }
}

/// A program's result of its run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    /// I/Os completed.
    pub(crate) io_count: u64,
    /// I/Os per second of all jobs together, by the program's own clock.
    pub(crate) iops: f64,
    /// Median of the total latency (lat), if reported.
    pub(crate) latency_ns_p50: Option<u64>,
    /// CPU time that it accounts for itself, if reported in absolute terms.
    pub(crate) own_cpu_ns: Option<u64>,
    /// Bytes of the files that it wrote to `{out}`.
    pub(crate) output_bytes: u64,
}

/// Files of a run, in memory, and its flags with their paths.
struct Files {
    flags: String,
    folder: Option<TempDir>,
    /// Sections of the job file.
    sections: u64,
}

impl Files {
    fn of(flags: &str) -> Result<Self> {
        let mut files = Self { flags: flags.to_owned(), folder: None, sections: 0 };
        if !flags.contains('{') {
            return Ok(files);
        }
        let folder = tempfile::Builder::new().prefix("trueio-bench").tempdir_in("/dev/shm").context("/dev/shm")?;
        files.flags = files.flags.replace("{out}", &folder.path().display().to_string());
        if let Some((before, rest)) = files.flags.split_once("{jobs:")
            && let Some((count, after)) = rest.split_once('}')
        {
            files.sections = count.parse().context("`{jobs:N}` takes a number")?;
            let path = folder.path().join("jobs.fio");
            std::fs::write(&path, job_file(files.sections))?;
            files.flags = format!("{before}{}{after}", path.display());
        }
        files.folder = Some(folder);
        Ok(files)
    }

    fn bytes(&self) -> u64 {
        let entries = self.folder.iter().filter_map(|folder| std::fs::read_dir(folder.path()).ok()).flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

/// A job file in fio's language.
pub(crate) fn job_file(sections: u64) -> String {
    let mut text = "[global]\nioengine=null\nsize=1m\n".to_owned();
    for section in 0..sections {
        text += &format!("[j{section}]\nrw=randread\nbs=4k\niodepth=4\n");
    }
    text
}

/// A run: its cost and its result.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) answer: Answer,
    pub(crate) cost: Cost,
}

fn trueio_answer(record: &RunRecord) -> Result<Answer> {
    let elapsed_ns: u64 = record.phases.iter().map(|phase| phase.elapsed_ns).sum();
    ensure!(elapsed_ns > 0, "the record has no measured time");
    let mut total = Histogram::new();
    let operations = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops);
    operations.for_each(|op| total.merge(&op.latency.total));
    let io_count = io_count(record);
    ensure!(total.count() == io_count, "{io_count} I/Os, of which {} have a latency", total.count());
    Ok(Answer {
        io_count,
        iops: io_count as f64 * 1e9 / elapsed_ns as f64,
        latency_ns_p50: total.value_at_rank(total.count().div_ceil(2)),
        own_cpu_ns: Some(record.phases.iter().map(|phase| phase.cpu.total_ns()).sum()),
        ..Answer::default()
    })
}

fn fio_answer(stdout: &[u8]) -> Result<Answer> {
    // fio may print notes first.
    let begin = stdout.iter().position(|&byte| byte == b'{').context("no JSON")?;
    let report: Value = serde_json::from_slice(&stdout[begin..])?;
    let mut answer = Answer::default();
    for job in report["jobs"].as_array().context("no jobs")? {
        ensure!(job["error"] == 0, "a job failed with error {}", job["error"]);
        for direction in ["read", "write"].map(|name| &job[name]) {
            answer.io_count += direction["total_ios"].as_u64().unwrap_or(0);
            answer.iops += direction["iops"].as_f64().unwrap_or(0.0);
            // Only with lat_percentiles=1, and only meaningful for a single job.
            let p50 = direction["lat_ns"]["percentile"]["50.000000"].as_u64();
            answer.latency_ns_p50 = answer.latency_ns_p50.or(p50);
        }
    }
    ensure!(answer.io_count > 0, "no I/O was done");
    Ok(answer)
}

/// Lines such as `IOPS=1.23M, BW=4.80GiB/s, IOS/call=8/8`, one a second but for the last second, of
/// which it reports nothing. The count is not reported either: it is the mean rate times the time it ran.
fn limit_answer(stdout: &[u8], wall_ns: u64) -> Result<Answer> {
    let output = String::from_utf8_lossy(stdout);
    let rates: Vec<f64> = output
        .lines()
        .filter_map(|line| {
            let rate = line.strip_prefix("IOPS=")?.split(',').next()?;
            let (number, scale) = match rate.as_bytes().last()? {
                b'K' => (&rate[..rate.len() - 1], 1e3),
                b'M' => (&rate[..rate.len() - 1], 1e6),
                _ => (rate, 1.0),
            };
            Some(number.parse::<f64>().ok()? * scale)
        })
        .collect();
    ensure!(!rates.is_empty(), "no line begins with `IOPS=`");
    let iops = rates.iter().sum::<f64>() / rates.len() as f64;
    Ok(Answer { io_count: (iops * wall_ns as f64 / 1e9) as u64, iops, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A record as the program prints it: one phase, reads and writes, two latencies each.
    fn record(outcome: &Value) -> String {
        let unknown = json!({"value": null, "source": "a test"});
        let histogram = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            histogram
        };
        let op = |name: &str, values: &[u64]| {
            let empty = Histogram::new();
            json!({"op": name, "io_count": values.len(), "byte_count": 0, "short_count": 0, "error_count": 0, "latency": {
                "submission": empty, "completion": empty, "total": histogram(values), "from_intended": empty}})
        };
        let job = json!({"name": "j", "ops": [op("read", &[100, 110, 120]), op("write", &[50, 60])], "series": [],
            "elapsed_ns": 2_000, "achieved_depth": null, "pacing_lateness": Histogram::new(), "backlog_count": 0,
            "failures": [], "verify_failures": [], "verified_block_count": 0, "verify_failure_count": 0, "engine_notes": []});
        json!({"format": "trueio-record", "version": 1, "id": "00", "started_unix_s": 0, "started_at": "", "kind": "run",
            "command": [], "tool": {"name": "trueio", "version": "0", "build": "release"}, "spec": [],
            "plan": {"jobs": [], "idle_baseline_ns": 0, "notes": []}, "targets": [],
            "environment": {"system": "Linux", "distribution": unknown,
                "cpu": {"model": unknown, "usable_count": 2, "governor": unknown}, "memory_bytes": unknown,
                "memory_available_bytes": unknown, "hypervisor": unknown, "clock_source": unknown,
                "load_average": unknown, "is_root": true},
            "ruler": {"clock": "tsc", "clock_cost_ns": 8.0, "clock_resolution_ns": 1.0, "null_cpu_ns_per_io": 20.0,
                "null_latency_ns_p50": 9},
            "phases": [{"name": "j", "begin_ns": 0, "elapsed_ns": 2_500, "cpu": {"user_ns": 300, "system_ns": 40},
                "worker_cpu": {"user_ns": 0, "system_ns": 0}, "jobs": [job], "devices": [], "residency": [],
                "verdict": "supported", "level": "E0", "checks": [], "outcome": {"how": "complete"}}],
            "outcome": outcome})
        .to_string()
    }

    #[test]
    fn trueios_answer_is_read_from_its_record() {
        let record = record_of(record(&json!({"how": "complete"})).as_bytes()).unwrap();
        let answer = trueio_answer(&record).unwrap();
        // Five I/Os in 2.5 µs; 50 60 100 110 120: the third.
        let expected =
            Answer { io_count: 5, iops: 2e6, latency_ns_p50: Some(100), own_cpu_ns: Some(340), output_bytes: 0 };
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_run_that_was_interrupted_or_lost_latencies_gives_no_figure() {
        let interrupted = record(&json!({"how": "interrupted", "signal": "SIGINT"}));
        assert!(record_of(interrupted.as_bytes()).is_err());
        let mut record = record_of(record(&json!({"how": "complete"})).as_bytes()).unwrap();
        record.phases[0].jobs[0].ops[0].io_count += 1;
        assert!(trueio_answer(&record).is_err());
    }

    #[test]
    fn fios_answer_is_the_sum_of_its_jobs() {
        let output = br#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"jobs":[
 {"error":0,"read":{"total_ios":10,"iops":5.5,"lat_ns":{"percentile":{"50.000000":812}}},"write":{"total_ios":0,"iops":0.0}},
 {"error":0,"read":{"total_ios":20,"iops":4.5},"write":{"total_ios":1,"iops":0.5}}]}"#;
        let answer = fio_answer(output).unwrap();
        assert_eq!((answer.io_count, answer.iops, answer.latency_ns_p50), (31, 10.5, Some(812)));
    }

    #[test]
    fn a_run_of_fio_that_failed_or_did_nothing_gives_no_figure() {
        assert!(fio_answer(br#"{"jobs":[{"error":22,"read":{"total_ios":9,"iops":1.0}}]}"#).is_err());
        assert!(fio_answer(br#"{"jobs":[{"error":0,"read":{"total_ios":0,"iops":0.0}}]}"#).is_err());
        assert!(fio_answer(b"fio: unknown option").is_err());
    }

    #[test]
    fn the_rates_of_the_limit_are_read_in_thousands_and_millions() {
        let output = b"submitter=0\nIOPS=900K, BW=3.4GiB/s, IOS/call=8/8\nIOPS=1.10M, BW=4GiB/s\nExiting on timeout\n";
        let answer = limit_answer(output, 3_000_000_000).unwrap();
        // Three seconds, of which two were reported.
        assert_eq!((answer.io_count, answer.iops), (3_000_000, 1_000_000.0));
        assert!(limit_answer(b"polled=1", 1).is_err());
    }
}
