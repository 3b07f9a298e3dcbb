//! A job's settings for its own reporting, in fio's terms: how its workers are grouped, which
//! latencies get percentiles, which logs are written.
//!
//! None of them changes the I/O or what is counted, except that results are kept per worker if set, and that logs are
//! written while the job runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The percentiles that fio reports by default.
pub const PERCENTILES_DEFAULT: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// The span over which fio averages bandwidth and IOPS for their minimum, maximum and deviation.
pub const AVERAGE_NS_DEFAULT: u64 = 500_000_000;

/// How a job is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutputPlan {
    /// What is reported as one result.
    pub grouping: Grouping,
    /// A reporting group begins with this job, even without a stonewall.
    pub new_group: bool,
    /// Percentiles of the completion latency.
    pub clat_percentiles: bool,
    /// Percentiles of the total latency.
    pub lat_percentiles: bool,
    /// Percentiles of the submission latency.
    pub slat_percentiles: bool,
    /// Which percentiles, smallest first, in percent.
    pub percentiles: Vec<f64>,
    /// The completion latency is not reported.
    pub hides_clat: bool,
    /// The total latency is not reported.
    pub hides_lat: bool,
    /// The submission latency is not reported.
    pub hides_slat: bool,
    /// Bandwidth and IOPS over time are not reported.
    pub hides_bw: bool,
    /// Reads, writes and trims as one.
    pub unified: Unified,
    /// Span over which bandwidth is averaged, in nanoseconds.
    pub bw_average_ns: u64,
    /// Span over which IOPS are averaged, in nanoseconds.
    pub iops_average_ns: u64,
    /// Logs written while the job runs.
    #[serde(skip_serializing_if = "LogPlan::is_empty")]
    pub logs: LogPlan,
    /// Each I/O is printed when it is issued and when it is complete (`--debug=io`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_ios: bool,
    /// Each random offset is printed when it is used (`--debug=random`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_draws: bool,
    /// Each block is printed when it is filled to be verified and when it is compared (`--debug=verify`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_verify: bool,
    /// Opening and closing of files is printed, and which file each I/O goes to (`--debug=file`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_files: bool,
    /// What fio's outputs count for metadata operations; a record counts each as one I/O of one byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<NameCounts>,
    /// The existing files that the job's logs, states and programs replace, by path, as they were when the job was planned. A
    /// path that is not listed had no file. Valid only on this machine and not kept in records.
    #[serde(skip)]
    pub replaced: BTreeMap<String, FileId>,
}

/// A file of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The device number of its filesystem.
    pub device: u64,
    /// Inode number, as stat(2) reports it.
    pub inode: u64,
}

/// How fio counts metadata operations: as I/Os of a size, of which the first to each file executes the operation and the
/// others do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameCounts {
    /// This number of operations, one pass, …
    pub names: u64,
    /// … is counted as this number of I/Os, …
    pub ios: u64,
    /// … of this size in bytes each. No data is transferred.
    pub block_bytes: u64,
}

impl NameCounts {
    /// Returns the I/Os and bytes that `names` operations are counted as.
    pub fn of(self, names: u64) -> (u64, u64) {
        let ios = u128::from(names) * u128::from(self.ios) / u128::from(self.names.max(1));
        let whole = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        (whole(ios), whole(ios.saturating_mul(u128::from(self.block_bytes))))
    }
}

impl Default for OutputPlan {
    fn default() -> Self {
        Self {
            grouping: Grouping::Job,
            new_group: false,
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            percentiles: PERCENTILES_DEFAULT.to_vec(),
            hides_clat: false,
            hides_lat: false,
            hides_slat: false,
            hides_bw: false,
            unified: Unified::No,
            bw_average_ns: AVERAGE_NS_DEFAULT,
            iops_average_ns: AVERAGE_NS_DEFAULT,
            logs: LogPlan::default(),
            shows_ios: false,
            shows_draws: false,
            shows_verify: false,
            shows_files: false,
            names: None,
            replaced: BTreeMap::new(),
        }
    }
}

impl OutputPlan {
    /// Returns true if nothing is set: records omit such a plan.
    pub fn is_default(&self) -> bool {
        *self == Self { replaced: self.replaced.clone(), ..Self::default() }
    }

    /// True if lines about single I/Os are printed.
    pub fn shows_any(&self) -> bool {
        self.shows_ios || self.shows_draws || self.shows_verify || self.shows_files
    }
}

