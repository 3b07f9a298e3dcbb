//! The plots of a study: rows as dots on a logarithmic axis, published figures next to ours; a heat map of
//! two axes; contrasts with their intervals.
//!
//! Names stand above their dots, so that a long one is not cut and the plot fits a phone.

use super::words::{Line, metric_title, printed, shown, titled};
use crate::plot::axis::Axis;
use crate::plot::heat::{Cell, Heat};
use crate::svg::{Anchor, Svg, fitted, text_width};
use trueio_model::{Contrast, StudyMetric, StudyMode, StudyRecord, value_label};

/// With more rows than this, a heat map or nothing is drawn.
const ROWS_MAX: usize = 60;
const WIDTH: f64 = 460.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 26.0;
const ROW: f64 = 30.0;
const TEXT: f64 = 11.0;
/// Colours of `page.css`: ours and the published ones.
const OURS: usize = 0;
const THEIRS: usize = 1;

/// A plot of rows under construction.
struct Rows {
    svg: Svg,
    axis: Axis,
}

impl Rows {
    fn new(title: &str, count: usize, axis: Axis) -> Self {
        let bottom = TOP + ROW * count as f64 + 4.0;
        let mut svg = Svg::new("plot", WIDTH, bottom + 22.0, title);
        svg.circle(&format!("ring c{THEIRS}"), (LEFT + 4.0, 9.0), 4.0, "");
        svg.text("lb", (LEFT + 13.0, 13.0), Anchor::Start, "published");
        let at = LEFT + 13.0 + text_width("published", TEXT) + 24.0;
        svg.circle(&format!("f{OURS}"), (at, 9.0), 4.0, "");
        svg.text("lb", (at + 9.0, 13.0), Anchor::Start, "here, with its interval");
        let mut rows = Self { svg, axis };
        let marks = rows.axis.marks.clone();
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &marks {
            let x = rows.x(*value);
            rows.svg.line(if label == "×1" { "mid" } else { "g" }, (x, TOP - 4.0), (x, bottom));
            let half = text_width(label, TEXT) / 2.0;
            let center = x.clamp(half, WIDTH - half - 1.0);
            if center - half >= free_from {
                rows.svg.text("t", (center, bottom + 15.0), Anchor::Middle, label);
                free_from = center + half + 6.0;
            }
        }
        rows
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.axis.position(value) * (WIDTH - LEFT - RIGHT)
    }

    /// Adds the name of a row; returns the vertical position of its dots.
    fn name(&mut self, index: usize, name: &str) -> f64 {
        let y = TOP + ROW * index as f64 + 8.0;
        self.svg.text("lb halo", (0.0, y), Anchor::Start, &fitted(name, TEXT, WIDTH));
        y + 11.0
    }

    fn ours(&mut self, y: f64, value: f64, interval: Option<(f64, f64)>, title: &str) {
        if let Some((low, high)) = interval {
            let (low, high) = (self.x(low), self.x(high));
            self.svg.line(&format!("iv c{OURS}"), (low, y), (high, y));
        }
        let x = self.x(value);
        self.svg.circle(&format!("f{OURS}"), (x, y), 4.0, title);
    }

    fn theirs(&mut self, y: f64, value: f64, is_impossible: bool, title: &str) {
        let dash = if is_impossible { " d2" } else { "" };
        let x = self.x(value);
        self.svg.circle(&format!("open c{THEIRS}{dash}"), (x, y), 4.0, title);
    }

    fn finish(self) -> String {
        self.svg.finish()
    }
}

/// Returns the axis of a metric over these values; `None` without a positive one.
fn axis(metric: StudyMetric, values: impl Iterator<Item = f64>) -> Option<Axis> {
    let (low, high) = crate::plot::bounds(values.filter(|v| v.is_finite() && *v > 0.0))?;
    Some(match metric {
        StudyMetric::Bandwidth => Axis::of_bytes(low, high),
        StudyMetric::Iops
        | StudyMetric::Flushes
        | StudyMetric::Errors
        | StudyMetric::DiskBusy
        | StudyMetric::DiskRequests
        | StudyMetric::DiskMerges => Axis::of_rate(low, high),
        _ => Axis::of_seconds(low, high),
    })
}

