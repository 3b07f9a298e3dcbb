//! The existing targets of jobs in fio's language.
//!
//! fio writes to any file that a job names. This program writes to an existing file only if `overwrite_existing` names it. A
//! fio job that writes names its files by `filename` or by its own name, so these are added to `overwrite_existing`. All other
//! rules apply: a target that is mounted or otherwise in use, or a device with a signature that `overwrite_signature` does not
//! name, is not written, and a file that is too small is not rewritten in order to read it.

use super::clones::once_each;
use super::in_memory;
use super::lowering::{preset, writes};
use super::refusals::Refused;
use super::rules::block_sizes;
use super::{FioError, FioProblem, Settings};
use std::collections::BTreeMap;
use trueio_job::facts::{Content, FactsSource, Target};
use trueio_job::options::content::rows::{VERIFY_ONLY, VERIFY_STATE_FILE, VERIFY_STATE_SAVE};
use trueio_job::options::durability::rows::DIRECT;
use trueio_job::options::engine::rows::{HIPRI, HIPRI_PERCENTAGE, IOENGINE};
use trueio_job::options::limits::rows::{FILL_DEVICE, IO_SIZE};
use trueio_job::options::pattern::rows::{Direction, RW, RWMIXREAD, RWMIXWRITE, SEQUENTIAL_SKIP, ZONEMODE, ZoneMode};
use trueio_job::options::process::rows::UID;
use trueio_job::options::target::rows::{FILE_APPEND, FILESIZE, OFFSET_INCREMENT, REGION_NUMBER, SIZE};
use trueio_job::plan::{directory_of, join_path, logs_of, replay_of};
use trueio_job::table::row;
use trueio_job::value::{Extent, Value, ValueKind, write_bytes, write_paths};
use trueio_model::{
    BlockSizes, DirectPolicy, DiskFacts, EngineKind, FioWord, JobSpec, LogKind, OpKind, Origin, TargetKind, switch_of,
};

/// Looks up the targets of jobs in fio's language, and sets the options that depend on them. Returns notes.
///
/// # Errors
/// Jobs that `--readonly`, `allow_file_create=0` or `create_on_open=1` forbids.
pub fn meet_targets(
    jobs: &mut [JobSpec],
    facts: &dyn FactsSource,
    settings: &Settings,
) -> Result<Vec<String>, FioError> {
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    // The missing files of all jobs, by what forbids their creation.
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for spec in jobs {
        let of_job = [
            name_devices(spec, facts),
            without_empty_files(spec, facts, settings),
            await_filled(spec, facts),
            without_state(spec, facts),
            without_polling(spec, facts),
            in_memory::without_direct(spec, facts),
        ];
        let Some(fio) = &spec.fio else { continue };
        notes.extend(of_job.into_iter().flatten().map(|note| format!("job `{}`: {note}", fio.name)));
        let is_offline = VERIFY_ONLY.value_in(spec);
        let kind = IOENGINE.value_in(spec);
        if settings.is_readonly && writes(spec) && !is_offline && !spec.options.contains_key("read_iolog") {
            let rw = fio.word("rw").map_or_else(|| "rw".to_owned(), as_typed);
            let message = format!("job `{}` would write or trim (`{rw}`), and `--readonly` forbids it", fio.name);
            let kind = Refused::Readonly;
            problems.push(FioProblem { kind, message, position: None, hint: kind.hint() });
            continue;
        }
        if !kind.is_none_or(|kind| kind.opens_files() || kind.works_on_names()) {
            continue;
        }
        let is_changing = kind.is_some_and(|kind| kind == EngineKind::Falloc || kind.works_on_names());
        // A job names the files of its log: the author of the job chose the log.
        let replayed = replay_of(spec).and_then(|(log, settings)| facts.iolog(&log, &settings).ok());
        let is_writing = match &replayed {
            Some(log) => log.of(OpKind::Write).count + log.of(OpKind::Trim).count > 0,
            None if spec.options.contains_key("read_iolog") => continue,
            None => (writes(spec) && !is_offline) || is_changing,
        };
        if settings.is_readonly && is_writing {
            let kind = Refused::Readonly;
            problems.push(FioProblem {
                kind,
                message: format!("job `{}` changes files, and `--readonly` forbids it", fio.name),
                position: None,
                hint: kind.hint(),
            });
            continue;
        }
        if replayed.is_none() {
            take_device_of_name(spec, facts);
        }
        problems.extend(other_scheduler(spec, facts));
        let forbids_files = forbidding(spec, settings);
        let may_grow = !is_changing || kind == Some(EngineKind::Falloc);
        if replayed.is_none() && !settings.is_readonly && may_grow && !is_offline {
            grow(spec, facts, is_writing && (!is_changing || writes(spec)));
        }
        if replayed.is_none() {
            pass_over_zones_again(spec, facts);
        }
        if replayed.is_none() && !is_changing {
            complete_last_block(spec, facts);
        }
        if !is_writing && forbids_files.is_none() {
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
                Target::Missing if let Some(why) = &forbids_files => {
                    missing.entry(why.clone()).or_default().push(path);
                }
                _ => {}
            }
        }
        if is_writing && replayed.is_none() && has_generated_names(spec) {
            problems.extend(existing.iter().find_map(|path| of_another_user(spec, path, facts)));
        }
        if is_writing && !existing.is_empty() && !spec.options.contains_key("overwrite_existing") {
            let reason = "a job in fio's language names the files that it writes".to_owned();
            spec.set("overwrite_existing", write_paths(&existing), Origin::Derived { reason });
        }
    }
    problems.extend(missing.into_iter().map(|(why, paths)| forbidden(&why, &paths)));
    if problems.is_empty() { Ok(notes) } else { Err(FioError { problems }) }
}

