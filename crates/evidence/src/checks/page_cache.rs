//! Compares the files' pages in the page cache before and after the phase.
//!
//! Reads `cachestat` (Linux 6.5), else `mincore`, of each file's region. Direct I/O leaves no pages
//! behind: a cache that grew by what was transferred says that it was not direct. Of a buffered
//! phase it says how much could be served from memory from the start, and how much of what was
//! written had not left it at the end.
//!
//! Cannot see: pages that came and went in between; who brought them (another program that reads
//! the same file fills the cache too); ZFS's own cache.
//!
//! Thresholds: growth under direct I/O of more than 64 pages and 1 % of the bytes transferred or of
//! the region, whichever is less: contradicted. Buffered reads with more than 10 % of the region
//! cached at the start, or dirty pages of more than 2 % of what was written at the end: suspect.

use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use trueio_model::units::format_bytes;
use trueio_model::{Check, CheckOutcome, OpKind, Residency};

pub(crate) const NAME: &str = "page_cache";

const PAGE_COUNT_MIN: u64 = 64;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.file_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let seen = || facts.observation.residency.iter();
    let in_memory = seen().all(|(path, _, _)| lives_in_memory(facts, path)) && seen().count() > 0;
    if in_memory {
        return not_applicable(NAME, "The filesystem keeps its files only in the page cache.");
    }
    let mut before = Sum::default();
    let mut after = Sum::default();
    let mut source = String::new();
    for (path, first, last) in seen() {
        let (Some(first), Some(last)) = (first, last) else {
            return not_seen(NAME, "cachestat, mincore", format!("Cannot count the cached pages of `{path}`."));
        };
        before.add(first);
        after.add(last);
        source.clone_from(&last.source);
    }
    if source.is_empty() {
        return not_seen(NAME, "cachestat, mincore", "No file's cached pages were counted.");
    }
    let report = |outcome, expected: String, sentence: String| {
        let found = format!("{} cached before, {} after", format_bytes(before.cached), format_bytes(after.cached));
        finding(NAME, outcome, source.clone(), expected, found, sentence)
    };
    if works.iter().all(|work| facts.way(work.job) == Way::Direct) {
        return direct(&works, &before, &after, report);
    }
    let reads_buffered = works.iter().any(|work| facts.way(work.job) == Way::Buffered && work.bytes(OpKind::Read) > 0);
    let written: u64 =
        works.iter().filter(|work| facts.way(work.job) == Way::Buffered).map(|work| work.bytes(OpKind::Write)).sum();
    if written > 0 && after.dirty > written.min(after.region) / 50 {
        let sentence =
            format!("When the phase ended, {} of the written data was in memory only.", format_bytes(after.dirty));
        return report(CheckOutcome::Suspect, "no dirty pages at the end".to_owned(), sentence);
    }
    if reads_buffered && before.cached > before.region / 10 {
        let percent = before.cached as f64 / before.region.max(1) as f64 * 100.0;
        let sentence = format!("{percent:.0} % of the files were in the page cache before the phase began.");
        return report(CheckOutcome::Suspect, "an empty cache".to_owned(), sentence);
    }
    let sentence = if reads_buffered {
        "The files were not cached at the start of the phase."
    } else {
        "The written data was written back to the disk."
    };
    report(CheckOutcome::Passed, String::new(), sentence.to_owned())
}

fn direct(
    works: &[Work<'_>],
    before: &Sum,
    after: &Sum,
    report: impl Fn(CheckOutcome, String, String) -> Check,
) -> Check {
    let moved: u64 = works.iter().map(|work| work.bytes(OpKind::Read) + work.bytes(OpKind::Write)).sum();
    let grown = after.cached.saturating_sub(before.cached);
    let expected = "no pages left in the page cache".to_owned();
    if grown > PAGE_COUNT_MIN * after.page_bytes && grown > moved.min(after.region) / 100 {
        let sentence = format!(
            "The page cache grew by {} during direct I/O: the I/O was not direct, or another process read the file.",
            format_bytes(grown)
        );
        return report(CheckOutcome::Contradicted, expected, sentence);
    }
    report(CheckOutcome::Passed, expected, "Direct I/O left no pages in the page cache.".to_owned())
}

fn lives_in_memory(facts: &PhaseFacts<'_>, path: &str) -> bool {
    let filesystem = facts.target_of(path).and_then(|target| target.filesystem.as_ref());
    filesystem.is_some_and(|filesystem| matches!(filesystem.kind.as_str(), "tmpfs" | "ramfs" | "hugetlbfs"))
}

/// Bytes of all files together.
#[derive(Default)]
struct Sum {
    cached: u64,
    dirty: u64,
    region: u64,
    page_bytes: u64,
}

impl Sum {
    fn add(&mut self, residency: &Residency) {
        self.page_bytes = residency.page_bytes;
        self.cached += residency.cached_pages * residency.page_bytes;
        self.dirty += residency.dirty_pages.unwrap_or(0) * residency.page_bytes;
        self.region += residency.region_pages * residency.page_bytes;
    }
}
