//! Plots as SVG, small enough for three in a row and readable without other elements.
//!
//! Text remains text, so that it can be searched, selected and scaled. Colours are plain attributes; in a
//! dark scheme the page's style sheet replaces them by attribute. Coordinates are four times as large as
//! shown, because the SVG backend rounds them to whole numbers.
//!
//! A curve is never drawn without data: an interval without an I/O breaks the line, and the percentile curve
//! ends at the last percentile that the sample supports.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;
use trueio_model::{Histogram, JobRecord, OpKind, SeriesRow, SteadyState, units};
use trueio_stats::{WindowFit, least_share_above, quantile};

/// Shown size of a plot, in pixels.
const SIZE: (f64, f64) = (400.0, 240.0);
/// Factor by which it is drawn larger.
const FINE: f64 = 4.0;
/// Margins for labels: left, right, top, bottom.
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 26.0;
/// Height of text.
const TEXT: f64 = 11.0;
/// Maximum number of points of a curve; more intervals are merged.
const POINT_MAX: usize = 360;

// The style sheet of `page.html` names these colours for its dark scheme.
pub(crate) const INK: RGBColor = RGBColor(0x2A, 0x2F, 0x36);
pub(crate) const FAINT: RGBColor = RGBColor(0x6B, 0x72, 0x7B);
pub(crate) const GRID: RGBColor = RGBColor(0xD9, 0xDD, 0xE2);
const GRID_FINE: RGBColor = RGBColor(0xEC, 0xEE, 0xF1);
pub(crate) const BLUE: RGBColor = RGBColor(0x1F, 0x6F, 0xB2);
pub(crate) const ORANGE: RGBColor = RGBColor(0xC8, 0x56, 0x0A);
pub(crate) const PURPLE: RGBColor = RGBColor(0x7B, 0x4F, 0xA3);
pub(crate) const GREEN: RGBColor = RGBColor(0x2E, 0x7D, 0x4F);
pub(crate) const RED: RGBColor = RGBColor(0xB2, 0x2D, 0x3F);

/// Returns the colour of an operation, the same in every plot.
fn color_of(op: OpKind) -> RGBColor {
    match op {
        OpKind::Read => BLUE,
        OpKind::Write => ORANGE,
        OpKind::Trim => GREEN,
        OpKind::Sync => PURPLE,
    }
}

/// A curve: groups of connected points.
pub(crate) struct Curve {
    name: String,
    color: RGBColor,
    width: f64,
    runs: Vec<Vec<(f64, f64)>>,
}

impl Curve {
    /// Creates a curve through `points`, interrupted where a value is missing.
    pub(crate) fn new(name: &str, color: RGBColor, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
        for (x, y) in points {
            match (y, runs.last_mut()) {
                (Some(y), Some(run)) => run.push((x, y)),
                (None, Some(run)) if !run.is_empty() => runs.push(Vec::new()),
                _ => {}
            }
        }
        Self { name: name.to_owned(), color, width: 1.6, runs }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.iter().all(Vec::is_empty)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.runs.iter().flatten().map(|p| p.1)
    }
}

/// The mapping of values to an axis, and its marks.
pub(crate) struct Axis {
    range: Range<f64>,
    is_logarithmic: bool,
    /// Labelled marks: value and label.
    marks: Vec<(f64, String)>,
    /// Unlabelled marks.
    fine_marks: Vec<f64>,
}

