//! The command line. Job options are the rows of the option table; nothing is defined twice.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use trueio_job::OptionRow;
use trueio_job::table::{TABLE, suggestion};

/// The whole command line, for [`parse`].
///
/// Each command describes its arguments only when it is the one that was typed (`defer`): they are
/// some three hundred together, and a run with a single I/O would spend most of its instructions on
/// those of other commands (`cargo xtask gate` counts them).
fn command() -> Command {
    let later = |name: &'static str, about: &'static str, arguments: fn(Command) -> Command| {
        Command::new(name).about(about).defer(arguments)
    };
    Command::new("trueio")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures storage and proves what it measured")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(later("baseline", "A whole picture of a disk in about a minute", baseline))
        .subcommand(later("run", "Runs job files, or a job made of flags", |command| {
            job_options(run_outputs(command)).after_help(JOB_FILE_HELP)
        }))
        .subcommand(later(
            "explain",
            "Prints the plan of jobs, every value with its origin, without running them",
            |command| {
                job_options(command)
                    .arg(switch("json", "Print JSON instead of text").help_heading("Output"))
                    .after_help(JOB_FILE_HELP)
            },
        ))
        .subcommand(Command::new("fio").about(crate::fio::ABOUT))
        .subcommand(later("compare", crate::compare::ABOUT, |command| {
            table_options(crate::compare::arguments(command))
        }))
        .subcommand(later("study", crate::study::ABOUT, crate::study::arguments))
        .subcommand(later(
            "device",
            "What a directory, a file or a block device is, down to the disks, and who says so",
            |command| {
                command
                    .arg(
                        Arg::new("path")
                            .value_name("PATH")
                            .help("What to look at")
                            .default_value(".")
                            .value_hint(ValueHint::AnyPath)
                            .value_parser(value_parser!(PathBuf)),
                    )
                    .arg(switch("json", "Print every fact with its source, as JSON"))
            },
        ))
        .subcommand(later("usb", crate::usb::ABOUT, crate::usb::arguments))
        .subcommand(later("doctor", "What this machine allows, and what the tool itself costs here", |command| {
            command.arg(switch("json", "Print JSON instead of text"))
        }))
        .subcommand(later("selftest", crate::selftest::ABOUT, crate::selftest::arguments))
        .subcommand(later("history", crate::history::ABOUT, crate::history::arguments))
        .subcommand(later("report", "An earlier record in any output", |command| {
            outputs(command).arg(
                Arg::new("record")
                    .value_name("RECORD")
                    .required(true)
                    .help("An id (or its beginning) from the history, or a record's JSON file"),
            )
        }))
        .subcommand(later("reference", "Every job option: name, unit, default, meaning (as Markdown)", |command| {
            command.arg(switch("schema", "Print the JSON schema of job files instead"))
        }))
}

fn baseline(command: Command) -> Command {
    run_outputs(command)
        .long_about(
            "A whole picture of a disk in about a minute: sequential, random and durable I/O, each figure with \
             its evidence.\n\nIn a directory it makes files of its own, which are gone afterwards whatever \
             happens. An existing file or a block device is only read, unless --overwrite names it.",
        )
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .help("A directory, a file or a block device")
                .default_value(".")
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(switch("quick", "About 10 seconds").conflicts_with("thorough"))
        .arg(switch(
            "trace-syscalls",
            "Record every system call of the workers, with its cost (as root); it slows them",
        ))
        .arg(switch("thorough", "Each phase until it is steady (SNIA rule): 10 to 30 minutes"))
        .arg(
            Arg::new("overwrite")
                .long("overwrite")
                .value_name("TARGET")
                .help("Write to this existing file or device too, destroying what is on it; must name TARGET again")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("overwrite-signature")
                .long("overwrite-signature")
                .value_name("NAMES")
                .help("The signatures on the device that may be destroyed, as `wipefs` names them: gpt,ext4")
                .requires("overwrite"),
        )
}

const JOB_FILE_HELP: &str = "Job files are TOML: [defaults], then one [job.NAME] table a job. Flags are the last word over every job.\n\
     docs/job-options.md describes each option.";

pub(crate) fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// An option that names a file for an output.
pub(crate) fn output_file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("FILE")
        .help(help)
        .help_heading("Output")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
}

