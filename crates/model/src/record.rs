//! The record of a run: what was measured, with everything needed to judge it later and elsewhere.

use crate::{
    Cause, Check, ClusterPhase, CriterionRecord, DepthSearch, DisturbedSpan, EngineKind, Environment, EvidenceLevel,
    Histogram, IoFailure, JobSpec, LatencySet, LostRank, OpKind, Plan, PowerLoss, PriorityRecord, QueueCounts,
    RunAnswer, SteadyState, SyscallTrace, TargetFacts, ThreadUsage, TraceRecord, Verdict, VerifyFailure, ZoneUse,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`RunRecord::format`].
pub const RECORD_FORMAT: &str = "trueio-record";
/// The version written today. A later version reads every earlier one, and [`RunRecord::upgrade`] converts the words of
/// an earlier one.
///
/// 2: the engine that calls `pread` and `pwrite` is named `psync`, as in fio; version 1 named it `sync`.
/// 3: each finding has a cause, and a phase that no counter of the disk confirms is `unverified`; earlier versions called
/// it `supported`.
pub const RECORD_VERSION: u32 = 3;

/// One run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Always [`RECORD_FORMAT`].
    pub format: String,
    /// [`RECORD_VERSION`] of the writer.
    pub version: u32,
    /// 128 random bits as 32 hexadecimal digits.
    pub id: String,
    /// When the run began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The same in milliseconds; 0 in records of earlier versions.
    #[serde(default)]
    pub started_unix_ms: u64,
    /// The same as text: `2026-11-20T20:28:32Z`.
    pub started_at: String,
    /// What kind of run: `baseline`, `run`, …
    pub kind: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// The jobs as specified.
    pub spec: Vec<JobSpec>,
    /// The plan that was run.
    pub plan: Plan,
    /// The targets.
    pub targets: Vec<TargetFacts>,
    /// The machine.
    pub environment: Environment,
    /// The cost of the tool itself on this machine.
    pub ruler: Ruler,
    /// The measured phases, in order. An interrupted run has those before the interruption.
    pub phases: Vec<PhaseRecord>,
    /// How it ended.
    pub outcome: Outcome,
    /// The ranks, if there were several: phases are then the sums of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Box<ClusterRecord>>,
    /// What earlier cuts of power have shown of the device, if its identity is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_loss: Option<Box<PowerLoss>>,
    /// What every output prints of the run, with each figure ready to use. It is derived: written into JSON, and dropped when it is
    /// read. `None` in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<RunAnswer>>,
}

impl RunRecord {
    /// Accepts the contradictions of a check, as if that had been set before the run: its phases become suspect, and their figures are
    /// shown.
    pub fn accept(&mut self, check: &str) {
        for phase in &mut self.phases {
            let found = phase.checks.iter_mut().filter(|found| found.name == check && found.objects());
            let count = found.map(|found| found.is_accepted = true).count();
            if count > 0 {
                phase.verdict = Verdict::of(&phase.checks);
            }
        }
    }

    /// Converts the record to today's version. Call this first after reading a record.
    pub fn upgrade(&mut self) {
        if self.version < 2 {
            let is_engine_sync = |name: &str, value: &str| name == "ioengine" && value == "sync";
            for job in &mut self.plan.jobs {
                if job.engine == EngineKind::Sync {
                    job.engine = EngineKind::Psync;
                }
                for value in job.values.iter_mut().filter(|value| is_engine_sync(&value.name, &value.value)) {
                    value.value = "psync".into();
                }
            }
            for (name, value) in self.spec.iter_mut().flat_map(|spec| &mut spec.options) {
                if is_engine_sync(name, &value.text) {
                    "psync".clone_into(&mut value.text);
                }
            }
        }
        if self.version < 3 {
            for phase in &mut self.phases {
                for check in &mut phase.checks {
                    check.cause = Cause::usual_of(&check.name).unwrap_or_default();
                }
                if phase.verdict == Verdict::Supported && !phase.checks.iter().any(Check::confirms) {
                    phase.verdict = Verdict::Unverified;
                }
            }
        }
        self.version = self.version.max(RECORD_VERSION);
        self.answer = None;
    }
}

