//! Runs a job in the same way as any other: specification, plan, run, verdict; and modifies its file first if
//! the false result needs it.

use super::rows::Finding;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_job::Machine;
use trueio_model::{JobSpec, OpKind, OpRecord, Origin, Outcome, PhaseRecord, Plan, RunRecord, SeriesRow, units};
use trueio_run::machine::MachineFacts;
use trueio_run::{Event, Observer, Reporting, Request, Targets};

/// Measured time of a job with a runtime.
pub(super) const RUNTIME: &str = "300ms";

/// The outcome of a job.
pub(super) enum Staged {
    /// Refused while planning: the rule and its sentence.
    Refused(Finding),
    /// Completed: its record.
    Ran(Box<RunRecord>),
}

/// Modifies a job's file after it is created and before it is measured.
pub(super) type Tamper<'a> = &'a dyn Fn(&File) -> std::io::Result<()>;

/// The prerequisites of staging.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) stop: &'static AtomicBool,
}

impl Stage {
    /// Runs a job with these options on a separate file in `directory`.
    pub(super) fn spec(&self, name: &str, directory: &Path, options: &[(&str, &str)]) -> JobSpec {
        let preset = || Origin::Preset { name: "selftest".to_owned() };
        let mut spec = JobSpec::new(format!("selftest-{name}"));
        spec.set("directory", directory.to_string_lossy(), preset());
        spec.set("size", "16m", preset());
        for (option, text) in options {
            spec.set(option, *text, preset());
        }
        spec
    }

    /// Plans the job.
    pub(super) fn plan(&self, spec: &JobSpec) -> Result<Plan, Finding> {
        trueio_job::plan(std::slice::from_ref(spec), &MachineFacts::probing(), &self.machine).map_err(|refusal| {
            Finding::new("refused while planning", refusal.rule.name(), format!("{}.", refusal.rule))
        })
    }

    /// Plans and runs the job.
    pub(super) fn run(
        &self,
        name: &str,
        directory: &Path,
        options: &[(&str, &str)],
        tamper: Option<Tamper<'_>>,
    ) -> Staged {
        let spec = self.spec(name, directory, options);
        let plan = match self.plan(&spec) {
            Ok(plan) => plan,
            Err(finding) => return Staged::Refused(finding),
        };
        let mut tampering = Tampering { name: format!("trueio-{}-0.dat", spec.name), tamper, error: None };
        let request = Request {
            kind: "selftest".to_owned(),
            command: crate::flags::as_typed(),
            spec: vec![spec],
            plan,
            targets: Targets::default(),
            has_evidence: true,
            reporting: Reporting::default(),
        };
        let mut record = trueio_run::run(request, self.stop, &mut tampering);
        if let Some(error) = tampering.error {
            record.outcome = Outcome::Failed { reason: format!("the false result could not be staged: {error}") };
            record.phases.clear();
        }
        Staged::Ran(Box::new(record))
    }
}

/// Modifies the file when the phase begins: the file is filled then, and observation has not started.
struct Tampering<'a> {
    name: String,
    tamper: Option<Tamper<'a>>,
    error: Option<std::io::Error>,
}

impl Observer for Tampering<'_> {
    fn notify(&mut self, event: Event<'_>) {
        let (Some(tamper), Event::PhaseBegins { .. }) = (self.tamper, event) else { return };
        self.error = descriptor_of(&self.name).and_then(|file| tamper(&file)).err();
    }
}

/// Returns the open file of this process that had this name before it was renamed (`.NAME.removed-…`) and unlinked.
fn descriptor_of(name: &str) -> std::io::Result<File> {
    let is_wanted = |target: &Path| {
        let last = target.file_name().map_or_else(String::new, |last| last.to_string_lossy().into_owned());
        let last = last.strip_suffix(" (deleted)").unwrap_or_default();
        last == name || last.starts_with(&format!(".{name}.removed-"))
    };
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|target| is_wanted(&target)) {
            return File::options().read(true).write(true).open(path);
        }
    }
    Err(std::io::Error::other(format!("the job's file `{name}` is not open")))
}

