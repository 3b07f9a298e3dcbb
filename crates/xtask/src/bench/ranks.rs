//! `cargo xtask bench ranks`: what several ranks cost on this machine.
//!
//! - The skew of starts: two ranks, a processor each, begin a phase many times; the time from the first start to the last one, as the
//!   record has it.
//! - A measured rank with three idle peers, which wait for it, next to the same job alone: pairs in alternating order. Nothing is sent
//!   while it measures, so the ratio should be 1.
//!
//! Needs two idle processors: another program that runs on one of them delays a rank's start by milliseconds.

use super::Options;
use super::evidence::with_interval;
use super::table::Estimate;
use crate::gate::{io_count, record_of};
use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use trueio_model::RunRecord;

/// Starts in one run.
const STARTS: usize = 100;
/// Ranks of the comparison with a run alone.
const RANKS: usize = 4;

/// Measures and prints.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    ensure!(options.cases.is_empty() && options.markdown.is_none(), "`bench ranks` has no cases and no page");
    let program = match &options.trueio {
        Some(program) => program.clone(),
        None => workspace::build_release()?,
    };
    println!("{}", skews(&program)?);
    let job = ["--ioengine", "null", "--bs", "4k", "--size", "1g", "--time_based", "--ranks", "0", "--no-evidence"];
    let runtime = format!("--runtime={}s", options.seconds);
    let arguments = [&job[..], &[runtime.as_str()]].concat();
    let mut ratios = Vec::new();
    for pair in 0..options.pair_count {
        let mut rates = [0.0; 2];
        // The order alternates, so drift favours neither side.
        for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
            let record = ranks(&program, if side == 0 { RANKS } else { 1 }, &arguments)?;
            let elapsed_ns = record.phases.first().and_then(|phase| phase.jobs.first()).map_or(0, |job| job.elapsed_ns);
            ensure!(elapsed_ns > 0, "a record without a measured time");
            rates[side] = io_count(&record) as f64 / elapsed_ns as f64;
        }
        ratios.push(rates[0] / rates[1]);
    }
    println!(
        "I/Os a second of rank 0 with {} idle peers, next to a run alone ({} pairs of {} s): {}",
        RANKS - 1,
        options.pair_count,
        options.seconds,
        with_interval(ratios)
    );
    Ok(true)
}

/// Returns a sentence about the starts of two ranks.
fn skews(program: &Path) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("starts.toml");
    let mut text = String::from(
        "[defaults]\nioengine = \"null\"\nsize = \"1m\"\nruntime = \"20ms\"\ntime_based = true\nstonewall = true\n",
    );
    for number in 0..STARTS {
        writeln!(text, "[job.start{number}]")?;
    }
    std::fs::write(&file, text)?;
    let record = ranks(program, 2, &[file.to_str().context("a path that is not text")?, "--no-evidence"])?;
    let cluster = record.cluster.context("a record of one process")?;
    let mut skews: Vec<f64> = cluster.phases.iter().map(|phase| phase.start_skew_ns as f64 / 1e3).collect();
    skews.sort_by(f64::total_cmp);
    let Some(estimate) = Estimate::of(skews.clone()) else { bail!("no starts") };
    Ok(format!(
        "skew of the starts of two ranks, {} starts: median {:.1} µs, 95 % below {:.1} µs, at most {:.1} µs",
        estimate.count,
        estimate.median,
        skews[skews.len() * 95 / 100],
        estimate.max
    ))
}

/// Runs the program as ranks that four variables connect; returns rank 0's record.
fn ranks(program: &Path, size: usize, arguments: &[&str]) -> Result<RunRecord> {
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port().to_string();
    let start = |rank: usize| {
        let mut command = Command::new(program);
        command.args(["run", "--no-history", "--quiet", "--json", "-"]).args(arguments).stdin(Stdio::null());
        command.stdout(if rank == 0 { Stdio::piped() } else { Stdio::null() });
        if size > 1 {
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", size.to_string());
            command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port).env("TRUEIO_TOKEN", "bench");
        }
        command.spawn().with_context(|| program.display().to_string())
    };
    let mut others = (1..size).map(start).collect::<Result<Vec<Child>>>()?;
    let output = start(0)?.wait_with_output()?;
    for other in &mut others {
        other.wait()?;
    }
    ensure!(output.status.success(), "a run of {size} ranks: {}", output.status);
    record_of(&output.stdout)
}
