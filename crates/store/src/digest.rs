//! Digests: what a view of many runs needs of each record, made once and stored next to it.
//!
//! A record has a hundred kilobytes and takes milliseconds to parse; its digest has a few hundred bytes. A digest can always be made again
//! from its record. None is made when a run is stored: the caller makes and adds those that are missing or of another version.
//! The caller also decides what a digest contains.

use crate::{Store, StoreError};
use rusqlite::{OptionalExtension, params};
use std::collections::HashMap;

impl Store {
    /// Returns the digests, made by the rules of `version`, of those runs of `ids` (whole ids) that have one, by id.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn digests<'a>(
        &self,
        version: u32,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<HashMap<&'a str, String>, StoreError> {
        let read = || {
            let mut statement =
                self.connection.prepare_cached("SELECT digest FROM digests WHERE run_id = ?1 AND version = ?2")?;
            let mut found = HashMap::new();
            for id in ids {
                if let Some(digest) = statement.query_row(params![id, version], |row| row.get(0)).optional()? {
                    found.insert(id, digest);
                }
            }
            Ok(found)
        };
        read().map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// Adds digests by whole id, in one transaction; replaces those that are there. A run that was deleted meanwhile gets none.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn add_digests(&mut self, version: u32, digests: &[(String, String)]) -> Result<(), StoreError> {
        self.change(|connection| {
            let mut statement = connection.prepare_cached(
                "INSERT OR REPLACE INTO digests (run_id, version, digest) SELECT id, ?2, ?3 FROM runs WHERE id = ?1",
            )?;
            for (id, digest) in digests {
                statement.execute(params![id, version, digest])?;
            }
            Ok(())
        })
    }
}
