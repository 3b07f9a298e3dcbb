//! `trueio baseline`: eight phases that describe the performance of a disk.
//!
//! | phase | what it represents |
//! |---|---|
//! | sequential read, write, 1 MiB, depth 8 | backups, scans and copies |
//! | random read 4 KiB, depth 1 | the latency of one lookup |
//! | random read 4 KiB, depth 32 | the parallelism of the disk |
//! | random write 4 KiB, depth 1 | the latency of one write |
//! | random write 4 KiB, depth 32 | the parallelism of the disk for writes |
//! | random 70/30 mix, depth 32 | a database under constant load |
//! | append 4 KiB + fdatasync | the commit of a database's log |
//!
//! In a directory the files are this program's own and removed afterwards. Existing files and devices are only
//! read, unless `--overwrite` names them.

use crate::failure::Failure;
use crate::flags::{run_outputs, switch};
use crate::output::{self, Outputs};
use crate::progress::Events;
use crate::ranks;
use crate::request::{Claimed, accepting};
use crate::run::{execute, refuse_of_one_rank};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trueio_job::{FactsSource, Machine, Target};
use trueio_model::{DiskFacts, EngineKind, JobSpec, Origin, TargetFacts, TargetKind, UsbTargetName, units};
use trueio_run::machine::{MachineFacts, entropy, machine};
use trueio_run::planning::{may_run, planned_and_claimed};

const MIB: u64 = 1 << 20;
/// Minimum speed of a USB 3 link.
const USB3_MBIT_PER_S: f64 = 5000.0;
/// Minimum size of the test file: smaller ones give meaningless figures.
const SIZE_MIN_BYTES: u64 = 16 * MIB;

/// The name of the durable append.
const APPEND: &str = "append-4k-fdatasync";

/// What `trueio baseline` is for.
pub(crate) const ABOUT: &str = "A complete picture of a disk in about a minute";

/// Adds the arguments of `trueio baseline`.
pub(crate) fn arguments(command: Command) -> Command {
    run_outputs(command)
        .long_about(
            "A complete picture of a disk in about a minute: sequential, random and durable I/O, each figure with \
             its evidence.\n\nIn a directory it creates its own files, which are always removed. \
             An existing file or a block device is only read, unless --overwrite names it.",
        )
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .help("A directory, a file, a block device, or usb:PORT: a USB disk that is driven in user space")
                .default_value(".")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(switch("quick", "About 10 seconds").conflicts_with("thorough"))
        .arg(switch(
            "trace-syscalls",
            "Record every system call of the workers, with its cost (as root); it slows them",
        ))
        .arg(
            Arg::new("loads")
                .long("loads")
                .value_name("NAME,…")
                .help("Measure only these loads: seq-read-1m,append-4k-fdatasync")
                .value_delimiter(','),
        )
        .arg(
            Arg::new("runtime")
                .long("runtime")
                .value_name("TIME")
                .help("Measured time of each load [default: 7s, 1s with --quick, 30s with --thorough]")
                .value_parser(|text: &str| units::parse_duration_ns(text)),
        )
        .arg(
            Arg::new("size")
                .long("size")
                .value_name("SIZE")
                .help("Size of the test file, or of the part of an existing target [default: by the disk and its free space]")
                .value_parser(|text: &str| units::parse_bytes(text)),
        )
        .arg(switch("thorough", "Repeat each phase until it is steady (SNIA rule): 10 to 30 minutes"))
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .value_name("TARGET")
                .help("Also write to this existing file or device, which destroys its content; must name TARGET again")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("Signatures on the device that may be destroyed, with the names of `wipefs`: gpt,ext4")
                .requires("overwrite"),
        )
}

/// Durations of the parts.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Measured time of each phase.
    phase: Duration,
    /// Length of the idle baseline before each phase.
    idle: Duration,
    /// Maximum size of the test file, on a quick device and on a slow one.
    size_bytes: (u64, u64),
    /// The size that the user set.
    asked_bytes: Option<u64>,
}

