//! What is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// Random, zero, or a pattern.
    pub kind: ContentKind,
    /// The bytes that fill each buffer repeatedly if `kind` is a pattern, and the compressible part if it is random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pattern: Vec<u8>,
    /// Percentage of each piece of content that compresses away, 0 to 100.
    pub compressible_percent: u8,
    /// Length of such a piece, in bytes; 0: the whole block.
    #[serde(default = "Content::compressible_bytes", skip_serializing_if = "is_usual_piece")]
    pub compressible_bytes: u32,
    /// Percentage of blocks that repeat an earlier one, 0 to 100.
    pub duplicate_percent: u8,
    /// How many different contents they have; 0: a few.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub duplicate_count: u64,
    /// The contents that repeat, if jobs have them in common; `None`: each worker has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<CommonContents>,
    /// Fresh content for every write; without it the buffers are filled once and each block of
    /// 4 KiB is stamped, so that no two writes are alike.
    pub refill: bool,
}

/// Contents that the workers of several jobs repeat: each of `parts` workers writes a part of them first, and draws its
/// repeats from all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommonContents {
    /// Number of workers of all these jobs.
    pub parts: u32,
    /// The part of the job's first worker, from 0; that of the next worker follows.
    pub first_part: u32,
    /// The seed of the contents.
    pub seed: u64,
}

impl Content {
    /// Returns random content without repeats, stamped for each write.
    pub fn random() -> Self {
        Self {
            kind: ContentKind::Random,
            pattern: Vec::new(),
            compressible_percent: 0,
            compressible_bytes: Self::compressible_bytes(),
            duplicate_percent: 0,
            duplicate_count: 0,
            common: None,
            refill: false,
        }
    }

    /// Default length of the pieces of which a part is compressible, in bytes, as in fio.
    pub const fn compressible_bytes() -> u32 {
        512
    }
}

fn is_usual_piece(bytes: &u32) -> bool {
    *bytes == Content::compressible_bytes()
}

/// The kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Pseudo-random, from the job's seed.
    Random,
    /// Zeros: many devices and filesystems never store them.
    Zero,
    /// A repeated pattern of bytes, the same in every write.
    Pattern,
}
