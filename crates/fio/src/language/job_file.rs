//! fio's job files, line by line: sections, options, comments, `include`, `${VARIABLE}`, keywords.
//!
//! A line ends at the first `;` or `#`. A section begins at `[name]`; the caller decides what it means.
//! `include FILE` is replaced by the lines of another file, which must not have sections of its own; the file is
//! searched as named, then next to the including file. `${NAME}` is a variable of the environment (nothing if it is
//! not set); `$pagesize`, `$mb_memory` and `$ncpus` are numbers of the machine, with which a value may calculate
//! (`$ncpus*2`).
//!
//! Reading ends for every input: files, lines and includes are bounded.
//!
//! Source: HOWTO of fio 3.42, "Job file format", "Environment variables", "Reserved keywords".

use super::Surroundings;
use super::problem::{Position, Problems};
use super::refusals::Refused;
use std::rc::Rc;

/// Longest file, in bytes. A longer one is an image or a device, named by mistake.
pub(super) const FILE_BYTES_MAX: usize = 16 << 20;
/// Largest number of files that one job file includes, and largest depth.
const INCLUDES_MAX: usize = 256;
const DEPTH_MAX: usize = 16;
/// Largest size of all included files together, in bytes.
const INCLUDED_BYTES_MAX: usize = 16 << 20;
/// Longest name of a section, in bytes, as in fio.
const SECTION_BYTES_MAX: usize = 255;

/// A line, read.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// `[name]`.
    Section(String, Rc<Position>),
    /// `name=value`, or `name` alone.
    Word {
        /// The option, as written.
        name: String,
        /// Its value with variables replaced; `None`: without `=`.
        value: Option<String>,
        /// The position of the name.
        position: Rc<Position>,
        /// Column of the value, in characters, from 1. `None` if its text was replaced.
        value_column: Option<usize>,
    },
}

/// Reads a job file's text.
pub(super) fn read(path: &str, text: &str, around: &dyn Surroundings, problems: &mut Problems) -> Vec<Line> {
    let mut reader = Reader { around, problems, lines: Vec::new(), missing: None, includes: 0, included_bytes: 0 };
    reader.file(path, text, 0);
    reader.lines
}

/// A line without its comment.
struct Content<'a> {
    path: &'a str,
    number: u32,
    /// The line as typed.
    whole: &'a str,
    /// The offset of `text` in it.
    begin: usize,
    /// Its content, trimmed.
    text: &'a str,
}

impl Content<'_> {
    /// Returns the position of these bytes of the content.
    fn position(&self, bytes: std::ops::Range<usize>) -> Position {
        Position::within(self.path, self.number, self.whole, self.begin + bytes.start..self.begin + bytes.end)
    }

    /// Returns the position of the whole content.
    fn all(&self) -> Position {
        self.position(0..self.text.len())
    }
}

