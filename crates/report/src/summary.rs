//! The figures of the summary table: one row per operation of each job of each phase.
//!
//! Terminal and HTML draw the same rows. A figure is `None` if it is undefined: a percentile without a finite
//! 95 % interval, the bandwidth of sync calls, a rate over no time, any figure that is withheld.

use crate::verdicts::mark;
use trueio_model::{
    BlockSizes, DirectPolicy, DirectSupport, EngineKind, Estimate, Histogram, JobPlan, JobRecord, OpKind, OpMix,
    OpRecord, Order, PhaseRecord, RunRecord, SyncMode, units,
};
use trueio_stats::{NoInterval, Quantile, quantile, quantile_interval};

/// The percentiles of the table, as shares.
pub(crate) const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// The interval of a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// From, to, in nanoseconds.
    Given(u64, u64),
    /// The run is too short for one, but shows what the percentile is at least, in nanoseconds.
    AtLeast(u64),
    /// The run is too short: about how many more nanoseconds are needed for an interval.
    Needs(u64),
    /// There is no percentile, or the record does not show how its I/Os depend on each other.
    Unknown,
}

impl Interval {
    /// Returns the interval of an operation's percentile.
    pub(crate) fn of(op: &OpRecord, histogram: &Histogram, q: f64, elapsed_ns: u64) -> Self {
        // Without an entry, the record may be an earlier version's: only one that states what is missing is of this one.
        let is_recorded = op.dependence.is_some() || op.percentiles.iter().any(|of| of.needs_ns.is_some());
        if !is_recorded || quantile(histogram, q).is_none() {
            return Self::Unknown;
        }
        match quantile_interval(histogram, q, op.dependence.as_ref(), elapsed_ns, 0.05) {
            Ok((low, high)) => Self::Given(low, high),
            Err(NoInterval::Short { at_least_ns: Some(ns), .. }) => Self::AtLeast(ns),
            Err(NoInterval::Short { missing_ns, .. }) => Self::Needs(missing_ns),
            Err(NoInterval::NoPercentile) => Self::Unknown,
        }
    }
}

/// One row of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The phase, as an index into [`RunRecord::phases`].
    pub phase_index: usize,
    /// The job, as an index into the phase's jobs.
    pub job_index: usize,
    /// The job's name, followed by the operation if the job has several: `journal write`.
    pub label: String,
    /// The operation.
    pub op: OpKind,
    /// Number of operations that succeeded, in full or in part.
    pub io_count: u64,
    /// Number of operations that failed.
    pub error_count: u64,
    /// Number of operations that transferred less than requested.
    pub short_count: u64,
    /// Bytes per second; `None` for sync calls and if no time passed.
    pub bytes_per_s: Option<f64>,
    /// Operations per second; `None` if no time passed.
    pub ios_per_s: Option<f64>,
    /// The interval of operations per second; `None` if the run is too short for one.
    pub ios_per_s_interval: Option<Estimate>,
    /// The mean latency, in nanoseconds; `None` with a pace.
    pub mean_ns: Option<f64>,
    /// The mean latency and its interval; `None` as for the rate, and with a pace.
    pub mean_latency: Option<Estimate>,
    /// Total latency at 50, 99 and 99.9 %; `None` if the sample does not support it. With a pace, from the
    /// time the I/O was due.
    pub quantiles: [Option<Quantile>; 3],
    /// The 95 % intervals of these percentiles, or what is known instead.
    pub intervals: [Interval; 3],
    /// The maximum latency, in nanoseconds; `None` without an I/O.
    pub latency_ns_max: Option<u64>,
    /// True if latencies count from the time each I/O was due.
    pub is_from_intended: bool,
    /// True of writes whose calls returned once the data was in memory, while the rate contains the sync that ended the job.
    /// Their latencies are not the disk's, and `None`.
    pub has_memory_latency: bool,
    /// CPU time of the process tree per I/O, in nanoseconds. It cannot be attributed to operations, so only
    /// the first row of a phase has it. Sync calls are not counted as I/Os unless there is nothing else:
    /// their CPU time belongs to the writes that they make durable.
    pub cpu_ns_per_io: Option<f64>,
    /// True if figures of the phase are withheld ([`Mark::is_shown`](trueio_model::Mark::is_shown)): rates, latencies and CPU time are then `None`, and the
    /// reason is shown instead.
    pub is_withheld: bool,
}

impl Row {
    /// Returns true if latencies are not shown although they were measured.
    pub(crate) fn withholds_latencies(&self) -> bool {
        self.is_withheld || self.has_memory_latency
    }

    /// Returns the number of operations, unless it is withheld with the rate, which follows from it.
    pub fn shown_io_count(&self) -> Option<u64> {
        (!self.is_withheld).then_some(self.io_count)
    }

