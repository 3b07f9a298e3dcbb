//! Relations that hold exactly between the figures of one rank, whatever the run: a rank that leaves one has invented a figure.
//!
//! They follow from how figures are recorded: each I/O that transfers something is counted once and has one latency, and rows, workers and
//! percentiles are made of the same counts. A relation that an interrupted, failed, paced or empty run could leave is not here:
//! intervals may miss what completed after the last of them, a submission may have no completion, and the counters of a disk include
//! what other programs did.

use crate::range::{OutOfRange, at_most};
use trueio_model::{
    BlockSizes, DeviceCounters, Histogram, JobPlan, JobRecord, MAX_TRACKABLE_NS, OpKind, OpRecord, SeriesRow,
};

/// Rounding of the times of intervals, in nanoseconds: each is converted from ticks.
const ROUNDING_NS: u64 = 1_000_000;
/// Most milliseconds that a counter of a disk adds up in a phase: 100,000 requests in flight for a month.
const COUNTER_MS_MAX: u64 = 1 << 48;

/// Checks that a figure is the one that others result in.
fn equals(what: &'static str, found: u64, others: u64) -> Result<(), OutOfRange> {
    if found == others {
        Ok(())
    } else {
        Err(OutOfRange::new(what, found, format_args!("{others} by the other figures")))
    }
}

/// Checks that minimum, maximum and sum of a histogram are those of values in its buckets.
pub(super) fn check_histogram(latencies: &Histogram) -> Result<(), OutOfRange> {
    let (Some(min), Some(max)) = (latencies.min_ns(), latencies.max_ns()) else {
        return match latencies.sum_ns() {
            0 => Ok(()),
            sum => Err(OutOfRange::new("the sum of no latencies", sum, 0)),
        };
    };
    let overflow = u128::from(latencies.overflow_count());
    let (mut least, mut most) = (overflow * u128::from(min.max(MAX_TRACKABLE_NS)), overflow * u128::from(max));
    let (mut first, mut last) = (None, None);
    for (low, high, count) in latencies.buckets() {
        first.get_or_insert((low, high));
        last = Some((low, high));
        least += u128::from(count) * u128::from(low.max(min));
        most += u128::from(count) * u128::from(high.min(max));
    }
    let (from, _) = first.unwrap_or((MAX_TRACKABLE_NS, 0));
    let until = first.map_or(u64::MAX, |(_, high)| high);
    if !(from..=until).contains(&min) {
        return Err(OutOfRange::new("the lowest latency", min, "in the first bucket"));
    }
    let (from, until) = match last {
        Some(bucket) if overflow == 0 => bucket,
        _ => (MAX_TRACKABLE_NS, u64::MAX),
    };
    if !(from..=until).contains(&max) {
        return Err(OutOfRange::new("the highest latency", max, "in the last bucket"));
    }
    let sum = latencies.sum_ns();
    if !(least..=most).contains(&sum) {
        let range = format_args!("between {least} and {most} by the buckets");
        return Err(OutOfRange::new("the sum of latencies", sum, range));
    }
    Ok(())
}

/// Checks the figures of an operation by each other.
pub(super) fn check_op(op: &OpRecord) -> Result<(), OutOfRange> {
    let latency = &op.latency;
    equals("the number of latencies", latency.total.count(), op.io_count)?;
    at_most("the number of completion latencies", latency.completion.count(), op.io_count)?;
    at_most("the number of latencies from the intended time", latency.from_intended.count(), op.io_count)?;
    if op.io_count == 0 {
        equals("the bytes of no I/O", op.byte_count, 0)?;
    }
    let by_priority = op.priorities.iter().map(|of| of.latency.total.count()).fold(0, u64::saturating_add);
    at_most("the number of latencies by priority", by_priority, op.io_count)?;
    for percentile in &op.percentiles {
        let (min, max) = (latency.total.min_ns().unwrap_or(0), latency.total.max_ns().unwrap_or(0));
        if !(0.0..=100.0).contains(&percentile.percent) || !(min..=max).contains(&percentile.latency_ns) {
            let found = format_args!("{} ns at {} %", percentile.latency_ns, percentile.percent);
            return Err(OutOfRange::new("a percentile", found, format_args!("between {min} and {max} ns")));
        }
    }
    Ok(())
}

/// Checks the intervals of a job by its operations, and the latencies of an interval by each other.
fn check_series(job: &JobRecord) -> Result<(), OutOfRange> {
    let sum = |of: fn(&SeriesRow) -> u64| job.series.iter().map(of).fold(0, u64::saturating_add);
    let total = |kinds: &[OpKind], of: fn(&OpRecord) -> u64| {
        job.ops.iter().filter(|op| kinds.contains(&op.op)).map(of).fold(0, u64::saturating_add)
    };
    let count: fn(&OpRecord) -> u64 = |op| op.io_count;
    let bytes: fn(&OpRecord) -> u64 = |op| op.byte_count;
    let (read, write, trim) = (&[OpKind::Read][..], &[OpKind::Write][..], &[OpKind::Trim][..]);
    at_most("the number of reads in all intervals", sum(|row| row.read_count), total(read, count))?;
    at_most("the bytes read in all intervals", sum(|row| row.read_bytes), total(read, bytes))?;
    at_most("the number of writes in all intervals", sum(|row| row.write_count), total(write, count))?;
    at_most("the bytes written in all intervals", sum(|row| row.write_bytes), total(write, bytes))?;
    at_most("the number of trims in all intervals", sum(|row| row.trim_count), total(trim, count))?;
    at_most("the bytes trimmed in all intervals", sum(|row| row.trim_bytes), total(trim, bytes))?;
    let others = total(&[OpKind::Trim, OpKind::Sync], count);
    at_most("the number of trims and sync calls in all intervals", sum(|row| row.other_count), others)?;
    let longest = job.ops.iter().filter_map(|op| op.latency.total.max_ns()).max().unwrap_or(0);
    for row in &job.series {
        at_most("the trims of an interval", row.trim_count, row.other_count)?;
        at_most("the length of an interval in nanoseconds", row.span_ns, row.end_ns.saturating_add(ROUNDING_NS))?;
        at_most("the median latency of an interval", row.latency_ns_p50, row.latency_ns_p99)?;
        at_most("the 99th percentile of an interval", row.latency_ns_p99, row.latency_ns_max)?;
        at_most("the longest latency of an interval", row.latency_ns_max, longest)?;
    }
    Ok(())
}

