//! Which operation comes next, where, and of which size.

use crate::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which operations, where, how large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// The operations.
    pub mix: OpMix,
    /// The order of offsets.
    pub order: Order,
    /// Sizes of reads.
    pub read_sizes: BlockSizes,
    /// Sizes of writes.
    pub write_sizes: BlockSizes,
    /// Sizes of trims.
    pub trim_sizes: BlockSizes,
    /// Exceptions to the order: how the next offset follows from the last.
    #[serde(default, skip_serializing_if = "Steps::is_none")]
    pub steps: Steps,
}

/// How the next offset follows from the last one, if it is neither the next block nor drawn again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Steps {
    /// The unit of random offsets, in bytes; 0: the block size.
    pub align_bytes: u64,
    /// Sizes of a range are any number of bytes, not multiples of the smallest.
    pub is_unaligned: bool,
    /// Percentage of a random job's offsets that continue where the last I/O ended.
    pub sequential_percent: u8,
    /// The unit and the percentage of writes, if they differ from those of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<WriteSteps>,
    /// I/Os to one random offset; 0 and 1: each has its own.
    pub random_every: u64,
    /// Those I/Os are all at the same offset; otherwise they continue from it.
    pub repeats: bool,
    /// Bytes between the end of a sequential I/O and the next; negative: backwards.
    pub skip_bytes: i64,
    /// Each block is trimmed before it is written.
    pub trims_first: bool,
    /// Zones that are used one after another.
    pub zones: Option<Zones>,
}

impl Steps {
    /// Returns true if nothing is set.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if no setting affects offsets.
    pub fn leaves_offsets_alone(&self) -> bool {
        Self { trims_first: false, ..*self }.is_none()
    }

    /// Returns the number of I/Os of `block_bytes` after which a pass that skips forward ends in a region: the last of them
    /// ends at its end, or the next one would begin in it and end after it. `None`: no pass ends, because the next I/O
    /// would begin after the region, and so starts at its beginning again. Source: the reads of fio 3.33.
    pub fn skipping_ios(&self, region_bytes: u64, block_bytes: u64) -> Option<u64> {
        let skip_bytes = u64::try_from(self.skip_bytes).ok().filter(|bytes| *bytes > 0)?;
        let step = block_bytes.checked_add(skip_bytes)?;
        let is_over = (1..=block_bytes).contains(&(region_bytes % step));
        Some(region_bytes.checked_sub(block_bytes)? / step + 1).filter(|_| is_over)
    }
}

/// The random offsets of writes, if they differ from those of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteSteps {
    /// Their unit, in bytes; 0: the block size.
    pub align_bytes: u64,
    /// Percentage of them that continue where the last write ended.
    pub sequential_percent: u8,
}

/// Zones that are used one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zones {
    /// Bytes transferred in a zone before the next zone.
    pub zone_bytes: u64,
    /// Length of a zone, in bytes.
    pub range_bytes: u64,
    /// Bytes between two zones.
    pub skip_bytes: u64,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpMix {
    /// One kind only.
    Only(OpKind),
    /// Reads and writes, drawn for each I/O; the number is the percentage of reads, 0 to 100.
    ReadWrite {
        /// Percentage of reads, 0 to 100.
        read_percent: u8,
    },
}

/// The order of offsets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the region's first byte to its last, then again.
    Sequential,
    /// Drawn from a distribution.
    Random {
        /// How offsets are distributed.
        distribution: Distribution,
        /// Every block exactly once per pass (uniform only).
        each_block_once: bool,
    },
}

/// How random offsets are distributed over the blocks of the region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All blocks equally often.
    Uniform,
    /// Zipf with exponent `theta`; the popular blocks are scattered over the region.
    Zipf {
        /// Exponent, 0 or above, of which 0 is uniform: the block of popularity rank k has a share in proportion to 1 / k^theta.
        theta: f64,
        /// Position of the most popular block in the region, from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Pareto with `h` in (0, 1): 0.2 sends about 80 % of the I/O to 20 % of the blocks.
    Pareto {
        /// The share's parameter.
        h: f64,
        /// Position of the most popular block in the region, from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Normal around the region's middle, or around `center`, with this deviation in percent of the region.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Position of its centre in the region, from 0 to 1; `None`: the region's middle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Zones in order: (percent of the I/O, percent of the region); both columns sum to 100.
    Zoned {
        /// Percent of the I/O, and percent of the region, of each zone.
        zones: Vec<(f64, f64)>,
    },
    /// Consecutive zones from the region's beginning: (percent of the I/O, bytes). The percentages sum to 100, and
    /// bytes after the last zone are not used.
    ZonedBytes {
        /// Percent of the I/O, and length in bytes, of each zone.
        zones: Vec<(f64, u64)>,
    },
    /// These blocks in this order, again and again.
    Sequence {
        /// Numbers of blocks, from the region's beginning.
        blocks: Vec<u64>,
        /// Each round begins as many blocks later as the sequence has, until the region ends; then it begins again.
        is_advancing: bool,
    },
    /// Writes that bring a flash disk into its steady state: its physical capacity once.
    Precondition {
        /// The capacity that the disk does not report, as a part of what it reports.
        over_provisioning: f64,
        /// The physical capacity is written in this many parts.
        region_count: u32,
        /// The disk's cache, in bytes. If there is one, blocks are written again a part later; 0: none.
        cache_bytes: u64,
    },
}

/// Sizes of an operation, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockSizes {
    /// Always this many.
    Fixed(u64),
    /// Uniform over the multiples of `min_bytes` from `min_bytes` to `max_bytes`.
    Range {
        /// Smallest, and the step.
        min_bytes: u64,
        /// Largest.
        max_bytes: u64,
    },
    /// (size, weight) pairs; weights sum to 100.
    Weighted(Vec<(u64, u32)>),
}

impl BlockSizes {
    /// The largest size, in bytes.
    pub fn max_bytes(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max_bytes, .. } => *max_bytes,
            BlockSizes::Weighted(pairs) => pairs.iter().map(|p| p.0).max().unwrap_or(0),
        }
    }

    /// Returns true if each size is a multiple of `bytes`.
    pub fn are_multiples_of(&self, bytes: u64) -> bool {
        match self {
            BlockSizes::Fixed(size) => size.is_multiple_of(bytes),
            BlockSizes::Range { min_bytes, .. } => min_bytes.is_multiple_of(bytes),
            BlockSizes::Weighted(pairs) => pairs.iter().all(|(size, _)| size.is_multiple_of(bytes)),
        }
    }

    /// The smallest size, in bytes.
    pub fn min_bytes(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min_bytes, .. } => *min_bytes,
            BlockSizes::Weighted(pairs) => pairs.iter().map(|p| p.0).min().unwrap_or(0),
        }
    }
}
