//! The failed I/Os after which a job continues, and those that end it.

use crate::facts::{EDQUOT, ENOSPC};
use crate::options::content::rows::SOURCE;
use crate::options::limits::rows::FILL_DEVICE;
use crate::options::pattern::rows::RW;
use crate::options::process::rows::{CONTINUE_ON_ERROR, ContinueOnError, IGNORE_ERROR};
use crate::options::shape::Ops;
use crate::options::target::rows::OVERWRITE;
use crate::refusal::{Case, Refusal, Rule};
use crate::values::Values;
use trueio_model::{EngineKind, IgnoredError, OpKind, OpMix, Tolerance};

/// Returns true if the job writes until the filesystem is full (`fill_device`).
pub(crate) fn plan_fill(values: &Values, engine: EngineKind, ops: Ops) -> Result<bool, Refusal> {
    if !values.get(FILL_DEVICE) {
        return Ok(false);
    }
    if !engine.touches_files() || engine == EngineKind::Mmap {
        let lack = "cannot fill a filesystem, which `fill_device` requires".into();
        let rule = Rule::EngineLacks { engine, lack, case: Case::EngineFills };
        return Err(values.refuse(FILL_DEVICE, rule));
    }
    if ops.mix != OpMix::Only(OpKind::Write) || ops.is_random || ops.trims {
        let rule = Rule::Contradiction {
            one: values.quote(FILL_DEVICE),
            other: values.quote(RW),
            reason: "only a sequential write fills a filesystem",
            case: Case::FillsInOrder,
        };
        return Err(values.refuse(FILL_DEVICE, rule));
    }
    let others = [
        (OVERWRITE.row(), values.get(OVERWRITE), "a file that the job fills cannot be filled before it"),
        (SOURCE.row(), values.is_set(SOURCE), "a source has an end of its own"),
    ];
    if let Some((other, _, reason)) = others.into_iter().find(|(_, is_set, _)| *is_set) {
        let (one, other) = (values.quote(FILL_DEVICE), values.quote(other));
        let rule = Rule::Contradiction { one, other, reason, case: Case::FillsOverwritten };
        return Err(values.refuse(FILL_DEVICE, rule));
    }
    Ok(true)
}

/// Plans `continue_on_error` of some operations, `ignore_error`, and the error that ends `fill_device`.
pub(crate) fn plan_tolerance(values: &Values, fills: bool) -> Tolerance {
    let continues = values.get(CONTINUE_ON_ERROR);
    let lists = values.get(IGNORE_ERROR);
    let of = |op, list: &[i32]| list.iter().map(|&errno| IgnoredError { op, errno }).collect::<Vec<_>>();
    let mut ignored =
        lists.map_or_else(Vec::new, |[reads, writes]| [of(OpKind::Read, reads), of(OpKind::Write, writes)].concat());
    if fills {
        let ends = of(OpKind::Write, &[ENOSPC, EDQUOT]);
        ignored.extend(ends.into_iter().filter(|end| !ignored.contains(end)).collect::<Vec<_>>());
    }
    Tolerance {
        reads: continues == ContinueOnError::Read,
        writes: continues == ContinueOnError::Write,
        ignored,
        ends_when_full: fills,
    }
}
