//! What the checks are given: one phase, and the questions that several of them ask of it.

use crate::watch::Observation;
use trueio_model::{
    Check, CheckOutcome, CpuTime, DeviceCounters, DeviceDelta, DirectPolicy, DirectSupport, DiskFacts, EngineKind,
    Environment, FilePlan, JobPlan, JobRecord, OpKind, OpMix, OpRecord, Ruler, SteadyState, SyncMode, TargetFacts,
    TargetKind, TraceRecord,
};

/// A measured phase, as the checks see it.
#[derive(Debug, Clone, Copy)]
pub struct PhaseFacts<'a> {
    /// The targets that the phase's files lie on; others of the run may be among them.
    pub targets: &'a [TargetFacts],
    /// The phase's jobs.
    pub jobs: &'a [JobPlan],
    /// Their results, in the same order.
    pub records: &'a [JobRecord],
    /// What was seen meanwhile.
    pub observation: &'a Observation,
    /// What traced requests say; `None` if tracing was not tried.
    pub trace: Option<&'a TraceRecord>,
    /// How long the measured part took, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the process tree in the measured part.
    pub cpu: CpuTime,
    /// CPU time that the workers account for themselves.
    pub worker_cpu: CpuTime,
    /// What the tool costs here, if it was measured.
    pub ruler: Option<&'a Ruler>,
    /// The machine, if it was looked at.
    pub environment: Option<&'a Environment>,
    /// The rounds before the measured part, if a steady state was asked for.
    pub steady_state: Option<&'a SteadyState>,
    /// Checks whose contradiction the user accepts.
    pub accepted_checks: &'a [String],
}

/// A job and its results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) job: &'a JobPlan,
    pub(crate) record: &'a JobRecord,
}

/// How a job's transfers claim to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Past the page cache: what they returned is the disk's word.
    Direct,
    /// Through the page cache.
    Buffered,
}

impl<'a> PhaseFacts<'a> {
    pub(crate) fn works(&self) -> impl Iterator<Item = Work<'a>> + use<'a> {
        self.jobs.iter().zip(self.records).map(|(job, record)| Work { job, record })
    }

