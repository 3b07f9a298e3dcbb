//! Plots as SVG, small enough for three in a row and readable without other elements.
//!
//! A curve is never drawn without data: an interval without an I/O breaks the line, and the percentile curve
//! ends at the last percentile that the sample supports. Curves differ in colour (Okabe and Ito's eight, which readers
//! with a colour vision deficiency can distinguish) and in line style. Values under a pointer are shown by the page's
//! script from the attributes `data-x` and `data-t`; without it, nothing of the plot is missing.
//!
//! Source of the colours: M. Okabe, K. Ito, "Color Universal Design", 2008.

pub(crate) mod axis;
pub(crate) mod heat;
pub(crate) mod job;
pub(crate) mod overview;
pub(crate) mod places;
pub(crate) mod runs;
pub(crate) mod scale;

use crate::svg::{Anchor, Svg, fitted, text_width};
use crate::text::escaped_xml;
use axis::Axis;

/// Size of a plot, in pixels of its text.
const SIZE: (f64, f64) = (400.0, 240.0);
/// Margins for labels: left at least, right, bottom; top without and with a legend in a line of its own.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 28.0;
const LEGEND: f64 = 17.0;
/// Height of text.
pub(crate) const TEXT: f64 = 11.0;
/// Number of colours and line styles of `page.css`.
pub(crate) const COLORS: usize = 8;

/// The look of a curve: a colour of `page.css`, and a line style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) color: usize,
    pub(crate) dash: usize,
}

impl Look {
    /// Returns the look of the nth of several curves: the line style changes with the colour.
    pub(crate) fn nth(index: usize) -> Self {
        Self { color: index % COLORS, dash: (index + index / COLORS) % COLORS }
    }

    pub(crate) fn stroke(self) -> String {
        format!("c{} d{}", self.color, self.dash)
    }
}

/// A curve: groups of connected points.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) look: Look,
    is_thin: bool,
    pub(crate) runs: Vec<Vec<(f64, f64)>>,
}

impl Curve {
    /// Creates a curve through `points`, interrupted where a value is missing.
    pub(crate) fn new(name: &str, look: Look, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
        for (x, y) in points {
            match (y, runs.last_mut()) {
                (Some(y), Some(run)) => run.push((x, y)),
                (None, Some(run)) if !run.is_empty() => runs.push(Vec::new()),
                _ => {}
            }
        }
        Self { name: name.to_owned(), look, is_thin: false, runs }
    }

    /// Draws the curve thinner.
    pub(crate) fn thin(self) -> Self {
        Self { is_thin: true, ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.iter().all(Vec::is_empty)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.runs.iter().flatten().map(|p| p.1)
    }
}

/// A vertical line from the lower to the upper end of an interval, a ring or a dot at a single value.
pub(crate) enum Marker {
    Interval { x: f64, low: f64, high: f64, color: usize },
    Ring { x: f64, y: f64, color: usize, title: String },
    Dot { x: f64, y: f64, color: usize, title: String },
}

/// A span of the horizontal axis that is shaded: the figures in it are disturbed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shade {
    pub(crate) from: f64,
    pub(crate) until: f64,
    /// The class of `page.css`: `neighbour`, `processor`, `throttle`.
    pub(crate) class: &'static str,
    /// A word above it.
    pub(crate) label: String,
    /// The whole sentence.
    pub(crate) title: String,
}

/// A text under the pointer.
pub(crate) struct Hover {
    pub(crate) x: f64,
    pub(crate) text: String,
}

/// Everything of a plot.
pub(crate) struct Drawing<'a> {
    pub(crate) title: &'a str,
    pub(crate) curves: &'a [Curve],
    pub(crate) markers: &'a [Marker],
    pub(crate) shades: &'a [Shade],
    pub(crate) hover: &'a [Hover],
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
}

/// Returns the margin in which the labels of a vertical axis have room, with 20 for the gap and for letters that are wider than estimated.
fn left_of(y: &Axis) -> f64 {
    y.marks.iter().map(|(_, label)| text_width(label, TEXT) + 20.0).fold(LEFT, f64::max)
}

