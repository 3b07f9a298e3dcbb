//! Workers' reports become one job's record.
//!
//! Counts and histograms are added, so a percentile over many workers is that of all their I/Os.
//! Series rows are joined by their end: workers begin together, so their rows do too.

use std::collections::BTreeMap;
use trueio_engine::{OpSlices, WorkerReport};
use trueio_model::{
    CpuTime, Dependence, Estimate, Grouping, Histogram, IoFailure, JobPlan, JobRecord, LatencySet, LatencySlices,
    OpKind, OpRecord, Percentile, ReadBack, SeriesRow, SliceRecorder, ThreadUsage, ZoneUse,
};
use trueio_stats::{NoInterval, dependence, joined_dependence, mean_interval, quantile_interval, rate_interval};

/// Figures that do not fit 64 bits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sum of {0} exceeds 64 bits")]
pub struct SumOverflow(
    /// What was added.
    pub &'static str,
);

/// Adds to a figure.
fn add(sum: &mut u64, more: u64, what: &'static str) -> Result<(), SumOverflow> {
    *sum = sum.checked_add(more).ok_or(SumOverflow(what))?;
    Ok(())
}

fn add_latencies(sum: &mut Histogram, more: &Histogram) -> Result<(), SumOverflow> {
    sum.checked_merge(more).map_err(|_| SumOverflow("latencies"))
}

fn add_latency_set(sum: &mut LatencySet, more: &LatencySet) -> Result<(), SumOverflow> {
    sum.checked_merge(more).map_err(|_| SumOverflow("latencies"))
}

/// Failures and verify failures kept for a job.
const KEPT: usize = 16;

/// The percentiles that stand in a record.
const PERCENTS: [f64; 9] = [1.0, 10.0, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A percentile with its interval; `None` if the sample cannot support it.
fn percentile(latencies: &Histogram, percent: f64, found: Option<&Dependence>, span_ns: u64) -> Option<Percentile> {
    let q = percent / 100.0;
    let latency_ns = trueio_stats::quantile(latencies, q)?.value_ns;
    let interval = quantile_interval(latencies, q, found, span_ns, 0.05);
    Some(Percentile {
        percent,
        latency_ns,
        low_ns: match interval {
            Ok((low, _)) => Some(low),
            Err(NoInterval::Short { at_least_ns, .. }) => at_least_ns,
            Err(NoInterval::NoPercentile) => None,
        },
        high_ns: interval.ok().map(|(_, high)| high),
        needs_ns: match interval {
            Err(NoInterval::Short { missing_ns, .. }) => Some(missing_ns),
            _ => None,
        },
    })
}

/// The reports of a job's workers as one.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) record: JobRecord,
    /// CPU time of the workers.
    pub(crate) cpu: CpuTime,
    /// The first fatal error.
    pub(crate) fatal: Option<String>,
    /// True if any worker was stopped.
    pub(crate) was_stopped: bool,
}

/// Joins the reports of a job's workers.
pub(crate) fn merge(plan: &JobPlan, reports: Vec<WorkerReport>, notes: Vec<String>) -> Merged {
    let each = if plan.output.grouping == Grouping::Worker && reports.len() > 1 {
        reports.iter().map(|report| merge_all(plan, vec![report.clone()], Vec::new()).record).collect()
    } else {
        Vec::new()
    };
    let mut merged = merge_all(plan, reports, notes);
    merged.record.workers = each;
    merged
}

/// Joins reports without keeping those of single workers.
fn merge_all(plan: &JobPlan, reports: Vec<WorkerReport>, notes: Vec<String>) -> Merged {
    let workers = reports.len();
    let mut merged =
        Merged { record: new_record(plan, notes), cpu: CpuTime::default(), fatal: None, was_stopped: false };
    let mut rows: BTreeMap<u64, SeriesRow> = BTreeMap::new();
    let mut slices: Vec<Slices> = Vec::new();
    for (index, mut report) in reports.into_iter().enumerate() {
        merged.was_stopped |= report.was_stopped;
        if merged.fatal.is_none() {
            let fatal = report.fatal.take();
            merged.fatal = fatal.map(|error| if workers > 1 { format!("worker {index}: {error}") } else { error });
        }
        let series = std::mem::take(&mut report.series);
        std::mem::take(&mut report.slices).iter().for_each(|of| add_slices(&mut slices, of));
        let added = series.into_iter().try_for_each(|row| add_row(&mut rows, row));
        if let Err(overflow) = added.and_then(|()| add_report(&mut merged.record, report)) {
            merged.fatal.get_or_insert(overflow.to_string());
        }
    }
    merged.record.series = rows.into_values().collect();
    conclude(plan, &mut merged.record, &slices);
    let threads = &merged.record.threads;
    merged.cpu = CpuTime { user_ns: threads.user_ns, system_ns: threads.system_ns };
    merged
}