/// Whether the job names none of its files, so that fio's language makes their names.
fn has_generated_names(spec: &JobSpec) -> bool {
    spec.fio.as_ref().is_some_and(|fio| fio.word("filename").or(fio.word("opendir")).is_none())
}

/// Returns a problem if a file belongs to a user who is neither root, nor the one of the program or the job.
fn of_another_user(spec: &JobSpec, path: &str, facts: &dyn FactsSource) -> Option<FioProblem> {
    let owner = facts.other_owner(path).filter(|owner| UID.value_in(spec) != Some(*owner))?;
    let message = format!(
        "`{path}` belongs to another user (UID {owner}), and the job, which does not name it, would write to it"
    );
    let kind = Refused::OtherOwner;
    Some(FioProblem { kind, message, position: None, hint: kind.hint() })
}

/// Lets a job with the name of a device use the device; `name` of a section in a file is no such name.
fn take_device_of_name(spec: &mut JobSpec, facts: &dyn FactsSource) {
    let Some(fio) = &spec.fio else { return };
    let is_renamed = !fio.is_from_command_line && fio.word("name").is_some();
    if !is_renamed
        && fio.word("filename").is_none()
        && fio.name.contains('/')
        && let Target::Present(device) = facts.look(&fio.name)
        && matches!(device.kind, TargetKind::BlockDevice | TargetKind::CharacterDevice)
    {
        let path = write_paths(std::slice::from_ref(&fio.name));
        spec.options.remove("directory");
        spec.set("filename", path, preset());
    }
}

/// Replaces links that only root can change by the names of their devices (`/dev/VG/LV`, `/dev/disk/by-id/ID`). Other links stay, and are
/// not written through. Returns a note if a device has several names.
fn name_devices(spec: &mut JobSpec, facts: &dyn FactsSource) -> Option<String> {
    let given = spec.options.get("filename")?;
    if spec.options.contains_key("directory") || !given.text.contains("/dev/") {
        return None;
    }
    let origin = given.origin.clone();
    let names = read_paths(spec, "filename", ValueKind::Paths);
    let mut named = devices_of(&names, facts);
    if named == names {
        return None;
    }
    let note = once_each(&mut named, spec);
    spec.set("filename", write_paths(&named), origin);
    // Who permits it may have typed the same link.
    if let Some(origin) = spec.options.get("overwrite_existing").map(|given| given.origin.clone()) {
        let permitted = devices_of(&read_paths(spec, "overwrite_existing", ValueKind::Paths), facts);
        spec.set("overwrite_existing", write_paths(&permitted), origin);
    }
    note
}

fn devices_of(names: &[String], facts: &dyn FactsSource) -> Vec<String> {
    names.iter().map(|name| facts.device_of_link(name).unwrap_or_else(|| name.clone())).collect()
}

