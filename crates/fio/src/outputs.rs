//! A record in fio's formats: normal text, terse 2 to 5, JSON and JSON with histograms.
//!
//! Keys, types, units, order and layout are those of fio 3.42, so that what reads fio's results reads
//! these. How the record was made stays visible: JSON has one key more, `trueio`, with the verdict of
//! each phase and what was noticed; normal text has a line of it under each job.
//!
//! Where fio's own figures mislead, these do not: depths never exceed 100 %, no percentile lies
//! outside of the measured range, percentiles do not end at 17 s, a `jobs` entry of a job that never ran
//! has the error number of "cancelled" (125) instead of none. Under a rate, `lat` counts from the moment an
//! I/O was due; `clat` stays what it is, and `trueio` says so.
//!
//! Names, groups and options as they were typed come from [`trueio_model::FioJob`], if the jobs were written
//! in fio's language; of other jobs from the specification and the plan.
//!
//! Cannot know: the process number of a worker (they are threads; 0 is written), the time zone (times are
//! UTC). Standard deviations come from the histogram's buckets, whose width is 1/128 of a value at most;
//! means, minima and maxima are exact. Bandwidth is not rounded to milliseconds of run time first.
//!
//! Source: outputs of fio 3.33 and 3.42. No text or code of fio is here.

mod buckets;
mod clients;
mod entry;
mod json;
mod lines;
mod normal;
mod steady;
mod terse;
mod tree;

pub use buckets::bucket_middle;
pub use clients::{ServerResult, render_clients};
pub use lines::Told;

use entry::Document;
use trueio_model::{Plan, RunRecord};

/// A format of fio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// One line a job, fields separated by `;`.
    Terse,
    /// A JSON document.
    Json,
    /// The same with the histograms.
    JsonPlus,
    /// Text for people.
    Normal,
    /// The JSON document on one line; [`interval_lines`] gives those before it. Not fio's.
    JsonLines,
}

/// How a record is written as fio would.
#[derive(Debug, Clone, PartialEq)]
pub struct FioOutput {
    /// The formats; they are written in fio's order: terse, JSON, normal.
    pub formats: Vec<Format>,
    /// Of terse: 2 to 5.
    pub terse_version: u32,
    /// What the document calls its writer: `fio-3.42`.
    pub version: String,
    /// What a user should know of the run beside what the record says; JSON has them under `trueio`.
    pub warnings: Vec<String>,
    /// The record is of a run that goes on: its last phase is not judged, and jobs that are not there have not
    /// begun.
    pub is_interim: bool,
    /// The process that normal text names, 0 if none: workers are threads of one.
    pub pid: u32,
    /// How idle the processors were, if that is asked for (`--idle-prof`).
    pub idleness: Option<Idleness>,
}

/// How idle the processors were in the measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Idleness {
    /// All of them together, in percent.
    pub percent: f64,
    /// Each by its number; empty if only all are asked for.
    pub of_each: Vec<(u32, f64)>,
    /// How long a piece of work of always the same size takes on the processors, in microseconds: mean and standard
    /// deviation.
    pub unit_us: (f64, f64),
}

impl Idleness {
    /// The last line of fio's text.
    pub fn unit_line(&self) -> String {
        format!("  unit work: mean={:.2}us, stddev={:.2}\n", self.unit_us.0, self.unit_us.1)
    }
}

impl Default for FioOutput {
    fn default() -> Self {
        Self {
            formats: vec![Format::Normal],
            terse_version: 3,
            version: "fio-3.42".to_owned(),
            warnings: Vec::new(),
            is_interim: false,
            pid: 0,
            idleness: None,
        }
    }
}

/// The line that fio writes of a plan's job before it starts, without a line feed; `None` if there is no
/// such job. It belongs before normal text only.
pub fn banner(plan: &Plan, index: usize) -> Option<String> {
    normal::banner(plan, index)
}

/// The documents that were asked for, each ending with a line feed.
pub fn render(record: &RunRecord, options: &FioOutput) -> String {
    let document = Document::of(record, options);
    let mut text = String::new();
    let has = |format| options.formats.contains(&format);
    if has(Format::Terse) {
        text.push_str(&terse::terse(&document));
    }
    if has(Format::Json) || has(Format::JsonPlus) {
        text.push_str(&json::json(&document, has(Format::JsonPlus)));
    }
    if has(Format::Normal) {
        text.push_str(&normal::normal(&document));
    }
    if has(Format::JsonLines) {
        text.push_str(&json::json_line(&document));
    }
    text
}

/// JSON lines of what was done since the last ones: of the phase that runs, and of those that are over since then. `is_over`:
/// nothing runs any more.
pub fn interval_lines(record: &RunRecord, told: &mut Told, is_over: bool) -> String {
    lines::intervals(record, told, is_over)
}
