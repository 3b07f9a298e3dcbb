//! The second measurement of phases that something else disturbed.
//!
//! A machine with other work may disturb most phases of a short run, which then says little about the disk. The disturbed
//! ones are measured once more at the end of the run, and of each the measurement with the better word is kept. The word
//! alone decides, never a figure.

use crate::{Event, Observer, Session};
use std::time::Duration;
use trueio_model::{Cause, JobPlan, Mark, Outcome, PhaseRecord, Prepare, finding_words, units, worst};

/// The shortest second measurement: less says little.
const TIME_MIN: Duration = Duration::from_secs(1);

/// Returns true if so many phases of all are more than half.
fn are_most(disturbed: usize, all: usize) -> bool {
    disturbed * 2 > all
}

/// Returns for how long each of so many phases is measured once more.
fn share(limit: Duration, count: usize) -> Duration {
    TIME_MIN.max(limit / u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

impl Session<'_> {
    /// Measures the disturbed phases once more, for at most `limit` together, if they are more than half of the phases.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on.
    pub(crate) fn look_again(&mut self, limit: Duration, observer: &mut dyn Observer) -> Result<(), Outcome> {
        let disturbed: Vec<&PhaseRecord> = self.record.phases.iter().filter(|phase| is_disturbed(phase)).collect();
        if !are_most(disturbed.len(), self.record.phases.len()) {
            return Ok(());
        }
        let repeatable = |phase: &&PhaseRecord| Some((phase.name.clone(), self.repeatable_index(phase)?));
        let phases: Vec<(String, usize)> = disturbed.iter().filter_map(repeatable).collect();
        let most = share(limit, phases.len());
        for (name, index) in phases {
            let shorten = |job: &mut JobPlan| {
                job.limits.runtime_ns = job.limits.runtime_ns.map(|ns| ns.min(most.as_nanos() as u64));
            };
            let again = self.run_phase(index, shorten, observer)?;
            if again.outcome != Outcome::Complete {
                return Err(again.outcome);
            }
            self.keep_better(&name, again);
            observer.notify(Event::PhaseEnds(&self.record));
        }
        let jobs = &self.record.plan.jobs;
        let place =
            |phase: &PhaseRecord| jobs.iter().position(|job| phase.jobs.first().is_some_and(|of| of.name == job.name));
        self.record.phases.sort_by_key(place);
        Ok(())
    }

    /// Returns the index of a phase, if it does the same load a second time: one that makes its files longer would write
    /// over what it has appended.
    fn repeatable_index(&self, phase: &PhaseRecord) -> Option<usize> {
        let plan = |name: &str| self.record.plan.jobs.iter().find(|job| job.name == name);
        let jobs: Vec<&JobPlan> = phase.jobs.iter().map(|job| plan(&job.name)).collect::<Option<_>>()?;
        let grows = |job: &&JobPlan| {
            job.files.iter().any(|file| matches!(file.prepare, Prepare::CreateEmpty | Prepare::CreateReserved))
        };
        let is_timed = jobs.iter().all(|job| job.limits.runtime_ns.is_some() && job.steady_state.is_none());
        (is_timed && !jobs.iter().any(grows)).then(|| jobs.first().map(|job| job.phase as usize)).flatten()
    }

    /// Puts the better of both measurements of a phase at the end of the record, with a note.
    fn keep_better(&mut self, name: &str, again: PhaseRecord) {
        let Some(position) = self.record.phases.iter().position(|phase| phase.name == name) else { return };
        let first = self.record.phases.remove(position);
        let time = |phase: &PhaseRecord| units::format_duration_ns(phase.elapsed_ns);
        let words = |phase: &PhaseRecord| finding_words(phase.verdict, &phase.checks);
        let (mut kept, note) = if mark(&again) < mark(&first) {
            let note = format!("this is a second measurement; the first ({}) was {}", time(&first), words(&first));
            (again, note)
        } else {
            let note = format!("a second measurement ({}) was no better: {}", time(&again), words(&again));
            (first, note)
        };
        if let Some(job) = kept.jobs.first_mut() {
            job.engine_notes.push(note);
        }
        self.record.phases.push(kept);
    }
}

fn mark(phase: &PhaseRecord) -> Mark {
    Mark::of(phase.verdict, &phase.checks)
}

/// Returns true if what affected the figures may be over soon.
fn is_disturbed(phase: &PhaseRecord) -> bool {
    let passes = |cause: Cause| matches!(cause, Cause::Tool | Cause::Neighbour | Cause::Unsteady);
    mark(phase) > Mark::Unverified && worst(&phase.checks).is_some_and(|check| passes(check.cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_phases_are_not_most_and_a_share_is_a_second_at_least() {
        assert!(are_most(1, 1) && are_most(5, 8) && !are_most(4, 8) && !are_most(0, 0));
        let shares = [1, 8, 40].map(|count| share(Duration::from_secs(20), count).as_millis());
        assert_eq!(shares, [20_000, 2_500, 1_000]);
    }
}
