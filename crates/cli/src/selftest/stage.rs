//! Runs a job as any other: specification, plan, run, judgement. And spoils its file, if the lie
//! asks for that.

use super::rows::Finding;
use crate::machine::Live;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use trueio_job::Machine;
use trueio_model::{CheckOutcome, JobSpec, OpKind, OpRecord, Origin, Outcome, PhaseRecord, Plan, RunRecord, units};
use trueio_run::{Observer, Request};

/// How long a job with a runtime is measured.
pub(super) const RUNTIME: &str = "300ms";

/// What became of a job.
pub(super) enum Staged {
    /// Refused while planning: the rule and its sentence.
    Refused(Finding),
    /// Run.
    Ran(Box<RunRecord>),
}

/// Changes a job's file after it is made and before it is measured.
pub(super) type Spoiler<'a> = &'a dyn Fn(&File) -> std::io::Result<()>;

/// What staging needs.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) stop: &'static AtomicBool,
}

impl Stage {
    /// A job with these options on a file of its own in `directory`.
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

    /// Plans it.
    pub(super) fn plan(&self, spec: &JobSpec) -> Result<Plan, Finding> {
        trueio_job::plan(std::slice::from_ref(spec), &Live::asking(), &self.machine).map_err(|refusal| {
            Finding::new("refused while planning", refusal.rule.name(), format!("{}.", refusal.rule))
        })
    }

    /// Plans and runs it.
    pub(super) fn run(
        &self,
        name: &str,
        directory: &Path,
        options: &[(&str, &str)],
        spoiler: Option<Spoiler<'_>>,
    ) -> Staged {
        let spec = self.spec(name, directory, options);
        let plan = match self.plan(&spec) {
            Ok(plan) => plan,
            Err(finding) => return Staged::Refused(finding),
        };
        let mut spoiling = Spoiling { name: format!("trueio-{}-0.dat", spec.name), spoiler, error: None };
        let request = Request {
            kind: "selftest".to_owned(),
            command: crate::flags::as_typed(),
            spec: vec![spec],
            plan,
            has_evidence: true,
        };
        let mut record = trueio_run::run(request, self.stop, &mut spoiling);
        if let Some(error) = spoiling.error {
            record.outcome = Outcome::Failed { reason: format!("the lie could not be staged: {error}") };
            record.phases.clear();
        }
        Staged::Ran(Box::new(record))
    }
}

/// Does its deed when the phase begins: the file is filled by then, and nothing is watched yet.
struct Spoiling<'a> {
    name: String,
    spoiler: Option<Spoiler<'a>>,
    error: Option<std::io::Error>,
}

impl Observer for Spoiling<'_> {
    fn phase_begins(&mut self, _index: usize, _count: usize, _name: &str) {
        let Some(spoiler) = self.spoiler else { return };
        self.error = descriptor_of(&self.name).and_then(|file| spoiler(&file)).err();
    }
}

/// The file of this process that had this name; it has none any more.
fn descriptor_of(name: &str) -> std::io::Result<File> {
    let wanted = format!("/{name} (deleted)");
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|target| target.to_string_lossy().ends_with(&wanted)) {
            return File::options().read(true).write(true).open(path);
        }
    }
    Err(std::io::Error::other(format!("the job's file `{name}` is not open")))
}

/// Takes all space away: the file becomes one hole.
pub(super) fn punch(file: &File) -> std::io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    allocate(file.as_raw_fd(), mode, file.metadata()?.len())?;
    file.sync_all()
}

/// Takes the content and leaves the space: reserved and never written.
pub(super) fn unwrite(file: &File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    punch(file)?;
    allocate(file.as_raw_fd(), 0, length)?;
    file.sync_all()
}

/// Writes zeros over everything: what a disk that was never written, or was trimmed, holds.
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
    // What was written must not be read from memory afterwards.
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Reads the whole file, so that it is cached.
pub(super) fn warm(file: &File) -> std::io::Result<()> {
    let mut file = file;
    std::io::copy(&mut file, &mut std::io::sink()).map(drop)
}

/// Cuts the file to a quarter.
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

/// Everything that trueio objects to in a record.
pub(super) fn objections(record: &RunRecord) -> Vec<Finding> {
    let mut findings: Vec<Finding> = record.phases.iter().flat_map(objections_of).collect();
    if let Outcome::Failed { reason } = &record.outcome {
        findings.push(Finding::new("run failed", "outcome", reason.clone()));
    }
    findings
}

fn objections_of(phase: &PhaseRecord) -> Vec<Finding> {
    phase
        .checks
        .iter()
        .filter_map(|check| {
            let how = match check.outcome {
                CheckOutcome::Contradicted => "contradicted",
                CheckOutcome::Suspect => "suspect",
                _ => return None,
            };
            Some(Finding::new(how, &check.name, check.sentence.clone()))
        })
        .collect()
}

/// The operation that was measured; sync calls are counted apart.
pub(super) fn measured_op(record: &RunRecord) -> Option<&OpRecord> {
    let ops = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops);
    ops.filter(|op| op.op != OpKind::Sync).max_by_key(|op| op.io_count)
}

/// I/Os that returned, a second, failed or not: a tool that trusts its calls does not look.
pub(super) fn naive_iops(record: &RunRecord) -> u64 {
    let Some(phase) = record.phases.first() else { return 0 };
    let Some(op) = measured_op(record) else { return 0 };
    let count = op.io_count + op.error_count;
    rounded(count as f64 * 1e9 / phase.elapsed_ns.max(1) as f64)
}

/// Three significant digits: more would be read as precision.
fn rounded(value: f64) -> u64 {
    let value = value.max(0.0);
    if value < 1000.0 {
        return value.round() as u64;
    }
    let step = 10f64.powi(value.log10().floor() as i32 - 2);
    ((value / step).round() * step) as u64
}

/// `103,000 IOPS, no error`.
pub(super) fn iops_text(record: &RunRecord) -> String {
    format!("{} IOPS, no error", units::format_count(naive_iops(record)))
}

/// The latency that so many of 1,000 do not exceed, however few they are.
pub(super) fn naive_quantile(op: &OpRecord, per_mille: u64) -> String {
    let histogram = &op.latency.total;
    let rank = (histogram.count() * per_mille).div_ceil(1000).max(1);
    histogram.value_at_rank(rank).map_or_else(|| "–".to_owned(), units::format_duration_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_given_with_three_digits() {
        for (value, digits) in [(0.0, 0), (999.4, 999), (1_234.0, 1_230), (1_903_477.0, 1_900_000), (f64::NAN, 0)] {
            assert_eq!(rounded(value), digits, "{value}");
        }
    }
}
