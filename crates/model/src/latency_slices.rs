//! Latencies of one operation by slices of the measured time, as counts in the buckets of a histogram.
//!
//! A slice holds a power of two of intervals of the series, so the slices of several workers can be brought to one
//! length and added. From 32 slices on they show how much the I/Os of a run depend on each other
//! (`stats::dependence`). They are not part of a record: it keeps only what follows from them.

use crate::histogram::{BUCKET_COUNT, Histogram, bucket_high, bucket_low};
use std::ops::Range;

/// Number of slices at which two neighbours become one. Between half of it and all of it are in use in a long run.
const SLICES_MAX: usize = 64;

/// One slice's I/Os, and how many of them are above a threshold. A threshold within a bucket takes its part of the
/// bucket's I/Os, so both are fractions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SliceCount {
    /// I/Os.
    pub count: f64,
    /// I/Os above the threshold.
    pub above: f64,
}

/// One slice's latencies in sum, each in the middle of its bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SliceSum {
    /// I/Os.
    pub count: f64,
    /// The sum of their latencies, in nanoseconds.
    pub sum_ns: f64,
    /// The sum of the squares.
    pub squares_ns2: f64,
}

/// Latencies by slices of the measured time, in the making.
///
/// At the end of each interval its counts are added to the present slice. When 64 slices are full, two
/// neighbours become one, so memory does not grow with the run. A bucket's slices lie next to each other: a run touches
/// only the buckets in which it has latencies. The memory is allocated at the end of the first interval with I/Os.
#[derive(Debug, Clone)]
pub struct SliceRecorder {
    /// A row of slices for each bucket; empty before the first I/O.
    counts: Vec<u32>,
    /// Buckets that may be occupied.
    occupied: Range<usize>,
    /// Intervals that ended.
    intervals: u64,
    intervals_per_slice: u64,
}

impl Default for SliceRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl SliceRecorder {
    /// Without an interval, and without counters: thousands of workers may wait for their start together.
    pub fn new() -> Self {
        Self { counts: Vec::new(), occupied: 0..0, intervals: 0, intervals_per_slice: 1 }
    }

    /// Removes all intervals.
    pub fn clear(&mut self) {
        let occupied = self.occupied.start * SLICES_MAX..self.occupied.end * SLICES_MAX;
        let rows = self.counts[occupied].chunks_exact_mut(SLICES_MAX);
        rows.filter(|row| row.iter().any(|&n| n > 0)).for_each(|row| row.fill(0));
        (self.occupied, self.intervals, self.intervals_per_slice) = (0..0, 0, 1);
    }

    /// Adds an interval, which may be without I/Os.
    pub fn end_interval(&mut self, interval: &Histogram) {
        if self.intervals == self.intervals_per_slice * SLICES_MAX as u64 {
            self.join_neighbours();
        }
        let slice = (self.intervals / self.intervals_per_slice) as usize;
        self.intervals += 1;
        let (first, counts) = interval.occupied_counts();
        if counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            // Pages that no bucket reaches are never touched.
            self.counts = vec![0; BUCKET_COUNT * SLICES_MAX];
        }
        let end = first + counts.len();
        self.occupied = match self.occupied.is_empty() {
            true => first..end,
            false => self.occupied.start.min(first)..self.occupied.end.max(end),
        };
        for (row, &n) in self.counts[first * SLICES_MAX..].chunks_exact_mut(SLICES_MAX).zip(counts) {
            if n > 0 {
                row[slice] = row[slice].saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
            }
        }
    }

    fn join_neighbours(&mut self) {
        let occupied = self.occupied.start * SLICES_MAX..self.occupied.end * SLICES_MAX;
        // A row without I/Os is not written: its page may never have been touched.
        for row in self.counts[occupied].chunks_exact_mut(SLICES_MAX).filter(|row| row.iter().any(|&n| n > 0)) {
            for i in 0..SLICES_MAX / 2 {
                row[i] = row[2 * i].saturating_add(row[2 * i + 1]);
            }
            row[SLICES_MAX / 2..].fill(0);
        }
        self.intervals_per_slice *= 2;
    }

    /// The slices so far.
    pub fn finish(&self) -> LatencySlices {
        let slice_count = self.intervals.div_ceil(self.intervals_per_slice) as usize;
        let rows = &self.counts[self.occupied.start * SLICES_MAX..self.occupied.end * SLICES_MAX];
        LatencySlices::from_rows(self.occupied.start, self.intervals_per_slice, slice_count, rows)
    }
}

