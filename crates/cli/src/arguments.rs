//! The command line: each command's file describes its own arguments.

use crate::{baseline, compare, completions, doctor, fio, flags, history, man, run, selftest, study, usb};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::io::IsTerminal;
use trueio_job::table::suggestion;
use trueio_report::message;

/// Parses a command line.
///
/// # Errors
/// clap's; help and version are among them.
pub(crate) fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<ArgMatches, clap::Error> {
    flags::parse(command, words)
}

/// Builds the command line with all arguments of each command.
pub(crate) fn complete() -> Command {
    flags::describe_all(command)
}

/// Builds the command line.
///
/// Each command describes its arguments only if it is the one that was typed (`defer`). There are about three
/// hundred of them, and a run with a single I/O would otherwise spend most of its instructions on those of
/// other commands (`cargo xtask gate` counts them).
fn command() -> Command {
    let later = |name: &'static str, about: &'static str, arguments: fn(Command) -> Command| {
        Command::new(name).about(about).defer(arguments)
    };
    Command::new("trueio")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures storage and proves what it measured")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(later("baseline", baseline::ABOUT, baseline::arguments))
        .subcommand(later("run", run::ABOUT, run::arguments))
        .subcommand(later("explain", run::ABOUT_EXPLAIN, run::explain_arguments))
        .subcommand(Command::new("fio").about(fio::ABOUT))
        .subcommand(later("compare", compare::ABOUT, compare::arguments))
        .subcommand(later("study", study::ABOUT, study::arguments))
        .subcommand(later("device", doctor::ABOUT_DEVICE, doctor::device_arguments))
        .subcommand(later("usb", usb::ABOUT, usb::arguments))
        .subcommand(later("doctor", doctor::ABOUT, doctor::arguments))
        .subcommand(later("selftest", selftest::ABOUT, selftest::arguments))
        .subcommand(later("history", history::ABOUT, history::arguments))
        .subcommand(later("report", history::ABOUT_REPORT, history::report_arguments))
        .subcommand(later("reference", "Print every job option as Markdown: name, unit, default, meaning", |command| {
            command.arg(flags::switch("schema", "Print the JSON schema of job files instead"))
        }))
        .subcommand(later("completions", completions::ABOUT, completions::arguments))
        .subcommand(later("man", man::ABOUT, man::arguments))
}

/// Prints an error of the command line, which repeats words of it, or the requested help.
pub(crate) fn print(error: &clap::Error) {
    let text = |has_colors: bool| match (error.render(), has_colors) {
        (text, true) => text.ansi().to_string(),
        (text, false) => text.to_string(),
    };
    if error.use_stderr() {
        message!("{}", text(std::io::stderr().is_terminal()));
    } else {
        // A failure is not reported: there is nothing else to do.
        let _ = trueio_report::print_text(&text(std::io::stdout().is_terminal()));
    }
}

/// Prints a hint for an unknown flag from the option table, which has the names of other tools
/// (`--queue-depth`); clap suggests only similar spellings.
pub(crate) fn suggest(error: &clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let sentence = suggestion(name).unwrap_or_else(|| "`trueio reference` lists every option".to_owned());
    message!("\nhint: {sentence}");
}
