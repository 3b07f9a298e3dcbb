//! Draws the line that an error is about, and marks the part of it.
//!
//! `annotate-snippets` cuts a long line around the mark and replaces control characters in line and message; those in path and hint are
//! replaced here.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

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
    /// The file, or another source of the line.
    pub path: &'a str,
    /// The number of the line, from 1.
    pub line_number: u32,
    /// The whole line.
    pub line: &'a str,
    /// Characters before the marked part. After the end of the line, the mark is at the end.
    pub lead: usize,
    /// Characters of the marked part; 0 marks one column.
    pub width: usize,
    /// What to do; empty if nothing is known.
    pub hint: &'a str,
}

impl Excerpt<'_> {
    /// Appends the five lines. Control characters are replaced.
    pub fn draw(&self, out: &mut String) {
        let Self { message, path, line_number, line, lead, width, hint } = *self;
        let byte = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
        let mark = AnnotationKind::Primary.span(byte(lead)..byte(lead + width)).label(printable(hint));
        let snippet = Snippet::source(line).line_start(line_number as usize).path(printable(path)).annotation(mark);
        let error = Group::with_title(Level::ERROR.primary_title(message)).element(snippet);
        out.push_str(&Renderer::plain().render(&[error]));
        out.push('\n');
    }
}

/// Returns a text of others with its control characters replaced: they could control a terminal. Tabs are kept.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the last two lines of an excerpt: the line, and the marks with the hint.
    fn drawn(line: &str, lead: usize, width: usize) -> (String, String) {
        let mut out = String::new();
        Excerpt { message: "m", path: "job.toml", line_number: 7, line, lead, width, hint: "" }.draw(&mut out);
        let lines: Vec<&str> = out.lines().collect();
        let text = |line: &str, margin: &str| line.strip_prefix(margin).unwrap_or_else(|| panic!("{out}")).to_owned();
        (text(lines[3], "7 |").trim_start_matches(' ').to_owned(), text(lines[4], "  | "))
    }

    #[test]
    fn an_excerpt_has_five_lines_and_no_control_character() {
        let (message, path, hint) = ("`bf\u{1b}s` is unknown", "job\u{1b}.fio", "did you mean `\u{7}bs`?");
        let mut out = String::new();
        Excerpt { message, path, line_number: 3, line: "bfs=4k\u{7}", lead: 0, width: 3, hint }.draw(&mut out);
        let expected = "error: `bf␛s` is unknown\n --> job\u{fffd}.fio:3:1\n  |\n3 | bfs=4k␇\n  | ^^^ did you mean `\u{fffd}bs`?\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn marks_are_below_the_part_and_after_the_end_if_it_is_there() {
        assert_eq!(drawn("a\tb = 1", 2, 1).1, "     ^", "a tab is printed as four blanks");
        assert_eq!(drawn("a =", 3, 5).1, "   ^");
        assert_eq!(drawn("", 0, 0).1, "^");
    }

    /// A wide character takes two columns of a terminal, and a combining one none.
    #[test]
    fn marks_are_below_wide_characters() {
        assert_eq!(drawn("名前 = 1", 0, 2).1, "^^^^");
        assert_eq!(drawn("名前 = 1", 5, 1).1, "       ^");
        assert_eq!(drawn("e\u{301}x", 2, 1).1, " ^");
    }

    /// A file that is not a job file may be one long line.
    #[test]
    fn a_long_line_is_cut_around_the_marked_part() {
        let line = format!("{}here{}", "x".repeat(65_536), "y".repeat(65_536));
        let (line, marks) = drawn(&line, 65_536, 4);
        assert!(line.starts_with("...xx") && line.ends_with("yy...") && line.len() < 160, "{line}");
        let at = marks.find('^').expect("a mark");
        assert_eq!((&line[at..at + 4], marks.len() - at), ("here", 4));
        // All of a long line may be marked.
        let (line, marks) = drawn(&"z".repeat(1000), 0, 1000);
        assert!(line.len() < 160 && marks.len() < 160, "{line}");
    }
}
