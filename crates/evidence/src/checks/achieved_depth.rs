//! Compares the average queue depth with the requested one.
//!
//! Reads the engine's own integral: I/Os in flight, averaged over the measured time. If a depth of 32 was
//! really 3, the run measured a depth of 3: the submission blocked, the kernel completed each I/O at once (a
//! page cache hit, a filesystem that falls back to synchronous work), or the workers had no CPU.
//!
//! Cannot see: how many of them the disk held; requests may wait or be merged above it.
//!
//! Threshold: below 80 % of workers × iodepth: suspect. An engine reaps completions and submits new I/Os in
//! batches, and between the two the queue is not full: at depth 32 and 85,000 IOPS on a virtio disk this tool
//! keeps 28 to 30, and the latencies are those of that depth. Does not apply to blocking engines, to paced
//! jobs (there the depth is a limit), to think time, to a job that varies its depth (`latency_target`), nor
//! to zoned writes: a zone accepts one at a time.

use crate::facts::{PhaseFacts, finding, not_applicable};
use trueio_model::units::three_digits;
use trueio_model::{Check, CheckOutcome, EngineKind};

pub(crate) const NAME: &str = "achieved_depth";

const SHARE_MIN: f64 = 0.8;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let writes_zones = facts.works().any(|work| work.job.zones.is_some() && work.job.modifies_files());
    let mut worst: Option<(f64, u64, f64, &str)> = None;
    for work in facts.works() {
        let job = work.job;
        // The engine `null` completes everything at once, so there is no queue to keep.
        let holds = job.engine.holds_a_queue() && job.engine != EngineKind::Null;
        let (Some(achieved), true) = (work.record.achieved_depth, holds) else { continue };
        // A zone accepts one write at a time, and readers of zones wait for writers. A job that issues less
        // than the disk could complete (a rate, pauses, a source) fills no queue. A search for a depth lowers
        // it deliberately.
        let waits_for_zones = job.zones.is_some() && writes_zones;
        if waits_for_zones || job.is_paced() || job.think.is_some() || job.source.is_some() || !job.control.is_none() {
            continue;
        }
        let asked = work.depth();
        let share = achieved / asked as f64;
        if worst.is_none_or(|worst| share < worst.0) {
            worst = Some((share, asked, achieved, &job.name));
        }
    }
    let Some((share, asked, achieved, name)) = worst else {
        return not_applicable(
            NAME,
            "No job keeps a queue: each worker has one I/O in flight, is paced, or waits for a source or for zones.",
        );
    };
    let (outcome, sentence) = if share < SHARE_MIN {
        let sentence = format!(
            "`{name}` kept {} I/Os in flight; its queue depth allows \
                                {asked}.",
            three_digits(achieved)
        );
        (CheckOutcome::Suspect, sentence)
    } else if share < 0.95 {
        let short = (1.0 - share) * 100.0;
        (
            CheckOutcome::Passed,
            format!(
                "The average queue depth was {short:.0} % below the requested depth, because \
                                        I/Os are submitted and reaped in batches."
            ),
        )
    } else {
        (CheckOutcome::Passed, "The queue was kept at the requested depth.".to_owned())
    };
    let found = format!("{} in flight on average", three_digits(achieved));
    let check = finding(NAME, outcome, "the engine's own counter", format!("{asked} in flight"), found, sentence);
    match outcome {
        CheckOutcome::Suspect => check.with_brief(format!("{} of {asked} in flight", three_digits(achieved))),
        _ => check,
    }
}
