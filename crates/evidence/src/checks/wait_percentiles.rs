//! How much of a printed percentile of latency waiting for a processor can explain.
//!
//! Model: an I/O that waited would otherwise have taken as long as a typical I/O below the percentile, their median. So a wait that
//! moves an I/O from below a value to above it is at least as long as the difference between the value and that median, and the
//! time waited pays for a limited number of I/Os. The I/Os that the percentile depends on are those just below it: without
//! their waits the percentile would be lower, down to the value at which the time waited is used up. That value is the lowest
//! that the percentile can have been without waiting.
//!
//! With several I/Os in flight, one wait delays all of them, so the time counts once for each I/O of the queue.
//!
//! Example: of 10,000 reads of 0.2 ms 20 took 5 ms. The 99.9th percentile is the tenth-largest value, 5 ms. It falls to 0.2 ms
//! if ten of the 20 had not waited: 10 × 4.8 ms = 48 ms of waiting can explain 96 % of it, 40 ms nothing.
//!
//! This is an upper limit: which I/Os waited is unknown. A change that is less than the percentile's own uncertainty (its interval if
//! I/Os were independent) is none.

use trueio_model::{Histogram, OpKind};
use trueio_stats::{interval_ranks, quantile};

/// The percentiles that reports print.
const PRINTED: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];

/// A percentile, and how much of it waiting can explain at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Explained {
    /// Of which operation.
    pub(crate) op: OpKind,
    /// `p99.9`.
    pub(crate) name: &'static str,
    /// The percentile, in nanoseconds.
    pub(crate) value_ns: u64,
    /// Its part that waiting can explain, from 0 to 1.
    pub(crate) share: f64,
}

/// Returns the printed percentile of an operation of which `waited_ns` of waiting can explain most; `None` if it can explain
/// nothing of any, beyond their uncertainty.
pub(crate) fn most_explained(op: OpKind, histogram: &Histogram, waited_ns: f64) -> Option<Explained> {
    let of = |(q, name): (f64, &'static str)| {
        let value_ns = quantile(histogram, q)?.value_ns;
        let share = explained_share(histogram, q, waited_ns)?;
        Some(Explained { op, name, value_ns, share })
    };
    PRINTED.into_iter().filter_map(of).max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Returns the part of the `q`-quantile that `waited_ns` of waiting can explain; `None` if that is nothing, or less than its
/// uncertainty.
fn explained_share(histogram: &Histogram, q: f64, waited_ns: f64) -> Option<f64> {
    let value_ns = quantile(histogram, q)?.value_ns;
    let count = histogram.count();
    let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
    let typical_ns = histogram.value_at_rank(rank.div_ceil(2))?;
    let certain_ns = histogram.value_at_rank(interval_ranks(count, q)?.lower)?;

    // Buckets that hold I/Os up to the percentile, the highest first.
    let mut end = 0u64;
    let mut below: Vec<(u64, u64)> = Vec::new();
    for (low, high, n) in histogram.buckets() {
        if end >= rank {
            break;
        }
        below.push((low, high.min(value_ns)));
        end = end.saturating_add(n);
    }
    let counts: Vec<u64> = histogram.buckets().map(|(_, _, n)| n).take(below.len()).collect();
    let mut left_ns = waited_ns;
    let mut lowest_ns = value_ns;
    // I/Os of the last bucket beyond the rank need not have been faster.
    let mut beyond = end.saturating_sub(rank);
    for ((low, high), n) in below.iter().zip(&counts).rev() {
        lowest_ns = (*high).max(typical_ns);
        if *high <= typical_ns {
            break;
        }
        // Beginning at the lower edge: an upper limit of what can be explained.
        let cost_ns = low.saturating_sub(typical_ns) as f64 * (n - beyond.min(*n)) as f64;
        beyond = 0;
        if cost_ns > left_ns {
            break;
        }
        left_ns -= cost_ns;
    }
    let share = 1.0 - lowest_ns as f64 / value_ns.max(1) as f64;
    (share > 0.0 && lowest_ns < certain_ns).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    fn latencies(groups: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        groups.iter().for_each(|&(ns, n)| histogram.record_many(ns, n));
        histogram
    }

    fn explained(groups: &[(u64, u64)], waited_ns: u64) -> Option<(&'static str, f64)> {
        most_explained(OpKind::Read, &latencies(groups), waited_ns as f64).map(|of| (of.name, of.share))
    }

    /// The example of the module's documentation.
    #[test]
    fn waiting_explains_a_percentile_if_it_pays_for_the_ios_beyond_it() {
        let reads = [(200 * US, 9_980), (5 * MS, 20)];
        let (name, share) = explained(&reads, 49 * MS).expect("it can explain the ten");
        assert!(name == "p99.9" && (share - 0.96).abs() < 0.01, "{name} {share}");
        assert_eq!(explained(&reads, 40 * MS), None, "eight of the 20: twelve are left");
        assert_eq!(explained(&reads, 0), None);
    }

    /// Goal: a tail that comes from the disk is not charged to the little that the workers waited.
    /// Method: of 100,000 reads of 0.1 ms 1 % took 20 ms: 20 s. Waits of 1 % of that could have delayed ten of the 1,000.
    #[test]
    fn a_tail_that_is_much_longer_than_the_waiting_is_the_disks() {
        let reads = [(100 * US, 98_900), (20 * MS, 1_100)];
        assert_eq!(explained(&reads, 300 * MS), None);
        // 100 more than 1 % are slow: they need 1.99 s.
        assert_eq!(explained(&reads, 1_950 * MS), None);
        let (name, share) = explained(&reads, 2_100 * MS).expect("it can");
        assert!(name == "p99" && share > 0.98, "{name} {share}");
    }

    #[test]
    fn waiting_explains_nothing_of_equal_latencies_and_of_a_change_within_the_uncertainty() {
        assert_eq!(explained(&[(198 * US, 10_000)], 100 * MS), None);
        assert_eq!(explained(&[], MS), None);
        // The 50 slowest of 50,000 rise evenly from 1 to 1.5 ms: 3 ms pay for a few, fewer than another run would differ by.
        let mut reads = vec![(100 * US, 49_900)];
        reads.extend((0..100).map(|i| (MS + i * 10 * US, 1)));
        assert_eq!(explained(&reads, 3 * MS), None);
        assert!(explained(&reads, 60 * MS).is_some());
    }

    #[test]
    fn more_waiting_never_explains_less() {
        let mut reads = vec![(90 * US, 5_000), (110 * US, 4_500)];
        reads.extend((1..=500).map(|i| (120 * US + i * i * US / 10, 1)));
        let shares: Vec<f64> =
            (0..40).map(|i| explained(&reads, i * 60 * MS).map_or(0.0, |(_, share)| share)).collect();
        assert!(shares.is_sorted() && shares.iter().all(|share| (0.0..1.0).contains(share)), "{shares:?}");
        assert!(shares[0] == 0.0 && shares[39] > 0.5, "{shares:?}");
    }
}
