//! `trueio history` and `trueio report`: earlier runs.
//!
//! Records of trueio are stored with their evidence; results of fio are stored as they are and never get a
//! verdict. Nothing here measures. Only `delete` removes runs, and only those that it names.

mod arguments;
mod compare;
mod digest;
mod exchange;
mod figures;
mod listing;
mod table;
mod trend;

use crate::failure::Failure;
use crate::kept::{Document, document, find_document, get, power_loss, short, store, unreadable, whole_id};
use crate::output::Outputs;
use crate::{flags, output, traced};
use clap::{Arg, ArgMatches, Command};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use trueio_device::{System, target_facts};
use trueio_model::{DeviceIdentity, units};
use trueio_report::message;
use trueio_store::{Device, Filter, Store, StoreError};

pub(crate) use arguments::{ABOUT, arguments};

/// `trueio history …`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        None => listing::list(matches),
        Some(("list", matches)) => listing::list(matches),
        Some(("devices", matches)) => listing::devices(matches),
        Some(("show", matches)) => listing::show(matches),
        Some(("tag", matches)) => tag(matches),
        Some(("untag", matches)) => untag(matches),
        Some(("note", matches)) => note(matches),
        Some(("delete", matches)) => delete(matches),
        Some(("import", matches)) => exchange::import(matches),
        Some(("export", matches)) => exchange::export(matches),
        Some(("compare", matches)) => compare::command(matches),
        Some(("trend", matches)) => trend::command(matches),
        _ => unreachable!("clap demands one of the commands above"),
    }
}

fn unwritable(error: &StoreError) -> Failure {
    Failure::failed("the history was not changed", error)
}

/// Returns the one value of an argument that clap requires.
fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).expect("clap demands it")
}