    /// Returns what stands in place of the maximum: `x` if latencies are withheld.
    pub(crate) fn absent_max(&self) -> String {
        if self.withholds_latencies() { "x".to_owned() } else { String::new() }
    }

    /// Returns the histogram of the row's latencies.
    pub(crate) fn histogram<'a>(&self, record: &'a RunRecord) -> Option<&'a trueio_model::Histogram> {
        let job = record.phases.get(self.phase_index)?.jobs.get(self.job_index)?;
        let latency = &job.ops.iter().find(|o| o.op == self.op)?.latency;
        Some(if self.is_from_intended { &latency.from_intended } else { &latency.total })
    }
}

/// The unit of all latencies of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Returns its name.
    pub(crate) unit: &'static str,
    ns: f64,
}

impl Scale {
    /// Returns µs, unless a median is below one (then ns), or all latencies are so long that ms is easier to
    /// read.
    pub(crate) fn of(rows: &[Row]) -> Self {
        let medians = || rows.iter().filter_map(|r| r.quantiles[0]).map(|q| q.value_ns);
        let longest = rows.iter().filter_map(|r| r.latency_ns_max).max().unwrap_or(0);
        let shortest = medians().min().unwrap_or(longest);
        if shortest < 1_000 && longest < 100_000_000 {
            Scale { unit: "ns", ns: 1.0 }
        } else if longest >= 10_000_000_000 || shortest >= 10_000_000 {
            Scale { unit: "ms", ns: 1e6 }
        } else {
            Scale { unit: "µs", ns: 1e3 }
        }
    }

    /// Formats a latency in this unit, without its name.
    pub(crate) fn show(self, ns: u64) -> String {
        if self.ns == 1.0 { units::format_count(ns) } else { crate::text::figure(ns as f64 / self.ns) }
    }
}

/// Returns the rows of a record, in the order of its phases, jobs and operations.
///
/// A sync call that a job makes once at its end has no row: one call has neither a rate nor a percentile.
/// Terminal and HTML show its duration below the table.
pub fn summary(record: &RunRecord) -> Vec<Row> {
    let mut rows = Vec::new();
    for (phase_index, phase) in record.phases.iter().enumerate() {
        let is_withheld = !mark(phase).is_shown();
        let mut cpu_ns_per_io = cpu_ns_per_io(phase).filter(|_| !is_withheld);
        for (job_index, job) in phase.jobs.iter().enumerate() {
            let name = name_of(record, phase_index, job);
            let seconds = job.elapsed_ns as f64 / 1e9;
            let per_s = |n: u64| (job.elapsed_ns > 0 && !is_withheld).then(|| n as f64 / seconds);
            let end_flush = end_flush_of(record, phase_index, job).map(|op| op.op);
            let ops = || job.ops.iter().filter(|op| Some(op.op) != end_flush);
            let is_one = ops().count() == 1;
            for op in ops() {
                let is_from_intended = !op.latency.from_intended.is_empty();
                let has_memory_latency =
                    !is_withheld && end_flush.is_some() && returns_from_memory(record, phase_index, job, op.op);
                let has_no_latency = is_withheld || has_memory_latency;
                let histogram = if is_from_intended { &op.latency.from_intended } else { &op.latency.total };
                rows.push(Row {
                    phase_index,
                    job_index,
                    label: if is_one { name.clone() } else { format!("{name} {}", op.op) },
                    op: op.op,
                    io_count: op.io_count,
                    error_count: op.error_count,
                    short_count: op.short_count,
                    bytes_per_s: if op.op == OpKind::Sync { None } else { per_s(op.byte_count) },
                    ios_per_s: per_s(op.io_count),
                    ios_per_s_interval: op.ios_per_s.filter(|_| !is_withheld),
                    mean_ns: histogram.mean_ns().filter(|_| !has_no_latency && !is_from_intended),
                    mean_latency: op.mean_latency_ns.filter(|_| !has_no_latency && !is_from_intended),
                    quantiles: QUANTILES.map(|q| quantile(histogram, q).filter(|_| !has_no_latency)),
                    intervals: QUANTILES.map(|q| match has_no_latency {
                        true => Interval::Unknown,
                        false => Interval::of(op, histogram, q, job.elapsed_ns),
                    }),
                    latency_ns_max: histogram.max_ns().filter(|_| !has_no_latency),
                    is_from_intended,
                    has_memory_latency,
                    cpu_ns_per_io: cpu_ns_per_io.take(),
                    is_withheld,
                });
            }
        }
    }
    rows
}

/// Returns the name of a job as readers see it: of a single job without a name its shape, `randread 4k q1`.
pub(crate) fn name_of(record: &RunRecord, phase_index: usize, job: &JobRecord) -> String {
    match plan_of(record, phase_index, job) {
        Some(plan) if job.name == UNNAMED => shape_of(plan),
        _ => job.name.clone(),
    }
}

