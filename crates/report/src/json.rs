//! A record as JSON, and back.
//!
//! The text is indented, but a list of plain values and a small object stand on one line: a series
//! row is a line, a histogram's buckets are two, so that a record can be read and compared with
//! line tools.
//!
//! Reading looks at `format` and `version` before anything else, so that a file of another program
//! and a record of a newer trueio are told apart from a damaged one. Fields that this version does not know are
//! ignored. It never panics, whatever the text.

use serde::Deserialize;
use serde_json::Value;
use trueio_model::{RECORD_FORMAT, RECORD_VERSION, RunRecord};

/// Why a text is not a record that can be read here.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON.
    #[error("this is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is JSON of another kind.
    #[error("this JSON is not a trueio record: its `format` is {found}, not \"{RECORD_FORMAT}\"")]
    NotARecord {
        /// What stands in `format`, as JSON, or `absent`.
        found: String,
    },
    /// A newer trueio wrote it.
    #[error(
        "this record has version {found}; this program reads up to version {RECORD_VERSION} (a newer trueio reads it)"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// No trueio ever wrote this version.
    #[error("this record has no valid version: `version` is {found}")]
    NoVersion {
        /// What stands in `version`, as JSON, or `absent`.
        found: String,
    },
    /// Format and version are right, the rest is not.
    #[error("this record of version {version} is damaged")]
    Damaged {
        /// Its version.
        version: u64,
        /// Where and how.
        #[source]
        source: serde_json::Error,
    },
}

/// Only what is needed to decide who reads the rest.
#[derive(Deserialize)]
struct Head {
    format: Option<Value>,
    version: Option<Value>,
}

/// Reads a record of this or any earlier version.
///
/// # Errors
/// [`ReadError`] says what kind of text it is instead, or where it is damaged.
pub fn parse(text: &str) -> Result<RunRecord, ReadError> {
    let shown = |value: Option<Value>| value.map_or_else(|| "absent".to_owned(), |v| shortened(&v.to_string()));
    // A byte order mark is what some editors put before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(error) if error.is_data() => return Err(ReadError::NotARecord { found: "absent".to_owned() }),
        Err(error) => return Err(ReadError::NotJson(error)),
    };
    if head.format.as_ref().and_then(Value::as_str) != Some(RECORD_FORMAT) {
        return Err(ReadError::NotARecord { found: shown(head.format) });
    }
    match head.version.as_ref().and_then(Value::as_u64) {
        None | Some(0) => Err(ReadError::NoVersion { found: shown(head.version) }),
        Some(found) if found > u64::from(RECORD_VERSION) => Err(ReadError::Newer { found }),
        Some(version) => serde_json::from_str(text).map_err(|source| ReadError::Damaged { version, source }),
    }
}

/// At most 60 characters of `text`.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The record as indented JSON, without a line feed at its end. [`parse`] gives back the same record.
pub fn json(record: &RunRecord) -> String {
    indented(record)
}

/// A document of ours as indented JSON, without a line feed at its end.
pub(crate) fn indented(document: &impl serde::Serialize) -> String {
    // Our documents hold strings, numbers and lists only; a map's keys are strings.
    let value = serde_json::to_value(document).unwrap_or_else(|e| unreachable!("a document is always JSON: {e}"));
    let mut out = String::new();
    write_value(&mut out, &value, 0);
    out
}

/// The longest object, in characters, that is written on one line.
const LINE_MAX: usize = 260;

fn write_value(out: &mut String, value: &Value, depth: usize) {
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    match value {
        Value::Array(items) if items.iter().any(|v| v.is_array() || v.is_object()) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                indent(out, depth + 1);
                write_value(out, item, depth + 1);
            }
            indent(out, depth);
            out.push(']');
        }
        Value::Object(fields) if !fields.is_empty() => {
            if fields.values().all(|v| !v.is_array() && !v.is_object()) {
                let line = value.to_string();
                if line.len() <= LINE_MAX {
                    out.push_str(&line);
                    return;
                }
            }
            out.push('{');
            for (i, (key, item)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                indent(out, depth + 1);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write_value(out, item, depth + 1);
            }
            indent(out, depth);
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}
