//! Checks whether what was read is stored on the disk.
//!
//! - **Reads** the extents of each file that is read, before and after: `FIEMAP`, else `SEEK_HOLE`. Nothing is flushed for it.
//! - **Sees** holes, space that was reserved and never written, extents that the filesystem compressed or encrypted.
//! - **Misses** blocks that a thin-provisioned disk never stored, zeros that were written, block devices, files with more than 16,384
//!   extents (not seen), and holes that were filled again within the phase: a changed time of modification is mentioned by the findings
//!   about missing bytes.
//! - **Thresholds**: more than 1 % not stored contradicts, unless disk and process counted every byte of direct reads; any less, or
//!   encoded extents, are suspect. What a job in order did not reach does not count.
//! - **Cost**: tens of microseconds for a file of a few extents, outside the measured part.
//! - **By hand**: 0 extents, but more than 800,000 "reads" per second with direct I/O:
//!
//!   ```sh
//!   truncate -s 256M sparse && filefrag -v sparse
//!   fio --name=hole --filename=sparse --rw=randread --bs=4k --direct=1 --ioengine=psync --runtime=1 --time_based
//!   ```
//!
//! A file with too many extents is suspect if the examined ones have holes. I/Os in flight at the end do not count as read.

use crate::checks::block_layer_bytes::{bytes_before_begin, has_arrived};
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use crate::filemap::FileMap;
use trueio_model::units::format_bytes;
use trueio_model::{Check, CheckOutcome, OpKind, OpMix, Order, Residency, TargetKind};

pub(crate) const NAME: &str = "holes";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<_> = facts.works().filter(|work| work.job.engine.touches_files() && work.reads()).collect();
    if works.is_empty() {
        return not_applicable(NAME, "No file was read.");
    }
    let paths: Vec<&str> = works.iter().flat_map(|work| &work.job.files).map(|file| file.path.as_str()).collect();
    let is_device = |path: &&str| facts.target_of(path).is_some_and(|target| target.kind == TargetKind::BlockDevice);
    if paths.iter().all(is_device) {
        return not_applicable(NAME, "A block device has no extents; whether it stores every block is unknown.");
    }
    let maps: Vec<&FileMap> = facts.observation.maps.iter().filter(|map| paths.contains(&map.path.as_str())).collect();
    let Some(first) = maps.first() else {
        let why = facts.observation.notes.iter().find(|note| note.contains("mapped"));
        let sentence = why.map_or_else(|| "The files were not mapped.".to_owned(), |note| format!("{note}."));
        return not_seen(NAME, "FIEMAP, SEEK_HOLE", sentence);
    };
    let before = Stored::of(facts, &works, &maps, |(_, before, _)| before.as_ref());
    let after_maps = facts.observation.maps_after.iter().filter(|map| paths.contains(&map.path.as_str()));
    let after = Stored::of(facts, &works, &after_maps.collect::<Vec<_>>(), |(_, _, after)| after.as_ref());
    let is_after = after.absent_share() > before.absent_share();
    let worse = if is_after { &after } else { &before };
    let report = |outcome, sentence: String| {
        let found = format!(
            "{} stored, {} holes, {} preallocated but never written{}",
            format_bytes(worse.part - worse.absent()),
            format_bytes(worse.holes),
            format_bytes(worse.unwritten),
            if is_after { ", after the phase" } else { "" }
        );
        finding(NAME, outcome, first.source, format!("{} stored", format_bytes(worse.part)), found, sentence)
    };
    if !maps.iter().all(|map| map.is_complete) {
        let sentence = "The files have more extents than were examined; the examined ones are stored.".to_owned();
        return match before.absent() {
            0 => report(CheckOutcome::NotSeen, sentence),
            _ => report(CheckOutcome::Suspect, sentence).with_brief("perhaps holes"),
        };
    }
    if worse.absent_share() > ABSENT_SHARE_MAX {
        if are_elsewhere(facts, &works, worse) {
            let sentence =
                "Parts of the files are not stored on the disk, but the disk read every byte: none of them there.";
            return report(CheckOutcome::Passed, sentence.to_owned());
        }
        let percent = worse.absent_share() * 100.0;
        let what = if worse.is_part { "part that was read" } else { "read region" };
        let sentence = if is_after {
            format!(
                "{percent:.0} % of the {what} was not stored on the disk any more when the phase ended: reads of these holes \
                 return zeros without accessing the disk."
            )
        } else {
            format!(
                "{percent:.0} % of the {what} is not stored on the disk: reads return zeros without accessing the \
                 disk."
            )
        };
        let brief = if is_after { "holes at the end" } else { "never written" };
        return report(CheckOutcome::Contradicted, sentence)
            .with_brief(format!("{percent:.0} % {brief}"))
            .explaining(Some(percent / 100.0));
    }
    if worse.absent() > 0 {
        return report(
            CheckOutcome::Suspect,
            "A small part of the files is not stored on the disk (holes).".to_owned(),
        )
        .with_brief(format!("{} of holes", format_bytes(worse.absent())))
        .explaining(Some(worse.absent_share()));
    }
    if before.encoded > 0 {
        let sentence = format!(
            "The filesystem compressed or encrypted {} of the files, so the disk transferred different bytes.",
            format_bytes(before.encoded)
        );
        return report(CheckOutcome::Suspect, sentence)
            .with_brief("compressed by the filesystem")
            .explaining(Some(before.encoded as f64 / before.part.max(1) as f64));
    }
    let what = if worse.is_part { "part of the files that was read" } else { "read region" };
    report(CheckOutcome::Passed, format!("The whole {what} is stored on the disk."))
}

