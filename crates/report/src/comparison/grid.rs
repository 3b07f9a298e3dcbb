//! A grid of sides (`--vary` with several values): heat maps of IOPS and p99, and both over the queue depth.

use super::words;
use crate::plot::axis::Axis;
use crate::plot::heat::{Cell, Heat};
use crate::plot::{Curve, Drawing, Hover, Look, bounds};
use trueio_model::{Metric, Part, Side, Verdict};

/// The sides of a part as a grid: a column for each value of one option, a row for each combination of the others.
pub(super) struct Grid<'a> {
    across: String,
    down: String,
    columns: Vec<String>,
    rows: Vec<String>,
    /// One row of sides per row; `None`: no side has this combination.
    sides: Vec<Vec<Option<&'a Side>>>,
}

/// Parses `iodepth=16 bs=4k`; `None` for another name.
fn options(name: &str) -> Option<Vec<(&str, &str)>> {
    let pairs: Option<Vec<_>> = name.split(' ').map(|word| word.split_once('=')).collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

fn push_new(all: &mut Vec<String>, one: String) {
    if !all.contains(&one) {
        all.push(one);
    }
}

impl<'a> Grid<'a> {
    /// Returns the grid of a part; `None` if its sides are not of one job with varied options, or fewer than three.
    pub(super) fn of(part: &'a Part) -> Option<Self> {
        let sides: Vec<(Vec<(&str, &str)>, &Side)> =
            part.sides.iter().map(|side| Some((options(&side.name)?, side))).collect::<Option<_>>()?;
        let keys: Vec<&str> = sides.first()?.0.iter().map(|pair| pair.0).collect();
        let has_keys = |one: &(Vec<(&str, &str)>, &Side)| one.0.iter().map(|pair| pair.0).eq(keys.iter().copied());
        if sides.len() < 3 || !sides.iter().all(has_keys) {
            return None;
        }
        // The depth, or else the first option with numbers only, or else the first.
        let is_numeric = |key: &usize| sides.iter().all(|(pairs, _)| number(pairs[*key].1).is_some());
        let across =
            keys.iter().position(|key| *key == "iodepth").or_else(|| (0..keys.len()).find(is_numeric)).unwrap_or(0);
        let row_of = |pairs: &[(&str, &str)]| {
            let others = pairs.iter().enumerate().filter(|(index, _)| *index != across);
            others.map(|(_, pair)| pair.1).collect::<Vec<_>>().join(" ")
        };
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for (pairs, _) in &sides {
            push_new(&mut columns, pairs[across].1.to_owned());
            push_new(&mut rows, row_of(pairs));
        }
        let found = |row: &str, column: &str| {
            let is_it = |one: &&(Vec<(&str, &str)>, &'a Side)| one.0[across].1 == column && row_of(&one.0) == row;
            sides.iter().find(is_it).map(|one| one.1)
        };
        let cells = rows.iter().map(|row| columns.iter().map(|column| found(row, column)).collect()).collect();
        let others: Vec<&str> =
            keys.iter().enumerate().filter(|(index, _)| *index != across).map(|(_, key)| *key).collect();
        Some(Self { across: keys[across].to_owned(), down: others.join(", "), columns, rows, sides: cells })
    }

    /// Draws a heat map of a metric; `None` for a grid of one row, or if no side has the metric.
    pub(super) fn heat(&self, metric: Metric) -> Option<String> {
        let cells: Vec<Vec<Option<Cell>>> =
            self.sides.iter().map(|row| row.iter().map(|side| cell((*side)?, metric)).collect()).collect();
        if self.rows.len() < 2 || !cells.iter().flatten().any(Option::is_some) {
            return None;
        }
        let axes = (self.across.as_str(), self.down.as_str());
        Some(
            Heat { title: words::metric_title(metric), axes, columns: &self.columns, rows: &self.rows, cells: &cells }
                .draw(),
        )
    }

    /// Draws a metric over the option of the columns, one line per row; `None` if that option has no numbers, or no side
    /// has the metric.
    pub(super) fn lines(&self, metric: Metric) -> Option<String> {
        let values: Vec<f64> = self.columns.iter().map(|column| number(column)).collect::<Option<_>>()?;
        let of = |side: &Side| side.figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value);
        let curves: Vec<Curve> = self
            .sides
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let points = values.iter().zip(row).map(|(value, side)| (*value, side.and_then(of)));
                let name = if self.rows.len() > 1 { self.rows[index].as_str() } else { "" };
                Curve::new(name, Look::nth(index), points)
            })
            .filter(|curve| !curve.is_empty())
            .collect();
        let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
        let hover: Vec<Hover> = values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let of_rows = self.sides.iter().zip(&self.rows).filter_map(|(row, name)| {
                    let shown = words::value(metric, of(row[index]?)?);
                    Some(if name.is_empty() { shown } else { format!("{name}: {shown}") })
                });
                let head = format!("{} {}", self.across, self.columns[index]);
                Hover { x: *value, text: std::iter::once(head).chain(of_rows).collect::<Vec<_>>().join(" · ") }
            })
            .collect();
        let title = format!("{} over {}", words::metric_title(metric), self.across);
        let marks = values.iter().copied().zip(self.columns.iter().cloned()).collect();
        let x = Axis::of_values(marks);
        let y = match metric {
            Metric::Iops => Axis::of_rate(low, high),
            Metric::Bandwidth => Axis::of_bytes(low, high),
            _ => Axis::of_latency(low, high),
        };
        Some(Drawing { title: &title, curves: &curves, markers: &[], shades: &[], hover: &hover, x: &x, y: &y }.draw())
    }
}

