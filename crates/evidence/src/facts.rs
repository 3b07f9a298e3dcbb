//! The input of the checks: one phase, and values that several checks derive from it.

use crate::checks::foreign_io;
use crate::observation::Observation;
use crate::trace::{JobSamples, PhaseTrace, match_samples, others_in};
use trueio_model::units::format_count;
use trueio_model::{
    Cause, Check, CheckOutcome, CpuTime, DeviceCounters, DeviceDelta, DirectPolicy, DirectSupport, DiskFacts,
    DisturbedSpan, EngineKind, Environment, FilePlan, JobPlan, JobRecord, Layer, LayerKind, OpKind, OpMix, OpRecord,
    Ruler, SampledIo, SteadyState, SyncMode, TargetFacts, TargetKind, TraceRecord, Transport,
};

/// A measured phase, the input of every check.
#[derive(Debug, Clone, Copy)]
pub struct PhaseFacts<'a> {
    /// The targets that the phase's files are on; others of the run may be among them.
    pub targets: &'a [TargetFacts],
    /// The phase's jobs.
    pub jobs: &'a [JobPlan],
    /// Their results, in the same order.
    pub records: &'a [JobRecord],
    /// The counters observed during the phase.
    pub observation: &'a Observation,
    /// The traced requests; `None` if tracing was not attempted.
    pub trace: Option<&'a TraceRecord>,
    /// How long the measured part took, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the process tree in the measured part.
    pub cpu: CpuTime,
    /// CPU time that the workers account for themselves.
    pub worker_cpu: CpuTime,
    /// The measured cost of the tool, if known.
    pub ruler: Option<&'a Ruler>,
    /// The machine, if known.
    pub environment: Option<&'a Environment>,
    /// The rounds before the measured part, if the job sets a steady state.
    pub steady_state: Option<&'a SteadyState>,
    /// Checks whose findings the user accepts: a contradiction becomes a doubt, and a doubt does not count.
    pub accepted_checks: &'a [String],
}

/// A job and its results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) job: &'a JobPlan,
    pub(crate) record: &'a JobRecord,
}

/// The path of a job's transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Past the page cache.
    Direct,
    /// Through the page cache.
    Buffered,
}

impl<'a> PhaseFacts<'a> {
    pub(crate) fn works(&self) -> impl Iterator<Item = Work<'a>> + use<'a> {
        self.jobs.iter().zip(self.records).map(|(job, record)| Work { job, record })
    }

