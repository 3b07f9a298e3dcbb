//! The verification settings of a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How written blocks are read back and compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verify {
    /// The checksum in each header.
    pub checksum: Checksum,
    /// Distance from one header to the next, in bytes; 0: one header per block.
    #[serde(default)]
    pub interval_bytes: u64,
    /// Distance of the header from its usual offset, in bytes; it is exchanged with the data there.
    #[serde(default)]
    pub header_offset_bytes: u64,
    /// The content of the blocks; `None`: the job's content.
    #[serde(default)]
    pub pattern: Option<BlockPattern>,
    /// Distance from one start of the pattern to the next, in bytes; 0: it starts once per block.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub pattern_interval_bytes: u64,
    /// Number of writes after which some are read back at once; 0: all at the end.
    #[serde(default)]
    pub backlog: u64,
    /// Number of blocks that are then read back; 0: all.
    #[serde(default)]
    pub backlog_batch: u64,
    /// Threads that compare; 0: the worker compares.
    #[serde(default)]
    pub threads: u32,
    /// Written blocks are read back at the job's end.
    #[serde(default = "yes")]
    pub reads_back: bool,
    /// What each of the job's loops wrote is read back when the loop ends, not only what the last one did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_loop: bool,
    /// Nothing is written: the blocks that the job would write are read and compared.
    #[serde(default)]
    pub is_offline: bool,
    /// The first block that differs ends the job.
    #[serde(default)]
    pub stops_at_first: bool,
    /// Blocks that differ are kept in files.
    #[serde(default)]
    pub dumps: bool,
    /// The directory of these files; `None`: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump_directory: Option<String>,
    /// The job's progress is saved to a file.
    #[serde(default)]
    pub saves_state: bool,
    /// The job compares the blocks that such a file lists as written.
    #[serde(default)]
    pub loads_state: bool,
    /// Only blocks written before the last successful sync call are compared, because only these must be durable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synced_only: bool,
    /// Written blocks that are trimmed and compared with zeros.
    #[serde(default)]
    pub trim: Option<TrimVerify>,
    /// Parallel jobs write to the same blocks in the same way: any of their writes is accepted, whichever came last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// The file of the state; `None`: one for each worker, named after the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_file: Option<String>,
}

fn yes() -> bool {
    true
}

impl Verify {
    /// Returns true if each piece of `interval_bytes` is compared by its own header, so that blocks of several sizes may
    /// overwrite each other in part.
    pub fn compares_pieces(&self) -> bool {
        self.interval_bytes > 0 && self.checksum.has_header() && !self.checksum.compares_pattern()
    }

    /// Returns true if two jobs write the same kind of blocks: one accepts those of the other.
    pub fn writes_like(&self, other: &Verify) -> bool {
        let kind = |verify: &Verify| (verify.checksum, verify.interval_bytes, verify.header_offset_bytes);
        let pattern = |verify: &Verify| (verify.pattern.clone(), verify.pattern_interval_bytes);
        kind(self) == kind(other) && pattern(self) == pattern(other)
    }

    /// One header per block, compared at the end.
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
            each_loop: false,
            is_offline: false,
            stops_at_first: false,
            dumps: false,
            dump_directory: None,
            saves_state: false,
            loads_state: false,
            synced_only: false,
            trim: None,
            is_shared: false,
            state_file: None,
        }
    }
}

/// Bytes that fill a block repeatedly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockPattern {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Positions in the pattern at which the block's offset is stored, as eight bytes, little-endian.
    pub offset_places: Vec<u32>,
}

/// Written blocks that are trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrimVerify {
    /// Percentage of the written blocks, 1 to 100.
    pub percent: u8,
    /// Writes after which trims follow.
    pub backlog: u64,
    /// How many of them are trimmed at once; 0: all.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub batch: u64,
    /// Trimmed blocks must read as zeros; otherwise they are not compared.
    pub is_zero: bool,
}

/// Checksums of verified blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// CRC-32C.
    Crc32c,
    /// XXH3, 64 bits.
    Xxhash,
    /// MD5, its first 64 bits, as with all longer checksums.
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
    /// Returns the kept bytes of a checksum, at most eight, in hexadecimal digits and in their order in memory, as fio prints them.
    pub fn hex(self, sum: u64) -> String {
        let width = match self {
            Checksum::Crc7 => 1,
            Checksum::Crc16 => 2,
            Checksum::Crc32 | Checksum::Crc32c => 4,
            _ => 8,
        };
        sum.to_le_bytes()[..width].iter().map(|byte| format!("{byte:02x}")).collect()
    }

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

    /// Returns the name in job files.
    pub const fn name(self) -> &'static str {
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