/// Returns the record of a job without reports.
fn new_record(plan: &JobPlan, notes: Vec<String>) -> JobRecord {
    JobRecord {
        name: plan.name.clone(),
        ops: Vec::new(),
        series: Vec::new(),
        elapsed_ns: 0,
        achieved_depth: None,
        pacing_lateness: Histogram::new(),
        backlog_count: 0,
        failures: Vec::new(),
        verify_failures: Vec::new(),
        verified_block_count: 0,
        verify_failure_count: 0,
        read_back: None,
        source_wait_ns: plan.source.as_ref().map(|_| 0),
        open_ns: None,
        close_ns: None,
        engine_notes: notes,
        threads: ThreadUsage::default(),
        queue: None,
        depth_searches: Vec::new(),
        criterion: None,
        zones: None,
        workers: Vec::new(),
    }
}

/// Adds a worker's report, without its series, to the record of its job.
fn add_report(record: &mut JobRecord, report: WorkerReport) -> Result<(), SumOverflow> {
    record.elapsed_ns = record.elapsed_ns.max(report.elapsed_ns);
    add(&mut record.backlog_count, report.backlog_count, "I/Os that were due")?;
    add_latencies(&mut record.pacing_lateness, &report.pacing_lateness)?;
    add(&mut record.verified_block_count, report.verified_block_count, "verified blocks")?;
    add(&mut record.verify_failure_count, report.verify_failure_count, "verify failures")?;
    record.verify_failures.extend(report.verify_failures);
    record.verify_failures.truncate(KEPT);
    if let Some(back) = report.read_back {
        add_read_back(&mut record.read_back, back)?;
    }
    record.threads.add(&report.threads);
    if let Some(queue) = &report.queue {
        record.queue.get_or_insert_default().add(queue);
    }
    if let Some(waited) = &mut record.source_wait_ns {
        add(waited, report.source_wait_ns, "the time for which jobs waited for their source")?;
    }
    record.depth_searches.extend(report.depth_search);
    record.criterion = record.criterion.take().or(report.criterion);
    if let Some(zones) = report.zones {
        let sum = record.zones.get_or_insert_with(|| ZoneUse { reset_count: 0, finish_count: 0, ..zones.clone() });
        add(&mut sum.reset_count, zones.reset_count, "resets of zones")?;
        add(&mut sum.finish_count, zones.finish_count, "finished zones")?;
    }
    for op in report.ops {
        add_op(&mut record.ops, op)?;
    }
    for failure in report.failures {
        add_failure(&mut record.failures, failure)?;
    }
    for note in report.engine_notes {
        if !record.engine_notes.contains(&note) {
            record.engine_notes.push(note);
        }
    }
    Ok(())
}

/// Adds what follows from all reports together: a note on zones, percentiles, the achieved depth.
fn conclude(plan: &JobPlan, record: &mut JobRecord, slices: &[Slices]) {
    if let Some(zones) = &record.zones {
        record.engine_notes.push(format!(
            "zones: {} of {} are written in order, each {} bytes long ({}); {} were reset and {} finished in the \
             measured part",
            zones.sequential_count,
            zones.zone_count,
            zones.zone_bytes,
            zones.source,
            zones.reset_count,
            zones.finish_count
        ));
    }
    let span_ns = record.elapsed_ns;
    for op in &mut record.ops {
        let of = slices.iter().find(|of| of.op == op.op);
        let total = of.and_then(|of| dependence(&of.total, span_ns));
        op.percentiles = percentiles(&op.latency.total, total.as_ref(), span_ns);
        op.mean_latency_ns = mean_latency(&op.latency.total, total.as_ref());
        op.ios_per_s = rate(op.op, &record.series);
        op.dependence = match op.latency.from_intended.is_empty() {
            true => total,
            false => of.and_then(|of| dependence(&of.from_intended, span_ns)),
        };
    }
    if let Some(back) = &mut record.read_back {
        // Not part of the measurement.
        back.reads.percentiles = without_intervals(&back.reads.latency.total);
    }
    if plan.engine.holds_a_queue() && record.elapsed_ns > 0 {
        // Little's law: the mean number in flight is the sum of times in flight over the time.
        let in_flight: u128 = record.ops.iter().map(|op| op.latency.total.sum_ns()).sum();
        record.achieved_depth = Some(in_flight as f64 / record.elapsed_ns as f64);
    }
}

fn percentiles(latencies: &Histogram, found: Option<&Dependence>, span_ns: u64) -> Vec<Percentile> {
    PERCENTS.iter().filter_map(|&percent| percentile(latencies, percent, found, span_ns)).collect()
}

fn mean_latency(latencies: &Histogram, found: Option<&Dependence>) -> Option<Estimate> {
    let (low, high) = mean_interval(latencies, found, 0.05)?;
    Some(Estimate { value: latencies.mean_ns()?, low, high })
}

