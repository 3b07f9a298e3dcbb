//! `trueio baseline`: seven phases that together are a picture of a disk.
//!
//! | phase | why |
//! |---|---|
//! | sequential read, write, 1 MiB, depth 8 | what backups, scans and copies see |
//! | random read 4 KiB, depth 1 | the latency of one lookup |
//! | random read 4 KiB, depth 32 | how much the disk does at once |
//! | random write 4 KiB, depth 32 | the same for writes |
//! | random 70/30 mix, depth 32 | a database's steady work |
//! | append 4 KiB + fdatasync | the commit of a database's log |
//!
//! In a directory the files are this program's own and gone afterwards. Anything that exists is only
//! read, unless `--overwrite` names it.

use crate::failure::Failure;
use crate::flags::{run_outputs, switch};
use crate::machine::{Live, entropy, machine};
use crate::output;
use crate::planning::{may_run, planned};
use crate::run::execute;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trueio_direct::{AlignedBuffer, OpenOptions, Policy};
use trueio_engine::RandomFill;
use trueio_job::{FactsSource, Machine, Target};
use trueio_model::{JobSpec, Origin, TargetFacts, TargetKind, units};

const MIB: u64 = 1 << 20;
/// The test file is never larger.
const SIZE_MAX_BYTES: u64 = 4 << 30;
/// The test file is never smaller: figures of less are meaningless.
const SIZE_MIN_BYTES: u64 = 16 * MIB;

/// The name of the durable append.
const APPEND: &str = "append-4k-fdatasync";

/// What `trueio baseline` is for.
pub(crate) const ABOUT: &str = "A complete picture of a disk in about a minute";

/// The command line.
pub(crate) fn arguments(command: Command) -> Command {
    run_outputs(command)
        .long_about(
            "A complete picture of a disk in about a minute: sequential, random and durable I/O, each figure with \
             its evidence.\n\nIn a directory it makes its own files, which are removed in any case. \
             An existing file or a block device is only read, unless --overwrite names it.",
        )
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .help("A directory, a file or a block device")
                .default_value(".")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(switch("quick", "About 10 seconds").conflicts_with("thorough"))
        .arg(switch(
            "trace-syscalls",
            "Record every system call of the workers, with its cost (as root); it slows them",
        ))
        .arg(switch("thorough", "Each phase until it is steady (SNIA rule): 10 to 30 minutes"))
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .value_name("TARGET")
                .help("Write to this existing file or device too, destroying what is on it; must name TARGET again")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("The signatures on the device that may be destroyed, as `wipefs` names them: gpt,ext4")
                .requires("overwrite"),
        )
}

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Of each phase.
    phase: Duration,
    /// Of watching the disk idle before each phase.
    idle: Duration,
    /// Of writing the test file.
    fill: Duration,
}

impl Budget {
    fn of(matches: &ArgMatches) -> Self {
        let (phase, idle, fill) = match (matches.get_flag("quick"), matches.get_flag("thorough")) {
            (true, _) => (1_000, 100, 1_500),
            (_, true) => (30_000, 1_000, 20_000),
            _ => (7_000, 300, 6_000),
        };
        let ms = Duration::from_millis;
        Self { phase: ms(phase), idle: ms(idle), fill: ms(fill) }
    }
}

/// `trueio baseline`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    output::check(matches)?;
    let target = matches.get_one::<PathBuf>("target").expect("it has a default");
    let overwrite = matches.get_one::<PathBuf>("overwrite");
    // As texts: paths that differ in a slash would compare equal.
    if overwrite.is_some_and(|named| named.as_os_str() != target.as_os_str()) {
        return Err(Failure::refused(format!(
            "--overwrite names `{}`, but the target is `{}`: both must be the same, letter by letter",
            overwrite.map_or_else(String::new, |p| p.display().to_string()),
            target.display()
        )));
    }
    let budget = Budget::of(matches);
    let facts = match Live::touching_nothing().look(&target.to_string_lossy()) {
        Target::Present(facts) => facts,
        Target::Missing => {
            return Err(Failure::refused(format!(
                "`{}` does not exist\n\nhint: a directory, an existing file or a block device is needed",
                target.display()
            )));
        }
        Target::Unreadable(reason) => {
            return Err(Failure::refused(format!("`{}` cannot be looked at\n  because: {reason}", target.display())));
        }
    };
    let has_evidence = !matches.get_flag("no-evidence");
    let idle_ns = if has_evidence { budget.idle.as_nanos() as u64 } else { 0 };
    let machine = Machine { beside: output::beside(matches, &[]), ..machine(idle_ns) };
    let (mut specs, notes) = match facts.kind {
        TargetKind::Directory => {
            if overwrite.is_some() {
                return Err(Failure::refused(format!(
                    "`{}` is a directory: baseline makes its own files there and overwrites nothing",
                    target.display()
                )));
            }
            in_directory(target, &facts, budget, |trial| planned(trial, &machine, may_run).map(drop))?
        }
        TargetKind::File | TargetKind::BlockDevice => {
            let signatures = matches.get_one::<String>("overwrite-signature").map(String::as_str);
            on_existing(target, &facts, overwrite.is_some(), signatures, budget)?
        }
        TargetKind::CharacterDevice => {
            return Err(Failure::refused(format!(
                "`{}` is a character device: there is no disk in it",
                target.display()
            )));
        }
    };
    for spec in specs.iter_mut().skip(1) {
        spec.set("stonewall", "true", preset());
    }
    if matches.get_flag("thorough") {
        // An append grows its file; a second round would overwrite it, which is another load.
        for spec in specs.iter_mut().filter(|spec| spec.name != APPEND) {
            spec.set("steady_state", "true", preset());
        }
    }
    if matches.get_flag("trace-syscalls") {
        for spec in &mut specs {
            spec.set("trace_syscalls", "true", Origin::Flag { flag: "--trace-syscalls".to_owned() });
        }
    }
    let mut plan = planned(&specs, &machine, may_run)?;
    plan.notes.splice(0..0, notes);
    execute("baseline", specs, plan, has_evidence, matches)
}