/// A run of several ranks: each with its own record. The phases of the record around it are their sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterRecord {
    /// The source of rank and size: `PMIx 4.2.2`, `PMI-1`, `variables`.
    pub launcher: String,
    /// Number of ranks that were started.
    pub rank_count: u32,
    /// The ranks that sent results, in their order.
    pub ranks: Vec<RankRecord>,
    /// Ranks that ended or were cut off before their results were complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRank>,
    /// The phases across ranks, in the order of [`RunRecord::phases`].
    pub phases: Vec<ClusterPhase>,
}

/// One rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankRecord {
    /// Its number, from 0.
    pub rank: u32,
    /// Its host's name.
    pub host: String,
    /// Identifies its running kernel: ranks with the same one share a page cache. Empty: unknown.
    pub boot_id: String,
    /// Its own record.
    pub record: Box<RunRecord>,
}

/// The program that wrote the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFacts {
    /// `trueio`.
    pub name: String,
    /// Version of the program, `MAJOR.MINOR.PATCH`.
    pub version: String,
    /// `release` or `debug`; figures of a debug build measure the debug build.
    pub build: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Outcome {
    /// To its planned end, without an error.
    Complete,
    /// By a signal; everything measured until then is in the record.
    Interrupted {
        /// `SIGINT`, `SIGTERM`.
        signal: String,
    },
    /// By an error; everything measured until then is in the record.
    Failed {
        /// What was attempted on what, and why it failed.
        reason: String,
    },
}

/// The resolution and cost of the tool itself on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ruler {
    /// The clock used for latencies: `tsc`, `cntvct`, `clock_gettime`.
    pub clock: String,
    /// Cost of one reading, in nanoseconds.
    pub clock_cost_ns: f64,
    /// Smallest step between two unequal readings, in nanoseconds.
    pub clock_resolution_ns: f64,
    /// CPU time per I/O of the `null` engine at depth 1, in nanoseconds: everything the tool adds.
    pub null_cpu_ns_per_io: f64,
    /// Median latency that the `null` engine reports: shorter latencies cannot be distinguished.
    pub null_latency_ns_p50: u64,
}

/// CPU time of the whole process with its kernel helpers, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTime {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

impl CpuTime {
    /// Returns the time since an earlier reading of the same threads.
    pub fn since(self, earlier: Self) -> Self {
        Self { user_ns: self.user_ns - earlier.user_ns, system_ns: self.system_ns - earlier.system_ns }
    }

    /// Returns both times added; `None`: a sum exceeds 64 bits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            user_ns: self.user_ns.checked_add(other.user_ns)?,
            system_ns: self.system_ns.checked_add(other.system_ns)?,
        })
    }

    /// Both together.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// One phase: the jobs that ran at the same time, and the evidence about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// The name of its job, or its jobs' names joined by `+`.
    pub name: String,
    /// When its measured part began, in nanoseconds since the run began.
    pub begin_ns: u64,
    /// Duration of its measured part without the ramp, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the process tree in the measured part (io-wq and SQPOLL threads included).
    pub cpu: CpuTime,
    /// CPU time of the workers' threads.
    pub worker_cpu: CpuTime,
    /// The rounds before the measured part, if the job sets a steady state.
    #[serde(default)]
    pub steady_state: Option<SteadyState>,
    /// The jobs' results.
    pub jobs: Vec<JobRecord>,
    /// The counters of the targets' disks.
    pub devices: Vec<DeviceDelta>,
    /// The targets' pages in the page cache: (path, before, after).
    pub residency: Vec<(String, Option<Residency>, Option<Residency>)>,
    /// The block requests that were traced in samples. Absent if evidence was off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRecord>,
    /// The system calls that the workers made. Absent if tracing was not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls: Option<SyscallTrace>,
    /// The times at which it was disturbed, by begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<DisturbedSpan>,
    /// The verdict of all checks together.
    pub verdict: Verdict,
    /// The evidence level.
    pub level: EvidenceLevel,
    /// Each check's finding.
    pub checks: Vec<Check>,
    /// How it ended.
    pub outcome: Outcome,
}

