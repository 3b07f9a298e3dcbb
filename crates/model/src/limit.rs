//! Limits of `--fail-if` and of `[limits]` in a job file: `p99 > 10ms`, `reads: IOPS < 50000`, `write bandwidth < 95%`.
//!
//! ```text
//! [LOAD ':'] ['read' | 'write' | 'trim' | 'sync'] FIGURE ('>' | '<' | '>=' | '<=') VALUE
//! ```
//!
//! A limit states what must not be. It is missed if it holds in the whole interval of the figure, met if it holds nowhere in it, and
//! undecided otherwise: a gate that fails on a point estimate fails on noise.
//!
//! [`LIMIT_FIGURES`] is the table of the figures; names, units and errors follow from it.

mod parse;
mod set;

pub use parse::LimitError;
pub use set::{JudgedLimit, LimitOutcome, LimitSet, Reference, ReferenceLoad};

use crate::{Metric, OpKind, Quantity, units};

/// A figure that can have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitFigure {
    /// A figure of a run.
    Of(Quantity),
    /// Sync calls per second.
    Commits,
    /// CPU time per I/O, of comparisons only.
    Cpu,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Operations per second: a number.
    PerSecond,
    /// Bytes per second: a size with its unit.
    BytesPerSecond,
    /// A duration with its unit; the value is in nanoseconds.
    Time,
}

/// A row of the table of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitRow {
    /// Which.
    pub figure: LimitFigure,
    /// Its name in sentences.
    pub name: &'static str,
    /// Other names, in lower case, as its own is read.
    pub aliases: &'static [&'static str],
    /// The unit of its values.
    pub unit: LimitUnit,
    /// What it is.
    pub summary: &'static str,
}

/// The figures that can have a limit.
pub const LIMIT_FIGURES: [LimitRow; 9] = {
    use LimitUnit::{BytesPerSecond, PerSecond, Time};
    const fn row(
        figure: LimitFigure,
        (name, aliases): (&'static str, &'static [&'static str]),
        unit: LimitUnit,
        summary: &'static str,
    ) -> LimitRow {
        LimitRow { figure, name, aliases, unit, summary }
    }
    [
        row(LimitFigure::Of(Quantity::Iops), ("IOPS", &[]), PerSecond, "I/Os per second"),
        row(LimitFigure::Of(Quantity::Bandwidth), ("bandwidth", &["bw"]), BytesPerSecond, "bytes per second"),
        row(LimitFigure::Commits, ("commits", &[]), PerSecond, "sync calls per second"),
        row(LimitFigure::Of(Quantity::Mean), ("mean", &[]), Time, "mean latency"),
        row(LimitFigure::Of(Quantity::P50), ("p50", &["median"]), Time, "median latency"),
        row(LimitFigure::Of(Quantity::P99), ("p99", &[]), Time, "99th percentile of the latency"),
        row(LimitFigure::Of(Quantity::P999), ("p99.9", &["p999"]), Time, "99.9th percentile of the latency"),
        row(LimitFigure::Of(Quantity::Max), ("max", &[]), Time, "longest latency"),
        row(LimitFigure::Cpu, ("cpu", &[]), Time, "CPU time per I/O, of `trueio compare`"),
    ]
};

impl LimitFigure {
    /// Returns the figure with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let is_it = |row: &&LimitRow| row.name.eq_ignore_ascii_case(&name) || row.aliases.contains(&name.as_str());
        LIMIT_FIGURES.iter().find(is_it).map(|row| row.figure)
    }

    /// Returns the names of all figures, for a message.
    pub fn names() -> String {
        LIMIT_FIGURES.map(|row| row.name).join(", ")
    }

    /// Returns its row.
    pub fn row(self) -> LimitRow {
        LIMIT_FIGURES.into_iter().find(|row| row.figure == self).expect("each figure has a row")
    }

    /// Returns the metric of comparisons that it is; `None` if comparisons have none.
    pub fn metric(self) -> Option<Metric> {
        match self {
            LimitFigure::Of(Quantity::Iops) => Some(Metric::Iops),
            LimitFigure::Of(Quantity::Bandwidth) => Some(Metric::Bandwidth),
            LimitFigure::Of(Quantity::P50) => Some(Metric::P50),
            LimitFigure::Of(Quantity::P99) => Some(Metric::P99),
            LimitFigure::Of(Quantity::P999) => Some(Metric::P999),
            LimitFigure::Cpu => Some(Metric::CpuPerIo),
            LimitFigure::Of(Quantity::Mean | Quantity::Max) | LimitFigure::Commits => None,
        }
    }
}

impl LimitUnit {
    /// Formats a value: `50,000 per second`, `1.42 GiB/s`, `10.0 ms`.
    pub fn show(self, value: f64) -> String {
        match self {
            LimitUnit::PerSecond if value >= 99.95 => {
                format!("{} per second", units::format_count(value.round() as u64))
            }
            LimitUnit::PerSecond => format!("{} per second", units::three_digits(value)),
            LimitUnit::BytesPerSecond => units::format_bandwidth(value),
            LimitUnit::Time => units::format_duration_ns(value.round() as u64),
        }
    }
}

/// The sign of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSign {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

impl LimitSign {
    /// Returns true for `>` and `>=`.
    pub fn is_above(self) -> bool {
        matches!(self, LimitSign::Above | LimitSign::AtLeast)
    }

    /// Returns true if `value` stands in this relation to `threshold`.
    pub fn holds(self, value: f64, threshold: f64) -> bool {
        match self {
            LimitSign::Above => value > threshold,
            LimitSign::AtLeast => value >= threshold,
            LimitSign::Below => value < threshold,
            LimitSign::AtMost => value <= threshold,
        }
    }

    /// Returns what an interval decides. An end that is unknown is infinite.
    pub fn judge(self, (low, high): (f64, f64), threshold: f64) -> LimitOutcome {
        match (self.holds(low, threshold), self.holds(high, threshold)) {
            (true, true) => LimitOutcome::Missed,
            (false, false) => LimitOutcome::Met,
            _ => LimitOutcome::Undecided,
        }
    }
}

/// The value of a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitValue {
    /// In the unit of the figure.
    Absolute(f64),
    /// A multiple of the reference: 0.95 for `95%` and for `-5%`.
    Share(f64),
}

