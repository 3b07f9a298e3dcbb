//! How zones are written by their rules (`zonemode = zbd`).
//!
//! Resetting a zone destroys what it holds. So a job that writes or trims has whole zones only, rounded to the inside
//! of what was named, and needs the permissions that overwriting needs.
//!
//! Source: fio(1), `zonemode=zbd` and the options next to it.

use crate::facts::Identity;
use crate::facts::{FactsSource, Target};
use crate::input::{Decisions, JobInput};
use crate::option::{Opt, OptionRow, Scope, Words};
use crate::options::content::rows::{
    SOURCE, TRIM_PERCENTAGE, VERIFY, VERIFY_ONLY, VERIFY_POLICY, VERIFY_STATE_SAVE, VerifyMethod, VerifyPolicy,
};
use crate::options::durability::direct::alignment_of;
use crate::options::durability::rows::{DIRECT, SYNC_FILE_RANGE};
use crate::options::limits::rows::{FILL_DEVICE, IO_SIZE};
use crate::options::pace::rows::FLOW;
use crate::options::pattern::rows::{
    BS, IGNORE_ZONE_LIMITS, JOB_MAX_OPEN_ZONES, MAX_OPEN_ZONES, READ_BEYOND_WP, WRITE_ZONE_REMAINDER,
    ZONE_RESET_FREQUENCY, ZONE_RESET_THRESHOLD, ZONECAPACITY, ZONEMODE, ZONESIZE, ZONESKIP, ZoneMode,
};
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{
    DIRECTORY, FILE_APPEND, FILENAME, LOCKFILE, OFFSET, OFFSET_INCREMENT, SIZE, UNLINK_EACH_LOOP,
};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Extent, Value, write_bytes};
use crate::values::Values;
use std::collections::BTreeMap;
use trueio_model::{
    BlockSizes, DirectPolicy, DiskFacts, EarlyResets, EngineKind, JobPlan, Locking, OpKind, Prepare, Steps,
    TargetFacts, TargetKind, ZoneModel, ZonePlan,
};

/// The least zone.
const ZONE_BYTES_MIN: u64 = 512;

/// Zones whose write pointers are kept for a job: each takes some 64 bytes.
const ZONES_MAX: u64 = 1 << 22;

/// True if the job writes zones by their rules.
pub(crate) fn is_zoned(values: &Values) -> bool {
    values.get(ZONEMODE) == ZoneMode::Zbd
}

/// The disk of a target that has zones.
fn zoned_disk(facts: &TargetFacts) -> Option<&DiskFacts> {
    let has_zones = |disk: &&DiskFacts| disk.limits.zoned.value.as_ref().is_some_and(|model| *model != ZoneModel::None);
    facts.disks.iter().find(has_zones).filter(|_| facts.kind == TargetKind::BlockDevice)
}

/// Converts sizes in zones to bytes.
pub(crate) fn settle_sizes(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<(), Refusal> {
    for option in [SIZE.row(), OFFSET.row(), OFFSET_INCREMENT.row(), IO_SIZE.row()] {
        let Some(count) = values.zones(option) else { continue };
        let is_strided = values.get(ZONEMODE) == ZoneMode::Strided;
        if !is_zoned(values) && !is_strided {
            let (needs, case) = ("`zonemode`: it counts zones", Case::ZonesCounted);
            return Err(values.refuse(option, Rule::Incomplete { option: values.quote(option), needs, case }));
        }
        // In strided zones, too, `zonesize` is counted, as in fio: the bytes transferred in a zone.
        let given = values.get(ZONESIZE).filter(|bytes| *bytes > 0);
        let found = || device_zone_bytes(values).filter(|_| !is_strided);
        let Some(zone_bytes) = given.or_else(found) else {
            let reason = format!("{} counts zones, and their length is unknown", values.quote(option));
            return Err(refuse(values, option, reason, Case::ZonesOfUnknownLength));
        };
        let Some(bytes) = count.checked_mul(zone_bytes).filter(|bytes| *bytes <= i64::MAX as u64) else {
            let reason = format!("{count} zones of {} are more than a file can hold", write_bytes(zone_bytes));
            return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
        };
        decisions.replace(option, Value::Extent(Extent::Bytes(bytes)));
    }
    Ok(())
}

/// Returns the length of the zones of the first target in `filename`.
fn device_zone_bytes(values: &JobInput<'_>) -> Option<u64> {
    let name = values.get(FILENAME)?.first()?.clone();
    let directory = values.get(DIRECTORY);
    let Target::Present(facts) = values.look(&crate::paths::join_path(directory, &name)) else { return None };
    zoned_disk(&facts)?.limits.chunk_bytes.value.filter(|bytes| *bytes > 0)
}

/// The parts of a job that its zones depend on.
pub(crate) struct InZones<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) ops: Ops,
    /// Sizes of reads, writes and trims.
    pub(crate) sizes: &'a [BlockSizes; 3],
    pub(crate) steps: &'a Steps,
}

