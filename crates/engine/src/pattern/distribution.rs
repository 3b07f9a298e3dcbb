//! Random blocks that may come again: uniform and skewed.
//!
//! Zipf and Pareto name blocks by popularity; a permutation scatters the popular ones over the
//! region, since a real hot set is not the beginning of the disk. Normal and zoned speak of places,
//! so nothing is scattered there.
//!
//! Source: Zipf by rejection-inversion (Hörmann, Derflinger 1996; the `rand_distr` crate); Pareto
//! is the self-similar distribution of Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases" (1994): block = count · u^(ln h / ln (1 − h)).

use super::permutation::Permutation;
use rand::RngExt;
use rand_distr::{Distribution as _, StandardNormal, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::Distribution;

/// Draws block numbers below a count.
#[derive(Debug)]
pub(crate) enum BlockSampler {
    Uniform {
        count: u64,
    },
    Zipf {
        zipf: Zipf<f64>,
        scatter: Scatter,
    },
    Pareto {
        count: u64,
        power: f64,
        scatter: Scatter,
    },
    Normal {
        count: u64,
        middle: f64,
        deviation: f64,
    },
    /// (cumulative share of the I/O, first block, blocks).
    Zoned {
        zones: Vec<(f64, u64, u64)>,
    },
}

/// Where the blocks of each popularity are.
#[derive(Debug)]
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
    pub(crate) fn new(distribution: &Distribution, count: u64, seed: u64) -> Self {
        assert!(count > 0);
        let scatter = |center: &Option<f64>| Scatter::new(count, seed, *center);
        match distribution {
            Distribution::Uniform => BlockSampler::Uniform { count },
            Distribution::Zipf { theta, center } => BlockSampler::Zipf {
                zipf: Zipf::new(count as f64, *theta).expect("the plan holds theta above 0"),
                scatter: scatter(center),
            },
            Distribution::Pareto { h, center } => {
                BlockSampler::Pareto { count, power: h.ln() / (1.0 - h).ln(), scatter: scatter(center) }
            }
            Distribution::Normal { deviation_percent, center } => BlockSampler::Normal {
                count,
                middle: count as f64 * center.unwrap_or(0.5),
                deviation: count as f64 * deviation_percent / 100.0,
            },
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
                        (share, first, end.saturating_sub(first).max(1))
                    })
                    .collect();
                BlockSampler::Zoned { zones }
            }
        }
    }

    #[inline]
    pub(crate) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            BlockSampler::Uniform { count } => below(rng, *count),
            BlockSampler::Zipf { zipf, scatter } => scatter.map(zipf.sample(rng) as u64 - 1),
            BlockSampler::Pareto { count, power, scatter } => {
                let u: f64 = rng.random();
                scatter.map(((u.powf(*power) * *count as f64) as u64).min(count - 1))
            }
            BlockSampler::Normal { count, middle, deviation } => loop {
                let z: f64 = StandardNormal.sample(rng);
                let block = middle + z * deviation;
                if block >= 0.0 && block < *count as f64 {
                    return block as u64;
                }
            },
            BlockSampler::Zoned { zones } => {
                let u: f64 = rng.random();
                // The last zone takes what rounding leaves over.
                let zone = zones.iter().find(|z| u < z.0).unwrap_or_else(|| &zones[zones.len() - 1]);
                zone.1 + below(rng, zone.2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn shares(distribution: Distribution, count: u64, draws: u64) -> Vec<u64> {
        let sampler = BlockSampler::new(&distribution, count, 7);
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
}
