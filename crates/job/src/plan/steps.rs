//! Offsets that are not plainly the next block, nor each drawn anew.

use super::Planner;
use super::job::{Ops, note_unused};
use super::values::Values;
use super::zones::is_zoned;
use crate::refusal::{Refusal, Rule};
use trueio_model::{Steps, Zones};

pub(super) fn plan_steps(
    planner: &mut Planner,
    values: &Values,
    ops: Ops,
    sizes_option: &'static str,
) -> Result<Steps, Refusal> {
    let incomplete = |option: &str, needs| {
        let rule = Rule::Incomplete { option: values.quote(option), needs, hint: "say it too, or leave this out" };
        Err(values.refuse(option, rule))
    };
    let mut steps =
        Steps { trims_first: values.choice("rw").is_some_and(|rw| rw.ends_with("trimwrite")), ..Steps::default() };
    let of_random = ["random_every", "percentage_random", "blockalign"];
    if ops.is_random {
        note_unused(planner, values, &["sequential_skip"], "the job is random");
        steps.align_bytes = values.number("blockalign").unwrap_or(0);
        let random = u8::try_from(values.number("percentage_random").unwrap_or(100)).expect("a percentage");
        steps.sequential_percent = 100 - random;
        steps.random_every = Some(values.number("random_every").unwrap_or(1)).filter(|every| *every > 1).unwrap_or(0);
        steps.repeats = steps.random_every > 0 && values.choice("rw_sequencer") == Some("identical");
    } else {
        note_unused(planner, values, &of_random, "the job is sequential");
        steps.skip_bytes = values.integer("sequential_skip").unwrap_or(0);
    }
    if values.is_said("rw_sequencer") && steps.random_every == 0 {
        return incomplete("rw_sequencer", "`random_every`: of how many I/Os");
    }
    if values.bool("bs_unaligned") {
        if sizes_option != "bsrange" {
            return incomplete("bs_unaligned", "`bsrange`: which sizes");
        }
        steps.is_unaligned = true;
    }
    if is_zoned(values) {
        note_unused(planner, values, &["zonerange"], "a zone is as long as `zonesize` or the device says");
        return Ok(steps);
    }
    match (values.choice("zonemode") == Some("strided"), values.number("zonesize").filter(|bytes| *bytes > 0)) {
        (true, Some(zone_bytes)) => {
            let range_bytes = values.number("zonerange").filter(|bytes| *bytes > 0).unwrap_or(zone_bytes);
            let skip_bytes = values.number("zoneskip").unwrap_or(0);
            steps.zones = Some(Zones { zone_bytes, range_bytes, skip_bytes });
        }
        (true, None) => return incomplete("zonemode", "`zonesize`: when the next zone begins"),
        (false, _) => {
            let names = ["zonesize", "zonerange", "zoneskip"];
            note_unused(planner, values, &names, "no `zonemode` is asked for");
        }
    }
    Ok(steps)
}