fn cell(side: &Side, metric: Metric) -> Option<Cell> {
    let value = side.figures.iter().find(|figure| figure.metric == metric)?.value;
    let shown = words::value(metric, value);
    let doubt = if side.verdict == Verdict::Supported { "" } else { " ◐" };
    Some(Cell {
        value,
        text: format!("{}{doubt}", shown.trim_end_matches(" 1/s")),
        title: format!("{}: {shown}, {}", side.name, side.verdict),
    })
}

/// Parses a number with a unit of fio: `16`, `4k`, `1m`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, factor) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if text.ends_with('k') => (digits, 1024.0),
        Some(digits) if text.ends_with('m') => (digits, 1_048_576.0),
        Some(digits) => (digits, 1_073_741_824.0),
        None => (text.as_str(), 1.0),
    };
    digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(|n| n * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EvidenceLevel, Figure, Histogram};

    fn side(name: &str, iops: f64) -> Side {
        Side {
            name: name.to_owned(),
            detail: String::new(),
            verdict: Verdict::Supported,
            word: None,
            level: EvidenceLevel::E2,
            reasons: Vec::new(),
            objections: Vec::new(),
            figures: vec![Figure { metric: Metric::Iops, value: iops }],
            latency: Histogram::new(),
            percentiles: Vec::new(),
            syscalls: None,
            slices: Vec::new(),
        }
    }

    fn part(names: &[&str]) -> Part {
        let sides = names.iter().zip(1u32..).map(|(name, n)| side(name, f64::from(n) * 1_000.0)).collect();
        Part { name: String::new(), sides, answers: Vec::new() }
    }

    #[test]
    fn varied_options_are_a_grid_over_the_depth() {
        let part = part(&["bs=4k iodepth=1", "bs=4k iodepth=16", "bs=64k iodepth=1", "bs=64k iodepth=16"]);
        let grid = Grid::of(&part).unwrap();
        assert_eq!((grid.across.as_str(), grid.down.as_str()), ("iodepth", "bs"));
        assert_eq!(
            (grid.columns.as_slice(), grid.rows.as_slice()),
            (&["1".to_owned(), "16".to_owned()][..], &["4k".to_owned(), "64k".to_owned()][..])
        );
        let heat = grid.heat(Metric::Iops).unwrap();
        assert!(heat.contains(">1,000<") && heat.contains(">4,000<"), "{heat}");
        assert!(grid.heat(Metric::P99).is_none());
        assert_eq!(grid.lines(Metric::Iops).unwrap().matches("<polyline").count(), 2);
    }

    #[test]
    fn one_option_is_lines_without_a_heat_map_and_named_sides_are_no_grid() {
        let part_of_one = part(&["iodepth=1", "iodepth=4", "iodepth=16"]);
        let grid = Grid::of(&part_of_one).unwrap();
        assert!(grid.heat(Metric::Iops).is_none() && grid.lines(Metric::Iops).is_some());
        assert!(Grid::of(&part(&["before", "after", "other"])).is_none());
        assert!(Grid::of(&part(&["iodepth=1", "iodepth=4"])).is_none());
        assert!(
            Grid::of(&part(&["ioengine=psync", "ioengine=libaio", "ioengine=io_uring"]))
                .unwrap()
                .lines(Metric::Iops)
                .is_none()
        );
    }
}
