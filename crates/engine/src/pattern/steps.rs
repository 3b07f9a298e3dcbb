//! Offsets that follow from the last one: parts of a random job that go on, repeated offsets, skips, zones.
//!
//! Nothing here remembers which blocks came already: with any of it a block may come twice before all came.
//!
//! Source: fio(1), `rw` (the suffix), `rw_sequencer`, `percentage_random`, `blockalign`, `zonemode=strided`.

use super::distribution::{BlockSampler, below};
use super::sizes::op_index;
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{OpKind, Steps};

/// Where a file's last I/O of each operation was, and in which zone.
#[derive(Debug, Clone, Default)]
pub(super) struct Stepper {
    /// Begin and end of the last I/O, from the region's start; `None` before the first.
    last: [Option<(u64, u64)>; 3],
    /// I/Os since the last random offset.
    since_random: [u64; 3],
    zone_begin: u64,
    zone_done: u64,
}

/// What does not change from I/O to I/O.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    /// Its length, in bytes.
    pub(super) end: u64,
    /// What random offsets are multiples of.
    pub(super) unit: u64,
}

impl Stepper {
    /// Offset (from the region's start) and length of the next I/O, of `wanted` bytes at most. `sampler` is that of
    /// a random job.
    pub(super) fn next(
        &mut self,
        steps: &Steps,
        region: Region,
        op: OpKind,
        wanted: u64,
        sampler: Option<&mut BlockSampler>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> (u64, u64) {
        let (begin, length) = match &steps.zones {
            None => (0, region.end),
            Some(zones) => {
                if self.zone_done >= zones.zone_bytes {
                    self.zone_done = 0;
                    self.zone_begin += zones.range_bytes + zones.skip_bytes;
                    // The next zone does not fit: the first again.
                    if self.zone_begin + zones.range_bytes.min(wanted.max(region.unit)) > region.end {
                        self.zone_begin = 0;
                    }
                    self.last = [None; 3];
                }
                (self.zone_begin, zones.range_bytes.min(region.end - self.zone_begin))
            }
        };
        let wanted = wanted.min(length);
        let index = op_index(op);
        let offset = match sampler {
            Some(sampler) => self.random(steps, Region { end: length, ..region }, index, wanted, sampler, rng),
            None => self.sequential(steps, length, index, wanted),
        };
        self.last[index] = Some((offset, offset + wanted));
        self.zone_done += wanted;
        (begin + offset, wanted)
    }

    /// Returns true if the offset of the last I/O of this operation was drawn, and did not follow from the one before.
    pub(super) fn has_drawn(&self, op: OpKind) -> bool {
        self.since_random[op_index(op)] == 1
    }

    fn random(
        &mut self,
        steps: &Steps,
        region: Region,
        index: usize,
        wanted: u64,
        sampler: &mut BlockSampler,
        rng: &mut Xoshiro256PlusPlus,
    ) -> u64 {
        let (align, percent) = match &steps.of_writes {
            Some(writes) if index == op_index(OpKind::Write) => (writes.align_bytes, writes.sequential_percent),
            _ => (steps.align_bytes, steps.sequential_percent),
        };
        let unit = if align == 0 { region.unit } else { align };
        let goes_on = |(_, end): (u64, u64)| if end + wanted > region.end { 0 } else { end };
        if let Some(last) = self.last[index] {
            if self.since_random[index] < steps.random_every {
                self.since_random[index] += 1;
                return if steps.repeats && last.0 + wanted <= region.end { last.0 } else { goes_on(last) };
            }
            if percent > 0 && below(rng, 100) < u64::from(percent) {
                // Not less than it was, and not as if it had been drawn.
                self.since_random[index] = self.since_random[index].max(2);
                return goes_on(last);
            }
        }
        self.since_random[index] = 1;
        // The number of offsets at which the block fits.
        let offsets = (region.end - wanted) / unit + 1;
        let index = match sampler {
            BlockSampler::Uniform { .. } => below(rng, offsets),
            // It counts units of the region, of which reads or writes may have larger ones.
            sampler => sampler.sample(rng) * region.unit / unit % offsets,
        };
        index * unit
    }

    fn sequential(&self, steps: &Steps, length: u64, index: usize, wanted: u64) -> u64 {
        let fits = |offset: &i128| *offset >= 0 && *offset + i128::from(wanted) <= i128::from(length);
        let skip = i128::from(steps.skip_bytes);
        // Backwards begins at the end.
        let first = if skip < 0 { (i128::from(length) + skip).clamp(0, i128::from(length - wanted)) } else { 0 };
        let next = self.last[index].map_or(first, |(_, end)| i128::from(end) + skip);
        Some(next).filter(fits).unwrap_or(first) as u64
    }
}
