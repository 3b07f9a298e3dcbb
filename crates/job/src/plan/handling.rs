//! How a job's files and memory are handled beside the I/O itself.

use super::Planner;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{Advice, DirectPolicy, EngineKind, Handling, Limits, Memory, Order};

/// Buffers, advice, and whether there is any I/O at all.
pub(super) fn plan_handling(
    planner: &mut Planner,
    values: &Values,
    engine: EngineKind,
    ops: Ops,
) -> Result<Handling, Refusal> {
    let memory = match values.choice("mem") {
        Some("mmap") => Memory::Mmap,
        Some("mmapshared") => Memory::MmapShared,
        Some("mmaphuge") => Memory::MmapHuge,
        Some("shm") => Memory::Shm,
        Some("shmhuge") => Memory::ShmHuge,
        _ => Memory::Malloc,
    };
    let huge_page_bytes = values.number("hugepage_size").filter(|_| memory.is_huge()).unwrap_or(0);
    if memory.is_huge() && (!huge_page_bytes.is_power_of_two() || huge_page_bytes < 4096) {
        let reason = "the size of a page is a power of two, such as 2m or 1g".to_owned();
        let option = "hugepage_size";
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    if !memory.is_huge() {
        note_unused(planner, values, &["hugepage_size"], "the buffers are not in huge pages (`mem`)");
    }
    let advice = match values.choice("fadvise_hint") {
        Some("pattern") if ops.is_random => Advice::Random,
        Some("pattern" | "sequential") => Advice::Sequential,
        Some("random") => Advice::Random,
        Some("noreuse") => Advice::Noreuse,
        _ => Advice::None,
    };
    let opens_files = engine.opens_files() && engine != EngineKind::Command;
    if !opens_files && advice != Advice::None {
        note_unused(planner, values, &["fadvise_hint"], "no file is opened here");
    }
    let creates_only = values.bool("create_only");
    if creates_only && !engine.opens_files() {
        let lack = "has no files that could be made".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "leave `create_only` out, or choose another engine" };
        return Err(values.refuse("create_only", rule));
    }
    if creates_only && values.bool("steady_state") {
        let rule = Rule::Contradiction {
            one: values.quote("create_only"),
            other: values.quote("steady_state"),
            reason: "without I/O nothing becomes steady",
            hint: "leave one of them out",
        };
        return Err(values.refuse("steady_state", rule));
    }
    let advice = if opens_files { advice } else { Advice::None };
    Ok(Handling { creates_only, advice, invalidates_each_pass: false, memory, huge_page_bytes })
}

/// True if cached pages can matter in a further pass: the job is buffered, and goes over its files again. fio, too,
/// knows no passes of a job that is `time_based` and draws blocks that may come again.
pub(super) fn has_further_passes(
    values: &Values,
    engine: EngineKind,
    direct: DirectPolicy,
    order: &Order,
    limits: &Limits,
    region_bytes: u64,
) -> bool {
    let is_drawn_again = matches!(order, Order::Random { each_block_once: false, .. });
    let has_passes = match limits.is_time_based {
        true => !is_drawn_again,
        false => limits.io_bytes.saturating_mul(limits.loops) > region_bytes,
    };
    let is_cached = engine.touches_files() && direct != DirectPolicy::Require && !values.bool("pre_read");
    has_passes && is_cached && limits.io_count.is_none_or(|count| count > 1)
}
