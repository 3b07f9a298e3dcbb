//! fio's language: command lines and job files as fio takes them, read into [`JobSpec`]s.
//!
//! ```text
//! command line ──┐                      ┌ options.rs: every option of fio, and what becomes of it
//! job files ─────┴─ words with places ──┤
//!                                       └ lower.rs, clones.rs: fio's defaults, files, rates ── JobSpec
//! ```
//!
//! What comes out is planned like every other job. What fio does otherwise than we do by default
//! (`direct=0`, `unlink=0`, `ioengine=psync`, files named after the job) is written into the
//! specification with the origin `preset fio`, so that `explain` and the record show it.
//!
//! [`read`] and [`read_job_file`] are pure: files, variables and the machine's numbers come in through
//! [`Surroundings`]. [`meet_targets`] then looks at what exists, because fio writes to what a job
//! names, and we only to what is named for that.
//!
//! Cannot do: run, print results. What `docs/from-fio.md` says about each option is rendered from
//! [`options`].
//!
//! Source: HOWTO and manual page of fio 3.42, and its behaviour as measured; no code of it is here.

mod clones;
mod command_line;
mod engines;
mod help;
mod job_file;
mod lower;
pub mod options;
mod page;
mod pattern;
mod priority;
mod problem;
mod remote;
mod targets;
mod value;

pub use help::{command_help, engine_help, program_help, show_command};
pub use page::render_table;
pub use problem::{FioError, FioProblem, Place};
pub use remote::{Client, Serve};
pub use targets::{log_files, meet_targets};

use command_line::{Asked, Item};
use job_file::Line;
use problem::Problems;
use std::rc::Rc;
use trueio_model::{JobSpec, Origin};

/// The version of fio whose behaviour this is; scripts read it from `--version`.
pub const FIO_VERSION: &str = "fio-3.42";
/// The origin of what fio does by default and we do not.
const PRESET: &str = "fio";
/// Most jobs, clones included.
const JOBS_MAX: usize = 4096;
/// Most options of a section, and of `[global]`.
const WORDS_MAX: usize = 1000;

/// What the reader must know of the world.
pub trait Surroundings {
    /// The text of a file; `-` is standard input.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read_file(&self, path: &str) -> Result<String, String>;
    /// The content of a regular file, `most` bytes of it at most, and its length.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        let _ = (path, most);
        Err("files are not read for patterns here; say the bytes: `0x…`, `\"text\"`".to_owned())
    }
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// `$pagesize`.
    fn page_bytes(&self) -> u64;
    /// `$mb_memory`, in bytes.
    fn memory_bytes(&self) -> u64;
    /// `$ncpus`.
    fn processors(&self) -> u64;
    /// The regular files below a directory that hold anything, and how many hold nothing: for `opendir`. Links are not
    /// followed. In the order of their names.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String>;
    /// Whom a server reads this for (`unique_filename`, `$clientuid`); `None`: it is no server.
    fn client(&self) -> Option<String> {
        None
    }
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRequest {
    /// What is to be done.
    pub action: Action,
    /// The jobs, each clone by itself.
    pub jobs: Vec<JobSpec>,
    /// Everything that is no job's.
    pub settings: Settings,
    /// Sentences about what was asked: what has no effect and why.
    pub notes: Vec<String>,
}

/// What a command line asks to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run the jobs.
    Run,
    /// Nothing more than reading them.
    ParseOnly,
    /// Print them as a command line.
    ShowCommand,
    /// Print the version.
    Version,
    /// Print the help.
    Help,
    /// Print an option, or all.
    CommandHelp(Option<String>),
    /// Measures how quick the processors are, and prints it.
    CalibrateIdleness,
    /// Print what `--debug` takes.
    DebugHelp,
    /// Prints the lines of a compressed log.
    InflateLog(String),
    /// Print the engines, or the options of one.
    EngineHelp(Option<String>),
    /// Run the jobs of whoever connects.
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

