//! The ranges of the figures that a rank sends: those that rank 0 adds up, subtracts, or iterates by.
//!
//! Figures that contradict each other ([`exact`]), the plan of the rank (`Measured::check_plan`), or the time that rank 0 has seen
//! (`Measured::check_age`), are refused where that is exact. Results that fit each other cannot be checked: a rank can still send wrong ones, and counters
//! of its disks, its own checks and its facts are its own.
//!
//! Sums across ranks are checked in addition ([`trueio_run::add_record`]): ranges make sure that the figures of one rank, and
//! differences of times, always fit.

mod exact;

use crate::range::{OutOfRange, at_most, short, within};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use trueio_model::{
    ClockOffset, CpuTime, Histogram, JobPlan, JobRecord, OpRecord, Outcome, PhaseRecord, RunRecord, SeriesRow,
};

/// Most I/Os of a rank in a phase: 10^9 a second for three days.
pub(crate) const COUNT_MAX: u64 = 1 << 48;
/// Most bytes of a rank in a phase: 10^13 a second for eight hours.
pub(crate) const BYTES_MAX: u64 = 1 << 58;
/// Longest duration, in nanoseconds: CPU time of a thousand processors for 20 hours, two years of one.
pub(crate) const DURATION_NS_MAX: u64 = 1 << 56;
/// Largest time of a monotonic clock, in nanoseconds, and largest offset of two: 18 years. Sums and differences of four of them fit.
pub(crate) const TIME_NS_MAX: i64 = 1 << 59;
/// Longest round trip of a clock comparison, in nanoseconds: two minutes.
const ROUND_TRIP_NS_MAX: u64 = 120_000_000_000;
/// Most pings of a clock comparison.
pub(crate) const PINGS_MAX: u64 = 200;
/// Most phases of a run.
pub(crate) const PHASES_MAX: u64 = 1 << 16;
/// Longest reason of a failure, in bytes.
pub(crate) const REASON_BYTES_MAX: usize = 64 << 10;

/// Whether a number is one that a rate, a share or a depth can have.
pub(crate) fn finite(what: &'static str, found: f64) -> Result<(), OutOfRange> {
    if found.is_finite() && (0.0..=1e18).contains(&found) {
        Ok(())
    } else {
        Err(OutOfRange::new(what, found, "between 0 and 1e18"))
    }
}

/// Checks the outcome of a phase.
pub(crate) fn check_outcome(outcome: &Outcome) -> Result<(), OutOfRange> {
    match outcome {
        Outcome::Complete => Ok(()),
        Outcome::Interrupted { signal } => short("the signal of an outcome", signal, REASON_BYTES_MAX),
        Outcome::Failed { reason } => short("the reason of an outcome", reason, REASON_BYTES_MAX),
    }
}

/// Checks the offset of a clock.
pub(crate) fn check_clock(clock: &ClockOffset) -> Result<(), OutOfRange> {
    within("the offset of a clock in nanoseconds", clock.offset_ns, TIME_NS_MAX)?;
    at_most("the error of a clock in nanoseconds", clock.bound_ns, ROUND_TRIP_NS_MAX)?;
    at_most("the round trip of a ping in nanoseconds", clock.round_trip_ns_median, ROUND_TRIP_NS_MAX)?;
    at_most("the number of pings", clock.ping_count.into(), PINGS_MAX)
}

/// Checks a histogram.
pub(crate) fn check_latencies(latencies: &Histogram) -> Result<(), OutOfRange> {
    at_most("the number of latencies", latencies.count(), COUNT_MAX)?;
    exact::check_histogram(latencies)
}

fn check_cpu(cpu: &CpuTime) -> Result<(), OutOfRange> {
    at_most("a processor's time in nanoseconds", cpu.user_ns, DURATION_NS_MAX)?;
    at_most("a processor's time in nanoseconds", cpu.system_ns, DURATION_NS_MAX)
}

