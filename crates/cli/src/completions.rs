//! Completion in shells: the scripts, and the values that they complete.
//!
//! A script of `trueio completions SHELL` calls this program at each TAB, with [`VARIABLE`] in its environment. So the
//! candidates are those of the installed version: commands and options from the same rows as `--help`, the words of an
//! option, and what this machine has (records of the history, block devices).
//!
//! Limits: the history is read only if it exists; an option's list (`bssplit`) has no candidates. PowerShell's script was never run:
//! no package of it can be had where the tests run.
//!
//! Source: clap_complete, `engine` and `env`.

use crate::{arguments, kept, man};
use clap::builder::{PossibleValue, PossibleValuesParser, StyledStr};
use clap::{Arg, ArgMatches, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{self, CompleteEnv, EnvCompleter, Shells};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use trueio_job::row;
use trueio_model::units::format_bytes;
use trueio_report::clean;
use trueio_store::Filter;

pub(crate) const ABOUT: &str = "Print a completion script for a shell";

/// The variable with which a script calls the program; its value is the shell's name.
const VARIABLE: &str = "TRUEIO_COMPLETE";

/// The shells that have a script.
const SHELLS: Shells<'static> = Shells(&[&Bash, &env::Elvish, &env::Fish, &PowerShell, &env::Zsh]);

/// Most records that are listed, the newest first.
const RECORD_COUNT_MAX: usize = 50;

/// Adds the arguments of the command.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .help("Shell that reads the script")
                .value_parser(PossibleValuesParser::new(SHELLS.names())),
        )
        .after_help(
            "bash: source <(trueio completions bash)\n\
             zsh: source <(trueio completions zsh), after compinit\n\
             fish: trueio completions fish | source\n\
             elvish: eval (trueio completions elvish | slurp)\n\
             PowerShell: trueio completions powershell | Out-String | Invoke-Expression\n\n\
             The script calls the program at each TAB, so it completes the commands, options and records of the installed version.",
        )
}

/// Prints the script.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, crate::failure::Failure> {
    let shell = matches.get_one::<String>("shell").expect("clap requires it");
    crate::output::print_all(&script(shell)).map(|()| ExitCode::SUCCESS)
}

/// Answers a shell that completes a command line. `None`: the program was not called for that.
pub(crate) fn answer() -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    let directory = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(completed)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(std::env::args_os(), directory.as_deref());
    match answered {
        Ok(true) => Some(ExitCode::SUCCESS),
        // The variable is empty.
        Ok(false) => None,
        Err(error) => {
            arguments::print(&error);
            Some(ExitCode::from(2))
        }
    }
}

/// Returns the script of a shell.
fn script(shell: &str) -> String {
    let completer = SHELLS.completer(shell).expect("clap accepts only the names of these shells");
    let mut script = Vec::new();
    // Writing to memory cannot fail.
    let _ = completer.write_registration(VARIABLE, "trueio", "trueio", &program(), &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the program that the script calls: `trueio` of the PATH, unless it was started by a path.
fn program() -> String {
    let typed = std::env::args_os().next().unwrap_or_else(|| "trueio".into());
    let path = Path::new(&typed);
    let path = if path.components().count() > 1 {
        std::path::absolute(path).unwrap_or_else(|_| path.into())
    } else {
        path.into()
    };
    path.to_string_lossy().into_owned()
}

/// Builds the command line with the values of its arguments.
fn completed() -> Command {
    let command = arguments::complete();
    with_values(command.mut_subcommand("fio", |fio| {
        let rows = trueio_job::table::TABLE.iter().filter(|row| row.is_in_fio());
        let options = rows.map(|row| {
            let argument = Arg::new(row.name).long(row.fio_name()).help(row.summary).num_args(1);
            if row.is_switch() { argument.num_args(0..=1).require_equals(true) } else { argument }
        });
        fio.args(options).arg(Arg::new("jobs").num_args(0..).value_hint(clap::ValueHint::FilePath))
    }))
}

/// Adds the values to the arguments of a command and of its subcommands.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let nested: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = command.mut_args(|argument| with_value(&name, argument));
    nested.iter().fold(command, |command, name| command.mut_subcommand(name, with_values))
}

/// Adds the candidates of an argument's value.
fn with_value(command: &str, argument: Arg) -> Arg {
    let id = argument.get_id().as_str();
    match (command, id) {
        ("study", "name") => return argument.add(ArgValueCompleter::new(studies)),
        ("show" | "tag" | "untag" | "note" | "delete", "id" | "ids") | ("compare", "id") => {
            return argument.add(ArgValueCompleter::new(records));
        }
        ("report", "record") | ("compare", "sides") => return argument.add(ArgValueCompleter::new(records_and_files)),
        ("baseline" | "study" | "device", "target" | "second" | "path" | "overwrite") => {
            return argument.add(ArgValueCompleter::new(targets));
        }
        ("man", "page") => return argument.add(ArgValueCompleter::new(manual_pages)),
        (_, "disk") => return argument.add(ArgValueCompleter::new(usb_disks)),
        _ => {}
    }
    match row(id) {
        Some(row) if row.names_path() => argument.add(ArgValueCompleter::new(targets)),
        Some(row) if !row.choices().is_empty() => {
            let words = row.choices().iter().map(|choice| PossibleValue::new(choice.name).help(choice.sentence));
            argument.value_parser(PossibleValuesParser::new(words))
        }
        _ => argument,
    }
}

/// A candidate with a description, both without characters that control a terminal.
fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(StyledStr::from(clean(help).into_owned())))
}

