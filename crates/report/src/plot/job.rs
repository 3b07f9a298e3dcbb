//! The plots of one job: bandwidth and latency over time, latency by percentile, rounds before a steady state.

use super::axis::Axis;
use super::{Curve, Drawing, Hover, Look, Marker, Shade, bounds};
use crate::summary::Interval;
use crate::svg::Svg;
use trueio_model::{Histogram, JobRecord, OpKind, SeriesRow, SteadyState, units};
use trueio_stats::{WindowFit, least_share_above, quantile};

/// Maximum number of points of a curve; more intervals are merged.
const POINT_MAX: usize = 360;

/// Returns the look of an operation, the same in every plot.
pub(crate) fn look_of(op: OpKind) -> Look {
    let index = match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => 3,
    };
    Look { color: index, dash: index }
}

fn middle(row: &SeriesRow) -> f64 {
    (row.end_ns as f64 - row.span_ns as f64 / 2.0) / 1e9
}

/// Formats the time of an interval, for the values under the pointer.
fn at(row: &SeriesRow) -> String {
    format!("{:.1} s", middle(row))
}

type Field = fn(&SeriesRow) -> u64;

/// An operation and its rate in each interval.
type Rate = (OpKind, Vec<Option<f64>>);

/// The rates of a job over time, per operation: bytes, or operations if it moves none.
fn rates(rows: &[SeriesRow]) -> (bool, Vec<Rate>) {
    let of = |fields: &[(OpKind, Field)]| -> Vec<Rate> {
        let used = fields.iter().filter(|(_, field)| rows.iter().any(|row| field(row) > 0));
        used.map(|(op, field)| {
            let rate = |row: &SeriesRow| (row.span_ns > 0).then(|| field(row) as f64 / (row.span_ns as f64 / 1e9));
            (*op, rows.iter().map(rate).collect())
        })
        .collect()
    };
    let bytes = of(&[(OpKind::Read, |r| r.read_bytes), (OpKind::Write, |r| r.write_bytes)]);
    if !bytes.is_empty() {
        return (true, bytes);
    }
    (
        false,
        of(&[(OpKind::Read, |r| r.read_count), (OpKind::Write, |r| r.write_count), (OpKind::Sync, |r| r.other_count)]),
    )
}

/// Plots the bandwidth of a job over time; rates of operations if it moves no bytes. `None` without an
/// interval.
pub(crate) fn bandwidth(job: &JobRecord, shades: &[Shade]) -> Option<String> {
    let rows = put_together(&job.series);
    let (has_bytes, rates) = rates(&rows);
    let max = rates.iter().flat_map(|(_, rate)| rate).flatten().copied().fold(0.0, f64::max);
    if rates.is_empty() || max <= 0.0 {
        return None;
    }
    let (unit, name) = match (has_bytes, max) {
        (false, _) => (1.0, "operations/s"),
        (true, m) if m >= 2.0 * (1u64 << 30) as f64 => ((1u64 << 30) as f64, "GiB/s"),
        (true, m) if m >= (1u64 << 20) as f64 => ((1u64 << 20) as f64, "MiB/s"),
        (true, m) if m >= 1024.0 => (1024.0, "KiB/s"),
        _ => (1.0, "B/s"),
    };
    let curves: Vec<Curve> = rates
        .iter()
        .map(|(op, rate)| {
            let points = rows.iter().zip(rate).map(|(row, rate)| (middle(row), rate.map(|rate| rate / unit)));
            Curve::new(&op.to_string(), look_of(*op), points)
        })
        .collect();
    let hover: Vec<Hover> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let values = rates.iter().filter_map(|(op, rate)| {
                let rate = rate[index]?;
                let rate = if has_bytes { units::format_bandwidth(rate) } else { crate::text::figure(rate) };
                Some(format!("{op} {rate}"))
            });
            let parts: Vec<String> = std::iter::once(at(row)).chain(values).collect();
            Hover { x: middle(row), text: parts.join(" · ") }
        })
        .collect();
    let title = if has_bytes { format!("Bandwidth, {name}") } else { format!("Rate, {name}") };
    let x = Axis::of_time(rows.last()?.end_ns as f64 / 1e9);
    let y = Axis::from_zero(max / unit);
    Some(Drawing { title: &title, curves: &curves, markers: &[], shades, hover: &hover, x: &x, y: &y }.draw())
}