/// Options of the command line that are no job's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Where results go; `None`: standard output.
    pub output: Option<String>,
    /// Formats of results, each once, in order; empty: normal text.
    pub formats: Vec<OutputFormat>,
    /// Version of the terse format, 2 to 5; `None`: 3.
    pub terse_version: Option<u32>,
    /// When progress is shown.
    pub eta: Eta,
    /// How often results are printed while running, in nanoseconds.
    pub status_interval_ns: Option<u64>,
    /// Whether the bandwidth of all jobs together is logged.
    pub has_bandwidth_log: bool,
    /// The directory of logs.
    pub aux_path: Option<String>,
    /// Whether jobs that would change anything are refused.
    pub is_readonly: bool,
    /// Whether notes are errors.
    pub are_warnings_fatal: bool,
    /// Whether jobs may run commands.
    pub allows_exec: bool,
    /// What details are wanted on stderr.
    pub debug: Vec<String>,
    /// The only job of which details are told, counted from 0.
    pub debug_job: Option<usize>,
    /// The only sections that are run; empty: all.
    pub sections: Vec<String>,
    /// Whom a server reads this for.
    pub client: Option<String>,
    /// Whether it is reported how idle the processors were.
    pub idle_prof: Option<IdleProf>,
}

impl Settings {
    /// Whether `--debug` wants details of one of these parts of the program.
    pub fn debugs(&self, parts: &[&str]) -> bool {
        self.debug.iter().any(|said| said == "all" || parts.contains(&said.as_str()))
    }

    /// What `--debug` asks for and nothing is printed about; empty: nothing. `all` asks for what there is.
    pub fn undebugged(&self) -> Vec<&str> {
        self.debug.iter().map(String::as_str).filter(|part| !DEBUGGED.contains(part)).collect()
    }
}

/// How idle the processors were, and of which that is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleProf {
    /// Of all together.
    System,
    /// Of each, too.
    EachProcessor,
}

/// Of the parts of the program those of which details are printed.
const DEBUGGED: &[&str] = &["all", "io", "random", "verify", "file", "parse", "job", "process"];

/// What `--debug=help` prints.
pub fn debug_help() -> String {
    format!("fio: dumping debug options:{}\ndetails are printed of: {}\n", DEBUG_PARTS.join(","), DEBUGGED.join(", "))
}

/// The parts of the program that `--debug` names in fio.
const DEBUG_PARTS: &[&str] = &[
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
    "trim",
    "ramp_time",
    "all",
];

/// An option with its value, as it was given to a section.
#[derive(Debug, Clone)]
pub(in crate::language) struct Word {
    asked: Asked,
    /// The value as typed, variables replaced; `None`: given without one.
    value: Option<String>,
    place: Rc<Place>,
    value_column: Option<usize>,
}

impl Word {
    fn text(&self) -> &str {
        self.value.as_deref().unwrap_or("").trim()
    }

    fn origin(&self) -> Origin {
        self.place.origin(self.asked.name())
    }

    /// The place of a part of the value: bytes of its trimmed text.
    fn value_place(&self, bytes: &std::ops::Range<usize>) -> Place {
        let text = self.text();
        let count = |to: usize| text.get(..to).map_or(0, |part| part.chars().count());
        match self.value_column {
            Some(column) => {
                let lead = self.value.as_deref().map_or(0, |v| v.chars().count() - v.trim_start().chars().count());
                let (from, to) = (count(bytes.start), count(bytes.end));
                self.place.part(column + lead + from, to.saturating_sub(from))
            }
            None => (*self.place).clone(),
        }
    }
}

/// A job before its clones are made.
#[derive(Debug)]
pub(in crate::language) struct Section {
    name: String,
    globals: Rc<Vec<Word>>,
    words: Vec<Word>,
    is_from_command_line: bool,
    /// A further job file waits for the jobs before it.
    waits: bool,
    place: Option<Rc<Place>>,
}

