//! The files of a job: which they are, how they are prepared, and which part of them is used.
//!
//! The rules that protect a user's data:
//! - An existing file or device is used unchanged, and written only if `overwrite_existing` names it.
//! - A file that the run creates has a name that is free when the plan is made, and again when it is created. It is removed
//!   at the end unless `unlink` is false.
//! - A target that is in use, or has a signature that `overwrite_signature` does not name, is not written.

use crate::facts::Target;
use crate::input::{Created, Decisions, JobInput};
use crate::options::limits::rows::{FILL_DEVICE, IO_SIZE};
use crate::options::pattern::rows::{READ_IOLOG, RW};
use crate::options::target::region::{NoRegion, OwnSize, Present, Region, Wanted, region};
use crate::options::target::rows::{
    CREATE_DIRECTORIES, DIRECTORY, EXTEND_EXISTING, FALLOCATE, FILE_APPEND, FILE_SERVICE_TYPE, FILENAME, FILESIZE,
    Fallocate, NRFILES, OFFSET, OFFSET_ALIGN, OFFSET_INCREMENT, OVERWRITE, OVERWRITE_EXISTING, OVERWRITE_SIGNATURE,
    REGION_NUMBER, REGION_RULES, RegionRules, SIZE, UNLINK,
};
use crate::options::target::streams::spread_bytes;
use crate::paths::{directory_of, join_path, plain};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Extent, write_bytes, write_paths};
use crate::values::Values;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::units::format_bytes;
use trueio_model::{Fact, FilePlan, Prepare, TargetFacts, TargetKind, mix64};

/// Default size of a region that no I/O reaches (`null`, `simulated`).
const UNTOUCHED_SIZE_BYTES: u64 = 1 << 30;

/// Size of a file that is written until the filesystem is full: more than any filesystem holds.
const ENDLESS_BYTES: u64 = 1 << 62;

/// Most files of a job.
pub const FILES_MAX: u64 = 65_536;

/// The use of the files.
pub(crate) struct Use {
    pub(crate) writes: bool,
    pub(crate) trims: bool,
    /// A new file must hold data when the job begins: reads and trims of unwritten ranges do no I/O on the disk.
    pub(crate) needs_content: bool,
    /// The job compares what it did not write: a file that ends early lacks data that was to be compared.
    pub(crate) compares_existing: bool,
    /// True if the engine opens them.
    pub(crate) opens_files: bool,
    /// True if the engine moves no data: a new file is created empty.
    pub(crate) moves_no_data: bool,
    /// True if they are written until the filesystem is full.
    pub(crate) fills: bool,
    /// The largest block of the operations used, in bytes.
    pub(crate) block_bytes_max: u64,
    /// The smallest, in bytes.
    pub(crate) block_bytes_min: u64,
    /// The job's seed, for sizes that are drawn.
    pub(crate) seed: u64,
}

/// The existing files that a job may change, and the signatures that were found on them.
pub(crate) struct Named<'a> {
    overwrite: BTreeSet<&'a str>,
    extend: BTreeSet<&'a str>,
    /// The names of signatures, each once.
    pub(crate) carried: Vec<String>,
}

impl<'a> Named<'a> {
    /// Looks up the names once: a job may have tens of thousands of files.
    pub(crate) fn of(values: &'a Values) -> Self {
        let set = |names: Option<&'a [String]>| names.unwrap_or_default().iter().map(String::as_str).collect();
        let (overwrite, extend) = (set(values.get(OVERWRITE_EXISTING)), set(values.get(EXTEND_EXISTING)));
        Self { overwrite, extend, carried: Vec::new() }
    }
}

/// A file of a job, and the facts about it: its own, or those of the directory in which it will be created. `None` if no
/// I/O reaches it.
pub(crate) struct JobFile {
    pub(crate) plan: FilePlan,
    pub(crate) facts: Option<TargetFacts>,
    /// What the file lacks of the region that was asked for, in bytes. It is used again until as much is transferred.
    pub(crate) lacking_bytes: u64,
}

/// The size that a job sets for one of its files.
#[derive(Clone, Copy)]
pub(crate) struct GivenSize {
    /// The number of the job's files, over which `size` is divided.
    pub(crate) file_count: u64,
    /// The size of this file alone: by `filesize`, a log or `fill_device`. `None`: it gets its share of `size`.
    pub(crate) own: Option<OwnSize>,
    /// What the regions of further workers add to it, in bytes.
    pub(crate) spread_bytes: u64,
}

