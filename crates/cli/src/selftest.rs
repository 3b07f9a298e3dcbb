//! `trueio selftest`: false results of storage benchmarks, staged on this machine and detected by name.
//!
//! A row is a false result: the figure that a tool without these checks would report, and the findings of
//! trueio. The jobs are small and real, and use the same code as all jobs: specification, plan, run, verdict.
//! Correct runs in the same places must not be flagged, because a check that always flags would detect every
//! false result, too.
//!
//! Cannot stage: throttling by a disk, a hypervisor's cache, a disk with a wrong cache declaration (only a power cut
//! shows it), blocks that a thin-provisioned device never stored. `docs/dev/staged-results.md` lists what is
//! detectable.

mod busy;
mod carried;
mod delayed;
mod limited;
mod misaligned;
mod own_run;
mod paced;
mod rows;
mod scratch;
mod stage;
mod stopped;

use crate::failure::Failure;
use crate::output;
use busy::BusyProcessor;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use rows::{Count, Ending, Finding, Row};
use rustix::fs::OFlags;
use scratch::{Disk, Mounted, Scratch, nameless};
use stage::{RUNTIME, Stage, Staged, Tamper, findings_of, iops_text, measured_op, naive_quantile, waited_text};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use trueio_direct::AlignedBuffer;
use trueio_job::Target;
use trueio_model::{DirectSupport, DiskFacts, FilesystemKind, RunRecord, TargetKind, units};
use trueio_report::message;
use trueio_run::machine::{look, machine};
use trueio_run::{signal_received, watch_signals};

const MIB: u64 = 1 << 20;
/// Length of the idle baseline before each job, in nanoseconds.
const IDLE_NS: u64 = 100_000_000;
/// How often a false result is staged whose effect does not occur, as beside programs that keep the machine busy.
const TRIES: u32 = 3;
/// Minimum that the other writer must write while a job runs, so that the check can detect it.
const NEIGHBOUR_BYTES_MIN: u64 = 16 * MIB;

/// A job with one I/O at a time, 4 KiB at random, for a short time.
const SHORT: &[(&str, &str)] = &[("bs", "4k"), ("ioengine", "psync"), ("runtime", RUNTIME), ("time_based", "true")];
/// Operations, with direct I/O or without.
const REQUIRE: (&str, &str) = ("direct", "require");
const PREFER: (&str, &str) = ("direct", "prefer");
const BUFFERED: (&str, &str) = ("direct", "off");
const READS: (&str, &str) = ("rw", "randread");
const WRITES: (&str, &str) = ("rw", "randwrite");

/// Checks that must not flag a correct run on a disk that other processes use, too.
const OUR_CHECKS: &[&str] = &[
    "call_results",
    "direct_granted",
    "process_read_bytes",
    "page_cache",
    "holes",
    "content",
    "latency_floor",
    "stops",
];
/// Checks that must not flag a correct run on a private disk: all except that of the processor, which other
/// processes use whatever the disk.
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
    "stops",
];

/// One-line description of `trueio selftest`.
pub(crate) const ABOUT: &str = "Stage false results here, and show that each is detected";

/// The command line of `trueio selftest`.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .long_about(
            "Stages causes of false results in scratch files and, as root, on loop devices that only \
             this process mounts. Prints the figure that a tool without checks would report, and the findings of trueio. \
             Takes about 30 seconds, and leaves nothing on the disk even if it is killed. Exit code 1 if a false result was missed or a correct run was flagged.",
        )
        .arg(
            Arg::new("directory")
                .value_name("DIRECTORY")
                .help("Directory of the scratch files")
                .default_value(".")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(crate::flags::json("Print JSON instead of text, or write it to FILE"))
}