/// How zones are used; the files' regions become whole zones. `None`: they are not.
pub(crate) fn plan_zones(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    job: &InZones<'_>,
    files: &mut [JobFile],
    direct: &mut DirectPolicy,
) -> Result<Option<ZonePlan>, Refusal> {
    if !is_zoned(values) {
        decisions.note_unused(values, &values.rows_of(Scope::Zones), "`zonemode = zbd` is not set");
        return Ok(None);
    }
    check_job(values, job)?;
    let writes = job.ops.has(OpKind::Write) || job.ops.has(OpKind::Trim);
    let is_emulated = files.iter().all(|file| file.facts.as_ref().is_none_or(|facts| zoned_disk(facts).is_none()));
    let ZoneSizes { zone_bytes, capacity_bytes } = match is_emulated {
        true => emulated_zones(values, files, *direct)?,
        false => ZoneSizes { zone_bytes: device_zones(values, decisions, files)?, capacity_bytes: 0 },
    };
    if !is_emulated && job.ops.has(OpKind::Write) {
        match *direct {
            DirectPolicy::Require => {}
            DirectPolicy::Prefer => {
                decisions.derive(
                    DIRECT,
                    DirectPolicy::Require.word(),
                    "zones of a device are written by direct I/O only",
                );
                *direct = DirectPolicy::Require;
            }
            DirectPolicy::Off => {
                let reason = "the page cache writes in an order of its own, which a zoned device refuses".to_owned();
                return Err(refuse(values, DIRECT.row(), reason, Case::ZonesBuffered));
            }
        }
    }
    let sizes = [OpKind::Read, OpKind::Write, OpKind::Trim].into_iter().zip(job.sizes);
    for (op, sizes) in sizes.filter(|(op, _)| job.ops.has(*op)) {
        if op == OpKind::Trim {
            if *sizes != BlockSizes::Fixed(zone_bytes) {
                let reason = format!("a trim resets a zone, and a zone has {}", write_bytes(zone_bytes));
                return Err(refuse(values, BS.row(), reason, Case::ZonesTrimmed));
            }
            continue;
        }
        let room = if is_emulated { capacity_bytes } else { zone_bytes };
        if sizes.max_bytes() > room {
            let (block, room) = (write_bytes(sizes.max_bytes()), write_bytes(room));
            let reason = format!("a block of {block} does not fit into a zone of {room}");
            return Err(refuse(values, ZONESIZE.row(), reason, Case::ZonesBlock));
        }
    }
    if writes {
        round_regions(values, decisions, files, zone_bytes)?;
    }
    let ends = files.iter().map(|file| file.plan.offset_bytes + file.plan.size_bytes);
    let zones = ends.map(|end| end.div_ceil(zone_bytes)).fold(0, u64::saturating_add);
    if is_emulated && zones > ZONES_MAX {
        let reason = format!("{zones} zones are more than the {ZONES_MAX} whose write pointers are kept");
        return Err(refuse(values, ZONESIZE.row(), reason, Case::ZonesMany));
    }
    let skip_bytes = values.get(ZONESKIP);
    if !skip_bytes.is_multiple_of(zone_bytes) {
        let reason = format!("{} is not a number of zones of {}", write_bytes(skip_bytes), write_bytes(zone_bytes));
        return Err(values.refuse(ZONESKIP, Rule::BadValue { option: ZONESKIP.name, reason }));
    }
    if job.ops.is_random {
        decisions.note_unused(values, &[ZONESKIP.row()], "the job is random");
    }
    Ok(Some(ZonePlan {
        zone_bytes,
        capacity_bytes,
        is_emulated,
        skip_zones: skip_bytes / zone_bytes,
        reads_beyond: values.get(READ_BEYOND_WP),
        open_max: values.get(MAX_OPEN_ZONES),
        worker_open_max: values.get(JOB_MAX_OPEN_ZONES),
        ignores_device_limits: values.get(IGNORE_ZONE_LIMITS),
        early_resets: early_resets(values, decisions, job.ops)?,
        writes_remainder: values.get(WRITE_ZONE_REMAINDER),
    }))
}

