//! Writes records to their outputs: terminal, JSON, HTML, HdrHistogram log, history.

use crate::failure::Failure;
use crate::limits;
use clap::ArgMatches;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use trueio_job::{CommandFiles, FileUse, Role};
use trueio_model::{Outcome, RunRecord, error_chain};
use trueio_report::message;
use trueio_report::{Document, Format, PastRun, RenderError, Style};
use trueio_run::{ReservedOutput, planning};
use trueio_store::Store;

/// The outputs that are files, by option.
fn files(matches: &ArgMatches) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let names = Format::ALL.into_iter().map(|(name, _)| name);
    names
        .chain(["trace"])
        .filter_map(|name| Some((name, path_of(matches, name)?)))
        .filter(|(_, path)| *path != Path::new("-"))
}

/// Returns the path of an output; `None` if it was not given, or the command does not have it.
fn path_of<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a PathBuf> {
    matches.try_get_one::<PathBuf>(name).ok().flatten()
}

/// Returns the same as uses of files, for the planner.
fn documents(matches: &ArgMatches) -> impl Iterator<Item = FileUse> {
    files(matches).map(|(name, path)| FileUse::new(path.to_string_lossy(), format!("--{name}"), Role::Document))
}

/// Returns the files of this user's history, which no output replaces.
pub(crate) fn history() -> Vec<FileUse> {
    let uses = trueio_store::default_files().into_iter();
    uses.map(|path| FileUse::new(path.to_string_lossy(), "the history", Role::Target)).collect()
}

/// Whether outputs that jobs name may replace those of earlier runs (`--replace`); never for a command without the flag.
pub(crate) fn may_replace(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>("replace").ok().flatten() == Some(&true)
}

/// Returns the files that a command reads and writes in addition to its jobs. Its outputs must not replace
/// the history either.
pub(crate) fn command_files(matches: &ArgMatches, reads: &[String]) -> CommandFiles {
    let mut files: Vec<FileUse> = documents(matches).collect();
    files.extend(reads.iter().map(|path| FileUse::new(path, "this command", Role::Input)));
    files.extend(history());
    CommandFiles { files, sends_logs: false, may_replace: may_replace(matches) }
}

/// The output files of a command, reserved before anything is measured.
///
/// Dropped without [`Outputs::write`], the files that the reservation created are removed.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// JSON goes to stdout: stderr gets only errors.
    is_silent: bool,
    files: Vec<(&'static str, ReservedOutput)>,
}

impl Outputs {
    /// Reserves the file of each output option, once nothing else can refuse the command. `reads` are the files that
    /// the command reads.
    ///
    /// # Errors
    /// As [`check`].
    pub(crate) fn reserve<'a>(matches: &ArgMatches, reads: impl Iterator<Item = &'a Path>) -> Result<Self, Failure> {
        check(matches, reads)?;
        let reserved = files(matches).map(|(name, path)| Ok((name, reserve(&format!("--{name}"), path)?)));
        Ok(Self { is_silent: is_json_to_stdout(matches), files: reserved.collect::<Result<_, Failure>>()? })
    }

    /// Takes the output of an option, if it was given: it is written in another way.
    pub(crate) fn take(&mut self, name: &str) -> Option<ReservedOutput> {
        let at = self.files.iter().position(|(known, _)| *known == name)?;
        Some(self.files.remove(at).1)
    }

    /// Writes each output; `text_of` returns the content by the name of its option. One that fails does not keep the
    /// others from being written.
    ///
    /// # Errors
    /// The first output that failed; the others are printed.
    pub(crate) fn write(self, text_of: impl Fn(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let mut first = Ok(());
        for (name, reserved) in self.files {
            let path = reserved.path().to_owned();
            match text_of(name).and_then(|text| write(reserved, text.as_bytes())) {
                Ok(()) if name == "html" && !self.is_silent => message!("page: {}", path.display()),
                Ok(()) => {}
                Err(failure) if first.is_ok() => first = Err(failure),
                Err(failure) => drop(failure.show()),
            }
        }
        first
    }
}

/// Refuses outputs that cannot be written, before anything is measured; touches nothing. `reads` are the files that
/// the command reads.
///
/// # Errors
/// An output would replace what the command reads, the history or another output, or cannot be written.
pub(crate) fn check<'a>(matches: &ArgMatches, reads: impl Iterator<Item = &'a Path>) -> Result<(), Failure> {
    for name in Format::ALL.into_iter().map(|(name, _)| name).filter(|name| *name != "json").chain(["trace"]) {
        if path_of(matches, name).is_some_and(|path| path == Path::new("-")) {
            return Err(Failure::refused(format!(
                "--{name} needs the path of a file; only --json can write to stdout"
            )));
        }
    }
    let reads: Vec<String> = reads.map(|path| path.to_string_lossy().into_owned()).collect();
    check_files(&command_files(matches, &reads).files)
}

