//! fio's terse format, versions 2 to 5: one line for each job, with fields separated by `;`.
//!
//! Version 2 has no field for fio's version, no disks, and the description on a line of its own; all but 3 have trims;
//! 5 adds the number of bandwidth samples, and IOPS over time. With `unified_rw_reporting` the sum replaces all
//! directions, or follows them (`both`). Latencies are microseconds. Percentiles are those of the total latency if
//! requested, otherwise of the completion latency; there are twenty fields, and unused ones are `0%=0`.
//!
//! A line has no field for a verdict; the caller reports it elsewhere.

use super::buckets::{deviation_ns, percentiles};
use super::entry::{Document, Entry, Figures};
use trueio_model::Histogram;

/// Number of fields for percentiles.
const PERCENTILES: usize = 20;

/// Returns a line for each entry.
pub(super) fn terse(document: &Document<'_>) -> String {
    lines(document, &document.entries.iter().collect::<Vec<_>>())
}

/// Returns a line for each of these.
pub(super) fn lines(document: &Document<'_>, entries: &[&Entry<'_>]) -> String {
    let version = document.options.terse_version.clamp(2, 5);
    let mut text = String::new();
    for entry in entries {
        let mut line = Line(Vec::new());
        line.push(version);
        if version > 2 {
            line.push(plain(&document.options.version));
        }
        line.push(plain(entry.name));
        line.push(entry.group);
        line.push(entry.error);
        let is_there = |name: &str| name != "trim" || version != 3;
        for (_, figures) in entry.reported().into_iter().filter(|(name, _)| is_there(name)) {
            direction(&mut line, entry, figures, version);
        }
        usage(&mut line, entry);
        let has_disks = version > 2 && document.shows_disks() && !entry.is_sum;
        for disk in document.disks.iter().filter(|_| has_disks) {
            let counters = &disk.counters;
            line.push(plain(&disk.name));
            line.push(counters.read_count).push(counters.write_count);
            line.push(counters.read_merge_count).push(counters.write_merge_count);
            line.push(counters.read_ms).push(counters.write_ms).push(counters.weighted_ms);
            line.push(format!("{:.2}%", disk.util_percent));
        }
        if entry.reports_failures {
            line.push(entry.failure_count).push(entry.first_error);
        }
        text.push_str(&line.0.join(";"));
        if let Some(description) = document.description(entry.first).filter(|_| !entry.is_sum) {
            text.push_str(if version == 2 { "\n;" } else { ";" });
            text.push_str(&plain(description));
        }
        text.push('\n');
    }
    text
}

struct Line(Vec<String>);

impl Line {
    fn push(&mut self, field: impl ToString) -> &mut Self {
        self.0.push(field.to_string());
        self
    }
}

/// Text without characters that end a field or a line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect()
}

fn direction(line: &mut Line, entry: &Entry<'_>, figures: &Figures, version: u32) {
    line.push(figures.byte_count >> 10).push(figures.bytes_per_s() as u64 >> 10);
    line.push(figures.ios_per_s() as u64).push(figures.runtime_ms());
    latency(line, &figures.slat);
    latency(line, &figures.clat);
    let [_, clat, _] = entry.percentiles();
    let of = match (entry.has_lat_percentiles(), clat) {
        (true, _) => Some(&figures.lat),
        (false, true) => Some(&figures.clat),
        (false, false) => None,
    };
    let mut left = PERCENTILES;
    if let Some(histogram) = of {
        let percents = &entry.plan.output.percentiles;
        let found = percentiles(histogram, percents);
        for (position, percent) in percents.iter().enumerate().take(PERCENTILES) {
            // fio writes the percentiles even if there was no I/O.
            let us = found.get(position).map_or(0, |(_, ns)| ns / 1000);
            line.push(format!("{percent:.6}%={us}"));
            left -= 1;
        }
    }
    (0..left).for_each(|_| {
        line.push("0%=0");
    });
    latency(line, &figures.lat);
    let (bw, iops) = (&figures.bw, &figures.iops);
    line.push(bw.min as u64).push(bw.max as u64).push(format!("{:.6}%", figures.share_percent()));
    line.push(format!("{:.6}", bw.mean)).push(format!("{:.6}", bw.dev));
    if version > 4 {
        line.push(bw.count);
        line.push(iops.min as u64).push(iops.max as u64);
        line.push(format!("{:.6}", iops.mean)).push(format!("{:.6}", iops.dev)).push(iops.count);
    }
}

/// Four fields, in microseconds.
fn latency(line: &mut Line, histogram: &Histogram) {
    line.push(histogram.min_ns().unwrap_or(0) / 1000).push(histogram.max_ns().unwrap_or(0) / 1000);
    line.push(format!("{:.6}", histogram.mean_ns().unwrap_or(0.0) / 1e3));
    line.push(format!("{:.6}", deviation_ns(histogram) / 1e3));
}

fn usage(line: &mut Line, entry: &Entry<'_>) {
    let threads = &entry.threads;
    let percent = |ns: u64| if threads.elapsed_ns > 0 { ns as f64 * 100.0 / threads.elapsed_ns as f64 } else { 0.0 };
    line.push(format!("{:.6}%", percent(threads.user_ns))).push(format!("{:.6}%", percent(threads.system_ns)));
    line.push(threads.context_switch_count).push(threads.major_fault_count).push(threads.minor_fault_count);
    entry.depth.iter().for_each(|share| {
        line.push(format!("{share:.1}%"));
    });
    // The format has no classes below 2 µs; nanosecond classes are counted there.
    let below: f64 = entry.latency[..10].iter().sum();
    let shares = std::iter::once(below + entry.latency[10]).chain(entry.latency[11..].iter().copied());
    shares.for_each(|share| {
        line.push(format!("{:.2}%", share.min(100.0)));
    });
}
