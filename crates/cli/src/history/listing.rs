//! Prints the history: the list, the devices, one run.

use super::{Document, document, filter, get, short, store, text, unreadable};
use crate::failure::Failure;
use crate::output;
use clap::ArgMatches;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;
use trueio_model::{IdentityKind, Mark, Verdict, units};
use trueio_report::message;
use trueio_report::{clean, fitted, width_of};
use trueio_store::{Device, Entry, Source, Stored};

/// Printed instead of a verdict if no evidence was collected.
const NO_EVIDENCE: &str = "no evidence";

/// `trueio history list`.
pub(super) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let store = store()?;
    let mut filter = filter(&store, matches)?;
    filter.limit = Some(*matches.get_one::<usize>("limit").expect("it has a default"));
    let entries = store.list(&filter).map_err(|e| unreadable(&e))?;
    let rows = || Value::from(entries.iter().map(entry_json).collect::<Vec<_>>());
    if output::print_json(matches, || format!("{:#}\n", rows()))? {
        return Ok(ExitCode::SUCCESS);
    }
    let is_asked = filter.device.is_some() || !filter.tags.is_empty() || filter.kind.is_some();
    if entries.is_empty() && filter.limit != Some(0) {
        message!(
            "{}",
            if is_asked || filter.since_unix_s.is_some() {
                "no run in the history matches the selection"
            } else {
                "the history is empty; `trueio baseline` measures this directory's disk"
            }
        );
    }
    let mut out = String::new();
    let width = output::width_of(&std::io::stdout());
    for entry in &entries {
        let run = format!("{}  {}  {:8}  {:14}", short(&entry.id), entry.started_at, entry.kind, words_of(entry));
        let mut about = format!("{}  {}", entry.target, entry.summary);
        for tag in &entry.tags {
            let _ = write!(about, "  #{tag}");
        }
        if !entry.note.is_empty() {
            let _ = write!(about, "  “{}”", entry.note.lines().next().unwrap_or_default());
        }
        out.push_str(&line(&clean(&run), &clean(&about), width));
    }
    output::print_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the line of a run; two lines, each cut at the width, if the stream has one that is less.
fn line(run: &str, about: &str, width: Option<usize>) -> String {
    let whole = format!("{run}  {about}");
    match width.filter(|width| width_of(&whole) > *width) {
        None => format!("{whole}\n"),
        Some(width) => {
            let about = format!("          {about}");
            format!("{}\n{}\n", fitted(run.trim_end(), width), fitted(about.trim_end(), width))
        }
    }
}

/// Returns the words of a run with their symbol, as at the end of the run: `! disturbed: dd wrote 335 MiB`.
fn words_of(entry: &Entry) -> String {
    match (entry.source, Mark::of_words(&entry.words)) {
        (Source::Fio, _) => NO_EVIDENCE.to_owned(),
        (Source::Powercut, _) => entry.verdict.clone(),
        (Source::Trueio, Some(mark)) => format!("{} {}", mark.symbol(), entry.words),
        // A run of an earlier version, of which only the verdict is known.
        (Source::Trueio, None) => match serde_json::from_value::<Verdict>(entry.verdict.clone().into()) {
            Ok(verdict) => {
                let mark = Mark::of(verdict, &[]);
                format!("{} {}", mark.symbol(), mark.word())
            }
            Err(_) => String::new(),
        },
    }
}

/// Formats a line of the list as JSON.
fn entry_json(entry: &Entry) -> Value {
    json!({
        "id": entry.id, "started_at": entry.started_at, "kind": entry.kind, "target": entry.target,
        "disk": entry.disk, "verdict": verdict_json(entry), "words": words_json(entry),
        "outcome": entry.outcome, "summary": entry.summary,
        "source": entry.source.name(), "tags": entry.tags, "note": entry.note, "devices": entry.devices,
    })
}

/// A result of fio has no verdict: null, not an empty one.
fn verdict_json(entry: &Entry) -> Value {
    match entry.source {
        Source::Trueio | Source::Powercut => entry.verdict.clone().into(),
        Source::Fio => Value::Null,
    }
}

/// Null if they are unknown, and for a result of fio.
fn words_json(entry: &Entry) -> Value {
    if entry.words.is_empty() { Value::Null } else { entry.words.clone().into() }
}

