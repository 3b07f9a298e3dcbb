//! Arguments that several commands share, and the parsing of a command line. Job options are the rows of the
//! option table.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use trueio_job::OptionRow;
use trueio_job::table::TABLE;

/// The last lines of the help of commands that take job files.
pub(crate) const JOB_FILE_HELP: &str = "Job files are TOML: [defaults], then one [job.NAME] table for each job. Flags override the values of every job.\n\
     docs/job-options.md describes each option.";

/// A flag without a value.
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

/// The flag that permits jobs to replace outputs of earlier runs.
pub(crate) fn replace() -> Arg {
    switch("replace", "Let logs, iologs and states that jobs name replace those of earlier runs").help_heading("Output")
}

/// Adds the outputs of a document.
pub(crate) fn outputs(command: Command) -> Command {
    command
        .arg(output_file("json", "Write the whole document as JSON; - for stdout"))
        .arg(output_file("html", "Write a self-contained page with plots"))
        .arg(output_file("markdown", "Write the answer and the table as Markdown"))
        .arg(output_file("csv", "Write one line per figure, as CSV"))
        .arg(output_file("prom", "Write gauges in Prometheus' text format, for node_exporter's textfile collector"))
        .arg(output_file("junit", "Write JUnit XML: a load is a test, a contradicted one a failure"))
        .arg(output_file("hdr", "Write all latency histograms as an HdrHistogram V2 log"))
}

/// Adds the outputs of a run's record, and the flags of its content.
pub(crate) fn run_outputs(command: Command) -> Command {
    outputs(command)
        .arg(switch("no-history", "Do not store the record in the history").help_heading("Output"))
        .arg(
            switch("no-evidence", "Do not collect evidence; verdicts then use only the results of the calls")
                .help_heading("Output"),
        )
        .arg(
            Arg::new("accept")
                .long("accept")
                .value_name("CHECK")
                .help("Show figures that this check contradicts; they are suspect, and the reason stays")
                .help_heading("Output")
                .action(ArgAction::Append)
                .hide_possible_values(true)
                .value_parser(PossibleValuesParser::new(trueio_evidence::CHECKS.iter().map(|(name, _)| *name))),
        )
}

/// Adds job files and every row of the option table.
pub(crate) fn job_options(command: Command) -> Command {
    let command = command
        .arg(replace())
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
                .help("Name of the job that the flags describe")
                .default_value("job"),
        );
    table_options(command)
}

/// Names of the long options on the command line: commands describe only these rows of the option table;
/// `None`: all.
static TYPED: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Parses a command line with the command that `command` builds.
///
/// Only the rows of the option table that occur in it are described to clap: there are more than a hundred
/// and fifty, and a run with one I/O would spend a tenth of its instructions on them. A line that fails to
/// parse is parsed again with all rows, so that help and errors list every option.
///
/// # Errors
/// clap's; help and version are among them.
/// clap's; help and the version are among them.
pub(crate) fn parse(
    command: impl Fn() -> Command,
    words: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<ArgMatches, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let options = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--"));
    let names = options.map(|option| option.split('=').next().unwrap_or_default().to_owned()).collect();
    typed().replace(names);
    command().try_get_matches_from(&words).or_else(|_| {
        typed().take();
        command().try_get_matches_from(&words)
    })
}

/// Builds a command that describes all rows of the option table.
pub(crate) fn describe_all(command: impl Fn() -> Command) -> Command {
    typed().take();
    let mut command = command();
    command.build();
    command
}

fn typed() -> MutexGuard<'static, Option<Vec<String>>> {
    TYPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the rows of the option table.
pub(crate) fn table_options(command: Command) -> Command {
    let typed = typed();
    let is_typed = |row: &&'static OptionRow| match &*typed {
        Some(names) => names.iter().any(|name| names_of(row).any(|known| known == name)),
        None => true,
    };
    TABLE.iter().copied().filter(is_typed).fold(command, |command, row| command.arg(option(row, typed.is_none())))
}

/// Returns the names of a row on the command line: its own, and fio's.
fn names_of(row: &'static OptionRow) -> impl Iterator<Item = &'static str> {
    let own = (row.name == "trace_syscalls").then_some("trace-syscalls");
    std::iter::once(row.name).chain(row.fio_names.iter().copied()).chain(own)
}

/// Builds the argument of a row. Its help is built only if all rows are described.
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

/// Returns the given job options as (name, value), in the table's order.
pub(crate) fn job_flags(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    TABLE
        .iter()
        .filter_map(|row| {
            // A row that was not typed is not an argument.
            let mut given = matches.try_get_many::<String>(row.name).ok()??;
            Some((row.name, given.next_back()?.clone()))
        })
        .collect()
}

/// Returns the command line as typed.
pub(crate) fn as_typed() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}
