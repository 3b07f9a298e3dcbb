//! `cargo xtask bench fio-agreement`: compares the results of `trueio fio` and the installed fio for the same jobs.
//!
//! Each case is one command line. Both programs run it in turn, each time in the other order, on a loop device
//! over memory and on tmpfs; both print fio's JSON, which the same code reads. If the job transfers a fixed size, the
//! bytes must be equal. A figure agrees if the median of one side lies within the range of the other's runs, widened for
//! latencies by the width of fio's buckets (1/64).
//!
//! Everything runs on one processor, including the loop device's own work ([`OneProcessor`]): on two processors the
//! result changes by a factor of five with the processor that the scheduler gives the second thread.
//!
//! A figure that does not agree is reported with the side that it favours. A difference in fio's favour, or of bytes,
//! fails.
//!
//! Limits: differences below the runs' own range are not detected; the range is wide on a busy machine. The table shows
//! it, and a row whose ranges are both wider than [`NOISE_PERCENT`] is reported as too noisy.

use super::targets::{TargetKind, Targets};
use super::{Options, circumstances, table};
use crate::process::{self, Program, load_average};
use crate::workspace;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The target of a job.
#[derive(Clone, Copy, PartialEq)]
enum CaseTarget {
    /// A loop device over memory.
    Loop,
    /// A new file on tmpfs.
    Tmpfs,
    /// None: the engine `null` needs no file.
    Nothing,
}

/// A job: its name, target and options.
type Case = (&'static str, CaseTarget, &'static str);

