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
    /// Only those that the list has after this run, by its whole ID: older ones.
    pub before: Option<String>,
    /// Most runs, the newest first; `None`: all.
    pub limit: Option<usize>,
}

impl Filter {
    /// Returns the condition that the runs meet, and its values.
    fn conditions(&self) -> (String, Vec<Value>) {
        let mut conditions = vec!["1".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        let mut hold = |condition: &str, value: Value| {
            values.push(value);
            conditions.push(condition.replace('?', &format!("?{}", values.len())));
        };
        let signed = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        if let Some(device) = self.device {
            hold("id IN (SELECT run_id FROM run_devices WHERE device_id = ?)", Value::Integer(device));
        }
        for tag in &self.tags {
            hold("id IN (SELECT run_id FROM tags WHERE tag = ?)", Value::Text(tag.clone()));
        }
        if let Some(kind) = &self.kind {
            hold("kind = ?", Value::Text(kind.clone()));
        }
        if let Some(since) = self.since_unix_s {
            hold("started_unix_s >= ?", signed(since));
        }
        if let Some(id) = &self.before {
            // The order of the list, so that the index by time gives it.
            let run = "(SELECT started_unix_s, rowid FROM runs WHERE id = ?)";
            hold(&format!("(started_unix_s, rowid) < {run}"), Value::Text(id.clone()));
        }
        (conditions.join(" AND "), values)
    }

    /// Returns the statement that selects the runs, and its values.
    fn statement(&self) -> (String, Vec<Value>) {
        let (conditions, values) = self.conditions();
        let limit = self.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let order = "ORDER BY started_unix_s DESC, rowid DESC";
        (format!("SELECT {COLUMNS} FROM runs WHERE {conditions} {order} LIMIT {limit}"), values)
    }
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

/// The IDs that begin with a text, newest first. A span of the index of IDs: the last character of Unicode comes after every other.
const WITH_PREFIX: &str =
    "SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY started_unix_s DESC LIMIT ?2";

const COLUMNS: &str = "id, started_unix_s, started_at, kind, target, disk, verdict, outcome, summary, source, note, \
     (SELECT words FROM run_words WHERE run_id = id) AS words, \
     (SELECT group_concat(tag, char(31)) FROM tags WHERE run_id = id) AS tags, \
     (SELECT group_concat(device_id, char(31)) FROM run_devices WHERE run_id = id) AS devices";

impl Store {
    /// Returns the runs that match `filter`, newest first.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
        let (statement, values) = filter.statement();
        let read = || {
            let mut statement = self.connection.prepare_cached(&statement)?;
            statement.query_map(params_from_iter(&values), entry_from)?.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// Returns the number of runs that match `filter`, regardless of its limit.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn count(&self, filter: &Filter) -> Result<u64, StoreError> {
        let (conditions, values) = filter.conditions();
        let statement = format!("SELECT count(*) FROM runs WHERE {conditions}");
        let count = || self.connection.query_row(&statement, params_from_iter(&values), |row| row.get::<_, i64>(0));
        count().map(|count| count.max(0) as u64).map_err(|source| StoreError::from_sqlite(&self.path, source))
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
            let mut statement = self.connection.prepare_cached(WITH_PREFIX)?;
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
        words: joined("words")?,
        outcome: row.get("outcome")?,
        summary: row.get("summary")?,
        source: Source::named(&source),
        note: row.get("note")?,
        tags,
        devices: devices.split(SEPARATOR).filter_map(|id| id.parse().ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// A history of `count` runs, one a minute, on ten devices in turn.
    fn history(folder: &std::path::Path, count: u32) -> Store {
        let store = Store::open(folder).expect("a new history");
        let fill = format!(
            "INSERT INTO devices (id, label) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) \
                 SELECT i, 'disk' FROM n; \
             INSERT INTO runs WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count} - 1) \
                 SELECT printf('%032x', i), 60 * i, 'then', 'run', 'f', 'd', 'supported', 'complete', 's', 1, '{{}}', 'trueio', '' \
                 FROM n; \
             INSERT INTO run_devices SELECT id, rowid % 10 + 1 FROM runs;"
        );
        store.connection.execute_batch(&format!("BEGIN; {fill} COMMIT;")).expect("rows of the schema");
        store
    }

    /// Returns the steps of SQLite's machine that a selection takes, and the runs that it returns.
    fn steps(store: &Store, filter: &Filter) -> (i32, usize) {
        let (statement, values) = filter.statement();
        let mut statement = store.connection.prepare(&statement).expect("a statement");
        let runs = statement.query_map(params_from_iter(&values), entry_from).expect("values").count();
        (statement.get_status(StatementStatus::VmStep), runs)
    }

    /// Goal: the list, and the runs before one, cost the same in a history of any length.
    /// Method: SQLite counts the steps of its machine, in histories of 2,000 and of 100,000 runs; a selection without a limit
    /// shows that the count grows with what is read.
    #[test]
    fn a_page_of_the_list_takes_as_many_steps_in_a_long_history() {
        let folder = tempfile::tempdir().expect("a folder");
        let [short, long] = [2_000, 100_000].map(|count| history(&folder.path().join(format!("{count}")), count));
        let page = |before: Option<u32>| Filter {
            before: before.map(|number| format!("{number:032x}")),
            limit: Some(20),
            ..Filter::default()
        };
        for before in [None, Some(1_000)] {
            let (few, many) = (steps(&short, &page(before)), steps(&long, &page(before)));
            assert_eq!((few.1, many.1), (20, 20));
            assert!(many.0 < few.0 + 200 && many.0 < 5_000, "{few:?} {many:?}");
        }
        assert!(steps(&long, &Filter::default()).0 > 1_000_000, "every run is read");
    }

    /// Goal: a record is found by its ID without a look at the others: a trend that makes 200 digests of a history of 100,000 took
    /// 38 s. Method: as above; a text that all IDs begin with shows that the count grows with what is read.
    #[test]
    fn a_run_is_found_by_its_id_in_as_many_steps_in_a_long_history() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = history(folder.path(), 20_000);
        let steps = |prefix: &str| {
            let mut statement = store.connection.prepare(WITH_PREFIX).expect("a statement");
            let found = statement.query_map(params![prefix, 6], |row| row.get::<_, String>(0)).expect("values").count();
            (statement.get_status(StatementStatus::VmStep), found)
        };
        let whole = format!("{:032x}", 0x1234);
        for prefix in [&whole[..], &whole[..31]] {
            let (count, found) = steps(prefix);
            assert!(count < 500 && found > 0, "{prefix}: {count} steps, {found} found");
        }
        assert!(steps("0000").0 > 20_000, "every run begins so");
        assert_eq!(store.whole_id(&whole).expect("it is there"), whole);
        assert!(matches!(store.whole_id("1"), Err(StoreError::NotFound { .. })));
    }

    #[test]
    fn the_runs_before_one_are_those_that_the_list_has_after_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = history(folder.path(), 100);
        let all = store.list(&Filter { device: Some(3), ..Filter::default() }).expect("readable");
        let before = Filter { device: Some(3), before: Some(all[2].id.clone()), limit: Some(4), ..Filter::default() };
        assert_eq!(store.list(&before).expect("readable"), all[3..7]);
        let of_unknown = Filter { before: Some("x".to_owned()), ..Filter::default() };
        assert_eq!(store.list(&of_unknown).expect("readable"), []);
    }
}
