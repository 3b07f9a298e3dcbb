//! Offsets that are neither the next block nor drawn at random for each I/O.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::pattern::rows::{
    BLOCKALIGN, BS_UNALIGNED, BSRANGE, Direction, PERCENTAGE_RANDOM, RANDOM_EVERY, RW, RW_SEQUENCER, SEQUENTIAL_SKIP,
    Sequencer, ZONEMODE, ZONERANGE, ZONESIZE, ZONESKIP, ZoneMode,
};
use crate::options::pattern::zones::is_zoned;
use crate::options::shape::Ops;
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{BlockSizes, OpKind, OpMix, Steps, WriteSteps, Zones};

pub(crate) fn plan_steps(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    ops: Ops,
    sizes: &[BlockSizes; 3],
    sizes_option: &'static OptionRow,
) -> Result<Steps, Refusal> {
    let incomplete = |option: &'static OptionRow, needs| {
        let rule = Rule::Incomplete { option: values.quote(option), needs, case: Case::ZonesAlone };
        Err(values.refuse(option, rule))
    };
    let mut steps = Steps { trims_first: values.get(RW).direction == Direction::TrimWrite, ..Steps::default() };
    let of_random = [RANDOM_EVERY.row(), PERCENTAGE_RANDOM.row(), BLOCKALIGN.row()];
    if ops.is_random {
        decisions.note_unused(values, &[SEQUENTIAL_SKIP.row()], "the job is random");
        let aligns = values.get(BLOCKALIGN).unwrap_or([0; 3]);
        let random = values.get(PERCENTAGE_RANDOM);
        let of = |index: usize| {
            // Without an alignment of its own, while the other operation has one: the smallest block, as in fio.
            let is_alike = aligns[0] == aligns[1] || !matches!(ops.mix, OpMix::ReadWrite { .. });
            let align_bytes = match aligns[index] {
                0 if !is_alike => sizes[index].min_bytes(),
                // All offsets are multiples of it anyway.
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
        steps.random_every = Some(values.get(RANDOM_EVERY)).filter(|every| *every > 1).unwrap_or(0);
        steps.repeats = steps.random_every > 0 && values.get(RW_SEQUENCER) == Sequencer::Identical;
    } else {
        decisions.note_unused(values, &of_random, "the job is sequential");
        steps.skip_bytes = values.get(SEQUENTIAL_SKIP);
    }
    if values.is_set(RW_SEQUENCER) && steps.random_every == 0 {
        return incomplete(RW_SEQUENCER.row(), "`random_every`: of how many I/Os");
    }
    if values.get(BS_UNALIGNED) {
        steps.is_unaligned = sizes_option == BSRANGE.row();
        if !steps.is_unaligned {
            decisions.note_unused(values, &[BS_UNALIGNED.row()], "it applies to the sizes of `bsrange` only");
        }
    }
    if is_zoned(values) {
        decisions.note_unused(
            values,
            &[ZONERANGE.row()],
            "the length of a zone is `zonesize`, or that of the device's zones",
        );
        return Ok(steps);
    }
    match (values.get(ZONEMODE) == ZoneMode::Strided, values.get(ZONESIZE).filter(|bytes| *bytes > 0)) {
        (true, Some(zone_bytes)) => {
            let range_bytes = values.get(ZONERANGE).filter(|bytes| *bytes > 0).unwrap_or(zone_bytes);
            let skip_bytes = values.get(ZONESKIP);
            steps.zones = Some(Zones { zone_bytes, range_bytes, skip_bytes });
        }
        (true, None) => return incomplete(ZONEMODE.row(), "`zonesize`: when the next zone begins"),
        // `zonesize` alone has no effect, and the results would not show that.
        (false, Some(_)) => {
            let rule = Rule::Incomplete {
                option: values.quote(ZONESIZE),
                needs: "`zonemode`: how the zones are used",
                case: Case::ZonesUnused,
            };
            return Err(values.refuse(ZONESIZE, rule));
        }
        (false, None) => {
            decisions.note_unused(values, &[ZONERANGE.row(), ZONESKIP.row()], "`zonemode` is not set");
        }
    }
    Ok(steps)
}

/// Returns true if `bytes` is the smallest of the sizes, and all others are multiples of it.
fn is_multiple(sizes: &BlockSizes, bytes: u64) -> bool {
    !matches!(sizes, BlockSizes::Weighted(_)) && sizes.min_bytes() == bytes
}
