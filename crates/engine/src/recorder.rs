//! What a worker counts, and what it shows while it runs.
//!
//! A worker records into the histograms of the present interval only; ten times a second they are
//! drained into the totals, and the interval's figures become a row of the series. That costs about
//! 2 µs each time and nothing per I/O. Rows are kept up to [`SERIES_ROWS_MAX`]; then two
//! neighbours become one and intervals are twice as long, so memory does not grow with the run.
//!
//! Progress is a few relaxed atomic stores per interval, on a cache line of the worker's own.

use crate::priority::PriorityRecorder;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use trueio_model::{
    CriterionRecord, DepthSearch, Histogram, IoFailure, LatencySet, OpKind, OpRecord, QueueCounts, ReadBack, SampledIo,
    SeriesRow, SliceRecorder, ThreadUsage, VerifyFailure, ZoneUse,
};

/// Length of an interval of the series, and of a progress update.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;
/// Rows kept at most; 36,000 of 100 ms are an hour.
const SERIES_ROWS_MAX: usize = 36_000;
const _: () = assert!(SERIES_ROWS_MAX.is_multiple_of(2));

/// Failures of different kinds that a worker keeps; every failure is counted.
pub const FAILURES_MAX: usize = 16;

/// Latencies of one kind of operation, in the making.
#[derive(Debug)]
pub(crate) struct OpRecorder {
    pub(crate) io_count: u64,
    pub(crate) byte_count: u64,
    pub(crate) short_count: u64,
    pub(crate) error_count: u64,
    /// This interval's total latencies; the totals are in `set.total`.
    pub(crate) interval: Histogram,
    /// This interval's I/Os that were complete when their submission returned: total and submission
    /// latency are the same, completion latency is 0.
    pub(crate) inline: Histogram,
    /// This interval's latencies from the intended time, with a pace.
    pub(crate) from_due: Histogram,
    pub(crate) set: LatencySet,
    row_count: u64,
    row_bytes: u64,
    /// The intervals so far, and those from the intended time with a pace.
    slices: SliceRecorder,
    slices_from_due: Option<SliceRecorder>,
}

impl OpRecorder {
    /// Its histograms have no counters before they are used: most of a job's are not, and thousands of workers wait
    /// for their start together.
    fn new(is_paced: bool) -> Self {
        Self {
            io_count: 0,
            byte_count: 0,
            short_count: 0,
            error_count: 0,
            interval: Histogram::new(),
            inline: Histogram::new(),
            from_due: Histogram::new(),
            set: empty_set(),
            row_count: 0,
            row_bytes: 0,
            slices: SliceRecorder::new(),
            slices_from_due: is_paced.then(SliceRecorder::new),
        }
    }

    /// Forgets everything that was counted, and keeps the memory.
    fn clear(&mut self) {
        let set = &mut self.set;
        let histograms = [&mut set.submission, &mut set.completion, &mut set.total, &mut set.from_intended];
        let intervals = [&mut self.interval, &mut self.inline, &mut self.from_due];
        histograms.into_iter().chain(intervals).for_each(Histogram::clear);
        (self.io_count, self.byte_count, self.short_count, self.error_count) = (0, 0, 0, 0);
        (self.row_count, self.row_bytes) = (0, 0);
        self.slices.clear();
        self.slices_from_due.iter_mut().for_each(SliceRecorder::clear);
    }

    /// Adds the interval that ends to the slices and to the totals.
    fn end_interval(&mut self) {
        self.slices.end_interval(&self.interval);
        if let Some(slices) = &mut self.slices_from_due {
            slices.end_interval(&self.from_due);
        }
        self.drain();
    }

    fn drain(&mut self) {
        self.interval.drain_into(&mut self.set.total);
        self.from_due.drain_into(&mut self.set.from_intended);
    }
}

fn empty_set() -> LatencySet {
    LatencySet {
        submission: Histogram::new(),
        completion: Histogram::new(),
        total: Histogram::new(),
        from_intended: Histogram::new(),
    }
}

