//! How many independent I/Os a run's I/Os are worth, and the intervals of percentiles and of the mean that follow.
//!
//! I/Os of one run depend on each other: a queue, a flush or a neighbour's burst delays many together. An interval from
//! order statistics takes them as independent, and of 95 % such intervals 9 to 64 % contain the truth. Here the variance of
//! the share of I/Os above a threshold is taken from slices of the run instead ([`crate::long_run`]). Its ratio to that of
//! independent I/Os is the **inflation**; n / inflation is the number of independent I/Os that the run is worth.
//!
//! The interval of a percentile is the binomial one for that number. A run that shows little dependence by chance is the one that
//! passes, so whether a percentile has an interval does not rest on its own inflation alone:
//! - the largest inflation of the thresholds from a fifth to five times the share above the percentile decides;
//! - if fewer than 20 independent I/Os lie beyond the percentile, they count as fewer in proportion; with fewer than 10 there is
//!   only a lower bound: the threshold of a larger share that is surely above the percentile's own;
//! - a run shorter than 25 s has only bounds: ups and downs of recorded machines last seconds, and a shorter run cannot show that
//!   it contains any.
//!
//! `docs/dev/statistics.md` has coverage and width, measured by `tests/it/dependence.rs`.
//!
//! Cannot see: what changes more slowly than the run, and what happens to no I/O of it.
//!
//! Source: indicators of quantiles: S. Asmussen & P. W. Glynn, "Stochastic Simulation", III.5; effective sample size:
//! J. M. Flegal & G. L. Jones (2010); ranks: [`crate::interval_ranks`]'s binomial distribution by E. A. Cornish &
//! R. A. Fisher (1938).

use crate::long_run::{SLICES_MIN, variance_of_sum};
use crate::{normal_quantile, quantile, quantile_within, stddev_ns};
use trueio_model::{Dependence, Histogram, Inflation, LatencySlices, SliceCount, SliceSum};

/// Fewest nanoseconds of measured time for an interval: 25 stretches of a second, as long as a busy machine's ups and
/// downs last at least.
pub(crate) const SPAN_NS_MIN: u64 = 25_000_000_000;
/// Fewest nanoseconds of measured time from which an inflation is estimated.
const ESTIMATE_NS_MIN: u64 = 5_000_000_000;
/// Fewest independent I/Os beyond a percentile that has an interval.
pub const BEYOND_MIN: f64 = 10.0;
/// Fewer independent I/Os beyond a percentile count as fewer, in proportion.
const BEYOND_ENOUGH: f64 = 20.0;
/// Fewest I/Os above a threshold whose inflation is estimated.
const ABOVE_MIN: f64 = 10.0;
/// The slowest I/Os, as a share, and the most that they may contribute to a mean that has an interval: another run might have none of them.
const SLOWEST: f64 = 1e-3;
const SLOWEST_SUM_MAX: f64 = 0.1;
/// How far, as a factor of the share above it, other thresholds speak for a percentile. A little above 5, for 0.1 and 0.5.
const NEIGHBOURS: f64 = 5.1;
/// Two shares are one if they differ by less than this factor.
const SAME: f64 = 1.000_001;

/// The shares above the thresholds: steps of 2 to 2.5 towards both tails.
const SHARES: [f64; 23] = [
    0.99, 0.975, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4, 5e-5,
    2.5e-5, 1e-5, 5e-6, 2.5e-6, 1e-6,
];

/// The share above the median.
const MEDIAN: f64 = 0.5;

/// Why a percentile has no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoInterval {
    /// The run is too short.
    Short {
        /// About how many nanoseconds are missing.
        missing_ns: u64,
        /// Above the median, what the percentile is at least in 97.5 % of runs, in nanoseconds, if the run shows that.
        at_least_ns: Option<u64>,
    },
    /// Not a percentile, or no I/O.
    NoPercentile,
}

