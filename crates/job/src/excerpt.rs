//! The line that an error is about, and the marks below it.

/// Characters of a longer line that are printed before the marked part, and in all.
const BEFORE: usize = 60;
const LENGTH: usize = 160;

/// A part of a line that fits on a screen, and the marks below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line without control characters; `…` stands for what is left out.
    pub line: String,
    /// Blanks up to the marked part, and one `^` for each of its characters; at least one.
    pub marks: String,
}

impl Excerpt {
    /// Returns the excerpt around `width` characters that begin after `lead` characters. A mark after the end of the line
    /// is printed there.
    pub fn of(line: &str, lead: usize, width: usize) -> Self {
        let count = line.chars().count();
        let lead = lead.min(count);
        let width = width.min(count - lead).max(1);
        let begin = if count <= LENGTH { 0 } else { lead.saturating_sub(BEFORE) };
        let end = (begin + LENGTH).min(count);
        let cut = |at: usize, limit: usize| if at == limit { "" } else { "…" };
        let shown: String = line.chars().skip(begin).take(end - begin).collect();
        // Tabs are kept, so that they move the marks as far as the text.
        let before = line.chars().skip(begin).take(lead - begin).map(|c| if c == '\t' { '\t' } else { ' ' });
        let blank = if begin > 0 { " " } else { "" };
        let before: String = before.collect();
        let width = width.min((end - lead).max(1));
        Self {
            line: format!("{}{}{}", cut(begin, 0), printable(&shown), cut(end, count)),
            marks: format!("{blank}{before}{}", "^".repeat(width)),
        }
    }
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
        let excerpt = Excerpt::of("bfs=4k\u{7}", 0, 3);
        assert_eq!((excerpt.line.as_str(), excerpt.marks.as_str()), ("bfs=4k\u{fffd}", "^^^"));
        assert_eq!(Excerpt::of("a\tb = 1", 2, 1).marks, " \t^");
        assert_eq!(Excerpt::of("a =", 3, 5).marks, "   ^");
        assert_eq!(Excerpt::of("", 0, 0).marks, "^");
    }

    /// A file that is not a job file may be one long line.
    #[test]
    fn a_long_line_is_cut_around_the_marked_part() {
        let line = format!("{}here{}", "x".repeat(65_536), "y".repeat(65_536));
        let Excerpt { line, marks } = Excerpt::of(&line, 65_536, 4);
        assert_eq!(line.chars().count(), LENGTH + 2);
        assert!(line.starts_with("…xx") && line.ends_with("yy…"), "{line}");
        let at = marks.find('^').expect("a mark");
        assert_eq!(line.chars().skip(at).take(4).collect::<String>(), "here");
        assert_eq!(marks.len() - at, 4);
        // All of a long line may be marked.
        let all = Excerpt::of(&"z".repeat(1000), 0, 1000);
        assert_eq!((all.line.chars().count(), all.marks.len()), (LENGTH + 1, LENGTH));
    }
}
