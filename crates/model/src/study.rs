//! A repeated published experiment: the published figures, the figures measured here, and their comparison.
//!
//! All figures are in SI base units: seconds, bytes per second, I/Os per second, shares from 0 to 1. Reports choose the
//! unit for display. Published figures with a misnamed unit are corrected when they are read, with a note.

use crate::{
    Check, DocumentAnswer, Environment, EvidenceLevel, FilePlan, OpKind, Outcome, PowerLoss, Ruler, SyscallTrace,
    TargetFacts, ToolFacts, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`StudyRecord::format`].
pub const STUDY_FORMAT: &str = "trueio-study";
/// The version written today.
pub const STUDY_VERSION: u32 = 1;

/// A study that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecord {
    /// Always [`STUDY_FORMAT`].
    pub format: String,
    /// [`STUDY_VERSION`] of the writer.
    pub version: u32,
    /// 128 random bits as 32 hexadecimal digits.
    pub id: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The same as text.
    pub started_at: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// The study's name.
    pub study: String,
    /// Its subject.
    pub title: String,
    /// Its question.
    pub question: String,
    /// What was published.
    pub source: StudySource,
    /// True if sizes were reduced to shorten it.
    pub is_quick: bool,
    /// The targets.
    pub targets: Vec<TargetFacts>,
    /// The machine.
    pub environment: Environment,
    /// The cost of the tool itself on this machine.
    pub ruler: Ruler,
    /// Figures that its tables show in addition to the published ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<StudyMetric>,
    /// The ways in which it was run, in order.
    pub modes: Vec<StudyMode>,
    /// How it ended.
    pub outcome: Outcome,
    /// What earlier cuts of power have shown of the device, if its identity is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_loss: Option<Box<PowerLoss>>,
    /// Headline, figures, statements, doubts and next steps. A document in memory has none: it is derived, and written with the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<DocumentAnswer>>,
}

/// The source, and what a reader must know about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudySource {
    /// Its title.
    pub title: String,
    /// The author or publisher.
    pub by: String,
    /// Date of publication, as far as known.
    pub date: String,
    /// The machine, as far as the source describes it.
    pub setting: String,
    /// Units that the source misnames, and the correct ones.
    pub corrections: Vec<String>,
    /// The author's note on the figures that are printed with an asterisk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asterisk: Option<String>,
    /// The limits of its method, from the source alone.
    pub doubts: Vec<String>,
    /// Published figures that exceed a limit of the hardware, so that they cannot be right.
    pub impossible: Vec<Impossible>,
}

/// A published figure beyond what the hardware can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impossible {
    /// Its position in the source: (column, value).
    pub place: Vec<(String, String)>,
    /// Which figure.
    pub metric: StudyMetric,
    /// As published, in base units.
    pub value: f64,
    /// The rate it implies, in bytes per second.
    pub implied_bytes_per_s: f64,
    /// The limit, in bytes per second.
    pub limit_bytes_per_s: f64,
    /// The assumption that the implied rate needs, if the source does not print everything: `15,625 calls of 128 KiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumption: Option<String>,
    /// The most calls for which the figure would be within the limit; `None` without an assumption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible_count_max: Option<u64>,
    /// The whole sentence.
    pub sentence: String,
}

/// One way of running a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyMode {
    /// Its name: `faithful`, `improved`.
    pub name: String,
    /// Its description, in a sentence.
    pub title: String,
    /// What differs from the source's method, and what was chosen: sentences.
    pub notes: Vec<String>,
    /// What was reduced, to show with every figure: `size 64 MiB instead of 128 MiB`. Empty if nothing.
    pub scale: Vec<String>,
    /// Samples of each row.
    pub samples: u32,
    /// The order's seed; `None`: as listed.
    pub order_seed: Option<u64>,
    /// The rows, in the order of the study.
    pub rows: Vec<StudyRow>,
    /// Comparisons of rows, published and measured.
    pub contrasts: Vec<Contrast>,
    /// The conclusions, in sentences.
    pub answers: Vec<String>,
}

/// One row: one job, measured one or more times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyRow {
    /// Its name.
    pub name: String,
    /// Its values on the axes: (axis, value).
    pub key: Vec<(String, String)>,
    /// The job in short.
    pub shape: String,
    /// The files it used.
    pub files: Vec<FilePlan>,
    /// Its samples, in the order in which they were taken.
    pub samples: Vec<StudySample>,
    /// The figures of all samples together.
    pub figures: Vec<StudyFigure>,
    /// The published figures of this row.
    pub published: Vec<PublishedFigure>,
    /// The worst verdict of its samples; `None` without a sample.
    pub verdict: Option<Verdict>,
    /// Every check of the sample with the worst verdict (the first such).
    pub checks: Vec<Check>,
    /// Whether what was written reached stable storage.
    pub durability: Option<Durability>,
    /// The system calls of its last sample, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscalls: Option<SyscallTrace>,
    /// Why there is no figure, if there is none.
    pub failure: Option<String>,
    /// The row as the source prints its own; `None` if it has no such format.
    pub as_published: Option<String>,
}

