//! `trueio selftest`: each lie that a storage benchmark can tell, staged here, and caught by name.
//!
//! A row is a lie: what a tool that trusts its calls would have reported of it, and what trueio
//! reported. The jobs are small and real, and go the way of all jobs: specification, plan, run,
//! judgement. Between them stand honest runs in the same places, which must not be accused: a check
//! that always objects would catch every lie, too.
//!
//! Cannot stage: throttling, a hypervisor's cache, a disk that lies about its cache (only a power
//! cut shows it), blocks that a thin-provisioned device never stored. `docs/evidence.md` lists what
//! is detectable.

mod misaligned;
mod place;
mod rows;
mod stage;

use crate::failure::Failure;
use crate::machine::{look, machine};
use crate::output;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use place::{Disk, Mounted, Scratch, nameless};
use rows::{Count, Finding, Row};
use rustix::fs::OFlags;
use stage::{RUNTIME, Spoiler, Stage, Staged, iops_text, measured_op, naive_quantile, objections};
use std::cell::Cell;
use std::fs::File;
use std::io::IsTerminal;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use trueio_direct::AlignedBuffer;
use trueio_job::Target;
use trueio_model::{DirectSupport, RunRecord, TargetKind, units};
use trueio_run::{signal_received, watch_signals};

const MIB: u64 = 1 << 20;
/// How long the disks are watched idle before each job, in nanoseconds.
const IDLE_NS: u64 = 100_000_000;
/// What a neighbour writes at least while a job runs, if it is to be noticed.
const NEIGHBOUR_BYTES_MIN: u64 = 16 * MIB;

/// A job of one I/O at a time, 4 KiB at random, for a short time.
const SHORT: &[(&str, &str)] = &[("bs", "4k"), ("ioengine", "psync"), ("runtime", RUNTIME), ("time_based", "true")];
/// Where direct I/O goes, or seems to.
const REQUIRE: (&str, &str) = ("direct", "require");
const PREFER: (&str, &str) = ("direct", "prefer");
const BUFFERED: (&str, &str) = ("direct", "off");
const READS: (&str, &str) = ("rw", "randread");
const WRITES: (&str, &str) = ("rw", "randwrite");

/// What an honest run on a disk that others use, too, must leave silent.
const OUR_CHECKS: &[&str] =
    &["call_results", "direct_granted", "process_read_bytes", "page_cache", "holes", "content", "latency_floor"];
/// What an honest run on a disk of our own must leave silent: everything but the processor, which
/// others use whatever the disk.
const ALL_CHECKS: &[&str] = &[
    "call_results",
    "direct_granted",
    "block_layer_bytes",
    "process_read_bytes",
    "page_cache",
    "holes",
    "flushes",
    "foreign_io",
    "memory_backed",
    "declared_values",
    "content",
];

/// What `trueio selftest` is for.
pub(crate) const ABOUT: &str = "Stages each lie of storage benchmarks here, and shows it caught";

/// The command line of `trueio selftest`.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .long_about(
            "Stages each lie that a storage benchmark can tell, in scratch files and, as root, on loop devices that only \
             this process mounts; shows what a tool that trusts its calls would have reported, and what trueio reported. \
             Takes about 15 seconds, and leaves nothing on the disk even if it is killed. Exit code 1 if a lie was missed or an honest run accused.",
        )
        .arg(
            Arg::new("directory")
                .value_name("DIRECTORY")
                .help("Where the scratch files lie")
                .default_value(".")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("json").long("json").help("Print JSON instead of text").action(clap::ArgAction::SetTrue))
}