/// Leaves out named files that have no length, where the job has no size and another of its files has one: fio does no I/O in them. Missing
/// ones only if the job writes (fio creates them empty; a job that just reads, or trims, fails). Returns a note.
fn without_empty_files(spec: &mut JobSpec, facts: &dyn FactsSource, settings: &Settings) -> Option<String> {
    let given = spec.options.get("filename")?;
    let (origin, names) = (given.origin.clone(), read_paths(spec, "filename", ValueKind::Paths));
    // (A size may be zones, too.)
    let has_bytes = spec.options.get(SIZE.name).is_some_and(|size| !size.text.ends_with('%'));
    let has_size = has_bytes || spec.options.contains_key(FILESIZE.name);
    let opens = IOENGINE.value_in(spec).is_some_and(|engine| engine.opens_files() && !engine.works_on_names());
    let is_compared = spec.options.contains_key("read_iolog") || VERIFY_ONLY.value_in(spec);
    if names.len() < 2 || has_size || !opens || is_compared || FILE_APPEND.value_in(spec) || FILL_DEVICE.value_in(spec)
    {
        return None;
    }
    let direction = RW.value_in(spec).direction;
    let may_create =
        matches!(direction, Direction::Write | Direction::ReadWrite) && forbidding(spec, settings).is_none();
    let is_used = |path: &String| match facts.look(path) {
        Target::Missing => !may_create,
        Target::Present(found) => found.kind != TargetKind::File || found.size_bytes.value != Some(0),
        Target::Unreadable(_) => true,
    };
    let has_length = |path: &String| matches!(facts.look(path), Target::Present(_)) && is_used(path);
    let paths = in_directory(spec, names.iter());
    if !paths.iter().any(has_length) {
        return None;
    }
    let (used, unused): (Vec<_>, Vec<_>) = names.into_iter().zip(&paths).partition(|(_, path)| is_used(path));
    let first = unused.first()?.1;
    let files = match unused.len() {
        1 => format!("`{first}` is"),
        count => format!("`{first}` and {} other files are", count - 1),
    };
    let note = format!("{files} not used, as in fio: without `size`, a file that is missing or empty has no length");
    let used: Vec<String> = used.into_iter().map(|(name, _)| name).collect();
    spec.set("filename", write_paths(&used), origin);
    Some(note)
}

/// Waits for the files that a job reads while another program fills them: two runs that share a file may begin at the same time, and
/// the second would read only what is there. Returns a note.
fn await_filled(spec: &JobSpec, facts: &dyn FactsSource) -> Option<String> {
    let reads = matches!(RW.value_in(spec).direction, Direction::Read | Direction::ReadWrite);
    let opens = IOENGINE.value_in(spec).is_some_and(|engine| engine.opens_files() && !engine.works_on_names());
    if !reads || !opens || spec.options.contains_key("read_iolog") {
        return None;
    }
    let paths = paths(spec);
    let (begin, end) = region(spec);
    let end_bytes = match given_bytes(spec, "filesize") {
        0 if end == u64::MAX => return None,
        0 => begin + (end - begin) / paths.len().max(1) as u64,
        of_each => of_each,
    };
    let waited: Vec<&String> = paths.iter().filter(|path| facts.await_filled(path, end_bytes)).collect();
    let others = if waited.len() > 1 { format!(" and {} other files", waited.len() - 1) } else { String::new() };
    waited.first().map(|path| format!("waited while another program filled `{path}`{others}"))
}

/// Returns the problem of files that do not exist and must not be created: one, however many they are.
fn forbidden(why: &str, paths: &[String]) -> FioProblem {
    let message = match paths {
        [path] => format!("`{path}` does not exist, and `{why}` forbids its creation"),
        [path, others @ ..] => {
            let count = others.len();
            let files = if count == 1 { "file" } else { "files" };
            format!("`{path}` and {count} other {files} do not exist, and `{why}` forbids their creation")
        }
        [] => format!("`{why}` forbids the creation of files"),
    };
    FioProblem { kind: Refused::FileMissing, message, position: None, hint: None }
}