impl Budget {
    fn of(matches: &ArgMatches) -> Self {
        let (phase, idle, size_bytes) = match (matches.get_flag("quick"), matches.get_flag("thorough")) {
            (true, _) => (1_000, 100, (512 * MIB, 128 * MIB)),
            (_, true) => (30_000, 1_000, (4096 * MIB, 4096 * MIB)),
            _ => (7_000, 300, (2048 * MIB, 1024 * MIB)),
        };
        let ms = Duration::from_millis;
        let phase = matches.get_one::<u64>("runtime").map_or(ms(phase), |ns| Duration::from_nanos(*ns));
        Self { phase, idle: ms(idle), size_bytes, asked_bytes: matches.get_one::<u64>("size").copied() }
    }

    /// Returns the size of the test file, and the reason for it. It depends on the target and not on how fast the disk
    /// happens to be, so that two runs on one device do the same.
    ///
    /// # Errors
    /// The size that the user set does not fit.
    fn size(self, facts: &TargetFacts, free: u64) -> Result<(u64, String), Failure> {
        if let Some(bytes) = self.asked_bytes {
            return self.asked(bytes, free / 2).map(|bytes| (bytes, "as set by --size".to_owned()));
        }
        let (quick, slow) = self.size_bytes;
        let is_slow = |disk: &DiskFacts| {
            let link = disk.usb.as_ref().and_then(|usb| usb.link_mbit_per_s.value);
            disk.is_rotational.value == Some(true) || link.is_some_and(|mbit| mbit < USB3_MBIT_PER_S)
        };
        let (most, why) = match facts.disks.iter().any(is_slow) {
            true => (slow, "for a disk that is listed as rotating, or on a USB 2 link"),
            false => (quick, "for a disk that does not rotate"),
        };
        let size = halved(most, free / 10);
        let why = match size < most {
            true => format!("at most a tenth of the {} of free space", units::format_bytes(free)),
            false => why.to_owned(),
        };
        Ok((size, why))
    }

    /// Returns the size that the user set, in whole MiB.
    ///
    /// # Errors
    /// It is less than can be measured, or more than `most`.
    fn asked(self, bytes: u64, most: u64) -> Result<u64, Failure> {
        if (SIZE_MIN_BYTES..=most).contains(&bytes) {
            return Ok(bytes / MIB * MIB);
        }
        Err(Failure::refused(format!(
            "a test file of {} (`--size`) is not possible here\n\nhint: at least {}, at most {}",
            units::format_bytes(bytes),
            units::format_bytes(SIZE_MIN_BYTES),
            units::format_bytes(most)
        )))
    }
}

/// Halves a size until it is at most `most`: free space changes, and the size should not change with each file.
fn halved(size: u64, most: u64) -> u64 {
    std::iter::successors(Some(size), |size| Some(size / 2)).find(|size| *size <= most).unwrap_or(0)
}

/// `trueio baseline`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let events = Events::of(matches)?;
    let Some(member) = ranks::join()? else {
        let (spec, planned, _) = planned_phases(matches, None)?;
        let outputs = Outputs::reserve(matches, std::iter::empty())?;
        return execute("baseline", spec, planned, events, outputs, matches, None);
    };
    // The sizes of files follow from each rank's disk, so the ranks have only the command in common.
    let plan = |member: &trueio_cluster::Member, _: Vec<JobSpec>, (): ()| {
        let (spec, planned, has_evidence) = planned_phases(matches, Some(member.rank()))?;
        let planned = accepting(planned, "baseline", Some(member.rank()), matches)?;
        let outputs = ranks::outputs(member, matches, std::iter::empty())?;
        let follow = ranks::Follow::of(member, matches)?;
        Ok(ranks::Planned { spec, planned, outputs, has_evidence, follow })
    };
    let nothing = refuse_of_one_rank(matches).map(|()| (Vec::new(), ()));
    ranks::run(member, "baseline", nothing, plan, matches, None)
}

