//! Access to the history: runs by their IDs, and records by ID or file.

use crate::failure::Failure;
use std::path::Path;
use trueio_model::{ForeignRun, RunRecord, error_chain};
use trueio_store::{Source, Store, StoreError, Stored};

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

/// Reads a record by its file or its ID.
pub(crate) fn find(name: &str) -> Result<RunRecord, Failure> {
    let path = Path::new(name);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::refused(format!("`{name}` cannot be read\n  because: {e}")))?;
        return trueio_report::parse(&text)
            .map_err(|e| Failure::refused(format!("`{name}` is not a valid record\n  because: {e}")));
    }
    match document(&get(&store()?, name)?)? {
        Document::Record(record) => Ok(*record),
        Document::Fio(_) => Err(Failure::refused(format!(
            "`{name}` is a result of fio, not a record: there is no evidence to report\n\nhint: `trueio history show \
             {name}` prints its figures"
        ))),
    }
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