/// Returns a value of an axis for a row's name: a number gets the axis's name (`depth 16`), other values have a meaning of
/// their own (`libaio`).
pub fn value_label(axis: &str, value: &str) -> String {
    if value.starts_with(|c: char| c.is_ascii_digit()) { format!("{axis} {value}") } else { value.to_owned() }
}

/// One measurement of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudySample {
    /// Its position among all samples of its mode, from 0.
    pub place: u32,
    /// Its round, from 0.
    pub round: u32,
    /// When it began, in nanoseconds since the mode began.
    pub begin_ns: u64,
    /// Its figures.
    pub figures: Vec<SampleFigure>,
    /// Reads, writes and trims that succeeded.
    pub io_count: u64,
    /// Bytes that they transferred.
    pub byte_count: u64,
    /// Sync calls that succeeded.
    pub sync_count: u64,
    /// The verdict of all checks together.
    pub verdict: Verdict,
    /// The evidence level.
    pub level: EvidenceLevel,
    /// The checks that reported a difference.
    pub objections: Vec<Check>,
    /// Flushes that the disk counted during it; `None` if the kernel does not count them.
    pub flush_count: Option<u64>,
    /// Calls that failed.
    pub error_count: u64,
    /// The conditions before it began, and what was found when they were checked just before:
    /// (`transport`, `uas: sda at 2-1:1.0, driver uas, 30 commands in flight at most`).
    #[serde(default)]
    pub conditions: Vec<(String, String)>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A figure of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// In base units.
    pub value: f64,
}

/// What studies compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyMetric {
    /// Time from the first call to the last one's return, including flushes in between, in seconds.
    Elapsed,
    /// The same without the sync calls, in seconds. Missing for a row without sync calls.
    ElapsedUnsynced,
    /// Time of waiting for and reading from the source of a row that fetches what it writes, in seconds.
    SourceWait,
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Mean submission latency, in seconds.
    SlatMean,
    /// Mean completion latency, in seconds.
    ClatMean,
    /// Shortest completion latency, in seconds.
    ClatMin,
    /// Longest completion latency, in seconds.
    ClatMax,
    /// Standard deviation of the completion latency, in seconds.
    ClatStdev,
    /// Median completion latency, in seconds.
    ClatP50,
    /// 99th percentile of the completion latency, in seconds.
    ClatP99,
    /// Sum of the submission latencies, in seconds: the time that a worker spends in submitting.
    Submission,
    /// Mean total latency, in seconds.
    LatMean,
    /// Median total latency, in seconds.
    LatP50,
    /// 99th percentile of the total latency, in seconds.
    LatP99,
    /// The share of the time with a request in flight at the disk, from 0 to 1.
    DiskBusy,
    /// Requests that the disk completed, without empty flushes.
    DiskRequests,
    /// Requests that were merged into a queued one.
    DiskMerges,
    /// Sum over the disk's requests of their time in flight, in seconds.
    DiskWait,
    /// Flushes that the disk counted.
    Flushes,
    /// Calls that failed.
    Errors,
}

impl StudyMetric {
    /// All of them.
    pub const ALL: [StudyMetric; 22] = [
        StudyMetric::Elapsed,
        StudyMetric::ElapsedUnsynced,
        StudyMetric::SourceWait,
        StudyMetric::Bandwidth,
        StudyMetric::Iops,
        StudyMetric::SlatMean,
        StudyMetric::ClatMean,
        StudyMetric::ClatMin,
        StudyMetric::ClatMax,
        StudyMetric::ClatStdev,
        StudyMetric::ClatP50,
        StudyMetric::ClatP99,
        StudyMetric::Submission,
        StudyMetric::LatMean,
        StudyMetric::LatP50,
        StudyMetric::LatP99,
        StudyMetric::DiskBusy,
        StudyMetric::DiskRequests,
        StudyMetric::DiskMerges,
        StudyMetric::DiskWait,
        StudyMetric::Flushes,
        StudyMetric::Errors,
    ];