fn beginning_with(current: &OsStr, mut candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let current = current.as_encoded_bytes();
    candidates.retain(|candidate| candidate.get_value().as_encoded_bytes().starts_with(current));
    candidates
}

fn studies(current: &OsStr) -> Vec<CompletionCandidate> {
    let title =
        |name: &str| trueio_study::embedded(name).map(|study| study.definition.title.clone()).unwrap_or_default();
    let named = trueio_study::EMBEDDED.iter().map(|study| candidate(study.name, &title(study.name)));
    let mut found = beginning_with(current, named.chain([candidate("list", "Describe the studies")]).collect());
    found.extend(PathCompleter::dir().complete(current).into_iter().filter(|_| !current.is_empty()));
    found
}

/// The next words of the names of manual pages: `history`, and after it `show`.
fn manual_pages(current: &OsStr) -> Vec<CompletionCandidate> {
    let line: Vec<String> = std::env::args().collect();
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse::<usize>().ok());
    let typed = line.split(|word| word == "--").nth(1).unwrap_or_default();
    // Shells that pass no index end the line at the cursor.
    let typed = &typed[..index.unwrap_or(typed.len().saturating_sub(1)).min(typed.len())];
    let before = typed.iter().position(|word| word == "man").map_or(&[][..], |at| &typed[at + 1..]);
    let mut candidates = Vec::new();
    for (words, about) in man::names() {
        if let Some(next) = words.strip_prefix(before).and_then(|rest| (rest.len() == 1).then(|| &rest[0])) {
            candidates.push(candidate(next, &about));
        }
    }
    beginning_with(current, candidates)
}

/// The newest records of the history. It is not created.
fn records(current: &OsStr) -> Vec<CompletionCandidate> {
    if !trueio_store::default_files().first().is_some_and(|file| file.exists()) {
        return Vec::new();
    }
    let Ok(store) = kept::store() else { return Vec::new() };
    let filter = Filter { limit: Some(RECORD_COUNT_MAX), ..Filter::default() };
    let entries = store.list(&filter).unwrap_or_default();
    let listed = entries.iter().map(|entry| {
        let text = format!("{} {} {}: {}", entry.started_at, entry.kind, entry.target, entry.summary);
        candidate(&kept::short(&entry.id), &text)
    });
    beginning_with(current, listed.collect())
}

fn records_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = records(current);
    found.extend(PathCompleter::file().complete(current));
    found
}

/// Files, directories and block devices.
fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(current);
    let devices = block_devices(|_| true).into_iter();
    let devices = devices.map(|(name, facts)| candidate(&format!("/dev/{name}"), &facts)).collect();
    for device in beginning_with(current, devices) {
        found.retain(|other| other.get_value() != device.get_value());
        found.push(device);
    }
    found
}

fn usb_disks(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_usb = |disk: &Path| std::fs::canonicalize(disk).is_ok_and(|path| path.to_string_lossy().contains("/usb"));
    let disks = block_devices(is_usb).into_iter();
    let mut found: Vec<_> = disks.map(|(name, facts)| candidate(&name, &facts)).collect();
    found = beginning_with(current, found);
    found.extend(targets(current).into_iter().filter(|_| current.as_encoded_bytes().starts_with(b"/")));
    found
}