/// Deallocates all space: the file becomes one hole.
pub(super) fn punch(file: &File) -> std::io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    allocate(file.as_raw_fd(), mode, file.metadata()?.len())?;
    file.sync_all()
}

/// What a job reads before a hole is punched.
pub(super) const READ_BYTES: u64 = 256 << 10;
/// A file that is not read until then stays as it is.
const READ_WAIT: Duration = Duration::from_secs(20);

/// Deallocates all space once the job of this name reads; `is_punched` is set afterwards if it still does.
pub(super) fn punch_while_read(
    job: &'static str,
    is_punched: &Arc<AtomicBool>,
) -> impl Fn(&File) -> std::io::Result<()> {
    let is_punched = Arc::clone(is_punched);
    move |file| {
        let file = file.try_clone()?;
        is_punched.store(false, Relaxed);
        let is_punched = Arc::clone(&is_punched);
        // The worker's thread ends with its job.
        let then = move || {
            let is_done = punch(&file).is_ok() && worker_read_bytes(std::process::id(), job) > 0;
            is_punched.store(is_done, Relaxed);
        };
        once_read(job, READ_BYTES, then)
    }
}

/// Calls `then` in a thread once the workers of this process's job of this name fetched that many bytes from a disk. Samples of the
/// content, which others fetch before the measured part, do not count.
pub(super) fn once_read(job: &'static str, bytes: u64, then: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let wait = move || {
        let deadline = Instant::now() + READ_WAIT;
        while worker_read_bytes(std::process::id(), job) < bytes && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        then();
    };
    std::thread::Builder::new().name("once-read".to_owned()).spawn(wait).map(drop)
}

/// Returns what the workers of a job fetched from disks so far: the threads of a process that have the job's name.
pub(super) fn worker_read_bytes(process: u32, job: &str) -> u64 {
    // The kernel cuts names to 15 bytes.
    let name = &job[..job.len().min(15)];
    let read_bytes = |path: PathBuf| {
        let is_worker = std::fs::read_to_string(path.join("comm")).ok()?.trim_end() == name;
        let io = std::fs::read_to_string(path.join("io")).ok().filter(|_| is_worker)?;
        io.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse::<u64>().ok())
    };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| read_bytes(thread.path())).sum()
}

/// Deallocates the content and keeps the space: preallocated and never written.
pub(super) fn unwrite(file: &File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    punch(file)?;
    allocate(file.as_raw_fd(), 0, length)?;
    file.sync_all()
}

