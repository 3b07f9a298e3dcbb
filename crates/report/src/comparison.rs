//! A comparison in every output: terminal, JSON, HTML, Markdown, JUnit XML.
//!
//! All of them are pure functions of a [`trueio_model::Comparison`] and share their sentences (`words`). A
//! ratio never appears without its interval, and a withheld side has no ratio.

mod answer;
mod grid;
mod html;
mod json;
mod junit;
mod markdown;
mod plots;
mod screen;
mod terminal;
mod words;

pub(crate) use answer::shown;

pub use answer::comparison_answer;
pub use html::comparison_html;
pub use json::{ComparisonError, comparison_json, parse_comparison};
pub use junit::comparison_junit;
pub use markdown::comparison_markdown;
pub use screen::comparison_screen;
pub use terminal::{comparison_progress, comparison_terminal};
