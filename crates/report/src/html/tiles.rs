//! The tiles of a page: four figures, each on a scale of device classes.

use super::cleaned;
use crate::badge::Badge;
use crate::classes::ClassFigure;
use crate::plot::scale::scale;
use crate::standing::{Placement, Standing, Withheld};
use crate::summary::Row;
use serde::Serialize;
use trueio_model::{OpKind, RunAnswer, units};

/// A tile.
#[derive(Serialize)]
pub(super) struct Tile {
    name: &'static str,
    value: String,
    unit: String,
    scale: String,
    position: String,
    lines: Vec<String>,
    mark: Badge,
}

/// Returns the tiles of the figures that a record has. A figure that is withheld keeps its tile, with the reason.
pub(super) fn tiles(answer: &RunAnswer, rows: &[Row], placements: &Standing) -> Vec<Tile> {
    let shown = [ClassFigure::SeqRead, ClassFigure::SeqWrite, ClassFigure::RandReadLatency, ClassFigure::Commits];
    let tiles = shown.into_iter().filter_map(|figure| {
        let withheld = || placements.withheld.iter().find(|withheld| withheld.figure == figure);
        let placed = placements.of(figure).map(|placement| tile(answer, rows, placements, placement));
        placed.or_else(|| withheld().map(|withheld| withheld_tile(answer, withheld)))
    });
    tiles.collect()
}

fn withheld_tile(answer: &RunAnswer, withheld: &Withheld) -> Tile {
    Tile {
        name: withheld.figure.name(),
        value: "withheld".to_owned(),
        unit: String::new(),
        scale: String::new(),
        position: cleaned(&withheld.reason),
        lines: Vec::new(),
        mark: Badge::of(answer.phases[withheld.phase_index].verdict),
    }
}

fn tile(answer: &RunAnswer, rows: &[Row], placements: &Standing, placement: &Placement) -> Tile {
    let figure = placement.value.figure;
    let text = figure.show(placement.value.value);
    let (value, unit) = text.rsplit_once(' ').unwrap_or((&text, ""));
    let judgement = &answer.phases[placement.value.phase_index];
    let mut lines = vec![detail(rows, placements, placement)];
    // A class, a link and earlier runs are stated of a confirmed figure only.
    if placement.is_confirmed() {
        lines.extend(link_line(placement));
        lines.extend(past_line(placement));
    }
    Tile {
        name: figure.name(),
        value: value.to_owned(),
        unit: unit.to_owned(),
        scale: if placement.is_confirmed() { scale(placement) } else { String::new() },
        position: cleaned(&if placement.is_confirmed() { placement.position.words() } else { judgement.words.clone() }),
        lines: lines.iter().filter(|line| !line.is_empty()).map(|line| cleaned(line)).collect(),
        mark: Badge::of(judgement.verdict),
    }
}

fn link_line(placement: &Placement) -> Option<String> {
    let link = placement.link.as_ref()?;
    let share = placement.value.value / link.bytes_per_s * 100.0;
    let supported = link.supported.as_ref().map_or_else(String::new, |faster| format!(" ({faster})"));
    Some(format!("{share:.0} % of the link {}{supported}; dashed line", link.name))
}

fn past_line(placement: &Placement) -> Option<String> {
    let (figure, past) = (placement.value.figure, placement.past.as_ref()?);
    let (low, high) = (figure.show(past.low), figure.show(past.high));
    Some(match past.count {
        1 => format!("earlier run: {low}"),
        count => format!("{count} earlier runs: {low} to {high}"),
    })
}

/// Returns the line below the figure: its tail, its depth.
fn detail(rows: &[Row], placements: &Standing, placement: &Placement) -> String {
    let Some(row) = rows.get(placement.value.row) else { return String::new() };
    let p99 = |row: &Row| row.quantiles[1].map(|q| format!("p99 {}", units::format_duration_ns(q.value_ns)));
    let mut parts: Vec<String> = Vec::new();
    match placement.value.figure {
        ClassFigure::RandReadLatency => {
            parts.push("median of one 4 KiB read".to_owned());
            parts.extend(p99(row));
            if let Some(deep) = placements.of(ClassFigure::RandRead).filter(|deep| deep.is_confirmed()) {
                parts.push(format!("{} with many in flight", deep.value.figure.show(deep.value.value)));
            }
        }
        ClassFigure::Commits => {
            let sync = rows.iter().find(|r| r.phase_index == row.phase_index && r.op == OpKind::Sync);
            parts.push("4 KiB and a flush, one at a time".to_owned());
            parts.extend(sync.and_then(p99).map(|text| format!("flush {text}")));
        }
        _ => parts.extend(p99(row)),
    }
    parts.join(" · ")
}