struct Reader<'a> {
    around: &'a dyn Surroundings,
    problems: &'a mut Problems,
    lines: Vec<Line>,
    /// The missing file at whose `include` fio stops reading the section.
    missing: Option<String>,
    includes: usize,
    included_bytes: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, text: &str, depth: usize) {
        if text.len() > FILE_BYTES_MAX {
            let position = Position::line(path, 1, "");
            self.problems.add(
                Refused::TooMuch,
                position,
                format!("the file is longer than {FILE_BYTES_MAX} bytes"),
                None,
            );
            return;
        }
        for (index, whole) in text.lines().enumerate() {
            if self.problems.is_full() {
                return;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let kept = &whole[..whole.find([';', '#']).unwrap_or(whole.len())];
            let begin = kept.len() - kept.trim_start().len();
            let content = kept.trim();
            let line = Content { path, number, whole, begin, text: content };
            if content.is_empty() {
                continue;
            }
            if let Some(control) = content.find(|c: char| c.is_control() && c != '\t') {
                let width = content[control..].chars().next().map_or(1, char::len_utf8);
                let position = line.position(control..control + width);
                self.problems.add(Refused::Control, position, "the line contains a control character", None);
                continue;
            }
            if let Some(missing) = self.missing.as_ref().filter(|_| !content.starts_with('[')) {
                let message = format!("`{content}` follows the include of `{missing}`, which is missing");
                let hint =
                    Some("fio, too, reads the section only up to a missing file: create it, or leave it out".into());
                return self.problems.add(Refused::Include, line.all(), message, hint);
            }
            if let Some(rest) = content.strip_prefix('[') {
                self.missing = None;
                if depth > 0 {
                    let message = "a file that is included has no sections of its own";
                    let hint = Some("include it within a section".to_owned());
                    return self.problems.add(Refused::Include, line.all(), message, hint);
                }
                self.section(&line, rest);
                continue;
            }
            let include = content.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '=']));
            match include {
                Some(wanted) => {
                    self.include(path, wanted.trim_start_matches(['=', ' ', '\t']), line.all(), depth);
                }
                None => self.word(&line),
            }
        }
    }

    /// Reads the name of a section; `rest` follows its opening bracket. As in fio, the name is all but the last character, whether that is a
    /// bracket or not: `[a]b` is the section `a]`.
    fn section(&mut self, line: &Content<'_>, rest: &str) {
        let after = rest.split_once(']').map(|(_, after)| after);
        let end = rest.char_indices().next_back().map_or(0, |(at, _)| at);
        let name = &rest[..end];
        match after {
            _ if name.len() > SECTION_BYTES_MAX => {
                let message = format!("a section's name is longer than {SECTION_BYTES_MAX} bytes");
                self.problems.add(Refused::SectionLine, line.all(), message, None);
            }
            // (fio ignores it; an option there would be lost.)
            Some(option) if option.contains('=') => {
                let message = format!("`{}` follows a section's name", option.trim());
                let at = line.position(line.text.len() - option.len()..line.text.len());
                self.problems.add(Refused::SectionLine, at, message, Refused::SectionLine.hint());
            }
            // (`[global` would be a job of the name `globa`, with the options of all jobs.)
            None if ["", "globa"].contains(&name) => {
                let hint = Some("write `[name]`".to_owned());
                self.problems.add(Refused::SectionLine, line.all(), "a section's name has no closing bracket", hint);
            }
            after => {
                if after != Some("") {
                    let text = line.text;
                    self.problems
                        .warn(format!("`{text}` is the section `{name}`, as in fio: its last character is left out"));
                }
                self.lines.push(Line::Section(name.to_owned(), Rc::new(line.all())));
            }
        }
    }

    /// Reads `name=value`, or a name alone.
    fn word(&mut self, line: &Content<'_>) {
        let (name, value) = match line.text.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value)),
            None => (line.text, None),
        };
        let value_at = value.map(|value| line.text.len() - value.trim_start().len());
        let raw = value.map(str::trim);
        let replaced = match raw.map(|raw| replace(raw, self.around)).transpose() {
            Ok(Some(text)) if text.contains(|c: char| c.is_control() && c != '\t') => {
                Err("a variable brings a control character into the line".to_owned())
            }
            replaced => replaced,
        };
        let replaced = match replaced {
            Ok(replaced) => replaced,
            Err(message) => {
                let at = line.position(value_at.unwrap_or(0)..line.text.len());
                return self.problems.add(Refused::Value, at, message, None);
            }
        };
        let is_as_typed = replaced.as_deref() == raw;
        let value_column = value_at.filter(|_| is_as_typed).map(|at| line.whole[..line.begin + at].chars().count() + 1);
        let position = Rc::new(line.position(0..name.len()));
        self.lines.push(Line::Word { name: name.to_owned(), value: replaced, position, value_column });
    }

    fn include(&mut self, from: &str, wanted: &str, position: Position, depth: usize) {
        self.includes += 1;
        if depth + 1 > DEPTH_MAX {
            let message = format!("files are included more than {DEPTH_MAX} deep");
            self.problems.add(Refused::TooMuch, position, message, Some("does a file include itself?".into()));
            return;
        }
        if self.includes > INCLUDES_MAX {
            let message = format!("more than {INCLUDES_MAX} files are included");
            self.problems.add(Refused::TooMuch, position, message, Some("does a file include itself?".into()));
            return;
        }
        let directory = from.rsplit_once('/').map(|(directory, _)| directory).filter(|_| !wanted.starts_with('/'));
        let sibling = directory.map(|directory| format!("{directory}/{wanted}"));
        let mut tried = self.around.read_file(wanted).map(|text| (wanted.to_owned(), text));
        if let (Err(_), Some(sibling)) = (&tried, &sibling) {
            tried = self.around.read_file(sibling).map(|text| (sibling.clone(), text));
        }
        let is_missing =
            self.around.is_missing(wanted) && sibling.is_none_or(|sibling| self.around.is_missing(&sibling));
        let is_in_section = self.lines.iter().any(|line| matches!(line, Line::Section(..)));
        match tried {
            Err(reason) if !is_missing || !is_in_section => {
                let message = format!("`{wanted}` cannot be included: {reason}");
                self.problems.add(Refused::Include, position, message, None);
            }
            Err(reason) => {
                self.problems
                    .warn(format!("{from}:{}: `{wanted}` is not included, as in fio: {reason}", position.line));
                self.missing = Some(wanted.to_owned());
            }
            Ok((path, text)) => {
                self.included_bytes = self.included_bytes.saturating_add(text.len());
                if self.included_bytes > INCLUDED_BYTES_MAX {
                    let message = format!("included files are longer than {INCLUDED_BYTES_MAX} bytes together");
                    return self.problems.add(Refused::TooMuch, position, message, None);
                }
                self.file(&path, &text, depth + 1);
            }
        }
    }
}

