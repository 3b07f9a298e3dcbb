//! The plots of a comparison: intervals as a forest plot, latency of all sides by percentile, the difference
//! at each quantile, slices over time.
//!
//! Sides are named by their letters in every plot, so names from a user never become markup here.

use super::words;
use crate::plot::axis::Axis;
use crate::plot::job::{curve_of, hover_of};
use crate::plot::{Curve, Drawing, Hover, Look, bounds};
use crate::svg::{Anchor, Svg, text_width};
use trueio_model::{Conclusion, Metric, Part};
use trueio_stats::{least_share_above, quantile};

/// Draws a plot without shades.
fn draw(title: &str, curves: &[Curve], hover: &[Hover], x: &Axis, y: &Axis) -> String {
    Drawing { title, curves, markers: &[], shades: &[], hover, x, y }.draw()
}

/// Plots every answer's interval on one axis of change, with the margin as a band. `None` without an
/// interval.
pub(super) fn forest(part: &Part, margin: f64) -> Option<String> {
    let rows: Vec<_> = part.answers.iter().filter_map(|answer| Some((answer, answer.ratio?))).collect();
    // Logarithmic: half and double have the same distance from the middle.
    let reach = rows.iter().flat_map(|(_, r)| [r.low.ln().abs(), r.high.ln().abs()]).fold(0.0, f64::max);
    let reach = reach.clamp(margin.ln_1p() * 1.5, 6.0) * 1.05;
    if rows.is_empty() || !reach.is_finite() {
        return None;
    }
    const WIDTH: f64 = 460.0;
    const ROW: f64 = 20.0;
    const TOP: f64 = 8.0;
    let name = |answer: &trueio_model::Answer| {
        format!("{} {}", words::letter(answer.side), words::metric_title(answer.metric))
    };
    let left = rows.iter().map(|(answer, _)| text_width(&name(answer), 11.0)).fold(60.0, f64::max) + 14.0;
    let height = TOP + ROW * rows.len() as f64 + 26.0;
    let x = |log: f64| left + (log.clamp(-reach, reach) + reach) / (2.0 * reach) * (WIDTH - left - 24.0);
    let bottom = height - 20.0;
    let mut svg = Svg::new("plot", WIDTH, height, "Change of each metric with its interval");
    let band = margin.ln_1p();
    svg.rect("margin", (x(-band), TOP), (x(band) - x(-band), bottom - TOP), "the margin");
    let mut free_from = f64::NEG_INFINITY;
    for ratio in [0.01, 0.1, 0.25, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 2.0, 4.0, 10.0, 100.0] {
        let log = f64::ln(ratio);
        if log.abs() > reach {
            continue;
        }
        let label = if ratio == 1.0 { "0".to_owned() } else { words::change(ratio) };
        let half = text_width(&label, 11.0) / 2.0 + 4.0;
        // The middle keeps its label: others make room for it.
        let is_near_middle = ratio != 1.0 && (x(log) - x(0.0)).abs() < half + 10.0;
        svg.line(if ratio == 1.0 { "mid" } else { "g" }, (x(log), TOP), (x(log), bottom));
        if x(log) - half >= free_from && !is_near_middle {
            svg.text("t", (x(log), height - 6.0), Anchor::Middle, &label);
            free_from = x(log) + half;
        }
    }
    for (index, (answer, ratio)) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let (color, dash) = match words::concluded(part, answer) {
            Conclusion::Better | Conclusion::BetterSizeUnclear => (2, 0),
            Conclusion::Worse | Conclusion::WorseSizeUnclear => (1, 0),
            Conclusion::Same => (0, 0),
            Conclusion::CannotTell => (6, 2),
        };
        let title = format!(
            "{}: {}, between {} and {}",
            name(answer),
            words::change_of(ratio),
            words::change(ratio.low),
            words::change(ratio.high)
        );
        svg.text("lb", (left - 10.0, y + 4.0), Anchor::End, &name(answer));
        svg.line(&format!("iv c{color} d{dash}"), (x(ratio.low.ln()), y), (x(ratio.high.ln()), y));
        svg.circle(&format!("f{color}"), (x(ratio.estimate.ln()), y), 3.8, &title);
    }
    Some(svg.finish())
}

