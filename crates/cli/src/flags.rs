//! Arguments that several commands share, and the parsing of a command line. Job options are the rows of the
//! option table.

use crate::{limits, progress};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_job::OptionRow;
use trueio_job::table::TABLE;
use trueio_model::units;

/// The last lines of the help of commands that take job files.
pub(crate) const JOB_FILE_HELP: &str = "EXAMPLES
  trueio run --rw randread --bs 4k --size 1g --runtime 10s --time_based
      random reads of a new file in this directory
  trueio run --rw write --bs 4k --size 64m --fdatasync 1
      durable commits per second of one writer
  trueio run --rw randrw --rwmixread 70 --iodepth 32 --filename /mnt/data/file --size 4g
      a mix at depth 32 on a named file
  trueio run jobs.toml --runtime 30s --html page.html
      a job file, each job for 30 s, and a page
  trueio run jobs.toml --fail-if 'p99 > 10ms' --fail-if 'IOPS < 95%' --against newest
      exit status 1 if a limit is missed, 3 if it is undecided

These are the options that matter most; --help-all lists all of them.
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
        .arg(output_file(
            "junit",
            "Write JUnit XML: a load is a test, a contradicted one a failure; so is a limit, a missed one a failure",
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
    command().try_get_matches_from(&words)
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

/// Returns the names of a row on the command line: its own, and fio's.
fn names_of(row: &'static OptionRow) -> impl Iterator<Item = &'static str> {
    let own = match row.name {
        "trace_syscalls" => Some("trace-syscalls"),
        "read_iolog" => Some("replay"),
        _ => None,
    };
    std::iter::once(row.name).chain(row.fio_names.iter().copied()).chain(own)
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
        .long(row.name)
        .help(format!("{} [default: {}]", row.summary, row.default_text()))
        .hide(!HAS_ALL_HELP.load(Relaxed) && !COMMON.contains(&row.name))
        .value_name(row.value_name())
        .help_heading(row.section.title())
        .action(ArgAction::Append)
        .allow_hyphen_values(true);
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
