//! Tags and notes of runs, and removal of runs.

use crate::{Store, StoreError, devices};
use rusqlite::{Connection, TransactionBehavior, params};

/// The longest tag, in characters.
const TAG_MAX: usize = 64;

impl Store {
    /// Gives a run a tag; no error if it has it. `id` is a whole id.
    ///
    /// # Errors
    /// [`StoreError::Tag`] if it cannot be one; otherwise SQLite's error.
    pub fn tag(&mut self, id: &str, tag: &str) -> Result<(), StoreError> {
        let is_good = |c: char| !c.is_whitespace() && !c.is_control() && c != ',';
        if tag.is_empty() || tag.chars().count() > TAG_MAX || !tag.chars().all(is_good) {
            return Err(StoreError::Tag { tag: tag.chars().take(TAG_MAX).collect() });
        }
        self.change(|connection| {
            connection.execute("INSERT OR IGNORE INTO tags (run_id, tag) VALUES (?1, ?2)", params![id, tag])
        })?;
        Ok(())
    }

    /// Takes a tag from a run; false if it had none of that name.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn untag(&mut self, id: &str, tag: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM tags WHERE run_id = ?1 AND tag = ?2", params![id, tag])
        })
        .map(|count| count > 0)
    }

    /// Replaces a run's note; an empty one takes it away.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn note(&mut self, id: &str, note: &str) -> Result<(), StoreError> {
        self.change(|connection| connection.execute("UPDATE runs SET note = ?2 WHERE id = ?1", params![id, note]))?;
        Ok(())
    }

    /// Forgets runs, all of `ids` or none, and devices of which no run is left. How many there were.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn delete(&mut self, ids: &[String]) -> Result<usize, StoreError> {
        self.change(|connection| {
            let mut count = 0;
            for id in ids {
                count += connection.execute("DELETE FROM runs WHERE id = ?1", [id])?;
            }
            devices::forget_unused(connection)?;
            Ok(count)
        })
    }

    /// A change in one transaction.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let all = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        all(&mut self.connection).map_err(|source| StoreError::from_sqlite(&self.path, source))
    }
}
