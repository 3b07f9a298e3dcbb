//! A job's settings beyond its I/O: limits of slowness, handling of files and memory, CPU load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of slowness, for each worker; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Guard {
    /// Minimum bytes per second.
    pub bytes_per_s_min: u64,
    /// Minimum I/Os per second.
    pub ios_per_s_min: u64,
    /// Minimum bytes and I/Os per second of writes; the two above then apply to reads. `None`: they apply to
    /// all I/Os together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<(u64, u64)>,
    /// Minimum time over which these are averaged, in nanoseconds; the span ends when an I/O completes.
    pub cycle_ns: u64,
    /// Measured time before the first cycle, in nanoseconds.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub settle_ns: u64,
    /// Maximum latency of an I/O, in nanoseconds.
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

/// The CPU load of `cpuio`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuLoad {
    /// Percentage of the time, 1 to 100.
    pub percent: u8,
    /// Length of a busy span, in nanoseconds.
    pub chunk_ns: u64,
    /// It sorts numbers, which also uses the caches; otherwise it multiplies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sorts: bool,
    /// It ends when all other jobs of the phase that do I/O have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_io: bool,
}

/// How files and memory are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Handling {
    /// Files are prepared, and no I/O is done.
    pub creates_only: bool,
    /// The advice to the kernel on the use of the files (posix_fadvise(2), madvise(2) of a mapping).
    pub advice: Advice,
    /// The expected lifetime of what is written, which the kernel keeps with the file and passes on to the disk.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub write_hint: WriteHint,
    /// Cached pages are dropped again before each further pass over a file, within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidates_each_pass: bool,
    /// The files are removed before each further pass over all of them, and created again, empty; within the measured part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remakes_each_pass: bool,
    /// The job adds to the end that its files had when they were planned (`file_append`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub appends: bool,
    /// Locks between the workers of a phase that use one file.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub locking: Locking,
    /// The users that may use the files that the job creates.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub new_files: FileAccess,
    /// Files that an earlier job of the run created are emptied before the phase, and keep their length.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renews_files: bool,
    /// The memory of the I/O buffers.
    pub memory: Memory,
    /// Size of a huge page, in bytes, if the buffers are in huge pages.
    pub huge_page_bytes: u64,
    /// The system call that reads the status of files.
    #[serde(skip_serializing_if = "crate::plan::is_zero")]
    pub stat: StatCall,
    /// `e4defrag` allocates the blocks that an I/O moves in just before it, and frees those that it moved out after it; otherwise all
    /// of them are allocated before the first I/O.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allocates_each_donor: bool,
}

impl Handling {
    /// Returns true if all settings have their defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The system call that reads the status of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The users that may use a file that a job creates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// The job's user: mode 0600.
    #[default]
    Private,
    /// Others may read it, unless the process's umask forbids it: mode 0644.
    Umask,
    /// As [`Self::Umask`], and the group may write it: mode 0664.
    Group,
}

impl FileAccess {
    /// Returns the mode with which the file is created.
    pub fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Umask => 0o644,
            Self::Group => 0o664,
        }
    }

    /// Returns the mode of a directory of names: the right to read a file is one to enter it.
    pub fn directory_mode(self) -> u32 {
        self.mode() | (self.mode() & 0o444) >> 2
    }
}

/// Which workers may do I/O on a file at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Locking {
    /// All workers.
    #[default]
    None,
    /// One worker.
    Exclusive,
    /// Several readers, or one writer.
    Readwrite,
}

/// The advice to the kernel on the use of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// No advice.
    #[default]
    None,
    /// Random: no read-ahead for buffered reads.
    Random,
    /// Sequential: more read-ahead for buffered reads.
    Sequential,
    /// Once: its pages need not be kept.
    Noreuse,
}

/// The expected lifetime of what is written (fcntl(2), `F_SET_RW_HINT`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteHint {
    /// The file's hint is not changed.
    #[default]
    Unchanged,
    /// The data has no lifetime of its own.
    None,
    /// Short.
    Short,
    /// Medium.
    Medium,
    /// Long.
    Long,
    /// Extremely long.
    Extreme,
}

/// The memory of the I/O buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// In memory of the process, from its allocator.
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
    /// In a segment of System V shared memory, in huge pages.
    ShmHuge,
}

impl Memory {
    /// True for huge pages.
    pub fn is_huge(self) -> bool {
        matches!(self, Memory::MmapHuge | Memory::ShmHuge)
    }
}
