//! Draws the line that an error is about, and marks the part of it.
//!
//! Own code instead of annotate-snippets or miette: these print a line of any length whole (a file that is not a job file may be one line), and
//! the layout is part of this program's expected texts.

use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// Characters of a longer line that are printed before the marked part, and in all.
const BEFORE: usize = 60;
const LENGTH: usize = 160;

/// An error at a part of a line.
///
/// ```text
/// error: `bfs` is not an option
///  --> job.fio:3:1
///   |
/// 3 | bfs=4k
///   | ^^^ did you mean `bs`?
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Excerpt<'a> {
    /// The error.
    pub message: &'a str,
    /// Where it is: file, line and column.
    pub place: &'a str,
    /// The number of the line; empty: none.
    pub number: &'a str,
    /// The whole line.
    pub line: &'a str,
    /// Characters before the marked part.
    pub lead: usize,
    /// Characters of the marked part.
    pub width: usize,
    /// What to do; empty: nothing is known.
    pub hint: &'a str,
}

impl Excerpt<'_> {
    /// Appends the five lines. Control characters are replaced.
    pub fn draw(&self, out: &mut String) {
        let Self { message, place, number, line, lead, width, hint } = self;
        let (line, marks) = marked(line, *lead, *width);
        let margin = " ".repeat(number.len());
        let (message, place, hint) = (printable(message), printable(place), printable(hint));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "error: {message}\n{margin}--> {place}\n{margin} |\n{number} | {line}");
        let _ = writeln!(out, "{}", format!("{margin} | {marks} {hint}").trim_end());
    }
}

/// Returns the part of a line that fits on a screen (`…` stands for what is left out), and blanks and `^` to print below it, at
/// least one `^`. A mark after the end of the line is printed there.
fn marked(line: &str, lead: usize, width: usize) -> (String, String) {
    let count = line.chars().count();
    let lead = lead.min(count);
    let width = width.min(count - lead).max(1);
    let begin = if count <= LENGTH { 0 } else { lead.saturating_sub(BEFORE) };
    let end = (begin + LENGTH).min(count);
    let cut = |at: usize, limit: usize| if at == limit { "" } else { "…" };
    let shown: String = line.chars().skip(begin).take(end - begin).collect();
    let shown = printable(&shown);
    let columns = |c: char| c.width().unwrap_or(1);
    // Tabs are kept, so that they move the marks as far as the text.
    let before = shown.chars().take(lead - begin);
    let before: String = before.map(|c| if c == '\t' { "\t".to_owned() } else { " ".repeat(columns(c)) }).collect();
    let below: usize = shown.chars().skip(lead - begin).take(width).map(columns).sum();
    let blank = if begin > 0 { " " } else { "" };
    let marks = format!("{blank}{before}{}", "^".repeat(below.max(1)));
    (format!("{}{shown}{}", cut(begin, 0), cut(end, count)), marks)
}

/// Returns a text of others with its control characters replaced: they could control a terminal. Tabs are kept.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_below_the_part_and_after_the_end_if_it_is_there() {
        assert_eq!(marked("bfs=4k\u{7}", 0, 3), ("bfs=4k\u{fffd}".to_owned(), "^^^".to_owned()));
        assert_eq!(marked("a\tb = 1", 2, 1).1, " \t^");
        assert_eq!(marked("a =", 3, 5).1, "   ^");
        assert_eq!(marked("", 0, 0).1, "^");
    }

    /// A wide character takes two columns of a terminal, and a combining one none.
    #[test]
    fn marks_are_below_wide_characters() {
        assert_eq!(marked("名前 = 1", 0, 2).1, "^^^^");
        assert_eq!(marked("名前 = 1", 5, 1).1, "       ^");
        assert_eq!(marked("e\u{301}x", 2, 1).1, " ^");
    }

    /// A file that is not a job file may be one long line.
    #[test]
    fn a_long_line_is_cut_around_the_marked_part() {
        let line = format!("{}here{}", "x".repeat(65_536), "y".repeat(65_536));
        let (line, marks) = marked(&line, 65_536, 4);
        assert_eq!(line.chars().count(), LENGTH + 2);
        assert!(line.starts_with("…xx") && line.ends_with("yy…"), "{line}");
        let at = marks.find('^').expect("a mark");
        assert_eq!(line.chars().skip(at).take(4).collect::<String>(), "here");
        assert_eq!(marks.len() - at, 4);
        // All of a long line may be marked.
        let (line, marks) = marked(&"z".repeat(1000), 0, 1000);
        assert_eq!((line.chars().count(), marks.len()), (LENGTH + 1, LENGTH));
    }
}
