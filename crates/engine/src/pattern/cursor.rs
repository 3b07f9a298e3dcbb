//! Where the next I/O of a file goes: in sequence, each block once, or by a distribution.

use super::distribution::{BlockSampler, below};
use super::free_map::FreeMap;
use super::permutation::Permutation;
use super::sizes::{Sizes, op_index};
use super::steps::{Region, Stepper};
use crate::request::REQUEST_BLOCK;
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Distribution, JobPlan, OpKind, OpMix, Order, Steps, mix64};

/// Where the next I/O of a file goes.
#[derive(Debug, Clone)]
pub(super) struct FileCursor {
    pub(super) offset: u64,
    /// Whole units of the region; a rest smaller than a unit is never touched.
    pub(super) unit_count: u64,
    /// The whole region, in bytes.
    pub(super) region_bytes: u64,
    pub(super) seed: u64,
    /// Passes begun; in a job with steps the bytes of this one.
    pub(super) pass: u64,
    /// Bytes after which a pass of a job with steps is over.
    pub(super) pass_bytes: u64,
    pub(super) order: OffsetOrder,
    pub(super) stepper: Stepper,
}

/// The order of a file's offsets.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one a file, made once; a box would cost a jump an I/O")]
pub(super) enum OffsetOrder {
    /// The next byte of reads, writes and trims, from the region's start.
    Sequential { next: [u64; 3] },
    /// Fixed size, every block once a pass; `left` of them to come (kept where passes are looked at).
    Once { order: Permutation, ahead: [u64; REQUEST_BLOCK], at: usize, filled: usize, left: u64 },
    /// Mixed sizes, every unit once a pass: a map remembers what larger blocks took.
    Cover(FreeMap),
    /// By a distribution, blocks may come again. A pass is over when as much as the region holds was
    /// transferred; `left` bytes are to come.
    Sampled { sampler: BlockSampler, left: u64 },
}

fn first_pass(unit_count: u64, seed: u64, is_fixed: bool) -> OffsetOrder {
    if !is_fixed {
        return OffsetOrder::Cover(FreeMap::new(unit_count));
    }
    let order = Permutation::new(unit_count, mix64(seed ^ mix64(0)));
    OffsetOrder::Once { order, ahead: [0; REQUEST_BLOCK], at: 0, filled: 0, left: unit_count }
}

impl FileCursor {
    /// `region`: its first byte and its length. `is_fixed`: all I/Os have one size.
    pub(super) fn new(plan: &JobPlan, region: (u64, u64), seed: u64, unit: u64, is_fixed: bool) -> Self {
        let pattern = &plan.pattern;
        let (offset_bytes, size_bytes) = region;
        let unit_count = size_bytes / unit;
        assert!(unit_count > 0, "the plan holds at least one block a file");
        let order = match &pattern.order {
            Order::Sequential => OffsetOrder::Sequential { next: [0; 3] },
            Order::Random { distribution: Distribution::Uniform, each_block_once: true } => {
                first_pass(unit_count, seed, is_fixed)
            }
            Order::Random { distribution, .. } => OffsetOrder::Sampled {
                sampler: BlockSampler::new(distribution, unit_count, unit, seed),
                left: unit_count * unit,
            },
        };
        let is_in_order = matches!((&pattern.order, pattern.mix), (Order::Sequential, OpMix::Only(_)));
        let skipped = pattern.steps.skipping_ios(size_bytes, unit).filter(|_| is_in_order && is_fixed);
        Self {
            offset: offset_bytes,
            unit_count,
            region_bytes: size_bytes,
            seed,
            pass: 0,
            pass_bytes: skipped.map_or(size_bytes, |ios| ios * unit),
            order,
            stepper: Stepper::default(),
        }
    }

    /// Its memory.
    pub(super) fn bytes(&self) -> usize {
        let map = match &self.order {
            OffsetOrder::Cover(map) => map.bytes(),
            OffsetOrder::Sampled { sampler, .. } => sampler.bytes(),
            OffsetOrder::Sequential { .. } | OffsetOrder::Once { .. } => 0,
        };
        size_of::<Self>() + map
    }

