//! Checks whether the read region is stored on the disk.
//!
//! Reads the files' extents (`FIEMAP`, else `SEEK_HOLE`) before the phase. A hole, or space that was
//! preallocated and never written, reads as zeros without access to the disk.
//!
//! Cannot see: blocks that a thin-provisioned disk never stored; zeros that were really written; block
//! devices, which have no extents.
//!
//! Thresholds: more than 1 % of the region not stored: contradicted; any less, or extents that the filesystem
//! compressed: suspect.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use crate::filemap::FileMap;
use trueio_model::units::format_bytes;
use trueio_model::{Check, CheckOutcome, TargetKind};

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
    let sum = |value: fn(&FileMap) -> u64| maps.iter().map(|map| value(map)).sum::<u64>();
    let region = sum(|map| map.region_bytes);
    let stored = sum(|map| map.stored_bytes);
    let encoded = sum(|map| map.encoded_bytes);
    let (holes, unwritten) = (sum(|map| map.hole_bytes), unwritten_bytes(facts, &maps));
    let report = |outcome, sentence: String| {
        let found = format!(
            "{} stored, {} holes, {} preallocated but never written",
            format_bytes(stored),
            format_bytes(holes),
            format_bytes(unwritten)
        );
        finding(NAME, outcome, first.source, format!("{} stored", format_bytes(region)), found, sentence)
    };
    if !maps.iter().all(|map| map.is_complete) {
        let sentence = "The files have more extents than were examined; the examined ones are stored.".to_owned();
        return report(if unwritten > 0 { CheckOutcome::Suspect } else { CheckOutcome::NotSeen }, sentence);
    }
    if holes + unwritten > region / 100 {
        let percent = (holes + unwritten) as f64 / region.max(1) as f64 * 100.0;
        let sentence = format!(
            "{percent:.0} % of the read region is not stored on the disk: reads return zeros without accessing the \
             disk."
        );
        return report(CheckOutcome::Contradicted, sentence)
            .with_brief(format!("{percent:.0} % never written"))
            .explaining(Some(percent / 100.0));
    }
    if holes + unwritten > 0 {
        return report(
            CheckOutcome::Suspect,
            "A small part of the files is not stored on the disk (holes).".to_owned(),
        )
        .with_brief(format!("{} of holes", format_bytes(holes + unwritten)))
        .explaining(Some((holes + unwritten) as f64 / region.max(1) as f64));
    }
    if encoded > 0 {
        let sentence = format!(
            "The filesystem compressed or encrypted {} of the files, so the disk transferred different bytes.",
            format_bytes(encoded)
        );
        return report(CheckOutcome::Suspect, sentence)
            .with_brief("compressed by the filesystem")
            .explaining(Some(encoded as f64 / region.max(1) as f64));
    }
    report(CheckOutcome::Passed, "The whole read region is stored on the disk.".to_owned())
}

/// Data in memory whose extents are still unwritten is no hole, so bytes that were dirty when the phase began
/// are subtracted.
fn unwritten_bytes(facts: &PhaseFacts<'_>, maps: &[&FileMap]) -> u64 {
    maps.iter()
        .map(|map| {
            let before =
                facts.observation.residency.iter().find(|(path, _, _)| *path == map.path).and_then(|r| r.1.as_ref());
            let dirty = before.map_or(0, |before| before.dirty_pages.unwrap_or(0) * before.page_bytes);
            map.unwritten_bytes.saturating_sub(dirty)
        })
        .sum()
}
