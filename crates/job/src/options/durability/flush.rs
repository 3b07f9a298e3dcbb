//! Durability of writes: open flags and sync calls.

use crate::input::{Decisions, JobInput};
use crate::options::durability::rows::{
    END_FDATASYNC, END_FSYNC, FDATASYNC, FSYNC, FSYNC_ON_CLOSE, INVALIDATE, SYNC, SYNC_FILE_RANGE,
};
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{EngineKind, Flush, SyncMode};

pub(crate) fn plan_sync(values: &JobInput<'_>, decisions: &mut Decisions, engine: EngineKind) -> SyncMode {
    let sync = values.get(SYNC);
    if !engine.touches_files() {
        let because = format!("{} moves no data", engine.name());
        decisions.note_unused(values, &[SYNC.row(), INVALIDATE.row()], &because);
    }
    sync
}

/// Plans sync calls between the writes and after them.
pub(crate) fn plan_flush(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<Flush, Refusal> {
    let contradiction = |one, other, reason, case| {
        let rule = Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, case };
        Err(values.refuse(other, rule))
    };
    let flush = Flush {
        fsync_every: values.get(FSYNC),
        fdatasync_every: values.get(FDATASYNC),
        end_fsync: values.get(END_FSYNC),
        end_fdatasync: values.get(END_FDATASYNC),
        fsync_on_close: values.get(FSYNC_ON_CLOSE),
        range: values.get(SYNC_FILE_RANGE),
    };
    if flush.range.is_some() && engine.works_on_names() {
        let lack = "does no writes of data".into();
        return Err(values.refuse(SYNC_FILE_RANGE, Rule::EngineLacks { engine, lack, case: Case::EngineRanges }));
    }
    for (name, is_set) in [(END_FSYNC.row(), flush.end_fsync), (FSYNC_ON_CLOSE.row(), flush.fsync_on_close)] {
        if flush.end_fdatasync && is_set {
            let reason = "the first call would leave no work for the second";
            return contradiction(name, END_FDATASYNC.row(), reason, Case::SetOnlyOne);
        }
    }
    if flush.end_fsync && flush.fsync_on_close {
        decisions.note_unused(values, &[FSYNC_ON_CLOSE.row()], "`end_fsync` makes the call");
    }
    Ok(flush)
}
