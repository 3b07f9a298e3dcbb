//! The alignment that direct I/O requires of address, length and offset, and the check before the call.
//!
//! The outcome of a misaligned direct transfer depends on the filesystem. It fails with `EINVAL`, which does not name
//! the misaligned part; or it silently uses the page cache; or it succeeds, and fails on another machine or with another
//! size. (Linux 6.18 accepted any address as long as the buffer lay within one page: 512 bytes at an odd address were
//! written, 4,096 were refused. Wine accepts everything.) This check runs before the call, uses the values that
//! the kernel reports, and names the misaligned part.
//!
//! Limits: an unknown alignment ([`None`]) is not checked. [`Alignment::or_assumed`] fills it with a cautious guess.
//!
//! Source: statx(2), `stx_dio_mem_align`, `stx_dio_offset_align`, `stx_dio_read_offset_align`.

use std::fmt;

/// The alignment that [`Alignment::or_assumed`] assumes where none is reported: 4,096 bytes.
///
/// Sectors in use are 512 or 4,096 bytes, and 4,096 is a multiple of both. Filesystems with larger
/// blocks exist (64 KiB pages, ZFS records), so [`AlignmentSource::Assumed`] marks it as a guess.
pub const ASSUMED_ALIGNMENT_BYTES: u32 = 4096;

/// The alignment that direct I/O on one file requires, in bytes.
///
/// Values are above zero. For memory they are always powers of two; for offsets nearly always (an XFS realtime extent
/// may have another size).
///
/// [`None`] means unknown. It never means "no requirement": that is `Some(1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Multiple required of the address of each buffer.
    pub memory_bytes: Option<u32>,
    /// Multiple required of the offset and length of each write.
    pub write_offset_bytes: Option<u32>,
    /// Multiple required of the offset and length of each read. It may be smaller than for writes: a
    /// copy-on-write filesystem can read sectors and must write blocks.
    pub read_offset_bytes: Option<u32>,
    /// Source of these values.
    pub source: AlignmentSource,
}

/// Source of an alignment. `Display` writes a phrase for use in parentheses ("reported by statx").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlignmentSource {
    /// The filesystem or block device itself, through `statx` (Linux 6.1 or later).
    Statx,
    /// XFS itself, through the older `XFS_IOC_DIOINFO` (Linux).
    XfsDioInfo,
    /// The logical sector size of the underlying device, because the filesystem reports no alignment.
    SectorSize,
    /// The filesystem's block size, because neither the filesystem nor a device reports an alignment.
    FilesystemBlock,
    /// Windows, through `FileStorageInfo` or a storage query on the device.
    StorageQuery,
    /// No source: a cautious guess of [`ASSUMED_ALIGNMENT_BYTES`].
    Assumed,
    /// Transfers use the page cache, which accepts any alignment.
    NotNeeded,
    /// No source, and no guess.
    Unknown,
}

impl fmt::Display for AlignmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Statx => "reported by statx",
            Self::XfsDioInfo => "reported by XFS (XFS_IOC_DIOINFO)",
            Self::SectorSize => "taken from the device's logical sector, as the filesystem reports none",
            Self::FilesystemBlock => "taken from the filesystem's block size, as nothing else is reported",
            Self::StorageQuery => "reported by the Windows storage stack",
            Self::Assumed => "assumed, as none is reported",
            Self::NotNeeded => "not needed, as the page cache is used",
            Self::Unknown => "unknown, as none is reported",
        })
    }
}

impl Alignment {
    /// Returns the alignment of a buffered file: none is required.
    pub const fn not_needed() -> Self {
        Self::uniform(1, AlignmentSource::NotNeeded)
    }

    /// Returns an alignment of which nothing is known.
    pub const fn unknown() -> Self {
        Self { memory_bytes: None, write_offset_bytes: None, read_offset_bytes: None, source: AlignmentSource::Unknown }
    }

    /// Returns an alignment with the same value for memory, writes and reads.
    pub const fn uniform(bytes: u32, source: AlignmentSource) -> Self {
        Self { memory_bytes: Some(bytes), write_offset_bytes: Some(bytes), read_offset_bytes: Some(bytes), source }
    }

    /// Replaces each unknown value with [`ASSUMED_ALIGNMENT_BYTES`]. The source becomes
    /// [`AlignmentSource::Assumed`] if any value was replaced.
    #[must_use]
    pub fn or_assumed(&self) -> Self {
        if self.memory_bytes.is_some() && self.write_offset_bytes.is_some() && self.read_offset_bytes.is_some() {
            return self.clone();
        }
        Self {
            memory_bytes: self.memory_bytes.or(Some(ASSUMED_ALIGNMENT_BYTES)),
            write_offset_bytes: self.write_offset_bytes.or(Some(ASSUMED_ALIGNMENT_BYTES)),
            read_offset_bytes: self.read_offset_bytes.or(Some(ASSUMED_ALIGNMENT_BYTES)),
            source: AlignmentSource::Assumed,
        }
    }

