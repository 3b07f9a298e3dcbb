//! Compares the files' pages in the page cache before and after the phase.
//!
//! - **Reads** the cached and dirty pages of each file: `cachestat` (Linux 6.5), else `mincore`.
//! - **Sees** direct I/O that left pages in the cache, and so was not direct; files that were cached before a buffered phase; data
//!   still in memory at its end.
//! - **Misses** pages that were evicted in between, and the origin of single pages. ZFS has its own cache.
//! - **Thresholds**: growth under direct I/O above 64 pages and 1 % of what was transferred (of the region, if smaller) contradicts. It
//!   is suspect if the counters of disks and process confirm every byte and other programs read or wrote 90 % of the growth. Buffered:
//!   more than 10 % of the region cached before reads, or more than 2 % of what was written dirty at the end, is suspect.
//! - **Cost**: 8 µs for 400 MB of cached pages.
//! - **By hand**: `fincore full` before and after `cat full > /dev/null`, and after `dd … iflag=direct`.
//!
//! Others explain growth only if the filesystem declares direct I/O: a file that is buffered silently grows by what this process itself
//! read. What others wrote counts only if the phase only reads and the time of modification of a file (not of a device) changed.

use crate::checks::block_layer_bytes::{bytes_before_begin, has_arrived};
use crate::checks::foreign_io::{culprits_of, moved_by_others};
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use trueio_model::units::format_bytes;
use trueio_model::{Cause, Check, CheckOutcome, DirectSupport, OpKind, Residency};

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
        return direct(facts, &works, &before, &after, report);
    }
    let reads_buffered = works.iter().any(|work| facts.way(work.job) == Way::Buffered && work.bytes(OpKind::Read) > 0);
    let written: u64 =
        works.iter().filter(|work| facts.way(work.job) == Way::Buffered).map(|work| work.bytes(OpKind::Write)).sum();
    if written > 0 && after.dirty > written.min(after.region) / 50 {
        let sentence =
            format!("When the phase ended, {} of the written data was in memory only.", format_bytes(after.dirty));
        let share = after.dirty as f64 / written.max(1) as f64;
        return report(CheckOutcome::Suspect, "no dirty pages at the end".to_owned(), sentence)
            .with_brief(format!("{} still in memory", format_bytes(after.dirty)))
            .explaining(Some(share));
    }
    if reads_buffered && before.cached > before.region / 10 {
        let percent = before.cached as f64 / before.region.max(1) as f64 * 100.0;
        let sentence = format!("{percent:.0} % of the files were in the page cache before the phase began.");
        return report(CheckOutcome::Suspect, "an empty cache".to_owned(), sentence)
            .with_brief(format!("{percent:.0} % cached before"))
            .explaining(Some(percent / 100.0));
    }
    let sentence = if reads_buffered {
        "The files were not cached at the start of the phase."
    } else {
        "The written data was written back to the disk."
    };
    report(CheckOutcome::Passed, String::new(), sentence.to_owned())
}

fn direct(
    facts: &PhaseFacts<'_>,
    works: &[Work<'_>],
    before: &Sum,
    after: &Sum,
    report: impl Fn(CheckOutcome, String, String) -> Check,
) -> Check {
    let moved: u64 = works.iter().map(|work| work.bytes(OpKind::Read) + work.bytes(OpKind::Write)).sum();
    let grown = after.cached.saturating_sub(before.cached);
    let expected = "no pages left in the page cache".to_owned();
    if grown > PAGE_COUNT_MIN * after.page_bytes && grown > moved.min(after.region) / 100 {
        let dirtied = after.dirty.saturating_sub(before.dirty);
        if let Some((op, others)) = cached_by_others(facts, works, grown, dirtied) {
            let (did, used) = match op {
                OpKind::Read => ("read", "from the disk"),
                _ => ("wrote", "to the disk, or to memory only,"),
            };
            let sentence = format!(
                "Another process {did} the same files through the page cache, which grew by {}: other processes {did} {} \
                 {used} meanwhile, in addition to every byte of this phase.",
                format_bytes(grown),
                format_bytes(others)
            );
            let moved = moved + others;
            return report(CheckOutcome::Suspect, expected, sentence)
                .with_cause(Cause::Neighbour)
                .with_brief(moved_by_others(facts, op, others))
                .explaining(Some(others as f64 / moved as f64))
                .with_culprits(culprits_of(facts, Some(op)));
        }
        let sentence = format!(
            "The page cache grew by {} during direct I/O: the I/O was not direct, or another process read the file.",
            format_bytes(grown)
        );
        let share = grown as f64 / moved.max(1) as f64;
        return report(CheckOutcome::Contradicted, expected, sentence)
            .with_brief(format!("the page cache grew by {}", format_bytes(grown)))
            .explaining(Some(share));
    }
    report(CheckOutcome::Passed, expected, "Direct I/O left no pages in the page cache.".to_owned())
}

/// Returns true if the files' cached pages were counted, and transfers of `moved` bytes left none in the page cache and
/// found none there.
pub(crate) fn has_stayed(facts: &PhaseFacts<'_>, moved: u64) -> bool {
    let residency = &facts.observation.residency;
    let (mut before, mut after) = (Sum::default(), Sum::default());
    for (_, first, last) in residency {
        let (Some(first), Some(last)) = (first, last) else { return false };
        before.add(first);
        after.add(last);
    }
    let allowed = (PAGE_COUNT_MIN * after.page_bytes).max(moved.min(after.region) / 100);
    !residency.is_empty() && after.cached <= before.cached + allowed
}

/// Returns the bytes that other processes read from the disks, or wrote, if they explain the growth of the cache and the counters
/// confirm that this process's transfers were direct. `dirtied` is the growth of dirty pages: written, and not yet on a disk.
fn cached_by_others(facts: &PhaseFacts<'_>, works: &[Work<'_>], grown: u64, dirtied: u64) -> Option<(OpKind, u64)> {
    let declares_direct = works
        .iter()
        .flat_map(|work| &work.job.files)
        .all(|file| facts.target_of(&file.path).is_some_and(|target| target.direct.support == DirectSupport::Direct));
    if !declares_direct || facts.why_no_counters().is_some() {
        return None;
    }
    let claimed = |op| works.iter().map(|work| work.bytes(op)).sum::<u64>();
    let early = bytes_before_begin(works);
    let (read, written) = (claimed(OpKind::Read), claimed(OpKind::Write));
    let own = facts.observation.process_read_bytes?;
    let counted_read = facts.counted(|counters| counters.read_bytes).raw;
    let counted_written = facts.counted(|counters| counters.write_bytes).raw;
    let is_confirmed = has_arrived(read, own, early)
        && has_arrived(read, counted_read, early)
        && has_arrived(written, counted_written, early);
    // A phase that writes may have made the pages and the time of modification itself; and without one, the disk was written elsewhere.
    let is_others = written == 0 && facts.observation.is_modified;
    let by_others = [
        (OpKind::Read, counted_read.saturating_sub(own)),
        (OpKind::Write, if is_others { counted_written + dirtied } else { 0 }),
    ];
    // Where others did both, what they did most.
    let most = by_others.into_iter().max_by_key(|(_, others)| *others)?;
    (is_confirmed && most.1 >= grown / 10 * 9).then_some(most)
}

fn lives_in_memory(facts: &PhaseFacts<'_>, path: &str) -> bool {
    let filesystem = facts.target_of(path).and_then(|target| target.filesystem.as_ref());
    filesystem.is_some_and(|filesystem| filesystem.kind.is_memory())
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