/// One job's results, all its workers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobRecord {
    /// The job's name.
    pub name: String,
    /// Figures of each kind of operation of the job.
    pub ops: Vec<OpRecord>,
    /// The time series, one interval per 100 ms (longer intervals in runs of hours; each has its length), oldest first.
    pub series: Vec<SeriesRow>,
    /// Longest worker's measured time, in nanoseconds.
    pub elapsed_ns: u64,
    /// Mean I/Os in flight over the measured time, all workers together; `None` for engines whose
    /// worker blocks (there it is the number of workers).
    pub achieved_depth: Option<f64>,
    /// How late a paced I/O was submitted although a slot was free; empty without a pace.
    pub pacing_lateness: Histogram,
    /// I/Os that were due but not issued when the job ended (open loop only).
    pub backlog_count: u64,
    /// Failed I/Os: the first of each kind, with a count.
    pub failures: Vec<IoFailure>,
    /// Blocks that did not read back as written, the first few.
    pub verify_failures: Vec<VerifyFailure>,
    /// How many blocks were compared.
    pub verified_block_count: u64,
    /// How many of them differed.
    pub verify_failure_count: u64,
    /// The reads of verification, which are not included in `ops`; only for a job that read something back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadBack>,
    /// Time for which the job waited for the bytes to write and received them, in nanoseconds; only
    /// for a job with a `source`. It is part of the measured time but of no I/O's latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_wait_ns: Option<u64>,
    /// Time of creating and opening the job's files before its measured part, in nanoseconds: of several ranks, the longest.
    /// Missing for engines without files, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ns: Option<u64>,
    /// Time of closing them after it, as [`JobRecord::open_ns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_ns: Option<u64>,
    /// Notes of the engine, one sentence each (`registered buffers refused: …`).
    pub engine_notes: Vec<String>,
    /// Resource use of the workers' threads in the measured part.
    #[serde(default)]
    pub threads: ThreadUsage,
    /// Queue depths and batches; `None` for engines whose worker blocks, and in records
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueCounts>,
    /// The search for a queue depth of each worker, if the job had a latency target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depth_searches: Vec<DepthSearch>,
    /// The evaluation of the job's steady-state criterion, if it has one; jobs of one group have equal ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<CriterionRecord>,
    /// The job's operations on zones, if it followed zone rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneUse>,
    /// The results of each worker, if [`Grouping::Worker`](crate::Grouping) is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<JobRecord>,
}

/// Figures of one kind of operation in the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpRecord {
    /// Which.
    pub op: OpKind,
    /// How many succeeded in full or in part.
    pub io_count: u64,
    /// Bytes transferred, as the calls returned them.
    pub byte_count: u64,
    /// How many transferred fewer bytes than requested.
    pub short_count: u64,
    /// How many failed.
    pub error_count: u64,
    /// Histograms of their latencies, in nanoseconds.
    pub latency: LatencySet,
    /// The same by priority, if shares of the job's I/Os have priorities of their own: that of the thread first.
    /// Together they are [`OpRecord::latency`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityRecord>,
    /// Percentiles of the total latency with their intervals, for readers that do not evaluate
    /// histograms; percentiles that the sample cannot support are omitted. They are derived from
    /// [`LatencySet::total`], which is authoritative.
    #[serde(default)]
    pub percentiles: Vec<Percentile>,
    /// How much the I/Os depend on each other, by the latencies that reports show: with a pace from the intended time,
    /// else the total ones. `None` if the run was too short to show it, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependence: Option<Dependence>,
    /// Mean of the total latency in nanoseconds, with its interval; `None` if the run is too short for one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_latency_ns: Option<Estimate>,
    /// Operations per second, with their interval; `None` as for the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ios_per_s: Option<Estimate>,
}

/// A figure of one run and its 95 % interval, with allowance for the dependence of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure, in the unit of the field that holds it.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How much the I/Os of an operation depend on each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dependence {
    /// Slices of the measured time from which it was estimated.
    pub slice_count: u32,
    /// The measured time, in nanoseconds.
    pub span_ns: u64,
    /// By thresholds, from the lowest latency to the highest. A threshold is missing if too few I/Os are above it, or the run is too
    /// short for their dependence.
    pub inflations: Vec<Inflation>,
    /// How much more the mean latency varies than if I/Os were independent: a ratio of variances, at least 1. `None` if the run is too
    /// short for the dependence of its I/Os, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_factor: Option<f64>,
}

