//! Access to the history: runs by their IDs, and records by ID or file.

use crate::failure::Failure;
use std::path::Path;
use trueio_device::{System, environment, target_facts_unasked};
use trueio_model::{
    DeviceIdentity, Environment, FilesystemFacts, ForeignRun, Plan, PowerLoss, PowercutRecord, RunRecord, Sameness,
    TargetFacts, error_chain,
};
use trueio_report::{DocumentError, PastRun};
use trueio_store::{Filter, Source, Store, StoreError, Stored};

/// Opens the history for a command that adds nothing to it.
pub(crate) fn store() -> Result<Store, Failure> {
    opened(Store::open_existing)
}

/// Opens the history, and creates it if it is not there.
pub(crate) fn new_store() -> Result<Store, Failure> {
    opened(Store::open)
}

fn opened(open: fn(&Path) -> Result<Store, StoreError>) -> Result<Store, Failure> {
    let opened = trueio_store::default_directory().and_then(|directory| open(&directory));
    opened.map_err(|e| Failure::failed("the history cannot be opened", &e))
}

pub(crate) fn unreadable(error: &StoreError) -> Failure {
    Failure::failed("the history cannot be read", error)
}

/// Returns the whole ID with the prefix `id`.
pub(crate) fn whole_id(store: &Store, id: &str) -> Result<String, Failure> {
    store.whole_id(id).map_err(|e| match e {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => no_such_run(&e),
        other => unreadable(&other),
    })
}

pub(crate) fn get(store: &Store, id: &str) -> Result<Stored, Failure> {
    store.get(id).map_err(|e| match e {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => no_such_run(&e),
        other => unreadable(&other),
    })
}

fn no_such_run(error: &StoreError) -> Failure {
    Failure::refused_by(error, Some("`trueio history` lists all runs"))
}

/// Returns the prefix of an ID that lists print.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// The longest document that is read, in bytes: a record with rows of a day has some hundred MiB.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Reads a text that the user names; `-` is standard input.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    trueio_files::read_text(path, DOCUMENT_BYTES_MAX)
        .map_err(|e| Failure::refused(error_chain(&format!("`{}` cannot be read", path.display()), Some(&e))))
}

/// Returns true if a name leads to a text rather than to a run of the history: also to a pipe or a device, which [`text`] reads or refuses.
pub(crate) fn is_text(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|found| !found.is_dir())
}

/// Parses the text of a record, or of its page, that was read under a name.
pub(crate) fn parsed(name: &str, text: &str) -> Result<RunRecord, Failure> {
    match parsed_document(name, text)? {
        trueio_report::Document::Record(record) => Ok(*record),
        _ => Err(Failure::refused(format!("`{name}` is not a record of a run"))),
    }
}

/// Reads a record by its file or its ID.
pub(crate) fn find(name: &str) -> Result<RunRecord, Failure> {
    if is_text(name) {
        return parsed(name, &text(Path::new(name))?);
    }
    match document(&get(&store()?, name)?)? {
        Document::Record(record) => Ok(*record),
        Document::Powercut(_) => Err(Failure::refused(format!(
            "`{name}` is a record of cuts of power, not of a run\n\nhint: `trueio report {name}` prints it"
        ))),
        Document::Fio(_) => Err(Failure::refused(format!(
            "`{name}` is a result of fio, not a record: there is no evidence to report\n\nhint: `trueio history show \
             {name}` prints its figures"
        ))),
    }
}

/// Reads a document of any kind by its file, or a record by its ID.
pub(crate) fn find_document(name: &str) -> Result<trueio_report::Document, Failure> {
    if !is_text(name) {
        let stored = get(&store()?, name)?;
        if stored.entry.source == Source::Powercut {
            return parsed_document(name, &stored.json);
        }
        return find(name).map(|record| trueio_report::Document::Record(Box::new(record)));
    }
    parsed_document(name, &text(Path::new(name))?)
}

