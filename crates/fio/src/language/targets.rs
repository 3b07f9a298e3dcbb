//! What exists, held against what fio's language says about it.
//!
//! fio writes to whatever a job names. We write to what exists only if it is named for that
//! (`overwrite_existing`), and a job of fio's that writes has named its files by `filename`, or by
//! its own name, in the words that its author knows: so they are entered there. All other rules
//! stay: what is mounted or used otherwise, or a device with a signature that was not named
//! (`overwrite_signature`), is not written; a file that is too small is not destroyed to be read.

use super::lower::{preset, writes};
use super::{FioError, FioProblem, Settings};
use trueio_job::facts::{FactsSource, Target};
use trueio_job::plan::{directory_of, join_path, logs_of, replay_of};
use trueio_job::table::row;
use trueio_job::value::{Extent, Value, ValueKind, write_bytes, write_paths};
use trueio_model::{EngineKind, JobSpec, LogKind, OpKind, Origin, SpecValue, TargetKind};

/// Looks at the targets of jobs that were read from fio's language, and enters what follows.
///
/// # Errors
/// Jobs that `--readonly` or `allow_file_create=0` forbids.
pub fn meet_targets(jobs: &mut [JobSpec], facts: &dyn FactsSource, settings: &Settings) -> Result<(), FioError> {
    let mut problems = Vec::new();
    for spec in jobs {
        let Some(fio) = &spec.fio else { continue };
        let is_offline = spec.options.get("verify_only").is_some_and(|only| only.text == "true");
        let engine = spec.options.get("ioengine").map_or("", |engine| engine.text.as_str());
        let kind = EngineKind::ALL.into_iter().find(|kind| kind.name() == engine);
        if !kind.is_none_or(|kind| kind.opens_files() || kind.works_on_names()) {
            continue;
        }
        let is_changing = kind.is_some_and(|kind| kind == EngineKind::Falloc || kind.works_on_names());
        // The files of a log are those that its job names, for whoever wrote the one chose the other.
        let replayed = replay_of(spec).and_then(|(log, settings)| facts.iolog(&log, &settings).ok());
        let is_writing = match &replayed {
            Some(log) => log.of(OpKind::Write).count + log.of(OpKind::Trim).count > 0,
            None if spec.options.contains_key("read_iolog") => continue,
            None => (writes(spec) && !is_offline) || is_changing,
        };
        if settings.is_readonly && is_writing {
            let rw = spec.options.get("rw").map_or("read", |rw| rw.text.as_str());
            problems.push(FioProblem {
                message: match replayed {
                    None => format!("job `{}` would write or trim (`rw={rw}`), and `--readonly` forbids it", fio.name),
                    Some(_) => format!("the log of job `{}` writes or trims, and `--readonly` forbids it", fio.name),
                },
                place: None,
                hint: Some("leave out `--readonly`, or run jobs that read".to_owned()),
            });
            continue;
        }
        // A job that is called like a device uses the device.
        if replayed.is_none()
            && fio.said("filename").is_none()
            && fio.name.contains('/')
            && let Target::Present(device) = facts.look(&fio.name)
            && matches!(device.kind, TargetKind::BlockDevice | TargetKind::CharacterDevice)
        {
            let path = write_paths(std::slice::from_ref(&fio.name));
            spec.options.remove("directory");
            spec.set("filename", path, preset());
        }
        problems.extend(other_scheduler(spec, facts));
        let forbids_files = settings.is_readonly
            || spec.fio.as_ref().is_some_and(|fio| fio.said("allow_file_create").is_some_and(|word| word.text == "0"));
        clip(spec, facts);
        let may_grow = !is_changing || (kind == Some(EngineKind::Falloc) && writes(spec));
        if replayed.is_none() && !settings.is_readonly && may_grow && !is_offline {
            grow(spec, facts, is_writing);
        }
        if !is_writing && !forbids_files {
            continue;
        }
        let mut existing = Vec::new();
        let paths = match &replayed {
            Some(log) => in_directory(spec, log.files.iter().map(|(name, _)| name)),
            None => paths(spec),
        };
        for path in paths {
            match facts.look(&path) {
                Target::Present(found) if matches!(found.kind, TargetKind::File | TargetKind::BlockDevice) => {
                    existing.push(path);
                }
                Target::Missing if forbids_files => {
                    let why = if settings.is_readonly { "--readonly" } else { "allow_file_create=0" };
                    let message = format!("`{path}` does not exist, and `{why}` forbids to make it");
                    problems.push(FioProblem { message, place: None, hint: None });
                }
                _ => {}
            }
        }
        if is_writing && !existing.is_empty() && !spec.options.contains_key("overwrite_existing") {
            let reason = "a job of fio's names what it writes to".to_owned();
            spec.set("overwrite_existing", write_paths(&existing), Origin::Derived { reason });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(FioError { problems }) }
}

/// The names of the logs of jobs that were read from fio's language, all of one run: each job has one worker.
pub fn log_files(jobs: &[JobSpec]) -> Vec<String> {
    let of_job = |(number, spec): (u32, &JobSpec)| {
        let logs = logs_of(spec)?;
        Some(LogKind::ALL.into_iter().filter_map(move |kind| logs.file(kind, number)))
    };
    (1..).zip(jobs).filter_map(of_job).flatten().collect()
}

/// A disk under the job that has another scheduler than `ioscheduler` names. fio changes it and never puts it back.
fn other_scheduler(spec: &JobSpec, facts: &dyn FactsSource) -> Option<FioProblem> {
    let wanted = spec.fio.as_ref()?.said("ioscheduler").filter(|word| !word.text.is_empty())?;
    let wanted = wanted.text.as_str();
    let mut disks = Vec::new();
    for path in paths(spec) {
        // Of a file that will be made, those of the nearest directory.
        let mut place = path.as_str();
        let found = loop {
            match facts.look(place) {
                Target::Present(found) => break Some(found),
                Target::Missing if !["/", "."].contains(&place) => place = directory_of(place),
                _ => break None,
            }
        };
        disks.extend(found.into_iter().flat_map(|found| found.disks));
    }
    let refused = |reason: String, hint: String| {
        let message = format!("`ioscheduler={wanted}` is not kept: {reason}");
        Some(FioProblem { message, place: None, hint: Some(hint) })
    };
    if disks.is_empty() {
        return refused("no disk is seen under the job".to_owned(), "leave it out".to_owned());
    }
    let other = disks.iter().find(|disk| disk.scheduler.value.as_deref() != Some(wanted))?;
    let (name, file) = (&other.name, format!("/sys/block/{}/queue/scheduler", other.name.replace('/', "!")));
    let (has, back) = match &other.scheduler.value {
        Some(has) => (format!("has `{has}`"), format!(", and `echo {has} > {file}` after it")),
        None => ("does not say which it has".to_owned(), String::new()),
    };
    refused(
        format!("the disk `{name}` {has}, and this program changes no machine that it measures"),
        format!("say `echo {wanted} > {file}` before the run{back}"),
    )
}

/// Lets a clone that begins later by `offset_increment` end at the end of what is there, and transfer as much as
/// it was told to: fio would make the file longer, or read past the end of a device.
fn clip(spec: &mut JobSpec, facts: &dyn FactsSource) {
    let is_later = spec.fio.as_ref().is_some_and(|fio| fio.clone > 0 && fio.said("offset_increment").is_some());
    let extent = |name: &str| {
        let value = spec.options.get(name)?;
        match ValueKind::Extent.read(&value.text) {
            Ok(Value::Extent(extent)) => Some((extent, value.clone())),
            _ => None,
        }
    };
    let [path] = &paths(spec)[..] else { return };
    let (true, Some((offset, _)), Some((size, said))) = (is_later, extent("offset"), extent("size")) else { return };
    let clipped = match (offset, size) {
        (Extent::Percent(offset), Extent::Percent(size)) if offset + size > 100 => format!("{}%", 100 - offset),
        (Extent::Bytes(offset), Extent::Bytes(size)) => {
            let Target::Present(found) = facts.look(path) else { return };
            match found.size_bytes.value {
                Some(there) if offset < there && there - offset < size => write_bytes(there - offset),
                _ => return,
            }
        }
        _ => return,
    };
    let reason = "`offset_increment` begins here, and the target ends there".to_owned();
    spec.options.insert("size".to_owned(), SpecValue { text: clipped, origin: Origin::Derived { reason } });
    if matches!(size, Extent::Bytes(_)) {
        let reason = format!("the `size` that was said ({})", said.origin);
        let io_size = SpecValue { text: said.text, origin: Origin::Derived { reason } };
        spec.options.entry("io_size".to_owned()).or_insert(io_size);
    }
}

/// Lets files be made longer that are too short for their job, as fio does: if the job writes, or if they hold nothing.
fn grow(spec: &mut JobSpec, facts: &dyn FactsSource, is_writing: bool) {
    let bytes = |name: &str| match spec.options.get(name).map(|value| ValueKind::Extent.read(&value.text)) {
        Some(Ok(Value::Extent(Extent::Bytes(bytes)))) => bytes,
        _ => 0,
    };
    let most = match spec.options.get("filesize").and_then(|said| row("filesize")?.kind.read(&said.text).ok()) {
        Some(Value::Range(_, most)) => most,
        _ => bytes("size"),
    };
    let is_on = |name: &str| spec.options.get(name).is_some_and(|value| value.text == "true");
    let is_endless = is_on("file_append") || (is_on("fill_device") && most == 0);
    let end = if is_endless { u64::MAX } else { most.saturating_add(bytes("offset")) };
    let is_short = |path: &String| match facts.look(path) {
        Target::Present(found) if found.kind == TargetKind::File => {
            found.size_bytes.value.is_some_and(|there| there < end && (is_writing || there == 0))
        }
        _ => false,
    };
    let short: Vec<String> = paths(spec).into_iter().filter(is_short).collect();
    if !short.is_empty() && !spec.options.contains_key("extend_existing") {
        let reason = match is_writing {
            true => "a job of fio's makes a file longer that is too short to be written".to_owned(),
            false => "a job of fio's makes a file longer that is empty".to_owned(),
        };
        spec.set("extend_existing", write_paths(&short), Origin::Derived { reason });
    }
}

/// The paths of a job, as the plan will open them.
fn paths(spec: &JobSpec) -> Vec<String> {
    in_directory(spec, &read_paths(spec, "filename", ValueKind::Paths))
}

fn read_paths(spec: &JobSpec, name: &str, kind: ValueKind) -> Vec<String> {
    match spec.options.get(name).map(|value| kind.read(&value.text)) {
        Some(Ok(Value::Paths(paths))) => paths,
        _ => Vec::new(),
    }
}

/// Names in the job's directory.
fn in_directory<'a>(spec: &JobSpec, names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let directory = read_paths(spec, "directory", ValueKind::Path).into_iter().next();
    names.into_iter().map(|name| join_path(directory.as_deref(), name)).collect()
}