/// How the I/Os of an operation depend on each other; `span_ns` is the measured time. `None` if the run is too short to
/// show it.
pub fn dependence(slices: &LatencySlices, span_ns: u64) -> Option<Dependence> {
    if slices.len() < SLICES_MIN || span_ns < ESTIMATE_NS_MIN {
        return None;
    }
    let inflations = SHARES.iter().zip(slices.above(&SHARES)).filter_map(|(&share_above, slices)| {
        let total: f64 = slices.iter().map(|slice| slice.count).sum();
        let is_known = total * share_above.min(1.0 - share_above) >= ABOVE_MIN;
        Some(Inflation { share_above, factor: is_known.then(|| inflation(&slices)).flatten()? })
    });
    let inflations: Vec<Inflation> = inflations.collect();
    let sums = slices.sums();
    let count: f64 = sums.iter().map(|of| of.count).sum();
    // What moves the median as slowly as the run lasts moves every other figure, too.
    let is_slow = count * MEDIAN >= ABOVE_MIN && !inflations.iter().any(|of| of.share_above == MEDIAN);
    Some(Dependence {
        slice_count: slices.len() as u32,
        span_ns,
        inflations: if is_slow { Vec::new() } else { inflations },
        mean_factor: if is_slow { None } else { mean_inflation(&sums) },
    })
}

/// The dependence of several operations' I/Os together, each with their number: as if a slow moment delayed all of them
/// at once, and each as much as it does at its worst threshold. `None` if one of them is unknown.
pub fn joined_dependence<'a>(parts: impl IntoIterator<Item = (u64, Option<&'a Dependence>)>) -> Option<Dependence> {
    let parts: Option<Vec<(u64, &Dependence)>> =
        parts.into_iter().filter(|part| part.0 > 0).map(|(count, of)| Some((count, of?))).collect();
    let parts = parts?;
    if let [(_, only)] = parts[..] {
        return Some(only.clone());
    }
    let total: f64 = parts.iter().map(|part| part.0 as f64).sum();
    // Deviations add up, not variances.
    let deviations = parts.iter().map(|(count, of)| {
        let worst = of.inflations.iter().map(|of| of.factor).fold(1.0, f64::max);
        (worst * *count as f64).sqrt()
    });
    let factor = (deviations.sum::<f64>().powi(2) / total).max(1.0);
    let mut shares: Vec<f64> = parts.iter().flat_map(|part| &part.1.inflations).map(|of| of.share_above).collect();
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    shares.dedup();
    Some(Dependence {
        slice_count: parts.iter().map(|part| part.1.slice_count).min()?,
        span_ns: parts.iter().map(|part| part.1.span_ns).min()?,
        inflations: shares.into_iter().map(|share_above| Inflation { share_above, factor }).collect(),
        mean_factor: parts.iter().all(|part| part.1.mean_factor.is_some()).then_some(factor),
    })
}

/// By how much the variance of the share of I/Os above a threshold exceeds that of independent I/Os, at least 1. `None` if all
/// I/Os are on one side of it, or the run is too short for their dependence.
fn inflation(slices: &[SliceCount]) -> Option<f64> {
    let all = slices.iter().fold(SliceCount::default(), |sum, slice| SliceCount {
        count: sum.count + slice.count,
        above: sum.above + slice.above,
    });
    let share = all.above / all.count;
    if !(share > 0.0 && share < 1.0) {
        return None;
    }
    // Slices have unequal counts: a ratio estimator.
    let residuals: Vec<f64> = slices.iter().map(|slice| slice.above - share * slice.count).collect();
    Some((variance_of_sum(&residuals)? / (all.count * share * (1.0 - share))).max(1.0))
}

/// By how much the variance of the mean latency exceeds that of independent I/Os, at least 1; `None` as for a share.
fn mean_inflation(sums: &[SliceSum]) -> Option<f64> {
    let (count, sum, squares) =
        sums.iter().fold((0.0, 0.0, 0.0), |all, of| (all.0 + of.count, all.1 + of.sum_ns, all.2 + of.squares_ns2));
    let mean = sum / count;
    let variance = squares / count - mean * mean;
    // Rounding of equal latencies.
    if variance <= 1e-9 * mean * mean {
        return (count > 0.0).then_some(1.0);
    }
    let residuals: Vec<f64> = sums.iter().map(|of| of.sum_ns - mean * of.count).collect();
    Some((variance_of_sum(&residuals)? / (count * variance)).max(1.0))
}

/// The number of independent I/Os that lie beyond the `q`-quantile of `count` I/Os; `None` if that is not known.
pub fn independent_beyond(count: u64, q: f64, dependence: &Dependence) -> Option<f64> {
    Some(count as f64 / Factors::at(dependence, 1.0 - q)?.largest * q.min(1.0 - q))
}

