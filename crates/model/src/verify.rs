//! What of a plan is about reading back and comparing.

use serde::{Deserialize, Serialize};

/// Reading back and comparing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// The checksum in each header.
    pub checksum: Checksum,
    /// From one header to the next, in bytes; 0: one header a block.
    #[serde(default)]
    pub interval_bytes: u64,
    /// How far behind its place the header stands, exchanged with the data there, in bytes.
    #[serde(default)]
    pub header_offset_bytes: u64,
    /// What fills the blocks; `None`: the job's content.
    #[serde(default)]
    pub pattern: Option<BlockPattern>,
    /// From one beginning of the pattern to the next, in bytes; 0: it begins with the block and goes on to its end.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub pattern_interval_bytes: u64,
    /// Writes after which some are read back at once; 0: all at the end.
    #[serde(default)]
    pub backlog: u64,
    /// How many are then read back; 0: all of them.
    #[serde(default)]
    pub backlog_batch: u64,
    /// Threads that compare; 0: the worker does.
    #[serde(default)]
    pub threads: u32,
    /// What was written is read back at the job's end.
    #[serde(default = "yes")]
    pub reads_back: bool,
    /// Nothing is written: what the job would write is read and compared.
    #[serde(default)]
    pub is_offline: bool,
    /// The first block that differs ends the job.
    #[serde(default)]
    pub stops_at_first: bool,
    /// Blocks that differ are kept in files.
    #[serde(default)]
    pub dumps: bool,
    /// How far the job came is kept in a file.
    #[serde(default)]
    pub saves_state: bool,
    /// The job compares as far as that file says.
    #[serde(default)]
    pub loads_state: bool,
    /// Only what was written before the last sync call that succeeded is compared: nothing else was promised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synced_only: bool,
    /// Blocks that were written, trimmed, and compared with zeros.
    #[serde(default)]
    pub trim: Option<TrimVerify>,
}

fn yes() -> bool {
    true
}

impl Verify {
    /// One header a block, compared at the end.
    pub fn new(checksum: Checksum) -> Self {
        Self {
            checksum,
            interval_bytes: 0,
            header_offset_bytes: 0,
            pattern: None,
            pattern_interval_bytes: 0,
            backlog: 0,
            backlog_batch: 0,
            threads: 0,
            reads_back: true,
            is_offline: false,
            stops_at_first: false,
            dumps: false,
            saves_state: false,
            loads_state: false,
            synced_only: false,
            trim: None,
        }
    }
}

/// Bytes that fill a block, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockPattern {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where in them the block's offset stands, as eight bytes, the lowest first.
    pub offset_places: Vec<u32>,
}

/// Written blocks that are trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimVerify {
    /// Percentage of the written blocks, 1 to 100.
    pub percent: u8,
    /// Writes after which trims follow.
    pub backlog: u64,
    /// How many of them are trimmed in one go; 0: all that are to be.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub batch: u64,
    /// Trimmed blocks must read as zeros; otherwise they are not looked at.
    pub is_zero: bool,
}

/// Checksums of verified blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// CRC-32C.
    Crc32c,
    /// XXH3, 64 bits.
    Xxhash,
    /// MD5, its first 64 bits, as of all that are longer.
    Md5,
    /// CRC-64 (XZ).
    Crc64,
    /// CRC-32.
    Crc32,
    /// CRC-16 (ARC).
    Crc16,
    /// CRC-7 (MMC).
    Crc7,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// No checksum: the header alone.
    Meta,
    /// No header: the pattern, whole.
    Pattern,
    /// Header and pattern.
    PatternHdr,
    /// Nothing is compared.
    Null,
}

impl Checksum {
    /// All of them, in the order of the documentation.
    pub const ALL: [Checksum; 18] = [
        Checksum::Crc32c,
        Checksum::Xxhash,
        Checksum::Md5,
        Checksum::Crc64,
        Checksum::Crc32,
        Checksum::Crc16,
        Checksum::Crc7,
        Checksum::Sha1,
        Checksum::Sha256,
        Checksum::Sha512,
        Checksum::Sha3_224,
        Checksum::Sha3_256,
        Checksum::Sha3_384,
        Checksum::Sha3_512,
        Checksum::Meta,
        Checksum::Pattern,
        Checksum::PatternHdr,
        Checksum::Null,
    ];

    /// What job files call it.
    pub fn name(self) -> &'static str {
        match self {
            Checksum::Crc32c => "crc32c",
            Checksum::Xxhash => "xxhash",
            Checksum::Md5 => "md5",
            Checksum::Crc64 => "crc64",
            Checksum::Crc32 => "crc32",
            Checksum::Crc16 => "crc16",
            Checksum::Crc7 => "crc7",
            Checksum::Sha1 => "sha1",
            Checksum::Sha256 => "sha256",
            Checksum::Sha512 => "sha512",
            Checksum::Sha3_224 => "sha3-224",
            Checksum::Sha3_256 => "sha3-256",
            Checksum::Sha3_384 => "sha3-384",
            Checksum::Sha3_512 => "sha3-512",
            Checksum::Meta => "meta",
            Checksum::Pattern => "pattern",
            Checksum::PatternHdr => "pattern_hdr",
            Checksum::Null => "null",
        }
    }

    /// True if each block begins with a header.
    pub fn has_header(self) -> bool {
        !matches!(self, Checksum::Pattern | Checksum::Null)
    }

    /// True if the header carries a checksum of the data.
    pub fn has_checksum(self) -> bool {
        self.has_header() && !matches!(self, Checksum::Meta | Checksum::PatternHdr)
    }

    /// True if a block is compared with the pattern that fills it.
    pub fn compares_pattern(self) -> bool {
        matches!(self, Checksum::Pattern | Checksum::PatternHdr)
    }
}