fn check_row(row: &SeriesRow) -> Result<(), OutOfRange> {
    for count in [row.read_count, row.write_count, row.other_count, row.trim_count] {
        at_most("the number of I/Os in an interval", count, COUNT_MAX)?;
    }
    for bytes in [row.read_bytes, row.write_bytes, row.trim_bytes] {
        at_most("the bytes in an interval", bytes, BYTES_MAX)?;
    }
    at_most("the end of an interval in nanoseconds", row.end_ns, DURATION_NS_MAX)?;
    at_most("the length of an interval in nanoseconds", row.span_ns, DURATION_NS_MAX)
}

fn check_op(op: &OpRecord) -> Result<(), OutOfRange> {
    for count in [op.io_count, op.short_count, op.error_count] {
        at_most("a number of I/Os", count, COUNT_MAX)?;
    }
    at_most("a number of bytes", op.byte_count, BYTES_MAX)?;
    at_most("a number of short I/Os", op.short_count, op.io_count)?;
    exact::check_op(op)?;
    let sets = std::iter::once(&op.latency).chain(op.priorities.iter().map(|of| &of.latency));
    for set in sets {
        [&set.submission, &set.completion, &set.total, &set.from_intended].into_iter().try_for_each(check_latencies)?;
    }
    for inflation in op.dependence.iter().flat_map(|found| &found.inflations) {
        finite("a share of I/Os", inflation.share_above)?;
        finite("the dependence of I/Os", inflation.factor)?;
    }
    Ok(())
}

fn check_job(job: &JobRecord) -> Result<(), OutOfRange> {
    at_most("the time of a job in nanoseconds", job.elapsed_ns, DURATION_NS_MAX)?;
    if let Some(depth) = job.achieved_depth {
        finite("a queue depth", depth)?;
    }
    for count in [job.backlog_count, job.verified_block_count, job.verify_failure_count] {
        at_most("a number of I/Os", count, COUNT_MAX)?;
    }
    for failure in &job.failures {
        at_most("a number of failures", failure.count, COUNT_MAX)?;
    }
    at_most("the time of a source in nanoseconds", job.source_wait_ns.unwrap_or(0), DURATION_NS_MAX)?;
    check_latencies(&job.pacing_lateness)?;
    job.series.iter().try_for_each(check_row)?;
    job.ops.iter().try_for_each(check_op)?;
    if let Some(back) = &job.read_back {
        check_op(&back.reads)?;
        at_most("a number of I/Os", back.within_count, COUNT_MAX)?;
        at_most("the time of a verification in nanoseconds", back.elapsed_ns, DURATION_NS_MAX)?;
        at_most("the time of a verification in nanoseconds", back.loops_ns, DURATION_NS_MAX)?;
    }
    exact::check_job(job)?;
    job.workers.iter().try_for_each(check_job)
}

/// Checks the figures of a phase.
fn check_phase(phase: &PhaseRecord) -> Result<(), OutOfRange> {
    at_most("the begin of a phase in nanoseconds", phase.begin_ns, DURATION_NS_MAX)?;
    at_most("the time of a phase in nanoseconds", phase.elapsed_ns, DURATION_NS_MAX)?;
    check_cpu(&phase.cpu)?;
    check_cpu(&phase.worker_cpu)?;
    check_outcome(&phase.outcome)?;
    for span in &phase.disturbances {
        at_most("the time of a disturbance in nanoseconds", span.from_ns, DURATION_NS_MAX)?;
        at_most("the time of a disturbance in nanoseconds", span.until_ns, DURATION_NS_MAX)?;
        at_most("the begin of a disturbance in nanoseconds", span.from_ns, span.until_ns)?;
    }
    for device in &phase.devices {
        for counters in [&device.baseline, &device.measured] {
            exact::check_counters(counters, BYTES_MAX, COUNT_MAX)?;
        }
        at_most("the time of a disk's counters in nanoseconds", device.baseline_ns, DURATION_NS_MAX)?;
        at_most("the time of a disk's counters in nanoseconds", device.measured_ns, DURATION_NS_MAX)?;
    }
    phase.jobs.iter().try_for_each(check_job)?;
    let ops = || phase.jobs.iter().flat_map(|job| &job.ops);
    let sum = |of: fn(&OpRecord) -> u64| ops().map(of).fold(0, u64::saturating_add);
    at_most("the number of I/Os of a phase", sum(|op| op.io_count), COUNT_MAX)?;
    at_most("the number of latencies of a phase", sum(|op| op.latency.total.count()), COUNT_MAX)?;
    at_most("the bytes of a phase", sum(|op| op.byte_count), BYTES_MAX)
}

