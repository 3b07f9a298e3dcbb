//! Which order statistics enclose a quantile with 95 % confidence.
//!
//! Of `n` independent draws, the number B that fall at or below the true q-quantile is binomial
//! (n, q), whatever the distribution. The r-th smallest draw is above the quantile when fewer than
//! r draws fall below it. So `[x(lower), x(upper)]` misses the quantile on the low side with
//! probability P(B ≤ lower − 1) and on the high side with P(B ≥ upper); each is kept at or below
//! 2.5 %. The interval is conservative: because ranks are whole numbers, and because ties and
//! buckets only widen it, it covers in at least 95 % of samples.
//!
//! An interval with two finite ends exists only if qⁿ ≤ 2.5 % and (1 − q)ⁿ ≤ 2.5 %: from 6 draws
//! for the median, 368 for p99, 3,688 for p99.9, 36,887 for p99.99.
//!
//! Source: W. J. Conover, "Practical Nonparametric Statistics", 3rd ed., section 3.2; H. A. David
//! and H. N. Nagaraja, "Order Statistics", 3rd ed., section 7.1.

/// What each side of the interval may miss: 2.5 %.
const TAIL: f64 = 0.025;

/// The 97.5th percentile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Beyond this variance the ranks are taken from the normal distribution. The sum of the binomial
/// weights would still be right, but it visits about 17 standard deviations of ranks; at 10^8 that
/// is 170,000 steps, half a millisecond.
const EXACT_VARIANCE_MAX: f64 = 1e8;

/// Ranks that enclose a quantile, counted from 1 (the smallest draw).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// The rank of the interval's lower end.
    pub lower: u64,
    /// The rank of the interval's upper end; never above the count.
    pub upper: u64,
}

/// The fewest draws that have a finite two-sided 95 % interval of the `q`-quantile: 6 for 0.5, 368
/// for 0.99. `None` if `q` is not between 0 and 1, both excluded: an extreme has no interval.
pub fn minimum_count(q: f64) -> Option<u64> {
    if !(q > 0.0 && q < 1.0) {
        return None;
    }
    // ln(1 − q) by ln_1p, and the larger of q and 1 − q decides.
    let per_draw = if q >= 0.5 { q.ln() } else { (-q).ln_1p() };
    let count = (TAIL.ln() / per_draw).ceil();
    (count < u64::MAX as f64).then_some((count as u64).max(1))
}

/// How far up `count` draws reach: the least share 1 − q that may lie above a quantile `q` which they
/// still support, 0.01 for 368 draws. `None` if they support no quantile above the median (below 6).
///
/// The share and not q, because q is hardly different from 1 for a large sample.
pub fn least_share_above(count: u64) -> Option<f64> {
    // qⁿ = 2.5 % solved for 1 − q.
    (count >= minimum_count(0.5)?).then(|| -(TAIL.ln() / count as f64).exp_m1())
}

/// The ranks of the two-sided 95 % interval of the `q`-quantile of `count` draws.
///
/// `None` if the sample is too small ([`minimum_count`]) or `q` is not between 0 and 1.
pub fn interval_ranks(count: u64, q: f64) -> Option<Ranks> {
    if count < minimum_count(q)? {
        return None;
    }
    let variance = count as f64 * q * (1.0 - q);
    let ranks = if variance <= EXACT_VARIANCE_MAX { exact(count, q) } else { normal(count, q) };
    (ranks.lower >= 1 && ranks.upper <= count).then_some(ranks)
}

