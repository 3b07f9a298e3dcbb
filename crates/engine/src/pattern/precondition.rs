//! Random writes that bring a flash disk into its steady state by writing its physical capacity once.
//!
//! A disk in steady state has blocks of every age: of an old one, later writes have replaced many pages, of a new one none. In
//! steady state the share of the disk that has the validity v (the part of its pages that are still valid) is proportional to
//! 1 / v, from the validity g at which blocks are collected up to 1. So at the quantile q of the disk, oldest first, the
//! validity is g^(1 - q). With the write amplification WA, g = 1 - 1 / WA; WA is about 0.5 / OP + 0.7, where OP is the
//! over-provisioning. The mean validity (1 - g) / ln(1 / g) is then about 1 / (1 + OP), as it must be: for OP = 0.15,
//! g = 0.752 and the mean is 0.870.
//!
//! The physical capacity is written in regions of equal size. Blocks are taken in random order, each once. Of a region's writes
//! the part 1 - v is written again in the next region, which makes them invalid on the disk.
//!
//! Limits: write amplification is that approximation, and the disk is assumed to be empty (trimmed) before. When each block
//! was taken, what is left of the physical capacity (less than one region) goes to random blocks.
//!
//! Source: Desnoyers, "Analytic Models of SSD Write Performance", ACM Transactions on Storage 8 (2012); fio's HOWTO,
//! `sprandom`.

use super::permutation::Permutation;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;

/// The writes of one pass over the physical capacity.
#[derive(Debug, Clone)]
pub(crate) struct Precondition {
    /// Blocks of the region of the job.
    count: u64,
    /// New blocks, in random order.
    order: Permutation,
    /// The validity at which blocks are collected.
    collected: f64,
    region_count: u32,
    /// Writes of a region.
    region_writes: u64,
    /// The present region, and its writes to come.
    region: u32,
    left: u64,
    /// Blocks of the region before this one that are written again in it.
    again: VecDeque<u64>,
    /// Blocks of this region that are written again in the next one.
    later: VecDeque<u64>,
    /// They are written again at the end of the region instead of its beginning, so that the disk's cache no longer holds them.
    is_deferred: bool,
}

impl Precondition {
    /// Of `count` blocks. `over_provisioning` is the disk's physical capacity that it does not report, as a part of what it
    /// reports.
    pub(crate) fn new(count: u64, over_provisioning: f64, region_count: u32, is_deferred: bool, seed: u64) -> Self {
        assert!(count > 0 && region_count > 0, "the plan holds a block and a region");
        let collected = 1.0 - 1.0 / (0.5 / over_provisioning + 0.7);
        let physical = (count as f64 * (1.0 + over_provisioning)) as u64;
        let region_writes = (physical / u64::from(region_count)).max(1);
        // The most that a region has again, and four deviations more; longer lists grow.
        let most = region_writes as f64 * (1.0 - collected);
        let room = (most + 4.0 * most.sqrt()) as usize + 1;
        Self {
            count,
            order: Permutation::new(count, seed ^ 0x57ea_d1e5),
            collected,
            region_count,
            region_writes,
            region: 0,
            left: region_writes,
            again: VecDeque::with_capacity(room),
            later: VecDeque::with_capacity(room),
            is_deferred,
        }
    }

    /// The memory of its lists.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + (self.again.capacity() + self.later.capacity()) * size_of::<u64>()
    }

    /// The part of a region's pages that stay valid.
    fn validity(&self, region: u32) -> f64 {
        let quantile = (f64::from(region.min(self.region_count - 1)) + 0.5) / f64::from(self.region_count);
        self.collected.powf(1.0 - quantile)
    }

    /// The next block.
    pub(crate) fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if self.left == 0 {
            self.region += 1;
            self.left = self.region_writes;
            self.again.append(&mut self.later);
        }
        self.left -= 1;
        let is_again = !self.is_deferred || self.left < self.again.len() as u64;
        let block = match is_again {
            true => self.again.pop_front().or_else(|| new_block(&mut self.order)),
            false => new_block(&mut self.order).or_else(|| self.again.pop_front()),
        };
        let block = block.unwrap_or_else(|| rng.random_range(0..self.count));
        if rng.random::<f64>() >= self.validity(self.region) {
            self.later.push_back(block);
        }
        block
    }
}

/// The next block that was not taken yet.
fn new_block(order: &mut Permutation) -> Option<u64> {
    let mut one = [0];
    (order.fill(&mut one) == 1).then_some(one[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const COUNT: u64 = 100_000;

    /// The blocks of one pass over the physical capacity.
    fn pass(over_provisioning: f64, is_deferred: bool) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut sampler = Precondition::new(COUNT, over_provisioning, 100, is_deferred, 7);
        let writes = (COUNT as f64 * (1.0 + over_provisioning)) as u64;
        (0..writes).map(|_| sampler.next(&mut rng)).collect()
    }

    /// Goal: the disk is in steady state after the pass: of each part of the physical capacity, the share that is still valid is
    /// that of a disk in steady state.
    /// Method: a write is valid if no later one is to the same block. In each hundredth of the writes the valid ones are
    /// counted; 1,150 writes of validity 0.75 vary by 15 (one deviation), so by 0.05 in four.
    #[test]
    fn each_part_of_the_physical_capacity_has_the_validity_of_steady_state() {
        for (over_provisioning, is_deferred) in [(0.15, false), (0.15, true), (0.3, false)] {
            let writes = pass(over_provisioning, is_deferred);
            let mut last = vec![0; COUNT as usize];
            writes.iter().enumerate().for_each(|(at, block)| last[*block as usize] = at);
            let collected: f64 = 1.0 - 1.0 / (0.5 / over_provisioning + 0.7);
            let part = writes.len() / 100;
            // What is written again a part later is not known of the last ones.
            for (index, writes_of) in writes.chunks_exact(part).enumerate().take(97) {
                let is_valid = |(at, block): (usize, &u64)| last[*block as usize] == index * part + at;
                let valid = writes_of.iter().enumerate().filter(|of| is_valid(*of)).count() as f64 / part as f64;
                let expected = collected.powf(1.0 - (index as f64 + 0.5) / 100.0);
                assert!((valid - expected).abs() < 0.06, "{over_provisioning}, part {index}: {valid} of {expected}");
            }
        }
    }

    #[test]
    fn every_block_is_written_and_what_is_written_again_comes_a_part_later() {
        let writes = pass(0.15, true);
        let blocks: std::collections::HashSet<&u64> = writes.iter().collect();
        // The model's write amplification is an approximation: some hundred of 100,000 blocks may be left.
        assert!(blocks.len() as f64 > COUNT as f64 * 0.99, "{} of {COUNT} blocks", blocks.len());
        let mut seen = std::collections::HashMap::new();
        let distances = writes.iter().enumerate().filter_map(|(at, block)| Some(at - seen.insert(block, at)?));
        let part = writes.len() / 100;
        let distances: Vec<usize> = distances.collect();
        let median = {
            let mut sorted = distances;
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        assert!(median > part && median < 2 * part, "{median}, a part has {part}");
    }
}
