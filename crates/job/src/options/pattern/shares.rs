//! What is drawn by shares: the order of random blocks, and which of several files is next.

use crate::input::{Decisions, JobInput};
use crate::options::pattern::rows::{NORANDOMMAP, RANDOM_DISTRIBUTION, ZONEMODE};
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{FILE_SERVICE_IOS, FILE_SERVICE_TYPE, OPENFILES};
use crate::refusal::{Refusal, Rule};
use crate::values::Values;
use trueio_model::{Distribution, FileSelection, Order, Steps};

pub(crate) fn plan_order(values: &JobInput<'_>, decisions: &mut Decisions, ops: Ops, steps: &Steps) -> Order {
    if !ops.is_random {
        return Order::Sequential;
    }
    let distribution = values.get(RANDOM_DISTRIBUTION);
    let is_uniform = *distribution == Distribution::Uniform;
    if !is_uniform {
        decisions.note_unused(values, &[NORANDOMMAP.row()], "a distribution that is not uniform keeps no map anyway");
    }
    Order::Random {
        each_block_once: is_uniform && !values.get(NORANDOMMAP) && steps.places_plainly(),
        distribution: distribution.clone(),
    }
}

/// Zones of a distribution are of the region: all of it must be there, and nothing else may divide it.
pub(crate) fn check_distribution(values: &Values, order: &Order, files: &[JobFile]) -> Result<(), Refusal> {
    let Order::Random { distribution, .. } = order else { return Ok(()) };
    let zones_bytes = match distribution {
        Distribution::Zoned { .. } => 0,
        Distribution::ZonedBytes { zones } => zones.iter().map(|zone| zone.1).fold(0, u64::saturating_add),
        _ => return Ok(()),
    };
    if values.get(ZONEMODE) != "none" {
        let rule = Rule::Contradiction {
            one: values.quote(RANDOM_DISTRIBUTION),
            other: values.quote(ZONEMODE),
            reason: "both say which part of the region an I/O goes to",
            hint: "leave one of them out",
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

/// Which file is next, how many I/Os it has before another one is chosen, and how many files are in use at a time; 0: no
/// such number.
pub(crate) fn plan_file_selection(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    count: usize,
) -> Result<(FileSelection, u32, u32), Refusal> {
    let selection = values.get(FILE_SERVICE_TYPE).clone();
    let is_in_turn = count > 1 && selection != FileSelection::Sequential;
    if !is_in_turn {
        let because = if count > 1 { "each file is used to its end" } else { "there is one file" };
        decisions.note_unused(values, &[FILE_SERVICE_IOS.row()], because);
    }
    let ios_per_file = Some(values.get(FILE_SERVICE_IOS)).filter(|ios| is_in_turn && *ios > 1).unwrap_or(0);
    let because = match (values.get(OPENFILES).unwrap_or(0), &selection) {
        (0, _) => return Ok((selection, ios_per_file, 0)),
        (_, FileSelection::Sequential) => "`file_service_type` uses one file at a time",
        (most, _) if most as usize >= count => "there are no more files",
        (_, FileSelection::Drawn { .. }) => {
            let rule = Rule::Contradiction {
                one: values.quote(FILE_SERVICE_TYPE),
                other: values.quote(OPENFILES),
                reason: "the distribution is over all files, and the others could not be drawn",
                hint: "leave `openfiles` out",
            };
            return Err(values.refuse(OPENFILES, rule));
        }
        (most, _) => return Ok((selection, ios_per_file, most)),
    };
    decisions.note_unused(values, &[OPENFILES.row()], because);
    Ok((selection, ios_per_file, 0))
}
