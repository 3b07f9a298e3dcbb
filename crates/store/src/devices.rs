//! Which runs were on the same device, by identity and not by name.
//!
//! A device of the history is a row with everything that was ever learnt of it: its world-wide
//! identifier, model and serial number, and the UUIDs of the filesystems that were on it. A new
//! record belongs to the device with which it agrees in the most precise thing that both have
//! ([`trueio_model::DeviceIdentity`] gives the reason); the device then receives what the record adds. A record without
//! any of them belongs to no device: that its disk had the same name proves nothing.
//!
//! Where several devices agree equally (a filesystem that was cloned, and a record that contains nothing
//! else), the record is given to none of them but to a device of its own.

use crate::Store;
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use trueio_model::{DeviceIdentity, Document, IdentityKind, RunRecord, TargetFacts, units};

/// A device of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number in this history.
    pub id: i64,
    /// What it is, for people: model and size.
    pub label: String,
    /// What it is known by: kind and value, most precise kind first.
    pub keys: Vec<(IdentityKind, String)>,
    /// How many runs were on it.
    pub run_count: u64,
    /// When the newest of them began, in seconds since 1970-01-01 UTC.
    pub newest_unix_s: u64,
}

impl Device {
    /// Compares this device with `identity`: the kind in which they agree; `None`
    /// if they differ in, or do not share, what would decide.
    fn agrees(&self, identity: &DeviceIdentity) -> Option<IdentityKind> {
        for kind in IdentityKind::ALL {
            let Some(value) = identity.get(kind) else { continue };
            let mut mine = self.keys.iter().filter(|(k, _)| *k == kind).peekable();
            if mine.peek().is_some() {
                return mine.any(|(_, v)| v == value).then_some(kind);
            }
        }
        None
    }
}

impl Store {
    /// The devices, the one with the newest run first.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn devices(&self) -> Result<Vec<Device>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT device_id, count(*), max(started_unix_s) FROM run_devices JOIN runs ON runs.id = run_id \
                 GROUP BY device_id ORDER BY max(started_unix_s) DESC, device_id",
            )?;
            let counted = statement.query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?])))?;
            let counted = counted.collect::<Result<Vec<(i64, [i64; 2])>, _>>()?;
            counted
                .into_iter()
                .map(|(id, runs)| device_of_runs(&self.connection, id, runs))
                .collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The device of this number, if a run on it was kept; reads no other device's runs.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn device(&self, id: i64) -> Result<Option<Device>, StoreError> {
        let found = device(&self.connection, id).optional();
        let found = found.map_err(|source| StoreError::from_sqlite(&self.path, source))?;
        Ok(found.filter(|device| device.run_count > 0))
    }

    /// The device that a target lies on, if a run on it was kept.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn device_of(&self, identity: &DeviceIdentity) -> Result<Option<Device>, StoreError> {
        find(&self.connection, identity).map_err(|source| StoreError::from_sqlite(&self.path, source))
    }
}

fn device(connection: &Connection, id: i64) -> rusqlite::Result<Device> {
    let (run_count, newest): (i64, Option<i64>) = connection.query_row(
        "SELECT count(*), max(started_unix_s) FROM run_devices JOIN runs ON runs.id = run_id WHERE device_id = ?1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    device_of_runs(connection, id, [run_count, newest.unwrap_or(0)])
}

/// The device of a number: how many runs were on it, and when the newest began, are known.
fn device_of_runs(connection: &Connection, id: i64, [run_count, newest]: [i64; 2]) -> rusqlite::Result<Device> {
    let mut keys = Vec::new();
    let mut statement = connection.prepare_cached("SELECT kind, value FROM device_keys WHERE device_id = ?1")?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if let Some(kind) = IdentityKind::ALL.into_iter().find(|kind| kind.name() == name) {
            keys.push((kind, row.get(1)?));
        }
    }
    keys.sort();
    let label = connection.query_row("SELECT label FROM devices WHERE id = ?1", [id], |row| row.get(0))?;
    Ok(Device { id, label, keys, run_count: run_count.max(0) as u64, newest_unix_s: newest.max(0) as u64 })
}

