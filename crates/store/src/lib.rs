//! The history: every record in one embedded SQLite file, `history.sqlite3`.
//!
//! A record is stored whole, as the JSON text that every later version can read, beside the few
//! columns that a list needs. One insert is one transaction with `synchronous = FULL` and a
//! rollback journal: a killed program leaves either the whole record or nothing. The rollback
//! journal is chosen over WAL because a run writes once, because the history then stays one file
//! that can be copied, and because WAL does not work on network home directories.
//!
//! Nothing here ever deletes or replaces the file. A history that is damaged, locked or of a newer
//! version is an error that names the file and says what to do.
//!
//! Cannot see: whether the disk under the history keeps what it was told to flush.
//!
//! Source: SQLite, "Atomic Commit In SQLite", "PRAGMA synchronous", "WAL-mode File Format" section
//! 1 (no network filesystems).

mod directory;
mod error;
mod schema;

pub use directory::default_directory;
pub use error::StoreError;
pub use schema::SCHEMA_VERSION;

use rusqlite::{Connection, OpenFlags, Row, params};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_model::{Outcome, RunRecord, Verdict, units};

/// The history's file name in its directory.
pub const FILE_NAME: &str = "history.sqlite3";

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open history.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A run in the list: what can be said without reading its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record's id, 32 hexadecimal digits.
    pub id: String,
    /// When the run began, in seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The same for people.
    pub started_at: String,
    /// `baseline`, `run`, …
    pub kind: String,
    /// The targets' paths, joined by `, `.
    pub target: String,
    /// The disks under them, joined by `, `; empty if there were none.
    pub disk: String,
    /// The worst verdict of its phases (`supported`, `suspect`, `contradicted`); empty if nothing
    /// was measured.
    pub verdict: String,
    /// `complete`, `interrupted` or `failed`.
    pub outcome: String,
    /// One line: phases, and the best figures that the evidence supports.
    pub summary: String,
}

/// A run with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its line in the list.
    pub entry: Entry,
    /// The record as it was written, for `trueio_report::parse`, which reads every version.
    pub json: String,
}

const COLUMNS: &str = "id, started_unix_s, started_at, kind, target, disk, verdict, outcome, summary";

impl Store {
    /// Opens the history in `directory`; creates both if they are not there.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be made, or the file is locked, damaged, not a history of trueio, or
    /// of a newer version. The file is left as it is.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        directory::create(directory).map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
        let path = directory.join(FILE_NAME);
        let fail = |source| StoreError::from_sqlite(&path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        schema::migrate(&mut connection, &path)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
        Ok(Self { connection, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record. When this returns, the record is on the disk, whole.
    ///
    /// # Errors
    /// [`StoreError::AlreadyThere`] if the history holds a record of this id; otherwise what SQLite said.
    pub fn insert(&self, record: &RunRecord) -> Result<(), StoreError> {
        let json =
            serde_json::to_string(record).map_err(|source| StoreError::Record { id: record.id.clone(), source })?;
        let entry = entry_of(record);
        let inserted = self.connection.execute(
            &format!(
                "INSERT INTO runs ({COLUMNS}, record_version, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
                 ?10, ?11) ON CONFLICT (id) DO NOTHING"
            ),
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
                record.version,
                json,
            ],
        );
        match inserted.map_err(|source| StoreError::from_sqlite(&self.path, source))? {
            0 => Err(StoreError::AlreadyThere { id: record.id.clone() }),
            _ => Ok(()),
        }
    }

    /// The newest `limit` runs, newest first.
    ///
    /// # Errors
    /// What SQLite said of the file.
    pub fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM runs ORDER BY started_unix_s DESC, rowid DESC LIMIT ?1"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            statement.query_map([limit], entry_from)?.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The run whose id is `id` or begins with it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is none, [`StoreError::Ambiguous`] if several begin so; otherwise what
    /// SQLite said of the file.
    pub fn get(&self, id: &str) -> Result<Stored, StoreError> {
        /// Candidates named in an error, and one more to know that there are others.
        const CANDIDATES: i64 = 6;
        let prefix = id.trim().to_ascii_lowercase();
        if prefix.is_empty() {
            return Err(StoreError::NotFound { id: id.to_owned(), path: self.path.clone() });
        }
        let ids = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY started_unix_s DESC LIMIT ?2",
            )?;
            statement.query_map(params![prefix, CANDIDATES], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        };
        let fail = |source| StoreError::from_sqlite(&self.path, source);
        let ids = ids().map_err(fail)?;
        let found = match ids.as_slice() {
            [] => return Err(StoreError::NotFound { id: id.to_owned(), path: self.path.clone() }),
            [one] => one,
            // A whole id is never ambiguous, even if another begins with it.
            several => match several.iter().find(|i| **i == prefix) {
                Some(exact) => exact,
                None => return Err(StoreError::Ambiguous { id: id.to_owned(), candidates: ids }),
            },
        };
        self.connection
            .query_row(&format!("SELECT {COLUMNS}, record FROM runs WHERE id = ?1"), [found], |row| {
                Ok(Stored { entry: entry_from(row)?, json: row.get("record")? })
            })
            .map_err(fail)
    }
}