/// Drops a state that is saved only by default where its file cannot be written; fio goes on without it, too. Returns a note.
fn without_state(spec: &mut JobSpec, facts: &dyn FactsSource) -> Option<String> {
    let saves = spec.options.get(VERIFY_STATE_SAVE.name)?;
    let is_default = matches!(saves.origin, Origin::Preset { .. });
    let [path] = &read_paths(spec, VERIFY_STATE_FILE.name, ValueKind::Path)[..] else { return None };
    let is_other = || facts.holds_other(path, Content::VerifyState).ok().filter(|other| *other);
    let obstacle = || facts.obstacle(path, false).or(is_other().map(|_| "another file has this name".to_owned()));
    let why = is_default.then(obstacle).flatten()?;
    let note = format!("no verify state is saved: `{path}` cannot be written: {why}");
    spec.options.remove(VERIFY_STATE_SAVE.name);
    Some(note)
}

/// Returns what forbids the creation of a job's files, if anything does.
fn forbidding(spec: &JobSpec, settings: &Settings) -> Option<String> {
    let fio = spec.fio.as_ref()?;
    let is_set = |name, on| fio.word(name).is_some_and(|word| switch_of(&word.text) == Some(on));
    let typed = |name| fio.word(name).map(as_typed);
    let lacks_data = needs_data(spec) && !lays_out(spec);
    match () {
        () if settings.is_readonly => Some("--readonly".to_owned()),
        () if is_set("allow_file_create", false) => typed("allow_file_create"),
        () if lacks_data && is_set("create_on_open", true) => typed("create_on_open"),
        () => None,
    }
}

/// Returns true if a job needs data in its files, or blocks to trim.
pub(super) fn needs_data(spec: &JobSpec) -> bool {
    let just_writes = RW.value_in(spec).direction == Direction::Write;
    !just_writes && IOENGINE.value_in(spec).is_some_and(|engine| !engine.works_on_names())
}

/// Returns true if the files of a job with `create_on_open` that reads are created with data, as without the option. With engines of
/// single calls fio's job fails at its first read of an empty file, and so does any trim; with a queue, and with `vsync`, it succeeds.
pub(super) fn lays_out(spec: &JobSpec) -> bool {
    let reads = matches!(RW.value_in(spec).direction, Direction::Read | Direction::ReadWrite);
    reads && IOENGINE.value_in(spec).is_some_and(|engine| engine.holds_a_queue() || engine == EngineKind::Vsync)
}

/// Returns an option as it was typed: `--rw=read` on the command line, `rw=read` in a job file.
fn as_typed(word: &FioWord) -> String {
    let dashes = if matches!(word.origin, Origin::Flag { .. }) { "--" } else { "" };
    let name = word.spelled.as_deref().unwrap_or(&word.name);
    let equals = if word.text.is_empty() { "" } else { "=" };
    format!("{dashes}{name}{equals}{}", word.text)
}

/// Returns true if a file of the job does not exist, and `allow_file_create=0` forbids its creation.
pub(crate) fn lacks_forbidden_file(spec: &JobSpec, facts: &dyn FactsSource) -> bool {
    let word = spec.fio.as_ref().and_then(|fio| fio.word("allow_file_create"));
    let is_forbidden = word.is_some_and(|word| switch_of(&word.text) == Some(false));
    is_forbidden && paths(spec).iter().any(|path| matches!(facts.look(path), Target::Missing))
}

/// Returns the names of the logs of all jobs of a run in fio's language: each job has one worker.
pub fn log_files(jobs: &[JobSpec]) -> Vec<String> {
    let of_job = |(number, spec): (u32, &JobSpec)| {
        let logs = logs_of(spec)?;
        Some(LogKind::ALL.into_iter().filter_map(move |kind| logs.file(kind, number)))
    };
    (1..).zip(jobs).filter_map(of_job).flatten().collect()
}

/// Returns a problem if a disk of the job has another scheduler than `ioscheduler`. fio changes it and does not restore it.
fn other_scheduler(spec: &JobSpec, facts: &dyn FactsSource) -> Option<FioProblem> {
    let wanted = spec.fio.as_ref()?.word("ioscheduler").filter(|word| !word.text.is_empty())?;
    let option = as_typed(wanted);
    let wanted = wanted.text.as_str();
    let disks = disks(spec, facts);
    let refused = |reason: String, hint: String| {
        let message = format!("`{option}` is not met: {reason}");
        Some(FioProblem { kind: Refused::Scheduler, message, position: None, hint: Some(hint) })
    };
    if disks.is_empty() {
        return refused("the job's disk is unknown".to_owned(), "leave it out".to_owned());
    }
    let other = disks.iter().find(|disk| disk.scheduler.value.as_deref() != Some(wanted))?;
    let (name, file) = (&other.name, format!("/sys/block/{}/queue/scheduler", other.name.replace('/', "!")));
    let (has, back) = match &other.scheduler.value {
        Some(has) => (format!("has `{has}`"), format!(", and `echo {has} > {file}` after it")),
        None => ("does not report its scheduler".to_owned(), String::new()),
    };
    refused(
        format!("the disk `{name}` {has}, and this program does not change the machine that it measures"),
        format!("run `echo {wanted} > {file}` before it{back}"),
    )
}

