//! The facts of a target and a machine, each with its source.

mod words;

pub use words::{FilesystemKind, LayerKind, Transport, WriteCache, ZoneModel};

use crate::{DiskLink, Fact, IoLimit, UsbFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of what a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory, in which files can be created.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/null`.
    CharacterDevice,
}

/// A target: the path, its filesystem, and the layers down to the disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// The path as given.
    pub path: String,
    /// The kind of target.
    pub kind: TargetKind,
    /// Size of a file or device, in bytes; unknown for a directory.
    pub size_bytes: Fact<u64>,
    /// The filesystem of the target; `None` for a raw block device.
    pub filesystem: Option<FilesystemFacts>,
    /// The layers from the target down to the disks, nearest first.
    pub stack: Vec<Layer>,
    /// The disks at the bottom of the stack. Empty if there are none (tmpfs, network).
    pub disks: Vec<DiskFacts>,
    /// Whether direct I/O is supported, and the alignment that it requires.
    pub direct: DirectFacts,
    /// Limits of this process's control groups on the block devices of the stack.
    #[serde(default = "Fact::<Vec<IoLimit>>::not_recorded")]
    pub io_limits: Fact<Vec<IoLimit>>,
    /// The commands of a disk that this process drives itself, which is not in `disks`. `None` for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven: Option<DrivenDisk>,
}

/// What a disk that is driven in user space reports about its commands; the kernel has no block device of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrivenDisk {
    /// `write back` (a volatile cache) or `write through`. Unknown: the disk does not report it, so a cache is assumed.
    pub write_cache: Fact<WriteCache>,
    /// Whether it accepts forced-unit-access writes.
    pub has_fua: Fact<bool>,
    /// Whether it has a command that deallocates blocks.
    pub can_trim: Fact<bool>,
}

/// A mounted filesystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesystemFacts {
    /// Type as the kernel calls it (`ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`, `nfs4`).
    pub kind: FilesystemKind,
    /// The mount point.
    pub mount_point: String,
    /// The source of the mount (`/dev/vda1`, `tmpfs`).
    pub source: String,
    /// Mount and superblock options, as one comma-separated line.
    pub options: String,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// Free space for an unprivileged user, in bytes.
    pub available_bytes: Fact<u64>,
    /// Allocation block, in bytes.
    pub block_bytes: Fact<u64>,
    /// The filesystem's UUID, in the format of `blkid`. On tmpfs each mount has a new random one.
    #[serde(default = "Fact::<String>::not_recorded")]
    pub uuid: Fact<String>,
}

/// One layer between a file and a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// `file`, `filesystem`, `partition`, `dm`, `md`, `loop`, `disk`, …
    pub kind: LayerKind,
    /// `ext4 on /home`, `nvme0n1p2`, `dm-0 (crypt)`.
    pub name: String,
    /// The source of this layer.
    pub source: String,
    /// Depth below the target, from 0; layers of equal depth are siblings (RAID members).
    pub depth: u32,
    /// Properties of this kind of layer: the start of a partition, the level and chunk of a RAID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<NamedFact>,
}

impl Layer {
    /// The name of the fact with what a device declares about its cache (`write through`, `write back`).
    pub const WRITE_CACHE: &str = "write cache";

    /// Returns true if the device declares that it has no volatile write cache, so that the kernel sends it no flush.
    pub fn declares_no_cache(&self) -> bool {
        let declared =
            self.facts.iter().find(|one| one.name == Self::WRITE_CACHE).and_then(|one| one.fact.value.as_deref());
        declared.is_some_and(|text| WriteCache::from(text.to_owned()) == WriteCache::WriteThrough)
    }
}

/// A property that only one kind of layer has, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedFact {
    /// The name of the property (`chunk`, `begins at`).
    pub name: String,
    /// The value with its unit.
    pub fact: Fact<String>,
}

/// A disk at the bottom of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default = "Fact::<String>::not_recorded")]
    pub firmware: Fact<String>,
    /// World-wide identifier (`eui.…`, `naa.…`, `t10.…`).
    #[serde(default = "Fact::<String>::not_recorded")]
    pub wwid: Fact<String>,
    /// How it is attached: `nvme`, `sata`, `usb`, `virtio`, `loop`, `zram`, …
    pub transport: Fact<Transport>,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// Logical sector, in bytes: the shortest possible transfer.
    pub logical_sector_bytes: Fact<u32>,
    /// Physical sector, in bytes: the shortest write that the disk executes without a read.
    pub physical_sector_bytes: Fact<u32>,
    /// Whether the disk rotates, according to the kernel.
    pub is_rotational: Fact<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Fact<String>,
    /// `write back` (a volatile cache: only flushed data survives) or `write through`.
    pub write_cache: Fact<WriteCache>,
    /// Whether it accepts forced-unit-access writes.
    pub has_fua: Fact<bool>,
    /// Requests that the block layer holds for each hardware queue (`queue/nr_requests`); with an I/O scheduler, its tags.
    pub request_count: Fact<u32>,
    /// Largest request, in bytes.
    pub max_request_bytes: Fact<u64>,
    /// Read-ahead, in bytes.
    pub read_ahead_bytes: Fact<u64>,
    /// Whether the kernel counts its I/O (`queue/iostats`).
    pub counts_io: Fact<bool>,
    /// The limits of a request, and the preferred write sizes.
    #[serde(default)]
    pub limits: DiskLimits,
    /// How it is attached, if it is a USB disk. Missing in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usb: Option<UsbFacts>,
    /// Its link, if it is an NVMe or SATA disk and the kernel reports it. Missing in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<DiskLink>,
}

/// The limits of a request to a disk, and its preferred write sizes: `queue/` of sysfs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiskLimits {
    /// Preferred minimum write size, in bytes: a RAID's chunk, a disk's physical sector.
    pub minimum_io_bytes: Fact<u64>,
    /// Optimal write size, in bytes: a RAID's stripe. 0: not declared.
    pub optimal_io_bytes: Fact<u64>,
    /// Distance of its start from the physical sector boundary before it, in bytes; −1: no offset would align it.
    pub alignment_offset_bytes: Fact<i64>,
    /// Required alignment of a buffer's address, in bytes.
    pub dma_alignment_bytes: Fact<u64>,
    /// Largest request that the hardware accepts, in bytes.
    pub max_hw_request_bytes: Fact<u64>,
    /// Maximum number of memory segments in a request.
    pub max_segment_count: Fact<u32>,
    /// Largest such segment, in bytes.
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
    /// Largest write that a power loss cannot tear, in bytes; 0: no guarantee.
    pub atomic_write_max_bytes: Fact<u64>,
    /// Whether it has queues that can be polled for completions.
    pub can_poll: Fact<bool>,
    /// Queues of the hardware.
    pub hardware_queue_count: Fact<u32>,
    /// Requests that the driver holds in each of them (`mq/0/nr_tags`): of a virtio disk the size of its ring.
    pub tag_count: Fact<u32>,
    /// Requests that a SCSI disk accepts at a time.
    pub queue_depth: Fact<u32>,
    /// Whether it is read-only.
    pub is_read_only: Fact<bool>,
    /// Whether it, or its medium, is removable.
    pub is_removable: Fact<bool>,
}

impl Default for DiskLimits {
    /// All facts unknown.
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
            tag_count: Fact::not_recorded(),
            queue_depth: Fact::not_recorded(),
            is_read_only: Fact::not_recorded(),
            is_removable: Fact::not_recorded(),
        }
    }
}

/// Whether direct I/O is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectSupport {
    /// The filesystem or device reports support.
    Direct,
    /// `O_DIRECT` is accepted, but transfers still go through the page cache.
    SilentlyBuffered,
    /// `O_DIRECT` is refused.
    Refused,
    /// Unknown.
    Unknown,
}

/// The requirements of direct I/O on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectFacts {
    /// Whether it is supported.
    pub support: DirectSupport,
    /// The reason for that.
    pub reason: String,
    /// Alignment of the buffer's address, in bytes.
    pub memory_alignment_bytes: Fact<u32>,
    /// Alignment of a write's offset and length, in bytes.
    pub write_alignment_bytes: Fact<u32>,
    /// Alignment of a read's offset and length, in bytes.
    pub read_alignment_bytes: Fact<u32>,
    /// Writes that a power loss cannot tear (`RWF_ATOMIC`).
    #[serde(default = "Fact::<AtomicWriteFacts>::not_recorded")]
    pub atomic_write: Fact<AtomicWriteFacts>,
}

/// Lengths of writes that a power loss cannot tear: powers of two, at offsets that are multiples of the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtomicWriteFacts {
    /// The shortest, in bytes; 0: there are none.
    pub min_bytes: u32,
    /// The longest, in bytes; 0: there are none.
    pub max_bytes: u32,
}

/// The machine and its software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Operating system and its version (`Linux 6.18.44 x86_64`).
    pub system: String,
    /// The distribution, if known.
    pub distribution: Fact<String>,
    /// Processors.
    pub cpu: CpuFacts,
    /// Memory, in bytes.
    pub memory_bytes: Fact<u64>,
    /// Memory available without swapping when the run began, in bytes.
    pub memory_available_bytes: Fact<u64>,
    /// Memory, page cache included, that the process's control groups allow, in bytes; `None` without a limit, and in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The hypervisor, if the processor reports one.
    pub hypervisor: Fact<String>,
    /// The kernel's clock source.
    pub clock_source: Fact<String>,
    /// Load averages over 1, 5 and 15 minutes when the run began.
    pub load_average: Fact<[f64; 3]>,
    /// Whether the process runs as root.
    pub is_root: bool,
}

impl Environment {
    /// Returns the memory that this process may use: the machine's, or less by a limit of its control groups.
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        let limit = self.memory_limit_bytes.unwrap_or(u64::MAX);
        self.memory_bytes.value.map(|memory| memory.min(limit)).or(self.memory_limit_bytes)
    }
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// Model name.
    pub model: Fact<String>,
    /// Processors this process may use.
    pub usable_count: u32,
    /// Frequency governor of the first processor.
    pub governor: Fact<String>,
    /// The quota of the process's control group, in processors (0.5: half of one processor's time); `None` without a
    /// quota, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
}
