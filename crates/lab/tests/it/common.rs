//! What the cases share: reading the record that a run inside the machine left.

// An example uses a part of this.
#![allow(dead_code)]

use trueio_lab::{Machine, Ran};
use trueio_model::{Check, CheckOutcome, IoFailure, OpKind, Outcome, RunRecord};

/// The record that `--json -` printed.
#[track_caller]
pub(crate) fn record_of(ran: &Ran) -> RunRecord {
    trueio_report::parse(&ran.out).unwrap_or_else(|error| panic!("{error}\n{ran:?}"))
}

/// The record in a file of the machine.
#[track_caller]
pub(crate) fn record_in(machine: &mut Machine, path: &str) -> RunRecord {
    let text = String::from_utf8(machine.get(path)).expect("UTF-8");
    trueio_report::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Asserts that a run ended with this code; if not, prints from the record why: its outcome, and the failed checks.
#[track_caller]
pub(crate) fn assert_ended(record: &RunRecord, code: i32, expected: i32) {
    let accuses = |check: &&Check| matches!(check.outcome, CheckOutcome::Contradicted | CheckOutcome::Suspect);
    let checks: Vec<&Check> = record.phases.iter().flat_map(|phase| &phase.checks).filter(accuses).collect();
    assert_eq!(code, expected, "{:?}\n{checks:#?}", record.outcome);
}

/// What a check found in the only phase.
#[track_caller]
pub(crate) fn check<'a>(record: &'a RunRecord, name: &str) -> &'a Check {
    assert_eq!(record.phases.len(), 1, "{:?}", record.outcome);
    let checks = &record.phases[0].checks;
    checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check `{name}` in {checks:#?}"))
}

/// A check found this.
#[track_caller]
pub(crate) fn assert_check(record: &RunRecord, name: &str, outcome: CheckOutcome) {
    let found = check(record, name);
    assert_eq!(found.outcome, outcome, "{found:#?}");
}

/// I/Os of one kind that succeeded.
pub(crate) fn io_count(record: &RunRecord, op: OpKind) -> u64 {
    let jobs = record.phases.iter().flat_map(|phase| &phase.jobs);
    jobs.flat_map(|job| &job.ops).filter(|record| record.op == op).map(|record| record.io_count).sum()
}

/// The I/Os whose failure was written down.
pub(crate) fn failures(record: &RunRecord) -> Vec<&IoFailure> {
    record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.failures).collect()
}

/// Why the run failed.
#[track_caller]
pub(crate) fn failure_reason(record: &RunRecord) -> &str {
    match &record.outcome {
        Outcome::Failed { reason } => reason,
        other => panic!("the run did not fail: {other:?}"),
    }
}