impl GivenSize {
    /// Returns what the job sets about the region of the file.
    fn wanted(self, values: &Values, usage: &Use) -> Wanted {
        let size = values.get(SIZE).map(|size| match size {
            Extent::Bytes(bytes) => Extent::Bytes(bytes / self.file_count),
            Extent::Percent(_) => size,
        });
        Wanted {
            rules: values.get(REGION_RULES),
            offset: values.get(OFFSET),
            offset_increment: values.get(OFFSET_INCREMENT),
            number: values.get(REGION_NUMBER),
            offset_align: values.get(OFFSET_ALIGN),
            size,
            own: self.own,
            spread_bytes: self.spread_bytes,
            block_bytes_min: usage.block_bytes_min,
            block_bytes_max: usage.block_bytes_max,
        }
    }
}

/// Plans the files of a job.
pub(crate) fn plan_files(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    usage: &Use,
) -> Result<Vec<JobFile>, Refusal> {
    let is_named = values.is_set(FILENAME);
    let paths = target_paths(values)?;
    let is_nothing = |extent: Option<Extent>| matches!(extent, Some(Extent::Bytes(0) | Extent::Percent(0)));
    let sizes = [
        (SIZE.row(), is_nothing(values.get(SIZE))),
        (FILESIZE.row(), values.get(FILESIZE).is_some_and(|(low, _)| low == 0)),
        (IO_SIZE.row(), is_nothing(values.get(IO_SIZE))),
    ];
    for (option, is_zero) in sizes {
        if is_zero {
            let rule = Rule::BadValue { option: option.name, reason: "nothing would be transferred".into() };
            return Err(values.refuse(option, rule));
        }
    }
    check_overwrite_names(values, usage, &paths)?;
    if values.get(FILE_APPEND) && values.is_set(OFFSET) {
        let rule = Rule::Contradiction {
            one: values.quote(FILE_APPEND),
            other: values.quote(OFFSET),
            reason: "both set the start of the region",
            case: Case::LeaveOneOut,
        };
        return Err(values.refuse(FILE_APPEND, rule));
    }
    let rules = values.get(REGION_RULES);
    // As in fio, a percentage of what grows until the filesystem is full limits nothing.
    let is_limited = values.get(SIZE).is_some_and(|size| rules == RegionRules::Exact || size.bytes().is_some());
    let is_endless = usage.fills && !is_limited;
    let spread_bytes = spread_bytes(values);
    let mut files = Vec::with_capacity(paths.len());
    let mut named = Named::of(values);
    let mut left_out = None;
    for (index, path) in paths.iter().enumerate() {
        let file_count = paths.len() as u64;
        let own = values.get(FILESIZE).map(|(least, most)| {
            let drawn = draw_size((least, most), usage, index as u64);
            if rules == RegionRules::Fio { OwnSize::File { least, most, drawn } } else { OwnSize::Region(drawn) }
        });
        let own = own.or(is_endless.then_some(OwnSize::Region(ENDLESS_BYTES / file_count)));
        let size = GivenSize { file_count, own, spread_bytes };
        let planned = if usage.opens_files {
            match values.look(path) {
                Target::Unreadable(reason) => {
                    let rule = Rule::TargetUnreadable { path: path.clone(), reason };
                    return Err(values.refuse(FILENAME, rule));
                }
                Target::Present(_) if !is_named => {
                    return Err(values.refuse(DIRECTORY, Rule::GeneratedNameTaken { path: path.clone() }));
                }
                Target::Present(facts) => existing_file(values, decisions, usage, path, *facts, size, &mut named),
                Target::Missing => new_file(values, decisions, usage, path, size),
            }
        } else {
            untouched_file(values, usage, path, size)
        };
        let with_a_block = planned.and_then(|file| {
            let region_bytes = file.plan.size_bytes.saturating_sub(spread_bytes);
            if region_bytes >= usage.block_bytes_max {
                return Ok(file);
            }
            let rule = Rule::BlockBeyondSize { path: path.clone(), block_bytes: usage.block_bytes_max, region_bytes };
            Err(values.refuse(SIZE, rule))
        });
        match with_a_block {
            Ok(file) => files.push(file),
            Err(refusal) if paths.len() > 1 && leaves_out(values, usage, path, &refusal.rule) => {
                left_out.get_or_insert(refusal);
                decisions.note(format!("`{path}` is not used, as in fio: it has no room for a block after the offset"));
            }
            Err(refusal) => return Err(refusal),
        }
    }
    if let Some(refusal) = left_out.filter(|_| files.is_empty()) {
        return Err(refusal);
    }
    if usage.opens_files && (usage.writes || usage.trims) {
        let carried = named.carried;
        let is_missing = |name: &&String| !carried.contains(*name);
        if let Some(name) = values.get(OVERWRITE_SIGNATURE).unwrap_or_default().iter().find(is_missing) {
            let rule = Rule::SignatureNotThere { name: name.clone(), found: carried };
            return Err(values.refuse(OVERWRITE_SIGNATURE, rule));
        }
    } else if values.is_set(OVERWRITE_SIGNATURE) {
        let sentence = format!("{} has no effect: the job writes nothing", values.quote(OVERWRITE_SIGNATURE));
        decisions.note(&sentence);
    }
    derive_file_values(values, decisions, usage, &files, is_named);
    Ok(files)
}

