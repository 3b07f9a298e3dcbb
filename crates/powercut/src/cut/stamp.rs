//! The content of the blocks of a power-cut test: each sector states which write it belongs to.
//!
//! | bytes of a sector | content |
//! |---|---|
//! | 0..8 | [`MAGIC`] |
//! | 8..16 | the run: one for each cut |
//! | 16..24 | the number of the sector in its region |
//! | 24..32 | the sequence number of the write, from 1 |
//! | 32..36 | the region |
//! | 36..40 | zero |
//! | 40..48 | XXH3 of the rest of the sector |
//! | 48..512 | random bytes, from run, region and sequence number |
//!
//! Integers are little-endian. A stamp in each sector finds a torn block; nothing in it can be compressed or deduplicated.

use crate::sector::{BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES, field, is_sealed, seal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::ops::Range;
use trueio_model::mix64;

const MAGIC: [u8; 8] = *b"trueioPC";
const HASH: Range<usize> = 40..48;

/// Writes and reads the stamps of one run.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// The number of the run.
    pub run: u64,
}

/// What a sector holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectorContent {
    /// What this write put there.
    Of {
        /// Its sequence number.
        sequence: u64,
    },
    /// Zeros only.
    Zeros,
    /// What an earlier run of this program wrote there.
    EarlierRun,
    /// What this run wrote elsewhere.
    Elsewhere,
    /// Something else.
    Other,
}

impl Stamp {
    /// Fills `data` with the block that the write `sequence` puts at `position` of a region.
    ///
    /// # Panics
    /// If `data` is not a block.
    pub fn fill(&self, region: u32, position: u64, sequence: u64, data: &mut [u8]) {
        assert_eq!(data.len(), BLOCK_BYTES);
        let seed = mix64(self.run ^ mix64(sequence ^ mix64(u64::from(region))));
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(data);
        for (number, sector) in (position * BLOCK_SECTORS..).zip(data.chunks_exact_mut(SECTOR_BYTES)) {
            sector[..8].copy_from_slice(&MAGIC);
            sector[8..16].copy_from_slice(&self.run.to_le_bytes());
            sector[16..24].copy_from_slice(&number.to_le_bytes());
            sector[24..32].copy_from_slice(&sequence.to_le_bytes());
            sector[32..36].copy_from_slice(&region.to_le_bytes());
            sector[36..40].fill(0);
            seal(sector, HASH);
        }
    }

    /// Returns what each sector of a block at `position` of a region holds.
    ///
    /// # Panics
    /// If `data` is not a block.
    pub fn examine(&self, region: u32, position: u64, data: &[u8]) -> [SectorContent; BLOCK_SECTORS as usize] {
        assert_eq!(data.len(), BLOCK_BYTES);
        std::array::from_fn(|index| {
            let sector = &data[index * SECTOR_BYTES..][..SECTOR_BYTES];
            self.examine_sector(region, position * BLOCK_SECTORS + index as u64, sector)
        })
    }

    fn examine_sector(&self, region: u32, number: u64, sector: &[u8]) -> SectorContent {
        if sector.iter().all(|&byte| byte == 0) {
            return SectorContent::Zeros;
        }
        let field = |from| field(sector, from);
        if sector[..8] != MAGIC || !is_sealed(sector, HASH) {
            return SectorContent::Other;
        }
        match (field(8) == self.run, field(16) == number && field(32) == u64::from(region)) {
            (false, _) => SectorContent::EarlierRun,
            (true, false) => SectorContent::Elsewhere,
            (true, true) => SectorContent::Of { sequence: field(24) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(run: u64, region: u32, position: u64, sequence: u64) -> Vec<u8> {
        let mut data = vec![0; BLOCK_BYTES];
        Stamp { run }.fill(region, position, sequence, &mut data);
        data
    }

    #[test]
    fn a_block_of_another_run_region_position_or_content_is_distinguished() {
        let data = written(7, 2, 100, 9);
        let of = |run, region, position| Stamp { run }.examine(region, position, &data)[3];
        assert_eq!(of(7, 2, 100), SectorContent::Of { sequence: 9 });
        assert_eq!(of(8, 2, 100), SectorContent::EarlierRun);
        assert_eq!(of(7, 3, 100), SectorContent::Elsewhere);
        assert_eq!(of(7, 2, 101), SectorContent::Elsewhere);
        assert_eq!(Stamp { run: 7 }.examine(2, 100, &[0; BLOCK_BYTES])[0], SectorContent::Zeros);
        assert_eq!(Stamp { run: 7 }.examine(2, 100, &[0xff; BLOCK_BYTES])[0], SectorContent::Other);
    }

    proptest! {
        /// Goal: a torn block is seen at each sector, and a bit that flips in any sector.
        #[test]
        fn every_sector_states_its_own_write(
            run: u64, region: u32, position in 0_u64..1 << 50, sequence in 1_u64..1 << 60, torn in 1_usize..8, bit in 0_usize..8 * BLOCK_BYTES,
        ) {
            let [old, new] = [sequence, sequence + 1].map(|sequence| written(run, region, position, sequence));
            let at = torn * SECTOR_BYTES;
            let found = Stamp { run }.examine(region, position, &[&new[..at], &old[at..]].concat());
            for (index, content) in found.into_iter().enumerate() {
                let sequence = if index < torn { sequence + 1 } else { sequence };
                prop_assert_eq!(content, SectorContent::Of { sequence });
            }
            let mut flipped = new;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = Stamp { run }.examine(region, position, &flipped);
            prop_assert_eq!(found[bit / 8 / SECTOR_BYTES], SectorContent::Other);
        }
    }
}