    /// The name in study files and records.
    pub fn name(self) -> &'static str {
        match self {
            StudyMetric::Elapsed => "elapsed",
            StudyMetric::ElapsedUnsynced => "elapsed_unsynced",
            StudyMetric::SourceWait => "source_wait",
            StudyMetric::Bandwidth => "bandwidth",
            StudyMetric::Iops => "iops",
            StudyMetric::SlatMean => "slat_mean",
            StudyMetric::ClatMean => "clat_mean",
            StudyMetric::ClatMin => "clat_min",
            StudyMetric::ClatMax => "clat_max",
            StudyMetric::ClatStdev => "clat_stdev",
            StudyMetric::ClatP50 => "clat_p50",
            StudyMetric::ClatP99 => "clat_p99",
            StudyMetric::Submission => "submission",
            StudyMetric::LatMean => "lat_mean",
            StudyMetric::LatP50 => "lat_p50",
            StudyMetric::LatP99 => "lat_p99",
            StudyMetric::DiskBusy => "disk_busy",
            StudyMetric::DiskRequests => "disk_requests",
            StudyMetric::DiskMerges => "disk_merges",
            StudyMetric::DiskWait => "disk_wait",
            StudyMetric::Flushes => "flushes",
            StudyMetric::Errors => "errors",
        }
    }

    /// True if more is better; `None`: neither.
    pub fn is_more_better(self) -> Option<bool> {
        match self {
            StudyMetric::Bandwidth | StudyMetric::Iops => Some(true),
            StudyMetric::DiskBusy
            | StudyMetric::DiskRequests
            | StudyMetric::DiskMerges
            | StudyMetric::DiskWait
            | StudyMetric::Flushes => None,
            _ => Some(false),
        }
    }
}

/// A statistic of a row's samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The middle (pseudo-median, with its interval from six samples on).
    #[default]
    Median,
    /// The smallest.
    P0,
    /// The 90th percentile (nearest rank).
    P90,
    /// The largest.
    P100,
}

impl Statistic {
    /// Its name in the source's columns.
    pub fn name(self) -> &'static str {
        match self {
            Statistic::Median => "median",
            Statistic::P0 => "P0",
            Statistic::P90 => "P90",
            Statistic::P100 => "P100",
        }
    }
}

/// A figure of all samples of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// The statistic.
    pub statistic: Statistic,
    /// In base units.
    pub value: f64,
    /// The 95 % interval; `None` if there are too few samples (six are needed).
    pub interval: Option<(f64, f64)>,
    /// How many samples.
    pub samples: u32,
}

/// A figure of the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// The statistic of the source's samples.
    pub statistic: Statistic,
    /// In base units, with misnamed units corrected.
    pub value: f64,
    /// As the source prints it, with its unit and asterisk: `0.112* s`; empty in older documents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// Which of the source's machines; empty if there was one.
    pub setting: String,
    /// Why it cannot be right.
    pub impossible: Option<String>,
}

/// Whether what a row wrote was on stable storage when its time ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Durability {
    /// The answer.
    pub is: DurabilityKind,
    /// The source of the answer.
    #[serde(rename = "witness")]
    pub source: String,
}

/// The answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityKind {
    /// Flushes or forced writes were seen at the disk, in the right order or in the right number.
    Shown,
    /// Requested, and nothing contradicts it; it depends on the disk's own report.
    Declared,
    /// Never requested.
    NotAsked,
    /// Requested, but the disk's counters or requests contradict it.
    Refuted,
    /// Requested, but not shown: no source was readable, or the result is inconclusive.
    NotShown,
}

/// One value of an axis against another, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// Its heading: `O_DIRECT against the page cache`.
    pub title: String,
    /// What else was equal: (axis, value).
    pub place: Vec<(String, String)>,
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which figure.
    pub metric: StudyMetric,
    /// The statistic.
    pub statistic: Statistic,
    /// The axis.
    pub axis: String,
    /// The value above the line.
    pub of: String,
    /// The value below it.
    pub against: String,
    /// `of` divided by `against`, here; `None` if one of them has no figure.
    pub ratio: Option<RatioHere>,
    /// The published ratios, one for each machine of the source.
    pub published: Vec<PublishedRatio>,
    /// The whole in a sentence.
    pub sentence: String,
}

/// A ratio measured here.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioHere {
    /// One figure over the other: 2 means twice as much.
    pub value: f64,
    /// Its 95 % interval, from rounds in which both were measured; `None` with fewer than six.
    pub interval: Option<(f64, f64)>,
}

/// A published ratio and the comparison of ours with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRatio {
    /// Which of the source's machines; empty if there was one.
    pub setting: String,
    /// One figure over the other: 2 means twice as much.
    pub value: f64,
    /// The comparison of ours with it.
    pub agreement: Agreement,
    /// True if one of its two figures cannot be right.
    pub is_impossible: bool,
    /// The assumption under which one of its figures cannot be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumption: Option<String>,
}

/// The comparison of a ratio of ours with a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Equal within 10 % and our interval.
    Agrees,
    /// The same side wins by another amount.
    SameDirection,
    /// The other side wins here.
    Opposite,
    /// Published as a difference, none here.
    NotHere,
    /// Published as no difference, a difference here.
    OnlyHere,
    /// Too few samples, or too much noise.
    CannotTell,
}