    /// Returns the multiple required of offset and length of a write, or of a read; [`None`] if unknown.
    pub fn offset_bytes(&self, write: bool) -> Option<u32> {
        if write { self.write_offset_bytes } else { self.read_offset_bytes }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u32>| value.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
        write!(
            f,
            "memory {}, write offset {}, read offset {} bytes ({})",
            number(self.memory_bytes),
            number(self.write_offset_bytes),
            number(self.read_offset_bytes),
            self.source
        )
    }
}

/// A part of a transfer that has an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferPart {
    /// The address of the buffer.
    Address,
    /// The number of bytes.
    Length,
    /// The offset in the file.
    Offset,
}

impl fmt::Display for TransferPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "address",
            Self::Length => "length",
            Self::Offset => "offset",
        })
    }
}

/// A misaligned direct transfer, found before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {part} of this {}, {}, is not a multiple of {needed_bytes} bytes ({source_of_need})",
    if *write { "write" } else { "read" },
    PartValue { part: *part, value: *value }
)]
pub struct Misaligned {
    /// The misaligned part; if several are, the first of address, length, offset.
    pub part: TransferPart,
    /// The address, or the length or offset in bytes.
    pub value: u64,
    /// The multiple that it must have, in bytes.
    pub needed_bytes: u32,
    /// True for a write, false for a read.
    pub write: bool,
    /// Source of the requirement.
    pub source_of_need: AlignmentSource,
}

/// Prints addresses in hexadecimal, lengths and offsets in decimal.
struct PartValue {
    part: TransferPart,
    value: u64,
}

impl fmt::Display for PartValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            TransferPart::Address => write!(f, "{:#x}", self.value),
            TransferPart::Length | TransferPart::Offset => write!(f, "{}", self.value),
        }
    }
}

/// Checks one transfer against `alignment`, without making it.
///
/// `address` is that of the buffer; `offset` is in bytes from the start of the file. A part whose alignment is unknown
/// is not checked. A length of zero is aligned.
///
/// # Errors
/// [`Misaligned`] names the first misaligned part: address, length or offset.
///
/// ```
/// use trueio_direct::{Alignment, AlignmentSource, TransferPart, check_transfer};
///
/// let alignment = Alignment::uniform(512, AlignmentSource::Statx);
/// assert!(check_transfer(&alignment, 0x1000, 4096, 8192, true).is_ok());
///
/// let wrong = check_transfer(&alignment, 0x1000, 4096, 100, true).unwrap_err();
/// assert_eq!(wrong.part, TransferPart::Offset);
/// assert_eq!(
///     wrong.to_string(),
///     "the offset of this write, 100, is not a multiple of 512 bytes (reported by statx)"
/// );
/// ```
pub fn check_transfer(
    alignment: &Alignment,
    address: usize,
    length: usize,
    offset: u64,
    write: bool,
) -> Result<(), Misaligned> {
    let offset_bytes = alignment.offset_bytes(write);
    let parts = [
        (TransferPart::Address, address as u64, alignment.memory_bytes),
        (TransferPart::Length, length as u64, offset_bytes),
        (TransferPart::Offset, offset, offset_bytes),
    ];
    for (part, value, needed) in parts {
        let Some(needed_bytes) = needed else { continue };
        // Zero means "no direct I/O" in some kernel answers; probing never returns it as an alignment.
        assert!(needed_bytes > 0, "an alignment of zero bytes reached the check of a transfer");
        if !value.is_multiple_of(u64::from(needed_bytes)) {
            return Err(Misaligned { part, value, needed_bytes, write, source_of_need: alignment.source });
        }
    }
    Ok(())
}

/// Returns the greatest multiple of `multiple` that is not above `value`.
///
/// # Panics
/// If `multiple` is zero.
pub const fn round_down(value: u64, multiple: u64) -> u64 {
    value - value % multiple
}

/// Returns the least multiple of `multiple` that is not below `value`, or [`None`] if it exceeds `u64`.
///
/// # Panics
/// If `multiple` is zero.
pub const fn round_up(value: u64, multiple: u64) -> Option<u64> {
    match value % multiple {
        0 => Some(value),
        rest => value.checked_add(multiple - rest),
    }
}
