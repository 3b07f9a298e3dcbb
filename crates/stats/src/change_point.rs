//! Where a series changes its level for good: a write cache that is full, burst credits that are
//! spent, a disk that throttles, a neighbour that comes or goes.
//!
//! The series is cut where the ranks before and after differ most (the Mann-Whitney z), the two
//! parts again, and so on, as long as a cut is significant and large. Ranks are used because one
//! stall is not a change of level. Significance is found by shuffling: values of one run depend on
//! their neighbours, so not single values are shuffled but blocks of n^(1/3) of them, which keeps
//! that dependence within a block and keeps the test from reporting noise that merely wanders.
//!
//! Cannot see: changes within the first or last [`SEGMENT_MIN`] values, slow drifts (those are the
//! business of a fitted line), changes smaller than the given ratio.
//!
//! Source: ranks: Pettitt, "A non-parametric approach to the change-point problem", Applied
//! Statistics 28 (1979), here standardised so that cuts near the ends count alike; binary segmentation: Scott and Knott, Biometrics 30 (1974); blocks: Künsch, Annals of
//! Statistics 17 (1989).

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A segment has at least this many values.
pub const SEGMENT_MIN: usize = 5;
/// Shuffles of each test; the smallest p that can be found is 1 / (SHUFFLES + 1).
const SHUFFLES: usize = 399;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub index: usize,
    /// Median of the segment before, back to the change before it.
    pub before: f64,
    /// Median of the segment from here to the next change.
    pub after: f64,
    /// Share of series with shuffled blocks, made of both segments, in which the strongest cut was
    /// at least as strong.
    pub p: f64,
}

/// The changes of level in `values` (oldest first, at equal distances), in order.
///
/// A change is reported if its p is at most `p_max` and the medians of the segments on both sides
/// differ at least by the factor `ratio_min` (1.25: up by 25 % or down by 20 %). The shuffles are
/// drawn from a fixed seed: the same series gives the same answer everywhere. Values that are no
/// numbers make the series untold: no change is reported.
pub fn change_points(values: &[f64], p_max: f64, ratio_min: f64) -> Vec<ChangePoint> {
    if values.len() < 2 * SEGMENT_MIN || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut cuts = Vec::new();
    split(values, 0, p_max, ratio_min, &mut cuts);
    cuts.sort_unstable();
    // Cuts were judged and placed against the part that they split, and what counts is the levels
    // that remain next to them. So each moves to its best position between its neighbours, and the
    // weakest goes, one by one, until each stands on its own.
    loop {
        for i in 0..cuts.len() {
            let begin = if i == 0 { 0 } else { cuts[i - 1] };
            let end = cuts.get(i + 1).copied().unwrap_or(values.len());
            if end - begin >= 2 * SEGMENT_MIN {
                cuts[i] = begin + strongest_cut(&centred_ranks(&values[begin..end])).1;
            }
        }
        let edges: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([values.len()]).collect();
        let levels: Vec<f64> = edges.windows(2).map(|edge| median(&values[edge[0]..edge[1]])).collect();
        let points: Vec<ChangePoint> = cuts
            .iter()
            .enumerate()
            .map(|(i, &index)| ChangePoint {
                index,
                before: levels[i],
                after: levels[i + 1],
                p: cut_p(&values[edges[i]..edges[i + 2]], index - edges[i]),
            })
            .collect();
        let factor = |point: &ChangePoint| ratio(point.before, point.after);
        let is_weak = |point: &ChangePoint| factor(point) < ratio_min || point.p > p_max;
        let weak = points.iter().enumerate().filter(|(_, point)| is_weak(point));
        match weak.min_by(|a, b| factor(a.1).total_cmp(&factor(b.1))) {
            Some((index, _)) => drop(cuts.remove(index)),
            None => return points,
        }
    }
}

/// Finds the strongest cut of a part that begins at `offset`, and the cuts within both sides.
fn split(values: &[f64], offset: usize, p_max: f64, ratio_min: f64, cuts: &mut Vec<usize>) {
    if values.len() < 2 * SEGMENT_MIN {
        return;
    }
    let ranks = centred_ranks(values);
    let (strength, at) = strongest_cut(&ranks);
    if strength == 0.0 {
        return;
    }
    // The strongest cut of a series that falls and rises again may look weak, because the level after
    // it is mixed. A long part is cut on suspicion; what does not hold is taken back later.
    let is_large = ratio(median(&values[..at]), median(&values[at..])) >= ratio_min;
    let is_long = values.len() >= 8 * SEGMENT_MIN;
    if is_long || (is_large && shuffled_share(&ranks, strength) <= p_max) {
        cuts.push(offset + at);
        split(&values[..at], offset, p_max, ratio_min, cuts);
        split(&values[at..], offset + at, p_max, ratio_min, cuts);
    }
}

/// The p of a given cut of a part: how often shuffled blocks have a cut as strong anywhere.
fn cut_p(values: &[f64], at: usize) -> f64 {
    let ranks = centred_ranks(values);
    shuffled_share(&ranks, strength_of(ranks[..at].iter().sum(), at, ranks.len()))
}

/// Each value's rank minus the mean rank; equal values share theirs.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    while begin < order.len() {
        let mut end = begin + 1;
        while end < order.len() && values[order[end]] == values[order[begin]] {
            end += 1;
        }
        let shared = (begin + end - 1) as f64 / 2.0;
        for &index in &order[begin..end] {
            ranks[index] = shared - (values.len() - 1) as f64 / 2.0;
        }
        begin = end;
    }
    ranks
}

