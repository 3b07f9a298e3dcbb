//! What a target and a machine are, each fact with its source.

use crate::Fact;
use serde::{Deserialize, Serialize};

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory: files can be made in it.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/null`.
    CharacterDevice,
}

/// A target: the path, the filesystem it is on, and everything down to the disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The path as it was asked for.
    pub path: String,
    /// What it names.
    pub kind: TargetKind,
    /// Size of a file or device, in bytes; unknown for a directory.
    pub size_bytes: Fact<u64>,
    /// The filesystem it lies on; `None` for a raw block device.
    pub filesystem: Option<FilesystemFacts>,
    /// From the target down to the disks, nearest first.
    pub stack: Vec<Layer>,
    /// The disks at the bottom of the stack. Empty where there are none (tmpfs, network).
    pub disks: Vec<DiskFacts>,
    /// What direct I/O needs here, and whether it can be had.
    pub direct: DirectFacts,
}

/// A mounted filesystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesystemFacts {
    /// Type as the kernel calls it (`ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`, `nfs4`).
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted (`/dev/vda1`, `tmpfs`).
    pub source: String,
    /// Mount and superblock options, as one comma-separated line.
    pub options: String,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// What an unprivileged user may still write, in bytes.
    pub available_bytes: Fact<u64>,
    /// Allocation block, in bytes.
    pub block_bytes: Fact<u64>,
}

/// One layer between a file and a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// `file`, `filesystem`, `partition`, `dm`, `md`, `loop`, `disk`, …
    pub kind: String,
    /// `ext4 on /home`, `nvme0n1p2`, `dm-0 (crypt)`.
    pub name: String,
    /// How it was learnt.
    pub source: String,
    /// Depth below the target, from 0; layers of equal depth stand side by side (RAID members).
    pub depth: u32,
}

/// A disk at the bottom of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskFacts {
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Major and minor number.
    pub device_number: (u32, u32),
    /// Model, vendor included.
    pub model: Fact<String>,
    /// Serial number.
    pub serial: Fact<String>,
    /// How it is attached: `nvme`, `sata`, `usb`, `virtio`, `loop`, `zram`, …
    pub transport: Fact<String>,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// Logical sector, in bytes: the least a transfer may be.
    pub logical_sector_bytes: Fact<u32>,
    /// Physical sector, in bytes: the least that is written without a read.
    pub physical_sector_bytes: Fact<u32>,
    /// Does it rotate, as far as the kernel knows.
    pub is_rotational: Fact<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Fact<String>,
    /// `write back` (a volatile cache: only flushed data survives) or `write through`.
    pub write_cache: Fact<String>,
    /// Does it accept forced-unit-access writes.
    pub has_fua: Fact<bool>,
    /// Requests the block layer holds for it.
    pub request_count: Fact<u32>,
    /// Largest request, in bytes.
    pub max_request_bytes: Fact<u64>,
    /// Read-ahead, in bytes.
    pub read_ahead_bytes: Fact<u64>,
    /// Does the kernel count its I/O (`queue/iostats`).
    pub counts_io: Fact<bool>,
}

/// Whether direct I/O can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectSupport {
    /// The filesystem or device says so.
    Direct,
    /// `O_DIRECT` is accepted, and the transfers go through the page cache all the same.
    SilentlyBuffered,
    /// `O_DIRECT` is refused.
    Refused,
    /// Nobody says.
    Unknown,
}

/// What direct I/O needs on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectFacts {
    /// Whether it can be had.
    pub support: DirectSupport,
    /// Why we say so.
    pub reason: String,
    /// Alignment of the buffer's address, in bytes.
    pub memory_alignment_bytes: Fact<u32>,
    /// Alignment of a write's offset and length, in bytes.
    pub write_alignment_bytes: Fact<u32>,
    /// Alignment of a read's offset and length, in bytes.
    pub read_alignment_bytes: Fact<u32>,
}

/// The machine and its software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Operating system and its version (`Linux 6.18.44 x86_64`).
    pub system: String,
    /// The distribution, if it says.
    pub distribution: Fact<String>,
    /// Processors.
    pub cpu: CpuFacts,
    /// Memory, in bytes.
    pub memory_bytes: Fact<u64>,
    /// Memory available without swapping when the run began, in bytes.
    pub memory_available_bytes: Fact<u64>,
    /// Virtualisation, if the processor says so.
    pub hypervisor: Fact<String>,
    /// The kernel's clock source.
    pub clock_source: Fact<String>,
    /// Load averages over 1, 5 and 15 minutes when the run began.
    pub load_average: Fact<[f64; 3]>,
    /// Does the process run as root.
    pub is_root: bool,
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// Model name.
    pub model: Fact<String>,
    /// Processors this process may use.
    pub usable_count: u32,
    /// Frequency governor of the first processor.
    pub governor: Fact<String>,
}