/// `trueio selftest`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let directory = matches.get_one::<PathBuf>("directory").expect("it has a default");
    let is_json = matches.get_flag("json");
    let directory = std::fs::canonicalize(directory)
        .map_err(|e| Failure::refused(format!("`{}` cannot be used\n  because: {e}", directory.display())))?;
    let facts = match look(&directory.to_string_lossy()) {
        Target::Present(facts) if facts.kind == TargetKind::Directory => facts,
        _ => return Err(Failure::refused(format!("`{}` is no directory that can be looked at", directory.display()))),
    };
    rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK).map_err(|e| {
        let error = std::io::Error::from(e);
        Failure::refused(format!("`{}` cannot be written to\n  because: {error}", directory.display()))
    })?;
    let stage = Stage { machine: machine(IDLE_NS), stop: watch_signals() };
    let width = output::style(std::io::stdout().is_terminal()).width;
    let mut theatre = Theatre { stage, rows: Vec::new(), width, prints: !is_json };

    // On the directory's own disk, while it can be seen: the scratch place covers it.
    let why_no_disk = match (facts.direct.support, facts.disks.is_empty()) {
        (DirectSupport::Direct, false) => None,
        (DirectSupport::Direct, true) => Some("no disk is seen under the directory"),
        _ => Some("the directory's filesystem has no direct I/O"),
    };
    if why_no_disk.is_none() {
        theatre.on_a_disk(&directory)?;
    }
    if theatre.goes_on() {
        match Scratch::new(&directory) {
            Ok(scratch) => theatre.in_scratch(&scratch, why_no_disk.is_some())?,
            Err(why) => theatre.without_scratch(&why, why_no_disk)?,
        }
    }
    if !theatre.goes_on() {
        eprintln!("interrupted by {}: not all lies were staged", signal_received().unwrap_or("request"));
    }
    let count = Count::of(&theatre.rows);
    if is_json {
        let document = serde_json::json!({
            "directory": directory.display().to_string(),
            "rows": theatre.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "count": count.json(),
            "is_complete": theatre.goes_on(),
        });
        output::print_all(&format!("{document:#}\n"))?;
    } else {
        output::print_all(&format!("\n{}", count.text()))?;
    }
    Ok(if count.is_good() && theatre.goes_on() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lies that need a disk with direct I/O and no permission.
const DISK_LIES: &[&str] = &[MISALIGNED, SPARSE, UNWRITTEN, BLANK, CUT, CACHED, DEPTH, PACE, FALLS, FEW, ZEROS];
/// Lies that need filesystems of our own, which only root can mount.
const SCRATCH_LIES: &[&str] = &[UNFLUSHED, NEIGHBOUR, JOURNAL, NO_BARRIER, BTRFS, MEMORY_LOOP];

const MISALIGNED: &str = misaligned::NAME;
const SPARSE: &str = "a sparse file, read with direct I/O";
const UNWRITTEN: &str = "space that was reserved and never written, read with direct I/O";
const BLANK: &str = "blocks that hold only zeros, as on a disk that was never written";
const CUT: &str = "the file is shorter than the job: reads beyond its end return nothing";
const CACHED: &str = "the file was cached before: buffered reads";
const DEPTH: &str = "a queue of 32 that is never that deep: buffered reads through io_uring";
const PACE: &str = "a rate that the disk cannot keep, and latencies from the hand-over";
const FEW: &str = "p99.9 of 50 I/Os";
const ZEROS: &str = "zeros are written: disks and filesystems need not store them";
const UNFLUSHED: &str = "buffered writes that nobody flushed";
const NEIGHBOUR: &str = "a neighbour writes to the same disk";
const JOURNAL: &str = "ext4 with data=journal takes O_DIRECT and buffers";
const NO_BARRIER: &str = "fdatasync that never becomes a flush: ext4 mounted with nobarrier";
const BTRFS: &str = "btrfs takes O_DIRECT and buffers the writes";
const MEMORY_LOOP: &str = "the disk is a loop device on tmpfs";
const FALLS: &str = "a write cache that is full after 1.5 s (a modelled disk)";
const TMPFS: &str = "tmpfs takes O_DIRECT, and there is no disk";

/// The rows, and what it takes to make them.
struct Theatre {
    stage: Stage,
    rows: Vec<Row>,
    width: usize,
    prints: bool,
}

impl Theatre {
    fn goes_on(&self) -> bool {
        !self.stage.stop.load(Relaxed)
    }

    /// Adds a row, unless it was interrupted: then it proves nothing.
    fn add(&mut self, row: Row) -> Result<(), Failure> {
        if !self.goes_on() {
            return Ok(());
        }
        if self.prints {
            output::print_all(&row.text(self.width))?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn not_staged(&mut self, names: &[&str], why: &str) -> Result<(), Failure> {
        names.iter().try_for_each(|name| self.add(Row::not_staged(false, name, why)))
    }

    /// Runs a job and makes a row of its record.
    fn job(
        &mut self,
        is_honest: bool,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        spoiler: Option<Spoiler<'_>>,
        row: impl FnOnce(&RunRecord) -> Row,
    ) -> Result<(), Failure> {
        if !self.goes_on() {
            return Ok(());
        }
        let staged = self.stage.run(place.0, place.1, &options.concat(), spoiler);
        self.row_of(is_honest, name, staged, row)
    }

    fn row_of(
        &mut self,
        is_honest: bool,
        name: &str,
        staged: Staged,
        row: impl FnOnce(&RunRecord) -> Row,
    ) -> Result<(), Failure> {
        let row = match staged {
            Staged::Refused(finding) => Row::not_staged(is_honest, name, &finding.sentence),
            Staged::Ran(record) if record.phases.is_empty() => {
                Row::not_staged(is_honest, name, objections(&record).first().map_or("it did not run", |s| &s.sentence))
            }
            Staged::Ran(record) => row(&record),
        };
        self.add(row)
    }

    /// A lie whose figure is a rate.
    fn lie(
        &mut self,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        spoiler: Option<Spoiler<'_>>,
        meant: &[&str],
    ) -> Result<(), Failure> {
        let row = |record: &RunRecord| Row::lie(name, iops_text(record), objections(record), &[meant]);
        self.job(false, name, place, options, spoiler, row)
    }

    fn honest(
        &mut self,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        silent: &[&str],
    ) -> Result<(), Failure> {
        let row = |record: &RunRecord| Row::honest(name, iops_text(record), &objections(record), silent);
        self.job(true, name, place, options, None, row)
    }

    /// A filesystem that takes `O_DIRECT` and buffers: required, it is refused; preferred, flagged.
    fn silently_buffered(&mut self, name: &str, place: (&str, &Path)) -> Result<(), Failure> {
        let refused = match self.stage.run(place.0, place.1, &[SHORT, &[WRITES, REQUIRE]].concat(), None) {
            Staged::Refused(finding) => vec![finding],
            Staged::Ran(record) => objections(&record),
        };
        let row = |record: &RunRecord| {
            let mut findings = refused;
            findings.extend(objections(record));
            Row::lie(name, iops_text(record), findings, &[&["direct_impossible"], &["direct_granted"]])
        };
        self.job(false, name, place, &[SHORT, &[WRITES, PREFER]], None, row)
    }

    /// What needs a disk and no permission.
    fn on_a_disk(&mut self, at: &Path) -> Result<(), Failure> {
        self.honest(
            "direct reads of a file that is really there",
            ("reads", at),
            &[SHORT, &[READS, REQUIRE]],
            OUR_CHECKS,
        )?;
        let writes = "direct writes of random content";
        self.honest(writes, ("writes", at), &[SHORT, &[WRITES, REQUIRE]], OUR_CHECKS)?;
        if self.goes_on() {
            let row = misaligned::stage(&self.stage, at);
            self.add(row)?;
        }
        let direct_reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE]];
        self.lie(SPARSE, ("sparse", at), direct_reads, Some(&stage::punch), &["holes"])?;
        self.lie(UNWRITTEN, ("unwritten", at), direct_reads, Some(&stage::unwrite), &["holes"])?;
        self.lie(BLANK, ("blank", at), direct_reads, Some(&stage::blank), &["zero_blocks"])?;
        self.lie(
            CUT,
            ("cut", at),
            &[SHORT, &[READS, REQUIRE, ("continue_on_error", "all")]],
            Some(&stage::cut),
            &["call_results"],
        )?;
        let cached: &[(&str, &str)] = &[READS, BUFFERED, ("invalidate", "false")];
        let witnesses = ["block_layer_bytes", "process_read_bytes", "page_cache"];
        self.lie(CACHED, ("cached", at), &[SHORT, cached], Some(&stage::warm), &witnesses)?;
        let cold = [("bs", "64k"), ("ioengine", "psync"), ("rw", "read"), BUFFERED];
        self.honest("buffered reads of a file that was not cached", ("cold", at), &[&cold], &witnesses[1..])?;
        let deep = [("ioengine", "io_uring"), ("iodepth", "32")];
        let row = |record: &RunRecord| {
            let trusting = format!("{} at iodepth 32", iops_text(record));
            Row::lie(DEPTH, trusting, objections(record), &[&["achieved_depth"]])
        };
        self.job(false, DEPTH, ("depth", at), &[SHORT, cached, &deep], Some(&stage::warm), row)?;
        // One at a time is collected: a disk that is quicker than this program's own work would empty the queue otherwise.
        let one = ("iodepth_batch_complete_max", "1");
        let eight = [READS, REQUIRE, ("ioengine", "io_uring"), ("iodepth", "8"), one];
        let name = "a queue of 8 that is kept: direct reads through io_uring";
        self.honest(name, ("queue", at), &[SHORT, &eight], &["achieved_depth"])?;
        self.pace(at)?;
        self.falls(at)?;
        self.few(at)?;
        self.lie(ZEROS, ("zeros", at), &[SHORT, &[WRITES, PREFER, ("zero_buffers", "true")]], None, &["content"])
    }

    fn pace(&mut self, at: &Path) -> Result<(), Failure> {
        const RATE: &str = "10000000";
        let row = |record: &RunRecord| {
            let p99 = measured_op(record).map_or_else(String::new, |op| naive_quantile(op, 990));
            let trusting = format!("{}, p99 {p99}", iops_text(record));
            Row::lie(PACE, trusting, objections(record), &[&["pace"]])
        };
        let rate = [READS, REQUIRE, ("rate_iops", RATE)];
        self.job(false, PACE, ("pace", at), &[SHORT, &rate], None, row)?;
        let rate = [READS, REQUIRE, ("rate_iops", "50")];
        self.honest("a rate that the disk keeps", ("kept", at), &[SHORT, &rate], &["pace"])
    }

    /// In virtual time, on no disk: the rate falls to a quarter and stays there.
    fn falls(&mut self, at: &Path) -> Result<(), Failure> {
        let model =
            |simulated| [("ioengine", "simulated"), ("simulated", simulated), ("bs", "4k"), ("size", "1g"), READS];
        let long = [("runtime", "4s"), ("time_based", "true")];
        let full = "service=100us,channels=4,slow=1500ms*4";
        self.lie(FALLS, ("falls", at), &[&model(full), &long], None, &["steadiness"])?;
        let even = "service=100us,channels=4";
        self.honest("the same disk without an end of its cache", ("even", at), &[&model(even), &long], &["steadiness"])
    }

    /// No check: a percentile that the sample cannot support is not given.
    fn few(&mut self, at: &Path) -> Result<(), Failure> {
        let p999 = |record: &RunRecord| {
            measured_op(record).is_some_and(|op| op.percentiles.iter().any(|given| given.percent == 99.9))
        };
        let row = |record: &RunRecord| {
            let worst = measured_op(record).map_or_else(String::new, |op| naive_quantile(op, 999));
            let mut findings = objections(record);
            if !p999(record) {
                let sentence = "50 I/Os do not support a p99.9: its 95 % interval has no upper end.";
                findings.push(Finding::new("not printed", "percentiles", sentence));
            }
            Row::lie(FEW, format!("p99.9 {worst}"), findings, &[&["percentiles"]])
        };
        let fifty = [("bs", "4k"), ("ioengine", "psync"), ("number_ios", "50"), READS, REQUIRE];
        self.job(false, FEW, ("few", at), &[&fifty], None, row)?;
        let name = "p99.9 of 100,000 I/Os (of the engine `null`, which needs no disk)";
        let row = |record: &RunRecord| {
            let mut findings = Vec::new();
            if !p999(record) {
                findings.push(Finding::new("not printed", "percentiles", "p99.9 is missing."));
            }
            let value = measured_op(record).map_or_else(String::new, |op| naive_quantile(op, 999));
            Row::honest(name, format!("p99.9 {value}"), &findings, &["percentiles"])
        };
        let many = [("bs", "4k"), ("size", "1g"), ("ioengine", "null"), ("number_ios", "100000"), READS];
        self.job(true, name, ("many", at), &[&many], None, row)
    }

    /// What needs filesystems of our own.
    fn in_scratch(&mut self, scratch: &Scratch, has_no_disk: bool) -> Result<(), Failure> {
        match scratch.filesystem("ext4", "ext4", 128 * MIB) {
            Ok(disk) => self.on_ext4(&disk, has_no_disk)?,
            Err(why) => {
                if has_no_disk {
                    self.not_staged(DISK_LIES, &why)?;
                }
                self.not_staged(&[UNFLUSHED, NEIGHBOUR, JOURNAL, NO_BARRIER], &why)?;
            }
        }
        if self.goes_on() {
            let name = "direct reads on xfs on a loop device";
            match scratch.filesystem("xfs", "xfs", 320 * MIB).and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => {
                    self.honest(name, ("xfs", &mount.path), &[SHORT, &[READS, REQUIRE]], ALL_CHECKS)?;
                }
                Err(why) => self.add(Row::not_staged(true, name, &why))?,
            }
        }
        if self.goes_on() {
            match scratch.filesystem("btrfs", "btrfs", 160 * MIB).and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => self.silently_buffered(BTRFS, ("btrfs", &mount.path))?,
                Err(why) => self.not_staged(&[BTRFS], &why)?,
            }
        }
        if self.goes_on() {
            let disk = scratch.filesystem_in_memory("memory", "ext4", 64 * MIB);
            match disk.and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => {
                    let reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE]];
                    self.lie(MEMORY_LOOP, ("memory", &mount.path), reads, None, &["memory_backed"])?;
                }
                Err(why) => self.not_staged(&[MEMORY_LOOP], &why)?,
            }
        }
        self.silently_buffered(TMPFS, ("tmpfs", scratch.path()))
    }

    fn on_ext4(&mut self, disk: &Disk, has_no_disk: bool) -> Result<(), Failure> {
        match disk.mount("") {
            Ok(mount) => {
                if has_no_disk {
                    self.on_a_disk(&mount.path)?;
                }
                self.on_plain_ext4(&mount)?;
            }
            Err(why) => {
                if has_no_disk {
                    self.not_staged(DISK_LIES, &why)?;
                }
                self.not_staged(&[UNFLUSHED, NEIGHBOUR], &why)?;
            }
        }
        if !self.goes_on() {
            return Ok(());
        }
        match disk.mount("data=journal") {
            Ok(mount) => self.silently_buffered(JOURNAL, ("journal", &mount.path))?,
            Err(why) => self.not_staged(&[JOURNAL], &why)?,
        }
        match disk.mount("nobarrier") {
            Ok(mount) => {
                let row = |record: &RunRecord| {
                    Row::lie(NO_BARRIER, durable_text(record), objections(record), &[&["flushes"]])
                };
                self.job(false, NO_BARRIER, ("barrier", &mount.path), &[DURABLE], None, row)
            }
            Err(why) => self.not_staged(&[NO_BARRIER], &why),
        }
    }

    fn on_plain_ext4(&mut self, mount: &Mounted) -> Result<(), Failure> {
        let at = mount.path.as_path();
        self.honest("direct reads on ext4 on a loop device", ("own", at), &[SHORT, &[READS, REQUIRE]], ALL_CHECKS)?;
        self.honest("direct writes there", ("own", at), &[SHORT, &[WRITES, REQUIRE]], ALL_CHECKS)?;
        let name = "buffered writes there, each followed by fdatasync";
        let row = |record: &RunRecord| Row::honest(name, durable_text(record), &objections(record), ALL_CHECKS);
        self.job(true, name, ("own", at), &[DURABLE], None, row)?;
        self.lie(
            UNFLUSHED,
            ("unflushed", at),
            &[SHORT, &[WRITES, BUFFERED]],
            None,
            &["block_layer_bytes", "page_cache"],
        )?;
        if !self.goes_on() {
            return Ok(());
        }
        match Neighbour::move_in(at) {
            Ok(neighbour) => self.beside(&neighbour, at),
            Err(error) => self.not_staged(&[NEIGHBOUR], &format!("no file for the neighbour: {error}")),
        }
    }

    /// Reads while a neighbour writes. On a machine that is busy with other things the neighbour may get no turn
    /// while the job is measured: then there was no lie, and it is tried again.
    fn beside(&mut self, neighbour: &Neighbour, at: &Path) -> Result<(), Failure> {
        const TRIES: u32 = 10;
        let options = [SHORT, &[READS, REQUIRE]].concat();
        let mut wrote = 0;
        for _ in 0..TRIES {
            if !self.goes_on() {
                return Ok(());
            }
            let before = Cell::new(0);
            let note = |_: &File| {
                before.set(neighbour.bytes_written());
                Ok(())
            };
            let staged = self.stage.run("neighbour", at, &options, Some(&note));
            wrote = neighbour.bytes_written() - before.get();
            let read = match &staged {
                Staged::Ran(record) => measured_op(record).map_or(0, |op| op.byte_count),
                Staged::Refused(_) => 0,
            };
            // The span began before the measured one: so much more must have been written than would be noticed.
            if wrote >= NEIGHBOUR_BYTES_MIN.max(read) {
                let meant: &[&str] = &["foreign_io", "block_layer_bytes"];
                let row = |record: &RunRecord| Row::lie(NEIGHBOUR, iops_text(record), objections(record), &[meant]);
                return self.row_of(false, NEIGHBOUR, staged, row);
            }
        }
        let why = format!("the neighbour got to write only {} while the job ran", units::format_bytes(wrote));
        self.not_staged(&[NEIGHBOUR], &why)
    }

    /// What is left without root.
    fn without_scratch(&mut self, why: &str, why_no_disk: Option<&str>) -> Result<(), Failure> {
        if let Some(why_no_disk) = why_no_disk {
            self.not_staged(DISK_LIES, &format!("{why_no_disk}, and {why}"))?;
        }
        self.not_staged(SCRATCH_LIES, why)?;
        let shm = Path::new("/dev/shm");
        match look("/dev/shm") {
            Target::Present(facts) if facts.filesystem.as_ref().is_some_and(|f| f.kind == "tmpfs") => {
                self.silently_buffered(TMPFS, ("tmpfs", shm))
            }
            _ => self.not_staged(&[TMPFS], why),
        }
    }
}

