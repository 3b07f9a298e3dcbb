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

/// Returns true if more than half of the phases were disturbed.
fn are_most(disturbed_count: usize, phase_count: usize) -> bool {
    disturbed_count * 2 > phase_count
}

/// Returns the longest time of each second measurement if `count` phases share `limit`.
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
        let result = phases.iter().try_for_each(|(name, index)| self.measure_again(name, *index, most, observer));
        // Those that were measured again are at the end.
        let jobs = &self.record.plan.jobs;
        let place =
            |phase: &PhaseRecord| jobs.iter().position(|job| phase.jobs.first().is_some_and(|of| of.name == job.name));
        self.record.phases.sort_by_key(place);
        result
    }

    /// Measures the phase `name`, number `index` of the plan, for at most `most`.
    fn measure_again(
        &mut self,
        name: &str,
        index: usize,
        most: Duration,
        observer: &mut dyn Observer,
    ) -> Result<(), Outcome> {
        let shorten = |job: &mut JobPlan| {
            job.limits.runtime_ns = job.limits.runtime_ns.map(|ns| ns.min(most.as_nanos() as u64));
        };
        let again = self.run_phase(index, shorten, observer)?;
        let outcome = again.outcome.clone();
        let Some(position) = self.record.phases.iter().position(|phase| phase.name == name) else { return Ok(()) };
        let first = self.record.phases.remove(position);
        self.record.phases.push(kept(first, again));
        observer.notify(Event::PhaseEnds(&self.record));
        if outcome == Outcome::Complete { Ok(()) } else { Err(outcome) }
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
}

/// Returns the better measurement of a phase, with a note about the other. One that failed is kept, because its errors are those of
/// the disk; one that was interrupted is not.
fn kept(first: PhaseRecord, again: PhaseRecord) -> PhaseRecord {
    let time = |phase: &PhaseRecord| units::format_duration_ns(phase.elapsed_ns);
    let words = |phase: &PhaseRecord| finding_words(phase.verdict, &phase.checks);
    let is_second = match again.outcome {
        Outcome::Complete => mark(&again) < mark(&first),
        Outcome::Failed { .. } => true,
        Outcome::Interrupted { .. } => false,
    };
    let (mut kept, note) = if is_second {
        let note = format!("this is a second measurement; the first ({}) was {}", time(&first), words(&first));
        (again, note)
    } else {
        let note = format!("a second measurement ({}) was no better: {}", time(&again), words(&again));
        (first, note)
    };
    if let Some(job) = kept.jobs.first_mut() {
        job.engine_notes.push(note);
    }
    kept
}

fn mark(phase: &PhaseRecord) -> Mark {
    Mark::of(phase.verdict, &phase.checks)
}

/// Returns true if something outside of the disk affected the figures. An unsteady rate may be the disk's own, such as a write cache that
/// became full: a second measurement would hide it.
fn is_disturbed(phase: &PhaseRecord) -> bool {
    let is_outside = |cause: Cause| matches!(cause, Cause::Tool | Cause::Neighbour);
    mark(phase) > Mark::Unverified && worst(&phase.checks).is_some_and(|check| is_outside(check.cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Check, CheckOutcome, Document, RunRecord, Verdict};

    #[test]
    fn half_of_the_phases_are_not_most_and_a_share_is_a_second_at_least() {
        assert!(are_most(1, 1) && are_most(5, 8) && !are_most(4, 8) && !are_most(0, 0));
        let shares = [1, 8, 40].map(|count| share(Duration::from_secs(20), count).as_millis());
        assert_eq!(shares, [20_000, 2_500, 1_000]);
    }

    /// A phase of a kept record with one finding, or none, which lasted `seconds`.
    fn phase(seconds: u64, finding: Option<(&str, CheckOutcome)>) -> PhaseRecord {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/records/v3.json");
        let record = RunRecord::from_json(&std::fs::read_to_string(path).expect("a kept record")).expect("a record");
        let mut phase = record.phases.into_iter().next().expect("a phase");
        phase.checks.retain(|check| !check.objects());
        if let Some((name, outcome)) = finding {
            let found = Check {
                name: name.to_owned(),
                outcome,
                cause: Cause::usual_of(name).expect("a check"),
                source: String::new(),
                expected: String::new(),
                found: String::new(),
                sentence: "A sentence.".to_owned(),
                brief: "a reason".to_owned(),
                explained_percent: Some(50),
                culprits: Vec::new(),
                is_accepted: false,
            };
            phase.checks.push(found);
        }
        phase.verdict = Verdict::of(&phase.checks);
        phase.elapsed_ns = seconds * 1_000_000_000;
        phase
    }

    /// Goal: of two measurements the one with the better word is kept, whatever its figures; the note names the other. Method: each word
    /// against each. The first lasted 7 s and the second 2 s.
    #[test]
    fn the_measurement_with_the_better_word_is_kept_with_a_note_about_the_other() {
        use CheckOutcome::{Contradicted, Suspect};
        let words = [
            (Mark::Confirmed, None),
            (Mark::Unsteady, Some(("steadiness", Suspect))),
            (Mark::Disturbed, Some(("foreign_io", Suspect))),
            (Mark::Withheld, Some(("processor_wait", Contradicted))),
        ];
        for (first_mark, first) in words {
            for (again_mark, again) in words {
                let (first, again) = (phase(7, first), phase(2, again));
                assert_eq!((mark(&first), mark(&again)), (first_mark, again_mark));
                let of = |phase: &PhaseRecord| finding_words(phase.verdict, &phase.checks);
                let (first_words, again_words) = (of(&first), of(&again));
                let chosen = kept(first, again);
                let note = chosen.jobs[0].engine_notes.last().expect("a note").clone();
                if again_mark < first_mark {
                    assert_eq!((mark(&chosen), chosen.elapsed_ns), (again_mark, 2_000_000_000));
                    assert_eq!(note, format!("this is a second measurement; the first (7.00 s) was {first_words}"));
                } else {
                    assert_eq!((mark(&chosen), chosen.elapsed_ns), (first_mark, 7_000_000_000));
                    assert_eq!(note, format!("a second measurement (2.00 s) was no better: {again_words}"));
                }
            }
        }
    }

    /// Goal: failed I/Os of a second measurement are not hidden, and one that was interrupted counts for nothing.
    #[test]
    fn a_failed_second_measurement_is_kept_and_an_interrupted_one_is_not() {
        let disturbed = || phase(7, Some(("foreign_io", CheckOutcome::Suspect)));
        let failed = Outcome::Failed { reason: "an I/O failed".to_owned() };
        let again =
            PhaseRecord { outcome: failed.clone(), ..phase(2, Some(("call_results", CheckOutcome::Contradicted))) };
        assert_eq!(kept(disturbed(), again).outcome, failed);
        let cut = PhaseRecord { outcome: Outcome::Interrupted { signal: "SIGINT".to_owned() }, ..phase(2, None) };
        assert_eq!(kept(disturbed(), cut).outcome, Outcome::Complete);
    }

    /// Goal: only what something outside of the disk disturbed is measured again.
    #[test]
    fn the_disks_own_course_is_not_measured_again() {
        let of = |name| is_disturbed(&phase(1, Some((name, CheckOutcome::Suspect))));
        assert!(of("foreign_io") && of("processor_wait") && of("stops"));
        assert!(!of("steadiness") && !of("heat") && !of("memory_backed") && !is_disturbed(&phase(1, None)));
    }
}
