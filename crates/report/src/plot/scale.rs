//! The scale of a tile: groups of device classes as bands on a logarithmic line, the run's figure, its link's limit and
//! its earlier figures.

use crate::standing::Placement;
use crate::svg::{Anchor, Svg, text_width};

const WIDTH: f64 = 250.0;
const TEXT: f64 = 10.0;
const LANE: f64 = 19.0;
const BAR: f64 = 6.0;
const TOP: f64 = 13.0;

/// Draws the scale of a figure.
pub(crate) fn scale(placement: &Placement) -> String {
    let figure = placement.value.figure;
    let show = |value: f64| figure.show(value);
    let link = placement.link.as_ref().map(|link| link.bytes_per_s);
    let ends = placement.bands.iter().flat_map(|band| [band.low, band.high]);
    let all = || ends.clone().chain([placement.value.value]).chain(link);
    let low = all().fold(f64::INFINITY, f64::min).max(1e-9).ln() - 0.25;
    let high = all().fold(0.0, f64::max).max(1e-9).ln() + 0.25;
    // Better is on the right.
    let x = |value: f64| {
        let share = (value.max(1e-9).ln() - low) / (high - low);
        (if figure.is_more_better() { share } else { 1.0 - share }) * WIDTH
    };
    let mut lanes: Vec<f64> = Vec::new();
    let mut bars = Vec::new();
    let mut bands: Vec<_> = placement.bands.iter().collect();
    bands.sort_by(|a, b| x(a.low).min(x(a.high)).total_cmp(&x(b.low).min(x(b.high))));
    for band in bands {
        let (left, right) = (x(band.low).min(x(band.high)), x(band.low).max(x(band.high)).max(x(band.low) + 2.0));
        let width = text_width(band.name, TEXT);
        let text = ((left + right - width) / 2.0).clamp(0.0, WIDTH - width);
        let begin = left.min(text);
        let lane = lanes.iter().position(|end| *end + 5.0 <= begin).unwrap_or_else(|| {
            lanes.push(f64::NEG_INFINITY);
            lanes.len() - 1
        });
        lanes[lane] = right.max(text + width);
        bars.push((band, left, right, text, lane));
    }
    let height = TOP + LANE * lanes.len() as f64 + 1.0;
    let described: Vec<String> =
        placement.bands.iter().map(|band| format!("{} {} to {}", band.name, show(band.low), show(band.high))).collect();
    let label = format!("{} on a scale of device classes: {}", show(placement.value.value), described.join("; "));
    let mut svg = Svg::new("scale", WIDTH, height, &label);
    for (band, left, right, text, lane) in bars {
        let top = TOP + LANE * lane as f64;
        let is_in =
            matches!(&placement.position, crate::standing::Position::Within(groups) if groups.contains(&band.name));
        let trust: Vec<&str> = band.classes.iter().map(|class| class.trust.words()).collect();
        let title = format!("{}: {} to {} ({})", band.name, show(band.low), show(band.high), unique(&trust).join(", "));
        svg.rect(if is_in { "band in" } else { "band" }, (left, top), (right - left, BAR), &title);
        svg.text("bl", (text, top + BAR + 9.5), Anchor::Start, band.name);
    }
    if let Some(past) = &placement.past {
        let (a, b) = (x(past.low).min(x(past.high)), x(past.low).max(x(past.high)));
        let title = format!(
            "{} earlier runs: {} to {}, median {}",
            past.count,
            show(past.low),
            show(past.high),
            show(past.median)
        );
        svg.rect("past", (a, 6.0), ((b - a).max(2.0), 3.0), &title);
    }
    if let Some(link) = &placement.link {
        let at = x(link.bytes_per_s);
        svg.line("lk", (at, 2.0), (at, height - 1.0));
    }
    let at = x(placement.value.value);
    svg.polygon("here", &[(at - 5.0, 0.0), (at + 5.0, 0.0), (at, 9.0)], &show(placement.value.value));
    svg.line("hereline", (at, 8.0), (at, TOP + BAR + 1.0));
    svg.finish()
}

fn unique<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for word in words {
        if !found.contains(word) {
            found.push(word);
        }
    }
    found
}