/// Returns true if the device at `path`, which `rule` refuses, is left out of several, as in fio: it has no room for a block after the
/// offset, and the job has a length. (fio makes a file longer.) A job that compares leaves nothing out.
fn leaves_out(values: &JobInput<'_>, usage: &Use, path: &str, rule: &Rule) -> bool {
    let has_length = values.is_set(FILESIZE) || values.get(SIZE).is_some_and(|size| size.bytes().is_some());
    let has_no_room = match rule {
        Rule::SizeBeyondTarget { offset_bytes, target_bytes, .. } => has_length && offset_bytes >= target_bytes,
        rule => matches!(rule, Rule::BlockBeyondSize { .. }),
    };
    let is_device = || matches!(values.look(path), Target::Present(facts) if facts.kind == TargetKind::BlockDevice);
    has_no_room && !usage.compares_existing && values.get(REGION_RULES) == RegionRules::Fio && is_device()
}

/// Returns the paths, as they will be opened.
fn target_paths(values: &JobInput<'_>) -> Result<Vec<String>, Refusal> {
    let directory = values.get(DIRECTORY);
    let join = |name: &str| join_path(directory, name);
    let count = values.get(NRFILES);
    match values.get(FILENAME) {
        Some(_) if values.is_set(NRFILES) => Err(values.refuse(
            NRFILES,
            Rule::Contradiction {
                one: values.quote(NRFILES),
                other: values.quote(FILENAME),
                reason: "`filename` names all files",
                case: Case::FilesAndCount,
            },
        )),
        Some(names) => {
            if let (Some(_), Some(_)) = (directory, names.iter().find(|name| name.starts_with('/'))) {
                return Err(values.refuse(
                    DIRECTORY,
                    Rule::Contradiction {
                        one: values.quote(DIRECTORY),
                        other: values.quote(FILENAME),
                        reason: "the file's path is absolute",
                        case: Case::LeaveOneOut,
                    },
                ));
            }
            if names.len() as u64 > FILES_MAX {
                let reason = format!("a job has at most {FILES_MAX} files");
                return Err(values.refuse(FILENAME, Rule::BadValue { option: FILENAME.name, reason }));
            }
            let paths: Vec<String> = names.iter().map(|name| join(name)).collect();
            let mut seen: BTreeMap<String, &String> = BTreeMap::new();
            for path in &paths {
                if let Some(earlier) = seen.insert(plain(path), path) {
                    let reason = format!("`{earlier}` and `{path}` are one file");
                    return Err(values.refuse(FILENAME, Rule::BadValue { option: FILENAME.name, reason }));
                }
            }
            Ok(paths)
        }
        None if count > FILES_MAX => {
            let reason = format!("a job has at most {FILES_MAX} files");
            Err(values.refuse(NRFILES, Rule::BadValue { option: NRFILES.name, reason }))
        }
        None => Ok((0..count).map(|index| join(&format!("trueio-{}-{index}.dat", values.name_part()))).collect()),
    }
}

/// Refuses a path in `overwrite_existing` that is not an existing target of the job: it may be a typing error, and the
/// target that was meant is unknown.
pub(crate) fn check_overwrite_names(values: &JobInput<'_>, usage: &Use, paths: &[String]) -> Result<(), Refusal> {
    let of_job: BTreeSet<&String> = paths.iter().collect();
    for path in values.get(OVERWRITE_EXISTING).unwrap_or(&[]) {
        if !of_job.contains(path) {
            let rule = Rule::NamedForOverwriteNotUsed { path: path.clone(), targets: paths.to_vec() };
            return Err(values.refuse(OVERWRITE_EXISTING, rule));
        }
        if usage.opens_files && values.look(path) == Target::Missing {
            return Err(values.refuse(OVERWRITE_EXISTING, Rule::NamedForOverwriteMissing { path: path.clone() }));
        }
    }
    Ok(())
}

