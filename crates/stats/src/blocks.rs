//! The mean of a series whose rows depend on each other, from blocks that nearly do not.
//!
//! A busy second follows a busy second: taken as independent samples, the seconds of one run make
//! its mean look several times more certain than it is. Rows are joined to blocks, twice as long each time,
//! until neighbouring blocks are hardly more alike than chance makes them; their means are then compared by
//! Student's t with as many degrees of freedom as there are blocks. Where fewer than eight such blocks are left, the run is too
//! short for an answer, and none is given.
//!
//! Cannot see: what differs between one run and the next (where the file lies, what else the machine
//! does in that hour, how full the disk is). No statistics within a run can; the interval applies to these two runs only.
//!
//! Source: batch means: L. W. Schruben, "Confidence Interval Estimation Using Standardized Time Series",
//! Operations Research 31 (1983); G. S. Fishman, "Grouping Observations in Digital Simulation", Management
//! Science 24 (1978), for doubling until independent; B. L. Welch (1947) for two unequal variances.

use crate::hodges_lehmann::Interval;
use crate::student_quantile;

/// Fewest blocks for an answer.
const BLOCKS_MIN: usize = 8;

/// A series, joined to blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    /// The blocks' means, oldest first.
    pub means: Vec<f64>,
    /// Rows that each holds.
    pub rows_per_block: usize,
}

/// Joins rows of equal length to blocks that are as good as independent. Rows at the end that fill no block are
/// left out.
///
/// `None` if there are not at least eight such blocks, or a value is not finite.
pub fn blocks(rows: &[f64]) -> Option<Blocks> {
    if !rows.iter().all(|v| v.is_finite()) {
        return None;
    }
    let mut rows_per_block = 1;
    loop {
        let means: Vec<f64> =
            rows.chunks_exact(rows_per_block).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect();
        if means.len() < BLOCKS_MIN {
            return None;
        }
        // One standard deviation of what independent blocks show.
        if autocorrelation(&means) <= 1.0 / (means.len() as f64).sqrt() {
            return Some(Blocks { means, rows_per_block });
        }
        rows_per_block *= 2;
    }
}

/// How alike neighbours are, from −1 to 1; 0 for values that are all the same.
pub fn autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let spread: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if spread <= 0.0 {
        return 0.0;
    }
    values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / spread
}

/// The logarithm of the ratio of two series' means, B to A, with its interval at `alpha`.
///
/// `None` if a mean is not above zero.
pub fn log_ratio_of_means(a: &Blocks, b: &Blocks, alpha: f64) -> Option<Interval> {
    // (mean, relative variance of the mean, blocks)
    let moments = |blocks: &Blocks| {
        let n = blocks.means.len() as f64;
        let mean = blocks.means.iter().sum::<f64>() / n;
        let variance = blocks.means.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean > 0.0 && n > 1.0).then(|| (mean, variance / n / (mean * mean), n))
    };
    let ((mean_a, variance_a, n_a), (mean_b, variance_b, n_b)) = (moments(a)?, moments(b)?);
    // The variance of ln(mean) is the relative variance of the mean, to first order.
    let variance = variance_a + variance_b;
    let estimate = (mean_b / mean_a).ln();
    if variance == 0.0 {
        return Some(Interval { estimate, low: estimate, high: estimate });
    }
    let freedom = variance.powi(2) / (variance_a.powi(2) / (n_a - 1.0) + variance_b.powi(2) / (n_b - 1.0));
    let half = student_quantile(1.0 - alpha / 2.0, freedom)? * variance.sqrt();
    Some(Interval { estimate, low: estimate - half, high: estimate + half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draws;

    /// A series around 100 whose neighbours are alike by `memory`.
    fn series(draws: &mut Draws, memory: f64, rows: usize) -> Vec<f64> {
        let mut state = draws.normal();
        (0..rows)
            .map(|_| {
                state = memory * state + (1.0 - memory * memory).sqrt() * draws.normal();
                100.0 + 10.0 * state
            })
            .collect()
    }

    #[test]
    fn blocks_are_as_long_as_the_memory_of_the_series_demands() {
        let mut draws = Draws::new(17);
        assert!(blocks(&series(&mut draws, 0.0, 600)).unwrap().rows_per_block <= 4);
        assert!(blocks(&series(&mut draws, 0.9, 4_000)).unwrap().rows_per_block >= 16);
        // A trend never becomes independent.
        assert_eq!(blocks(&(0..600).map(f64::from).collect::<Vec<_>>()), None);
        assert_eq!(blocks(&[1.0; 7]), None);
        assert_eq!(blocks(&[f64::NAN; 600]), None);
        assert_eq!(blocks(&[5.0; 600]).unwrap().rows_per_block, 1);
    }

    #[test]
    fn means_that_are_zero_or_all_alike_divide_nothing() {
        let zero = blocks(&[0.0; 10]).unwrap();
        let five = blocks(&[5.0; 10]).unwrap();
        assert_eq!(log_ratio_of_means(&zero, &five, 0.05), None);
        assert_eq!(log_ratio_of_means(&five, &zero, 0.05), None);
        let same = log_ratio_of_means(&five, &five, 0.05).unwrap();
        assert_eq!((same.low, same.estimate, same.high), (0.0, 0.0, 0.0));
    }

    /// Goal: two runs of one process are called different about as often as stated; rows taken as independent
    /// would do so far more often.
    /// Method: 600 pairs of series of 60 s in rows of 100 ms, for three memories; standard error 0.9 %.
    #[test]
    fn intervals_of_blocks_miss_rarely_where_intervals_of_rows_miss_often() {
        let mut draws = Draws::new(19);
        for (memory, blocks_max, rows_min) in [(0.0, 0.08, 0.02), (0.7, 0.11, 0.30), (0.9, 0.13, 0.50)] {
            let (mut by_blocks, mut by_rows, mut decided) = (0.0, 0.0, 0.0f64);
            for _ in 0..600 {
                let (a, b) = (series(&mut draws, memory, 600), series(&mut draws, memory, 600));
                let as_rows = |rows: &[f64]| Blocks { means: rows.to_vec(), rows_per_block: 1 };
                let misses =
                    |a: &Blocks, b: &Blocks| f64::from(u8::from(log_ratio_of_means(a, b, 0.05).unwrap().excludes(0.0)));
                by_rows += misses(&as_rows(&a), &as_rows(&b));
                if let (Some(a), Some(b)) = (blocks(&a), blocks(&b)) {
                    decided += 1.0;
                    by_blocks += misses(&a, &b);
                }
            }
            let (by_blocks, by_rows) = (by_blocks / decided, by_rows / 600.0);
            assert!(decided > 400.0, "memory {memory}: {decided} decided");
            assert!(by_blocks <= blocks_max, "memory {memory}: blocks miss {by_blocks}");
            assert!(by_rows >= rows_min, "memory {memory}: rows miss {by_rows}");
            eprintln!("memory {memory}: blocks {by_blocks} rows {by_rows} decided {decided}");
        }
    }
}
