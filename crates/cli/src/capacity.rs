//! `trueio capacity`: is a disk as large as it reports?
//!
//! The target is planned and claimed as that of a job which writes all of it, so every refusal of a job holds. All I/O goes
//! through the descriptor that was claimed. What the blocks held is kept in a journal first, and written back at the end, after
//! SIGINT, SIGTERM and SIGHUP, and with `--restore` after a kill.

use crate::claimed::{self, Claimed, same_disk};
use crate::failure::Failure;
use crate::flags::{self, switch};
use crate::output::{self, Outputs};
use crate::progress::Line;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_device::System;
use trueio_model::{
    CAPACITY_FORMAT, CAPACITY_VERSION, CapacityContent, CapacityKind, CapacityRecord, Document, TargetFacts, units,
};
use trueio_powercut::{
    BLOCK_BYTES, BLOCKS_MIN, Disk, Examination, ExamineError, Findings, Journal, JournalError, JournalHead, Keeper,
    Layout, Restored, Stage, Verdict, Watch, coverage, judge, read_head, restore, sentences,
};
use trueio_report::{clean, message};
use trueio_run::machine::entropy;
use trueio_run::watch_signals;

/// What `trueio capacity` is for.
pub(crate) const ABOUT: &str = "Find out whether a disk is as large as it reports, and keep what is on it";

/// Size of cache that is excluded by default: what a fake disk has in front, with a margin.
const CACHE_DEFAULT: &str = "2g";

/// Adds the arguments of `trueio capacity`.
pub(crate) fn arguments(command: Command) -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
    };
    command
        .long_about(
            "Find out whether a disk is as large as it reports: writes unique blocks to random positions and to both ends, \
             then reads all of them back.\n\nWhat the blocks held is kept in a journal on another disk and written back at the end.",
        )
        .arg(
            Arg::new("device")
                .value_name("DEVICE")
                .required(true)
                .help("The disk, or a file")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(path("journal", "FILE", "Keep what the blocks hold in this new file, on another disk, and write it back"))
        .arg(
            path("overwrite", "DEVICE", "Keep nothing: the content of DEVICE is lost; must name DEVICE again")
                .conflicts_with("journal"),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("Signatures on the device that may be written over, with the names of `wipefs`: dos,vfat"),
        )
        .arg(
            path("restore", "FILE", "Write the blocks of a journal back, after a test that was killed")
                .conflicts_with_all(["journal", "overwrite", "overwrite-signature", "full", "json"]),
        )
        .arg(switch("full", "Write every block instead of a sample"))
        .arg(
            Arg::new("cache")
                .long("cache")
                .value_name("SIZE")
                .help("Exclude that a cache of this size answers; at most an eighth of the disk")
                .default_value(CACHE_DEFAULT)
                .value_parser(|text: &str| units::parse_bytes(text)),
        )
        .arg(flags::json("Write the whole document as JSON; without FILE to standard output"))
}

