//! Sentences about the system calls of a phase's workers, for terminal and page.

use crate::text::{counted, figure};
use crate::words::Item;
use trueio_model::{
    AnsweredPhase, JobSyscalls, PhaseRecord, RunRecord, SyscallIo, SyscallPlaces, SyscallRow, SyscallSizes,
    SyscallTrace, SyscallUnit, units,
};

/// Returns one item per job whose calls were recorded, or one item with the reason why they were not.
pub(crate) fn syscalls(record: &RunRecord) -> Vec<Item> {
    record.phases.iter().flat_map(of_phase).collect()
}

fn of_phase(phase: &PhaseRecord) -> Vec<Item> {
    let Some(trace) = &phase.syscalls else { return Vec::new() };
    match AnsweredPhase::of(phase).is_shown {
        true => of_trace(&phase.name, trace),
        // Their times are the latencies of the load.
        false => vec![(format!("{}: withheld with the figures of the load", phase.name), Vec::new())],
    }
}

/// Returns one item per job of a trace; `name` is the phase or side.
pub(crate) fn of_trace(name: &str, trace: &SyscallTrace) -> Vec<Item> {
    if let Some(reason) = &trace.missing {
        return vec![(format!("{name}: not recorded: {reason}"), Vec::new())];
    }
    trace
        .jobs
        .iter()
        .map(|job| (head(job, trace), job.calls.iter().map(|call| row(call, job, trace)).collect()))
        .collect()
}

fn head(job: &JobSyscalls, trace: &SyscallTrace) -> String {
    let mut text = format!(
        "{}: all calls of {} in {} ms",
        job.name,
        counted(u64::from(job.thread_count), "thread"),
        figure(trace.span_ns as f64 / 1e6)
    );
    if trace.lost_event_count > 0 {
        text.push_str(&format!(
            "; {} were lost because the trace buffer was full (each call has two): all counts are lower bounds",
            counted(trace.lost_event_count, "event")
        ));
    }
    text
}

/// Formats `pwrite64 × 4,096: 96.1 % of the time; mean 19.5 µs, …`.
fn row(call: &SyscallRow, job: &JobSyscalls, trace: &SyscallTrace) -> String {
    let latency = &call.latency;
    let least = if trace.lost_event_count > 0 { "at least " } else { "" };
    let mut parts = Vec::new();
    if let (Some(mean), Some(max)) = (latency.mean_ns(), latency.max_ns()) {
        let time_ns = trace.span_ns.max(1) as f64 * f64::from(job.thread_count.max(1));
        let us = |ns: f64| figure(ns / 1e3);
        let median = latency.value_at_rank(latency.count().div_ceil(2));
        parts.push(format!(
            "{} % of {} time; mean {}{}, max {} µs",
            share(latency.sum_ns() as f64 * 100.0 / time_ns),
            if job.thread_count == 1 { "its" } else { "their" },
            us(mean),
            median.map_or_else(String::new, |median| format!(", median {}", us(median as f64))),
            us(max as f64),
        ));
    }
    for error in &call.errors {
        let sentence = std::io::Error::from_raw_os_error(error.errno);
        parts.push(format!("{} failed: {sentence}", units::format_count(error.count)));
    }
    if call.unfinished_count > 0 {
        parts.push(format!("{} not recorded from entry to return", units::format_count(call.unfinished_count)));
    }
    if let Some(io) = &call.io {
        parts.extend(io_words(io, call.count));
    }
    format!("{} × {least}{}: {}", call.name, units::format_count(call.count), parts.join("; "))
}

fn share(percent: f64) -> String {
    if percent < 0.005 { "under 0.01".to_owned() } else { figure(percent) }
}

