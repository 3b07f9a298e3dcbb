//! The files of a job: how each is prepared, and the order in which they are used.

use super::pattern::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file or device under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilePlan {
    /// Path of the file, as the plan opens it.
    pub path: String,
    /// How it is prepared before the first phase that uses it.
    pub prepare: Prepare,
    /// True if it is removed when the run ends, in whatever way. Only ever true for a file that
    /// this program creates.
    pub remove_after: bool,
    /// First byte of the region, in bytes.
    pub offset_bytes: u64,
    /// Length of the region, in bytes; the file is at least `offset_bytes + size_bytes` long.
    pub size_bytes: u64,
    /// The present length of an existing file that is too short, in bytes: `prepare` applies to the added part, and the
    /// existing content stays. Such a file is never removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends_from: Option<u64>,
}

/// The identity of a target at planning time. The run compares it with each file that it opens, so that it writes only
/// targets that were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetIdentity {
    /// The device number of its filesystem.
    pub device: u64,
    /// Inode number, as stat(2) reports it.
    pub inode: u64,
    /// Its birth time, in nanoseconds since 1970; `None`: the filesystem does not record it.
    pub birth_ns: Option<i64>,
    /// Its size, in bytes; `None`: unknown.
    pub size_bytes: Option<u64>,
    /// The identity of a block device; `None` for a file.
    pub block: Option<BlockIdentity>,
    /// The canonical path, if the last component of the path is a symbolic link.
    pub link_to: Option<String>,
}

/// The identity of a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockIdentity {
    /// Device number of the block device (`st_rdev`).
    pub number: u64,
    /// The sequence number of the disk; `None`: not supported by the kernel, or not read.
    pub disk_sequence: Option<u64>,
    /// Its signatures and those of its partitions, as sorted texts; `None`: not read.
    pub signatures: Option<Vec<String>>,
}

impl TargetIdentity {
    /// Returns true if this is the same file or the same disk; content and length are not compared. A property that is
    /// unknown for one of the two is not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        fn may_equal<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        match (&self.block, &other.block) {
            // The node of a device may be created again, with another inode.
            (Some(one), Some(other)) => one.number == other.number && may_equal(one.disk_sequence, other.disk_sequence),
            (None, None) => {
                (self.device, self.inode) == (other.device, other.inode) && may_equal(self.birth_ns, other.birth_ns)
            }
            _ => false,
        }
    }
}

/// How a file is prepared before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prepare {
    /// It exists and is used unchanged: never truncated, extended or removed.
    UseExisting,
    /// Created under a name that must not exist yet, and filled with random content.
    CreateFilled,
    /// Created under a name that must not exist yet, space allocated, nothing written.
    CreateAllocated,
    /// Created under a name that must not exist yet, empty: the job extends it.
    CreateEmpty,
    /// Created under a name that must not exist yet, empty, with space allocated after its end: the job extends it.
    CreateReserved,
    /// Created under a name that must not exist yet, as long as it will be, and a hole from its first byte to
    /// its last: no space allocated, nothing written.
    CreateSparse,
    /// Nothing is opened (`null` and `simulated`).
    Nothing,
}

/// Which file the next I/O goes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSelection {
    /// Each in turn.
    RoundRobin,
    /// One after another, each to its end.
    Sequential,
    /// At random.
    Random,
    /// Drawn from a distribution over the files in their order; a file whose pass is over begins the next pass.
    Drawn {
        /// Zipf, Pareto or normal.
        distribution: Distribution,
    },
}
