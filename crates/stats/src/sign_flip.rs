//! How often chance alone would give so large a mean of paired differences.
//!
//! If neither side is faster, the coin that decided the order also decided the sign of each difference:
//! every pattern of signs was equally likely. So p is the share of patterns whose mean lies at least as
//! far from zero. Nothing is assumed about the differences' distribution.
//!
//! Up to 16 differences all patterns are gone through; above, 5,000 are drawn from a seed, and the
//! pattern that was observed is counted in, so that p is never zero and never too small on average.
//!
//! Source: R. A. Fisher, "The Design of Experiments" (1935), section 21; B. Phipson and G. K. Smyth,
//! "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics 9 (2010).

use crate::random::Random;

/// Up to here every pattern of signs is gone through: 2^15 of them, for a pattern and its opposite are
/// equally far from zero.
const EXACT_MAX: usize = 16;
/// Patterns drawn above that.
const DRAWS: u32 = 5_000;

/// The two-sided p-value of "the mean is zero". `None` without a difference or if one is not finite.
pub fn sign_flip_p(differences: &[f64], seed: u64) -> Option<f64> {
    let n = differences.len();
    if n == 0 || !differences.iter().all(|d| d.is_finite()) {
        return None;
    }
    let total: f64 = differences.iter().map(|d| d.abs()).sum();
    // Sums of the same numbers in another order differ in their last digits.
    let reached = differences.iter().sum::<f64>().abs() - total * 1e-12;
    if n <= EXACT_MAX {
        let patterns = 1u32 << (n - 1);
        let extreme = (0..patterns)
            .filter(|pattern| {
                let sum: f64 =
                    differences.iter().enumerate().map(|(i, d)| if pattern >> i & 1 == 1 { -d } else { *d }).sum();
                sum.abs() >= reached
            })
            .count();
        return Some(extreme as f64 / f64::from(patterns));
    }
    let mut random = Random::new(seed);
    let mut extreme = 1;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for chunk in differences.chunks(64) {
            let mut signs = random.next();
            for d in chunk {
                sum += if signs & 1 == 1 { -d } else { *d };
                signs >>= 1;
            }
        }
        extreme += u32::from(sum.abs() >= reached);
    }
    Some(f64::from(extreme) / f64::from(DRAWS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;

    #[test]
    fn small_samples_give_the_shares_that_can_be_counted_by_hand() {
        // Of the 8 patterns of three equal numbers, two have all signs alike.
        assert_eq!(sign_flip_p(&[1.0, 1.0, 1.0], 1), Some(0.25));
        // 1 + 2 + 4: only the pattern itself and its opposite reach 7.
        assert_eq!(sign_flip_p(&[1.0, 2.0, 4.0], 1), Some(0.25));
        // −1 + 2 + 4 = 5 is reached by ±5 and ±7.
        assert_eq!(sign_flip_p(&[-1.0, 2.0, 4.0], 1), Some(0.5));
        assert_eq!(sign_flip_p(&[0.0; 10], 1), Some(1.0));
        assert_eq!(sign_flip_p(&[0.0; 100], 1), Some(1.0));
        assert_eq!(sign_flip_p(&[], 1), None);
        assert_eq!(sign_flip_p(&[f64::NAN, 1.0], 1), None);
    }

    #[test]
    fn a_drawn_p_is_the_same_for_the_same_seed_and_close_to_the_counted_one() {
        let mut draws = Draws::new(3);
        let mut sample: Vec<f64> = (0..16).map(|_| 0.4 + draws.normal()).collect();
        let counted = sign_flip_p(&sample, 1).unwrap();
        sample.push(0.0); // changes no sum, and takes the other way
        let drawn = sign_flip_p(&sample, 1).unwrap();
        assert_eq!(sign_flip_p(&sample, 1), Some(drawn));
        assert!((counted - drawn).abs() < 4.0 * (counted * (1.0 - counted) / 5_000.0).sqrt() + 1e-4);
    }

    /// Goal: if nothing differs, p ≤ 5 % in at most 5 % of samples, whatever the distribution.
    /// Method: 1,500 samples of 12 and 400 of 40 with a heavy tail; the bar is three standard errors up.
    #[test]
    fn p_is_below_5_percent_in_5_percent_of_samples_without_a_difference() {
        let mut draws = Draws::new(11);
        for (n, samples) in [(12, 1_500), (40, 400)] {
            let small = (0..samples)
                .filter(|&seed| {
                    let sample: Vec<f64> = (0..n).map(|_| draws.normal().powi(3)).collect();
                    sign_flip_p(&sample, seed).unwrap() <= 0.05
                })
                .count() as f64;
            let share = small / samples as f64;
            let error = (0.05 * 0.95 / samples as f64).sqrt();
            assert!((share - 0.05).abs() < 3.0 * error + 0.001, "n {n}: {share}");
        }
    }
}