/// A limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As it was written.
    pub text: String,
    /// The load, or the side of a comparison; `None`: each.
    pub load: Option<String>,
    /// The operation; `None`: each, and of rates the sum of all transfers.
    pub operation: Option<OpKind>,
    /// Of what.
    pub figure: LimitFigure,
    /// The relation that must not be.
    pub sign: LimitSign,
    /// To what.
    pub value: LimitValue,
}

impl Limit {
    /// Returns the name of its figure, with the operation: `read p99`.
    pub fn name(&self) -> String {
        let figure = self.figure.row().name;
        self.operation.map_or_else(|| figure.to_owned(), |operation| format!("{operation} {figure}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_on_one_side_of_a_limit_decides_it_for_every_sign() {
        use LimitOutcome::{Met, Missed, Undecided};
        // The interval, and what `>`, `>=`, `<` and `<=` of 10 are.
        let cases = [
            ((11.0, 12.0), [Missed, Missed, Met, Met]),
            ((10.0, 12.0), [Undecided, Missed, Met, Undecided]),
            ((8.0, 12.0), [Undecided; 4]),
            ((8.0, 10.0), [Met, Undecided, Undecided, Missed]),
            ((8.0, 9.0), [Met, Met, Missed, Missed]),
            ((10.0, 10.0), [Met, Missed, Met, Missed]),
            ((11.0, f64::INFINITY), [Missed, Missed, Met, Met]),
            ((9.0, f64::INFINITY), [Undecided; 4]),
        ];
        for (interval, expected) in cases {
            let signs = [LimitSign::Above, LimitSign::AtLeast, LimitSign::Below, LimitSign::AtMost];
            assert_eq!(signs.map(|sign| sign.judge(interval, 10.0)), expected, "{interval:?}");
        }
    }

    #[test]
    fn names_of_figures_are_unique_and_read_in_any_case() {
        let mut seen = Vec::new();
        for row in LIMIT_FIGURES {
            assert!(!row.summary.is_empty());
            for name in row.aliases.iter().chain([&row.name]) {
                assert!(!seen.contains(&name.to_lowercase()), "{name}");
                seen.push(name.to_lowercase());
                assert_eq!(LimitFigure::named(&name.to_uppercase()), Some(row.figure));
            }
        }
    }
}
