//! A quantile of a histogram, or nothing if the sample is too small for it.
//!
//! The point is the smallest recorded duration below or at which at least the share q of the sample
//! lies (rank ⌈q·n⌉; definition 1 of Hyndman and Fan), shown as its bucket's upper edge so that a
//! latency is never flattered: at most 1/128 above the truth. Its interval is [`crate::quantile_interval`].
//!
//! Source: [`crate::minimum_count`] for the least sample; R. J. Hyndman and Y. Fan, "Sample Quantiles
//! in Statistical Packages", The American Statistician 50 (1996), for the definition.

use crate::interval_ranks;
use trueio_model::Histogram;

/// A quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// The quantile, in nanoseconds. If it falls among the overflows: the exact maximum.
    pub value_ns: u64,
    /// The sample it rests on.
    pub count: u64,
}

/// The `q`-quantile of `histogram` (`q` from 0 to 1: 0.99 is the 99th percentile).
///
/// `None` if the sample does not support it: even if its I/Os were independent, there would be no finite 95 % interval
/// ([`crate::minimum_count`]); or `q` is 0, 1 or outside. Print a dash then, not a number.
pub fn quantile(histogram: &Histogram, q: f64) -> Option<Quantile> {
    let count = histogram.count();
    let ranks = interval_ranks(count, q)?;
    // 0.07 · 100 is 7.000000000000001 in binary; a part in 10^12 is taken off before rounding up.
    let rank = ((q * count as f64 * (1.0 - 1e-12)).ceil() as u64).clamp(ranks.lower, ranks.upper);
    Some(Quantile { value_ns: histogram.value_at_rank(rank)?, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trueio_model::MAX_TRACKABLE_NS;

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
        assert_eq!(found.value_ns, MAX_TRACKABLE_NS + 99);
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
                prop_assert!(found.value_ns <= values[values.len() - 1]);
            }
        }
    }
}