/// Jobs with `--size` transfer a fixed number of bytes; the others run for the time of `--seconds`.
const CASES: &[Case] = &[
    ("libaio randread 4k qd1", CaseTarget::Loop, "--ioengine=libaio --rw=randread --bs=4k --iodepth=1 --direct=1"),
    ("libaio randread 4k qd32", CaseTarget::Loop, "--ioengine=libaio --rw=randread --bs=4k --iodepth=32 --direct=1"),
    ("libaio randwrite 4k qd1", CaseTarget::Loop, "--ioengine=libaio --rw=randwrite --bs=4k --iodepth=1 --direct=1"),
    ("libaio randwrite 4k qd32", CaseTarget::Loop, "--ioengine=libaio --rw=randwrite --bs=4k --iodepth=32 --direct=1"),
    ("libaio randrw 4k qd16", CaseTarget::Loop, "--ioengine=libaio --rw=randrw --bs=4k --iodepth=16 --direct=1"),
    ("libaio read 128k qd8", CaseTarget::Loop, "--ioengine=libaio --rw=read --bs=128k --iodepth=8 --direct=1"),
    ("libaio write 1m qd4", CaseTarget::Loop, "--ioengine=libaio --rw=write --bs=1m --iodepth=4 --direct=1"),
    ("io_uring randread 4k qd1", CaseTarget::Loop, "--ioengine=io_uring --rw=randread --bs=4k --iodepth=1 --direct=1"),
    (
        "io_uring randread 4k qd32",
        CaseTarget::Loop,
        "--ioengine=io_uring --rw=randread --bs=4k --iodepth=32 --direct=1",
    ),
    (
        "io_uring randwrite 4k qd8",
        CaseTarget::Loop,
        "--ioengine=io_uring --rw=randwrite --bs=4k --iodepth=8 --direct=1",
    ),
    ("io_uring read 64k qd16", CaseTarget::Loop, "--ioengine=io_uring --rw=read --bs=64k --iodepth=16 --direct=1"),
    ("psync randread 4k", CaseTarget::Loop, "--ioengine=psync --rw=randread --bs=4k --direct=1"),
    ("psync randwrite 4k", CaseTarget::Loop, "--ioengine=psync --rw=randwrite --bs=4k --direct=1"),
    ("psync read 128k", CaseTarget::Loop, "--ioengine=psync --rw=read --bs=128k --direct=1"),
    ("pvsync2 randread 16k", CaseTarget::Loop, "--ioengine=pvsync2 --rw=randread --bs=16k --direct=1"),
    ("psync write 4k fdatasync", CaseTarget::Loop, "--ioengine=psync --rw=write --bs=4k --direct=1 --fdatasync=1"),
    (
        "libaio randread at 2000 a second",
        CaseTarget::Loop,
        "--ioengine=libaio --rw=randread --bs=4k --iodepth=8 --direct=1 --rate_iops=2000",
    ),
    (
        "libaio randread 64 MiB eight times qd4",
        CaseTarget::Loop,
        "--ioengine=libaio --rw=randread --bs=4k --iodepth=4 --direct=1 --size=64m --loops=8",
    ),
    (
        "libaio randwrite 32 MiB eight times two clones",
        CaseTarget::Loop,
        // Workers are threads here. The median of fio's clones, which are processes, differs from that of its threads.
        "--ioengine=libaio --rw=randwrite --bs=8k --iodepth=4 --direct=1 --size=32m --loops=8 --numjobs=2 --thread --group_reporting",
    ),
    (
        "libaio randread of three sizes 32 MiB 32 times",
        CaseTarget::Loop,
        "--ioengine=libaio --rw=randread --bssplit=4k/50:16k/30:64k/20 --iodepth=4 --direct=1 --size=32m --loops=32",
    ),
    ("psync read 4k 128 MiB 20 times", CaseTarget::Tmpfs, "--ioengine=psync --rw=read --bs=4k --size=128m --loops=20"),
    (
        "psync write 64k 128 MiB 20 times",
        CaseTarget::Tmpfs,
        "--ioengine=psync --rw=write --bs=64k --size=128m --loops=20",
    ),
    (
        "psync randrw 4k 64 MiB 20 times",
        CaseTarget::Tmpfs,
        "--ioengine=psync --rw=randrw --rwmixread=70 --bs=4k --size=64m --loops=20",
    ),
    (
        "mmap randread 4k 64 MiB 20 times",
        CaseTarget::Tmpfs,
        "--ioengine=mmap --rw=randread --bs=4k --size=64m --loops=20",
    ),
    (
        "pvsync2 randwrite 4k 64 MiB 20 times",
        CaseTarget::Tmpfs,
        "--ioengine=pvsync2 --rw=randwrite --bs=4k --size=64m --loops=20",
    ),
    (
        "sync randread 4k 64 MiB 20 times",
        CaseTarget::Tmpfs,
        "--ioengine=sync --rw=randread --bs=4k --size=64m --loops=20",
    ),
    ("null randread 4k 16 GiB", CaseTarget::Nothing, "--ioengine=null --rw=randread --bs=4k --size=16g"),
];

/// The widest range of a side's rates, in percent of their median, at which agreement is meaningful.
const NOISE_PERCENT: f64 = 25.0;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    bytes: u64,
    iops: f64,
    bytes_per_s: f64,
    lat_ns_mean: f64,
    lat_ns_p50: f64,
    lat_ns_p99: f64,
}

/// A figure: its name, its value in a result, whether more is better, whether it is a latency.
type Figure = (&'static str, fn(&Figures) -> f64, bool, bool);

const FIGURES: [Figure; 5] = [
    ("IOPS", |f| f.iops, true, false),
    ("bandwidth", |f| f.bytes_per_s, true, false),
    ("lat mean", |f| f.lat_ns_mean, false, true),
    ("lat p50", |f| f.lat_ns_p50, false, true),
    ("lat p99", |f| f.lat_ns_p99, false, true),
];

/// The comparison of a figure of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Agrees,
    OursBetter,
    FiosBetter,
}

/// Runs of one side: median and range.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Runs {
    median: f64,
    min: f64,
    max: f64,
}

