//! One record of all ranks: sums of counts and histograms, each rank's own record, and the figures across ranks.

use crate::checks;
use crate::member::{Collected, CollectedPhase, First, Shared};
use crate::message::Done;
use crate::star::hub::Lost;
use std::any::Any;
use std::collections::BTreeMap;
use trueio_model::{
    CheckOutcome, ClusterPhase, ClusterRecord, CommonWindow, CpuTime, DisturbedSpan, EvidenceLevel, JobPlan, JobRecord,
    LostRank, OpKind, Outcome, PhaseRecord, RankRecord, RankSpan, RunRecord, SeriesRow, Verdict,
};
use trueio_run::{SeriesSum, SumOverflow};

/// Makes the record of a run from what rank 0 collected.
pub(crate) fn merge(shared: &Shared, first: &mut First) -> RunRecord {
    let collected = std::mem::take(&mut first.collected);
    merge_all(&shared.launcher, shared.size, collected, first.hub.lost(), first.failure.clone())
}

/// Makes the record of a run of `size` ranks; `failure` is how it ended, if not as planned.
pub(crate) fn merge_all(
    launcher: &str,
    size: u32,
    collected: Collected,
    lost: &[Lost],
    failure: Option<Outcome>,
) -> RunRecord {
    let mut ranks = Vec::new();
    for (rank, head) in collected.heads {
        let Some(hello) = collected.hellos.get(&rank) else { continue };
        let record = own_record(head, rank, &collected.phases);
        let (host, boot_id) = (hello.host.to_string(), hello.boot_id.to_string());
        ranks.push(RankRecord { rank, host, boot_id, record: Box::new(record) });
    }
    let lost = lost.iter().map(|lost| LostRank {
        rank: lost.rank,
        host: collected.hellos.get(&lost.rank).map(|hello| hello.host.to_string()).unwrap_or_default(),
        reason: lost.reason.clone(),
    });
    let mut cluster = ClusterRecord {
        launcher: launcher.to_owned(),
        rank_count: size,
        ranks,
        lost: lost.collect(),
        phases: Vec::new(),
    };
    let mut record = cluster.ranks.first().map(|rank| (*rank.record).clone()).expect("rank 0 has a record");
    record.phases.clear();
    // A job that only other ranks run is part of the plan, too.
    for job in cluster.ranks.iter().flat_map(|rank| &rank.record.plan.jobs) {
        if !record.plan.jobs.iter().any(|known| known.name == job.name) {
            record.plan.jobs.push(job.clone());
        }
    }
    record.plan.jobs.sort_by_key(|job| job.phase);
    let mut left_out = None;
    for phase in &collected.phases {
        let (merged, without) = merge_phase(phase, &cluster.ranks);
        for LeftOut { rank, why } in without {
            let host = collected.hellos.get(&rank).map(|hello| hello.host.to_string()).unwrap_or_default();
            let reason = format!("its results are not in the sum: {why}");
            left_out.get_or_insert_with(|| format!("rank {rank} ({host}): {reason}"));
            cluster.lost.push(LostRank { rank, host, reason });
        }
        let Some((mut merged, across)) = merged else { continue };
        let streams = phase.done.iter().map(|(rank, done)| (*rank, done.streams.as_slice())).collect();
        let found = checks::checks(&across, &cluster.ranks, phase.index, &streams);
        judge(&mut merged, found);
        record.phases.push(merged);
        cluster.phases.push(across);
    }
    record.targets = targets_of(&cluster.ranks);
    let outcome = failure.or(left_out.map(|reason| Outcome::Failed { reason }));
    record.outcome = outcome.unwrap_or(Outcome::Complete);
    record.cluster = Some(Box::new(cluster));
    record
}

