//! Follows ranges of a file down to its disks: by the chunk map of a btrfs, and by the hops that layers reported.
//!
//! A read needs each byte from one place, on any mirror. A write needs all places that the layers named.
//!
//! Cannot see: which of two equal I/Os in flight at once a hop belongs to; their places are the same.

use super::chunks::ChunkMap;
use super::format::Kind;
use super::layers::{DEPTH_MAX, Layers};
use super::piece::Piece;
use super::window::{Remap, Window};
use std::sync::Arc;

/// The addresses in which the extents of a file are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressSpace {
    /// Bytes of a block device, given by its number: a disk, or a device that passes I/O on.
    Device(u32),
    /// btrfs' own.
    Btrfs(Arc<ChunkMap>),
}

/// The maximum number of events between the hop onto a partition and that from it.
const PARTITION_HOP_EVENTS_MAX: usize = 64;

/// The hops of a window, and the devices between which they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hops<'a> {
    pub(crate) layers: &'a Layers,
    pub(crate) window: &'a Window,
}

impl Hops<'_> {
    /// Returns where ranges are on disks, as far as layers passed I/O of this kind on between two times.
    ///
    /// # Errors
    /// The reason why it is unknown.
    pub(crate) fn pieces(
        &self,
        space: &AddressSpace,
        ranges: &[(u64, u64)],
        kind: Kind,
        span: (u64, u64),
    ) -> Result<Vec<Piece>, String> {
        let mut found = Vec::new();
        for &(begin, end) in ranges {
            match space {
                AddressSpace::Device(device) => {
                    let whole = Piece { from: begin, length: end - begin, device: *device, begin };
                    self.descend(whole, kind, span, 0, &mut found)?;
                }
                AddressSpace::Btrfs(chunks) => {
                    let pieces = chunks.pieces(begin, end);
                    for piece in pieces.ok_or("the chunk map of the btrfs has gaps")? {
                        self.descend(piece, kind, span, 0, &mut found)?;
                    }
                }
            }
        }
        Ok(found)
    }

    fn descend(
        &self,
        at: Piece,
        kind: Kind,
        span: (u64, u64),
        depth: u32,
        found: &mut Vec<Piece>,
    ) -> Result<(), String> {
        if !self.layers.passes_on(at.device) {
            if !found.contains(&at) {
                found.push(at);
            }
            return Ok(());
        }
        let name = self.layers.name_of(at.device);
        if depth > DEPTH_MAX {
            return Err(format!("{name} passes I/O on in a circle"));
        }
        let remaps = &self.window.remaps;
        if !remaps.iter().any(|remap| remap.from_device == at.device) {
            return Err(format!("{name} does not report where it passes I/O on to"));
        }
        let first = remaps.partition_point(|remap| remap.at_ns < span.0);
        for (index, remap) in remaps.iter().enumerate().skip(first).take_while(|(_, remap)| remap.at_ns <= span.1) {
            if remap.kind != kind {
                continue;
            }
            if let Some(below) = at.passed_on(remap) {
                self.descend(self.through_partition(index, below), kind, (remap.at_ns, span.1), depth + 1, found)?;
            }
        }
        Ok(())
    }

    /// If a hop led onto a partition, its sector counts from there; the hop from the partition follows.
    fn through_partition(&self, index: usize, piece: Piece) -> Piece {
        let is_of_disk = |remap: &Remap| self.layers.partitions.contains(&(remap.from_device, piece.device));
        if !self.layers.partitions.iter().any(|(_, disk)| *disk == piece.device) {
            return piece;
        }
        let later = self.window.remaps[index + 1..].iter().take(PARTITION_HOP_EVENTS_MAX);
        let same_thread = later.filter(|remap| remap.process == self.window.remaps[index].process);
        let mut passed = same_thread.filter(|remap| is_of_disk(remap)).filter_map(|remap| {
            // The piece carries the number of the disk, the hop that of the partition.
            Piece { device: remap.from_device, ..piece }.passed_on(remap)
        });
        passed.next().unwrap_or(piece)
    }

    /// Returns the ranges of devices below that the window's hops led to from ranges of devices above, given as device, begin and
    /// end, sorted and disjoint.
    pub(crate) fn below(&self, above: &[(u32, u64, u64)]) -> Vec<(u32, u64, u64)> {
        let mut found: Vec<(u32, u64, u64)> = Vec::new();
        // Of those, on devices that pass on again. A hop comes before those below it.
        let mut passing: Vec<(u32, u64, u64)> = Vec::new();
        for (index, remap) in self.window.remaps.iter().enumerate() {
            let end = remap.from_begin + remap.length;
            let next = above.partition_point(|range| (range.0, range.1) < (remap.from_device, end));
            let reaches =
                |range: &(u32, u64, u64)| range.0 == remap.from_device && range.1 < end && remap.from_begin < range.2;
            if !above[..next].last().is_some_and(reaches) && !passing.iter().any(reaches) {
                continue;
            }
            let whole = Piece { from: 0, length: remap.length, device: remap.device, begin: remap.begin };
            let below = self.through_partition(index, whole);
            let place = (below.device, below.begin, below.end());
            found.push(place);
            if self.layers.passes_on(below.device) {
                passing.push(place);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::layers::PassingDevice;

    const TOP: u32 = 100;
    const MIDDLE: u32 = 50;
    const DISK: u32 = 8;
    const PARTITION: u32 = 9;
    const OTHER: u32 = 10;

    fn remap(at_ns: u64, kind: Kind, from: (u32, u64), length: u64, to: (u32, u64)) -> Remap {
        Remap { at_ns, kind, process: 7, from_device: from.0, from_begin: from.1, length, device: to.0, begin: to.1 }
    }

    fn layers() -> Layers {
        let passing = |device, name: &str| PassingDevice { name: name.to_owned(), device };
        Layers {
            passing: vec![passing(TOP, "dm-0"), passing(MIDDLE, "md0")],
            partitions: vec![(PARTITION, DISK)],
            ..Layers::default()
        }
    }

    fn window(remaps: Vec<Remap>) -> Window {
        Window { remaps, ..Window::default() }
    }

    /// Goal: a logical volume on an array of a partition and a disk is followed to both, and each part keeps its place.
    /// Method: hops as Linux 6.12 reported them: that onto the partition names its disk with the partition's sector.
    #[test]
    fn a_range_is_followed_through_layers_and_partitions_to_every_mirror() {
        let hops = vec![
            remap(10, Kind::Write, (TOP, 4096), 8192, (MIDDLE, 1_004_096)),
            remap(11, Kind::Write, (MIDDLE, 1_004_096), 8192, (DISK, 2_004_096)),
            remap(12, Kind::Write, (PARTITION, 2_004_096), 8192, (DISK, 3_004_096)),
            remap(13, Kind::Write, (MIDDLE, 1_004_096), 8192, (OTHER, 2_004_096)),
            // Another I/O, later.
            remap(99, Kind::Write, (TOP, 4096), 8192, (MIDDLE, 0)),
        ];
        let (layers, window) = (layers(), window(hops));
        let hops = Hops { layers: &layers, window: &window };
        let space = AddressSpace::Device(TOP);
        let found = hops.pieces(&space, &[(8192, 12_288)], Kind::Write, (5, 50)).expect("known");
        let piece = |device, begin| Piece { from: 8192, length: 4096, device, begin };
        assert_eq!(found, [piece(DISK, 3_008_192), piece(OTHER, 2_008_192)]);
        // Nothing was passed on for it: that is known, and there is no place.
        assert_eq!(hops.pieces(&space, &[(8192, 12_288)], Kind::Read, (5, 50)), Ok(vec![]));
        let below = hops.below(&[(TOP, 8192, 12_288)]);
        // The whole I/O, of which a part is in the range.
        assert!(below.contains(&(DISK, 3_004_096, 3_012_288)) && below.contains(&(OTHER, 2_004_096, 2_012_288)));
        // A disk needs no hop.
        let plain = hops.pieces(&AddressSpace::Device(OTHER), &[(0, 4096)], Kind::Read, (5, 50)).expect("known");
        assert_eq!(plain, [Piece { from: 0, length: 4096, device: OTHER, begin: 0 }]);
    }

    #[test]
    fn a_layer_without_any_hop_is_unknown_and_not_missing() {
        let (layers, window) = (layers(), window(vec![remap(10, Kind::Read, (TOP, 0), 4096, (MIDDLE, 0))]));
        let hops = Hops { layers: &layers, window: &window };
        let found = hops.pieces(&AddressSpace::Device(TOP), &[(0, 4096)], Kind::Read, (5, 50));
        assert_eq!(found, Err("md0 does not report where it passes I/O on to".to_owned()));
    }
}