impl Runs {
    fn of(figures: &[Figures], of: fn(&Figures) -> f64) -> Self {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        Self { median: at(values.len() / 2), min: at(0), max: at(values.len().saturating_sub(1)) }
    }

    /// Returns whether a value lies in the range, widened on both sides by the fraction `widened`.
    fn holds(&self, value: f64, widened: f64) -> bool {
        value >= self.min * (1.0 - widened) && value <= self.max * (1.0 + widened)
    }

    /// Returns the range in percent of the median.
    fn spread_percent(&self) -> f64 {
        if self.median > 0.0 { (self.max - self.min) * 100.0 / self.median } else { 0.0 }
    }
}

fn standing(ours: &Runs, fios: &Runs, more_is_better: bool, is_latency: bool) -> Standing {
    let widened = if is_latency { 1.0 / 64.0 } else { 0.0 };
    if ours.holds(fios.median, widened) || fios.holds(ours.median, widened) {
        Standing::Agrees
    } else if (ours.median > fios.median) == more_is_better {
        Standing::OursBetter
    } else {
        Standing::FiosBetter
    }
}

/// Reads fio's JSON: sums over the jobs and directions; percentiles of the direction with most I/Os.
fn read(text: &[u8]) -> Result<Figures> {
    let begin = text.iter().position(|&byte| byte == b'{').context("no JSON")?;
    let report: Value = serde_json::from_slice(&text[begin..])?;
    let mut figures =
        Figures { bytes: 0, iops: 0.0, bytes_per_s: 0.0, lat_ns_mean: 0.0, lat_ns_p50: 0.0, lat_ns_p99: 0.0 };
    let (mut ios, mut most) = (0, 0);
    for job in report["jobs"].as_array().context("no jobs")? {
        ensure!(job["error"] == 0, "a job failed with error {}", job["error"]);
        for of in ["read", "write"].map(|name| &job[name]) {
            let count = of["total_ios"].as_u64().context("no total_ios")?;
            let number = |value: &Value| value.as_f64().unwrap_or(0.0);
            figures.bytes += of["io_bytes"].as_u64().context("no io_bytes")?;
            figures.iops += number(&of["iops"]);
            figures.bytes_per_s += number(&of["bw_bytes"]);
            figures.lat_ns_mean += number(&of["lat_ns"]["mean"]) * count as f64;
            ios += count;
            if count > most {
                most = count;
                figures.lat_ns_p50 = number(&of["lat_ns"]["percentile"]["50.000000"]);
                figures.lat_ns_p99 = number(&of["lat_ns"]["percentile"]["99.000000"]);
            }
        }
    }
    ensure!(ios > 0, "no I/O was done");
    figures.lat_ns_mean /= ios as f64;
    Ok(figures)
}

/// Restricts the kernel's unbound work, including that of loop devices, to processor 0; restores the mask on drop.
struct OneProcessor(String);

impl OneProcessor {
    const MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

    fn new() -> Result<Self> {
        let before = fs::read_to_string(Self::MASK).with_context(|| format!("reading `{}`", Self::MASK))?;
        fs::write(Self::MASK, "1\n").with_context(|| format!("writing `{}`", Self::MASK))?;
        Ok(Self(before))
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        if let Err(error) = fs::write(Self::MASK, &self.0) {
            eprintln!("`{}` could not be set to {} again: {error}", Self::MASK, self.0.trim());
        }
    }
}

