//! What is wrong with a command line or a job file of fio's, and where.

use std::fmt::{self, Write as _};
use trueio_model::Origin;

/// Most problems that are told; more help nobody.
const PROBLEMS_MAX: usize = 100;
/// Most characters of a line that are shown.
const LINE_CHARS_MAX: usize = 200;

/// Where something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file; `None`: the command line.
    pub path: Option<String>,
    /// The line, from 1; on the command line: which argument.
    pub line: u32,
    /// The column, in characters, from 1.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// The line or the argument itself.
    pub source: String,
}

impl Place {
    /// A whole line.
    pub(super) fn line(path: &str, line: u32, source: &str) -> Self {
        Self::within(path, line, source, 0..source.len())
    }

    /// Bytes of a line.
    pub(super) fn within(path: &str, line: u32, source: &str, bytes: std::ops::Range<usize>) -> Self {
        let place = Self::of_argument(line, source, bytes);
        Self { path: Some(path.to_owned()), ..place }
    }

    /// Bytes of an argument of the command line.
    pub(super) fn of_argument(number: u32, source: &str, bytes: std::ops::Range<usize>) -> Self {
        let count = |to: usize| source.get(..to).map_or(0, |text| text.chars().count());
        let (from, to) = (count(bytes.start), count(bytes.end));
        Self {
            path: None,
            line: number,
            column: from + 1,
            width: to.saturating_sub(from).max(1),
            source: source.chars().take(LINE_CHARS_MAX).collect(),
        }
    }

    /// The same line, other characters of it.
    pub(super) fn part(&self, column: usize, width: usize) -> Self {
        Self { column, width: width.max(1), ..self.clone() }
    }

    /// As an origin of a value: the file and line, or the flag.
    pub(super) fn origin(&self, flag: &str) -> Origin {
        match &self.path {
            Some(path) => Origin::File { path: path.clone(), line: self.line },
            None => Origin::Flag { flag: format!("--{flag}") },
        }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioProblem {
    /// What is wrong.
    pub message: String,
    /// Where; `None`: in what was asked as a whole.
    pub place: Option<Place>,
    /// What to do, if there is something to say.
    pub hint: Option<String>,
}

/// What fio's language could not be read for; at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioError {
    /// What is wrong, in the order of the places.
    pub problems: Vec<FioProblem>,
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render().trim_end())
    }
}

impl std::error::Error for FioError {}

impl FioError {
    /// One problem without a place.
    pub fn of(message: impl Into<String>, hint: Option<String>) -> Self {
        Self { problems: vec![FioProblem { message: message.into(), place: None, hint }] }
    }

    /// The report in plain text.
    ///
    /// ```text
    /// error: `bfs` is not an option
    ///  --> job.fio:3:1
    ///   |
    /// 3 | bfs=4k
    ///   | ^^^ did you mean `bs`?
    /// ```
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = writeln!(out, "error: {}", printable(&problem.message));
            let hint = problem.hint.as_deref().map(printable).unwrap_or_default();
            let Some(place) = &problem.place else {
                if !hint.is_empty() {
                    let _ = writeln!(out, "\nhint: {hint}");
                }
                continue;
            };
            let number = if place.path.is_some() { place.line.to_string() } else { String::new() };
            let margin = " ".repeat(number.len());
            let at = match &place.path {
                Some(path) => format!("{}:{}:{}", printable(path), place.line, place.column),
                None => "command line".to_owned(),
            };
            let lead: String =
                place.source.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let shown = place.source.chars().count().max(place.column);
            let marks = "^".repeat(place.width.min(shown + 1 - place.column).max(1));
            let _ = writeln!(out, "{margin}--> {at}");
            let _ = writeln!(out, "{margin} |");
            let _ = writeln!(out, "{number} | {}", printable(&place.source));
            let _ = writeln!(out, "{}", format!("{margin} | {lead}{marks} {hint}").trim_end());
        }
        out
    }
}

/// Text of others without control characters, which a terminal might obey.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<FioProblem>,
}

impl Problems {
    pub(super) fn add(&mut self, place: Place, message: impl Into<String>, hint: Option<String>) {
        self.push(FioProblem { message: message.into(), place: Some(place), hint });
    }

    pub(super) fn push(&mut self, problem: FioProblem) {
        // Clones of a job make the same mistake each.
        if !self.is_full() && !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    /// True if no more are told; reading may end.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= PROBLEMS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The error, if anything is wrong.
    ///
    /// They stand in the order of the places: the command line first, then file by file.
    pub(super) fn into_result(mut self) -> Result<(), FioError> {
        let key = |problem: &FioProblem| match &problem.place {
            Some(place) => (false, place.path.clone(), place.line, place.column),
            None => (true, None, 0, 0),
        };
        self.found.sort_by_key(key);
        if self.found.is_empty() { Ok(()) } else { Err(FioError { problems: self.found }) }
    }
}
