//! Every output of a study: terminal, JSON, HTML with plots, and the source's own row format.

mod answer;
mod html;
mod json;
mod markdown;
mod plots;
mod terminal;
mod words;

pub use answer::study_answer;
pub(crate) use answer::{row_mark, row_objections};
pub use html::study_html;
pub use json::{StudyError, parse_study, study_json};
pub use markdown::study_markdown;
pub use terminal::{study_progress, study_rows, study_terminal};