/// The interval of the mean of `histogram` that misses the true one in at most `alpha` of runs, in nanoseconds. `None` if the run is
/// too short for one.
pub fn mean_interval(histogram: &Histogram, dependence: Option<&Dependence>, alpha: f64) -> Option<(f64, f64)> {
    let dependence = dependence.filter(|of| of.span_ns >= SPAN_NS_MIN)?;
    let worth = histogram.count() as f64 / dependence.mean_factor?;
    if worth < BEYOND_MIN || sum_of_slowest(histogram) > SLOWEST_SUM_MAX {
        return None;
    }
    let (mean, deviation) = (histogram.mean_ns()?, stddev_ns(histogram)?);
    let half = normal_quantile(1.0 - alpha / 2.0) * deviation / (worth * (worth / BEYOND_ENOUGH).min(1.0)).sqrt();
    Some(((mean - half).max(0.0), mean + half))
}

/// The share of the sum of all latencies that the slowest 0.1 % of I/Os contribute.
fn sum_of_slowest(histogram: &Histogram) -> f64 {
    let (mut left, mut sum) = (histogram.count() as f64 * SLOWEST, 0.0);
    let buckets: Vec<_> = histogram.buckets().collect();
    for (low, high, n) in buckets.into_iter().rev() {
        let taken = left.min(n as f64);
        sum += taken * (low as f64 / 2.0 + high as f64 / 2.0);
        left -= taken;
    }
    sum / histogram.sum_ns().max(1) as f64
}

/// The interval of the `q`-quantile of `histogram` that misses the true one in at most `alpha` of runs, in nanoseconds.
/// `span_ns`: the measured time.
///
/// # Errors
/// [`NoInterval`], with the time that is missing and what is known instead.
pub fn quantile_interval(
    histogram: &Histogram,
    q: f64,
    dependence: Option<&Dependence>,
    span_ns: u64,
    alpha: f64,
) -> Result<(u64, u64), NoInterval> {
    if !(q > 0.0 && q < 1.0) || histogram.is_empty() {
        return Err(NoInterval::NoPercentile);
    }
    let (n, share_above) = (histogram.count() as f64, 1.0 - q);
    let factors = dependence.and_then(|dependence| Factors::at(dependence, share_above));
    let limits = factors.and_then(|factors| share_limits(n, share_above, factors, alpha));
    let (Some((fewest, most)), true) = (limits, span_ns >= SPAN_NS_MIN) else {
        let missing_ns = missing_ns(n * q.min(share_above), factors, dependence, span_ns);
        let bound = dependence.filter(|_| q > 0.5).and_then(|of| share_surely_above(n, share_above, of, alpha));
        let at_least_ns = bound.and_then(|share| value_below(histogram, share)).map(|ns| ns as u64);
        return Err(NoInterval::Short { missing_ns, at_least_ns });
    };
    let ends = value_below(histogram, most).zip(value_below(histogram, fewest));
    let (low, high) = ends.ok_or(NoInterval::NoPercentile)?;
    // The percentile itself is shown as the upper edge of its bucket.
    let shown = quantile(histogram, q).map_or(0, |found| found.value_ns);
    Ok((low as u64, (high.ceil() as u64).max(shown)))
}

/// The latency, in nanoseconds, that a share of I/Os is above: within its bucket where its rank lies among the bucket's, because an interval may be
/// narrower than a bucket.
fn value_below(histogram: &Histogram, above: f64) -> Option<f64> {
    let (min, max) = (histogram.min_ns()? as f64, histogram.max_ns()? as f64);
    let found = quantile_within(histogram.buckets(), histogram.count(), 1.0 - above);
    Some(found.map_or(max, |ns| ns.clamp(min, max)))
}

/// About how many nanoseconds a run needs beyond `span_ns` for an interval of a percentile with `beyond` I/Os beyond it.
fn missing_ns(beyond: f64, factors: Option<Factors>, dependence: Option<&Dependence>, span_ns: u64) -> u64 {
    let needed = match (factors, dependence) {
        (Some(factors), _) => BEYOND_MIN * factors.largest / beyond,
        // Enough I/Os, and a dependence as long as the run.
        (None, Some(_)) if beyond >= ABOVE_MIN => 2.0,
        // The allowance that independent I/Os get.
        _ => BEYOND_MIN * 1.13 / beyond,
    };
    let needed_ns = (span_ns as f64 * needed.max(1.0)).max(SPAN_NS_MIN as f64);
    // A run that is long enough by this reckoning and has no estimate needs more of everything.
    (needed_ns - span_ns as f64).max(span_ns as f64 * 0.1).min(1e18) as u64
}

