//! `trueio powercut replay`: a check of every legal crash image of a log of writes.
//!
//! Images are files in a folder of this run. The command gets one at a time, and may change it: each is built anew from the image at
//! the last flush. What may be lost, and the search for the smallest failing loss, is in `trueio_powercut::replay`.

use crate::failure::Failure;
use crate::flags;
use crate::output;
use crate::progress::Line;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, ioctl_ficlone, seek};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_model::units::{self, format_count};
use trueio_powercut::replay::{Entry, Loss, LostPart, Point, PointKind, WriteLog, choices, shrink};
use trueio_report::{clean, message};
use trueio_run::machine::entropy;
use trueio_run::watch_signals;

pub(super) const ABOUT: &str = "Check every legal crash image of a log of writes";
/// The image of a log without `--base` at most: it is a file with holes.
const IMAGE_BYTES_MAX: u64 = 1 << 40;
/// Checks while a failing loss is made smaller.
const SHRINK_CALLS: usize = 200;
/// Length of a copy, in bytes.
const PIECE_BYTES: usize = 1 << 20;
/// The end of a failed check's output that is printed, in bytes.
const TAIL_BYTES: u64 = 2048;
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn arguments(command: Command) -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("FILE")
            .help(help)
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
    };
    let time = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("TIME")
            .help(help)
            .default_value(default)
            .value_parser(|text: &str| units::parse_duration_ns(text))
    };
    command
        .arg(
            Arg::new("log")
                .value_name("LOG")
                .required(true)
                .help("A log of dm-log-writes, of QEMU's `blklogwrites`, or of `powercut disk --log`")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("check").long("check").value_name("COMMAND").required(true).help(
            "Run this with `sh -c` for each image; `{}` and $TRUEIO_IMAGE are its path. Exit status 0: it is intact",
        ))
        .arg(path("base", "What the device held before the log; without it, zeros"))
        .arg(
            Arg::new("mount")
                .long("mount")
                .value_name("FSTYPE")
                .help("Mount each image as this filesystem (as root): `{}` and $TRUEIO_MOUNT are then the directory"),
        )
        .arg(
            Arg::new("images")
                .long("images")
                .value_name("N")
                .help("Images at most")
                .default_value("1000")
                .value_parser(value_parser!(u64).range(1..=10_000_000)),
        )
        .arg(time("time", "10m", "Begin no image after this time"))
        .arg(time("timeout", "60s", "A check that takes longer has failed"))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("NUMBER")
                .help("Repeat the choice of an earlier run [default: random]")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("ENTRY|MARK")
                .help("Crash only after this entry of the log, by its number or the text of a mark: after `mkfs`"),
        )
        .arg(path("keep", "Write the smallest failing image to this new file"))
        .arg(flags::json("Write what was found as JSON; without FILE to standard output"))
        .arg(flags::quiet())
}

/// `trueio powercut replay`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let stop = watch_signals();
    let mut replay = Replay::open(matches, stop)?;
    let found = replay.run();
    let ended = match found {
        Ok(outcome) => replay.report(outcome, matches),
        Err(error) => Err(Failure::failed("the images cannot be built", &error)),
    };
    if let Err(error) = replay.folder.remove() {
        message!("warning: `{}` cannot be removed: {error}", replay.folder.0.display());
    }
    ended
}

/// The folder of a run.
struct Folder(PathBuf);

