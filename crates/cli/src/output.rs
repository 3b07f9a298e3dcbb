//! Where records go: terminal, JSON, HTML, HdrHistogram log, history.

use crate::failure::Failure;
use clap::ArgMatches;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_model::{Outcome, RunRecord};
use trueio_report::Style;
use trueio_store::Store;

/// Refuses outputs that could not be written, before anything is measured.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    for name in ["json", "html", "hdr"] {
        let Some(path) = matches.get_one::<PathBuf>(name) else { continue };
        if path == Path::new("-") {
            if name != "json" {
                return Err(Failure::refused(format!("--{name} needs a file; only --json can write to stdout")));
            }
            continue;
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !directory.is_dir() {
            return Err(Failure::refused(format!(
                "--{name} `{}` cannot be written: `{}` is not a directory",
                path.display(),
                directory.display()
            )));
        }
    }
    Ok(())
}

/// Writes a record everywhere it should go; the exit code of the run.
///
/// The history comes first and is best effort: a full disk there must not lose the other outputs.
pub(crate) fn deliver(record: &RunRecord, matches: &ArgMatches, keep: bool) -> Result<ExitCode, Failure> {
    if keep && !matches.get_flag("no-history") {
        match keep_in_history(record) {
            Ok(()) => {}
            Err(error) => eprintln!("warning: the record was not kept in the history: {error}"),
        }
    }
    let json_to_stdout = matches.get_one::<PathBuf>("json").is_some_and(|p| p == Path::new("-"));
    if json_to_stdout {
        print_all(&format!("{}\n", trueio_report::json(record)))?;
        eprint!("{}", trueio_report::terminal(record, &style(std::io::stderr().is_terminal())));
    } else {
        print_all(&trueio_report::terminal(record, &style(std::io::stdout().is_terminal())))?;
        if let Some(path) = matches.get_one::<PathBuf>("json") {
            write_file(path, &format!("{}\n", trueio_report::json(record)))?;
        }
    }
    if let Some(path) = matches.get_one::<PathBuf>("html") {
        write_file(path, &trueio_report::html(record))?;
        eprintln!("page: {}", path.display());
    }
    if let Some(path) = matches.get_one::<PathBuf>("hdr") {
        let log = trueio_report::hdr_log(record)
            .map_err(|e| Failure::failed("the HdrHistogram log could not be made", &e))?;
        write_file(path, &log)?;
    }
    Ok(match record.outcome {
        Outcome::Complete => ExitCode::SUCCESS,
        Outcome::Interrupted { .. } | Outcome::Failed { .. } => ExitCode::FAILURE,
    })
}

fn keep_in_history(record: &RunRecord) -> Result<(), trueio_store::StoreError> {
    Store::open(&trueio_store::default_directory()?)?.insert(record)
}

/// Writes to stdout; a reader that went away (`| head`) is no error.
pub(crate) fn print_all(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed("stdout could not be written", &error))
        }
        _ => Ok(()),
    }
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::failed(format!("`{}` could not be written", path.display()), &e))
}

/// The terminal's layout: its width, colours unless `NO_COLOR` or a pipe says no.
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
