//! Where records go: terminal, JSON, HTML, HdrHistogram log, history.

use crate::failure::{Failure, chain};
use crate::machine::Live;
use clap::ArgMatches;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_job::{Beside, FileUse, Refusal, Role, check_outputs};
use trueio_model::{Outcome, RunRecord, Verdict};
use trueio_report::Style;
use trueio_store::Store;

/// The outputs that go to files, by their option.
pub(crate) fn files(matches: &ArgMatches) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    ["json", "html", "hdr", "markdown", "junit"]
        .into_iter()
        .filter_map(|name| Some((name, path_of(matches, name)?)))
        .filter(|(_, path)| *path != Path::new("-"))
}

/// The path of an output; `None` if it was not given, or the command does not have it.
fn path_of<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a PathBuf> {
    matches.try_get_one::<PathBuf>(name).ok().flatten()
}

/// The same as uses of files, for the planner.
pub(crate) fn documents(matches: &ArgMatches) -> impl Iterator<Item = FileUse> {
    files(matches).map(|(name, path)| FileUse::new(path.to_string_lossy(), format!("--{name}"), Role::Document))
}

/// Files that a command reads and writes next to its jobs. Its outputs must not replace the history either.
pub(crate) fn beside(matches: &ArgMatches, reads: &[String]) -> Beside {
    let mut files: Vec<FileUse> = documents(matches).collect();
    files.extend(reads.iter().map(|path| FileUse::new(path, "this command", Role::Input)));
    let history = trueio_store::default_directory().ok().filter(|_| !files.is_empty());
    files.extend(
        history.map(|place| {
            FileUse::new(place.join(trueio_store::FILE_NAME).to_string_lossy(), "the history", Role::Target)
        }),
    );
    Beside { files, sends_logs: false }
}

/// Refuses outputs that could not be written, before anything is measured.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    for name in ["html", "hdr", "markdown", "junit"] {
        if path_of(matches, name).is_some_and(|path| path == Path::new("-")) {
            return Err(Failure::refused(format!("--{name} needs a file; only --json can write to stdout")));
        }
    }
    check_files(&documents(matches).collect::<Vec<_>>())
}

/// Refuses a file that could not be written, or must not be. `what` is the option's name.
pub(crate) fn check_file(what: &str, path: &Path) -> Result<(), Failure> {
    check_files(&[FileUse::new(path.to_string_lossy(), what, Role::Document)])
}

/// Refuses outputs that would replace what is read or each other, or that could not be written.
pub(crate) fn check_files(files: &[FileUse]) -> Result<(), Failure> {
    let refused = |rule| Refusal { job: None, origin: None, rule: Box::new(rule) };
    check_outputs(files, &Live::touching_nothing())
        .map_err(|rule| Failure::refused(trueio_job::explain_refusal(&refused(rule))))
}

/// Refuses outputs that would replace what the command reads or measures.
pub(crate) fn refuse_to_replace<'a>(
    matches: &ArgMatches,
    inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let mut files: Vec<FileUse> = documents(matches).collect();
    files.extend(inputs.map(|path| FileUse::new(path.to_string_lossy(), "this command", Role::Input)));
    check_files(&files)
}

/// Writes a record everywhere it should go; the exit code of the run.
///
/// The history comes last and is best effort: a lock that another process holds, or a home directory that does not
/// answer, must not keep the user from the result, and a full disk there must not lose it.
pub(crate) fn deliver(record: &RunRecord, matches: &ArgMatches, keep: bool) -> Result<ExitCode, Failure> {
    let json_to_stdout = matches.get_one::<PathBuf>("json").is_some_and(|p| p == Path::new("-"));
    let mut results = Vec::new();
    if json_to_stdout {
        results.push(print_all(&format!("{}\n", trueio_report::json(record))));
        eprint!("{}", trueio_report::terminal(record, &style(std::io::stderr().is_terminal())));
    } else {
        results.push(print_all(&trueio_report::terminal(record, &style(std::io::stdout().is_terminal()))));
    }
    // One that fails does not keep the others from being written.
    for (name, path) in files(matches) {
        results.push(match name {
            "json" => write_file(path, &format!("{}\n", trueio_report::json(record))),
            "html" => {
                write_file(path, &trueio_report::html(record)).inspect(|()| eprintln!("page: {}", path.display()))
            }
            _ => trueio_report::hdr_log(record)
                .map_err(|e| Failure::failed("the HdrHistogram log could not be made", &e))
                .and_then(|log| write_file(path, &log)),
        });
    }
    if keep
        && !matches.get_flag("no-history")
        && let Err(error) = keep_in_history(record)
    {
        eprintln!("warning: {}", chain("the record was not kept in the history", Some(&error)));
    }
    results.into_iter().collect::<Result<(), Failure>>()?;
    let is_contradicted = record.phases.iter().any(|phase| phase.verdict == Verdict::Contradicted);
    Ok(match record.outcome {
        // What was asked for is a figure, and there is none.
        Outcome::Complete if keep && is_contradicted => ExitCode::FAILURE,
        Outcome::Complete => ExitCode::SUCCESS,
        Outcome::Interrupted { .. } | Outcome::Failed { .. } => ExitCode::FAILURE,
    })
}

fn keep_in_history(record: &RunRecord) -> Result<(), trueio_store::StoreError> {
    Store::open(&trueio_store::default_directory()?)?.insert(record)
}

/// Writes to stdout; a reader that went away (`| head`) is no error.
pub(crate) fn print_all(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same of bytes.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed("stdout could not be written", &error))
        }
        _ => Ok(()),
    }
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::failed(format!("`{}` could not be written", path.display()), &e))
}

/// The terminal's layout: its width, colours unless `NO_COLOR` is set or the output is a pipe.
pub(crate) fn style(is_terminal: bool) -> Style {
    let width = match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if is_terminal && size.ws_col > 0 => usize::from(size.ws_col).min(140),
        _ => 100,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    let unicode = !is_terminal || locale.is_none_or(|l| l.to_ascii_lowercase().replace('-', "").contains("utf8"));
    Style { width, color: is_terminal && !no_color, unicode }
}
