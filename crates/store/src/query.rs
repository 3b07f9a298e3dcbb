//! Finding runs: the list and its filters, and one run by the beginning of its id.

use crate::entry::{Entry, Source};
use crate::{Store, StoreError};
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

/// Which runs are wanted; all that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// On this device, by its number in this history.
    pub device: Option<i64>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Begun at or after this moment, in seconds since 1970-01-01 UTC.
    pub since_unix_s: Option<u64>,
    /// Most runs, the newest first; `None`: all.
    pub limit: Option<usize>,
}

/// A run with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its line in the list.
    pub entry: Entry,
    /// The text as it was written: of trueio for `trueio_report::parse`, which reads every version; of
    /// fio for `trueio_fio::results::parse`.
    pub json: String,
}

/// Between tags, and between device numbers, in a column that SQLite joins. Tags cannot hold it.
const SEPARATOR: char = '\u{1f}';

const COLUMNS: &str = "id, started_unix_s, started_at, kind, target, disk, verdict, outcome, summary, source, note, \
     (SELECT group_concat(tag, char(31)) FROM tags WHERE run_id = id) AS tags, \
     (SELECT group_concat(device_id, char(31)) FROM run_devices WHERE run_id = id) AS devices";

impl Store {
    /// Returns the runs that match `filter`, newest first.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
        let mut conditions = vec!["1".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        let mut hold = |condition: &str, value: Value| {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        };
        let signed = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        if let Some(device) = filter.device {
            hold("id IN (SELECT run_id FROM run_devices WHERE device_id = ?)", Value::Integer(device));
        }
        for tag in &filter.tags {
            hold("id IN (SELECT run_id FROM tags WHERE tag = ?)", Value::Text(tag.clone()));
        }
        if let Some(kind) = &filter.kind {
            hold("kind = ?", Value::Text(kind.clone()));
        }
        if let Some(since) = filter.since_unix_s {
            hold("started_unix_s >= ?", signed(since));
        }
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM runs WHERE {} ORDER BY started_unix_s DESC, rowid DESC LIMIT {limit}",
                conditions.join(" AND ")
            ))?;
            statement.query_map(params_from_iter(&values), entry_from)?.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The run whose id is `id` or begins with it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is none, [`StoreError::Ambiguous`] if several begin so; otherwise SQLite's
    /// error.
    pub fn get(&self, id: &str) -> Result<Stored, StoreError> {
        let id = self.whole_id(id)?;
        self.connection
            .query_row(&format!("SELECT {COLUMNS}, record FROM runs WHERE id = ?1"), [id], |row| {
                Ok(Stored { entry: entry_from(row)?, json: row.get("record")? })
            })
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The whole id that begins with `id`.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn whole_id(&self, id: &str) -> Result<String, StoreError> {
        /// Candidates named in an error, and one more to detect that there are others.
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
        let mut ids = ids().map_err(|source| StoreError::from_sqlite(&self.path, source))?;
        match ids.len() {
            0 => Err(StoreError::NotFound { id: id.to_owned(), path: self.path.clone() }),
            1 => Ok(ids.remove(0)),
            // A whole id is never ambiguous, even if another begins with it.
            _ if ids.contains(&prefix) => Ok(prefix),
            _ => Err(StoreError::Ambiguous { id: id.to_owned(), candidates: ids }),
        }
    }
}

fn entry_from(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let joined = |name: &str| row.get::<_, Option<String>>(name).map(Option::unwrap_or_default);
    let (tags, devices, source) = (joined("tags")?, joined("devices")?, row.get::<_, String>("source")?);
    let mut tags: Vec<String> = tags.split(SEPARATOR).filter(|t| !t.is_empty()).map(str::to_owned).collect();
    tags.sort();
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
        source: if source == Source::Fio.name() { Source::Fio } else { Source::Trueio },
        note: row.get("note")?,
        tags,
        devices: devices.split(SEPARATOR).filter_map(|id| id.parse().ok()).collect(),
    })
}
