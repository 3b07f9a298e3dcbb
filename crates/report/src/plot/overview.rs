//! One plot of a whole run: operations per second against the 99th percentile of the latency, one point per load.

use super::TEXT;
use super::axis::{Axis, short_count};
use super::bounds;
use super::job::look_of;
use crate::svg::{Anchor, Svg, text_width};
use std::f64::consts::TAU;
use trueio_model::{OpKind, units};

const SIZE: (f64, f64) = (460.0, 300.0);
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
/// With more points than this, names are shown under the pointer only.
const NAMES_MAX: usize = 16;

/// A load.
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) op: OpKind,
    pub(crate) ios_per_s: f64,
    pub(crate) p99_ns: u64,
    /// True if the evidence does not support it: it is drawn hollow.
    pub(crate) is_hollow: bool,
}

/// An area that is taken: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

/// Draws the plot; `None` with fewer than two points.
pub(crate) fn overview(points: &[Point]) -> Option<String> {
    if points.len() < 2 {
        return None;
    }
    let (low, high) = bounds(points.iter().map(|p| p.ios_per_s).filter(|v| *v > 0.0))?;
    let x_axis = Axis::of_rate(low * 0.8, high * 1.25);
    let (low, high) = bounds(points.iter().map(|p| p.p99_ns as f64))?;
    let y_axis = Axis::of_latency(low * 0.8, high * 1.25);
    let (right, bottom) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
    let x = |value: f64| LEFT + x_axis.position(value) * (right - LEFT);
    let y = |value: f64| bottom - y_axis.position(value) * (bottom - TOP);
    let mut svg = Svg::new(
        "plot overview",
        SIZE.0,
        SIZE.1,
        "Operations per second against the 99th percentile, one point per load",
    );
    for (mark, label) in &x_axis.marks {
        svg.line("g", (x(*mark), TOP), (x(*mark), bottom));
        let half = text_width(label, TEXT) / 2.0;
        svg.text("t", (x(*mark).min(SIZE.0 - half - 1.0), bottom + 15.0), Anchor::Middle, label);
    }
    for mark in &x_axis.fine_marks {
        svg.line("gf", (x(*mark), TOP), (x(*mark), bottom));
    }
    for mark in &y_axis.fine_marks {
        svg.line("gf", (LEFT, y(*mark)), (right, y(*mark)));
    }
    for (mark, label) in &y_axis.marks {
        svg.line("g", (LEFT, y(*mark)), (right, y(*mark)));
        svg.text("t", (LEFT - 6.0, y(*mark) + 4.0), Anchor::End, label);
    }
    svg.line("ax", (LEFT, bottom), (right, bottom));
    svg.text("ti", (1.0, 13.0), Anchor::Start, "p99 latency");
    svg.text("ti", (right, SIZE.1 - 6.0), Anchor::End, "operations per second →");

    let place = |p: &Point| (x(p.ios_per_s), y(p.p99_ns as f64));
    let mut taken: Vec<Area> =
        points.iter().map(place).map(|(px, py)| (px - 7.0, py - 7.0, px + 7.0, py + 7.0)).collect();
    points.iter().for_each(|point| mark(&mut svg, point, place(point)));
    // Points at the right edge have the fewest places for their names, so they choose first.
    let mut named: Vec<&Point> = points.iter().filter(|_| points.len() <= NAMES_MAX).collect();
    named.sort_by(|a, b| b.ios_per_s.total_cmp(&a.ios_per_s));
    for point in named {
        let at = place(point);
        let width = text_width(&point.name, TEXT) + 2.0;
        let around = [
            (at.0 + 9.0, at.1 + 4.0, Anchor::Start),
            (at.0 - 9.0, at.1 + 4.0, Anchor::End),
            (at.0, at.1 - 10.0, Anchor::Middle),
            (at.0, at.1 + 18.0, Anchor::Middle),
            (at.0 + 7.0, at.1 - 9.0, Anchor::Start),
            (at.0 - 7.0, at.1 - 9.0, Anchor::End),
            (at.0 + 7.0, at.1 + 17.0, Anchor::Start),
            (at.0 - 7.0, at.1 + 17.0, Anchor::End),
            (at.0 - 7.0, at.1 - 22.0, Anchor::End),
            (at.0 - 7.0, at.1 + 30.0, Anchor::End),
        ];
        // Farther away in rings, with a line from the point.
        let far =
            (2..=14).flat_map(|ring| (0..16).map(move |turn| (f64::from(ring) * 13.0, f64::from(turn) * TAU / 16.0)));
        let far = far.map(|(radius, angle)| {
            let (dx, dy) = (angle.cos() * radius, -angle.sin() * radius);
            let anchor = if dx < 0.0 { Anchor::End } else { Anchor::Start };
            (at.0 + dx, at.1 + dy + 4.0, anchor)
        });
        // The first position where the name touches nothing; without one it is shown under the pointer only.
        let free = around.into_iter().chain(far).enumerate().find_map(|(index, (tx, ty, anchor))| {
            let left = match anchor {
                Anchor::Start => tx,
                Anchor::Middle => tx - width / 2.0,
                Anchor::End => tx - width,
            };
            let area = (left, ty - TEXT, left + width, ty + 3.0);
            let is_inside = area.0 >= LEFT + 1.0 && area.2 <= SIZE.0 - 2.0 && area.1 >= 18.0 && area.3 <= bottom;
            let is_free = taken.iter().all(|t| area.2 <= t.0 || t.2 <= area.0 || area.3 <= t.1 || t.3 <= area.1);
            (is_inside && is_free).then_some((index >= around.len(), (tx, ty, anchor, area)))
        });
        if let Some((is_far, (tx, ty, anchor, area))) = free {
            if is_far {
                svg.line("g", at, (tx, ty - 4.0));
            }
            svg.text("lb", (tx, ty), anchor, &point.name);
            taken.push(area);
        }
    }
    Some(svg.finish())
}

