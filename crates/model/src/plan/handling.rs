//! What a job does beside its I/O: what it guards against, how it treats files and memory, processors it keeps busy.

use serde::{Deserialize, Serialize};

/// Limits of slowness, for each worker; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guard {
    /// Bytes a second, at least.
    pub bytes_per_s_min: u64,
    /// I/Os a second, at least.
    pub ios_per_s_min: u64,
    /// Bytes a second and I/Os a second that writes must have; the two above are then of reads. `None`: they are of
    /// all I/Os together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<(u64, u64)>,
    /// Over how long these are averaged, in nanoseconds.
    pub cycle_ns: u64,
    /// Latency of an I/O, at most, in nanoseconds.
    pub latency_ns_max: u64,
}

impl Guard {
    /// True if nothing is limited.
    pub fn is_none(&self) -> bool {
        let has_none = |(bytes, ios): (u64, u64)| bytes == 0 && ios == 0;
        has_none((self.bytes_per_s_min, self.ios_per_s_min))
            && self.of_writes.is_none_or(has_none)
            && self.latency_ns_max == 0
    }
}

/// How busy `cpuio` keeps a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLoad {
    /// Percentage of the time, 1 to 100.
    pub percent: u8,
    /// Length of a busy span, in nanoseconds.
    pub chunk_ns: u64,
    /// It sorts numbers, which goes through the caches, too; otherwise it multiplies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sorts: bool,
    /// It ends when all jobs beside it that do I/O have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_io: bool,
}

/// How files and memory are handled beside the I/O itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handling {
    /// Files are made ready, and no I/O is done.
    pub creates_only: bool,
    /// What the kernel is told of the way the files will be used (posix_fadvise(2), madvise(2) of a mapping).
    pub advice: Advice,
    /// Cached pages are dropped again before each further pass over a file, within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidates_each_pass: bool,
    /// The files are removed before each further pass over all of them, and made again, empty; within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remakes_each_pass: bool,
    /// Locks between the workers of a phase that use one file.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub locking: Locking,
    /// Where the I/O buffers are.
    pub memory: Memory,
    /// Size of a huge page, in bytes, if the buffers are in huge pages.
    pub huge_page_bytes: u64,
    /// The call that asks about names.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub stat: StatCall,
}

impl Handling {
    /// True if nobody said anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a name is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatCall {
    /// statx(2), of a link itself.
    #[default]
    Statx,
    /// stat(2).
    Stat,
    /// lstat(2): of a link itself.
    Lstat,
}

/// Who may do I/O on a file while another worker does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locking {
    /// Everybody.
    #[default]
    None,
    /// Nobody.
    Exclusive,
    /// Readers beside readers.
    Readwrite,
}

/// What the kernel is told of the way a file will be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing.
    #[default]
    None,
    /// In no order: buffered reads are not read ahead.
    Random,
    /// From the beginning to the end: buffered reads are read further ahead.
    Sequential,
    /// Once: its pages need not be kept.
    Noreuse,
}

/// Where the I/O buffers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// In memory of the process, as an allocator gives it.
    #[default]
    Malloc,
    /// In a mapping of their own, private and anonymous.
    Mmap,
    /// In a shared anonymous mapping.
    MmapShared,
    /// In huge pages, mapped.
    MmapHuge,
    /// In a segment of System V shared memory.
    Shm,
    /// In such a segment, in huge pages.
    ShmHuge,
}

impl Memory {
    /// True for huge pages.
    pub fn is_huge(self) -> bool {
        matches!(self, Memory::MmapHuge | Memory::ShmHuge)
    }
}