/// Refuses to write a target that is in use, or a device with a signature that is not named. Adds the names of the
/// signatures to `carried`.
fn check_in_use(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    path: &str,
    kind: TargetKind,
    carried: &mut Vec<String>,
) -> Result<(), Refusal> {
    let is_device = kind == TargetKind::BlockDevice;
    let refuse = |rule: Rule| Err(values.refuse(FILENAME, rule));
    let path = path.to_owned();
    let found = match values.facts.in_use(&path) {
        Ok(found) => found,
        Err(reason) if is_device || values.is_identified(&path) => {
            return refuse(Rule::DeviceNotExamined { path, reason });
        }
        // Facts without identities are of no machine. Its plan is not run.
        Err(_) => return Ok(()),
    };
    if let Some(in_use) = found.uses.into_iter().next() {
        return refuse(Rule::TargetInUse { path, in_use });
    }
    for sentence in found.unseen {
        decisions.note(format!("the users of `{path}` are not all known: {sentence}"));
    }
    let named = values.get(OVERWRITE_SIGNATURE).unwrap_or_default();
    let is_named = found.marks.iter().all(|mark| named.contains(&mark.name));
    for mark in &found.marks {
        if !carried.contains(&mark.name) {
            carried.push(mark.name.clone());
        }
    }
    if !is_named {
        return refuse(Rule::SignatureNotNamed { path, marks: found.marks, named: named.to_vec() });
    }
    Ok(())
}

/// Refuses to write through a symbolic link, which may lead elsewhere when the run opens it.
fn refuse_link(values: &JobInput<'_>, path: &str) -> Result<(), Refusal> {
    match values.link_of(path) {
        Some(target) => Err(values.refuse(FILENAME, Rule::TargetIsLink { path: path.to_owned(), target })),
        None => Ok(()),
    }
}

