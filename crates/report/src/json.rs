//! Writes a record as JSON, and reads it.
//!
//! The text is indented, but a list of plain values and a small object are on one line: an interval of a
//! series is one line, a histogram's buckets are two. So a record can be read and compared with line tools.
//!
//! Reading examines `format` and `version` first, so that a file of another program and a record of a newer
//! trueio are distinguished from a damaged one. Unknown fields are ignored. Reading never panics, whatever
//! the text.

use crate::answer::answer;
use crate::standing::PastRun;
use serde::Deserialize;
use serde_json::Value;
use trueio_model::{Document, RECORD_FORMAT, RECORD_VERSION, RunRecord};

/// The reason why a text could not be read as a record.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON.
    #[error("this is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text is JSON of another kind.
    #[error("this JSON is not a trueio record: its `format` is {found}, not \"{RECORD_FORMAT}\"")]
    NotARecord {
        /// The value of `format`, as JSON, or `absent`.
        found: String,
    },
    /// A newer trueio wrote it.
    #[error(
        "this record has version {found}; this program reads up to version {RECORD_VERSION} (a newer trueio reads it)"
    )]
    Newer {
        /// The `version` that the document names.
        found: u64,
    },
    /// No trueio wrote this version.
    #[error("this record has no valid version: `version` is {found}")]
    NoVersion {
        /// The value of `version`, as JSON, or `absent`.
        found: String,
    },
    /// Format and version are right, the rest is invalid.
    #[error("this record of version {version} is damaged")]
    Damaged {
        /// The `version` that the document names.
        version: u64,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
}

/// The fields that determine the parser for the rest.
#[derive(Deserialize)]
struct Head {
    format: Option<Value>,
    version: Option<Value>,
}

/// Returns the format and the version of a document; `None` if the text has none.
pub(crate) fn head(text: &str) -> Option<(String, u64)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head: Head = serde_json::from_str(text).ok()?;
    let version = head.version.as_ref().and_then(Value::as_u64).unwrap_or(0);
    Some((head.format?.as_str()?.to_owned(), version))
}

/// Reads a record of this or any earlier version, and converts it to the present version.
///
/// # Errors
/// [`ReadError`], which describes the text or the position of the damage.
pub fn parse(text: &str) -> Result<RunRecord, ReadError> {
    let shown = |value: Option<Value>| value.map_or_else(|| "absent".to_owned(), |v| shortened(&v.to_string()));
    // Some editors write a byte order mark before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        // (A text that begins with a number, such as fio's terse format, is no JSON after it.)
        Err(error) if error.is_data() => {
            return Err(match serde_json::from_str::<Value>(text) {
                Ok(_) => ReadError::NotARecord { found: "absent".to_owned() },
                Err(error) => ReadError::NotJson(error),
            });
        }
        Err(error) => return Err(ReadError::NotJson(error)),
    };
    if head.format.as_ref().and_then(Value::as_str) != Some(RECORD_FORMAT) {
        return Err(ReadError::NotARecord { found: shown(head.format) });
    }
    match head.version.as_ref().and_then(Value::as_u64) {
        None | Some(0) => Err(ReadError::NoVersion { found: shown(head.version) }),
        Some(found) if found > u64::from(RECORD_VERSION) => Err(ReadError::Newer { found }),
        Some(version) => {
            let mut record = RunRecord::from_json(text).map_err(|source| ReadError::Damaged { version, source })?;
            record.upgrade();
            Ok(record)
        }
    }
}

/// Returns at most 60 characters of `text`.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats the record as indented JSON with its answer, without a line feed at its end. [`parse`] returns the same record.
pub fn json(record: &RunRecord) -> String {
    json_with(record, &[])
}

/// The same; `past` are earlier runs of the same device, for the answer.
pub(crate) fn json_with(record: &RunRecord, past: &[PastRun]) -> String {
    let unreachable = |e| unreachable!("a document is always JSON: {e}");
    let mut compact = record.to_json().unwrap_or_else(unreachable);
    if record.answer.is_none() {
        let answer = serde_json::to_string(&answer(record, past)).unwrap_or_else(unreachable);
        // Before the brace that ends the record: a copy of a record with the answer in it would be large.
        compact.truncate(compact.len() - 1);
        compact.push_str(&format!(",\"answer\":{answer}}}"));
    }
    indented_text(&compact)
}

/// Formats a document as indented JSON, without a line feed at its end.
pub(crate) fn indented(document: &impl Document) -> String {
    // Our documents contain strings, numbers and lists only; keys of maps are strings.
    let compact = document.to_json().unwrap_or_else(|e| unreachable!("a document is always JSON: {e}"));
    indented_text(&compact)
}

/// Indents compact JSON.
fn indented_text(compact: &str) -> String {
    let mut page = Indented { text: compact.as_bytes(), at: 0, out: Vec::with_capacity(compact.len() * 5 / 4) };
    page.value(0);
    String::from_utf8(page.out).unwrap_or_else(|e| unreachable!("whole pieces of a text were copied: {e}"))
}