impl Folder {
    fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("trueio-replay-{:016x}", entropy()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes the files and directories that a run creates, and then the folder: nothing below a mounted filesystem.
    fn remove(&self) -> io::Result<()> {
        for name in ["base", "image", "output"] {
            match fs::remove_file(self.path(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match fs::remove_dir(self.path("mount")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::remove_dir(&self.0)
    }
}

/// How a check ended.
enum Checked {
    Intact,
    /// Why it is not.
    Failed(String),
    /// A signal arrived.
    Stopped,
}

/// An image that failed.
struct Failing {
    number: u64,
    point: Point,
    loss: Loss,
    reason: String,
    output: String,
    is_repeated: bool,
}

/// What a run has found.
struct Outcome {
    images: u64,
    points: usize,
    points_in_log: usize,
    exhaustive: usize,
    is_out_of_time: bool,
    is_stopped: bool,
    failing: Option<Failing>,
}

struct Replay {
    name: String,
    file: File,
    log: WriteLog,
    from: usize,
    command: String,
    mount: Option<String>,
    images: u64,
    time: Duration,
    timeout: Duration,
    seed: u64,
    folder: Folder,
    /// Entries before this index are in the file `base`.
    applied: usize,
    began: Instant,
    is_quiet: bool,
    stop: &'static AtomicBool,
}

impl Replay {
    /// Reads the log, and copies the image before it.
    fn open(matches: &ArgMatches, stop: &'static AtomicBool) -> Result<Self, Failure> {
        let path = matches.get_one::<PathBuf>("log").expect("clap requires it");
        let name = path.display().to_string();
        let refused = |error: &(dyn std::error::Error + 'static)| {
            Failure::refused(trueio_model::error_chain(&format!("`{name}` cannot be replayed"), Some(error)))
        };
        let mut file = open_seekable(path).map_err(|error| refused(&error))?;
        let log = WriteLog::read(&mut file).map_err(|error| refused(&error))?;
        let from = match matches.get_one::<String>("from") {
            Some(text) => entry_named(&log, text)
                .ok_or_else(|| Failure::refused(format!("--from `{text}`: the log has no such entry or mark")))?,
            None => 0,
        };
        let mount = matches.get_one::<String>("mount").cloned();
        if let Some(kind) = &mount {
            let is_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if kind.is_empty() || kind.starts_with('-') || !kind.bytes().all(is_a_name) {
                return Err(Failure::refused(format!("--mount `{kind}` is not the name of a filesystem, as `ext4`")));
            }
            if !rustix::process::geteuid().is_root() {
                return Err(Failure::refused(
                    "--mount needs root\n\nhint: without it, `--check` gets the image as a file, e.g. for `debugfs`",
                ));
            }
        }
        if let Some(keep) = matches.get_one::<PathBuf>("keep").filter(|keep| fs::symlink_metadata(keep).is_ok()) {
            return Err(Failure::refused(format!(
                "--keep: `{}` exists, and is not replaced\n\nhint: name a new file",
                keep.display()
            )));
        }
        let duration = |name| Duration::from_nanos(*matches.get_one::<u64>(name).expect("it has a default"));
        let folder = Folder::create().map_err(|error| {
            Failure::failed(format!("no folder can be created in `{}`", std::env::temp_dir().display()), &error)
        })?;
        let command = matches.get_one::<String>("check").expect("clap requires it").clone();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        if command.contains("{}") && !folder.0.as_os_str().as_encoded_bytes().iter().copied().all(is_plain) {
            let shown = folder.0.display().to_string();
            let _ = folder.remove();
            return Err(Failure::refused(format!(
                "--check: `{{}}` would be `{shown}`, which the shell reads as several words\n\nhint: write \"$TRUEIO_IMAGE\", or set \
                 TMPDIR to another directory"
            )));
        }
        let replay = Self {
            name,
            file,
            log,
            from,
            command,
            mount,
            images: *matches.get_one::<u64>("images").expect("it has a default"),
            time: duration("time"),
            timeout: duration("timeout"),
            seed: matches.get_one::<u64>("seed").copied().unwrap_or_else(entropy),
            folder,
            applied: 0,
            began: Instant::now(),
            is_quiet: matches.get_flag("quiet"),
            stop,
        };
        let prepared = replay.prepare(matches.get_one::<PathBuf>("base"));
        prepared.inspect_err(|_| drop(replay.folder.remove()))?;
        Ok(replay)
    }

    /// Creates the file `base` with the content before the log.
    fn prepare(&self, base: Option<&PathBuf>) -> Result<(), Failure> {
        let failed = |error: &io::Error| Failure::failed("the image before the log cannot be created", error);
        let end = self.log.end_bytes();
        let file = private(&self.folder.path("base")).map_err(|error| failed(&error))?;
        let Some(path) = base else {
            if end > IMAGE_BYTES_MAX {
                return Err(Failure::refused(format!(
                    "`{}` writes up to {}: without `--base` at most {} are replayed\n\nhint: name a copy of the device with `--base`",
                    self.name,
                    units::format_bytes(end),
                    units::format_bytes(IMAGE_BYTES_MAX)
                )));
            }
            return file.set_len(end).map_err(|error| failed(&error));
        };
        let shown = path.display();
        let source = open_seekable(path).map_err(|error| {
            Failure::refused(format!(
                "--base: `{shown}` cannot be read\n  because: {error}\n\nhint: name a file with the image"
            ))
        })?;
        let length = (&source).seek(io::SeekFrom::End(0)).map_err(|error| failed(&error))?;
        if length < end {
            return Err(Failure::refused(format!(
                "--base: `{shown}` has {}, and the log writes up to {}\n\nhint: name an image of the whole device",
                units::format_bytes(length),
                units::format_bytes(end)
            )));
        }
        copy(&source, &file).map_err(|error| failed(&error))
    }

    /// Checks images until one fails, or all, the time or a signal ends it.
    fn run(&mut self) -> io::Result<Outcome> {
        let all = self.log.points(self.from);
        let count = all.len() as u64;
        // If there are more points than images, every part of the log has some.
        let points: Vec<Point> = match count > self.images {
            true => (0..self.images).map(|at| all[(at * count / self.images) as usize]).collect(),
            false => all.clone(),
        };
        let mut outcome = Outcome {
            images: 0,
            points: 0,
            points_in_log: all.len(),
            exhaustive: 0,
            is_out_of_time: false,
            is_stopped: false,
            failing: None,
        };
        let line = Line::new();
        let mut left = points.len() as u64;
        for point in points {
            // What earlier points did not need is for later ones.
            let most = ((self.images - outcome.images) / left).max(1);
            left -= 1;
            let (losses, is_exhaustive) = choices(&self.log, &point, most as usize, self.seed);
            self.advance(point.flushed)?;
            for loss in losses {
                if self.stop.load(Relaxed) || self.began.elapsed() >= self.time {
                    outcome.is_stopped = self.stop.load(Relaxed);
                    outcome.is_out_of_time = !outcome.is_stopped;
                    return Ok(outcome);
                }
                if !self.is_quiet {
                    let at = format_count(point.end as u64);
                    line.show(&format!("image {}, crash after {at} entries", format_count(outcome.images + 1)));
                }
                match self.check(&point, &loss)? {
                    Checked::Intact => outcome.images += 1,
                    Checked::Stopped => {
                        outcome.is_stopped = true;
                        return Ok(outcome);
                    }
                    Checked::Failed(reason) => {
                        outcome.images += 1;
                        line.show("a check failed; looking for the smallest set of lost writes");
                        outcome.failing = Some(self.smallest(outcome.images, point, &loss, reason)?);
                        return Ok(outcome);
                    }
                }
            }
            outcome.points += 1;
            outcome.exhaustive += usize::from(is_exhaustive);
        }
        Ok(outcome)
    }

    /// Makes a failing loss small.
    fn smallest(&self, number: u64, point: Point, loss: &Loss, reason: String) -> io::Result<Failing> {
        let deadline = Instant::now() + self.time.max(self.timeout);
        let mut problem = None;
        let mut fails = |loss: &Loss| {
            if Instant::now() >= deadline {
                return None;
            }
            match self.check(&point, loss) {
                Ok(Checked::Intact) => Some(false),
                Ok(Checked::Failed(_)) => Some(true),
                Ok(Checked::Stopped) => None,
                Err(error) => {
                    problem = Some(error);
                    None
                }
            }
        };
        let smallest = shrink(loss, SHRINK_CALLS, &mut fails);
        if let Some(error) = problem {
            return Err(error);
        }
        let (is_repeated, reason) = match self.check(&point, &smallest)? {
            Checked::Failed(reason) => (true, reason),
            _ => (false, reason),
        };
        let output = tail_of(&self.folder.path("output"))?;
        Ok(Failing { number, point, loss: smallest, reason, output, is_repeated })
    }

    /// Applies all entries before an index to the file `base`.
    fn advance(&mut self, to: usize) -> io::Result<()> {
        let base = File::options().write(true).open(self.folder.path("base"))?;
        for entry in &self.log.entries[self.applied..to] {
            self.apply(&base, entry, None)?;
        }
        self.applied = to;
        Ok(())
    }

    /// Applies an entry to an image, but for what is lost of it.
    fn apply(&self, image: &File, entry: &Entry, lost: Option<&LostPart>) -> io::Result<()> {
        if !entry.writes() || lost == Some(&LostPart::Whole) {
            return Ok(());
        }
        let sector = u64::from(self.log.sector_bytes);
        let missing: &[u64] = match lost {
            Some(LostPart::Sectors(sectors)) => sectors,
            _ => &[],
        };
        let mut first = 0;
        // Runs of stored sectors: each ends at a lost one, or at the end.
        for end in missing.iter().copied().chain([entry.sector_count]) {
            if end > first {
                let (to, length) = ((entry.sector + first) * sector, (end - first) * sector);
                if entry.is_discard {
                    fallocate(image, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, to, length)?;
                } else {
                    copy_range(&self.file, entry.data_at + first * sector, image, to, length)?;
                }
            }
            first = end + 1;
        }
        Ok(())
    }

    /// Builds the image of a loss.
    fn build(&self, point: &Point, loss: &Loss, image: &File) -> io::Result<()> {
        copy(&File::open(self.folder.path("base"))?, image)?;
        for index in point.flushed..point.end {
            self.apply(image, &self.log.entries[index], loss.get(&index))?;
        }
        Ok(())
    }

    /// Builds the image of a loss, and runs the command on it.
    fn check(&self, point: &Point, loss: &Loss) -> io::Result<Checked> {
        let path = self.folder.path("image");
        // A file of its own: a loop device of the one before may still be there.
        let _ = fs::remove_file(&path);
        self.build(point, loss, &private(&path)?)?;
        let _ = fs::remove_file(self.folder.path("output"));
        let Some(kind) = &self.mount else { return self.run_command(point, &path, None) };
        let directory = self.folder.path("mount");
        if !directory.exists() {
            fs::create_dir(&directory)?;
        }
        let tool = |program: &str, arguments: &[&std::ffi::OsStr]| -> io::Result<std::process::Output> {
            std::process::Command::new(program).args(arguments).stdin(Stdio::null()).output()
        };
        let (loop_option, type_option) = ("-oloop".as_ref(), format!("-t{kind}"));
        let mounted = tool("mount", &[type_option.as_ref(), loop_option, path.as_ref(), directory.as_ref()])?;
        if !mounted.status.success() {
            fs::write(self.folder.path("output"), &mounted.stderr)?;
            return Ok(Checked::Failed("the image cannot be mounted".to_owned()));
        }
        let checked = self.run_command(point, &path, Some(&directory));
        let mut unmounted = tool("umount", &[directory.as_ref()])?;
        let began = Instant::now();
        while !unmounted.status.success() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(100));
            unmounted = tool("umount", &[directory.as_ref()])?;
        }
        if !unmounted.status.success() {
            return Err(io::Error::other(format!(
                "`{}` cannot be unmounted: {}",
                directory.display(),
                String::from_utf8_lossy(&unmounted.stderr).trim()
            )));
        }
        checked
    }

    /// Runs the command on an image, or on the directory where it is mounted.
    fn run_command(&self, point: &Point, image: &Path, mount: Option<&Path>) -> io::Result<Checked> {
        let output = private(&self.folder.path("output"))?;
        let subject = mount.unwrap_or(image);
        let text = self.command.replace("{}", &subject.to_string_lossy());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &text]).env("TRUEIO_IMAGE", image).env("TRUEIO_ENTRY", point.end.to_string());
        command.env("TRUEIO_MARK", self.log.mark_before(point).unwrap_or_default());
        match mount {
            Some(mount) => command.env("TRUEIO_MOUNT", mount),
            None => command.env_remove("TRUEIO_MOUNT"),
        };
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let mut child = command.spawn()?;
        let began = Instant::now();
        let checked = loop {
            if let Some(status) = child.try_wait()? {
                break if status.success() { Checked::Intact } else { Checked::Failed(words_of(status)) };
            }
            if self.stop.load(Relaxed) {
                break Checked::Stopped;
            }
            if began.elapsed() >= self.timeout {
                let limit = units::format_duration_ns(self.timeout.as_nanos() as u64);
                break Checked::Failed(format!("the command did not end within {limit} (`--timeout`)"));
            }
            std::thread::sleep(PAUSE);
        };
        // Also what it left in the background.
        if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        child.wait()?;
        Ok(checked)
    }

    /// Prints what was found, and writes the image of `--keep`.
    fn report(&self, outcome: Outcome, matches: &ArgMatches) -> Result<ExitCode, Failure> {
        if outcome.failing.is_none() && outcome.points_in_log == 0 {
            return Err(Failure::with_code(1, format!("no crash is possible in `{}`: it writes nothing", self.name)));
        }
        let is_json = output::print_json(matches, || self.json(&outcome))?;
        let Some(failing) = &outcome.failing else {
            if !is_json {
                output::print_all(&self.passing_text(&outcome))?;
            }
            return Ok(if outcome.is_stopped || outcome.images == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        };
        if !is_json {
            output::print_all(&self.failing_text(failing))?;
        }
        if !failing.output.is_empty() {
            message!("the command printed:\n{}", trueio_report::clean_lines(failing.output.trim_end()));
        }
        if let Some(path) = matches.get_one::<PathBuf>("keep") {
            let failed =
                |error: io::Error| Failure::failed(format!("`{}` could not be written", path.display()), &error);
            let file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
            self.build(&failing.point, &failing.loss, &file).map_err(failed)?;
        }
        Ok(ExitCode::FAILURE)
    }

    /// Returns what was found, with counts as numbers and entries by their place in the log, from 0.
    fn json(&self, outcome: &Outcome) -> String {
        let failing = outcome.failing.as_ref().map(|failing| {
            serde_json::json!({
                "image": failing.number,
                "entries_before": failing.point.end,
                "lost_entries": failing.loss.keys().collect::<Vec<_>>(),
                "reason": failing.reason,
                "printed": failing.output,
                "is_repeated": failing.is_repeated,
            })
        });
        let all = serde_json::json!({
            "image_count": outcome.images,
            "point_count": outcome.points,
            "points_in_log": outcome.points_in_log,
            "exhaustive_point_count": outcome.exhaustive,
            "seed": self.seed,
            "is_out_of_time": outcome.is_out_of_time,
            "is_stopped": outcome.is_stopped,
            "failing": failing,
        });
        format!("{all:#}\n")
    }

    fn passing_text(&self, outcome: &Outcome) -> String {
        let images = format_count(outcome.images);
        let mut text = if outcome.is_stopped { String::new() } else { "Clean: ".to_owned() };
        text.push_str(&format!(
            "{images} image{} at {} of {} points of a crash passed (seed {}); at {} of them every subset of the writes at risk.\n",
            if outcome.images == 1 { "" } else { "s" },
            format_count(outcome.points as u64),
            format_count(outcome.points_in_log as u64),
            self.seed,
            format_count(outcome.exhaustive as u64)
        ));
        if outcome.is_out_of_time {
            text.push_str("The time of `--time` ended before the others.\n");
        }
        text
    }

    fn failing_text(&self, failing: &Failing) -> String {
        let Failing { number, point, loss, reason, .. } = failing;
        let when = match point.kind {
            PointKind::Flush => format!("before the flush of entry {} completed", point.end),
            PointKind::Fua => format!("before the write of entry {} (FUA) completed", point.end - 1),
            PointKind::End => "after the last entry".to_owned(),
        };
        let mark = self.log.mark_before(point).map_or(String::new(), |mark| format!(", after mark `{}`", clean(mark)));
        let mut text = format!("Failed: image {}, a crash {when}{mark}: {reason}\n", format_count(*number));
        let at_risk = format_count(self.log.at_risk(point).len() as u64);
        if loss.is_empty() {
            text.push_str(&format!(
                "Nothing needs to be lost for it: all {at_risk} writes since the last flush were stored.\n"
            ));
        } else {
            let count = loss.len();
            let were = if count == 1 { "write is" } else { "writes are" };
            text.push_str(&format!(
                "Smallest set: it fails if {count} {were} lost of the {at_risk} that were not flushed:\n"
            ));
        }
        for (index, part) in loss.iter().take(20) {
            text.push_str(&format!("  {}\n", self.entry_text(&self.log.entries[*index], part)));
        }
        if loss.len() > 20 {
            text.push_str(&format!("  and {} more\n", loss.len() - 20));
        }
        if !failing.is_repeated {
            text.push_str("The check of the same image then passed: it does not depend on the image alone.\n");
        }
        text + &format!("To repeat: add --seed {}, with the same bounds\n", self.seed)
    }

    fn entry_text(&self, entry: &Entry, part: &LostPart) -> String {
        let what = match (entry.is_discard, entry.is_fua) {
            (true, _) => "discard",
            (false, true) => "write with FUA",
            (false, false) => "write",
        };
        let lost = match part {
            LostPart::Whole => String::new(),
            LostPart::Sectors(sectors) => {
                let shown: Vec<String> = sectors.iter().take(8).map(u64::to_string).collect();
                let more = if sectors.len() > 8 { ", …" } else { "" };
                format!("; torn, {} of its sectors lost: {}{more}", sectors.len(), shown.join(", "))
            }
        };
        format!(
            "entry {}: {what} of {} sectors of {} bytes at sector {}{lost}",
            entry.number, entry.sector_count, self.log.sector_bytes, entry.sector
        )
    }
}

/// Returns the number of the entry after which crashes begin.
fn entry_named(log: &WriteLog, text: &str) -> Option<usize> {
    let marked = log.entries.iter().position(|entry| entry.mark.as_deref() == Some(text));
    let numbered = || text.parse().ok().filter(|number| *number <= log.entries.len());
    marked.or_else(numbered)
}

/// Opens a file to read it, or a block device, to which dm-log-writes logs; a pipe or another device is refused.
fn open_seekable(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() {
        Ok(file)
    } else {
        Err(io::Error::other("it is neither a file nor a block device"))
    }
}

/// Creates a file in the folder of the run.
fn private(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Copies an image with its holes, shared if the filesystem can.
fn copy(mut from: &File, to: &File) -> io::Result<()> {
    let length = from.seek(io::SeekFrom::End(0))?;
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    to.set_len(length)?;
    let mut at = 0;
    while at < length {
        let begin = match seek(from, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // A block device has no holes that are known.
            Err(rustix::io::Errno::INVAL) => return copy_range(from, 0, to, 0, length),
            // No data after it.
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(from, SeekFrom::Hole(begin))?;
        copy_range(from, begin, to, begin, at - begin)?;
    }
    Ok(())
}

/// Copies a part of a file.
fn copy_range(from: &File, mut at: u64, to: &File, mut target: u64, mut length: u64) -> io::Result<()> {
    let mut buffer = vec![0; length.min(PIECE_BYTES as u64) as usize];
    while length > 0 {
        let piece = length.min(PIECE_BYTES as u64) as usize;
        from.read_exact_at(&mut buffer[..piece], at)?;
        to.write_all_at(&buffer[..piece], target)?;
        (at, target, length) = (at + piece as u64, target + piece as u64, length - piece as u64);
    }
    Ok(())
}

/// Returns the end of a file as text.
fn tail_of(path: &Path) -> io::Result<String> {
    let Ok(mut file) = File::open(path) else { return Ok(String::new()) };
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `the command ended with exit status 1`.
fn words_of(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("the command ended with exit status {code}"),
        None => format!("the command ended by {status}"),
    }
}
