//! The figures of one slice, from the record of its phase.
//!
//! All jobs of the phase count together: their rates are added, their latencies are put together. The latency
//! is that of transfers; a sync call is its own operation, and its latency is no transfer's. So of a side that
//! syncs and one that does not, latencies are not compared, rates are ([`Shape`]).

use serde::{Deserialize, Serialize};
use trueio_model::{
    Dependence, EvidenceLevel, Figure, Histogram, Mark, Metric, Objection, OpKind, PhaseRecord, Verdict,
};
use trueio_stats::{joined_dependence, quantile_within, slice_least_count};

/// What latencies are of: only those of one kind can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shape {
    /// They count from the due time of each I/O.
    pub is_from_intended: bool,
    /// Sync calls are made between the transfers, and are not in their latencies.
    pub has_syncs: bool,
    /// Reads, writes and trims: which occur.
    pub ops: [bool; 3],
}

/// The figures of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Its latencies: buckets (smallest, largest, how many), ascending. Those of the histogram beside the sample, so they are not
    /// sent with it.
    #[serde(skip)]
    pub buckets: Vec<(u64, u64, u64)>,
    /// What they are of.
    pub shape: Shape,
    /// The verdict of the evidence.
    pub verdict: Verdict,
    /// The word of the slice, of the causes that its checks recorded.
    pub mark: Mark,
    /// How far it reaches.
    pub level: EvidenceLevel,
    /// The checks that were not passed.
    pub objections: Vec<Objection>,
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
            mark: Mark::of(phase.verdict, &phase.checks),
            level: phase.level,
            objections: phase.checks.iter().filter(|check| check.objects()).map(Objection::of).collect(),
        };
        (sample, latency)
    }

    /// The sample of a slice that several ranks ran together: their rates are added, and their latencies put together. Each part has the
    /// rank's name. `None`: no rank ran it, or the counts of all exceed 64 bits.
    pub fn of_ranks(parts: Vec<(String, Self, Histogram)>) -> Option<(Self, Histogram)> {
        let mut parts = parts.into_iter().map(|(name, mut sample, latency)| {
            for objection in &mut sample.objections {
                objection.sentence = format!("{name}: {}", objection.sentence);
            }
            (sample, latency)
        });
        let cpu_ns = |sample: &Self| sample.cpu_ns_per_io.unwrap_or(0.0) * sample.io_count as f64;
        let (mut whole, mut latencies) = parts.next()?;
        let mut cpu = cpu_ns(&whole);
        for (part, latency) in parts {
            cpu += cpu_ns(&part);
            whole.begin_ns = whole.begin_ns.min(part.begin_ns);
            whole.iops += part.iops;
            whole.bytes_per_s += part.bytes_per_s;
            whole.io_count = whole.io_count.saturating_add(part.io_count);
            whole.shape.is_from_intended |= part.shape.is_from_intended;
            whole.shape.has_syncs |= part.shape.has_syncs;
            whole.shape.ops.iter_mut().zip(part.shape.ops).for_each(|(has, also)| *has |= also);
            whole.verdict = whole.verdict.max(part.verdict);
            whole.mark = whole.mark.max(part.mark);
            whole.level = whole.level.min(part.level);
            whole.objections.extend(part.objections);
            latencies.checked_merge(&latency).ok()?;
        }
        whole.cpu_ns_per_io = (whole.io_count > 0).then(|| cpu / whole.io_count as f64);
        whole.use_latencies(&latencies);
        Some((whole, latencies))
    }

    /// Takes the latencies of a sample that was sent without them.
    pub fn use_latencies(&mut self, latencies: &Histogram) {
        self.buckets = latencies.buckets().collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn part(iops: f64, io_count: u64, cpu_ns: f64, latency_ns: u64) -> (Sample, Histogram) {
        let mut latency = Histogram::new();
        (0..io_count).for_each(|_| latency.record(latency_ns));
        let sample = Sample {
            begin_ns: 5,
            iops,
            bytes_per_s: iops * 4096.0,
            cpu_ns_per_io: Some(cpu_ns),
            io_count,
            buckets: latency.buckets().collect(),
            shape: Shape { ops: [true, false, false], ..Shape::default() },
            verdict: Verdict::Supported,
            mark: Mark::Confirmed,
            level: EvidenceLevel::E3,
            objections: Vec::new(),
        };
        (sample, latency)
    }

    /// Goal: the sample of all ranks has the sum of their rates, all latencies, CPU by I/O, and the weakest evidence.
    #[test]
    fn ranks_that_ran_a_slice_together_are_one_sample() {
        let (first, first_latency) = part(100.0, 100, 10.0, 1_000);
        let (mut second, second_latency) = part(300.0, 300, 30.0, 8_000);
        second.shape.ops = [false, true, false];
        (second.verdict, second.level) = (Verdict::Suspect, EvidenceLevel::E1);
        second.objections.push(Objection {
            check: "foreign_io".into(),
            outcome: trueio_model::CheckOutcome::Suspect,
            is_accepted: false,
            cause: trueio_model::Cause::Neighbour,
            brief: String::new(),
            sentence: "others wrote".into(),
            expected: String::new(),
            found: String::new(),
        });
        let parts =
            vec![("rank 0 (a)".to_owned(), first, first_latency), ("rank 1 (b)".to_owned(), second, second_latency)];
        let (whole, latency) = Sample::of_ranks(parts).expect("two ranks");
        assert_eq!((whole.iops, whole.bytes_per_s, whole.io_count), (400.0, 400.0 * 4096.0, 400));
        assert_eq!(whole.cpu_ns_per_io, Some(25.0));
        assert_eq!((latency.count(), whole.latency_count()), (400, 400));
        assert_eq!(whole.shape.ops, [true, true, false]);
        assert_eq!((whole.verdict, whole.level), (Verdict::Suspect, EvidenceLevel::E1));
        assert_eq!(whole.objections[0].sentence, "rank 1 (b): others wrote");
        assert!(Sample::of_ranks(Vec::new()).is_none());
    }

    #[test]
    fn a_sample_that_was_sent_gets_its_latencies_from_the_histogram_beside_it() {
        let sent = part(100.0, 50, 10.0, 1_000);
        let text = serde_json::to_string(&sent).expect("JSON");
        let (mut sample, latency): (Sample, Histogram) = serde_json::from_str(&text).expect("a sample");
        assert!(sample.buckets.is_empty());
        sample.use_latencies(&latency);
        assert_eq!((sample, latency), sent);
    }
}
