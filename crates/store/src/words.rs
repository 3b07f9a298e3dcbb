//! What the list says of a run's figures: the words of its worst phase.
//!
//! The words are those of the end of the run. They are stored when the run is, so that a list reads no record, and so that it keeps
//! saying what the user saw. A result of fio has none; neither has a run that measured nothing.

use rusqlite::{Connection, params};
use trueio_model::{Document, RunRecord, run_words};

/// Stores the words of a run, unless they are empty.
pub(crate) fn keep(connection: &Connection, run_id: &str, words: &str) -> rusqlite::Result<()> {
    if !words.is_empty() {
        let mut statement =
            connection.prepare_cached("INSERT OR REPLACE INTO run_words (run_id, words) VALUES (?1, ?2)")?;
        statement.execute(params![run_id, words])?;
    }
    Ok(())
}

/// The step from version 3: finds the words of the runs that are there. A record that cannot be read any more, and a result
/// of fio, keep their place in the list without words.
pub(crate) fn learn_from_records(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT id FROM runs WHERE source = 'trueio'")?;
    let ids = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    for id in ids {
        // One at a time: a record has a hundred kilobytes.
        let text: String = connection.query_row("SELECT record FROM runs WHERE id = ?1", [&id], |row| row.get(0))?;
        if let Ok(mut record) = RunRecord::from_json(&text) {
            record.upgrade();
            keep(connection, &id, &run_words(&record.phases))?;
        }
    }
    Ok(())
}
