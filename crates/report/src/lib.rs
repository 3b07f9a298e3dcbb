//! Renders every document (record, comparison, study, trend) in every output: terminal, JSON, HTML, Markdown, CSV, Prometheus,
//! JUnit XML, HdrHistogram, and the progress line.
//!
//! All of them are pure functions of the document ([`Document`]): no device, no file and no clock is
//! touched (only [`print_text`] and [`print_message`] write, to the terminal), so a record can be reported a year later on another machine. They share one
//! [`summary`](summary()), so a figure is the same in every output, and they keep two rules: a percentile
//! that the sample cannot support is shown as a dash, never as a number; a contradicted figure never appears
//! without its reason.
//!
//! A record may come from anywhere. Reading one never panics ([`parse`]), and its text cannot control a
//! terminal or a browser: control characters are replaced, markup is escaped.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod again;
mod answer;
mod badge;
mod classes;
mod comparison;
mod course;
mod csv;
mod document;
mod facts;
mod hdr;
mod html;
mod io_trace;
mod json;
mod junit;
mod latency_parts;
mod layout;
mod limits;
mod markdown;
mod page;
mod plot;
mod powercut;
mod printing;
mod priorities;
mod progress;
mod prometheus;
mod ranks;
mod screen;
mod standing;
mod statements;
mod study;
mod summary;
mod svg;
mod syscalls;
mod terminal;
mod text;
mod trend;
mod verdicts;
mod words;

pub use again::Again;
pub use answer::answer;
pub use classes::{ClassFigure, ClassSource, DeviceClass, Trust, class_sources, classes_of};
pub use comparison::{
    ComparisonError, comparison_answer, comparison_html, comparison_json, comparison_junit, comparison_markdown,
    comparison_progress, comparison_screen, comparison_terminal, parse_comparison,
};
pub use csv::spreadsheet_text;
pub use document::{Document, DocumentError, Format, RenderError};
pub use facts::facts;
pub use hdr::{HdrError, hdr, hdr_log};
pub use html::html;
pub use io_trace::{TracePicture, TracePoint, TraceRange, trace_html, trace_terminal};
pub use json::{ReadError, json, parse};
pub use layout::Style;
pub use limits::{LimitRefusal, check_limits, limit_line, reference_of};
pub use markdown::markdown;
pub use page::PageError;
pub use powercut::{
    PowercutError, parse_powercut, powercut_json, powercut_limit, powercut_markdown, powercut_terminal,
    powercut_verdicts,
};
pub use printing::{
    Color, escaped, has_colors, is_dumb, log_messages, prepare_log, print_message, print_text, set_color,
};
pub use progress::progress_line;
pub use ranks::ranks_text;
pub use screen::{Current, current_line, load_words, remaining_line, screen, screen_phase, screen_table};
pub use standing::{
    Band, ClassValue, LinkLimit, PastRun, PastValues, Placement, Position, Standing, Withheld, class_values, standing,
};
pub use study::{
    StudyError, parse_study, study_answer, study_html, study_json, study_markdown, study_progress, study_rows,
    study_terminal,
};
pub use summary::{Interval, Row, load_of, shape_of, summary};
pub use terminal::{target, terminal};
pub use text::{clean, clean_lines, fitted, padded, width_of, wrap};
pub use trend::{TrendError, parse_trend, trend_answer, trend_html, trend_json, trend_markdown, trend_terminal};
pub use verdicts::{
    Finding, Load, Mark, Reason, accept_hint, conclusion, mark, outcome_words, raise, reasons, reasons_of, row_words,
    worst,
};
