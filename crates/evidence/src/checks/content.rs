//! What was written: zeros, or something a disk must store.
//!
//! Many drives and filesystems never store a block of zeros, and some store a repeated or
//! compressible block once or shorter. Reads the plan; the content generator is this program's own.
//!
//! Cannot see: what a drive does with the content.
//!
//! Threshold: writing zeros, or the same few bytes over and over: suspect. Compressible or repeated content was asked for by number, and
//! stands in the plan; it is said and not doubted.

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
        finding(NAME, outcome, "the plan", "content that must be stored", found, sentence)
    };
    if works.iter().any(|work| work.job.content.kind == ContentKind::Zero) {
        let sentence = "Zeros were written: many disks and filesystems do not store them.";
        return report(CheckOutcome::Suspect, "zeros".to_owned(), sentence);
    }
    if let Some(work) = works.iter().find(|work| work.job.content.kind == ContentKind::Pattern) {
        let bytes = work.job.content.pattern.len();
        let sentence =
            "The same bytes were written over and over: some disks and filesystems store them once, or shorter.";
        return report(CheckOutcome::Suspect, format!("a pattern of {bytes} bytes"), sentence);
    }
    if let Some(work) = works.iter().find(|work| work.job.source.is_some() || work.job.command.is_some()) {
        let whose = if work.job.command.is_some() { "another program wrote" } else { "the source sent" };
        return not_seen(NAME, "the plan", format!("What {whose} was not looked at: it may compress or repeat."));
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
