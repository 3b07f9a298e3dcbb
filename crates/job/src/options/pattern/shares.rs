//! The order of random blocks, and the order of several files.

use crate::input::{Decisions, JobInput};
use crate::options::pattern::rows::{NORANDOMMAP, RANDOM_DISTRIBUTION, ZONEMODE, ZoneMode};
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{FILE_SERVICE_IOS, FILE_SERVICE_TYPE, OPENFILES};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{Distribution, FileSelection, Order, Steps};

pub(crate) fn plan_order(values: &JobInput<'_>, decisions: &mut Decisions, ops: Ops, steps: &Steps) -> Order {
    if !ops.is_random {
        return Order::Sequential;
    }
    let distribution = values.get(RANDOM_DISTRIBUTION);
    let is_uniform = *distribution == Distribution::Uniform;
    if !is_uniform {
        decisions.note_unused(values, &[NORANDOMMAP.row()], "a distribution that is not uniform keeps no map");
    }
    Order::Random {
        each_block_once: is_uniform && !values.get(NORANDOMMAP) && steps.leaves_offsets_alone(),
        distribution: distribution.clone(),
    }
}

/// Refuses a distribution over zones of the region next to `zonemode`, or in a file that is smaller than its zones.
///
/// `unit_bytes` is the unit of random offsets.
pub(crate) fn check_distribution(
    values: &Values,
    order: &Order,
    files: &[JobFile],
    unit_bytes: u64,
) -> Result<(), Refusal> {
    let Order::Random { distribution, .. } = order else { return Ok(()) };
    let zones_bytes = match distribution {
        Distribution::Zoned { .. } => 0,
        Distribution::ZonedBytes { zones } => zones.iter().map(|zone| zone.1).fold(0, u64::saturating_add),
        Distribution::Sequence { blocks, .. } => {
            return check_sequence(values, blocks.iter().copied().max().unwrap_or(0), unit_bytes, files);
        }
        Distribution::Precondition { over_provisioning, region_count, cache_bytes } => {
            return check_parts(values, *over_provisioning, *region_count, *cache_bytes, unit_bytes, files);
        }
        _ => return Ok(()),
    };
    if values.get(ZONEMODE) != ZoneMode::None {
        let rule = Rule::Contradiction {
            one: values.quote(RANDOM_DISTRIBUTION),
            other: values.quote(ZONEMODE),
            reason: "both select the part of the region for an I/O",
            case: Case::ZonesOfDistribution,
        };
        return Err(values.refuse(RANDOM_DISTRIBUTION, rule));
    }
    match files.iter().find(|file| file.plan.size_bytes < zones_bytes) {
        None => Ok(()),
        Some(file) => {
            let (path, region_bytes) = (file.plan.path.clone(), file.plan.size_bytes);
            Err(values.refuse(RANDOM_DISTRIBUTION, Rule::SharesBeyondSize { path, zones_bytes, region_bytes }))
        }
    }
}

/// Refuses parts of a disk's physical capacity that are smaller than a block, or than the disk's cache.
fn check_parts(
    values: &Values,
    over_provisioning: f64,
    region_count: u32,
    cache_bytes: u64,
    unit_bytes: u64,
    files: &[JobFile],
) -> Result<(), Refusal> {
    let part =
        |file: &JobFile| (file.plan.size_bytes as f64 * (1.0 + over_provisioning)) as u64 / u64::from(region_count);
    let least = cache_bytes.max(unit_bytes);
    let Some(file) = files.iter().find(|file| part(file) < least) else { return Ok(()) };
    let what = if least == unit_bytes { "a block" } else { "the disk's cache" };
    let reason = format!(
        "{region_count} parts of `{}` have {} each, which is less than {what} ({})",
        file.plan.path,
        write_bytes(part(file)),
        write_bytes(least)
    );
    Err(values.refuse(RANDOM_DISTRIBUTION, Rule::BadValue { option: RANDOM_DISTRIBUTION.name, reason }))
}

/// Refuses a sequence with a block that a file does not have. fio ends the job at that block.
fn check_sequence(values: &Values, last: u64, unit_bytes: u64, files: &[JobFile]) -> Result<(), Refusal> {
    let blocks = |file: &JobFile| file.plan.size_bytes / unit_bytes.max(1);
    let Some(file) = files.iter().find(|file| last >= blocks(file)) else { return Ok(()) };
    let count = blocks(file);
    let reason = format!("the region in `{}` has {count} blocks, counted from 0, and not block {last}", file.plan.path);
    Err(values.refuse(RANDOM_DISTRIBUTION, Rule::BadValue { option: RANDOM_DISTRIBUTION.name, reason }))
}

/// The order in which a job uses its files.
pub(crate) struct FileOrder {
    pub(crate) selection: FileSelection,
    /// I/Os to a file before the next one is selected; 0: no such number.
    pub(crate) ios_per_file: u32,
    /// Number of files in use at a time; 0: all.
    pub(crate) files_at_a_time: u32,
}

/// Plans the order of `count` files.
pub(crate) fn plan_file_order(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    count: usize,
) -> Result<FileOrder, Refusal> {
    let selection = values.get(FILE_SERVICE_TYPE).clone();
    let is_in_turn = count > 1 && selection != FileSelection::Sequential;
    if !is_in_turn {
        let because = if count > 1 { "each file is used to its end" } else { "there is one file" };
        decisions.note_unused(values, &[FILE_SERVICE_IOS.row()], because);
    }
    let ios_per_file = Some(values.get(FILE_SERVICE_IOS)).filter(|ios| is_in_turn && *ios > 1).unwrap_or(0);
    let because = match (values.get(OPENFILES).unwrap_or(0), &selection) {
        (0, _) => return Ok(FileOrder { selection, ios_per_file, files_at_a_time: 0 }),
        (_, FileSelection::Sequential) => "`file_service_type` uses one file at a time",
        (most, _) if most as usize >= count => "there are no more files",
        (_, FileSelection::Drawn { .. }) => {
            let rule = Rule::Contradiction {
                one: values.quote(FILE_SERVICE_TYPE),
                other: values.quote(OPENFILES),
                reason: "the distribution draws from all files",
                case: Case::DrawnFromOpen,
            };
            return Err(values.refuse(OPENFILES, rule));
        }
        (most, _) => return Ok(FileOrder { selection, ios_per_file, files_at_a_time: most }),
    };
    decisions.note_unused(values, &[OPENFILES.row()], because);
    Ok(FileOrder { selection, ios_per_file, files_at_a_time: 0 })
}
