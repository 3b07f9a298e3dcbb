//! What a trend needs of a run: its figures and properties, stored in the history next to the record.
//!
//! A trend over many runs reads these few hundred bytes of each, not its record. The first trend after a run computes and stores the run's
//! digest. If the history cannot be written, each trend computes it again.

use super::figures::{Figure, of_record};
use super::{Document, document, get};
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use trueio_model::{DiskFacts, RunRecord, Verdict};
use trueio_store::{Entry, Store};

/// Version of the rules by which digests are made. Raise it whenever [`Digest`] changes, or a rule by which the report computes a figure: all
/// digests are then made again.
const VERSION: u32 = 2;

/// The names of [`Digest::properties`].
pub(super) const PROPERTIES: [&str; 8] =
    ["system", "trueio", "filesystem", "transport", "scheduler", "firmware", "write cache", "processor"];

/// A run in a trend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Digest {
    /// Properties that may differ between runs of one load and affect the figures, in the order of [`PROPERTIES`].
    pub(super) properties: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// The figures of one operation, as in [`Figure`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) job: String,
    pub(super) op: String,
    pub(super) load: String,
    pub(super) ios_per_s: Option<f64>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) latency_ns_p50: Option<u64>,
    pub(super) latency_ns_p99: Option<u64>,
    pub(super) latency_ns_p999: Option<u64>,
    pub(super) cpu_ns_per_io: Option<f64>,
    pub(super) verdict: Option<Verdict>,
    pub(super) words: String,
}

impl Digest {
    fn of(record: &RunRecord) -> Self {
        let row = |figure: Figure| Row {
            job: figure.job,
            op: figure.op,
            load: figure.load,
            ios_per_s: figure.ios_per_s,
            bytes_per_s: figure.bytes_per_s,
            latency_ns_p50: figure.latency_ns_p50,
            latency_ns_p99: figure.latency_ns_p99,
            latency_ns_p999: figure.latency_ns_p999,
            cpu_ns_per_io: figure.cpu_ns_per_io,
            verdict: figure.verdict,
            words: figure.words,
        };
        Self { properties: properties_of(record).into(), rows: of_record(record).into_iter().map(row).collect() }
    }
}

fn properties_of(record: &RunRecord) -> [String; PROPERTIES.len()] {
    let filesystem = record.targets.iter().filter_map(|t| t.filesystem.as_ref());
    let filesystems: Vec<String> = filesystem.map(|f| format!("{} ({})", f.kind, f.options)).collect();
    let disks = record.targets.iter().flat_map(|t| &t.disks);
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let of_disks = |of: &dyn Fn(&DiskFacts) -> String| disks.clone().map(of).collect::<Vec<_>>().join(", ");
    [
        record.environment.system.clone(),
        format!("{} ({} build)", record.tool.version, record.tool.build),
        filesystems.join(", "),
        of_disks(&|disk| known(&disk.transport.value.as_ref().map(ToString::to_string))),
        of_disks(&|disk| known(&disk.scheduler.value)),
        of_disks(&|disk| known(&disk.firmware.value)),
        of_disks(&|disk| known(&disk.write_cache.value.as_ref().map(ToString::to_string))),
        known(&record.environment.cpu.model.value),
    ]
}

/// Returns the digest of each run, in order; `None` for a record that cannot be read. Digests that had to be made are stored.
pub(super) fn digests(store: &mut Store, entries: &[&Entry]) -> Result<Vec<Option<Digest>>, Failure> {
    let stored =
        store.digests(VERSION, entries.iter().map(|entry| entry.id.as_str())).map_err(|e| super::unreadable(&e))?;
    let mut digests = Vec::with_capacity(entries.len());
    let mut made = Vec::new();
    for entry in entries {
        let known = stored.get(entry.id.as_str()).and_then(|text| serde_json::from_str(text).ok());
        if known.is_some() {
            digests.push(known);
            continue;
        }
        let Ok(Document::Record(record)) = document(&get(store, &entry.id)?) else {
            digests.push(None);
            continue;
        };
        let digest = Digest::of(&record);
        if let Ok(text) = serde_json::to_string(&digest) {
            made.push((entry.id.clone(), text));
        }
        digests.push(Some(digest));
    }
    // An error is no failure: digests only save time, and the history may be read-only, or locked by a run that is being stored.
    if !made.is_empty() {
        let _ = store.add_digests(VERSION, &made);
    }
    Ok(digests)
}
