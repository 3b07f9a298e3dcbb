//! The history: every record in one embedded SQLite file, `history.sqlite3`.
//!
//! A record is stored whole, as the JSON text that every later version can read, next to the few
//! columns that a list needs; so are records of cuts of power, and results of fio, which are marked as fio's word and have no
//! verdict. Runs refer to their devices by identity (`devices.rs`), and have the user's tags and notes.
//! One insert is one transaction with `synchronous = FULL` and a
//! rollback journal: a killed program leaves either the whole record or nothing. The rollback
//! journal is chosen over WAL because a run writes once, because the history then stays one file
//! that can be copied, and because WAL does not work on network home directories.
//!
//! Nothing here ever deletes or replaces the file. A history that is damaged, locked or of a newer
//! version is an error that names the file and the remedy.
//!
//! Limits: whether the disk below the history keeps flushed data is not visible.
//!
//! Source: SQLite, "Atomic Commit In SQLite", "PRAGMA synchronous", "WAL-mode File Format" section
//! 1 (no network filesystems).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod annotate;
mod devices;
mod digest;
mod directory;
mod entry;
mod error;
mod query;
mod schema;
mod words;

pub use devices::Device;
pub use directory::{check_private, default_directory, default_files, private_directory};
pub use entry::{Entry, Source, foreign_id};
pub use error::StoreError;
pub use query::{Filter, Stored};
pub use schema::SCHEMA_VERSION;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_model::ForeignRun;
use trueio_model::{Document, PowercutRecord, RunRecord, TargetFacts};

/// The history's file name in its directory.
pub const FILE_NAME: &str = "history.sqlite3";

/// How long to wait for another process that is writing. What takes longer costs the entry, not the run.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open history.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the history in `directory`; creates both if they are not there. A history of an earlier
    /// version is brought to this one.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be made, is another user's or can be changed by others, or the file is a symbolic
    /// link, locked, damaged, not a history of trueio, or of a newer version. The file is left as it is.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = private_directory(directory)?.join(FILE_NAME);
        check_private(&path)?;
        let fail = |source| StoreError::from_sqlite(&path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(&path, flags).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        schema::migrate(&mut connection, &path)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(fail)?;
        Ok(Self { connection, path })
    }

    /// Opens the history in `directory` for a reader: one that is not there is empty, and stays not there.
    ///
    /// # Errors
    /// As [`Store::open`], and if it cannot be known whether there is one.
    pub fn open_existing(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(FILE_NAME);
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let fail = |source| StoreError::from_sqlite(&path, source);
                let mut connection = Connection::open_in_memory().map_err(fail)?;
                schema::migrate(&mut connection, &path)?;
                Ok(Self { connection, path })
            }
            _ => Self::open(directory),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record. When this returns, the record is on the disk, whole.
    ///
    /// # Errors
    /// [`StoreError::AlreadyThere`] if the history holds a record of this id; otherwise SQLite's error.
    pub fn insert(&mut self, record: &RunRecord) -> Result<(), StoreError> {
        let json = record.to_json().map_err(|source| StoreError::Record { id: record.id.clone(), source })?;
        self.insert_text(record, &json)
    }

    /// The same, with the text that `record` was read from: it is kept as it is.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn insert_text(&mut self, record: &RunRecord, json: &str) -> Result<(), StoreError> {
        self.add(&Entry::of_record(record), record.version, json, &record.targets)
    }

    /// Adds the record of cuts of power, with the text that it was read from, or that it is written as.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn insert_powercut(&mut self, record: &PowercutRecord, json: &str) -> Result<(), StoreError> {
        self.add(&Entry::of_powercut(record), record.version, json, std::slice::from_ref(&record.target))
    }

    /// Adds a result of fio, as fio's word. The id under which it is kept.
    ///
    /// # Errors
    /// As [`Store::insert`]; the same text has the same id.
    pub fn insert_fio(&mut self, run: &ForeignRun) -> Result<String, StoreError> {
        let entry = Entry::of_fio(run);
        // fio's JSON has no format version, and does not identify the device.
        self.add(&entry, 0, &run.json, &[])?;
        Ok(entry.id)
    }

    /// One transaction: the run and its devices, or nothing.
    fn add(&mut self, entry: &Entry, version: u32, text: &str, targets: &[TargetFacts]) -> Result<(), StoreError> {
        let add = |connection: &mut Connection| {
            // The write lock first: two programs must not both find that a device is new.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let inserted = transaction.execute(
                "INSERT INTO runs (id, started_unix_s, started_at, kind, target, disk, verdict, outcome, summary, \
                 source, record_version, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
                 ON CONFLICT (id) DO NOTHING",
                params![
                    entry.id,
                    // SQLite's integers are signed.
                    i64::try_from(entry.started_unix_s).unwrap_or(i64::MAX),
                    entry.started_at,
                    entry.kind,
                    entry.target,
                    entry.disk,
                    entry.verdict,
                    entry.outcome,
                    entry.summary,
                    entry.source.name(),
                    version,
                    text,
                ],
            )?;
            if inserted > 0 {
                devices::assign(&transaction, &entry.id, targets)?;
                words::keep(&transaction, &entry.id, &entry.words)?;
            }
            transaction.commit()?;
            Ok(inserted)
        };
        match add(&mut self.connection).map_err(|source| StoreError::from_sqlite(&self.path, source))? {
            0 => Err(StoreError::AlreadyThere { id: entry.id.clone() }),
            _ => Ok(()),
        }
    }
}
