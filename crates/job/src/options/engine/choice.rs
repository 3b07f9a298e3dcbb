//! The engine, its capabilities, and its queue depth.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::durability::rows::{ATOMIC, NOWAIT, RWF_DSYNC, UNCACHED};
use crate::options::engine::rows::{
    CPUCHUNKS, CPULOAD, CPUMODE, CpuMode, DRAIN, EXIT_ON_IO_DONE, FIXEDBUFS, FORCE_ASYNC, HIPRI, HIPRI_PERCENTAGE,
    IODEPTH, IODEPTH_BATCH, IODEPTH_BATCH_COMPLETE_MAX, IODEPTH_BATCH_COMPLETE_MIN, IODEPTH_LOW, IOENGINE, NONVECTORED,
    REGISTERFILES, SERIALIZE_OVERLAP, SQTHREAD_POLL, SQTHREAD_POLL_CPU,
};
use crate::options::limits::rows::RUNTIME;
use crate::options::pace::rows::LATENCY_TARGET;
use crate::options::pattern::rows::RW;
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::FILENAME;
use crate::refusal::{Case, Refusal, Rule};
use crate::values::Values;
use trueio_model::{CpuLoad, EngineKind, OpKind, OpMix, Prepare, Queue, TargetKind, UringOptions, WriteFlags};

pub(crate) fn plan_engine(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    ops: Ops,
    write_flags: WriteFlags,
) -> Result<EngineKind, Refusal> {
    let engines = &values.machine.engines;
    let depth = values.get(IODEPTH);
    if let Some(engine) = values.get(IOENGINE) {
        let state = engines.of(engine);
        if let Some(reason) = state.unavailable {
            return Err(values.refuse(IOENGINE, Rule::EngineUnavailable { engine, reason }));
        }
        if depth > 1 && !engine.holds_a_queue() {
            return Err(values.refuse(IODEPTH, Rule::DepthOnBlockingEngine { engine, depth }));
        }
        if ops.trims && !state.can_trim {
            let lack = "cannot trim here".into();
            return Err(values.refuse(RW, Rule::EngineLacks { engine, lack, case: Case::EngineTrims }));
        }
        return Ok(engine);
    }
    // io_uring first; where it does not work, libaio for a queue, and a blocking engine for one I/O
    // at a time. The depth is never lowered to fit an engine.
    let needs_flags = write_flags != WriteFlags::default() || values.get(HIPRI);
    let fallback = match (depth > 1, needs_flags) {
        (true, _) => EngineKind::Libaio,
        (false, true) => EngineKind::Pvsync2,
        (false, false) => EngineKind::Psync,
    };
    let mut reasons = Vec::new();
    for engine in [EngineKind::IoUring, fallback] {
        let state = engines.of(engine);
        match state.unavailable {
            Some(reason) => reasons.push(format!("{} does not work here ({reason})", engine.name())),
            None if ops.trims && !state.can_trim => {
                reasons.push(format!("{} cannot trim", engine.name()));
            }
            None => {
                reasons.push(format!("{} works here", engine.name()));
                decisions.derive(IOENGINE, engine.name(), reasons.join("; "));
                return Ok(engine);
            }
        }
    }
    let rule = Rule::EngineUnavailable { engine: EngineKind::IoUring, reason: reasons.join("; ") };
    Err(values.refuse(IODEPTH, rule))
}