/// The shares above a threshold that `share`, seen in `n` I/Os, may stand for: (fewest, most). `None` if too few independent I/Os lie
/// beyond the threshold.
fn share_limits(n: f64, share: f64, factors: Factors, alpha: f64) -> Option<(f64, f64)> {
    let beyond = n / factors.largest * share.min(1.0 - share);
    if beyond < BEYOND_MIN {
        return None;
    }
    // Of `worth` independent I/Os, B lie above the true quantile: binomial, its quantiles by Cornish and Fisher, half a
    // rank further out on each side.
    let worth = n / factors.own * (beyond / BEYOND_ENOUGH).min(1.0);
    let (mean, deviation) = (worth * share, (worth * share * (1.0 - share)).sqrt());
    let skew = (1.0 - 2.0 * share) / deviation;
    let z = normal_quantile(1.0 - alpha / 2.0);
    let bend = skew * (z * z - 1.0) / 6.0;
    let limit = |ranks: f64| (ranks / worth).clamp(0.0, 1.0);
    Some((limit(mean + deviation * (bend - z) - 0.5), limit(mean + deviation * (bend + z) + 0.5)))
}

/// The smallest share of I/Os above a threshold that is surely larger than `share_above`, of those whose dependence is known.
fn share_surely_above(n: f64, share_above: f64, dependence: &Dependence, alpha: f64) -> Option<f64> {
    let shares = dependence.inflations.iter().map(|of| of.share_above).filter(|share| *share > share_above * SAME);
    let surely = shares.filter(|&share| {
        let limits = Factors::at(dependence, share).and_then(|factors| share_limits(n, share, factors, alpha));
        limits.is_some_and(|(fewest, _)| fewest >= share_above)
    });
    surely.min_by(f64::total_cmp)
}

/// The inflations at a threshold.
#[derive(Debug, Clone, Copy)]
struct Factors {
    /// Its own, or the larger one of the thresholds around it.
    own: f64,
    /// The largest of the thresholds near it.
    largest: f64,
}

