//! A run as JSON lines: one for each interval with its own figures, one for the rest of each phase, and at the end one
//! with the whole document. The lines of a phase add up to its figures.
//!
//! With `--status-interval` fio prints cumulative documents; those are written by [`super::render`]. These lines are
//! ours: each is an object with `type` (`interval`, `result`).
//!
//! Limit: if an earlier interval had a longer latency, the longest latency of an interval is the upper edge of its bucket
//! (128 buckets for each power of two), not the exact value.

use super::entry::{Figures, counts_of};
use super::tree::{Object, Tree};
use std::collections::BTreeMap;
use trueio_model::{Histogram, JobPlan, JobRecord, OpKind, OpRecord, PhaseRecord, RunRecord};

/// The part of a run that earlier lines have reported.
#[derive(Debug, Default)]
pub struct ReportedSoFar {
    /// Number of phases that are reported completely.
    phases: usize,
    /// The jobs of the phase after these.
    jobs: Vec<ReportedJob>,
}

/// The part of a job that is reported: sums since its beginning.
#[derive(Debug, Default)]
struct ReportedJob {
    elapsed_ns: u64,
    ops: Vec<(OpKind, u64, u64, Histogram)>,
}

/// Returns a line for each phase that ended since the last call, and one for the current phase unless the run is over.
pub(super) fn intervals(record: &RunRecord, reported: &mut ReportedSoFar, is_over: bool) -> String {
    let mut text = String::new();
    while let Some(phase) = record.phases.get(reported.phases) {
        text.push_str(&interval(record, phase, &mut reported.jobs));
        if reported.phases + 1 == record.phases.len() && !is_over {
            break;
        }
        reported.phases += 1;
        reported.jobs.clear();
    }
    text
}

/// Returns the line of a phase: the difference between its figures and those already reported.
fn interval(record: &RunRecord, phase: &PhaseRecord, reported: &mut Vec<ReportedJob>) -> String {
    let started_ms = match record.started_unix_ms {
        0 => record.started_unix_s.saturating_mul(1000),
        ms => ms,
    };
    let mut line = Object::new();
    line.text("type", "interval");
    line.int("timestamp_ms", started_ms.saturating_add(phase.begin_ns.saturating_add(phase.elapsed_ns) / 1_000_000));
    line.text("phase", &phase.name);
    line.int("elapsed_ms", phase.elapsed_ns / 1_000_000);
    reported.resize_with(phase.jobs.len(), ReportedJob::default);
    let of_job = |(job, reported): (&JobRecord, &mut ReportedJob)| {
        Tree::Object(of_job(job, record.plan.jobs.iter().find(|plan| plan.name == job.name), reported))
    };
    line.list("jobs", phase.jobs.iter().zip(reported).map(of_job).collect());
    line.line()
}

fn of_job(job: &JobRecord, plan: Option<&JobPlan>, reported: &mut ReportedJob) -> Object {
    let counts = |op: &OpRecord| plan.map_or((op.io_count, op.byte_count), |plan| counts_of(op, plan));
    let span_ns = job.elapsed_ns.saturating_sub(reported.elapsed_ns);
    let mut object = Object::new();
    object.text("jobname", &job.name).int("interval_ms", span_ns / 1_000_000);
    let none = Histogram::new();
    let mut longest = 0;
    for op in &job.ops {
        let before = reported.ops.iter().find(|before| before.0 == op.op).map_or(&none, |before| &before.3);
        longest = longest.max(longest_since(before, &op.latency.total));
    }
    for (name, kind) in [("read", OpKind::Read), ("write", OpKind::Write), ("trim", OpKind::Trim)] {
        let now = job.ops.iter().find(|op| op.op == kind).map_or((0, 0), counts);
        let before = reported.ops.iter().find(|op| op.0 == kind).map_or((0, 0), |op| (op.1, op.2));
        let (io_count, byte_count) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        let figures = Figures { io_count, byte_count, elapsed_ns: span_ns, ..Figures::default() };
        let mut of = Object::new();
        of.int("ios", io_count).int("bytes", byte_count);
        of.float("iops", figures.ios_per_s()).int("bw_bytes", figures.bytes_per_s() as u64);
        object.object(name, of);
    }
    object.int("lat_ns_max", longest);
    reported.elapsed_ns = reported.elapsed_ns.max(job.elapsed_ns);
    reported.ops = job.ops.iter().map(|op| (op.op, counts(op).0, counts(op).1, op.latency.total.clone())).collect();
    object
}

/// Returns the longest latency that was added from `before` to `now`; 0 if none was added.
fn longest_since(before: &Histogram, now: &Histogram) -> u64 {
    let most = now.max_ns().unwrap_or(0);
    if Some(most) > before.max_ns() || now.overflow_count() > before.overflow_count() {
        return most;
    }
    let known: BTreeMap<u64, u64> = before.buckets().map(|(low, _, count)| (low, count)).collect();
    let grew = now.buckets().filter(|(low, _, count)| known.get(low).is_none_or(|known| known < count));
    grew.map(|(_, high, _)| high.min(most)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_latency_since_is_not_one_from_before() {
        let mut before = Histogram::new();
        assert_eq!(longest_since(&before, &before), 0);
        [10, 5_000, 1 << 30].into_iter().for_each(|ns| before.record(ns));
        assert_eq!(longest_since(&Histogram::new(), &before), 1 << 30);
        let mut now = before.clone();
        assert_eq!(longest_since(&before, &now), 0, "nothing was added");
        now.record(5_001);
        assert!((5_001..5_001 + 5_001 / 64).contains(&longest_since(&before, &now)));
        now.record(3 << 30);
        assert_eq!(longest_since(&before, &now), 3 << 30);
    }
}