/// The operations of a kind per second, from the series.
fn rate(op: OpKind, series: &[SeriesRow]) -> Option<Estimate> {
    let count = |row: &SeriesRow| match op {
        OpKind::Read => row.read_count,
        OpKind::Write => row.write_count,
        OpKind::Trim => row.trim_count,
        OpKind::Sync => row.other_count.saturating_sub(row.trim_count),
    };
    let rows: Vec<(u64, u64)> = series.iter().map(|row| (count(row), row.span_ns)).collect();
    let (low, high) = rate_interval(&rows)?;
    let seconds: f64 = rows.iter().map(|row| row.1 as f64 / 1e9).sum();
    Some(Estimate { value: rows.iter().map(|row| row.0 as f64).sum::<f64>() / seconds, low, high })
}

fn without_intervals(latencies: &Histogram) -> Vec<Percentile> {
    let mut found = percentiles(latencies, None, 0);
    found.iter_mut().for_each(|of| of.needs_ns = None);
    found
}

/// An operation's latencies by slices of the measured time, of all workers.
struct Slices {
    op: OpKind,
    total: LatencySlices,
    /// Empty without a pace.
    from_intended: LatencySlices,
}

fn add_slices(slices: &mut Vec<Slices>, of: &OpSlices) {
    let total = of.total.finish();
    let from_intended = of.from_intended.as_ref().map(SliceRecorder::finish).unwrap_or_default();
    match slices.iter_mut().find(|known| known.op == of.op) {
        Some(known) => {
            known.total.merge(&total);
            known.from_intended.merge(&from_intended);
        }
        None => slices.push(Slices { op: of.op, total, from_intended }),
    }
}

fn add_op(ops: &mut Vec<OpRecord>, op: OpRecord) -> Result<(), SumOverflow> {
    match ops.iter_mut().find(|known| known.op == op.op) {
        Some(known) => join(known, op),
        None => {
            ops.push(op);
            Ok(())
        }
    }
}

fn add_read_back(sum: &mut Option<ReadBack>, back: ReadBack) -> Result<(), SumOverflow> {
    let Some(sum) = sum else {
        *sum = Some(back);
        return Ok(());
    };
    join(&mut sum.reads, back.reads)?;
    add(&mut sum.within_count, back.within_count, "reads of verification")?;
    // Workers read back at the same time.
    sum.elapsed_ns = sum.elapsed_ns.max(back.elapsed_ns);
    sum.loops_ns = sum.loops_ns.max(back.loops_ns);
    Ok(())
}

fn join(known: &mut OpRecord, op: OpRecord) -> Result<(), SumOverflow> {
    // Only records of other ranks have it: of workers, slices are added.
    let parts = [(known.io_count, known.dependence.as_ref()), (op.io_count, op.dependence.as_ref())];
    known.dependence = joined_dependence(parts);
    add(&mut known.io_count, op.io_count, "I/Os")?;
    add(&mut known.byte_count, op.byte_count, "bytes")?;
    add(&mut known.short_count, op.short_count, "short I/Os")?;
    add(&mut known.error_count, op.error_count, "failed I/Os")?;
    add_latency_set(&mut known.latency, &op.latency)?;
    for of in op.priorities {
        match known.priorities.iter_mut().find(|known| known.priority == of.priority) {
            Some(known) => add_latency_set(&mut known.latency, &of.latency)?,
            None => known.priorities.push(of),
        }
    }
    Ok(())
}

/// Rows end at multiples of the interval but for the last one of each worker; that one joins the
/// row that begins where it begins.
fn add_row(rows: &mut BTreeMap<u64, SeriesRow>, row: SeriesRow) -> Result<(), SumOverflow> {
    // A millisecond's grid: conversions between ticks and nanoseconds differ by less.
    let begin = row.end_ns.saturating_sub(row.span_ns).saturating_add(500_000) / 1_000_000;
    let Some(known) = rows.get_mut(&begin) else {
        rows.insert(begin, row);
        return Ok(());
    };
    let count = |r: &SeriesRow| [r.read_count, r.write_count, r.other_count].into_iter().map(u128::from).sum::<u128>();
    if count(&row) > count(known) {
        known.latency_ns_p50 = row.latency_ns_p50;
    }
    known.end_ns = known.end_ns.max(row.end_ns);
    known.span_ns = known.span_ns.max(row.span_ns);
    for (sum, more) in [
        (&mut known.read_count, row.read_count),
        (&mut known.read_bytes, row.read_bytes),
        (&mut known.write_count, row.write_count),
        (&mut known.write_bytes, row.write_bytes),
        (&mut known.other_count, row.other_count),
        (&mut known.trim_count, row.trim_count),
        (&mut known.trim_bytes, row.trim_bytes),
    ] {
        add(sum, more, "I/Os or bytes in an interval")?;
    }
    known.latency_ns_p99 = known.latency_ns_p99.max(row.latency_ns_p99);
    known.latency_ns_max = known.latency_ns_max.max(row.latency_ns_max);
    Ok(())
}

