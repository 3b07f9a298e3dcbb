//! Arguments that several commands share, and the parsing of a command line. Job options are the rows of the
//! option table.

mod words;

use crate::{limits, progress};
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_job::OptionRow;
use trueio_job::table::TABLE;
use trueio_model::units;

/// The last lines of the help of commands that take job files.
pub(crate) const JOB_FILE_HELP: &str = "These are the options that matter most; --help-all lists all of them.
Job files are TOML: [defaults], then one [job.NAME] table for each job. Flags override the values of every job.\n\
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

/// The option `--json [FILE]`: without FILE, JSON goes to standard output instead of text.
pub(crate) fn json(help: &'static str) -> Arg {
    output_file("json", help).num_args(0..=1).default_missing_value("-")
}

/// The flag that permits jobs to replace outputs of earlier runs.
pub(crate) fn replace() -> Arg {
    switch("replace", "Let logs, iologs and states that jobs name replace those of earlier runs").help_heading("Output")
}

/// Adds the outputs of a document.
pub(crate) fn outputs(command: Command) -> Command {
    command
        .arg(json("Write the whole document as JSON; without FILE to standard output"))
        .arg(output_file("html", "Write a self-contained page with plots"))
        .arg(output_file("markdown", "Write the answer and the table as Markdown"))
        .arg(output_file("csv", "Write one line per figure, as CSV"))
        .arg(output_file("prom", "Write gauges in Prometheus' text format, for node_exporter's textfile collector"))
        .arg(output_file(
            "junit",
            "Write JUnit XML: a load is a test, a withheld one a failure; so is a limit, a missed one a failure",
        ))
        .arg(output_file("hdr", "Write all latency histograms as an HdrHistogram V2 log"))
}

/// The flag that leaves only the table.
pub(crate) fn quiet() -> Arg {
    Arg::new("quiet")
        .long("quiet")
        .short('q')
        .help("Print only the table: one line a load")
        .help_heading("Output")
        .action(ArgAction::SetTrue)
}

/// Adds the outputs of a run's record, and the flags of its content.
pub(crate) fn run_outputs(command: Command) -> Command {
    limits::options(outputs(command))
        .arg(verbose())
        .arg(quiet().conflicts_with("verbose"))
        .arg(
            Arg::new("wait-idle")
                .long("wait-idle")
                .value_name("DURATION")
                .help("Wait before each phase until no other program uses the disk, at most so long [default: 10m]")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("10m")
                .value_parser(|text: &str| units::parse_duration_ns(text)),
        )
        .arg(progress::argument())
        .arg(switch("no-history", "Do not store the record in the history").help_heading("Output"))
        .arg(
            switch("no-evidence", "Do not collect evidence; verdicts then use only the results of the calls")
                .help_heading("Output"),
        )
        .arg(accept())
        .arg(live().conflicts_with("quiet"))
}

/// The flag that shows a run on the whole terminal.
pub(crate) fn live() -> Arg {
    switch("live", "Follow it on the whole terminal: rate, latencies over time, queue, disks, neighbours")
        .help_heading("Output")
}

/// The flag that prints every detail.
pub(crate) fn verbose() -> Arg {
    Arg::new("verbose")
        .long("verbose")
        .short('v')
        .help("Print every detail instead of one screen")
        .help_heading("Output")
        .action(ArgAction::SetTrue)
}

/// The flag that shows figures in spite of a check.
pub(crate) fn accept() -> Arg {
    Arg::new("accept")
        .long("accept")
        .value_name("CHECK")
        .help("Show figures that this check contradicts; they stay doubtful, and the reason stays")
        .help_heading("Output")
        .action(ArgAction::Append)
        .hide_possible_values(true)
        .value_parser(PossibleValuesParser::new(trueio_evidence::CHECKS.iter().map(|(name, _)| *name)))
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

/// Parses a command line with the command that `command` builds.
///
/// # Errors
/// clap's; help and the version are among them.
pub(crate) fn parse(
    command: impl Fn() -> Command,
    words: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<ArgMatches, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    for word in words.iter_mut().filter(|word| *word == "--help-all") {
        HAS_ALL_HELP.store(true, Relaxed);
        *word = "--help".into();
    }
    let words = words::written_out(words);
    let parsed = command().try_get_matches_from(&words);
    match &parsed {
        // `report --json ID`: the word after it was not a file, but the argument that is missing.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            words::with_json_to_stdout(&words).map_or(parsed, |words| command().try_get_matches_from(&words))
        }
        _ => parsed,
    }
}

/// Builds a command whose help lists every row of the option table.
pub(crate) fn with_all_help(command: impl Fn() -> Command) -> Command {
    HAS_ALL_HELP.store(true, Relaxed);
    let mut command = command();
    command.build();
    command
}

/// Adds the rows of the option table.
pub(crate) fn table_options(command: Command) -> Command {
    // It never gets here: `parse` replaces it.
    let command = command.arg(switch("help-all", "Print help with every option, by section"));
    TABLE.iter().copied().fold(command, |command, row| command.arg(option(row)))
}

/// Returns the name of a row on the command line: with hyphens.
pub(crate) fn flag_of(row: &'static OptionRow) -> &'static str {
    static FLAGS: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
        // Made once for each row, and used until the end.
        TABLE.iter().map(|row| (row.name, &*row.name.replace('_', "-").leak())).collect()
    });
    match row.name {
        "overwrite_existing" => "overwrite",
        // fio's switch `overwrite`, which writes no existing file.
        "overwrite" => words::FILL_FIRST,
        name => FLAGS.iter().find(|(known, _)| *known == name).map_or(name, |(_, flag)| flag),
    }
}

/// Returns the hidden names of a row on the command line: that of job files, and fio's.
fn aliases_of(row: &'static OptionRow) -> Vec<&'static str> {
    let own = match row.name {
        "read_iolog" => Some("replay"),
        "overwrite_existing" => Some("overwrite-existing"),
        _ => None,
    };
    let mut names: Vec<&str> = std::iter::once(row.name).chain(row.fio_names.iter().copied()).chain(own).collect();
    // `--overwrite` names what may be overwritten; see `words`.
    names.retain(|name| *name != flag_of(row) && *name != "overwrite");
    names.sort_unstable();
    names.dedup();
    names
}

/// The options that matter most: what `--help` lists. `--help-all` lists all.
const COMMON: [&str; 20] = [
    "rw",
    "rwmixread",
    "bs",
    "filename",
    "size",
    "overwrite_existing",
    "runtime",
    "time_based",
    "ramp_time",
    "steady_state",
    "ioengine",
    "iodepth",
    "numjobs",
    "direct",
    "sync",
    "fdatasync",
    "end_fsync",
    "rate_iops",
    "verify",
    "trace_syscalls",
];

/// Whether help lists every option.
static HAS_ALL_HELP: AtomicBool = AtomicBool::new(false);

/// Builds the argument of a row.
fn option(row: &'static OptionRow) -> Arg {
    let mut arg = Arg::new(row.name)
        .long(flag_of(row))
        .aliases(aliases_of(row))
        .help(format!("{} [default: {}]", row.summary, row.default_text()))
        .hide(!HAS_ALL_HELP.load(Relaxed) && !COMMON.contains(&row.name))
        .value_name(row.value_name())
        .help_heading(row.section.title())
        .action(ArgAction::Append)
        .allow_hyphen_values(true);
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
            // A command without the table's options has no such argument.
            let mut given = matches.try_get_many::<String>(row.name).ok()??;
            Some((row.name, given.next_back()?.clone()))
        })
        .collect()
}

/// Returns the command line as typed.
pub(crate) fn as_typed() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}