fn refuse(values: &Values, option: &'static OptionRow, reason: String, case: Case) -> Refusal {
    values.refuse(option, Rule::ZonesImpossible { reason, case })
}

/// Refuses options that contradict zones, whatever the targets are.
fn check_job(values: &Values, job: &InZones<'_>) -> Result<(), Refusal> {
    let engine = job.engine;
    let is_modelled = matches!(engine, EngineKind::Null | EngineKind::Simulated);
    let moves_data = engine.touches_files() && !engine.moves_no_data() && !engine.works_on_names();
    if engine == EngineKind::Command || !(moves_data || is_modelled) {
        let lack = "does no I/O at offsets, so there are no zones".into();
        return Err(values.refuse(ZONEMODE, Rule::EngineLacks { engine, lack, case: Case::ZonesEngine }));
    }
    if !job.steps.is_none() {
        let reason = "a zone is written in order from its write pointer on".to_owned();
        let case = Case::ZonesInOrder;
        return Err(refuse(values, ZONEMODE.row(), reason, case));
    }
    if values.is_set(SOURCE) {
        let reason = "a body is written from its first byte to its last, whatever the write pointers are".to_owned();
        return Err(refuse(values, SOURCE.row(), reason, Case::LeaveOneOut));
    }
    if let Some(name) = [UNLINK_EACH_LOOP, FILL_DEVICE, FILE_APPEND].into_iter().find(|option| values.get(*option)) {
        let reason = "the zones of a file are set once, when the run begins, for all its jobs".to_owned();
        return Err(refuse(values, name.row(), reason, Case::ZonesOfFile));
    }
    if values.is_set(SYNC_FILE_RANGE) {
        let reason = "the offset of a write is known only when it is submitted".to_owned();
        return Err(refuse(values, SYNC_FILE_RANGE.row(), reason, Case::ZonesRange));
    }
    if values.get(LOCKFILE) != Locking::None {
        let reason = "each zone has one write in flight, and a worker that waits for a zone would keep the file locked"
            .to_owned();
        return Err(refuse(values, LOCKFILE.row(), reason, Case::ZonesLocked));
    }
    if values.get(FLOW).is_some_and(|weight| weight > 0) {
        let reason = "a worker that waits for a zone would delay the other jobs of the flow, and may wait for one of \
                      them"
            .to_owned();
        return Err(refuse(values, FLOW.row(), reason, Case::ZonesFlow));
    }
    let against = [VERIFY_ONLY, VERIFY_STATE_SAVE, WRITE_ZONE_REMAINDER];
    let is_verified = values.get(VERIFY) != VerifyMethod::None;
    if is_verified && let Some(name) = against.into_iter().find(|option| values.get(*option)) {
        let reason = match name.name {
            "write_zone_remainder" => "it writes blocks of several sizes".to_owned(),
            _ => "the offsets of blocks depend on the write pointers, which a later run does not have".to_owned(),
        };
        return Err(values.refuse(name, Rule::VerifyImpossible { reason, case: Case::ZonesVerified }));
    }
    if is_verified && values.get(VERIFY_POLICY) == VerifyPolicy::Fsynced {
        let reason = "all written blocks of zones are compared, synced or not".to_owned();
        return Err(values.refuse(VERIFY_POLICY, Rule::VerifyImpossible { reason, case: Case::ZonesSynced }));
    }
    if is_verified && values.get(TRIM_PERCENTAGE) > 0 {
        let reason = "a part of a zone cannot be trimmed".to_owned();
        return Err(values.refuse(TRIM_PERCENTAGE, Rule::VerifyImpossible { reason, case: Case::ZonesVerifiedTrims }));
    }
    Ok(())
}

