//! The figures of one slice, from the record of its phase.
//!
//! All jobs of the phase count together: their rates are added, their latencies are put together. The latency
//! is that of transfers; a sync call is its own operation, and its latency is no transfer's. So of a side that
//! syncs and one that does not, latencies are not compared, rates are ([`Shape`]).

use trueio_model::{CheckOutcome, Dependence, EvidenceLevel, Figure, Histogram, Metric, OpKind, PhaseRecord, Verdict};
use trueio_stats::{joined_dependence, quantile_within, slice_least_count};

/// What latencies are of: only those of one kind can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// They count from the due time of each I/O.
    pub is_from_intended: bool,
    /// Sync calls are made between the transfers, and are not in their latencies.
    pub has_syncs: bool,
    /// Reads, writes and trims: which occur.
    pub ops: [bool; 3],
}

/// The figures of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When its measured part began, in nanoseconds since the comparison began.
    pub begin_ns: u64,
    /// Transfers a second (sync calls if there is nothing else); zero if there was none.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// CPU time per transfer, in nanoseconds; `None` if there was none.
    pub cpu_ns_per_io: Option<f64>,
    /// Transfers.
    pub io_count: u64,
    /// Its latencies: buckets (smallest, largest, how many), ascending.
    pub buckets: Vec<(u64, u64, u64)>,
    /// What they are of.
    pub shape: Shape,
    /// The verdict of the evidence.
    pub verdict: Verdict,
    /// How far it reaches.
    pub level: EvidenceLevel,
    /// The checks that were not passed.
    pub objections: Vec<Objection>,
}

/// A check that was not passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    /// The check's name.
    pub check: String,
    /// Its sentence.
    pub sentence: String,
}

/// How the I/Os of a phase depend on each other, and its measured time: of the latencies that [`Sample::of`] returns.
pub(crate) fn dependence_of(phase: &PhaseRecord) -> (Option<Dependence>, u64) {
    let ops = || phase.jobs.iter().flat_map(|job| &job.ops);
    let has_transfers = ops().any(|op| op.op != OpKind::Sync);
    let counted = ops().filter(|op| op.op != OpKind::Sync || !has_transfers);
    let found = joined_dependence(counted.map(|op| (op.latency.total.count(), op.dependence.as_ref())));
    (found, phase.jobs.iter().map(|job| job.elapsed_ns).min().unwrap_or(0))
}

impl Sample {
    /// The sample of a phase, with its latencies as one histogram.
    pub fn of(phase: &PhaseRecord) -> (Self, Histogram) {
        let mut latency = Histogram::new();
        let mut shape = Shape::default();
        let ops = || phase.jobs.iter().flat_map(|job| job.ops.iter().map(move |op| (job, op)));
        let has_transfers = ops().any(|(_, op)| op.op != OpKind::Sync);
        let (mut iops, mut bytes_per_s, mut io_count) = (0.0, 0.0, 0u64);
        for (job, op) in ops() {
            if op.op == OpKind::Sync && has_transfers {
                // One call at the end of a job is not a sync between transfers.
                shape.has_syncs |= op.io_count > 1;
                continue;
            }
            if let Some(seconds) = (job.elapsed_ns > 0).then(|| job.elapsed_ns as f64 / 1e9) {
                iops += op.io_count as f64 / seconds;
                bytes_per_s += op.byte_count as f64 / seconds;
            }
            io_count = io_count.saturating_add(op.io_count);
            let is_from_intended = !op.latency.from_intended.is_empty();
            shape.is_from_intended |= is_from_intended;
            match op.op {
                OpKind::Read => shape.ops[0] = true,
                OpKind::Write => shape.ops[1] = true,
                OpKind::Trim => shape.ops[2] = true,
                OpKind::Sync => {}
            }
            latency.merge(if is_from_intended { &op.latency.from_intended } else { &op.latency.total });
        }
        let objects = |outcome| matches!(outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted);
        let sample = Self {
            begin_ns: phase.begin_ns,
            iops,
            bytes_per_s,
            // As floating point, so that a record with absurd counts cannot overflow.
            cpu_ns_per_io: (io_count > 0)
                .then(|| (phase.cpu.user_ns as f64 + phase.cpu.system_ns as f64) / io_count as f64),
            io_count,
            buckets: latency.buckets().collect(),
            shape,
            verdict: phase.verdict,
            level: phase.level,
            objections: phase
                .checks
                .iter()
                .filter(|check| objects(check.outcome))
                .map(|check| Objection { check: check.name.clone(), sentence: check.sentence.clone() })
                .collect(),
        };
        (sample, latency)
    }

    /// Latencies counted; those too long for a bucket are missing.
    pub fn latency_count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.2))
    }

    /// The slice's own value of a metric; `None` if there is none, or it is not above zero.
    ///
    /// A quantile is given from one I/O on; [`Sample::supports`] returns whether it is meaningful.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let value = match metric {
            Metric::Bandwidth => Some(self.bytes_per_s),
            Metric::Iops => Some(self.iops),
            Metric::CpuPerIo => self.cpu_ns_per_io,
            Metric::P50 | Metric::P99 | Metric::P999 => {
                quantile_within(self.buckets.iter().copied(), self.latency_count(), metric.quantile()?)
            }
        };
        value.filter(|v| v.is_finite() && *v > 0.0)
    }

    /// True if the slice has I/Os enough for the metric.
    pub fn supports(&self, metric: Metric) -> bool {
        match metric.quantile().and_then(slice_least_count) {
            Some(least) => self.latency_count() >= least,
            None => true,
        }
    }

    /// The figures that the slice itself supports.
    pub fn figures(&self) -> Vec<Figure> {
        Metric::ALL
            .into_iter()
            .filter(|&metric| self.supports(metric))
            .filter_map(|metric| Some(Figure { metric, value: self.value(metric)? }))
            .collect()
    }
}
