//! Checks whether a job with a `source` measured the disk or its source.
//!
//! - **Reads** how long the job waited for its source and copied bytes from it.
//! - **Misses** the speed of the source alone, and how long the disk was busy meanwhile.
//! - **Thresholds**: 10 % of the measured time. Suspect. The latencies of single writes remain the disk's.
//! - **Cost**: two clock readings per write.
//! - **By hand**: `python3 -m http.server`, and a job with `source = "http://127.0.0.1:8000/FILE"` of some MiB.

use crate::facts::{PhaseFacts, finding, not_applicable};
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome};

pub(crate) const NAME: &str = "source";

const SOURCE: &str = "the worker's clock around each read from the source";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let fetching = facts.works().filter_map(|work| Some((work, work.record.source_wait_ns?)));
    // The job that waited longest, as a share of its time.
    let share = |waited: u64, elapsed: u64| waited as f64 / elapsed.max(1) as f64;
    let worst =
        fetching.max_by(|(a, wa), (b, wb)| share(*wa, a.record.elapsed_ns).total_cmp(&share(*wb, b.record.elapsed_ns)));
    let Some((work, waited_ns)) = worst else {
        return not_applicable(NAME, "No job fetches the data that it writes.");
    };
    let elapsed_ns = work.record.elapsed_ns;
    let percent = share(waited_ns, elapsed_ns) * 100.0;
    let found = format!("{} of {}", format_duration_ns(waited_ns), format_duration_ns(elapsed_ns));
    let expected = "at most 10 % of the time spent on the source";
    let name = &work.job.name;
    let (outcome, sentence) = if percent > 10.0 {
        let sentence = format!(
            "`{name}` spent {percent:.0} % of its time waiting for its source or reading from it, so its duration and \
             bandwidth depend on the source as well as the disk. The latencies of single writes are those of the disk."
        );
        (CheckOutcome::Suspect, sentence)
    } else {
        (CheckOutcome::Passed, format!("`{name}` spent {percent:.1} % of the time on its source."))
    };
    let check = finding(NAME, outcome, SOURCE, expected, found, sentence);
    match outcome {
        CheckOutcome::Suspect => {
            check.with_brief(format!("{percent:.0} % spent on the source")).explaining(Some(percent / 100.0))
        }
        _ => check,
    }
}
