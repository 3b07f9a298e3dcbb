//! How a job's files and memory are handled beside the I/O itself.

use super::Planner;
use super::files::JobFile;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use trueio_model::{
    Advice, DirectPolicy, EngineKind, Handling, Limits, Locking, Memory, OpKind, OpMix, Order, Prepare, StatCall,
    TargetKind, UringOptions,
};

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
    let locking = match values.choice("lockfile") {
        Some("exclusive") if opens_files => Locking::Exclusive,
        Some("readwrite") if opens_files => Locking::Readwrite,
        Some("none") => Locking::None,
        _ => {
            note_unused(planner, values, &["lockfile"], "no file is opened here");
            Locking::None
        }
    };
    if locking != Locking::None && values.is_said("source") {
        let rule = Rule::Contradiction {
            one: values.quote("lockfile"),
            other: values.quote("source"),
            reason: "a file would be locked while the source is waited for",
            hint: "leave one of them out",
        };
        return Err(values.refuse("lockfile", rule));
    }
    if !matches!(engine, EngineKind::Filestat | EngineKind::Dirstat) {
        note_unused(planner, values, &["stat_type"], "the engine asks about no names");
    }
    let stat = match values.choice("stat_type") {
        Some("stat") => StatCall::Stat,
        Some("lstat") => StatCall::Lstat,
        _ => StatCall::Statx,
    };
    Ok(Handling { creates_only, advice, memory, locking, huge_page_bytes, stat, ..Handling::default() })
}

/// True if cached pages can matter in a further pass: the job is buffered, and goes over its files again.
pub(super) fn has_further_cached_passes(
    values: &Values,
    engine: EngineKind,
    direct: DirectPolicy,
    order: &Order,
    limits: &Limits,
    pass_bytes: u64,
) -> bool {
    let is_cached = engine.touches_files() && direct != DirectPolicy::Require && !values.bool("pre_read");
    is_cached && has_further_passes(order, limits, pass_bytes)
}

/// True if the job goes over its files again. fio, too, knows no passes of a job that is `time_based` and draws blocks
/// that may come again.
fn has_further_passes(order: &Order, limits: &Limits, pass_bytes: u64) -> bool {
    let is_drawn_again = matches!(order, Order::Random { each_block_once: false, .. });
    let has_passes = match limits.is_time_based {
        true => !is_drawn_again,
        false => limits.io_bytes.saturating_mul(limits.loops) > pass_bytes,
    };
    has_passes && limits.io_count.is_none_or(|count| count > 1)
}

/// What decides whether files can be removed and made again while a job runs.
pub(super) struct Remaking<'a> {
    pub(super) engine: EngineKind,
    pub(super) ops: Ops,
    pub(super) order: &'a Order,
    pub(super) limits: &'a Limits,
    pub(super) pass_bytes: u64,
    pub(super) files: &'a [JobFile],
    pub(super) is_verified: bool,
    pub(super) uring: &'a mut UringOptions,
}

/// Whether files are removed before each further pass, and made again (`unlink_each_loop`).
pub(super) fn plan_remaking(planner: &mut Planner, values: &mut Values, job: Remaking<'_>) -> Result<bool, Refusal> {
    const OPTION: &str = "unlink_each_loop";
    if !values.bool(OPTION) {
        return Ok(false);
    }
    let Remaking { engine, ops, order, limits, pass_bytes, files, is_verified, uring } = job;
    let is_device = |file: &JobFile| matches!(&file.facts, Some(facts) if facts.kind == TargetKind::BlockDevice);
    let because = if !has_further_passes(order, limits, pass_bytes) {
        "there is one pass"
    } else if files.iter().all(is_device) {
        "no device is removed"
    } else if !engine.opens_files() {
        "no file is opened here"
    } else {
        ""
    };
    if !because.is_empty() {
        note_unused(planner, values, &[OPTION], because);
        return Ok(false);
    }
    if !engine.touches_files() || engine == EngineKind::Mmap {
        let lack = "goes on with the file that it has, so that none can be made again (`unlink_each_loop`)".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "choose an engine that writes files, or leave it out" };
        return Err(values.refuse(OPTION, rule));
    }
    let others = [
        (
            "rw",
            ops.mix != OpMix::Only(OpKind::Write) || ops.trims,
            "a file that was made again holds nothing to be read or trimmed",
        ),
        ("verify", is_verified, "what an earlier pass wrote is gone"),
        (
            "numjobs",
            values.number("numjobs").is_some_and(|workers| workers > 1),
            "one worker would remove what another writes; jobs with files of their own can each remove theirs",
        ),
        (
            "registerfiles",
            uring.registered_files && values.is_said("registerfiles"),
            "the ring would keep the first ones",
        ),
        ("source", values.is_said("source"), "the source is fetched once"),
    ];
    if let Some((other, _, reason)) = others.into_iter().find(|(_, is_said, _)| *is_said) {
        let (one, other) = (values.quote(OPTION), values.quote(other));
        let rule = Rule::Contradiction { one, other, reason, hint: "leave one of them out" };
        return Err(values.refuse(OPTION, rule));
    }
    let refuse = |reason: String| values.refuse(OPTION, Rule::BadValue { option: OPTION, reason });
    let is_there = |file: &&JobFile| file.plan.prepare == Prepare::UseExisting || file.plan.extends_from.is_some();
    if let Some(file) = files.iter().find(is_there) {
        return Err(refuse(format!(
            "`{}` exists, and what exists is never removed; remove it before the run, or leave the option out",
            file.plan.path
        )));
    }
    if !limits.is_time_based && limits.loops > 1 && !limits.io_bytes.is_multiple_of(pass_bytes) {
        let (io, region) = (write_bytes(limits.io_bytes), write_bytes(pass_bytes));
        return Err(refuse(format!(
            "a loop of {io} is no whole number of passes over files of {region}, and would end in the middle of one"
        )));
    }
    if uring.registered_files {
        uring.registered_files = false;
        values.derive("registerfiles", "false", "the files are made again (`unlink_each_loop`)");
    }
    Ok(true)
}