/// `trueio capacity`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let device = matches.get_one::<PathBuf>("device").expect("clap requires it").to_string_lossy().into_owned();
    if let Some(journal) = matches.get_one::<PathBuf>("restore") {
        return restore_from(&device, journal);
    }
    let journal = matches.get_one::<PathBuf>("journal");
    refuse_unclear(&device, journal, matches.get_one::<PathBuf>("overwrite"))?;
    output::check(matches, std::iter::empty())?;
    let names = matches.get_one::<String>("overwrite-signature").map(String::as_str);
    let mut claimed = Claimed::of("capacity", &device, names, output::command_files(matches, &[]))?;
    let block_count = claimed.identity.size_bytes / BLOCK_BYTES as u64;
    if block_count < BLOCKS_MIN {
        return Err(Failure::refused(format!(
            "the size of `{device}` is {}; at least {} is needed",
            units::format_bytes(claimed.identity.size_bytes),
            units::format_bytes(BLOCKS_MIN * BLOCK_BYTES as u64)
        )));
    }
    let (run, cache_bytes) = (entropy(), *matches.get_one::<u64>("cache").expect("it has a default"));
    let layout = Layout::of(block_count, cache_bytes, matches.get_flag("full"), entropy());
    let outputs = Outputs::reserve(matches, std::iter::empty())?;
    let kept = journal.map(|path| Kept::begin(path, &claimed, &layout, run)).transpose()?;
    let test = Test { examination: Examination::new(layout, run), kept, line: Line::new() };
    let (record, has_failed) = test.run(&mut claimed, run)?;
    deliver(&record, outputs, matches)?;
    Ok(if record.kind == CapacityKind::Genuine && !has_failed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Refuses a command line from which it is not clear what becomes of the content.
fn refuse_unclear(device: &str, journal: Option<&PathBuf>, overwrite: Option<&PathBuf>) -> Result<(), Failure> {
    match (journal, overwrite) {
        (None, None) => Err(Failure::refused(format!(
            "`{device}` is written, and where to keep its content is not set\n\nhint: `--journal FILE` keeps it in a new file on \
             another disk and writes it back; `--overwrite {device}` keeps nothing"
        ))),
        // Compared as text, because paths that differ in a slash would compare equal.
        (_, Some(named)) if named.to_string_lossy() != device => Err(Failure::refused(format!(
            "--overwrite names `{}`, but the disk is `{device}`: both must be spelled the same",
            named.display()
        ))),
        _ => Ok(()),
    }
}

/// A journal that is being written.
struct Kept {
    path: PathBuf,
    journal: Journal<File>,
}

impl Kept {
    /// Creates the journal, with a mode for its owner only: it holds content of the disk.
    fn begin(path: &Path, claimed: &Claimed, layout: &Layout, run: u64) -> Result<Self, Failure> {
        let shown = path.display();
        let refused =
            |why: String| Failure::refused(format!("the journal `{shown}` cannot be created\n  because: {why}"));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let facts = trueio_device::target_facts(&System::live(), folder).map_err(|e| Failure::refused_by(&e, None))?;
        if let Some(disk) = shared_disk(&facts, &claimed.facts) {
            return Err(Failure::refused(format!(
                "the journal `{shown}` would be on `{disk}`, which is also the disk under test\n\nhint: name a file on another disk"
            )));
        }
        let needed = layout.written_count() * BLOCK_BYTES as u64;
        // A hundredth more for the records' heads and what is kept to narrow an end down.
        let needed = needed + needed / 100 + (16 << 20);
        let free = rustix::fs::statvfs(folder)
            .map(|found| found.f_bavail * found.f_frsize)
            .map_err(|e| refused(e.to_string()))?;
        if free < needed {
            return Err(refused(format!(
                "it needs {}, and {} are free\n\nhint: a smaller `--cache` writes less",
                units::format_bytes(needed),
                units::format_bytes(free)
            )));
        }
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|e| refused(e.to_string()))?;
        let head = JournalHead {
            path: claimed.path.clone(),
            disk: claimed.identity.clone(),
            run,
            signatures: claimed.signatures.clone(),
        };
        let journal = Journal::begin(file, &head).and_then(|journal| {
            trueio_direct::sync_directory(folder)?;
            Ok(journal)
        });
        let journal = journal.map_err(|error| {
            // Nothing was kept yet.
            let _ = std::fs::remove_file(path);
            Failure::failed(format!("the journal `{shown}` cannot be written"), &error)
        })?;
        Ok(Self { path: path.to_owned(), journal })
    }
}

/// Returns a disk that is below both targets.
fn shared_disk<'a>(one: &'a TargetFacts, other: &TargetFacts) -> Option<&'a str> {
    let is_shared = |number| other.disks.iter().any(|disk| disk.device_number == number);
    one.disks.iter().find(|disk| is_shared(disk.device_number)).map(|disk| disk.name.as_str())
}

/// A test that is ready to run.
struct Test {
    examination: Examination,
    kept: Option<Kept>,
    line: Line,
}

/// Shows the progress of an examination, and ends it at a signal.
struct Shown<'a> {
    line: &'a Line,
    stop: &'static AtomicBool,
}

