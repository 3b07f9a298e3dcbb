//! What a target and a machine are, each fact with its source.

mod words;

pub use words::{Transport, WriteCache, ZoneModel};

use crate::{Fact, UsbFacts};
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
    /// The filesystem's UUID, as `blkid` would write it. On tmpfs it is drawn anew with every mount.
    #[serde(default = "Fact::not_recorded")]
    pub uuid: Fact<String>,
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
    /// What this kind of layer tells of itself: where a partition begins, a RAID's level and chunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<NamedFact>,
}

/// A fact that only one kind of thing has, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFact {
    /// What it is about (`chunk`, `begins at`).
    pub name: String,
    /// In words, with units.
    pub fact: Fact<String>,
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
    /// The version of its firmware.
    #[serde(default = "Fact::not_recorded")]
    pub firmware: Fact<String>,
    /// Its name in all the world (`eui.…`, `naa.…`, `t10.…`).
    #[serde(default = "Fact::not_recorded")]
    pub wwid: Fact<String>,
    /// How it is attached: `nvme`, `sata`, `usb`, `virtio`, `loop`, `zram`, …
    pub transport: Fact<Transport>,
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
    pub write_cache: Fact<WriteCache>,
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
    /// What fits into a request, and how it wants to be written.
    #[serde(default)]
    pub limits: DiskLimits,
    /// How it is attached, if it is a USB disk. Records from before this was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usb: Option<UsbFacts>,
}

/// What fits into a request to a disk, and how it wants to be written: `queue/` of sysfs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskLimits {
    /// The least that is written well, in bytes: a RAID's chunk, a disk's physical sector.
    pub minimum_io_bytes: Fact<u64>,
    /// What is written best, in bytes: a RAID's stripe. 0: not declared.
    pub optimal_io_bytes: Fact<u64>,
    /// How far its start lies beyond a physical sector, in bytes; −1: no offset would align it.
    pub alignment_offset_bytes: Fact<i64>,
    /// What a buffer's address must be a multiple of, in bytes.
    pub dma_alignment_bytes: Fact<u64>,
    /// Largest request that the hardware takes, in bytes.
    pub max_hw_request_bytes: Fact<u64>,
    /// Pieces of memory that a request may gather.
    pub max_segment_count: Fact<u32>,
    /// Largest such piece, in bytes.
    pub max_segment_bytes: Fact<u64>,
    /// Unit of trims, in bytes; 0: it cannot be trimmed.
    pub discard_granularity_bytes: Fact<u64>,
    /// Largest trim, in bytes; 0: it cannot be trimmed.
    pub discard_max_bytes: Fact<u64>,
    /// Largest write of zeros without data, in bytes; 0: it has none.
    pub write_zeroes_max_bytes: Fact<u64>,
    /// `none`, `host-aware` or `host-managed`: zones that can only be written in order.
    pub zoned: Fact<ZoneModel>,
    /// Length of a zone or of a stripe that requests do not cross, in bytes; 0: there is none.
    pub chunk_bytes: Fact<u64>,
    /// Largest write that a power loss cannot tear, in bytes; 0: none is promised.
    pub atomic_write_max_bytes: Fact<u64>,
    /// Has it queues that can be polled for completions.
    pub can_poll: Fact<bool>,
    /// Queues of the hardware.
    pub hardware_queue_count: Fact<u32>,
    /// Is it read-only.
    pub is_read_only: Fact<bool>,
    /// Is it, or its medium, meant to be taken out.
    pub is_removable: Fact<bool>,
}

impl Default for DiskLimits {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            minimum_io_bytes: Fact::not_recorded(),
            optimal_io_bytes: Fact::not_recorded(),
            alignment_offset_bytes: Fact::not_recorded(),
            dma_alignment_bytes: Fact::not_recorded(),
            max_hw_request_bytes: Fact::not_recorded(),
            max_segment_count: Fact::not_recorded(),
            max_segment_bytes: Fact::not_recorded(),
            discard_granularity_bytes: Fact::not_recorded(),
            discard_max_bytes: Fact::not_recorded(),
            write_zeroes_max_bytes: Fact::not_recorded(),
            zoned: Fact::not_recorded(),
            chunk_bytes: Fact::not_recorded(),
            atomic_write_max_bytes: Fact::not_recorded(),
            can_poll: Fact::not_recorded(),
            hardware_queue_count: Fact::not_recorded(),
            is_read_only: Fact::not_recorded(),
            is_removable: Fact::not_recorded(),
        }
    }
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
    /// Writes that a power loss cannot tear (`RWF_ATOMIC`).
    #[serde(default = "Fact::not_recorded")]
    pub atomic_write: Fact<AtomicWriteFacts>,
}

/// Lengths of writes that a power loss cannot tear: powers of two, at multiples of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicWriteFacts {
    /// The shortest, in bytes; 0: there are none.
    pub min_bytes: u32,
    /// The longest, in bytes; 0: there are none.
    pub max_bytes: u32,
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
