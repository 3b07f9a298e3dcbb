//! The files of a job: what is made of each before, and which comes next.

use super::Distribution;
use serde::{Deserialize, Serialize};

/// A file or device under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlan {
    /// Its path.
    pub path: String,
    /// What is done with it before the first phase that uses it.
    pub prepare: Prepare,
    /// True if it is removed when the run ends, in whatever way. Only ever true for a file that
    /// this program creates.
    pub remove_after: bool,
    /// First byte of the region, in bytes.
    pub offset_bytes: u64,
    /// Length of the region, in bytes; the file is at least `offset_bytes + size_bytes` long.
    pub size_bytes: u64,
    /// The file exists with this length, in bytes, which is too short: `prepare` is done to what is added, and what it
    /// holds stays. Such a file is never removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends_from: Option<u64>,
}

/// What is done with a file before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepare {
    /// It is there and is used as it is: never truncated, extended or removed.
    UseExisting,
    /// Created under a name that must not exist yet, and really written with random content.
    CreateFilled,
    /// Created under a name that must not exist yet, space allocated, nothing written.
    CreateAllocated,
    /// Created under a name that must not exist yet, empty: the job extends it.
    CreateEmpty,
    /// Created under a name that must not exist yet, empty, with space allocated behind its end: the job extends it.
    CreateReserved,
    /// Created under a name that must not exist yet, as long as it will be, and a hole from its first byte to
    /// its last: no space allocated, nothing written.
    CreateSparse,
    /// Nothing is opened (`null` and `simulated`).
    Nothing,
}

/// Which file the next I/O goes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSelection {
    /// Each in turn.
    RoundRobin,
    /// One after another, each to its end.
    Sequential,
    /// At random.
    Random,
    /// Drawn by a distribution over the files in their order, whatever has passed: one whose pass is over begins the next.
    Drawn {
        /// Zipf, Pareto or normal.
        distribution: Distribution,
    },
}
