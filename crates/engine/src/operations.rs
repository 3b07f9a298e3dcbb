//! Which operations a job does, and so which figures it has.

use trueio_model::{JobPlan, OpKind, OpMix};

/// The operations that a job may do, sync calls among them.
pub fn operations(plan: &JobPlan) -> Vec<OpKind> {
    operations_and_single(plan).0
}

/// The same, and the only kind of transfer, if there is one.
pub(crate) fn operations_and_single(plan: &JobPlan) -> (Vec<OpKind>, Option<OpKind>) {
    let (mut ops, single_op) = match plan.pattern.mix {
        _ if plan.verify.as_ref().is_some_and(|verify| verify.is_offline) => (vec![OpKind::Read], Some(OpKind::Read)),
        _ if let Some(replay) = &plan.replay => {
            let transfers: Vec<_> = replay.ops.iter().copied().filter(|op| *op != OpKind::Sync).collect();
            (replay.ops.clone(), <[_; 1]>::try_from(transfers).ok().map(|[op]| op))
        }
        OpMix::Only(op) => (vec![op], Some(op)),
        OpMix::ReadWrite { .. } => (vec![OpKind::Read, OpKind::Write], None),
    };
    let trims_first = plan.pattern.steps.trims_first;
    if trims_first || plan.verify.as_ref().is_some_and(|verify| verify.trim.is_some()) {
        ops.push(OpKind::Trim);
    }
    if plan.flush.is_between() || plan.flush.is_at_end() {
        ops.push(OpKind::Sync);
    }
    (ops, single_op.filter(|_| !trims_first))
}