/// Returns the name of a phase as readers see it, as that of a job.
pub(crate) fn name_of_phase(record: &RunRecord, phase_index: usize) -> String {
    let phase = &record.phases[phase_index];
    match phase.jobs.as_slice() {
        [job] if phase.name == job.name => name_of(record, phase_index, job),
        _ => phase.name.clone(),
    }
}

/// The name of a job to which the user gave none.
pub(crate) const UNNAMED: &str = "job";

/// Returns the label of an operation: the job's name, followed by the operation if the job has several
/// transfers.
pub(crate) fn label_of(job: &JobRecord, op: &OpRecord) -> String {
    let transfers = job.ops.iter().filter(|op| op.op != OpKind::Sync).count();
    if transfers == 1 { job.name.clone() } else { format!("{} {}", job.name, op.op) }
}

/// Returns the sync call that a job makes once at its end, if it makes no others. A failed one is excluded:
/// failures belong in the table.
pub(crate) fn end_flush_of<'a>(record: &RunRecord, phase_index: usize, job: &'a JobRecord) -> Option<&'a OpRecord> {
    let plan = plan_of(record, phase_index, job)?;
    let flush = plan.flush;
    if !flush.is_at_end() || flush.is_between() || job.ops.len() < 2 {
        return None;
    }
    job.ops.iter().find(|op| op.op == OpKind::Sync && op.error_count == 0)
}

/// Returns true if the calls of an operation return once the data is in memory: buffered writes that are not durable one by one.
fn returns_from_memory(record: &RunRecord, phase_index: usize, job: &JobRecord, op: OpKind) -> bool {
    let Some(plan) = plan_of(record, phase_index, job).filter(|plan| plan.engine.touches_files()) else { return false };
    let buffers = |path: &str| {
        let target = record.targets.iter().find(|target| target.path == path);
        matches!(
            target.map(|target| target.direct.support),
            Some(DirectSupport::SilentlyBuffered | DirectSupport::Refused)
        )
    };
    let is_buffered = plan.engine == EngineKind::Mmap
        || plan.direct == DirectPolicy::Off
        || (plan.direct == DirectPolicy::Prefer && plan.files.iter().any(|file| buffers(&file.path)));
    op == OpKind::Write && is_buffered && plan.sync == SyncMode::None && !plan.write_flags.dsync
}

/// Returns the CPU time per I/O of a phase; `None` without an I/O.
fn cpu_ns_per_io(phase: &PhaseRecord) -> Option<f64> {
    let count = |wanted: fn(OpKind) -> bool| {
        let ops = phase.jobs.iter().flat_map(|j| &j.ops).filter(|o| wanted(o.op));
        ops.map(|o| o.io_count as f64 + o.error_count as f64).sum::<f64>()
    };
    let transfers = count(|op| op != OpKind::Sync);
    let ios = if transfers > 0.0 { transfers } else { count(|_| true) };
    // In floating point, so that a record with absurd counts cannot overflow.
    (ios > 0.0).then(|| (phase.cpu.user_ns as f64 + phase.cpu.system_ns as f64) / ios)
}

/// Returns the plan of a job of a phase; `None` if the record does not contain it.
pub(crate) fn plan_of<'a>(record: &'a RunRecord, phase_index: usize, job: &JobRecord) -> Option<&'a JobPlan> {
    let jobs = &record.plan.jobs;
    jobs.iter()
        .find(|p| p.name == job.name && p.phase as usize == phase_index)
        .or_else(|| jobs.iter().find(|p| p.name == job.name))
}

/// Describes what a job of a phase does, as one line; empty if the record does not contain its plan. Two runs
/// of a job on a device are comparable if their loads are equal.
pub fn load_of(record: &RunRecord, phase_index: usize, job: &JobRecord) -> String {
    plan_of(record, phase_index, job)
        .map_or_else(String::new, |plan| format!("{}, {}", shape_of(plan), manner_of(plan)))
}

/// Returns true if a job makes each of its writes durable by a call.
pub(crate) fn commits(plan: &JobPlan) -> bool {
    plan.flush.fdatasync_every == 1 || plan.flush.fsync_every == 1
}