/// Returns the disks of a job's files; of a missing one, those of the nearest directory.
fn disks(spec: &JobSpec, facts: &dyn FactsSource) -> Vec<DiskFacts> {
    let mut disks = Vec::new();
    for path in paths(spec) {
        let mut nearest = path.as_str();
        let found = loop {
            match facts.look(nearest) {
                Target::Present(found) => break Some(found),
                Target::Missing if !["/", "."].contains(&nearest) => nearest = directory_of(nearest),
                _ => break None,
            }
        };
        disks.extend(found.into_iter().flat_map(|found| found.disks));
    }
    disks
}

/// Drops the polling of `pvsync2` where I/O is not direct, or a disk has no queue for it: the kernel ignores the flag there, and fio goes on. Returns a
/// note. (io_uring's first I/O would fail, in fio, too.)
fn without_polling(spec: &mut JobSpec, facts: &dyn FactsSource) -> Option<String> {
    if IOENGINE.value_in(spec) != Some(EngineKind::Pvsync2) || !HIPRI.value_in(spec) {
        return None;
    }
    let why = match DIRECT.value_in(spec) {
        DirectPolicy::Off => "I/O is not direct".to_owned(),
        _ => {
            let disks = disks(spec, facts);
            let disk = disks.iter().find(|disk| disk.limits.can_poll.value == Some(false))?;
            format!("the disk `{}` has no queue that is polled", disk.name)
        }
    };
    spec.options.remove(HIPRI.name);
    spec.options.remove(HIPRI_PERCENTAGE.name);
    Some(format!("`hipri` has no effect: {why}"))
}

/// Permits to extend files that are too short for their job, as fio does: if the job writes, if they are empty, or if they
/// have the names that the job generates, so that an earlier run of it created them.
fn grow(spec: &mut JobSpec, facts: &dyn FactsSource, is_writing: bool) {
    let is_its_own = has_generated_names(spec);
    let may_grow = |path: &String| match facts.look(path) {
        Target::Present(found) if found.kind == TargetKind::File => {
            is_writing || is_its_own || found.size_bytes.value == Some(0)
        }
        _ => false,
    };
    let growing: Vec<String> = paths(spec).into_iter().filter(may_grow).collect();
    if !growing.is_empty() && !spec.options.contains_key("extend_existing") {
        let reason = match (is_writing, is_its_own) {
            (true, _) => "a job in fio's language extends a file that is too short for its writes",
            (false, true) => "a job in fio's language extends the files of the names that it generates",
            (false, false) => "a job in fio's language extends an empty file",
        };
        spec.set("extend_existing", write_paths(&growing), Origin::Derived { reason: reason.to_owned() });
    }
}