/// Maximum length of an object on one line, in bytes.
const LINE_MAX: usize = 260;

/// Indents compact JSON. A tree of values would be several times as large as the text, and the largest
/// allocation of a short run.
struct Indented<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl Indented<'_> {
    /// Copies one value, which begins at `at`.
    fn value(&mut self, depth: usize) {
        let is_object = match self.text[self.at] {
            b'{' => true,
            b'[' => false,
            _ => return self.copy(self.end_of_plain()),
        };
        if let Some(end) = self.end_if_flat().filter(|end| !is_object || end - self.at <= LINE_MAX) {
            self.copy(end);
            return;
        }
        self.copy_byte();
        loop {
            self.line(depth + 1);
            if is_object {
                let key_end = string_end(self.text, self.at + 1) + 1;
                self.copy(key_end + 1);
                self.out.push(b' ');
            }
            self.value(depth + 1);
            if self.text[self.at] != b',' {
                break;
            }
            self.copy_byte();
        }
        self.line(depth);
        // The closing bracket.
        self.copy_byte();
    }

    /// Returns the end of the string, number or word at `at`.
    fn end_of_plain(&self) -> usize {
        if self.text[self.at] == b'"' {
            return string_end(self.text, self.at + 1) + 1;
        }
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'));
        self.at + length.unwrap_or(rest.len())
    }

    /// Returns the end of the list or object at `at`; `None` if it contains lists or objects. It stops at the first of
    /// them: otherwise each level would read all levels below it.
    fn end_if_flat(&self) -> Option<usize> {
        let mut index = self.at + 1;
        loop {
            match self.text[index] {
                b'"' => index = string_end(self.text, index + 1),
                b'{' | b'[' => return None,
                b'}' | b']' => return Some(index + 1),
                _ => {}
            }
            index += 1;
        }
    }

    fn copy(&mut self, end: usize) {
        self.out.extend_from_slice(&self.text[self.at..end]);
        self.at = end;
    }

    fn copy_byte(&mut self) {
        self.out.push(self.text[self.at]);
        self.at += 1;
    }

    fn line(&mut self, depth: usize) {
        match LINE_START.get(..1 + depth * 2) {
            Some(start) => self.out.extend_from_slice(start),
            None => {
                self.out.push(b'\n');
                self.out.resize(self.out.len() + depth * 2, b' ');
            }
        }
    }
}

/// A line feed, and the indentation of the levels that documents have.
const LINE_START: &[u8] = b"\n                                                ";

/// Returns the position of the closing quotation mark of a string whose text begins at `index`.
fn string_end(text: &[u8], mut index: usize) -> usize {
    loop {
        index += plain_length(&text[index..]);
        match text[index] {
            b'"' => return index,
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// Returns a number of bytes at the beginning of `text` without quotation mark and backslash: all before the first
/// of them, or all but the last seven. Most strings are shorter than the blocks of a vectorised search, so eight bytes
/// are compared at a time.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // The lowest bit that is set belongs to the first byte that is 0.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let mut length = 0;
    for chunk in text.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*chunk);
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return length + (found.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn small_objects_and_plain_lists_are_on_one_line_whatever_their_strings() {
        let long = "x".repeat(300);
        let document = json!({
            "plain": [1, 2.5, null, true, "a, ] } \\\" b"],
            "small": {"key \": {": "[,", "n": -3},
            "rows": [{"a": 1}, {"a": {"b": []}}],
            "long": {"text": long, "m": {}},
            "none": [],
            "last": "e\\"
        });
        let text = indented_text(&document.to_string());
        let expected = format!(
            r#"{{
  "plain": [1,2.5,null,true,"a, ] }} \\\" b"],
  "small": {{"key \": {{":"[,","n":-3}},
  "rows": [
    {{"a":1}},
    {{
      "a": {{
        "b": []
      }}
    }}
  ],
  "long": {{
    "text": "{long}",
    "m": {{}}
  }},
  "none": [],
  "last": "e\\"
}}"#
        );
        let back: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, document);
        assert_eq!(text, expected);
    }

    #[test]
    fn a_string_ends_at_its_quotation_mark_wherever_others_are_escaped() {
        for length in 0..24 {
            for at in 0..=length {
                for escaped in ["", "\"", "\\", "\\\""] {
                    let (head, tail) = ("x".repeat(at), "y".repeat(length - at));
                    let text = json!(format!("{head}{escaped}{tail}")).to_string();
                    assert_eq!(string_end(text.as_bytes(), 1), text.len() - 1, "{text}");
                    let followed = format!("{text},{text}");
                    assert_eq!(string_end(followed.as_bytes(), 1), text.len() - 1, "{followed}");
                }
            }
        }
    }
}
