//! Layout of text for a terminal: width, colours, headings, indented sentences.
//!
//! Colour only repeats what the text states. The caller decides whether to use it (`NO_COLOR`, a pipe).

use crate::text::{clean, wrap};
use crate::verdicts::Mark;
use trueio_model::Outcome;

/// The layout of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Less than 40 is treated as 40; a figure is never cut off.
    pub width: usize,
    /// Use ANSI colours.
    pub color: bool,
    /// Use characters beyond ASCII (`µs`, `–`); without it they are written `us`, `-`.
    pub unicode: bool,
}

/// ANSI colours.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    Plain,
    Bold,
    Dim,
    Good,
    Doubtful,
    Bad,
}

impl Paint {
    pub(crate) fn of_mark(mark: Mark) -> Self {
        match mark {
            Mark::Confirmed => Paint::Good,
            Mark::Unverified => Paint::Dim,
            Mark::Unsteady | Mark::Disturbed => Paint::Doubtful,
            Mark::NotTheDisk | Mark::Withheld | Mark::Failed => Paint::Bad,
        }
    }
}

/// A text that is built line by line.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) style: Style,
    pub(crate) out: String,
}

impl Page {
    pub(crate) fn new(style: &Style) -> Self {
        Self { style: Style { width: style.width.max(40), ..*style }, out: String::new() }
    }

    /// Returns the whole text.
    pub(crate) fn finish(self) -> String {
        if self.style.unicode { self.out } else { to_ascii(&self.out) }
    }

    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        // The number of the escape sequence.
        let code = match paint {
            _ if !self.style.color || text.is_empty() => return text.to_owned(),
            Paint::Plain => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Doubtful => "33",
            Paint::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Appends a line as it is, without spaces at its end.
    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let text = self.paint(Paint::Bold, &clean(text));
        self.out.push('\n');
        self.line(&text);
    }

    /// Appends a sentence without indentation.
    pub(crate) fn sentence(&mut self, text: &str) {
        wrap(&mut self.out, "", 2, text, self.style.width);
    }

    /// Appends a sentence below a heading, indented by two.
    pub(crate) fn item(&mut self, text: &str) {
        wrap(&mut self.out, "  ", 4, text, self.style.width);
    }

    /// Appends a sentence that belongs to the item above.
    pub(crate) fn sub_item(&mut self, text: &str) {
        wrap(&mut self.out, "    ", 6, text, self.style.width);
    }

    /// Appends a heading and its sentences; nothing if there are none.
    pub(crate) fn list(&mut self, heading: &str, items: &[String]) {
        if !items.is_empty() {
            self.heading(heading);
        }
        items.iter().for_each(|item| self.item(item));
    }

    /// Appends a heading and its sentences with their details; nothing if there are none.
    pub(crate) fn tree(&mut self, heading: &str, items: &[crate::words::Item]) {
        if !items.is_empty() {
            self.heading(heading);
        }
        for (item, sub_items) in items {
            self.item(item);
            sub_items.iter().for_each(|sub_item| self.sub_item(sub_item));
        }
    }

    /// Appends a named line of the head.
    pub(crate) fn fact(&mut self, name: &str, text: &str) {
        const NAME_WIDTH: usize = 14;
        let first = format!("  {name:<0$}", NAME_WIDTH - 2);
        wrap(&mut self.out, &first, NAME_WIDTH, text, self.style.width);
    }

    /// Appends sentences in a separate colour, after an empty line.
    pub(crate) fn aside(&mut self, paint: Paint, sentences: &[String]) {
        let mut text = String::new();
        sentences.iter().for_each(|sentence| wrap(&mut text, "", 2, sentence, self.style.width));
        let text = self.paint(paint, text.trim_end());
        self.out.push('\n');
        self.line(&text);
    }

    /// Describes how the run ended, if not as planned.
    pub(crate) fn outcome(&mut self, outcome: &Outcome) {
        if let Some(sentence) = crate::words::outcome_sentence(outcome) {
            self.aside(Paint::Bad, &[sentence]);
        }
    }
}

/// Replaces our own marks by one ASCII character each, so that columns do not move.
pub(crate) fn to_ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '–' | '−' => '-',
            '→' => '>',
            '×' => 'x',
            '≥' => '>',
            '…' => '.',
            '\u{a0}' => ' ',
            '\u{fffd}' => '?',
            other => other,
        })
        .collect()
}