fn entry_from(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get("id")?,
        started_unix_s: row.get::<_, i64>("started_unix_s")?.max(0) as u64,
        started_at: row.get("started_at")?,
        kind: row.get("kind")?,
        target: row.get("target")?,
        disk: row.get("disk")?,
        verdict: row.get("verdict")?,
        outcome: row.get("outcome")?,
        summary: row.get("summary")?,
    })
}

/// What the list says of a record.
fn entry_of(record: &RunRecord) -> Entry {
    let paths: Vec<&str> = record.targets.iter().map(|t| t.path.as_str()).collect();
    let mut disks: Vec<String> = Vec::new();
    for disk in record.targets.iter().flat_map(|t| &t.disks) {
        let text = match &disk.model.value {
            Some(model) => format!("{} ({model})", disk.name),
            None => disk.name.clone(),
        };
        if !disks.contains(&text) {
            disks.push(text);
        }
    }
    Entry {
        id: record.id.to_ascii_lowercase(),
        started_unix_s: record.started_unix_s,
        started_at: record.started_at.clone(),
        kind: record.kind.clone(),
        target: paths.join(", "),
        disk: disks.join(", "),
        verdict: record.phases.iter().map(|p| p.verdict).max().map_or_else(String::new, |v| v.to_string()),
        outcome: match &record.outcome {
            Outcome::Complete => "complete",
            Outcome::Interrupted { .. } => "interrupted",
            Outcome::Failed { .. } => "failed",
        }
        .to_owned(),
        summary: summary_of(record),
    }
}

/// Phases, and the best bandwidth and rate of those that nothing contradicts: a list has no room
/// for the reason that must stand beside a contradicted figure.
fn summary_of(record: &RunRecord) -> String {
    let count = record.phases.len();
    let mut text = format!("{count} phase{}", if count == 1 { "" } else { "s" });
    let contradicted = record.phases.iter().filter(|p| p.verdict == Verdict::Contradicted).count();
    if contradicted > 0 {
        text.push_str(&format!(", {contradicted} contradicted"));
    }
    let jobs = record.phases.iter().filter(|p| p.verdict != Verdict::Contradicted).flat_map(|p| &p.jobs);
    let (mut bytes_per_s, mut ios_per_s) = (0.0f64, 0.0f64);
    for job in jobs.filter(|j| j.elapsed_ns > 0) {
        let seconds = job.elapsed_ns as f64 / 1e9;
        for op in &job.ops {
            bytes_per_s = bytes_per_s.max(op.byte_count as f64 / seconds);
            ios_per_s = ios_per_s.max(op.io_count as f64 / seconds);
        }
    }
    if ios_per_s > 0.0 {
        let rate = units::format_count(ios_per_s.round() as u64);
        text.push_str(&format!(", up to {} and {rate} IOPS", units::format_bandwidth(bytes_per_s)));
    }
    text
}