/// Makes the record of what this process knows alone, if a panic ends the merge.
pub(crate) fn without_others(shared: &Shared, own: RunRecord, panic: &(dyn Any + Send)) -> RunRecord {
    let reason = format!("the results of the ranks could not be merged: {}", trueio_run::panic_text(panic));
    let mut record = own.clone();
    record.outcome = Outcome::Failed { reason };
    let (host, boot_id) = (shared.host.clone(), shared.boot_id.clone());
    record.cluster = Some(Box::new(ClusterRecord {
        launcher: shared.launcher.clone(),
        rank_count: shared.size,
        ranks: vec![RankRecord { rank: 0, host, boot_id, record: Box::new(own) }],
        lost: Vec::new(),
        phases: Vec::new(),
    }));
    record
}

/// The record that a rank would have written alone.
fn own_record(mut head: RunRecord, rank: u32, phases: &[CollectedPhase]) -> RunRecord {
    for done in phases.iter().filter_map(|phase| phase.done.get(&rank)) {
        head.targets.clone_from(&done.targets);
        head.phases.extend(done.phase.as_ref().map(|phase| phase.get().clone()));
        if head.outcome == Outcome::Complete {
            head.outcome = done.outcome.0.clone();
        }
    }
    head
}

/// The targets of all ranks: each once, in the order of ranks.
fn targets_of(ranks: &[RankRecord]) -> Vec<trueio_model::TargetFacts> {
    let mut targets: Vec<trueio_model::TargetFacts> = Vec::new();
    for target in ranks.iter().flat_map(|rank| &rank.record.targets) {
        let is_known = |known: &trueio_model::TargetFacts| {
            known.kind == target.kind
                && known.disks == target.disks
                && known.filesystem.as_ref().map(|f| &f.mount_point)
                    == target.filesystem.as_ref().map(|f| &f.mount_point)
        };
        if !targets.iter().any(is_known) {
            targets.push(target.clone());
        }
    }
    targets
}

/// Adds the checks across ranks to a phase, and lowers its verdict by them.
fn judge(phase: &mut PhaseRecord, found: Vec<trueio_model::Check>) {
    if phase.verdict == Verdict::Supported && found.iter().any(|check| check.outcome == CheckOutcome::Suspect) {
        phase.verdict = Verdict::Suspect;
    }
    phase.checks.extend(found);
}

/// A rank whose results cannot be added to those of the others.
struct LeftOut {
    rank: u32,
    why: SumOverflow,
}

/// The results of the ranks that measured a phase.
type Measured<'a> = BTreeMap<u32, (&'a Done, &'a PhaseRecord)>;

/// Merges one phase; `None`: no rank measured it. Returns the ranks that are not in the sums, too.
fn merge_phase(phase: &CollectedPhase, ranks: &[RankRecord]) -> (Option<(PhaseRecord, ClusterPhase)>, Vec<LeftOut>) {
    let mut measured: Measured<'_> =
        phase.done.iter().filter_map(|(rank, done)| Some((*rank, (done, done.phase.as_ref()?.get())))).collect();
    let mut left_out = Vec::new();
    loop {
        match sum_of(phase, &measured, ranks) {
            Ok(merged) => return (merged, left_out),
            Err(without) => {
                measured.remove(&without.rank);
                left_out.push(without);
            }
        }
    }
}