/// Draws the rate of a job over time as a line without axes, for a table. `None` without an interval.
pub(crate) fn spark(job: &JobRecord, op: OpKind, shades: &[Shade]) -> Option<String> {
    const SIZE: (f64, f64) = (120.0, 26.0);
    let rows = put_together(&job.series);
    let (_, rates) = rates(&rows);
    let (_, rate) = rates.iter().find(|(of, _)| *of == op).or_else(|| rates.first().filter(|_| op == OpKind::Sync))?;
    let end = rows.last()?.end_ns as f64 / 1e9;
    let max = rate.iter().flatten().copied().fold(0.0, f64::max);
    if max <= 0.0 || rate.len() < 2 {
        return None;
    }
    let x = |seconds: f64| (seconds / end.max(1e-9)).clamp(0.0, 1.0) * SIZE.0;
    let mut svg = Svg::new("spark", SIZE.0, SIZE.1, &format!("rate over {end:.1} s"));
    for shade in shades {
        let (from, until) = (x(shade.from), x(shade.until));
        svg.rect(&format!("sh {}", shade.class), (from, 0.0), ((until - from).max(1.0), SIZE.1), &shade.title);
    }
    let points: Vec<(f64, f64)> = rows
        .iter()
        .zip(rate)
        .filter_map(|(row, rate)| Some((x(middle(row)), SIZE.1 - 2.0 - (*rate)? / max * (SIZE.1 - 4.0))))
        .collect();
    svg.polyline(&format!("cv thin c{}", look_of(op).color), &points);
    Some(svg.finish())
}

/// Plots p50, p99 and maximum latency of a job over time, on a logarithmic axis. `None` without an I/O.
pub(crate) fn latency(job: &JobRecord, shades: &[Shade]) -> Option<String> {
    let rows = put_together(&job.series);
    let series: [(&str, Look, Field); 3] = [
        ("p50", Look { color: 2, dash: 0 }, |r| r.latency_ns_p50),
        ("p99", Look { color: 3, dash: 1 }, |r| r.latency_ns_p99),
        ("max", Look { color: 4, dash: 2 }, |r| r.latency_ns_max),
    ];
    let mut curves: Vec<Curve> = series
        .iter()
        .map(|(name, look, field)| {
            let points = rows.iter().map(|row| (middle(row), (field(row) > 0).then(|| field(row) as f64)));
            let curve = Curve::new(name, *look, points);
            if *name == "max" { curve.thin() } else { curve }
        })
        .collect();
    curves.retain(|c| !c.is_empty());
    let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
    let hover: Vec<Hover> = rows
        .iter()
        .map(|row| {
            let values = series.iter().filter(|(_, _, field)| field(row) > 0);
            let values = values.map(|(name, _, field)| format!("{name} {}", units::format_duration_ns(field(row))));
            let parts: Vec<String> = std::iter::once(at(row)).chain(values).collect();
            Hover { x: middle(row), text: parts.join(" · ") }
        })
        .collect();
    let x = Axis::of_time(rows.last()?.end_ns as f64 / 1e9);
    let y = Axis::of_latency(low, high);
    let title = "Latency over time";
    Some(Drawing { title, curves: &curves, markers: &[], shades, hover: &hover, x: &x, y: &y }.draw())
}

