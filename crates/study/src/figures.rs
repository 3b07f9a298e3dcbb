//! Figures of one sample, and statistics of the samples of a row.
//!
//! A figure that the evidence contradicts is no figure: such a sample keeps its verdict and its objections, and counts
//! neither for the row's figures nor for a contrast.
//!
//! Source of the interval: [`trueio_stats::hodges_lehmann`] on the logarithms, from six samples on.

use std::collections::BTreeSet;
use trueio_model::{
    Check, CheckOutcome, DeviceCounters, Durability, DurabilityKind, OpKind, OpRecord, Outcome, PhaseRecord,
    SampleFigure, Statistic, StudyFigure, StudyMetric, StudyRow, StudySample, SyncMode, Verdict,
};
use trueio_stats::{hodges_lehmann, hodges_lehmann_estimate, mean_ns, quantile, stddev_ns};

/// A row's plan, as far as its durability goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Whether anything is written.
    pub(crate) writes: bool,
    /// Whether a flag or a sync call covers every write before the time ends.
    pub(crate) durable: bool,
}

impl Asked {
    /// Returns what a job requests.
    pub(crate) fn of(job: &trueio_model::JobPlan) -> Self {
        let writes = !matches!(
            job.pattern.mix,
            trueio_model::OpMix::Only(OpKind::Read) | trueio_model::OpMix::Only(OpKind::Trim)
        );
        let every = |n: u64| n == 1;
        let durable = job.sync != SyncMode::None
            || job.write_flags.dsync
            || every(job.flush.fsync_every)
            || every(job.flush.fdatasync_every)
            || job.flush.end_fsync
            || job.flush.end_fdatasync
            || job.flush.fsync_on_close;
        Self { writes, durable }
    }
}