/// Draws a point: a circle for reads, a square for writes, a triangle for trims, a diamond for sync calls.
fn mark(svg: &mut Svg, point: &Point, at: (f64, f64)) {
    let color = look_of(point.op).color;
    let class = if point.is_hollow { format!("hollow c{color}") } else { format!("f{color}") };
    let disturbed = if point.is_hollow { " (not confirmed)" } else { "" };
    let title = format!(
        "{}: {} per second, p99 {}{disturbed}",
        point.name,
        short_count(three_digits(point.ios_per_s)),
        units::format_duration_ns(point.p99_ns)
    );
    let (x, y) = at;
    match point.op {
        OpKind::Read => svg.circle(&class, at, 5.5, &title),
        OpKind::Write => {
            svg.polygon(
                &class,
                &[(x - 5.0, y - 5.0), (x + 5.0, y - 5.0), (x + 5.0, y + 5.0), (x - 5.0, y + 5.0)],
                &title,
            );
        }
        OpKind::Trim => svg.polygon(&class, &[(x, y - 6.0), (x + 6.0, y + 5.0), (x - 6.0, y + 5.0)], &title),
        OpKind::Sync => svg.polygon(&class, &[(x, y - 7.0), (x + 7.0, y), (x, y + 7.0), (x - 7.0, y)], &title),
    }
}

/// Rounds to three significant digits.
fn three_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hollow_points_are_named_as_not_confirmed() {
        let points: Vec<Point> = (0..6u32)
            .map(|i| Point {
                name: format!("random read {i}"),
                op: if i % 2 == 0 { OpKind::Read } else { OpKind::Sync },
                ios_per_s: 1_000.0 + f64::from(i),
                p99_ns: 500_000,
                is_hollow: i == 3,
            })
            .collect();
        let svg = overview(&points).unwrap();
        assert_eq!(svg.matches("not confirmed").count(), 1);
        assert!(svg.contains("hollow c3"));
        assert!(overview(&points[..1]).is_none());
    }

    /// Goal: each load has its name. Method: as many points as have names, at one place in a corner and along a line.
    #[test]
    fn each_of_sixteen_loads_is_named_also_at_one_place() {
        for spread in [0, 1, 40] {
            let point = |i: u32| Point {
                name: format!("rand-read-4k-q{i}"),
                op: OpKind::Read,
                ios_per_s: 1_000.0 + f64::from(i * spread),
                p99_ns: 500_000 + u64::from(i * spread) * 1_000,
                is_hollow: false,
            };
            let points: Vec<Point> = (0..NAMES_MAX as u32).map(point).collect();
            let svg = overview(&points).unwrap();
            assert_eq!(svg.matches("class=\"lb\"").count(), NAMES_MAX, "{spread}");
        }
    }
}
