//! Blocks and sectors, and the hash in the stamp of a sector.

use std::hash::Hasher;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// Size of a block, in bytes.
pub const BLOCK_BYTES: usize = 4096;
/// Size of a sector, in bytes.
pub const SECTOR_BYTES: usize = 512;
/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;

const _: () = assert!(BLOCK_BYTES.is_multiple_of(SECTOR_BYTES));

/// Writes the hash of a sector into its bytes `place`.
pub(crate) fn seal(sector: &mut [u8], place: Range<usize>) {
    let hash = hash_of(sector, &place);
    sector[place].copy_from_slice(&hash.to_le_bytes());
}

/// Returns true if the bytes `place` of a sector hold the hash of the others.
pub(crate) fn is_sealed(sector: &[u8], place: Range<usize>) -> bool {
    sector[place.clone()] == hash_of(sector, &place).to_le_bytes()
}

/// Returns a number of eight bytes of a sector.
pub(crate) fn field(sector: &[u8], from: usize) -> u64 {
    u64::from_le_bytes(sector[from..from + 8].try_into().expect("eight bytes"))
}

fn hash_of(sector: &[u8], place: &Range<usize>) -> u64 {
    let mut hash = XxHash3_64::new();
    hash.write(&sector[..place.start]);
    hash.write(&sector[place.end..]);
    hash.finish()
}