/// Returns the sum of the results of these ranks; `None`: there are none.
fn sum_of(
    phase: &CollectedPhase,
    measured: &Measured<'_>,
    ranks: &[RankRecord],
) -> Result<Option<(PhaseRecord, ClusterPhase)>, LeftOut> {
    let Some((_, (_, first))) = measured.first_key_value() else { return Ok(None) };
    let across = across(phase, measured, ranks);
    let union_ns = {
        let begin = across.ranks.iter().map(|span| span.begin_ns).min().unwrap_or(0);
        let end = across.ranks.iter().map(|span| span.end_ns).max().unwrap_or(0);
        (end - begin).max(0) as u64
    };
    let mut merged = PhaseRecord {
        name: across.name.clone(),
        begin_ns: first.begin_ns,
        elapsed_ns: union_ns,
        cpu: CpuTime::default(),
        worker_cpu: CpuTime::default(),
        steady_state: first.steady_state.clone(),
        jobs: jobs_of(measured, &across, union_ns)?,
        devices: Vec::new(),
        residency: Vec::new(),
        trace: None,
        syscalls: None,
        disturbances: disturbances_of(measured, &across),
        verdict: Verdict::Supported,
        level: EvidenceLevel::E4,
        checks: checks::of_ranks(&measured.iter().map(|(rank, (_, phase))| (*rank, *phase)).collect::<Vec<_>>(), ranks),
        outcome: Outcome::Complete,
    };
    for (rank, (_, phase)) in measured {
        for (sum, part) in [(&mut merged.cpu, phase.cpu), (&mut merged.worker_cpu, phase.worker_cpu)] {
            *sum = sum.checked_add(part).ok_or(LeftOut { rank: *rank, why: SumOverflow("processor times") })?;
        }
        merged.verdict = merged.verdict.max(phase.verdict);
        merged.level = merged.level.min(phase.level);
        if merged.outcome == Outcome::Complete {
            merged.outcome = phase.outcome.clone();
        }
    }
    Ok(Some((merged, across)))
}

/// The jobs of a phase: each as the sum of the ranks that ran it.
fn jobs_of(measured: &Measured<'_>, across: &ClusterPhase, union_ns: u64) -> Result<Vec<JobRecord>, LeftOut> {
    let begin_of: BTreeMap<u32, i64> = across.ranks.iter().map(|span| (span.rank, span.begin_ns)).collect();
    let first_begin = begin_of.values().copied().min().unwrap_or(0);
    let mut sums: Vec<(JobRecord, SeriesSum)> = Vec::new();
    for (rank, (_, phase)) in measured {
        let left_out = |why| LeftOut { rank: *rank, why };
        // Rows count from the first rank's start.
        let begin = begin_of.get(rank).copied().unwrap_or(first_begin);
        let shift_ns = (begin - first_begin).max(0) as u64;
        for job in &phase.jobs {
            let at = sums.iter().position(|(known, _)| known.name == job.name).unwrap_or(sums.len());
            match sums.get_mut(at) {
                Some((sum, _)) => trueio_run::add_record(sum, job).map_err(left_out)?,
                None => sums.push((job.clone(), SeriesSum::default())),
            }
            sums[at].1.add(job, shift_ns).map_err(left_out)?;
        }
    }
    let is_several = measured.len() > 1;
    let conclude = |(mut job, series)| {
        if is_several {
            trueio_run::conclude_sum(&mut job, series, union_ns);
        }
        job
    };
    Ok(sums.into_iter().map(conclude).collect())
}

/// The times at which a rank was disturbed, counted from the first rank's start.
fn disturbances_of(measured: &Measured<'_>, across: &ClusterPhase) -> Vec<DisturbedSpan> {
    let begins: BTreeMap<u32, i64> = across.ranks.iter().map(|span| (span.rank, span.begin_ns)).collect();
    let begin_of = |rank: u32| begins.get(&rank).copied();
    let first_begin = across.ranks.iter().map(|span| span.begin_ns).min().unwrap_or(0);
    let mut spans = Vec::new();
    for (rank, (_, phase)) in measured {
        let shift_ns = (begin_of(*rank).unwrap_or(first_begin) - first_begin).max(0) as u64;
        spans.extend(phase.disturbances.iter().map(|span| DisturbedSpan {
            from_ns: span.from_ns + shift_ns,
            until_ns: span.until_ns + shift_ns,
            cause: span.cause,
            what: format!("rank {rank}: {}", span.what),
        }));
    }
    spans.sort_by_key(|span| span.from_ns);
    spans
}

