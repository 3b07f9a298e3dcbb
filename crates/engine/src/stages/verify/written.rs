//! Which write came last to each block of each zone: what a job in zones compares at its end.
//!
//! Eight bytes a block of each zone that was written, kept until the zone is reset.

use crate::zones::ZoneMap;
use std::collections::{BTreeMap, TryReserveError};

/// The blocks of the zones that a worker wrote, by file and zone.
#[derive(Debug)]
pub(super) struct Written {
    block_bytes: u64,
    zones: BTreeMap<(u16, u32), Blocks>,
}

#[derive(Debug)]
struct Blocks {
    /// The first byte that a block can begin with.
    from: u64,
    /// The number of the last write to each block from there on; 0: none.
    sequences: Vec<u64>,
}

impl Written {
    pub(super) fn new(block_bytes: u64) -> Self {
        Self { block_bytes, zones: BTreeMap::new() }
    }

    /// # Errors
    /// If there is no memory for it.
    pub(super) fn remember(
        &mut self,
        map: &ZoneMap,
        file: u16,
        offset: u64,
        sequence: u64,
    ) -> Result<(), TryReserveError> {
        let (zone, block) = (map.number_at(offset), self.block_bytes);
        let start = u64::from(zone) * map.zone_bytes();
        let from = start + (offset - start) % block;
        let blocks = self.zones.entry((file, zone)).or_insert(Blocks { from, sequences: Vec::new() });
        if blocks.from != from {
            // A write that failed moved the pointer by a part of a block. The run failed, too: nothing is compared.
            (blocks.from, blocks.sequences) = (from, Vec::new());
        }
        let at = ((offset - from) / block) as usize;
        if at >= blocks.sequences.len() {
            let most = (map.zone_bytes() / block) as usize;
            blocks.sequences.try_reserve_exact(most.max(at + 1) - blocks.sequences.len())?;
            blocks.sequences.resize(at + 1, 0);
        }
        blocks.sequences[at] = sequence;
        Ok(())
    }

    /// The zone holds nothing any more.
    pub(super) fn forget(&mut self, file: u16, zone: u32) {
        self.zones.remove(&(file, zone));
    }

    /// File, offset and number of each write that was the last to its offset: zone by zone, in the order of offsets.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u16, u64, u64)> + '_ {
        let block_bytes = self.block_bytes;
        self.zones.iter().flat_map(move |((file, _), blocks)| {
            let offsets = (0..).map(move |at| blocks.from + at * block_bytes);
            let all = offsets.zip(&blocks.sequences).filter(|(_, sequence)| **sequence > 0);
            all.map(move |(offset, sequence)| (*file, offset, *sequence))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn the_last_write_to_each_block_is_known_until_its_zone_is_reset() {
        // Blocks of 12 KiB, five of them in a zone of 64 KiB.
        let map = ZoneMap::emulated(64 * KIB, 64 * KIB, 256 * KIB);
        let mut written = Written::new(12 * KIB);
        let write = |written: &mut Written, file, offset| {
            let sequence = written.blocks().map(|block| block.2).max().unwrap_or(0) + 1;
            written.remember(&map, file, offset, sequence).expect("there is memory");
        };
        for (file, offset) in [(1, 64), (0, 64), (0, 76), (0, 112), (0, 64), (0, 12)] {
            write(&mut written, file, offset * KIB);
        }
        let found = |written: &Written| -> Vec<_> {
            written.blocks().map(|(file, offset, sequence)| (file, offset / KIB, sequence)).collect()
        };
        assert_eq!(found(&written), [(0, 12, 6), (0, 64, 5), (0, 76, 3), (0, 112, 4), (1, 64, 1)]);
        written.forget(0, 1);
        assert_eq!(found(&written), [(0, 12, 6), (1, 64, 1)]);
        // A device's pointer that was no multiple of the block when the run began.
        write(&mut written, 0, 68 * KIB);
        write(&mut written, 0, 80 * KIB);
        assert_eq!(found(&written)[1..3], [(0, 68, 7), (0, 80, 8)]);
        written.forget(0, 0);
        written.forget(1, 1);
        assert_eq!(found(&written), [(0, 68, 7), (0, 80, 8)]);
    }
}
