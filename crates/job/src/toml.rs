//! TOML job files: `[defaults]`, then one `[job.NAME]` table a job, in order, and `[limits]`.
//!
//! ```toml
//! [defaults]
//! directory = "/mnt/disk"
//! size = "1g"
//!
//! [job.randread-4k]
//! rw = "randread"
//! bs = "4k"
//! iodepth = 32
//! runtime = "30s"
//!
//! [limits]
//! fail_if = ["p99 > 10ms", "randread-4k: IOPS < 50000"]
//! ```
//!
//! Every error in a file is found in one pass, and each points at its line and key, with a suggestion if one
//! is similar. Any input gives jobs or such a report: `fuzz/fuzz_targets/job_toml.rs` and
//! `tests/it/never_panics.rs` check it.

use crate::excerpt::{Excerpt, printable};
use crate::table::{overlay, row, spec_value, suggestion, value_hint};
use crate::value::{Scalar, write_paths};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml_edit::{Document, Item, TableLike, Value as TomlValue};
use trueio_model::{JobSpec, Limit, Origin, SpecValue};

/// Maximum length of a job file, in bytes. A longer one was named by mistake (an image, a device).
pub const JOB_FILE_BYTES_MAX: usize = 16 << 20;

/// A job file that cannot be used, with all its errors.
#[derive(Debug)]
pub struct JobFileError {
    /// The path as typed.
    pub path: String,
    /// The errors, in the order of the file; at least one.
    pub problems: Vec<Problem>,
    text: String,
}

/// An error in a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its description.
    pub message: String,
    /// Its range of bytes in the file.
    pub span: Range<usize>,
    /// The line, from 1.
    pub line: u32,
    /// The column, in characters, from 1.
    pub column: u32,
    /// A remedy, if there is one.
    pub hint: Option<String>,
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "`{}` is not a job file that can be run", self.path),
            count => write!(f, "`{}` is not a job file that can be run, for {count} reasons", self.path),
        }
    }
}

impl std::error::Error for JobFileError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl JobFileError {
    /// The report in plain text: each problem with its line and a mark under the key.
    ///
    /// ```text
    /// error: `iodpeth` is not an option
    ///  --> job.toml:3:1
    ///   |
    /// 3 | iodpeth = 32
    ///   | ^^^^^^^ did you mean `iodepth`?
    /// ```
    pub fn render(&self) -> String {
        let text = &self.text;
        let mut out = String::new();
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            let line_begin = text[..problem.span.start].rfind('\n').map_or(0, |at| at + 1);
            let line_end = text[problem.span.start..].find('\n').map_or(text.len(), |at| problem.span.start + at);
            let line = text[line_begin..line_end].trim_end_matches('\r');
            let lead = text[line_begin..problem.span.start.min(line_begin + line.len())].chars().count();
            // The parser may point at the line's end, which is not printed; the mark is then after the text.
            let marked = problem.span.end.min(line_begin + line.len()).max(problem.span.start);
            let width = text.get(problem.span.start..marked).map_or(1, |marked| marked.chars().count());
            let (message, path, line_number) = (&problem.message, &self.path, problem.line);
            let hint = problem.hint.as_deref().unwrap_or("");
            Excerpt { message, path, line_number, line, lead, width, hint }.draw(&mut out);
        }
        out
    }
}

/// A job file that was read.
#[derive(Debug)]
pub struct JobFile {
    /// Its jobs, in its order; at least one.
    pub jobs: Vec<JobSpec>,
    /// The limits of `[limits]`, in its order.
    pub limits: Vec<Limit>,
}

/// Parses a job file's text. `path` is its name for messages and origins; nothing is opened.
///
/// # Errors
/// All errors of the text, in its order.
pub fn parse_job_file(path: &str, text: &str) -> Result<JobFile, Box<JobFileError>> {
    let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut reader = Reader { path, text, line_starts, problems: Vec::new(), limits: Vec::new() };
    let jobs = if text.len() > JOB_FILE_BYTES_MAX {
        reader.problem(0..0, format!("the file is longer than {JOB_FILE_BYTES_MAX} bytes"), None);
        Vec::new()
    } else {
        reader.read()
    };
    if reader.problems.is_empty() {
        return Ok(JobFile { jobs, limits: reader.limits });
    }
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| problem.span.start);
    Err(Box::new(JobFileError { path: path.to_owned(), problems, text: text.to_owned() }))
}

