//! The handling of a job's files and buffers apart from the I/O: memory, advice, locks, removal between passes.

use crate::input::{Decisions, JobInput};
use crate::options::content::rows::{HUGEPAGE_SIZE, MEM, SOURCE, VERIFY};
use crate::options::durability::rows::{AccessHint, FADVISE_HINT, PRE_READ, STAT_TYPE, WRITE_HINT};
use crate::options::engine::rows::{INPLACE, NUMJOBS, REGISTERFILES};
use crate::options::limits::rows::STEADY_STATE;
use crate::options::pattern::rows::RW;
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{CREATE_ONLY, LOCKFILE, NEW_FILE_ACCESS, RENEW_FILES, UNLINK_EACH_LOOP};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{
    Advice, DirectPolicy, EngineKind, Handling, Limits, Locking, OpKind, OpMix, Order, Prepare, TargetKind,
    UringOptions, WriteHint,
};

/// Plans buffers, advice and locks, and whether files are only created.
pub(crate) fn plan_handling(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    ops: Ops,
) -> Result<Handling, Refusal> {
    let memory = values.get(MEM);
    let huge_page_bytes = if memory.is_huge() { values.get(HUGEPAGE_SIZE) } else { 0 };
    if memory.is_huge() && (!huge_page_bytes.is_power_of_two() || huge_page_bytes < 4096) {
        let reason = "the size of a page is a power of two, such as 2m or 1g".to_owned();
        let option = HUGEPAGE_SIZE.row();
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    }
    if !memory.is_huge() {
        decisions.note_unused(values, &[HUGEPAGE_SIZE.row()], "the buffers are not in huge pages (`mem`)");
    }
    let advice = match values.get(FADVISE_HINT) {
        AccessHint::Pattern if ops.is_random => Advice::Random,
        AccessHint::Pattern | AccessHint::Sequential => Advice::Sequential,
        AccessHint::Random => Advice::Random,
        AccessHint::Noreuse => Advice::Noreuse,
        AccessHint::None => Advice::None,
    };
    let opens_files = engine.opens_files() && engine != EngineKind::Command;
    if !opens_files && advice != Advice::None {
        decisions.note_unused(values, &[FADVISE_HINT.row()], "no file is opened here");
    }
    let creates_only = values.get(CREATE_ONLY);
    if creates_only && !engine.opens_files() {
        let because = format!("the engine `{}` opens no files, so none is created", engine.name());
        decisions.note(format!("{}: {because}, and there is no I/O", values.quote(CREATE_ONLY)));
    }
    if creates_only && values.get(STEADY_STATE) {
        let rule = Rule::Contradiction {
            one: values.quote(CREATE_ONLY),
            other: values.quote(STEADY_STATE),
            reason: "without I/O nothing becomes steady",
            case: Case::LeaveOneOut,
        };
        return Err(values.refuse(STEADY_STATE, rule));
    }
    let advice = if opens_files { advice } else { Advice::None };
    let write_hint = if opens_files { values.get(WRITE_HINT) } else { WriteHint::Unchanged };
    if !opens_files {
        decisions.note_unused(values, &[WRITE_HINT.row()], "no file is opened here");
    }
    let locking = match values.get(LOCKFILE) {
        Locking::Exclusive | Locking::Readwrite if !opens_files => {
            decisions.note_unused(values, &[LOCKFILE.row()], "no file is opened here");
            Locking::None
        }
        locking => locking,
    };
    if locking != Locking::None && values.is_set(SOURCE) {
        let rule = Rule::Contradiction {
            one: values.quote(LOCKFILE),
            other: values.quote(SOURCE),
            reason: "the file would stay locked while the job waits for the source",
            case: Case::LeaveOneOut,
        };
        return Err(values.refuse(LOCKFILE, rule));
    }
    if !matches!(engine, EngineKind::Filestat | EngineKind::Dirstat) {
        decisions.note_unused(values, &[STAT_TYPE.row()], "the engine calls no stat");
    }
    if engine != EngineKind::E4defrag {
        decisions.note_unused(values, &[INPLACE.row()], "the engine is not `e4defrag`");
    }
    let allocates_each_donor = engine == EngineKind::E4defrag && values.get(INPLACE);
    let stat = values.get(STAT_TYPE);
    let new_files = values.get(NEW_FILE_ACCESS);
    Ok(Handling {
        creates_only,
        advice,
        write_hint,
        memory,
        locking,
        huge_page_bytes,
        stat,
        new_files,
        renews_files: values.get(RENEW_FILES),
        allocates_each_donor,
        ..Handling::default()
    })
}

