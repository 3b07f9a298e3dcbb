//! A heat map: rows by columns, coloured by the logarithm of a value; the value stands in each cell.

use crate::svg::{Anchor, Svg, fitted, text_width};

const TEXT: f64 = 12.0;
const ROW: f64 = 28.0;
const TOP: f64 = 44.0;

/// A cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) value: f64,
    /// The text in the cell.
    pub(crate) text: String,
    /// What is shown under the pointer.
    pub(crate) title: String,
}

/// A heat map.
pub(crate) struct Heat<'a> {
    pub(crate) title: &'a str,
    /// The names of the axes, across and down.
    pub(crate) axes: (&'a str, &'a str),
    pub(crate) columns: &'a [String],
    pub(crate) rows: &'a [String],
    /// One row of cells per row; `None`: no figure.
    pub(crate) cells: &'a [Vec<Option<Cell>>],
}

impl Heat<'_> {
    /// Draws the map; its width follows from its columns.
    pub(crate) fn draw(&self) -> String {
        let down = format!("{} ↓", self.axes.1);
        let left =
            self.rows.iter().map(|row| text_width(row, TEXT)).fold(text_width(&down, TEXT), f64::max).min(220.0) + 14.0;
        let texts = self.cells.iter().flatten().flatten().map(|cell| &cell.text).chain(self.columns);
        let column = texts.map(|text| text_width(text, TEXT)).fold(44.0, f64::max).min(120.0) + 14.0;
        let (width, height) =
            (left + column * self.columns.len() as f64 + 2.0, TOP + ROW * self.rows.len() as f64 + 2.0);
        let width = width.max(text_width(self.title, TEXT) + text_width(self.axes.0, TEXT) + 40.0);
        let label = format!("{}: {} by {}", self.title, self.axes.0, self.axes.1);
        // As wide as its texts need; a wider one scrolls in its box.
        let style = format!(" style=\"min-width:min({width:.0}px,100%);width:{width:.0}px\"");
        let mut svg = Svg::with_attributes("heat", width, height, &label, &style);
        svg.text("ti", (1.0, 12.0), Anchor::Start, self.title);
        svg.text("t", (1.0, TOP - 8.0), Anchor::Start, &fitted(&down, TEXT, left - 8.0));
        let across = format!("{} →", self.axes.0);
        svg.text("t", (width - 2.0, 12.0), Anchor::End, &across);
        let values = || self.cells.iter().flatten().flatten().map(|cell| cell.value).filter(|v| *v > 0.0);
        let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        for (index, name) in self.columns.iter().enumerate() {
            let at = left + column * (index as f64 + 0.5);
            svg.text("t", (at, TOP - 8.0), Anchor::Middle, &fitted(name, TEXT, column - 4.0));
        }
        for (row, cells) in self.cells.iter().enumerate() {
            let top = TOP + ROW * row as f64;
            let name = self.rows.get(row).map_or("", String::as_str);
            svg.text("lb", (left - 8.0, top + 18.0), Anchor::End, &fitted(name, TEXT, left - 10.0));
            for (index, cell) in cells.iter().enumerate() {
                let corner = (left + column * index as f64, top);
                let Some(cell) = cell else {
                    svg.text("t", (corner.0 + column / 2.0, top + 18.0), Anchor::Middle, "–");
                    continue;
                };
                let share = if high > low { (cell.value.max(low) / low).ln() / (high / low).ln() } else { 1.0 };
                // Nine steps, so that the text's colour can be chosen for each.
                let step = (share.clamp(0.0, 1.0) * 8.0).round() as usize;
                svg.rect(&format!("h{step}"), (corner.0 + 1.0, top + 1.0), (column - 2.0, ROW - 2.0), &cell.title);
                svg.text(&format!("ht{step}"), (corner.0 + column / 2.0, top + 18.0), Anchor::Middle, &cell.text);
            }
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_the_darkest_and_a_missing_one_a_dash() {
        let cell = |value: f64| Some(Cell { value, text: format!("{value}"), title: String::new() });
        let cells = vec![vec![cell(1.0), cell(10.0)], vec![None, cell(100.0)]];
        let names = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let (columns, rows) = (names(["1", "16"]), names(["4k", "<64k>"]));
        let heat = Heat { title: "IOPS", axes: ("depth", "bs"), columns: &columns, rows: &rows, cells: &cells };
        let svg = heat.draw();
        for (class, count) in
            [("class=\"h0\"", 1), ("class=\"h4\"", 1), ("class=\"h8\"", 1), (">–<", 1), ("&lt;64k&gt;", 1)]
        {
            assert_eq!(svg.matches(class).count(), count, "{class}: {svg}");
        }
    }
}
