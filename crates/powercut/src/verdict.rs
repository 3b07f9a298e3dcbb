//! What findings mean: the kind of disk, the bytes that it stores, and the sentences that state it.

use crate::examine::Findings;
use crate::layout::{CONFIDENCE, Layout, missing_share_max};
use crate::sector::BLOCK_BYTES;
use trueio_model::units::{format_bytes, format_count};
use trueio_model::{CapacityContent, CapacityCoverage, CapacityKind, CapacityRecord};

/// The kind of disk, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub kind: CapacityKind,
    /// The bytes from the start that store data; `None` for a genuine disk, and if no end was found.
    pub usable_bytes: Option<u64>,
}

/// Judges findings. `narrowed` is the last intact and the first bad block that [`crate::Examination::narrow`] returned; `None`
/// if it was not called, or found no end.
pub fn judge(findings: &Findings, layout: &Layout, narrowed: Option<(Option<u64>, u64)>) -> Verdict {
    let counts = &findings.counts;
    if counts.bad() == 0 {
        return Verdict { kind: CapacityKind::Genuine, usable_bytes: None };
    }
    if let Some(usable) = findings.wraps_at(layout) {
        return Verdict { kind: CapacityKind::Wraps, usable_bytes: Some(usable) };
    }
    let usable_bytes = narrowed.map(|(intact, _)| intact.map_or(0, |block| (block + 1) * BLOCK_BYTES as u64));
    let failed = counts.unreadable + counts.unwritable;
    let kind = match usable_bytes {
        None => CapacityKind::Loses,
        Some(_) if failed * 2 > counts.bad() => CapacityKind::Fails,
        Some(_) => CapacityKind::Ends,
    };
    Verdict { kind, usable_bytes }
}

/// Returns what a layout can find.
pub fn coverage(layout: &Layout) -> CapacityCoverage {
    let sample_count = layout.sample_count();
    CapacityCoverage {
        is_full: layout.is_full,
        block_bytes: BLOCK_BYTES as u32,
        sample_count,
        region_bytes: layout.start.count * BLOCK_BYTES as u64,
        missing_share_max: if layout.is_full { 0.0 } else { missing_share_max(sample_count, CONFIDENCE) },
        confidence: CONFIDENCE,
        cache_bytes: layout.cache_bytes,
    }
}

/// Returns the result of a record in words.
pub fn sentences(record: &CapacityRecord) -> Vec<String> {
    let mut sentences = vec![answer(record)];
    sentences.push(basis(record));
    if record.kind == CapacityKind::Genuine {
        sentences.push(limit(&record.coverage));
    } else {
        sentences.extend(found(record));
        sentences.push(next_step(record));
    }
    sentences.push(match record.content {
        CapacityContent::Restored => "The content of the disk is as it was before.".to_owned(),
        CapacityContent::PartlyRestored => {
            "Some blocks could not be written back: the journal still holds what they contained.".to_owned()
        }
        CapacityContent::Overwritten => "The content of the disk was overwritten.".to_owned(),
    });
    sentences
}

fn answer(record: &CapacityRecord) -> String {
    let (reported, usable) = (format_bytes(record.reported_bytes), record.usable_bytes.map(format_bytes));
    let usable = usable.unwrap_or_else(|| "less".to_owned());
    match record.kind {
        CapacityKind::Genuine => format!("Genuine: the disk stores the {reported} that it reports."),
        CapacityKind::Ends => format!("Fake: the disk reports {reported} and stores {usable}; later blocks are lost."),
        CapacityKind::Wraps => {
            format!("Fake: the disk reports {reported} and stores {usable}; later blocks replace earlier ones.")
        }
        CapacityKind::Fails => {
            format!("Fake or broken: the disk reports {reported}, and fails from {usable} on with I/O errors.")
        }
        CapacityKind::Loses => {
            format!("Fake or broken: the disk reports {reported} and loses blocks, with intact blocks after them.")
        }
    }
}

fn basis(record: &CapacityRecord) -> String {
    let (coverage, found) = (&record.coverage, &record.found);
    let count = format_count(found.intact + found.bad());
    let what = if coverage.is_full {
        format!("All {count} blocks of 4 KiB were written")
    } else {
        format!(
            "{count} blocks of 4 KiB were written ({} at the start, as much at the end, and {} at random positions)",
            format_bytes(coverage.region_bytes),
            format_count(coverage.sample_count)
        )
    };
    format!("{what} before any was read back; {} were intact.", format_count(found.intact))
}

/// Returns what the test of a genuine disk cannot see.
fn limit(coverage: &CapacityCoverage) -> String {
    let share = if coverage.is_full {
        String::new()
    } else {
        // Rounded up: a bound must not become smaller.
        let percent = (coverage.missing_share_max * 1e4).ceil() / 100.0;
        let confidence = coverage.confidence * 100.0;
        format!(
            "At most {percent} % of the disk can be missing ({confidence:.0} % confidence); `--full` writes all of it. "
        )
    };
    let cache = format!(
        "A cache of at most {} cannot have answered; `--cache` excludes a larger one.",
        format_bytes(coverage.cache_bytes)
    );
    format!("{share}{cache}")
}

fn found(record: &CapacityRecord) -> Option<String> {
    let found = &record.found;
    let kinds = [
        (found.zeros, "zeros"),
        (found.older, "content of an earlier write"),
        (found.other_block, "the content of another block"),
        (found.changed, "something else"),
    ];
    let mut words: Vec<String> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} held {what}", format_count(count)))
        .collect();
    let failed = [(found.unreadable, "read"), (found.unwritable, "written")];
    words.extend(
        failed
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, verb)| format!("{} could not be {verb}", format_count(count))),
    );
    (!words.is_empty()).then(|| format!("Of the others, {}.", words.join(", ")))
}

/// A partition begins here, in sectors.
const PARTITION_START: u64 = 2048;

fn next_step(record: &CapacityRecord) -> String {
    // A whole number of MiB, and one MiB less: flash that is nearly full fails first.
    let sectors = record.usable_bytes.map(|bytes| (bytes >> 20).saturating_sub(1) << 11);
    match sectors.filter(|sectors| *sectors > PARTITION_START) {
        Some(sectors) => format!(
            "Give it back. To use the part that stores data (this removes what is on the disk): echo 'start={PARTITION_START}, size={}, \
             type=c' | sfdisk --label dos {}",
            sectors - PARTITION_START,
            record.target.path
        ),
        None if record.coverage.is_full => "Give it back: no part of it can be relied on.".to_owned(),
        None => "Do not rely on it; `--full` finds each block that is lost.".to_owned(),
    }
}