/// How much more the share of I/Os above a threshold varies than if I/Os were independent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inflation {
    /// The share of I/Os above the threshold: 0.01 at the 99th percentile.
    pub share_above: f64,
    /// The ratio of variances with an allowance for being an estimate, at least 1: the number of I/Os that are worth one independent
    /// I/O.
    pub factor: f64,
}

/// The reads of a job's verification, after its last write (`verify`) or in between (`verify_backlog`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadBack {
    /// The reads.
    pub reads: OpRecord,
    /// How many of them were made within the measured time.
    pub within_count: u64,
    /// Duration of the pass after the measured time, in nanoseconds: that of the slowest worker.
    pub elapsed_ns: u64,
    /// How long, within the measured time, what earlier loops wrote was read back, in nanoseconds: of the slowest worker.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub loops_ns: u64,
}

/// A percentile and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentile {
    /// Which: 99.9 for p99.9.
    pub percent: f64,
    /// The latency that this percentage does not exceed, in nanoseconds.
    pub latency_ns: u64,
    /// Lower end of its 95 % interval, in nanoseconds, with allowance for the dependence of I/Os; without an upper end, what the
    /// percentile is at least. In records without [`OpRecord::dependence`] it takes I/Os as independent, and is too narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_ns: Option<u64>,
    /// Upper end, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_ns: Option<u64>,
    /// About how many more nanoseconds of the run an interval needs; only without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_ns: Option<u64>,
}

/// Zeros are omitted from the text.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An interval of a job's time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// Its end, in nanoseconds since the measured part began.
    pub end_ns: u64,
    /// Its length, in nanoseconds.
    pub span_ns: u64,
    /// Reads completed.
    pub read_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub write_count: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Trims and sync calls completed.
    pub other_count: u64,
    /// Of them trims.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_count: u64,
    /// Bytes trimmed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_bytes: u64,
    /// Median total latency of the row's I/Os, in nanoseconds; 0 if there were none.
    pub latency_ns_p50: u64,
    /// 99th percentile; with several workers, the largest of theirs.
    pub latency_ns_p99: u64,
    /// Longest.
    pub latency_ns_max: u64,
}

/// A disk's counters, as `/sys/block/<disk>/stat` gives them, since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub read_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed (an empty flush counts here too).
    pub write_count: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Discard requests completed.
    pub discard_count: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flush requests completed; `None` if the kernel does not count them.
    pub flush_count: Option<u64>,
    /// Time with at least one request in flight, in milliseconds.
    pub busy_ms: u64,
    /// Sum over requests of their time in flight, in milliseconds.
    pub weighted_ms: u64,
    /// Read requests that were merged into a queued one.
    #[serde(default)]
    pub read_merge_count: u64,
    /// Write requests that were merged into a queued one.
    #[serde(default)]
    pub write_merge_count: u64,
    /// Sum over reads of their time in flight, in milliseconds.
    #[serde(default)]
    pub read_ms: u64,
    /// Sum over writes of their time in flight, in milliseconds.
    #[serde(default)]
    pub write_ms: u64,
}

/// A disk's counters in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceDelta {
    /// The disk's kernel name.
    pub disk: String,
    /// The change before the phase, while none of our jobs ran.
    pub baseline: DeviceCounters,
    /// Duration of that baseline, in nanoseconds; 0 without one.
    pub baseline_ns: u64,
    /// The change during the measured part.
    pub measured: DeviceCounters,
    /// Duration of that, in nanoseconds.
    pub measured_ns: u64,
}

/// A file's pages in the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Residency {
    /// Pages cached.
    pub cached_pages: u64,
    /// Of them dirty; `None` if the system does not report it.
    pub dirty_pages: Option<u64>,
    /// Pages of the region.
    pub region_pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// `cachestat` or `mincore`.
    pub source: String,
}