/// Describes a job's I/O with fio's names: `randread 4k q32`, `randrw 70/30 4k q32 ×4`, `write 4k
/// fdatasync=1`.
pub fn shape_of(job: &JobPlan) -> String {
    let random = if matches!(job.pattern.order, Order::Random { .. }) { "rand" } else { "" };
    let (mut text, sizes) = match job.pattern.mix {
        OpMix::Only(op) => (
            format!("{random}{op}"),
            match op {
                OpKind::Write | OpKind::Sync => &job.pattern.write_sizes,
                OpKind::Trim => &job.pattern.trim_sizes,
                OpKind::Read => &job.pattern.read_sizes,
            },
        ),
        OpMix::ReadWrite { read_percent } => (
            format!("{random}rw {read_percent}/{}", 100u8.saturating_sub(read_percent)),
            // fio accepts other sizes for writes; the plan values show them.
            &job.pattern.read_sizes,
        ),
    };
    if let Some(replay) = &job.replay {
        text = format!("replay of {}, {text}", replay.log);
    }
    text.push(' ');
    text.push_str(&match sizes {
        BlockSizes::Fixed(bytes) => short_bytes(*bytes),
        BlockSizes::Range { min_bytes, max_bytes } => {
            format!("{}-{}", short_bytes(*min_bytes), short_bytes(*max_bytes))
        }
        BlockSizes::Weighted(_) => "mixed sizes".to_owned(),
    });
    if job.engine.holds_a_queue() {
        text.push_str(&format!(" q{}", job.queue.depth));
    }
    if job.workers > 1 {
        text.push_str(&format!(" ×{}", job.workers));
    }
    for (every, name) in [(job.flush.fdatasync_every, "fdatasync"), (job.flush.fsync_every, "fsync")] {
        if every > 0 {
            text.push_str(&format!(" {name}={every}"));
        }
    }
    if let Some(range) = job.flush.range {
        text.push_str(&format!(" sync_file_range={range}"));
    }
    text
}

/// Describes a job's engine, caching, durability, pace and duration.
pub(crate) fn manner_of(job: &JobPlan) -> String {
    let mut parts = vec![format!("{} engine", job.engine.name())];
    if job.engine.touches_files() {
        parts.push(
            match (job.direct, job.engine) {
                (_, EngineKind::Mmap) => "through the page cache",
                (DirectPolicy::Require, _) => "direct",
                (DirectPolicy::Prefer, _) => "direct if supported",
                (DirectPolicy::Off, _) => "through the page cache",
            }
            .to_owned(),
        );
    }
    match job.sync {
        SyncMode::None => {}
        SyncMode::Dsync => parts.push("O_DSYNC".to_owned()),
        SyncMode::Sync => parts.push("O_SYNC".to_owned()),
    }
    if job.write_flags.dsync {
        parts.push("RWF_DSYNC".to_owned());
    }
    for (every, name) in [(job.flush.fdatasync_every, "fdatasync"), (job.flush.fsync_every, "fsync")] {
        match every {
            0 => {}
            1 => parts.push(format!("{name} after every write")),
            n => parts.push(format!("{name} after every {} writes", units::format_count(n))),
        }
    }
    if let Some(range) = job.flush.range {
        parts.push(format!("sync_file_range={range} (makes nothing durable)"));
    }
    parts.extend(job.flush.at_end().map(|call| format!("{call} at the end")));
    if let Some(pace) = &job.pace {
        if let Some(rate) = pace.ios_per_s {
            parts.push(match pace.of_writes {
                None => format!("{} I/Os due per second and worker", crate::text::figure(rate)),
                Some(writes) => {
                    let of = |rate: f64, what: &str| match rate > 0.0 {
                        true => format!("{} {what}", crate::text::figure(rate)),
                        false => format!("any number of {what}"),
                    };
                    format!("{} and {} due per second and worker", of(rate, "reads"), of(writes, "writes"))
                }
            });
        } else if let Some(rate) = pace.bytes_per_s {
            let of = |rate: f64| if rate > 0.0 { units::format_bandwidth(rate) } else { "any rate".to_owned() };
            parts.push(match pace.of_writes {
                None => format!("due at {} per worker", of(rate)),
                Some(writes) => format!("reads due at {}, writes at {}, per worker", of(rate), of(writes)),
            });
        }
    }
    if let Some(replay) = &job.replay {
        parts.push(match (replay.settings.is_paced, replay.settings.time_scale_percent) {
            (false, _) => "ignoring the log's timestamps".to_owned(),
            (true, 100) => "at the log's timestamps".to_owned(),
            (true, percent) => format!("at {percent} % of the log's rate"),
        });
    }
    if let Some(ns) = job.limits.runtime_ns {
        parts.push(format!("{} planned", units::format_duration_ns(ns)));
    }
    if job.limits.ramp_ns > 0 {
        parts.push(format!("after a ramp of {}", units::format_duration_ns(job.limits.ramp_ns)));
    }
    parts.extend(job.user.map(|user| format!("as {user}")));
    parts.join(", ")
}

/// Formats a size as in fio: `4k`, `1m`, `512`.
fn short_bytes(bytes: u64) -> String {
    for (shift, unit) in [(30, "g"), (20, "m"), (10, "k")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}