/// Checks the figures of a job by each other.
pub(super) fn check_job(job: &JobRecord) -> Result<(), OutOfRange> {
    check_series(job)?;
    at_most("the number of blocks that differ", job.verify_failure_count, job.verified_block_count)?;
    if let Some(depth) = job.achieved_depth {
        // Little's law, as it is recorded; a float that was written as text may differ in its last digits.
        let in_flight = job.ops.iter().map(|op| op.latency.total.sum_ns()).fold(0, u128::saturating_add);
        let by_latencies = in_flight as f64 / job.elapsed_ns.max(1) as f64;
        if (depth - by_latencies).abs() > by_latencies * 1e-9 {
            return Err(OutOfRange::new("the queue depth", depth, format_args!("{by_latencies} by the latencies")));
        }
    }
    if job.workers.is_empty() {
        return Ok(());
    }
    for op in &job.ops {
        let of = |figure: fn(&OpRecord) -> u64| {
            let ops = job.workers.iter().flat_map(|worker| &worker.ops).filter(|own| own.op == op.op);
            ops.map(figure).fold(0, u64::saturating_add)
        };
        equals("the number of I/Os of a job", op.io_count, of(|op| op.io_count))?;
        equals("the bytes of a job", op.byte_count, of(|op| op.byte_count))?;
    }
    Ok(())
}

/// Checks the counters of a disk. Other programs use it as well, so only their ranges are known.
pub(super) fn check_counters(counters: &DeviceCounters, bytes_max: u64, count_max: u64) -> Result<(), OutOfRange> {
    let merged = [counters.read_merge_count, counters.write_merge_count];
    let counts = [counters.read_count, counters.write_count, counters.discard_count, counters.flush_count.unwrap_or(0)];
    for count in counts.into_iter().chain(merged) {
        at_most("a number of requests of a disk", count, count_max)?;
    }
    for bytes in [counters.read_bytes, counters.write_bytes, counters.discard_bytes] {
        at_most("the bytes of a disk", bytes, bytes_max)?;
    }
    for ms in [counters.busy_ms, counters.weighted_ms, counters.read_ms, counters.write_ms] {
        at_most("a time of a disk in milliseconds", ms, COUNTER_MS_MAX)?;
    }
    Ok(())
}

/// Most bytes of an I/O whose size the plan does not have: the kernel transfers less than 2^31, and a copy in memory at most a block, whose size has 32
/// bits.
const IO_BYTES_MAX: u64 = 1 << 32;

/// Checks a job by its plan: no read or write has more bytes than the largest block. In logs that are replayed and in files that have names, sizes
/// differ from it; a program is one operation, whatever it writes; a trim may be of a zone.
pub(super) fn check_blocks(job: &JobRecord, plan: &JobPlan) -> Result<(), OutOfRange> {
    if plan.command.is_some() {
        return Ok(());
    }
    let pattern = &plan.pattern;
    let sizes = [&pattern.read_sizes, &pattern.write_sizes, &pattern.trim_sizes];
    let largest = match plan.replay.is_some() || plan.exec.is_some() || plan.names.is_some() {
        true => IO_BYTES_MAX,
        false => sizes.into_iter().map(BlockSizes::max_bytes).max().unwrap_or(0),
    };
    for op in job.ops.iter().filter(|op| matches!(op.op, OpKind::Read | OpKind::Write)) {
        let most = op.io_count.saturating_mul(largest);
        at_most("a number of bytes, by the number of I/Os and the largest block,", op.byte_count, most)?;
    }
    job.workers.iter().try_for_each(|worker| check_blocks(worker, plan))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_minimum_or_maximum_outside_of_its_bucket_is_refused() {
        // The format refuses some of them, and the check the rest.
        let check = |min_ns: u64, max_ns: u64| {
            let text = json!({"sub_bits": 7, "total": 2, "overflow": 0, "sum_ns": "12", "min_ns": min_ns, "max_ns": max_ns, "index": [5, 2],
                "count": [1, 1]});
            let read = serde_json::from_value::<Histogram>(text).map_err(|error| error.to_string());
            read.and_then(|histogram| check_histogram(&histogram).map_err(|error| error.to_string()))
        };
        assert_eq!(check(5, 7), Ok(()));
        for (min, max) in [(0, 7), (4, 7), (6, 7), (5, 6), (5, 8)] {
            assert!(check(min, max).is_err(), "{min} to {max}");
        }
    }
}