/// Replaces variables and keywords; calculates where a keyword was.
fn replace(text: &str, around: &dyn Surroundings) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut has_keyword = false;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(inner) = rest.strip_prefix("${") {
            let Some((name, after)) = inner.split_once('}') else {
                return Err(format!("`{rest}` has no closing brace"));
            };
            out.push_str(&around.variable(name).unwrap_or_default());
            rest = after;
            continue;
        }
        let keywords = [
            ("$pagesize", around.page_bytes()),
            ("$mb_memory", around.memory_bytes() >> 20),
            ("$ncpus", around.processors()),
        ];
        match keywords.into_iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, number)) => {
                has_keyword = true;
                out.push_str(&number.to_string());
                rest = &rest[word.len()..];
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    let is_sum = out.contains(['+', '-', '*', '/'])
        && out.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '*' | '/' | ' '));
    if has_keyword && is_sum {
        return calculate(&out).map(|number| number.to_string()).ok_or_else(|| format!("`{out}` cannot be calculated"));
    }
    Ok(out)
}

/// A sum of products of whole numbers, from left to right; division drops the rest, as `bc` does.
fn calculate(text: &str) -> Option<i64> {
    let mut sum = 0_i64;
    let mut product: Option<i64> = None;
    let mut operator = '+';
    let mut sign = 1;
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse::<i64>().ok()?;
        product = Some(match (operator, product) {
            ('*', Some(product)) => product.checked_mul(number)?,
            ('/', Some(product)) => product.checked_div(number)?,
            (_, before) => {
                sum = sum.checked_add(before.unwrap_or(0))?;
                number.checked_mul(sign)?
            }
        });
        rest = rest[end..].trim_start();
        let Some(next) = rest.chars().next() else { return sum.checked_add(product?) };
        operator = next;
        sign = if next == '-' { -1 } else { 1 };
        rest = rest[next.len_utf8()..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_calculated_with_products_first() {
        for (text, value) in [("2*3", Some(6)), ("1+2*3-4", Some(3)), ("7/2*2", Some(6)), ("10 - 2 * 3", Some(4))] {
            assert_eq!(calculate(text), value, "{text}");
        }
        for text in ["", "1+", "*2", "1/0", "9223372036854775807*2", "1 2"] {
            assert_eq!(calculate(text), None, "{text}");
        }
    }
}
