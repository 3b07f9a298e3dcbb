//! The figures of a job in a record, of this process or of all ranks.

use trueio_model::{AnsweredPhase, JobRecord, OpKind, PhaseRecord, RunRecord};

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
    /// Time of creating and opening the files, of the slowest rank, in seconds.
    pub(crate) open_s: f64,
    /// Time of closing them.
    pub(crate) close_s: f64,
}

impl Figures {
    /// Returns the time with opening and closing, by which IOR divides.
    pub(crate) fn total_s(&self) -> f64 {
        self.open_s + self.elapsed_s + self.close_s
    }

    /// Adds a part that followed.
    pub(crate) fn and_then(self, later: Self) -> Self {
        Self {
            io_count: self.io_count + later.io_count,
            byte_count: self.byte_count + later.byte_count,
            elapsed_s: self.elapsed_s + later.elapsed_s,
            open_s: self.open_s + later.open_s,
            close_s: self.close_s + later.close_s,
            io_s_min: self.io_s_min,
        }
    }
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
    let of_files = |time: fn(&JobRecord) -> Option<u64>| {
        phase.jobs.iter().find(|found| found.name == job).and_then(time).unwrap_or(0) as f64 / 1e9
    };
    let io_s_min = times.fold(f64::INFINITY, f64::min);
    Some(Figures {
        io_count,
        byte_count,
        elapsed_s: phase.elapsed_ns as f64 / 1e9,
        io_s_min: if io_s_min.is_finite() { io_s_min } else { 0.0 },
        open_s: of_files(|job| job.open_ns),
        close_s: of_files(|job| job.close_ns),
    })
}

fn counts(phase: &PhaseRecord, job: &str) -> (u64, u64) {
    let ops = phase.jobs.iter().filter(|found| found.name == job).flat_map(|found| &found.ops);
    let transfers = ops.filter(|op| op.op != OpKind::Sync);
    transfers.fold((0, 0), |(ios, bytes), op| (ios + op.io_count, bytes + op.byte_count))
}

/// Returns a sentence for each check that objects to a phase.
pub fn warnings(record: &RunRecord) -> Vec<String> {
    let of_phase = |phase: &PhaseRecord| -> Vec<String> {
        let AnsweredPhase { phase, verdict, objections, .. } = AnsweredPhase::of(phase);
        let word = verdict.word();
        objections.iter().map(|found| format!("{phase}: {word} ({}): {}", found.check, found.sentence)).collect()
    };
    record.phases.iter().flat_map(of_phase).collect()
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

/// Returns the I/Os of the rank with the most, over these jobs together.
pub(crate) fn most_of_rank(record: &RunRecord, jobs: &[String]) -> u64 {
    let of = |record: &RunRecord| {
        jobs.iter().filter_map(|job| phase_of(record, job).map(|phase| counts(phase, job).0)).sum::<u64>()
    };
    match &record.cluster {
        Some(cluster) => cluster.ranks.iter().map(|rank| of(&rank.record)).max().unwrap_or(0),
        None => of(record),
    }
}

/// Returns a digit for each task: 1 if it is on the node of the first one.
pub(crate) fn node_map(record: &RunRecord) -> String {
    let Some(cluster) = &record.cluster else { return "1".to_owned() };
    let mut ranks: Vec<_> = cluster.ranks.iter().map(|rank| (rank.rank, rank.boot_id.as_str())).collect();
    ranks.sort_unstable();
    let first = ranks.first().map(|(_, kernel)| *kernel);
    ranks.iter().map(|(_, kernel)| if Some(*kernel) == first { '1' } else { '0' }).collect()
}

/// Returns the time at which the run ended, in seconds since 1970-01-01 UTC.
pub(crate) fn finished_unix_s(record: &RunRecord) -> u64 {
    let ends = record.phases.iter().map(|phase| phase.begin_ns.saturating_add(phase.elapsed_ns));
    record.started_unix_s + ends.max().unwrap_or(0) / 1_000_000_000
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
