//! Imports runs into the history and exports them: records, results of fio, whole entries, tables.
//!
//! All input is read and checked before anything is stored: of several files, either all can be read or none
//! is imported. A record of a newer trueio, another version of fio or a damaged file is refused by name. A
//! run that is already stored is not changed.

use super::figures::{of_fio, of_record};
use super::listing::{PORTABLE_FORMAT, PORTABLE_VERSION, portable};
use super::{Document, document, filter, get, short, store, table, unreadable, unwritable};
use crate::failure::Failure;
use crate::kept::{new_store, text};
use crate::output;
use clap::ArgMatches;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueio_model::ForeignRun;
use trueio_model::{PowercutRecord, RunRecord, error_chain};
use trueio_report::{PowercutError, message};
use trueio_store::{Store, StoreError};

/// A run that was read and can be stored.
struct Incoming {
    what: What,
    tags: Vec<String>,
    note: String,
}

enum What {
    Record { record: Box<RunRecord>, json: String },
    Fio(ForeignRun),
    Powercut { record: Box<PowercutRecord>, json: String },
}

/// `trueio history import`.
pub(super) fn import(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let tags: Vec<String> = matches.get_many::<String>("tag").map_or_else(Vec::new, |tags| tags.cloned().collect());
    let mut incoming = Vec::new();
    for path in matches.get_many::<PathBuf>("files").expect("clap demands one") {
        let text = text(path)?;
        let found = runs_of(&text).map_err(|why| {
            Failure::refused(format!("`{}` was not imported, nor was any other\n  because: {why}", path.display()))
        })?;
        incoming.extend(found.into_iter().map(|run| (path, run)));
    }
    let mut store = new_store()?;
    let mut lines = String::new();
    for (path, run) in incoming {
        let (id, is_new) = keep(&mut store, &run)?;
        for tag in run.tags.iter().chain(&tags) {
            store.tag(&id, tag).map_err(|e| match e {
                StoreError::Tag { .. } => Failure::refused_by(&e, None),
                other => unwritable(&other),
            })?;
        }
        if is_new && !run.note.is_empty() {
            store.note(&id, &run.note).map_err(|e| unwritable(&e))?;
        }
        let word = match (&run.what, is_new) {
            (_, false) => "already stored",
            (What::Record { .. }, true) => "record",
            (What::Fio(_), true) => "result of fio, without evidence",
            (What::Powercut { .. }, true) => "cuts of power",
        };
        lines.push_str(&format!("{}  {word}  {}\n", short(&id), trueio_report::clean(&path.display().to_string())));
        if let What::Fio(run) = &run.what {
            run.notes.iter().for_each(|note| message!("note: {}: {}", path.display(), trueio_report::clean(note)));
        }
    }
    output::print_all(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Stores a run; returns its ID, and whether it is new.
fn keep(store: &mut Store, run: &Incoming) -> Result<(String, bool), Failure> {
    let (id, kept) = match &run.what {
        What::Record { record, json } => (record.id.to_ascii_lowercase(), store.insert_text(record, json)),
        What::Powercut { record, json } => (record.id.to_ascii_lowercase(), store.insert_powercut(record, json)),
        What::Fio(run) => (trueio_store::foreign_id(&run.json), store.insert_fio(run).map(drop)),
    };
    match kept {
        Ok(()) => Ok((id, true)),
        Err(StoreError::AlreadyThere { .. }) => Ok((id, false)),
        Err(error) => Err(unwritable(&error)),
    }
}

/// Parses the runs of a text: a record, a result of fio, or entries of `export`, one per line.
fn runs_of(text: &str) -> Result<Vec<Incoming>, String> {
    let text_of = |e: &dyn std::error::Error| error_chain(&e.to_string(), e.source());
    let plain = |what| vec![Incoming { what, tags: Vec::new(), note: String::new() }];
    let not_a_record = match trueio_report::parse(text) {
        Ok(record) => return Ok(plain(record_of(record, text.trim_start_matches('\u{feff}').trim())?)),
        Err(error) => error,
    };
    match trueio_report::parse_powercut(text) {
        Ok(record) => return Ok(plain(powercut_of(record, text.trim_start_matches('\u{feff}').trim())?)),
        Err(PowercutError::NotAPowercut) => {}
        Err(error) => return Err(text_of(&error)),
    }
    if text.contains(PORTABLE_FORMAT) {
        return entries_of(text);
    }
    match trueio_fio::results::parse_all(text) {
        Ok(runs) => Ok(runs.into_iter().flat_map(|run| plain(What::Fio(run))).collect()),
        Err(trueio_fio::results::ResultError::NotFio | trueio_fio::results::ResultError::NoJson) => {
            Err(text_of(&not_a_record))
        }
        Err(error) if text.contains("\"fio version\"") => Err(text_of(&error)),
        Err(_) => Err(text_of(&not_a_record)),
    }
}

/// Parses lines of `export`, or the one entry of `show --json`.
fn entries_of(text: &str) -> Result<Vec<Incoming>, String> {
    let mut found = Vec::new();
    for (index, value) in serde_json::Deserializer::from_str(text).into_iter::<Value>().enumerate() {
        let at = |why: String| format!("entry {}: {why}", index + 1);
        let value = value.map_err(|e| at(format!("it is damaged\n  because: {e}")))?;
        let field = |name: &str| value.get(name).and_then(Value::as_str);
        if field("format") != Some(PORTABLE_FORMAT) {
            return Err(at(format!("its `format` is not \"{PORTABLE_FORMAT}\"")));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(PORTABLE_VERSION) => {}
            Some(newer) if newer > PORTABLE_VERSION => {
                return Err(at(format!(
                    "it has version {newer}; this program reads up to version {PORTABLE_VERSION} (a newer trueio \
                     reads it)"
                )));
            }
            _ => return Err(at("it has no valid version".to_owned())),
        }
        let document = value.get("document").ok_or_else(|| at("it has no `document`".to_owned()))?;
        let json = document.as_str().map_or_else(|| document.to_string(), str::to_owned);
        let text_of = |e: &dyn std::error::Error| at(error_chain(&e.to_string(), e.source()));
        let what = match field("source") {
            Some("trueio") => record_of(trueio_report::parse(&json).map_err(|e| text_of(&e))?, &json).map_err(at)?,
            Some("powercut") => {
                powercut_of(trueio_report::parse_powercut(&json).map_err(|e| text_of(&e))?, &json).map_err(at)?
            }
            Some("fio") => What::Fio(trueio_fio::results::parse(&json).map_err(|e| text_of(&e))?),
            _ => return Err(at("its `source` is not trueio, fio or powercut".to_owned())),
        };
        let tags = value.get("tags").and_then(Value::as_array);
        found.push(Incoming {
            what,
            tags: tags.into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
            note: field("note").unwrap_or_default().to_owned(),
        });
    }
    Ok(found)
}

/// Refuses an ID that cannot be used on the command line.
fn check_id(id: &str) -> Result<(), String> {
    let is_good = (4..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric());
    if is_good { Ok(()) } else { Err("its `id` is not 4 to 64 letters and digits".to_owned()) }
}

/// Takes a record of cuts of power.
fn powercut_of(record: PowercutRecord, json: &str) -> Result<What, String> {
    check_id(&record.id)?;
    Ok(What::Powercut { record: Box::new(record), json: json.to_owned() })
}

/// Takes a record of a run.
fn record_of(record: RunRecord, json: &str) -> Result<What, String> {
    check_id(&record.id)?;
    Ok(What::Record { record: Box::new(record), json: json.to_owned() })
}

/// `trueio history export`.
pub(super) fn export(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let path = matches.get_one::<PathBuf>("file").expect("clap demands it");
    let is_stdout = path == Path::new("-");
    let format = match (matches.get_one::<String>("format"), path.extension().and_then(|e| e.to_str())) {
        (Some(format), _) => format.as_str(),
        (None, Some(extension @ ("csv" | "jsonl" | "parquet"))) => extension,
        (None, _) => {
            return Err(Failure::refused(format!(
                "`{}` has no known ending, so the format is unknown\n\nhint: name a file that ends with .csv, .parquet or \
                 .jsonl, or set --format",
                path.display()
            )));
        }
    };
    let store = store()?;
    let reserved = if is_stdout { None } else { Some(output::reserve("the export", path)?) };
    let entries = store.list(&filter(&store, matches)?).map_err(|e| unreadable(&e))?;
    let devices = store.devices().map_err(|e| unreadable(&e))?;
    let mut code = ExitCode::SUCCESS;
    let (mut lines, mut rows) = (String::new(), Vec::new());
    // Oldest first, so that new runs come last.
    for entry in entries.iter().rev() {
        let stored = get(&store, &entry.id)?;
        if format == "jsonl" {
            lines.push_str(&format!("{}\n", portable(&stored)));
            continue;
        }
        let figures = match document(&stored) {
            Ok(Document::Record(record)) => of_record(&record),
            Ok(Document::Fio(run)) => of_fio(&run),
            // It has no figures of loads.
            Ok(Document::Powercut(_)) => continue,
            Err(failure) => {
                failure.show();
                code = ExitCode::FAILURE;
                continue;
            }
        };
        let on: Vec<_> = devices.iter().filter(|device| entry.devices.contains(&device.id)).collect();
        rows.extend(figures.iter().map(|figure| table::row(entry, &on, figure)));
    }
    let bytes = match format {
        "jsonl" => lines.into_bytes(),
        "parquet" => table::parquet(&rows)?,
        _ => table::csv(&rows)?,
    };
    match reserved {
        Some(reserved) => output::write(reserved, &bytes)?,
        None => match std::str::from_utf8(&bytes) {
            Ok(text) if format != "parquet" => output::print_all(text)?,
            _ => output::print_bytes(&bytes)?,
        },
    }
    message!("{} run{} exported", entries.len(), if entries.len() == 1 { "" } else { "s" });
    Ok(code)
}
