//! Latencies, every one of them, in log-linear buckets.
//!
//! Each doubling holds 128 buckets (7 sub-bucket bits). From 8,192 to 16,384 ns a bucket is
//! 8,192 / 128 = 64 ns wide, so each reported value is within 64 / 8,192 = 1/128 of the true one;
//! values below 256 ns are exact. 36 doublings reach 2^42 ns (73 minutes) in 4,608 counters, 36 KiB.
//! An empty histogram has no counters; they are allocated with the first value, or by [`Histogram::reserve`].
//! A longer latency is not clipped: it is counted as an overflow, and its exact value is still included
//! in `max_ns` and in the sum.
//!
//! One writer, no atomics. Count, sum, minimum and maximum are exact. Merging adds counters, so a
//! merge of a thousand workers is as exact as one.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ops::Range;

/// Sub-bucket bits: each doubling is divided in `1 << SUB_BITS` buckets.
const SUB_BITS: u32 = 7;

/// The first value that is no longer counted in a bucket: 2^42 ns, 73 minutes.
pub const MAX_TRACKABLE_NS: u64 = 1 << 42;

/// How many buckets there are. For v in [2^41, 2^42): shift 34, index 34·128 + 128..255.
pub const BUCKET_COUNT: usize = 34 * 128 + 256;
const _: () = assert!(bucket_index(MAX_TRACKABLE_NS - 1) == BUCKET_COUNT - 1);

/// The bucket of a value below [`MAX_TRACKABLE_NS`].
#[inline(always)]
const fn bucket_index(ns: u64) -> usize {
    // `| 255` makes the shift 0 for everything below 256, which is therefore exact.
    let shift = 63 - SUB_BITS - (ns | 255).leading_zeros();
    ((shift << SUB_BITS) as u64 + (ns >> shift)) as usize
}

/// The smallest value of a bucket.
pub(crate) const fn bucket_low(index: usize) -> u64 {
    if index < 256 {
        return index as u64;
    }
    let shift = (index as u64 >> SUB_BITS) - 1;
    (index as u64 - (shift << SUB_BITS)) << shift
}

/// The largest value of a bucket.
pub(crate) const fn bucket_high(index: usize) -> u64 {
    if index < 256 {
        return index as u64;
    }
    let shift = (index as u64 >> SUB_BITS) - 1;
    bucket_low(index) + (1 << shift) - 1
}

/// A histogram of durations in nanoseconds.
pub struct Histogram {
    /// None, or all: then [`BUCKET_COUNT`] of them.
    counts: Box<[u64]>,
    count: u64,
    overflow_count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Histogram {
    /// Touches only the counters between minimum and maximum.
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        clone.merge(self);
        clone
    }
}

impl PartialEq for Histogram {
    /// Equal values; whether there are counters does not matter.
    fn eq(&self, other: &Self) -> bool {
        let figures = |h: &Self| (h.count, h.overflow_count, h.sum_ns, h.min_ns, h.max_ns);
        figures(self) == figures(other) && self.counts[self.occupied()] == other.counts[other.occupied()]
    }
}