/// Overwrites the file with zeros, the content of a disk that was never written or was trimmed.
pub(super) fn blank(file: &File) -> std::io::Result<()> {
    let zeros = vec![0u8; 1 << 20];
    let mut offset = 0;
    let length = file.metadata()?.len();
    while offset < length {
        let part = zeros.len().min((length - offset) as usize);
        file.write_all_at(&zeros[..part], offset)?;
        offset += part as u64;
    }
    file.sync_all()?;
    // The written zeros must not be read from memory afterwards.
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Reads the whole file, so that it is cached.
pub(super) fn warm(file: &File) -> std::io::Result<()> {
    let mut file = file;
    std::io::copy(&mut file, &mut std::io::sink()).map(drop)
}

/// Truncates the file to a quarter.
pub(super) fn cut(file: &File) -> std::io::Result<()> {
    file.set_len(file.metadata()?.len() / 4)
}

fn allocate(fd: RawFd, mode: libc::c_int, length: u64) -> std::io::Result<()> {
    // SAFETY: a plain call on an open descriptor.
    match unsafe { libc::fallocate(fd, mode, 0, length as libc::off_t) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Returns every finding in a record that is not `passed`, as far as it changes the verdict.
pub(super) fn findings_of(record: &RunRecord) -> Vec<Finding> {
    let mut findings: Vec<Finding> = record.phases.iter().flat_map(findings_of_phase).collect();
    if let Outcome::Failed { reason } = &record.outcome {
        findings.push(Finding::new("run failed", "outcome", reason.clone()));
    }
    findings
}

fn findings_of_phase(phase: &PhaseRecord) -> Vec<Finding> {
    phase
        .checks
        .iter()
        .filter(|check| check.objects())
        .map(|check| Finding::new(check.outcome.word(), &check.name, check.sentence.clone()))
        .collect()
}

/// Returns the measured operation; sync calls are counted separately.
pub(super) fn measured_op(record: &RunRecord) -> Option<&OpRecord> {
    let ops = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops);
    ops.filter(|op| op.op != OpKind::Sync).max_by_key(|op| op.io_count)
}

/// Returns I/Os per second that returned, failed or not: the figure of a tool that does not check results.
pub(super) fn naive_iops(record: &RunRecord) -> u64 {
    let Some(phase) = record.phases.first() else { return 0 };
    let Some(op) = measured_op(record) else { return 0 };
    let count = op.io_count + op.error_count;
    rounded(count as f64 * 1e9 / phase.elapsed_ns.max(1) as f64)
}

/// Returns the bytes per second that the measured operation transferred.
pub(super) fn bytes_a_second(record: &RunRecord) -> u64 {
    let elapsed_ns = record.phases.first().map_or(1, |phase| phase.elapsed_ns.max(1));
    let bytes = measured_op(record).map_or(0, |op| op.byte_count);
    (u128::from(bytes) * 1_000_000_000 / u128::from(elapsed_ns)) as u64
}

/// Returns the time in whose intervals the only job read less than this per second.
pub(super) fn slow_time(record: &RunRecord, bytes_per_s: u64) -> Duration {
    let rows = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.series);
    let is_slow = |row: &&SeriesRow| {
        u128::from(row.read_bytes) * 1_000_000_000 < u128::from(bytes_per_s) * u128::from(row.span_ns)
    };
    Duration::from_nanos(rows.filter(is_slow).map(|row| row.span_ns).sum())
}

/// Minimum share of the measured time for which the workers waited, so that the effect of a false result may be missing for
/// want of a processor.
const WAITED_SHARE_MIN: f64 = 0.5;

/// Returns `the workers waited for a processor in 98 % of the measured time`, if they did so for at least half of it.
pub(super) fn waited_text(record: &RunRecord) -> Option<String> {
    let usages = record.phases.iter().flat_map(|phase| &phase.jobs).map(|job| &job.threads);
    let (wait_ns, elapsed_ns) = usages.fold((0, 0), |(wait_ns, elapsed_ns), usage| {
        (wait_ns + usage.waiting.map_or(0, |waiting| waiting.wait_ns), elapsed_ns + usage.elapsed_ns)
    });
    let share = (wait_ns as f64 / elapsed_ns.max(1) as f64).min(1.0);
    let percent = (share * 100.0).round();
    (share >= WAITED_SHARE_MIN)
        .then(|| format!("the workers waited for a processor in {percent:.0} % of the measured time"))
}

/// Returns the mean time that the first disk took for a read, in nanoseconds; `None` if it read nothing.
pub(super) fn disk_read_ns(record: &RunRecord) -> Option<f64> {
    let disk = record.phases.first()?.devices.first()?.measured;
    (disk.read_count > 0).then(|| disk.read_ms as f64 * 1e6 / disk.read_count as f64)
}

/// Rounds to three significant digits; more would suggest precision.
fn rounded(value: f64) -> u64 {
    let value = value.max(0.0);
    if value < 1000.0 {
        return value.round() as u64;
    }
    let step = 10f64.powi(value.log10().floor() as i32 - 2);
    ((value / step).round() * step) as u64
}

/// Formats `103,000 IOPS, no error`.
pub(super) fn iops_text(record: &RunRecord) -> String {
    format!("{} IOPS, no error", units::format_count(naive_iops(record)))
}

/// Returns the latency that this many of 1,000 I/Os do not exceed, however small the sample is.
pub(super) fn naive_quantile(op: &OpRecord, per_mille: u64) -> String {
    let histogram = &op.latency.total;
    let rank = (histogram.count() * per_mille).div_ceil(1000).max(1);
    histogram.value_at_rank(rank).map_or_else(|| "–".to_owned(), units::format_duration_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        for (value, digits) in [(0.0, 0), (999.4, 999), (1_234.0, 1_230), (1_903_477.0, 1_900_000), (f64::NAN, 0)] {
            assert_eq!(rounded(value), digits, "{value}");
        }
    }
}