/// Disks with a medium, by name, with size and model. RAM disks and unused loop devices have none.
fn block_devices(is_wanted: impl Fn(&Path) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let path = entry.path();
        let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default().trim().to_owned();
        // In units of 512 bytes, whatever the sector size. Source: Linux `Documentation/ABI/stable/sysfs-block`.
        let size_bytes = text("size").parse::<u64>().unwrap_or(0).saturating_mul(512);
        let name = entry.file_name().to_string_lossy().into_owned();
        if size_bytes > 0 && !name.starts_with("ram") && is_wanted(&path) {
            found.push((name, format!("{} {}", format_bytes(size_bytes), text("device/model")).trim_end().to_owned()));
        }
    }
    found.sort();
    found
}

/// The completion of bash.
///
/// bash splits words at `=` and `:` (`--ioengine=io_uring`) and replaces only the last piece, which clap_complete's script
/// does not respect. This script passes whole words, and removes from the answers what the shell keeps.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        program_name: &str,
        program: &str,
        out: &mut dyn std::io::Write,
    ) -> std::io::Result<()> {
        // Within single quotes only the quote itself is special.
        let program = program.replace('\'', r"'\''");
        write!(out, "{}", filled_in(include_str!("completions/bash.sh"), variable, program_name, &program))
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn std::io::Write,
    ) -> std::io::Result<()> {
        env::Bash.write_complete(command, words, directory, out)
    }
}

/// The completion of PowerShell.
///
/// clap_complete's script evaluates the typed line as code, so that a TAB after `$(…)` runs it. This script passes the words.
struct PowerShell;

impl EnvCompleter for PowerShell {
    fn name(&self) -> &'static str {
        env::Powershell.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Powershell.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        program_name: &str,
        program: &str,
        out: &mut dyn std::io::Write,
    ) -> std::io::Result<()> {
        let program = program.replace('\'', "''");
        write!(out, "{}", filled_in(include_str!("completions/powershell.ps1"), variable, program_name, &program))
    }

    fn write_complete(
        &self,
        command: &mut Command,
        mut words: Vec<OsString>,
        directory: Option<&Path>,
        out: &mut dyn std::io::Write,
    ) -> std::io::Result<()> {
        // Versions before 7.3 drop an empty argument.
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        if index == Some(words.len()) {
            words.push(OsString::new());
        }
        env::Powershell.write_complete(command, words, directory, out)
    }
}

/// Fills the names into a script; the program last, because its path may contain anything.
fn filled_in(script: &str, variable: &str, name: &str, program: &str) -> String {
    script.replace("VARIABLE", variable).replace("NAME", name).replace("PROGRAM", program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_calls_the_program() {
        for shell in SHELLS.names() {
            let script = script(shell);
            assert!(script.contains(VARIABLE) && script.contains("trueio"), "{shell}: {script}");
        }
    }

    /// Goal: a TAB runs nothing of what was typed. Method: no script evaluates text.
    #[test]
    fn no_script_evaluates_the_typed_line() {
        for shell in SHELLS.names() {
            let script = script(shell);
            assert!(!script.contains("Invoke-Expression") && !script.contains("eval "), "{shell}: {script}");
        }
    }

    /// Goal: an argument that names a record, a study or a device gets candidates, also if it is renamed.
    /// Method: every place that `with_value` names has an argument of that ID.
    #[test]
    fn every_argument_with_values_exists() {
        let command = arguments::complete();
        let has = |path: &[&str], id: &str| {
            let found = path.iter().fold(&command, |command, name| command.find_subcommand(name).expect(name));
            assert!(found.get_arguments().any(|argument| argument.get_id() == id), "{path:?} {id}");
        };
        has(&["study"], "name");
        has(&["history", "compare"], "id");
        for name in ["show", "tag", "untag", "note"] {
            has(&["history", name], "id");
        }
        has(&["history", "delete"], "ids");
        has(&["report"], "record");
        has(&["compare"], "sides");
        for (name, id) in [
            ("baseline", "target"),
            ("baseline", "overwrite"),
            ("study", "target"),
            ("study", "second"),
            ("device", "path"),
        ] {
            has(&[name], id);
        }
        has(&["man"], "page");
        has(&["usb", "explain"], "disk");
        has(&["usb", "switch"], "disk");
    }

    #[test]
    fn the_block_devices_are_those_with_a_medium() {
        for (name, facts) in block_devices(|_| true) {
            assert!(!name.starts_with("ram") && facts.contains(|c: char| c.is_ascii_digit()), "{name}: {facts}");
        }
    }
}
