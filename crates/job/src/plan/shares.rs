//! What is drawn by shares: the order of random blocks, and which of several files is next.

use super::Planner;
use super::files::JobFile;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{Distribution, FileSelection, Order, Steps};

pub(super) fn plan_order(planner: &mut Planner, values: &Values, ops: Ops, steps: &Steps) -> Order {
    if !ops.is_random {
        return Order::Sequential;
    }
    let distribution = values.distribution("random_distribution");
    let is_uniform = distribution == Distribution::Uniform;
    if !is_uniform {
        note_unused(planner, values, &["norandommap"], "a distribution that is not uniform keeps no map anyway");
    }
    Order::Random { each_block_once: is_uniform && !values.bool("norandommap") && steps.places_plainly(), distribution }
}

/// Zones of a distribution are of the region: all of it must be there, and nothing else may divide it.
pub(super) fn check_distribution(values: &Values, order: &Order, files: &[JobFile]) -> Result<(), Refusal> {
    const OPTION: &str = "random_distribution";
    let Order::Random { distribution, .. } = order else { return Ok(()) };
    let zones_bytes = match distribution {
        Distribution::Zoned { .. } => 0,
        Distribution::ZonedBytes { zones } => zones.iter().map(|zone| zone.1).fold(0, u64::saturating_add),
        _ => return Ok(()),
    };
    if values.choice("zonemode") != Some("none") {
        let rule = Rule::Contradiction {
            one: values.quote(OPTION),
            other: values.quote("zonemode"),
            reason: "both say which part of the region an I/O goes to",
            hint: "leave one of them out",
        };
        return Err(values.refuse(OPTION, rule));
    }
    match files.iter().find(|file| file.plan.size_bytes < zones_bytes) {
        None => Ok(()),
        Some(file) => {
            let (path, region_bytes) = (file.plan.path.clone(), file.plan.size_bytes);
            Err(values.refuse(OPTION, Rule::SharesBeyondSize { path, zones_bytes, region_bytes }))
        }
    }
}

/// Which file is next, how many I/Os it has before another one is chosen, and how many files are in use at a time; 0: no
/// such number.
pub(super) fn plan_file_selection(
    planner: &mut Planner,
    values: &Values,
    count: usize,
) -> Result<(FileSelection, u32, u32), Refusal> {
    let selection = values.file_selection("file_service_type");
    let is_in_turn = count > 1 && selection != FileSelection::Sequential;
    if !is_in_turn {
        let because = if count > 1 { "each file is used to its end" } else { "there is one file" };
        note_unused(planner, values, &["file_service_ios"], because);
    }
    let ios_per_file = values.small("file_service_ios").filter(|ios| is_in_turn && *ios > 1).unwrap_or(0);
    let because = match (values.small("openfiles").unwrap_or(0), &selection) {
        (0, _) => return Ok((selection, ios_per_file, 0)),
        (_, FileSelection::Sequential) => "`file_service_type` uses one file at a time",
        (most, _) if most as usize >= count => "there are no more files",
        (_, FileSelection::Drawn { .. }) => {
            let rule = Rule::Contradiction {
                one: values.quote("file_service_type"),
                other: values.quote("openfiles"),
                reason: "the distribution is over all files, and the others could not be drawn",
                hint: "leave `openfiles` out",
            };
            return Err(values.refuse("openfiles", rule));
        }
        (most, _) => return Ok((selection, ios_per_file, most)),
    };
    note_unused(planner, values, &["openfiles"], because);
    Ok((selection, ios_per_file, 0))
}
