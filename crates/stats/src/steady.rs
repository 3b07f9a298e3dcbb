//! Whether a measurement has settled: the steady-state rule of the SNIA Performance Test
//! Specification.
//!
//! Work is repeated in rounds of equal length, and a variable (throughput, a percentile) is noted
//! once a round. Over the last `window` rounds it is steady if
//!
//! - its largest and smallest values differ by at most `range_max` of their mean, and
//! - the best straight line through them rises or falls by at most `excursion_max` of their mean
//!   from the first round of the window to the last: |slope| × (window − 1).
//!
//! Cannot see: a cycle longer than the window (garbage collection every ten rounds). A window that
//! was chosen because it is flat is a biased sample of the rounds, so figures belong to a fresh
//! span after it, never to the window itself.
//!
//! fio's `steadystate` is judged by the same fit ([`criterion`]); its two criteria are the largest distance of a value from
//! the mean, and the slope of the line from one value to the next.
//!
//! Source: SNIA Solid State Storage Performance Test Specification 2.0.2, definition 2.1.24:
//! window 5 rounds, range 20 %, excursion of the least-squares fit 10 %, at most 25 rounds. fio's: its HOWTO, `steadystate`.

use trueio_model::Criterion;

/// The rule's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// Rounds that are looked at together; at least 2.
    pub window: usize,
    /// Largest range, as a share of the window's mean.
    pub range_max: f64,
    /// Largest rise or fall of the fitted line over the window, as a share of the window's mean.
    pub excursion_max: f64,
}

impl SteadyRule {
    /// The specification's numbers.
    pub const SNIA: SteadyRule = SteadyRule { window: 5, range_max: 0.20, excursion_max: 0.10 };

    /// The fit over the last window of a variable's rounds (oldest first), and whether it is
    /// steady there. `None` as long as there are fewer rounds than the window has, or where a value
    /// is no number or the mean is not positive: such a variable has no information.
    pub fn judge(self, rounds: &[f64]) -> Option<(WindowFit, bool)> {
        let start = rounds.len().checked_sub(self.window.max(2))?;
        let fit = WindowFit::of(&rounds[start..])?;
        Some((fit, fit.range <= self.range_max && fit.excursion.abs() <= self.excursion_max))
    }
}

/// How a variable behaved over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowFit {
    /// Its mean, in its own unit.
    pub mean: f64,
    /// Largest minus smallest, as a share of the mean.
    pub range: f64,
    /// What the least-squares line gains from the first value to the last, as a share of the mean;
    /// negative if it falls.
    pub excursion: f64,
    /// The largest distance of a value from the mean, as a share of the mean.
    pub deviation: f64,
    /// What the line gains from one value to the next, as a share of the mean.
    pub slope: f64,
}

/// What fio's `steadystate` holds against its limit: the largest distance of one of the values (oldest first) from their
/// mean, or the slope of the line through them, in their own unit or in percent of their mean. With it, whether it is
/// below the limit. `None` where [`WindowFit::of`] returns none.
pub fn criterion(criterion: &Criterion, values: &[f64]) -> Option<(WindowFit, f64, bool)> {
    let fit = WindowFit::of(values)?;
    let share = if criterion.is_slope { fit.slope } else { fit.deviation };
    let value = share * if criterion.is_percent { 100.0 } else { fit.mean };
    Some((fit, value, value.abs() < criterion.limit))
}

