//! `trueio powercut`: does acknowledged data survive a loss of power?
//!
//! By hand: writes each method's region, waits for the disk to vanish, waits until it is back, and reads back what was
//! acknowledged. The acknowledgements are in the memory of this machine, which keeps its power.

mod disk;
mod folder;
mod media;
mod presence;
mod record;
mod remote;
mod replay;
mod subject;
mod witness;

use crate::failure::Failure;
use crate::flags;
use crate::output::{self, Outputs};
use crate::progress::Line;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use subject::Subject;
use trueio_model::PowercutWay;
use trueio_model::units::{self, format_count};
use trueio_powercut::BLOCK_BYTES;
use trueio_powercut::cut::{
    Checked, Cut, Ended, Load, Method, Refused, Region, RegionLog, Stamp, Standing, Tally, Verdict, check,
    disk_standing,
};
use trueio_report::{clean, message};
use trueio_run::machine::entropy;
use trueio_run::watch_signals;

/// What `trueio powercut` is for.
pub(crate) const ABOUT: &str = "Find out whether a disk keeps what it acknowledged when its power goes";

/// How often the load is looked at.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after an error within which the disk must turn out to be gone.
const VANISHING: Duration = Duration::from_secs(5);

/// Adds the arguments of `trueio powercut`.
pub(crate) fn arguments(command: Command) -> Command {
    let command = command
        .long_about(
            "Find out whether a disk keeps what it acknowledged when its power goes: writes, asks you to pull the cable, waits \
             until the disk is back, and reads back every write that was acknowledged.",
        )
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true)
        .subcommand(witness::arguments(Command::new("witness").about(witness::ABOUT)))
        .subcommand(
            remote::with_witness(load_arguments(Command::new("arm").about(remote::ABOUT_ARM)))
                .arg(flags::switch("discard", "Forget a round that was not verified"))
                .arg(flags::json("Write the round as JSON once the witness knows it; without FILE to standard output")),
        )
        .subcommand(disk::arguments(Command::new("disk").about(disk::ABOUT)))
        .subcommand(replay::arguments(Command::new("replay").about(replay::ABOUT)))
        .subcommand(record::outputs(remote::with_witness(
            Command::new("verify").about(remote::ABOUT_VERIFY).arg(target()),
        )))
        .arg(
            Arg::new("cuts")
                .long("cuts")
                .value_name("N")
                .help("Cuts in a row")
                .default_value("1")
                .value_parser(value_parser!(u64).range(1..)),
        );
    record::outputs(load_arguments(command))
}

fn target() -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .required(true)
        .help("The disk or a file on it, which is overwritten, or a directory on it, in which a folder is created")
        .value_hint(ValueHint::AnyPath)
        .value_parser(value_parser!(PathBuf))
}

/// Adds the target, and how it is written.
fn load_arguments(command: Command) -> Command {
    let names: Vec<&str> = Method::ALL.into_iter().map(Method::name).collect();
    command
        .arg(target())
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .value_name("TARGET")
                .help("The content of the disk or file is lost; must name TARGET again")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("Signatures on the disk that may be written over, with the names of `wipefs`: dos,vfat"),
        )
        .arg(
            Arg::new("load")
                .long("load")
                .value_name("TIME")
                .help("Time of writing before the prompt")
                .default_value("20s")
                .value_parser(|text: &str| units::parse_duration_ns(text)),
        )
        .arg(
            Arg::new("methods")
                .long("methods")
                .value_name("NAMES")
                .help(format!("Ways of writing, separated by commas: {}; `direct` is always one", names.join(", ")))
                .value_delimiter(',')
                .value_parser(clap::builder::PossibleValuesParser::new(names))
                .hide_possible_values(true),
        )
        .arg(
            Arg::new("size")
                .long("size")
                .value_name("SIZE")
                .help("Most that each way of writing covers")
                .default_value("64m")
                .value_parser(|text: &str| units::parse_bytes(text)),
        )
}

/// What the command line asks for.
struct Request {
    target: String,
    methods: Vec<Method>,
    cuts: u64,
    load: Duration,
}

/// `trueio powercut`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("witness", arguments)) => witness::command(arguments),
        Some(("arm", arguments)) => remote::arm(arguments),
        Some(("verify", arguments)) => remote::verify(arguments),
        Some(("disk", arguments)) => disk::command(arguments),
        Some(("replay", arguments)) => replay::command(arguments),
        _ => by_hand(matches),
    }
}

/// Reads the options of a load.
fn request_of(matches: &ArgMatches) -> Request {
    let target = matches.get_one::<PathBuf>("target").expect("clap requires it").to_string_lossy().into_owned();
    Request {
        target,
        methods: methods_of(matches),
        cuts: matches.try_get_one::<u64>("cuts").ok().flatten().copied().unwrap_or(1),
        load: Duration::from_nanos(*matches.get_one::<u64>("load").expect("it has a default")),
    }
}

