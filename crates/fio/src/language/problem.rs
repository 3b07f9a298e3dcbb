//! Problems of a command line or a job file in fio's language, with their positions.

use super::refusals::Refused;
use std::fmt::{self, Write as _};
use trueio_job::{Excerpt, printable};
use trueio_model::Origin;

/// Maximum number of reported problems.
const PROBLEMS_MAX: usize = 100;
/// Maximum number of characters of a line that are shown.
const LINE_CHARS_MAX: usize = 200;

/// A position in a job file or on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file; `None`: the command line.
    pub path: Option<String>,
    /// The line, counted from 1; on the command line the index of the argument.
    pub line: u32,
    /// The column, in characters, counted from 1.
    pub column: usize,
    /// Number of characters.
    pub width: usize,
    /// The text of the line or of the argument.
    pub source: String,
}

impl Position {
    /// Returns the position of a whole line.
    pub(super) fn line(path: &str, line: u32, source: &str) -> Self {
        Self::within(path, line, source, 0..source.len())
    }

    /// Returns the position of bytes of a line.
    pub(super) fn within(path: &str, line: u32, source: &str, bytes: std::ops::Range<usize>) -> Self {
        let position = Self::of_argument(line, source, bytes);
        Self { path: Some(path.to_owned()), ..position }
    }

    /// Returns the position of bytes of an argument of the command line.
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

    /// Returns the position of other characters of the same line.
    pub(super) fn part(&self, column: usize, width: usize) -> Self {
        Self { column, width: width.max(1), ..self.clone() }
    }

    /// Returns the origin of a value: the file and line, or the flag.
    pub(super) fn origin(&self, flag: &str) -> Origin {
        match &self.path {
            Some(path) => Origin::File { path: path.clone(), line: self.line },
            None => Origin::Flag { flag: format!("--{flag}") },
        }
    }
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioProblem {
    /// The kind of the refusal.
    pub kind: Refused,
    /// What is wrong.
    pub message: String,
    /// Its position; `None`: it concerns the request as a whole.
    pub position: Option<Position>,
    /// The remedy, if there is one.
    pub hint: Option<String>,
}

/// The problems of a request; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioError {
    /// The problems, in the order of their positions.
    pub problems: Vec<FioProblem>,
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render().trim_end())
    }
}

impl std::error::Error for FioError {}

impl FioError {
    /// Creates an error of one problem without a position.
    pub fn of(kind: Refused, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { problems: vec![FioProblem { kind, message: message.into(), position: None, hint }] }
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
            let hint = problem.hint.as_deref().unwrap_or_default();
            let Some(position) = &problem.position else {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "error: {}", printable(&problem.message));
                if !hint.is_empty() {
                    let _ = writeln!(out, "\nhint: {}", printable(hint));
                }
                continue;
            };
            let Position { source: line, column, width, .. } = position;
            let (path, line_number) = match &position.path {
                Some(path) => (path.as_str(), position.line),
                None => ("command line", 1),
            };
            let (message, lead, width) = (&problem.message, column - 1, *width);
            Excerpt { message, path, line_number, line, lead, width, hint }.draw(&mut out);
        }
        out
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<FioProblem>,
    /// Sentences about what was written and is not read.
    warnings: Vec<String>,
}

impl Problems {
    /// Adds a sentence about what was written and is not read. Each clone of a job has the same.
    pub(super) fn warn(&mut self, sentence: String) {
        if !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    pub(super) fn add(&mut self, kind: Refused, position: Position, message: impl Into<String>, hint: Option<String>) {
        self.push(FioProblem { kind, message: message.into(), position: Some(position), hint });
    }

    pub(super) fn push(&mut self, problem: FioProblem) {
        if self.is_full() {
            return;
        }
        // Each clone of a job has the same problem, and several rules may read one value.
        let is_same = |other: &&mut FioProblem| other.message == problem.message && other.position == problem.position;
        match self.found.iter_mut().find(is_same) {
            Some(other) => other.hint = other.hint.take().or(problem.hint),
            None => self.found.push(problem),
        }
    }

    /// Returns true if no more problems are reported, so that reading may end.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= PROBLEMS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the error, if there are problems.
    ///
    /// They are in the order of their positions: the command line first, then each file.
    pub(super) fn into_result(mut self) -> Result<(), FioError> {
        let key = |problem: &FioProblem| match &problem.position {
            Some(position) => (false, position.path.clone(), position.line, position.column),
            None => (true, None, 0, 0),
        };
        self.found.sort_by_key(key);
        if self.found.is_empty() { Ok(()) } else { Err(FioError { problems: self.found }) }
    }
}
