//! The variance of a sum over slices of a run whose slices depend on each other.
//!
//! Neighbouring slices are alike, so the squares of their residuals say too little about the sum. What they say at the lowest
//! frequencies is right for any dependence that is shorter than the run: the mean square of the first 20 cosine transforms. Before that
//! the likeness of neighbours is taken out of the residuals, and put back into the result, so that a dependence of some slices
//! is seen, too. The estimate has 20 degrees of freedom whatever the dependence: a Student's t makes up for its error.
//!
//! A dependence as long as the run makes the lowest frequencies larger than the others, or neighbours too alike: there is no estimate then. Of independent
//! slices 7 % look like that by chance.
//!
//! Cannot see: ups and downs that take longer than 1.5 times the run, if they move the figure by less than about 10 times its standard error.
//!
//! Source: cosine transforms: E. Lazarus, D. J. Lewis, J. H. Stock & M. W. Watson, "HAR Inference: Recommendations for Practice",
//! Journal of Business & Economic Statistics 36 (2018); taking out the likeness: D. W. K. Andrews & J. C. Monahan, Econometrica 60 (1992).

use crate::dependence::SPAN_NS_MIN;
use crate::{normal_quantile, student_quantile};
use std::f64::consts::PI;

/// Fewest slices of an estimate, and half of the most that are used.
pub(crate) const SLICES_MIN: usize = 32;
/// Cosine transforms, which are the estimate's degrees of freedom.
const TRANSFORMS: usize = 20;
/// The correlation of neighbouring slices from which on a run is too short for its dependence.
const ALIKE_MAX: f64 = 0.6;
/// The lowest of them, and the ratio of their mean square to that of the others from which on a run is too short for its dependence.
const LOWEST: usize = 2;
const SLOW_MIN: f64 = 3.0;

/// The variance of the sum of `residuals`, which are what slices have above their share, oldest first; enlarged so that normal
/// quantiles at 95 % can be used with it. `None` with fewer than 32 slices, or if the run is too short for their dependence.
pub(crate) fn variance_of_sum(residuals: &[f64]) -> Option<f64> {
    let k = residuals.len() as f64;
    if residuals.len() < SLICES_MIN {
        return None;
    }
    let squares: f64 = residuals.iter().map(|of| of * of).sum();
    if squares == 0.0 {
        return Some(0.0);
    }
    let alike = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares;
    // The estimate is too small by about 1 / k.
    let rho = (alike + 1.0 / k).max(0.0);
    if !squares.is_finite() || rho >= ALIKE_MAX {
        return None;
    }
    let rests: Vec<f64> = residuals.windows(2).map(|pair| pair[1] - rho * pair[0]).collect();
    let squares: Vec<f64> = (1..=TRANSFORMS).map(|j| cosine_transform(&rests, j).powi(2)).collect();
    let mean = |squares: &[f64]| squares.iter().sum::<f64>() / squares.len() as f64;
    if mean(&squares[..LOWEST]) > SLOW_MIN * mean(&squares[LOWEST..]) {
        return None;
    }
    let power = mean(&squares);
    let wider = student_quantile(0.975, TRANSFORMS as f64)? / normal_quantile(0.975);
    Some(power * k / (1.0 - rho).powi(2) * wider * wider)
}

/// The `j`-th cosine transform, whose mean square is that of the values if they are independent.
fn cosine_transform(values: &[f64], j: usize) -> f64 {
    let n = values.len() as f64;
    let turn = PI * j as f64 / n;
    let sum: f64 = values.iter().enumerate().map(|(i, value)| value * (turn * (i as f64 + 0.5)).cos()).sum();
    sum * (2.0 / n).sqrt()
}