impl Drawing<'_> {
    /// Draws the plot and returns it as an `<svg>` element that scales with its box.
    pub(crate) fn draw(&self) -> String {
        let legend: Vec<&Curve> = self.curves.iter().filter(|curve| !curve.name.is_empty()).collect();
        let legend_width: f64 = legend.iter().map(|curve| text_width(&curve.name, TEXT) + 34.0).sum();
        let is_beside = text_width(self.title, TEXT) + legend_width + 12.0 <= SIZE.0 - RIGHT;
        let top = if is_beside || legend.is_empty() { TOP } else { TOP + LEGEND * legend_rows(&legend) as f64 };
        let height = SIZE.1 + top - TOP;
        let frame = Frame { left: left_of(self.y), right: SIZE.0 - RIGHT, top, bottom: height - BOTTOM };
        let names: Vec<&str> = legend.iter().map(|curve| curve.name.as_str()).collect();
        let label = format!("{}: {}", self.title, names.join(", "));
        let mut svg = Svg::with_attributes("plot", SIZE.0, height, &label, &self.hover_attributes(&frame));
        self.shades(&mut svg, &frame);
        self.grid(&mut svg, &frame);
        self.curves(&mut svg, &frame);
        self.markers(&mut svg, &frame);
        svg.text("ti", (1.0, 12.0), Anchor::Start, self.title);
        if is_beside {
            let mut at = frame.right;
            for curve in legend.iter().rev() {
                at -= text_width(&curve.name, TEXT);
                legend_entry(&mut svg, curve, (at, 12.0));
                at -= 34.0;
            }
        } else {
            let mut at = (24.0, 12.0 + LEGEND);
            for curve in &legend {
                let width = text_width(&curve.name, TEXT);
                if at.0 > 24.0 && at.0 + width > frame.right {
                    at = (24.0, at.1 + LEGEND);
                }
                legend_entry(&mut svg, curve, at);
                at.0 += width + 34.0;
            }
        }
        if !self.hover.is_empty() {
            svg.line("hv", (-9.0, frame.top), (-9.0, frame.bottom));
        }
        svg.finish()
    }

    fn hover_attributes(&self, frame: &Frame) -> String {
        if self.hover.is_empty() {
            return String::new();
        }
        let places: Vec<String> = self.hover.iter().map(|h| format!("{:.1}", frame.x(self.x, h.x))).collect();
        let texts: Vec<String> = self.hover.iter().map(|h| escaped_xml(&h.text.replace('|', "/"))).collect();
        format!(" data-x=\"{}\" data-t=\"{}\"", places.join(" "), texts.join("|"))
    }

    fn shades(&self, svg: &mut Svg, frame: &Frame) {
        let mut free_from = f64::NEG_INFINITY;
        for shade in self.shades {
            let (from, until) = (frame.x(self.x, shade.from), frame.x(self.x, shade.until));
            let size = ((until - from).max(1.5), frame.bottom - frame.top);
            svg.rect(&format!("sh {}", shade.class), (from, frame.top), size, &shade.title);
            let width = text_width(&shade.label, TEXT - 1.0);
            let at = from.min(frame.right - width);
            if at >= free_from && at >= frame.left {
                svg.text("sl", (at + 1.0, frame.top - 3.0), Anchor::Start, &shade.label);
                free_from = at + width + 6.0;
            }
        }
    }

    fn grid(&self, svg: &mut Svg, frame: &Frame) {
        for mark in &self.x.fine_marks {
            let x = frame.x(self.x, *mark);
            svg.line("gf", (x, frame.top), (x, frame.bottom));
        }
        for mark in &self.y.fine_marks {
            let y = frame.y(self.y, *mark);
            svg.line("gf", (frame.left, y), (frame.right, y));
        }
        let mut free_above = f64::INFINITY;
        for (mark, label) in &self.y.marks {
            let y = frame.y(self.y, *mark);
            svg.line("g", (frame.left, y), (frame.right, y));
            // Marks are in ascending order, from the bottom to the top.
            if y + 4.0 <= free_above {
                svg.text("t", (frame.left - 6.0, y + 4.0), Anchor::End, label);
                free_above = y + 4.0 - TEXT - 1.0;
            }
        }
        // Labels of the x axis; those that would touch the previous one are omitted.
        let mut free_from = f64::NEG_INFINITY;
        for (mark, label) in &self.x.marks {
            let x = frame.x(self.x, *mark);
            svg.line("g", (x, frame.top), (x, frame.bottom));
            let half = text_width(label, TEXT) / 2.0;
            let center = x.clamp(half, SIZE.0 - half - 1.0);
            if center - half >= free_from {
                svg.text("t", (center, frame.bottom + 16.0), Anchor::Middle, label);
                free_from = center + half + 6.0;
            }
        }
        svg.line("ax", (frame.left, frame.bottom), (frame.right, frame.bottom));
    }

    fn curves(&self, svg: &mut Svg, frame: &Frame) {
        for curve in self.curves {
            for run in &curve.runs {
                let points: Vec<(f64, f64)> =
                    run.iter().map(|p| (frame.x(self.x, p.0), frame.y(self.y, p.1))).collect();
                match points.as_slice() {
                    [] => {}
                    [one] => svg.circle(&format!("f{}", curve.look.color), *one, 1.6, ""),
                    _ => {
                        let thin = if curve.is_thin { " thin" } else { "" };
                        svg.polyline(&format!("cv {}{thin}", curve.look.stroke()), &points);
                    }
                }
            }
        }
    }

    fn markers(&self, svg: &mut Svg, frame: &Frame) {
        for marker in self.markers {
            match marker {
                Marker::Interval { x, low, high, color } => {
                    let (x, low, high) = (frame.x(self.x, *x), frame.y(self.y, *low), frame.y(self.y, *high));
                    svg.line(&format!("iv c{color}"), (x, low), (x, high));
                    for end in [low, high] {
                        svg.line(&format!("ie c{color}"), (x - 3.0, end), (x + 3.0, end));
                    }
                }
                Marker::Ring { x, y, color, title } => {
                    let at = (frame.x(self.x, *x), frame.y(self.y, *y));
                    svg.circle(&format!("ring c{color}"), at, 3.4, title);
                }
                Marker::Dot { x, y, color, title } => {
                    let at = (frame.x(self.x, *x), frame.y(self.y, *y));
                    svg.circle(&format!("f{color}"), at, 3.0, title);
                }
            }
        }
    }
}