    /// Returns the jobs that transfer data of real files, by calls or through a mapping.
    pub(crate) fn file_works(&self) -> Vec<Work<'a>> {
        self.works().filter(|work| work.job.engine.touches_files()).collect()
    }

    /// Returns the jobs that make I/O calls on real files. A mapping makes none: its transfers are page
    /// faults of whole pages, at times that the kernel chooses.
    pub(crate) fn call_works(&self) -> Vec<Work<'a>> {
        self.works().filter(|work| work.job.engine.touches_files() && work.job.engine != EngineKind::Mmap).collect()
    }

    /// Returns the reason why [`Self::file_works`] or [`Self::call_works`] is empty.
    pub(crate) fn why_no_calls(&self) -> String {
        let engines: Vec<&str> = self.jobs.iter().map(|job| job.engine.name()).collect();
        if self.jobs.iter().any(|job| job.engine == EngineKind::Mmap) {
            "The engine mmap makes no I/O calls; its page faults transfer whole pages and read-ahead.".to_owned()
        } else {
            format!("The engine {} makes no real I/O.", engines.join(", "))
        }
    }

    /// Returns the target that a file of this phase is on.
    pub(crate) fn target_of(&self, path: &str) -> Option<&'a TargetFacts> {
        target_of(self.targets, path)
    }

    /// Returns the targets of this phase's files, each once; all targets if that of a file is unknown.
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

    /// Matches the I/Os that the workers sampled with the traced requests.
    ///
    /// `samples` holds, for each of the phase's jobs, one list per worker in the order of completion.
    pub fn match_trace(&self, trace: &PhaseTrace, samples: &[Vec<Vec<SampledIo>>]) -> TraceRecord {
        let jobs = self.jobs.iter().zip(samples);
        let jobs = jobs.map(|(job, workers)| {
            let is_direct = self.way(job) == Way::Direct;
            JobSamples { job, is_direct, workers }
        });
        match_samples(trace, &jobs.collect::<Vec<_>>())
    }

    /// Returns the times at which the phase was disturbed, as far as counters and traced requests show it.
    pub fn disturbances(&self, trace: Option<&PhaseTrace>) -> Vec<DisturbedSpan> {
        let mut spans = self.observation.disturbances.clone();
        spans.extend(trace.into_iter().flat_map(others_in));
        spans.sort_by_key(|span| span.from_ns);
        spans
    }

    /// Returns the path of a job's transfers to a file.
    pub(crate) fn way_of(&self, job: &JobPlan, file: &FilePlan) -> Way {
        let support = self.target_of(&file.path).map(|target| target.direct.support);
        match (job.direct, support) {
            _ if job.engine == EngineKind::Mmap => Way::Buffered,
            (DirectPolicy::Off, _) => Way::Buffered,
            (DirectPolicy::Require, _) => Way::Direct,
            (DirectPolicy::Prefer, Some(DirectSupport::SilentlyBuffered | DirectSupport::Refused)) => Way::Buffered,
            // If support is unknown, the flag was accepted and the transfers count as direct.
            (DirectPolicy::Prefer, _) => Way::Direct,
        }
    }

    /// Returns the path of a job's transfers; buffered if any of its files is.
    pub(crate) fn way(&self, job: &JobPlan) -> Way {
        let is_direct = job.files.iter().all(|file| self.way_of(job, file) == Way::Direct);
        let bypasses = job.direct != DirectPolicy::Off && job.engine != EngineKind::Mmap;
        if is_direct && bypasses { Way::Direct } else { Way::Buffered }
    }

    /// Returns the disks under the targets, each once.
    pub(crate) fn disks(&self) -> Vec<&'a DiskFacts> {
        let mut disks: Vec<&DiskFacts> = Vec::new();
        for disk in self.own_targets().into_iter().flat_map(|target| &target.disks) {
            if !disks.iter().any(|known| known.name == disk.name) {
                disks.push(disk);
            }
        }
        disks
    }

    /// Returns the counters of the disks under this phase's files. A watch may include other disks.
    pub(crate) fn devices(&self) -> Vec<&'a DeviceDelta> {
        let disks = self.disks();
        let is_ours = |delta: &&DeviceDelta| disks.iter().any(|disk| disk.name == delta.disk);
        self.observation.devices.iter().filter(is_ours).collect()
    }

    /// Returns the counter files of all observed disks, such as `/sys/block/vda/stat`.
    pub(crate) fn counter_files(&self) -> String {
        let files: Vec<String> = self.devices().iter().map(|delta| format!("/sys/block/{}/stat", delta.disk)).collect();
        files.join(", ")
    }

    /// Returns the sum over all disks, and the share of other processes predicted from the idle baseline: at most all of it, and nothing if
    /// requests were traced without a loss and hardly any of them was theirs.
    pub(crate) fn counted(&self, value: impl Fn(&DeviceCounters) -> u64) -> Counted {
        let mut counted = Counted { raw: 0, foreign: 0 };
        let is_alone = self.traced().is_ok_and(|trace| foreign_io::sees_no_others(self, trace));
        for delta in self.devices() {
            counted.raw += value(&delta.measured);
            if delta.baseline_ns > 0 && !is_alone {
                let share = delta.measured_ns as f64 / delta.baseline_ns as f64;
                counted.foreign += ((value(&delta.baseline) as f64 * share) as u64).min(value(&delta.measured));
            }
        }
        counted
    }

    /// Returns the reason why there are no counters; `None` if there are.
    pub(crate) fn why_no_counters(&self) -> Option<String> {
        let disks = self.disks();
        if disks.is_empty() {
            let ends: Vec<String> = self
                .own_targets()
                .into_iter()
                .filter_map(|target| target.stack.last())
                .map(|layer| format!("{} {}", layer.kind, layer.name))
                .collect();
            let where_to = if ends.is_empty() { "no target was examined".to_owned() } else { ends.join(", ") };
            return Some(format!(
                "No disk is visible under the target ({where_to}), so no counter covers its \
                                 requests."
            ));
        }
        if let Some(disk) = disks.iter().find(|disk| disk.counts_io.value == Some(false)) {
            return Some(match disk.transport.value.as_ref().is_some_and(Transport::is_volatile_memory) {
                true => format!(
                    "{} is memory: the device is the processor, and no counter shows what a disk did.",
                    disk.name
                ),
                false => {
                    format!("{} does not count its requests: queue/iostats is 0, and 1 makes it count.", disk.name)
                }
            });
        }
        if self.devices().len() < disks.len() {
            return Some("The disks' counters could not be read.".to_owned());
        }
        None
    }

    /// Returns the traced requests, or a sentence with the reason why there are none.
    pub(crate) fn traced(&self) -> Result<&'a TraceRecord, String> {
        let Some(trace) = self.trace else { return Err("Requests were not traced.".to_owned()) };
        match &trace.missing {
            None => Ok(trace),
            Some(why) => Err(format!("Requests were not traced: {why}.")),
        }
    }

    /// Returns what is known below loop devices, as a sentence: how many of `sampled` I/Os were found there, or why they were not
    /// followed. `None` if no disk is a loop device.
    pub(crate) fn below_loops(&self, trace: &TraceRecord, (found, judged): (u64, u64), what: &str) -> Option<String> {
        let followed = trace.below.as_ref().filter(|_| judged > 0);
        let Some(below) = followed else {
            let why = trace.below.as_ref().and_then(|below| below.missing.as_ref());
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            return self.trace_end().map(|end| format!("{end}{why}."));
        };
        let [loops, disks] = [&below.loops, &below.disks].map(|names| names.join(", "));
        Some(format!("Of {} followed below {loops}, {} {what} on {disks}.", format_count(judged), format_count(found)))
    }

    /// Returns true if a loop device under the files uses the page cache of its own file.
    pub(crate) fn has_buffered_loop(&self) -> bool {
        let is_buffered = |layer: &Layer| layer.kind == LayerKind::Loop && !layer.name.ends_with("(direct)");
        self.own_targets().into_iter().flat_map(|target| &target.stack).any(is_buffered)
    }

    /// Returns where the trace ends above the real disks, as a sentence without its full stop.
    fn trace_end(&self) -> Option<String> {
        self.own_targets().into_iter().find_map(|target| {
            let at = target.stack.iter().position(|layer| layer.kind == LayerKind::Loop)?;
            let below = &target.stack[at + 1..];
            let named =
                |kind: &LayerKind| below.iter().find(|layer| layer.kind == *kind).map(|layer| layer.name.as_str());
            let file = named(&LayerKind::File).map_or_else(String::new, |path| format!(" in the file `{path}`"));
            let disk = named(&LayerKind::Disk).map_or_else(String::new, |disk| format!(" on {disk}"));
            let name = target.stack[at].name.split(" (").next().unwrap_or_default();
            let to = if file.is_empty() && disk.is_empty() { " elsewhere" } else { "" };
            Some(format!("Requests were not followed below {name}, whose data is{file}{disk}{to}"))
        })
    }

    /// Returns true if a layer between file and disk may write more than the file's data: RAID, copy on
    /// write, checksums, data journals.
    pub(crate) fn amplifies(&self) -> bool {
        self.own_targets().into_iter().any(|target| {
            let stacked = target.stack.iter().any(|layer| layer.kind.is_stacked());
            let plain = match &target.filesystem {
                None => target.kind == TargetKind::BlockDevice,
                Some(filesystem) => filesystem.kind.writes_in_place() && !filesystem.options.contains("data=journal"),
            };
            stacked || !plain
        })
    }
}

