//! Quantiles of the normal distribution and of Student's t, from the `statrs` library.
//!
//! Source: `statrs` 0.18, whose own tests hold them against tables; ours below hold a few.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Below which value the share `p` of a standard normal variable lies: 1.96 for 0.975. Minus and plus
/// infinity for 0 and 1; not a number outside.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(p)
}

/// The share of a standard normal variable that lies below `z`.
pub fn normal_share_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// As [`normal_quantile`], of Student's t with `freedom` degrees of freedom, whole or not. `None` unless
/// there is at least one and `p` lies between 0 and 1.
pub fn student_quantile(p: f64, freedom: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && freedom >= 1.0 && freedom.is_finite()) {
        return None;
    }
    // The library's inverse is off by a part in 10^4 at 10^6 degrees of freedom, where t and normal differ by
    // less than a part in 10^6.
    if freedom > 1e5 {
        return Some(normal_quantile(p));
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.999_997_5, 4.564_788)] {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}: {}", normal_quantile(p));
            assert!((normal_share_below(z) - p).abs() < 1e-6);
        }
        for (freedom, t) in [(1.0, 12.706_205), (5.0, 2.570_582), (30.0, 2.042_272), (1e6, 1.959_966)] {
            let found = student_quantile(0.975, freedom).unwrap();
            assert!((found - t).abs() < 1e-4, "{freedom}: {found}");
        }
        assert!(normal_quantile(1.5).is_nan());
        assert_eq!((student_quantile(0.975, 0.5), student_quantile(1.0, 5.0)), (None, None));
    }
}
