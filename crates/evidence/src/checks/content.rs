//! What was written: zeros, or something a disk must store.
//!
//! Many drives and filesystems never store a block of zeros, and some store a repeated or
//! compressible block once or shorter. Reads the plan; the content generator is this program's own.
//!
//! Cannot see: what a drive does with the content.
//!
//! Threshold: writing zeros: suspect. Compressible or repeated content was asked for by number, and
//! stands in the plan; it is said and not doubted.

use crate::facts::{PhaseFacts, finding, not_applicable};
use trueio_model::{Check, CheckOutcome, ContentKind, OpKind};

pub(crate) const NAME: &str = "content";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<_> =
        facts.works().filter(|work| work.job.engine.touches_files() && work.bytes(OpKind::Write) > 0).collect();
    if works.is_empty() {
        return not_applicable(NAME, "Nothing was written.");
    }
    let report = |outcome, found: String, sentence: &str| {
        finding(NAME, outcome, "the plan", "content that must be stored", found, sentence)
    };
    if works.iter().any(|work| work.job.content.kind == ContentKind::Zero) {
        let sentence = "Zeros were written: many disks and filesystems do not store them.";
        return report(CheckOutcome::Suspect, "zeros".to_owned(), sentence);
    }
    let compressible = works.iter().map(|work| work.job.content.compressible_percent).max().unwrap_or(0);
    let duplicate = works.iter().map(|work| work.job.content.duplicate_percent).max().unwrap_or(0);
    let found = format!("random, {compressible} % compressible, {duplicate} % repeated");
    let sentence = if compressible + duplicate > 0 {
        "Content that compresses or repeats was asked for: the figures hold for such content."
    } else {
        "Random content was written, no two blocks alike."
    };
    report(CheckOutcome::Passed, found, sentence)
}
