//! What unit tests of several files share.

use crate::message::{Done, OwnSpan};
use trueio_model::{EngineKind, FilePlan, JobPlan, Outcome, PhaseRecord, Plan, Prepare, RunRecord};
use trueio_run::{Reporting, Request, Session, Targets};

/// A plan with one job of the `null` engine.
pub(crate) fn null_plan() -> Plan {
    Plan {
        jobs: vec![JobPlan::plain(EngineKind::Null, 1 << 20)],
        idle_baseline_ns: 0,
        idle_wait_ns: None,
        accepted_checks: Vec::new(),
        limits: None,
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
    Done { span: Some(OwnSpan::default()), ..Done::without_figures(Outcome::Complete) }
}

/// The results of a phase that was run once, with its histograms.
pub(crate) fn measured() -> PhaseRecord {
    struct Silent;
    impl trueio_run::Observer for Silent {}
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let mut plan = null_plan();
    plan.jobs[0].files.push(FilePlan {
        path: "f".to_owned(),
        prepare: Prepare::Nothing,
        remove_after: false,
        offset_bytes: 0,
        size_bytes: 1 << 20,
        extends_from: None,
    });
    let mut session = Session::new(request(plan), &STOP);
    session.run_phase(0, |_| {}, &mut Silent).expect("it runs")
}
