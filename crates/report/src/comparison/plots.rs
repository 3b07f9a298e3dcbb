//! The plots of a comparison: intervals as a forest plot, latency of all sides by percentile, the difference
//! at each quantile, slices over time.
//!
//! Sides are named by their letters in every plot, so names from a user never become markup here.

use super::words;
use crate::plot::{Axis, BLUE, Curve, GREEN, INK, ORANGE, PURPLE, RED, bounds, curve_of, draw};
use plotters::style::RGBColor;
use trueio_model::{Conclusion, Metric, Part};
use trueio_stats::{least_share_above, quantile};

const COLORS: [RGBColor; 5] = [BLUE, ORANGE, PURPLE, GREEN, RED];

fn color(side: usize) -> RGBColor {
    COLORS[side % COLORS.len()]
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
    const LEFT: f64 = 150.0;
    const WIDTH: f64 = 640.0;
    const ROW: f64 = 20.0;
    const TOP: f64 = 8.0;
    let height = TOP + ROW * rows.len() as f64 + 26.0;
    let x = |log: f64| LEFT + (log.clamp(-reach, reach) + reach) / (2.0 * reach) * (WIDTH - LEFT - 20.0);
    let hex = |c: RGBColor| format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2);
    let bottom = height - 20.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Change of each metric with its interval\" font-size=\"12\">"
    );
    let band = margin.ln_1p();
    out.push_str(&format!(
        "<rect x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" opacity=\"0.12\"/>",
        x(-band),
        x(band) - x(-band),
        bottom - TOP,
        hex(GREEN)
    ));
    for ratio in [0.01, 0.1, 0.25, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 2.0, 4.0, 10.0, 100.0] {
        let log = f64::ln(ratio);
        // Marks closer than the width of their labels are omitted.
        let is_shown = ratio == 1.0 || (log.abs() <= reach && log.abs() > reach / 5.0);
        if !is_shown {
            continue;
        }
        out.push_str(&format!(
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\" stroke=\"{1}\" stroke-width=\"{2}\"/>\
             <text x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"middle\" fill=\"#6B727B\">{4}</text>",
            x(log),
            if ratio == 1.0 { "#6B727B" } else { "#D9DDE2" },
            if ratio == 1.0 { 1.2 } else { 0.8 },
            height - 6.0,
            if ratio == 1.0 { "0".to_owned() } else { words::change(ratio) },
        ));
    }
    for (index, (answer, ratio)) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let color = match answer.conclusion {
            Conclusion::Better | Conclusion::BetterSizeUnclear => GREEN,
            Conclusion::Worse | Conclusion::WorseSizeUnclear => RED,
            Conclusion::Same => BLUE,
            Conclusion::CannotTell => INK,
        };
        let color = hex(color);
        out.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#2A2F36\">{} {}</text>",
            LEFT - 10.0,
            y + 4.0,
            words::letter(answer.side),
            words::metric_title(answer.metric)
        ));
        out.push_str(&format!(
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{color}\" stroke-width=\"2.4\"/>\
             <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{color}\"/>",
            x(ratio.low.ln()),
            x(ratio.high.ln()),
            x(ratio.estimate.ln()),
        ));
    }
    out.push_str("</svg>");
    Some(out)
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
        let curve = Curve::new(&words::letter(index), color(index), points.into_iter().map(|(x, y)| (x, Some(y))));
        if !curve.is_empty() {
            curves.push(curve);
        }
    }
    let (low, high) = bounds(curves.iter().flat_map(Curve::values))?;
    Some(draw(
        "Latency by percentile (%)",
        &curves,
        &[],
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
        let curve = Curve::new(&words::letter(index), color(index), points);
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
            Curve::new(&words::letter(index), color(index), points)
        })
        .filter(|curve| !curve.is_empty())
        .collect();
    let max = curves.iter().flat_map(Curve::values).fold(0.0, f64::max);
    if curves.is_empty() || max <= 0.0 {
        return None;
    }
    Some(draw("I/Os per second over time", &curves, &[], &Axis::of_time(end * 1.02), &Axis::from_zero(max)))
}
