//! How long a run took, next to what was planned, and what ended its loads.
//!
//! A record does not store what ended a load. It follows from the plan: a load that reached its runtime ended by time, another one
//! when its I/O was done, unless its criterion or another job ended it.

use crate::summary::plan_of;
use trueio_model::{JobRecord, Outcome, RunRecord, units};

/// A load that ran at least this part of its runtime ended by time: workers stop at the end of their last I/O.
const REACHED_MIN: f64 = 0.98;

/// What ended a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Time,
    Work,
    Steady,
    OtherJob,
    Early,
}

impl End {
    fn words(self) -> &'static str {
        match self {
            End::Time => "ended by time",
            End::Work => "ended when all I/O was done",
            End::Steady => "ended when steady",
            End::OtherJob => "ended with another job",
            End::Early => "ended early",
        }
    }

    fn of(record: &RunRecord, phase_index: usize, job: &JobRecord) -> Self {
        let Some(plan) = plan_of(record, phase_index, job) else { return End::Early };
        let is_complete = record.phases[phase_index].outcome == Outcome::Complete;
        let ends_others = |plan: &trueio_model::JobPlan| {
            plan.phase as usize == phase_index && plan.name != job.name && plan.scheduling.ends_others
        };
        match plan.limits.runtime_ns {
            _ if !is_complete => End::Early,
            _ if job.criterion.as_ref().is_some_and(|criterion| criterion.is_attained) => End::Steady,
            Some(runtime) if job.elapsed_ns as f64 >= runtime as f64 * REACHED_MIN => End::Time,
            _ if record.plan.jobs.iter().any(ends_others) => End::OtherJob,
            _ => End::Work,
        }
    }
}

/// Returns how the run went in a few words: `7 loads, 52 s (51 s planned)`. An end by time follows from the two times.
pub(crate) fn course(record: &RunRecord) -> String {
    let ends = ends(record);
    let rest = if ends.iter().all(|(end, _)| *end == End::Time) { String::new() } else { end_words(&ends) };
    format!("{}{rest}", times(record))
}

/// Returns the same with what ended the loads: `7 loads, 52 s (51 s planned), ended by time`.
pub(crate) fn whole_course(record: &RunRecord) -> String {
    format!("{}{}", times(record), end_words(&ends(record)))
}

fn times(record: &RunRecord) -> String {
    let count = record.phases.iter().map(|phase| phase.jobs.len()).sum::<usize>();
    let loads = if count == 1 { "1 load".to_owned() } else { format!("{count} loads") };
    let taken_ns = record.phases.last().map_or(0, |phase| phase.begin_ns.saturating_add(phase.elapsed_ns));
    let seconds = |ns: u64| match ns {
        // Whole seconds would be 0.
        0..950_000_000 => units::format_duration_ns(ns),
        _ => format!("{:.0} s", ns as f64 / 1e9),
    };
    match planned_ns(record) {
        Some(planned) => format!("{loads}, {} ({} planned)", seconds(taken_ns), seconds(planned)),
        None => format!("{loads}, {}", seconds(taken_ns)),
    }
}

/// Returns what ended the loads, and how many each, in the order in which they occur.
fn ends(record: &RunRecord) -> Vec<(End, usize)> {
    let mut ends: Vec<(End, usize)> = Vec::new();
    for (index, phase) in record.phases.iter().enumerate() {
        for job in &phase.jobs {
            let end = End::of(record, index, job);
            match ends.iter_mut().find(|(known, _)| *known == end) {
                Some((_, count)) => *count += 1,
                None => ends.push((end, 1)),
            }
        }
    }
    ends
}

fn end_words(ends: &[(End, usize)]) -> String {
    match ends {
        [] => String::new(),
        [(end, _)] => format!(", {}", end.words()),
        several => several.iter().map(|(end, count)| format!(", {count} {}", end.words())).collect(),
    }
}

/// Returns the planned time of all phases, their idle baselines and ramps; `None` if a phase ends by something else than
/// its runtime.
fn planned_ns(record: &RunRecord) -> Option<u64> {
    let phases = record.plan.jobs.iter().map(|job| job.phase).max()?.checked_add(1)?;
    let of_phase = |phase: u32| {
        let jobs = record.plan.jobs.iter().filter(|job| job.phase == phase);
        let times: Option<Vec<u64>> = jobs
            .map(|job| {
                let limits = &job.limits;
                Some(limits.runtime_ns?.saturating_add(limits.ramp_ns).saturating_add(limits.start_delay_ns))
            })
            .collect();
        times?.into_iter().max()
    };
    let times: Option<Vec<u64>> = (0..phases).map(of_phase).collect();
    let idle_ns = u64::from(phases).saturating_mul(record.plan.idle_baseline_ns);
    Some(times?.into_iter().fold(idle_ns, u64::saturating_add))
}
