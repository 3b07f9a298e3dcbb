//! Checks whether a job with a rate kept it.
//!
//! - **Reads** the I/Os that were due and never issued, and how late I/Os were submitted although a slot was free.
//! - **Sees** a rate that the disk cannot sustain (latency then grows with the length of the run), or that the tool cannot.
//! - **Misses** whether another arrival schedule would have been sustained.
//! - **Thresholds**: a backlog above 1 % of the I/Os that were due; a 99th percentile of lateness above 10 % of the median latency
//!   from the intended start. Suspect.
//! - **By hand**: set `rate_iops = 20000` on a disk of 10,000 IOPS.

use crate::facts::{PhaseFacts, Work, finding, not_applicable};
use trueio_model::units::{format_count, format_duration_ns};
use trueio_model::{Cause, Check, CheckOutcome, Histogram, OpKind};

pub(crate) const NAME: &str = "pace";

const SOURCE: &str = "the schedule of intended start times";
const BACKLOG_SHARE_MAX: f64 = 0.01;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let paced: Vec<_> = facts.works().filter(|work| work.job.is_paced()).collect();
    if paced.is_empty() {
        return not_applicable(NAME, "No job sets a rate; each worker issues its next I/O as soon as it can.");
    }
    let report = |outcome, found: String, sentence: String| {
        finding(NAME, outcome, SOURCE, "every I/O issued when due", found, sentence)
    };
    for work in &paced {
        let name = &work.job.name;
        let (issued, backlog) = (issued_count(*work), work.record.backlog_count);
        if !is_kept(*work) {
            let found = format!("{} issued, {} due but not issued", format_count(issued), format_count(backlog));
            let sentence = format!(
                "`{name}` could not keep its rate: {} due I/Os were never issued. Its latencies grow with the length \
                 of the run.",
                format_count(backlog)
            );
            let share = backlog as f64 / (issued + backlog) as f64;
            return report(CheckOutcome::Suspect, found, sentence).with_brief("rate not kept").explaining(Some(share));
        }
        let late = quantile(&work.record.pacing_lateness, 0.99).unwrap_or(0);
        let medians = work.record.ops.iter().filter_map(|op| quantile(&op.latency.from_intended, 0.5));
        let median = medians.min().unwrap_or(0);
        if late > median / 10 && median > 0 {
            let found = format!("1 % more than {} late", format_duration_ns(late));
            let sentence = format!(
                "This tool submitted I/Os of `{name}` late, compared with a median latency of {}: the figures include \
                 its delay.",
                format_duration_ns(median)
            );
            return report(CheckOutcome::Suspect, found, sentence)
                .with_cause(Cause::Tool)
                .with_brief("I/Os issued late");
        }
    }
    report(CheckOutcome::Passed, "no backlog".to_owned(), "The rate was kept.".to_owned())
}

/// Returns true if hardly any I/O of a job with a rate was due and not issued.
pub(crate) fn is_kept(work: Work<'_>) -> bool {
    let backlog = work.record.backlog_count;
    backlog as f64 <= (issued_count(work) + backlog) as f64 * BACKLOG_SHARE_MAX
}

fn issued_count(work: Work<'_>) -> u64 {
    work.record.ops.iter().filter(|op| op.op != OpKind::Sync).map(|op| op.io_count + op.error_count).sum()
}

/// Returns a quantile that the sample supports, in nanoseconds.
pub(crate) fn quantile(histogram: &Histogram, share: f64) -> Option<u64> {
    trueio_stats::quantile(histogram, share).map(|quantile| quantile.value_ns)
}