/// Plots latency by percentile, every side. `None` without latencies.
pub(super) fn percentiles(part: &Part) -> Option<String> {
    let mut curves = Vec::new();
    let mut end = 0.0f64;
    for (index, side) in part.sides.iter().enumerate() {
        let points = if side.latency.is_empty() {
            side.percentiles
                .iter()
                .filter(|p| p.0 < 100.0 && p.1 > 0.0)
                .map(|(percent, ns)| (-(1.0 - percent / 100.0).log10(), *ns))
                .collect()
        } else {
            curve_of(&side.latency)
        };
        end = points.iter().map(|p| p.0).fold(end, f64::max);
        let curve = Curve::new(&words::letter(index), Look::nth(index), points.into_iter().map(|(x, y)| (x, Some(y))));
        if !curve.is_empty() {
            curves.push(curve);
        }
    }
    let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
    let named: Vec<(String, &trueio_model::Histogram)> =
        part.sides.iter().enumerate().map(|(index, side)| (words::letter(index), &side.latency)).collect();
    Some(draw(
        "Latency by percentile (%)",
        &curves,
        &hover_of(&named),
        &Axis::of_percentiles(end * 1.03),
        &Axis::of_latency(low, high),
    ))
}

/// Plots how much longer each side's quantiles are than the first side's, in percent. `None` without two
/// histograms.
pub(super) fn difference(part: &Part) -> Option<String> {
    let first = &part.sides.first()?.latency;
    let mut curves = Vec::new();
    let mut end = 0.0f64;
    for (index, side) in part.sides.iter().enumerate().skip(1) {
        let Some(least) = least_share_above(first.count().min(side.latency.count())) else { continue };
        let last = -least.log10();
        let points: Vec<(f64, Option<f64>)> = (3..)
            .map(|step| f64::from(step) * 0.02)
            .take_while(|place| *place <= last)
            .map(|place| {
                let q = 1.0 - 10f64.powf(-place);
                let value = |histogram| quantile(histogram, q).map(|found| found.value_ns as f64).filter(|v| *v > 0.0);
                (place, value(first).zip(value(&side.latency)).map(|(a, b)| (b / a - 1.0) * 100.0))
            })
            .collect();
        end = end.max(last);
        let curve = Curve::new(&words::letter(index), Look::nth(index), points);
        if !curve.is_empty() {
            curves.push(curve);
        }
    }
    let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
    Some(draw(
        "Latency compared with A at each percentile",
        &curves,
        &[],
        &Axis::of_percentiles(end),
        &Axis::of_change(low, high),
    ))
}

/// Plots I/Os per second of every slice over time. `None` without a slice.
pub(super) fn over_time(part: &Part) -> Option<String> {
    let value = |slice: &trueio_model::Slice| slice.figures.iter().find(|f| f.metric == Metric::Iops).map(|f| f.value);
    let origin = |side: &trueio_model::Side| side.slices.iter().map(|s| s.begin_ns).min();
    // Slices of interleaved sides share a clock; records each begin at zero.
    let is_shared = part.sides.iter().all(|side| side.slices.iter().any(|s| s.place > 0)) || part.sides.len() < 2;
    let shared = part.sides.iter().filter_map(origin).min()?;
    let mut end = 0.0f64;
    let curves: Vec<Curve> = part
        .sides
        .iter()
        .enumerate()
        .map(|(index, side)| {
            let from = if is_shared { shared } else { origin(side).unwrap_or(0) };
            let points: Vec<(f64, Option<f64>)> = side
                .slices
                .iter()
                .map(|slice| (slice.begin_ns.saturating_sub(from) as f64 / 1e9, value(slice)))
                .collect();
            end = points.iter().map(|p| p.0).fold(end, f64::max);
            Curve::new(&words::letter(index), Look::nth(index), points)
        })
        .filter(|curve| !curve.is_empty())
        .collect();
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    if curves.is_empty() || max <= 0.0 {
        return None;
    }
    // Only the slices of the first side: the others are next to them.
    let hover: Vec<Hover> = curves.first().map_or_else(Vec::new, |first| {
        let points = first.runs.iter().flatten();
        points
            .map(|(x, y)| Hover { x: *x, text: format!("{x:.1} s · {} {}", first.name, crate::text::figure(*y)) })
            .collect()
    });
    Some(draw("I/Os per second over time", &curves, &hover, &Axis::of_time(end * 1.02), &Axis::from_zero(max)))
}