impl WindowFit {
    /// The fit through values at equal distances; `None` with fewer than two, where one is no
    /// number, or if their mean is not positive.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        if mean <= 0.0 {
            return None;
        }
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        let smallest = values.iter().copied().fold(f64::MAX, f64::min);
        let middle = (count - 1) as f64 / 2.0;
        let (mut product, mut square) = (0.0, 0.0);
        for (index, value) in values.iter().enumerate() {
            let distance = index as f64 - middle;
            product += distance * (value - mean);
            square += distance * distance;
        }
        let slope = product / square / mean;
        let deviation = (largest - mean).max(mean - smallest) / mean;
        let range = (largest - smallest) / mean;
        Some(Self { mean, range, excursion: slope * (count - 1) as f64, deviation, slope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_specifications_borders_hold_on_both_sides() {
        // Mean 100, range exactly 20 %, and no slope.
        let flat = [100.0, 90.0, 110.0, 90.0, 110.0];
        let (fit, is_steady) = SteadyRule::SNIA.judge(&flat).unwrap();
        assert!((fit.range - 0.2).abs() < 1e-12 && is_steady, "{fit:?}");
        let wider = [100.0, 89.9, 110.0, 90.0, 110.1];
        assert!(!SteadyRule::SNIA.judge(&wider).unwrap().1);
        // A line that gains 10 % over the window is steady, one that gains 11 % is not.
        let line = |gain: f64| (0..5).map(|i| 100.0 + (f64::from(i) / 4.0 - 0.5) * gain).collect::<Vec<_>>();
        let (fit, is_steady) = SteadyRule::SNIA.judge(&line(9.99)).unwrap();
        assert!((fit.excursion - 0.0999).abs() < 1e-12 && is_steady, "{fit:?}");
        assert!(!SteadyRule::SNIA.judge(&line(11.0)).unwrap().1);
        assert!(!SteadyRule::SNIA.judge(&line(-11.0)).unwrap().1, "a fall counts as a rise does");
    }

    #[test]
    fn only_the_last_window_counts_and_there_is_no_result_before_it_is_full() {
        let mut rounds = vec![500.0, 300.0, 100.0, 101.0, 99.0, 100.0];
        assert_eq!(SteadyRule::SNIA.judge(&rounds[..4]), None);
        assert!(!SteadyRule::SNIA.judge(&rounds).unwrap().1, "300 is still in the window");
        rounds.push(100.0);
        assert!(SteadyRule::SNIA.judge(&rounds).unwrap().1);
    }

    #[test]
    fn zeros_and_no_numbers_are_no_steady_state() {
        assert_eq!(SteadyRule::SNIA.judge(&[0.0; 5]), None);
        assert_eq!(SteadyRule::SNIA.judge(&[1.0, 1.0, f64::NAN, 1.0, 1.0]), None);
        assert_eq!(WindowFit::of(&[1.0]), None);
    }

    /// What fio 3.33 printed for these windows, in its own digits.
    #[test]
    fn fios_criterion_is_what_fio_printed_for_the_same_values() {
        use trueio_model::CriterionVariable::Ios;
        let of = |is_slope, limit, is_percent, values: &[f64]| {
            let rule = Criterion { variable: Ios, is_slope, limit, is_percent };
            let (_, value, is_attained) = criterion(&rule, values).unwrap();
            (format!("{value:.6}"), is_attained)
        };
        assert_eq!(of(false, 100.0, false, &[40590.0, 42757.0]), ("1083.500000".to_owned(), false));
        assert_eq!(of(true, 0.3, false, &[180248576.0, 166529665.0]), ("-13718911.000000".to_owned(), false));
        assert_eq!(of(true, 5.0, true, &[42781.0, 37589.0]), ("-12.920244".to_owned(), false));
        let five = [4110786.0, 4105776.0, 4389960.0, 4552168.0, 3418399.0];
        assert_eq!(of(false, 50.0, true, &five), ("16.936769".to_owned(), true));
    }

    proptest! {
        #[test]
        fn the_unit_does_not_matter(values in prop::collection::vec(1.0f64..1e6, 2..20), unit in 1e-3f64..1e3) {
            let fit = WindowFit::of(&values).unwrap();
            let scaled = WindowFit::of(&values.iter().map(|v| v * unit).collect::<Vec<_>>()).unwrap();
            prop_assert!((fit.range - scaled.range).abs() < 1e-9 * (1.0 + fit.range));
            prop_assert!((fit.excursion - scaled.excursion).abs() < 1e-9 * (1.0 + fit.range));
        }

        #[test]
        fn backwards_the_line_falls_by_what_it_rose(mut values in prop::collection::vec(1.0f64..1e6, 2..20)) {
            let fit = WindowFit::of(&values).unwrap();
            values.reverse();
            let back = WindowFit::of(&values).unwrap();
            prop_assert!((fit.excursion + back.excursion).abs() < 1e-9 * (1.0 + fit.range));
            // The line cannot gain more than 1.5 times the range (two clusters at the ends).
            prop_assert!(fit.excursion.abs() <= fit.range * 1.5 + 1e-9);
        }
    }
}
