//! The content of written blocks: each sector states where it belongs.
//!
//! | bytes of a sector | content |
//! |---|---|
//! | 0..8 | [`MAGIC`] |
//! | 8..16 | the run |
//! | 16..24 | the number of the sector on the disk |
//! | 24..28 | the generation: how often this run wrote the block before |
//! | 28..32 | zero |
//! | 32..40 | XXH3 of the rest of the sector |
//! | 40..512 | random bytes, from run, block and generation |
//!
//! Integers are little-endian. No two sectors are equal, and none can be compressed, so a disk that deduplicates or
//! compresses stores each in full. A stamp in each sector finds a block that is torn, and one that is shifted by less than a
//! block: a disk may wrap at a size that is no multiple of [`BLOCK_BYTES`].

use crate::sector::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES, field, is_sealed, seal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::Range;
use trueio_model::mix64;

const MAGIC: [u8; 8] = *b"trueioCP";
const HASH: Range<usize> = 32..40;

/// The content that a run writes.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// The number of the run.
    pub run: u64,
}

/// What a block holds when it is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// What was written.
    Intact,
    /// Zeros only.
    Zeros,
    /// An earlier generation, or the content of an earlier run.
    Older,
    /// Sectors that this run wrote elsewhere: the distance from where they were read to where they belong, in sectors.
    Elsewhere {
        /// Absolute distance, in sectors.
        distance_sectors: u64,
    },
    /// Something else.
    Changed,
}

impl Pattern {
    /// Fills `data` with the content of a block.
    ///
    /// # Panics
    /// If `data` is not a block.
    pub fn fill(&self, block: u64, generation: u32, data: &mut [u8]) {
        assert_eq!(data.len(), BLOCK_BYTES);
        let seed = mix64(self.run ^ mix64(block ^ mix64(u64::from(generation))));
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(data);
        for (index, sector) in (0..).zip(data.chunks_exact_mut(SECTOR_BYTES)) {
            let number = block * BLOCK_SECTORS + index;
            sector[..8].copy_from_slice(&MAGIC);
            sector[8..16].copy_from_slice(&self.run.to_le_bytes());
            sector[16..24].copy_from_slice(&number.to_le_bytes());
            sector[24..28].copy_from_slice(&generation.to_le_bytes());
            sector[28..32].fill(0);
            seal(sector, HASH);
        }
    }

    /// Returns what a block that was read holds, compared with what was written last.
    ///
    /// # Panics
    /// If `data` is not a block.
    pub fn examine(&self, block: u64, generation: u32, data: &[u8]) -> Content {
        assert_eq!(data.len(), BLOCK_BYTES);
        let mut worst = Content::Intact;
        for (index, sector) in (0..).zip(data.chunks_exact(SECTOR_BYTES)) {
            let content = match self.examine_sector(block * BLOCK_SECTORS + index, generation, sector) {
                // Zeros in a part of a block only are not what zeros in a whole one are.
                Content::Zeros if data.iter().any(|&byte| byte != 0) => Content::Changed,
                content => content,
            };
            worst = match (worst, content) {
                // A stamp of another sector shows most: how the disk maps.
                (Content::Elsewhere { .. }, _) => worst,
                (_, Content::Elsewhere { .. }) | (Content::Intact, _) => content,
                (worst, Content::Intact) => worst,
                (worst, content) if worst == content => worst,
                _ => Content::Changed,
            };
        }
        worst
    }

    fn examine_sector(&self, number: u64, generation: u32, sector: &[u8]) -> Content {
        if sector.iter().all(|&byte| byte == 0) {
            return Content::Zeros;
        }
        let field = |from| field(sector, from);
        if sector[..8] != MAGIC || !is_sealed(sector, HASH) {
            return Content::Changed;
        }
        let (run, found) = (field(8), field(16));
        match (run == self.run, found == number) {
            (false, _) => Content::Older,
            (true, false) => Content::Elsewhere { distance_sectors: found.abs_diff(number) },
            (true, true) if field(24) == u64::from(generation) => Content::Intact,
            (true, true) => Content::Older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pattern: Pattern, block: u64, generation: u32) -> Vec<u8> {
        let mut data = vec![0; BLOCK_BYTES];
        pattern.fill(block, generation, &mut data);
        data
    }

    #[test]
    fn a_block_is_told_apart_from_zeros_others_older_ones_and_garbage() {
        let pattern = Pattern { run: 7 };
        let data = written(pattern, 100, 1);
        assert_eq!(pattern.examine(100, 1, &data), Content::Intact);
        assert_eq!(pattern.examine(100, 2, &data), Content::Older);
        assert_eq!(pattern.examine(60, 1, &data), Content::Elsewhere { distance_sectors: 320 });
        assert_eq!(Pattern { run: 8 }.examine(100, 1, &data), Content::Older);
        assert_eq!(pattern.examine(100, 1, &vec![0; BLOCK_BYTES]), Content::Zeros);
        assert_eq!(pattern.examine(100, 1, &vec![0xff; BLOCK_BYTES]), Content::Changed);
        for bit in [0, 8 * 40, 8 * 4095] {
            let mut other = data.clone();
            other[bit / 8] ^= 1;
            assert_eq!(pattern.examine(100, 1, &other), Content::Changed, "bit {bit}");
        }
    }

    /// Goal: a torn block is not taken for an intact one, and one that is shifted by sectors shows by how many.
    #[test]
    fn torn_and_shifted_blocks_are_found() {
        let pattern = Pattern { run: 7 };
        let [old, new] = [0, 1].map(|generation| written(pattern, 5, generation));
        let torn = [&new[..512], &old[512..]].concat();
        assert_eq!(pattern.examine(5, 1, &torn), Content::Older);
        let holed = [&new[..3584], &[0; 512]].concat();
        assert_eq!(pattern.examine(5, 1, &holed), Content::Changed);
        let two = [written(pattern, 5, 0), written(pattern, 6, 0)].concat();
        assert_eq!(pattern.examine(9, 0, &two[1536..][..BLOCK_BYTES]), Content::Elsewhere { distance_sectors: 29 });
    }

    /// Goal: a disk cannot store the blocks in less space.
    /// Method: no two sectors of many blocks and generations share 16 bytes after the stamp.
    #[test]
    fn no_two_sectors_share_content() {
        let pattern = Pattern { run: 7 };
        let mut seen = std::collections::BTreeSet::new();
        for (block, generation) in (0..64).flat_map(|block| [(block, 0), (block, 1)]) {
            for piece in written(pattern, block, generation).chunks(SECTOR_BYTES).flat_map(|s| s[40..].chunks_exact(16))
            {
                assert!(seen.insert(piece.to_vec()), "block {block}");
            }
        }
    }
}