/// A sum over disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// As counted: the I/O of all processes.
    pub(crate) raw: u64,
    /// The share of other processes, if they continued as in the baseline.
    pub(crate) foreign: u64,
}

impl Counted {
    /// Returns this phase's share, if other processes continued as in the baseline.
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

    /// Returns true if every write waits until it is durable.
    pub(crate) fn syncs_every_write(self) -> bool {
        self.has_dsync() || self.job.flush.fsync_every == 1 || self.job.flush.fdatasync_every == 1
    }

    /// Returns true if a flag makes writes durable, not a call.
    pub(crate) fn has_dsync(self) -> bool {
        self.job.sync != SyncMode::None || self.job.write_flags.dsync
    }

    /// Returns true if the calls between writes are `sync_file_range`, which is counted as a sync call.
    pub(crate) fn writes_out(self) -> bool {
        self.job.flush.range.is_some()
    }

    /// Returns the number of sync calls that make data durable, at least: for a job with `sync_file_range` those at its end,
    /// and those that its writes make due.
    pub(crate) fn durable_calls(&self) -> u64 {
        let calls = self.count(OpKind::Sync);
        if !self.writes_out() {
            return calls;
        }
        let (flush, workers) = (self.job.flush, u64::from(self.job.workers));
        let at_end = flush.at_end().count() as u64 * self.job.files.len() as u64;
        // Each worker counts its own writes, and may end with fewer than make a call due.
        let due = |every: u64| self.count(OpKind::Write).checked_div(every).unwrap_or(0).saturating_sub(workers);
        let between = due(flush.fsync_every).max(due(flush.fdatasync_every));
        calls.min(at_end * workers + between)
    }

    /// Returns true if the job makes sync calls or uses a flag instead.
    pub(crate) fn syncs(self) -> bool {
        let flush = self.job.flush;
        self.has_dsync() || flush.is_at_end() || flush.fsync_every > 0 || flush.fdatasync_every > 0
    }

    /// The region's length, all files together, in bytes.
    pub(crate) fn region_bytes(self) -> u64 {
        self.job.files.iter().map(|file| file.size_bytes).sum()
    }
}

/// Builds a finding.
pub(crate) fn finding(
    name: &str,
    outcome: CheckOutcome,
    source: impl Into<String>,
    expected: impl Into<String>,
    found: impl Into<String>,
    sentence: impl Into<String>,
) -> Check {
    Check {
        name: name.to_owned(),
        outcome,
        cause: Cause::usual_of(name).unwrap_or_else(|| unreachable!("`{name}` has no usual cause")),
        source: source.into(),
        expected: expected.into(),
        found: found.into(),
        sentence: sentence.into(),
        brief: String::new(),
        explained_percent: None,
        culprits: Vec::new(),
        is_accepted: false,
    }
}

/// Builds the finding of a check that could not observe anything.
pub(crate) fn not_seen(name: &str, source: impl Into<String>, sentence: impl Into<String>) -> Check {
    finding(name, CheckOutcome::NotSeen, source, "", "", sentence)
}

/// Builds the finding of a check that does not apply to the phase.
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
