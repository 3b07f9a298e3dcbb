//! The invariants that the planner guarantees and the engine requires; both assert them.
//!
//! A plan that breaks one of these rules is a bug of this program: invalid options of the user are refused earlier.

use super::JobPlan;
use crate::{BlockSizes, OpKind, OpMix};

/// Maximum number of files of a job: an I/O stores its file in 16 bits.
const FILES_MAX: usize = 1 << 16;

impl JobPlan {
    /// Asserts that the engine supports the sizes, offsets and regions.
    ///
    /// # Panics
    /// If it does not.
    pub fn assert_sound(&self) {
        let alignment = u64::from(self.offset_alignment_bytes);
        assert!(self.queue.depth > 0, "a queue of no I/Os");
        assert!(alignment > 0, "offsets are multiples of 0");
        assert!(
            self.buffer_alignment_bytes.is_power_of_two(),
            "buffers at multiples of {}",
            self.buffer_alignment_bytes
        );
        assert!(self.files.len() <= FILES_MAX, "{} files of one job", self.files.len());
        for file in &self.files {
            let end_bytes = file.offset_bytes.checked_add(file.size_bytes);
            assert!(
                end_bytes.is_some_and(|end| end <= i64::MAX as u64),
                "the region of `{}` ends beyond 2^63",
                file.path
            );
        }
        // A log has its own offsets and lengths, and programs choose their own.
        if self.replay.is_some() || self.command.is_some() || !self.is_measured() {
            return;
        }
        let block_bytes_min = self.used_sizes().map(BlockSizes::min_bytes).min().unwrap_or(0);
        for sizes in self.used_sizes() {
            assert!(sizes.min_bytes() > 0, "I/Os of no bytes");
            assert!(sizes.min_bytes() <= sizes.max_bytes(), "{sizes:?} is no range");
            assert!(sizes.are_multiples_of(alignment), "{sizes:?} is not aligned to {alignment}");
        }
        for file in &self.files {
            let (path, offset_bytes) = (&file.path, file.offset_bytes);
            let increment_bytes = self.offset_increment_bytes;
            assert!(increment_bytes.is_multiple_of(alignment), "regions at {increment_bytes} of `{path}`");
            assert!(
                offset_bytes.is_multiple_of(alignment),
                "offset {offset_bytes} of `{path}` is not aligned to {alignment}"
            );
            let spread_bytes = self.offset_increment_bytes * u64::from(self.workers.saturating_sub(1));
            let is_long = file.size_bytes.checked_sub(spread_bytes).is_some_and(|bytes| bytes >= block_bytes_min);
            assert!(is_long, "the region of `{path}` is shorter than a block");
        }
    }

    /// Returns true if each I/O that the job issues is at a multiple of [`JobPlan::offset_alignment_bytes`]. A log has
    /// its own offsets, and the end of a fetched body has its own length.
    pub fn keeps_alignment(&self) -> bool {
        self.replay.is_none() && self.source.is_none()
    }

    /// Returns the sizes of the operations that the pattern has.
    pub fn used_sizes(&self) -> impl Iterator<Item = &BlockSizes> {
        let pattern = &self.pattern;
        let (one, other) = match pattern.mix {
            OpMix::Only(OpKind::Read) => (Some(&pattern.read_sizes), None),
            OpMix::Only(OpKind::Write) => (Some(&pattern.write_sizes), None),
            OpMix::Only(OpKind::Trim) => (Some(&pattern.trim_sizes), None),
            OpMix::Only(OpKind::Sync) => (None, None),
            OpMix::ReadWrite { .. } => (Some(&pattern.read_sizes), Some(&pattern.write_sizes)),
        };
        one.into_iter().chain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineKind, FilePlan, Prepare};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn plan() -> JobPlan {
        let file = FilePlan {
            path: "f".to_owned(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 8192,
            size_bytes: 1 << 20,
            extends_from: None,
        };
        JobPlan { files: vec![file], offset_alignment_bytes: 512, ..JobPlan::plain(EngineKind::Psync, 1 << 20) }
    }

    fn panic_of(change: impl FnOnce(&mut JobPlan)) -> Option<String> {
        let mut plan = plan();
        change(&mut plan);
        let result = catch_unwind(AssertUnwindSafe(|| plan.assert_sound()));
        result.err().map(|panic| *panic.downcast::<String>().expect("a formatted message"))
    }

    #[test]
    fn a_plan_within_the_rules_passes() {
        assert_eq!(panic_of(|_| {}), None);
    }

    /// The message of the broken rule, and the change that breaks it.
    type Break = (&'static str, fn(&mut JobPlan));

    #[test]
    fn each_broken_rule_panics_with_its_figures() {
        let breaks: [Break; 6] = [
            ("buffers at multiples of 3", |plan| plan.buffer_alignment_bytes = 3),
            ("65537 files of one job", |plan| plan.files = vec![plan.files[0].clone(); FILES_MAX + 1]),
            ("the region of `f` ends beyond 2^63", |plan| plan.files[0].offset_bytes = u64::MAX - 511),
            ("Fixed(4000) is not aligned to 512", |plan| plan.pattern.read_sizes = BlockSizes::Fixed(4000)),
            ("offset 100 of `f` is not aligned to 512", |plan| plan.files[0].offset_bytes = 100),
            ("the region of `f` is shorter than a block", |plan| plan.files[0].size_bytes = 512),
        ];
        for (message, change) in breaks {
            assert_eq!(panic_of(change).as_deref(), Some(message));
        }
    }
}
