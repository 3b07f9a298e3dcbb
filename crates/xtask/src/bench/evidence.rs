//! `cargo xtask bench evidence`: the cost of collecting evidence during a run.
//!
//! The same job runs with evidence and without, in pairs of alternating order. A pair gives one ratio of each figure, so
//! disturbances of both runs cancel. The median of the ratios is printed with its 95 % interval (order statistics) and
//! their range. The targets are a loop device over memory, which is fast enough to make a small cost per I/O visible, and a file on the disk
//! of the repository.
//!
//! Three figures: I/Os a second; CPU time of the process an I/O, in the measured part; CPU time of the
//! whole machine an I/O, over the whole run, which has the loop device's worker and the tracepoints'
//! interrupts in it, and other programs as well: the machine should be idle.
//!
//! Limits: costs below the spread of the ratios, which the interval shows, are not detected. So the share of the time in
//! which requests were traced is printed, too, from the records.

use super::Options;
use super::table::Estimate;
use super::targets::{TargetKind, Targets};
use crate::gate::{io_count, record_of};
use crate::process::Program;
use crate::workspace;
use anyhow::{Context, Result, anyhow, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use trueio_model::{EvidenceLevel, RunRecord};

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    iops: f64,
    own_cpu_ns: f64,
    machine_cpu_ns: f64,
}

/// A figure by its name.
type Named = (&'static str, fn(&Figures) -> f64);

const WHAT: [Named; 3] = [
    ("I/Os a second", |figures| figures.iops),
    ("CPU of the process an I/O", |figures| figures.own_cpu_ns),
    ("CPU of the machine an I/O", |figures| figures.machine_cpu_ns),
];

const CASES: [(&str, &str); 2] =
    [("depth 32", "--ioengine=io_uring --iodepth=32"), ("depth 1", "--ioengine=psync --iodepth=1")];

/// Measures and prints; returns `false` if no requests were traced, so that the cost was not measured.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    ensure!(options.cases.is_empty() && options.markdown.is_none(), "`bench evidence` has no cases and no page");
    ensure!(workspace::is_root(), "requests are traced for root only");
    let program = match &options.trueio {
        Some(program) => program.clone(),
        None => workspace::build_release()?,
    };
    let folder = workspace::target_dir()?.join("tmp");
    let targets = Targets::new(&[TargetKind::Loop], &folder);
    let in_memory = targets.path(TargetKind::Loop).map_err(|reason| anyhow!("{reason}"))?;
    // The first run writes it.
    let on_disk = tempfile::tempdir_in(&folder)?;
    let file = on_disk.path().join("file.dat");
    let mut is_traced = true;
    let places = [("loop device", in_memory), ("file", &file)];
    for ((place, path), (name, flags)) in places.iter().flat_map(|place| CASES.iter().map(move |case| (place, case))) {
        let mut ratios: [Vec<f64>; 3] = Default::default();
        let (mut rates, mut traced, mut windows, mut threads) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in 0..options.pair_count {
            let mut figures = [None; 2];
            // The order alternates, so drift favours neither side.
            for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (of_side, record) = measure(&program, path, flags, options.seconds, side == 0)?;
                figures[side] = Some(of_side);
                if side == 0 {
                    let phase = record.phases.first().context("a record without a phase")?;
                    is_traced &= phase.level >= EvidenceLevel::E3;
                    let trace = phase.trace.as_ref().context("a record without a trace")?;
                    traced.push(trace.window_ns as f64 / phase.elapsed_ns as f64);
                    threads.push(trace.thread_cpu_ns as f64 / phase.elapsed_ns as f64);
                    windows.push(trace.window_count as f64);
                    rates.push(of_side.iops);
                }
            }
            if let [Some(with), Some(without)] = figures {
                for (ratios, (_, of)) in ratios.iter_mut().zip(WHAT) {
                    ratios.push(of(&with) / of(&without));
                }
            }
        }
        let median = |values: Vec<f64>| Estimate::of(values).map_or(f64::NAN, |estimate| estimate.median);
        println!(
            "{place}, {name}: {:.0} I/Os a second, {} pairs of {} s; {:.1} windows, {:.2} % of the time traced, the tracing \
             thread took {:.3} % of a processor",
            median(rates),
            options.pair_count,
            options.seconds,
            median(windows),
            median(traced) * 100.0,
            median(threads) * 100.0
        );
        for (ratios, (what, _)) in ratios.into_iter().zip(WHAT) {
            println!("  {what}: with evidence {}", with_interval(ratios));
        }
    }
    if !is_traced {
        println!("the level was below E3: the cost of tracing is not in these figures");
    }
    Ok(is_traced)
}