/// Of an operation that was not done yet.
pub(crate) fn empty_op(op: OpKind) -> OpRecord {
    OpRecord {
        op,
        io_count: 0,
        byte_count: 0,
        short_count: 0,
        error_count: 0,
        latency: empty_set(),
        priorities: Vec::new(),
        percentiles: Vec::new(),
        dependence: None,
        mean_latency_ns: None,
        ios_per_s: None,
    }
}

/// A worker's live figures, for the progress line. All relaxed: a reader may see the
/// counters of one interval and the latencies of the next.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    /// I/Os completed in the measured part.
    pub io_count: AtomicU64,
    /// Bytes read, written and trimmed in the measured part.
    pub byte_counts: [AtomicU64; 3],
    /// Median latency of the last interval, in nanoseconds.
    pub latency_ns_p50: AtomicU64,
    /// 99th percentile of the last interval, in nanoseconds.
    pub latency_ns_p99: AtomicU64,
}

impl Progress {
    /// How often a worker renews its figures: at this and its multiples from the beginning of its measured part.
    pub const INTERVAL: Duration = Duration::from_nanos(INTERVAL_NS);

    /// Bytes transferred in the measured part.
    pub fn byte_count(&self) -> u64 {
        self.byte_counts.iter().map(|count| count.load(Relaxed)).sum()
    }
}

/// Everything a worker counts.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Read, write, trim, sync; only those that the job can do are there.
    pub(crate) ops: [Option<Box<OpRecorder>>; 4],
    pub(crate) pacing_lateness: Option<Histogram>,
    pub(crate) queue: QueueCounts,
    /// Latencies by priority, if shares of the I/Os have priorities of their own.
    pub(crate) priorities: Option<Box<PriorityRecorder>>,
    series: Vec<SeriesRow>,
    /// How many intervals a row holds.
    intervals_per_row: u32,
    pending: Option<(u32, SeriesRow)>,
}

pub(crate) fn slot_of(op: OpKind) -> usize {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => 3,
    }
}

const OPS: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync];

impl Recorder {
    /// `is_paced`: I/Os have times at which they are due.
    pub(crate) fn new(ops: &[OpKind], is_paced: bool) -> Self {
        let wanted = |op| ops.contains(&op).then(|| Box::new(OpRecorder::new(is_paced && op != OpKind::Sync)));
        Self {
            ops: OPS.map(wanted),
            pacing_lateness: is_paced.then(Histogram::new),
            queue: QueueCounts::default(),
            priorities: None,
            // All at once: pages that no row reaches are never touched, and the loop allocates nothing.
            series: Vec::with_capacity(SERIES_ROWS_MAX),
            intervals_per_row: 1,
            pending: None,
        }
    }

    /// Maps the counters of latencies, so that workers that begin together do not wait for each other's mmap(2). Each costs a
    /// page of memory from then on.
    pub(crate) fn reserve(&mut self) {
        for recorder in self.ops.iter_mut().take(slot_of(OpKind::Sync)).flatten() {
            let set = &mut recorder.set;
            [&mut recorder.interval, &mut set.submission, &mut set.completion].into_iter().for_each(Histogram::reserve);
        }
    }

    /// The recorder of an operation that the job does.
    #[inline(always)]
    pub(crate) fn op(&mut self, op: OpKind) -> &mut OpRecorder {
        match &mut self.ops[slot_of(op)] {
            Some(recorder) => recorder,
            None => unreachable!("the generator issues what the recorder was made for"),
        }
    }

    /// Forgets everything: the ramp is over.
    pub(crate) fn reset(&mut self) {
        self.ops.iter_mut().flatten().for_each(|recorder| recorder.clear());
        if let Some(lateness) = &mut self.pacing_lateness {
            lateness.clear();
        }
        self.queue = QueueCounts::default();
        if let Some(priorities) = &mut self.priorities {
            priorities.clear();
        }
        self.series.clear();
        self.pending = None;
    }

