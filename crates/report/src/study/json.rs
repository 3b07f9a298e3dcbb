//! Writes a study as JSON, and reads it.

use super::answer::study_answer;
use trueio_model::{Document, STUDY_FORMAT, STUDY_VERSION, StudyRecord};

/// The reason why a text could not be read as a study's record.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The text is not JSON, or not of this kind.
    #[error("this is not the record of a trueio study")]
    NotAStudy,
    /// A newer trueio wrote it.
    #[error("this study's record has version {0}; this program reads up to version {STUDY_VERSION}")]
    Newer(u64),
    /// Format and version are right, the rest is invalid.
    #[error("this study's record is damaged")]
    Damaged(#[source] serde_json::Error),
}

/// Formats the study as indented JSON with its answer, without a line feed at its end.
pub fn study_json(study: &StudyRecord) -> String {
    let answer = Some(Box::new(study_answer(study)));
    crate::json::indented(&StudyRecord { answer, ..study.clone() })
}

/// Reads the record of a study. Never panics, whatever the text.
///
/// # Errors
/// [`StudyError`], which describes the text.
pub fn parse_study(text: &str) -> Result<StudyRecord, StudyError> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default)]
        format: serde_json::Value,
        #[serde(default)]
        version: serde_json::Value,
    }
    let head: Head = serde_json::from_str(text).map_err(|_| StudyError::NotAStudy)?;
    match (head.format.as_str(), head.version.as_u64()) {
        (Some(STUDY_FORMAT), Some(version)) if version > u64::from(STUDY_VERSION) => Err(StudyError::Newer(version)),
        (Some(STUDY_FORMAT), Some(1..)) => {
            let study = StudyRecord::from_json(text).map_err(StudyError::Damaged)?;
            // It is derived.
            Ok(StudyRecord { answer: None, ..study })
        }
        _ => Err(StudyError::NotAStudy),
    }
}
