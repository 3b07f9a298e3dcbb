//! Random blocks that may come again, uniform and skewed, and files that are drawn by the same laws.
//!
//! Zipf and Pareto name blocks by popularity; a permutation scatters the popular ones over the
//! region, since a real hot set is not the beginning of the disk. Normal and zoned speak of places,
//! so nothing is scattered there. Files are drawn in their order: the one after a popular one is the next popular.
//!
//! Source: Zipf by rejection-inversion (Hörmann, Derflinger 1996; the `rand_distr` crate); Pareto
//! is the self-similar distribution of Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases" (1994): block = count · u^(ln h / ln (1 − h)).

use super::permutation::Permutation;
use super::precondition::Precondition;
use rand::RngExt;
use rand_distr::{Distribution as _, StandardNormal, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Distribution, mix64};

/// Draws block numbers below a count.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one a file, made once; a box would cost a jump an I/O")]
pub(crate) enum BlockSampler {
    Uniform { count: u64 },
    Ranked { ranks: Ranks, scatter: Scatter },
    Normal(Normal),
    Zoned { zones: Vec<ZoneShare> },
    Sequence(Box<BlockSequence>),
    Precondition(Box<Precondition>),
}

/// Blocks in a given order.
#[derive(Debug, Clone)]
pub(crate) struct BlockSequence {
    blocks: Vec<u64>,
    /// Blocks of the region.
    count: u64,
    /// What each round adds to the blocks.
    step: u64,
    /// The place in the sequence, and what this round adds.
    next: usize,
    first: u64,
}

impl BlockSequence {
    fn new(blocks: &[u64], is_advancing: bool, count: u64) -> Self {
        let step = if is_advancing { blocks.len() as u64 } else { 0 };
        Self { blocks: blocks.to_vec(), count, step, next: 0, first: 0 }
    }

    fn next(&mut self) -> u64 {
        if self.next == self.blocks.len() {
            (self.next, self.first) = (0, self.first + self.step);
        }
        let mut block = self.first + self.blocks[self.next];
        if block >= self.count {
            // The region ends within this round, so the sequence begins again.
            (self.next, self.first) = (0, 0);
            block = self.blocks[0];
        }
        self.next += 1;
        block.min(self.count - 1)
    }
}

/// A zone of a region and its share of the I/Os.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZoneShare {
    /// Shares of this zone and of those before it together, from 0 to 1.
    share_until: f64,
    block_first: u64,
    block_count: u64,
}

/// Draws ranks below a count, of which 0 is the most popular.
#[derive(Debug, Clone)]
pub(crate) enum Ranks {
    Zipf(Zipf<f64>),
    Pareto { count: u64, power: f64 },
}

impl Ranks {
    fn zipf(count: u64, theta: f64) -> Self {
        Ranks::Zipf(Zipf::new(count as f64, theta).expect("the plan holds theta above 0"))
    }

    fn pareto(count: u64, h: f64) -> Self {
        Ranks::Pareto { count, power: h.ln() / (1.0 - h).ln() }
    }

    #[inline]
    fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.sample(rng) as u64 - 1,
            Ranks::Pareto { count, power } => {
                let u: f64 = rng.random();
                ((u.powf(*power) * *count as f64) as u64).min(count - 1)
            }
        }
    }
}

/// Draws numbers below a count around a middle.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    count: f64,
    middle: f64,
    deviation: f64,
}

impl Normal {
    fn new(count: u64, deviation_percent: f64, center: Option<f64>) -> Self {
        let count = count as f64;
        Self { count, middle: count * center.unwrap_or(0.5), deviation: count * deviation_percent / 100.0 }
    }

    #[inline]
    fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let z: f64 = StandardNormal.sample(rng);
            let number = self.middle + z * self.deviation;
            if number >= 0.0 && number < self.count {
                return number as u64;
            }
        }
    }
}

/// Places of each file in the range that its distribution is over, so that the popular one of two files has more than half
/// of a steep law, and less than all of it. Source: the shares that fio 3.33 gives.
const PLACES_PER_FILE: u64 = 1024;