fn preset() -> Origin {
    Origin::Preset { name: "baseline".to_owned() }
}

/// A job of the preset.
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

/// The phases that only read.
fn reading(common: &[(&str, String)]) -> [JobSpec; 3] {
    [
        job("seq-read-1m", &[("rw", "read"), ("bs", "1m"), ("iodepth", "8")], common),
        job("rand-read-4k-q1", &[("rw", "randread"), ("bs", "4k"), ("iodepth", "1")], common),
        job("rand-read-4k-q32", &[("rw", "randread"), ("bs", "4k"), ("iodepth", "32")], common),
    ]
}

/// The phases that write, but for the durable append. The flush at the end is part of the time.
fn writing(common: &[(&str, String)]) -> [JobSpec; 3] {
    let flushed = ("end_fsync", "true");
    [
        job("seq-write-1m", &[("rw", "write"), ("bs", "1m"), ("iodepth", "8"), flushed], common),
        job("rand-write-4k-q32", &[("rw", "randwrite"), ("bs", "4k"), ("iodepth", "32"), flushed], common),
        job(
            "rand-mix-4k-q32",
            &[("rw", "randrw"), ("rwmixread", "70"), ("bs", "4k"), ("iodepth", "32"), flushed],
            common,
        ),
    ]
}

/// One of the phases by its name, for a comparison: without files, and a size that flags may change.
pub(crate) fn preset_job(name: &str) -> Result<JobSpec, Failure> {
    let common = [("size", (256 * MIB).to_string()), ("direct", "prefer".to_owned())];
    let all: Vec<JobSpec> = reading(&common).into_iter().chain(writing(&common)).collect();
    let names: Vec<String> = all.iter().map(|job| job.name.clone()).collect();
    all.into_iter().find(|job| job.name == name).ok_or_else(|| {
        Failure::refused(format!("`baseline:{name}` is no preset\n\nhint: there are {}", names.join(", ")))
    })
}

/// In the order in which they are read as a table.
fn in_order(reading: [JobSpec; 3], writing: [JobSpec; 3], append: JobSpec) -> Vec<JobSpec> {
    let [seq_read, read_q1, read_q32] = reading;
    let [seq_write, write_q32, mix] = writing;
    vec![seq_read, seq_write, read_q1, read_q32, write_q32, mix, append]
}

/// A path as a list of one: a colon would begin the next.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}

fn common(path: &str, size_bytes: u64, budget: Budget) -> Vec<(&'static str, String)> {
    vec![
        ("filename", escaped(path)),
        ("size", size_bytes.to_string()),
        ("direct", "prefer".to_owned()),
        ("runtime", format!("{}ms", budget.phase.as_millis())),
        ("time_based", "true".to_owned()),
    ]
}

/// The durable append: one writer, one block at a time, each followed by fdatasync.
fn append(path: &str, size_bytes: u64, budget: Budget) -> JobSpec {
    job(
        APPEND,
        &[("rw", "write"), ("bs", "4k"), ("ioengine", "psync"), ("iodepth", "1"), ("fdatasync", "1")],
        &common(path, size_bytes, budget),
    )
}

