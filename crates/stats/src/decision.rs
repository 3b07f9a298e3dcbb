//! Classifies the interval of a ratio at a margin into one of four answers.
//!
//! | the interval of B / A | decision |
//! |---|---|
//! | wholly beyond the margin | larger or smaller by more than the margin |
//! | excludes 1, but not wholly beyond the margin | larger or smaller, size unclear |
//! | wholly within the margin | no difference larger than the margin |
//! | anything else, or none | cannot tell yet |
//!
//! The margin is the same both ways round: within 5 % means from 1 / 1.05 to 1.05, so that swapping A and
//! B swaps the answer.
//!
//! Source: the reading of an interval against a margin is that of equivalence testing: D. J. Schuirmann,
//! "A comparison of the two one-sided tests procedure", Journal of Pharmacokinetics and Biopharmaceutics
//! 15 (1987).

use crate::hodges_lehmann::Interval;

/// The four answers about a ratio. The metric determines whether larger is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Larger by more than the margin.
    Larger,
    /// Larger; by how much is unclear.
    LargerSizeUnclear,
    /// Smaller by more than the margin.
    Smaller,
    /// Smaller; by how much is unclear.
    SmallerSizeUnclear,
    /// No difference larger than the margin.
    WithinMargin,
    /// Cannot tell yet.
    Unclear,
}

impl Decision {
    /// True if more pairs could not change the answer's kind: only its interval would become narrower.
    pub fn is_final(self) -> bool {
        matches!(self, Decision::Larger | Decision::Smaller | Decision::WithinMargin)
    }
}

/// Decides on the interval of the logarithm of a ratio at a margin (0.05 for 5 %).
///
/// An interval with an end that is not a number, or a margin that is not above zero, decides nothing.
pub fn decide(log_ratio: &Interval, margin: f64) -> Decision {
    let (low, high, margin) = (log_ratio.low, log_ratio.high, margin.ln_1p());
    if !(low <= high && margin > 0.0) {
        return Decision::Unclear;
    }
    if low > margin {
        Decision::Larger
    } else if high < -margin {
        Decision::Smaller
    } else if low >= -margin && high <= margin {
        // A difference that is sure to be small is called that, even if it is sure to be there.
        Decision::WithinMargin
    } else if low > 0.0 {
        Decision::LargerSizeUnclear
    } else if high < 0.0 {
        Decision::SmallerSizeUnclear
    } else {
        Decision::Unclear
    }
}

/// Estimates how many more pairs would give an answer; 0 if there is one, `None` if that cannot be estimated.
///
/// An interval's width falls with the square root of the pairs. It must become narrow enough to part the
/// estimate from 1, or to fit within the margin, whichever comes first. `widening` is how much wider the
/// present interval is than that of the last look (the ratio of their critical values; 1 at the last look).
pub fn pairs_needed(log_ratio: &Interval, margin: f64, pairs: usize, widening: f64) -> Option<u64> {
    if decide(log_ratio, margin) != Decision::Unclear {
        return Some(0);
    }
    let half = log_ratio.half_width() / widening.max(1.0);
    let estimate = log_ratio.estimate.abs();
    let target = estimate.max(margin.ln_1p() - estimate);
    if !(half.is_finite() && target > 0.0 && pairs > 0) {
        return None;
    }
    let needed = (pairs as f64 * (half / target).powi(2)).ceil();
    // A ten-thousandfold of what was done is not a forecast.
    (needed < pairs as f64 * 1e4).then(|| (needed as u64).saturating_sub(pairs as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { estimate: (low + high) / 2.0, low, high }
    }

    #[test]
    fn each_row_of_the_table_is_decided_as_stated() {
        let cases = [
            (0.06, 0.20, Decision::Larger),
            (-0.20, -0.06, Decision::Smaller),
            (0.01, 0.20, Decision::LargerSizeUnclear),
            (-0.20, -0.01, Decision::SmallerSizeUnclear),
            (-0.03, 0.04, Decision::WithinMargin),
            (0.01, 0.04, Decision::WithinMargin),
            (-0.01, 0.20, Decision::Unclear),
            (-0.30, 0.30, Decision::Unclear),
            (f64::NAN, 0.1, Decision::Unclear),
            (f64::NEG_INFINITY, f64::INFINITY, Decision::Unclear),
        ];
        for (low, high, decision) in cases {
            assert_eq!(decide(&interval(low, high), 0.05), decision, "{low} to {high}");
        }
        assert_eq!(decide(&interval(0.1, 0.2), 0.0), Decision::Unclear);
        assert_eq!(decide(&interval(0.1, 0.2), f64::NAN), Decision::Unclear);
    }

    #[test]
    fn an_interval_twice_as_wide_as_needed_needs_three_times_as_many_pairs_more() {
        // Estimate 0, margin ln 1.05 = 0.04879: half-width 0.09758 must be halved, so 4 × 100 pairs.
        let margin = 0.05f64.ln_1p();
        assert_eq!(pairs_needed(&interval(-2.0 * margin, 2.0 * margin), 0.05, 100, 1.0), Some(300));
        assert_eq!(pairs_needed(&interval(-2.0 * margin, 2.0 * margin), 0.05, 100, 2.0), Some(1));
        assert_eq!(pairs_needed(&interval(0.06, 0.2), 0.05, 100, 1.0), Some(0));
        assert_eq!(pairs_needed(&interval(f64::NEG_INFINITY, f64::INFINITY), 0.05, 10, 1.0), None);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_swaps_the_answer(a in -0.5f64..0.5, b in -0.5f64..0.5, margin in 0.01f64..0.3) {
            let there = interval(a.min(b), a.max(b));
            let back = interval(-there.high, -there.low);
            let swapped = match decide(&there, margin) {
                Decision::Larger => Decision::Smaller,
                Decision::Smaller => Decision::Larger,
                Decision::LargerSizeUnclear => Decision::SmallerSizeUnclear,
                Decision::SmallerSizeUnclear => Decision::LargerSizeUnclear,
                same => same,
            };
            prop_assert_eq!(decide(&back, margin), swapped);
        }
    }
}
