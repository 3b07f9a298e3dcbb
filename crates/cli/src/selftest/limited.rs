//! A control group that limits the disk: this process enters it, and leaves it when the guard is dropped.
//!
//! Needs root and control groups of version 1 (`blkio`): those of version 2 forbid a process in a group that divides its
//! resources among others. A shell that waits for the end of a pipe removes the group if this process is killed.

use super::rows::Row;
use super::stage::{self, findings_of, iops_text, waited_text};
use super::{READS, REQUIRE, SHORT, Selftest, first_disk, naming};
use crate::failure::Failure;
use std::fs;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trueio_model::{RunRecord, units};

pub(super) const LIMITED: &str = "a control group limits the disk to 256 KiB/s";
pub(super) const LIFTED: &str = "a control group's limit of 256 KiB/s that is lifted in the middle";
pub(super) const SET: &str = "a control group's limit of 256 KiB/s that is set and lifted while the job runs";
pub(super) const BURSTS: &str = "a control group's limit of 512 KiB/s that delays each of a few large reads";
/// The false results.
const CASES: &[&str] = &[LIMITED, LIFTED, SET, BURSTS];
const UNLIMITED: &str = "direct reads in a control group whose limit is far away";
const SET_FAR: &str = "a limit that is far away, set and lifted while the job runs";
const UNDELAYED: &str = "the same large reads in a control group whose limit is far away";

/// Limits of the rows, in bytes per second.
const LIMIT: u64 = 256 << 10;
const LIMIT_OF_BURSTS: u64 = 512 << 10;
const FAR: u64 = 1 << 40;
/// Lifts the limit.
const NONE: u64 = 0;
/// A limit that held for less time may lie between two readings, of which there are five a second.
const LIMITED_MIN: Duration = Duration::from_millis(300);
/// Beside a part of the disk that is longer, half a second is not ten times as long.
const SLOW_READ_NS: f64 = 40e6;

/// The jobs run before other programs, so that what they wait for is the limit; for root only, as the limit is.
const FIRST: (&str, &str) = ("nice", "-20");
/// Large enough that a disk which takes 30 ms for a read, as a loop device beside busy processors does, goes beyond the limit without it.
const READ_16K: (&str, &str) = ("bs", "16k");

const ROOT: &str = "/sys/fs/cgroup/blkio";
/// Removes the group `$1` once its input ends; the kernel releases a group shortly after its last process.
const REMOVE: &str =
    "read -r _; i=0; while [ -d \"$1\" ] && ! rmdir \"$1\" && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done";

/// This process in a control group that limits reads of a disk, until dropped.
struct LimitedGroup {
    path: PathBuf,
    /// The group that this process was in.
    home: PathBuf,
    remover: Child,
    /// The limited device (`7:0`).
    number: String,
}

impl LimitedGroup {
    /// Enters a new group that limits reads of the device `number` (`7:0`).
    fn enter(number: String, bytes_per_s: u64) -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let is_blkio = |line: &&str| line.split(':').nth(1).is_some_and(|all| all.split(',').any(|one| one == "blkio"));
        let missing = || io::Error::other("no control group of version 1 for blkio");
        let own = own.lines().find(is_blkio).and_then(|line| line.splitn(3, ':').nth(2)).ok_or_else(missing)?;
        let home = Path::new(ROOT).join(own.trim_start_matches('/'));
        let path = Path::new(ROOT).join(format!("trueio-selftest-{}", std::process::id()));
        fs::create_dir(&path)?;
        let mut remover = Command::new("sh");
        remover.args(["-c", REMOVE, "sh"]).arg(&path).stdin(Stdio::piped()).stderr(Stdio::null());
        let remover = remover.spawn().inspect_err(|_| drop(fs::remove_dir(&path)))?;
        let group = Self { path, home, remover, number };
        group.set(bytes_per_s)?;
        fs::write(group.path.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(group)
    }

    /// Sets another limit.
    fn set(&self, bytes_per_s: u64) -> io::Result<()> {
        self.setter(bytes_per_s)()
    }

    /// Sets other limits in a thread, from when the job `lifted` reads. Each step is a pause in milliseconds and the limit that follows it.
    fn set_meanwhile(&self, steps: &[(u64, u64)]) -> io::Result<()> {
        let steps: Vec<_> = steps.iter().map(|(ms, bytes_per_s)| (*ms, self.setter(*bytes_per_s))).collect();
        let body = move || {
            for (ms, set) in steps {
                std::thread::sleep(Duration::from_millis(ms));
                // Without effect, the row is missed.
                let _ = set();
            }
        };
        stage::once_read("selftest-lifted", 1, body)
    }

    fn setter(&self, bytes_per_s: u64) -> impl Fn() -> io::Result<()> + Send + 'static {
        let (path, line) = (self.path.join("blkio.throttle.read_bps_device"), format!("{} {bytes_per_s}", self.number));
        move || fs::write(&path, &line)
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}