fn add_failure(failures: &mut Vec<IoFailure>, failure: IoFailure) -> Result<(), SumOverflow> {
    if let Some(known) = failures.iter_mut().find(|known| known.op == failure.op && known.errno == failure.errno) {
        add(&mut known.count, failure.count, "failures")?;
    } else if failures.len() < KEPT {
        failures.push(failure);
    }
    Ok(())
}

/// The time series of a job on several ranks. Kept apart while ranks are added: rebuilding it for each would take time that
/// grows with the square of their number.
#[derive(Debug, Default)]
pub struct SeriesSum(BTreeMap<u64, SeriesRow>);

impl SeriesSum {
    /// Adds the series of a job that begins `shift_ns` later than the sum.
    ///
    /// # Errors
    /// A sum exceeds 64 bits. A part may have been added.
    pub fn add(&mut self, job: &JobRecord, shift_ns: u64) -> Result<(), SumOverflow> {
        let overflow = SumOverflow("times of intervals");
        // Rows of one interval are added, so a shift is a whole number of intervals.
        let span_ns = job.series.first().map_or(1, |row| row.span_ns.max(1));
        let shift_ns = shift_ns.checked_add(span_ns / 2).ok_or(overflow)? / span_ns * span_ns;
        for row in &job.series {
            let end_ns = row.end_ns.checked_add(shift_ns).ok_or(overflow)?;
            add_row(&mut self.0, SeriesRow { end_ns, ..*row })?;
        }
        Ok(())
    }
}

/// Adds the record of a job on another rank to the sum of the earlier ones, without its time series.
///
/// # Errors
/// A sum exceeds 64 bits. A part may have been added.
pub fn add_record(sum: &mut JobRecord, job: &JobRecord) -> Result<(), SumOverflow> {
    sum.elapsed_ns = sum.elapsed_ns.max(job.elapsed_ns);
    sum.achieved_depth = sum.achieved_depth.zip(job.achieved_depth).map(|(a, b)| a + b);
    add_latencies(&mut sum.pacing_lateness, &job.pacing_lateness)?;
    add(&mut sum.backlog_count, job.backlog_count, "I/Os that were due")?;
    add(&mut sum.verified_block_count, job.verified_block_count, "verified blocks")?;
    add(&mut sum.verify_failure_count, job.verify_failure_count, "verify failures")?;
    sum.verify_failures.extend(job.verify_failures.iter().cloned());
    sum.verify_failures.truncate(KEPT);
    if let Some(back) = &job.read_back {
        add_read_back(&mut sum.read_back, back.clone())?;
    }
    (sum.open_ns, sum.close_ns) = (sum.open_ns.max(job.open_ns), sum.close_ns.max(job.close_ns));
    if let (Some(waited), Some(more)) = (&mut sum.source_wait_ns, job.source_wait_ns) {
        add(waited, more, "the time for which jobs waited for their source")?;
    }
    sum.threads.add(&job.threads);
    if let Some(queue) = &job.queue {
        sum.queue.get_or_insert_default().add(queue);
    }
    sum.depth_searches.extend(job.depth_searches.iter().cloned());
    job.ops.iter().try_for_each(|op| add_op(&mut sum.ops, op.clone()))?;
    job.failures.iter().try_for_each(|failure| add_failure(&mut sum.failures, failure.clone()))?;
    for note in &job.engine_notes {
        if !sum.engine_notes.contains(note) {
            sum.engine_notes.push(note.clone());
        }
    }
    // Of ranks, each has its own record.
    (sum.criterion, sum.zones) = (None, None);
    sum.workers.clear();
    Ok(())
}

/// Concludes a sum of [`add_record`]: its time, its series, and percentiles of the added histograms.
pub fn conclude_sum(sum: &mut JobRecord, series: SeriesSum, elapsed_ns: u64) {
    sum.elapsed_ns = elapsed_ns;
    sum.series = series.0.into_values().collect();
    for op in &mut sum.ops {
        // With a pace, the dependence is that of the latencies from the intended time.
        let is_paced = !op.latency.from_intended.is_empty();
        op.percentiles = match is_paced {
            true => without_intervals(&op.latency.total),
            false => percentiles(&op.latency.total, op.dependence.as_ref(), elapsed_ns),
        };
        op.mean_latency_ns = mean_latency(&op.latency.total, op.dependence.as_ref().filter(|_| !is_paced));
        op.ios_per_s = rate(op.op, &sum.series);
    }
    if let Some(back) = &mut sum.read_back {
        back.reads.percentiles = without_intervals(&back.reads.latency.total);
    }
}