impl Axis {
    /// Returns the position of `value`, from 0 to 1.
    fn position(&self, value: f64) -> f64 {
        let on = |v: f64| if self.is_logarithmic { v.max(f64::MIN_POSITIVE).log10() } else { v };
        let (low, high) = (on(self.range.start), on(self.range.end));
        ((on(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Creates an axis from zero to a round number above `max`.
    pub(crate) fn from_zero(max: f64) -> Self {
        let step = round_step(max.max(f64::MIN_POSITIVE) / 4.0);
        let count = (max / step).ceil().clamp(1.0, 10.0) as u32;
        // A twentieth of the axis stays free above the highest value.
        let count = if max > step * f64::from(count) * 0.95 { count + 1 } else { count };
        let marks = (0..=count).map(|i| (step * f64::from(i), plain_number(step * f64::from(i)))).collect();
        Self { range: 0.0..step * f64::from(count), is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis from 1 to `count`.
    fn of_rounds(count: usize) -> Self {
        let step = (count / 8).max(1);
        let marks = (1..=count).step_by(step).map(|i| (i as f64, i.to_string())).collect();
        Self { range: 1.0..(count.max(2)) as f64, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis in percent around zero that contains `low..=high`, with equally spaced marks.
    pub(crate) fn of_change(low: f64, high: f64) -> Self {
        let (low, high) = (low.min(-1.0), high.max(1.0));
        let step = round_step((high - low) / 5.0);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let label = |v: f64| match v {
            v if v > 0.0 => format!("+{} %", plain_number(v)),
            v if v < 0.0 => format!("−{} %", plain_number(-v)),
            _ => "0".to_owned(),
        };
        let marks = (first..=last).map(|i| (step * i as f64, label(step * i as f64))).collect();
        Self { range: step * first as f64..step * last as f64, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis from 0 to exactly `seconds`.
    pub(crate) fn of_time(seconds: f64) -> Self {
        let seconds = if seconds.is_finite() { seconds.max(1e-6) } else { 1.0 };
        let (unit, name) = match seconds {
            s if s >= 7_200.0 => (3_600.0, "h"),
            s if s >= 300.0 => (60.0, "min"),
            s if s >= 0.5 => (1.0, "s"),
            _ => (1e-3, "ms"),
        };
        let end = seconds / unit;
        let step = round_step(end / 5.0);
        let count = (end / step + 1e-9).floor() as u32;
        let marks = (0..=count)
            .map(|i| {
                let value = step * f64::from(i);
                let label = plain_number(value);
                (value * unit, if i == count { format!("{label} {name}") } else { label })
            })
            .collect();
        Self { range: 0.0..seconds, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates a logarithmic axis of durations in nanoseconds that contains `low..=high` and ends at 1, 2 or
    /// 5.
    pub(crate) fn of_latency(low: f64, high: f64) -> Self {
        let (low, high) = (low.max(1.0), high.max(2.0));
        let mut start = 1.0;
        let mut end = f64::INFINITY;
        let mut steps = Vec::new();
        for decade in 0..20 {
            for factor in [1.0, 2.0, 5.0] {
                let value = factor * 10f64.powi(decade);
                steps.push(value);
                if value <= low {
                    start = value;
                }
                if value >= high && end.is_infinite() {
                    end = value;
                }
            }
        }
        if !end.is_finite() {
            end = high;
        }
        if end <= start {
            end = start * 10.0;
        }
        let decades = (end / start).log10();
        // If there are few decades, 2 and 5 are labelled, too.
        let labelled = |v: f64| decades <= 2.4 || (v.log10() - v.log10().round()).abs() < 1e-6;
        let inside = |v: &f64| *v >= start * 0.999_999 && *v <= end * 1.000_001;
        let marks: Vec<(f64, String)> =
            steps.iter().copied().filter(inside).filter(|&v| labelled(v)).map(|v| (v, plain_duration(v))).collect();
        let fine_marks = (0..20)
            .flat_map(|decade| (2..10).map(move |digit| f64::from(digit) * 10f64.powi(decade)))
            .filter(inside)
            .filter(|v| !marks.iter().any(|m| (m.0 - v).abs() < v * 1e-6))
            .collect();
        Self { range: start..end, is_logarithmic: true, marks, fine_marks }
    }

    /// Creates an axis of percentiles, spaced by the logarithm of the share above them: 90, 99, 99.9 at equal
    /// distances. Values are log10(1 / (1 − q)), and `end` is one of them.
    pub(crate) fn of_percentiles(end: f64) -> Self {
        let mut marks = vec![(0.5f64, "50".to_owned()), (0.9, "90".to_owned()), (0.99, "99".to_owned())];
        let mut nines = String::from("99.");
        for decade in 3..19 {
            nines.push('9');
            marks.push((1.0 - 10f64.powi(-decade), nines.clone()));
        }
        // 1 − q of long percentiles is not exact in binary; the position is.
        let marks: Vec<(f64, String)> = marks
            .into_iter()
            .enumerate()
            .map(|(i, (_, label))| (if i == 0 { 2f64.log10() } else { i as f64 }, label))
            .filter(|m| m.0 <= end)
            .collect();
        let fine_marks = (0..19)
            .flat_map(|decade| (2..10).rev().map(move |tenths| f64::from(decade) + 1.0 - f64::from(tenths).log10()))
            .filter(|place| *place < end)
            .collect();
        Self { range: 0.0..end.max(0.4), is_logarithmic: false, marks, fine_marks }
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|s| *s >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// Formats a round number without unnecessary digits: `0`, `0.5`, `1,200`.
fn plain_number(value: f64) -> String {
    if value >= 1.0 && value.fract().abs() < 1e-6 {
        return units::format_count(value as u64);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a round duration: `20 µs`, `1 ms`.
fn plain_duration(ns: f64) -> String {
    let (unit, name) = match ns {
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {name}", plain_number(ns / unit))
}

/// Plots the bandwidth of a job over time; rates of operations if it moves no bytes. `None` without an
/// interval.
pub(crate) fn bandwidth(job: &JobRecord) -> Option<String> {
    let rows = put_together(&job.series);
    let middle = |r: &SeriesRow| (r.end_ns as f64 - r.span_ns as f64 / 2.0) / 1e9;
    let seconds = |r: &SeriesRow| r.span_ns as f64 / 1e9;
    type Field = fn(&SeriesRow) -> u64;
    let total = |field: Field| rows.iter().map(|r| field(r) as f64).sum::<f64>();
    let curves_of = |fields: &[(OpKind, Field)]| -> Vec<Curve> {
        fields
            .iter()
            .filter(|(_, field)| total(*field) > 0.0)
            .map(|(op, field)| {
                let points = rows.iter().map(|r| (middle(r), (r.span_ns > 0).then(|| field(r) as f64 / seconds(r))));
                Curve::new(&op.to_string(), color_of(*op), points)
            })
            .collect()
    };
    let mut curves = curves_of(&[(OpKind::Read, |r| r.read_bytes), (OpKind::Write, |r| r.write_bytes)]);
    let has_bytes = !curves.is_empty();
    if !has_bytes {
        curves = curves_of(&[
            (OpKind::Read, |r| r.read_count),
            (OpKind::Write, |r| r.write_count),
            (OpKind::Sync, |r| r.other_count),
        ]);
    }
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    if curves.is_empty() || max <= 0.0 {
        return None;
    }
    let (unit, name) = match (has_bytes, max) {
        (false, _) => (1.0, "operations/s"),
        (true, m) if m >= 2.0 * (1u64 << 30) as f64 => ((1u64 << 30) as f64, "GiB/s"),
        (true, m) if m >= (1u64 << 20) as f64 => ((1u64 << 20) as f64, "MiB/s"),
        (true, m) if m >= 1024.0 => (1024.0, "KiB/s"),
        _ => (1.0, "B/s"),
    };
    for point in curves.iter_mut().flat_map(|c| &mut c.runs).flatten() {
        point.1 /= unit;
    }
    let title = if has_bytes { format!("Bandwidth, {name}") } else { format!("Rate, {name}") };
    let x = Axis::of_time(rows.last()?.end_ns as f64 / 1e9);
    Some(draw(&title, &curves, &[], &x, &Axis::from_zero(max / unit)))
}

/// Plots p50, p99 and maximum latency of a job over time, on a logarithmic axis. `None` without an I/O.
pub(crate) fn latency(job: &JobRecord) -> Option<String> {
    let rows = put_together(&job.series);
    let curve = |name: &str, color, field: fn(&SeriesRow) -> u64| {
        let points = rows.iter().map(|r| {
            let middle = (r.end_ns as f64 - r.span_ns as f64 / 2.0) / 1e9;
            (middle, (field(r) > 0).then(|| field(r) as f64))
        });
        Curve::new(name, color, points)
    };
    let mut curves = vec![
        curve("p50", GREEN, |r| r.latency_ns_p50),
        curve("p99", PURPLE, |r| r.latency_ns_p99),
        curve("max", RED, |r| r.latency_ns_max),
    ];
    curves[2].width = 1.1;
    curves.retain(|c| !c.is_empty());
    let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
    let x = Axis::of_time(rows.last()?.end_ns as f64 / 1e9);
    Some(draw("Latency over time", &curves, &[], &x, &Axis::of_latency(low, high)))
}

/// A vertical line from the lower to the upper end of an interval, or a ring at a single value.
pub(crate) enum Marker {
    Interval { x: f64, low: f64, high: f64, color: RGBColor },
    Ring { x: f64, y: f64, color: RGBColor },
}

/// Plots the latency of a job's operations by percentile: percentiles on a logarithmic axis of the share
/// above them, 95 % intervals as vertical lines, the maximum as a ring. `None` without an I/O.
pub(crate) fn percentiles(job: &JobRecord) -> Option<String> {
    let mut curves = Vec::new();
    let mut markers = Vec::new();
    let mut end = 0.0f64;
    for op in &job.ops {
        let is_paced = !op.latency.from_intended.is_empty();
        let histogram = if is_paced { &op.latency.from_intended } else { &op.latency.total };
        let color = color_of(op.op);
        let curve = Curve::new(&op.op.to_string(), color, curve_of(histogram).into_iter().map(|(x, y)| (x, Some(y))));
        if curve.is_empty() {
            continue;
        }
        curves.push(curve);
        for (place, q) in [(2f64.log10(), 0.5)].into_iter().chain((1..12).map(|d| (f64::from(d), 1.0 - 10f64.powi(-d))))
        {
            if let Some(found) = quantile(histogram, q) {
                let (low, high) = (found.low_ns as f64, found.high_ns as f64);
                markers.push(Marker::Interval { x: place, low, high, color });
            }
        }
        // The maximum of n values has a share of 1/n at or above it: log10(n).
        let place = (histogram.count() as f64).log10();
        markers.push(Marker::Ring { x: place, y: histogram.max_ns()? as f64, color });
        end = end.max(place);
    }
    let markers_y = markers.iter().flat_map(|m| match m {
        Marker::Interval { low, high, .. } => [*low, *high],
        Marker::Ring { y, .. } => [*y, *y],
    });
    let (low, high) = bounds(curves.iter().flat_map(Curve::values).chain(markers_y))?;
    // A margin to the right, so that the ring is not cut.
    let x = Axis::of_percentiles(end * 1.03);
    Some(draw("Latency by percentile (%)", &curves, &markers, &x, &Axis::of_latency(low, high)))
}

/// Returns the points of a percentile curve, up to the last percentile that the sample supports: position on
/// the axis and latency. Each bucket is drawn at its upper edge, as in the table.
pub(crate) fn curve_of(histogram: &Histogram) -> Vec<(f64, f64)> {
    let Some(least_above) = least_share_above(histogram.count()) else { return Vec::new() };
    let count = histogram.count() as f64;
    let max_ns = histogram.max_ns().unwrap_or(0);
    let mut points = Vec::new();
    let mut below = 0u64;
    for (_, high, n) in histogram.buckets() {
        // A bucket's durations have the ranks below + 1 to below + n: a step.
        let latency = (high.min(max_ns) as f64).max(1.0);
        let above_first = 1.0 - below as f64 / count;
        below = below.saturating_add(n);
        let above_last = 1.0 - below as f64 / count;
        if above_first < least_above {
            break;
        }
        for above in [above_first, above_last.max(least_above)] {
            points.push((-above.log10(), latency));
        }
    }
    // Neighbours less than a third of a pixel apart are omitted.
    let mut thinned: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let is_new =
            thinned.last().is_none_or(|last| (point.0 - last.0).abs() > 0.004 || (point.1 / last.1 - 1.0).abs() > 0.02);
        if is_new {
            thinned.push(point);
        }
    }
    thinned
}

/// Merges intervals until at most [`POINT_MAX`] are left: sums of counts and bytes, the largest of p99 and
/// maximum, the median of the medians. A last interval of less than half the length of the others is merged
/// into the previous one, because the rate of a few milliseconds is noise at the end of the curve.
fn put_together(series: &[SeriesRow]) -> Vec<SeriesRow> {
    let each = series.len().div_ceil(POINT_MAX).max(1);
    let mut parts: Vec<&[SeriesRow]> = series.chunks(each).collect();
    let span_of = |rows: &[SeriesRow]| rows.iter().map(|r| r.span_ns).fold(0, u64::saturating_add);
    if let [.., before, last] = parts.as_slice()
        && span_of(last) < span_of(before) / 2
    {
        let begin = series.len() - last.len() - before.len();
        parts.truncate(parts.len() - 2);
        parts.push(&series[begin..]);
    }
    parts
        .into_iter()
        .map(|rows| {
            let sum = |field: fn(&SeriesRow) -> u64| rows.iter().map(field).fold(0, u64::saturating_add);
            let max = |field: fn(&SeriesRow) -> u64| rows.iter().map(field).max().unwrap_or(0);
            let mut medians: Vec<u64> = rows.iter().map(|r| r.latency_ns_p50).filter(|&ns| ns > 0).collect();
            medians.sort_unstable();
            SeriesRow {
                end_ns: max(|r| r.end_ns),
                span_ns: sum(|r| r.span_ns),
                read_count: sum(|r| r.read_count),
                read_bytes: sum(|r| r.read_bytes),
                write_count: sum(|r| r.write_count),
                write_bytes: sum(|r| r.write_bytes),
                other_count: sum(|r| r.other_count),
                trim_count: 0,
                trim_bytes: 0,
                latency_ns_p50: medians.get(medians.len() / 2).copied().unwrap_or(0),
                latency_ns_p99: max(|r| r.latency_ns_p99),
                latency_ns_max: max(|r| r.latency_ns_max),
            }
        })
        .collect()
}

/// Plots the rounds before a steady state as in the SNIA specification: each tracked variable by round; for
/// the last window its mean, the allowed range around it and the fitted line.
pub(crate) fn steady_state(state: &SteadyState) -> Vec<String> {
    let throughput: Vec<f64> = state.rounds.iter().map(|round| round.ios_per_s).collect();
    let latency: Vec<f64> =
        state.rounds.iter().map(|round| round.latency_ns_p99.map_or(f64::NAN, |ns| ns as f64 / 1e3)).collect();
    let plots = [("Rounds: IOPS", throughput), ("Rounds: lat p99, µs", latency)];
    plots.into_iter().filter_map(|(title, values)| rounds(title, &values, state)).collect()
}

fn rounds(title: &str, values: &[f64], state: &SteadyState) -> Option<String> {
    let at = |index: usize| index as f64 + 1.0;
    let points = values.iter().enumerate().map(|(i, value)| (at(i), value.is_finite().then_some(*value)));
    let mut curves = vec![Curve::new("round", BLUE, points)];
    let window = (state.window_rounds as usize).clamp(2, values.len().max(2));
    let start = values.len().saturating_sub(window);
    if let Some(fit) = WindowFit::of(&values[start..]) {
        let half = state.range_percent_max / 200.0;
        let (first, last) = (at(start), at(values.len() - 1));
        let line = |from: f64, to: f64| [(first, Some(from)), (last, Some(to))];
        let (low, high) = (fit.mean * (1.0 - half), fit.mean * (1.0 + half));
        let gain = fit.mean * fit.excursion / 2.0;
        let between = [(last, None)];
        curves.push(Curve::new("range", FAINT, line(low, low).into_iter().chain(between).chain(line(high, high))));
        curves.push(Curve::new("mean", GREEN, line(fit.mean, fit.mean)));
        curves.push(Curve::new("fit", RED, line(fit.mean - gain, fit.mean + gain)));
    }
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    (values.len() > 1 && max > 0.0)
        .then(|| draw(title, &curves, &[], &Axis::of_rounds(values.len()), &Axis::from_zero(max)))
}

/// Plots a metric over runs at equal distances. `changes` are the indexes at which a new level begins; each
/// level is drawn as the line of its median. `None` with fewer than two values.
pub(crate) fn trend(title: &str, values: &[f64], changes: &[usize]) -> Option<String> {
    let at = |index: usize| index as f64 + 1.0;
    let points = values.iter().enumerate().map(|(i, value)| (at(i), value.is_finite().then_some(*value)));
    let mut level = Vec::new();
    let edges: Vec<usize> = [0].into_iter().chain(changes.iter().copied()).chain([values.len()]).collect();
    for edge in edges.windows(2) {
        let mut part: Vec<f64> = values.get(edge[0]..edge[1])?.to_vec();
        part.sort_by(f64::total_cmp);
        let median = *part.get(part.len() / 2)?;
        level.extend([(at(edge[0]), Some(median)), (at(edge[1] - 1), Some(median)), (at(edge[1] - 1), None)]);
    }
    let curves = [Curve::new("runs", BLUE, points), Curve::new("level", RED, level)];
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    (values.len() > 1 && max > 0.0)
        .then(|| draw(title, &curves, &[], &Axis::of_rounds(values.len()), &Axis::from_zero(max)))
}

/// Returns the minimum and the maximum; `None` without values.
pub(crate) fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |found, v| match found {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

/// Draws a plot and returns it as an `<svg>` element that scales with its box.
pub(crate) fn draw(title: &str, curves: &[Curve], markers: &[Marker], x: &Axis, y: &Axis) -> String {
    let size = ((SIZE.0 * FINE) as u32, (SIZE.1 * FINE) as u32);
    let mut out = String::new();
    let drawn = Canvas { backend: SVGBackend::with_string(&mut out, size) }.plot(title, curves, markers, x, y);
    // Writing into a string does not fail.
    assert!(drawn.is_ok(), "a plot is drawn in memory");
    let head = format!(
        "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" xmlns=\"http://www.w3.org/2000/svg\">",
        size.0, size.1
    );
    // Inside HTML the namespace is known, and the style sheet sets the size.
    let body = out.strip_prefix(&head).unwrap_or_else(|| panic!("plotters begins an image with another element"));
    let names: Vec<&str> = curves.iter().map(|c| c.name.as_str()).collect();
    format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}: {}\">{body}",
        size.0,
        size.1,
        names.join(", ")
    )
}

struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Canvas<'_> {
    fn plot(&mut self, title: &str, curves: &[Curve], markers: &[Marker], x: &Axis, y: &Axis) -> Drawn {
        let (left, right, top, bottom) = (LEFT, SIZE.0 - RIGHT, TOP, SIZE.1 - BOTTOM);
        let to_x = |v: f64| left + x.position(v) * (right - left);
        let to_y = |v: f64| bottom - y.position(v) * (bottom - top);

        for mark in &x.fine_marks {
            self.line((to_x(*mark), top), (to_x(*mark), bottom), GRID_FINE, 0.7)?;
        }
        for mark in &y.fine_marks {
            self.line((left, to_y(*mark)), (right, to_y(*mark)), GRID_FINE, 0.7)?;
        }
        for (mark, _) in &x.marks {
            self.line((to_x(*mark), top), (to_x(*mark), bottom), GRID, 0.9)?;
        }
        for (mark, label) in &y.marks {
            self.line((left, to_y(*mark)), (right, to_y(*mark)), GRID, 0.9)?;
            self.text(label, (left - 6.0, to_y(*mark)), FAINT, HPos::Right, VPos::Center)?;
        }
        self.line((left, bottom), (right, bottom), FAINT, 1.0)?;

        // Labels of the x axis; those that would touch the previous one are omitted.
        let mut free_from = f64::NEG_INFINITY;
        for (mark, label) in &x.marks {
            let half = text_width(label) / 2.0;
            let center = to_x(*mark).clamp(half, SIZE.0 - half - 1.0);
            if center - half >= free_from {
                self.text(label, (center, bottom + 7.0), FAINT, HPos::Center, VPos::Top)?;
                free_from = center + half + 6.0;
            }
        }

        for curve in curves {
            for run in &curve.runs {
                let points: Vec<(i32, i32)> = run.iter().map(|p| fine((to_x(p.0), to_y(p.1)))).collect();
                match points.as_slice() {
                    [] => {}
                    [one] => self.backend.draw_circle(*one, (1.5 * FINE) as u32, &filled(curve.color), true)?,
                    _ => self.backend.draw_path(points, &stroke(curve.color, curve.width))?,
                }
            }
        }
        for marker in markers {
            match *marker {
                Marker::Interval { x, low, high, color } => {
                    let (x, low, high) = (to_x(x), to_y(low), to_y(high));
                    self.line((x, low), (x, high), color, 2.2)?;
                    for end in [low, high] {
                        self.line((x - 3.0, end), (x + 3.0, end), color, 1.2)?;
                    }
                }
                Marker::Ring { x, y, color } => {
                    self.backend.draw_circle(
                        fine((to_x(x), to_y(y))),
                        (3.0 * FINE) as u32,
                        &stroke(color, 1.4),
                        false,
                    )?;
                }
            }
        }

        self.text(title, (1.0, 3.0), INK, HPos::Left, VPos::Top)?;
        // The legend, from right to left: a line and its name.
        let mut at = right;
        for curve in curves.iter().rev() {
            let width = text_width(&curve.name);
            self.text(&curve.name, (at - width, 3.0), INK, HPos::Left, VPos::Top)?;
            self.line((at - width - 18.0, 8.5), (at - width - 4.0, 8.5), curve.color, 2.4)?;
            at -= width + 30.0;
        }
        Ok(self.backend.present()?)
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: RGBColor, width: f64) -> Drawn {
        Ok(self.backend.draw_line(fine(from), fine(to), &stroke(color, width))?)
    }

    fn text(&mut self, text: &str, at: (f64, f64), color: RGBColor, h: HPos, v: VPos) -> Drawn {
        // The SVG backend divides a font's size by 1.24 to get the height of an em.
        let style = TextStyle::from(("sans-serif", TEXT * FINE * 1.24).into_font()).color(&color).pos(Pos::new(h, v));
        Ok(self.backend.draw_text(text, &style, fine(at))?)
    }
}

fn fine((x, y): (f64, f64)) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn stroke(color: RGBColor, width: f64) -> ShapeStyle {
    color.stroke_width((width * FINE).round() as u32)
}

fn filled(color: RGBColor) -> ShapeStyle {
    color.filled()
}

/// Estimates the width of a text: a sans-serif letter is on average a little over half as wide as it is high.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * TEXT * 0.56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_spaced_by_the_share_above_them() {
        let axis = Axis::of_percentiles(4.2);
        let labels: Vec<&str> = axis.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["50", "90", "99", "99.9", "99.99"]);
        let at = |i: usize| axis.position(axis.marks[i].0);
        assert!((at(2) - at(1) - (at(3) - at(2))).abs() < 1e-9);
        assert!((at(4) - at(3) - (at(2) - at(1))).abs() < 1e-9);
        // Between 0 and 90 % the fine marks are 10, 20, … 80 %; 0.8 leaves a fifth above.
        assert!((axis.fine_marks[0] + 0.9f64.log10()).abs() < 1e-9);
        assert!((axis.fine_marks[7] - 5f64.log10()).abs() < 1e-9);
    }

    #[test]
    fn a_latency_axis_ends_at_round_values_around_the_data_and_labels_decades() {
        let axis = Axis::of_latency(71_234.0, 9_800_000.0);
        assert_eq!(axis.range, 50_000.0..10_000_000.0);
        let labels: Vec<&str> = axis.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels[..3], ["50 µs", "100 µs", "200 µs"]);
        let wide = Axis::of_latency(7_000.0, 19_800_000.0);
        let labels: Vec<&str> = wide.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["10 µs", "100 µs", "1 ms", "10 ms"]);
        let narrow = Axis::of_latency(60_000.0, 180_000.0);
        let labels: Vec<&str> = narrow.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["50 µs", "100 µs", "200 µs"]);
        assert!(Axis::of_latency(0.0, 0.0).range.end > 1.0);
        assert!(Axis::of_latency(5.0, u64::MAX as f64).range.end.is_finite());
    }

    #[test]
    fn a_linear_axis_has_a_few_round_marks_and_contains_its_maximum() {
        for max in [0.003, 0.9, 1.0, 3.2, 49.9, 371_000.0, 1e12] {
            let axis = Axis::from_zero(max);
            assert!(axis.range.end >= max, "{max}");
            assert!((3..=7).contains(&axis.marks.len()), "{max}: {:?}", axis.marks);
        }
    }

    #[test]
    fn a_percentile_curve_ends_at_the_last_supported_percentile() {
        let mut histogram = Histogram::new();
        (0..400u64).for_each(|i| histogram.record(10_000 + i * 100));
        let end = curve_of(&histogram).last().unwrap().0;
        // 400 durations support p99 (position 2, from 368) and not p99.9.
        assert!((2.0..2.1).contains(&end), "{end}");
        assert!(curve_of(&Histogram::new()).is_empty());
    }

    #[test]
    fn an_interval_without_an_io_breaks_the_line() {
        let curve = Curve::new("x", BLUE, [(0.0, Some(1.0)), (1.0, None), (2.0, None), (3.0, Some(2.0))]);
        assert_eq!(curve.runs, [vec![(0.0, 1.0)], vec![(3.0, 2.0)]]);
    }

    #[test]
    fn many_intervals_are_merged_without_losing_bytes_or_the_maximum_latency() {
        let series: Vec<SeriesRow> = (0..3_601u64)
            .map(|i| SeriesRow {
                end_ns: (i + 1) * 100,
                span_ns: 100,
                read_count: 1,
                read_bytes: 4096,
                write_count: 0,
                write_bytes: 0,
                other_count: 0,
                trim_count: 0,
                trim_bytes: 0,
                latency_ns_p50: 10,
                latency_ns_p99: 20,
                latency_ns_max: if i == 1_777 { 999 } else { 30 },
            })
            .collect();
        let rows = put_together(&series);
        assert!(rows.len() <= POINT_MAX);
        assert_eq!(rows.iter().map(|r| r.read_bytes).sum::<u64>(), 3_601 * 4096);
        assert_eq!(rows.iter().map(|r| r.span_ns).sum::<u64>(), 360_100);
        assert_eq!(rows.iter().map(|r| r.latency_ns_max).max(), Some(999));
        assert_eq!(rows.last().unwrap().end_ns, 360_100);
    }
}
