//! `cargo xtask bench engine`: the cost of an I/O of trueio compared with that of the installed fio.
//!
//! The figure is CPU time per I/O: user and system time of the whole process tree as returned by wait4(2), less the time
//! of a run of the same tool with a single I/O, divided by the number of I/Os that it reports. The sides of a case run
//! alternately, A B A B, and each turn gives one ratio, so disturbances of both sides cancel. The median of the ratios
//! is compared with the limit, and printed with their range.
//!
//! Cannot see: CPU time of kernel threads (a loop device's worker) and of interrupts. Rates of two
//! tools are comparable only within a turn.

pub(crate) mod age;
pub(crate) mod agreement;
mod cases;
pub(crate) mod evidence;
pub(crate) mod growth;
pub(crate) mod ranks;
pub(crate) mod starts;
pub(crate) mod syscalls;
mod table;
mod targets;
mod tools;

use crate::process::{self, last_cpu, load_average};
use crate::workspace;
use anyhow::{Context, Result, anyhow, bail, ensure};
use cases::{Case, Run};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use table::{Estimate, Reading, Row, Standing};
use targets::{TargetKind, Targets};
use tools::{Tool, Tools};

/// The options of a benchmark; see the usage.
#[derive(Debug, PartialEq)]
struct Options {
    pair_count: usize,
    seconds: u32,
    cases: Vec<String>,
    markdown: Option<PathBuf>,
    trueio: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { pair_count: 7, seconds: 2, cases: Vec::new(), markdown: None, trueio: None };
        let mut args = args.iter();
        while let Some(&flag) = args.next() {
            let value = args.next().with_context(|| format!("`{flag}` needs a value"))?;
            match flag {
                "--reps" => options.pair_count = value.parse().context("--reps takes a number")?,
                "--seconds" => options.seconds = value.parse().context("--seconds takes a number")?,
                "--cases" => options.cases = value.split(',').map(str::to_owned).collect(),
                "--markdown" => options.markdown = Some(value.into()),
                "--self" => options.trueio = Some(value.into()),
                _ => bail!("`{flag}` is not an option of `cargo xtask bench engine`"),
            }
        }
        ensure!((1..=100).contains(&options.pair_count), "--reps is 1 to 100");
        ensure!((1..=60).contains(&options.seconds), "--seconds is 1 to 60");
        Ok(options)
    }

    fn includes(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|name| name == case)
    }
}

/// Measures and prints; returns `false` if a bar was missed or a case could not be measured.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    let known = cases::all(1, false, |_| String::new());
    if options.cases == ["list"] {
        known.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    if let Some(name) = options.cases.iter().find(|name| !known.iter().any(|case| case.name == **name)) {
        bail!("`{name}` is not a case; `--cases list` prints them");
    }
    let tools = Tools {
        trueio: match &options.trueio {
            Some(program) => program.clone(),
            None => workspace::build_release()?,
        },
        fio: std::env::var_os("FIO").unwrap_or_else(|| "fio".into()).into(),
        uring_limit: std::env::var_os("T_IO_URING").map(PathBuf::from),
    };
    process::install_stop_handler()?;
    let kinds: Vec<TargetKind> =
        known.iter().filter(|case| options.includes(case.name)).map(|case| case.target).collect();
    let targets = Targets::new(&kinds, &workspace::target_dir()?.join("tmp"));
    let path = |kind| targets.path(kind).map(|path| path.display().to_string()).unwrap_or_default();
    let mut cases = cases::all(options.seconds, tools.uring_limit.is_some(), path);
    cases.retain(|case| options.includes(case.name));
    let (rows, head) = measure(&options, &tools, &targets, &cases)?;
    drop(targets);

    let text = format!("{head}\n\n{}", table::render(&rows));
    println!("{text}");
    if let Some(path) = &options.markdown {
        table::write_between(path, "bench", &text)?;
    }
    let missed = rows.iter().filter(|row| matches!(row.standing(), None | Some(Standing::Missed))).count();
    let met = rows.iter().filter(|row| matches!(row.standing(), Some(Standing::Must | Standing::Stretch))).count();
    println!("{met} bars met, {missed} missed or not measured");
    Ok(missed == 0)
}

/// Median CPU time of one I/O: in user mode, in the kernel.
fn start_ns(tools: &Tools, tool: Tool) -> Result<[f64; 2]> {
    let runs: Vec<_> =
        (0..5).map(|_| tools.run(tool, cases::START, None, Duration::from_secs(60))).collect::<Result<_>>()?;
    let median = |of: fn(&process::Cost) -> u64| {
        Estimate::of(runs.iter().map(|run| of(&run.cost) as f64).collect()).map_or(0.0, |estimate| estimate.median)
    };
    Ok([median(|cost| cost.user_ns), median(|cost| cost.system_ns)])
}