/// A phase, converted to a sample.
pub(crate) fn sample(phase: &PhaseRecord, place: u32, round: u32, begin_ns: u64) -> StudySample {
    let mut figures = Vec::new();
    let mut push = |op, metric, value: Option<f64>| {
        if let Some(value) = value.filter(|v: &f64| v.is_finite()) {
            figures.push(SampleFigure { op, metric, value });
        }
    };
    let (mut error_count, mut io_count, mut byte_count, mut sync_count) = (0, 0, 0, 0);
    if let Some(job) = phase.jobs.first() {
        let seconds = job.elapsed_ns as f64 / 1e9;
        push(None, StudyMetric::Elapsed, (seconds > 0.0).then_some(seconds));
        let synced = || job.ops.iter().filter(|op| op.op == OpKind::Sync && op.io_count > 0);
        if synced().next().is_some() {
            let sync_ns: u128 = synced().map(|op| op.latency.total.sum_ns()).sum();
            push(None, StudyMetric::ElapsedUnsynced, Some((seconds - sync_ns as f64 / 1e9).max(0.0)));
        }
        push(None, StudyMetric::SourceWait, job.source_wait_ns.map(|ns| ns as f64 / 1e9));
        let moved = || job.ops.iter().filter(|op| op.op != OpKind::Sync);
        error_count = job.ops.iter().map(|op| op.error_count).sum();
        io_count = moved().map(|op| op.io_count).sum();
        byte_count = moved().map(|op| op.byte_count).sum();
        sync_count = job.ops.iter().filter(|op| op.op == OpKind::Sync).map(|op| op.io_count).sum();
        if seconds > 0.0 {
            let sum = |of: fn(&OpRecord) -> u64| moved().map(of).sum::<u64>() as f64;
            push(None, StudyMetric::Bandwidth, Some(sum(|op| op.byte_count) / seconds));
            push(None, StudyMetric::Iops, Some(sum(|op| op.io_count) / seconds));
        }
        for op in moved().filter(|op| op.io_count > 0) {
            let which = Some(op.op);
            if seconds > 0.0 {
                push(which, StudyMetric::Bandwidth, Some(op.byte_count as f64 / seconds));
                push(which, StudyMetric::Iops, Some(op.io_count as f64 / seconds));
            }
            let seconds_of = |ns: f64| ns / 1e9;
            push(which, StudyMetric::SlatMean, mean_ns(&op.latency.submission).map(seconds_of));
            push(which, StudyMetric::ClatMean, mean_ns(&op.latency.completion).map(seconds_of));
            let completion = &op.latency.completion;
            let seconds_at = |ns: u64| seconds_of(ns as f64);
            push(which, StudyMetric::ClatMin, completion.min_ns().map(seconds_at));
            push(which, StudyMetric::ClatMax, completion.max_ns().map(seconds_at));
            push(which, StudyMetric::ClatStdev, stddev_ns(completion).map(seconds_of));
            push(which, StudyMetric::ClatP50, quantile(completion, 0.5).map(|found| seconds_at(found.value_ns)));
            push(which, StudyMetric::ClatP99, quantile(completion, 0.99).map(|found| seconds_at(found.value_ns)));
            let submitting = Some(&op.latency.submission).filter(|all| !all.is_empty());
            push(which, StudyMetric::Submission, submitting.map(|all| seconds_of(all.sum_ns() as f64)));
            push(which, StudyMetric::LatMean, mean_ns(&op.latency.total).map(seconds_of));
            let at = |q| quantile(&op.latency.total, q).map(|found| found.value_ns as f64 / 1e9);
            push(which, StudyMetric::LatP50, at(0.5));
            push(which, StudyMetric::LatP99, at(0.99));
        }
    }
    let busiest = phase.devices.iter().map(|d| d.measured.busy_ms as f64 * 1e6 / d.measured_ns.max(1) as f64);
    push(None, StudyMetric::DiskBusy, busiest.reduce(f64::max).map(|share| share.min(1.0)));
    let on_disks = |of: fn(&DeviceCounters) -> u64| {
        let counted = phase.devices.iter().map(|disk| of(&disk.measured));
        counted.reduce(u64::saturating_add).map(|sum| sum as f64)
    };
    let requests = on_disks(|c| (c.read_count + c.write_count).saturating_sub(c.flush_count.unwrap_or(0)));
    push(None, StudyMetric::DiskRequests, requests);
    push(None, StudyMetric::DiskMerges, on_disks(|c| c.read_merge_count + c.write_merge_count));
    push(None, StudyMetric::DiskWait, on_disks(|c| c.read_ms + c.write_ms).map(|ms| ms / 1e3));
    let flush_count = phase.devices.iter().filter_map(|d| d.measured.flush_count).max();
    push(None, StudyMetric::Flushes, flush_count.map(|count| count as f64));
    push(None, StudyMetric::Errors, Some(error_count as f64));
    StudySample {
        place,
        round,
        begin_ns,
        figures,
        io_count,
        byte_count,
        sync_count,
        verdict: phase.verdict,
        level: phase.level,
        objections: phase
            .checks
            .iter()
            .filter(|c| matches!(c.outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted))
            .cloned()
            .collect(),
        flush_count,
        error_count,
        conditions: Vec::new(),
        outcome: phase.outcome.clone(),
    }
}

/// A sample whose figures may be used.
pub(crate) fn counts(sample: &StudySample) -> bool {
    sample.verdict != Verdict::Contradicted && sample.outcome == Outcome::Complete
}

/// Rounds of which a check doubts a sample.
pub(crate) struct Flaws {
    pub(crate) rounds: BTreeSet<u32>,
    /// The checks, each once.
    pub(crate) checks: String,
}

/// Returns the flaws of rows: the checks that doubt a sample, except those whose doubt the study expects.
pub(crate) fn flaws<'a>(rows: impl IntoIterator<Item = &'a StudyRow>) -> Flaws {
    let (mut rounds, mut checks) = (BTreeSet::new(), BTreeSet::new());
    for sample in rows.into_iter().flat_map(|row| &row.samples) {
        for check in sample.objections.iter().filter(|check| !check.is_accepted) {
            rounds.insert(sample.round);
            checks.insert(check.name.as_str());
        }
    }
    Flaws { rounds, checks: checks.into_iter().collect::<Vec<_>>().join(", ") }
}