fn tag(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut store = store()?;
    let id = whole_id(&store, text(matches, "id"))?;
    for tag in matches.get_many::<String>("tags").expect("clap demands one") {
        store.tag(&id, tag).map_err(|e| match e {
            StoreError::Tag { .. } => Failure::refused_by(&e, None),
            other => unwritable(&other),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn untag(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut store = store()?;
    let id = whole_id(&store, text(matches, "id"))?;
    let mut code = ExitCode::SUCCESS;
    for tag in matches.get_many::<String>("tags").expect("clap demands one") {
        if !store.untag(&id, tag).map_err(|e| unwritable(&e))? {
            message!("error: {} has no tag `{tag}`", short(&id));
            code = ExitCode::from(2);
        }
    }
    Ok(code)
}

fn note(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut store = store()?;
    let id = whole_id(&store, text(matches, "id"))?;
    store.note(&id, text(matches, "text")).map_err(|e| unwritable(&e))?;
    Ok(ExitCode::SUCCESS)
}

fn delete(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut store = store()?;
    let mut ids = Vec::new();
    // All are found before the first is deleted.
    for id in matches.get_many::<String>("ids").expect("clap demands one") {
        ids.push(whole_id(&store, id)?);
    }
    ids.sort();
    ids.dedup();
    let count = store.delete(&ids).map_err(|e| unwritable(&e))?;
    message!("{count} run{} deleted", if count == 1 { "" } else { "s" });
    Ok(ExitCode::SUCCESS)
}

/// One-line description of `trueio report`.
pub(crate) const ABOUT_REPORT: &str =
    "Print a record, comparison, study, trend or record of power cuts in any output format that it has";

/// The command line of `trueio report`.
pub(crate) fn report_arguments(command: Command) -> Command {
    let command = flags::outputs(command).arg(flags::verbose()).arg(flags::quiet().conflicts_with("verbose"));
    command.arg(flags::accept()).arg(Arg::new("record").value_name("RECORD").required(true).help(
        "An ID (or a unique prefix) of a run in the history, the JSON file of a document, or the trace of \
         a run (`run --trace`)",
    ))
}

/// `trueio report`.
pub(crate) fn report(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let name = text(matches, "record");
    output::check(matches, std::iter::once(Path::new(name)))?;
    if let Some(file) = traced::open(Path::new(name)) {
        let outputs = Outputs::reserve(matches, std::iter::once(Path::new(name)))?;
        traced::report(Path::new(name), file, outputs, matches)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut document = find_document(name)?;
    // The history may know more than when it was measured.
    match &mut document {
        trueio_report::Document::Record(record) => {
            record.power_loss = power_loss(&record.targets).or(record.power_loss.take());
        }
        trueio_report::Document::Study(study) => {
            study.power_loss = power_loss(&study.targets).or(study.power_loss.take());
        }
        _ => {}
    }
    if let trueio_report::Document::Record(record) = &mut document {
        let accepted = matches.get_many::<String>("accept").into_iter().flatten();
        accepted.for_each(|check| record.accept(check));
    }
    let outputs = Outputs::reserve(matches, std::iter::once(Path::new(name)))?;
    if output::is_export(matches) {
        return output::export(&document, outputs).map(|()| ExitCode::SUCCESS);
    }
    match &document {
        trueio_report::Document::Record(record) => drop(output::deliver(record, outputs, matches, false)?),
        _ => output::deliver_document(&document, outputs, matches)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the filter from the flags of `list`, `export` and `trend`.
fn filter(store: &Store, matches: &ArgMatches) -> Result<Filter, Failure> {
    // `trend` has another argument for its device.
    let device = match matches.try_get_one::<String>("device").ok().flatten() {
        Some(name) => Some(find_device(store, name)?.id),
        None => None,
    };
    Ok(Filter {
        device,
        tags: matches.get_many::<String>("tag").map_or_else(Vec::new, |tags| tags.cloned().collect()),
        kind: matches.get_one::<String>("kind").cloned(),
        since_unix_s: matches.get_one::<String>("since").map(|text| since(text)).transpose()?,
        ..Filter::default()
    })
}

/// Parses a time: a date, or a duration before now.
fn since(text: &str) -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let ago = || units::parse_duration_ns(text).ok().map(|ns| now.saturating_sub(ns / 1_000_000_000));
    trueio_model::parse_utc(text).or_else(ago).ok_or_else(|| {
        Failure::refused(format!(
            "--since `{text}` is neither a date nor a duration\n\nhint: a date (`2026-11-20`, `2026-11-20T20:28`, in UTC), or a duration before now \
             (`7d`, `12h`)"
        ))
    })
}

/// Finds a device by its number in the history, by a path on it, or by a part of its identifiers.
fn find_device(store: &Store, name: &str) -> Result<Device, Failure> {
    let hint = "\n\nhint: `trueio history devices` lists the devices that were measured";
    if let Ok(id) = name.trim_start_matches('#').parse::<i64>() {
        let found = store.device(id).map_err(|e| unreadable(&e))?;
        return found.ok_or_else(|| Failure::refused(format!("the history has no device {id}{hint}")));
    }
    let wanted = name.to_lowercase();
    let is_it = |device: &Device| {
        let texts = std::iter::once(&device.label).chain(device.keys.iter().map(|(_, value)| value));
        texts.map(|text| text.to_lowercase()).any(|text| text.contains(&wanted))
    };
    // A path takes precedence: it names a present device.
    let node = Path::new("/dev").join(name);
    let path = if Path::new(name).exists() { Path::new(name) } else { &node };
    if !name.is_empty() && path.exists() {
        return device_at(store, path, hint);
    }
    let devices = store.devices().map_err(|e| unreadable(&e))?;
    let mut found: Vec<Device> = devices.into_iter().filter(is_it).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::refused(format!("`{name}` is neither a device of the history nor an existing path{hint}"))),
        _ => Err(Failure::refused(format!("`{name}` matches several devices: {}{hint}", listing::names(&found)))),
    }
}

/// Returns the device that a path is on now.
fn device_at(store: &Store, path: &Path, hint: &str) -> Result<Device, Failure> {
    let facts = target_facts(&System::live(), path).map_err(|e| Failure::refused_by(&e, None))?;
    let identity = DeviceIdentity::of(&facts);
    if identity.is_empty() {
        return Err(Failure::refused(format!(
            "the device under `{}` has no world-wide identifier, serial number or filesystem UUID that this user can \
             read, so which earlier runs were on it cannot be known{hint}",
            path.display()
        )));
    }
    store.device_of(&identity).map_err(|e| unreadable(&e))?.ok_or_else(|| {
        Failure::refused(format!("no run in the history was on the device under `{}`{hint}", path.display()))
    })
}
