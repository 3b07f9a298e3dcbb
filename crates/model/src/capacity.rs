//! What `trueio capacity` found: whether a disk stores as many bytes as it reports.
//!
//! Plain data with a version, so that it can be read later and elsewhere.

use crate::TargetFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`CapacityRecord::format`].
pub const CAPACITY_FORMAT: &str = "trueio-capacity";
/// The version written today. A later version reads every earlier one.
pub const CAPACITY_VERSION: u32 = 1;

/// A test of a disk's capacity, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityRecord {
    /// Always [`CAPACITY_FORMAT`].
    pub format: String,
    /// [`CAPACITY_VERSION`] of the writer.
    pub version: u32,
    /// The command line as it was typed.
    pub command: Vec<String>,
    /// The number of the run, which each written sector carries.
    pub run: u64,
    /// The facts of the target.
    pub target: TargetFacts,
    /// The size that the disk reports, in bytes.
    pub reported_bytes: u64,
    /// What was written and read back.
    pub coverage: CapacityCoverage,
    /// What the blocks held when they were read back.
    pub found: CapacityCounts,
    /// The verdict.
    pub kind: CapacityKind,
    /// The bytes from the start that store data, if the disk is not genuine and the end was found.
    pub usable_bytes: Option<u64>,
    /// Whether the content of the disk was kept and restored.
    pub content: CapacityContent,
    /// The result in words, most important first.
    pub sentences: Vec<String>,
}

/// What a test of capacity wrote and read back, and so what it can find.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityCoverage {
    /// Every block was written (`--full`, or a small disk).
    pub is_full: bool,
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Blocks at random positions between the two regions; 0 if every block was written.
    pub sample_count: u64,
    /// Length of each of the regions at the start and at the end, which are written whole, in bytes.
    pub region_bytes: u64,
    /// Share of the disk that can be missing although every block was intact; 0 if every block was written.
    pub missing_share_max: f64,
    /// Probability with which a larger missing share would have been found.
    pub confidence: f64,
    /// A cache between host and disk up to this size cannot have answered the reads, in bytes.
    pub cache_bytes: u64,
}

/// Blocks by what they held when they were read back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityCounts {
    /// What was written.
    pub intact: u64,
    /// Zeros.
    pub zeros: u64,
    /// What this program wrote there earlier.
    pub older: u64,
    /// What was written to another block.
    pub other_block: u64,
    /// Something else: what was there before, or garbage.
    pub changed: u64,
    /// Reading failed.
    pub unreadable: u64,
    /// Writing failed.
    pub unwritable: u64,
}

impl CapacityCounts {
    /// Returns the number of blocks that did not hold what was written.
    pub fn bad(&self) -> u64 {
        self.zeros + self.older + self.other_block + self.changed + self.unreadable + self.unwritable
    }
}

/// How the capacity of a disk differs from what it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityKind {
    /// No difference was found.
    Genuine,
    /// Blocks from the usable size on do not keep data.
    Ends,
    /// Blocks from the usable size on are stored in the place of blocks before it.
    Wraps,
    /// Some blocks do not keep data, with intact blocks after them.
    Loses,
    /// Blocks from the usable size on cannot be written or read.
    Fails,
}

/// What became of the content of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityContent {
    /// It was kept in a journal, and written back.
    Restored,
    /// It was kept in a journal, and some blocks could not be written back: the journal still has them.
    PartlyRestored,
    /// It was overwritten (`--overwrite`).
    Overwritten,
}