/// By the binomial weights themselves.
///
/// The weights are computed relative to that of the mode, by the ratio of neighbours
/// w(k+1) / w(k) = (n − k) / (k + 1) · q / (1 − q), until they fall below 1e-18 of it; their sum
/// replaces the normalising factor, so that no factorial is needed.
fn exact(count: u64, q: f64) -> Ranks {
    const NEGLIGIBLE: f64 = 1e-18;
    let n = count as f64;
    let odds = q / (1.0 - q);
    let mode = (((n + 1.0) * q).floor() as u64).min(count);

    let mut below = Vec::new(); // w(mode − 1), w(mode − 2), …
    let mut weight = 1.0;
    let mut k = mode;
    while k > 0 {
        weight *= k as f64 / ((n - k as f64 + 1.0) * odds);
        if weight < NEGLIGIBLE {
            break;
        }
        below.push(weight);
        k -= 1;
    }
    let mut above = Vec::new(); // w(mode + 1), w(mode + 2), …
    let mut weight = 1.0;
    let mut k = mode;
    while k < count {
        weight *= (n - k as f64) * odds / (k as f64 + 1.0);
        if weight < NEGLIGIBLE {
            break;
        }
        above.push(weight);
        k += 1;
    }
    // Smallest first, so that small terms are not lost.
    let total: f64 = below.iter().rev().sum::<f64>() + above.iter().rev().sum::<f64>() + 1.0;
    let limit = TAIL * total;

    // The largest `lower` with P(B ≤ lower − 1) ≤ 2.5 %: sum from the far end until it no longer fits.
    let mut sum = 0.0;
    let mut lower = mode - below.len() as u64;
    for weight in below.iter().rev().chain([&1.0]) {
        sum += weight;
        if sum > limit {
            break;
        }
        lower += 1;
    }
    // The smallest `upper` with P(B ≥ upper) ≤ 2.5 %.
    let mut sum = 0.0;
    let mut upper = mode + above.len() as u64 + 1;
    for weight in above.iter().rev().chain([&1.0]) {
        sum += weight;
        if sum > limit {
            break;
        }
        upper -= 1;
    }
    Ranks { lower, upper }
}

