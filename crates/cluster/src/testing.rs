//! What unit tests of several files share.

use crate::message::{Done, OwnSpan};
use trueio_model::{EngineKind, JobPlan, Outcome, Plan, RunRecord};
use trueio_run::{Reporting, Request, Session, Targets};

/// A plan with one job of the `null` engine.
pub(crate) fn null_plan() -> Plan {
    Plan {
        jobs: vec![JobPlan::plain(EngineKind::Null, 1 << 20)],
        idle_baseline_ns: 0,
        idle_wait_ns: None,
        accepted_checks: Vec::new(),
        notes: Vec::new(),
        identities: std::collections::BTreeMap::new(),
    }
}

/// A request to run a plan.
pub(crate) fn request(plan: Plan) -> Request {
    Request {
        kind: "run".into(),
        command: Vec::new(),
        spec: Vec::new(),
        plan,
        targets: Targets::default(),
        has_evidence: false,
        reporting: Reporting::default(),
    }
}

/// The record of a run that has not begun.
pub(crate) fn head(plan: Plan) -> RunRecord {
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    Session::new(request(plan), &STOP).record().clone()
}

/// Results without figures.
pub(crate) fn done() -> Done {
    Done {
        phase: None,
        span: Some(OwnSpan::default()),
        targets: Vec::new(),
        outcome: Outcome::Complete,
        reached: Default::default(),
    }
}
