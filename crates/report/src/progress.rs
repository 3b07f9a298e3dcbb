//! The progress line on the terminal while a phase runs.
//!
//! ```text
//! randread 4k q32  ███▍   1.42 GiB/s  371k IOPS p50 84.2 µs p99  132 µs 12 s left
//! ```
//!
//! Every field has a fixed width, so that the columns do not move as the figures change. The line has at
//! most 89 columns.

use crate::text::{clean, fitted, padded};
use trueio_model::units;

/// Width of the name, in columns.
const NAME_WIDTH: usize = 16;
/// Width of the bar, in columns.
const BAR_WIDTH: usize = 6;

/// Formats the progress of a phase as one line, without a line feed.
///
/// `fraction` is the completed share, from 0 to 1. Latencies and the remaining time are in nanoseconds;
/// `None` means unknown, and the field stays empty.
pub fn progress_line(
    name: &str,
    fraction: f64,
    bytes_per_s: f64,
    iops: f64,
    latency_ns_p50: Option<u64>,
    latency_ns_p99: Option<u64>,
    time_left_ns: Option<u64>,
) -> String {
    let latency = |name: &str, ns: Option<u64>| match ns {
        Some(ns) => format!("{name} {:>7}", units::format_duration_ns(ns)),
        None => " ".repeat(name.len() + 8),
    };
    let left = match time_left_ns.map(|ns| ns.div_ceil(1_000_000_000)) {
        None => String::new(),
        Some(s @ 0..100) => format!("{s} s left"),
        Some(s @ 100..6_000) => format!("{}:{:02} left", s / 60, s % 60),
        Some(s @ 6_000..360_000) => format!("{} h left", s.div_ceil(3_600)),
        Some(_) => ">99 h left".to_owned(),
    };
    let line = format!(
        "{} {} {:>10} {:>10} {} {} {left:>9}",
        padded(&fitted(&clean(name), NAME_WIDTH), NAME_WIDTH),
        bar(fraction),
        units::format_bandwidth(bytes_per_s.max(0.0)),
        format!("{} IOPS", short_count(iops)),
        latency("p50", latency_ns_p50),
        latency("p99", latency_ns_p99),
    );
    line.trim_end().to_owned()
}

/// Draws a bar in steps of an eighth of a column.
fn bar(fraction: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let done = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
    let steps = (done * (BAR_WIDTH * 8) as f64).floor() as usize;
    let mut bar = "█".repeat(steps / 8);
    if !steps.is_multiple_of(8) {
        bar.push(EIGHTHS[steps % 8]);
    }
    format!("{bar:BAR_WIDTH$}")
}

/// Formats a count in at most five characters: `612`, `3.29k`, `371k`, `1.42M`.
fn short_count(count: f64) -> String {
    let count = if count.is_finite() { count.max(0.0) } else { 0.0 };
    match count {
        c if c < 999.5 => format!("{c:.0}"),
        c if c < 999.5e3 => format!("{}k", units::three_digits(c / 1e3)),
        c if c < 999.5e6 => format!("{}M", units::three_digits(c / 1e6)),
        c => format!("{}G", units::three_digits(c / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_bar_rates_latencies_and_the_time_left() {
        let line = progress_line(
            "randread 4k q32",
            0.5625,
            1_524_713_390.0,
            371_000.4,
            Some(84_210),
            Some(132_000),
            Some(11_200_000_000),
        );
        assert_eq!(line, "randread 4k q32  ███▍   1.42 GiB/s  371k IOPS p50 84.2 µs p99  132 µs 12 s left");
    }

    #[test]
    fn the_fields_stay_in_their_columns_whatever_the_figures() {
        let at = |line: &str, what: &str| line.find(what).map(|i| line[..i].chars().count());
        let lines = [
            progress_line("a", 0.0, 0.0, 0.0, Some(0), Some(999), Some(0)),
            progress_line("a name of a job that is too long", 1.0, 1.5e12, 9.9e6, Some(1), Some(599e9 as u64), None),
            progress_line("b\x1b[1m", 7.0, -1.0, 3_286.9, Some(999_999), Some(12_345), Some(3_599_000_000_000)),
            progress_line("c", f64::NAN, 1023.4 * 1048576.0, f64::INFINITY, Some(5), Some(5), Some(u64::MAX)),
        ];
        for line in &lines {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(at(line, " IOPS"), at(&lines[0], " IOPS"), "{line}");
            assert_eq!(at(line, "p99"), at(&lines[0], "p99"), "{line}");
            assert!(!line.contains('\x1b'));
        }
        assert!(progress_line("x", 0.1, 1.0, 1.0, None, None, None).ends_with("IOPS"));
    }
}