pub(crate) fn existing_file(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    usage: &Use,
    path: &str,
    facts: TargetFacts,
    size: GivenSize,
    named: &mut Named<'_>,
) -> Result<JobFile, Refusal> {
    let what = match facts.kind {
        TargetKind::File => "a file",
        TargetKind::BlockDevice => "a block device",
        TargetKind::Directory | TargetKind::CharacterDevice => {
            let what = if facts.kind == TargetKind::Directory { "a directory" } else { "a character device" };
            let rule = Rule::WrongKindOfTarget { path: path.to_owned(), what, wanted: "a file or block device" };
            return Err(values.refuse(FILENAME, rule));
        }
    };
    let may_destroy = named.overwrite.contains(path);
    if (usage.writes || usage.trims) && !may_destroy {
        let verb = if usage.trims { "trim" } else { "overwrite" };
        return Err(values.refuse(RW, Rule::ExistingTargetNotNamed { path: path.to_owned(), what, verb }));
    }
    if usage.writes || usage.trims {
        check_in_use(values, decisions, path, facts.kind, &mut named.carried)?;
        refuse_link(values, path)?;
    }
    if usage.trims
        && let Some(filesystem) = &facts.filesystem
        && filesystem.kind.cannot_punch_holes()
    {
        let reason = format!("{} cannot punch holes into files", filesystem.kind);
        return Err(values.refuse(RW, Rule::TrimUnsupported { path: path.to_owned(), reason }));
    }
    // As with new files, several spellings of one path are one file, named by the first.
    let name = values.ledger.name_of(&plain(path), path);
    decisions.spell(plain(path), &name);
    let may_grow = facts.kind == TargetKind::File
        && !(usage.moves_no_data && usage.needs_content && values.get(REGION_RULES) == RegionRules::Exact)
        && named.extend.contains(path);
    let appends = values.get(FILE_APPEND);
    let is_device = facts.kind == TargetKind::BlockDevice;
    if appends && is_device {
        let reason = format!("`{path}` is a block device, and cannot be extended");
        return Err(values.refuse(FILE_APPEND, Rule::BadValue { option: FILE_APPEND.name, reason }));
    }
    // The size of a device does not depend on `fill_device` or a log.
    let own = size.own.filter(|_| !is_device || values.is_set(FILESIZE));
    let wanted = GivenSize { own, ..size }.wanted(values, usage);
    // What earlier jobs of this plan add to it.
    let added = values.ledger.created.get(&name).map_or(0, |grown| grown.length_bytes);
    let Region { offset_bytes, size_bytes, lacking_bytes } =
        region_of_existing(values, path, &facts.size_bytes, &wanted, added, may_grow)?;
    if lacking_bytes > 0 && usage.compares_existing && !is_device {
        let (path, size_bytes) = (path.to_owned(), size_bytes + lacking_bytes);
        let target_bytes = facts.size_bytes.value.unwrap_or(0) + added;
        return Err(values.refuse(
            SIZE,
            Rule::SizeBeyondTarget { path, offset_bytes, size_bytes, target_bytes, filesize_bytes: None },
        ));
    }
    if lacking_bytes > 0 {
        note_shorter(values, decisions, path, is_device, size_bytes);
    }
    let mut plan = FilePlan {
        path: name.clone(),
        prepare: Prepare::UseExisting,
        remove_after: false,
        offset_bytes,
        size_bytes,
        extends_from: None,
    };
    let end_bytes = offset_bytes + size_bytes;
    if let Some(there) = facts.size_bytes.value.filter(|there| *there < end_bytes) {
        if !usage.writes && !usage.trims {
            check_in_use(values, decisions, path, facts.kind, &mut named.carried)?;
            refuse_link(values, path)?;
        }
        plan.extends_from = Some(there);
        plan.prepare = prepare_new(values, usage);
        let filesystem = facts.filesystem.as_ref();
        let grown = Created {
            prepare: plan.prepare,
            extends_from: plan.extends_from,
            remove_after: false,
            length_bytes: end_bytes - there,
            mount_point: filesystem.map_or_else(String::new, |f| f.mount_point.clone()),
            available_bytes: filesystem.and_then(|f| f.available_bytes.value),
        };
        create(values, decisions, &name, grown);
    }
    // A file is used again until what was asked for is transferred; as in fio, a device is not.
    let lacking_bytes = if is_device { 0 } else { lacking_bytes };
    Ok(JobFile { plan, facts: Some(facts), lacking_bytes })
}

/// Returns the region of a target that exists, to which earlier jobs add `added` bytes.
fn region_of_existing(
    values: &Values,
    path: &str,
    size_bytes: &Fact<u64>,
    wanted: &Wanted,
    added: u64,
    may_grow: bool,
) -> Result<Region, Refusal> {
    match size_bytes.value {
        Some(target_bytes) if values.get(FILE_APPEND) => {
            let region = appended_region(values, target_bytes + added, wanted)?;
            if !may_grow {
                let (path, Region { offset_bytes, size_bytes, .. }) = (path.to_owned(), region);
                let rule =
                    Rule::SizeBeyondTarget { path, offset_bytes, size_bytes, target_bytes, filesize_bytes: None };
                return Err(values.refuse(FILE_APPEND, rule));
            }
            Ok(region)
        }
        Some(there) => {
            let added = if wanted.rules == RegionRules::Fio { added } else { 0 };
            let present = Present { size_bytes: there + added, may_grow };
            region(Some(present), wanted).map_err(|why| no_region(values, path, present.size_bytes, why))
        }
        None => match region(None, wanted) {
            Ok(region) if wanted.rules == RegionRules::Exact => Ok(region),
            _ => {
                let rule = Rule::SizeUnknown { path: path.to_owned(), reason: size_bytes.source.clone() };
                Err(values.refuse(SIZE, rule))
            }
        },
    }
}

/// Notes that a region ends with its target.
fn note_shorter(values: &JobInput<'_>, decisions: &mut Decisions, path: &str, is_device: bool, size_bytes: u64) {
    let option = if values.is_set(FILESIZE) { FILESIZE.row() } else { SIZE.row() };
    let given = values.quote(option);
    decisions.note(match is_device {
        true => {
            let left = format_bytes(size_bytes);
            format!(
                "`{path}` ends earlier than {given}: the {left} from the job's offset to its end are used, as in fio"
            )
        }
        false => format!(
            "`{path}` is shorter than {given}: it is read again until as much is transferred, and is not extended"
        ),
    });
}

