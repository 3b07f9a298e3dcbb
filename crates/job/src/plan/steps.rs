//! Offsets that are not plainly the next block, nor each drawn anew.

use super::Planner;
use super::job::{Ops, note_unused};
use super::values::Values;
use super::zones::is_zoned;
use crate::refusal::{Refusal, Rule};
use trueio_model::{BlockSizes, OpKind, OpMix, Steps, WriteSteps, Zones};

pub(super) fn plan_steps(
    planner: &mut Planner,
    values: &Values,
    ops: Ops,
    sizes: &[BlockSizes; 3],
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
        let aligns = values.numbers("blockalign").unwrap_or([0; 3]);
        let random = values.numbers("percentage_random").unwrap_or([100; 3]);
        let of = |index: usize| {
            // What only the other kind has: the smallest block, as in fio.
            let is_alike = aligns[0] == aligns[1] || !matches!(ops.mix, OpMix::ReadWrite { .. });
            let align_bytes = match aligns[index] {
                0 if !is_alike => sizes[index].min_bytes(),
                // Of which all offsets are multiples without it.
                bytes if is_alike && sizes.iter().all(|sizes| is_multiple(sizes, bytes)) => 0,
                bytes => bytes,
            };
            let sequential_percent = 100 - u8::try_from(random[index]).expect("a percentage");
            WriteSteps { align_bytes, sequential_percent }
        };
        let (one, of_writes) = match ops.mix {
            OpMix::Only(OpKind::Read | OpKind::Sync) => (of(0), None),
            OpMix::Only(OpKind::Write) => (of(1), None),
            OpMix::Only(OpKind::Trim) => (of(2), None),
            OpMix::ReadWrite { .. } => (of(0), Some(of(1)).filter(|writes| *writes != of(0))),
        };
        steps.align_bytes = one.align_bytes;
        steps.sequential_percent = one.sequential_percent;
        steps.of_writes = of_writes;
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
        steps.is_unaligned = sizes_option == "bsrange";
        if !steps.is_unaligned {
            note_unused(planner, values, &["bs_unaligned"], "it is about the sizes of `bsrange`");
        }
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
        // Who says how much of a zone is used wants zones, and a run without them would look the same.
        (false, Some(_)) => {
            let rule = Rule::Incomplete {
                option: values.quote("zonesize"),
                needs: "`zonemode`: how the zones are used",
                hint: "say `zonemode = \"strided\"` (fio: `zonemode=strided`), or `zbd`, or leave `zonesize` out",
            };
            return Err(values.refuse("zonesize", rule));
        }
        (false, None) => {
            note_unused(planner, values, &["zonerange", "zoneskip"], "no `zonemode` is asked for");
        }
    }
    Ok(steps)
}

/// True if `bytes` are the smallest of the sizes, and all are multiples of it.
fn is_multiple(sizes: &BlockSizes, bytes: u64) -> bool {
    !matches!(sizes, BlockSizes::Weighted(_)) && sizes.min_bytes() == bytes
}
