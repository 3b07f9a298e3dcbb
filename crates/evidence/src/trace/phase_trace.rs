//! What was traced in one phase, before it is matched with sampled I/Os.

use super::extents::FileExtents;
use super::layers::Layers;
use super::loops::Loops;
use super::window::Window;
use std::collections::BTreeMap;

/// The traced requests of a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseTrace {
    /// The reason why nothing was traced.
    pub missing: Option<String>,
    /// The disks whose requests were traced, and the devices above them.
    pub layers: Layers,
    /// The loop devices among the disks, and what is below them.
    pub loops: Loops,
    /// The extents of the files on them.
    pub files: Vec<FileExtents>,
    /// The reason why requests at other offsets may still be ours.
    pub inseparable: Option<String>,
    /// True if a job runs a program that does its I/O: requests in the measured files are the job's, of any process. Set by the caller.
    pub runs_programs: bool,
    /// CPU time of the tracing thread, in nanoseconds.
    pub thread_cpu_ns: u64,
    /// Threads of other programs that had ended when the phase ended.
    pub(crate) ended: Vec<i32>,
    /// The disks below backing devices with dirty pages of others.
    pub(crate) backing: BTreeMap<String, Vec<u32>>,
    /// The inodes of the measured files, each with the disks below.
    pub(crate) inodes: Vec<(Vec<u32>, u64)>,
    /// Those that were drawn, oldest first.
    pub(crate) windows: Vec<Window>,
    /// Those that were asked for because counters showed other programs, oldest first: they name programs, and count for no sum.
    pub(crate) asked: Vec<Window>,
}

impl PhaseTrace {
    /// Returns all windows, oldest first.
    pub(crate) fn all_windows(&self) -> Vec<&Window> {
        let mut all: Vec<&Window> = self.windows.iter().chain(&self.asked).collect();
        all.sort_by_key(|window| window.begin_ns);
        all
    }
}
