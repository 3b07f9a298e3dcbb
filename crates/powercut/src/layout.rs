//! Which blocks a test of capacity writes, and what it can find by that.
//!
//! Every block is written (`is_full`), or:
//!
//! ```text
//! |== start ==|  .    .   .     .    .  .    .   .    .   .  |=== end ===|
//!    region        samples: one random block of each stratum      region
//! ```
//!
//! The end is written first, then the samples in ascending order, then the start; all of it is read back afterwards, in
//! ascending order.
//!
//! - A share `p` of the blocks that does not keep data escapes `n` independent random blocks with probability `(1 - p)^n`. One
//!   block in each of `n` equal strata is at least as good (inequality of the means).
//! - Where a disk wraps at `x`, a sample shows nothing by itself: it reads back unless another write lands on it. The region at
//!   the start has at least two strata, so that it holds the place of at least one of the samples between `x` and `x + region`,
//!   and its write, which is later, replaces that sample.
//! - Both regions are larger than the cache that is to be excluded. A cache that keeps what was written last holds blocks of
//!   the start, which every disk has; one that keeps what was written first holds blocks of the end, and no sample.

use crate::sector::BLOCK_BYTES;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Share of a disk that a sample is to find if it is missing.
pub const MISSING_SHARE: f64 = 0.001;
/// Probability with which it finds that.
pub const CONFIDENCE: f64 = 0.95;
/// Smallest disk that can be tested, in blocks.
pub const BLOCKS_MIN: u64 = 256;

/// Blocks in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of the first block, from the start of the disk.
    pub start: u64,
    /// Number of blocks.
    pub count: u64,
}

impl Extent {
    /// Returns the block after the last.
    pub fn end(&self) -> u64 {
        self.start + self.count
    }

    /// Returns the extent in pieces of at most `count_max` blocks.
    pub fn pieces(self, count_max: u64) -> impl Iterator<Item = Extent> {
        let starts = (self.start..self.end()).step_by(count_max as usize);
        starts.map(move |start| Extent { start, count: count_max.min(self.end() - start) })
    }
}

/// The blocks that a test writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Blocks of the disk.
    pub block_count: u64,
    /// Every block is written.
    pub is_full: bool,
    /// The region at the start, written last.
    pub start: Extent,
    /// The blocks between the regions, ascending.
    pub middle: Vec<Extent>,
    /// The region at the end, written first.
    pub end: Extent,
    /// A cache up to this size is excluded, in bytes.
    pub cache_bytes: u64,
}

/// Returns how many random blocks find a missing share with a probability: the least `n` with `(1 - share)^n <= 1 - confidence`.
pub fn sample_count(share: f64, confidence: f64) -> u64 {
    ((1.0 - confidence).ln() / (1.0 - share).ln()).ceil() as u64
}

/// Returns the largest share that `count` random blocks may have missed, all of them intact.
pub fn missing_share_max(count: u64, confidence: f64) -> f64 {
    1.0 - (1.0 - confidence).powf(1.0 / count as f64)
}

impl Layout {
    /// Lays out a test of a disk with `block_count` blocks, at least [`BLOCKS_MIN`]. `cache_bytes` is the size of cache that is
    /// to be excluded; less is, if the disk is smaller than eight times as much. A disk with fewer than eight blocks per sample
    /// is written in full.
    pub fn of(block_count: u64, cache_bytes: u64, is_full: bool, seed: u64) -> Self {
        assert!(block_count >= BLOCKS_MIN, "the caller refuses smaller disks");
        let samples = sample_count(MISSING_SHARE, CONFIDENCE);
        let is_full = is_full || block_count < samples * 8;
        // An eighth more than the cache: what a disk calls 1 GiB may be a little more.
        let excluding = cache_bytes.div_ceil(BLOCK_BYTES as u64).saturating_mul(9) / 8;
        let wrapping = if is_full { 1 } else { 2 * block_count.div_ceil(samples) };
        let region = excluding.max(wrapping).min(block_count / 8);
        let (start, end) = (Extent { start: 0, count: region }, Extent { start: block_count - region, count: region });
        let between = Extent { start: region, count: block_count - 2 * region };
        let middle = if is_full { vec![between] } else { strata(between, samples, seed) };
        let cache_bytes = cache_bytes.min(region * BLOCK_BYTES as u64 / 9 * 8);
        Self { block_count, is_full, start, middle, end, cache_bytes }
    }

    /// Returns the number of blocks at random positions.
    pub fn sample_count(&self) -> u64 {
        if self.is_full { 0 } else { self.middle.len() as u64 }
    }

    /// Returns the number of blocks that are written.
    pub fn written_count(&self) -> u64 {
        self.start.count + self.end.count + self.middle.iter().map(|extent| extent.count).sum::<u64>()
    }

    /// Returns the first block from `block` on that is written; `None` beyond the disk.
    pub fn first_written_from(&self, block: u64) -> Option<u64> {
        let extents = std::iter::once(&self.start).chain(&self.middle).chain(std::iter::once(&self.end));
        extents.into_iter().find(|extent| extent.end() > block).map(|extent| extent.start.max(block))
    }

    /// Returns the parts in the order in which they are written: the end, the middle, the start.
    pub fn parts(self) -> Vec<Vec<Extent>> {
        vec![vec![self.end], self.middle, vec![self.start]]
    }
}

/// Returns one random block of each of `count` equal strata.
fn strata(extent: Extent, count: u64, seed: u64) -> Vec<Extent> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let bound = |index: u64| extent.start + (u128::from(extent.count) * u128::from(index) / u128::from(count)) as u64;
    let block = |index| {
        let (from, to) = (bound(index), bound(index + 1));
        Extent { start: from + random.next_u64() % (to - from), count: 1 }
    };
    (0..count).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_number_of_samples_follows_from_share_and_confidence() {
        assert_eq!(sample_count(0.001, 0.95), 2995);
        assert_eq!(sample_count(0.01, 0.95), 299);
        assert!(missing_share_max(2995, 0.95) <= 0.001);
        assert!(missing_share_max(2994, 0.95) > 0.001);
    }

    proptest! {
        /// Goal: whatever the size, the extents are on the disk, disjoint and ascending, and a wrap cannot hide: the first
        /// sample after each place is nearer than the length of the region at the start.
        #[test]
        fn every_layout_is_on_the_disk_and_leaves_no_gap_longer_than_a_region(
            blocks in BLOCKS_MIN..1 << 32, cache in 0_u64..4 << 30, is_full: bool, seed: u64,
        ) {
            let layout = Layout::of(blocks, cache, is_full, seed);
            let mut at = 0;
            for extent in layout.clone().parts().into_iter().rev().flatten() {
                prop_assert!(extent.start >= at && extent.count > 0);
                prop_assert!(extent.start - at <= layout.start.count, "a gap of {}", extent.start - at);
                at = extent.end();
            }
            prop_assert_eq!(at, blocks);
            prop_assert!(layout.cache_bytes < layout.start.count * BLOCK_BYTES as u64);
            prop_assert_eq!(layout.is_full, layout.written_count() == blocks);
        }
    }
}