/// The figures of a phase, whose sums and differences fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Measured(PhaseRecord);

impl Measured {
    /// Takes the figures of this process.
    pub(crate) fn own(phase: PhaseRecord) -> Self {
        Self(phase)
    }

    /// Checks that nothing in the phase took longer than the run has, in seconds. A job on the `simulated` engine has a time of its own.
    pub(crate) fn check_age(&self, age_s: u64) -> Result<(), OutOfRange> {
        // Clocks of other machines differ, by less than this.
        let most = age_s.saturating_add(60 + age_s / 100).saturating_mul(1_000_000_000);
        let by_age = |ns| at_most("the time of a phase in nanoseconds, by the age of the run,", ns, most);
        let phase = &self.0;
        by_age(phase.elapsed_ns)?;
        phase.disturbances.iter().try_for_each(|span| by_age(span.until_ns))?;
        phase.devices.iter().try_for_each(|device| by_age(device.measured_ns.max(device.baseline_ns)))?;
        for job in &phase.jobs {
            by_age(job.elapsed_ns)?;
            job.series.iter().try_for_each(|row| by_age(row.end_ns))?;
            let longest = job.ops.iter().filter_map(|op| op.latency.total.max_ns());
            longest.into_iter().try_for_each(by_age)?;
        }
        Ok(())
    }

    /// Checks the jobs of a phase by the plan that the rank has sent before: the sizes of I/Os, and that it has such a job.
    pub(crate) fn check_plan(&self, plan: &[JobPlan]) -> Result<(), OutOfRange> {
        for job in &self.0.jobs {
            let Some(planned) = plan.iter().find(|planned| planned.name == job.name) else {
                return Err(OutOfRange::new("the name of a job", &job.name, "in the plan"));
            };
            exact::check_blocks(job, planned)?;
        }
        Ok(())
    }

    pub(crate) fn get(&self) -> &PhaseRecord {
        &self.0
    }
}

impl TryFrom<PhaseRecord> for Measured {
    type Error = OutOfRange;

    fn try_from(phase: PhaseRecord) -> Result<Self, OutOfRange> {
        check_phase(&phase).map(|()| Self(phase))
    }
}

impl<'de> Deserialize<'de> for Measured {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        PhaseRecord::deserialize(from)?.try_into().map_err(D::Error::custom)
    }
}

/// The record of a rank before its phases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Head(RunRecord);

impl Head {
    /// Takes the record of this process.
    pub(crate) fn own(record: RunRecord) -> Self {
        Self(record)
    }

    pub(crate) fn into_inner(self) -> RunRecord {
        self.0
    }
}

impl TryFrom<RunRecord> for Head {
    type Error = OutOfRange;

    fn try_from(record: RunRecord) -> Result<Self, OutOfRange> {
        let phases = record.phases.len() + record.cluster.iter().map(|cluster| cluster.ranks.len()).sum::<usize>();
        at_most("the number of measured phases before the run", phases as u64, 0)?;
        check_outcome(&record.outcome)?;
        for job in &record.plan.jobs {
            at_most("the phase of a job", job.phase.into(), PHASES_MAX - 1)?;
            for ns in [job.limits.runtime_ns.unwrap_or(0), job.limits.ramp_ns, job.limits.start_delay_ns] {
                at_most("the time of a job in nanoseconds", ns, i64::MAX as u64 / 4)?;
            }
        }
        Ok(Self(record))
    }
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        RunRecord::deserialize(from)?.try_into().map_err(D::Error::custom)
    }
}
