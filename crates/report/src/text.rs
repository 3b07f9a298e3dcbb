//! Text for people: figures, wrapped sentences, and removal of characters that control a terminal.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns `text` with every control character replaced by `�`, so that a path or a sentence from a record
/// cannot move the cursor, set a title or change colours.
pub fn clean(text: &str) -> Cow<'_, str> {
    without(text, controls_terminal)
}

/// Returns the same for a message of several lines: line feeds and tabs stay.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    without(text, |c| controls_terminal(c) && !matches!(c, '\n' | '\t'))
}

fn without(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&is_bad) { Cow::Owned(text.replace(&is_bad, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Marks, overrides and isolates of bidirectional text can reorder a line, and separators can end one, as control
/// characters can.
pub(crate) fn controls_terminal(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_mark
}

/// Returns the columns that a text takes in a terminal: two for a Chinese character, none for a combining one.
pub fn width_of(text: &str) -> usize {
    text.width()
}

/// Returns a text with blanks behind it, up to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(width_of(text))))
}

/// Returns at most `width` columns of a text; the last one is `…` if it was cut.
pub fn fitted(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let kept = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used < width
    });
    kept.chain(['…']).collect()
}

/// Escapes a text for an element or an attribute of XML and HTML, without characters that control a terminal or that XML 1.0 does not allow.
pub(crate) fn escaped_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Formats a figure with three significant digits and separated thousands: `0.39`, `84.2`, `12,400`.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value >= 99.95 {
        trueio_model::units::format_count(value.round() as u64)
    } else {
        trueio_model::units::three_digits(value)
    }
}

/// Formats a time that is only roughly known: `12 s`, `4 min`, `3 h`, and from a month on `months`.
pub(crate) fn rough_time(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds @ 7_200..2_592_000 => format!("{} h", seconds.div_ceil(3_600)),
        _ => "months".to_owned(),
    }
}

/// Formats `count` with its noun: `1 I/O`, `2,000 I/Os`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", trueio_model::units::format_count(count), if count == 1 { "" } else { "s" })
}

/// Returns the number of I/Os of a figure that rests on few, to stand next to it: `1 I/O`, `37 I/Os`.
pub(crate) fn few_ios(io_count: u64) -> Option<String> {
    const FEW: u64 = 1_000;
    (1..FEW).contains(&io_count).then(|| counted(io_count, "I/O"))
}

/// Appends `text`, cleaned and wrapped at `width` columns, to `out`. The first line begins with `first`, the
/// others with `hang` spaces. A word longer than the line is not broken, and a number is not separated from
/// its unit.
pub fn wrap(out: &mut String, first: &str, hang: usize, text: &str, width: usize) {
    let text = clean(text);
    out.push_str(first);
    let mut column = width_of(first);
    let mut is_line_start = true;
    let mut words = text.split(' ').filter(|w| !w.is_empty()).peekable();
    while let Some(word) = words.next() {
        let mut word = Cow::Borrowed(word);
        if is_number(&word) && words.peek().is_some_and(|next| is_unit(next)) {
            word = Cow::Owned(format!("{word} {}", words.next().unwrap_or_default()));
        }
        let len = width_of(&word);
        if !is_line_start && column + 1 + len > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            column = hang;
            is_line_start = true;
        }
        if !is_line_start {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += len;
        is_line_start = false;
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(|c: char| c.is_ascii_digit())
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':', ')']);
    matches!(
        word,
        "B" | "KiB"
            | "MiB"
            | "GiB"
            | "TiB"
            | "kB"
            | "MB"
            | "GB"
            | "ns"
            | "µs"
            | "ms"
            | "s"
            | "min"
            | "%"
            | "bytes"
            | "B/s"
            | "KiB/s"
            | "MiB/s"
            | "GiB/s"
            | "I/O"
            | "I/Os"
    )
}

/// Text for an unknown fact.
pub(crate) const UNKNOWN: &str = "unknown";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_reordering_marks_in_a_path_are_replaced() {
        assert_eq!(clean("a\x1b[2Jb\n\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c");
        assert!(matches!(clean("/mnt/größe"), Cow::Borrowed(_)));
        assert_eq!(clean_lines("a\x1b[2J\r\n\tb\u{202e}\n"), "a\u{fffd}[2J\u{fffd}\n\tb\u{fffd}\n");
    }

    /// Goal: columns are those of a terminal. Method: a Chinese name of four columns, and an `e` with a combining accent.
    #[test]
    fn wide_and_combining_characters_have_their_columns() {
        assert_eq!((width_of("磁盘"), width_of("e\u{301}")), (4, 1));
        assert_eq!(padded("磁盘", 6), "磁盘  ");
        assert_eq!(fitted("磁盘", 4), "磁盘");
        assert_eq!(fitted("磁盘测试", 6), "磁盘…");
        assert_eq!(fitted("abcdef", 5), "abcd…");
        let mut out = String::new();
        wrap(&mut out, "", 0, "磁盘 磁盘 磁盘", 10);
        assert_eq!(out, "磁盘 磁盘\n磁盘\n");
    }

    #[test]
    fn figures_have_three_digits_and_separated_thousands() {
        let cases =
            [(0.394, "0.39"), (84.21, "84.2"), (99.96, "100"), (371_000.4, "371,000"), (0.0, "0.00"), (f64::NAN, "–")];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn wrapped_lines_stay_within_their_width_and_are_indented() {
        let mut out = String::new();
        wrap(&mut out, "  a: ", 5, "one two three four five-and-a-word-too-long six", 15);
        assert_eq!(out, "  a: one two\n     three four\n     five-and-a-word-too-long\n     six\n");
        out.clear();
        wrap(&mut out, "", 0, "a file of (4 GiB), no more", 13);
        assert_eq!(out, "a file of\n(4 GiB), no\nmore\n");
    }
}
