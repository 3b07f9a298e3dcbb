//! The frame of every page: style sheet, script, templates.
//!
//! A page is one file that loads nothing: the policy in its head forbids every request, its style sheet and script are in
//! it, and it is complete without the script, which shows values under a pointer and copies texts. Every text is escaped
//! when it is inserted. Documents are inserted as JSON with `<` written as `\u003c`, so that no text in them can become
//! markup.

use crate::text::escaped_xml;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde::Serialize;
use std::io::{Read as _, Write as _};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Renders one of this program's page templates. `body` is a template of what is between `<body>` and `</body>`; its
/// variables are `page`'s. Texts with the filter `rich` show parts in backticks as code.
pub(crate) fn render(title: &str, body: &str, page: &impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("rich", |text: &str| Value::from_safe_string(rich(text)));
    // A line with only a block tag leaves no empty line.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    let template = environment.template_from_named_str("page.html", body);
    // The templates are part of this program, and a test renders all of each.
    let body = template
        .and_then(|template| template.render(Serde(page)))
        .unwrap_or_else(|e| unreachable!("the page's template is valid: {e:#}"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}<div id=\"tip\" hidden></div>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped_xml(title)
    )
}

/// Returns a document as JSON for a `<script>` element that holds data. In JSON `<` occurs only inside strings, where its
/// escape has the same meaning.
pub(crate) fn data(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default().replace('<', "\\u003c")
}

/// A document in a `<script>` element that holds data.
#[derive(Serialize)]
pub(crate) struct Data {
    text: String,
    /// The text is base64 of a gzip file of the JSON.
    is_packed: bool,
}

impl Data {
    /// Compresses the JSON of a document from this length on: records of many phases repeat themselves.
    const PACKED_FROM_BYTES: usize = 256 << 10;

    pub(crate) fn of(document: &impl Serialize) -> Self {
        let text = data(document);
        if text.len() < Self::PACKED_FROM_BYTES {
            return Self { text, is_packed: false };
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
        let packed = packed.expect("writing to memory does not fail");
        Self { text: BASE64_STANDARD.encode(packed), is_packed: true }
    }
}

/// The element that holds the document of each kind of page.
const DOCUMENT_IDS: [&str; 4] = ["trueio-record", "comparison", "study", "trend"];

/// The longest document that a page is unpacked to, in bytes: that of a JSON file.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// The reason why a page has no document that can be read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It is another program's page.
    #[error("this page holds no document of trueio")]
    NoDocument,
    /// The packed document is no base64.
    #[error("the document in this page is damaged")]
    NotBase64(#[source] base64::DecodeError),
    /// The packed document cannot be unpacked.
    #[error("the document in this page cannot be unpacked")]
    NotUnpacked(#[source] std::io::Error),
    /// The document is longer than what is read.
    #[error("the document in this page has more than {} MiB", UNPACKED_BYTES_MAX >> 20)]
    TooLong,
}

/// Returns the JSON of the document in one of this program's pages. `None`: the text is no page.
///
/// # Errors
/// [`PageError`], which describes the page.
pub(crate) fn document_in(text: &str) -> Result<Option<String>, PageError> {
    document_of(text, UNPACKED_BYTES_MAX)
}

/// The same, with another limit, in bytes.
fn document_of(text: &str, bytes_max: u64) -> Result<Option<String>, PageError> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if !start.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")) {
        return Ok(None);
    }
    // The documents are at the end, and `<` is escaped in them: the last element with the name is the one.
    let found = DOCUMENT_IDS.iter().find_map(|id| {
        let at = text.rfind(&format!("\" id=\"{id}\""))?;
        let begin = text[..at].rfind("<script type=\"application/")?;
        let (attributes, rest) = text[begin..].split_once('>')?;
        Some((attributes, rest.split_once("</script>")?.0.trim()))
    });
    let (attributes, content) = found.ok_or(PageError::NoDocument)?;
    if !attributes.contains("application/gzip") {
        return Ok(Some(content.to_owned()));
    }
    let packed = BASE64_STANDARD.decode(content).map_err(PageError::NotBase64)?;
    let mut unpacked = String::new();
    let mut reader = GzDecoder::new(packed.as_slice()).take(bytes_max + 1);
    reader.read_to_string(&mut unpacked).map_err(PageError::NotUnpacked)?;
    if unpacked.len() as u64 > bytes_max {
        return Err(PageError::TooLong);
    }
    Ok(Some(unpacked))
}

/// Escapes a text; parts in backticks become code.
pub(crate) fn rich(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        let is_code = index % 2 == 1 && index + 1 < parts.len();
        match (is_code, index % 2) {
            (true, _) => out.push_str(&format!("<code>{}</code>", escaped_xml(part))),
            // A backtick without a partner stays.
            (false, 1) => out.push_str(&format!("`{}", escaped_xml(part))),
            _ => out.push_str(&escaped_xml(part)),
        }
    }
    out
}

/// Returns a command line that a shell reads as these words.
pub(crate) fn command_line(words: &[String]) -> String {
    let is_plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c) || c > '\u{7f}')
    };
    let quoted: Vec<String> = words
        .iter()
        .map(|word| if is_plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: &str, attributes: &str) -> String {
        format!("<!doctype html>\n<p>x</p><script type=\"{attributes}\">{content}</script>\n</body>")
    }

    #[test]
    fn a_document_is_read_from_a_page_within_its_limit() {
        let plain = page("{\"a\":1}", "application/json\" id=\"study");
        assert_eq!(document_in(&plain).expect("a document").as_deref(), Some("{\"a\":1}"));
        assert_eq!(document_in("{\"a\":1}").expect("no page"), None);
        assert!(matches!(document_in("<!doctype html><p>other</p>"), Err(PageError::NoDocument)));
        let long = vec![7_u32; 300_000];
        let data = Data::of(&long);
        assert!(data.is_packed);
        let packed = page(&data.text, "application/gzip\" id=\"trueio-record\" data-encoding=\"base64");
        let read = document_in(&packed).expect("a document").expect("a page");
        assert_eq!(serde_json::from_str::<Vec<u32>>(&read).expect("JSON"), long);
        assert!(matches!(document_of(&packed, 1000), Err(PageError::TooLong)));
        let damaged = packed.replacen(&data.text[..8], "!!", 1);
        assert!(matches!(document_in(&damaged), Err(PageError::NotBase64(_))));
        let cut = packed.replacen(&data.text, &data.text[..data.text.len() / 8 * 4], 1);
        assert!(matches!(document_in(&cut), Err(PageError::NotUnpacked(_))));
    }

    #[test]
    fn backticks_become_code_and_markup_stays_text() {
        assert_eq!(rich("run `a <b>` & go"), "run <code>a &lt;b&gt;</code> &amp; go");
        assert_eq!(rich("a ` b"), "a ` b");
        assert_eq!(rich("`x` and ` y"), "<code>x</code> and ` y");
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["trueio", "compare", "--fail-if", "iops < -5%", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&words), "trueio compare --fail-if 'iops < -5%' 'it'\\''s' ''");
    }
}