/// Reserves one output file. `what` is the option's name.
///
/// # Errors
/// As [`Outputs::reserve`].
pub(crate) fn reserve(what: &str, path: &Path) -> Result<ReservedOutput, Failure> {
    let document = FileUse::new(path.to_string_lossy(), what, Role::Document);
    check_files(&[document].into_iter().chain(history()).collect::<Vec<_>>())?;
    ReservedOutput::reserve(path)
        .map_err(|e| Failure::refused(format!("{what} cannot be written to `{}`\n  because: {e}", path.display())))
}

/// Removes the outputs that rank 0 reserved before it died: files of this user that are empty and younger than `began`, which was
/// before rank 0 reserved them. On another host's filesystem there are none.
pub(crate) fn remove_reserved(matches: &ArgMatches, began: SystemTime) {
    for (_, path) in files(matches) {
        let Ok(found) = path.symlink_metadata() else { continue };
        let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.is_file();
        // Clocks of file servers differ from this host's.
        let is_new = found.modified().is_ok_and(|at| at + Duration::from_secs(1) >= began);
        if is_ours && is_new && found.len() == 0 {
            // Another rank may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes a reserved output.
///
/// # Errors
/// The name refers to another file now, or the content could not be written.
pub(crate) fn write(reserved: ReservedOutput, content: &[u8]) -> Result<(), Failure> {
    let path = reserved.path().to_owned();
    reserved.write(content).map_err(|e| Failure::failed(format!("`{}` could not be written", path.display()), &e))
}

/// Refuses outputs that would replace what is read or each other, or that could not be written.
fn check_files(files: &[FileUse]) -> Result<(), Failure> {
    Ok(planning::check_files(files)?)
}

/// Writes a record to every output, and returns the exit code of the run.
///
/// The history comes last and is best effort: a lock of another process, or a home directory that does not
/// respond, must not withhold the result, and a full disk there must not lose it.
pub(crate) fn deliver(
    record: &RunRecord,
    outputs: Outputs,
    matches: &ArgMatches,
    keep: bool,
) -> Result<ExitCode, Failure> {
    deliver_as(record, outputs, matches, keep, None)
}

/// The text of a record in the format of another program.
pub(crate) type Printer<'a> = &'a dyn Fn(&RunRecord) -> String;

/// The same, with another text for stdout.
///
/// # Errors
/// As [`deliver`].
pub(crate) fn deliver_as(
    record: &RunRecord,
    outputs: Outputs,
    matches: &ArgMatches,
    keep: bool,
    printer: Option<Printer<'_>>,
) -> Result<ExitCode, Failure> {
    let mut results = Vec::new();
    let text = made("the results", || match (is_json_to_stdout(matches), printer) {
        (true, printer) => {
            // It writes warnings, too.
            printer.map(|print| print(record));
            format!("{}\n", trueio_report::json(record))
        }
        (false, Some(print)) => print(record),
        (false, None) => text_of(record, matches),
    });
    results.push(match text {
        Ok(text) => print_all(&text),
        // The record is what the text was made of.
        Err(failure) => {
            let json = made("the record", || format!("{}\n", trueio_report::json(record)));
            json.and_then(|json| print_all(&json)).and(Err(failure))
        }
    });
    // A record is large, so it is copied only for outputs that there are.
    if !outputs.files.is_empty() {
        results.push(write_formats(outputs, &Document::Record(Box::new(record.clone()))));
    }
    if keep && !matches.get_flag("no-history") {
        match made("the entry in the history", || keep_in_history(record)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                message!("warning: {}", error_chain("the record was not stored in the history", Some(&error)));
            }
            Err(failure) => results.push(Err(failure)),
        }
    }
    results.into_iter().collect::<Result<(), Failure>>()?;
    let is_whole = printer.is_none() && !is_json_to_stdout(matches) && !is_set(matches, "quiet");
    let judged = made("the limits", || limits::judged(record, is_whole || !keep))?;
    Ok(ExitCode::from(limits::exit_status(record, judged)))
}

/// Writes a document to every output of `trueio report`.
///
/// # Errors
/// An output could not be written, or the document does not contain what it shows.
pub(crate) fn deliver_document(document: &Document, outputs: Outputs, matches: &ArgMatches) -> Result<(), Failure> {
    let printed = if is_json_to_stdout(matches) {
        print_all(&rendered(document, "json", &[])?)
    } else {
        let style = style_of(&std::io::stdout());
        let has = |name: &str| matches.try_get_one::<bool>(name).ok().flatten() == Some(&true);
        let name = matches.try_get_one::<String>("record").ok().flatten();
        let details = name.map_or_else(|| "add -v".to_owned(), |name| format!("trueio report -v {name}"));
        print_all(&if has("verbose") { document.terminal(&style) } else { document.screen(&style, &details) })
    };
    let written = write_formats(outputs, document);
    printed.and(written)
}

/// Whether `trueio report` only writes files: then it prints one line, unless `-v` or `-q` asks for the text.
pub(crate) fn is_export(matches: &ArgMatches) -> bool {
    let has = |name: &str| is_set(matches, name);
    files(matches).next().is_some() && !is_json_to_stdout(matches) && !has("verbose") && !has("quiet")
}

/// Writes a document to files, and prints one line that names them.
///
/// # Errors
/// As [`deliver_document`].
pub(crate) fn export(document: &Document, outputs: Outputs) -> Result<(), Failure> {
    let names: Vec<String> = outputs.files.iter().map(|(_, file)| file.path().display().to_string()).collect();
    write_formats(Outputs { is_silent: true, ..outputs }, document)?;
    print_all(&format!("wrote {}\n", trueio_report::clean(&names.join(", "))))
}

/// Writes each reserved output in its format.
fn write_formats(outputs: Outputs, document: &Document) -> Result<(), Failure> {
    let past = match document {
        Document::Record(record) if !outputs.files.is_empty() => {
            made("earlier runs", || crate::kept::past_runs(record)).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    outputs.write(|name| made(&format!("--{name}"), || rendered(document, name, &past)).flatten())
}

/// Delivers what is known after a panic between the parts of the work that contain their own: the record, if there is one, as JSON on
/// stdout, and in the history. Returns the failure.
pub(crate) fn rescue(known: Option<RunRecord>, reason: &str, matches: &ArgMatches) -> Failure {
    let Some(mut record) = known else {
        return Failure::with_code(1, format!("the run ended before there was a record\n  because: {reason}"));
    };
    if record.outcome == Outcome::Complete {
        record.outcome = Outcome::Failed { reason: reason.to_owned() };
    }
    let text = made("the record", || format!("{}\n", trueio_report::json(&record)));
    let printed = text.and_then(|text| print_all(&text));
    let is_kept = !matches.get_flag("no-history")
        && made("the entry in the history", || keep_in_history(&record)).is_ok_and(|kept| kept.is_ok());
    let place = match (printed.is_ok(), is_kept) {
        (true, true) => "the record is on stdout and in the history",
        (true, false) => "the record is on stdout",
        (false, true) => "the record is in the history",
        (false, false) => "the record could not be written either",
    };
    Failure::with_code(1, format!("the results were not delivered; {place}\n  because: {reason}"))
}

/// Makes an output. A panic is a failure of this one: the others are made, and the record is kept.
pub(crate) fn made<T>(what: &str, make: impl FnOnce() -> T) -> Result<T, Failure> {
    let not_made = |reason| Failure::with_code(1, format!("{what} could not be made\n  because: {reason}"));
    trueio_run::contained(make).map_err(not_made)
}

/// Renders a document in the format of an option.
fn rendered(document: &Document, name: &str, past: &[PastRun]) -> Result<String, Failure> {
    let found = Format::ALL.into_iter().find(|(known, _)| *known == name);
    let (_, format) = found.expect("outputs have the names of the formats");
    document.render(format, past).map_err(|e| match e {
        RenderError::NotThere { .. } => Failure::refused(format!("--{name} was not written: {e}")),
        RenderError::Hdr(_) => Failure::failed(format!("--{name} was not written"), &e),
    })
}

/// Whether the record goes to stdout: then nothing else does, and stderr gets only errors.
pub(crate) fn is_json_to_stdout(matches: &ArgMatches) -> bool {
    path_of(matches, "json").is_some_and(|path| path == Path::new("-"))
}

/// Returns true if a switch is set; false for a command without it.
fn is_set(matches: &ArgMatches, name: &str) -> bool {
    matches.try_get_one::<bool>(name).ok().flatten() == Some(&true)
}

/// Writes a document that a command otherwise prints as text, if `--json` asks for it. Returns true if it went to standard
/// output, which then gets nothing else.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn print_json(matches: &ArgMatches, text: impl FnOnce() -> String) -> Result<bool, Failure> {
    let Some(path) = path_of(matches, "json") else { return Ok(false) };
    if path == Path::new("-") {
        return print_all(&text()).map(|()| true);
    }
    write(reserve("--json", path)?, text().as_bytes()).map(|()| false)
}

/// Returns the text of a record: the table with `-q`, all details with `-v`, else one screen, whether it is new or printed again.
fn text_of(record: &RunRecord, matches: &ArgMatches) -> String {
    let style = style_of(&std::io::stdout());
    let has = |name: &str| is_set(matches, name);
    if has("quiet") {
        return trueio_report::screen_table(record, &style);
    }
    if has("verbose") {
        return trueio_report::terminal(record, &style);
    }
    let id: String = record.id.chars().take(8).collect();
    let file = matches.try_get_one::<String>("record").ok().flatten().filter(|name| Path::new(name).is_file());
    let details = match file {
        Some(file) => format!("trueio report -v {file}"),
        None if has("no-history") => "add -v".to_owned(),
        None => format!("trueio report -v {id}"),
    };
    let past = if has("no-history") { Vec::new() } else { crate::kept::past_runs(record) };
    trueio_report::screen(record, &style, &details, &past)
}

/// Returns the width that the variable `COLUMNS` sets; `None` if it sets none that text fits in.
fn columns(value: Option<&str>) -> Option<usize> {
    value?.trim().parse().ok().filter(|width| (40..=1000).contains(width))
}

fn keep_in_history(record: &RunRecord) -> Result<(), trueio_store::StoreError> {
    Store::open(&trueio_store::default_directory()?)?.insert(record)
}

/// Writes text to stdout. A closed pipe (`| head`) is no error.
pub(crate) fn print_all(text: &str) -> Result<(), Failure> {
    trueio_report::print_text(text).map_err(|error| Failure::failed("stdout could not be written", &error))
}

/// Writes a document that is no text to stdout.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed("stdout could not be written", &error))
        }
        _ => Ok(()),
    }
}