/// `trueio selftest`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let directory = matches.get_one::<PathBuf>("directory").expect("it has a default");
    let is_json = output::is_json_to_stdout(matches);
    output::check(matches, std::iter::empty())?;
    let directory = std::fs::canonicalize(directory)
        .map_err(|e| Failure::refused(format!("`{}` cannot be used\n  because: {e}", directory.display())))?;
    let facts = match look(&directory.to_string_lossy()) {
        Target::Present(facts) if facts.kind == TargetKind::Directory => facts,
        _ => return Err(Failure::refused(format!("`{}` cannot be examined", directory.display()))),
    };
    rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK).map_err(|e| {
        let error = std::io::Error::from(e);
        Failure::refused(format!("`{}` cannot be written to\n  because: {error}", directory.display()))
    })?;
    let stage = Stage { machine: machine(IDLE_NS), stop: watch_signals() };
    let width = output::style_of(&std::io::stdout()).width;
    let mut selftest = Selftest { stage, rows: Vec::new(), width, prints: !is_json };

    // On the directory's own disk, while it is accessible: the scratch tmpfs covers it.
    let why_no_disk = match (facts.direct.support, facts.disks.is_empty()) {
        (DirectSupport::Direct, false) => None,
        (DirectSupport::Direct, true) => Some("no disk is visible under the directory"),
        _ => Some("the directory's filesystem has no direct I/O"),
    };
    if why_no_disk.is_none() {
        selftest.on_a_disk(&directory)?;
    }
    if selftest.continues() {
        match Scratch::new(&directory) {
            Ok(scratch) => selftest.in_scratch(&scratch, why_no_disk.is_some())?,
            Err(why) => selftest.without_scratch(&why, why_no_disk)?,
        }
    }
    if !selftest.continues() {
        message!("interrupted by {}: not all false results were staged", signal_received().unwrap_or("request"));
    }
    let count = Count::of(&selftest.rows);
    let document = serde_json::json!({
        "directory": directory.display().to_string(),
        "rows": selftest.rows.iter().map(Row::json).collect::<Vec<_>>(),
        "count": count.json(),
        "is_complete": selftest.continues(),
    });
    if !output::print_json(matches, || format!("{document:#}\n"))? {
        output::print_all(&format!("\n{}", count.text()))?;
    }
    Ok(if count.is_good() && selftest.continues() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// False results that need a disk with direct I/O and no privileges.
const DISK_CASES: &[&str] = &[
    MISALIGNED,
    SPARSE,
    PUNCHED,
    UNWRITTEN,
    BLANK,
    CUT,
    CACHED,
    MAPPED,
    DEPTH,
    PACE,
    STARVED,
    stopped::ONE,
    stopped::SHORT,
    stopped::SIX,
    stopped::EACH_SECOND,
    FALLS,
    THROTTLED,
    HUNG,
    paced::STALLED,
    FEW,
    ZEROS,
];
/// False results that need private filesystems, which only root can mount.
const SCRATCH_CASES: &[&str] = &[
    delayed::DELAYED,
    UNFLUSHED,
    UNDECLARED,
    SHORT_QUEUE,
    SHORT_TAGS,
    limited::LIMITED,
    limited::LIFTED,
    limited::SET,
    limited::BURSTS,
    NEIGHBOUR,
    JOURNAL,
    NO_BARRIER,
    BTRFS,
    MEMORY_LOOP,
];
/// Those of them on ext4 without special options: the first ones.
const PLAIN_CASES: &[&str] = SCRATCH_CASES.split_at(10).0;

const MISALIGNED: &str = misaligned::NAME;
const SPARSE: &str = "a sparse file, read with direct I/O";
const PUNCHED: &str = "a hole is punched into the file while it is read";
const UNWRITTEN: &str = "preallocated space that was never written, read with direct I/O";
const BLANK: &str = "blocks that contain only zeros, as on a disk that was never written";
const CUT: &str = "the file is shorter than the job: reads beyond its end return nothing";
const CACHED: &str = "the file was cached before: buffered reads";
const MAPPED: &str = "the file was cached before: reads of a mapping";
const DEPTH: &str = "a queue of 32 that is never that deep: buffered reads through io_uring";
const PACE: &str = "a rate that the disk cannot sustain, with latencies from the submission";
const STARVED: &str = "the tool waits for its processor, which other programs use";
const FEW: &str = "p99.9 of 50 I/Os";
const ZEROS: &str = "zeros are written: disks and filesystems need not store them";
const UNFLUSHED: &str = "buffered writes without a flush";
const UNDECLARED: &str = "fdatasync on a loop device that declares no write cache: the disk below gets no flush";
const NEIGHBOUR: &str = "another program writes to the same disk";
const JOURNAL: &str = "ext4 with data=journal accepts O_DIRECT and buffers";
const NO_BARRIER: &str = "fdatasync that never becomes a flush: ext4 mounted with nobarrier";
const BTRFS: &str = "btrfs accepts O_DIRECT and buffers the writes";
const MEMORY_LOOP: &str = "the disk is a loop device on tmpfs";
const FALLS: &str = "a write cache that is full after 1.5 s (a simulated disk)";
const THROTTLED: &str = "a throttle for 1 s in the middle (a simulated disk)";
const HUNG: &str = "one I/O that hangs until the end (a simulated disk)";
const SHORT_QUEUE: &str = "a queue of 32 on a disk that holds 4 requests (nr_requests)";
const SHORT_TAGS: &str = "a queue of 32 on a disk whose I/O scheduler holds 4 requests";
const LONG_QUEUE: &str = "the same queue on the disk with its usual nr_requests";
const TMPFS: &str = "tmpfs accepts O_DIRECT although there is no disk";

/// The rows, and the state needed to produce them.
struct Selftest {
    stage: Stage,
    rows: Vec<Row>,
    width: usize,
    prints: bool,
}

impl Selftest {
    fn continues(&self) -> bool {
        !self.stage.stop.load(Relaxed)
    }

    /// Adds a row, unless the selftest was interrupted: then the row proves nothing.
    fn add(&mut self, row: Row) -> Result<(), Failure> {
        if !self.continues() {
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

    /// Stages a row until its effect occurs, at most [`TRIES`] times.
    fn stage(&mut self, once: impl Fn(&Stage) -> Row) -> Result<(), Failure> {
        for last in (0..TRIES).rev() {
            if !self.continues() {
                return Ok(());
            }
            let row = once(&self.stage);
            if last == 0 || row.ending != Ending::NotStaged {
                return self.add(row);
            }
        }
        Ok(())
    }

    /// Runs a job and builds a row from its record.
    fn job(
        &mut self,
        is_correct: bool,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        tamper: Option<Tamper<'_>>,
        row: impl Fn(&RunRecord) -> Row,
    ) -> Result<(), Failure> {
        let options = options.concat();
        self.stage(|stage| row_of(is_correct, name, stage.run(place.0, place.1, &options, tamper), &row))
    }

    /// Stages a false result whose figure is a rate.
    fn false_result(
        &mut self,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        tamper: Option<Tamper<'_>>,
        meant: &[&str],
    ) -> Result<(), Failure> {
        let row = |record: &RunRecord| Row::false_result(name, iops_text(record), findings_of(record), &[meant]);
        self.job(false, name, place, options, tamper, row)
    }

    fn correct(
        &mut self,
        name: &str,
        place: (&str, &Path),
        options: &[&[(&str, &str)]],
        silent: &[&str],
    ) -> Result<(), Failure> {
        let row = |record: &RunRecord| Row::correct(name, iops_text(record), &findings_of(record), silent);
        self.job(true, name, place, options, None, row)
    }

    /// Stages a filesystem that accepts `O_DIRECT` and buffers: required direct I/O is refused, preferred
    /// direct I/O is flagged.
    fn silently_buffered(&mut self, name: &str, place: (&str, &Path)) -> Result<(), Failure> {
        let refused = match self.stage.run(place.0, place.1, &[SHORT, &[WRITES, REQUIRE]].concat(), None) {
            Staged::Refused(finding) => vec![finding],
            Staged::Ran(record) => findings_of(&record),
        };
        let row = |record: &RunRecord| {
            let mut findings = refused.clone();
            findings.extend(findings_of(record));
            Row::false_result(name, iops_text(record), findings, &[&["direct_impossible"], &["direct_granted"]])
        };
        self.job(false, name, place, &[SHORT, &[WRITES, PREFER]], None, row)
    }

    /// Stages the rows that need a disk and no privileges.
    fn on_a_disk(&mut self, at: &Path) -> Result<(), Failure> {
        self.correct(
            "direct reads of a file that is stored on the disk",
            ("reads", at),
            &[SHORT, &[READS, REQUIRE]],
            OUR_CHECKS,
        )?;
        let writes = "direct writes of random content";
        self.correct(writes, ("writes", at), &[SHORT, &[WRITES, REQUIRE]], OUR_CHECKS)?;
        if self.continues() {
            let row = misaligned::stage(&self.stage, at);
            self.add(row)?;
        }
        let direct_reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE]];
        self.false_result(SPARSE, ("sparse", at), direct_reads, Some(&stage::punch), &["holes"])?;
        let is_punched = Arc::new(AtomicBool::new(false));
        let row = |record: &RunRecord| {
            // A disk that is busy may serve fewer reads in this time, and beside busy processors the hole may come after the last one.
            let is_late = !is_punched.load(Relaxed)
                || measured_op(record).is_none_or(|op| op.byte_count < stage::READ_BYTES)
                || waited_text(record).is_some();
            let why_not = is_late.then(|| "the machine was too slow for the hole to be punched in time".to_owned());
            Row::false_result(PUNCHED, iops_text(record), findings_of(record), &[&["holes"]]).unless(why_not)
        };
        let punch = stage::punch_while_read("selftest-punched", &is_punched);
        let long_reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE, ("runtime", "800ms")]];
        self.job(false, PUNCHED, ("punched", at), long_reads, Some(&punch), row)?;
        self.false_result(UNWRITTEN, ("unwritten", at), direct_reads, Some(&stage::unwrite), &["holes"])?;
        self.false_result(BLANK, ("blank", at), direct_reads, Some(&stage::blank), &["zero_blocks"])?;
        self.false_result(
            CUT,
            ("cut", at),
            &[SHORT, &[READS, REQUIRE, ("continue_on_error", "all")]],
            Some(&stage::cut),
            &["call_results"],
        )?;
        let cached: &[(&str, &str)] = &[READS, BUFFERED, ("invalidate", "false")];
        let witnesses = ["block_layer_bytes", "process_read_bytes", "page_cache"];
        self.false_result(CACHED, ("cached", at), &[SHORT, cached], Some(&stage::warm), &witnesses)?;
        let mapped = [("bs", "4k"), ("ioengine", "mmap"), ("runtime", RUNTIME), ("time_based", "true")];
        self.false_result(MAPPED, ("mapped", at), &[&mapped, cached], Some(&stage::warm), &witnesses[1..])?;
        let cold = [("bs", "64k"), ("ioengine", "mmap"), ("rw", "read"), BUFFERED];
        self.correct("reads of a mapping of a file that was not cached", ("cold-map", at), &[&cold], &witnesses[1..])?;
        let cold = [("bs", "64k"), ("ioengine", "psync"), ("rw", "read"), BUFFERED];
        self.correct("buffered reads of a file that was not cached", ("cold", at), &[&cold], &witnesses[1..])?;
        let deep = [("ioengine", "io_uring"), ("iodepth", "32")];
        let row = |record: &RunRecord| {
            let unchecked = format!("{} at iodepth 32", iops_text(record));
            // A worker that loses its processor after it submitted keeps a full queue meanwhile.
            let why_not = waited_text(record).map(|waited| format!("{waited}, with its I/Os in flight"));
            Row::false_result(DEPTH, unchecked, findings_of(record), &[&["achieved_depth"]]).unless(why_not)
        };
        self.job(false, DEPTH, ("depth", at), &[SHORT, cached, &deep], Some(&stage::warm), row)?;
        // One completion is reaped at a time: otherwise a disk faster than this program's own work would
        // empty the queue.
        let one = ("iodepth_batch_complete_max", "1");
        let eight = [READS, REQUIRE, ("ioengine", "io_uring"), ("iodepth", "8"), one];
        let name = "a queue depth of 8 that is reached: direct reads through io_uring";
        self.correct(name, ("queue", at), &[SHORT, &eight], &["achieved_depth"])?;
        self.pace(at)?;
        self.starved(at)?;
        self.stopped(at)?;
        self.falls(at)?;
        self.paced_and_stalled(at)?;
        self.few(at)?;
        self.false_result(
            ZEROS,
            ("zeros", at),
            &[SHORT, &[WRITES, PREFER, ("zero_buffers", "true")]],
            None,
            &["content"],
        )
    }

    fn pace(&mut self, at: &Path) -> Result<(), Failure> {
        const RATE: &str = "10000000";
        let row = |record: &RunRecord| {
            let p99 = measured_op(record).map_or_else(String::new, |op| naive_quantile(op, 990));
            let unchecked = format!("{}, p99 {p99}", iops_text(record));
            Row::false_result(PACE, unchecked, findings_of(record), &[&["pace"]])
        };
        let rate = [READS, REQUIRE, ("rate_iops", RATE)];
        self.job(false, PACE, ("pace", at), &[SHORT, &rate], None, row)?;
        let rate = [READS, REQUIRE, ("rate_iops", "50")];
        self.correct("a rate that the disk sustains", ("kept", at), &[SHORT, &rate], &["pace"])
    }

    /// The worker shares its processor with busy threads and has the lowest priority.
    fn starved(&mut self, at: &Path) -> Result<(), Failure> {
        let Some(cpu) = self.stage.machine.cpus.first().copied() else {
            return self.not_staged(&[STARVED], "the processors of this process are unknown");
        };
        if trueio_engine::thread_usage(true).waiting.is_none() {
            return self.not_staged(&[STARVED], "the kernel does not count how long threads wait for a processor");
        }
        let busy = match BusyProcessor::start(cpu) {
            Ok(busy) => busy,
            Err(error) => return self.not_staged(&[STARVED], &format!("no busy threads: {error}")),
        };
        let pinned = cpu.to_string();
        let low = [READS, REQUIRE, ("cpus_allowed", pinned.as_str()), ("nice", "19")];
        let row = |record: &RunRecord| {
            let named = naming(findings_of(record), "processor_wait", carried::OTHERS);
            Row::false_result(STARVED, iops_text(record), named, &[&["processor_wait"]])
        };
        self.job(false, STARVED, ("starved", at), &[SHORT, &low], None, row)?;
        drop(busy);
        Ok(())
    }

    /// Courses of time, in virtual time and without a disk: the rate falls to a quarter and stays there; it falls for a second and
    /// returns; the last I/O hangs. A short stall is none of these.
    fn falls(&mut self, at: &Path) -> Result<(), Failure> {
        let model =
            |simulated| [("ioengine", "simulated"), ("simulated", simulated), ("bs", "4k"), ("size", "1g"), READS];
        let long = [("runtime", "4s"), ("time_based", "true")];
        let full = "service=100us,channels=4,slow=1500ms*4";
        self.false_result(FALLS, ("falls", at), &[&model(full), &long], None, &["steadiness"])?;
        let throttled = "service=1ms,channels=4,slow=1s*20,slow=2s*1";
        self.false_result(THROTTLED, ("throttled", at), &[&model(throttled), &long], None, &["steadiness"])?;
        let hung = "service=1ms,channels=4,stall=1500ms+2500ms";
        self.false_result(HUNG, ("hung", at), &[&model(hung), &long], None, &["steadiness"])?;
        for (name, place, text) in [
            ("the same disk with a cache that does not fill", "even", "service=100us,channels=4"),
            ("one stall of 0.2 s (a simulated disk)", "stalls", "service=1ms,channels=4,stall=1s+200ms"),
        ] {
            self.correct(name, (place, at), &[&model(text), &long], &["steadiness"])?;
        }
        Ok(())
    }

    /// Not a check: a percentile that the sample cannot support is not printed.
    fn few(&mut self, at: &Path) -> Result<(), Failure> {
        let p999 = |record: &RunRecord| {
            measured_op(record).is_some_and(|op| op.percentiles.iter().any(|given| given.percent == 99.9))
        };
        let row = |record: &RunRecord| {
            let worst = measured_op(record).map_or_else(String::new, |op| naive_quantile(op, 999));
            let mut findings = findings_of(record);
            if !p999(record) {
                let sentence = "50 I/Os do not support a p99.9: its 95 % interval has no upper end.";
                findings.push(Finding::new("not printed", "percentiles", sentence));
            }
            Row::false_result(FEW, format!("p99.9 {worst}"), findings, &[&["percentiles"]])
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
            Row::correct(name, format!("p99.9 {value}"), &findings, &["percentiles"])
        };
        let many = [("bs", "4k"), ("size", "1g"), ("ioengine", "null"), ("number_ios", "100000"), READS];
        self.job(true, name, ("many", at), &[&many], None, row)
    }

    /// Stages the rows that need private filesystems.
    fn in_scratch(&mut self, scratch: &Scratch, has_no_disk: bool) -> Result<(), Failure> {
        match scratch.filesystem("ext4", "ext4", 128 * MIB) {
            Ok(disk) => self.on_ext4(&disk, has_no_disk)?,
            Err(why) => {
                if has_no_disk {
                    self.not_staged(DISK_CASES, &why)?;
                }
                self.not_staged(&[PLAIN_CASES, &[JOURNAL, NO_BARRIER]].concat(), &why)?;
            }
        }
        if self.continues() {
            let name = "direct reads on xfs on a loop device";
            match scratch.filesystem("xfs", "xfs", 320 * MIB).and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => {
                    self.correct(name, ("xfs", &mount.path), &[SHORT, &[READS, REQUIRE]], ALL_CHECKS)?;
                }
                Err(why) => self.add(Row::not_staged(true, name, &why))?,
            }
        }
        if self.continues() {
            match scratch.filesystem("btrfs", "btrfs", 160 * MIB).and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => self.silently_buffered(BTRFS, ("btrfs", &mount.path))?,
                Err(why) => self.not_staged(&[BTRFS], &why)?,
            }
        }
        if self.continues() {
            let disk = scratch.filesystem_in_memory("memory", "ext4", 64 * MIB);
            match disk.and_then(|disk| Ok((disk.mount("")?, disk))) {
                Ok((mount, _disk)) => {
                    let reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE]];
                    self.false_result(MEMORY_LOOP, ("memory", &mount.path), reads, None, &["memory_backed"])?;
                    self.carried(&mount.path)?;
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
                    self.not_staged(DISK_CASES, &why)?;
                }
                self.not_staged(PLAIN_CASES, &why)?;
            }
        }
        if !self.continues() {
            return Ok(());
        }
        match disk.mount("data=journal") {
            Ok(mount) => self.silently_buffered(JOURNAL, ("journal", &mount.path))?,
            Err(why) => self.not_staged(&[JOURNAL], &why)?,
        }
        match disk.mount("nobarrier") {
            Ok(mount) => {
                let row = |record: &RunRecord| {
                    Row::false_result(NO_BARRIER, durable_text(record), findings_of(record), &[&["flushes"]])
                };
                self.job(false, NO_BARRIER, ("barrier", &mount.path), &[DURABLE], None, row)
            }
            Err(why) => self.not_staged(&[NO_BARRIER], &why),
        }
    }

    fn on_plain_ext4(&mut self, mount: &Mounted) -> Result<(), Failure> {
        let at = mount.path.as_path();
        self.correct("direct reads on ext4 on a loop device", ("own", at), &[SHORT, &[READS, REQUIRE]], ALL_CHECKS)?;
        self.correct("direct writes there", ("own", at), &[SHORT, &[WRITES, REQUIRE]], ALL_CHECKS)?;
        let name = "buffered writes there, each followed by fdatasync";
        let row = |record: &RunRecord| Row::correct(name, durable_text(record), &findings_of(record), ALL_CHECKS);
        self.job(true, name, ("own", at), &[DURABLE], None, row)?;
        self.delayed(at)?;
        self.undeclared(at)?;
        self.short_queue(at)?;
        let end = [("bs", "64k"), ("ioengine", "psync"), ("rw", "write"), BUFFERED, ("end_fsync", "true")];
        let all = [ALL_CHECKS, &["working_set"]].concat();
        self.correct("buffered writes there, with one fsync at the end", ("own", at), &[&end], &all)?;
        self.false_result(
            UNFLUSHED,
            ("unflushed", at),
            &[SHORT, &[WRITES, BUFFERED]],
            None,
            &["block_layer_bytes", "page_cache"],
        )?;
        if !self.continues() {
            return Ok(());
        }
        self.limited(at)?;
        match Neighbour::move_in(at) {
            Ok(neighbour) => self.stage_neighbour(&neighbour, at),
            Err(error) => self.not_staged(&[NEIGHBOUR], &format!("no file for the other writer: {error}")),
        }
    }

    /// The disk under `at` holds 4 requests, or its I/O scheduler does. Large reads, so that a disk that holds more keeps the queue, too.
    fn short_queue(&mut self, at: &Path) -> Result<(), Failure> {
        let Some(disk) = first_disk(at) else {
            return self.not_staged(&[SHORT_QUEUE, SHORT_TAGS], "no disk is visible under the filesystem");
        };
        let deep = [READS, REQUIRE, ("bs", "64k"), ("ioengine", "io_uring"), ("iodepth", "32")];
        let options: &[&[(&str, &str)]] = &[SHORT, &deep];
        let set = |file: &str, value: &str| {
            let path = format!("/sys/block/{}/queue/{file}", disk.name);
            std::fs::write(&path, value).map_err(|error| format!("`{path}` cannot be set to {value}: {error}"))
        };
        let usual = std::fs::read_to_string(format!("/sys/block/{}/queue/nr_requests", disk.name)).unwrap_or_default();
        for (name, scheduler, words) in
            [(SHORT_QUEUE, "none", "(nr_requests: "), (SHORT_TAGS, "mq-deadline", "the tags of its scheduler: ")]
        {
            if !self.continues() {
                return Ok(());
            }
            if let Err(why) = set("scheduler", scheduler).and_then(|()| set("nr_requests", "4")) {
                self.not_staged(&[name], &why)?;
                continue;
            }
            let row = |record: &RunRecord| {
                let unchecked = format!("{} at iodepth 32", iops_text(record));
                let mut named = naming(findings_of(record), "achieved_depth", "At most 4 requests");
                named = naming(named, "achieved_depth", words);
                // As above: the queue is full while the worker waits for its processor.
                Row::false_result(name, unchecked, named, &[&["achieved_depth"]]).unless(waited_text(record))
            };
            self.job(false, name, ("queue", at), options, None, row)?;
            // Each at once: a change of the scheduler would leave the disk's own tags as they are.
            if let Err(why) = set("nr_requests", usual.trim()) {
                return self.add(Row::not_staged(true, LONG_QUEUE, &why));
            }
        }
        // The device belongs to this process alone, and ends with it.
        match set("scheduler", "none") {
            Ok(()) => self.correct(LONG_QUEUE, ("queue", at), options, &["achieved_depth"]),
            Err(why) => self.add(Row::not_staged(true, LONG_QUEUE, &why)),
        }
    }

    /// The loop device under `at` declares that it needs no flush, which is not true of the disk of its file.
    fn undeclared(&mut self, at: &Path) -> Result<(), Failure> {
        if !self.continues() {
            return Ok(());
        }
        let Some(disk) = first_disk(at) else {
            return self.not_staged(&[UNDECLARED], "no disk is visible under the filesystem");
        };
        let disk = disk.name;
        let declare = |words: &str| std::fs::write(format!("/sys/block/{disk}/queue/write_cache"), words);
        if let Err(error) = declare("write through") {
            return self.not_staged(&[UNDECLARED], &format!("the write cache of {disk} cannot be set: {error}"));
        }
        let row = |record: &RunRecord| {
            Row::false_result(UNDECLARED, durable_text(record), findings_of(record), &[&["flush_order", "flushes"]])
        };
        let staged = self.job(false, UNDECLARED, ("undeclared", at), &[DURABLE], None, row);
        // The device belongs to this process alone, and ends with it.
        let _ = declare("write back");
        staged
    }

    /// Reads while another thread writes. On a machine that is busy otherwise that thread may get no
    /// processor time while the job is measured: then nothing was staged, and it is tried again.
    fn stage_neighbour(&mut self, neighbour: &Neighbour, at: &Path) -> Result<(), Failure> {
        const TRIES: u32 = 10;
        let options = [SHORT, &[READS, REQUIRE]].concat();
        let mut wrote = 0;
        for _ in 0..TRIES {
            if !self.continues() {
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
            // The span began before the measured one, so the minimum is larger than the detectable amount.
            if wrote >= NEIGHBOUR_BYTES_MIN.max(read) {
                let meant: &[&str] = &["foreign_io", "block_layer_bytes"];
                let row =
                    |record: &RunRecord| Row::false_result(NEIGHBOUR, iops_text(record), findings_of(record), &[meant]);
                return self.add(row_of(false, NEIGHBOUR, staged, &row));
            }
        }
        let why = format!("the other writer wrote only {} while the job ran", units::format_bytes(wrote));
        self.not_staged(&[NEIGHBOUR], &why)
    }

    /// Stages the rows that remain without root.
    fn without_scratch(&mut self, why: &str, why_no_disk: Option<&str>) -> Result<(), Failure> {
        if let Some(why_no_disk) = why_no_disk {
            self.not_staged(DISK_CASES, &format!("{why_no_disk}, and {why}"))?;
        }
        self.not_staged(SCRATCH_CASES, why)?;
        let shm = Path::new("/dev/shm");
        match look("/dev/shm") {
            Target::Present(facts) if facts.filesystem.as_ref().is_some_and(|f| f.kind == FilesystemKind::Tmpfs) => {
                self.silently_buffered(TMPFS, ("tmpfs", shm))
            }
            _ => self.not_staged(&[TMPFS], why),
        }
    }
}