/// Draws files below a count.
#[derive(Debug, Clone)]
pub(crate) enum FileSampler {
    Ranked {
        ranks: Ranks,
        /// The place of the most popular one.
        first: u64,
        places: u64,
    },
    Normal(Normal),
}

impl FileSampler {
    /// Without a centre the seed selects the most popular file.
    pub(crate) fn new(distribution: &Distribution, file_count: usize, seed: u64) -> Self {
        let places = file_count as u64 * PLACES_PER_FILE;
        // As in fio the end of the range is its beginning.
        let first = |center: Option<f64>| match center {
            Some(center) => (places as f64 * center) as u64 % places,
            None => mix64(seed) % file_count as u64 * PLACES_PER_FILE,
        };
        match *distribution {
            Distribution::Zipf { theta, center } => {
                FileSampler::Ranked { ranks: Ranks::zipf(places, theta), first: first(center), places }
            }
            Distribution::Pareto { h, center } => {
                FileSampler::Ranked { ranks: Ranks::pareto(places, h), first: first(center), places }
            }
            Distribution::Normal { deviation_percent, center } => {
                FileSampler::Normal(Normal::new(places, deviation_percent, center))
            }
            Distribution::Uniform
            | Distribution::Zoned { .. }
            | Distribution::ZonedBytes { .. }
            | Distribution::Sequence { .. }
            | Distribution::Precondition { .. } => {
                unreachable!("the plan draws files by zipf, pareto or normal")
            }
        }
    }

    pub(crate) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        let place = match self {
            FileSampler::Ranked { ranks, first, places } => (ranks.sample(rng) + first) % places,
            FileSampler::Normal(normal) => normal.sample(rng),
        };
        (place / PLACES_PER_FILE) as usize
    }
}

/// Where the blocks of each popularity are.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    order: Permutation,
    count: u64,
    /// What is added, so that the most popular one is where it should be; 0: where it happens to be.
    shift: u64,
}

impl Scatter {
    fn new(count: u64, seed: u64, center: Option<f64>) -> Self {
        let order = Permutation::new(count, seed ^ 0x5ca7_7e12);
        // As in fio the end of the region is its beginning.
        let wanted = |center: f64| (count as f64 * center) as u64 % count;
        let shift = center.map_or(0, |center| (wanted(center) + count - order.map(0)) % count);
        Self { order, count, shift }
    }

    #[inline]
    fn map(&self, rank: u64) -> u64 {
        // Without a centre nothing is added, and the sum is below the count.
        let block = self.order.map(rank) + self.shift;
        if block >= self.count { block - self.count } else { block }
    }
}

/// A number below `count` without bias worth mentioning: multiply-shift, error below count / 2^64.
#[inline(always)]
pub(crate) fn below(rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
    ((u128::from(rng.random::<u64>()) * u128::from(count)) >> 64) as u64
}

impl BlockSampler {
    /// Of `count` blocks, each of `unit` bytes.
    pub(crate) fn new(distribution: &Distribution, count: u64, unit: u64, seed: u64) -> Self {
        assert!(count > 0 && unit > 0);
        let scatter = |center: &Option<f64>| Scatter::new(count, seed, *center);
        match distribution {
            Distribution::Uniform => BlockSampler::Uniform { count },
            Distribution::Zipf { theta, center } => {
                BlockSampler::Ranked { ranks: Ranks::zipf(count, *theta), scatter: scatter(center) }
            }
            Distribution::Pareto { h, center } => {
                BlockSampler::Ranked { ranks: Ranks::pareto(count, *h), scatter: scatter(center) }
            }
            Distribution::Normal { deviation_percent, center } => {
                BlockSampler::Normal(Normal::new(count, *deviation_percent, *center))
            }
            Distribution::Zoned { zones } => {
                let (mut share, mut first_percent) = (0.0, 0.0);
                let zones = zones
                    .iter()
                    .map(|&(io_percent, size_percent)| {
                        share += io_percent / 100.0;
                        let first = (count as f64 * first_percent / 100.0) as u64;
                        first_percent += size_percent;
                        let end = ((count as f64 * first_percent / 100.0) as u64).min(count);
                        let first = first.min(count - 1);
                        let block_count = end.saturating_sub(first).max(1);
                        ZoneShare { share_until: share, block_first: first, block_count }
                    })
                    .collect();
                BlockSampler::Zoned { zones }
            }
            Distribution::ZonedBytes { zones } => {
                let (mut share, mut end_bytes) = (0.0, 0u64);
                let zones = zones
                    .iter()
                    .map(|&(io_percent, bytes)| {
                        share += io_percent / 100.0;
                        let first = (end_bytes / unit).min(count - 1);
                        end_bytes = end_bytes.saturating_add(bytes);
                        // Less than a block is one.
                        let block_count = (end_bytes / unit).min(count).saturating_sub(first).max(1);
                        ZoneShare { share_until: share, block_first: first, block_count }
                    })
                    .collect();
                BlockSampler::Zoned { zones }
            }
            Distribution::Sequence { blocks, is_advancing } => {
                BlockSampler::Sequence(Box::new(BlockSequence::new(blocks, *is_advancing, count)))
            }
            Distribution::Precondition { over_provisioning, region_count, cache_bytes } => {
                let is_deferred = *cache_bytes > 0;
                let sampler = Precondition::new(count, *over_provisioning, *region_count, is_deferred, seed);
                BlockSampler::Precondition(Box::new(sampler))
            }
        }
    }

