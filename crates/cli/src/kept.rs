//! Access to the history: runs by their IDs, and records by ID or file.

use crate::failure::Failure;
use std::path::Path;
use trueio_model::{DeviceIdentity, ForeignRun, RunRecord, error_chain};
use trueio_report::{DocumentError, PastRun};
use trueio_store::{Filter, Source, Store, StoreError, Stored};

pub(crate) fn store() -> Result<Store, Failure> {
    let open = || Store::open(&trueio_store::default_directory()?);
    open().map_err(|e| Failure::failed("the history cannot be opened", &e))
}

pub(crate) fn unreadable(error: &StoreError) -> Failure {
    Failure::failed("the history cannot be read", error)
}

/// Returns the whole ID with the prefix `id`.
pub(crate) fn whole_id(store: &Store, id: &str) -> Result<String, Failure> {
    store.whole_id(id).map_err(|e| match e {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => no_such_run(&e),
        other => unreadable(&other),
    })
}

pub(crate) fn get(store: &Store, id: &str) -> Result<Stored, Failure> {
    store.get(id).map_err(|e| match e {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => no_such_run(&e),
        other => unreadable(&other),
    })
}

fn no_such_run(error: &StoreError) -> Failure {
    Failure::refused_by(error, Some("`trueio history` lists all runs"))
}

/// Returns the prefix of an ID that lists print.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// The longest document that is read, in bytes: a record with rows of a day has some hundred MiB.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Reads a text that the user names; `-` is standard input.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    trueio_files::read_text(path, DOCUMENT_BYTES_MAX)
        .map_err(|e| Failure::refused(error_chain(&format!("`{}` cannot be read", path.display()), Some(&e))))
}

/// Returns true if a name leads to a text rather than to a run of the history: also to a pipe or a device, which [`text`] reads or refuses.
pub(crate) fn is_text(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|found| !found.is_dir())
}

/// Parses the text of a record, or of its page, that was read under a name.
pub(crate) fn parsed(name: &str, text: &str) -> Result<RunRecord, Failure> {
    match parsed_document(name, text)? {
        trueio_report::Document::Record(record) => Ok(*record),
        _ => Err(Failure::refused(format!("`{name}` is not a record of a run"))),
    }
}

/// Reads a record by its file or its ID.
pub(crate) fn find(name: &str) -> Result<RunRecord, Failure> {
    if is_text(name) {
        return parsed(name, &text(Path::new(name))?);
    }
    match document(&get(&store()?, name)?)? {
        Document::Record(record) => Ok(*record),
        Document::Fio(_) => Err(Failure::refused(format!(
            "`{name}` is a result of fio, not a record: there is no evidence to report\n\nhint: `trueio history show \
             {name}` prints its figures"
        ))),
    }
}

/// Reads a document of any kind by its file, or a record by its ID.
pub(crate) fn find_document(name: &str) -> Result<trueio_report::Document, Failure> {
    if !is_text(name) {
        return find(name).map(|record| trueio_report::Document::Record(Box::new(record)));
    }
    parsed_document(name, &text(Path::new(name))?)
}

fn parsed_document(name: &str, text: &str) -> Result<trueio_report::Document, Failure> {
    trueio_report::Document::parse(text).map_err(|e| {
        let kind = match &e {
            DocumentError::Record(_) => "record",
            DocumentError::Page(_) => "page",
            DocumentError::Comparison(_) => "comparison",
            DocumentError::Study(_) => "study",
            DocumentError::Trend(_) => "trend",
        };
        Failure::refused(error_chain(&format!("`{name}` is not a valid {kind}"), Some(&e)))
    })
}

/// At most this many earlier runs of a device form the range of its figures.
const PAST_MAX: usize = 20;

/// Returns the figures of earlier runs on the device of a record, as far as the history is readable: a report does not
/// fail because of it.
pub(crate) fn past_runs(record: &RunRecord) -> Vec<PastRun> {
    if trueio_report::class_values(record).is_empty() {
        return Vec::new();
    }
    let read = || -> Result<Vec<PastRun>, StoreError> {
        let store = Store::open(&trueio_store::default_directory()?)?;
        let [target] = record.targets.as_slice() else { return Ok(Vec::new()) };
        let Some(device) = store.device_of(&DeviceIdentity::of(target))? else { return Ok(Vec::new()) };
        let filter = Filter { device: Some(device.id), limit: Some(PAST_MAX), ..Filter::default() };
        let mut past = Vec::new();
        for entry in store.list(&filter)? {
            let is_earlier = entry.started_unix_s < record.started_unix_s;
            if !is_earlier || entry.source != Source::Trueio || entry.outcome != "complete" {
                continue;
            }
            if let Ok(earlier) = trueio_report::parse(&store.get(&entry.id)?.json) {
                past.push(PastRun::of(&earlier));
            }
        }
        Ok(past)
    };
    read().unwrap_or_default()
}

/// Reads the stored record of a run.
pub(crate) enum Document {
    Record(Box<RunRecord>),
    Fio(ForeignRun),
}

pub(crate) fn document(stored: &Stored) -> Result<Document, Failure> {
    let refused = |error: &dyn std::error::Error| {
        let what = format!("the history's record {} cannot be read", short(&stored.entry.id));
        Failure::refused(error_chain(&what, Some(error)))
    };
    match stored.entry.source {
        Source::Trueio => {
            trueio_report::parse(&stored.json).map(|r| Document::Record(Box::new(r))).map_err(|e| refused(&e))
        }
        Source::Fio => trueio_fio::results::parse(&stored.json).map(Document::Fio).map_err(|e| refused(&e)),
    }
}