/// Latencies by slices, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencySlices {
    /// The bucket of the first row of `counts`.
    first_bucket: usize,
    /// Intervals that each slice holds; the last one may hold fewer.
    intervals_per_slice: u64,
    slice_count: usize,
    /// A row of `slice_count` for each bucket from the first occupied one on.
    counts: Vec<u64>,
}

impl LatencySlices {
    /// Takes the first `slice_count` of rows of [`SLICES_MAX`], one row for each bucket from `first_bucket` on.
    fn from_rows(first_bucket: usize, intervals_per_slice: u64, slice_count: usize, rows: &[u32]) -> Self {
        assert!(rows.len().is_multiple_of(SLICES_MAX) && slice_count <= SLICES_MAX && intervals_per_slice > 0);
        let rows = rows.chunks_exact(SLICES_MAX);
        let counts = rows.flat_map(|row| &row[..slice_count]).map(|&n| u64::from(n)).collect();
        Self { first_bucket, intervals_per_slice, slice_count, counts }
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.slice_count
    }

    /// True without a slice.
    pub fn is_empty(&self) -> bool {
        self.slice_count == 0
    }

    /// Adds the slices of another worker that began at the same time.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let longest = self.intervals_per_slice.max(other.intervals_per_slice);
        let (mine, theirs) = (self.in_slices_of(longest), other.in_slices_of(longest));
        let first_bucket = mine.first_bucket.min(theirs.first_bucket);
        let end = |of: &Self| of.first_bucket + of.counts.len() / of.slice_count;
        let slice_count = mine.slice_count.max(theirs.slice_count);
        let mut counts = vec![0u64; (end(&mine).max(end(&theirs)) - first_bucket) * slice_count];
        for of in [&mine, &theirs] {
            for (index, row) in of.counts.chunks_exact(of.slice_count).enumerate() {
                let to = (of.first_bucket + index - first_bucket) * slice_count;
                for (sum, n) in counts[to..].iter_mut().zip(row) {
                    *sum = sum.saturating_add(*n);
                }
            }
        }
        *self = Self { first_bucket, intervals_per_slice: longest, slice_count, counts };
    }

    /// The same in slices of `intervals`, which is this length times a power of two.
    fn in_slices_of(&self, intervals: u64) -> Self {
        let each = (intervals / self.intervals_per_slice).max(1) as usize;
        let slice_count = self.slice_count.div_ceil(each);
        let rows = self.counts.chunks_exact(self.slice_count);
        let counts = rows.flat_map(|row| row.chunks(each).map(|c| c.iter().fold(0, |a: u64, b| a.saturating_add(*b))));
        Self { counts: counts.collect(), intervals_per_slice: intervals, slice_count, ..*self }
    }

    /// Every slice's latencies in sum.
    pub fn sums(&self) -> Vec<SliceSum> {
        let mut sums = vec![SliceSum::default(); self.slice_count];
        if self.is_empty() {
            return sums;
        }
        for (index, row) in self.counts.chunks_exact(self.slice_count).enumerate() {
            let bucket = self.first_bucket + index;
            let ns = bucket_low(bucket) as f64 / 2.0 + bucket_high(bucket) as f64 / 2.0;
            for (sum, &n) in sums.iter_mut().zip(row) {
                sum.count += n as f64;
                sum.sum_ns += ns * n as f64;
                sum.squares_ns2 += ns * ns * n as f64;
            }
        }
        sums
    }

    /// For each share, descending or not: every slice's I/Os, and those above the threshold that this share of all I/Os
    /// is above. Empty for a share beyond the sample.
    pub fn above(&self, shares: &[f64]) -> Vec<Vec<SliceCount>> {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|a, b| shares[*a].total_cmp(&shares[*b]));
        let mut found = vec![Vec::new(); shares.len()];
        if self.is_empty() {
            return found;
        }
        let mut counts = vec![0.0; self.slice_count];
        for row in self.counts.chunks_exact(self.slice_count) {
            counts.iter_mut().zip(row).for_each(|(sum, n)| *sum += *n as f64);
        }
        let total: f64 = counts.iter().sum();
        let mut wanted = order.into_iter().peekable();
        let mut above = vec![0.0; self.slice_count];
        let mut above_total = 0.0;
        for row in self.counts.chunks_exact(self.slice_count).rev() {
            let here: f64 = row.iter().map(|n| *n as f64).sum();
            while let Some(&index) = wanted.peek() {
                let left = shares[index] * total - above_total;
                if left > here {
                    break;
                }
                let part = if here > 0.0 { (left / here).clamp(0.0, 1.0) } else { 0.0 };
                let slices = counts.iter().zip(&above).zip(row);
                found[index] =
                    slices.map(|((&count, &above), &n)| SliceCount { count, above: above + part * n as f64 }).collect();
                wanted.next();
            }
            above.iter_mut().zip(row).for_each(|(sum, n)| *sum += *n as f64);
            above_total += here;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(intervals_per_slice: u64, rows: &[(usize, &[u32])]) -> LatencySlices {
        let first = rows[0].0;
        let mut all = vec![0u32; (rows[rows.len() - 1].0 - first + 1) * SLICES_MAX];
        let mut slice_count = 0;
        for (bucket, row) in rows {
            all[(bucket - first) * SLICES_MAX..][..row.len()].copy_from_slice(row);
            slice_count = slice_count.max(row.len());
        }
        LatencySlices::from_rows(first, intervals_per_slice, slice_count, &all)
    }

    fn pairs(of: &[SliceCount]) -> Vec<(f64, f64)> {
        of.iter().map(|slice| (slice.count, slice.above)).collect()
    }

    #[test]
    fn counts_above_a_threshold_are_those_of_the_buckets_above_and_a_part_of_its_own() {
        let of = slices(1, &[(5, &[8, 4, 0]), (6, &[0, 2, 2]), (9, &[0, 2, 2])]);
        let found = of.above(&[0.5, 0.2, 0.1, 1.0]);
        // 20 I/Os: four in bucket 9, four in bucket 6. Half of all are the eight above bucket 5 and two of its twelve.
        let sixth = 2.0 / 12.0;
        assert_eq!(pairs(&found[0]), [(8.0, 8.0 * sixth), (8.0, 4.0 + 4.0 * sixth), (4.0, 4.0)]);
        assert_eq!(pairs(&found[1]), [(8.0, 0.0), (8.0, 2.0), (4.0, 2.0)]);
        assert_eq!(pairs(&found[2]), [(8.0, 0.0), (8.0, 1.0), (4.0, 1.0)]);
        assert_eq!(pairs(&found[3]), [(8.0, 8.0), (8.0, 8.0), (4.0, 4.0)]);
        assert_eq!(LatencySlices::default().above(&[0.5]), [Vec::new()]);
    }

    #[test]
    fn workers_with_slices_of_other_lengths_and_buckets_are_added_by_time() {
        let mut long = slices(2, &[(5, &[10, 20])]);
        let short = slices(1, &[(3, &[1, 2, 3]), (5, &[0, 0, 4])]);
        long.merge(&short);
        assert_eq!(long, slices(2, &[(3, &[3, 3]), (5, &[10, 24])]));
        let mut none = LatencySlices::default();
        none.merge(&short);
        none.merge(&LatencySlices::default());
        assert_eq!(none, short);
    }

    /// Method: interval i has i I/Os of 10 ns and one of 200 ns; the slices' sums are those of their intervals.
    #[test]
    fn slices_hold_all_intervals_in_their_order_however_long_the_run() {
        for intervals in [1, 2, 63, 64, 65, 128, 129, 1_000] {
            let mut recorder = SliceRecorder::new();
            // What a ramp left is gone.
            let mut ramp = Histogram::new();
            ramp.record(7);
            recorder.end_interval(&ramp);
            recorder.clear();
            for i in 0..intervals {
                let mut interval = Histogram::new();
                interval.record_many(10, i);
                interval.record(200);
                recorder.end_interval(&interval);
            }
            let slices = recorder.finish();
            let each = (1..).map(|k| 1u64 << (k - 1)).find(|each| intervals <= each * SLICES_MAX as u64).unwrap();
            assert_eq!(slices.len() as u64, intervals.div_ceil(each), "{intervals}");
            let total = (0..intervals).map(|i| i + 1).sum::<u64>() as f64;
            let found = slices.above(&[intervals as f64 / total]).remove(0);
            for (k, slice) in found.iter().enumerate() {
                let from = k as u64 * each;
                let of = from..(from + each).min(intervals);
                assert_eq!(slice.count, of.clone().map(|i| i + 1).sum::<u64>() as f64, "{intervals} {k}");
                assert!((slice.above - (of.end - of.start) as f64).abs() < 1e-6, "{intervals} {k}");
            }
        }
    }
}