/// The sum of centred ranks before a cut, standardised: the Mann-Whitney z of the two sides, up to a
/// factor that all cuts of a series share.
fn strength_of(sum: f64, cut: usize, count: usize) -> f64 {
    sum.abs() / ((cut * (count - cut)).max(1) as f64).sqrt()
}

/// How strong the strongest cut is, and where.
fn strongest_cut(ranks: &[f64]) -> (f64, usize) {
    let mut sum = 0.0;
    let mut best = (0.0, SEGMENT_MIN);
    for (index, rank) in ranks.iter().enumerate() {
        let cut = index + 1;
        sum += rank;
        let strength = strength_of(sum, cut, ranks.len());
        if cut >= SEGMENT_MIN && cut + SEGMENT_MIN <= ranks.len() && strength > best.0 {
            best = (strength, cut);
        }
    }
    best
}

/// How often a series of the same blocks in another order has a cut at least as strong.
fn shuffled_share(ranks: &[f64], strength: f64) -> f64 {
    let length = (ranks.len() as f64).cbrt().ceil() as usize;
    let mut blocks: Vec<&[f64]> = ranks.chunks(length).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(ranks.len() as u64);
    let mut shuffled = Vec::with_capacity(ranks.len());
    let mut as_strong = 0;
    for _ in 0..SHUFFLES {
        for last in (1..blocks.len()).rev() {
            let other = (random.next_u64() % (last as u64 + 1)) as usize;
            blocks.swap(last, other);
        }
        shuffled.clear();
        blocks.iter().for_each(|block| shuffled.extend_from_slice(block));
        as_strong += usize::from(strongest_cut(&shuffled).0 >= strength);
    }
    (as_strong + 1) as f64 / (SHUFFLES + 1) as f64
}

/// The factor between two levels, at least 1; endless if only one of them is zero.
fn ratio(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == low {
        1.0
    } else if low <= 0.0 {
        f64::INFINITY
    } else {
        high / low
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of this relative deviation in which each value keeps `memory` of the one before.
    fn noise(count: usize, deviation: f64, memory: f64, seed: u64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut state = 0.0;
        let fresh = (1.0 - memory * memory).sqrt();
        let mut next = || {
            // The sum of twelve uniform numbers is close to a normal one.
            let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            state = memory * state + fresh * normal;
            (deviation * state).exp()
        };
        (0..20 + count).map(|_| next()).skip(20).collect()
    }

    #[test]
    fn a_full_write_cache_is_found_where_it_fills() {
        for seed in 0..20 {
            let mut series = noise(100, 0.1, 0.5, seed);
            series[38..].iter_mut().for_each(|value| *value *= 0.25);
            let found = change_points(&series, 0.01, 1.25);
            assert_eq!(found.len(), 1, "seed {seed}: {found:?}");
            assert!(found[0].index.abs_diff(38) <= 3, "seed {seed}: {found:?}");
            assert!((found[0].before / found[0].after - 4.0).abs() < 1.0, "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn a_dip_in_the_middle_is_two_changes() {
        for seed in 0..20 {
            let mut series = noise(120, 0.05, 0.3, seed);
            series[50..70].iter_mut().for_each(|value| *value *= 0.5);
            let found: Vec<usize> = change_points(&series, 0.01, 1.25).iter().map(|change| change.index).collect();
            assert_eq!(found.len(), 2, "seed {seed}: {found:?}");
            assert!(found[0].abs_diff(50) <= 3 && found[1].abs_diff(70) <= 3, "seed {seed}: {found:?}");
        }
    }

    /// Goal: noise is not taken for changes. Method: 400 series without a change, as noisy and as
    /// dependent as those recorded on a busy shared machine (deviation 16 to 38 %, each value
    /// keeping 60 to 80 % of the one before).
    #[test]
    fn noise_that_wanders_is_rarely_taken_for_a_change() {
        let false_alarms = |deviation, memory, count| {
            (0..200)
                .filter(|&seed| !change_points(&noise(count, deviation, memory, seed), 0.01, 1.33).is_empty())
                .count()
        };
        let quiet = false_alarms(0.16, 0.63, 70);
        let busy = false_alarms(0.38, 0.78, 70);
        assert!(quiet <= 6, "{quiet} of 200");
        assert!(busy <= 30, "{busy} of 200");
    }

    #[test]
    fn one_stall_short_series_and_no_numbers_are_no_change() {
        let mut stalled = vec![100.0; 60];
        stalled[30..33].fill(0.0);
        assert_eq!(change_points(&stalled, 0.01, 1.25), []);
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 0.01, 1.25), []);
        assert_eq!(change_points(&[5.0; 200], 0.01, 1.25), []);
        assert_eq!(change_points(&[f64::NAN; 200], 0.01, 1.25), []);
        assert_eq!(change_points(&[], 0.01, 1.25), []);
    }

    #[test]
    fn a_disk_that_stops_altogether_has_changed() {
        let mut series = vec![100.0; 60];
        series[40..].fill(0.0);
        let found = change_points(&series, 0.01, 1.25);
        assert_eq!(found.iter().map(|change| (change.index, change.after)).collect::<Vec<_>>(), [(40, 0.0)]);
    }
}