    /// Counts I/Os that were complete at their submission in all three latencies.
    pub(crate) fn fold_inline(&mut self) {
        for recorder in self.ops.iter_mut().flatten().filter(|r| !r.inline.is_empty()) {
            recorder.set.submission.merge(&recorder.inline);
            recorder.set.completion.record_many(0, recorder.inline.count());
            recorder.inline.drain_into(&mut recorder.interval);
        }
    }

    /// Ends an interval: its figures become a row and are published.
    pub(crate) fn end_interval(&mut self, end_ns: u64, span_ns: u64, progress: &Progress) {
        self.fold_inline();
        let mut row = SeriesRow {
            end_ns,
            span_ns,
            read_count: 0,
            read_bytes: 0,
            write_count: 0,
            write_bytes: 0,
            other_count: 0,
            trim_count: 0,
            trim_bytes: 0,
            latency_ns_p50: 0,
            latency_ns_p99: 0,
            latency_ns_max: 0,
        };
        let mut io_count = 0;
        let mut most = 0;
        for (index, recorder) in self.ops.iter_mut().enumerate() {
            let Some(recorder) = recorder else { continue };
            let count = recorder.io_count - recorder.row_count;
            let bytes = recorder.byte_count - recorder.row_bytes;
            recorder.row_count = recorder.io_count;
            recorder.row_bytes = recorder.byte_count;
            match index {
                0 => (row.read_count, row.read_bytes) = (count, bytes),
                1 => (row.write_count, row.write_bytes) = (count, bytes),
                2 => {
                    row.other_count += count;
                    (row.trim_count, row.trim_bytes) = (count, bytes);
                }
                _ => row.other_count += count,
            }
            if index < 3 {
                io_count += recorder.io_count;
                progress.byte_counts[index].store(recorder.byte_count, Relaxed);
            }
            // A row has one median: that of the operation done most often in it.
            if let Some(max) = recorder.interval.max_ns() {
                let n = recorder.interval.count();
                if n > most {
                    most = n;
                    row.latency_ns_p50 = recorder.interval.value_at_rank(n.div_ceil(2)).unwrap_or(0);
                }
                let p99 = recorder.interval.value_at_rank((n * 99).div_ceil(100)).unwrap_or(0);
                row.latency_ns_p99 = row.latency_ns_p99.max(p99);
                row.latency_ns_max = row.latency_ns_max.max(max);
            }
            recorder.end_interval();
        }
        progress.io_count.store(io_count, Relaxed);
        progress.latency_ns_p50.store(row.latency_ns_p50, Relaxed);
        progress.latency_ns_p99.store(row.latency_ns_p99, Relaxed);
        self.push(row);
    }

    fn push(&mut self, row: SeriesRow) {
        // What ended exactly where the last row did belongs to that one: a row has a length.
        if row.span_ns == 0 {
            let earlier = self.pending.as_mut().map(|(_, earlier)| earlier).or(self.series.last_mut());
            if let Some(earlier) = earlier {
                *earlier = joined(earlier, &row);
                return;
            }
            if row.read_count + row.write_count + row.other_count == 0 {
                return;
            }
        }
        let (held, row) = match self.pending.take() {
            Some((held, earlier)) => (held + 1, joined(&earlier, &row)),
            None => (1, row),
        };
        if held < self.intervals_per_row {
            self.pending = Some((held, row));
            return;
        }
        self.series.push(row);
        if self.series.len() >= SERIES_ROWS_MAX {
            for i in 0..SERIES_ROWS_MAX / 2 {
                self.series[i] = joined(&self.series[2 * i], &self.series[2 * i + 1]);
            }
            self.series.truncate(SERIES_ROWS_MAX / 2);
            self.intervals_per_row *= 2;
        }
    }