/// What is reported as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// A job with all its workers.
    #[default]
    Job,
    /// Each worker: its results are kept in addition to those of its job.
    Worker,
    /// All jobs of a reporting group.
    Group,
}

/// Whether reads, writes and trims are reported as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unified {
    /// Each by itself.
    #[default]
    No,
    /// Only all of them together.
    Mixed,
    /// Each by itself, and all together.
    Both,
}

/// Logs of a job, in fio's columns. A prefix without a value: no such log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogPlan {
    /// Prefix of the bandwidth log: `PREFIX_bw.N.log`.
    pub bw: Option<String>,
    /// Prefix of the log of IOPS: `PREFIX_iops.N.log`.
    pub iops: Option<String>,
    /// Prefix of the logs of latency: `PREFIX_slat.N.log`, `PREFIX_clat.N.log`, `PREFIX_lat.N.log`.
    pub lat: Option<String>,
    /// Prefix of the log of histograms: `PREFIX_clat_hist.N.log`.
    pub hist: Option<String>,
    /// The file to which each issued I/O is logged, for a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iolog: Option<String>,
    /// Rows are averages over this time, in nanoseconds; 0: one row per I/O.
    pub average_ns: u64,
    /// Interval of the histogram log, in nanoseconds.
    pub hist_ns: u64,
    /// How often neighbouring buckets of a histogram are joined, 0 to 6.
    pub hist_coarseness: u8,
    /// The offset of each I/O is a column.
    pub has_offset: bool,
    /// The last column is each I/O's priority as the kernel's number, not whether its class is real time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_priority: bool,
    /// The last column is the time at which each I/O was issued.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_issue_time: bool,
    /// Which values of a span are written.
    pub window: LogWindow,
    /// Times are of the day, in milliseconds since 1970, not since the job began.
    pub has_unix_time: bool,
    /// All workers of a job write to the same files; otherwise each has files of its own.
    pub is_shared: bool,
    /// They are compressed in fio's format; their names end with `.fz`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_compressed: bool,
    /// Kinds that are not written although their prefix is set: of latencies that the job disables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LogKind>,
}

impl LogPlan {
    /// True if no log of completions is written.
    pub fn is_empty(&self) -> bool {
        self.bw.is_none() && self.iops.is_none() && self.lat.is_none() && self.hist.is_none()
    }

    /// Returns the file of a kind of log; `None` if it is not written. `worker` is the worker's number over the whole run,
    /// from 1.
    pub fn file(&self, kind: LogKind, worker: u32) -> Option<String> {
        let prefix = match kind {
            LogKind::Bw => &self.bw,
            LogKind::Iops => &self.iops,
            LogKind::Slat | LogKind::Clat | LogKind::Lat => &self.lat,
            LogKind::Histogram => &self.hist,
        };
        let prefix = prefix.as_ref().filter(|_| !self.left_out.contains(&kind))?;
        let number = if self.is_shared { String::new() } else { format!(".{worker}") };
        let packed = if self.is_packed(kind) { ".fz" } else { "" };
        Some(format!("{prefix}_{}{number}.log{packed}", kind.word()))
    }

    /// Returns whether a kind of log is compressed. Histograms stay text, as in fio.
    pub fn is_packed(&self, kind: LogKind) -> bool {
        self.is_compressed && kind != LogKind::Histogram
    }
}

/// The kinds of logs of completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// Bandwidth.
    Bw,
    /// I/Os a second.
    Iops,
    /// Submission latency.
    Slat,
    /// Completion latency.
    Clat,
    /// Both together.
    Lat,
    /// Histograms of the time to completion.
    Histogram,
}

impl LogKind {
    /// All of them.
    pub const ALL: [LogKind; 6] =
        [LogKind::Bw, LogKind::Iops, LogKind::Slat, LogKind::Clat, LogKind::Lat, LogKind::Histogram];

    /// Returns fio's word in the names of the files.
    pub fn word(self) -> &'static str {
        match self {
            LogKind::Bw => "bw",
            LogKind::Iops => "iops",
            LogKind::Slat => "slat",
            LogKind::Clat => "clat",
            LogKind::Lat => "lat",
            LogKind::Histogram => "clat_hist",
        }
    }
}

/// The values of a span in an averaged log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogWindow {
    /// The mean.
    #[default]
    Mean,
    /// The largest value.
    Max,
    /// The mean, and the largest value in the next column.
    Both,
}