/// Returns the phases as jobs, their plan, and whether evidence is collected. `rank` is that of a run of several.
fn planned_phases(matches: &ArgMatches, rank: Option<u32>) -> Result<(Vec<JobSpec>, Claimed, bool), Failure> {
    let command_files = ranks::command_files(rank, matches, &[]);
    if rank.is_none_or(|rank| rank == 0) {
        output::check(matches, std::iter::empty())?;
    }
    let target = matches.get_one::<PathBuf>("target").expect("it has a default");
    let overwrite = matches.get_one::<PathBuf>("overwrite");
    // Compared as text, because paths that differ in a slash would compare equal.
    if overwrite.is_some_and(|named| named.as_os_str() != target.as_os_str()) {
        return Err(Failure::refused(format!(
            "--overwrite names `{}`, but the target is `{}`: both must be spelled the same",
            overwrite.map_or_else(String::new, |p| p.display().to_string()),
            target.display()
        )));
    }
    let budget = Budget::of(matches);
    // Kept until the plan is complete: a USB disk that is driven in user space stays claimed as long as its facts.
    let looked = MachineFacts::without_probing();
    let facts = match looked.look(&target.to_string_lossy()) {
        Target::Present(facts) => facts,
        Target::Missing => {
            return Err(Failure::refused(format!(
                "`{}` does not exist\n\nhint: name a directory, an existing file or a block device",
                target.display()
            )));
        }
        Target::Unreadable(reason) => {
            return Err(Failure::refused(format!("`{}` cannot be examined\n  because: {reason}", target.display())));
        }
    };
    let has_evidence = !matches.get_flag("no-evidence");
    let idle_ns = if has_evidence { budget.idle.as_nanos() as u64 } else { 0 };
    let machine = Machine { command_files, rank, ..machine(idle_ns) };
    let (mut specs, notes) = match facts.kind {
        TargetKind::Directory => {
            if overwrite.is_some() {
                return Err(Failure::refused(format!(
                    "`{}` is a directory: baseline creates its own files there and overwrites nothing",
                    target.display()
                )));
            }
            in_directory(target, &facts, budget)?
        }
        TargetKind::File | TargetKind::BlockDevice => {
            let signatures = matches.get_one::<String>("overwrite-signature").map(String::as_str);
            on_existing(target, &facts, overwrite.is_some(), signatures, budget)?
        }
        TargetKind::CharacterDevice => {
            return Err(Failure::refused(format!("`{}` is a character device: it is no disk", target.display())));
        }
    };
    select(&mut specs, matches)?;
    for spec in specs.iter_mut().skip(1) {
        spec.set("stonewall", "true", preset());
    }
    if matches.get_flag("thorough") {
        // An append makes its file longer; a second round would overwrite it, which is a different load.
        for spec in specs.iter_mut().filter(|spec| spec.name != APPEND) {
            spec.set("steady_state", "true", preset());
        }
    }
    if matches.get_flag("trace-syscalls") {
        for spec in &mut specs {
            spec.set("trace_syscalls", "true", Origin::Flag { flag: "--trace-syscalls".to_owned() });
        }
    }
    let (mut plan, targets) = planned_and_claimed(&specs, &machine, may_run)?;
    drop(looked);
    plan.notes.splice(0..0, notes);
    Ok((specs, (plan, targets), has_evidence))
}

