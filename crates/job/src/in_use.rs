//! Who uses a target that a job would write, and what is on it: asked while planning.
//!
//! The planner reads nothing itself, so this is what it is told, in words that do not depend on how
//! they were learnt. What nobody looked at counts as in use where it is a block device.

/// Who uses an existing file or block device, and what is on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InUse {
    /// The uses; empty: nobody uses it.
    pub uses: Vec<DeviceUse>,
    /// The marks of filesystems, RAID, partition tables … on a block device.
    pub marks: Vec<Mark>,
    /// What could not be looked at, a sentence each without a full stop.
    pub unseen: Vec<String>,
}

/// One use of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceUse {
    /// How it is used.
    pub kind: UseKind,
    /// What is used, the target or a relative of it: `vda1`.
    pub device: String,
    /// The mount point, the swap's or the other device's name; empty if there is none.
    pub by: String,
    /// Who says so.
    pub source: String,
}

/// How a target is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseKind {
    /// A filesystem on it is mounted.
    Mounted,
    /// It is one of the devices of a mounted filesystem.
    Member,
    /// It is swap.
    Swap,
    /// Another device stands on it.
    Stacked,
    /// Somebody has claimed it with `O_EXCL`.
    Claimed,
}

/// A mark on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `ext4`, `crypto_LUKS`, `gpt`: as `blkid` and `wipefs` call it.
    pub name: String,
    /// Where it stands, in bytes from the device's start.
    pub offset_bytes: u64,
}

impl DeviceUse {
    /// What is used and how, as the rest of a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { device, by, .. } = self;
        match self.kind {
            UseKind::Mounted => format!("`{device}` is mounted at `{by}`"),
            UseKind::Member => format!("`{device}` is part of {by}"),
            UseKind::Swap => format!("`{device}` is swap"),
            UseKind::Stacked => format!("`{device}` carries `{by}`"),
            UseKind::Claimed => format!("`{device}` is claimed by somebody (O_EXCL is refused)"),
        }
    }
}

/// `ext4 (at byte 1080), dos (at byte 510)`.
pub(crate) fn marks_in_words(marks: &[Mark]) -> String {
    let words: Vec<String> =
        marks.iter().map(|mark| format!("{} (at byte {})", mark.name, mark.offset_bytes)).collect();
    words.join(", ")
}
