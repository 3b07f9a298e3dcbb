//! Detects errors, short transfers and verified blocks that differ.
//!
//! - **Reads** the result of every call. A misaligned direct transfer is explained by its address, offset and length, compared with the
//!   target's requirements.
//! - **Misses** calls that succeed without doing the requested work. All other checks cover those.
//! - **Thresholds**: one failure contradicts, unless the job ignores it (`ignore_error`, `fill_device`). No completed I/O is suspect.
//! - **By hand**: 128 KiB from a buffer one byte past a page. The call fails in microseconds; a loop that ignores errors is very fast.
//!
//!   ```sh
//!   dd if=/dev/urandom of=full bs=1M count=64 conv=fsync
//!   python3 -c '
//!   import ctypes, os
//!   file = os.open("full", os.O_WRONLY | os.O_DIRECT)
//!   buffer = ctypes.create_string_buffer(131072 + 4096)
//!   libc = ctypes.CDLL(None, use_errno=True)
//!   print(libc.pwrite(file, ctypes.byref(buffer, 1), 131072, 0), os.strerror(ctypes.get_errno()))'
//!   ```

use crate::explain::{describe_failure, explain_failure};
use crate::facts::{PhaseFacts, finding};
use trueio_model::units::format_count;
use trueio_model::{Check, CheckOutcome, IoFailure};

pub(crate) const NAME: &str = "call_results";

const SOURCE: &str = "the result of every call";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let ops = || facts.records.iter().flat_map(|record| &record.ops);
    let good: u64 = ops().map(|op| op.io_count).sum();
    let errors: u64 = ops().map(|op| op.error_count).sum();
    let shorts: u64 = ops().map(|op| op.short_count).sum();
    let differing: u64 = facts.records.iter().map(|record| record.verify_failure_count).sum();
    // Failures that the job ignores are counted and do not contradict it.
    let pairs = || facts.jobs.iter().zip(facts.records);
    let unexpected = || pairs().flat_map(|(job, record)| job.unexpected(&record.failures));
    let count = |failures: &mut dyn Iterator<Item = &IoFailure>| failures.map(|failure| failure.count).sum::<u64>();
    let ignored = count(&mut pairs().flat_map(|(_, record)| &record.failures)) - count(&mut unexpected());
    let first: Option<&IoFailure> = unexpected().next();

    let found =
        format!("{} succeeded, {} failed, {} short", format_count(good), format_count(errors), format_count(shorts));
    let report = |outcome, sentence: String| {
        finding(NAME, outcome, SOURCE, "every I/O in full, no error", found.clone(), sentence)
    };
    if errors + shorts > ignored || first.is_some() {
        let why = match first {
            Some(failure) if failure.explanation.is_empty() => {
                describe_failure(failure, &explain_failure(failure, facts.target_of(&failure.path)))
            }
            Some(failure) => describe_failure(failure, &failure.explanation),
            None => String::new(),
        };
        let (bad, all) = (format_count(errors + shorts), format_count(good + errors));
        let lead = format!("{bad} of {all} I/Os failed or were short.");
        let brief = format!("{bad} of {all} I/Os failed");
        return report(CheckOutcome::Contradicted, format!("{lead} {why}").trim_end().to_owned()).with_brief(brief);
    }
    if differing > 0 {
        let first = facts.records.iter().flat_map(|record| &record.verify_failures).next();
        let example = first.map_or_else(String::new, |failure| {
            format!(
                " First mismatch: `{}` at offset {}: expected {}, found {}.",
                failure.path, failure.offset, failure.expected, failure.found
            )
        });
        let lead = format!("{} blocks read back differently from what was written.", format_count(differing));
        let brief = format!("{} blocks differ", format_count(differing));
        return report(CheckOutcome::Contradicted, lead + &example).with_brief(brief);
    }
    if good == 0 {
        return report(CheckOutcome::Suspect, "No I/O completed, so nothing was measured.".to_owned())
            .with_brief("no I/O completed");
    }
    let real = facts.jobs.iter().any(|job| job.engine.touches_files());
    let tail = if real { "" } else { " No device was involved; the figures show the cost of the tool itself." };
    if ignored > 0 {
        let (good, ignored) = (format_count(good), format_count(ignored));
        let sentence = format!(
            "{ignored} I/Os failed or were short in ways that the job ignores (`ignore_error`, `fill_device`); the \
             figures cover the {good} that transferred data.{tail}"
        );
        return report(CheckOutcome::Passed, sentence);
    }
    report(CheckOutcome::Passed, format!("All {} I/Os succeeded in full.{tail}", format_count(good)))
}
