//! Facts that the kernel reports as words, as enums.
//!
//! A record holds the kernel's own spelling. A word without a variant here is kept as text in
//! `Other`, so a record of any kernel is read and written without loss.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines an enum whose variants have a fixed spelling, and `Other` for every other word.
macro_rules! kernel_words {
    ($(#[$docs:meta])* $name:ident { $($(#[$variant_docs:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$docs])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    }
}
