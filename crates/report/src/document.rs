//! Every document that this program writes, in every output that can show it.

use crate::comparison::{
    ComparisonError, comparison_html, comparison_json, comparison_junit, comparison_markdown, comparison_screen,
    comparison_terminal, parse_comparison,
};
use crate::csv;
use crate::hdr::{HdrError, comparison_hdr_log, hdr_log};
use crate::html::html_with;
use crate::json::{ReadError, head, json_with, parse};
use crate::junit::{record_junit, study_junit, trend_junit};
use crate::layout::Style;
use crate::markdown::markdown;
use crate::page::{PageError, document_in};
use crate::powercut::{PowercutError, parse_powercut, powercut_json, powercut_markdown, powercut_terminal};
use crate::prometheus;
use crate::standing::PastRun;
use crate::study::{StudyError, parse_study, study_html, study_json, study_markdown, study_terminal};
use crate::terminal::terminal;
use crate::trend::{TrendError, parse_trend, trend_html, trend_json, trend_markdown, trend_terminal};
use trueio_model::{
    COMPARISON_FORMAT, Comparison, POWERCUT_FORMAT, PowercutRecord, RunRecord, STUDY_FORMAT, StudyRecord, TREND_FORMAT,
    Trend,
};

/// A document of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A run.
    Record(Box<RunRecord>),
    /// A comparison.
    Comparison(Box<Comparison>),
    /// A study.
    Study(Box<StudyRecord>),
    /// A device's figures over its runs.
    Trend(Box<Trend>),
    /// Cuts of power of a device.
    Powercut(Box<PowercutRecord>),
}

/// An output that is a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The document itself.
    Json,
    /// A self-contained page.
    Html,
    /// GitHub's Markdown.
    Markdown,
    /// One line per figure.
    Csv,
    /// JUnit XML.
    Junit,
    /// Latency histograms as an HdrHistogram log.
    Hdr,
    /// Prometheus' text format, for node_exporter's textfile collector.
    Prometheus,
}

