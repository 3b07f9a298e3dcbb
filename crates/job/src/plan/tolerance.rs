//! After which failed I/Os a job goes on, and which of them are its end.

use super::job::Ops;
use super::values::Values;
use super::{EDQUOT, ENOSPC};
use crate::refusal::{Refusal, Rule};
use trueio_model::{EngineKind, IgnoredError, OpKind, OpMix, Tolerance, Verify};

/// Whether the job writes until nothing is free (`fill_device`).
pub(super) fn plan_fill(values: &Values, engine: EngineKind, ops: Ops) -> Result<bool, Refusal> {
    if !values.bool("fill_device") {
        return Ok(false);
    }
    if !engine.touches_files() || engine == EngineKind::Mmap {
        let lack = "cannot fill a filesystem, as `fill_device` asks for".into();
        let rule = Rule::EngineLacks { engine, lack, hint: "choose an engine that writes files, or leave it out" };
        return Err(values.refuse("fill_device", rule));
    }
    if ops.mix != OpMix::Only(OpKind::Write) || ops.is_random || ops.trims {
        let rule = Rule::Contradiction {
            one: values.quote("fill_device"),
            other: values.quote("rw"),
            reason: "only a sequential write goes on until nothing is free",
            hint: "say `rw = \"write\"`; what else there is to measure, a job behind it does on another file",
        };
        return Err(values.refuse("fill_device", rule));
    }
    let others = [
        ("overwrite", values.bool("overwrite"), "what is filled by the job cannot be filled before it"),
        ("source", values.is_said("source"), "a source ends where its bytes do"),
    ];
    if let Some((other, _, reason)) = others.into_iter().find(|(_, is_said, _)| *is_said) {
        let (one, other) = (values.quote("fill_device"), values.quote(other));
        let rule = Rule::Contradiction { one, other, reason, hint: "leave one of them out" };
        return Err(values.refuse("fill_device", rule));
    }
    Ok(true)
}

/// `continue_on_error` of some errors, `ignore_error`, and the end that `fill_device` waits for.
pub(super) fn plan_tolerance(values: &Values, fills: bool, verify: Option<&Verify>) -> Result<Tolerance, Refusal> {
    let word = values.choice("continue_on_error");
    let lists = values.errors("ignore_error");
    let of = |op, list: &[i32]| list.iter().map(|&errno| IgnoredError { op, errno }).collect::<Vec<_>>();
    let mut ignored =
        lists.map_or_else(Vec::new, |[reads, writes]| [of(OpKind::Read, reads), of(OpKind::Write, writes)].concat());
    if fills {
        let ends = of(OpKind::Write, &[ENOSPC, EDQUOT]);
        ignored.extend(ends.into_iter().filter(|end| !ignored.contains(end)).collect::<Vec<_>>());
    }
    // What a block holds after a write that failed is not known, and a run must not end well without having looked.
    let is_read_back = verify.is_some_and(|verify| verify.reads_back && !verify.is_offline);
    if is_read_back && ignored.iter().any(|error| error.op == OpKind::Write) {
        let option = if fills { "fill_device" } else { "ignore_error" };
        let rule = Rule::Contradiction {
            one: values.quote(option),
            other: values.quote("verify"),
            reason: "after a write that failed nobody knows what its block holds, so that it could be compared",
            hint: match fills {
                true => "leave `verify` out; a file that is kept can be read and compared by another run",
                false => "leave out the errors of writes, or `verify`",
            },
        };
        return Err(values.refuse(option, rule));
    }
    Ok(Tolerance { reads: word == Some("read"), writes: word == Some("write"), ignored, ends_when_full: fills })
}
