//! What makes writes durable: flags of the opening, and sync calls.

use super::Planner;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{EngineKind, Flush, OpKind, SyncMode};

pub(super) fn plan_sync(
    planner: &mut Planner,
    values: &Values,
    engine: EngineKind,
    ops: Ops,
) -> Result<SyncMode, Refusal> {
    let sync = match values.choice("sync") {
        Some("dsync") => SyncMode::Dsync,
        Some("sync") => SyncMode::Sync,
        _ => SyncMode::None,
    };
    if sync != SyncMode::None && engine == EngineKind::Mmap && ops.has(OpKind::Write) {
        let lack = "copies into memory, where O_SYNC and O_DSYNC mean nothing".into();
        let hint = "use `fsync = N` or `fdatasync = N`, or another engine";
        return Err(values.refuse("sync", Rule::EngineLacks { engine, lack, hint }));
    }
    if !engine.touches_files() {
        let because = format!("{} moves no data", engine.name());
        note_unused(planner, values, &["sync", "invalidate"], &because);
    }
    Ok(sync)
}

/// Sync calls between the writes and after them.
pub(super) fn plan_flush(planner: &mut Planner, values: &Values, engine: EngineKind) -> Result<Flush, Refusal> {
    let contradiction = |one, other, reason, hint| {
        let rule = Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, hint };
        Err(values.refuse(other, rule))
    };
    let flush = Flush {
        fsync_every: values.number("fsync").unwrap_or(0),
        fdatasync_every: values.number("fdatasync").unwrap_or(0),
        end_fsync: values.bool("end_fsync"),
        end_fdatasync: values.bool("end_fdatasync"),
        fsync_on_close: values.bool("fsync_on_close"),
        range: values.range_sync("sync_file_range"),
    };
    if flush.range.is_some() {
        if engine.works_on_names() {
            let lack = "has no file in which a range could be written out".into();
            return Err(values.refuse("sync_file_range", Rule::EngineLacks { engine, lack, hint: "leave it out" }));
        }
        let calls = [("fsync", flush.fsync_every), ("fdatasync", flush.fdatasync_every)];
        if let Some((other, _)) = calls.into_iter().find(|(_, every)| *every > 0) {
            let hint = "say one of them: with `sync_file_range`, `end_fsync` makes it durable at the end";
            return contradiction(other, "sync_file_range", "a job makes one kind of sync call", hint);
        }
    }
    if flush.fsync_every > 0 && flush.fdatasync_every > 0 {
        let hint = "say one of them: `fsync` includes what `fdatasync` does";
        return contradiction("fsync", "fdatasync", "a job makes one kind of sync call", hint);
    }
    for (name, is_set) in [("end_fsync", flush.end_fsync), ("fsync_on_close", flush.fsync_on_close)] {
        if flush.end_fdatasync && is_set {
            let reason = "the one call would take the work from the other, and neither would be measured";
            return contradiction(name, "end_fdatasync", reason, "say one of them");
        }
    }
    if flush.end_fsync && flush.fsync_on_close {
        note_unused(planner, values, &["fsync_on_close"], "`end_fsync` makes the call");
    }
    Ok(flush)
}
