//! Proof that a block read back is the block that was written.
//!
//! Every written block begins with a header that names what it is and where it belongs, and a
//! checksum over the rest:
//!
//! | bytes  | field      | meaning                                                            |
//! |--------|------------|--------------------------------------------------------------------|
//! |  0..8  | `magic`    | `b"TRUEIO\0\x01"`; the last byte is the version                    |
//! |  8..16 | `run`      | a random number of the run and worker: whose write it was          |
//! | 16..24 | `offset`   | where the block was meant to go, in bytes                          |
//! | 24..32 | `sequence` | the write's number within its worker, from 1                       |
//! | 32..36 | `length`   | the block's length, in bytes                                       |
//! | 36..40 | `kind`     | 1: CRC-32C, 2: XXH3 (64 bits), …: the index in [`Checksum::ALL`]   |
//! | 40..48 | `checksum` | over bytes 0..40 and 48..length; 0 if the kind has none            |
//!
//! Little-endian. A wrong place shows by `offset`, an old write by `sequence`, a foreign one by
//! `run`, torn or rotten data by the checksum.

mod block;
mod digest;

pub use block::BlockSeal;

use crate::request::Request;
use std::ops::Range;
use trueio_model::{BlockPart, Checksum, VerifyFailure};

/// Bytes of the header; the smallest block that can be verified.
pub const BLOCK_HEADER_BYTES: usize = 48;

/// The ending of a file that holds what a block should.
pub(crate) const EXPECTED: &str = "expected";

const MAGIC: [u8; 8] = *b"TRUEIO\0\x01";

/// The header of a verified block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Whose write it was; 0 when comparing: anybody's.
    pub run: u64,
    /// Where it was meant to go, in bytes.
    pub offset: u64,
    /// The write's number, from 1.
    pub sequence: u64,
    /// The block's length, in bytes.
    pub length: u32,
    /// The checksum's kind.
    pub checksum: Checksum,
}

fn word(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"))
}

/// The checksum that belongs into the header of `block`.
fn digest_of(block: &[u8], kind: Checksum) -> u64 {
    digest::digest(kind, [&block[..40], &block[BLOCK_HEADER_BYTES..]])
}

/// Returns a checksum of bytes: of a longer one the first eight bytes; 0 of kinds without one.
pub fn checksum(kind: Checksum, bytes: &[u8]) -> u64 {
    digest::digest(kind, [bytes, &[]])
}

/// The checksum's number in the header.
fn kind_number(checksum: Checksum) -> u32 {
    // An index in the list is never reused.
    Checksum::ALL.iter().zip(1..).find(|(kind, _)| **kind == checksum).map_or(0, |(_, number)| number)
}

/// How a block differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What was expected, in words.
    pub expected: String,
    /// What was found, in words.
    pub found: String,
    /// What differs.
    pub part: BlockPart,
    /// The number that was found, and the one that was expected: of the header, the checksum, or the first byte that differs
    /// from the pattern.
    pub numbers: Option<[u64; 2]>,
    /// The byte of the block at which it differs from the pattern.
    pub pattern_byte: Option<u64>,
    /// The piece of the block that differs, one of `verify_interval`; empty: the whole block.
    pub piece: Range<usize>,
}

impl Difference {
    pub(crate) fn new(expected: String, found: String) -> Self {
        Self { expected, found, part: BlockPart::Content, numbers: None, pattern_byte: None, piece: 0..0 }
    }

    fn of_numbers(part: BlockPart, numbers: [u64; 2], expected: String, found: String) -> Self {
        Self { part, numbers: Some(numbers), ..Self::new(expected, found) }
    }
}

