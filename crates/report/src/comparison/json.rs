//! Writes a comparison as JSON, and reads it.

use super::answer::comparison_answer;
use trueio_model::{COMPARISON_FORMAT, COMPARISON_VERSION, Comparison, Document};

/// The reason why a text could not be read as a comparison.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// The text is not JSON.
    #[error("this is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text is JSON of another kind.
    #[error("this JSON is not a trueio comparison")]
    NotAComparison,
    /// A newer trueio wrote it.
    #[error("this comparison has version {0}; this program reads up to version {COMPARISON_VERSION}")]
    Newer(u64),
    /// Format and version are right, the rest is invalid.
    #[error("this comparison is damaged")]
    Damaged(#[source] serde_json::Error),
}

/// Formats the comparison as indented JSON with its answer, without a line feed at its end.
pub fn comparison_json(comparison: &Comparison) -> String {
    crate::json::indented(&answered(comparison))
}

/// Returns the comparison with its answer.
pub(super) fn answered(comparison: &Comparison) -> Comparison {
    Comparison { answer: Some(Box::new(comparison_answer(comparison))), ..comparison.clone() }
}

/// Reads a comparison of this or any earlier version. Never panics, whatever the text.
///
/// # Errors
/// [`ComparisonError`], which describes the text.
pub fn parse_comparison(text: &str) -> Result<Comparison, ComparisonError> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default)]
        format: serde_json::Value,
        #[serde(default)]
        version: serde_json::Value,
    }
    let head: Head = serde_json::from_str(text)
        .map_err(|e| if e.is_data() { ComparisonError::NotAComparison } else { ComparisonError::NotJson(e) })?;
    if head.format.as_str() != Some(COMPARISON_FORMAT) {
        return Err(ComparisonError::NotAComparison);
    }
    match head.version.as_u64() {
        Some(version) if version > u64::from(COMPARISON_VERSION) => Err(ComparisonError::Newer(version)),
        Some(1..) => {
            let mut comparison = Comparison::from_json(text).map_err(ComparisonError::Damaged)?;
            // It is derived.
            comparison.answer = None;
            comparison.setting.iter_mut().for_each(|record| record.upgrade());
            comparison.parts.iter_mut().flat_map(|part| &mut part.sides).for_each(|side| side.upgrade());
            Ok(comparison)
        }
        _ => Err(ComparisonError::NotAComparison),
    }
}
