//! `--help`, `--cmdhelp`, `--enghelp`, `--showcmd`: fio's descriptions of itself, which scripts read.

use super::command_line::{PROGRAM, Takes};
use super::options::{Fate, FioOption, find, options, options_of_fio};
use super::{FIO_VERSION, command_line};
use std::fmt::Write as _;
use trueio_job::option::Words;
use trueio_model::{EngineKind, JobSpec};

/// What a program adds to fio's help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHelp {
    /// The options that fio does not have, each with what it does.
    pub options: Vec<(String, String)>,
    /// Examples, one or more lines each, for the long help.
    pub examples: String,
}

/// The options that `-h` lists.
const MOST_USED: [&str; 10] = [
    "help",
    "version",
    "cmdhelp",
    "enghelp",
    "parse-only",
    "showcmd",
    "section",
    "readonly",
    "output",
    "output-format",
];

/// Renders `--help`, with what the program adds, or `-h` (`is_short`), which has fewer options and no examples. A program that is called `fio` adds
/// nothing, and prints the same for both, as fio does.
pub fn program_help(own: Option<&OwnHelp>, is_short: bool) -> String {
    let is_short = is_short && own.is_some();
    let mut out = format!(
        "{FIO_VERSION} by trueio: fio [options] [job options] JOBFILE...\n\n\
         Options of jobs are also options of the command line: `--name=JOB` begins a job, options before it apply\n\
         to all jobs. `--cmdhelp` lists them. Formats of results: normal, terse, json, json+.\n\n"
    );
    for (name, takes, about) in PROGRAM.iter().filter(|(name, ..)| !is_short || MOST_USED.contains(name)) {
        let name = match takes {
            Takes::Nothing => format!("--{name}"),
            Takes::Value => format!("--{name}=VALUE"),
            Takes::Optional => format!("--{name}[=VALUE]"),
        };
        let about = if is_short && name == "--help" { "print every option, and examples" } else { about };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {name:<26}{about}");
    }
    let Some(own) = own else { return out };
    out += "\nOptions that fio does not have:\n\n";
    for (name, about) in &own.options {
        let _ = writeln!(out, "  {name:<26}{about}");
    }
    if !is_short {
        out.push('\n');
        out += &own.examples;
    }
    out
}

/// Returns what the language does with an option, in a sentence.
pub(super) fn fate_sentence(option: FioOption) -> String {
    match option.fate() {
        Fate::Row => option.row().map_or_else(String::new, |row| row.summary.to_owned()),
        Fate::Rule(sentence) => sentence.to_owned(),
        Fate::Output(sentence) => format!("for fio's outputs: {sentence}"),
        Fate::NoEffect(reason) => format!("no effect: {reason}"),
        Fate::Only { values, reason, instead } => {
            format!("only `{}`: {reason}; instead: {instead}", values.join("`, `"))
        }
        Fate::Refused { reason, instead } => format!("refused: {reason}; instead: {instead}"),
    }
}

/// Renders `--cmdhelp`: every option, or the details of one; as in fio, an unknown name selects the nearest option. `None`:
/// there is no such option, and none with a similar name.
pub fn command_help(name: Option<&str>) -> Option<String> {
    let mut out = String::new();
    let Some(name) = name.filter(|name| *name != "all") else {
        for option in options_of_fio().into_iter().chain(options().filter(|option| !option.is_in_fio())) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{:<28}: {}", option.name(), fate_sentence(option));
        }
        return Some(out);
    };
    let Some(option) = find(name) else {
        let near = command_line::nearest(name, false)?;
        return Some(format!("No such option: {name} - showing closest match\n{}", command_help(Some(near))?));
    };
    let _ = writeln!(out, "{:>20}: {}", option.name(), fate_sentence(option));
    if !option.aliases().is_empty() {
        let _ = writeln!(out, "{:>20}: {}", "alias", option.aliases().join(", "));
    }
    let takes = match option.row() {
        Some(row) if option.words().is_empty() && !row.is_switch() => row.kind.takes(),
        _ => option.kind().name().to_owned(),
    };
    let _ = writeln!(out, "{:>20}: {takes}", "type");
    let default = option.default_text();
    let _ = writeln!(out, "{:>20}: {}", "default", if default.is_empty() { "none" } else { &default });
    if !option.words().is_empty() {
        let _ = writeln!(out, "{:>20}: {}", "valid values", option.words().join(" "));
    }
    Some(out)
}

/// Renders `--enghelp`: the engines, one on each line, or the options of one. `None`: there is no such engine.
pub fn engine_help(name: Option<&str>) -> Option<String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let mut names: Vec<&str> = EngineKind::CHOICES
            .iter()
            .flat_map(|engine| std::iter::once(&engine.name).chain(engine.aliases))
            .copied()
            .collect();
        names.sort_unstable();
        let lines: String = names.iter().map(|name| format!("\t{name}\n")).collect();
        return Some(format!("Available IO engines:\n{lines}"));
    };
    // `--enghelp=libaio,nowait` describes an option of it.
    let (engine, option) = match name.split_once(',') {
        Some((engine, option)) => (engine, Some(option)),
        None => (name, None),
    };
    let ours = EngineKind::parse(engine)?.name();
    let sentence = EngineKind::CHOICES.iter().find(|choice| choice.name == ours).map_or("", |choice| choice.sentence);
    let own: Vec<FioOption> = options().filter(|option| option.engines().contains(&ours)).collect();
    if let Some(name) = option {
        let option = find(name)?;
        let own = own.iter().find(|own| own.name() == option.name())?;
        return command_help(Some(own.name()));
    }
    let mut out = format!("{engine}: {sentence}\n");
    for option in own {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{:<24}: {}", option.name(), fate_sentence(option));
    }
    Some(out)
}

/// Renders `--showcmd`: the jobs as one command line, each with all its options.
pub fn show_command(jobs: &[JobSpec]) -> String {
    let mut out = String::from("fio");
    for fio in jobs.iter().filter_map(|job| job.fio.as_ref()).filter(|fio| fio.clone == 0) {
        out.push_str(&format!(" {}", quoted(&format!("--name={}", fio.name))));
        for word in fio.given.iter().filter(|word| word.name != "name") {
            let text = match (word.text.as_str(), find(&word.name)) {
                ("", Some(option)) if option.may_stand_alone() && !word.name.starts_with("write_") => {
                    format!("--{}", word.name)
                }
                (text, _) => format!("--{}={text}", word.name),
            };
            out.push_str(&format!(" {}", quoted(&text)));
        }
    }
    out.push('\n');
    out
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