/// Number of lines that a legend below the title takes.
fn legend_rows(legend: &[&Curve]) -> usize {
    let (mut rows, mut at) = (1, 24.0);
    for curve in legend {
        let width = text_width(&curve.name, TEXT);
        if at > 24.0 && at + width > SIZE.0 - RIGHT {
            (rows, at) = (rows + 1, 24.0);
        }
        at += width + 34.0;
    }
    rows
}

/// Draws a line in the curve's style, and its name from `at` on.
fn legend_entry(svg: &mut Svg, curve: &Curve, at: (f64, f64)) {
    let (x, y) = at;
    svg.line(&format!("cv {}", curve.look.stroke()), (x - 22.0, y - 4.0), (x - 4.0, y - 4.0));
    svg.text("lb", at, Anchor::Start, &fitted(&curve.name, TEXT, SIZE.0 - RIGHT - x + TEXT));
}

/// The area of a plot.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.position(value) * (self.right - self.left)
    }

    fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.position(value) * (self.bottom - self.top)
    }
}

/// Returns the minimum and the maximum; `None` without values.
pub(crate) fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |found, v| match found {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_an_io_breaks_the_line() {
        let curve = Curve::new("x", Look::nth(0), [(0.0, Some(1.0)), (1.0, None), (2.0, None), (3.0, Some(2.0))]);
        assert_eq!(curve.runs, [vec![(0.0, 1.0)], vec![(3.0, 2.0)]]);
    }

    #[test]
    fn sixteen_curves_differ_in_colour_or_line_style() {
        let looks: Vec<Look> = (0..16).map(Look::nth).collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{index}");
        }
    }

    #[test]
    fn a_long_label_of_the_vertical_axis_widens_its_margin() {
        assert_eq!(left_of(&Axis::of_change(-10.0, 10.0)), LEFT);
        let wide = Axis::of_change(0.0, 1_480.0);
        assert!(wide.marks.iter().any(|(_, label)| label == "+1,500 %"), "{:?}", wide.marks);
        assert!(left_of(&wide) >= LEFT + 4.0, "{}", left_of(&wide));
    }
}