/// Where a record goes.
fn outputs(command: Command) -> Command {
    command
        .arg(output_file("json", "Write the record as JSON; - for stdout"))
        .arg(output_file("html", "Write a self-contained page with plots"))
        .arg(output_file("hdr", "Write all latency histograms as an HdrHistogram V2 log"))
}

/// Where the record of a run goes, and what stands in it.
fn run_outputs(command: Command) -> Command {
    outputs(command)
        .arg(switch("no-history", "Do not keep the record in the history").help_heading("Output"))
        .arg(
            switch("no-evidence", "Do not collect evidence; every verdict then rests on the calls alone")
                .help_heading("Output"),
        )
        .arg(
            Arg::new("accept")
                .long("accept")
                .value_name("CHECK")
                .help("Let figures stand that this check contradicts: they are printed as suspect, with the reason")
                .help_heading("Output")
                .action(ArgAction::Append)
                .hide_possible_values(true)
                .value_parser(PossibleValuesParser::new(trueio_evidence::CHECKS.iter().map(|(name, _)| *name))),
        )
}

/// Job files and every row of the option table.
fn job_options(command: Command) -> Command {
    let command = command
        .arg(
            Arg::new("files")
                .value_name("JOB.toml")
                .num_args(0..)
                .help("Job files")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("Name of the job that flags alone make")
                .default_value("job"),
        );
    table_options(command)
}

/// Names of the long options that were typed: of the option table's rows commands take only these; `None`: all.
static TYPED: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Reads a command line.
///
/// Only the rows of the option table that occur in it are described to clap: there are more than a hundred and fifty,
/// and a run with one I/O would spend a tenth of its instructions on them. What cannot be read so is read again with
/// all of them, so that help and errors know every option.
///
/// # Errors
/// clap's, with help and the version among them.
pub(crate) fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<ArgMatches, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let options = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--"));
    let names = options.map(|option| option.split('=').next().unwrap_or_default().to_owned()).collect();
    typed().replace(names);
    command().try_get_matches_from(&words).or_else(|_| {
        typed().take();
        command().try_get_matches_from(&words)
    })
}

fn typed() -> MutexGuard<'static, Option<Vec<String>>> {
    TYPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of the option table.
fn table_options(command: Command) -> Command {
    let typed = typed();
    let is_typed = |row: &&'static OptionRow| match &*typed {
        Some(names) => names.iter().any(|name| names_of(row).any(|known| known == name)),
        None => true,
    };
    TABLE.iter().copied().filter(is_typed).fold(command, |command, row| command.arg(option(row, typed.is_none())))
}

/// What a row is called on the command line: its name, and fio's.
fn names_of(row: &'static OptionRow) -> impl Iterator<Item = &'static str> {
    let own = (row.name == "trace_syscalls").then_some("trace-syscalls");
    std::iter::once(row.name).chain(row.fio_names.iter().copied()).chain(own)
}

/// An option for a row, with or without its help, which is read only where all rows are.
fn option(row: &'static OptionRow, has_help: bool) -> Arg {
    let mut arg = Arg::new(row.name)
        .long(row.name)
        .value_name(row.value_name())
        .help_heading(row.section.title())
        .action(ArgAction::Append)
        .allow_hyphen_values(true);
    if has_help {
        arg = arg.help(format!("{} [default: {}]", row.summary, row.default_text()));
    }
    for alias in names_of(row).skip(1) {
        arg = arg.alias(alias);
    }
    if row.is_switch() {
        arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    } else if !row.choices().is_empty() && row.choices().iter().all(|c| c.aliases.is_empty()) {
        arg = arg.value_parser(PossibleValuesParser::new(row.choices().iter().map(|c| c.name)));
    }
    arg
}

/// The job options that were given, as (name, value), in the table's order.
pub(crate) fn job_flags(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    TABLE
        .iter()
        .filter_map(|row| {
            // A row that was not typed is no argument.
            let mut given = matches.try_get_many::<String>(row.name).ok()??;
            Some((row.name, given.next_back()?.clone()))
        })
        .collect()
}

/// The command line as it was typed.
pub(crate) fn as_typed() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}

/// For a flag that does not exist: what the option table would have suggested. Other tools' words
/// (`--queue-depth`) are known there, and clap only knows spellings.
pub(crate) fn suggest(error: &clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let sentence = suggestion(name).unwrap_or_else(|| "`trueio reference` lists every option".to_owned());
    eprintln!("\nhint: {sentence}");
}
