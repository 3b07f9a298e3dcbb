//! fio's language: command lines and job files as fio takes them, read into [`JobSpec`]s.
//!
//! ```text
//! command line ──┐                      ┌ options.rs: the option of each name, and what happens with it
//! job files ─────┴─ words with positions ──┤
//!                                       └ lower.rs: fio's defaults and rules, files, clones ── JobSpec
//! ```
//!
//! The result is planned like every other job. Where fio's default differs from ours (`direct=0`, `unlink=0`,
//! `ioengine=psync`, files named after the job), fio's is written into the specification with the origin `preset fio`,
//! so `explain` and the record show it.
//!
//! [`read`] and [`read_job_file`] are pure: files, variables and the machine's numbers come in through
//! [`Surroundings`]. [`meet_targets`] then looks at the targets that exist: fio writes to every file that a job names,
//! and we only to files that are named for overwriting.
//!
//! Limits: nothing here runs a job or prints results. The table of options in `docs/fio-options.md` is rendered from
//! [`options`].
//!
//! Source: HOWTO and manual page of fio 3.42, and its behaviour as measured; no code of it is here.

mod clones;
mod command_line;
mod engines;
mod help;
mod in_memory;
mod job_file;
mod lower;
mod lowering;
mod number;
pub mod options;
mod page;
mod pattern;
mod priority;
mod problem;
mod program;
mod queue;
mod refusals;
mod remote;
pub mod rows;
mod rules;
mod shared;
mod sort;
mod targets;
mod value;
mod warnings;
mod written;

pub use help::{OwnHelp, command_help, engine_help, program_help, show_command};
pub use page::{render_refusals, render_table};
pub use problem::{FioError, FioProblem, Position};
pub use program::debug_help;
pub use refusals::{RefusalRow, Refused};
pub use remote::{Client, Serve};
pub(crate) use targets::{directories, lacks_forbidden_file, paths};
pub use targets::{log_files, meet_targets};
pub use written::Written;

use command_line::Item;
use job_file::Line;
use options::FioOption;
use problem::Problems;
use program::{DEBUGGED, Program};
use std::rc::Rc;
use trueio_model::{FioWord, JobSpec, Origin};

/// The version of fio whose behaviour this is; scripts read it from `--version`.
pub const FIO_VERSION: &str = "fio-3.42";
/// The origin of what fio does by default and we do not.
const PRESET: &str = "fio";
/// Most jobs, clones included.
const JOBS_MAX: usize = 4096;
/// Most options of a section, and of `[global]`.
const WORDS_MAX: usize = 1000;

/// The machine as the reader sees it: files, variables, numbers.
pub trait Surroundings {
    /// Returns the text of a file; `-` is standard input.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn read_file(&self, path: &str) -> Result<String, String>;
    /// Returns whether a file that could not be read is missing; if not, it is there and refused. Where a reader has only the texts that it was
    /// given, every other file is missing.
    fn is_missing(&self, path: &str) -> bool {
        let _ = path;
        true
    }
    /// Returns the first `most` bytes of a regular file, and its length.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        let _ = (path, most);
        Err("files are not read for patterns here; write the bytes: `0x…`, `\"text\"`".to_owned())
    }
    /// Returns a variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns `$pagesize`.
    fn page_bytes(&self) -> u64;
    /// Returns `$mb_memory`, in bytes.
    fn memory_bytes(&self) -> u64;
    /// Returns `$ncpus`.
    fn processors(&self) -> u64;
    /// Returns the non-empty regular files below a directory in the order of their names, and the number of empty ones,
    /// for `opendir`. Links are not followed.
    ///
    /// # Errors
    /// The reason why they cannot be listed.
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String>;
    /// Returns the client of a server (`unique_filename`, `$clientuid`); `None`: this is no server.
    fn client(&self) -> Option<String> {
        None
    }
}

/// A command line, read.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRequest {
    /// The action.
    pub action: Action,
    /// The jobs, each clone by itself.
    pub jobs: Vec<JobSpec>,
    /// Settings of the whole program.
    pub settings: Settings,
    /// Sentences about options without effect, and the warnings.
    pub notes: Vec<String>,
    /// Sentences about what was written and is not read, which fio prints, too: a missing `include`, the rest of a number.
    pub warnings: Vec<String>,
    /// The options for all jobs, if there is no job; otherwise each job has them.
    pub globals: Vec<FioWord>,
}