fn parsed_document(name: &str, text: &str) -> Result<trueio_report::Document, Failure> {
    trueio_report::Document::parse(text).map_err(|e| {
        let kind = match &e {
            DocumentError::Record(_) => "record",
            DocumentError::Page(_) => "page",
            DocumentError::Comparison(_) => "comparison",
            DocumentError::Study(_) => "study",
            DocumentError::Trend(_) => "trend",
            DocumentError::Powercut(_) => "record of cuts of power",
        };
        Failure::refused(error_chain(&format!("`{name}` is not a valid {kind}"), Some(&e)))
    })
}

/// Where a run was: on a device that can be recognised, or at a path of a machine.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// The device has an identity.
    Device(DeviceIdentity),
    /// It has none: the file system, or the path of a target without one, and the machine.
    Path { path: String, machine: Machine },
}

/// What distinguishes a machine from others in records: the processor and the memory.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    cpu: Option<String>,
    memory_bytes: Option<u64>,
}

impl Machine {
    fn of(environment: &Environment) -> Self {
        Self { cpu: environment.cpu.model.value.clone(), memory_bytes: environment.memory_bytes.value }
    }

    /// Returns true if it may be the same. Another kernel reports slightly different memory.
    fn is(&self, other: &Self) -> bool {
        let near = |a: u64, b: u64| a.abs_diff(b) <= a.max(b) / 32;
        self.cpu == other.cpu
            && match (self.memory_bytes, other.memory_bytes) {
                (Some(a), Some(b)) => near(a, b),
                (None, None) => true,
                _ => false,
            }
    }
}

impl Place {
    /// Returns the place of a target.
    pub(crate) fn of(target: &TargetFacts, environment: &Environment) -> Self {
        let identity = DeviceIdentity::of(target);
        if !identity.is_empty() {
            return Self::Device(identity);
        }
        // Files have other names in each run.
        let of_filesystem = |fs: &FilesystemFacts| format!("{} on {}", fs.kind, fs.mount_point);
        let path = target.filesystem.as_ref().map_or_else(|| target.path.clone(), of_filesystem);
        Self::Path { path, machine: Machine::of(environment) }
    }

    /// Returns the place of a record on one target; `None` of several.
    pub(crate) fn of_record(record: &RunRecord) -> Option<Self> {
        let [target] = record.targets.as_slice() else { return None };
        Some(Self::of(target, &record.environment))
    }

    /// Returns true if a record was measured there.
    pub(crate) fn is_of(&self, record: &RunRecord) -> bool {
        match (self, Self::of_record(record)) {
            (Self::Device(here), Some(Self::Device(there))) => matches!(here.compare(&there), Sameness::Same(_)),
            (Self::Path { path, machine }, Some(Self::Path { path: other, machine: of })) => {
                *path == other && machine.is(&of)
            }
            _ => false,
        }
    }

    /// Returns how runs are recognised if the device has no identity: `by path and machine: ext4 on /mnt`.
    pub(crate) fn by_path(&self) -> Option<String> {
        match self {
            Self::Device(_) => None,
            Self::Path { path, .. } => Some(format!("by path and machine, because the device has no identity: {path}")),
        }
    }
}

/// Returns the place of the targets of a plan; `None` if they are on several, or on none.
pub(crate) fn place_of(plan: &Plan) -> Option<Place> {
    let system = System::live();
    let facts = |path: &str| {
        let path = Path::new(path);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        target_facts_unasked(&system, if path.exists() { path } else { parent }).ok()
    };
    let jobs = plan.jobs.iter().filter(|job| job.engine.touches_files());
    let mut paths = jobs.flat_map(|job| &job.files).map(|file| file.path.as_str());
    let first = facts(paths.next()?)?;
    Some(Place::of(&first, &environment(&system)))
}

/// At most this many earlier runs of a device form the range of its figures.
const PAST_MAX: usize = 20;

/// At most this many runs are searched for those at a path.
const SEARCHED_MAX: usize = 200;

