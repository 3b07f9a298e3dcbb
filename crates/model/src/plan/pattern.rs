//! Which operation comes next, where, and of which size.

use crate::OpKind;
use serde::{Deserialize, Serialize};

/// Which operations, where, how large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The operations.
    pub mix: OpMix,
    /// Where the next one goes.
    pub order: Order,
    /// Sizes of reads.
    pub read_sizes: BlockSizes,
    /// Sizes of writes.
    pub write_sizes: BlockSizes,
    /// Sizes of trims.
    pub trim_sizes: BlockSizes,
    /// What is not the next block, nor one drawn anew.
    #[serde(default, skip_serializing_if = "Steps::is_none")]
    pub steps: Steps,
}

/// How the next offset follows from the last, where that is not plainly the next block or one drawn anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    /// Random offsets are multiples of so many bytes; 0: of the block size.
    pub align_bytes: u64,
    /// Sizes of a range are any number of bytes, not multiples of the smallest.
    pub is_unaligned: bool,
    /// Percentage of a random job's offsets that go on where the last I/O ended.
    pub sequential_percent: u8,
    /// Both of the writes of a mixed job, if the reads have others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<WriteSteps>,
    /// I/Os to one random offset; 0 and 1: each has its own.
    pub random_every: u64,
    /// Those I/Os are all at the same offset; otherwise they go on from it.
    pub repeats: bool,
    /// Bytes between the end of a sequential I/O and the next; negative: backwards.
    pub skip_bytes: i64,
    /// Each block is trimmed before it is written.
    pub trims_first: bool,
    /// Zones that are used one after another.
    pub zones: Option<Zones>,
}

impl Steps {
    /// True if nothing of it is asked for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// True if nothing of it says where an I/O goes.
    pub fn places_plainly(&self) -> bool {
        Self { trims_first: false, ..*self }.is_none()
    }

    /// I/Os of `block_bytes` after which an order that skips forward is over in a region: the last of them ends with it, or
    /// the next one would begin in it and end behind it. `None`: none does, for the next one begins behind the region, and
    /// so at its beginning again. Source: what fio 3.33 reads.
    pub fn skipping_ios(&self, region_bytes: u64, block_bytes: u64) -> Option<u64> {
        let skip_bytes = u64::try_from(self.skip_bytes).ok().filter(|bytes| *bytes > 0)?;
        let step = block_bytes.checked_add(skip_bytes)?;
        let is_over = (1..=block_bytes).contains(&(region_bytes % step));
        Some(region_bytes.checked_sub(block_bytes)? / step + 1).filter(|_| is_over)
    }
}

/// What the random offsets of writes are, where those of reads are others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteSteps {
    /// They are multiples of so many bytes; 0: of the block size.
    pub align_bytes: u64,
    /// Percentage of them that go on where the last write ended.
    pub sequential_percent: u8,
}

/// Zones that are used one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    /// Bytes transferred in a zone before the next.
    pub zone_bytes: u64,
    /// Length of a zone, in bytes.
    pub range_bytes: u64,
    /// Bytes between two zones.
    pub skip_bytes: u64,
}

/// The operations of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Where the next I/O goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the region's first byte to its last, then again.
    Sequential,
    /// By a distribution.
    Random {
        /// How offsets are distributed.
        distribution: Distribution,
        /// Every block exactly once a pass (uniform only); no block comes twice before all came.
        each_block_once: bool,
    },
}

/// How random offsets are distributed over the blocks of the region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf with exponent `theta` > 0; the popular blocks are scattered over the region.
    Zipf {
        /// The exponent.
        theta: f64,
        /// Where in the region the most popular block is, as a part of it from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Pareto with `h` in (0, 1): 0.2 sends about 80 % of the I/O to 20 % of the blocks.
    Pareto {
        /// The share's parameter.
        h: f64,
        /// Where in the region the most popular block is, as a part of it from 0 to 1; `None`: scattered, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Normal around the region's middle, or around `center`, with this deviation in percent of the region.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Where in the region its middle is, as a part of it from 0 to 1; `None`: in the region's middle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Zones in order: (percent of the I/O, percent of the region); both columns sum to 100.
    Zoned {
        /// The zones.
        zones: Vec<(f64, f64)>,
    },
    /// Zones one after the other from the region's beginning: (percent of the I/O, bytes); the percentages sum to 100, and
    /// what is behind the last zone is not used.
    ZonedBytes {
        /// The zones.
        zones: Vec<(f64, u64)>,
    },
}

/// Sizes of an operation, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The smallest size, in bytes.
    pub fn min_bytes(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min_bytes, .. } => *min_bytes,
            BlockSizes::Weighted(pairs) => pairs.iter().map(|p| p.0).min().unwrap_or(0),
        }
    }
}
