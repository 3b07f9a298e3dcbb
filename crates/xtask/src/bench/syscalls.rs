//! `cargo xtask bench syscall-trace`: how much slower a job is while its system calls are recorded, by our
//! own trace and by strace.
//!
//! The same job runs plain, with `--trace-syscalls` and with `--strace` (`strace -f -tt`), in rounds, each
//! round in another order. A round gives one ratio of each to the plain run, so a disturbance of the whole round
//! cancels; the median of the ratios is printed with its 95 % interval and their range. Next to it is the added time of a
//! call: the difference of the medians of the latencies.
//!
//! Reads from the page cache are the worst case: a call of a microsecond, nothing to wait for. The loop
//! device over memory is a very quick disk. A slower disk hides more of either.
//!
//! Limits: the cost for other processes, whose system calls take the kernel's slow path, too, is not measured.

use super::Options;
use super::evidence::with_interval;
use super::table::Estimate;
use super::targets::{TargetKind, Targets};
use crate::gate::{io_count, record_of};
use crate::process::Program;
use crate::workspace;
use anyhow::{Context, Result, anyhow, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    iops: f64,
    latency_ns_p50: f64,
    calls: f64,
    lost: f64,
    thread_share: f64,
}

/// The ways to run it: its flag and its name.
const SIDES: [(&str, &str); 3] = [("", "plain"), ("--trace_syscalls", "our trace"), ("--strace", "strace -f -tt")];

const CASES: [(&str, TargetKind, &str); 4] = [
    ("page cache, psync", TargetKind::Cached, "--ioengine=psync --direct=0"),
    ("quick disk, psync", TargetKind::Loop, "--ioengine=psync --direct=1"),
    ("quick disk, sync (lseek and read)", TargetKind::Loop, "--ioengine=sync --direct=1"),
    ("quick disk, io_uring at depth 32", TargetKind::Loop, "--ioengine=io_uring --iodepth=32 --direct=1"),
];

/// Measures and prints; returns `false` if calls were lost, so that the cost of recording all of them was not measured.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    ensure!(options.cases.is_empty() && options.markdown.is_none(), "`bench syscall-trace` has no cases and no page");
    ensure!(workspace::is_root(), "system calls are recorded for root only");
    let has_strace = workspace::has_program("strace");
    if !has_strace {
        println!("strace is not installed: only our own trace is measured");
    }
    let program = match &options.trueio {
        Some(program) => program.clone(),
        None => workspace::build_release()?,
    };
    let targets = Targets::new(&[TargetKind::Cached, TargetKind::Loop], &workspace::target_dir()?.join("tmp"));
    let sides = &SIDES[..if has_strace { 3 } else { 2 }];
    let mut is_whole = true;
    for (name, kind, flags) in CASES {
        let path = targets.path(kind).map_err(|reason| anyhow!("{reason}"))?;
        let mut rounds: Vec<Vec<Figures>> = Vec::new();
        for round in 0..options.pair_count {
            let mut of_round = vec![None; sides.len()];
            // The order changes each round, so drift favours none.
            for turn in 0..sides.len() {
                let side = (round + turn) % sides.len();
                targets.warm(kind)?;
                of_round[side] = Some(measure(&program, path, flags, sides[side].0, options.seconds)?);
            }
            rounds.push(of_round.into_iter().flatten().collect());
        }
        let median = |of: &dyn Fn(&[Figures]) -> f64| {
            Estimate::of(rounds.iter().map(|round| of(round)).collect()).map_or(f64::NAN, |estimate| estimate.median)
        };
        println!(
            "{name}: {:.0} I/Os a second plain, median latency {:.1} µs; {} rounds of {} s",
            median(&|round| round[0].iops),
            median(&|round| round[0].latency_ns_p50) / 1e3,
            options.pair_count,
            options.seconds
        );
        for (side, (_, what)) in sides.iter().enumerate().skip(1) {
            println!(
                "  {what}: I/Os a second × {:.3}, {}; median latency {:+.2} µs",
                median(&|round| round[side].iops / round[0].iops),
                with_interval(rounds.iter().map(|round| round[side].iops / round[0].iops).collect()),
                median(&|round| round[side].latency_ns_p50 - round[0].latency_ns_p50) / 1e3,
            );
        }
        let lost = rounds.iter().map(|round| round[1].lost).sum::<f64>();
        is_whole &= lost == 0.0;
        println!(
            "  of our trace: {:.0} calls a run, {lost} events lost, the reading thread took {:.1} % of a processor",
            median(&|round| round[1].calls),
            median(&|round| round[1].thread_share) * 100.0
        );
    }
    Ok(is_whole)
}

fn measure(program: &Path, path: &Path, flags: &str, side: &str, seconds: u32) -> Result<Figures> {
    let mut command = Command::new(program);
    command.args(["run", "--no-history", "--no-evidence", "--json", "-"]);
    command.args(flags.split_whitespace().chain(side.split_whitespace()));
    command.args(["--rw=randread", "--bs=4k", "--time_based", "--size=256m", "--invalidate=0"]);
    command.arg(format!("--runtime={seconds}s")).arg(format!("--filename={}", path.display()));
    let limit = Duration::from_secs(u64::from(seconds) * 5 + 60);
    let cost = Program { command: &mut command, cpu: None, limit }.run()?.checked("trueio")?;
    let record = record_of(&cost.stdout)?;
    let phase = record.phases.first().context("a record without a phase")?;
    let op = phase.jobs.first().and_then(|job| job.ops.first()).context("a record without a job")?;
    let total = &op.latency.total;
    let trace = phase.syscalls.clone().unwrap_or_default();
    ensure!(trace.missing.is_none(), "system calls were not recorded: {}", trace.missing.unwrap_or_default());
    Ok(Figures {
        iops: io_count(&record) as f64 / (phase.elapsed_ns as f64 / 1e9),
        latency_ns_p50: total.value_at_rank(total.count().div_ceil(2)).context("no I/O")? as f64,
        calls: trace.jobs.iter().flat_map(|job| &job.calls).map(|call| call.count as f64).sum(),
        lost: trace.lost_event_count as f64,
        thread_share: trace.thread_cpu_ns as f64 / phase.elapsed_ns as f64,
    })
}
