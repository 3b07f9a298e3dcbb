//! `trueio history compare`: a run and the last one before it that did the same on the same device.
//!
//! It only finds the two; `trueio compare` compares them. The same device is one by identity,
//! whatever its name was; the same is a load (job, operation and manner) that both have.

use super::figures::of_record;
use super::{Document, document, get, short, store, unreadable};
use crate::failure::Failure;
use clap::ArgMatches;
use std::process::ExitCode;
use trueio_model::RunRecord;
use trueio_store::{Entry, Filter, Source, Store};

/// The command.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (earlier, this) = pair(&store()?, matches.get_one::<String>("id").map(String::as_str))?;
    eprintln!(
        "run {} ({}) against run {} ({})",
        short(&this.id),
        this.started_at,
        short(&earlier.id),
        earlier.started_at
    );
    let rest = matches.get_many::<String>("rest").into_iter().flatten().map(String::as_str);
    crate::compare::with_words([earlier.id.as_str(), this.id.as_str()].into_iter().chain(rest))
}

/// The run that is asked for (without an id, the newest on a device), and the last one before it that can
/// be compared with it: the earlier one first.
fn pair(store: &Store, id: Option<&str>) -> Result<(Entry, Entry), Failure> {
    let all = store.list(&Filter::default()).map_err(|e| unreadable(&e))?;
    let can_be = |entry: &Entry| entry.source == Source::Trueio && entry.devices.len() == 1;
    let this = match id {
        Some(id) => get(store, id)?.entry,
        None => all.iter().find(|entry| can_be(entry)).cloned().ok_or_else(|| {
            Failure::refused("no run in the history was on a single device that can be told from others")
        })?,
    };
    if !can_be(&this) {
        return Err(Failure::refused(format!(
            "run {} was not on a single device that can be told from others, so there is no run before it on the same \
             one\n\nhint: `trueio compare ID ID` compares two runs that you name",
            short(&this.id)
        )));
    }
    let record = record(store, &this)?;
    let loads = loads(&record);
    // Newest first; of equal seconds, what was kept before.
    let before = all.iter().skip_while(|entry| entry.id != this.id).skip(1);
    for entry in before.filter(|entry| can_be(entry) && entry.devices == this.devices) {
        // One that cannot be read is none that could be compared.
        let Ok(earlier) = self::record(store, entry) else { continue };
        if self::loads(&earlier).iter().any(|load| loads.contains(load)) {
            return Ok((entry.clone(), this));
        }
    }
    Err(Failure::refused(format!(
        "no earlier run on the device of run {} did the same\n\nhint: `trueio history --device '#{}'` lists its runs; \
         `trueio compare ID ID` compares two that you name",
        short(&this.id),
        this.devices[0]
    )))
}

fn record(store: &Store, entry: &Entry) -> Result<RunRecord, Failure> {
    match document(&get(store, &entry.id)?)? {
        Document::Record(record) => Ok(*record),
        Document::Fio(_) => Err(Failure::refused("a result of fio has no device")),
    }
}

/// What a run did: job, operation and manner.
fn loads(record: &RunRecord) -> Vec<(String, String, String)> {
    of_record(record).into_iter().map(|figure| (figure.job, figure.op, figure.load)).collect()
}