    /// Jobs that make calls on real files. A mapping makes none: its transfers are page faults, of
    /// whole pages and more, at times of the kernel's own.
    pub(crate) fn file_works(&self) -> Vec<Work<'a>> {
        self.works().filter(|work| work.job.engine.touches_files() && work.job.engine != EngineKind::Mmap).collect()
    }

    /// Why [`Self::file_works`] is empty.
    pub(crate) fn why_no_calls(&self) -> String {
        let engines: Vec<&str> = self.jobs.iter().map(|job| job.engine.name()).collect();
        if self.jobs.iter().any(|job| job.engine == EngineKind::Mmap) {
            "The engine mmap makes no I/O calls: its page faults move whole pages and what is read ahead.".to_owned()
        } else {
            format!("No real I/O is made by the engine {}.", engines.join(", "))
        }
    }

    /// The target that a file of this phase lies on.
    pub(crate) fn target_of(&self, path: &str) -> Option<&'a TargetFacts> {
        target_of(self.targets, path)
    }

    /// The targets of this phase's files, each once; all there are, if a file's is not known.
    pub(crate) fn own_targets(&self) -> Vec<&'a TargetFacts> {
        let mut own: Vec<&TargetFacts> = Vec::new();
        for file in self.jobs.iter().filter(|job| job.engine.touches_files()).flat_map(|job| &job.files) {
            let Some(target) = self.target_of(&file.path) else { return self.targets.iter().collect() };
            if !own.iter().any(|known| std::ptr::eq(*known, target)) {
                own.push(target);
            }
        }
        own
    }

    /// How transfers to a file of a job claim to go.
    pub(crate) fn way_of(&self, job: &JobPlan, file: &FilePlan) -> Way {
        let support = self.target_of(&file.path).map(|target| target.direct.support);
        match (job.direct, support) {
            (DirectPolicy::Off, _) => Way::Buffered,
            (DirectPolicy::Require, _) => Way::Direct,
            (DirectPolicy::Prefer, Some(DirectSupport::SilentlyBuffered | DirectSupport::Refused)) => Way::Buffered,
            // Where nobody says, the flag was accepted and the transfers count as direct.
            (DirectPolicy::Prefer, _) => Way::Direct,
        }
    }

    /// How a job's transfers claim to go; buffered if any of its files is.
    pub(crate) fn way(&self, job: &JobPlan) -> Way {
        let is_direct = job.files.iter().all(|file| self.way_of(job, file) == Way::Direct);
        if is_direct && job.direct != DirectPolicy::Off { Way::Direct } else { Way::Buffered }
    }

    /// The disks under the targets, each once.
    pub(crate) fn disks(&self) -> Vec<&'a DiskFacts> {
        let mut disks: Vec<&DiskFacts> = Vec::new();
        for disk in self.own_targets().into_iter().flat_map(|target| &target.disks) {
            if !disks.iter().any(|known| known.name == disk.name) {
                disks.push(disk);
            }
        }
        disks
    }

    /// What the disks under this phase's files counted. A watch may have had an eye on others.
    pub(crate) fn devices(&self) -> Vec<&'a DeviceDelta> {
        let disks = self.disks();
        let is_ours = |delta: &&DeviceDelta| disks.iter().any(|disk| disk.name == delta.disk);
        self.observation.devices.iter().filter(is_ours).collect()
    }

    /// `/sys/block/vda/stat`, of all the disks that were watched.
    pub(crate) fn counter_files(&self) -> String {
        let files: Vec<String> = self.devices().iter().map(|delta| format!("/sys/block/{}/stat", delta.disk)).collect();
        files.join(", ")
    }

    /// What all the disks counted, and others' share of it as the idle baseline foretells it.
    pub(crate) fn counted(&self, value: impl Fn(&DeviceCounters) -> u64) -> Counted {
        let mut counted = Counted { raw: 0, foreign: 0 };
        for delta in self.devices() {
            counted.raw += value(&delta.measured);
            if delta.baseline_ns > 0 {
                let share = delta.measured_ns as f64 / delta.baseline_ns as f64;
                counted.foreign += (value(&delta.baseline) as f64 * share) as u64;
            }
        }
        counted
    }

    /// Why there is no counter to look at; `None` if there is one.
    pub(crate) fn why_no_counters(&self) -> Option<String> {
        let disks = self.disks();
        if disks.is_empty() {
            let ends: Vec<String> = self
                .own_targets()
                .into_iter()
                .filter_map(|target| target.stack.last())
                .map(|layer| format!("{} {}", layer.kind, layer.name))
                .collect();
            let where_to = if ends.is_empty() { "no target was looked at".to_owned() } else { ends.join(", ") };
            return Some(format!("No disk is seen under the target ({where_to}), so nothing counts its requests."));
        }
        if disks.iter().any(|disk| disk.counts_io.value == Some(false)) {
            return Some("The disk does not count its requests: queue/iostats is 0.".to_owned());
        }
        if self.devices().len() < disks.len() {
            return Some("The disks' counters could not be read.".to_owned());
        }
        None
    }

    /// What was traced, if anything was; else why not, as a sentence, and what would help.
    pub(crate) fn traced(&self) -> Result<&'a TraceRecord, String> {
        let Some(trace) = self.trace else { return Err("Requests were not traced.".to_owned()) };
        match &trace.missing {
            None => Ok(trace),
            Some(why) => Err(format!("Requests were not traced: {why}.")),
        }
    }

    /// True if something between file and disk may write more than it is given: RAID, copy on
    /// write, checksums, journals of data.
    pub(crate) fn amplifies(&self) -> bool {
        self.own_targets().into_iter().any(|target| {
            let stacked =
                target.stack.iter().any(|layer| matches!(layer.kind.as_str(), "dm" | "md" | "bcache" | "stacked"));
            let plain = match &target.filesystem {
                None => target.kind == TargetKind::BlockDevice,
                Some(filesystem) => {
                    matches!(filesystem.kind.as_str(), "ext2" | "ext3" | "ext4" | "xfs")
                        && !filesystem.options.contains("data=journal")
                }
            };
            stacked || !plain
        })
    }
}

/// A sum over disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// As counted: everybody's.
    pub(crate) raw: u64,
    /// Others', if they went on as in the baseline.
    pub(crate) foreign: u64,
}

impl Counted {
    /// Ours, if others went on as in the baseline.
    pub(crate) fn ours(self) -> u64 {
        self.raw.saturating_sub(self.foreign)
    }
}