/// The action of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run the jobs.
    Run,
    /// Only read the jobs.
    ParseOnly,
    /// Print the jobs as a command line.
    ShowCommand,
    /// Print the version.
    Version,
    /// Print the help.
    Help {
        /// True for `-h`.
        is_short: bool,
    },
    /// Print an option, or all.
    CommandHelp(Option<String>),
    /// Measure and print how fast the processors are.
    CalibrateIdleness,
    /// Print what `--debug` takes.
    DebugHelp,
    /// Print the lines of a compressed log.
    InflateLog(String),
    /// Print the engines, or the options of one.
    EngineHelp(Option<String>),
    /// Run the jobs of clients.
    Serve(Serve),
    /// Let servers run jobs.
    Clients(Vec<Client>),
}

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputFormat {
    /// Text for people.
    Normal,
    /// One line a job, with semicolons.
    Terse,
    /// JSON.
    Json,
    /// JSON with histograms.
    JsonPlus,
    /// A line of JSON for each status interval, and one for the result. Not fio's.
    JsonLines,
}

/// When progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of the command line that do not belong to a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The file for results; `None`: standard output.
    pub output: Option<String>,
    /// Formats of results, each once, in order; empty: normal text.
    pub formats: Vec<OutputFormat>,
    /// Version of the terse format, 2 to 5; `None`: 3.
    pub terse_version: Option<u32>,
    /// When progress is shown.
    pub eta: Eta,
    /// The interval between printed results while running, in nanoseconds.
    pub status_interval_ns: Option<u64>,
    /// The beginning of the names of logs with the bandwidth of all jobs together; `None`: none are written.
    pub bandwidth_log: Option<String>,
    /// The directory of verify states.
    pub aux_path: Option<String>,
    /// Whether jobs that would write are refused.
    pub is_readonly: bool,
    /// Whether what fio warns of is an error.
    pub are_warnings_fatal: bool,
    /// Whether jobs may run commands.
    pub allows_exec: bool,
    /// The parts whose details are printed to stderr.
    pub debug: Vec<String>,
    /// The only job whose details are printed, counted from 0.
    pub debug_job: Option<usize>,
    /// The only sections that are run; empty: all.
    pub sections: Vec<String>,
    /// The client whose jobs a server reads.
    pub client: Option<String>,
    /// Whether the idle share of the processors is reported.
    pub idle_prof: Option<IdleProf>,
    /// What ends the run early.
    pub trigger: Trigger,
}

/// What ends a run early, and what happens then (`--trigger-file`, `--trigger-timeout`, `--trigger`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trigger {
    /// A file that ends the run when it exists; it is removed.
    pub file: Option<String>,
    /// The time after which the run ends, in nanoseconds.
    pub after_ns: Option<u64>,
    /// The command to run then.
    pub command: Option<String>,
}

impl Settings {
    /// Returns true if `--debug` prints details of one of these parts.
    pub fn debugs(&self, parts: &[&str]) -> bool {
        self.debug.iter().any(|part| part == "all" || parts.contains(&part.as_str()))
    }

    /// Returns the parts of `--debug` whose details are not printed.
    pub fn undebugged(&self) -> Vec<&str> {
        self.debug.iter().map(String::as_str).filter(|part| !DEBUGGED.contains(part)).collect()
    }
}

/// The processors whose idle share is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleProf {
    /// All of them together.
    System,
    /// Each of them, too.
    EachProcessor,
}

/// An option with its value, as it was given to a section.
#[derive(Debug, Clone)]
pub(in crate::language) struct Word {
    option: FioOption,
    /// The value as typed, variables replaced; `None`: given without one.
    value: Option<String>,
    position: Rc<Position>,
    value_column: Option<usize>,
    /// The bytes of the trimmed value that are read; of a calculation and of a list, fio reads one number.
    used: std::ops::Range<usize>,
    /// The list that is read instead of the typed one, and why.
    list: Option<(String, &'static str)>,
}

impl Word {
    fn new(option: FioOption, value: Option<String>, position: Rc<Position>, value_column: Option<usize>) -> Self {
        let typed = value.as_deref().map(str::trim);
        let used = typed.map_or(0..0, |typed| number::used(option, typed));
        let list = typed.and_then(|typed| number::list_read(option, typed));
        Self { option, value, position, value_column, used, list }
    }

