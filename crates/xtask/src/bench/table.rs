//! Figures of a comparison: medians over pairs, their range, the bars, the table.

use super::targets::replace_file;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// A bar that a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    /// Good if at most (must, stretch).
    AtMost(f64, f64),
    /// Good if at least (must, stretch).
    AtLeast(f64, f64),
    /// Printed, not judged.
    None,
}

/// The result of comparing a figure with its bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Stretch,
    Must,
    Missed,
    NotJudged,
}

impl Bar {
    pub(crate) fn standing(self, value: f64) -> Standing {
        let (is_must, is_stretch) = match self {
            Bar::AtMost(must, stretch) => (value <= must, value <= stretch),
            Bar::AtLeast(must, stretch) => (value >= must, value >= stretch),
            Bar::None => return Standing::NotJudged,
        };
        match (is_must, is_stretch) {
            (true, true) => Standing::Stretch,
            (true, false) => Standing::Must,
            (false, _) => Standing::Missed,
        }
    }

    fn words(self) -> (String, String) {
        match self {
            Bar::AtMost(must, stretch) => (format!("≤ {}", short(must)), format!("≤ {}", short(stretch))),
            Bar::AtLeast(must, stretch) => (format!("≥ {}", short(must)), format!("≥ {}", short(stretch))),
            Bar::None => ("–".into(), "–".into()),
        }
    }
}

/// Median and range of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) count: usize,
}

impl Estimate {
    /// Returns `None` without values, and if a value is not a number.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min: values[0], max: values[values.len() - 1], count: values.len() })
    }
}

/// The result of a pair of runs for one measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// The judged value: a ratio, or a single figure.
    pub(crate) value: f64,
    /// Our figure.
    pub(crate) ours: f64,
    /// The other's.
    pub(crate) other: Option<f64>,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The goal's number.
    pub(crate) goal: &'static str,
    /// What is measured and against what.
    pub(crate) what: String,
    /// The unit of `ours` and `other`.
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
    /// The cost of fio 3.42 (or of the program in `what`) in the same case on another machine.
    pub(crate) published: Option<f64>,
    /// The figures, or the reason why there are none.
    pub(crate) readings: Result<Vec<Reading>, String>,
}

impl Row {
    pub(crate) fn standing(&self) -> Option<Standing> {
        Some(self.bar.standing(self.judged()?.median))
    }

    fn judged(&self) -> Option<Estimate> {
        Estimate::of(self.readings.as_ref().ok()?.iter().map(|reading| reading.value).collect())
    }

    fn cells(&self) -> Vec<String> {
        let (must, stretch) = self.bar.words();
        let head = vec![self.goal.to_owned(), self.what.clone()];
        let (readings, judged) = match (&self.readings, self.judged()) {
            (Ok(readings), Some(judged)) => (readings, judged),
            (readings, _) => {
                let result = match readings {
                    Err(reason) => format!("not measured: {reason}"),
                    Ok(_) => "not measured".into(),
                };
                return [head, vec!["–".into(); 4], vec![must, stretch, result, "–".into()]].concat();
            }
        };
        let figure = |of: fn(&Reading) -> Option<f64>| {
            let estimate = Estimate::of(readings.iter().filter_map(of).collect());
            estimate.map_or("–".into(), |estimate| with_unit(estimate.median, self.unit))
        };
        let ours = Estimate::of(readings.iter().map(|reading| reading.ours).collect());
        let published = match (self.published, ours) {
            (Some(published), Some(ours)) => {
                format!("{} ({})", with_unit(published, self.unit), short(ours.median / published))
            }
            _ => "–".into(),
        };
        let result = match self.bar.standing(judged.median) {
            Standing::Stretch => "stretch",
            Standing::Must => "must",
            Standing::Missed => "MISSED",
            Standing::NotJudged => "–",
        };
        let tail = vec![
            figure(|reading| Some(reading.ours)),
            figure(|reading| reading.other),
            format!("{} [{}..{}]", short(judged.median), short(judged.min), short(judged.max)),
            judged.count.to_string(),
            must,
            stretch,
            result.to_owned(),
            published,
        ];
        [head, tail].concat()
    }
}

const HEAD: [&str; 10] =
    ["goal", "measure", "trueio", "other", "judged", "pairs", "must", "stretch", "result", "3.42, elsewhere"];

/// A figure in its unit, or in the next larger one.
fn with_unit(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "ns" if value >= 10_000.0 => (value / 1e3, "µs"),
        "KiB" if value >= 10_240.0 => (value / 1024.0, "MiB"),
        _ => (value, unit),
    };
    format!("{} {unit}", short(value)).trim().to_owned()
}