/// The one device that agrees most precisely with `identity`.
fn find(connection: &Connection, identity: &DeviceIdentity) -> rusqlite::Result<Option<Device>> {
    let mut found: Vec<(IdentityKind, Device)> = Vec::new();
    for kind in IdentityKind::ALL {
        let Some(value) = identity.get(kind) else { continue };
        let mut statement =
            connection.prepare_cached("SELECT device_id FROM device_keys WHERE kind = ?1 AND value = ?2")?;
        let ids =
            statement.query_map(params![kind.name(), value], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        for id in ids {
            let candidate = device(connection, id)?;
            if let Some(kind) = candidate.agrees(identity)
                && found.iter().all(|(_, other)| other.id != id)
            {
                found.push((kind, candidate));
            }
        }
    }
    let Some(best) = found.iter().map(|(kind, _)| *kind).min() else { return Ok(None) };
    found.retain(|(kind, _)| *kind == best);
    if found.len() > 1 {
        // Of several, the one that is known by nothing more precise either.
        found.retain(|(_, device)| device.keys.iter().all(|(kind, _)| *kind >= best));
    }
    Ok(if found.len() == 1 { found.pop().map(|(_, device)| device) } else { None })
}

/// Notes which devices a run was on, and what is new about them.
pub(crate) fn assign(connection: &Connection, run_id: &str, targets: &[TargetFacts]) -> rusqlite::Result<()> {
    for target in targets {
        let identity = DeviceIdentity::of(target);
        if identity.is_empty() {
            continue;
        }
        let device_id = match find(connection, &identity)? {
            Some(device) => device.id,
            None => {
                connection.execute("INSERT INTO devices (label) VALUES (?1)", [label(target)])?;
                connection.last_insert_rowid()
            }
        };
        for kind in IdentityKind::ALL {
            let Some(value) = identity.get(kind) else { continue };
            // A disk has one identifier and one serial number, but may have carried many filesystems.
            let known: Option<String> = connection
                .query_row(
                    "SELECT value FROM device_keys WHERE device_id = ?1 AND kind = ?2",
                    params![device_id, kind.name()],
                    |row| row.get(0),
                )
                .optional()?;
            if known.is_none() || kind == IdentityKind::FilesystemUuid {
                connection.execute(
                    "INSERT OR IGNORE INTO device_keys (device_id, kind, value) VALUES (?1, ?2, ?3)",
                    params![device_id, kind.name(), value],
                )?;
            }
        }
        connection.execute(
            "INSERT OR IGNORE INTO run_devices (run_id, device_id) VALUES (?1, ?2)",
            params![run_id, device_id],
        )?;
    }
    Ok(())
}

/// Forgets devices of which no run is left.
pub(crate) fn forget_unused(connection: &Connection) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM devices WHERE id NOT IN (SELECT device_id FROM run_devices)", [])
}

/// The step from version 1: finds the devices of the runs that are there. A record that cannot be
/// read any more keeps its place in the list, without a device.
pub(crate) fn learn_from_records(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT id FROM runs ORDER BY started_unix_s, rowid")?;
    let ids = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    for id in ids {
        // One at a time: a record has a hundred kilobytes.
        let text: String = connection.query_row("SELECT record FROM runs WHERE id = ?1", [&id], |row| row.get(0))?;
        if let Ok(record) = RunRecord::from_json(&text) {
            assign(connection, &id, &record.targets)?;
        }
    }
    Ok(())
}

/// What a device is called: models and size, or the filesystem if there are no disks. Never the
/// kernel's name, which may be another's tomorrow.
fn label(target: &TargetFacts) -> String {
    let mut names: Vec<String> = target
        .disks
        .iter()
        .map(|disk| {
            let model = disk.model.value.clone().or_else(|| Some(format!("{} disk", disk.transport.value.as_ref()?)));
            let model = model.unwrap_or_else(|| "disk".to_owned());
            match disk.size_bytes.value {
                Some(bytes) => format!("{model}, {}", units::format_bytes(bytes)),
                None => model,
            }
        })
        .collect();
    names.sort();
    if names.is_empty() {
        let filesystem = target.filesystem.as_ref();
        names.push(filesystem.map_or_else(|| "device".to_owned(), |f| format!("{} on {}", f.kind, f.mount_point)));
    }
    names.join(" + ")
}
