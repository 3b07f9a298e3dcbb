//! A published experiment repeated: what was published, what was measured here, and what one says of the other.
//!
//! All figures are in SI base units: seconds, bytes per second, I/Os per second, shares from 0 to 1. Who shows them
//! chooses the unit; who reads published ones has put right what their source misnamed, and said so.

use crate::{
    Check, Environment, EvidenceLevel, FilePlan, OpKind, Outcome, Ruler, SyscallTrace, TargetFacts, ToolFacts, Verdict,
};
use serde::{Deserialize, Serialize};

/// The value of [`StudyRecord::format`].
pub const STUDY_FORMAT: &str = "trueio-study";
/// The version written today.
pub const STUDY_VERSION: u32 = 1;

/// A study that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Always [`STUDY_FORMAT`].
    pub format: String,
    /// [`STUDY_VERSION`] of the writer.
    pub version: u32,
    /// 128 random bits as 32 hexadecimal digits.
    pub id: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The same for people.
    pub started_at: String,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The program.
    pub tool: ToolFacts,
    /// The study's name.
    pub study: String,
    /// What it is about.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What was published.
    pub source: StudySource,
    /// True if sizes were made smaller so that it is soon done.
    pub is_quick: bool,
    /// What it was done to.
    pub targets: Vec<TargetFacts>,
    /// The machine.
    pub environment: Environment,
    /// What the tool itself costs here.
    pub ruler: Ruler,
    /// Figures that its tables show beside the published ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<StudyMetric>,
    /// The ways in which it was run, in order.
    pub modes: Vec<StudyMode>,
    /// How it ended.
    pub outcome: Outcome,
}

/// What was published, and what must be known to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudySource {
    /// Its title.
    pub title: String,
    /// Who published it.
    pub by: String,
    /// When, as far as is known.
    pub date: String,
    /// The machine, as far as the source tells.
    pub setting: String,
    /// Units that the source misnames, and what they are.
    pub corrections: Vec<String>,
    /// What its method could not show, from the source alone.
    pub doubts: Vec<String>,
    /// Published figures that cannot have measured what they say: computed from a limit.
    pub impossible: Vec<Impossible>,
}

/// A published figure beyond what the hardware can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Impossible {
    /// Where it stands in the source: (column, value).
    pub place: Vec<(String, String)>,
    /// Which figure.
    pub metric: StudyMetric,
    /// As published, in base units.
    pub value: f64,
    /// The rate it implies, in bytes per second.
    pub implied_bytes_per_s: f64,
    /// The most that is possible, in bytes per second.
    pub limit_bytes_per_s: f64,
    /// The whole sentence.
    pub sentence: String,
}

/// One way of running a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyMode {
    /// Its name: `faithful`, `improved`.
    pub name: String,
    /// What it does, in a sentence.
    pub title: String,
    /// What differs from the source's method, and what was chosen: sentences.
    pub notes: Vec<String>,
    /// What was made smaller, beside every figure: `size 64 MiB instead of 128 MiB`. Empty if nothing.
    pub scale: Vec<String>,
    /// Samples of each row.
    pub samples: u32,
    /// The order's seed; `None`: as listed.
    pub order_seed: Option<u64>,
    /// The rows, in the order of the study.
    pub rows: Vec<StudyRow>,
    /// Rows against each other, published beside measured.
    pub contrasts: Vec<Contrast>,
    /// What follows, in sentences.
    pub answers: Vec<String>,
}

/// One row: one job, measured one or more times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRow {
    /// Its name.
    pub name: String,
    /// Its place: (axis, value).
    pub key: Vec<(String, String)>,
    /// The job in short.
    pub shape: String,
    /// The files it used.
    pub files: Vec<FilePlan>,
    /// Its samples, in the order in which they were taken.
    pub samples: Vec<StudySample>,
    /// What the samples say together.
    pub figures: Vec<StudyFigure>,
    /// What was published of this row.
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

/// One measurement of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudySample {
    /// Its place among all samples of its mode, from 0.
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
    /// What the checks say together.
    pub verdict: Verdict,
    /// How far the evidence reaches.
    pub level: EvidenceLevel,
    /// The checks that objected.
    pub objections: Vec<Check>,
    /// Flushes that the disk counted meanwhile; `None` where none are counted.
    pub flush_count: Option<u64>,
    /// Calls that failed.
    pub error_count: u64,
    /// What had to be so before it began, and what was found when it was looked at just before:
    /// (`transport`, `uas: sda at 2-1:1.0, driver uas, 30 commands in flight at most`).
    #[serde(default)]
    pub conditions: Vec<(String, String)>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A figure of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SampleFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// In base units.
    pub value: f64,
}