/// Percentiles whose values are shown under the pointer.
const HOVERED: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// Plots the latency of a job's operations by percentile: percentiles on a logarithmic axis of the share
/// above them, 95 % intervals as vertical lines, the maximum as a ring. `None` without an I/O.
pub(crate) fn percentiles(job: &JobRecord) -> Option<String> {
    let mut curves = Vec::new();
    let mut markers = Vec::new();
    let mut named: Vec<(String, &Histogram)> = Vec::new();
    let mut end = 0.0f64;
    for op in &job.ops {
        let is_paced = !op.latency.from_intended.is_empty();
        let histogram = if is_paced { &op.latency.from_intended } else { &op.latency.total };
        let look = look_of(op.op);
        let curve = Curve::new(&op.op.to_string(), look, curve_of(histogram).into_iter().map(|(x, y)| (x, Some(y))));
        if curve.is_empty() {
            continue;
        }
        named.push((op.op.to_string(), histogram));
        for (x, q) in [(2f64.log10(), 0.5)].into_iter().chain((1..12).map(|d| (f64::from(d), 1.0 - 10f64.powi(-d)))) {
            if let Interval::Given(low, high) = Interval::of(op, histogram, q, job.elapsed_ns) {
                markers.push(Marker::Interval { x, low: low as f64, high: high as f64, color: look.color });
            }
        }
        // The maximum of n values has a share of 1/n at or above it: log10(n).
        let x = (histogram.count() as f64).log10();
        let max = histogram.max_ns()?;
        let title = format!("{}: maximum {}", op.op, units::format_duration_ns(max));
        markers.push(Marker::Ring { x, y: max as f64, color: look.color, title });
        end = end.max(x);
        curves.push(curve);
    }
    let hover = hover_of(&named);
    let ends = markers.iter().flat_map(|marker| match marker {
        Marker::Interval { low, high, .. } => [*low, *high],
        Marker::Ring { y, .. } | Marker::Dot { y, .. } => [*y, *y],
    });
    let (low, high) = bounds(curves.iter().flat_map(Curve::values).chain(ends))?;
    let x = Axis::of_percentiles(end * 1.03);
    let y = Axis::of_latency(low, high);
    let title = "Latency by percentile (%)";
    Some(Drawing { title, curves: &curves, markers: &markers, shades: &[], hover: &hover, x: &x, y: &y }.draw())
}

/// Returns the values under the pointer of a plot of percentiles: each histogram's at a few of them.
pub(crate) fn hover_of(named: &[(String, &Histogram)]) -> Vec<Hover> {
    let at = |q: f64| {
        let values = named.iter().filter_map(|(name, histogram)| {
            Some(format!("{name} {}", units::format_duration_ns(quantile(histogram, q)?.value_ns)))
        });
        let values: Vec<String> = values.collect();
        let head = crate::words::percentile_name(q);
        (!values.is_empty())
            .then(|| Hover { x: -(1.0 - q).log10(), text: format!("{head} · {}", values.join(" · ")) })
    };
    HOVERED.into_iter().filter_map(at).collect()
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
    let mut curves = vec![Curve::new("round", Look { color: 0, dash: 0 }, points)];
    let window = (state.window_rounds as usize).clamp(2, values.len().max(2));
    let start = values.len().saturating_sub(window);
    if let Some(fit) = WindowFit::of(&values[start..]) {
        let half = state.range_percent_max / 200.0;
        let (first, last) = (at(start), at(values.len() - 1));
        let line = |from: f64, to: f64| [(first, Some(from)), (last, Some(to))];
        let (low, high) = (fit.mean * (1.0 - half), fit.mean * (1.0 + half));
        let gain = fit.mean * fit.excursion / 2.0;
        let between = [(last, None)];
        let range = line(low, low).into_iter().chain(between).chain(line(high, high));
        curves.push(Curve::new("range", Look { color: 6, dash: 2 }, range));
        curves.push(Curve::new("mean", Look { color: 2, dash: 1 }, line(fit.mean, fit.mean)));
        curves.push(Curve::new("fit", Look { color: 1, dash: 3 }, line(fit.mean - gain, fit.mean + gain)));
    }
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    let is_drawn = values.len() > 1 && max > 0.0;
    let (x, y) = (Axis::of_rounds(values.len()), Axis::from_zero(max));
    is_drawn.then(|| Drawing { title, curves: &curves, markers: &[], shades: &[], hover: &[], x: &x, y: &y }.draw())
}

#[cfg(test)]
mod tests {
    use super::*;

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
