//! fio's job files, line by line: sections, options, comments, `include`, `${VARIABLE}`, keywords.
//!
//! A line is cut at the first `;` or `#`. A section begins at `[name]`; what it means is decided by
//! the reader behind this one. `include FILE` puts the lines of another file in its place, which may
//! not have sections of its own; the file is sought as named, then beside the including file.
//! `${NAME}` is the environment's word (nothing if it has none); `$pagesize`, `$mb_memory` and
//! `$ncpus` are numbers of the machine, with which a value may calculate (`$ncpus*2`).
//!
//! Whatever the bytes, this ends: files, lines and includes are bounded.
//!
//! Source: HOWTO of fio 3.42, "Job file format", "Environment variables", "Reserved keywords".

use super::Surroundings;
use super::problem::{Place, Problems};
use std::rc::Rc;

/// Longest file, in bytes. A longer one was surely named by mistake (an image, a device).
pub(super) const FILE_BYTES_MAX: usize = 16 << 20;
/// Most files that one job file includes, and how deep.
const INCLUDES_MAX: usize = 256;
const DEPTH_MAX: usize = 16;
/// Most bytes of all included files together.
const INCLUDED_BYTES_MAX: usize = 16 << 20;
/// Longest name of a section, in bytes, as in fio.
const SECTION_BYTES_MAX: usize = 255;

/// What a line says.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// `[name]`.
    Section(String, Rc<Place>),
    /// `name=value`, or `name` alone.
    Word {
        /// The option, as written.
        name: String,
        /// Its value with variables replaced; `None`: without `=`.
        value: Option<String>,
        /// Where the name stands.
        place: Rc<Place>,
        /// Column of the value, in characters, from 1. `None` if its text was replaced.
        value_column: Option<usize>,
    },
}

/// Reads a job file's text.
pub(super) fn read(path: &str, text: &str, around: &dyn Surroundings, problems: &mut Problems) -> Vec<Line> {
    let mut reader = Reader { around, problems, lines: Vec::new(), includes: 0, included_bytes: 0 };
    reader.file(path, text, 0);
    reader.lines
}

struct Reader<'a> {
    around: &'a dyn Surroundings,
    problems: &'a mut Problems,
    lines: Vec<Line>,
    includes: usize,
    included_bytes: usize,
}

impl Reader<'_> {
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    fn file(&mut self, path: &str, text: &str, depth: usize) {
        if text.len() > FILE_BYTES_MAX {
            let place = Place::line(path, 1, "");
            self.problems.add(place, format!("the file is longer than {FILE_BYTES_MAX} bytes"), None);
            return;
        }
        for (index, whole) in text.lines().enumerate() {
            if self.problems.is_full() {
                return;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let place = |from: usize, to: usize| Place::within(path, number, whole, from..to);
            let kept = &whole[..whole.find([';', '#']).unwrap_or(whole.len())];
            let begin = kept.len() - kept.trim_start().len();
            let said = kept.trim();
            if said.is_empty() {
                continue;
            }
            let end = begin + said.len();
            if let Some(control) = said.find(|c: char| c.is_control() && c != '\t') {
                let at = begin + control;
                let width = said[control..].chars().next().map_or(1, char::len_utf8);
                self.problems.add(place(at, at + width), "a control character stands in the line", None);
                continue;
            }
            if let Some(rest) = said.strip_prefix('[') {
                match rest.split_once(']') {
                    _ if depth > 0 => {
                        let message = "a file that is included has no sections of its own";
                        self.problems.add(place(begin, end), message, Some("include it within a section".into()));
                        return;
                    }
                    Some((name, "")) if !name.trim().is_empty() && name.len() <= SECTION_BYTES_MAX => {
                        self.lines.push(Line::Section(name.to_owned(), Rc::new(place(begin, end))));
                    }
                    Some((name, "")) => {
                        let message = match name.trim().is_empty() {
                            true => "a section has no name".to_owned(),
                            false => format!("a section's name is longer than {SECTION_BYTES_MAX} bytes"),
                        };
                        self.problems.add(place(begin, end), message, None);
                    }
                    Some((name, behind)) => {
                        let from = begin + 1 + name.len() + 1;
                        let message = format!("`{}` follows a section's name", behind.trim());
                        self.problems.add(
                            place(from, end),
                            message,
                            Some("options stand in lines of their own".into()),
                        );
                    }
                    None => {
                        let hint = Some("write `[name]`".to_owned());
                        self.problems.add(place(begin, end), "a section's name has no closing bracket", hint);
                    }
                }
                continue;
            }
            let include = said.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '=']));
            if let Some(wanted) = include {
                let wanted = wanted.trim_start_matches(['=', ' ', '\t']);
                self.include(path, wanted, place(begin, end), depth);
                continue;
            }
            let (name, value) = match said.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(value)),
                None => (said, None),
            };
            let name_place = Rc::new(place(begin, begin + name.len()));
            let value_at = value.map(|value| {
                let from = end - value.len();
                from + (value.len() - value.trim_start().len())
            });
            let raw = value.map(str::trim);
            let replaced = match raw.map(|raw| replace(raw, self.around)) {
                None => None,
                Some(Ok(text)) if text.contains(|c: char| c.is_control() && c != '\t') => {
                    let from = value_at.unwrap_or(begin);
                    self.problems.add(place(from, end), "a variable brings a control character into the line", None);
                    continue;
                }
                Some(Ok(text)) => Some(text),
                Some(Err(message)) => {
                    let from = value_at.unwrap_or(begin);
                    self.problems.add(place(from, end), message, None);
                    continue;
                }
            };
            let is_as_typed = replaced.as_deref() == raw;
            let value_column = value_at.filter(|_| is_as_typed).map(|at| whole[..at].chars().count() + 1);
            self.lines.push(Line::Word { name: name.to_owned(), value: replaced, place: name_place, value_column });
        }
    }

    fn include(&mut self, from: &str, wanted: &str, place: Place, depth: usize) {
        self.includes += 1;
        if depth + 1 > DEPTH_MAX {
            let message = format!("files are included more than {DEPTH_MAX} deep");
            self.problems.add(place, message, Some("does a file include itself?".into()));
            return;
        }
        if self.includes > INCLUDES_MAX {
            let message = format!("more than {INCLUDES_MAX} files are included");
            self.problems.add(place, message, Some("does a file include itself?".into()));
            return;
        }
        let beside = from.rsplit_once('/').map(|(directory, _)| format!("{directory}/{wanted}"));
        let mut tried = self.around.read_file(wanted).map(|text| (wanted.to_owned(), text));
        if let (Err(_), Some(beside), false) = (&tried, beside, wanted.starts_with('/')) {
            tried = self.around.read_file(&beside).map(|text| (beside, text));
        }
        match tried {
            Err(reason) => self.problems.add(place, format!("`{wanted}` cannot be included: {reason}"), None),
            Ok((path, text)) => {
                self.included_bytes = self.included_bytes.saturating_add(text.len());
                if self.included_bytes > INCLUDED_BYTES_MAX {
                    let message = format!("included files are longer than {INCLUDED_BYTES_MAX} bytes together");
                    return self.problems.add(place, message, None);
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
            let Some((name, behind)) = inner.split_once('}') else {
                return Err(format!("`{rest}` has no closing brace"));
            };
            out.push_str(&around.variable(name).unwrap_or_default());
            rest = behind;
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