/// Plans RWF flags and io_uring's options, and refuses those that the engine lacks.
pub(crate) fn plan_engine_options(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    ops: Ops,
    flags: WriteFlags,
) -> Result<(WriteFlags, UringOptions), Refusal> {
    let is_uring = engine == EngineKind::IoUring;
    let takes_flags = matches!(engine, EngineKind::Pvsync2 | EngineKind::Libaio | EngineKind::IoUring);
    for (name, is_set) in [
        (RWF_DSYNC.row(), flags.dsync),
        (UNCACHED.row(), flags.dontcache),
        (ATOMIC.row(), flags.atomic),
        (NOWAIT.row(), flags.nowait),
    ] {
        if is_set && !takes_flags {
            let lack = format!("takes no RWF flags, which `{}` requires", name.name);
            let case = Case::EngineFlags;
            return Err(values.refuse(name, Rule::EngineLacks { engine, lack, case }));
        }
    }
    let hipri = values.get(HIPRI);
    if hipri && !matches!(engine, EngineKind::Pvsync2 | EngineKind::IoUring) {
        let lack = "cannot poll for completions".into();
        let case = Case::EnginePolls;
        return Err(values.refuse(HIPRI, Rule::EngineLacks { engine, lack, case }));
    }
    if hipri && ops.trims {
        let lack = "cannot poll for trims".into();
        return Err(values.refuse(HIPRI, Rule::EngineLacks { engine, lack, case: Case::PolledTrims }));
    }
    let hipri_percent = Some(values.get(HIPRI_PERCENTAGE)).filter(|percent| *percent < 100);
    if hipri_percent.is_some() && hipri && is_uring {
        let lack =
            "polls for all completions of its ring, or for none; as in fio, only `pvsync2` polls for a share".into();
        let case = Case::PolledShare;
        return Err(values.refuse(HIPRI_PERCENTAGE, Rule::EngineLacks { engine, lack, case }));
    }
    if !hipri {
        decisions.note_unused(values, &[HIPRI_PERCENTAGE.row()], "completions are not polled (`hipri`)");
    }
    for option in [FIXEDBUFS, REGISTERFILES, SQTHREAD_POLL, DRAIN] {
        let name = option.name;
        if is_uring || !values.get(option) {
            continue;
        }
        if values.is_set(option) {
            let lack = format!("has no ring, which `{name}` requires");
            return Err(values.refuse(option, Rule::EngineLacks { engine, lack, case: Case::EngineRing }));
        }
        decisions.derive(option, "false", format!("{} has no ring", engine.name()));
    }
    let force_async = values.get(FORCE_ASYNC);
    for (name, is_set) in [(FORCE_ASYNC.row(), force_async > 0), (NONVECTORED.row(), !values.get(NONVECTORED))] {
        if is_set && !is_uring {
            let lack = format!("has no ring, which `{}` requires", name.name);
            return Err(values.refuse(name, Rule::EngineLacks { engine, lack, case: Case::EngineRing }));
        }
    }
    if !values.get(SQTHREAD_POLL) {
        decisions.note_unused(values, &[SQTHREAD_POLL_CPU.row()], "no kernel thread polls (`sqthread_poll`)");
    }
    let sqpoll_cpu = values.get(SQTHREAD_POLL_CPU);
    if let Some(cpu) = sqpoll_cpu.filter(|cpu| !values.machine.cpus.is_empty() && !values.machine.cpus.contains(cpu)) {
        return Err(values.refuse(SQTHREAD_POLL_CPU, Rule::ProcessorNotThere { option: SQTHREAD_POLL_CPU.name, cpu }));
    }
    let uring = UringOptions {
        sqpoll_cpu: sqpoll_cpu.filter(|_| is_uring && values.get(SQTHREAD_POLL)),
        async_every: force_async,
        vectored: is_uring && !values.get(NONVECTORED),
        registered_buffers: is_uring && values.get(FIXEDBUFS),
        registered_files: is_uring && values.get(REGISTERFILES),
        sqpoll: is_uring && values.get(SQTHREAD_POLL),
        iopoll: is_uring && hipri,
        drain: is_uring && values.get(DRAIN),
    };
    if uring.drain && uring.iopoll {
        let rule = Rule::Contradiction {
            one: values.quote(DRAIN),
            other: values.quote(HIPRI),
            reason: "a request that waits for earlier ones is not polled for until then",
            case: Case::LeaveOneOut,
        };
        return Err(values.refuse(DRAIN, rule));
    }
    let hipri = hipri && engine == EngineKind::Pvsync2;
    let hipri_percent = hipri_percent.filter(|_| hipri).and_then(|percent| u8::try_from(percent).ok());
    Ok((WriteFlags { hipri, hipri_percent, ..flags }, uring))
}

/// Refuses to poll if a disk does not support it: io_uring's first I/O would fail with EOPNOTSUPP, and `RWF_HIPRI` would
/// have no effect.
///
/// Source: Linux `Documentation/ABI/stable/sysfs-block`, `queue/io_poll`.
pub(crate) fn check_polling(values: &Values, files: &[JobFile]) -> Result<(), Refusal> {
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let can_not = |disk: &&trueio_model::DiskFacts| disk.limits.can_poll.value == Some(false);
        if let Some(disk) = facts.disks.iter().find(can_not) {
            let rule = Rule::PollImpossible {
                path: file.plan.path.clone(),
                disk: disk.name.clone(),
                source_text: format!("{} is 0", disk.limits.can_poll.source),
            };
            return Err(values.refuse(HIPRI, rule));
        }
    }
    Ok(())
}

/// Plans the load of `cpuio`, which ends by its runtime or with the I/O of other jobs.
pub(crate) fn plan_cpu_load(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<Option<CpuLoad>, Refusal> {
    if engine != EngineKind::Cpuio {
        decisions.note_unused(
            values,
            &[CPULOAD.row(), CPUCHUNKS.row(), CPUMODE.row(), EXIT_ON_IO_DONE.row()],
            "the engine is not `cpuio`",
        );
        return Ok(None);
    }
    let incomplete = |option: &'static OptionRow, needs| {
        let rule = Rule::Incomplete { option: values.quote(IOENGINE), needs, case: Case::CpuAlone };
        Err(values.refuse(option, rule))
    };
    let Some(percent) = values.get(CPULOAD) else {
        return incomplete(CPULOAD.row(), "`cpuload`: the share of the processor's time");
    };
    let ends_with_io = values.get(EXIT_ON_IO_DONE);
    if values.get(RUNTIME).is_none() && !ends_with_io {
        return incomplete(RUNTIME.row(), "`runtime` or `exit_on_io_done`: nothing else ends it");
    }
    let percent = u8::try_from(percent).expect("the row's bounds keep it small");
    let chunk_ns = values.get(CPUCHUNKS).unwrap_or(50_000_000);
    Ok(Some(CpuLoad { percent, chunk_ns, sorts: values.get(CPUMODE) == CpuMode::Qsort, ends_with_io }))
}

