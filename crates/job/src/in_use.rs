//! The users and signatures of a target that a job would write, determined while planning.
//!
//! The planner reads nothing itself, so these are inputs, independent of how they were determined. A block
//! device that was not examined counts as in use.

/// The users and signatures of an existing file or block device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InUse {
    /// The uses; empty: it is not in use.
    pub uses: Vec<DeviceUse>,
    /// The signatures of filesystems, RAID, partition tables … on a block device.
    pub marks: Vec<Mark>,
    /// What could not be examined, one sentence each without a full stop.
    pub unseen: Vec<String>,
}

/// One use of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceUse {
    /// The kind of use.
    pub kind: UseKind,
    /// The used device: the target or a relative of it: `vda1`.
    pub device: String,
    /// The mount point, the swap's, the other device's or the process's name; empty if there is none.
    pub by: String,
    /// The source of the fact.
    pub source: String,
}

/// The kind of use of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseKind {
    /// A filesystem on it is mounted.
    Mounted,
    /// It is one of the devices of a mounted filesystem.
    Member,
    /// It is swap.
    Swap,
    /// Another device is stacked on it.
    Stacked,
    /// Another loop device has the same file.
    Twin,
    /// Another program has claimed it with `O_EXCL`.
    Claimed,
    /// A process has it open for writing.
    OpenForWriting,
    /// A file that is open elsewhere, but in no process that could be read: the kernel uses it.
    Unnamed,
}

/// A signature on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `ext4`, `crypto_LUKS`, `gpt`: the name that `blkid` and `wipefs` use.
    pub name: String,
    /// Offset from the start of the device, in bytes.
    pub offset_bytes: u64,
}

impl DeviceUse {
    /// Describes the use, as the rest of a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { device, by, .. } = self;
        match self.kind {
            UseKind::Mounted => format!("`{device}` is mounted at `{by}`"),
            UseKind::Member => format!("`{device}` is part of {by}"),
            UseKind::Swap => format!("`{device}` is swap"),
            UseKind::Stacked => format!("`{by}` is stacked on `{device}`"),
            UseKind::Twin => format!("the loop devices `{by}` and `{device}` have the same file"),
            UseKind::Claimed => format!("`{device}` is claimed by another program (O_EXCL is refused)"),
            UseKind::OpenForWriting => format!("`{device}` is open for writing in {by}"),
            UseKind::Unnamed => {
                format!(
                    "`{device}` is open in the kernel, or in a process that this user may not read (a write lease is refused)"
                )
            }
        }
    }
}

/// Formats `ext4 (at byte 1080), dos (at byte 510)`.
pub(crate) fn marks_in_words(marks: &[Mark]) -> String {
    let words: Vec<String> =
        marks.iter().map(|mark| format!("{} (at byte {})", mark.name, mark.offset_bytes)).collect();
    words.join(", ")
}
