//! `trueio history compare`: compares a run with the previous one of the same load on the same device.
//!
//! It only finds the two runs; `trueio compare` compares them. Devices are the same by identity, whatever
//! their names, and without an identity by path and machine; loads are the same if job, operation and options are.

use super::figures::of_record;
use super::{Document, document, get, short, store, unreadable};
use crate::failure::Failure;
use crate::kept::Place;
use clap::ArgMatches;
use std::path::PathBuf;
use std::process::ExitCode;
use trueio_model::RunRecord;
use trueio_report::message;
use trueio_store::{Entry, Filter, Source, Store};

/// Runs the command.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (earlier, this) = pair(&store()?, matches.get_one::<String>("id").map(String::as_str))?;
    message!(
        "run {} ({}) against run {} ({})",
        short(&this.id),
        this.started_at,
        short(&earlier.id),
        earlier.started_at
    );
    let rest = matches.get_many::<String>("rest").into_iter().flatten().map(String::as_str);
    // With an equals sign: the name of the file is no side.
    let json = matches.get_one::<PathBuf>("json").map(|file| format!("--json={}", file.display()));
    let words = [earlier.id.as_str(), this.id.as_str()].into_iter().chain(json.as_deref()).chain(rest);
    crate::compare::with_words(words)
}

/// Returns the requested run (by default the newest on a device) and the previous one that can be compared
/// with it, the earlier one first.
fn pair(store: &Store, id: Option<&str>) -> Result<(Entry, Entry), Failure> {
    let can_be = |entry: &Entry| entry.source == Source::Trueio && entry.devices.len() <= 1;
    let this = match id {
        Some(id) => get(store, id)?.entry,
        None => first_of(store, None, None, |entry| Ok(can_be(entry)))?
            .ok_or_else(|| Failure::refused("no run in the history was on a single device"))?,
    };
    let unknown = || {
        Failure::refused(format!(
            "run {} was not on a single device, so no earlier run on the same device is known\n\nhint: `trueio compare ID ID` \
             compares any two runs",
            short(&this.id)
        ))
    };
    if !can_be(&this) {
        return Err(unknown());
    }
    let record = record(store, &this)?;
    let place = Place::of_record(&record).ok_or_else(unknown)?;
    if let Some(how) = place.by_path() {
        message!("note: the earlier run is found {how}");
    }
    let loads = loads(&record);
    let is_alike = |entry: &Entry| {
        if !can_be(entry) || entry.devices != this.devices {
            return Ok(false);
        }
        // A run that cannot be read cannot be compared.
        let Ok(earlier) = self::record(store, entry) else { return Ok(false) };
        let is_here = !this.devices.is_empty() || place.is_of(&earlier);
        Ok(is_here && self::loads(&earlier).iter().any(|load| loads.contains(load)))
    };
    let device = this.devices.first().copied();
    if let Some(earlier) = first_of(store, device, Some(this.id.clone()), is_alike)? {
        return Ok((earlier, this));
    }
    Err(Failure::refused(format!(
        "no earlier run on the device of run {} has the same load\n\nhint: `trueio history{}` lists its runs; \
         `trueio compare ID ID` compares any two runs",
        short(&this.id),
        device.map_or_else(String::new, |device| format!(" --device '#{device}'"))
    )))
}

/// Returns the newest run that is wanted: on `device`, before the run `before`. The list is read in pages that double, because
/// one of the first is nearly always it, and a history may have 100,000.
fn first_of(
    store: &Store,
    device: Option<i64>,
    mut before: Option<String>,
    is_it: impl Fn(&Entry) -> Result<bool, Failure>,
) -> Result<Option<Entry>, Failure> {
    let mut limit = 16;
    loop {
        let filter = Filter { device, before, limit: Some(limit), ..Filter::default() };
        let page = store.list(&filter).map_err(|e| unreadable(&e))?;
        for entry in &page {
            if is_it(entry)? {
                return Ok(Some(entry.clone()));
            }
        }
        let Some(last) = page.last().filter(|_| page.len() == limit) else { return Ok(None) };
        before = Some(last.id.clone());
        limit *= 2;
    }
}

fn record(store: &Store, entry: &Entry) -> Result<RunRecord, Failure> {
    match document(&get(store, &entry.id)?)? {
        Document::Record(record) => Ok(*record),
        Document::Fio(_) => Err(Failure::refused("a result of fio has no device")),
        Document::Powercut(_) => Err(Failure::refused("cuts of power have no load")),
    }
}

/// Describes the load of a run: job, operation and options.
fn loads(record: &RunRecord) -> Vec<(String, String, String)> {
    of_record(record).into_iter().map(|figure| (figure.job, figure.op, figure.load)).collect()
}