/// `trueio history devices`.
pub(super) fn devices(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let devices = store()?.devices().map_err(|e| unreadable(&e))?;
    let rows = devices.iter().map(|device| {
        let known_by: Vec<Value> =
            device.keys.iter().map(|(kind, value)| json!({ "kind": kind.name(), "value": value })).collect();
        json!({
            "id": device.id, "label": device.label, "known_by": known_by, "run_count": device.run_count,
            "newest_at": trueio_model::format_utc(device.newest_unix_s),
        })
    });
    if output::print_json(matches, || format!("{:#}\n", Value::from(rows.collect::<Vec<_>>())))? {
        return Ok(ExitCode::SUCCESS);
    }
    if devices.is_empty() {
        message!("no run was on a device with a world-wide identifier, a serial number or a filesystem UUID");
    }
    let mut out = String::new();
    for device in &devices {
        let line = format!(
            "#{:<3} {}; {} run{}, the newest {}",
            device.id,
            device.label,
            units::format_count(device.run_count),
            if device.run_count == 1 { "" } else { "s" },
            trueio_model::format_utc(device.newest_unix_s)
        );
        let _ = writeln!(out, "{}", clean(&line));
        for (kind, value) in &device.keys {
            let _ = writeln!(out, "     {kind} {}", clean(value));
        }
    }
    output::print_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Lists devices in a sentence: `#1 Samsung SSD, #2 …`.
pub(super) fn names(devices: &[Device]) -> String {
    let text: Vec<String> = devices.iter().map(|device| format!("#{} {}", device.id, clean(&device.label))).collect();
    text.join("; ")
}

/// `trueio history show`.
pub(super) fn show(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let store = store()?;
    let stored = get(&store, text(matches, "id"))?;
    if output::print_json(matches, || format!("{:#}\n", portable(&stored)))? {
        return Ok(ExitCode::SUCCESS);
    }
    let entry = &stored.entry;
    let mut out = String::new();
    let known = store.devices().map_err(|e| unreadable(&e))?;
    let on: Vec<&Device> = known.iter().filter(|device| entry.devices.contains(&device.id)).collect();
    for device in &on {
        let by =
            device.keys.first().map_or(String::new(), |(kind, value)| format!(", recognised by its {kind} {value}"));
        let _ = writeln!(out, "device  #{} {}{}", device.id, clean(&device.label), clean(&by));
    }
    if on.is_empty() && entry.source != Source::Fio && !entry.target.is_empty() {
        let _ = writeln!(out, "device  unknown: this record contains no identifier of its device");
    }
    if !entry.tags.is_empty() {
        let _ = writeln!(out, "tags    {}", clean(&entry.tags.join(", ")));
    }
    for (index, line) in entry.note.lines().enumerate() {
        let _ = writeln!(out, "{}{}", if index == 0 { "note    " } else { "        " }, clean(line));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    match document(&stored)? {
        Document::Record(record) => {
            out.push_str(&trueio_report::terminal(&record, &output::style_of(&std::io::stdout())));
        }
        Document::Powercut(record) => {
            let style = output::style_of(&std::io::stdout());
            out.push_str(&trueio_report::powercut_terminal(&record, &style));
        }
        Document::Fio(run) => out.push_str(&super::figures::fio_text(&run, entry)),
    }
    output::print_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The version of the export format.
pub(super) const PORTABLE_VERSION: u64 = 1;
/// The name of the export format.
pub(super) const PORTABLE_FORMAT: &str = "trueio-history-entry";

/// Formats a run with everything that is stored of it, for `import`. Devices are omitted: they follow from
/// the record, and their numbers are valid in this history only.
pub(super) fn portable(stored: &Stored) -> Value {
    let entry = &stored.entry;
    // fio's text is exported unchanged, because its ID is derived from it; so is a damaged record.
    let as_text = || Value::from(stored.json.as_str());
    let document = match entry.source {
        Source::Trueio | Source::Powercut => serde_json::from_str(&stored.json).unwrap_or_else(|_| as_text()),
        Source::Fio => as_text(),
    };
    json!({
        "format": PORTABLE_FORMAT, "version": PORTABLE_VERSION, "source": entry.source.name(),
        "tags": entry.tags, "note": entry.note, "document": document,
    })
}

/// Formats a device's identifier, for a column of a table.
pub(super) fn known_by(device: &Device) -> String {
    let of = |kind: IdentityKind| device.keys.iter().find(|(k, _)| *k == kind).map(|(_, value)| value.clone());
    IdentityKind::ALL.into_iter().find_map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_wider_than_the_terminal_becomes_two_within_it() {
        let (run, about) =
            ("3f9c21ab  2026-12-01T04:00:00Z  run       + confirmed   ", "/mnt/data  randread 4k q1, 10,674 IOPS");
        assert_eq!(line(run, about, None).lines().count(), 1);
        assert_eq!(line(run, about, Some(200)), line(run, about, None));
        let narrow = line(run, about, Some(60));
        assert_eq!(narrow.lines().count(), 2, "{narrow}");
        assert!(narrow.lines().all(|line| width_of(line) <= 60), "{narrow}");
        assert!(narrow.starts_with("3f9c21ab") && narrow.contains("\n          /mnt/data"), "{narrow}");
    }
}