/// Refuses jobs that share a file without zones of its own and set different zones for it.
pub(crate) fn check_shared(facts: &dyn FactsSource, jobs: &[JobPlan]) -> Result<(), Refusal> {
    let mut known: BTreeMap<(Identity, bool), (&JobPlan, ZonePlan)> = BTreeMap::new();
    for job in jobs {
        let Some(zones) = job.zones.filter(|zones| zones.is_emulated) else { continue };
        for file in &job.files {
            let file_is = (facts.identity(&file.path), file.prepare == Prepare::Nothing);
            let (first, theirs) = *known.entry(file_is).or_insert((job, zones));
            if (theirs.zone_bytes, theirs.capacity_bytes) != (zones.zone_bytes, zones.capacity_bytes) {
                let describe = |zones: ZonePlan| {
                    let (length, used) = (write_bytes(zones.zone_bytes), write_bytes(zones.capacity_bytes));
                    format!("{length}, {used} of each used")
                };
                let reason = format!(
                    "jobs share the zones of `{}`, and `{}` has them of {}, this one of {}",
                    file.path,
                    first.name,
                    describe(theirs),
                    describe(zones)
                );
                let rule = Box::new(Rule::ZonesImpossible { reason, case: Case::ZonesShared });
                return Err(Refusal { job: Some(job.name.clone()), origin: None, rule });
            }
        }
    }
    Ok(())
}

/// The zones of a job.
struct ZoneSizes {
    /// Length of a zone, in bytes.
    zone_bytes: u64,
    /// Bytes of a zone that can be written; 0: the device knows.
    capacity_bytes: u64,
}

/// Returns the emulated zones, for files without zones.
fn emulated_zones(values: &Values, files: &[JobFile], direct: DirectPolicy) -> Result<ZoneSizes, Refusal> {
    let Some(zone_bytes) = values.get(ZONESIZE).filter(|bytes| *bytes > 0) else {
        let rule = Rule::Incomplete {
            option: values.quote(ZONEMODE),
            needs: "`zonesize`: the target has no zones of its own",
            case: Case::ZonesEmulated,
        };
        return Err(values.refuse(ZONEMODE, rule));
    };
    let capacity_bytes = values.get(ZONECAPACITY).filter(|bytes| *bytes > 0).unwrap_or(zone_bytes);
    if capacity_bytes > zone_bytes {
        let reason = format!("{} is more than a zone of {}", write_bytes(capacity_bytes), write_bytes(zone_bytes));
        return Err(values.refuse(ZONECAPACITY, Rule::BadValue { option: ZONECAPACITY.name, reason }));
    }
    let facts = || files.iter().filter_map(|file| file.facts.as_ref());
    let unit = match direct {
        DirectPolicy::Off => ZONE_BYTES_MIN,
        _ => facts().filter_map(|facts| Some(alignment_of(facts, OpKind::Write)?.bytes)).fold(ZONE_BYTES_MIN, u64::max),
    };
    for (option, bytes) in [(ZONESIZE.row(), zone_bytes), (ZONECAPACITY.row(), capacity_bytes)] {
        if !bytes.is_multiple_of(unit) {
            let reason = format!("{} is not a multiple of {unit} bytes", write_bytes(bytes));
            return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
        }
    }
    Ok(ZoneSizes { zone_bytes, capacity_bytes })
}

