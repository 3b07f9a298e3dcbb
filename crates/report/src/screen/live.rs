//! The lines of a run on a terminal while it runs: a finished load keeps its line, the current one moves.

use super::{FIGURE_WIDTH, NAME_WIDTH, P99_WIDTH, SPARK_WIDTH, spark_of};
use crate::layout::{Style, to_ascii};
use crate::text::{clean, fitted, padded};
use trueio_model::units;

/// The load that runs.
#[derive(Debug, Clone, Copy)]
pub struct Current<'a> {
    /// Its name, as the finished lines have it.
    pub name: &'a str,
    /// True if its figure is bandwidth.
    pub is_bytes: bool,
    /// The rate now: bytes or I/Os per second.
    pub per_s: f64,
    /// The rates until now, oldest first.
    pub rates: &'a [f64],
    /// The recent 99th percentile; `None` if unknown.
    pub p99_ns: Option<u64>,
    /// Measured time so far, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time left, in nanoseconds; `None` if unknown.
    pub left_ns: Option<u64>,
}

/// Formats the line of the load that runs: as those of finished loads, with its time in the place of the word.
pub fn current_line(current: &Current<'_>, style: &Style) -> String {
    let figure = match current.is_bytes {
        true => units::format_bandwidth(current.per_s.max(0.0)),
        false => format!("{} IOPS", units::format_count(current.per_s.max(0.0).round() as u64)),
    };
    let p99 = current.p99_ns.map_or_else(|| "–".to_owned(), units::format_duration_ns);
    let time = match current.left_ns {
        Some(left) => {
            format!("{} of {}", seconds(current.elapsed_ns), seconds(current.elapsed_ns.saturating_add(left)))
        }
        None => seconds(current.elapsed_ns),
    };
    let name = padded(&fitted(&clean(current.name), NAME_WIDTH), NAME_WIDTH);
    let spark = spark_of(current.rates, style.unicode);
    shown(&format!("> {name} {figure:>FIGURE_WIDTH$}  {spark:SPARK_WIDTH$}  p99 {p99:>P99_WIDTH$}  {time}"), style)
}

/// Formats the line below it: what is left, and others' I/O.
pub fn remaining_line(more: usize, left_ns: Option<u64>, others: Option<&str>, style: &Style) -> String {
    let loads = match more {
        0 => "last load".to_owned(),
        1 => "1 more load".to_owned(),
        more => format!("{more} more loads"),
    };
    let left = left_ns.map_or_else(String::new, |ns| format!(", {} left in all", seconds(ns)));
    let others = others.map_or_else(String::new, |others| format!("   ! {others}; --wait-idle waits for it"));
    shown(&format!("  {loads}{left}{}", clean(&others)), style)
}

fn shown(text: &str, style: &Style) -> String {
    let text = fitted(text, style.width.saturating_sub(1));
    if style.unicode { text } else { to_ascii(&text) }
}

/// Formats a time in whole seconds or minutes: `7 s`, `1:05`, `2 h`.
fn seconds(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        s @ 0..100 => format!("{s} s"),
        s @ 100..36_000 => format!("{}:{:02} min", s / 60, s % 60),
        s => format!("{} h", s.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { width: 80, color: false, unicode: true };

    #[test]
    fn the_line_of_the_current_load_has_rate_sparkline_p99_and_time() {
        let current = Current {
            name: "rand-read-4k-q1",
            is_bytes: false,
            per_s: 12_114.2,
            rates: &[12e3, 11e3, 12e3, 12e3],
            p99_ns: Some(344_000),
            elapsed_ns: 3_100_000_000,
            left_ns: Some(3_900_000_000),
        };
        let line = current_line(&current, &STYLE);
        assert_eq!(line, "> rand-read-4k-q1           12,114 IOPS  ████      p99  344 µs  4 s of 7 s");
        let plain = current_line(&current, &Style { unicode: false, ..STYLE });
        assert!(plain.is_ascii() && plain.len() == line.chars().count(), "{plain}");
    }

    #[test]
    fn what_is_left_and_who_disturbs_stand_below() {
        assert_eq!(remaining_line(4, Some(31_200_000_000), None, &STYLE), "  4 more loads, 32 s left in all");
        let line = remaining_line(0, None, Some("dd (pid 812) writes 120 MiB/s on vda"), &STYLE);
        assert_eq!(line, "  last load   ! dd (pid 812) writes 120 MiB/s on vda; --wait-idle waits for it");
        let long = remaining_line(1, None, Some(&"x".repeat(200)), &STYLE);
        assert_eq!(long.chars().count(), 79, "a line that wraps cannot be redrawn");
        assert!(!remaining_line(1, None, Some("\u{1b}[2J"), &STYLE).contains('\u{1b}'));
    }
}