/// The values of one metric, with the round each was measured in.
pub(crate) fn values(samples: &[StudySample], op: Option<OpKind>, metric: StudyMetric) -> Vec<(u32, f64)> {
    let of = |sample: &StudySample| {
        let found = sample.figures.iter().find(|f| f.metric == metric && f.op == op)?;
        Some((sample.round, found.value))
    };
    samples.iter().filter(|sample| counts(sample)).filter_map(of).collect()
}

/// Returns the statistics of each metric that a row's samples have.
pub(crate) fn figures(samples: &[StudySample], statistics: &[(StudyMetric, Statistic)]) -> Vec<StudyFigure> {
    let mut kinds: Vec<(Option<OpKind>, StudyMetric)> = Vec::new();
    for figure in samples.iter().filter(|s| counts(s)).flat_map(|s| &s.figures) {
        if !kinds.contains(&(figure.op, figure.metric)) {
            kinds.push((figure.op, figure.metric));
        }
    }
    let mut found = Vec::new();
    for (op, metric) in kinds {
        let all: Vec<f64> = values(samples, op, metric).into_iter().map(|(_, value)| value).collect();
        let further = statistics.iter().filter(|(m, s)| *m == metric && *s != Statistic::Median).map(|(_, s)| *s);
        for statistic in std::iter::once(Statistic::Median).chain(further) {
            if let Some((value, interval)) = statistic_of(&all, statistic) {
                found.push(StudyFigure { op, metric, statistic, value, interval, samples: all.len() as u32 });
            }
        }
    }
    found
}

/// A statistic of a sample, and its 95 % interval where the sample supports one.
pub(crate) fn statistic_of(all: &[f64], statistic: Statistic) -> Option<(f64, Option<(f64, f64)>)> {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    match statistic {
        Statistic::P0 => Some((sorted[0], None)),
        Statistic::P100 => Some((sorted[last], None)),
        Statistic::P90 => {
            let rank = ((sorted.len() as f64 * 0.9).ceil() as usize).clamp(1, sorted.len());
            // The order statistics that enclose the quantile, where the sample is large enough to have them.
            let ranks = trueio_stats::interval_ranks(sorted.len() as u64, 0.9);
            let interval = ranks.map(|r| (sorted[r.lower as usize - 1], sorted[(r.upper as usize - 1).min(last)]));
            Some((sorted[rank - 1], interval))
        }
        Statistic::Median => {
            if sorted[0] <= 0.0 {
                // No logarithm: the plain middle, and no interval.
                return Some((sorted[last / 2], None));
            }
            let logs: Vec<f64> = sorted.iter().map(|value| value.ln()).collect();
            let interval = hodges_lehmann(&logs, 0.05).map(|i| (i.low.exp(), i.high.exp()));
            Some((hodges_lehmann_estimate(&logs)?.exp(), interval))
        }
    }
}