impl Format {
    /// All of them, with the option that names their file.
    pub const ALL: [(&'static str, Format); 7] = [
        ("json", Format::Json),
        ("html", Format::Html),
        ("markdown", Format::Markdown),
        ("csv", Format::Csv),
        ("junit", Format::Junit),
        ("hdr", Format::Hdr),
        ("prom", Format::Prometheus),
    ];
}

/// The reason why a text could not be read as a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is a comparison that cannot be read.
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    /// It is a study that cannot be read.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// It is a trend that cannot be read.
    #[error(transparent)]
    Trend(#[from] TrendError),
    /// It is a record of cuts of power that cannot be read.
    #[error(transparent)]
    Powercut(#[from] PowercutError),
    /// It is a page without a document that can be read.
    #[error(transparent)]
    Page(#[from] PageError),
    /// It is none of these, and no readable record.
    #[error(transparent)]
    Record(#[from] ReadError),
}

/// The reason why a document has no such output.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The kind of document does not contain what the output shows.
    #[error("{kind} contains {missing}")]
    NotThere {
        /// The document: `a trend`.
        kind: &'static str,
        /// What is missing: `no latency histograms`.
        missing: &'static str,
    },
    /// The histogram log could not be created.
    #[error("the HdrHistogram log could not be created")]
    Hdr(#[from] HdrError),
}

impl Document {
    /// Reads any document that this program writes, as JSON or in a page. Never panics, whatever the text.
    ///
    /// # Errors
    /// [`DocumentError`], which describes the text.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let page = document_in(text)?;
        let text = page.as_deref().unwrap_or(text);
        let format = head(text).map(|(format, _)| format).unwrap_or_default();
        Ok(match format.as_str() {
            COMPARISON_FORMAT => Document::Comparison(Box::new(parse_comparison(text)?)),
            STUDY_FORMAT => Document::Study(Box::new(parse_study(text)?)),
            TREND_FORMAT => Document::Trend(Box::new(parse_trend(text)?)),
            POWERCUT_FORMAT => Document::Powercut(Box::new(parse_powercut(text)?)),
            _ => Document::Record(Box::new(parse(text)?)),
        })
    }

    /// Renders the document as text for a terminal, ending with a line feed.
    pub fn terminal(&self, style: &Style) -> String {
        match self {
            Document::Record(record) => terminal(record, style),
            Document::Comparison(comparison) => comparison_terminal(comparison, style),
            Document::Study(study) => study_terminal(study, style),
            Document::Trend(trend) => trend_terminal(trend, style),
            Document::Powercut(record) => powercut_terminal(record, style),
        }
    }

    /// Renders the document as one screen, where it has one: a comparison. `details` is how to get the details.
    pub fn screen(&self, style: &Style, details: &str) -> String {
        match self {
            Document::Comparison(comparison) => comparison_screen(comparison, style, details),
            _ => self.terminal(style),
        }
    }

    /// Renders the document in a format, ending with a line feed. `past` are earlier runs of a record's device.
    ///
    /// # Errors
    /// [`RenderError::NotThere`] if the document does not contain what the format shows.
    pub fn render(&self, format: Format, past: &[PastRun]) -> Result<String, RenderError> {
        let missing = |missing| Err(RenderError::NotThere { kind: self.kind(), missing });
        let line = |text: String| Ok(format!("{text}\n"));
        match (self, format) {
            (Document::Record(record), Format::Json) => line(json_with(record, past)),
            (Document::Record(record), Format::Html) => Ok(html_with(record, past)),
            (Document::Record(record), Format::Markdown) => Ok(markdown(record, past)),
            (Document::Record(record), Format::Csv) => Ok(csv::record(record)),
            (Document::Record(record), Format::Junit) => Ok(record_junit(record)),
            (Document::Record(record), Format::Hdr) => Ok(hdr_log(record)?),
            (Document::Record(record), Format::Prometheus) => Ok(prometheus::record(record)),
            (Document::Comparison(comparison), Format::Json) => line(comparison_json(comparison)),
            (Document::Comparison(comparison), Format::Html) => Ok(comparison_html(comparison)),
            (Document::Comparison(comparison), Format::Markdown) => Ok(comparison_markdown(comparison)),
            (Document::Comparison(comparison), Format::Csv) => Ok(csv::comparison(comparison)),
            (Document::Comparison(comparison), Format::Junit) => Ok(comparison_junit(comparison)),
            (Document::Comparison(comparison), Format::Hdr) => Ok(comparison_hdr_log(comparison)?),
            (Document::Comparison(comparison), Format::Prometheus) => Ok(prometheus::comparison(comparison)),
            (Document::Study(study), Format::Json) => line(study_json(study)),
            (Document::Study(study), Format::Html) => Ok(study_html(study)),
            (Document::Study(study), Format::Markdown) => Ok(study_markdown(study)),
            (Document::Study(study), Format::Csv) => Ok(csv::study(study)),
            (Document::Study(study), Format::Prometheus) => Ok(prometheus::study(study)),
            (Document::Trend(trend), Format::Json) => line(trend_json(trend)),
            (Document::Trend(trend), Format::Html) => Ok(trend_html(trend)),
            (Document::Trend(trend), Format::Markdown) => Ok(trend_markdown(trend)),
            (Document::Trend(trend), Format::Csv) => Ok(csv::trend(trend)),
            (Document::Trend(trend), Format::Prometheus) => Ok(prometheus::trend(trend)),
            (Document::Study(study), Format::Junit) => Ok(study_junit(study)),
            (Document::Trend(trend), Format::Junit) => Ok(trend_junit(trend)),
            (Document::Powercut(record), Format::Json) => line(powercut_json(record)),
            (Document::Powercut(record), Format::Markdown) => Ok(powercut_markdown(record)),
            (Document::Powercut(_), _) => missing("verdicts and no figures of a load; --json and --markdown write it"),
            (Document::Study(_) | Document::Trend(_), Format::Hdr) => {
                missing("figures and no latency histograms, which --hdr writes")
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Document::Record(_) => "a record",
            Document::Comparison(_) => "a comparison",
            Document::Study(_) => "a study",
            Document::Trend(_) => "a trend",
            Document::Powercut(_) => "a record of cuts of power",
        }
    }
}