/// The figures of a phase across ranks.
fn across(phase: &CollectedPhase, measured: &Measured<'_>, ranks: &[RankRecord]) -> ClusterPhase {
    let mut spans: Vec<RankSpan> = Vec::new();
    for (rank, (done, record)) in measured {
        let (Some(own), Some(before)) = (done.span, phase.before.get(rank)) else { continue };
        let after = phase.after.get(rank).copied();
        let transfers = record.jobs.iter().flat_map(|job| &job.ops).filter(|op| op.op != OpKind::Sync);
        let (io_count, byte_count) =
            transfers.fold((0, 0), |(ios, bytes), op| (ios + op.io_count, bytes + op.byte_count));
        spans.push(RankSpan {
            rank: *rank,
            begin_ns: own.begin_ns + before.offset_ns - phase.start_ns,
            end_ns: own.end_ns + after.unwrap_or(*before).offset_ns - phase.start_ns,
            late_ns: own.late_ns,
            clock_before: *before,
            clock_after: after,
            io_count,
            byte_count,
            common_io_count: 0.0,
            common_bytes: 0.0,
        });
    }
    let plans: Vec<&JobPlan> = ranks
        .iter()
        .flat_map(|rank| &rank.record.plan.jobs)
        .filter(|job| job.phase as usize == phase.index && job.is_measured())
        .collect();
    let mut across = ClusterPhase {
        name: measured.values().next().map(|(_, phase)| phase.name.clone()).unwrap_or_default(),
        nominal_ns: nominal_of(&plans),
        start_skew_ns: spread(spans.iter().map(|span| span.begin_ns)),
        end_skew_ns: spread(spans.iter().map(|span| span.end_ns)),
        ranks: spans,
        common: None,
    };
    across.common = common_window(&mut across, measured);
    across
}

/// The planned length of a phase by time; `None`: work ends it.
fn nominal_of(plans: &[&JobPlan]) -> Option<u64> {
    let by_time = |job: &&JobPlan| job.limits.runtime_ns.filter(|_| job.limits.is_time_based);
    plans.iter().map(by_time).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn spread(values: impl Iterator<Item = i64> + Clone) -> u64 {
    match (values.clone().min(), values.max()) {
        (Some(min), Some(max)) => (max - min) as u64,
        _ => 0,
    }
}

/// Sets each rank's share of the common window, and returns that window.
fn common_window(across: &mut ClusterPhase, measured: &Measured<'_>) -> Option<CommonWindow> {
    let begin_ns = across.ranks.iter().map(|span| span.begin_ns).max()?;
    let end_ns = across.ranks.iter().map(|span| span.end_ns).min()?;
    if end_ns <= begin_ns {
        return None;
    }
    let (mut all_ios, mut all_bytes) = (0.0, 0.0);
    for span in &mut across.ranks {
        let (_, phase) = measured.get(&span.rank)?;
        let (mut ios, mut bytes) = (0.0, 0.0);
        for row in phase.jobs.iter().flat_map(|job| &job.series) {
            let share = share_within(row, begin_ns - span.begin_ns, end_ns - span.begin_ns);
            ios += share * (row.read_count + row.write_count + row.trim_count) as f64;
            bytes += share * (row.read_bytes + row.write_bytes + row.trim_bytes) as f64;
        }
        (span.common_io_count, span.common_bytes) = (ios, bytes);
        all_ios += ios;
        all_bytes += bytes;
    }
    let length_ns = (end_ns - begin_ns) as f64;
    let longest = across.ranks.iter().map(|span| (span.end_ns - span.begin_ns).max(0) as u64).max().unwrap_or(0);
    let nominal = across.nominal_ns.unwrap_or(longest).max(1) as f64;
    Some(CommonWindow {
        begin_ns,
        end_ns,
        share: length_ns / nominal,
        ios_per_s: all_ios / length_ns * 1e9,
        bytes_per_s: all_bytes / length_ns * 1e9,
    })
}

/// The share of an interval that lies within a window; both count from the rank's own start.
fn share_within(row: &SeriesRow, begin_ns: i64, end_ns: i64) -> f64 {
    let row_end = row.end_ns as i64;
    let row_begin = row_end - row.span_ns as i64;
    let within = (row_end.min(end_ns) - row_begin.max(begin_ns)).max(0);
    if row.span_ns == 0 {
        f64::from(u8::from(row_end >= begin_ns && row_end <= end_ns))
    } else {
        within as f64 / row.span_ns as f64
    }
}