/// Reads a command line, the program's name not included, and the job files that it names.
///
/// # Errors
/// Everything that is wrong with it, with places.
pub fn read(arguments: &[String], around: &dyn Surroundings) -> Result<FioRequest, FioError> {
    let mut problems = Problems::default();
    let mut items = command_line::read(arguments, &mut problems);
    let mut settings = Settings { client: around.client(), ..Settings::default() };
    let mut action = Action::Run;
    let remote = remote::take(&mut items, &mut problems);
    let mut remarks = Vec::new();
    let mut globals = Rc::new(Vec::new());
    let mut sections: Vec<Section> = Vec::new();
    let mut current: Option<Section> = None;
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Program { name, value, place } => {
                let text = value.as_deref();
                program_option(name, text, place, &mut settings, &mut action, &mut remarks, &mut problems);
            }
            Item::File(path, place) => files.push((path, place)),
            Item::Job { asked, value, place, value_column } => {
                let word = Word { asked, value, place: Rc::clone(&place), value_column };
                if asked.name() == "name" {
                    sections.extend(current.take());
                    // `--name=global` goes on with what holds for all.
                    if word.text() != "global" {
                        current = Some(Section {
                            name: word.text().to_owned(),
                            globals: Rc::clone(&globals),
                            words: vec![word],
                            is_from_command_line: true,
                            waits: false,
                            place: Some(place),
                        });
                    }
                    continue;
                }
                match &mut current {
                    Some(section) => add(&mut section.words, word, &mut problems),
                    None => add(Rc::make_mut(&mut globals), word, &mut problems),
                }
            }
        }
    }
    sections.extend(current.take());
    if let Some(remote) = remote {
        action = remote.action(action, &files, &mut problems);
        problems.into_result()?;
        return Ok(FioRequest { action, jobs: Vec::new(), settings, notes: remarks });
    }
    let is_question = !matches!(action, Action::Run | Action::ParseOnly | Action::ShowCommand);
    if is_question && problems.is_empty() {
        return Ok(FioRequest { action, jobs: Vec::new(), settings, notes: Vec::new() });
    }
    for (index, (path, place)) in files.iter().enumerate() {
        match around.read_file(path) {
            Ok(text) => {
                let first = sections.len();
                read_sections(path, &text, around, &mut globals, &settings, &mut sections, &mut problems);
                if let Some(section) = sections.get_mut(first) {
                    section.waits = index > 0;
                }
            }
            Err(reason) => {
                problems.add(place.clone(), format!("the job file `{path}` cannot be read: {reason}"), None);
            }
        }
    }
    if sections.is_empty() && problems.is_empty() {
        let hint = "give a job file, or `--name=JOB` and its options; `--cmdhelp` lists them".to_owned();
        let message = if files.is_empty() { "no job is defined" } else { "no job is defined in the job files" };
        return Err(FioError::of(message, Some(hint)));
    }
    finish(action, sections, settings, remarks, around, problems)
}

/// Reads a job file of fio's by itself, as `trueio run` does.
///
/// # Errors
/// Everything that is wrong with it, with places.
pub fn read_job_file(path: &str, text: &str, around: &dyn Surroundings) -> Result<FioRequest, FioError> {
    let mut problems = Problems::default();
    let mut sections = Vec::new();
    let settings = Settings { client: around.client(), ..Settings::default() };
    let mut globals = Rc::new(Vec::new());
    read_sections(path, text, around, &mut globals, &settings, &mut sections, &mut problems);
    if sections.is_empty() && problems.is_empty() {
        let hint = Some("a job is a section of its own: `[NAME]`".to_owned());
        return Err(FioError::of(format!("`{path}` defines no job"), hint));
    }
    finish(Action::Run, sections, settings, Vec::new(), around, problems)
}