/// Returns the refusal of a target that has no region.
fn no_region(values: &Values, path: &str, target_bytes: u64, why: NoRegion) -> Refusal {
    let path = path.to_owned();
    match why {
        NoRegion::PercentOfNothing(option) => {
            values.refuse(option, Rule::PercentOfNothing { option: option.name, path })
        }
        NoRegion::SizeMissing => values.refuse(SIZE, Rule::SizeMissing { path }),
        NoRegion::Beyond { option, offset_bytes, size_bytes } => {
            let option = if option.name == SIZE.name && !values.is_set(SIZE) { OFFSET.row() } else { option };
            let filesize_bytes = Some(values.get(FILESIZE).map_or(u64::MAX, |(least, _)| least))
                .filter(|end| option.name == FILESIZE.name && *end <= offset_bytes && offset_bytes < target_bytes);
            let rule = Rule::SizeBeyondTarget { path, offset_bytes, size_bytes, target_bytes, filesize_bytes };
            values.refuse(option, rule)
        }
        NoRegion::TooLarge => {
            let reason = "the region ends beyond 2^63 bytes".into();
            values.refuse(OFFSET, Rule::BadValue { option: OFFSET.name, reason })
        }
    }
}

/// Returns how a new file, or a new part of one, is prepared. Reads of unwritten extents never reach the device, and trims
/// of them do nothing, so a file stays unwritten only for a job that just writes.
fn prepare_new(values: &Values, usage: &Use) -> Prepare {
    // As in fio, `falloc` reads a file that has its data: it allocates what is allocated.
    let reads_laid_out = usage.needs_content && values.get(REGION_RULES) == RegionRules::Fio;
    if (usage.moves_no_data && !reads_laid_out) || usage.fills {
        Prepare::CreateEmpty
    } else if usage.needs_content || values.get(OVERWRITE) {
        Prepare::CreateFilled
    } else {
        match values.get(FALLOCATE) {
            Fallocate::None => Prepare::CreateEmpty,
            Fallocate::Keep => Prepare::CreateReserved,
            Fallocate::Truncate => Prepare::CreateSparse,
            Fallocate::Native => Prepare::CreateAllocated,
        }
    }
}

/// Adds a file, or a part of one, that the run creates.
fn create(values: &JobInput<'_>, decisions: &mut Decisions, path: &str, wanted: Created) {
    if values.ledger.is_promoted(path, &wanted) {
        decisions.note(format!("`{path}` is prepared for this job before an earlier job writes to it"));
    }
    decisions.create(path, wanted);
}

/// Returns the region after the end of a file, which is at `end_bytes` when the job begins.
fn appended_region(values: &Values, end_bytes: u64, wanted: &Wanted) -> Result<Region, Refusal> {
    let size_bytes = match (wanted.own, wanted.size) {
        (Some(OwnSize::Region(bytes) | OwnSize::File { drawn: bytes, .. }), _) | (None, Some(Extent::Bytes(bytes))) => {
            bytes.saturating_add(wanted.spread_bytes)
        }
        _ => {
            let rule = Rule::Incomplete {
                option: values.quote(FILE_APPEND),
                needs: "`size` in bytes: the amount to append",
                case: Case::AppendSize,
            };
            return Err(values.refuse(FILE_APPEND, rule));
        }
    };
    if end_bytes.checked_add(size_bytes).is_none_or(|end| end > i64::MAX as u64) {
        let rule = Rule::BadValue { option: SIZE.name, reason: "the region ends beyond 2^63 bytes".into() };
        return Err(values.refuse(SIZE, rule));
    }
    Ok(Region { offset_bytes: end_bytes, size_bytes, lacking_bytes: 0 })
}

/// Draws the size of a file from a range by its index, in whole blocks where the range contains such a size.
fn draw_size((low, high): (u64, u64), usage: &Use, index: u64) -> u64 {
    if low == high {
        return low;
    }
    let drawn = mix64(mix64(usage.seed ^ 0x6669_6c65_7369_7a65).wrapping_add(index));
    let span = u128::from(high - low) + 1;
    let size = low + ((u128::from(drawn) * span) >> 64) as u64;
    (size - size % usage.block_bytes_max.max(1)).max(low)
}