    /// Returns the same word with another value.
    fn with_value(&self, value: String) -> Self {
        Self::new(self.option, Some(value), Rc::clone(&self.position), self.value_column)
    }

    fn text(&self) -> &str {
        self.list.as_ref().map_or(&self.typed()[self.used.clone()], |(list, _)| list)
    }

    /// Returns why less is read than was typed; `None`: the value is read as typed.
    fn why_less(&self) -> Option<&'static str> {
        let is_one_of_list = self.typed().contains([',', ':', '-']);
        match &self.list {
            Some((_, why)) => Some(why),
            None if self.text() == self.typed() => None,
            None if is_one_of_list => Some("one number of a list"),
            None => Some(number::NOT_CALCULATED),
        }
    }

    /// Returns the value as typed, with what fio ignores.
    fn typed(&self) -> &str {
        self.value.as_deref().unwrap_or("").trim()
    }

    fn origin(&self) -> Origin {
        self.position.origin(self.spelled())
    }

    /// Returns the option's name as typed: an alias, or the beginning of a name.
    fn spelled(&self) -> &str {
        let source = self.position.source.trim_start().trim_start_matches('-');
        let typed = source.split(['=', ' ', '\t']).next().unwrap_or_default();
        if typed.is_empty() { self.option.name() } else { typed }
    }

    /// Returns the word as typed, for the record.
    fn given(&self, is_global: bool) -> FioWord {
        let name = self.option.name();
        FioWord {
            name: name.to_owned(),
            spelled: Some(self.spelled()).filter(|spelled| *spelled != name).map(str::to_owned),
            text: self.typed().to_owned(),
            is_global,
            origin: self.origin(),
        }
    }

    /// Returns the position of a part of the value: bytes of its text; of a list that is not read as typed, all of it.
    fn value_position(&self, bytes: &std::ops::Range<usize>) -> Position {
        let bytes = &if self.list.is_some() { 0..self.typed().len() } else { bytes.clone() };
        let count = |to: usize| self.typed().get(..self.used.start + to).map_or(0, |part| part.chars().count());
        match self.value_column {
            Some(column) => {
                let lead = self.value.as_deref().map_or(0, |v| v.chars().count() - v.trim_start().chars().count());
                let (from, to) = (count(bytes.start), count(bytes.end));
                self.position.part(column + lead + from, to.saturating_sub(from))
            }
            None => (*self.position).clone(),
        }
    }
}

/// A job before its clones are made.
#[derive(Debug)]
pub(in crate::language) struct Section {
    /// The job's name, which `name` sets.
    name: String,
    /// The name between brackets, or after `--name`: that of its files, and of its further clones.
    title: String,
    globals: Rc<Vec<Word>>,
    words: Vec<Word>,
    is_from_command_line: bool,
    /// Whether it begins a further job file, which waits for the jobs before it.
    waits: bool,
    position: Option<Rc<Position>>,
}

impl Section {
    fn of_command_line(name: &str, globals: &Rc<Vec<Word>>, words: Vec<Word>, position: Option<Rc<Position>>) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            globals: Rc::clone(globals),
            words,
            is_from_command_line: true,
            waits: false,
            position,
        }
    }
}

