//! Checks whether a disk must store the content that was written.
//!
//! - **Reads** the content that the plan writes.
//! - **Misses** what a drive does with it. Content of a `source` or another program is not seen.
//! - **Thresholds**: zeros, and repeated bytes (`buffer_pattern`), are suspect: many drives and filesystems store them once, compressed
//!   or not at all. Compressible and repeated content that the job requests by number is reported.
//! - **By hand**: write a file of zeros to btrfs with `compress=zstd`: 200 MiB became 7 MiB.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::{Check, CheckOutcome, ContentKind, OpKind};

pub(crate) const NAME: &str = "content";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<_> =
        facts.works().filter(|work| work.job.engine.touches_files() && work.bytes(OpKind::Write) > 0).collect();
    if works.is_empty() {
        return not_applicable(NAME, "Nothing was written.");
    }
    let report = |outcome, found: String, sentence: &str| {
        finding(NAME, outcome, "the plan", "content that a disk must store", found, sentence)
    };
    if works.iter().any(|work| work.job.content.kind == ContentKind::Zero) {
        let sentence = "The job wrote zeros, which many disks and filesystems do not store.";
        return report(CheckOutcome::Suspect, "zeros".to_owned(), sentence).with_brief("wrote zeros");
    }
    if let Some(work) = works.iter().find(|work| work.job.content.kind == ContentKind::Pattern) {
        let bytes = work.job.content.pattern.len();
        let sentence =
            "The job wrote the same bytes repeatedly; some disks and filesystems store them once, or compressed.";
        return report(CheckOutcome::Suspect, format!("a pattern of {bytes} bytes"), sentence)
            .with_brief("wrote a repeated pattern");
    }
    if let Some(work) = works.iter().find(|work| work.job.source.is_some() || work.job.command.is_some()) {
        let whose = if work.job.command.is_some() { "another program" } else { "the source" };
        return not_seen(
            NAME,
            "the plan",
            format!(
                "The content from {whose} was not examined; it may be compressible \
                                                   or repeated."
            ),
        );
    }
    let compressible = works.iter().map(|work| work.job.content.compressible_percent).max().unwrap_or(0);
    let duplicate = works.iter().map(|work| work.job.content.duplicate_percent).max().unwrap_or(0);
    let found = format!("random, {compressible} % compressible, {duplicate} % repeated");
    let sentence = if compressible + duplicate > 0 {
        "The job sets compressible or repeated content; the figures hold for such content."
    } else {
        "The job wrote random content; no two blocks are equal."
    };
    report(CheckOutcome::Passed, found, sentence)
}
