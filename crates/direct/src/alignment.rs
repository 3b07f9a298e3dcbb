//! What direct I/O demands of an address, a length and an offset, and the check before the call.
//!
//! A misaligned direct transfer has three fates, depending on the filesystem: it fails with
//! `EINVAL` and does not say which of the three numbers was wrong; it is quietly carried out
//! through the page cache; or it just works, and fails on the next machine or with the next size.
//! (Linux 6.18 was seen to take any address as long as the buffer lies within one page: 512 bytes
//! from an odd address are written, 4,096 are refused. Wine takes everything.) So the check is made
//! here, before the call, from numbers that the kernel gave, and its answer names the number.
//!
//! Cannot see: what nobody reports. An unknown alignment ([`None`]) is not checked at all; use
//! [`Alignment::or_assumed`] to check against a cautious guess instead.
//!
//! Source: statx(2), `stx_dio_mem_align`, `stx_dio_offset_align`, `stx_dio_read_offset_align`.

use std::fmt;

/// The alignment assumed by [`Alignment::or_assumed`] where nobody reports one: 4,096 bytes.
///
/// Sectors in use are 512 or 4,096 bytes, and 4,096 is a multiple of both. Filesystems with larger
/// blocks exist (64 KiB pages, ZFS records), so this is a guess and is named one.
pub const ASSUMED_ALIGNMENT_BYTES: u32 = 4096;

/// What direct I/O on one file demands, in bytes. Numbers are above zero; of memory always, and of
/// offsets nearly always, they are powers of two (an XFS realtime extent need not be).
///
/// [`None`] means that nobody said. It never means "no demand": that is `Some(1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The address of every buffer is a multiple of this.
    pub memory_bytes: Option<u32>,
    /// Offset and length of every write are multiples of this.
    pub write_offset_bytes: Option<u32>,
    /// Offset and length of every read are multiples of this. It may be finer than for writes
    /// (a filesystem that copies on write can read sectors and must write blocks).
    pub read_offset_bytes: Option<u32>,
    /// On whose word these numbers stand.
    pub source: AlignmentSource,
}

/// Who said what the alignment is. Its `Display` is a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlignmentSource {
    /// The filesystem or block device itself, through `statx` (Linux 6.1 or later).
    Statx,
    /// XFS itself, through the older `XFS_IOC_DIOINFO` (Linux).
    XfsDioInfo,
    /// The logical sector size of the device below; the filesystem did not say.
    SectorSize,
    /// The block size that the filesystem reports for itself; neither it nor a device said more.
    FilesystemBlock,
    /// Windows, through `FileStorageInfo` or a storage query on the device.
    StorageQuery,
    /// Nobody: a cautious guess of [`ASSUMED_ALIGNMENT_BYTES`].
    Assumed,
    /// The transfers go through the page cache, which takes any alignment.
    NotNeeded,
    /// Nobody, and nothing was guessed.
    Unknown,
}

impl fmt::Display for AlignmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Statx => "reported by statx",
            Self::XfsDioInfo => "reported by XFS (XFS_IOC_DIOINFO)",
            Self::SectorSize => "taken from the device's logical sector, as the filesystem does not say",
            Self::FilesystemBlock => "taken from the filesystem's block size, as nothing else is reported",
            Self::StorageQuery => "reported by the Windows storage stack",
            Self::Assumed => "assumed, as nobody reports it",
            Self::NotNeeded => "not needed, as the page cache is used",
            Self::Unknown => "not known, as nobody reports it",
        })
    }
}

impl Alignment {
    /// No demand at all: what a buffered file asks for.
    pub const fn not_needed() -> Self {
        Self::uniform(1, AlignmentSource::NotNeeded)
    }

    /// Nothing known and nothing guessed.
    pub const fn unknown() -> Self {
        Self { memory_bytes: None, write_offset_bytes: None, read_offset_bytes: None, source: AlignmentSource::Unknown }
    }

    /// The same number for memory, writes and reads.
    pub const fn uniform(bytes: u32, source: AlignmentSource) -> Self {
        Self { memory_bytes: Some(bytes), write_offset_bytes: Some(bytes), read_offset_bytes: Some(bytes), source }
    }

    /// The same, with [`ASSUMED_ALIGNMENT_BYTES`] in every place that is not known. The source
    /// becomes [`AlignmentSource::Assumed`] if any number had to be guessed.
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

    /// The multiple that offset and length of a write (or of a read) must keep, if it is known.
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

/// Which of the three numbers of a transfer is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferPart {
    /// Where the buffer lies in memory.
    Address,
    /// How many bytes are asked for.
    Length,
    /// Where in the file they begin.
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

/// A transfer that direct I/O on this file does not allow, found before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {part} of this {}, {}, is not a multiple of {needed_bytes} bytes ({source_of_need})",
    if *write { "write" } else { "read" },
    PartValue { part: *part, value: *value }
)]
pub struct Misaligned {
    /// Which number is wrong. When several are, the first of address, length, offset.
    pub part: TransferPart,
    /// What that number is.
    pub value: u64,
    /// What it must be a multiple of, in bytes.
    pub needed_bytes: u32,
    /// Whether the transfer is a write.
    pub write: bool,
    /// Who demands it.
    pub source_of_need: AlignmentSource,
}

/// Addresses are read in hexadecimal, lengths and offsets in decimal.
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

/// Checks one transfer against `alignment` before it is made.
///
/// `address` is the buffer's, `length` in bytes, `offset` in bytes from the start of the file. A
/// number whose alignment is unknown is not checked. A length of zero is aligned.
///
/// # Errors
/// [`Misaligned`] names the first of address, length and offset that is wrong.
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
        // A zero here would be "no direct I/O" taken for an alignment; probing never lets one out.
        assert!(needed_bytes > 0, "an alignment of zero bytes reached the check of a transfer");
        if !value.is_multiple_of(u64::from(needed_bytes)) {
            return Err(Misaligned { part, value, needed_bytes, write, source_of_need: alignment.source });
        }
    }
    Ok(())
}

/// The greatest multiple of `multiple` that is not above `value`.
///
/// # Panics
/// If `multiple` is zero.
pub const fn round_down(value: u64, multiple: u64) -> u64 {
    value - value % multiple
}

/// The least multiple of `multiple` that is not below `value`, or [`None`] if it exceeds `u64`.
///
/// # Panics
/// If `multiple` is zero.
pub const fn round_up(value: u64, multiple: u64) -> Option<u64> {
    match value % multiple {
        0 => Some(value),
        rest => value.checked_add(multiple - rest),
    }
}