impl BlockHeader {
    /// Writes the header, and the checksum over what the block holds, into `block`.
    ///
    /// # Panics
    /// If the block is shorter than [`BLOCK_HEADER_BYTES`]; the plan refuses that.
    pub fn seal(&self, block: &mut [u8]) {
        assert!(block.len() >= BLOCK_HEADER_BYTES && block.len() == self.length as usize);
        block[..8].copy_from_slice(&MAGIC);
        block[8..16].copy_from_slice(&self.run.to_le_bytes());
        block[16..24].copy_from_slice(&self.offset.to_le_bytes());
        block[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        block[32..36].copy_from_slice(&self.length.to_le_bytes());
        block[36..40].copy_from_slice(&kind_number(self.checksum).to_le_bytes());
        let sum = digest_of(block, self.checksum);
        block[40..48].copy_from_slice(&sum.to_le_bytes());
    }

    /// Compares a block that was read with what should stand there. The sequence must be at least
    /// this one's: a later write to the same offset is accepted, too.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&self, block: &[u8]) -> Result<(), Difference> {
        if block.len() != self.length as usize {
            return Err(Difference::of_numbers(
                BlockPart::Length,
                [block.len() as u64, u64::from(self.length)],
                format!("a block of {} bytes", self.length),
                format!("{} bytes", block.len()),
            ));
        }
        if block[..8] != MAGIC {
            let found = if block.iter().all(|&b| b == 0) {
                "zeros only: the write never arrived, or was lost".to_owned()
            } else {
                format!("no trueio header; the block begins {:02x?}", &block[..16.min(block.len())])
            };
            return Err(Difference::of_numbers(
                BlockPart::Magic,
                [magic_number(block), magic_number(&MAGIC)],
                format!("the header of write {} to offset {}", self.sequence, self.offset),
                found,
            ));
        }
        let (run, offset, sequence) = (word(block, 8), word(block, 16), word(block, 24));
        let length = word(block, 32) as u32;
        if self.run != 0 && run != self.run {
            return Err(Difference::of_numbers(
                BlockPart::Run,
                [run, self.run],
                format!("a write of this worker (run {:016x})", self.run),
                format!("a write of run {run:016x}, number {sequence}, meant for offset {offset}"),
            ));
        }
        if offset != self.offset {
            return Err(Difference::of_numbers(
                BlockPart::Offset,
                [offset, self.offset],
                format!("the block of offset {}", self.offset),
                format!("the block of offset {offset} (write {sequence}): it was written or read at the wrong place"),
            ));
        }
        if sequence < self.sequence {
            return Err(Difference::of_numbers(
                BlockPart::Sequence,
                [sequence, self.sequence],
                format!("write {} or a later one", self.sequence),
                format!("write {sequence}: an older block, the later write was lost"),
            ));
        }
        if length != self.length {
            return Err(Difference::of_numbers(
                BlockPart::Length,
                [u64::from(length), u64::from(self.length)],
                format!("a block of {} bytes", self.length),
                format!("a header for {length} bytes"),
            ));
        }
        let kind = word(block, 36) as u32;
        if kind != kind_number(self.checksum) {
            return Err(Difference::of_numbers(
                BlockPart::Checksum,
                [u64::from(kind), u64::from(kind_number(self.checksum))],
                format!("a checksum of kind {} ({})", kind_number(self.checksum), self.checksum.name()),
                format!("kind {kind}: the block was written with another `verify`"),
            ));
        }
        let (stored, computed) = (word(block, 40), digest_of(block, self.checksum));
        if stored != computed {
            return Err(Difference::of_numbers(
                BlockPart::Content,
                [computed, stored],
                format!("checksum {}, as in the header of write {sequence}", self.checksum.hex(stored)),
                format!("checksum {}: the block's bytes are not those that were written", self.checksum.hex(computed)),
            ));
        }
        Ok(())
    }
}

/// True if the block begins with a header of `run`: it was written by that worker and can be compared.
fn was_written_by(block: &[u8], run: u64) -> bool {
    block[..8] == MAGIC && word(block, 8) == run
}

/// Returns the first two bytes of a header as a number.
fn magic_number(header: &[u8]) -> u64 {
    header.iter().take(2).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the record of a difference.
pub(crate) fn failure(path: &str, request: &Request, difference: Difference) -> VerifyFailure {
    let Difference { expected, found, part, numbers, pattern_byte, .. } = difference;
    let (offset, length) = (request.offset, u64::from(request.length));
    VerifyFailure { path: path.to_owned(), offset, length, expected, found, part, numbers, pattern_byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(kind: Checksum) -> (BlockHeader, Vec<u8>) {
        let header = BlockHeader { run: 7, offset: 8192, sequence: 3, length: 4096, checksum: kind };
        let mut block: Vec<u8> = (0..4096u32).map(|i| i as u8).collect();
        header.seal(&mut block);
        (header, block)
    }

    #[test]
    fn an_honest_block_passes_and_each_lie_is_named() {
        for kind in Checksum::ALL.into_iter().filter(|kind| kind.has_header() && !kind.compares_pattern()) {
            let (header, block) = sealed(kind);
            assert_eq!(header.compare(&block), Ok(()));
            let mut rotten = block.clone();
            rotten[4095] ^= 1;
            let found = header.compare(&rotten);
            if kind == Checksum::Meta {
                assert_eq!(found, Ok(()), "it has no checksum");
            } else {
                assert!(found.unwrap_err().found.contains("not those that were written"), "{}", kind.name());
            }
            assert!(header.compare(&vec![0; 4096]).unwrap_err().found.contains("never arrived"));
            assert!(BlockHeader { offset: 0, ..header }.compare(&block).unwrap_err().found.contains("wrong place"));
            assert!(BlockHeader { sequence: 4, ..header }.compare(&block).unwrap_err().found.contains("older block"));
            assert_eq!(BlockHeader { sequence: 2, ..header }.compare(&block), Ok(()));
            assert!(BlockHeader { run: 8, ..header }.compare(&block).is_err());
            assert!(header.compare(&block[..512]).is_err());
            let other = if kind == Checksum::Crc32c { Checksum::Xxhash } else { Checksum::Crc32c };
            let foreign = BlockHeader { checksum: other, ..header };
            let Difference { expected, found, .. } = foreign.compare(&block).unwrap_err();
            assert!(
                expected.ends_with(&format!("({})", other.name())) && found.contains("another `verify`"),
                "{expected}"
            );
        }
    }
}