/// Jobs on files of our own in a directory, and what to say about their size.
///
/// How large they are depends on how fast this disk is written, which takes a probe file. Before it
/// is made, the smallest jobs are planned by `plan`, which refuses what can be refused.
fn in_directory(
    directory: &Path,
    facts: &TargetFacts,
    budget: Budget,
    plan: impl Fn(&[JobSpec]) -> Result<(), Failure>,
) -> Result<(Vec<JobSpec>, Vec<String>), Failure> {
    let free = facts.filesystem.as_ref().and_then(|f| f.available_bytes.value).unwrap_or(0);
    if free / 10 < SIZE_MIN_BYTES {
        return Err(Failure::refused(format!(
            "`{}` has {} free, and at most a tenth of it would be used: too little to measure with\n\nhint: at least {} must be free",
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
            "no file can be made in `{}`\n  because: {}\n\nhint: baseline needs a directory that it may write to",
            directory.display(),
            std::io::Error::from(error)
        )));
    }
    plan(&jobs(SIZE_MIN_BYTES, SIZE_MIN_BYTES))?;
    let rate = fill_rate(directory, &tag)?;
    let by_time = (rate * budget.fill.as_secs_f64()) as u64;
    let (size_bytes, why) = [
        (SIZE_MAX_BYTES, "the most that baseline uses".to_owned()),
        (free / 10, format!("a tenth of the {} that are free", units::format_bytes(free))),
        (
            by_time.max(SIZE_MIN_BYTES),
            format!("what {} can be written here in {} s", units::format_bandwidth(rate), budget.fill.as_secs_f64()),
        ),
    ]
    .into_iter()
    .min_by_key(|choice| choice.0)
    .expect("three choices");
    let size_bytes = size_bytes / MIB * MIB;
    let mut notes = vec![format!(
        "the test file has {}: {why}; it is really written with random content, and has no name, so that nothing is left of it",
        units::format_bytes(size_bytes)
    )];
    notes.extend(cache_note("the test file", size_bytes));
    let log_bytes = (free / 20).min(2 << 30) / MIB * MIB;
    Ok((jobs(size_bytes, log_bytes), notes))
}

/// Notes that a file is smaller than memory: then a cache could serve it whole.
fn cache_note(what: &str, size_bytes: u64) -> Option<String> {
    let memory = trueio_device::environment(&trueio_device::System::live()).memory_bytes.value?;
    (size_bytes < memory).then(|| {
        format!(
            "{what} ({}) is smaller than this machine's memory ({}) and may be smaller than the disk's own cache; \
             the evidence says whether reads reached the disk, and no evidence reaches into the disk's cache",
            units::format_bytes(size_bytes),
            units::format_bytes(memory)
        )
    })
}

/// How fast a new file can be written here, in bytes a second: up to 64 MiB or 0.3 s, into a file
/// without a name.
fn fill_rate(directory: &Path, tag: &str) -> Result<f64, Failure> {
    const PIECE: usize = 4 << 20;
    let path = directory.join(format!("trueio-probe-{tag}.dat"));
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .policy(Policy::Prefer)
        .mode(0o600)
        .open(&path)
        .map_err(|e| Failure::refused_by(&e, Some("baseline needs a directory that it may write to")))?;
    std::fs::remove_file(&path).map_err(|e| Failure::failed(format!("`{}` cannot be unlinked", path.display()), &e))?;
    let alignment = opened.alignment().memory_bytes.unwrap_or(4096).max(4096);
    let mut buffer =
        AlignedBuffer::new(PIECE, alignment as usize).map_err(|e| Failure::failed("no memory for a buffer", &e))?;
    let mut content = RandomFill::new(entropy());
    let begin = Instant::now();
    let mut written = 0;
    while written < 16 && begin.elapsed() < Duration::from_millis(300) {
        // As the test file will be written: making the content takes time, too.
        content.fill(&mut buffer);
        opened
            .file()
            .write_all_at(&buffer, written * PIECE as u64)
            .map_err(|e| Failure::failed(format!("writing a probe in `{}` failed", directory.display()), &e))?;
        written += 1;
    }
    opened
        .file()
        .sync_data()
        .map_err(|e| Failure::failed(format!("flushing a probe in `{}` failed", directory.display()), &e))?;
    Ok(written as f64 * PIECE as f64 / begin.elapsed().as_secs_f64())
}

/// Jobs on something that exists: reads only, unless it may be overwritten.
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
            "`{}` has {}: at least {} are needed",
            target.display(),
            units::format_bytes(size),
            units::format_bytes(SIZE_MIN_BYTES)
        )));
    }
    let path = target.to_string_lossy().into_owned();
    let mut common = common(&path, size / MIB * MIB, budget);
    let mut notes = vec![];
    notes.extend(cache_note(&format!("`{path}`"), size));
    if !may_write {
        notes.insert(0, format!("`{path}` exists and is only read; --overwrite `{path}` would write to it too"));
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