    /// What was counted so far, as [`Recorder::finish`] would give it. Only right after the end of a row.
    pub(crate) fn so_far(&self, has_submission: bool) -> (Vec<OpRecord>, Vec<SeriesRow>) {
        let ops = OPS.into_iter().zip(&self.ops).filter_map(|(op, recorder)| {
            let recorder = recorder.as_ref()?;
            let mut latency = recorder.set.clone();
            if !has_submission || op == OpKind::Sync {
                latency.completion = latency.total.clone();
            }
            Some(OpRecord {
                op,
                io_count: recorder.io_count,
                byte_count: recorder.byte_count,
                short_count: recorder.short_count,
                error_count: recorder.error_count,
                latency,
                priorities: self.priorities.as_ref().map(|of| of.of(op)).unwrap_or_default(),
                percentiles: Vec::new(),
                dependence: None,
                mean_latency_ns: None,
                ios_per_s: None,
            })
        });
        let mut series = self.series.clone();
        series.extend(self.pending.iter().map(|(_, row)| *row));
        (ops.collect(), series)
    }

    /// Ends the recording, and takes what was recorded. `has_submission`: the engine has a separate submission; without
    /// one the completion latency is the total latency.
    pub(crate) fn finish(&mut self, has_submission: bool) -> Recorded {
        self.fold_inline();
        if let Some((_, row)) = self.pending.take() {
            self.series.push(row);
        }
        let priorities = self.priorities.take();
        let mut slices = Vec::new();
        let ops = OPS
            .into_iter()
            .zip(&mut self.ops)
            .filter_map(|(op, recorder)| {
                let mut recorder = *recorder.take()?;
                recorder.drain();
                slices.push(OpSlices { op, total: recorder.slices, from_intended: recorder.slices_from_due });
                // A sync call blocks on every engine's behalf: it has no submission either.
                if !has_submission || op == OpKind::Sync {
                    recorder.set.completion = recorder.set.total.clone();
                }
                Some(OpRecord {
                    op,
                    io_count: recorder.io_count,
                    byte_count: recorder.byte_count,
                    short_count: recorder.short_count,
                    error_count: recorder.error_count,
                    latency: recorder.set,
                    priorities: priorities.as_ref().map(|of| of.of(op)).unwrap_or_default(),
                    percentiles: Vec::new(),
                    dependence: None,
                    mean_latency_ns: None,
                    ios_per_s: None,
                })
            })
            .collect();
        let pacing_lateness = self.pacing_lateness.take().unwrap_or_default();
        Recorded { ops, slices, series: std::mem::take(&mut self.series), pacing_lateness }
    }
}

/// Two neighbouring rows as one. Its median is the larger part's, its p99 the larger one: a row
/// keeps no histogram.
fn joined(a: &SeriesRow, b: &SeriesRow) -> SeriesRow {
    let count = |r: &SeriesRow| r.read_count + r.write_count + r.other_count;
    SeriesRow {
        end_ns: b.end_ns,
        span_ns: a.span_ns + b.span_ns,
        read_count: a.read_count + b.read_count,
        read_bytes: a.read_bytes + b.read_bytes,
        write_count: a.write_count + b.write_count,
        write_bytes: a.write_bytes + b.write_bytes,
        other_count: a.other_count + b.other_count,
        trim_count: a.trim_count + b.trim_count,
        trim_bytes: a.trim_bytes + b.trim_bytes,
        latency_ns_p50: if count(b) > count(a) { b.latency_ns_p50 } else { a.latency_ns_p50 },
        latency_ns_p99: a.latency_ns_p99.max(b.latency_ns_p99),
        latency_ns_max: a.latency_ns_max.max(b.latency_ns_max),
    }
}

/// What a recorder holds at its end.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) ops: Vec<OpRecord>,
    pub(crate) slices: Vec<OpSlices>,
    pub(crate) series: Vec<SeriesRow>,
    pub(crate) pacing_lateness: Histogram,
}

/// An operation's latencies by slices of the measured time, as they were recorded: a worker copies nothing at its end.
#[derive(Debug, Clone)]
pub struct OpSlices {
    /// Which.
    pub op: OpKind,
    /// Total latencies.
    pub total: SliceRecorder,
    /// From the intended time; `None` without a pace.
    pub from_intended: Option<SliceRecorder>,
}