/// Returns true if cached pages can matter in a further pass: the job is buffered and begins one.
pub(crate) fn has_further_cached_passes(
    values: &Values,
    engine: EngineKind,
    direct: DirectPolicy,
    order: &Order,
    limits: &Limits,
    pass_bytes: u64,
) -> bool {
    let is_cached = engine.touches_files() && direct != DirectPolicy::Require && !values.get(PRE_READ);
    is_cached && has_further_passes(order, limits, pass_bytes)
}

/// Returns true if the job begins a further pass over its files. As in fio, a job that is `time_based` and draws blocks that
/// may repeat has no passes.
fn has_further_passes(order: &Order, limits: &Limits, pass_bytes: u64) -> bool {
    let is_drawn_again = matches!(order, Order::Random { each_block_once: false, .. });
    let has_passes = match limits.is_time_based {
        true => !is_drawn_again,
        false => limits.io_bytes.saturating_mul(limits.loops) > pass_bytes,
    };
    has_passes && limits.io_count.is_none_or(|count| count > 1)
}

/// What `unlink_each_loop` depends on.
pub(crate) struct Remaking<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) ops: Ops,
    pub(crate) order: &'a Order,
    pub(crate) limits: &'a Limits,
    pub(crate) pass_bytes: u64,
    pub(crate) files: &'a [JobFile],
    pub(crate) is_verified: bool,
    pub(crate) uring: &'a mut UringOptions,
}

/// Plans whether files are removed before each further pass, and created again (`unlink_each_loop`).
pub(crate) fn plan_remaking(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    job: Remaking<'_>,
) -> Result<bool, Refusal> {
    if !values.get(UNLINK_EACH_LOOP) {
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
        decisions.note_unused(values, &[UNLINK_EACH_LOOP.row()], because);
        return Ok(false);
    }
    if !engine.touches_files() || engine == EngineKind::Mmap {
        let lack = "keeps its file, which `unlink_each_loop` would replace".into();
        let rule = Rule::EngineLacks { engine, lack, case: Case::EngineRemakes };
        return Err(values.refuse(UNLINK_EACH_LOOP, rule));
    }
    let others = [
        (
            RW.row(),
            ops.mix != OpMix::Only(OpKind::Write) || ops.trims,
            "a file that was created again holds no data to read or trim",
        ),
        (VERIFY.row(), is_verified, "the data of earlier passes is removed"),
        (
            NUMJOBS.row(),
            values.get(NUMJOBS) > 1,
            "one worker would remove the file that another writes; use several jobs, each with its own file",
        ),
        (
            REGISTERFILES.row(),
            uring.registered_files && values.is_set(REGISTERFILES),
            "the ring would keep the removed files",
        ),
        (SOURCE.row(), values.is_set(SOURCE), "the source is fetched once"),
    ];
    if let Some((other, _, reason)) = others.into_iter().find(|(_, is_set, _)| *is_set) {
        let (one, other) = (values.quote(UNLINK_EACH_LOOP), values.quote(other));
        let rule = Rule::Contradiction { one, other, reason, case: Case::Remade };
        return Err(values.refuse(UNLINK_EACH_LOOP, rule));
    }
    let refuse =
        |reason: String| values.refuse(UNLINK_EACH_LOOP, Rule::BadValue { option: UNLINK_EACH_LOOP.name, reason });
    let is_there = |file: &&JobFile| file.plan.prepare == Prepare::UseExisting || file.plan.extends_from.is_some();
    if let Some(file) = files.iter().find(is_there) {
        return Err(refuse(format!(
            "`{}` exists, and existing files are never removed; remove it before the run, or leave the option out",
            file.plan.path
        )));
    }
    if !limits.is_time_based && limits.loops > 1 && !limits.io_bytes.is_multiple_of(pass_bytes) {
        let (io, region) = (write_bytes(limits.io_bytes), write_bytes(pass_bytes));
        return Err(refuse(format!("a loop of {io} is not a whole number of passes over files of {region}")));
    }
    if uring.registered_files {
        uring.registered_files = false;
        decisions.derive(REGISTERFILES, "false", "the files are created again (`unlink_each_loop`)");
    }
    Ok(true)
}