pub(crate) fn new_file(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    usage: &Use,
    path: &str,
    size: GivenSize,
) -> Result<JobFile, Refusal> {
    let facts = directory_facts(values, decisions, path)?;
    // Several spellings of one path are one file, named by the first.
    let name = values.ledger.name_of(&plain(path), path);
    decisions.spell(plain(path), &name);
    let path = &name;
    // A file that an earlier job of this plan creates has a size.
    let earlier_bytes = values.ledger.created.get(path).map(|created| created.length_bytes);
    let wanted = size.wanted(values, usage);
    let sets_bytes = wanted.own.is_some() || wanted.size.is_some_and(|size| size.bytes().is_some());
    let may_grow = sets_bytes || wanted.rules == RegionRules::Fio;
    let present = earlier_bytes.map(|size_bytes| Present { size_bytes, may_grow });
    let Region { offset_bytes, size_bytes, .. } = match present {
        _ if values.get(FILE_APPEND) => appended_region(values, earlier_bytes.unwrap_or(0), &wanted)?,
        _ => region(present, &wanted).map_err(|why| no_region(values, path, earlier_bytes.unwrap_or(0), why))?,
    };
    let length_bytes = offset_bytes + size_bytes;
    let prepare = prepare_new(values, usage);
    let remove_after = values.get(UNLINK);
    let filesystem = facts.filesystem.as_ref();
    let created = Created {
        prepare,
        extends_from: None,
        remove_after,
        length_bytes,
        mount_point: filesystem.map_or_else(String::new, |f| f.mount_point.clone()),
        available_bytes: filesystem.and_then(|f| f.available_bytes.value),
    };
    create(values, decisions, path, created);
    let plan = FilePlan { path: path.to_owned(), prepare, remove_after, offset_bytes, size_bytes, extends_from: None };
    Ok(JobFile { plan, facts: Some(facts), lacking_bytes: 0 })
}

/// Returns the facts of the directory in which a file will be created; if the run creates that, too, of the nearest existing
/// one.
pub(crate) fn directory_facts(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    path: &str,
) -> Result<TargetFacts, Refusal> {
    let nearest = directory_of(path.trim_end_matches('/'));
    let mut directory = nearest;
    // An I/O log names files only.
    let makes_directories = values.get(CREATE_DIRECTORIES) && !values.is_set(READ_IOLOG);
    let option = if values.is_set(DIRECTORY) { DIRECTORY.row() } else { FILENAME.row() };
    // The directory that `directory` names must exist, in fio, too.
    let is_given = |path| values.get(DIRECTORY).is_some_and(|given| plain(given) == plain(path));
    let facts = loop {
        match values.look(directory) {
            Target::Present(facts) => break *facts,
            Target::Missing if !makes_directories || is_given(directory) || ["/", "."].contains(&directory) => {
                let rule = Rule::DirectoryMissing { path: path.to_owned(), directory: directory.to_owned() };
                return Err(values.refuse(option, rule));
            }
            Target::Missing => {
                match directory.rsplit('/').next() {
                    Some("" | ".") => {}
                    Some("..") => {
                        let reason = "`..` follows a directory that does not exist".to_owned();
                        return Err(values.refuse(option, Rule::CannotCreateHere { path: path.to_owned(), reason }));
                    }
                    _ => {
                        decisions.make_directory(plain(directory));
                    }
                }
                directory = directory_of(directory);
            }
            Target::Unreadable(reason) => {
                let rule = Rule::TargetUnreadable { path: directory.to_owned(), reason };
                return Err(values.refuse(option, rule));
            }
        }
    };
    if facts.kind != TargetKind::Directory {
        let what = match facts.kind {
            TargetKind::File => "a file",
            TargetKind::BlockDevice => "a block device",
            TargetKind::CharacterDevice => "a character device",
            TargetKind::Directory => unreachable!("excluded above"),
        };
        let rule = Rule::WrongKindOfTarget { path: directory.to_owned(), what, wanted: "a directory" };
        return Err(values.refuse(option, rule));
    }
    let refuse = |reason: String| values.refuse(option, Rule::CannotCreateHere { path: path.to_owned(), reason });
    if path.ends_with('/') {
        return Err(refuse("its name ends with a slash, like the name of a directory".into()));
    }
    if let Some(filesystem) = &facts.filesystem {
        // A mistyped `/dev/loop1p1` would become a file in memory, and its figures would pass for a disk's. In a container
        // `/dev` may be a tmpfs.
        let is_dev = filesystem.mount_point == "/dev";
        if is_dev || filesystem.kind.is_kernel_interface() {
            return Err(refuse(match is_dev {
                true => "/dev is not for files; is the device's name mistyped?".to_owned(),
                false => format!("`{}` is not for files", filesystem.mount_point),
            }));
        }
        if filesystem.options.split(',').any(|option| option.trim() == "ro") {
            return Err(refuse(format!("`{}` is mounted read-only", filesystem.mount_point)));
        }
    }
    Ok(facts)
}

