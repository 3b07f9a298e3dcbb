//! Converts our histogram buckets to fio's.
//!
//! fio has 64 buckets for each doubling and is exact below 128 ns. Ours are half as wide, so two of them make one of
//! fio's. fio reports the middle of a bucket. Its last bucket, from 2^34 ns (17 s) on, is open; here the same rule
//! continues.

use trueio_model::Histogram;

/// Returns the middle of fio's bucket that contains a value, in nanoseconds.
pub fn bucket_middle(ns: u64) -> u64 {
    if ns < 128 {
        return ns;
    }
    let width = 1u64 << (ns.ilog2() - 6);
    (ns & !(width - 1)) + width / 2
}

/// Returns fio's non-empty buckets: (middle, count), smallest first. Values beyond the histogram's range count at its
/// maximum.
pub(super) fn middles(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (low, _, count) in histogram.buckets() {
        let middle = bucket_middle(low);
        match found.last_mut() {
            Some((last, n)) if *last == middle => *n += count,
            _ => found.push((middle, count)),
        }
    }
    if histogram.overflow_count() > 0 {
        found.push((histogram.max_ns().unwrap_or(0), histogram.overflow_count()));
    }
    found
}

/// Returns percentiles by nearest rank: the middle of fio's bucket, limited to the measured range.
pub(super) fn percentiles(histogram: &Histogram, percents: &[f64]) -> Vec<(f64, u64)> {
    let (Some(min), Some(max)) = (histogram.min_ns(), histogram.max_ns()) else { return Vec::new() };
    let buckets = middles(histogram);
    let n = histogram.count();
    percents
        .iter()
        .map(|&percent| {
            // 99.9 % of 1000 is rank 999, though the product in floating point is a little more.
            let rank = ((percent * n as f64 / 100.0 - 1e-6).ceil() as u64).clamp(1, n);
            let mut seen = 0;
            let found = buckets.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            (percent, found.map_or(max, |(middle, _)| (*middle).clamp(min, max)))
        })
        .collect()
}

/// The sample's standard deviation in nanoseconds, from the buckets' middles.
pub(super) fn deviation_ns(histogram: &Histogram) -> f64 {
    let n = histogram.count() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let overflow = (histogram.overflow_count() > 0)
        .then(|| (histogram.max_ns().unwrap_or(0) as f64, histogram.overflow_count() as f64));
    let values = || {
        histogram
            .buckets()
            .map(|(low, high, count)| (low as f64 + (high - low) as f64 / 2.0, count as f64))
            .chain(overflow)
    };
    // Relative to the mean of the middles, not to the exact mean, so that equal values have no deviation.
    let mean = values().map(|(value, count)| value * count).sum::<f64>() / n;
    let squares: f64 = values().map(|(value, count)| count * (value - mean) * (value - mean)).sum();
    (squares / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middles_are_those_that_fio_reports() {
        // From json+ of fio 3.42 and percentiles of 3.33.
        for (ns, middle) in [(20, 20), (132, 133), (276, 278), (8_700, 8_640), (8_768, 8_768), (84_100, 84_480)] {
            assert_eq!(bucket_middle(ns), middle, "{ns}");
        }
        assert_eq!(bucket_middle(23_457_999), 23_461_888);
    }

    #[test]
    fn a_percentile_never_lies_outside_of_what_was_measured() {
        let mut histogram = Histogram::new();
        histogram.record_many(1_000_003, 10);
        let found = percentiles(&histogram, &[1.0, 50.0, 99.99]);
        assert!(found.iter().all(|(_, ns)| *ns == 1_000_003), "{found:?}");
        assert_eq!(deviation_ns(&histogram), 0.0);
    }

    #[test]
    fn a_rank_is_the_nearest_one() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|ns| histogram.record(ns));
        assert_eq!(percentiles(&histogram, &[1.0, 50.0, 99.0, 99.9]), [(1.0, 1), (50.0, 50), (99.0, 99), (99.9, 100)]);
    }

    #[test]
    fn the_deviation_is_that_of_the_sample_within_a_bucket() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|i| histogram.record(i * 1_000));
        // Of 1 to n evenly: sqrt(n (n + 1) / 12).
        let truth = (1000.0f64 * 1001.0 / 12.0).sqrt() * 1_000.0;
        assert!((deviation_ns(&histogram) / truth - 1.0).abs() < 1.0 / 128.0);
    }
}