/// Runs all turns of all cases; returns the rows, and a sentence on the circumstances.
fn measure(options: &Options, tools: &Tools, targets: &Targets, cases: &[Case]) -> Result<(Vec<Row>, String)> {
    let starts = [Tool::Trueio, Tool::Fio].map(|tool| start_ns(tools, tool));
    let [Ok(trueio_start), Ok(fio_start)] = starts else {
        return Err(starts.into_iter().find_map(Result::err).context("a single I/O")?);
    };
    let load_before = load_average();
    let limit = Duration::from_secs(u64::from(options.seconds) * 5 + 60);
    let mut readings: Vec<Vec<Result<Vec<Reading>, String>>> =
        cases.iter().map(|case| case.measures.iter().map(|_| Ok(Vec::new())).collect()).collect();
    let mut others = Vec::new();
    let begin = Instant::now();
    for pair in 0..options.pair_count {
        for (case, readings) in cases.iter().zip(&mut readings) {
            if readings.iter().all(Result::is_err) {
                continue;
            }
            let turn = || -> Result<Vec<Run>> {
                targets.path(case.target).map_err(|reason| anyhow!("{reason}"))?;
                let turn = case.sides.iter().map(|side| {
                    targets.warm(case.target)?;
                    let cpu = if case.is_pinned { last_cpu() } else { None };
                    let start_ns = match side.tool {
                        Tool::Trueio => trueio_start,
                        Tool::Fio => fio_start,
                        Tool::UringLimit | Tool::TrueioParse | Tool::FioParse => [0.0; 2],
                    };
                    Ok(Run { sample: tools.run(side.tool, &side.flags, cpu, limit)?, start_ns })
                });
                turn.collect()
            };
            match turn() {
                Ok(runs) => {
                    for (measure, readings) in case.measures.iter().zip(readings) {
                        if let (Ok(readings), Some(reading)) = (readings, (measure.read)(&runs)) {
                            readings.push(reading);
                        }
                    }
                    // During a pinned case, the other processor does no work for us.
                    if case.is_pinned && case.target != TargetKind::Zram {
                        let shares = runs
                            .iter()
                            .map(|run| run.sample.cost.others_cpu_ns as f64 / run.sample.cost.wall_ns.max(1) as f64);
                        others.extend(shares);
                    }
                }
                Err(error) if process::is_stopped() => return Err(error),
                Err(error) => {
                    eprintln!("{}: {error:#}", case.name);
                    // A case that failed once is not measured: the remaining turns would be a selection.
                    readings.iter_mut().for_each(|reading| *reading = Err(format!("{error:#}")));
                }
            }
        }
        eprintln!("pair {} of {} after {} s", pair + 1, options.pair_count, begin.elapsed().as_secs());
    }
    let rows = cases.iter().zip(readings).flat_map(|(case, readings)| {
        case.measures.iter().zip(readings).map(|(measure, readings)| Row {
            goal: measure.goal,
            what: format!("{}: {}", case.name, measure.what),
            unit: measure.unit,
            bar: measure.bar,
            published: measure.published,
            readings,
        })
    });
    let others = Estimate::of(others).map_or("unknown".into(), |others| format!("{:.2}", others.median));
    let head = format!(
        "{} pairs of {} s, {}. Load average {load_before} before, {} after; everything else on the machine \
         used {others} processors meanwhile (median over the pinned cases).",
        options.pair_count,
        options.seconds,
        circumstances(tools),
        load_average(),
    );
    Ok((rows.collect(), head))
}

/// Date, commit, program, machine and the other tool of a comparison. The commit is that of the working tree: a program that
/// was given by `--self` may be another one, and its hash shows that.
fn circumstances(tools: &Tools) -> String {
    let output_of = |program: &std::path::Path, args: &[&str]| {
        let output = workspace::command(&program.to_string_lossy()).args(args).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = processors
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split(':').nth(1).map(str::trim))
        .collect();
    let clock = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let changes = output_of("git".as_ref(), &["status", "--porcelain", "--untracked-files=no"]);
    let hash = output_of("sha256sum".as_ref(), &[&tools.trueio.to_string_lossy()]);
    format!(
        "{}, commit {}{}, program {}, {} × {}, Linux {}, clock {}, against {}",
        output_of("date".as_ref(), &["-u", "+%F"]),
        output_of("git".as_ref(), &["rev-parse", "--short=12", "HEAD"]),
        if changes.is_empty() { "" } else { " with changes" },
        hash.get(..16).unwrap_or("unknown"),
        models.len(),
        models.first().unwrap_or(&"unknown processor"),
        output_of("uname".as_ref(), &["-r"]),
        clock.unwrap_or_default().trim(),
        output_of(&tools.fio, &["--version"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_and_limits() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!((options.pair_count, options.seconds), (7, 2));
        let options = Options::parse(&["--reps", "9", "--cases", "start,null_qd1"]).unwrap();
        assert_eq!((options.pair_count, options.includes("start"), options.includes("null_qd32")), (9, true, false));
        for wrong in [&["--reps"][..], &["--reps", "0"], &["--seconds", "x"], &["--speed", "9"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_case_that_does_not_exist_is_refused_before_anything_is_built() {
        assert!(run(&["--cases", "null_qd1,nothing"]).unwrap_err().to_string().contains("`nothing`"));
    }
}