/// Returns why a read that the limit delays by half a second is not mostly that delay: the disk's own part is long, too.
fn slow_disk(record: &RunRecord) -> Option<String> {
    let disk_ns = stage::disk_read_ns(record).filter(|ns| *ns >= SLOW_READ_NS)?;
    Some(format!("the disk was too slow: it took {} for a read", units::format_duration_ns(disk_ns as u64)))
}

/// Returns what was found about waits for a processor.
fn waits_of(record: &RunRecord) -> Option<String> {
    let waited = findings_of(record).into_iter().find(|finding| finding.by == "processor_wait");
    waited.map(|finding| finding.sentence)
}

impl Selftest {
    /// Stages limits on the loop device under `at`.
    pub(super) fn limited(&mut self, at: &Path) -> Result<(), Failure> {
        let Some(disk) = first_disk(at) else {
            return self.not_staged(CASES, "no disk is visible under the filesystem");
        };
        let (major, minor) = disk.device_number;
        let group = match LimitedGroup::enter(format!("{major}:{minor}"), LIMIT) {
            Ok(group) => group,
            Err(error) => return self.not_staged(CASES, &format!("no control group with a limit: {error}")),
        };
        let reads: &[&[(&str, &str)]] = &[SHORT, &[READS, REQUIRE]];
        let row = |record: &RunRecord| {
            let rate = stage::bytes_a_second(record);
            let why_not = waited_text(record).filter(|_| rate < LIMIT / 2).map(|waited| {
                format!("{waited}, and the group read only {}/s of its limit", units::format_bytes(rate))
            });
            Row::false_result(LIMITED, iops_text(record), findings_of(record), &[&["io_limits"]]).unless(why_not)
        };
        self.job(false, LIMITED, ("limited", at), reads, None, row)?;
        self.lifted(&group, at)?;
        self.bursts(&group, at)?;
        // The group's limit is far away now.
        self.correct(UNLIMITED, ("limited", at), reads, &["io_limits"])
    }

    /// Limits that change while the job runs.
    fn lifted(&mut self, group: &LimitedGroup, at: &Path) -> Result<(), Failure> {
        let long = |runtime| [SHORT, &[READS, REQUIRE, FIRST, READ_16K, ("runtime", runtime)]].concat();
        let cases: [(_, &[(u64, u64)]); 2] = [(LIFTED, &[(500, NONE)]), (SET, &[(200, LIMIT), (700, NONE)])];
        for (name, steps) in cases {
            let set = |_: &File| group.set_meanwhile(steps);
            let row = |record: &RunRecord| {
                // With the time of the limit, or, beside a thread of the checks that waited, with the share of time.
                let named = naming(findings_of(record), "io_limits", "; its processes reached");
                let rate = stage::bytes_a_second(record);
                let is_slow = (rate < 2 * LIMIT).then(|| {
                    format!(
                        "the disk was too slow: without the limit, too, the group read {}/s",
                        units::format_bytes(rate)
                    )
                });
                // The thread that sets and lifts it waits for a processor, too.
                let limited = stage::slow_time(record, 2 * LIMIT);
                let is_late = (limited < LIMITED_MIN)
                    .then(|| format!("the limit held for {} ms of the run only", limited.as_millis()));
                // A worker that waits for its processor does not reach the limit.
                let why_not = is_slow.or(is_late).or_else(|| waits_of(record));
                Row::false_result(name, iops_text(record), named, &[&["io_limits"]]).unless(why_not)
            };
            self.job(false, name, ("lifted", at), &[&long("1500ms")], Some(&set), row)?;
        }
        if !self.continues() {
            return Ok(());
        }
        let set = |_: &File| group.set_meanwhile(&[(100, FAR), (400, NONE)]);
        let row = |record: &RunRecord| Row::correct(SET_FAR, iops_text(record), &findings_of(record), &["io_limits"]);
        self.job(true, SET_FAR, ("lifted", at), &[&long("800ms")], Some(&set), row)
    }

    /// A read waits for half a second; the pause between two leaves the rate at 40 % of the limit.
    fn bursts(&mut self, group: &LimitedGroup, at: &Path) -> Result<(), Failure> {
        let few = [
            READS,
            REQUIRE,
            FIRST,
            ("bs", "256k"),
            ("ioengine", "psync"),
            ("number_ios", "2"),
            ("thinktime", "1500ms"),
            ("thinktime_blocks", "1"),
        ];
        let row = |record: &RunRecord| {
            // Waits for a processor delay a read, too.
            let why_not = slow_disk(record).or_else(|| waits_of(record));
            Row::false_result(BURSTS, iops_text(record), findings_of(record), &[&["io_limits"]]).unless(why_not)
        };
        match group.set(LIMIT_OF_BURSTS) {
            Ok(()) => self.job(false, BURSTS, ("bursts", at), &[&few], None, row)?,
            Err(error) => self.not_staged(&[BURSTS], &error.to_string())?,
        }
        match group.set(FAR) {
            Ok(()) => self.correct(UNDELAYED, ("bursts", at), &[&few], &["io_limits"]),
            Err(error) => self.add(Row::not_staged(true, UNDELAYED, &error.to_string())),
        }
    }
}
