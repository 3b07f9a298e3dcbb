//! A record in fio's formats: normal text, terse 2 to 5, JSON and JSON with histograms.
//!
//! Keys, types, units, order and layout are those of fio 3.42, so that programs that read fio's results can read
//! these. One key and one line are ours: JSON has a key `trueio` with the verdict and the notes of each phase, and
//! normal text has a line `trueio` below each job.
//!
//! Figures that mislead in fio are corrected: depths never exceed 100 %, no percentile lies outside of the measured
//! range, percentiles do not end at 17 s, and the `jobs` entry of a job that never ran has the error number of
//! "cancelled" (125) instead of none. With a rate, `lat` counts from the time an I/O was due; `clat` is the same as in
//! fio, and `trueio` notes it.
//!
//! Names, groups and options come from [`trueio_model::FioJob`], as typed, if the jobs are in fio's language, and
//! otherwise from the specification and the plan.
//!
//! Limits: workers are threads, so their process number is printed as 0; times are UTC. Standard deviations come from the histogram's buckets, whose width is 1/128 of a value at most;
//! means, minima and maxima are exact. Bandwidth is not rounded to milliseconds of run time first.
//!
//! Source: outputs of fio 3.33 and 3.42. No text or code of fio is here.

mod buckets;
mod clients;
mod entry;
mod json;
mod lines;
mod normal;
mod servers;
mod steady;
mod terse;
mod tree;
mod verify_errors;

pub use buckets::bucket_middle;
pub use clients::{ServerResult, render_clients};
pub(crate) use entry::failed_jobs;
pub use lines::ReportedSoFar;
pub use verify_errors::verify_errors;

use entry::Document;
use trueio_model::{Mark, Plan, RunRecord};

/// Returns the word for a phase. In fio's formats its figures stand beside it whatever they describe, so none is withheld.
fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Withheld => Mark::NotTheDisk.word(),
        mark => mark.word(),
    }
}

/// An output format of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// One line for each job, with fields separated by `;`.
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

/// How a record is written in fio's formats.
#[derive(Debug, Clone, PartialEq)]
pub struct FioOutput {
    /// The formats; they are written in fio's order: terse, JSON, normal.
    pub formats: Vec<Format>,
    /// The version of the terse format: 2 to 5.
    pub terse_version: u32,
    /// The version of fio that the document names: `fio-3.42`.
    pub version: String,
    /// Notes about the run that the record does not contain. JSON has them under `trueio`.
    pub warnings: Vec<String>,
    /// Whether the run is in progress: its last phase has no verdict, and jobs without a record have not begun.
    pub is_interim: bool,
    /// The process number in normal text, the same for all workers, because they are threads; 0 if there is none.
    pub pid: u32,
    /// Idleness of the processors, if requested (`--idle-prof`).
    pub idleness: Option<Idleness>,
}

/// Idleness of the processors in the measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Idleness {
    /// All of them together, in percent.
    pub percent: f64,
    /// Each processor, by its number; empty if only the sum is requested.
    pub of_each: Vec<(u32, f64)>,
    /// Duration of a fixed piece of work on the processors, in microseconds: mean and standard deviation.
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

/// Returns the line that fio prints for a job of the plan before it starts, without a line feed; `None` if there is no
/// such job. Only normal text has these lines.
pub fn banner(plan: &Plan, index: usize) -> Option<String> {
    normal::banner(plan, index)
}

/// Renders the requested documents, each with a line feed at its end.
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

/// Returns JSON lines for the I/O since the previous lines: one for the current phase, and one for each phase that ended
/// since then. `is_over`: the run has ended.
pub fn interval_lines(record: &RunRecord, reported: &mut ReportedSoFar, is_over: bool) -> String {
    lines::intervals(record, reported, is_over)
}
