//! The quantile of one short slice, where the slice is long enough to have one.
//!
//! A slice estimates its q-quantile only if several of its I/Os lie beyond it: 10 / (1 − q) I/Os
//! leave ten, 1,000 for p99, 10,000 for p99.9. Below that the quantile of whole pairs is resampled
//! ([`crate::bca`]).
//!
//! Within its bucket the value is taken to lie where its rank lies among the bucket's: a ratio of two
//! bucket edges would step by 0.8 %. The true value of that rank lies in the same bucket, at most 1/128
//! away.
//!
//! Source: arithmetic; the rule of ten: D. E. Matthews' and others' practice for extreme quantiles, and
//! measured on this project's own recorded noise (`docs/statistics.md`).

use trueio_model::Histogram;

/// The fewest I/Os that a slice needs for its own `q`-quantile: 20 for the median, 1,000 for p99. `None` if
/// `q` is not between 0 and 1.
pub fn slice_least_count(q: f64) -> Option<u64> {
    // 1 − 0.999 is 0.0010000000000000009 in binary; a part in 10^9 is taken off before rounding up.
    (q > 0.0 && q < 1.0).then(|| (10.0 / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64)
}

/// The `q`-quantile of a slice in nanoseconds, or `None` if it holds too few I/Os, or the quantile falls
/// among durations that were too long to be distinguished.
pub fn slice_quantile(histogram: &Histogram, q: f64) -> Option<f64> {
    if histogram.count() < slice_least_count(q)? {
        return None;
    }
    quantile_within(histogram.buckets(), histogram.count(), q)
        .map(|ns| ns.clamp(histogram.min_ns().unwrap_or(0) as f64, histogram.max_ns().unwrap_or(u64::MAX) as f64))
}

/// The `q`-quantile of `count` durations in buckets (smallest, largest, how many; ascending), in
/// nanoseconds. `None` if it lies beyond them.
pub fn quantile_within(buckets: impl Iterator<Item = (u64, u64, u64)>, count: u64, q: f64) -> Option<f64> {
    let rank = q * count as f64;
    let mut below = 0.0;
    for (low, high, here) in buckets {
        let here = here as f64;
        if below + here >= rank {
            let share = ((rank - below) / here).clamp(0.0, 1.0);
            return Some(low as f64 + (high - low) as f64 * share);
        }
        below += here;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_slice_needs_ten_ios_beyond_the_quantile() {
        assert_eq!(
            [0.5, 0.99, 0.999, 0.9999].map(slice_least_count),
            [Some(20), Some(1_000), Some(10_000), Some(100_000)]
        );
        assert_eq!([0.0, 1.0, f64::NAN].map(slice_least_count), [None; 3]);
        let mut histogram = Histogram::new();
        (0..999).for_each(|i| histogram.record(i * 100));
        assert_eq!(slice_quantile(&histogram, 0.99), None);
        histogram.record(1);
        assert!(slice_quantile(&histogram, 0.99).is_some());
    }

    #[test]
    fn a_quantile_among_durations_too_long_to_tell_is_none() {
        let mut histogram = Histogram::new();
        histogram.record_many(5, 10);
        histogram.record_many(u64::MAX, 90);
        assert_eq!(slice_quantile(&histogram, 0.5), None);
    }

    proptest! {
        #[test]
        fn the_value_is_the_sorted_one_within_one_part_in_128(
            mut values in prop::collection::vec((0u32..40).prop_flat_map(|e| 0u64..(2u64 << e)), 20..300),
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            let truth = values[values.len().div_ceil(2) - 1] as f64;
            let found = slice_quantile(&histogram, 0.5).unwrap();
            prop_assert!((found - truth).abs() <= truth / 128.0 + 1e-9, "{} for {}", found, truth);
        }
    }
}