/// A folder on tmpfs, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = PathBuf::from(format!("/dev/shm/trueio-bench-agreement-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a case once with one of the programs.
fn run_one(
    program: &Path,
    is_ours: bool,
    case: &Case,
    device: &Path,
    folder: &Folder,
    seconds: u32,
) -> Result<Figures> {
    let (_, target, flags) = case;
    let mut command = Command::new(program);
    if is_ours {
        command.arg("fio");
    }
    command.args(["--name=j", "--output-format=json", "--lat_percentiles=1", "--randrepeat=1", "--cpus_allowed=0"]);
    command.args(flags.split_whitespace()).current_dir(&folder.0);
    if !flags.contains("--size=") {
        command.args(["--time_based".to_owned(), format!("--runtime={seconds}"), "--size=100%".to_owned()]);
    }
    match target {
        CaseTarget::Loop => command.arg(format!("--filename={}", device.display())),
        // The file does not exist, so each side creates it in its own way.
        CaseTarget::Tmpfs => command.arg("--filename=f"),
        CaseTarget::Nothing => &mut command,
    };
    let limit = Duration::from_secs(u64::from(seconds) * 5 + 60);
    let cost = Program { command: &mut command, cpu: None, limit }.run()?;
    let cost = cost.checked(&format!("`{} {flags}`", program.display()))?;
    if *target == CaseTarget::Tmpfs {
        fs::remove_file(folder.0.join("f")).context("the file of the job")?;
    }
    read(&cost.stdout)
}

/// Measures and prints; returns `false` if a difference is in fio's favour or bytes differ.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    if options.cases == ["list"] {
        CASES.iter().for_each(|(name, ..)| println!("{name}"));
        return Ok(true);
    }
    ensure!(workspace::is_root(), "a loop device needs root");
    let trueio = match &options.trueio {
        Some(program) => program.clone(),
        None => workspace::build_release()?,
    };
    let trueio = fs::canonicalize(&trueio).with_context(|| trueio.display().to_string())?;
    let tools = super::tools::Tools {
        trueio: trueio.clone(),
        fio: std::env::var_os("FIO").unwrap_or_else(|| "fio".into()).into(),
        uring_limit: None,
    };
    if Command::new(&tools.fio).arg("--version").output().is_err() {
        bail!("there is no fio here; FIO=PROGRAM names one");
    }
    process::install_stop_handler()?;
    let targets = Targets::new(&[TargetKind::Loop], &workspace::target_dir()?.join("tmp"));
    let device = targets.path(TargetKind::Loop).map_err(|reason| anyhow!("{reason}"))?.to_owned();
    let folder = Folder::new()?;
    let _one_processor = OneProcessor::new()?;
    let load_before = load_average();
    let cases: Vec<&Case> = CASES.iter().filter(|case| options.includes(case.0)).collect();
    ensure!(!cases.is_empty(), "no such case; `--cases list` prints them");
    let mut runs: Vec<[Vec<Figures>; 2]> = cases.iter().map(|_| Default::default()).collect();
    for pair in 0..options.pair_count {
        for (case, runs) in cases.iter().zip(&mut runs) {
            // The order alternates, so drift favours neither side.
            for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                let program = if side == 0 { &trueio } else { &tools.fio };
                let figures = run_one(program, side == 0, case, &device, &folder, options.seconds);
                runs[side].push(figures.with_context(|| case.0.to_owned())?);
            }
        }
        eprintln!("pair {} of {}", pair + 1, options.pair_count);
    }
    let mut text = format!(
        "{} pairs of runs of {} s (or of a fixed size), {}. Load average {load_before} before, {} after.\n\n\
         | job | on | bytes | IOPS: trueio, fio | ratio | range | lat mean | lat p50 | lat p99 | result |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        options.pair_count,
        options.seconds,
        circumstances(&tools),
        load_average(),
    );
    let mut counts = [0; 3];
    for (case, [ours, fios]) in cases.iter().zip(&runs) {
        let (row, outcome) = row(case, ours, fios);
        text.push_str(&row);
        counts[outcome as usize] += 1;
    }
    let [good, noisy, failed] = counts;
    println!("{text}");
    if let Some(path) = &options.markdown {
        table::write_between(path, "bench", &text)?;
    }
    println!(
        "{} jobs: {good} agree or differ in our favour, {noisy} were too noisy to tell, {failed} differ in fio's favour or in \
         bytes",
        cases.len()
    );
    Ok(failed == 0)
}