    /// The memory of its lists.
    pub(super) fn bytes(&self) -> usize {
        match self {
            BlockSampler::Sequence(sequence) => size_of::<BlockSequence>() + sequence.blocks.len() * size_of::<u64>(),
            BlockSampler::Precondition(sampler) => sampler.bytes(),
            BlockSampler::Zoned { zones } => zones.len() * size_of::<ZoneShare>(),
            BlockSampler::Uniform { .. } | BlockSampler::Ranked { .. } | BlockSampler::Normal(_) => 0,
        }
    }

    #[inline]
    pub(crate) fn sample(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            BlockSampler::Uniform { count } => below(rng, *count),
            BlockSampler::Ranked { ranks, scatter } => scatter.map(ranks.sample(rng)),
            BlockSampler::Normal(normal) => normal.sample(rng),
            BlockSampler::Zoned { zones } => {
                let u: f64 = rng.random();
                // The last zone takes what rounding leaves over.
                let zone = zones.iter().find(|zone| u < zone.share_until).unwrap_or_else(|| &zones[zones.len() - 1]);
                zone.block_first + below(rng, zone.block_count)
            }
            BlockSampler::Sequence(sequence) => sequence.next(),
            BlockSampler::Precondition(sampler) => sampler.next(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn shares(distribution: Distribution, count: u64, draws: u64) -> Vec<u64> {
        let mut sampler = BlockSampler::new(&distribution, count, 4096, 7);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut hits = vec![0; count as usize];
        for _ in 0..draws {
            hits[sampler.sample(&mut rng) as usize] += 1;
        }
        hits
    }

    /// The share of draws that the most popular `part` of the blocks received.
    fn top(mut hits: Vec<u64>, part: f64) -> f64 {
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let n = (hits.len() as f64 * part) as usize;
        hits[..n].iter().sum::<u64>() as f64 / hits.iter().sum::<u64>() as f64
    }

    #[test]
    fn pareto_of_a_fifth_sends_four_fifths_of_the_io_to_a_fifth_of_the_blocks() {
        let share = top(shares(Distribution::Pareto { h: 0.2, center: None }, 10_000, 400_000), 0.2);
        assert!((share - 0.8).abs() < 0.01, "{share}");
    }

    #[test]
    fn zipf_of_one_gives_the_first_block_its_harmonic_share() {
        // 1 / H(1000) = 1 / 7.485 = 13.36 %.
        let share = top(shares(Distribution::Zipf { theta: 1.0, center: None }, 1000, 400_000), 0.001);
        assert!((share - 0.1336).abs() < 0.003, "{share}");
    }

    /// As fio 3.33 places them: of 1024 blocks, 0.3 is block 307, and 1 is the first one.
    #[test]
    fn the_most_popular_block_is_at_the_center_and_the_shares_stay() {
        let place = |distribution: Distribution| {
            let hits = shares(distribution, 1024, 100_000);
            let most = *hits.iter().max().expect("blocks");
            let at = hits.iter().position(|n| *n == most).expect("it is there");
            (at, most)
        };
        for (center, block) in [(0.0, 0), (0.3, 307), (0.5, 512), (1.0, 0)] {
            let center = Some(center);
            let (at, most) = place(Distribution::Zipf { theta: 1.1, center });
            assert_eq!((at, most), (block, place(Distribution::Zipf { theta: 1.1, center: None }).1));
            assert_eq!(place(Distribution::Pareto { h: 0.2, center }).0, block);
        }
        let hits = shares(Distribution::Normal { deviation_percent: 5.0, center: Some(0.2) }, 1000, 100_000);
        let within: u64 = hits[150..250].iter().sum();
        assert!((within as f64 / 100_000.0 - 0.683).abs() < 0.01, "{within}");
    }

    /// As fio 3.42: the example of its manual, and a region that ends within a round.
    #[test]
    fn a_sequence_repeats_its_blocks_or_advances_by_its_length() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut drawn = |is_advancing| -> Vec<u64> {
            let sequence = Distribution::Sequence { blocks: vec![2, 0, 1], is_advancing };
            let mut sampler = BlockSampler::new(&sequence, 7, 4096, 7);
            (0..9).map(|_| sampler.sample(&mut rng)).collect()
        };
        assert_eq!(drawn(false), [2, 0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(drawn(true), [2, 0, 1, 5, 3, 4, 2, 0, 1]);
    }

    #[test]
    fn popular_blocks_are_not_the_first_ones() {
        let hits = shares(Distribution::Zipf { theta: 1.2, center: None }, 1000, 100_000);
        let first_tenth: u64 = hits[..100].iter().sum();
        assert!(first_tenth < 60_000, "{first_tenth} of 100,000 went to the first tenth");
    }

    #[test]
    fn zones_get_their_shares_and_normal_stays_around_the_middle() {
        let hits = shares(Distribution::Zoned { zones: vec![(60.0, 10.0), (30.0, 20.0), (10.0, 70.0)] }, 1000, 100_000);
        let zone = |a: usize, b: usize| hits[a..b].iter().sum::<u64>() as f64 / 100_000.0;
        assert!((zone(0, 100) - 0.6).abs() < 0.01 && (zone(100, 300) - 0.3).abs() < 0.01);
        let hits = shares(Distribution::Normal { deviation_percent: 10.0, center: None }, 1000, 100_000);
        let within: u64 = hits[400..600].iter().sum();
        // One deviation to each side holds 68.3 %.
        assert!((within as f64 / 100_000.0 - 0.683).abs() < 0.01, "{within}");
    }
    #[test]
    fn zones_of_bytes_get_their_shares_and_no_offset_lies_beyond_the_last_one() {
        let (block, draws) = (4096, 100_000);
        let near = |hits: u64, share: f64| {
            // Five standard deviations of that number of draws.
            let slack = 5.0 * (share * (1.0 - share) * draws as f64).sqrt();
            assert!((hits as f64 - share * draws as f64).abs() <= slack, "{hits} of {draws} are not {share}");
        };
        let hits = |zones: &[(f64, u64)], count| shares(Distribution::ZonedBytes { zones: zones.into() }, count, draws);
        let three = hits(&[(50.0, 100 * block), (30.0, 300 * block), (20.0, 200 * block)], 1000);
        let zone = |range: std::ops::Range<usize>| three[range].iter().sum::<u64>();
        near(zone(0..100), 0.5);
        near(zone(100..400), 0.3);
        near(zone(400..600), 0.2);
        assert_eq!(zone(600..1000), 0);
        // Alike within a zone.
        three[..100].iter().for_each(|hits| near(*hits, 0.005));
        // As fio 3.33 places zones that are no whole blocks: the first block, and the second.
        let odd = hits(&[(50.0, 5 << 10), (50.0, 5 << 10)], 1000);
        near(odd[0], 0.5);
        near(odd[1], 0.5);
        // Less than a block.
        let tiny = hits(&[(90.0, 1), (10.0, 8 * block)], 8);
        assert!(tiny[0] > 90_000 && tiny[1..].iter().all(|hits| *hits > 0), "{tiny:?}");
    }

    /// Shares of `count` files in a number of draws.
    fn file_shares(distribution: &Distribution, count: usize, seed: u64, draws: u64) -> Vec<f64> {
        let sampler = FileSampler::new(distribution, count, seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut hits = vec![0u64; count];
        (0..draws).for_each(|_| hits[sampler.sample(&mut rng)] += 1);
        hits.into_iter().map(|hits| hits as f64 / draws as f64).collect()
    }

    /// Goal: the shares of files are those of the law over 1024 places a file.
    /// Method: each law is summed up, another way than it is drawn; every file of 4, 10 and 100 within five deviations.
    #[test]
    fn files_are_drawn_by_the_law_of_their_distribution() {
        let draws = 200_000;
        let zipf = |theta: f64, count: usize| -> Vec<f64> {
            let places: Vec<f64> = (1..=count * 1024).map(|rank| (rank as f64).powf(-theta)).collect();
            let all: f64 = places.iter().sum();
            places.chunks(1024).map(|file| file.iter().sum::<f64>() / all).collect()
        };
        let pareto = |h: f64, count: usize| -> Vec<f64> {
            let below = |part: f64| part.powf((1.0 - h).ln() / h.ln());
            let edge = |file: usize| below(file as f64 / count as f64);
            (0..count).map(|file| edge(file + 1) - edge(file)).collect()
        };
        // Simpson's rule over each file, and over all of them.
        let normal = |percent: f64, middle: f64, count: usize| -> Vec<f64> {
            let density = |at: f64| (-((at - middle) / (percent / 100.0)).powi(2) / 2.0).exp();
            let part = |file: usize| {
                let width = 1.0 / count as f64 / 100.0;
                let from = file as f64 / count as f64;
                let slice = |i: usize| {
                    let at = from + i as f64 * width;
                    (density(at) + 4.0 * density(at + width / 2.0) + density(at + width)) / 6.0
                };
                (0..100).map(slice).sum::<f64>()
            };
            let parts: Vec<f64> = (0..count).map(part).collect();
            let all: f64 = parts.iter().sum();
            parts.into_iter().map(|part| part / all).collect()
        };
        let check = |distribution: Distribution, law: Vec<f64>| {
            let drawn = file_shares(&distribution, law.len(), 0, draws);
            for (file, (drawn, law)) in drawn.iter().zip(&law).enumerate() {
                let slack = 5.0 * (law * (1.0 - law) / draws as f64).sqrt() + 5.0 / draws as f64;
                assert!((drawn - law).abs() <= slack, "{distribution:?}, file {file}: {drawn}, not {law}");
            }
        };
        let center = Some(0.0);
        for count in [4, 10, 100] {
            for theta in [0.5, 0.8, 1.0, 1.1, 1.2, 2.0] {
                check(Distribution::Zipf { theta, center }, zipf(theta, count));
            }
            for h in [0.1, 0.2, 0.5, 0.9] {
                check(Distribution::Pareto { h, center }, pareto(h, count));
            }
            for (percent, middle) in [(5.0, None), (20.0, None), (50.0, None), (20.0, Some(0.2))] {
                let distribution = Distribution::Normal { deviation_percent: percent, center: middle };
                check(distribution, normal(percent, middle.unwrap_or(0.5), count));
            }
        }
    }

    #[test]
    fn the_most_popular_file_is_at_the_centre_or_where_the_seed_says_and_the_next_ones_follow() {
        let most = |center, seed| {
            let shares = file_shares(&Distribution::Zipf { theta: 1.2, center }, 4, seed, 50_000);
            let at = shares.iter().position(|share| *share > 0.8).expect("one has most of it");
            let next: Vec<f64> = (1..4).map(|i| shares[(at + i) % 4]).collect();
            assert!(next[0] > next[1] && next[1] > next[2], "{center:?}: {shares:?}");
            at
        };
        // As fio 3.33 places it: 0.3 of four files is within the second one.
        assert_eq!([Some(0.0), Some(0.3), Some(0.5), Some(1.0)].map(|center| most(center, 1)), [0, 1, 2, 0]);
        let drawn: std::collections::HashSet<usize> = (0..64).map(|seed| most(None, seed)).collect();
        assert_eq!(drawn.len(), 4, "every file is the popular one of some seed");
    }
}
