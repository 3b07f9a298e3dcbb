//! Facts that the kernel reports as words, as enums.
//!
//! A record holds the kernel's own spelling. A word without a variant here is kept as text in
//! `Other`, so a record of any kernel is read and written without loss.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines an enum whose variants have a fixed spelling, and `Other` for every other word.
macro_rules! kernel_words {
    ($(#[$docs:meta])* $name:ident { $($(#[$variant_docs:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$docs])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$variant_docs])* $variant,)*
            /// A word without a variant, as the kernel spells it.
            Other(String),
        }

        impl $name {
            /// Returns the kernel's spelling.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(fact: $name) -> Self {
                fact.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

kernel_words! {
    /// Write cache that a disk declares (`queue/write_cache`).
    WriteCache {
        /// A volatile cache: only flushed data survives a power cut.
        WriteBack = "write back",
        /// No volatile cache.
        WriteThrough = "write through",
    }
}

kernel_words! {
    /// Bus or driver that a disk is attached with.
    Transport {
        /// NVMe.
        Nvme = "nvme",
        /// SATA.
        Sata = "sata",
        /// SAS.
        Sas = "sas",
        /// USB.
        Usb = "usb",
        /// A virtio disk of a virtual machine.
        Virtio = "virtio",
        /// A loop device: a file that is used as a disk.
        Loop = "loop",
        /// Compressed memory.
        Zram = "zram",
        /// Memory (`brd`).
        Ram = "ram",
        /// Persistent memory.
        Pmem = "pmem",
        /// A network block device.
        Nbd = "nbd",
        /// A RADOS block device.
        Rbd = "rbd",
    }
}

kernel_words! {
    /// Zone model of a disk (`queue/zoned`).
    ZoneModel {
        /// No zones.
        None = "none",
        /// Zones that accept random writes.
        HostAware = "host-aware",
        /// Zones that accept only sequential writes.
        HostManaged = "host-managed",
    }
}

kernel_words! {
    /// Type of a filesystem, as the mount table names it.
    FilesystemKind {
        /// ext2.
        Ext2 = "ext2",
        /// ext3.
        Ext3 = "ext3",
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// Btrfs.
        Btrfs = "btrfs",
        /// FAT with long names.
        Vfat = "vfat",
        /// FAT without long names.
        Msdos = "msdos",
        /// exFAT.
        Exfat = "exfat",
        /// A CD or DVD image.
        Iso9660 = "iso9660",
        /// A compressed read-only filesystem.
        Squashfs = "squashfs",
        /// A filesystem over the directories of others.
        Overlay = "overlay",
        /// Files in memory that may be swapped out.
        Tmpfs = "tmpfs",
        /// Files in memory.
        Ramfs = "ramfs",
        /// Files of huge pages.
        Hugetlbfs = "hugetlbfs",
        /// The kernel's device nodes.
        Devtmpfs = "devtmpfs",
        /// Processes, as files.
        Proc = "proc",
        /// Kernel objects, as files.
        Sysfs = "sysfs",
    }
}

kernel_words! {
    /// A kind of layer between a file and a disk.
    LayerKind {
        /// A file.
        File = "file",
        /// A directory.
        Directory = "directory",
        /// A filesystem.
        Filesystem = "filesystem",
        /// A partition of a disk.
        Partition = "partition",
        /// A disk.
        Disk = "disk",
        /// A device that sysfs does not list.
        Device = "device",
        /// A loop device: a file that is used as a disk.
        Loop = "loop",
        /// A device of the device mapper.
        DeviceMapper = "dm",
        /// A RAID of the `md` driver.
        Md = "md",
        /// bcache: a disk with a cache on another.
        Bcache = "bcache",
        /// Another device that is made of devices.
        Stacked = "stacked",
    }
}

impl FilesystemKind {
    /// Returns true if files are kept in memory and lost at a power cut.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Tmpfs | Self::Ramfs | Self::Hugetlbfs | Self::Devtmpfs)
    }

    /// Returns true if the kernel's driver cannot punch holes into files.
    pub fn cannot_punch_holes(&self) -> bool {
        matches!(self, Self::Vfat | Self::Msdos | Self::Exfat | Self::Iso9660 | Self::Squashfs)
    }

    /// Returns true if files are the kernel's own objects, so that none can be created for data.
    pub fn is_kernel_interface(&self) -> bool {
        matches!(self, Self::Devtmpfs | Self::Proc | Self::Sysfs)
    }

    /// Returns true if each block of a file is written to one position of the device, unless data is journaled.
    pub fn writes_in_place(&self) -> bool {
        matches!(self, Self::Ext2 | Self::Ext3 | Self::Ext4 | Self::Xfs)
    }
}

impl LayerKind {
    /// Returns true for devices that are made of other devices.
    pub fn is_stacked(&self) -> bool {
        matches!(self, Self::DeviceMapper | Self::Md | Self::Bcache | Self::Stacked)
    }
}

impl Transport {
    /// Returns true for devices that keep their blocks in memory and lose them at a power cut.
    pub fn is_volatile_memory(&self) -> bool {
        matches!(self, Self::Zram | Self::Ram)
    }

    /// Returns true for devices whose latency is that of memory or of a file, not of a bus.
    pub fn is_memory_or_loop(&self) -> bool {
        matches!(self, Self::Zram | Self::Ram | Self::Pmem | Self::Loop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_spelling_in_json_and_unknown_ones_are_kept_as_text() {
        for word in ["write back", "write through", "write around"] {
            let fact: WriteCache = serde_json::from_value(word.into()).expect("a word");
            assert_eq!(serde_json::to_value(&fact).expect("a word"), word);
            assert_eq!(fact.to_string(), word);
        }
        assert_eq!(Transport::from("sata"), Transport::Sata);
        assert_eq!(Transport::from("mmc"), Transport::Other("mmc".to_owned()));
        assert_eq!(ZoneModel::from("none"), ZoneModel::None);
        assert_eq!(FilesystemKind::from("nfs4"), FilesystemKind::Other("nfs4".to_owned()));
        assert_eq!(LayerKind::from("dm"), LayerKind::DeviceMapper);
    }
}
