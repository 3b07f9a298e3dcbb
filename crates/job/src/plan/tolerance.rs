//! After which failed I/Os a job goes on.

use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{IgnoredError, OpKind, Tolerance, Verify};

/// `continue_on_error` of some errors, and `ignore_error`.
pub(super) fn plan_tolerance(values: &Values, verify: Option<&Verify>) -> Result<Tolerance, Refusal> {
    let word = values.choice("continue_on_error");
    let lists = values.errors("ignore_error");
    let of = |op, list: &[i32]| list.iter().map(|&errno| IgnoredError { op, errno }).collect::<Vec<_>>();
    let ignored =
        lists.map_or_else(Vec::new, |[reads, writes]| [of(OpKind::Read, reads), of(OpKind::Write, writes)].concat());
    // What a block holds after a write that failed is not known, and a run must not end well without having looked.
    let is_read_back = verify.is_some_and(|verify| verify.reads_back && !verify.is_offline);
    if is_read_back && ignored.iter().any(|error| error.op == OpKind::Write) {
        let rule = Rule::Contradiction {
            one: values.quote("ignore_error"),
            other: values.quote("verify"),
            reason: "after a write that failed nobody knows what its block holds, so that it could be compared",
            hint: "leave out the errors of writes, or `verify`",
        };
        return Err(values.refuse("ignore_error", rule));
    }
    Ok(Tolerance { reads: word == Some("read"), writes: word == Some("write"), ignored })
}