/// Plots each line of one metric as a pair of dots: published and ours, ours with its interval. `None` if
/// there is nothing to draw, or too much.
pub(super) fn dots(title: &str, metric: StudyMetric, lines: &[&Line<'_>]) -> Option<String> {
    if lines.is_empty() || lines.len() > ROWS_MAX {
        return None;
    }
    let ours = lines.iter().filter_map(|line| line.here);
    let theirs = lines.iter().flat_map(|line| line.published.iter().map(|f| f.value));
    let all = ours.flat_map(|f| [f.value, f.interval.map_or(f.value, |i| i.0), f.interval.map_or(f.value, |i| i.1)]);
    let mut rows = Rows::new(title, lines.len(), axis(metric, all.chain(theirs))?);
    for (index, line) in lines.iter().enumerate() {
        let op = line.op.map_or_else(String::new, |op| format!(" {op}"));
        let missing = if line.here.is_none() { format!(" (no figure: {})", line.here_text()) } else { String::new() };
        let y = rows.name(index, &format!("{}{op}{missing}", line.row.name));
        for figure in &line.published {
            rows.theirs(y, figure.value, figure.impossible.is_some(), &format!("published: {}", printed(figure)));
        }
        if let Some(here) = line.here {
            rows.ours(
                y,
                here.value,
                here.interval,
                &format!("here: {}, {}", shown(metric, here.value), line.interval_text()),
            );
        }
    }
    Some(rows.finish())
}

/// Plots heat maps of a mode with two axes, published and measured: rows by columns, coloured by the logarithm of `metric`.
/// Each has the colours of its own range, because the pattern is compared. `None` if the mode has other axes.
pub(super) fn heat(
    study: &StudyRecord,
    mode: &StudyMode,
    metric: StudyMetric,
    lines: &[Line<'_>],
) -> Option<Vec<String>> {
    let axes: Vec<&str> = mode.rows.first()?.key.iter().map(|(axis, _)| axis.as_str()).collect();
    let [down, across] = axes[..] else { return None };
    let values = |axis: usize| {
        let mut found: Vec<&str> = Vec::new();
        for row in &mode.rows {
            let value = row.key.get(axis).map_or("", |(_, value)| value.as_str());
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    // The longer axis is vertical.
    let (rows, columns) = (values(1), values(0));
    if rows.len() * columns.len() < 12 {
        return None;
    }
    let at = |row: &str, column: &str| {
        lines.iter().find(|l| l.metric == metric && l.row.key[0].1 == column && l.row.key[1].1 == row)
    };
    type Of = for<'a> fn(&Line<'a>) -> Option<f64>;
    let sides: [(&str, Of); 2] =
        [("published", |line| line.published.first().map(|f| f.value)), ("here", |line| line.here.map(|f| f.value))];
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (named_columns, named_rows) = (owned(&columns), owned(&rows));
    let mut maps = Vec::new();
    for (side, of) in sides {
        let cells: Vec<Vec<Option<Cell>>> = rows
            .iter()
            .map(|row| {
                let cell = |column: &&str| {
                    let line = at(row, column)?;
                    let value = of(line).filter(|value| *value > 0.0)?;
                    let is_durable =
                        line.row.durability.as_ref().is_some_and(|d| d.is == trueio_model::DurabilityKind::Shown);
                    let (mark, word) = if side == "here" && is_durable { (" ●", ", durable") } else { ("", "") };
                    let theirs = line.published.first().filter(|_| side == "published");
                    let text = theirs.map_or_else(|| shown(metric, value), |figure| printed(figure));
                    Some(Cell { value, title: format!("{row}, {column}: {text}{word}"), text: format!("{text}{mark}") })
                };
                columns.iter().map(cell).collect()
            })
            .collect();
        if cells.iter().flatten().any(Option::is_some) {
            let title = titled(study, &format!("{} {side}", metric_title(metric)));
            maps.push(
                Heat { title: &title, axes: (across, down), columns: &named_columns, rows: &named_rows, cells: &cells }
                    .draw(),
            );
        }
    }
    (!maps.is_empty()).then_some(maps)
}

/// Formats `64k write: FDATASYNC / FSYNC`.
fn name_of(contrast: &Contrast) -> String {
    let mut place: Vec<String> = contrast.place.iter().map(|(axis, value)| value_label(axis, value)).collect();
    place.extend(contrast.op.map(|op| op.to_string()));
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
    format!("{place}{} / {}", contrast.of, contrast.against)
}

/// Plots contrasts: ours as an interval, published ones as rings, on one axis of ratios.
pub(super) fn contrasts(all: &[Contrast]) -> Option<String> {
    let drawn: Vec<&Contrast> = all.iter().filter(|c| c.ratio.is_some() || !c.published.is_empty()).collect();
    if drawn.is_empty() || drawn.len() > ROWS_MAX * 2 {
        return None;
    }
    let values = drawn.iter().flat_map(|c| {
        let ours = c.ratio.map_or([None; 3], |r| [Some(r.value), r.interval.map(|i| i.0), r.interval.map(|i| i.1)]);
        ours.into_iter().flatten().chain(c.published.iter().map(|p| p.value))
    });
    let (low, high) = crate::plot::bounds(values.filter(|v| v.is_finite() && *v > 0.0))?;
    let mut rows = Rows::new("Ratios, published and here", drawn.len(), Axis::of_ratio(low, high));
    for (index, contrast) in drawn.iter().enumerate() {
        let y = rows.name(index, &name_of(contrast));
        for published in &contrast.published {
            let title = format!("published: ×{}", trueio_model::units::format_ratio(published.value));
            rows.theirs(y, published.value, published.is_impossible, &title);
        }
        if let Some(ratio) = contrast.ratio {
            rows.ours(
                y,
                ratio.value,
                ratio.interval,
                &format!("here: ×{}", trueio_model::units::format_ratio(ratio.value)),
            );
        }
    }
    Some(rows.finish())
}