fn io_words(io: &SyscallIo, count: u64) -> Vec<String> {
    let mut words = Vec::new();
    let size = |value: u64| match io.unit {
        SyscallUnit::Bytes => units::format_bytes(value),
        SyscallUnit::Ios => counted(value, "I/O"),
    };
    let asked = sizes(&io.asked, size);
    let returned = sizes(&io.returned, size);
    match (asked.is_empty(), returned.is_empty()) {
        (false, false) if asked == returned => words.push(format!("requested and returned {asked}")),
        (false, false) => words.extend([format!("requested {asked}"), format!("returned {returned}")]),
        (false, true) => words.push(format!("requested {asked}")),
        (true, false) => words.push(format!("returned {returned}")),
        (true, true) => {}
    }
    let named = |named: &[(String, u64)]| {
        let one = |(name, n): &(String, u64)| {
            if *n == count { name.clone() } else { format!("{name} × {}", units::format_count(*n)) }
        };
        named.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    if !io.opened.is_empty() {
        words.push(format!("files open {}", named(&io.opened)));
    }
    if !io.flags.is_empty() {
        words.push(format!("with {}", named(&io.flags)));
    }
    words.extend(io.places.map(places));
    words
}

/// Formats `4 KiB × 10, 8 KiB × 2`.
fn sizes(sizes: &SyscallSizes, show: impl Fn(u64) -> String) -> String {
    /// Number of sizes that are listed.
    const NAMED: usize = 4;
    if let [(only, _)] = sizes.counts[..]
        && sizes.other_count == 0
    {
        return format!("{} each", show(only));
    }
    let mut most = sizes.counts.clone();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut parts: Vec<String> = most
        .iter()
        .take(NAMED)
        .map(|(size, count)| format!("{} × {}", show(*size), units::format_count(*count)))
        .collect();
    let rest = most.iter().skip(NAMED).map(|(_, count)| count).sum::<u64>() + sizes.other_count;
    if rest > 0 {
        parts.push(format!("other sizes × {}", units::format_count(rest)));
    }
    parts.join(", ")
}

fn places(places: SyscallPlaces) -> String {
    let SyscallPlaces { following_count, sequential_count, .. } = places;
    let order = match (following_count, sequential_count) {
        (0, _) => "one offset per file".to_owned(),
        (all, following) if all == following => "sequential, each at the end of the previous one".to_owned(),
        (_, 0) => "random, none at the end of the previous one".to_owned(),
        (all, following) => {
            format!("{} % at the end of the previous one", figure(following as f64 * 100.0 / all as f64))
        }
    };
    format!(
        "{order}; {}{} from {} to {}",
        if places.is_unique_least { "at least " } else { "" },
        counted(places.unique_count, "different offset"),
        units::format_bytes(places.begin_bytes),
        units::format_bytes(places.end_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Histogram, SyscallError};

    fn latency(ns: u64, count: u64) -> Histogram {
        let mut latency = Histogram::new();
        latency.record_many(ns, count);
        latency
    }

    #[test]
    fn a_row_has_every_known_part_and_omits_unknown_ones() {
        let sizes = |counts: &[(u64, u64)]| SyscallSizes {
            counts: counts.to_vec(),
            other_count: 0,
            sum: counts.iter().map(|(size, count)| size * count).sum(),
        };
        let write = SyscallRow {
            name: "pwritev2".to_owned(),
            number: 328,
            count: 100,
            unfinished_count: 1,
            latency: latency(20_000, 99),
            errors: vec![SyscallError { errno: 28, count: 2 }],
            io: Some(SyscallIo {
                unit: SyscallUnit::Bytes,
                asked: SyscallSizes::default(),
                returned: sizes(&[(512, 7), (4096, 90)]),
                opened: vec![("O_RDWR|O_DIRECT".to_owned(), 100)],
                flags: vec![("RWF_DSYNC".to_owned(), 50)],
                places: Some(SyscallPlaces {
                    placed_count: 97,
                    following_count: 96,
                    sequential_count: 96,
                    unique_count: 97,
                    is_unique_least: true,
                    begin_bytes: 4096,
                    end_bytes: 1 << 20,
                }),
            }),
        };
        let submit = SyscallRow {
            name: "io_submit".to_owned(),
            count: 5,
            latency: latency(100, 5),
            io: Some(SyscallIo {
                unit: SyscallUnit::Ios,
                asked: sizes(&[(1, 5)]),
                returned: sizes(&[(1, 5)]),
                ..SyscallIo::default()
            }),
            ..SyscallRow::default()
        };
        let job = JobSyscalls { name: "a".to_owned(), thread_count: 2, calls: vec![write, submit] };
        let mut trace = SyscallTrace { span_ns: 10_000_000, jobs: vec![job], ..SyscallTrace::default() };
        let described = |trace: &SyscallTrace| {
            let job = &trace.jobs[0];
            (head(job, trace), job.calls.iter().map(|call| row(call, job, trace)).collect::<Vec<_>>())
        };
        let (first, rows) = described(&trace);
        assert_eq!(first, "a: all calls of 2 threads in 10.0 ms");
        assert_eq!(
            rows,
            [
                "pwritev2 × 100: 9.90 % of their time; mean 20.0, median 20.0, max 20.0 µs; 2 failed: No space left on \
                 device (os error 28); 1 not recorded from entry to return; returned 4 KiB × 90, 512 B × 7; files open \
                 O_RDWR|O_DIRECT; with RWF_DSYNC × 50; sequential, each at the end of the previous one; at least 97 \
                 different offsets from 4 KiB to 1 MiB",
                "io_submit × 5: under 0.01 % of their time; mean 0.10, median 0.10, max 0.10 µs; requested and \
                 returned 1 I/O each",
            ]
        );
        trace.lost_event_count = 3;
        let (first, rows) = described(&trace);
        assert!(first.ends_with(
            "; 3 events were lost because the trace buffer was full (each call has two): all counts \
                             are lower bounds"
        ));
        assert!(rows[0].starts_with("pwritev2 × at least 100: "), "{}", rows[0]);
    }
}