/// The outcome of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The numbers agree, or their difference is in our favour.
    Good,
    /// The runs of each side differ so much that agreement is meaningless.
    Noisy,
    /// A difference in fio's favour, or of bytes.
    Bad,
}

/// Returns a row of the table, and its outcome.
fn row(case: &Case, ours: &[Figures], fios: &[Figures]) -> (String, Outcome) {
    let (name, target, flags) = case;
    let is_fixed = flags.contains("--size=");
    let bytes = |runs: &[Figures]| {
        let first = runs.first().map_or(0, |figures| figures.bytes);
        runs.iter().all(|figures| figures.bytes == first).then_some(first)
    };
    let has_equal_bytes = bytes(ours).is_some() && bytes(ours) == bytes(fios);
    let mut better = Vec::new();
    let mut worse = Vec::new();
    let mut sides = Vec::new();
    for (figure, of, more_is_better, is_latency) in FIGURES {
        let (a, b) = (Runs::of(ours, of), Runs::of(fios, of));
        sides.push((a, b));
        match standing(&a, &b, more_is_better, is_latency) {
            Standing::Agrees => {}
            Standing::OursBetter => better.push(figure),
            Standing::FiosBetter => worse.push(figure),
        }
    }
    let mut words = Vec::new();
    // Two latencies have another definition: fio's begins when an I/O is issued, and after its seek.
    for (flag, meaning) in [
        ("--rate", "lat counts from the intended start here"),
        ("--ioengine=sync ", "lat holds the seek before each I/O here"),
    ] {
        if flags.contains(flag) && worse.iter().any(|figure: &&str| figure.starts_with("lat")) {
            worse.retain(|figure| !figure.starts_with("lat"));
            words.push(meaning.to_owned());
        }
    }
    if is_fixed && !has_equal_bytes {
        words.push("bytes differ".to_owned());
    }
    if !better.is_empty() {
        words.push(format!("less of the tool's own cost: {}", better.join(", ")));
    }
    if !worse.is_empty() {
        words.push(format!("fio is ahead: {}", worse.join(", ")));
    }
    let (a, b) = sides[0];
    let is_noisy = a.spread_percent().min(b.spread_percent()) > NOISE_PERCENT;
    if is_noisy && worse.is_empty() {
        words.push("too noisy to tell".to_owned());
    } else if words.is_empty() {
        words.push("agrees".to_owned());
    }
    let us = |(a, b): (Runs, Runs)| format!("{:.1}, {:.1} µs", a.median / 1e3, b.median / 1e3);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {:.0}, {:.0} | {:.2} | {:.0} %, {:.0} % | {} | {} | {} | {} |",
        match target {
            CaseTarget::Loop => "loop",
            CaseTarget::Tmpfs => "tmpfs",
            CaseTarget::Nothing => "nothing",
        },
        match (is_fixed, has_equal_bytes) {
            (false, _) => "by time",
            (true, true) => "equal",
            (true, false) => "differ",
        },
        a.median,
        b.median,
        if b.median > 0.0 { a.median / b.median } else { 0.0 },
        a.spread_percent(),
        b.spread_percent(),
        us(sides[2]),
        us(sides[3]),
        us(sides[4]),
        words.join("; ")
    );
    let outcome = match (worse.is_empty() && (!is_fixed || has_equal_bytes), is_noisy) {
        (false, _) => Outcome::Bad,
        (true, true) => Outcome::Noisy,
        (true, false) => Outcome::Good,
    };
    (text, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64]) -> Runs {
        let figures: Vec<Figures> = values
            .iter()
            .map(|&iops| Figures {
                bytes: 1,
                iops,
                bytes_per_s: 0.0,
                lat_ns_mean: 0.0,
                lat_ns_p50: 0.0,
                lat_ns_p99: 0.0,
            })
            .collect();
        Runs::of(&figures, |figures| figures.iops)
    }

    #[test]
    fn medians_within_the_others_range_agree_and_other_medians_favour_a_side() {
        let of = |ours: &[f64], fios: &[f64], more, latency| standing(&runs(ours), &runs(fios), more, latency);
        assert_eq!(of(&[100.0, 110.0, 120.0], &[105.0, 118.0, 130.0], true, false), Standing::Agrees);
        assert_eq!(of(&[100.0, 101.0, 102.0], &[90.0, 91.0, 92.0], true, false), Standing::OursBetter);
        assert_eq!(of(&[100.0, 101.0, 102.0], &[90.0, 91.0, 92.0], false, false), Standing::FiosBetter);
        // Within fio's bucket a latency agrees.
        assert_eq!(of(&[100.0], &[101.0], false, true), Standing::Agrees);
        assert_eq!(of(&[100.0], &[101.0], false, false), Standing::OursBetter);
    }

    #[test]
    fn a_row_is_agreement_noise_or_a_difference() {
        let figures = |iops: &[f64], bytes: u64| -> Vec<Figures> {
            let of = |&iops: &f64| Figures {
                bytes,
                iops,
                bytes_per_s: iops,
                lat_ns_mean: 1e9 / iops,
                lat_ns_p50: 1e9 / iops,
                lat_ns_p99: 1e9 / iops,
            };
            iops.iter().map(of).collect()
        };
        let case: Case = ("a job", CaseTarget::Loop, "--size=1m");
        let outcome = |ours: &[f64], fios: &[f64]| row(&case, &figures(ours, 9), &figures(fios, 9)).1;
        let quiet = [100.0, 104.0, 108.0];
        assert_eq!(outcome(&quiet, &[102.0, 105.0, 109.0]), Outcome::Good);
        assert_eq!(outcome(&quiet, &[80.0, 81.0, 82.0]), Outcome::Good, "a difference in our favour");
        assert_eq!(outcome(&quiet, &[120.0, 122.0, 124.0]), Outcome::Bad);
        assert_eq!(outcome(&[50.0, 100.0, 150.0], &[60.0, 110.0, 140.0]), Outcome::Noisy);
        assert_eq!(outcome(&[50.0, 100.0, 150.0], &[300.0, 400.0, 500.0]), Outcome::Bad, "noise excuses no difference");
        assert_eq!(row(&case, &figures(&quiet, 9), &figures(&quiet, 8)).1, Outcome::Bad, "bytes differ");
        let (text, _) = row(&case, &figures(&[50.0, 100.0, 150.0], 9), &figures(&[60.0, 110.0, 140.0], 9));
        assert!(text.contains("too noisy to tell") && !text.contains("agrees"), "{text}");
    }

    #[test]
    fn figures_are_summed_over_jobs_and_a_failed_job_gives_none() {
        let lat = |mean: f64| serde_json::json!({"mean": mean, "percentile": {"50.000000": 9, "99.000000": 99}});
        let report = serde_json::json!({"jobs": [
            {"error": 0, "read": {"total_ios": 3, "io_bytes": 30, "iops": 3.0, "bw_bytes": 30, "lat_ns": lat(10.0)},
             "write": {"total_ios": 1, "io_bytes": 10, "iops": 1.0, "bw_bytes": 10, "lat_ns": lat(50.0)}}]});
        let figures = read(report.to_string().as_bytes()).unwrap();
        assert_eq!((figures.bytes, figures.iops, figures.lat_ns_mean), (40, 4.0, 20.0));
        let failed = report.to_string().replace("\"error\":0", "\"error\":5");
        assert!(read(failed.as_bytes()).is_err());
    }

    #[test]
    fn there_are_at_least_twenty_jobs_with_different_names() {
        let names: std::collections::BTreeSet<_> = CASES.iter().map(|case| case.0).collect();
        assert!(names.len() == CASES.len() && names.len() >= 20);
    }
}
