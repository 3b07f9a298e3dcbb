//! Every call's result: errors, short transfers, blocks that did not read back.
//!
//! The oldest lie of storage benchmarks: every `pwrite` returned EINVAL because a buffer was not
//! aligned, nobody looked, and the loop was very fast. The engines look at every result; this check
//! reads what they counted. One failure is enough: a failed I/O has no honest latency.
//!
//! Cannot see: a call that succeeded without doing what was asked. Every other check is about that.
//!
//! Threshold: none. At least one I/O, no failure.

use crate::explain::explain_failure;
use crate::facts::{PhaseFacts, finding};
use trueio_model::units::format_count;
use trueio_model::{Check, CheckOutcome, IoFailure};

pub(crate) const NAME: &str = "call_results";

const WITNESS: &str = "the result of every call";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let ops = || facts.records.iter().flat_map(|record| &record.ops);
    let good: u64 = ops().map(|op| op.io_count).sum();
    let errors: u64 = ops().map(|op| op.error_count).sum();
    let shorts: u64 = ops().map(|op| op.short_count).sum();
    let differing: u64 = facts.records.iter().map(|record| record.verify_failure_count).sum();
    let first: Option<&IoFailure> = facts.records.iter().flat_map(|record| &record.failures).next();

    let found =
        format!("{} succeeded, {} failed, {} short", format_count(good), format_count(errors), format_count(shorts));
    let report = |outcome, sentence: String| {
        finding(NAME, outcome, WITNESS, "every I/O in full, no error", found.clone(), sentence)
    };
    if errors + shorts > 0 || first.is_some() {
        let why = match first {
            Some(failure) if failure.explanation.is_empty() => explain_failure(failure, facts.target_of(&failure.path)),
            Some(failure) => failure.explanation.clone(),
            None => String::new(),
        };
        let (bad, all) = (format_count(errors + shorts), format_count(good + errors));
        let lead = format!("{bad} of {all} I/Os failed or were short.");
        return report(CheckOutcome::Contradicted, format!("{lead} {why}").trim_end().to_owned());
    }
    if differing > 0 {
        let first = facts.records.iter().flat_map(|record| &record.verify_failures).next();
        let example = first.map_or_else(String::new, |failure| {
            format!(
                " The first: `{}` at {}: expected {}, found {}.",
                failure.path, failure.offset, failure.expected, failure.found
            )
        });
        let lead = format!("{} blocks did not read back as they were written.", format_count(differing));
        return report(CheckOutcome::Contradicted, lead + &example);
    }
    if good == 0 {
        return report(CheckOutcome::Suspect, "No I/O completed, so nothing was measured.".to_owned());
    }
    let real = facts.jobs.iter().any(|job| job.engine.touches_files());
    let tail = if real { "" } else { " No device was involved: the figures are the tool's own cost." };
    report(CheckOutcome::Passed, format!("All {} I/Os succeeded in full.{tail}", format_count(good)))
}
