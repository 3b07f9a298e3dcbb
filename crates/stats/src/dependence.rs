//! How many independent I/Os a run's I/Os are worth, and the interval of a percentile that follows.
//!
//! I/Os of one run depend on each other: a queue, a flush or a neighbour's burst delays many together. An interval from
//! order statistics takes them as independent, and of 95 % such intervals 9 to 64 % contain the truth. Here the variance of
//! the share of I/Os above a threshold is taken from batches of slices of the run instead. Its ratio to that of
//! independent I/Os is the **inflation**; n / inflation is the number of independent I/Os that the run is worth.
//!
//! Each choice leans to the safe side, because a run that shows little dependence by chance is the one that passes:
//! - batches of one and of two slices, and the larger inflation of both; correlation between neighbouring batches of one
//!   slice (ρ) enlarges theirs by (1 + ρ) / (1 − ρ), and by more if that leaves less than 16 independent batches;
//! - the upper 90 % confidence limit of the inflation, not its estimate, and Student's t for the normal distribution;
//! - the largest inflation of the thresholds from a fifth to five times the share above the percentile;
//! - less than 40 independent I/Os beyond the percentile count as fewer, by the square of what is missing;
//! - no interval if fewer than 20 independent I/Os lie beyond the percentile, or the run is shorter than 25 s: ups and
//!   downs of recorded machines last seconds, and a shorter run cannot show that it contains any.
//!
//! `docs/dev/statistics.md` has the coverage, measured by `tests/it/dependence.rs`.
//!
//! Cannot see: what changes more slowly than the run, and what happens to no I/O of it.
//!
//! Source: batch means of indicators: S. Asmussen & P. W. Glynn, "Stochastic Simulation", III.5; effective sample size:
//! J. M. Flegal & G. L. Jones (2010); ranks: [`crate::interval_ranks`]'s binomial distribution by E. A. Cornish &
//! R. A. Fisher (1938).

use crate::quantile::low_edge_at_rank;
use crate::{normal_quantile, student_quantile};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use trueio_model::{Dependence, Histogram, Inflation, LatencySlices, SliceCount};

/// Fewest slices that show how I/Os depend on each other.
const SLICES_MIN: usize = 32;
/// Fewest nanoseconds of measured time for an interval: 25 stretches of a second, as long as a busy machine's ups and
/// downs last at least.
const SPAN_NS_MIN: u64 = 25_000_000_000;
/// Fewest nanoseconds of measured time from which an inflation is estimated.
const ESTIMATE_NS_MIN: u64 = 5_000_000_000;
/// Fewest independent I/Os beyond a percentile that has an interval.
pub const BEYOND_MIN: f64 = 20.0;
/// Batches that correlate are worth fewer. Below this number the inflation grows with the square of what is missing.
const BATCHES_MIN: f64 = 16.0;
/// Fewest I/Os above a threshold whose inflation is estimated.
const ABOVE_MIN: f64 = 10.0;
/// How far, as a factor of the share above it, other thresholds speak for a percentile. A little above 5, for 0.1 and 0.5.
const NEIGHBOURS: f64 = 5.1;
/// How sure the upper limit of the inflation is.
const LIMIT: f64 = 0.9;

/// The shares above the thresholds: steps of 2 to 2.5 towards both tails.
const SHARES: [f64; 23] = [
    0.99, 0.975, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4, 5e-5,
    2.5e-5, 1e-5, 5e-6, 2.5e-6, 1e-6,
];

/// Why a percentile has no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoInterval {
    /// The run is too short. The value estimates how many nanoseconds are missing.
    Needs(u64),
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
    Some(Dependence { slice_count: slices.len() as u32, span_ns, inflations: inflations.collect() })
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
    })
}

/// By how much the variance of the share of I/Os above a threshold exceeds that of independent I/Os, at least 1, with
/// allowance for being an estimate. `None` if all I/Os are on one side of it.
fn inflation(slices: &[SliceCount]) -> Option<f64> {
    let mut largest = 1.0f64;
    for each in [1, 2] {
        let batches: Vec<SliceCount> = slices.chunks_exact(each).map(sum).collect();
        let all = sum(&batches);
        let share = all.above / all.count;
        if !(share > 0.0 && share < 1.0) {
            return None;
        }
        // Batches have unequal counts: a ratio estimator.
        let rests: Vec<f64> = batches.iter().map(|batch| batch.above - share * batch.count).collect();
        let squares: f64 = rests.iter().map(|rest| rest * rest).sum();
        let k = batches.len() as f64;
        let mut found = squares * k / (k - 1.0) / (all.count * share * (1.0 - share));
        if each == 1 && squares > 0.0 {
            let alike = rests.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
            // The estimate of ρ is too small by about 1 / k.
            let rho = (alike + 1.0 / k).clamp(0.0, 0.9);
            let longer = (1.0 + rho) / (1.0 - rho);
            found *= longer * (BATCHES_MIN * longer / k).max(1.0).powi(2);
        }
        let freedom = k - 1.0;
        let limit = freedom / ChiSquared::new(freedom).ok()?.inverse_cdf(1.0 - LIMIT);
        let wider = student_quantile(0.975, freedom)? / normal_quantile(0.975);
        largest = largest.max(found * limit * wider * wider);
    }
    Some(largest)
}

fn sum(slices: &[SliceCount]) -> SliceCount {
    slices.iter().fold(SliceCount::default(), |sum, slice| SliceCount {
        count: sum.count + slice.count,
        above: sum.above + slice.above,
    })
}

