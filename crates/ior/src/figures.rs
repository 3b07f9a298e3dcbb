//! The figures of a job in a record, of this process or of all ranks.

use trueio_model::{Check, CheckOutcome, OpKind, PhaseRecord, RunRecord};

/// The figures of one job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    /// I/Os of all ranks, without sync calls.
    pub(crate) io_count: u64,
    pub(crate) byte_count: u64,
    /// From the first rank's start to the last one's end, in seconds.
    pub(crate) elapsed_s: f64,
    /// Mean time for an I/O of the rank that is fastest, in seconds.
    pub(crate) io_s_min: f64,
}

/// Returns the phase in which a job ran.
fn phase_of<'r>(record: &'r RunRecord, job: &str) -> Option<&'r PhaseRecord> {
    record.phases.iter().find(|phase| phase.jobs.iter().any(|found| found.name == job))
}

/// Returns the figures of a job; `None`: it did not run, or had nothing to do.
pub(crate) fn of(record: &RunRecord, job: &str) -> Option<Figures> {
    let phase = phase_of(record, job)?;
    let (io_count, byte_count) = counts(phase, job);
    let own: Vec<&PhaseRecord> = match &record.cluster {
        Some(cluster) => cluster.ranks.iter().filter_map(|rank| phase_of(&rank.record, job)).collect(),
        None => vec![phase],
    };
    let times = own.iter().filter_map(|phase| {
        let (ios, _) = counts(phase, job);
        (ios > 0).then(|| phase.elapsed_ns as f64 / 1e9 / ios as f64)
    });
    let io_s_min = times.fold(f64::INFINITY, f64::min);
    Some(Figures {
        io_count,
        byte_count,
        elapsed_s: phase.elapsed_ns as f64 / 1e9,
        io_s_min: if io_s_min.is_finite() { io_s_min } else { 0.0 },
    })
}

fn counts(phase: &PhaseRecord, job: &str) -> (u64, u64) {
    let ops = phase.jobs.iter().filter(|found| found.name == job).flat_map(|found| &found.ops);
    let transfers = ops.filter(|op| op.op != OpKind::Sync);
    transfers.fold((0, 0), |(ios, bytes), op| (ios + op.io_count, bytes + op.byte_count))
}

/// Returns a warning for each check that objects to a phase, as both programs print warnings.
pub(crate) fn warnings(record: &RunRecord) -> String {
    let objects = |check: &&Check| matches!(check.outcome, CheckOutcome::Contradicted | CheckOutcome::Suspect);
    let of_phase = |phase: &PhaseRecord| -> String {
        let found = phase.checks.iter().filter(objects);
        found
            .map(|check| {
                let word = if check.outcome == CheckOutcome::Contradicted { "contradicted" } else { "suspect" };
                format!("WARNING: {} is {word} ({}): {}\n", phase.name, check.name, check.sentence)
            })
            .collect()
    };
    record.phases.iter().map(of_phase).collect()
}

/// Returns the number of tasks and of hosts, and the tasks on the host of the first one.
pub(crate) fn tasks(record: &RunRecord) -> (usize, usize, usize) {
    let Some(cluster) = &record.cluster else { return (1, 1, 1) };
    let mut kernels: Vec<&str> = cluster.ranks.iter().map(|rank| rank.boot_id.as_str()).collect();
    let first = kernels.first().copied().unwrap_or_default();
    let on_first = kernels.iter().filter(|kernel| **kernel == first).count();
    kernels.sort_unstable();
    kernels.dedup();
    (cluster.rank_count as usize, kernels.len(), on_first)
}

/// The largest, the smallest, the mean of some values, and the sum of their squared deviations from it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) max: f64,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self {
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean,
            squares: values.iter().map(|value| (value - mean).powi(2)).sum(),
        }
    }
}