/// Returns the figures of earlier runs on the device of a record, as far as the history is readable: a report does not
/// fail because of it.
pub(crate) fn past_runs(record: &RunRecord) -> Vec<PastRun> {
    if trueio_report::class_values(record).is_empty() {
        return Vec::new();
    }
    let read = || -> Result<Vec<PastRun>, StoreError> {
        let store = Store::open_existing(&trueio_store::default_directory()?)?;
        let Some(place) = Place::of_record(record) else { return Ok(Vec::new()) };
        // The history knows a device by its number; runs at a path are found by their records.
        let device = match &place {
            Place::Device(identity) => match store.device_of(identity)? {
                Some(device) => Some(device.id),
                None => return Ok(Vec::new()),
            },
            Place::Path { .. } => None,
        };
        let limit = if device.is_some() { PAST_MAX } else { SEARCHED_MAX };
        let filter = Filter { device, limit: Some(limit), ..Filter::default() };
        let mut past = Vec::new();
        for entry in store.list(&filter)? {
            let is_earlier = entry.started_unix_s < record.started_unix_s;
            let may_be = device.is_some() || entry.devices.is_empty();
            if !is_earlier || !may_be || entry.source != Source::Trueio || entry.outcome != "complete" {
                continue;
            }
            if let Ok(earlier) = trueio_report::parse(&store.get(&entry.id)?.json)
                && (device.is_some() || place.is_of(&earlier))
            {
                past.push(PastRun::of(&earlier));
            }
            if past.len() == PAST_MAX {
                break;
            }
        }
        Ok(past)
    };
    read().unwrap_or_default()
}

/// Stores a record of cuts of power with its text.
pub(crate) fn keep_powercut(record: &PowercutRecord, json: &str) -> Result<(), StoreError> {
    Store::open(&trueio_store::default_directory()?)?.insert_powercut(record, json)
}

/// Returns what earlier cuts of power show of the device of targets, as far as the history is readable; `None` of several devices.
pub(crate) fn power_loss(targets: &[TargetFacts]) -> Option<Box<PowerLoss>> {
    let read = || -> Result<Option<PowerLoss>, StoreError> {
        power_loss_in(&Store::open_existing(&trueio_store::default_directory()?)?, targets)
    };
    read().ok().flatten().map(Box::new)
}

fn power_loss_in(store: &Store, targets: &[TargetFacts]) -> Result<Option<PowerLoss>, StoreError> {
    let [first, others @ ..] = targets else { return Ok(None) };
    let identity = DeviceIdentity::of(first);
    if others.iter().any(|other| DeviceIdentity::of(other) != identity) {
        return Ok(None);
    }
    let Some(device) = store.device_of(&identity)? else { return Ok(None) };
    let kind = Some("powercut".to_owned());
    let filter = Filter { device: Some(device.id), kind, limit: Some(SEARCHED_MAX), ..Filter::default() };
    let mut records = Vec::new();
    for entry in store.list(&filter)?.into_iter().filter(|entry| entry.source == Source::Powercut) {
        records.extend(trueio_report::parse_powercut(&store.get(&entry.id)?.json));
    }
    Ok(PowerLoss::of_device(first, &records))
}

/// Reads the stored record of a run.
pub(crate) enum Document {
    Record(Box<RunRecord>),
    Fio(ForeignRun),
    Powercut(Box<PowercutRecord>),
}

pub(crate) fn document(stored: &Stored) -> Result<Document, Failure> {
    let refused = |error: &(dyn std::error::Error + 'static)| {
        let what = format!("the history's record {} cannot be read", short(&stored.entry.id));
        Failure::refused(error_chain(&what, Some(error)))
    };
    match stored.entry.source {
        Source::Trueio => {
            trueio_report::parse(&stored.json).map(|r| Document::Record(Box::new(r))).map_err(|e| refused(&e))
        }
        Source::Powercut => trueio_report::parse_powercut(&stored.json)
            .map(|record| Document::Powercut(Box::new(record)))
            .map_err(|e| refused(&e)),
        Source::Fio => trueio_fio::results::parse(&stored.json).map(Document::Fio).map_err(|e| refused(&e)),
    }
}