const ABSENT_SHARE_MAX: f64 = 0.01;

/// A file, and its cached pages before and after.
type Pages = (String, Option<Residency>, Option<Residency>);

/// How much of what was read is stored, in bytes.
#[derive(Debug, Default)]
struct Stored {
    part: u64,
    holes: u64,
    unwritten: u64,
    encoded: u64,
    /// True if it is only a part of a region.
    is_part: bool,
}

impl Stored {
    fn of<'r>(
        facts: &PhaseFacts<'r>,
        works: &[Work<'_>],
        maps: &[&FileMap],
        residency: fn(&'r Pages) -> Option<&'r Residency>,
    ) -> Self {
        let mut sum = Self::default();
        for map in maps {
            // Data in memory whose extents are still unwritten is no hole.
            let pages = facts.observation.residency.iter().find(|(path, _, _)| *path == map.path).and_then(residency);
            let dirty = pages.map_or(0, |pages| pages.dirty_pages.unwrap_or(0) * pages.page_bytes);
            let (part, holes, unwritten) = match read_end(works, &map.path).filter(|end| *end < map.end_bytes()) {
                Some(end) => {
                    sum.is_part = true;
                    let (holes, unwritten) = map.absent_in(map.offset_bytes, end);
                    (end.saturating_sub(map.offset_bytes), holes, unwritten)
                }
                None => (map.region_bytes, map.hole_bytes, map.unwritten_bytes),
            };
            sum.part += part;
            sum.holes += holes;
            sum.unwritten += unwritten.saturating_sub(dirty);
            sum.encoded += map.encoded_bytes;
        }
        sum
    }

    fn absent(&self) -> u64 {
        self.holes + self.unwritten
    }

    fn absent_share(&self) -> f64 {
        self.absent() as f64 / self.part.max(1) as f64
    }
}

/// Returns the byte up to which a file was read in order; `None` if that is unknown, and the whole region counts. I/Os that were in
/// flight at the end are left out: whether they began is unknown, and holes accuse.
pub(crate) fn read_end(works: &[Work<'_>], path: &str) -> Option<u64> {
    let mut last = None;
    for work in works {
        let Some(file) = work.job.files.iter().find(|file| file.path == path) else { continue };
        let job = work.job;
        let is_in_order = job.pattern.order == Order::Sequential
            && job.pattern.mix == OpMix::Only(OpKind::Read)
            && job.pattern.steps.leaves_offsets_alone()
            && job.limits.ramp_ns == 0
            && job.zones.is_none()
            && job.replay.is_none();
        if !is_in_order {
            return None;
        }
        // Failed and short reads move on, too; one worker cannot have read more than all together.
        let failed: u64 = work.record.ops.iter().map(|op| op.error_count + op.short_count).sum();
        let longest = job.pattern.read_sizes.max_bytes();
        let read = work.bytes(OpKind::Read) + failed.saturating_mul(longest);
        let ends = (0..job.workers.max(1)).map(|worker| {
            let (begin, length) = job.region_of(file, worker);
            begin + length.min(read)
        });
        last = last.max(ends.max());
    }
    last
}

/// Returns true if the disks and the process counted every byte of direct reads, and the stored part is not empty: then no hole was read.
fn are_elsewhere(facts: &PhaseFacts<'_>, works: &[Work<'_>], stored: &Stored) -> bool {
    let read: u64 = works.iter().map(|work| work.bytes(OpKind::Read)).sum();
    let early = bytes_before_begin(works);
    let is_direct = works.iter().all(|work| facts.way(work.job) == Way::Direct);
    let own = facts.observation.process_read_bytes.unwrap_or(0);
    is_direct
        && stored.absent() < stored.part
        && facts.why_no_counters().is_none()
        && has_arrived(read, own, early)
        && has_arrived(read, facts.counted(|counters| counters.read_bytes).ours(), early)
}
