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

/// Reads a record of this or any earlier version, and says it in the words of this one.
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
        Some(version) => {
            let mut record: RunRecord =
                serde_json::from_str(text).map_err(|source| ReadError::Damaged { version, source })?;
            record.upgrade();
            Ok(record)
        }
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
    let compact = serde_json::to_string(document).unwrap_or_else(|e| unreachable!("a document is always JSON: {e}"));
    let mut page = Indented { text: compact.as_bytes(), at: 0, out: Vec::with_capacity(compact.len() * 5 / 4) };
    page.value(0);
    String::from_utf8(page.out).unwrap_or_else(|e| unreachable!("whole pieces of a text were copied: {e}"))
}

/// The longest object, in bytes, that is written on one line.
const LINE_MAX: usize = 260;

/// Compact JSON on its way to indented JSON. A tree of values would be several times as large as the
/// text, and it would be the largest thing that a short run ever makes.
struct Indented<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl Indented<'_> {
    /// One value, which begins at `at`.
    fn value(&mut self, depth: usize) {
        let is_object = self.text[self.at] == b'{';
        if let Some(end) = self.end_if_flat().filter(|end| !is_object || end - self.at <= LINE_MAX) {
            self.copy(end);
            return;
        }
        self.copy(self.at + 1);
        loop {
            self.line(depth + 1);
            if is_object {
                let key_end = self.end_if_flat().unwrap_or_else(|| unreachable!("a key is a string"));
                self.copy(key_end + 1);
                self.out.push(b' ');
            }
            self.value(depth + 1);
            if self.text[self.at] != b',' {
                break;
            }
            self.copy(self.at + 1);
        }
        self.line(depth);
        // The closing bracket.
        self.copy(self.at + 1);
    }

    /// Where the value at `at` ends; `None` if it holds lists or objects. It is not looked at any further
    /// then: otherwise each level would read all that is below it.
    fn end_if_flat(&self) -> Option<usize> {
        let (mut depth, mut index) = (0, self.at);
        while index < self.text.len() {
            match self.text[index] {
                b'"' => index = string_end(self.text, index + 1),
                b'{' | b'[' if depth > 0 => return None,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                // Between values: a plain one ends where the next thing begins.
                b',' | b':' | b'}' | b']' if depth == 0 => return Some(index),
                _ => {}
            }
            index += 1;
            if depth == 0 && matches!(self.text[index - 1], b'"' | b'}' | b']') {
                return Some(index);
            }
        }
        Some(index)
    }

    fn copy(&mut self, end: usize) {
        self.out.extend_from_slice(&self.text[self.at..end]);
        self.at = end;
    }

    fn line(&mut self, depth: usize) {
        self.out.push(b'\n');
        self.out.extend(std::iter::repeat_n(b' ', depth * 2));
    }
}

/// Where the quotation mark is that ends a string whose text begins at `index`.
fn string_end(text: &[u8], mut index: usize) -> usize {
    loop {
        index += memchr::memchr2(b'"', b'\\', &text[index..]).unwrap_or_else(|| unreachable!("a string has an end"));
        if text[index] == b'"' {
            return index;
        }
        index += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn small_objects_and_plain_lists_stand_on_one_line_whatever_their_strings_hold() {
        let long = "x".repeat(300);
        let document = json!({
            "plain": [1, 2.5, null, true, "a, ] } \\\" b"],
            "small": {"key \": {": "[,", "n": -3},
            "rows": [{"a": 1}, {"a": {"b": []}}],
            "long": {"text": long, "m": {}},
            "none": [],
            "last": "e\\"
        });
        let text = indented(&document);
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
}