/// Plans a file that no I/O reaches. Percentages are of a size that any job fits into.
pub(crate) fn untouched_file(
    values: &JobInput<'_>,
    usage: &Use,
    path: &str,
    size: GivenSize,
) -> Result<JobFile, Refusal> {
    let is_set = size.own.is_some() || values.get(SIZE).is_some();
    let wanted = size.wanted(values, usage);
    let wanted = if is_set { wanted } else { Wanted { own: Some(OwnSize::Region(UNTOUCHED_SIZE_BYTES)), ..wanted } };
    let present = Present { size_bytes: UNTOUCHED_SIZE_BYTES, may_grow: true };
    let Region { offset_bytes, size_bytes, .. } =
        region(Some(present), &wanted).map_err(|why| no_region(values, path, UNTOUCHED_SIZE_BYTES, why))?;
    let plan = FilePlan {
        path: path.to_owned(),
        prepare: Prepare::Nothing,
        remove_after: false,
        offset_bytes,
        size_bytes,
        extends_from: None,
    };
    Ok(JobFile { plan, facts: None, lacking_bytes: 0 })
}

/// Derives the values of options about files, and notes those without effect.
fn derive_file_values(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    usage: &Use,
    files: &[JobFile],
    is_named: bool,
) {
    if !is_named {
        let names: Vec<String> = files.iter().map(|file| file.plan.path.clone()).collect();
        decisions.derive(FILENAME, write_paths(&names), "the job creates its own files");
        if !values.is_set(DIRECTORY) {
            decisions.derive(DIRECTORY, ".", "the current directory");
        }
    }
    if values.get(FILE_APPEND) {
        match files {
            _ if !usage.opens_files => {
                let sentence = format!("{} has no effect: no file is used", values.quote(FILE_APPEND));
                decisions.note(&sentence);
            }
            [file] => decisions.derive(OFFSET, write_bytes(file.plan.offset_bytes), "the end of the file"),
            _ => decisions.derive(OFFSET, "", "the end of each file"),
        }
    }
    if usage.fills
        && files.iter().all(|file| matches!(&file.facts, Some(facts) if facts.kind == TargetKind::BlockDevice))
    {
        let sentence = format!("{} has no effect: the size of a device is fixed", values.quote(FILL_DEVICE));
        decisions.note(&sentence);
    }
    let total: u64 = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
    if !values.is_set(SIZE) && values.get(SIZE).is_none() {
        let reason = if usage.fills && !values.is_set(FILESIZE) {
            "as much as the filesystem has free: `fill_device` ends the job"
        } else if values.is_set(FILESIZE) {
            "`filesize` times the number of files"
        } else if !usage.opens_files {
            "no file is used, so any size will do"
        } else {
            "the whole of the files from `offset` on"
        };
        decisions.derive(SIZE, write_bytes(total), reason);
    }
    if !files.iter().any(|file| file.plan.extends_from.is_some()) && values.is_explicit(EXTEND_EXISTING) {
        let sentence = format!("{} has no effect: no file is too short", values.quote(EXTEND_EXISTING));
        decisions.note(&sentence);
    }
    let has_new = files.iter().any(|file| !matches!(file.plan.prepare, Prepare::UseExisting | Prepare::Nothing));
    if !has_new {
        for name in [OVERWRITE.row(), FALLOCATE.row(), UNLINK.row()].into_iter().filter(|name| values.is_explicit(name))
        {
            decisions.note(format!("{} has no effect: no file is created", values.quote(name)));
        }
    } else if usage.fills && values.is_explicit(FALLOCATE) {
        let sentence =
            format!("{} has no effect: the file grows until the filesystem is full", values.quote(FALLOCATE));
        decisions.note(&sentence);
    } else if usage.needs_content {
        for name in [OVERWRITE.row(), FALLOCATE.row()].into_iter().filter(|name| values.is_explicit(name)) {
            decisions
                .note(format!("{} has no effect: a job that reads or trims gets a written file", values.quote(name)));
        }
    }
    if files.len() == 1 && values.is_set(FILE_SERVICE_TYPE) {
        decisions.note(format!("{} has no effect: there is one file", values.quote(FILE_SERVICE_TYPE)));
    }
}