/// Builds the row of a job from its record; one that did not run was not staged.
fn row_of(is_correct: bool, name: &str, staged: Staged, row: &impl Fn(&RunRecord) -> Row) -> Row {
    match staged {
        Staged::Refused(finding) => Row::not_staged(is_correct, name, &finding.sentence),
        Staged::Ran(record) if record.phases.is_empty() => {
            Row::not_staged(is_correct, name, findings_of(&record).first().map_or("it did not run", |s| &s.sentence))
        }
        Staged::Ran(record) => row(&record),
    }
}

/// Returns the first disk under a directory.
fn first_disk(at: &Path) -> Option<DiskFacts> {
    match look(&at.to_string_lossy()) {
        Target::Present(facts) => facts.disks.first().cloned(),
        _ => None,
    }
}

/// Renames findings of `check` that name another cause than the staged one, so that they do not count as detection.
fn naming(mut findings: Vec<Finding>, check: &str, words: &str) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.by == check && !finding.sentence.contains(words)) {
        finding.by = format!("{check} of another cause");
    }
    findings
}

/// 200 writes, each of which must be durable.
const DURABLE: &[(&str, &str)] =
    &[("bs", "4k"), ("ioengine", "psync"), ("rw", "write"), BUFFERED, ("fdatasync", "1"), ("number_ios", "200")];

fn durable_text(record: &RunRecord) -> String {
    format!("{} durable writes a second, no error", units::format_count(stage::naive_iops(record)))
}

/// A thread that writes a separate file with direct I/O, until dropped.
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