/// Refuses what the engines that move no data cannot do.
pub(crate) fn check_without_data(
    values: &Values,
    engine: EngineKind,
    ops: Ops,
    files: &[JobFile],
) -> Result<(), Refusal> {
    let refuse = |option: &'static OptionRow, lack: String, case| {
        Err(values.refuse(option, Rule::EngineLacks { engine, lack, case }))
    };
    let is_device = |file: &&JobFile| file.facts.as_ref().is_some_and(|f| f.kind == TargetKind::BlockDevice);
    if let Some(file) = files.iter().find(is_device) {
        let lack = format!("works on files, and `{}` is a block device", file.plan.path);
        return refuse(FILENAME.row(), lack, Case::EngineOfFiles);
    }
    if engine == EngineKind::E4defrag && (!matches!(ops.mix, OpMix::Only(OpKind::Write)) || ops.trims) {
        let lack = "only writes: it changes where the file's blocks are".into();
        return refuse(RW.row(), lack, Case::EngineOnlyWrites);
    }
    if engine == EngineKind::Ftruncate {
        if !matches!(ops.mix, OpMix::Only(OpKind::Write)) {
            return refuse(RW.row(), "only writes: it changes the length of files".into(), Case::EngineOnlyWrites);
        }
        // It may only cut off data of the region, which `overwrite_existing` names.
        let reaches_beyond = |file: &&JobFile| {
            let there = file.facts.as_ref().and_then(|facts| facts.size_bytes.value);
            file.plan.prepare == Prepare::UseExisting
                && there.is_none_or(|there| there > file.plan.offset_bytes + file.plan.size_bytes)
        };
        if let Some(file) = files.iter().find(reaches_beyond) {
            let lack = format!("would cut off the data of `{}` after the region", file.plan.path);
            return refuse(FILENAME.row(), lack, Case::CutsData);
        }
    }
    Ok(())
}

pub(crate) fn plan_queue(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<Queue, Refusal> {
    let depth = values.get(IODEPTH);
    let submit_batch = values.get(IODEPTH_BATCH);
    let complete_min = values.get(IODEPTH_BATCH_COMPLETE_MIN);
    let complete_max = values.get(IODEPTH_BATCH_COMPLETE_MAX);
    let contradiction = |values: &Values, one: &'static OptionRow, other: &'static OptionRow, reason, case| {
        let rule = Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, case };
        values.refuse(one, rule)
    };
    if submit_batch.is_some_and(|batch| batch > depth) {
        let reason = "a batch cannot be larger than the queue";
        return Err(contradiction(values, IODEPTH_BATCH.row(), IODEPTH.row(), reason, Case::BatchBeyondDepth));
    }
    if complete_min > depth {
        let reason = "no more I/Os can complete than are in flight";
        let case = Case::BatchBeyondDepth;
        return Err(contradiction(values, IODEPTH_BATCH_COMPLETE_MIN.row(), IODEPTH.row(), reason, case));
    }
    if complete_max > 0 && complete_max < complete_min {
        let (one, other) = (IODEPTH_BATCH_COMPLETE_MAX.row(), IODEPTH_BATCH_COMPLETE_MIN.row());
        return Err(contradiction(values, one, other, "the maximum is less than the minimum", Case::BatchMaximum));
    }
    let low = values.get(IODEPTH_LOW).unwrap_or(0);
    if low > depth {
        let reason = "no more I/Os than the depth are in flight";
        return Err(contradiction(values, IODEPTH_LOW.row(), IODEPTH.row(), reason, Case::LowBeyondDepth));
    }
    if low > 0 && values.get(LATENCY_TARGET).is_some() {
        let reason = "the search for a depth keeps the queue at one depth, and `iodepth_low` lets it drain";
        return Err(contradiction(values, IODEPTH_LOW.row(), LATENCY_TARGET.row(), reason, Case::TargetDrained));
    }
    if submit_batch.is_none() {
        let reason = if engine.holds_a_queue() {
            "adapted to the device's latency, so that batching does not lengthen it"
        } else {
            "the engine holds one I/O at a time"
        };
        decisions.derive(IODEPTH_BATCH, if engine.holds_a_queue() { "adaptive" } else { "1" }, reason);
    }
    // At the depth, or one below, it has no effect: one completion suffices.
    let low = if low + 1 >= depth { 0 } else { low };
    let serializes_overlap = values.get(SERIALIZE_OVERLAP) && depth > 1;
    if depth == 1 {
        decisions.note_unused(values, &[SERIALIZE_OVERLAP.row()], "one I/O at a time overlaps with none");
    }
    Ok(Queue { depth, submit_batch, complete_min, complete_max, low, serializes_overlap })
}
