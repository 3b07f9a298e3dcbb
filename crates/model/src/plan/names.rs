//! Names that the metadata jobs of a run share: a tree of directories, and the items in them.
//!
//! A tree has a top directory and `branch` directories in each directory down to `depth` levels below the top, as
//! mdtest's has. Its directories are numbered level by level from 0, so that directory `i` has the parent
//! `(i − 1) / branch`. Items are spread evenly over all directories, or over those of the lowest level.
//!
//! Source: mdtest(1), `-z`, `-b`, `-L`, `-u`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names that several jobs of a run share, below one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameSet {
    /// The owner of the names that the first worker uses; the next worker has the next one.
    pub owner: u32,
    /// Levels of directories below the top.
    pub depth: u32,
    /// Directories in each directory above the lowest level.
    pub branch: u32,
    /// Items are in directories of the lowest level only.
    pub in_leaves: bool,
    /// Each owner has its own tree.
    pub is_private: bool,
    /// The names are the directories of the tree, not the items in them.
    pub is_tree: bool,
    /// Bytes that are written to each file, or read from it.
    pub file_bytes: u32,
    /// Each new file is flushed before it is closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub syncs_files: bool,
    /// A sync call of the job flushes the filesystem of the directory (syncfs(2)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub syncs_filesystem: bool,
    /// What is read from a file is compared with what a job with the same seed wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_compared: bool,
    /// A job of the run creates names, so the directory is new.
    pub is_new: bool,
    /// This process creates the directory, and removes it and the names at the end of the run.
    pub is_made_here: bool,
    /// What the run created stays.
    pub stays: bool,
}

impl NameSet {
    /// Returns the number of directories of the lowest level; `None`: more than a number holds.
    fn leaf_count(&self) -> Option<u64> {
        u64::from(self.branch).checked_pow(self.depth)
    }

    /// Returns the number of directories of a tree; `None`: more than a number holds.
    pub fn tree_count(&self) -> Option<u64> {
        (0..=self.depth).try_fold(0_u64, |sum, level| sum.checked_add(u64::from(self.branch).checked_pow(level)?))
    }

    /// Returns the number of directories that hold items, and the number of the first one.
    pub fn holders(&self) -> Option<(u64, u64)> {
        let all = self.tree_count()?;
        match self.in_leaves {
            true => self.leaf_count().map(|leaves| (leaves, all - leaves)),
            false => Some((all, 0)),
        }
    }

    /// Returns the directory that contains item `index` of `count`.
    pub fn holder_of(&self, index: u64, count: u64) -> u64 {
        let (holders, first) = self.holders().unwrap_or((1, 0));
        first + index / (count / holders).max(1)
    }

    /// Returns the parent of a directory other than the top.
    pub fn parent_of(&self, directory: u64) -> u64 {
        (directory - 1) / u64::from(self.branch.max(1))
    }
}

/// How a job's number of I/Os follows from that of an earlier job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Follow {
    /// The earlier job.
    pub job: String,
    /// What follows.
    pub kind: FollowKind,
    /// The rank whose number counts.
    pub rank: u32,
}

/// What follows from an earlier job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FollowKind {
    /// The job does as many I/Os.
    Repeat,
    /// The job goes on where that rank ended, up to the largest number of any rank.
    Complete,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(depth: u32, branch: u32, in_leaves: bool) -> NameSet {
        NameSet {
            owner: 0,
            depth,
            branch,
            in_leaves,
            is_private: false,
            is_tree: false,
            file_bytes: 0,
            syncs_files: false,
            syncs_filesystem: false,
            is_compared: false,
            is_new: true,
            is_made_here: true,
            stays: false,
        }
    }

    #[test]
    fn a_tree_has_branch_directories_in_each_above_the_lowest_level() {
        for (depth, branch, count, leaves) in [(0, 1, 1, 1), (0, 5, 1, 1), (3, 1, 4, 1), (2, 3, 13, 9), (3, 2, 15, 8)] {
            assert_eq!(set(depth, branch, false).tree_count(), Some(count));
            assert_eq!(set(depth, branch, false).holders(), Some((count, 0)));
            assert_eq!(set(depth, branch, true).holders(), Some((leaves, count - leaves)));
        }
        assert_eq!(set(64, 1000, false).tree_count(), None);
        let set = set(2, 3, false);
        let children = |parent: u64| (1..13).filter(|child| set.parent_of(*child) == parent).count();
        assert_eq!((0..13).map(children).collect::<Vec<_>>(), [3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn items_are_spread_evenly_over_the_directories_that_hold_them() {
        let of = |in_leaves| -> Vec<u64> {
            let set = set(1, 3, in_leaves);
            (0..12).map(|index| set.holder_of(index, 12)).collect()
        };
        assert_eq!(of(false), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(of(true), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    }
}