struct Reader<'a> {
    path: &'a str,
    text: &'a str,
    /// Where each line begins. Counting the lines before each option would take time in proportion to the square of the file's length.
    line_starts: Vec<usize>,
    problems: Vec<Problem>,
    limits: Vec<Limit>,
}

type Level = BTreeMap<&'static str, SpecValue>;

impl Reader<'_> {
    fn read(&mut self) -> Vec<JobSpec> {
        let document = match Document::parse(self.text) {
            Ok(document) => document,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let (message, hint) = self.not_toml(&span, error.message());
                self.problem(span, format!("not TOML: {message}"), hint);
                return Vec::new();
            }
        };
        let root = document.as_table();
        let mut defaults = Level::new();
        let mut jobs: Vec<(String, Level)> = Vec::new();
        let mut has_job_table = false;
        for (key, item) in root.iter() {
            match (key, item.as_table_like()) {
                ("defaults", Some(table)) => defaults = self.read_level(table, "`[defaults]`"),
                ("job", Some(table)) => {
                    has_job_table = true;
                    self.read_jobs(table, &mut jobs);
                }
                ("limits", Some(table)) => self.read_limits(table),
                ("limits", None) => {
                    let span = self.item_span(root, key, item);
                    self.problem(span, "`limits` is a table".into(), Some("write `[limits]`".into()));
                }
                ("defaults", None) => {
                    let span = self.item_span(root, key, item);
                    self.problem(span, "`defaults` is a table".into(), Some("write `[defaults]`".into()));
                }
                ("job", None) => {
                    has_job_table = true;
                    let span = self.item_span(root, key, item);
                    self.problem(span, "a job has no name".into(), Some("write `[job.NAME]`".into()));
                }
                (_, table) => {
                    let span = self.key_span(root, key, item);
                    let is_table = table.is_some() || item.is_array_of_tables();
                    let (message, hint) = match (is_table, key) {
                        (true, "global" | "default") => {
                            (format!("`[{key}]` is not a table here"), Some("did you mean `[defaults]`?".into()))
                        }
                        (true, _) if strsim::osa_distance(key, "defaults") <= 2 => {
                            (format!("`[{key}]` is not a table here"), Some("did you mean `[defaults]`?".into()))
                        }
                        (true, _) if strsim::osa_distance(&key.to_lowercase(), "job") <= 1 => {
                            let name = table.and_then(|t| t.iter().next()).map_or("NAME", |(name, _)| name);
                            (format!("`[{key}]` is not a table here"), Some(format!("did you mean `[job.{name}]`?")))
                        }
                        (true, _) => (
                            format!("`[{key}]` is not a table here"),
                            Some(format!("a job is a table `[job.{key}]`; options for all jobs are in `[defaults]`")),
                        ),
                        (false, _) if row(key).is_some() => (
                            format!("`{key}` is outside of any table"),
                            Some("put it under `[defaults]` or under a `[job.NAME]`".into()),
                        ),
                        (false, _) => (
                            format!("`{key}` is outside of any table"),
                            Some(suggestion(key).unwrap_or_else(|| "a job file begins with `[job.NAME]`".into())),
                        ),
                    };
                    self.problem(span, message, hint);
                }
            }
        }
        if jobs.is_empty() && !has_job_table && self.problems.is_empty() {
            let end = self.text.len();
            self.problem(end..end, "the file has no job".into(), Some("add a table `[job.NAME]`".into()));
        }
        jobs.into_iter()
            .map(|(name, level)| {
                let mut spec = JobSpec::new(name);
                overlay(&mut spec, &defaults);
                overlay(&mut spec, &level);
                spec
            })
            .collect()
    }

    /// Reads `[limits]`: `fail_if` is a limit or a list of them.
    fn read_limits(&mut self, table: &dyn TableLike) {
        for (key, item) in table.iter() {
            if key != "fail_if" {
                let span = self.key_span(table, key, item);
                self.problem(
                    span,
                    format!("`{key}` is not in `[limits]`"),
                    Some("write `fail_if = [\"p99 > 10ms\"]`".into()),
                );
                continue;
            }
            let span = self.item_span(table, key, item);
            let list: Vec<(Option<&str>, Range<usize>)> = match item.as_value() {
                Some(TomlValue::Array(array)) => {
                    array.iter().map(|one| (one.as_str(), one.span().unwrap_or_else(|| span.clone()))).collect()
                }
                other => vec![(other.and_then(TomlValue::as_str), span)],
            };
            for (text, span) in list {
                match text.map(Limit::parse) {
                    Some(Ok(limit)) => self.limits.push(limit),
                    Some(Err(error)) => {
                        let message = format!("`fail_if`: column {} of the limit: {}", error.column, error.reason);
                        self.problem(span, message, None);
                    }
                    None => {
                        let hint = "it takes a string or a list of strings: `[\"p99 > 10ms\"]`";
                        self.problem(span, "`fail_if` is a limit in quotes".into(), Some(hint.into()));
                    }
                }
            }
        }
    }

    fn read_jobs(&mut self, table: &dyn TableLike, jobs: &mut Vec<(String, Level)>) {
        if table.is_empty() {
            let span = 0..0;
            self.problem(span, "`[job]` has no jobs in it".into(), Some("write `[job.NAME]`".into()));
        }
        for (name, item) in table.iter() {
            let Some(options) = item.as_table_like() else {
                let span = self.key_span(table, name, item);
                let (message, hint) = if item.is_array_of_tables() {
                    (format!("job `{name}` is defined several times"), "give each job its own name: `[job.NAME]`")
                } else {
                    (format!("`{name}` is in `[job]`, which is not a job"), "a job has a name: `[job.NAME]`")
                };
                self.problem(span, message, Some(hint.into()));
                continue;
            };
            if let Err(reason) = check_job_name(name) {
                let span = self.key_span(table, name, item);
                self.problem(span, reason, Some("use letters, digits, `-`, `_` and `.`".into()));
            }
            let level = self.read_level(options, &format!("`[job.{name}]`"));
            jobs.push((name.to_owned(), level));
        }
    }

    /// The options of one table.
    fn read_level(&mut self, table: &dyn TableLike, place: &str) -> Level {
        let mut level = Level::new();
        for (key, item) in table.iter() {
            let key_span = self.key_span(table, key, item);
            let Some(row) = row(key) else {
                let hint = suggestion(key);
                let message = if item.is_value() && !item.is_inline_table() {
                    format!("`{key}` is not an option")
                } else {
                    format!("`{key}` is a table within {place}, not an option")
                };
                self.problem(key_span, message, hint);
                continue;
            };
            if level.contains_key(row.name) {
                let message = format!("`{}` is given twice in {place}", row.name);
                self.problem(key_span, message, Some(format!("`{key}` is another name for it")));
                continue;
            }
            let value_span = item.span().unwrap_or_else(|| key_span.clone());
            let (text, scalar) = match scalar_of(item) {
                Ok(found) => found,
                Err(found) => {
                    let message = format!("`{key}` cannot be {found}");
                    self.problem(value_span, message, Some(format!("it takes {}", row.kind.takes())));
                    continue;
                }
            };
            if !row.kind.accepts(scalar) {
                let message = format!("`{key}` cannot be {}", scalar_name(scalar));
                self.problem(value_span, message, Some(format!("it takes {}", row.kind.takes())));
                continue;
            }
            let origin = Origin::File { path: self.path.to_owned(), line: self.line_of(key_span.start).0 };
            match spec_value(row, &text, origin) {
                Ok(value) => {
                    level.insert(row.name, value);
                }
                Err(reason) => {
                    let hint = value_hint(row, &text, &reason);
                    self.problem(value_span, format!("`{key}`: {reason}"), hint);
                }
            }
        }
        level
    }

    /// Translates an error of the parser into a message that names the key, and a remedy.
    fn not_toml(&self, span: &Range<usize>, message: &str) -> (String, Option<String>) {
        let start = floor_char(self.text, span.start);
        let end = floor_char(self.text, span.end.max(start));
        let marked = &self.text[start..end];
        let line_begin = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[line_begin..].lines().next().unwrap_or_default().trim();
        let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
        if message.contains("duplicate key") {
            let is_header = line.starts_with('[');
            let is_first = |other: &str| {
                let other = other.trim();
                if is_header { other == line } else { key(other).is_some_and(|key| key == marked) }
            };
            // The nearest one above, because another table further up may have a key of the same name.
            let first = self.text[..line_begin].lines().enumerate().filter(|(_, other)| is_first(other)).last();
            let what = if is_header { line } else { marked };
            let hint = first.map(|(index, _)| format!("line {} already has it: keep one of them", index + 1));
            return (format!("`{what}` is set twice"), hint);
        }
        if message.contains("string values must be quoted") {
            let value =
                line.split_once('=').map_or(marked, |(_, value)| value.split('#').next().unwrap_or(value).trim());
            let hint = key(line).map(|key| format!("write `{key} = \"{value}\"`"));
            if let (true, Some(key)) = (value.is_empty(), key(line)) {
                let takes = row(&key).map(|row| format!("it takes {}", row.kind.takes()));
                return (format!("`{key}` has no value"), takes);
            }
            return (format!("`{marked}` has no quotes"), hint);
        }
        if message.contains("invalid basic string") && message.contains("expected `\"`") {
            return ("a text has no closing quote".to_owned(), Some("end it with `\"`".to_owned()));
        }
        if message.contains("key with no value") {
            return (message.to_owned(), Some("a line is `option = value`".to_owned()));
        }
        if message.contains("leading zero") {
            let hint = Some("write the number without it".to_owned());
            return ("a number begins with a zero".to_owned(), hint);
        }
        (message.to_owned(), None)
    }

    fn problem(&mut self, span: Range<usize>, message: String, hint: Option<String>) {
        // Ranges come from the parser; they are extended to whole characters, so that a report never panics.
        let start = floor_char(self.text, span.start);
        let end = floor_char(self.text, span.end.max(start));
        let (line, column) = self.line_of(start);
        let (message, hint) = (printable(&message), hint.map(|hint| printable(&hint)));
        self.problems.push(Problem { message, span: start..end, line, column, hint });
    }

    /// Returns line and column of a byte, both from 1.
    fn line_of(&self, at: usize) -> (u32, u32) {
        let at = floor_char(self.text, at);
        let line = self.line_starts.partition_point(|start| *start <= at);
        let column = self.text[self.line_starts[line - 1]..at].chars().count() + 1;
        (line as u32, column as u32)
    }

    fn key_span(&self, table: &dyn TableLike, key: &str, item: &Item) -> Range<usize> {
        table.key(key).and_then(|key| key.span()).or_else(|| item.span()).unwrap_or(0..0)
    }

    fn item_span(&self, table: &dyn TableLike, key: &str, item: &Item) -> Range<usize> {
        item.span().unwrap_or_else(|| self.key_span(table, key, item))
    }
}