impl Factors {
    /// `None` if the inflation is not known at the threshold, or beyond it.
    fn at(dependence: &Dependence, share_above: f64) -> Option<Self> {
        let tail = |share: f64| if share_above <= 0.5 { share } else { 1.0 - share };
        let wanted = tail(share_above);
        let is_same_side = |of: &&Inflation| (of.share_above - 0.5) * (share_above - 0.5) >= 0.0;
        let ratios =
            || dependence.inflations.iter().filter(is_same_side).map(|of| (tail(of.share_above) / wanted, of.factor));
        let nearest = |is_beyond: bool| {
            let near = ratios().filter(|of| if is_beyond { of.0 <= SAME } else { of.0 >= 1.0 / SAME });
            near.min_by(|a, b| a.0.ln().abs().total_cmp(&b.0.ln().abs())).filter(|of| of.0 >= 1.0 / NEIGHBOURS)
        };
        let is_wanted = |share: &f64| (share / share_above - 1.0).abs() < SAME - 1.0;
        let is_known = dependence.inflations.iter().any(|of| is_wanted(&of.share_above));
        if !is_known && SHARES.iter().any(is_wanted) {
            return None;
        }
        let own = nearest(true)?.1.max(nearest(false).map_or(1.0, |of| of.1));
        let near = ratios().filter(|of| (1.0 / NEIGHBOURS..=NEIGHBOURS).contains(&of.0));
        Some(Self { own, largest: near.fold(own, |most, of| most.max(of.1)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;
    use trueio_model::SliceRecorder;

    /// A run of intervals of 100 ms with these latencies each.
    fn run(intervals: impl Iterator<Item = Vec<u64>>) -> (LatencySlices, Histogram, u64) {
        let (mut slices, mut total, mut span_ns) = (SliceRecorder::new(), Histogram::new(), 0);
        for latencies in intervals {
            let mut interval = Histogram::new();
            latencies.into_iter().for_each(|ns| interval.record(ns));
            slices.end_interval(&interval);
            total.merge(&interval);
            span_ns += 100_000_000;
        }
        (slices.finish(), total, span_ns)
    }

    /// 1,000 I/Os an interval, 20 of them slow: in each, or those of 20 intervals in one of 20 at random.
    fn slow_ios(intervals: u64, is_clustered: bool) -> (LatencySlices, Histogram, u64) {
        let mut draws = Draws::new(23);
        run((0..intervals).map(|_| {
            let slow = if !is_clustered { 20 } else { u64::from(draws.unit() < 0.05) * 400 };
            (0..1_000).map(|k| if k < slow { 5_000_000 + k } else { 100_000 + k * 10 }).collect()
        }))
    }

    #[test]
    fn clustered_slow_ios_are_worth_few_and_have_a_wider_interval_or_none() {
        let (slices, total, span_ns) = slow_ios(600, false);
        let scattered = dependence(&slices, span_ns).expect("long enough");
        let (low, high) = quantile_interval(&total, 0.99, Some(&scattered), span_ns, 0.05).expect("an interval");
        assert!(low < 5_100_000 && high <= 5_100_000, "{low} {high}");
        let (slices, total, span_ns) = slow_ios(280, true);
        let clustered = dependence(&slices, span_ns).expect("long enough");
        let factor = |of: &Dependence| Factors::at(of, 0.01).expect("known").own;
        assert!(factor(&clustered) > 50.0 * factor(&scattered), "{clustered:?}");
        let none = quantile_interval(&total, 0.99, Some(&clustered), span_ns, 0.05);
        assert!(matches!(none, Err(NoInterval::Short { missing_ns, .. }) if missing_ns > span_ns / 10), "{none:?}");
    }

    #[test]
    fn a_run_of_less_than_25_s_has_no_interval_but_the_time_that_is_missing() {
        for (intervals, missing_ns) in [(10, 24_000_000_000), (249, 2_490_000_000)] {
            let (slices, total, span_ns) = slow_ios(intervals, false);
            let found = dependence(&slices, span_ns);
            assert_eq!(found.is_some(), intervals > 100);
            let none = quantile_interval(&total, 0.5, found.as_ref(), span_ns, 0.05);
            assert!(
                matches!(none, Err(NoInterval::Short { missing_ns: ns, .. }) if ns == missing_ns),
                "{intervals}: {none:?}"
            );
        }
        let (slices, total, span_ns) = slow_ios(250, false);
        let found = dependence(&slices, span_ns);
        assert!(quantile_interval(&total, 0.5, found.as_ref(), span_ns, 0.05).is_ok());
        // 250,000 I/Os; p99.9999 needs at least 10,000,000.
        let far = quantile_interval(&total, 0.999_999, found.as_ref(), span_ns, 0.05);
        assert!(matches!(far, Err(NoInterval::Short { missing_ns, .. }) if missing_ns >= 39 * span_ns), "{far:?}");
        for q in [0.0, 1.0, f64::NAN] {
            assert_eq!(quantile_interval(&total, q, found.as_ref(), span_ns, 0.05), Err(NoInterval::NoPercentile));
        }
    }

    #[test]
    fn a_smaller_error_has_a_wider_interval_and_equal_latencies_one_bucket() {
        let (slices, total, span_ns) = slow_ios(300, false);
        let found = dependence(&slices, span_ns);
        let at = |alpha| quantile_interval(&total, 0.5, found.as_ref(), span_ns, alpha).expect("an interval");
        let (wide, narrow) = (at(0.01), at(0.05));
        assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1, "{wide:?} {narrow:?}");
        let (slices, total, span_ns) = run((0..250).map(|_| vec![100_000; 1_000]));
        let found = dependence(&slices, span_ns);
        assert_eq!(quantile_interval(&total, 0.99, found.as_ref(), span_ns, 0.05), Ok((100_000, 100_000)));
    }

    #[test]
    fn operations_that_slow_down_together_are_worth_less_than_each() {
        let (slices, _, span_ns) = slow_ios(600, true);
        let one = dependence(&slices, span_ns);
        let joined = joined_dependence([(1_000, one.as_ref()), (1_000, one.as_ref())]).expect("both known");
        let worst = |of: &Dependence| of.inflations.iter().map(|of| of.factor).fold(0.0, f64::max);
        let one = one.expect("long enough");
        assert!((worst(&joined) / worst(&one) - 2.0).abs() < 1e-9, "{joined:?}");
        assert_eq!(joined_dependence([(1_000, Some(&one)), (0, None)]), Some(one.clone()));
        assert_eq!(joined_dependence([(1_000, Some(&one)), (1, None)]), None);
    }
}