fn finish(
    action: Action,
    sections: Vec<Section>,
    settings: Settings,
    remarks: Vec<String>,
    around: &dyn Surroundings,
    mut problems: Problems,
) -> Result<FioRequest, FioError> {
    let mut notes = Vec::new();
    let jobs = lower::lower(&sections, &settings, around, &mut problems, &mut notes);
    if settings.are_warnings_fatal {
        for note in &notes {
            let hint = Some("leave out `--warnings-fatal` to run with this note".to_owned());
            problems.push(FioProblem { message: note.clone(), place: None, hint });
        }
    }
    problems.into_result()?;
    notes.extend(remarks);
    Ok(FioRequest { action, jobs, settings, notes })
}

fn add(words: &mut Vec<Word>, word: Word, problems: &mut Problems) {
    if words.len() >= WORDS_MAX {
        let message = format!("more than {WORDS_MAX} options stand in one section");
        return problems.add((*word.place).clone(), message, None);
    }
    words.push(word);
}

/// Sections of a job file; `globals` are those of the command line and of files before.
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
            Line::Section(name, place) => {
                // Whatever begins with `global` holds for all, as in fio.
                into = if name.starts_with("global") {
                    Into::Global
                } else if !settings.sections.is_empty() && !settings.sections.contains(&name) {
                    Into::Skipped
                } else if sections.len() >= JOBS_MAX {
                    return problems.add((*place).clone(), format!("there are more than {JOBS_MAX} jobs"), None);
                } else {
                    sections.push(Section {
                        name,
                        globals: Rc::clone(globals),
                        words: Vec::new(),
                        is_from_command_line: false,
                        waits: false,
                        place: Some(place),
                    });
                    Into::Job
                };
            }
            Line::Word { name, value, place, value_column } => {
                let Some(asked) = command_line::asked(&name) else {
                    if !matches!(into, Into::Skipped) {
                        let (message, hint) = command_line::unknown(&name, "");
                        problems.add((*place).clone(), message, hint);
                    }
                    continue;
                };
                if value.is_none() && !asked.may_stand_alone() {
                    let hint = Some(format!("write `{name}=VALUE`"));
                    problems.add((*place).clone(), format!("`{name}` has no value"), hint);
                    continue;
                }
                let word = Word { asked, value, place: Rc::clone(&place), value_column };
                match (&into, sections.last_mut()) {
                    (Into::Skipped, _) => {}
                    (Into::Global, _) => add(Rc::make_mut(globals), word, problems),
                    (Into::Job, Some(section)) => {
                        // A job may give itself another name.
                        if asked.name() == "name" {
                            word.text().clone_into(&mut section.name);
                        }
                        add(&mut section.words, word, problems);
                    }
                    _ => {
                        let hint = Some("write `[global]` or `[JOB]` above it".to_owned());
                        problems.add((*place).clone(), format!("`{name}` stands before any section"), hint);
                    }
                }
            }
        }
    }
}