impl Watch for Shown<'_> {
    fn progress(&mut self, stage: Stage, done: u64, total: u64) {
        let doing = match stage {
            Stage::Keep => "1/3 keeping the content",
            Stage::Write => "2/3 writing",
            Stage::Read => "3/3 reading back",
            Stage::Narrow => "looking for the end",
        };
        self.line.show(&progress_words(doing, done, total));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

fn progress_words(doing: &str, done: u64, total: u64) -> String {
    let size = units::format_bytes(total * BLOCK_BYTES as u64);
    format!("{doing} ({size}): {} %", done * 100 / total.max(1))
}

impl Test {
    /// Runs the test and restores the content. The second value is true if content could not be restored.
    fn run(mut self, claimed: &mut Claimed, run: u64) -> Result<(CapacityRecord, bool), Failure> {
        let stop = watch_signals();
        let examined = self.examine(&mut claimed.disk, stop);
        // Nothing was written unless everything was kept.
        let restored = self.kept.take().map(|kept| {
            let file = kept.journal.into_file();
            (restore_and_remove(file, &kept.path, &mut claimed.disk, &self.line), kept.path)
        });
        self.line.clear();
        let path = &claimed.path;
        let hint = |journal: &Path| {
            format!("\n\nhint: the journal is kept: `trueio capacity {path} --restore {}`", journal.display())
        };
        let content = match &restored {
            None => CapacityContent::Overwritten,
            Some((Ok(restored), _)) if restored.failed_count == 0 => CapacityContent::Restored,
            Some((Ok(_), _)) => CapacityContent::PartlyRestored,
            Some((Err(error), journal)) => {
                return Err(Failure::with_code(1, not_written_back(journal, error) + &hint(journal)));
            }
        };
        let (verdict, findings) = examined.map_err(|error| {
            let kept = match (&restored, content) {
                (Some((_, journal)), CapacityContent::PartlyRestored) => hint(journal),
                (Some(_), _) => "\n\nhint: the content of the disk is as it was before".to_owned(),
                (None, _) => String::new(),
            };
            let chain = trueio_model::error_chain(&format!("the capacity of `{path}` was not tested"), Some(&error));
            Failure::with_code(1, format!("{chain}{kept}"))
        })?;
        let mut record = CapacityRecord {
            format: CAPACITY_FORMAT.to_owned(),
            version: CAPACITY_VERSION,
            command: flags::as_typed(),
            run,
            target: claimed.facts.clone(),
            reported_bytes: claimed.identity.size_bytes,
            coverage: coverage(self.examination.layout()),
            found: findings.counts,
            kind: verdict.kind,
            usable_bytes: verdict.usable_bytes,
            content,
            sentences: Vec::new(),
        };
        record.sentences = sentences(&record);
        Ok((record, content == CapacityContent::PartlyRestored))
    }

    fn examine(&mut self, disk: &mut dyn Disk, stop: &'static AtomicBool) -> Result<(Verdict, Findings), ExamineError> {
        let Self { examination, kept, line } = self;
        let mut watch = Shown { line, stop };
        if let Some(kept) = kept {
            examination.keep(disk, &mut kept.journal, &mut watch)?;
        }
        examination.write(disk, &mut watch)?;
        let findings = examination.read(disk, &mut watch)?;
        let keeper = kept.as_mut().map(|kept| &mut kept.journal as &mut dyn Keeper);
        let narrowed = match findings.narrowable(examination.layout()) {
            Some(step) => examination.narrow(disk, keeper, &mut watch, step)?,
            None => None,
        };
        Ok((judge(&findings, examination.layout(), narrowed), findings))
    }
}

/// Writes the blocks of a journal back, and removes it if it is no longer needed.
fn restore_and_remove(mut file: File, path: &Path, disk: &mut dyn Disk, line: &Line) -> Result<Restored, JournalError> {
    let progress = |done, total| line.show(&progress_words("restoring the content", done, total));
    let restored = restore(&mut file, disk, progress)?;
    if restored.failed_count == 0
        && let Err(error) = remove(&file, path)
    {
        message!("warning: the journal `{}` is no longer needed, and cannot be removed: {error}", path.display());
    }
    Ok(restored)
}

/// Removes a journal, unless another file has its name.
fn remove(file: &File, path: &Path) -> std::io::Result<()> {
    let (open, named) = (file.metadata()?, std::fs::symlink_metadata(path)?);
    if (open.dev(), open.ino()) != (named.dev(), named.ino()) {
        return Err(std::io::Error::other("another file has this name"));
    }
    std::fs::remove_file(path)
}

fn not_written_back(journal: &Path, error: &JournalError) -> String {
    trueio_model::error_chain(&format!("the journal `{}` was not written back", journal.display()), Some(error))
}

/// `trueio capacity DEVICE --restore JOURNAL`.
fn restore_from(device: &str, path: &Path) -> Result<ExitCode, Failure> {
    let refused =
        |why: String| Failure::refused(format!("the journal `{}` cannot be used\n  because: {why}", path.display()));
    // What it holds is written to the disk: a journal that another user could write would choose that.
    let mut file = trueio_files::open_own(path).map_err(|e| refused(e.to_string()))?;
    let head = read_head(&mut file).map_err(|e| refused(trueio_model::error_line(&e)))?;
    // A test that was killed left some of the signatures; others came later, with content that must not be written over.
    let found = claimed::signatures_of(device)?;
    if let Some(later) = found.iter().find(|name| !head.signatures.contains(name)) {
        return Err(refused(format!(
            "`{device}` has the signature `{later}`, which it did not have when it was tested"
        )));
    }
    let names = (!found.is_empty()).then(|| found.join(","));
    let mut claimed = Claimed::of("capacity", device, names.as_deref(), Default::default())?;
    if !same_disk(&head.disk, &claimed.identity) {
        return Err(refused(format!("it is of another disk, which was `{}`", clean(&head.path))));
    }
    let line = Line::new();
    watch_signals();
    let restored = restore_and_remove(file, path, &mut claimed.disk, &line);
    line.clear();
    let restored = restored.map_err(|error| Failure::with_code(1, not_written_back(path, &error)))?;
    let size = units::format_bytes(restored.block_count * BLOCK_BYTES as u64);
    if restored.failed_count > 0 {
        let failed = units::format_count(restored.failed_count);
        return Err(Failure::with_code(
            1,
            format!("{failed} blocks of `{device}` could not be written; {size} were\n\nhint: the journal is kept"),
        ));
    }
    output::print_all(&clean(&format!("{size} of `{device}` were written back; the journal is removed.")))?;
    output::print_all("\n")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a record, and writes it to the file of `--json`.
fn deliver(record: &CapacityRecord, outputs: Outputs, matches: &ArgMatches) -> Result<(), Failure> {
    let json = || {
        record
            .to_json()
            .map(|text| text + "\n")
            .map_err(|e| Failure::failed("the document cannot be written as JSON", &e))
    };
    let printed = if output::is_json_to_stdout(matches) {
        output::print_all(&json()?)
    } else {
        let lines: Vec<_> = record.sentences.iter().map(|sentence| clean(sentence)).collect();
        output::print_all(&format!("{}\n", lines.join("\n")))
    };
    printed.and(outputs.write(|_| json()))
}
