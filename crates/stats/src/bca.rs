//! The interval of any statistic of pairs, by resampling whole pairs.
//!
//! For quantiles that a single slice is too short for (a p99.9 of a thousand I/Os): pairs are drawn with
//! replacement, their histograms merged, the statistic taken, many times over. The plain percentiles of
//! such values are too narrow for few pairs (11 % misses instead of 5 % with ten, measured); the
//! bias-corrected and accelerated interval (BCa) moves them by the share of values below the estimate and by
//! the skewness that leaving out one pair at a time shows. Still only from 30 pairs on.
//!
//! I/Os are never resampled: those of the same time are similar, but would count as independent.
//!
//! Cannot do: ends so far out that fewer than ten of the drawn values lie beyond. An early look at a very
//! small α has no interval then.
//!
//! Source: B. Efron, "Better Bootstrap Confidence Intervals", Journal of the American Statistical
//! Association 82 (1987); B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 14.

use crate::hodges_lehmann::Interval;
use crate::random::Random;
use crate::{normal_quantile, normal_share_below};

/// The fewest pairs for which the interval is computed.
pub const BCA_PAIRS_MIN: usize = 30;

/// The two-sided interval at `alpha` of `statistic` over `pairs` pairs, from `draws` samples.
///
/// The statistic receives the weight of each pair (`pairs` numbers that sum to about `pairs`), and returns
/// `None` if it has no value. Returns `None` if there are too few pairs or draws for `alpha`, or the statistic of all pairs,
/// of all but one, or of more than one in a hundred samples has no value.
pub fn bca(
    pairs: usize,
    alpha: f64,
    draws: usize,
    seed: u64,
    mut statistic: impl FnMut(&[u32]) -> Option<f64>,
) -> Option<Interval> {
    if pairs < BCA_PAIRS_MIN || !(alpha > 0.0 && alpha < 1.0) || alpha / 2.0 * (draws as f64) < 10.0 {
        return None;
    }
    let mut counts = vec![1u32; pairs];
    let mut value_of = |counts: &[u32]| statistic(counts).filter(|v| v.is_finite());
    let estimate = value_of(&counts)?;

    let mut left_out = Vec::with_capacity(pairs);
    for i in 0..pairs {
        counts[i] = 0;
        left_out.push(value_of(&counts)?);
        counts[i] = 1;
    }
    let mean = left_out.iter().sum::<f64>() / pairs as f64;
    let power = |p: i32| left_out.iter().map(|v| (mean - v).powi(p)).sum::<f64>();
    let spread = power(2);
    let acceleration = if spread > 0.0 { power(3) / (6.0 * spread.powf(1.5)) } else { 0.0 };

    let mut random = Random::new(seed);
    let mut values = Vec::with_capacity(draws);
    for _ in 0..draws {
        counts.fill(0);
        for _ in 0..pairs {
            counts[random.below(pairs)] += 1;
        }
        values.extend(value_of(&counts));
    }
    if values.len() * 100 < draws * 99 {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let below = values.partition_point(|v| *v < estimate) as f64;
    let equal = values.partition_point(|v| *v <= estimate) as f64 - below;
    // Half of the ties count as below; a value beyond all others must not become infinite.
    let n = values.len() as f64;
    let bias = normal_quantile(((below + equal / 2.0) / n).clamp(0.5 / n, 1.0 - 0.5 / n));
    let at = |p: f64| {
        let z = bias + normal_quantile(p);
        let share = normal_share_below(bias + z / (1.0 - acceleration * z));
        values[((share * n) as usize).min(values.len() - 1)]
    };
    let (low, high) = (at(alpha / 2.0), at(1.0 - alpha / 2.0));
    Some(Interval { estimate, low: low.min(estimate), high: high.max(estimate) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;

    fn mean_of(sample: &[f64], counts: &[u32]) -> Option<f64> {
        let total: u32 = counts.iter().sum();
        (total > 0).then(|| sample.iter().zip(counts).map(|(v, c)| v * f64::from(*c)).sum::<f64>() / f64::from(total))
    }

    #[test]
    fn too_few_pairs_or_draws_and_a_statistic_without_a_value_have_no_interval() {
        let sample = [1.0; 40];
        let run = |pairs, alpha, draws| bca(pairs, alpha, draws, 1, |c| mean_of(&sample[..pairs], c));
        assert_eq!(run(29, 0.05, 2_000), None);
        assert_eq!(run(40, 0.005, 2_000), None, "five values beyond each end");
        assert_eq!(bca(40, 0.05, 2_000, 1, |_| None), None);
        assert_eq!(bca(40, 0.05, 2_000, 1, |_| Some(f64::NAN)), None);
        let same = run(40, 0.05, 2_000).unwrap();
        assert_eq!((same.low, same.estimate, same.high), (1.0, 1.0, 1.0));
    }

    /// Goal: the interval of a mean of skewed values (exponential, mean 1) contains the true value about
    /// as often as it states, and more often than the plain percentiles of the same values.
    /// Method: 500 samples of 30; the standard error is 1 %. Efron gives 93 % for this case.
    #[test]
    fn the_interval_covers_the_mean_of_skewed_values_in_at_least_91_of_100_samples() {
        let mut draws = Draws::new(13);
        let covered = (0..500)
            .filter(|&seed| {
                let sample: Vec<f64> = (0..30).map(|_| -(1.0 - draws.unit()).ln()).collect();
                !bca(30, 0.05, 1_000, seed, |c| mean_of(&sample, c)).unwrap().excludes(1.0)
            })
            .count() as f64
            / 500.0;
        assert!((0.91..=0.98).contains(&covered), "{covered}");
    }
}
