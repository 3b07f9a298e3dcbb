//! How large a difference this machine shows between equals.
//!
//! Slices of A alone, put into pairs of neighbours, are a comparison of A with itself under the same noise.
//! The half-width of its interval, brought from half as many pairs to all of them, is what a comparison of
//! this length cannot see below. It errs on the large side: two neighbouring slices of A lie further apart
//! than the two of a pair.
//!
//! Source: A/A tests are common practice in online experiments: R. Kohavi, D. Tang, Y. Xu, "Trustworthy
//! Online Controlled Experiments" (2020), chapter 19; here applied as `docs/statistics.md` measures it.

use crate::hodges_lehmann::hodges_lehmann;

/// The noise floor of a comparison as a share (0.043: equal sides differ by up to 4.3 %), from the logarithms of
/// one side's values in the order in which they were measured.
///
/// `None` with fewer than 12 values, or if one is not finite.
pub fn noise_floor(log_values: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = log_values
        .chunks_exact(2)
        .enumerate()
        // There is no random order; swapping every second pair replaces it against a steady drift.
        .map(|(i, pair)| if i % 2 == 0 { pair[1] - pair[0] } else { pair[0] - pair[1] })
        .collect();
    let interval = hodges_lehmann(&differences, 0.05)?;
    Some((interval.half_width() / 2f64.sqrt()).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;

    #[test]
    fn the_floor_of_known_noise_is_that_of_its_interval() {
        let mut draws = Draws::new(21);
        let values: Vec<f64> = (0..2_000).map(|_| 0.1 * draws.normal()).collect();
        // Differences have deviation 0.1 · √2; the Hodges-Lehmann interval of n normal differences is about
        // 1.96 · √(π/3) / √n of it wide to each side; n = 2,000 for all pairs.
        let expected = 1.96 * 0.1 * 2f64.sqrt() * (std::f64::consts::PI / 3.0).sqrt() / 2_000f64.sqrt();
        let found = noise_floor(&values).unwrap();
        assert!((found / expected - 1.0).abs() < 0.15, "{found} {expected}");
        assert_eq!(noise_floor(&values[..11]), None);
        assert_eq!(noise_floor(&[f64::NAN; 40]), None);
        assert_eq!(noise_floor(&[1.0; 40]), Some(0.0));
    }

    #[test]
    fn a_steady_drift_is_no_noise() {
        let drifting: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01).collect();
        assert!(noise_floor(&drifting).unwrap() < 0.02);
    }
}
