//! Priorities of the workers and of single I/Os.

use crate::input::{Decisions, JobInput};
use crate::option::{Opt, OptionRow};
use crate::options::process::rows::{CMDPRIO_BSSPLIT, PRIO, PRIOCLASS};
use crate::options::shape::Shape;
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use trueio_model::{BlockSizes, DirectPolicy, EngineKind, IoPriority, OpKind, PriorityShare};

/// Plans the priority of the workers: class and level.
pub(crate) fn plan_own_priority(values: &JobInput<'_>, hint: u16) -> Result<Option<(u8, u8)>, Refusal> {
    let small = |option: Opt<Option<u64>>| {
        values.get(option).map(|number| u8::try_from(number).expect("the row's bounds keep it small"))
    };
    let own = match (small(PRIOCLASS), small(PRIO)) {
        (None | Some(0), None | Some(0)) if hint == 0 => None,
        // As in fio, a hint alone is set with class best effort, level 0.
        (Some(0), None | Some(0)) => Some((2, 0)),
        (Some(0), Some(_)) => {
            let rule = Rule::Contradiction {
                one: values.quote(PRIOCLASS),
                other: values.quote(PRIO),
                reason: "class 0 (none) has no levels",
                case: Case::NoClass,
            };
            return Err(values.refuse(PRIO, rule));
        }
        (class, level) => Some((class.unwrap_or(2), level.unwrap_or(0))),
    };
    if let Some((class, _)) = own {
        check_class(values, PRIOCLASS.row(), class)?;
    }
    Ok(own)
}

/// Refuses the real-time class to a process without the privilege (Linux `block/ioprio.c`).
fn check_class(values: &JobInput<'_>, option: &'static OptionRow, class: u8) -> Result<(), Refusal> {
    match values.machine.may_be_real_time {
        Some(false) if class == IoPriority::REAL_TIME => {
            Err(values.refuse(option, Rule::PriorityNotPermitted { option: option.name }))
        }
        _ => Ok(()),
    }
}

/// Plans the shares of the I/Os that have their own priorities.
pub(crate) fn plan_shares(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    shape: &Shape,
    engine: EngineKind,
    direct: DirectPolicy,
) -> Result<Vec<PriorityShare>, Refusal> {
    let Some(given) = values.get(CMDPRIO_BSSPLIT) else { return Ok(Vec::new()) };
    if !matches!(engine, EngineKind::IoUring | EngineKind::Libaio) {
        let lack = "gives single I/Os no priority".into();
        let case = Case::EnginePriorities;
        return Err(values.refuse(CMDPRIO_BSSPLIT, Rule::EngineLacks { engine, lack, case }));
    }
    let shares: Vec<PriorityShare> = given.iter().filter(|share| shape.ops.has(share.op)).copied().collect();
    if shares.is_empty() {
        decisions.note_unused(values, &[CMDPRIO_BSSPLIT.row()], "the job does no I/O of the operations that it names");
        return Ok(shares);
    }
    let used = shape.used();
    for share in &shares {
        check_class(values, CMDPRIO_BSSPLIT.row(), share.priority.class)?;
        let Some(bytes) = share.length_bytes.map(u64::from) else { continue };
        let is_of = |sizes: &BlockSizes| match sizes {
            BlockSizes::Weighted(sizes) => sizes.iter().any(|(size, weight)| *size == bytes && *weight > 0),
            sizes => (sizes.min_bytes()..=sizes.max_bytes()).contains(&bytes),
        };
        if !used.iter().any(|(op, sizes)| *op == share.op && is_of(sizes)) {
            let (size, op) = (write_bytes(bytes), share.op);
            decisions.note(format!("`cmdprio_bssplit` names {op}s of {size}, and the job does none"));
        }
    }
    if direct == DirectPolicy::Off && shares.iter().any(|share| share.op == OpKind::Write) {
        decisions.note(
            "`cmdprio_bssplit` of writes through the page cache: the kernel writes them to the disk later, without it",
        );
    }
    Ok(shares)
}