/// Keeps the loads that `--loads` names.
///
/// # Errors
/// It names one that is not measured on this target.
fn select(specs: &mut Vec<JobSpec>, matches: &ArgMatches) -> Result<(), Failure> {
    let wanted: Vec<&str> = matches.get_many::<String>("loads").into_iter().flatten().map(|name| name.trim()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = wanted.iter().find(|name| !specs.iter().any(|spec| spec.name == **name)) {
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        return Err(Failure::refused(format!(
            "`{unknown}` (`--loads`) is not a load of this target\n\nhint: its loads are {}",
            names.join(", ")
        )));
    }
    specs.retain(|spec| wanted.contains(&spec.name.as_str()));
    Ok(())
}

fn preset() -> Origin {
    Origin::Preset { name: "baseline".to_owned() }
}

/// Builds a job of the preset.
fn job(name: &str, options: &[(&str, &str)], common: &[(&str, String)]) -> JobSpec {
    let mut spec = JobSpec::new(name);
    for (option, text) in common {
        spec.set(option, text.as_str(), preset());
    }
    for (option, text) in options {
        spec.set(option, *text, preset());
    }
    spec
}

/// Returns the phases that only read.
fn reading(common: &[(&str, String)]) -> [JobSpec; 3] {
    [
        job("seq-read-1m", &[("rw", "read"), ("bs", "1m"), ("iodepth", "8")], common),
        job("rand-read-4k-q1", &[("rw", "randread"), ("bs", "4k"), ("iodepth", "1")], common),
        job("rand-read-4k-q32", &[("rw", "randread"), ("bs", "4k"), ("iodepth", "32")], common),
    ]
}

/// Returns the phases that write, except the durable append. The final flush is part of the measured time.
fn writing(common: &[(&str, String)]) -> [JobSpec; 4] {
    let flushed = ("end_fsync", "true");
    [
        job("seq-write-1m", &[("rw", "write"), ("bs", "1m"), ("iodepth", "8"), flushed], common),
        job("rand-write-4k-q32", &[("rw", "randwrite"), ("bs", "4k"), ("iodepth", "32"), flushed], common),
        job("rand-write-4k-q1", &[("rw", "randwrite"), ("bs", "4k"), ("iodepth", "1"), flushed], common),
        job(
            "rand-mix-4k-q32",
            &[("rw", "randrw"), ("rwmixread", "70"), ("bs", "4k"), ("iodepth", "32"), flushed],
            common,
        ),
    ]
}

/// Returns one of the phases by its name, for a comparison: without files, and with a size that flags may
/// change.
pub(crate) fn preset_job(name: &str) -> Result<JobSpec, Failure> {
    let common = [("size", (256 * MIB).to_string()), ("direct", "prefer".to_owned())];
    let all: Vec<JobSpec> = reading(&common).into_iter().chain(writing(&common)).collect();
    let names: Vec<String> = all.iter().map(|job| job.name.clone()).collect();
    all.into_iter().find(|job| job.name == name).ok_or_else(|| {
        Failure::refused(format!("`baseline:{name}` is not a preset\n\nhint: the presets are {}", names.join(", ")))
    })
}

/// Sorts the phases in the order of the table.
fn in_order(reading: [JobSpec; 3], writing: [JobSpec; 4], append: JobSpec) -> Vec<JobSpec> {
    let [seq_read, read_q1, read_q32] = reading;
    let [seq_write, write_q32, write_q1, mix] = writing;
    vec![seq_read, seq_write, read_q1, read_q32, write_q1, write_q32, mix, append]
}

/// Returns a path as a list of one, because a colon would begin the next.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}

fn common(path: &str, size_bytes: u64, budget: Budget) -> Vec<(&'static str, String)> {
    let engine = is_usb_disk(path).then(|| ("ioengine", EngineKind::Uas.name().to_owned()));
    let rest = vec![
        ("filename", escaped(path)),
        ("size", size_bytes.to_string()),
        ("direct", "prefer".to_owned()),
        ("runtime", format!("{}ms", budget.phase.as_millis())),
        ("time_based", "true".to_owned()),
    ];
    engine.into_iter().chain(rest).collect()
}

/// Returns true if a target is a USB disk that is driven in user space (`usb:2-1`).
fn is_usb_disk(path: &str) -> bool {
    UsbTargetName::parse(path).is_some()
}

/// Builds the durable append: one writer, one block at a time, each followed by fdatasync.
fn append(path: &str, size_bytes: u64, budget: Budget) -> JobSpec {
    let engine = if is_usb_disk(path) { EngineKind::Uas } else { EngineKind::Psync };
    job(
        APPEND,
        &[("rw", "write"), ("bs", "4k"), ("ioengine", engine.name()), ("iodepth", "1"), ("fdatasync", "1")],
        &common(path, size_bytes, budget),
    )
}

/// Builds jobs on our own files in a directory, and notes about their size.
fn in_directory(directory: &Path, facts: &TargetFacts, budget: Budget) -> Result<(Vec<JobSpec>, Vec<String>), Failure> {
    let free = facts.filesystem.as_ref().and_then(|f| f.available_bytes.value).unwrap_or(0);
    if free / 10 < SIZE_MIN_BYTES {
        return Err(Failure::refused(format!(
            "`{}` has {} free, and baseline uses at most a tenth of it, which is too little to measure\n\nhint: at least {} must be free",
            directory.display(),
            units::format_bytes(free),
            units::format_bytes(SIZE_MIN_BYTES * 10)
        )));
    }
    let tag = format!("{:08x}", entropy() as u32);
    let path = |kind: &str| directory.join(format!("trueio-{kind}-{tag}.dat")).to_string_lossy().into_owned();
    let jobs = |size_bytes: u64, log_bytes: u64| {
        let common = common(&path("baseline"), size_bytes, budget);
        in_order(reading(&common), writing(&common), append(&path("log"), log_bytes, budget))
    };
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(error) = rustix::fs::access(directory, access) {
        return Err(Failure::refused(format!(
            "no file can be created in `{}`\n  because: {}\n\nhint: name a directory that this user may write to",
            directory.display(),
            std::io::Error::from(error)
        )));
    }
    let (size_bytes, why) = budget.size(facts, free)?;
    let mut notes = vec![format!(
        "test file: {} ({why}); it is filled with random content and has no name, so nothing is left of it",
        units::format_bytes(size_bytes)
    )];
    notes.extend(cache_note("the test file", size_bytes));
    let log_bytes = halved(2 << 30, free / 20);
    Ok((jobs(size_bytes, log_bytes), notes))
}

/// Returns notes about files smaller than memory, which a cache could hold completely.
fn cache_note(what: &str, size_bytes: u64) -> Option<String> {
    let memory = trueio_device::environment(&trueio_device::System::live()).memory_bytes.value?;
    (size_bytes < memory).then(|| {
        format!(
            "{what} ({}) is smaller than this machine's memory ({}) and may be smaller than the disk's own cache; \
             the evidence shows whether reads reached the disk, but not what its cache served",
            units::format_bytes(size_bytes),
            units::format_bytes(memory)
        )
    })
}

/// Builds jobs on an existing target: reads only, unless it may be overwritten.
fn on_existing(
    target: &Path,
    facts: &TargetFacts,
    may_write: bool,
    signatures: Option<&str>,
    budget: Budget,
) -> Result<(Vec<JobSpec>, Vec<String>), Failure> {
    let size = facts.size_bytes.value.unwrap_or(0);
    if size < SIZE_MIN_BYTES {
        return Err(Failure::refused(format!(
            "the size of `{}` is {}; at least {} is needed",
            target.display(),
            units::format_bytes(size),
            units::format_bytes(SIZE_MIN_BYTES)
        )));
    }
    let size = budget.asked_bytes.map_or(Ok(size), |bytes| budget.asked(bytes, size))?;
    let path = target.to_string_lossy().into_owned();
    let mut common = common(&path, size / MIB * MIB, budget);
    let mut notes = vec![];
    notes.extend(cache_note(&format!("`{path}`"), size));
    if !may_write {
        notes.insert(0, format!("`{path}` exists and is only read; --overwrite `{path}` also writes to it"));
        return Ok((reading(&common).into(), notes));
    }
    let reading = reading(&common);
    let mut permissions = vec![("overwrite_existing", escaped(&path))];
    permissions.extend(signatures.map(|names| ("overwrite_signature", names.to_owned())));
    common.extend(permissions.iter().cloned());
    let mut log = append(&path, size / MIB * MIB, budget);
    for (option, value) in permissions {
        log.set(option, value, preset());
    }
    log.name = "write-4k-fdatasync".to_owned();
    Ok((in_order(reading, writing(&common), log), notes))
}