/// `trueio powercut TARGET`.
fn by_hand(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let request = request_of(matches);
    output::check(matches, std::iter::once(Path::new(&request.target)))?;
    let mut subject = open(&request, entropy(), matches)?;
    let outputs = Outputs::reserve(matches, std::iter::once(Path::new(&request.target)))?;
    let (started, facts) = (record::started(), subject.facts.clone());
    let stop = watch_signals();
    let mut tally = Tally::new(subject.has_cache);
    let ended = cut_in_a_row(&mut subject, &request, &mut tally, stop);
    let is_lost = tally.standings().iter().any(|standing| standing.verdict == Verdict::Lost);
    subject.release();
    if !is_lost && let Err(error) = subject.clean_up() {
        message!("warning: the folder of this run cannot be removed: {error}");
    }
    if tally.cuts() == 0 {
        ended?;
        output::print_all("No cut was observed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let standings = tally.standings();
    let record = record::record_of(facts, PowercutWay::Local, started, tally.cuts(), &standings);
    record::deliver(&record, &reproduction(&standings, &request), outputs, matches)?;
    let is_kept = record.verdict == Verdict::Kept;
    ended?;
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the methods that were named, or all; `direct` shows whether a cut reaches a cache.
fn methods_of(matches: &ArgMatches) -> Vec<Method> {
    let Some(names) = matches.get_many::<String>("methods") else { return Method::ALL.to_vec() };
    let names: Vec<&String> = names.collect();
    let is_named = |method: &Method| *method == Method::Direct || names.iter().any(|name| *name == method.name());
    Method::ALL.into_iter().filter(is_named).collect()
}

/// Opens the target, with every refusal of a job that writes it.
fn open(request: &Request, run: u64, matches: &ArgMatches) -> Result<Subject, Failure> {
    let target = request.target.as_str();
    let size = *matches.get_one::<u64>("size").expect("it has a default");
    let positions = (size / BLOCK_BYTES as u64).max(64);
    let positions = 1 << positions.ilog2();
    let overwrite = matches.get_one::<PathBuf>("overwrite");
    let found = std::fs::metadata(target).map_err(|error| {
        Failure::refused(format!(
            "`{target}` cannot be used: {error}\n\nhint: name a disk, a file on it, or a directory on it"
        ))
    })?;
    if found.is_dir() {
        if overwrite.is_some() {
            return Err(Failure::refused(format!(
                "`{target}` is a directory: a folder is created in it, and nothing is overwritten\n\nhint: leave `--overwrite` out"
            )));
        }
        return Subject::folder(target, run, &request.methods, positions);
    }
    match overwrite {
        None => Err(Failure::refused(format!(
            "`{target}` is written, and its content would be lost\n\nhint: `--overwrite {target}`; or name a directory on the disk: \
             a folder is created in it"
        ))),
        Some(named) if named.to_string_lossy() != target => Err(Failure::refused(format!(
            "--overwrite names `{}`, but the target is `{target}`: both must be spelled the same",
            named.display()
        ))),
        Some(_) => {
            let names = matches.get_one::<String>("overwrite-signature").map(String::as_str);
            Subject::disk(target, names, &request.methods, positions)
        }
    }
}

/// Cuts until all cuts are done, a signal arrives, or something fails.
fn cut_in_a_row(
    subject: &mut Subject,
    request: &Request,
    tally: &mut Tally,
    stop: &'static AtomicBool,
) -> Result<(), Failure> {
    for number in 1..=request.cuts {
        let Some(cut) = one_cut(subject, request, number, stop)? else { break };
        tally.add(&cut);
        let standing = disk_standing(&tally.standings());
        message!("cut {number} of {}: {}: {}", request.cuts, standing.verdict.word(), clean(&standing.sentence));
        if stop.load(Relaxed) {
            break;
        }
    }
    Ok(())
}

/// Writes until the disk is gone, waits until it is back, and reads back; `None`: a signal ended it.
fn one_cut(
    subject: &mut Subject,
    request: &Request,
    number: u64,
    stop: &'static AtomicBool,
) -> Result<Option<Cut>, Failure> {
    let stamp = Stamp { run: entropy() };
    let (parts, unsupported) = subject.parts()?;
    for method in unsupported.iter().filter(|_| number == 1) {
        message!("note: `{}` is left out: the filesystem has no direct I/O", method.name());
    }
    let line = Line::new();
    let load = Load::start(stamp, parts, |_| u64::MAX);
    wait_until_ended(subject, &load, request, number, &line, stop);
    let elapsed = load.elapsed();
    let ended = load.finish();
    line.clear();
    if ended.errors.is_empty() && !subject.is_gone() {
        return Ok(None);
    }
    if !has_vanished(subject, &ended) {
        return Err(failed_in_place(&request.target, &ended));
    }
    let acknowledged: u64 = ended.logs.iter().map(|(_, log)| log.acknowledged()).sum();
    subject.release();
    message!(
        "the disk is gone after {:.0} s ({}); {} writes were acknowledged. Now {}",
        elapsed.as_secs_f64(),
        ended.phase.name(),
        format_count(acknowledged),
        subject.way_back()
    );
    if !subject.wait_until_back(stop)? {
        return Ok(None);
    }
    read_back(subject, stamp, &ended, stop)
}

/// Waits until a call fails, the disk is gone, or a signal arrives; asks for the cut after the time of the load.
fn wait_until_ended(subject: &Subject, load: &Load, request: &Request, number: u64, line: &Line, stop: &AtomicBool) {
    let mut is_prompted = false;
    while !stop.load(Relaxed) && !load.has_failed() && !subject.is_gone() {
        let (elapsed, acknowledged) = (load.elapsed(), load.acknowledged().iter().sum());
        if !is_prompted && elapsed >= request.load {
            is_prompted = true;
            let seconds = request.load.as_secs();
            message!("cut {number} of {}: pull the cable now (at least {seconds} s of load have passed)", request.cuts);
        }
        line.show(&format!("writing for {} s: {} writes acknowledged", elapsed.as_secs(), format_count(acknowledged)));
        std::thread::sleep(PAUSE);
    }
}

/// Returns whether the load ended because the disk is gone: by the error, or because it is missing soon after.
fn has_vanished(subject: &Subject, ended: &Ended) -> bool {
    let without_device = [libc::ENODEV, libc::ENXIO, libc::ENOMEDIUM];
    let names_it = |error: &Refused| error.source.raw_os_error().is_some_and(|code| without_device.contains(&code));
    let began = Instant::now();
    while !ended.errors.iter().any(names_it) && !subject.is_gone() {
        if began.elapsed() >= VANISHING {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Returns the failure of a load whose disk is still there.
fn failed_in_place(target: &str, ended: &Ended) -> Failure {
    let error = ended.errors.first().expect("the load has failed");
    let chain =
        trueio_model::error_chain(&format!("`{target}` failed, and is still there: the test ends"), Some(error));
    Failure::with_code(
        1,
        format!("{chain}\n\nhint: a sync that failed is not repeated: the next one would prove nothing"),
    )
}

/// Reads back every region.
fn read_back(
    subject: &mut Subject,
    stamp: Stamp,
    ended: &Ended,
    stop: &'static AtomicBool,
) -> Result<Option<Cut>, Failure> {
    read_regions(subject, stamp, &ended.logs, |method| ended.safe_ms(method), stop)
}

/// Reads back regions; `None`: a signal ended it. `safe_ms` is that of [`check`].
fn read_regions(
    subject: &mut Subject,
    stamp: Stamp,
    logs: &[(Region, RegionLog)],
    safe_ms: impl Fn(Method) -> u64,
    stop: &'static AtomicBool,
) -> Result<Option<Cut>, Failure> {
    let line = Line::new();
    let mut cut = Cut::default();
    let mut read = 0;
    for (region, log) in logs {
        let mut go_on = |count: u64| {
            read += count;
            line.show(&format!("reading back: {}", units::format_bytes(read * BLOCK_BYTES as u64)));
            !stop.load(Relaxed)
        };
        let unread = |error: &(dyn std::error::Error + 'static)| {
            Failure::failed(format!("what `{}` wrote could not be read back", region.method.name()), error)
        };
        let checked: Result<Checked, Failure> = match subject.readback(*region) {
            Err(error) => Err(unread(&error)),
            Ok(mut readback) => check(stamp, region, log, safe_ms(region.method), readback.as_mut(), &mut go_on)
                .map_err(|error| unread(&error)),
        };
        match checked {
            Ok(checked) => drop(cut.checked.insert(region.method, checked)),
            Err(_) if stop.load(Relaxed) => return Ok(None),
            Err(failure) => return Err(failure),
        }
    }
    line.clear();
    Ok(Some(cut))
}

/// Returns the line that reproduces a loss; empty without one.
fn reproduction(standings: &[Standing], request: &Request) -> String {
    let Some(lost) = standings.iter().find(|standing| standing.verdict == Verdict::Lost) else { return String::new() };
    let target = &request.target;
    let overwrite = if std::fs::metadata(target).is_ok_and(|found| found.is_dir()) {
        String::new()
    } else {
        format!(" --overwrite {target}")
    };
    let name = lost.method.map_or("", Method::name);
    format!("To reproduce: trueio powercut {target}{overwrite} --methods {name}\n")
}