    /// Offset and length of the next I/O of a job with steps, and whether as much as the region holds was
    /// transferred.
    pub(super) fn step_next(
        &mut self,
        steps: &Steps,
        op: OpKind,
        wanted: u64,
        unit: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> (u64, u64, bool) {
        let region = Region { end: self.region_bytes, unit };
        let (offset, length) = match &mut self.order {
            OffsetOrder::Sampled { sampler, .. } => self.stepper.next(steps, region, op, wanted, Some(sampler), rng),
            OffsetOrder::Sequential { .. } => self.stepper.next(steps, region, op, wanted, None, rng),
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => unreachable!("the plan has no map together with steps"),
        };
        self.pass += length;
        let is_over = self.pass >= self.pass_bytes;
        if is_over {
            self.pass = 0;
        }
        (self.offset + offset, length, is_over)
    }

    /// Blocks of a size until the pass over the region ends; `None` if they are not counted.
    pub(super) fn blocks_left(&self, size: u64) -> Option<usize> {
        let left = match &self.order {
            OffsetOrder::Sequential { next } => {
                (self.unit_count * size).saturating_sub(next.iter().copied().max()?) / size
            }
            OffsetOrder::Once { left, .. } => *left,
            OffsetOrder::Cover(_) | OffsetOrder::Sampled { .. } => return None,
        };
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Begins the next pass of a region whose blocks were counted.
    pub(super) fn begin_pass(&mut self) {
        match &mut self.order {
            OffsetOrder::Sequential { next } => *next = [0; 3],
            _ => self.next_pass(),
        }
    }

    /// Leaves the pass that it is in, if it has begun.
    pub(super) fn begin_anew(&mut self, unit: u64) {
        self.stepper = Stepper::default();
        match &mut self.order {
            OffsetOrder::Sequential { next } => *next = [0; 3],
            OffsetOrder::Once { left, .. } if *left < self.unit_count => self.next_pass(),
            OffsetOrder::Cover(map) if map.left() < self.unit_count => self.next_pass(),
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => return,
            OffsetOrder::Sampled { left, .. } => *left = self.unit_count * unit,
        }
        self.pass = match self.order {
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => self.pass,
            // The bytes of a pass with steps.
            OffsetOrder::Sequential { .. } | OffsetOrder::Sampled { .. } => 0,
        };
    }

    /// Begins the next pass, in another order.
    pub(super) fn next_pass(&mut self) {
        self.pass += 1;
        match &mut self.order {
            OffsetOrder::Once { order, at, filled, left, .. } => {
                *order = Permutation::new(self.unit_count, mix64(self.seed ^ mix64(self.pass)));
                (*at, *filled, *left) = (0, 0, self.unit_count);
            }
            OffsetOrder::Cover(map) => map.clear(),
            OffsetOrder::Sequential { .. } | OffsetOrder::Sampled { .. } => {
                unreachable!("their passes need no preparation")
            }
        }
    }

    /// Offset and length of the next I/O, and whether it was the last one of a pass. `wanted` is the
    /// length that was drawn of `sizes`; near the end of the region mixed ones are drawn again until one fits.
    pub(super) fn place_next(
        &mut self,
        op: OpKind,
        wanted: u64,
        sizes: &Sizes,
        unit: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> (u64, u64, bool) {
        let is_fixed = matches!(sizes, Sizes::Fixed(_));
        let end = self.unit_count * unit;
        let wanted = wanted.min(end);
        match &mut self.order {
            OffsetOrder::Sequential { next } => {
                let next = &mut next[op_index(op)];
                if *next == end || (is_fixed && *next + wanted > end) {
                    *next = 0;
                }
                let offset = *next;
                let length = if is_fixed { wanted } else { sizes.fit(wanted, end - offset, rng) };
                *next += length;
                (self.offset + offset, length, *next == end || (is_fixed && *next + wanted > end))
            }
            OffsetOrder::Sampled { sampler, left } => {
                let block = sampler.sample(rng);
                let (block, wanted) = match is_fixed {
                    true => (block.min((end - wanted) / unit), wanted),
                    false => (block, sizes.fit(wanted, end - block * unit, rng)),
                };
                *left = left.saturating_sub(wanted);
                let is_over = *left == 0;
                if is_over {
                    *left = end;
                }
                (self.offset + block * unit, wanted, is_over)
            }
            OffsetOrder::Once { left: 0, .. } => {
                self.next_pass();
                self.place_next(op, wanted, sizes, unit, rng)
            }
            OffsetOrder::Once { order, ahead, at, filled, left } => {
                if *at == *filled {
                    *filled = order.fill(ahead);
                    *at = 0;
                    assert!(*filled > 0, "a block is left, so the order has not ended");
                }
                let block = ahead[*at];
                *at += 1;
                *left -= 1;
                (self.offset + block * unit, unit, *left == 0)
            }
            OffsetOrder::Cover(map) => {
                if map.left() == 0 {
                    map.clear();
                }
                let first = map.next_free(below(rng, self.unit_count)).expect("a unit is left");
                // As large as was drawn, or as the hole between earlier blocks allows.
                let wanted = if is_fixed { wanted } else { sizes.fit(wanted, end - first * unit, rng) };
                let units = map.take_run(first, wanted / unit);
                (self.offset + first * unit, units * unit, map.left() == 0)
            }
        }
    }
}