/// The events per second of a series of rows (count, nanoseconds), oldest first, with the interval that contains the true rate in 95 %
/// of runs: (low, high). `None` if the series is too short.
pub fn rate_interval(rows: &[(u64, u64)]) -> Option<(f64, f64)> {
    // As many slices as latencies have.
    let each = rows.len().div_ceil(2 * SLICES_MIN).max(1);
    let slices: Vec<(f64, f64)> = rows
        .chunks(each)
        .map(|rows| rows.iter().fold((0.0, 0.0), |sum, row| (sum.0 + row.0 as f64, sum.1 + row.1 as f64 / 1e9)))
        .collect();
    let (count, seconds) = slices.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.1));
    if seconds * 1e9 < SPAN_NS_MIN as f64 {
        return None;
    }
    let rate = count / seconds;
    let residuals: Vec<f64> = slices.iter().map(|slice| slice.0 - rate * slice.1).collect();
    let half = normal_quantile(0.975) * variance_of_sum(&residuals)?.sqrt() / seconds;
    Some(((rate - half).max(0.0), rate + half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;

    /// `k` residuals of variance 1 whose neighbours are alike by `memory`, less their mean.
    fn residuals(draws: &mut Draws, memory: f64, k: usize) -> Vec<f64> {
        let mut state = draws.normal();
        let values: Vec<f64> = (0..k)
            .map(|_| {
                state = memory * state + (1.0 - memory * memory).sqrt() * draws.normal();
                state
            })
            .collect();
        let mean = values.iter().sum::<f64>() / k as f64;
        values.iter().map(|value| value - mean).collect()
    }

    /// Goal: the estimate is the variance of the sum, times the allowance of 1.13, whether slices are alike or not.
    /// Method: the mean of 400 estimates against the sum of all covariances; where slices are too alike, most runs have none.
    #[test]
    fn the_variance_of_a_sum_contains_what_slices_have_in_common() {
        let mut draws = Draws::new(29);
        let k = 40.0;
        for (memory, given_min) in [(0.0f64, 350), (0.3, 340), (0.5, 220)] {
            let truth = k + 2.0 * (1..40).map(|lag| (k - f64::from(lag)) * memory.powi(lag)).sum::<f64>();
            let found: Vec<f64> =
                (0..400).filter_map(|_| variance_of_sum(&residuals(&mut draws, memory, 40))).collect();
            assert!(found.len() >= given_min, "memory {memory}: {} of 400", found.len());
            let ratio = found.iter().sum::<f64>() / found.len() as f64 / truth;
            assert!((0.95..1.55).contains(&ratio), "memory {memory}: {ratio}");
        }
        let given = (0..400).filter(|_| variance_of_sum(&residuals(&mut draws, 0.95, 40)).is_some()).count();
        assert!(given < 40, "{given} of 400 runs of one or two ups and downs");
        // A wave of twice the length of the run, as high as the residuals' deviation, on residuals that are independent.
        let wave = |i: usize, phase: f64| 2.0f64.sqrt() * (PI * (i as f64 / 40.0 + phase)).sin();
        let with_wave = |draws: &mut Draws, phase| -> Vec<f64> {
            let values: Vec<f64> =
                residuals(draws, 0.0, 40).iter().enumerate().map(|(i, rest)| rest + wave(i, phase)).collect();
            let mean = values.iter().sum::<f64>() / 40.0;
            values.iter().map(|value| value - mean).collect()
        };
        let given =
            (0..400).filter(|k| variance_of_sum(&with_wave(&mut draws, f64::from(*k) / 200.0)).is_some()).count();
        assert!(given < 100, "{given} of 400 runs of half a wave");
        assert_eq!(variance_of_sum(&[1.0; 31]), None);
        assert_eq!(variance_of_sum(&[0.0; 40]), Some(0.0));
        assert_eq!(variance_of_sum(&[f64::NAN; 40]), None);
    }

    #[test]
    fn a_rate_has_an_interval_from_25_s_on_and_a_constant_one_has_no_width() {
        assert_eq!(rate_interval(&[]), None);
        assert_eq!(rate_interval(&[(5, 100_000_000); 249]), None);
        assert_eq!(rate_interval(&[(5, 1_000_000_000); 31]), None, "too few rows");
        assert_eq!(rate_interval(&[(5, 0); 64]), None);
        // The last row is shorter.
        let mut rows = vec![(50, 100_000_000); 300];
        rows.push((5, 10_000_000));
        let (low, high) = rate_interval(&rows).expect("an interval");
        assert!((low - 500.0).abs() < 1e-6 && (high - 500.0).abs() < 1e-6, "{low} {high}");
    }
}
