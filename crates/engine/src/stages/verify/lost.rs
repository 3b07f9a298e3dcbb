//! The ranges whose last write failed: their content is unknown, so they are not compared.
//!
//! A job that goes on after failed writes (`ignore_error`, `continue_on_error`, `fill_device`) still compares all other blocks,
//! as fio does. A later write to such a range makes its content known again.
//!
//! Limits: what another worker wrote to the range is not known here.

use crate::request::Request;
use std::collections::BTreeMap;

/// The ranges of one worker's failed writes.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The end of each range, in bytes, by its file and first byte.
    ends: BTreeMap<(u16, u64), u64>,
    /// Length of the longest range so far, in bytes.
    length_max: u64,
    /// Number of blocks that were not compared.
    skipped_count: u64,
}

impl Lost {
    /// Records that a write completed, or failed.
    pub(super) fn note(&mut self, write: &Request, is_whole: bool) {
        let (begin, end) = (write.offset, write.offset + u64::from(write.length));
        if !is_whole {
            self.length_max = self.length_max.max(end - begin);
            let last = self.ends.entry((write.file, begin)).or_insert(end);
            *last = (*last).max(end);
        } else if !self.ends.is_empty() {
            let within = self.ends.range((write.file, begin)..(write.file, end));
            let known: Vec<(u16, u64)> = within.filter(|(_, last)| **last <= end).map(|(at, _)| *at).collect();
            for at in known {
                self.ends.remove(&at);
            }
        }
    }

    /// Returns true if a part of the block is unknown, and counts it as not compared.
    pub(super) fn skips(&mut self, block: &Request) -> bool {
        let end = block.offset + u64::from(block.length);
        let begin = block.offset.saturating_sub(self.length_max);
        let mut near = self.ends.range((block.file, begin)..(block.file, end));
        let is_unknown = near.any(|(_, last)| *last > block.offset);
        self.skipped_count += u64::from(is_unknown);
        is_unknown
    }

    /// Returns a note about the blocks that were not compared; `None`: all were.
    pub(super) fn note_skipped(&self) -> Option<String> {
        (self.skipped_count > 0).then(|| {
            format!(
                "verify: {} blocks whose last write failed were not compared: their content is unknown",
                self.skipped_count
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::OpKind;

    #[test]
    fn a_range_is_unknown_from_its_failed_write_to_the_next_one() {
        let block = |file, offset, length| Request { op: OpKind::Write, file, offset, length };
        let mut lost = Lost::default();
        assert!(!lost.skips(&block(0, 0, 4096)));
        lost.note(&block(0, 8192, 4096), false);
        for (other, is_unknown) in [
            (block(0, 4096, 4096), false),
            (block(0, 4096, 8192), true),
            (block(0, 8192, 512), true),
            (block(0, 11_776, 512), true),
            (block(0, 12_288, 4096), false),
            (block(1, 8192, 4096), false),
        ] {
            assert_eq!(lost.skips(&other), is_unknown, "{other:?}");
        }
        lost.note(&block(0, 8192, 512), true);
        assert!(lost.skips(&block(0, 8192, 4096)), "a part was written");
        lost.note(&block(0, 4096, 8192), true);
        assert!(!lost.skips(&block(0, 8192, 4096)));
        assert!(lost.note_skipped().is_some_and(|note| note.starts_with("verify: 4 blocks")));
    }
}
