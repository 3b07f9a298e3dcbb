//! A quantile of a histogram, with the interval that the sample supports, or nothing.
//!
//! The point is the smallest recorded duration below or at which at least the share q of the sample
//! lies (rank ⌈q·n⌉; definition 1 of Hyndman and Fan), shown as its bucket's upper edge so that a
//! latency is never flattered: at most 1/128 above the truth. The interval's lower end is its
//! bucket's lower edge, for the same reason.
//!
//! Source: [`crate::interval_ranks`] for the interval; R. J. Hyndman and Y. Fan, "Sample Quantiles
//! in Statistical Packages", The American Statistician 50 (1996), for the definition.

use crate::interval_ranks;
use trueio_model::{Histogram, MAX_TRACKABLE_NS};

/// A quantile and its two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// The quantile, in nanoseconds. If it falls among the overflows: the exact maximum.
    pub value_ns: u64,
    /// The interval's lower end, in nanoseconds.
    pub low_ns: u64,
    /// The interval's upper end, in nanoseconds.
    pub high_ns: u64,
    /// The sample it rests on.
    pub count: u64,
}

/// The `q`-quantile of `histogram` (`q` from 0 to 1: 0.99 is the 99th percentile).
///
/// `None` if the sample does not support it: there is no finite 95 % interval
/// ([`crate::minimum_count`]), or `q` is 0, 1 or outside. Print a dash then, not a number.
pub fn quantile(histogram: &Histogram, q: f64) -> Option<Quantile> {
    let count = histogram.count();
    let ranks = interval_ranks(count, q)?;
    // 0.07 · 100 is 7.000000000000001 in binary; a part in 10^12 is taken off before rounding up.
    let rank = ((q * count as f64 * (1.0 - 1e-12)).ceil() as u64).clamp(ranks.lower, ranks.upper);
    let quantile = Quantile {
        value_ns: histogram.value_at_rank(rank)?,
        low_ns: low_edge_at_rank(histogram, ranks.lower)?,
        high_ns: histogram.value_at_rank(ranks.upper)?,
        count,
    };
    assert!(quantile.low_ns <= quantile.value_ns && quantile.value_ns <= quantile.high_ns);
    Some(quantile)
}

/// The lower edge of the bucket that holds `rank`, never below the exact minimum.
fn low_edge_at_rank(histogram: &Histogram, rank: u64) -> Option<u64> {
    let min_ns = histogram.min_ns()?;
    let mut seen = 0u64;
    for (low, _, count) in histogram.buckets() {
        seen = seen.saturating_add(count);
        if seen >= rank {
            // A record from elsewhere may state a minimum that its buckets do not hold.
            return Some(low.max(min_ns).min(histogram.max_ns()?));
        }
    }
    Some(MAX_TRACKABLE_NS.min(histogram.max_ns()?).max(min_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|v| histogram.record(v));
        histogram
    }

    #[test]
    fn a_percentile_is_given_from_the_first_sample_that_supports_it() {
        for (q, least) in [(0.5, 6), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)] {
            assert!(quantile(&filled(0..least - 1), q).is_none(), "q {q}");
            assert_eq!(quantile(&filled(0..least), q).unwrap().count, least, "q {q}");
        }
        assert!(quantile(&Histogram::new(), 0.5).is_none());
    }

    #[test]
    fn the_rank_is_not_pushed_up_by_binary_fractions() {
        // Values below 256 ns are exact: 1..=100, twice each.
        let histogram = filled((1..=100).chain(1..=100));
        for percent in 5..=95u64 {
            assert_eq!(quantile(&histogram, percent as f64 / 100.0).unwrap().value_ns, percent);
        }
    }

    #[test]
    fn a_quantile_among_the_overflows_is_the_maximum_and_at_least_the_largest_bucket() {
        let found = quantile(&filled((0..100).map(|i| MAX_TRACKABLE_NS + i)), 0.5).unwrap();
        assert_eq!((found.low_ns, found.value_ns), (MAX_TRACKABLE_NS, MAX_TRACKABLE_NS + 99));
    }

    /// The generator of the coverage test: splitmix64, so that the test is the same everywhere.
    struct Draws(u64);
    impl Draws {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Goal: the interval holds the true quantile in at least 95 % of samples, and not in nearly all
    /// of them (it would be useless).
    /// Method: 1,500 samples of each size from three distributions with known quantiles: uniform,
    /// exponential (a queue's waits) and Pareto with exponent 1.5 (infinite variance: stalls). The
    /// standard error of the share is at most √(0.05 · 0.95 / 1500) = 0.56 %, so 93.3 % is three of
    /// them below 95 %. Small samples and buckets are conservative; 99.9 % is the upper bar where
    /// the sample is at least three times the least one.
    #[test]
    fn the_interval_covers_the_true_quantile_in_95_of_100_samples() {
        type Inverse = fn(f64) -> f64;
        let distributions: [(&str, Inverse); 3] = [
            ("uniform", |u| 1e5 + 9e5 * u),
            ("exponential", |u| -1e5 * (1.0 - u).ln()),
            ("pareto", |u| 1e5 / (1.0 - u).powf(1.0 / 1.5)),
        ];
        let mut draws = Draws(2026);
        for (name, inverse) in distributions {
            for (q, count) in [(0.5, 6), (0.5, 50), (0.5, 1_001), (0.9, 120), (0.99, 368), (0.99, 1_200)] {
                let truth = inverse(q);
                let mut covered = 0;
                for _ in 0..1_500 {
                    let histogram = filled((0..count).map(|_| inverse(draws.next()).round() as u64));
                    let found = quantile(&histogram, q).unwrap();
                    // Values were rounded to whole nanoseconds.
                    covered += u32::from(found.low_ns as f64 - 0.5 <= truth && truth <= found.high_ns as f64 + 0.5);
                }
                let share = f64::from(covered) / 1_500.0;
                assert!(share >= 0.933, "{name} q {q} n {count}: covered {share}");
                if count >= 50 && count as f64 >= 3.0 * crate::minimum_count(q).unwrap() as f64 {
                    assert!(share <= 0.999, "{name} q {q} n {count}: covered {share}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_value_is_the_sorted_sample_s_within_one_part_in_128(
            mut values in prop::collection::vec((0u32..41).prop_flat_map(|e| 0u64..(2u64 << e)), 6..400),
            q in 0.01f64..0.99,
        ) {
            let found = quantile(&filled(values.iter().copied()), q);
            values.sort_unstable();
            if let Some(found) = found {
                let truth = values[((q * values.len() as f64).ceil() as usize).max(1) - 1];
                prop_assert!(found.value_ns >= truth && found.value_ns - truth <= truth / 128);
                prop_assert!(found.low_ns <= truth && truth <= found.high_ns);
                prop_assert!(values[0] <= found.low_ns && found.high_ns <= values[values.len() - 1]);
            }
        }
    }
}
