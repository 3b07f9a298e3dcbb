//! The figures of a device over its runs, and where their level changed.
//!
//! Like a record it is plain data with a version, so that it can be shown again later and elsewhere.

use crate::{DocumentAnswer, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`Trend::format`].
pub const TREND_FORMAT: &str = "trueio-trend";
/// The version written today. A later version reads every earlier one.
pub const TREND_VERSION: u32 = 1;

/// The trend of a device, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Always [`TREND_FORMAT`].
    pub format: String,
    /// [`TREND_VERSION`] of the writer.
    pub version: u32,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The device.
    pub device: TrendDevice,
    /// Number of runs on the device.
    pub run_count: u64,
    /// Runs and figures that are not part of it.
    pub left_out: TrendLeftOut,
    /// The probability of a false change, in each series.
    pub p_max: f64,
    /// Number of series that were long enough to be searched.
    pub searched_count: u64,
    /// Minimum factor of a change.
    pub ratio_min: f64,
    /// Sentences about all series.
    pub sentences: Vec<String>,
    /// A metric of a load each.
    pub series: Vec<TrendSeries>,
    /// Headline, figures, statements, doubts and next steps. A document in memory has none: it is derived, and written with the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<DocumentAnswer>>,
}

/// A device of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrendDevice {
    /// Its number in the history; 0 if the runs were found by path and machine, or by tag.
    pub id: i64,
    /// Description of the device, as `history` prints it.
    pub label: String,
}

/// Runs and figures that are not part of a trend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrendLeftOut {
    /// Runs older than those that were asked for (`--limit`).
    #[serde(default)]
    pub older_runs: u64,
    /// Runs that did not end as planned, and results of other programs.
    pub incomplete_runs: u64,
    /// Runs on several devices at once.
    pub runs_on_several_devices: u64,
    /// Runs whose record cannot be read.
    pub unreadable_runs: u64,
    /// Figures that the evidence contradicts.
    pub contradicted_figures: u64,
}

/// A metric of runs that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendSeries {
    /// The job.
    pub job: String,
    /// The operation.
    pub op: String,
    /// The load: runs with the same one are comparable.
    pub load: String,
    /// The metric: `iops`, `bandwidth`, `p50`, `p99`, `p99.9`, `cpu`.
    pub metric: String,
    /// Its unit: `1/s`, `bytes/s`, `ns`.
    pub unit: String,
    /// One value per run, oldest first.
    pub points: Vec<TrendPoint>,
    /// The changes of level, oldest first.
    pub changes: Vec<TrendChange>,
    /// True if a clear step in the middle would be found.
    pub is_enough: bool,
    /// Sentences about it.
    pub sentences: Vec<String>,
}

/// The value of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendPoint {
    /// The run.
    #[serde(flatten)]
    pub run: TrendRun,
    /// The value, in the series' unit.
    pub value: f64,
    /// The verdict of its evidence; `None` without evidence.
    pub verdict: Option<Verdict>,
    /// What the screen says of the load: `disturbed: dd wrote 335 MiB`. Empty without evidence, and in trends of earlier programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// A run of a trend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrendRun {
    /// ID of the run in the history.
    pub run_id: String,
    /// When it began, as text.
    pub started_at: String,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// The last run of the earlier level.
    pub from: TrendRun,
    /// The first run of the later level.
    pub at: TrendRun,
    /// The earlier level, in the series' unit.
    pub before: f64,
    /// The later level, in the series' unit.
    pub after: f64,
    /// The later level over the earlier one.
    pub ratio: f64,
    /// The probability of so large a change by chance.
    pub p: f64,
    /// Other properties that changed between these runs.
    pub also_changed: Vec<String>,
    /// The sentence about it, which is one of [`TrendSeries::sentences`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sentence: String,
}