/// What a worker did.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Figures of each kind of operation the job can do.
    pub ops: Vec<OpRecord>,
    /// Their latencies by slices; empty in a report so far.
    pub slices: Vec<OpSlices>,
    /// One row every 100 ms, oldest first.
    pub series: Vec<SeriesRow>,
    /// Measured time in nanoseconds: from the start (after the ramp) to the last completion, or to
    /// the deadline or the request to stop, if nothing was in flight then.
    pub elapsed_ns: u64,
    /// How late paced I/Os were submitted although a slot was free.
    pub pacing_lateness: Histogram,
    /// I/Os that were due and not issued at the end.
    pub backlog_count: u64,
    /// What the worker's own thread used in the measured part.
    pub threads: ThreadUsage,
    /// How deep the queue was, and the batches; `None` if the engine blocks.
    pub queue: Option<QueueCounts>,
    /// Failed I/Os, the first of each kind with a count.
    pub failures: Vec<IoFailure>,
    /// Blocks that did not read back as written, the first few.
    pub verify_failures: Vec<VerifyFailure>,
    /// Blocks compared.
    pub verified_block_count: u64,
    /// Blocks that differed.
    pub verify_failure_count: u64,
    /// What was read back to be compared.
    pub read_back: Option<ReadBack>,
    /// I/Os sampled while requests were traced, in the order of completion.
    pub samples: Vec<SampledIo>,
    /// How long the worker waited for its source, and took from it, in nanoseconds; 0 without one.
    pub source_wait_ns: u64,
    /// The search for a queue depth, if there was one.
    pub depth_search: Option<DepthSearch>,
    /// How steady the job became; the judge of its spans fills this in.
    pub criterion: Option<CriterionRecord>,
    /// What it did with zones, if it wrote them by their rules.
    pub zones: Option<ZoneUse>,
    /// What the engine noticed.
    pub engine_notes: Vec<String>,
    /// The error that ended the worker before its limits, if one did.
    pub fatal: Option<String>,
    /// True if the run was stopped before the worker's limits.
    pub was_stopped: bool,
}

impl WorkerReport {
    /// The report of a worker that could not do anything, and why.
    pub fn failed(error: String) -> Self {
        Self { fatal: Some(error), ..Self::empty() }
    }

    /// The report of a worker that did nothing.
    pub fn empty() -> Self {
        Self {
            ops: Vec::new(),
            slices: Vec::new(),
            series: Vec::new(),
            elapsed_ns: 0,
            pacing_lateness: Histogram::new(),
            backlog_count: 0,
            threads: ThreadUsage::default(),
            queue: None,
            failures: Vec::new(),
            verify_failures: Vec::new(),
            verified_block_count: 0,
            verify_failure_count: 0,
            read_back: None,
            samples: Vec::new(),
            source_wait_ns: 0,
            depth_search: None,
            criterion: None,
            zones: None,
            engine_notes: Vec::new(),
            fatal: None,
            was_stopped: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_rows_add_up_to_the_totals_however_long_the_run() {
        let mut recorder = Recorder::new(&[OpKind::Read], false);
        let progress = Progress::default();
        let intervals = SERIES_ROWS_MAX as u64 * 5 / 2 + 1;
        for i in 1..=intervals {
            let op = recorder.op(OpKind::Read);
            op.io_count += i % 3;
            op.byte_count += 4096 * (i % 3);
            (0..i % 3).for_each(|_| op.interval.record(i));
            recorder.end_interval(i * 100, 100, &progress);
        }
        let Recorded { ops, series, .. } = recorder.finish(false);
        assert!(series.len() <= SERIES_ROWS_MAX);
        assert_eq!(series.iter().map(|r| r.read_count).sum::<u64>(), ops[0].io_count);
        assert_eq!(series.iter().map(|r| r.read_bytes).sum::<u64>(), ops[0].byte_count);
        assert_eq!(series.iter().map(|r| r.span_ns).sum::<u64>(), intervals * 100);
        assert_eq!(ops[0].latency.total.count(), ops[0].io_count);
        assert_eq!(progress.io_count.load(Relaxed), ops[0].io_count);
    }
}