/// Options of the program.
#[expect(clippy::too_many_lines, reason = "until it is split")]
fn program_option(
    name: &'static str,
    value: Option<&str>,
    place: Place,
    settings: &mut Settings,
    action: &mut Action,
    remarks: &mut Vec<String>,
    problems: &mut Problems,
) {
    let text = value.unwrap_or("");
    let time = |problems: &mut Problems| match value::read_time_ns(text, 1_000_000_000) {
        Ok(ns) => Some(ns).filter(|ns| *ns > 0),
        Err(bad) => {
            problems.add(place.clone(), format!("`--{name}`: {}", bad.message), None);
            None
        }
    };
    match name {
        "help" => *action = Action::Help,
        "version" => *action = Action::Version,
        "cmdhelp" => *action = Action::CommandHelp(value.map(str::to_owned)),
        "enghelp" => *action = Action::EngineHelp(value.map(str::to_owned)),
        "inflate-log" => *action = Action::InflateLog(text.to_owned()),
        "parse-only" => *action = Action::ParseOnly,
        "showcmd" => *action = Action::ShowCommand,
        "section" => settings.sections.push(text.to_owned()),
        "readonly" => settings.is_readonly = true,
        "output" => settings.output = Some(text.to_owned()),
        "output-format" => {
            settings.formats.clear();
            for format in text.split(',').map(str::trim) {
                settings.formats.push(match format {
                    "normal" => OutputFormat::Normal,
                    "terse" | "minimal" => OutputFormat::Terse,
                    "json" => OutputFormat::Json,
                    "json+" => OutputFormat::JsonPlus,
                    "jsonl" => OutputFormat::JsonLines,
                    _ => {
                        let hint = Some("it takes normal, terse, json, json+".to_owned());
                        return problems.add(place, format!("`{format}` is not a format of results"), hint);
                    }
                });
            }
            settings.formats.sort_unstable();
            settings.formats.dedup();
        }
        "minimal" => settings.formats = vec![OutputFormat::Terse],
        "append-terse" => {
            if settings.formats.is_empty() {
                settings.formats.push(OutputFormat::Normal);
            }
            settings.formats.push(OutputFormat::Terse);
            settings.formats.sort_unstable();
            settings.formats.dedup();
        }
        "terse-version" => match text.parse::<u32>() {
            Ok(version @ 2..=5) => settings.terse_version = Some(version),
            _ => problems.add(place, format!("`{text}` is not a version of the terse format: 2, 3, 4 or 5"), None),
        },
        "status-interval" => settings.status_interval_ns = time(problems),
        "eta-newline" | "eta-interval" => {
            if time(problems).is_some() {
                remarks.push(format!("`--{name}` has no effect: progress is one line, five times a second"));
            }
        }
        "eta" => {
            settings.eta = match text {
                "auto" => Eta::Auto,
                "always" => {
                    remarks.push("`--eta=always` shows progress on a terminal only".to_owned());
                    Eta::Always
                }
                "never" => Eta::Never,
                _ => {
                    let message = format!("`{text}` is not one of auto, always, never");
                    return problems.add(place, message, None);
                }
            }
        }
        "bandwidth-log" => settings.has_bandwidth_log = true,
        "aux-path" => settings.aux_path = Some(text.to_owned()),
        "warnings-fatal" => settings.are_warnings_fatal = true,
        "allow-exec" => settings.allows_exec = true,
        "debug" => {
            if text == "help" {
                *action = Action::DebugHelp;
                return;
            }
            for part in text.split(',').map(str::trim) {
                let (part, number) = part.split_once(':').map_or((part, None), |(part, number)| (part, Some(number)));
                if let ("job", Some(number)) = (part, number) {
                    let Ok(number) = number.parse::<usize>() else {
                        let message = format!("`{number}` is no number of a job, counted from 0");
                        return problems.add(place, message, None);
                    };
                    settings.debug_job = Some(number);
                    continue;
                }
                if !DEBUG_PARTS.contains(&part) {
                    let hint = Some(format!("it takes {}", DEBUG_PARTS.join(", ")));
                    return problems.add(place, format!("`{part}` is nothing that `--debug` knows"), hint);
                }
                settings.debug.push(part.to_owned());
            }
        }
        "idle-prof" => match text {
            "system" => settings.idle_prof = Some(IdleProf::System),
            "percpu" => settings.idle_prof = Some(IdleProf::EachProcessor),
            "calibrate" => *action = Action::CalibrateIdleness,
            _ => problems.add(place, format!("`{text}` is not one of system, percpu, calibrate"), None),
        },
        "max-jobs" | "alloc-size" => {
            if let Err(bad) = value::read_number(text, value::KbBase::Binary) {
                problems.add(place, format!("`--{name}`: {}", bad.message), None);
            }
        }
        _ => {
            let about = command_line::PROGRAM.iter().find(|(known, ..)| *known == name).map_or("", |(.., about)| about);
            let instead = about.strip_prefix("refused: ").unwrap_or(about);
            problems.add(place, format!("`--{name}` is not done here"), Some(format!("instead: {instead}")));
        }
    }
}