/// Returns the length of the devices' zones.
fn device_zones(values: &JobInput<'_>, decisions: &mut Decisions, files: &[JobFile]) -> Result<u64, Refusal> {
    decisions.note_unused(values, &[ZONECAPACITY.row()], "the device has zones of its own");
    let given = values.get(ZONESIZE).filter(|bytes| *bytes > 0);
    let mut found = None;
    for file in files {
        let path = &file.plan.path;
        let Some(disk) = file.facts.as_ref().and_then(zoned_disk) else {
            let reason = format!("`{path}` has no zones, but another file of the job has");
            return Err(refuse(values, FILENAME.row(), reason, Case::ZonesMixed));
        };
        let fact = &disk.limits.chunk_bytes;
        let Some(bytes) = fact.value.filter(|bytes| *bytes > 0) else {
            let reason = format!("the length of the zones of `{path}` is unknown ({})", fact.source);
            return Err(refuse(values, FILENAME.row(), reason, Case::ZonesUnknown));
        };
        if let Some(other) = given.or(found).filter(|other| *other != bytes) {
            let (bytes, other) = (write_bytes(bytes), write_bytes(other));
            let reason = format!("the zones of `{path}` are {bytes} long ({}), not {other}", fact.source);
            return Err(refuse(values, ZONESIZE.row(), reason, Case::ZonesOfDevice));
        }
        found = Some(bytes);
    }
    Ok(found.unwrap_or(ZONE_BYTES_MIN))
}

/// Rounds each region to whole zones: a reset would destroy data outside the region.
fn round_regions(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    files: &mut [JobFile],
    zone_bytes: u64,
) -> Result<(), Refusal> {
    for file in files {
        let plan = &mut file.plan;
        let (offset, end) = (plan.offset_bytes, plan.offset_bytes + plan.size_bytes);
        let begin = offset.next_multiple_of(zone_bytes);
        let whole = (end - end % zone_bytes).saturating_sub(begin);
        if whole == 0 {
            let (zone, path) = (write_bytes(zone_bytes), &plan.path);
            let reason = format!("the used region of `{path}` contains no whole zone of {zone}");
            return Err(refuse(values, SIZE.row(), reason, Case::ZonesNone));
        }
        if (begin, whole) != (offset, plan.size_bytes) {
            let sentence = format!(
                "`{}` is used in whole zones: {whole} bytes from byte {begin} on, instead of {} bytes from byte \
                 {offset} on",
                plan.path, plan.size_bytes
            );
            decisions.note(&sentence);
            (plan.offset_bytes, plan.size_bytes) = (begin, whole);
        }
    }
    Ok(())
}

fn early_resets(values: &JobInput<'_>, decisions: &mut Decisions, ops: Ops) -> Result<Option<EarlyResets>, Refusal> {
    let of = |option: Opt<f64>| Some(values.get(option)).filter(|part| *part > 0.0);
    let incomplete = |option: &'static OptionRow, needs| {
        let rule = Rule::Incomplete { option: values.quote(option), needs, case: Case::ZonesReset };
        Err(values.refuse(option, rule))
    };
    let early = match (of(ZONE_RESET_THRESHOLD), of(ZONE_RESET_FREQUENCY)) {
        (None, None) => return Ok(None),
        (Some(_), None) => return incomplete(ZONE_RESET_THRESHOLD.row(), "`zone_reset_frequency`: how often"),
        (None, Some(_)) => return incomplete(ZONE_RESET_FREQUENCY.row(), "`zone_reset_threshold`: from when on"),
        (Some(threshold), Some(part)) => EarlyResets { threshold, every: (1.0 / part).round().max(1.0) as u64 },
    };
    if !ops.has(OpKind::Write) {
        decisions.note_unused(
            values,
            &[ZONE_RESET_THRESHOLD.row(), ZONE_RESET_FREQUENCY.row()],
            "the job does not write",
        );
        return Ok(None);
    }
    Ok(Some(early))
}