/// Returns the columns of a terminal, or those that the variable `COLUMNS` sets; `None` for a stream without a width.
pub(crate) fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if stream.is_terminal() && size.ws_col > 0 => Some(usize::from(size.ws_col)),
        _ => columns(std::env::var("COLUMNS").ok().as_deref()),
    }
}

/// Returns the layout of text on a stream.
pub(crate) fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let is_terminal = stream.is_terminal();
    // Long lines are hard to read on a wide terminal. A pipe is wide enough for the table of a baseline.
    let most = if is_terminal { 140 } else { usize::MAX };
    let width = width_of(stream).map_or(110, |width| width.min(most));
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    let unicode = !is_terminal || locale.is_none_or(|l| l.to_ascii_lowercase().replace('-', "").contains("utf8"));
    Style { width, color: trueio_report::has_colors(stream), unicode: unicode && !trueio_report::is_dumb() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use trueio_model::Plan;
    use trueio_run::{Reporting, Request, Session, Targets};

    fn record() -> RunRecord {
        static STOP: AtomicBool = AtomicBool::new(false);
        let plan = Plan {
            jobs: Vec::new(),
            idle_baseline_ns: 0,
            idle_wait_ns: None,
            accepted_checks: Vec::new(),
            limits: None,
            notes: Vec::new(),
            identities: std::collections::BTreeMap::new(),
        };
        let request = Request {
            kind: "run".into(),
            command: Vec::new(),
            spec: Vec::new(),
            plan,
            targets: Targets::default(),
            has_evidence: false,
            reporting: Reporting::default(),
        };
        Session::new(request, &STOP).finish(Outcome::Complete)
    }

    /// Goal: a panic of what prints the results keeps neither the files from being written, nor the record from being printed.
    #[test]
    fn a_panic_of_a_printer_leaves_the_other_outputs() {
        let folder = tempfile::tempdir().expect("a folder");
        let json = folder.path().join("r.json");
        let command = crate::run::arguments(clap::Command::new("run"));
        let words = ["run", "--no-history", "--json", json.to_str().expect("a path")];
        let matches = command.try_get_matches_from(words).expect("a command line");
        let outputs = Outputs::reserve(&matches, std::iter::empty()).expect("reserved");
        let panics = |_: &RunRecord| -> String { panic!("staged") };
        let failure = deliver_as(&record(), outputs, &matches, false, Some(&panics)).expect_err("it panicked");
        assert!(failure.into_text().contains("the results could not be made\n  because: staged (this is a bug"));
        let text = std::fs::read_to_string(&json).expect("it is written");
        assert!(serde_json::from_str::<RunRecord>(&text).is_ok(), "{text}");
        let failure = rescue(Some(record()), "staged", &matches);
        assert!(failure.into_text().contains("the record is on stdout\n  because: staged"));
        let failure = rescue(None, "staged", &matches);
        assert!(failure.into_text().contains("before there was a record\n  because: staged"));
    }
}