/// Three significant digits, no exponent.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.2} M", value / 1e6),
        v if v >= 10_000.0 => format!("{:.0} k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The table in Markdown, aligned so that it can be read as it is.
pub(crate) fn render(rows: &[Row]) -> String {
    let cells: Vec<Vec<String>> = std::iter::once(HEAD.map(str::to_owned).to_vec())
        .chain(
            rows.iter().map(|row| row.cells().iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect()),
        )
        .collect();
    let widths: Vec<usize> =
        (0..HEAD.len()).map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if index == 0 {
            widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
            text.push_str("|\n");
        }
    }
    text
}

/// Writes `text` between the markers `NAME:begin` and `NAME:end` of a page.
///
/// # Errors
/// The page cannot be read or written, or has no such markers.
pub(crate) fn write_between(path: &Path, name: &str, text: &str) -> Result<()> {
    let page = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let page = between_markers(&page, name, text)
        .with_context(|| format!("{} has no markers `{name}:begin` and `{name}:end`", path.display()))?;
    replace_file(path, &page)
}

/// What stands between the markers of a page.
pub(crate) fn found_between<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    Some(page.split_once(&begin)?.1.split_once(&end)?.0)
}

/// `page` with `text` between its markers; `None` if it does not have them, in order.
fn between_markers(page: &str, name: &str, text: &str) -> Option<String> {
    let begin = page.find(&format!("<!-- {name}:begin -->"))? + format!("<!-- {name}:begin -->").len();
    let end = begin + page[begin..].find(&format!("<!-- {name}:end -->"))?;
    Some(format!("{}\n{}\n{}", &page[..begin], text.trim_end(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bar: Bar, values: &[f64]) -> Row {
        let readings = values.iter().map(|&value| Reading { value, ours: 40.0 * value, other: Some(40.0) }).collect();
        Row { goal: "P1", what: "CPU an I/O".into(), unit: "ns", bar, published: Some(164.0), readings: Ok(readings) }
    }

    #[test]
    fn the_median_of_the_pairs_is_held_against_the_bar() {
        let bar = Bar::AtMost(0.28, 0.17);
        assert_eq!(row(bar, &[0.9, 0.1, 0.1]).standing(), Some(Standing::Stretch));
        assert_eq!(row(bar, &[0.2, 0.3]).standing(), Some(Standing::Must));
        assert_eq!(row(bar, &[0.1, 0.3, 0.3]).standing(), Some(Standing::Missed));
        assert_eq!(row(Bar::AtLeast(1.85, 1.95), &[1.9]).standing(), Some(Standing::Must));
        assert_eq!(row(Bar::AtLeast(1.85, 1.95), &[1.8]).standing(), Some(Standing::Missed));
        assert_eq!(row(Bar::None, &[1.8]).standing(), Some(Standing::NotJudged));
    }

    #[test]
    fn what_was_not_measured_meets_no_bar() {
        let mut missing = row(Bar::AtMost(1.0, 1.0), &[]);
        assert_eq!(missing.standing(), None);
        missing.readings = Err("needs root".into());
        assert_eq!(missing.standing(), None);
        assert!(render(&[missing]).contains("not measured: needs root"));
        assert_eq!(row(Bar::AtMost(1.0, 1.0), &[f64::NAN]).standing(), None);
    }

    #[test]
    fn a_row_shows_both_figures_the_range_and_the_number_of_pairs() {
        let expected = "\
| goal | measure    | trueio  | other   | judged               | pairs | must    | stretch | result | 3.42, elsewhere |
|------|------------|---------|---------|----------------------|-------|---------|---------|--------|-----------------|
| P1   | CPU an I/O | 8.00 ns | 40.0 ns | 0.200 [0.100..0.300] | 3     | ≤ 0.280 | ≤ 0.170 | must   | 164 ns (0.049)  |
";
        assert_eq!(render(&[row(Bar::AtMost(0.28, 0.17), &[0.1, 0.3, 0.2])]), expected);
    }

    #[test]
    fn large_figures_take_the_next_unit() {
        assert_eq!(with_unit(9_999.0, "ns"), "9999 ns");
        assert_eq!(with_unit(41_200.0, "ns"), "41.2 µs");
        assert_eq!(with_unit(30_720.0, "KiB"), "30.0 MiB");
        assert_eq!(with_unit(743_000.0, ""), "743 k");
    }

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let page = "before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n";
        let expected = "before\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nafter\n";
        assert_eq!(between_markers(page, "bench", "new\n").as_deref(), Some(expected));
        assert_eq!(between_markers("<!-- bench:end --><!-- bench:begin -->", "bench", "x"), None);
    }
}