/// Completes the last block of a job that reads in order, where its files go on: as in fio, each block begins within the size of
/// its file's region and may end beyond it. A job that writes stays within the region.
fn complete_last_block(spec: &mut JobSpec, facts: &dyn FactsSource) {
    let rw = RW.value_in(spec);
    let read_percent = RWMIXWRITE.value_in(spec).map_or_else(|| RWMIXREAD.value_in(spec), |writes| 100 - writes);
    let only_reads = rw.direction == Direction::Read || (rw.direction == Direction::ReadWrite && read_percent == 100);
    let has_own_end = FILE_APPEND.value_in(spec)
        || spec.options.contains_key("filesize")
        || ZONEMODE.value_in(spec) != ZoneMode::None
        || SEQUENTIAL_SKIP.value_in(spec) != 0;
    let [BlockSizes::Fixed(block), ..] = block_sizes(spec) else { return };
    let (begin, end) = region(spec);
    if !only_reads || rw.is_random || has_own_end || end == u64::MAX {
        return;
    }
    let paths = paths(spec);
    let (size, count) = (end - begin, paths.len().max(1) as u64);
    // (fio refuses a job whose files together are less than a block.)
    if size / count * count < block {
        return;
    }
    let Some(whole) = (size / count).checked_next_multiple_of(block).filter(|whole| *whole > size / count) else {
        return;
    };
    let goes_on = |path: &String| match facts.look(path) {
        Target::Present(found) => found.size_bytes.value.is_some_and(|there| there >= begin.saturating_add(whole)),
        _ => false,
    };
    if !paths.iter().all(goes_on) {
        return;
    }
    let reason = "the last block is read whole, as in fio: the file goes on".to_owned();
    let Some(given) = spec.options.get("size").cloned() else { return };
    spec.set("size", write_bytes(whole * count), Origin::Derived { reason });
    if !spec.options.contains_key("io_size") {
        // (As if it had been typed: then the last I/O is a whole one.)
        spec.set("io_size", given.text, given.origin);
    }
}

/// Lets a job with strided zones transfer its `size` also on a device that is shorter: as in fio, its zones begin again.
fn pass_over_zones_again(spec: &mut JobSpec, facts: &dyn FactsSource) {
    let Some(size) = spec.options.get(SIZE.name).cloned() else { return };
    let (begin, end) = region(spec);
    if ZONEMODE.value_in(spec) != ZoneMode::Strided || spec.options.contains_key(IO_SIZE.name) || end == u64::MAX {
        return;
    }
    let paths = paths(spec);
    let of_each = (end - begin) / paths.len().max(1) as u64;
    let is_shorter = |path: &String| match facts.look(path) {
        Target::Present(found) if found.kind == TargetKind::BlockDevice => {
            found.size_bytes.value.is_some_and(|there| (begin..begin.saturating_add(of_each)).contains(&there))
        }
        _ => false,
    };
    if !paths.is_empty() && paths.iter().all(is_shorter) {
        spec.set(IO_SIZE.name, size.text, size.origin);
    }
}

/// Returns the bytes of a size or an offset; 0 if it is not set, or not in bytes.
fn given_bytes(spec: &JobSpec, name: &str) -> u64 {
    match spec.options.get(name).and_then(|value| row(name)?.kind.read(&value.text).ok()) {
        Some(Value::Extent(Extent::Bytes(bytes))) => bytes,
        Some(Value::Range(low, high)) if low == high => low,
        _ => 0,
    }
}

/// Returns the part of its files that a job uses, from a byte on up to another; all of it, if its size is not set in bytes.
pub(super) fn region(spec: &JobSpec) -> (u64, u64) {
    let is_percent = ["offset", OFFSET_INCREMENT.name, "size"]
        .iter()
        .any(|name| spec.options.get(*name).is_some_and(|value| value.text.contains('%')));
    let shift = given_bytes(spec, OFFSET_INCREMENT.name).saturating_mul(REGION_NUMBER.value_in(spec));
    let (offset, size) = (given_bytes(spec, "offset").saturating_add(shift), given_bytes(spec, "size"));
    if is_percent || size == 0 { (0, u64::MAX) } else { (offset, offset.saturating_add(size)) }
}

/// Returns the paths of a job, as the plan will open them.
pub(crate) fn paths(spec: &JobSpec) -> Vec<String> {
    in_directory(spec, &read_paths(spec, "filename", ValueKind::Paths))
}

/// Returns the directories that a job names: for its files, and for the names of engines on metadata.
pub(crate) fn directories(spec: &JobSpec) -> Vec<String> {
    ["directory", "name_directory"].into_iter().flat_map(|name| read_paths(spec, name, ValueKind::Path)).collect()
}

fn read_paths(spec: &JobSpec, name: &str, kind: ValueKind) -> Vec<String> {
    match spec.options.get(name).map(|value| kind.read(&value.text)) {
        Some(Ok(Value::Paths(paths))) => paths,
        _ => Vec::new(),
    }
}

/// Returns names joined to the job's directory.
fn in_directory<'a>(spec: &JobSpec, names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let directory = read_paths(spec, "directory", ValueKind::Path).into_iter().next();
    names.into_iter().map(|name| join_path(directory.as_deref(), name)).collect()
}
