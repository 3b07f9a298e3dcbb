//! Where on the disk requests were, over time: a heat map of the traced windows.

use crate::svg::{Anchor, Svg, text_width};
use trueio_model::{PhaseRecord, units};

const TEXT: f64 = 11.0;
const CELL: (f64, f64) = (12.0, 12.0);
const TOP: f64 = 32.0;

/// Draws the requests of a phase by time and position; `None` if none was traced.
pub(crate) fn places(phase: &PhaseRecord) -> Option<String> {
    let places = phase.trace.as_ref()?.places.as_ref()?;
    let (columns, rows) = (places.column_count.max(1), places.row_count.max(1));
    let length = places.end_bytes.saturating_sub(places.begin_bytes);
    let edge = |row: u32| {
        units::format_bytes(places.begin_bytes + (u128::from(length) * u128::from(row) / u128::from(rows)) as u64)
    };
    let time = |column: u32| {
        units::format_duration_ns((u128::from(places.span_ns) * u128::from(column) / u128::from(columns)) as u64)
    };
    let ends = [edge(0), edge(rows)];
    let left = ends.iter().map(|text| text_width(text, TEXT)).fold(0.0, f64::max) + 8.0;
    let (width, height) = (left + CELL.0 * f64::from(columns) + 2.0, TOP + CELL.1 * f64::from(rows) + 20.0);
    let outside = match places.outside_count {
        0 => String::new(),
        count => format!("; {} elsewhere", units::format_count(count)),
    };
    let title = format!("Requests on {} by time and position; × others{outside}", places.disk);
    // Narrower on a narrow page.
    let style = format!(" style=\"width:{width:.0}px;max-width:100%\"");
    let mut svg = Svg::with_attributes("heat", width, height, &title, &style);
    svg.text("ti", (1.0, 12.0), Anchor::Start, &title);
    // Position 0 is below, as on the axes of other plots.
    let top_of = |row: u32| TOP + CELL.1 * f64::from(rows - 1 - row.min(rows - 1));
    svg.text("t", (left - 6.0, TOP + 9.0), Anchor::End, &ends[1]);
    svg.text("t", (left - 6.0, top_of(0) + 10.0), Anchor::End, &ends[0]);
    let most = places.own_count.iter().zip(&places.other_count).map(|(own, other)| own.saturating_add(*other)).max()?;
    for ((index, own), other) in places.index.iter().zip(&places.own_count).zip(&places.other_count) {
        let (row, column) = (index / columns, index % columns);
        let all = f64::from(own.saturating_add(*other));
        // Nine steps of the logarithm, as in other heat maps.
        let step = if most > 1 { (all.max(1.0).ln() / f64::from(most).ln() * 8.0).round() as usize } else { 8 };
        let corner = (left + CELL.0 * f64::from(column), top_of(row));
        let text = format!(
            "{} to {}, from {}: {} requests of this run, {} of others",
            time(column),
            time(column + 1),
            edge(row),
            units::format_count(u64::from(*own)),
            units::format_count(u64::from(*other))
        );
        svg.rect(&format!("h{}", step.min(8)), corner, (CELL.0 - 1.0, CELL.1 - 1.0), &text);
        if *other > 0 {
            let at = (corner.0 + (CELL.0 - 1.0) / 2.0, corner.1 + 9.5);
            svg.text(&format!("ht{}", step.min(8)), at, Anchor::Middle, "×");
        }
    }
    let below = height - 6.0;
    svg.text("t", (left, below), Anchor::Start, "0 s");
    svg.text("t", (width - 2.0, below), Anchor::End, &time(columns));
    Some(svg.finish())
}
