//! The history's tables, and the way from every earlier version to this one.
//!
//! SQLite keeps two numbers for the application in the file's header: `application_id` says whose
//! database it is, `user_version` how many of [`MIGRATIONS`] have been applied. Both change in the
//! same transaction as the tables, so a program that is killed in between leaves the version before.

use crate::{StoreError, devices, words};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// `trio` in ASCII.
const APPLICATION_ID: i32 = 0x7472_696f;

/// One step from a version to the next. A released step is never edited; a change is a new step.
struct Step {
    sql: &'static str,
    /// What the new columns and tables hold for the runs that are there.
    fill: Option<fn(&Connection) -> rusqlite::Result<()>>,
}

/// The steps, oldest first.
const MIGRATIONS: &[Step] = &[
    Step {
        sql: "
CREATE TABLE runs (
    id              TEXT    NOT NULL PRIMARY KEY,  -- 32 hexadecimal digits
    started_unix_s  INTEGER NOT NULL,              -- seconds since 1970-01-01 UTC
    started_at      TEXT    NOT NULL,              -- the same for people
    kind            TEXT    NOT NULL,              -- baseline, run, …
    target          TEXT    NOT NULL,              -- paths, joined by ', '
    disk            TEXT    NOT NULL,              -- disks, joined by ', '
    verdict         TEXT    NOT NULL,              -- the worst of the phases; '' if there are none
    outcome         TEXT    NOT NULL,              -- complete, interrupted, failed
    summary         TEXT    NOT NULL,              -- one line
    record_version  INTEGER NOT NULL,              -- version of the JSON
    record          TEXT    NOT NULL               -- the whole record as JSON
) STRICT;
CREATE INDEX runs_by_start ON runs (started_unix_s);
",
        fill: None,
    },
    Step {
        sql: "
ALTER TABLE runs ADD COLUMN source TEXT NOT NULL DEFAULT 'trueio';  -- whose document `record` is: trueio, fio
ALTER TABLE runs ADD COLUMN note   TEXT NOT NULL DEFAULT '';        -- the user's words
CREATE TABLE tags (
    run_id     TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tag        TEXT    NOT NULL,
    PRIMARY KEY (run_id, tag)
) STRICT, WITHOUT ROWID;
CREATE TABLE devices (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,  -- a number is never given twice
    label      TEXT    NOT NULL                    -- for people
) STRICT;
CREATE TABLE device_keys (
    device_id  INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL,                   -- wwid, serial, filesystem_uuid
    value      TEXT    NOT NULL,
    PRIMARY KEY (kind, value, device_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX device_keys_by_device ON device_keys (device_id);
CREATE TABLE run_devices (
    run_id     TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    device_id  INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    PRIMARY KEY (run_id, device_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_devices_by_device ON run_devices (device_id);
",
        fill: Some(devices::learn_from_records),
    },
    Step {
        sql: "
CREATE TABLE digests (
    run_id     TEXT    NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    version    INTEGER NOT NULL,                   -- of the rules by which it was made
    digest     TEXT    NOT NULL                    -- what a trend needs of the record, as JSON; can be made again from it
) STRICT, WITHOUT ROWID;
",
        fill: None,
    },
    Step {
        // A table of its own: a column behind `record` would be read through all pages of the record.
        sql: "
CREATE TABLE run_words (
    run_id     TEXT    NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    words      TEXT    NOT NULL                    -- what its screen said of its worst phase: disturbed: dd wrote 335 MiB
) STRICT, WITHOUT ROWID;
",
        fill: Some(words::learn_from_records),
    },
];

/// The version of a history made today.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings the database to [`SCHEMA_VERSION`], in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::from_sqlite(path, source);
    // Read in one transaction: between two reads another program may make the tables.
    let snapshot = connection.transaction().map_err(fail)?;
    let version = version_of(&snapshot, path)?;
    drop(snapshot);
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    // The write lock first: of two programs that open a new history together, the second waits
    // and then finds the work done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let version = version_of(&transaction, path)?;
    for step in &MIGRATIONS[version as usize..] {
        transaction.execute_batch(step.sql).map_err(fail)?;
        if let Some(fill) = step.fill {
            fill(&transaction).map_err(fail)?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// How many steps the database has seen; an error if it is not ours or of a later version.
fn version_of(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let fail = |source| StoreError::from_sqlite(path, source);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(fail);
    let application = number("application_id")?;
    let version = number("user_version")?;
    if application != i64::from(APPLICATION_ID) {
        // A new file has no tables and zeros in both.
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
        if application != 0 || version != 0 || tables != 0 {
            return Err(StoreError::Foreign { path: path.to_owned() });
        }
    }
    match u32::try_from(version) {
        Ok(version) if version <= SCHEMA_VERSION => Ok(version),
        Ok(found) => Err(StoreError::Newer { path: path.to_owned(), found, known: SCHEMA_VERSION }),
        Err(_) => Err(StoreError::Foreign { path: path.to_owned() }),
    }
}