/// The number of independent I/Os that lie beyond the `q`-quantile of `count` I/Os; `None` if that is not known.
pub fn independent_beyond(count: u64, q: f64, dependence: &Dependence) -> Option<f64> {
    Some(count as f64 / factor_at(dependence, 1.0 - q)? * q.min(1.0 - q))
}

/// The interval of the `q`-quantile of `histogram` that misses the true one in at most `alpha` of runs, in nanoseconds.
/// `span_ns`: the measured time.
///
/// # Errors
/// [`NoInterval`], with the time that is missing.
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
    let tail = q.min(1.0 - q);
    let factor = dependence.and_then(|dependence| factor_at(dependence, 1.0 - q));
    // Without an estimate, the allowance that independent I/Os get.
    let worth = histogram.count() as f64 / factor.unwrap_or(1.5);
    let (Some(_), true) = (factor, worth * tail >= BEYOND_MIN && span_ns >= SPAN_NS_MIN) else {
        let needed = (span_ns as f64 * (BEYOND_MIN / (worth * tail)).max(1.0)).max(SPAN_NS_MIN as f64);
        // A run that is long enough by this reckoning and has no estimate needs more of everything.
        let missing = (needed - span_ns as f64).max(span_ns as f64 * 0.1);
        return Err(NoInterval::Needs(missing.min(1e18) as u64));
    };
    // A run whose estimate is near the threshold may have passed it by luck: it is worth less by what is missing to twice.
    let worth = worth * (worth * tail / (2.0 * BEYOND_MIN)).min(1.0);
    // Of `worth` independent I/Os, B lie above the true quantile: binomial, its quantiles by Cornish and Fisher, half a
    // rank further out on each side.
    let (mean, deviation) = (worth * (1.0 - q), (worth * q * (1.0 - q)).sqrt());
    let skew = (2.0 * q - 1.0) / deviation;
    let z = normal_quantile(1.0 - alpha / 2.0);
    let bend = skew * (z * z - 1.0) / 6.0;
    let share = |ranks: f64| (ranks / worth).clamp(0.0, 1.0);
    let (fewest, most) = (share(mean + deviation * (bend - z) - 0.5), share(mean + deviation * (bend + z) + 0.5));
    let n = histogram.count() as f64;
    let rank = |above: f64| (((1.0 - above) * n).ceil() as u64).clamp(1, histogram.count());
    let low = low_edge_at_rank(histogram, rank(most)).ok_or(NoInterval::NoPercentile)?;
    let high = histogram.value_at_rank(rank(fewest)).ok_or(NoInterval::NoPercentile)?;
    Ok((low.min(high), high))
}

/// The inflation at a threshold: the largest of its neighbours'. `None` if none of them is known, or only those far from it.
fn factor_at(dependence: &Dependence, share_above: f64) -> Option<f64> {
    let tail = |share: f64| if share_above <= 0.5 { share } else { 1.0 - share };
    let wanted = tail(share_above);
    let near = dependence.inflations.iter().filter(|of| {
        let ratio = tail(of.share_above) / wanted;
        let is_same_side = (of.share_above - 0.5) * (share_above - 0.5) >= 0.0;
        is_same_side && (1.0 / NEIGHBOURS..=NEIGHBOURS).contains(&ratio)
    });
    // Nothing at or beyond the percentile itself is known if the sample has too few I/Os there.
    let mut is_own = false;
    let factor = near.inspect(|of| is_own |= tail(of.share_above) <= wanted * 1.000_001).map(|of| of.factor);
    let factor = factor.fold(None, |most: Option<f64>, factor| Some(most.map_or(factor, |most| most.max(factor))));
    factor.filter(|_| is_own)
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
        let (slices, total, span_ns) = slow_ios(600, true);
        let clustered = dependence(&slices, span_ns).expect("long enough");
        let factor = |of: &Dependence| factor_at(of, 0.01).expect("known");
        assert!(factor(&clustered) > 50.0 * factor(&scattered), "{clustered:?}");
        let none = quantile_interval(&total, 0.99, Some(&clustered), span_ns, 0.05);
        assert!(matches!(none, Err(NoInterval::Needs(ns)) if ns > span_ns / 10), "{none:?}");
    }

    #[test]
    fn a_run_of_less_than_25_s_has_no_interval_but_the_time_that_is_missing() {
        for (intervals, missing_ns) in [(10, 24_000_000_000), (249, 2_490_000_000)] {
            let (slices, total, span_ns) = slow_ios(intervals, false);
            let found = dependence(&slices, span_ns);
            assert_eq!(found.is_some(), intervals > 100);
            let none = quantile_interval(&total, 0.5, found.as_ref(), span_ns, 0.05);
            assert_eq!(none, Err(NoInterval::Needs(missing_ns)), "{intervals}");
        }
        let (slices, total, span_ns) = slow_ios(250, false);
        let found = dependence(&slices, span_ns);
        assert!(quantile_interval(&total, 0.5, found.as_ref(), span_ns, 0.05).is_ok());
        // 250,000 I/Os; p99.9999 needs at least 20,000,000.
        let far = quantile_interval(&total, 0.999_999, found.as_ref(), span_ns, 0.05);
        assert!(matches!(far, Err(NoInterval::Needs(ns)) if ns >= 79 * span_ns), "{far:?}");
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