/// 200 writes, each of which is to survive a power cut.
const DURABLE: &[(&str, &str)] =
    &[("bs", "4k"), ("ioengine", "psync"), ("rw", "write"), BUFFERED, ("fdatasync", "1"), ("number_ios", "200")];

fn durable_text(record: &RunRecord) -> String {
    format!("{} durable writes a second, no error", units::format_count(stage::naive_iops(record)))
}

/// A thread that writes a file of its own with direct I/O, until dropped.
struct Neighbour {
    stop: Arc<AtomicBool>,
    /// Bytes written so far.
    written: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    fn move_in(at: &Path) -> std::io::Result<Self> {
        let file = nameless(File::open(at)?, OFlags::DIRECT)?;
        let block = AlignedBuffer::new(64 << 10, 4096).map_err(std::io::Error::other)?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let written = Arc::new(AtomicU64::new(0));
        let so_far = Arc::clone(&written);
        let thread = std::thread::Builder::new().name("neighbour".to_owned()).spawn(move || {
            for index in 0u64.. {
                if is_over.load(Relaxed) || file.write_all_at(&block, index % 64 * block.len() as u64).is_err() {
                    return;
                }
                so_far.fetch_add(block.len() as u64, Relaxed);
            }
        })?;
        Ok(Self { stop, written, thread: Some(thread) })
    }

    fn bytes_written(&self) -> u64 {
        self.written.load(Relaxed)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