/// By the normal distribution, one rank further out on each side. At a variance of 10^8 the
/// skewness left out is at most (Z² − 1) / 6 = 0.47 of a rank.
fn normal(count: u64, q: f64) -> Ranks {
    let n = count as f64;
    let half = Z * (n * q * (1.0 - q)).sqrt();
    Ranks { lower: (n * q - half).floor() as u64, upper: ((n * q + half).ceil() as u64).saturating_add(1).min(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;
    use proptest::prelude::*;

    #[test]
    fn the_counts_that_make_an_interval_finite_are_those_of_the_tables() {
        for (q, count) in [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)] {
            assert_eq!(minimum_count(q), Some(count), "q {q}");
            assert!(q.powf(count as f64) <= TAIL && q.powf(count as f64 - 1.0) > TAIL, "q {q}");
            assert!(interval_ranks(count - 1, q).is_none());
            assert_eq!(interval_ranks(count, q).unwrap().upper, count, "the least sample needs its maximum");
        }
        assert_eq!(minimum_count(0.01), minimum_count(0.99));
        for q in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(minimum_count(q), None, "q {q}");
            assert_eq!(interval_ranks(1_000_000, q), None, "q {q}");
        }
    }

    #[test]
    fn a_sample_reaches_up_to_the_quantile_that_it_is_the_least_sample_of() {
        assert_eq!(least_share_above(5), None);
        for q in [0.5, 0.9, 0.99, 0.9999] {
            let least = minimum_count(q).unwrap();
            assert!(least_share_above(least).unwrap() <= 1.0 - q, "q {q}");
            assert!(least_share_above(least - 1).is_none_or(|share| share > 1.0 - q), "q {q}");
        }
    }

    /// Goal: the relative weights give the ranks of the definition.
    /// Method: for small n, every tail is summed from binomial coefficients by Pascal's triangle,
    /// which shares nothing with the code under test.
    #[test]
    fn ranks_are_those_of_the_binomial_distribution_for_every_small_sample() {
        let mut row = vec![1.0f64];
        for n in 1..=400u64 {
            let mut next = vec![1.0; n as usize + 1];
            for k in 1..n as usize {
                next[k] = row[k - 1] + row[k];
            }
            row = next;
            for q in [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99] {
                let pmf = |k: u64| row[k as usize] * f64::powf(q, k as f64) * f64::powf(1.0 - q, (n - k) as f64);
                // lower = 0 and upper = n + 1 mean minus and plus infinity.
                let lower = (0..=n).take_while(|&l| (0..=l).map(pmf).sum::<f64>() <= TAIL).count() as u64;
                let upper = n + 1 - (0..=n).rev().take_while(|&u| (u..=n).map(pmf).sum::<f64>() <= TAIL).count() as u64;
                let expected = (lower >= 1 && upper <= n).then_some(Ranks { lower, upper });
                assert_eq!(interval_ranks(n, q), expected, "n {n} q {q}");
            }
        }
    }

    #[test]
    fn the_normal_ranks_of_a_large_sample_are_within_three_of_the_exact_ones_and_not_inside() {
        for q in [0.5, 0.9, 0.99, 0.999] {
            let count = (EXACT_VARIANCE_MAX / (q * (1.0 - q))) as u64;
            let (a, b) = (exact(count, q), normal(count, q));
            assert!(b.lower <= a.lower && a.lower - b.lower <= 3, "q {q}: {a:?} {b:?}");
            assert!(b.upper >= a.upper && b.upper - a.upper <= 3, "q {q}: {a:?} {b:?}");
        }
    }

    /// Goal: the interval holds the true quantile in at least 95 % of samples, and not in nearly all
    /// of them (it would be useless).
    /// Method: 1,500 samples of each size from three distributions with known quantiles: uniform,
    /// exponential (a queue's waits) and Pareto with exponent 1.5 (infinite variance: stalls). The
    /// standard error of the share is at most √(0.05 · 0.95 / 1500) = 0.56 %, so 93.3 % is three of
    /// them below 95 %. Small samples are conservative; 99.9 % is the upper bar where
    /// the sample is at least three times the least one.
    #[test]
    fn the_interval_covers_the_true_quantile_in_95_of_100_samples() {
        type Inverse = fn(f64) -> f64;
        let distributions: [(&str, Inverse); 3] = [
            ("uniform", |u| 1e5 + 9e5 * u),
            ("exponential", |u| -1e5 * (1.0 - u).ln()),
            ("pareto", |u| 1e5 / (1.0 - u).powf(1.0 / 1.5)),
        ];
        let mut draws = Draws::new(2026);
        for (name, inverse) in distributions {
            for (q, count) in [(0.5, 6), (0.5, 50), (0.5, 1_001), (0.9, 120), (0.99, 368), (0.99, 1_200)] {
                let truth = inverse(q);
                let mut covered = 0;
                for _ in 0..1_500 {
                    let mut sample: Vec<f64> = (0..count).map(|_| inverse(draws.unit())).collect();
                    sample.sort_unstable_by(f64::total_cmp);
                    let ranks = interval_ranks(count, q).unwrap();
                    let (low, high) = (sample[ranks.lower as usize - 1], sample[ranks.upper as usize - 1]);
                    covered += u32::from(low <= truth && truth <= high);
                }
                let share = f64::from(covered) / 1_500.0;
                assert!(share >= 0.933, "{name} q {q} n {count}: covered {share}");
                if count >= 50 && count as f64 >= 3.0 * minimum_count(q).unwrap() as f64 {
                    assert!(share <= 0.999, "{name} q {q} n {count}: covered {share}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_interval_encloses_the_point_estimate_and_stays_in_the_sample(count in 1u64..u64::MAX, q in 0.0001f64..0.9999) {
            if let Some(ranks) = interval_ranks(count, q) {
                let rank = (q * count as f64).ceil() as u64;
                prop_assert!(1 <= ranks.lower && ranks.lower <= rank.max(1) && ranks.upper >= rank && ranks.upper <= count);
            }
        }
    }
}