/// A job's name becomes part of a file's name and of one line of output.
pub(crate) fn check_job_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a job's name is empty".into());
    }
    if name.len() > 100 {
        return Err(format!("a job's name is longer than 100 bytes ({})", name.len()));
    }
    if name.starts_with('.') {
        return Err(format!("the job's name `{}` begins with a dot", printable(name)));
    }
    match name.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        Some(c) => Err(format!("the job's name `{}` contains {c:?}", printable(name))),
        None => Ok(()),
    }
}

fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "a string",
        Scalar::Integer => "a whole number",
        Scalar::Float => "a number with a fraction",
        Scalar::Boolean => "true or false",
        Scalar::List => "a list",
    }
}

/// Returns a TOML value as the text of an option, or its description if no option can have it.
fn scalar_of(item: &Item) -> Result<(String, Scalar), &'static str> {
    let value = match item {
        Item::Value(value) => value,
        Item::Table(_) | Item::ArrayOfTables(_) => return Err("a table"),
        Item::None => return Err("nothing"),
    };
    match value {
        TomlValue::String(text) => Ok((text.value().clone(), Scalar::String)),
        TomlValue::Integer(number) => Ok((number.value().to_string(), Scalar::Integer)),
        TomlValue::Float(number) => Ok((number.value().to_string(), Scalar::Float)),
        TomlValue::Boolean(is) => Ok((is.value().to_string(), Scalar::Boolean)),
        TomlValue::Datetime(_) => Err("a date"),
        TomlValue::InlineTable(_) => Err("a table"),
        TomlValue::Array(array) => {
            let mut paths = Vec::new();
            let mut numbers = Vec::new();
            for element in array.iter() {
                match element {
                    TomlValue::String(text) => paths.push(text.value().clone()),
                    TomlValue::Integer(number) => numbers.push(number.value().to_string()),
                    _ => return Err("a list of anything but strings or whole numbers"),
                }
            }
            match (paths.is_empty(), numbers.is_empty()) {
                (_, true) => Ok((write_paths(&paths), Scalar::List)),
                (true, false) => Ok((numbers.join(","), Scalar::List)),
                (false, false) => Err("a list of both strings and numbers"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<JobSpec>, String> {
        parse_job_file("job.toml", text).map(|file| file.jobs).map_err(|error| error.render())
    }

    #[test]
    fn limits_are_a_string_or_a_list_and_an_error_points_at_the_one() {
        let with = |limits: &str| parse_job_file("job.toml", &format!("[job.a]\nrw = \"read\"\n[limits]\n{limits}\n"));
        let texts = |file: JobFile| file.limits.into_iter().map(|limit| limit.text).collect::<Vec<_>>();
        assert_eq!(texts(with("fail_if = \"p99 > 10ms\"").unwrap()), ["p99 > 10ms"]);
        assert_eq!(texts(with("fail_if = [\"a: IOPS < 5\", \"p50 > 1s\"]").unwrap()), ["a: IOPS < 5", "p50 > 1s"]);
        let wrong = [
            (
                "fail_if = [\"p99 > 1ms\", \"p98 > 1ms\"]",
                "--> job.toml:4:25",
                "column 1 of the limit: a figure is expected",
            ),
            ("fail_if = 3", "--> job.toml:4:11", "`fail_if` is a limit in quotes"),
            ("p99 = \"1ms\"", "--> job.toml:4:1", "`p99` is not in `[limits]`"),
        ];
        for (limits, place, message) in wrong {
            let text = with(limits).unwrap_err().render();
            assert!(text.contains(place) && text.contains(message), "{text}");
        }
    }

    #[test]
    fn jobs_keep_the_order_of_the_file_and_override_its_defaults() {
        let jobs = read(
            "[job.z]\nrw = \"randread\"\n\n[defaults]\nbs = \"8K\"\niodepth = 4\n\n[job.a]\nblocksize = \"16k\"\ndirect = true\n",
        )
        .unwrap();
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        let line = |job: usize, key: &str| match &jobs[job].options[key].origin {
            Origin::File { path, line } => (path.clone(), *line),
            other => panic!("{other:?}"),
        };
        assert_eq!((jobs[0].options["bs"].text.as_str(), line(0, "bs")), ("8k", ("job.toml".into(), 5)));
        assert_eq!((jobs[1].options["bs"].text.as_str(), line(1, "bs")), ("16k", ("job.toml".into(), 9)));
        assert_eq!(jobs[1].options["iodepth"].text, "4");
        assert_eq!(jobs[1].options["direct"].text, "require");
    }

    #[test]
    fn a_jobs_bssplit_replaces_the_bs_of_the_defaults() {
        let jobs = read("[defaults]\nbs = \"4k\"\n[job.a]\nbssplit = \"4k/50:8k/50\"\n").unwrap();
        assert_eq!(jobs[0].options.keys().collect::<Vec<_>>(), ["bssplit"]);
    }

    #[test]
    fn strings_numbers_booleans_and_lists_are_taken_where_they_make_sense() {
        let jobs = read(
            "[job.a]\nbs = 4096\nruntime = 1.5\ntime_based = 1\nfilename = [\"a\", \"b:c\"]\ncpus_allowed = [0, 2]\nrandseed = 0x89\n",
        )
        .unwrap();
        let text = |key: &str| jobs[0].options[key].text.clone();
        assert_eq!(text("bs"), "4k");
        assert_eq!(text("runtime"), "1500ms");
        assert_eq!(text("time_based"), "true");
        assert_eq!(text("filename"), r"a:b\:c");
        assert_eq!(text("cpus_allowed"), "0,2");
        assert_eq!(text("randseed"), "137");
    }

    #[test]
    fn every_error_in_a_file_is_reported_with_its_line_and_a_suggestion() {
        let error = read(
            "[defaults]\niodpeth = 32\nruntime = true\n\n[job.\"a b\"]\nrw = \"ranread\"\nbs = \"4x\"\nblocksize = 1\n\n[glob]\n",
        )
        .unwrap_err();
        assert_eq!(
            error,
            "\
error: `iodpeth` is not an option
 --> job.toml:2:1
  |
2 | iodpeth = 32
  | ^^^^^^^ did you mean `iodepth`?

error: `runtime` cannot be true or false
 --> job.toml:3:11
  |
3 | runtime = true
  |           ^^^^ it takes a duration, such as `30s` or `100ms`; a bare number is seconds

error: the job's name `a b` contains ' '
 --> job.toml:5:6
  |
5 | [job.\"a b\"]
  |      ^^^^^ use letters, digits, `-`, `_` and `.`

error: `rw`: `ranread` is not one of `read`, `write`, `trim`, `randread`, `randwrite`, `randtrim`, `rw`, `randrw`, `trimwrite`, `randtrimwrite`
 --> job.toml:6:6
  |
6 | rw = \"ranread\"
  |      ^^^^^^^^^ did you mean `randread`?

error: `bs`: `x` is not a unit of size; use k, m, g, t (powers of 1024) or MB, GB (1000)
 --> job.toml:7:6
  |
7 | bs = \"4x\"
  |      ^^^^ it takes a size, such as `4k`, or three for read, write, trim: `4k,8k,1m`

error: `[glob]` is not a table here
  --> job.toml:10:2
   |
10 | [glob]
   |  ^^^^ a job is a table `[job.glob]`; options for all jobs are in `[defaults]`
"
        );
    }

    #[test]
    fn invalid_toml_is_reported_with_its_position() {
        assert_eq!(
            read("[job.a]\nbs = \n").unwrap_err(),
            "\
error: not TOML: `bs` has no value
 --> job.toml:2:6
  |
2 | bs =\x20
  |      ^ it takes a size, such as `4k`, or three for read, write, trim: `4k,8k,1m`
"
        );
    }

    #[test]
    fn a_second_job_of_the_same_name_is_refused() {
        let error = read("[job.a]\nbs = 4096\n[job.a]\nbs = 8192\n").unwrap_err();
        assert!(error.contains("job.toml:3:"), "{error}");
        assert!(error.contains("`[job.a]` is set twice"), "{error}");
        let error = read("[[job.a]]\nbs = 4096\n[[job.a]]\nbs = 8192\n").unwrap_err();
        assert!(error.contains("job `a` is defined several times"), "{error}");
    }

    #[test]
    fn an_option_under_two_of_its_names_is_given_twice() {
        let error = read("[job.a]\nbs = \"4k\"\nblocksize = \"8k\"\n").unwrap_err();
        assert!(error.contains("`bs` is given twice in `[job.a]`"), "{error}");
        assert!(error.contains("job.toml:3:1"), "{error}");
    }

    #[test]
    fn a_file_without_a_job_is_refused_with_an_example() {
        for text in ["", "# nothing\n", "[defaults]\nbs = \"4k\"\n", "[job]\n"] {
            let error = read(text).unwrap_err();
            assert!(error.contains("`[job.NAME]`"), "{text:?}: {error}");
        }
        let error = read("bs = \"4k\"\n").unwrap_err();
        assert!(error.contains("`bs` is outside of any table"), "{error}");
    }

    #[test]
    fn control_characters_of_a_file_do_not_reach_the_terminal() {
        let error = read("[job.a]\n\"\\u001b[31m\" = 1 # \u{1b}[31m\n").unwrap_err();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn an_error_at_the_end_of_a_line_is_marked_after_its_text() {
        let error = read("[job.a]\r\n\"unclosed\r\nrw = 0").unwrap_err();
        assert!(error.contains("2 | \"unclosed\n"), "{error}");
        assert!(error.contains("\n  |          ^"), "{error}");
    }
}