/// Determines whether writes reached stable storage: from a phase's checks, from what the job requests, and from
/// whether every disk declares that it has no volatile cache.
///
/// A contradiction of either check refutes. Otherwise the order of flushes decides where it was seen, for it is the
/// stronger source, and their number where it was not. A doubt is never reported as an answer.
pub(crate) fn durability(checks: &[Check], asked: Asked, is_write_through: bool) -> Option<Durability> {
    if !asked.writes {
        return None;
    }
    let outcome = |is, source: String| Some(Durability { is, source });
    if !asked.durable {
        return outcome(DurabilityKind::NotAsked, "the job requests neither flushes nor durable writes".to_owned());
    }
    let check = |name: &str| checks.iter().find(|check| check.name == name);
    let looks = [check("flush_order"), check("flushes")];
    if let Some(check) = looks.iter().flatten().find(|check| check.outcome == CheckOutcome::Contradicted) {
        return outcome(DurabilityKind::Refuted, check.sentence.clone());
    }
    let decides = |check: &&&Check| matches!(check.outcome, CheckOutcome::Passed | CheckOutcome::Suspect);
    match looks.iter().flatten().find(decides) {
        Some(check) if check.outcome == CheckOutcome::Passed => {
            let of_what = if check.found.is_empty() { &check.sentence } else { &check.found };
            outcome(DurabilityKind::Shown, format!("{of_what} ({})", check.name))
        }
        Some(doubt) => outcome(DurabilityKind::NotShown, doubt.sentence.clone()),
        None if is_write_through => {
            let words = "the disk declares no volatile write cache; its word is all there is";
            outcome(DurabilityKind::Declared, words.to_owned())
        }
        None => {
            let why = looks.iter().flatten().map(|check| check.sentence.as_str()).next();
            outcome(DurabilityKind::NotShown, why.unwrap_or("evidence was not collected").to_owned())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use CheckOutcome::{Contradicted, NotSeen, Passed, Suspect};

    /// A finding of a check.
    pub(crate) fn check(name: &str, outcome: CheckOutcome) -> Check {
        Check {
            name: name.to_owned(),
            outcome,
            cause: trueio_model::Cause::default(),
            brief: String::new(),
            explained_percent: None,
            culprits: Vec::new(),
            source: String::new(),
            expected: String::new(),
            found: String::new(),
            sentence: "it was so".to_owned(),
            is_accepted: false,
        }
    }

    fn found(order: Option<CheckOutcome>, count: Option<CheckOutcome>, is_write_through: bool) -> DurabilityKind {
        let checks: Vec<Check> = [("flush_order", order), ("flushes", count)]
            .into_iter()
            .filter_map(|(name, outcome)| Some(check(name, outcome?)))
            .collect();
        durability(&checks, Asked { writes: true, durable: true }, is_write_through).expect("it writes").is
    }

    #[test]
    fn the_stronger_source_decides_whether_durability_is_shown_refuted_or_open() {
        for (order, count, is_write_through, expected) in [
            (Some(Passed), Some(Passed), false, DurabilityKind::Shown),
            (Some(NotSeen), Some(Passed), false, DurabilityKind::Shown),
            (Some(Passed), Some(Suspect), false, DurabilityKind::Shown),
            (Some(Suspect), Some(Passed), false, DurabilityKind::NotShown),
            (Some(Passed), Some(Contradicted), false, DurabilityKind::Refuted),
            (Some(Contradicted), Some(Passed), true, DurabilityKind::Refuted),
            (Some(NotSeen), Some(NotSeen), true, DurabilityKind::Declared),
            (Some(NotSeen), Some(NotSeen), false, DurabilityKind::NotShown),
            (None, None, false, DurabilityKind::NotShown),
        ] {
            assert_eq!(found(order, count, is_write_through), expected, "{order:?} {count:?} {is_write_through}");
        }
    }

    #[test]
    fn a_job_without_writes_has_no_durability_and_one_without_flushes_did_not_request_it() {
        assert_eq!(durability(&[], Asked { writes: false, durable: false }, false), None);
        let asked = durability(&[], Asked { writes: true, durable: false }, true).expect("it writes");
        assert_eq!(asked.is, DurabilityKind::NotAsked);
    }

    #[test]
    fn a_median_has_an_interval_from_six_samples_on_and_extremes_have_none() {
        let five: Vec<f64> = (1..=5).map(f64::from).collect();
        let six: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(statistic_of(&five, Statistic::Median).map(|(_, interval)| interval), Some(None));
        let (value, interval) = statistic_of(&six, Statistic::Median).expect("six samples");
        let (low, high) = interval.expect("six samples have one");
        assert!(low <= value && value <= high && low >= 1.0 && high <= 6.0, "{low} {value} {high}");
        assert_eq!(statistic_of(&six, Statistic::P0), Some((1.0, None)));
        assert_eq!(statistic_of(&six, Statistic::P100), Some((6.0, None)));
        assert_eq!(statistic_of(&six, Statistic::P90).map(|(value, _)| value), Some(6.0));
        assert_eq!(statistic_of(&[], Statistic::Median), None);
    }
}