/// `+0.31 % (95 %: -0.50 to +0.90; all: -2.1 to +1.7)`.
pub(super) fn with_interval(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    let Some(estimate) = Estimate::of(ratios.clone()) else { return "not known".to_owned() };
    let percent = |ratio: f64| format!("{:+.2} %", (ratio - 1.0) * 100.0);
    let interval = match interval_of_median(ratios.len()) {
        Some(rank) => format!("{} to {}", percent(ratios[rank]), percent(ratios[ratios.len() - 1 - rank])),
        None => "too few pairs".to_owned(),
    };
    let range = format!("{} to {}", percent(estimate.min), percent(estimate.max));
    format!("{} (95 % interval of the median {interval}; range {range})", percent(estimate.median))
}

/// The rank, from 0, of the value at which the 95 % interval of the median of `count` values begins; it
/// ends as far from the other end.
fn interval_of_median(count: usize) -> Option<usize> {
    // The chance that at most `rank` of `count` values lie below the median, summed up by halves.
    let mut chance = 0.5f64.powi(i32::try_from(count).ok()?);
    let mut below = 0.0;
    let mut found = None;
    for rank in 0..count / 2 {
        below += chance;
        if below > 0.025 {
            break;
        }
        found = Some(rank);
        chance *= (count - rank) as f64 / (rank + 1) as f64;
    }
    found
}

fn measure(program: &Path, path: &Path, flags: &str, seconds: u32, has_evidence: bool) -> Result<(Figures, RunRecord)> {
    let mut command = Command::new(program);
    command.args(["run", "--no-history", "--json", "-"]);
    if !has_evidence {
        command.arg("--no-evidence");
    }
    command.args(flags.split_whitespace());
    command.args(["--rw=randread", "--bs=4k", "--direct=1", "--time_based", "--size=256m", "--invalidate=0"]);
    command.arg(format!("--runtime={seconds}s")).arg(format!("--filename={}", path.display()));
    let limit = Duration::from_secs(u64::from(seconds) * 5 + 60);
    let cost = Program { command: &mut command, cpu: None, limit }.run()?.checked("trueio")?;
    let record = record_of(&cost.stdout)?;
    let count = io_count(&record) as f64;
    let phase = record.phases.first().context("a record without a phase")?;
    let figures = Figures {
        iops: count / (phase.elapsed_ns as f64 / 1e9),
        own_cpu_ns: phase.cpu.total_ns() as f64 / count,
        machine_cpu_ns: (cost.user_ns + cost.system_ns + cost.others_cpu_ns) as f64 / count,
    };
    Ok((figures, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks of the tables of the sign test.
    #[test]
    fn the_interval_of_a_median_begins_at_the_rank_of_the_sign_test() {
        let ranks: Vec<_> = [5, 6, 9, 15, 25].into_iter().map(interval_of_median).collect();
        assert_eq!(ranks, [None, Some(0), Some(1), Some(3), Some(7)]);
    }

    #[test]
    fn ratios_are_printed_in_percent_with_their_spread() {
        let ratios = vec![1.01, 0.99, 1.02, 1.0, 1.03, 1.04];
        let expected = "+1.50 % (95 % interval of the median -1.00 % to +4.00 %; range -1.00 % to +4.00 %)";
        assert_eq!(with_interval(ratios), expected);
    }
}