/// Reads a command line, the program's name not included, and the job files that it names.
///
/// # Errors
/// All its problems, with positions.
pub fn read(arguments: &[String], around: &dyn Surroundings) -> Result<FioRequest, FioError> {
    let mut problems = Problems::default();
    let mut items = command_line::read(arguments, &mut problems);
    let settings = Settings { client: around.client(), ..Settings::default() };
    let mut program = Program { settings, action: Action::Run, remarks: Vec::new() };
    let remote = remote::take(&mut items, &mut problems);
    let mut globals = Rc::new(Vec::new());
    let mut sections: Vec<Section> = Vec::new();
    let mut current: Option<Section> = None;
    let mut is_skipped = false;
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Program { name, value, position } => {
                program.apply(name, value.as_deref(), position, &mut problems);
            }
            Item::File(path, position) => files.push((path, position)),
            Item::Job { option, value, position, value_column } => {
                let word = Word::new(option, value, Rc::clone(&position), value_column);
                if option.name() == "name" {
                    sections.extend(current.take());
                    // As in fio, `--section` selects among the jobs after it, and a name that begins with `global` sets options
                    // for all jobs again.
                    let is_global = word.text().starts_with("global");
                    is_skipped = !is_global && !is_selected(&program.settings, word.text());
                    if !is_global && !is_skipped {
                        let name = word.text().to_owned();
                        current = Some(Section::of_command_line(&name, &globals, vec![word], Some(position)));
                    }
                    continue;
                }
                match &mut current {
                    _ if is_skipped => {}
                    Some(section) => add(&mut section.words, word, &mut problems),
                    None => add(Rc::make_mut(&mut globals), word, &mut problems),
                }
            }
        }
    }
    sections.extend(current.take());
    let Program { mut settings, mut action, remarks } = program;
    if let Some(remote) = remote {
        action = remote.action(action, &files, &mut problems);
        problems.into_result()?;
        return Ok(FioRequest::without_jobs(action, settings, remarks));
    }
    let is_question = !matches!(action, Action::Run | Action::ParseOnly | Action::ShowCommand);
    if is_question && problems.is_empty() {
        return Ok(FioRequest::without_jobs(action, settings, Vec::new()));
    }
    for (index, (path, position)) in files.iter().enumerate() {
        if index > 0 {
            // Neither the command line's options for all jobs nor those of a file before apply to a further file.
            globals = Rc::new(Vec::new());
        }
        match around.read_file(path) {
            Ok(text) => {
                let first = sections.len();
                read_sections(path, &text, around, &mut globals, &settings, &mut sections, &mut problems);
                if let Some(section) = sections.get_mut(first) {
                    section.waits = index > 0;
                }
            }
            Err(reason) => {
                let message = format!("the job file `{path}` cannot be read: {reason}");
                problems.add(Refused::JobFile, position.clone(), message, None);
            }
        }
    }
    if action == Action::ParseOnly && sections.is_empty() && problems.is_empty() {
        let section = Section::of_command_line("global", &globals, Vec::new(), None);
        lower::lower(&[section], &settings, around, &mut problems, &mut Vec::new());
        problems.into_result()?;
        let globals = globals.iter().map(|word| word.given(true)).collect();
        return Ok(FioRequest { globals, ..FioRequest::without_jobs(action, settings, remarks) });
    }
    if action == Action::ShowCommand {
        // The jobs are printed, and no command of theirs runs.
        settings.allows_exec = true;
    }
    if sections.is_empty() && problems.is_empty() {
        let hint = "give a job file, or `--name=JOB` and its options; `--cmdhelp` lists them".to_owned();
        let message = if files.is_empty() { "no job is defined" } else { "no job is defined in the job files" };
        return Err(FioError::of(Refused::NoJob, message, Some(hint)));
    }
    finish(action, sections, settings, remarks, around, problems)
}

/// Reads a number of bytes with fio's suffixes; `None`: it is none.
pub(crate) fn read_bytes(text: &str) -> Option<u64> {
    value::read_number(text, value::KbBase::Binary).ok()
}

/// Reads a job file of fio's by itself, as `trueio run` does.
///
/// # Errors
/// All its problems, with positions.
pub fn read_job_file(path: &str, text: &str, around: &dyn Surroundings) -> Result<FioRequest, FioError> {
    let mut problems = Problems::default();
    let mut sections = Vec::new();
    let settings = Settings { client: around.client(), ..Settings::default() };
    let mut globals = Rc::new(Vec::new());
    read_sections(path, text, around, &mut globals, &settings, &mut sections, &mut problems);
    if sections.is_empty() && problems.is_empty() {
        let hint = Some("a job is a section of its own: `[NAME]`".to_owned());
        return Err(FioError::of(Refused::NoJob, format!("`{path}` defines no job"), hint));
    }
    finish(Action::Run, sections, settings, Vec::new(), around, problems)
}

