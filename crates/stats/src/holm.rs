//! Several comparisons at once, with one share of false alarms for all of them together.
//!
//! Twenty comparisons of equals at 5 % show a difference somewhere in two of three experiments. Holm's
//! steps: the surest must pass at α / m; if it does, the next at α / (m − 1), and so on until one fails.
//! Nothing is assumed about how the comparisons depend on each other.
//!
//! Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
//! Statistics 6 (1979).

/// p-values adjusted so that each may be held against α itself: shape and order of `p_values`. Values
/// outside 0 to 1 count as 1.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let clean = |p: f64| if (0.0..=1.0).contains(&p) { p } else { 1.0 };
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| clean(p_values[a]).total_cmp(&clean(p_values[b])));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (step, &index) in order.iter().enumerate() {
        largest = largest.max(clean(p_values[index]) * (p_values.len() - step) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The α at which each of `count` intervals is to be made, by the same steps: an interval that shows its
/// difference at α / m frees its share for the others.
///
/// `shows(index, alpha)` returns whether the interval of that comparison at that α shows a difference; it
/// must not do so at a smaller α and not at a larger one. Those that show one keep the α at which they did.
pub fn holm_alphas(count: usize, alpha: f64, mut shows: impl FnMut(usize, f64) -> bool) -> Vec<f64> {
    let mut alphas = vec![alpha / count.max(1) as f64; count];
    let mut open: Vec<usize> = (0..count).collect();
    loop {
        let step = alpha / open.len().max(1) as f64;
        open.iter().for_each(|&i| alphas[i] = step);
        let before = open.len();
        open.retain(|&i| !shows(i, step));
        if open.len() == before || open.is_empty() {
            return alphas;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;
    use proptest::prelude::*;

    #[test]
    fn the_adjusted_values_are_those_of_the_worked_example() {
        // 0.01 · 4, 0.02 · 3, then 0.03 · 2 (which the step before already reached), 0.04.
        let found = holm(&[0.04, 0.01, 0.03, 0.02]);
        for (a, b) in found.iter().zip([0.06, 0.04, 0.06, 0.06]) {
            assert!((a - b).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[f64::NAN, 0.4]), vec![1.0, 0.8]);
        assert_eq!(holm_alphas(0, 0.05, |_, _| true), Vec::<f64>::new());
    }

    #[test]
    fn of_ten_comparisons_of_equals_one_is_called_different_in_5_percent_of_experiments() {
        let mut draws = Draws::new(9);
        let wrong = (0..20_000)
            .filter(|_| {
                let p: Vec<f64> = (0..10).map(|_| draws.unit()).collect();
                holm(&p).iter().any(|&p| p <= 0.05)
            })
            .count() as f64
            / 20_000.0;
        // 1 − (1 − 0.005)^10 = 4.89 %; the standard error is 0.15 %.
        assert!((wrong - 0.0489).abs() < 0.005, "{wrong}");
    }

    proptest! {
        #[test]
        fn intervals_show_what_the_adjusted_values_show(p in prop::collection::vec(0.0f64..0.2, 1..12)) {
            let alphas = holm_alphas(p.len(), 0.05, |i, alpha| p[i] <= alpha);
            for ((p, adjusted), alpha) in p.iter().zip(holm(&p)).zip(alphas) {
                prop_assume!((adjusted - 0.05).abs() > 1e-9);
                prop_assert_eq!(*p <= alpha, adjusted <= 0.05);
            }
        }
    }
}