/// What studies compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyMetric {
    /// Time from the first call to the last one's return, flushes inside included, in seconds.
    Elapsed,
    /// The same without the sync calls, in seconds. Of a row that makes none there is no such figure.
    ElapsedUnsynced,
    /// Time with the source of a row that fetches what it writes, in seconds: waiting for it, taking from it.
    SourceWait,
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Mean submission latency, in seconds.
    SlatMean,
    /// Mean completion latency, in seconds.
    ClatMean,
    /// Mean total latency, in seconds.
    LatMean,
    /// Median total latency, in seconds.
    LatP50,
    /// 99th percentile of the total latency, in seconds.
    LatP99,
    /// The share of the time with a request in flight at the disk, from 0 to 1.
    DiskBusy,
    /// Flushes that the disk counted.
    Flushes,
    /// Calls that failed.
    Errors,
}

impl StudyMetric {
    /// All of them.
    pub const ALL: [StudyMetric; 13] = [
        StudyMetric::Elapsed,
        StudyMetric::ElapsedUnsynced,
        StudyMetric::SourceWait,
        StudyMetric::Bandwidth,
        StudyMetric::Iops,
        StudyMetric::SlatMean,
        StudyMetric::ClatMean,
        StudyMetric::LatMean,
        StudyMetric::LatP50,
        StudyMetric::LatP99,
        StudyMetric::DiskBusy,
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
            StudyMetric::LatMean => "lat_mean",
            StudyMetric::LatP50 => "lat_p50",
            StudyMetric::LatP99 => "lat_p99",
            StudyMetric::DiskBusy => "disk_busy",
            StudyMetric::Flushes => "flushes",
            StudyMetric::Errors => "errors",
        }
    }

    /// True if more is better; `None`: neither.
    pub fn is_more_better(self) -> Option<bool> {
        match self {
            StudyMetric::Bandwidth | StudyMetric::Iops => Some(true),
            StudyMetric::DiskBusy | StudyMetric::Flushes => None,
            _ => Some(false),
        }
    }
}

/// What is made of a row's samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// What a row's samples say together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StudyFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// What was made of the samples.
    pub statistic: Statistic,
    /// In base units.
    pub value: f64,
    /// The 95 % interval; `None` where there are too few samples (six are needed).
    pub interval: Option<(f64, f64)>,
    /// How many samples.
    pub samples: u32,
}

/// A figure of the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which.
    pub metric: StudyMetric,
    /// What was made of the source's samples.
    pub statistic: Statistic,
    /// In base units, misnamed units put right.
    pub value: f64,
    /// Which of the source's machines; empty if there was one.
    pub setting: String,
    /// Why it cannot have measured what it says.
    pub impossible: Option<String>,
}

/// Whether what a row wrote was on stable storage when its time ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durability {
    /// The answer.
    pub is: DurabilityKind,
    /// Who says so.
    #[serde(rename = "witness")]
    pub source: String,
}

/// The answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityKind {
    /// Flushes or forced writes were seen at the disk, in the right order or in the right number.
    Shown,
    /// Asked for, and nothing seen speaks against it; it rests on the disk's word.
    Declared,
    /// Never asked for.
    NotAsked,
    /// Asked for, and the disk's counters or requests say the contrary.
    Refuted,
    /// Asked for, and it could not be shown: nobody could look, or what was seen leaves it open.
    NotShown,
}

/// One value of an axis against another, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// What it says, for a heading: `O_DIRECT against the page cache`.
    pub title: String,
    /// What else was equal: (axis, value).
    pub place: Vec<(String, String)>,
    /// Of which operation; `None`: of the row as a whole.
    pub op: Option<OpKind>,
    /// Which figure.
    pub metric: StudyMetric,
    /// What was made of the samples.
    pub statistic: Statistic,
    /// The axis.
    pub axis: String,
    /// The value above the line.
    pub of: String,
    /// The value below it.
    pub against: String,
    /// `of` divided by `against`, here; `None` if one of them has no figure.
    pub ratio: Option<RatioHere>,
    /// The same of the source, a row for each of its machines.
    pub published: Vec<PublishedRatio>,
    /// The whole in a sentence.
    pub sentence: String,
}

/// A ratio measured here.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioHere {
    /// The ratio.
    pub value: f64,
    /// Its 95 % interval, from rounds in which both were measured; `None` with fewer than six.
    pub interval: Option<(f64, f64)>,
}

/// A published ratio and how ours stands to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRatio {
    /// Which of the source's machines; empty if there was one.
    pub setting: String,
    /// The ratio.
    pub value: f64,
    /// What ours says of it.
    pub agreement: Agreement,
    /// True if one of its two figures cannot have measured what it says.
    pub is_impossible: bool,
}

/// How a ratio of ours stands to a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The same within 10 % and our interval.
    Agrees,
    /// The same side wins by another measure.
    SameDirection,
    /// The other side wins here.
    Opposite,
    /// Published as a difference, none here.
    NotHere,
    /// Published as none, a difference here.
    OnlyHere,
    /// Too few samples, or too much noise.
    CannotTell,
}