impl<'a> Work<'a> {
    pub(crate) fn op(self, op: OpKind) -> Option<&'a OpRecord> {
        self.record.ops.iter().find(|record| record.op == op)
    }

    pub(crate) fn bytes(self, op: OpKind) -> u64 {
        self.op(op).map_or(0, |record| record.byte_count)
    }

    pub(crate) fn count(self, op: OpKind) -> u64 {
        self.op(op).map_or(0, |record| record.io_count)
    }

    pub(crate) fn reads(self) -> bool {
        match self.job.pattern.mix {
            OpMix::Only(op) => op == OpKind::Read,
            OpMix::ReadWrite { read_percent } => read_percent > 0,
        }
    }

    pub(crate) fn writes(self) -> bool {
        match self.job.pattern.mix {
            OpMix::Only(op) => op == OpKind::Write,
            OpMix::ReadWrite { read_percent } => read_percent < 100,
        }
    }

    /// I/Os in flight at once, all workers together.
    pub(crate) fn depth(self) -> u64 {
        let depth = if self.job.engine.holds_a_queue() { self.job.queue.depth } else { 1 };
        u64::from(self.job.workers.max(1)) * u64::from(depth.max(1))
    }

    /// Bytes that may be in flight at once.
    pub(crate) fn bytes_in_flight(self) -> u64 {
        let pattern = &self.job.pattern;
        self.depth() * pattern.read_sizes.max_bytes().max(pattern.write_sizes.max_bytes())
    }

    /// True if every single write waits until it is durable.
    pub(crate) fn syncs_every_write(self) -> bool {
        self.has_dsync() || self.job.flush.fsync_every == 1 || self.job.flush.fdatasync_every == 1
    }

    /// True if writes are made durable by a flag, not by a call.
    pub(crate) fn has_dsync(self) -> bool {
        self.job.sync != SyncMode::None || self.job.write_flags.dsync
    }

    /// True if calls between the writes are `sync_file_range`, which is counted as sync calls are.
    pub(crate) fn writes_out(self) -> bool {
        self.job.flush.range.is_some()
    }

    /// Sync calls that promise something: of a job with `sync_file_range` only those at its end.
    pub(crate) fn durable_calls(&self) -> u64 {
        let calls = self.count(OpKind::Sync);
        if !self.writes_out() {
            return calls;
        }
        let at_end = self.job.flush.at_end().count() as u64 * self.job.files.len() as u64;
        calls.min(at_end * u64::from(self.job.workers))
    }

    /// True if there is any sync call, or a flag in place of one.
    pub(crate) fn syncs(self) -> bool {
        let flush = self.job.flush;
        self.has_dsync() || flush.is_at_end() || flush.fsync_every > 0 || flush.fdatasync_every > 0
    }

    /// The region's length, all files together, in bytes.
    pub(crate) fn region_bytes(self) -> u64 {
        self.job.files.iter().map(|file| file.size_bytes).sum()
    }
}

/// A finding with everything that belongs to it.
pub(crate) fn finding(
    name: &str,
    outcome: CheckOutcome,
    witness: impl Into<String>,
    expected: impl Into<String>,
    found: impl Into<String>,
    sentence: impl Into<String>,
) -> Check {
    Check {
        name: name.to_owned(),
        outcome,
        witness: witness.into(),
        expected: expected.into(),
        found: found.into(),
        sentence: sentence.into(),
        is_accepted: false,
    }
}

/// The check could not see here.
pub(crate) fn not_seen(name: &str, witness: impl Into<String>, sentence: impl Into<String>) -> Check {
    finding(name, CheckOutcome::NotSeen, witness, "", "", sentence)
}

/// The check does not apply to the phase.
pub(crate) fn not_applicable(name: &str, sentence: impl Into<String>) -> Check {
    finding(name, CheckOutcome::NotApplicable, "", "", "", sentence)
}

/// Returns the target that a file lies on: the one with the longest path that contains it, else one on the same mount (a
/// run keeps one of several with equal facts), else the only one.
pub fn target_of<'a>(targets: &'a [TargetFacts], path: &str) -> Option<&'a TargetFacts> {
    let path = std::path::Path::new(path);
    let containing =
        targets.iter().filter(|target| path.starts_with(&target.path)).max_by_key(|target| target.path.len());
    let on_same_mount = || {
        let mount = |target: &TargetFacts| Some(target.filesystem.as_ref()?.mount_point.clone());
        let on_mount = |target: &&TargetFacts| mount(target).is_some_and(|mount| path.starts_with(mount));
        targets.iter().filter(on_mount).max_by_key(|target| mount(target).map_or(0, |mount| mount.len()))
    };
    containing.or_else(on_same_mount).or(match targets {
        [only] => Some(only),
        _ => None,
    })
}
