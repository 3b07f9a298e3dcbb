//! One record of all ranks: sums of counts and histograms, each rank's own record, and the figures across ranks.

use crate::checks;
use crate::member::{CollectedPhase, First, Shared};
use crate::message::Done;
use std::collections::BTreeMap;
use trueio_model::{
    CheckOutcome, ClusterPhase, ClusterRecord, CommonWindow, CpuTime, DisturbedSpan, EvidenceLevel, JobPlan, JobRecord,
    LostRank, OpKind, Outcome, PhaseRecord, RankRecord, RankSpan, RunRecord, SeriesRow, Verdict,
};
use trueio_run::SeriesSum;

/// Makes the record of a run from what rank 0 collected.
pub(crate) fn merge(shared: &Shared, first: &mut First) -> RunRecord {
    let collected = std::mem::take(&mut first.collected);
    let mut ranks = Vec::new();
    for (rank, head) in collected.heads {
        let Some(hello) = collected.hellos.get(&rank) else { continue };
        let record = own_record(head, rank, &collected.phases);
        let (host, boot_id) = (hello.host.clone(), hello.boot_id.clone());
        ranks.push(RankRecord { rank, host, boot_id, record: Box::new(record) });
    }
    let lost = first.hub.lost().iter().map(|lost| LostRank {
        rank: lost.rank,
        host: collected.hellos.get(&lost.rank).map(|hello| hello.host.clone()).unwrap_or_default(),
        reason: lost.reason.clone(),
    });
    let mut cluster = ClusterRecord {
        launcher: shared.launcher.clone(),
        rank_count: shared.size,
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
    for phase in &collected.phases {
        let Some((mut merged, across)) = merge_phase(phase, &cluster.ranks) else { continue };
        let found = checks::checks(&across, &cluster.ranks, phase.index);
        judge(&mut merged, found);
        record.phases.push(merged);
        cluster.phases.push(across);
    }
    record.targets = targets_of(&cluster.ranks);
    record.outcome = first.failure.clone().unwrap_or(Outcome::Complete);
    record.cluster = Some(Box::new(cluster));
    record
}

/// The record that a rank would have written alone.
fn own_record(mut head: RunRecord, rank: u32, phases: &[CollectedPhase]) -> RunRecord {
    for done in phases.iter().filter_map(|phase| phase.done.get(&rank)) {
        head.targets.clone_from(&done.targets);
        head.phases.extend(done.phase.as_deref().cloned());
        if head.outcome == Outcome::Complete {
            head.outcome = done.outcome.clone();
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

/// Merges one phase; `None`: no rank measured it.
fn merge_phase(phase: &CollectedPhase, ranks: &[RankRecord]) -> Option<(PhaseRecord, ClusterPhase)> {
    let measured: BTreeMap<u32, (&Done, &PhaseRecord)> =
        phase.done.iter().filter_map(|(rank, done)| Some((*rank, (done, done.phase.as_deref()?)))).collect();
    let (_, (_, first)) = measured.first_key_value()?;
    let across = across(phase, &measured, ranks);
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
        jobs: jobs_of(&measured, &across, union_ns),
        devices: Vec::new(),
        residency: Vec::new(),
        trace: None,
        syscalls: None,
        disturbances: disturbances_of(&measured, &across),
        verdict: Verdict::Supported,
        level: EvidenceLevel::E4,
        checks: checks::of_ranks(&measured.iter().map(|(rank, (_, phase))| (*rank, *phase)).collect::<Vec<_>>(), ranks),
        outcome: Outcome::Complete,
    };
    for (_, phase) in measured.values() {
        for (sum, part) in [(&mut merged.cpu, phase.cpu), (&mut merged.worker_cpu, phase.worker_cpu)] {
            sum.user_ns += part.user_ns;
            sum.system_ns += part.system_ns;
        }
        merged.verdict = merged.verdict.max(phase.verdict);
        merged.level = merged.level.min(phase.level);
        if merged.outcome == Outcome::Complete {
            merged.outcome = phase.outcome.clone();
        }
    }
    Some((merged, across))
}

/// The jobs of a phase: each as the sum of the ranks that ran it.
fn jobs_of(measured: &BTreeMap<u32, (&Done, &PhaseRecord)>, across: &ClusterPhase, union_ns: u64) -> Vec<JobRecord> {
    let begin_of: BTreeMap<u32, i64> = across.ranks.iter().map(|span| (span.rank, span.begin_ns)).collect();
    let first_begin = begin_of.values().copied().min().unwrap_or(0);
    let mut sums: Vec<(JobRecord, SeriesSum)> = Vec::new();
    for (rank, (_, phase)) in measured {
        // Rows count from the first rank's start.
        let begin = begin_of.get(rank).copied().unwrap_or(first_begin);
        let shift_ns = (begin - first_begin).max(0) as u64;
        for job in &phase.jobs {
            let at = sums.iter().position(|(known, _)| known.name == job.name).unwrap_or(sums.len());
            match sums.get_mut(at) {
                Some((sum, _)) => trueio_run::add_record(sum, job),
                None => sums.push((job.clone(), SeriesSum::default())),
            }
            sums[at].1.add(job, shift_ns);
        }
    }
    let is_several = measured.len() > 1;
    let conclude = |(mut job, series)| {
        if is_several {
            trueio_run::conclude_sum(&mut job, series, union_ns);
        }
        job
    };
    sums.into_iter().map(conclude).collect()
}

/// The times at which a rank was disturbed, counted from the first rank's start.
fn disturbances_of(measured: &BTreeMap<u32, (&Done, &PhaseRecord)>, across: &ClusterPhase) -> Vec<DisturbedSpan> {
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
fn across(
    phase: &CollectedPhase,
    measured: &BTreeMap<u32, (&Done, &PhaseRecord)>,
    ranks: &[RankRecord],
) -> ClusterPhase {
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
fn common_window(across: &mut ClusterPhase, measured: &BTreeMap<u32, (&Done, &PhaseRecord)>) -> Option<CommonWindow> {
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