impl Eq for Histogram {}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min_ns", &self.min_ns())
            .field("max_ns", &self.max_ns())
            .field("sum_ns", &self.sum_ns)
            .field("overflow_count", &self.overflow_count)
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// Memory of the counters, in bytes.
    pub const RESERVED_BYTES: u64 = (BUCKET_COUNT * size_of::<u64>()) as u64;

    /// An empty histogram, which has no counters yet.
    pub fn new() -> Self {
        Self { counts: Box::default(), count: 0, overflow_count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Allocates the counters, unless they are there: recording allocates nothing from then on.
    #[cold]
    pub fn reserve(&mut self) {
        if self.counts.is_empty() {
            // Zeros from the system: pages that no value reaches are never touched.
            self.counts = vec![0; BUCKET_COUNT].into();
        }
    }

    /// The same with its counters.
    pub fn reserved() -> Self {
        let mut histogram = Self::new();
        histogram.reserve();
        histogram
    }

    /// Counts one duration.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts `n` equal durations.
    #[inline(always)]
    pub fn record_many(&mut self, ns: u64, n: u64) {
        if ns < MAX_TRACKABLE_NS {
            match self.counts.get_mut(bucket_index(ns)) {
                Some(counter) => *counter += n,
                None => self.count_first(ns, n),
            }
        } else {
            self.overflow_count += n;
        }
        self.count += n;
        self.sum_ns += u128::from(ns) * u128::from(n);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts durations of a histogram without counters.
    #[cold]
    fn count_first(&mut self, ns: u64, n: u64) {
        self.reserve();
        self.counts[bucket_index(ns)] += n;
    }

    /// How many durations were counted, overflows included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many were longer than [`MAX_TRACKABLE_NS`]; a quantile that falls among them is only
    /// known to be at least that long.
    pub fn overflow_count(&self) -> u64 {
        self.overflow_count
    }

    /// The exact sum, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The exact mean in nanoseconds; `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The exact minimum; `None` if empty.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The exact maximum; `None` if empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The value at `rank` (1 = the smallest): the upper edge of its bucket, never above the exact
    /// maximum, so that a latency is never reported too small. `None` if there is no such rank.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let mut seen = 0;
        for index in self.occupied() {
            seen += self.counts[index];
            if seen >= rank {
                return Some(bucket_high(index).clamp(self.min_ns, self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// Occupied buckets, smallest first: (smallest value, largest value, count). Overflows excluded.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.occupied().map(|index| (index, self.counts[index]));
        counted.filter(|(_, n)| *n > 0).map(|(index, n)| (bucket_low(index), bucket_high(index), n))
    }

    /// The first occupied bucket, and the counts from it to the last occupied one.
    pub(crate) fn occupied_counts(&self) -> (usize, &[u64]) {
        let occupied = self.occupied();
        (occupied.start, &self.counts[occupied])
    }

    /// Returns the buckets between minimum and maximum; no other one is occupied.
    fn occupied(&self) -> Range<usize> {
        if self.overflow_count == self.count {
            return 0..0;
        }
        let index = |ns: u64| bucket_index(ns.min(MAX_TRACKABLE_NS - 1));
        index(self.min_ns)..index(self.max_ns) + 1
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        let occupied = other.occupied();
        if !occupied.is_empty() {
            self.reserve();
        }
        for (mine, theirs) in self.counts[occupied.clone()].iter_mut().zip(&other.counts[occupied]) {
            *mine += theirs;
        }
        self.count += other.count;
        self.overflow_count += other.overflow_count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Adds all of `other`, which another process measured.
    ///
    /// # Errors
    /// Both together have more durations than 64 bits count; nothing was added.
    pub fn checked_merge(&mut self, other: &Histogram) -> Result<(), HistogramError> {
        // A bucket counts a part of the durations, so it does not overflow before their number.
        let (count, sum) = (self.count.checked_add(other.count), self.sum_ns.checked_add(other.sum_ns));
        match (count, sum) {
            (Some(_), Some(_)) => {
                self.merge(other);
                Ok(())
            }
            _ => Err(HistogramError("the counts overflow".into())),
        }
    }

    /// Adds all of `self` to `total` and empties `self`, touching only the buckets between its
    /// minimum and maximum. The recorder calls it ten times a second.
    pub fn drain_into(&mut self, total: &mut Histogram) {
        if self.count == 0 {
            return;
        }
        let occupied = self.occupied();
        if !occupied.is_empty() {
            total.reserve();
        }
        for (mine, total) in self.counts[occupied.clone()].iter_mut().zip(&mut total.counts[occupied]) {
            *total += *mine;
            *mine = 0;
        }
        total.count += self.count;
        total.overflow_count += self.overflow_count;
        total.sum_ns += self.sum_ns;
        total.min_ns = total.min_ns.min(self.min_ns);
        total.max_ns = total.max_ns.max(self.max_ns);
        self.forget_figures();
    }

    /// Removes all values; counters stay.
    pub fn clear(&mut self) {
        let occupied = self.occupied();
        self.counts[occupied].fill(0);
        self.forget_figures();
    }

    fn forget_figures(&mut self) {
        self.count = 0;
        self.overflow_count = 0;
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }
}

/// Why a serial form is not a valid histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramError(String);

impl std::fmt::Display for HistogramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a trueio histogram: {}", self.0)
    }
}

impl std::error::Error for HistogramError {}

/// The serial form: occupied buckets as two columns, and the exact figures.
///
/// `index` and `count` have one entry per occupied bucket, smallest first; `index` is stored as the
/// difference from the entry before (the first as it is), which keeps the text short.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Histogram")]
struct Serial {
    sub_bits: u32,
    total: u64,
    overflow: u64,
    /// u128 as text: JSON readers elsewhere lose precision above 2^53.
    sum_ns: String,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    index: Vec<u32>,
    count: Vec<u64>,
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        Serial::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Serial::json_schema(generator)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut index = Vec::new();
        let mut count = Vec::new();
        let mut last = 0;
        for i in self.occupied() {
            let n = self.counts[i];
            if n > 0 {
                index.push((i - last) as u32);
                count.push(n);
                last = i;
            }
        }
        Serial {
            sub_bits: SUB_BITS,
            total: self.count,
            overflow: self.overflow_count,
            sum_ns: self.sum_ns.to_string(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            index,
            count,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let serial = Serial::deserialize(deserializer)?;
        from_serial(&serial).map_err(D::Error::custom)
    }
}

fn from_serial(serial: &Serial) -> Result<Histogram, HistogramError> {
    let fail = |what: &str| Err(HistogramError(what.to_owned()));
    if serial.sub_bits != SUB_BITS {
        return fail("other sub-bucket bits than 7");
    }
    if serial.index.len() != serial.count.len() {
        return fail("as many indexes as counts are needed");
    }
    let mut histogram = Histogram::new();
    if !serial.index.is_empty() {
        histogram.reserve();
    }
    let mut at = 0u64;
    let mut total = serial.overflow;
    for (position, (&step, &n)) in serial.index.iter().zip(&serial.count).enumerate() {
        if n == 0 || (position > 0 && step == 0) {
            return fail("a bucket without a count, or named twice");
        }
        at += u64::from(step);
        let Some(bucket) = usize::try_from(at).ok().and_then(|i| histogram.counts.get_mut(i)) else {
            return fail("a bucket index is too large");
        };
        *bucket = n;
        total = total.checked_add(n).ok_or(HistogramError("the counts overflow".into()))?;
    }
    if total != serial.total {
        return fail("the counts do not add up to the total");
    }
    histogram.count = total;
    histogram.overflow_count = serial.overflow;
    histogram.sum_ns = serial.sum_ns.parse().map_err(|_| HistogramError("sum_ns is not a number".into()))?;
    match (serial.min_ns, serial.max_ns) {
        (Some(min), Some(max)) if total > 0 && min <= max => {
            histogram.min_ns = min;
            histogram.max_ns = max;
        }
        (None, None) if total == 0 => {}
        _ => return fail("minimum and maximum do not fit the counts"),
    }
    let occupied = histogram.occupied();
    let is_outside = |(i, n): (usize, &u64)| *n > 0 && !occupied.contains(&i);
    if histogram.counts.iter().enumerate().any(is_outside) {
        return fail("a bucket beyond minimum or maximum");
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_ends_where_the_next_begins_and_is_narrower_than_one_part_in_128() {
        for index in 0..BUCKET_COUNT {
            let (low, high) = (bucket_low(index), bucket_high(index));
            assert_eq!(bucket_index(low), index);
            assert_eq!(bucket_index(high), index);
            if index + 1 < BUCKET_COUNT {
                assert_eq!(high + 1, bucket_low(index + 1));
            }
            assert!((high - low) as f64 <= low as f64 / 128.0, "bucket {index}: {low}..={high}");
        }
        assert_eq!(bucket_high(BUCKET_COUNT - 1), MAX_TRACKABLE_NS - 1);
    }

    #[test]
    fn a_latency_of_two_hours_is_an_overflow_with_an_exact_maximum() {
        let mut histogram = Histogram::new();
        histogram.record(1_000);
        histogram.record(7_200_000_000_000);
        assert_eq!(histogram.overflow_count(), 1);
        assert_eq!(histogram.max_ns(), Some(7_200_000_000_000));
        assert_eq!(histogram.value_at_rank(2), Some(7_200_000_000_000));
        assert_eq!(histogram.sum_ns(), 7_200_000_001_000);
    }

    proptest! {
        #[test]
        fn a_rank_is_within_one_part_in_128_of_the_sorted_truth_and_never_below_it(
            mut values in prop::collection::vec((0u32..42).prop_flat_map(|e| 0u64..(2u64 << e).min(MAX_TRACKABLE_NS)), 1..300),
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            for (i, &truth) in values.iter().enumerate() {
                let got = histogram.value_at_rank(i as u64 + 1).unwrap();
                prop_assert!(got >= truth && got - truth <= truth / 128, "rank {}: {got} for {truth}", i + 1);
            }
        }

        #[test]
        fn merging_draining_and_writing_down_lose_nothing(a in prop::collection::vec(any::<u64>(), 0..60), b in prop::collection::vec(0u64..1_000_000, 0..60)) {
            let fill = |values: &[u64]| { let mut h = Histogram::new(); values.iter().for_each(|&v| h.record(v)); h };
            let all = fill(&[a.clone(), b.clone()].concat());
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            prop_assert_eq!(&merged, &all);
            let mut drained = fill(&a);
            let mut rest = fill(&b);
            rest.drain_into(&mut drained);
            prop_assert_eq!(&drained, &all);
            prop_assert_eq!(&rest, &Histogram::new());
            let mut checked = fill(&a);
            checked.checked_merge(&fill(&b)).unwrap();
            prop_assert_eq!(&checked, &all);
            let mut cleared = all.clone();
            prop_assert_eq!(&cleared, &all);
            cleared.clear();
            prop_assert_eq!(&cleared, &Histogram::reserved());
            prop_assert!(cleared.counts.iter().all(|count| *count == 0));
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Histogram>(&text).unwrap(), &all);
        }
    }

    #[test]
    fn a_serial_form_whose_counts_do_not_add_up_is_refused() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        let text = serde_json::to_string(&histogram).unwrap().replace("\"total\":1", "\"total\":2");
        assert!(serde_json::from_str::<Histogram>(&text).unwrap_err().to_string().contains("add up"));
    }

    /// Goal: histograms of other processes whose sums overflow are not added, and change nothing.
    #[test]
    fn counts_and_sums_that_overflow_are_not_added() {
        let read = |total: u64, sum_ns: u128| {
            let text = format!(
                "{{\"sub_bits\":7,\"total\":{total},\"overflow\":0,\"sum_ns\":\"{sum_ns}\",\"min_ns\":5,\"max_ns\":5,\
                 \"index\":[5],\"count\":[{total}]}}"
            );
            serde_json::from_str::<Histogram>(&text).unwrap()
        };
        for (one, other) in [(read(u64::MAX, 1), read(1, 1)), (read(1, u128::MAX), read(1, 1))] {
            let mut sum = one.clone();
            assert!(sum.checked_merge(&other).is_err());
            assert_eq!(sum, one);
        }
    }

    /// Goal: a damaged record is refused, because buckets outside of minimum and maximum are never read.
    #[test]
    fn a_serial_form_with_a_bucket_beyond_its_maximum_is_refused() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        let text = serde_json::to_string(&histogram).unwrap().replace("\"index\":[5]", "\"index\":[900]");
        assert!(
            serde_json::from_str::<Histogram>(&text).unwrap_err().to_string().contains("beyond minimum or maximum")
        );
    }
}
