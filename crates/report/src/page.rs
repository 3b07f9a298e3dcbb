//! The frame of every page: style sheet, script, templates.
//!
//! A page is one file that loads nothing: the policy in its head forbids every request, its style sheet and script are in
//! it, and it is complete without the script, which shows values under a pointer and copies texts. Every text is escaped
//! when it is inserted. Documents are inserted as JSON with `<` written as `\u003c`, so that no text in them can become
//! markup.

use crate::svg::escaped;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::{Compression, write::GzEncoder};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde::Serialize;
use std::io::Write as _;

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
        escaped(title)
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

/// Escapes a text; parts in backticks become code.
pub(crate) fn rich(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        let is_code = index % 2 == 1 && index + 1 < parts.len();
        match (is_code, index % 2) {
            (true, _) => out.push_str(&format!("<code>{}</code>", escaped(part))),
            // A backtick without a partner stays.
            (false, 1) => out.push_str(&format!("`{}", escaped(part))),
            _ => out.push_str(&escaped(part)),
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