impl FioRequest {
    fn without_jobs(action: Action, settings: Settings, notes: Vec<String>) -> Self {
        Self { action, jobs: Vec::new(), settings, notes, warnings: Vec::new(), globals: Vec::new() }
    }
}

fn finish(
    action: Action,
    sections: Vec<Section>,
    mut settings: Settings,
    remarks: Vec<String>,
    around: &dyn Surroundings,
    mut problems: Problems,
) -> Result<FioRequest, FioError> {
    // fio does not look for what it warns of then.
    settings.are_warnings_fatal &= action != Action::ParseOnly;
    let mut notes = Vec::new();
    let jobs = lower::lower(&sections, &settings, around, &mut problems, &mut notes);
    let warnings = problems.take_warnings();
    problems.into_result()?;
    notes.splice(0..0, warnings.iter().cloned());
    notes.extend(remarks);
    Ok(FioRequest { action, jobs, settings, notes, warnings, globals: Vec::new() })
}

/// Returns true if `--section` names the job, or is not set.
fn is_selected(settings: &Settings, name: &str) -> bool {
    settings.sections.is_empty() || settings.sections.iter().any(|section| section == name)
}

fn add(words: &mut Vec<Word>, word: Word, problems: &mut Problems) {
    if words.len() >= WORDS_MAX {
        let message = format!("one section has more than {WORDS_MAX} options");
        return problems.add(Refused::TooMuch, (*word.position).clone(), message, None);
    }
    words.push(word);
}

/// Reads the sections of a job file; `globals` are those of the command line.
fn read_sections(
    path: &str,
    text: &str,
    around: &dyn Surroundings,
    globals: &mut Rc<Vec<Word>>,
    settings: &Settings,
    sections: &mut Vec<Section>,
    problems: &mut Problems,
) {
    enum Into {
        Nowhere,
        Global,
        Skipped,
        Job,
    }
    let mut into = Into::Nowhere;
    for line in job_file::read(path, text, around, problems) {
        match line {
            Line::Section(name, position) => {
                // A name that begins with `global` holds for all jobs, as in fio.
                into = if name.starts_with("global") {
                    Into::Global
                } else if !is_selected(settings, &name) {
                    Into::Skipped
                } else if sections.len() >= JOBS_MAX {
                    let message = format!("there are more than {JOBS_MAX} jobs");
                    return problems.add(Refused::TooMuch, (*position).clone(), message, None);
                } else {
                    sections.push(Section {
                        name: name.clone(),
                        title: name,
                        globals: Rc::clone(globals),
                        words: Vec::new(),
                        is_from_command_line: false,
                        waits: false,
                        position: Some(position),
                    });
                    Into::Job
                };
            }
            Line::Word { name, value, position, value_column } => {
                let Some(option) = options::find(&name) else {
                    if !matches!(into, Into::Skipped) {
                        let (kind, message, hint) = command_line::unknown(&name, "");
                        problems.add(kind, (*position).clone(), message, hint);
                    }
                    continue;
                };
                if value.is_none() && !option.may_stand_alone() {
                    let hint = Some(format!("write `{name}=VALUE`"));
                    let message = format!("`{name}` has no value");
                    problems.add(Refused::ValueMissing, (*position).clone(), message, hint);
                    continue;
                }
                let word = Word::new(option, value, Rc::clone(&position), value_column);
                match (&into, sections.last_mut()) {
                    (Into::Skipped, _) => {}
                    (Into::Global, _) => add(Rc::make_mut(globals), word, problems),
                    (Into::Job, Some(section)) => {
                        // A job may give itself another name.
                        if option.name() == "name" {
                            word.text().clone_into(&mut section.name);
                        }
                        add(&mut section.words, word, problems);
                    }
                    _ => {
                        let (kind, message) = (Refused::BeforeSection, format!("`{name}` is before the first section"));
                        problems.add(kind, (*position).clone(), message, kind.hint());
                    }
                }
            }
        }
    }
}
