//! Pictures of a trace: the latency of its I/Os over time and over the offset.
//!
//! A trace may have any number of rows, so a picture counts I/Os in cells. The rows are passed twice: first to
//! [`TraceRange`], which finds the axes, then to [`TracePicture`]. The axis of latencies is logarithmic.
//!
//! Cannot show: single I/Os, and which worker issued them.

use crate::layout::{Page, Paint, Style};
use crate::text::clean;
use std::fmt::Write;
use trueio_model::{Histogram, OpKind, units};

/// Cells along the axis of time or offset, and along that of latency.
const CELLS: (usize, usize) = (240, 60);
/// The same in a terminal.
const TERMINAL_CELLS: (usize, usize) = (60, 12);

/// One I/O, as a picture needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePoint {
    /// The operation.
    pub op: OpKind,
    /// When it completed, in nanoseconds.
    pub time_ns: u64,
    /// Where, in bytes; a sync call has no offset.
    pub offset: Option<u64>,
    /// Submission and completion latency together.
    pub latency_ns: u64,
    /// It failed.
    pub is_error: bool,
}

/// The axes of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRange {
    time_ns: (u64, u64),
    offset: (u64, u64),
    latency_ns: (u64, u64),
}

impl Default for TraceRange {
    fn default() -> Self {
        const NONE: (u64, u64) = (u64::MAX, 0);
        Self { time_ns: NONE, offset: NONE, latency_ns: NONE }
    }
}

impl TraceRange {
    /// Widens the axes so that they contain an I/O.
    pub fn include(&mut self, point: &TracePoint) {
        let widen = |range: &mut (u64, u64), value: u64| *range = (range.0.min(value), range.1.max(value));
        widen(&mut self.time_ns, point.time_ns);
        widen(&mut self.latency_ns, point.latency_ns.max(1));
        point.offset.iter().for_each(|offset| widen(&mut self.offset, *offset));
    }
}

/// I/Os in cells: one row of [`CELLS`] for each step of the latency, the shortest first.
#[derive(Debug, Clone, PartialEq)]
struct Cells(Vec<Vec<u64>>);

impl Cells {
    fn new() -> Self {
        Self(vec![vec![0; CELLS.0]; CELLS.1])
    }

    /// Returns fewer cells: each is the sum of those that it replaces.
    fn coarser(&self, (columns, rows): (usize, usize)) -> Vec<Vec<u64>> {
        let mut coarse = vec![vec![0; columns]; rows];
        for (row, cells) in self.0.iter().enumerate() {
            for (column, count) in cells.iter().enumerate() {
                coarse[row * rows / CELLS.1][column * columns / CELLS.0] += count;
            }
        }
        coarse
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(|count| *count == 0)
    }
}

/// The picture of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TracePicture {
    title: String,
    sentences: Vec<String>,
    range: TraceRange,
    over_time: Cells,
    over_offset: Cells,
    latencies: [Histogram; 4],
    error_counts: [u64; 4],
}

impl TracePicture {
    /// An empty picture. `sentences` tell what the trace is of, and what is missing.
    pub fn new(title: &str, sentences: Vec<String>, range: TraceRange) -> Self {
        Self {
            title: clean(title).into_owned(),
            sentences: sentences.iter().map(|sentence| clean(sentence).into_owned()).collect(),
            range,
            over_time: Cells::new(),
            over_offset: Cells::new(),
            latencies: std::array::from_fn(|_| Histogram::new()),
            error_counts: [0; 4],
        }
    }

    /// Adds an I/O that the range contains.
    pub fn add(&mut self, point: &TracePoint) {
        let op = index_of(point.op);
        if point.is_error {
            self.error_counts[op] += 1;
            return;
        }
        self.latencies[op].record(point.latency_ns);
        let row = logarithmic_cell(point.latency_ns.max(1), self.range.latency_ns);
        self.over_time.0[row][cell(point.time_ns, self.range.time_ns)] += 1;
        if let Some(offset) = point.offset {
            self.over_offset.0[row][cell(offset, self.range.offset)] += 1;
        }
    }

    /// Returns the two pictures: the axis, its ends in words, and the cells.
    fn pictures(&self) -> Vec<(&'static str, String, String, &Cells)> {
        let (time, offset) = (self.range.time_ns, self.range.offset);
        let span = units::format_duration_ns(time.1.saturating_sub(time.0));
        let mut pictures = Vec::new();
        if !self.over_time.is_empty() {
            pictures.push(("time", "0".to_owned(), span, &self.over_time));
        }
        if !self.over_offset.is_empty() {
            pictures.push(("offset", units::format_bytes(offset.0), units::format_bytes(offset.1), &self.over_offset));
        }
        pictures
    }

    /// Returns a row of the table for each operation: name, count, errors, percentiles.
    fn rows(&self) -> Vec<[String; 7]> {
        let percentile = |latencies: &Histogram, percent: f64| {
            let quantile = trueio_stats::quantile(latencies, percent / 100.0);
            quantile.map_or_else(|| "–".to_owned(), |found| units::format_duration_ns(found.value_ns))
        };
        let row = |op: usize| {
            let latencies = &self.latencies[op];
            let max = latencies.max_ns().map_or_else(|| "–".to_owned(), units::format_duration_ns);
            [
                ["read", "write", "trim", "sync"][op].to_owned(),
                units::format_count(latencies.count()),
                units::format_count(self.error_counts[op]),
                percentile(latencies, 50.0),
                percentile(latencies, 99.0),
                percentile(latencies, 99.9),
                max,
            ]
        };
        (0..4).filter(|&op| self.latencies[op].count() + self.error_counts[op] > 0).map(row).collect()
    }
}

const HEADINGS: [&str; 7] = ["", "I/Os", "errors", "p50", "p99", "p99.9", "max"];

fn index_of(op: OpKind) -> usize {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => 3,
    }
}

/// Returns the cell of a value on a linear axis.
fn cell(value: u64, (from, to): (u64, u64)) -> usize {
    let span = (to.saturating_sub(from)).max(1) as f64;
    let share = value.saturating_sub(from) as f64 / span;
    ((share * CELLS.0 as f64) as usize).min(CELLS.0 - 1)
}

/// Returns the cell of a latency on the logarithmic axis.
fn logarithmic_cell(value: u64, (from, to): (u64, u64)) -> usize {
    let span = (to as f64 / from as f64).ln();
    let share = if span > 0.0 { (value as f64 / from as f64).ln() / span } else { 0.0 };
    ((share.max(0.0) * CELLS.1 as f64) as usize).min(CELLS.1 - 1)
}

/// Renders a picture for a terminal.
pub fn trace_terminal(picture: &TracePicture, style: &Style) -> String {
    let mut page = Page::new(style);
    let heading = page.paint(Paint::Bold, &picture.title);
    let _ = writeln!(page.out, "{heading}");
    for sentence in &picture.sentences {
        let _ = writeln!(page.out, "{sentence}");
    }
    let line = |cells: &[String]| {
        let columns = cells.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("{cell:<6}"),
            _ => format!("{cell:>11}"),
        });
        columns.collect::<String>().trim_end().to_owned()
    };
    let _ = writeln!(page.out, "\n{}", line(&HEADINGS.map(str::to_owned)));
    for row in picture.rows() {
        let _ = writeln!(page.out, "{}", line(&row));
    }
    let shades = if style.unicode { [' ', '░', '▒', '▓', '█'] } else { [' ', '.', ':', '*', '#'] };
    for (axis, from, to, cells) in picture.pictures() {
        let columns = TERMINAL_CELLS.0.min(page.style.width.saturating_sub(14)).max(20);
        let coarse = cells.coarser((columns, TERMINAL_CELLS.1));
        let most = coarse.iter().flatten().copied().max().unwrap_or(0);
        let _ = writeln!(page.out, "\nlatency over {axis}");
        for (row, counts) in coarse.iter().enumerate().rev() {
            let label = match row {
                0 => units::format_duration_ns(picture.range.latency_ns.0),
                row if row + 1 == TERMINAL_CELLS.1 => units::format_duration_ns(picture.range.latency_ns.1),
                _ => String::new(),
            };
            let shaded: String = counts.iter().map(|count| shades[shade(*count, most, shades.len())]).collect();
            let _ = writeln!(page.out, "{label:>10} |{}", shaded.trim_end());
        }
        let gap = columns.saturating_sub(from.chars().count() + to.chars().count());
        let _ = writeln!(page.out, "{:>11} {from}{}{to}", "", " ".repeat(gap.max(1)));
    }
    page.finish()
}

/// Returns how dark a cell is, on a logarithmic scale: one I/O among millions can be seen.
fn shade(count: u64, most: u64, shades: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let share = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    (share * (shades - 1) as f64).ceil().clamp(1.0, (shades - 1) as f64) as usize
}

/// What is between `<body>` and `</body>`.
const BODY: &str = "<h1>Trace <span>· {{ title }}</span></h1>
{% for sentence in sentences %}<p>{{ sentence|rich }}</p>
{% endfor %}
<table class=\"cards\"><thead><tr>{% for heading in headings %}<th{% if loop.index > 1 %} class=\"n\"{% endif %}>{{ heading }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in rows %}<tr>{% for value in row %}{% if loop.first %}<th scope=\"row\">{{ value }}</th>{% else %}<td class=\"n\" data-label=\"{{ headings[loop.index0] }}\">{{ value }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody></table>
{% for picture in pictures %}
<section class=\"phase\"><header><h3>Latency over {{ picture.axis }}</h3><p>The darker a cell, the more I/Os; the axis of latency is logarithmic.</p></header>
<div class=\"wide\">{{ picture.svg|safe }}</div></section>
{% endfor %}
";

/// Renders a picture as a self-contained page.
pub fn trace_html(picture: &TracePicture) -> String {
    let pictures: Vec<_> = picture
        .pictures()
        .into_iter()
        .map(|(axis, from, to, cells)| minijinja::context! { axis, svg => svg(picture, axis, &from, &to, cells) })
        .collect();
    let page = minijinja::context! {
        title => &picture.title, sentences => &picture.sentences, headings => HEADINGS, rows => picture.rows(), pictures
    };
    crate::page::render(&picture.title, BODY, &page)
}

/// Draws cells as an SVG: one path for each degree of darkness. Labels are figures of this program, so nothing is escaped.
fn svg(picture: &TracePicture, axis: &str, from: &str, to: &str, cells: &Cells) -> String {
    const CELL: (usize, usize) = (4, 5);
    const LEFT: usize = 80;
    const DEGREES: usize = 6;
    let (width, height) = (CELLS.0 * CELL.0, CELLS.1 * CELL.1);
    let most = cells.0.iter().flatten().copied().max().unwrap_or(0);
    let mut paths = vec![String::new(); DEGREES];
    for (row, counts) in cells.0.iter().enumerate() {
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let degree = shade(*count, most, DEGREES);
            let (x, y) = (LEFT + column * CELL.0, height - (row + 1) * CELL.1);
            let _ = write!(paths[degree], "M{x} {y}h{}v{}h-{}z", CELL.0, CELL.1, CELL.0);
        }
    }
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"latency over {axis}, from {from} to {to}\">",
        LEFT + width,
        height + 24,
        LEFT + width
    );
    // Powers of ten, and twos and fives between them where there is room.
    let (low, high) = picture.range.latency_ns;
    let y_of = |ns: u64| {
        let share = (ns as f64 / low as f64).ln() / (high as f64 / low as f64).ln().max(f64::MIN_POSITIVE);
        height - (share * height as f64) as usize
    };
    let tens = (0..19).map(|power| 10_u64.pow(power)).filter(|ns| (low..=high).contains(ns));
    for ns in tens.clone() {
        let _ = write!(svg, "<path class=\"g\" d=\"M{LEFT} {}H{}\"/>", y_of(ns), LEFT + width);
    }
    // From the third of nine steps on, so that one I/O can be seen.
    for (degree, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = write!(svg, "<path d=\"{path}\" class=\"h{}\"/>", degree + 3);
    }
    let text = |x: usize, y: usize, anchor: &str, text: &str| {
        format!("<text class=\"t\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"13\">{text}</text>")
    };
    for ns in tens.filter(|ns| (24..height - 12).contains(&y_of(*ns))) {
        svg.push_str(&text(LEFT - 6, y_of(ns) + 4, "end", &units::format_duration_ns(ns)));
    }
    svg.push_str(&text(LEFT - 6, 12, "end", &units::format_duration_ns(high)));
    svg.push_str(&text(LEFT - 6, height, "end", &units::format_duration_ns(low)));
    svg.push_str(&text(LEFT, height + 18, "start", from));
    svg.push_str(&text(LEFT + width, height + 18, "end", to));
    let _ =
        write!(svg, "<path d=\"M{LEFT} 0V{height}H{}\" fill=\"none\" stroke=\"currentColor\"/></svg>", LEFT + width);
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand reads of 100 µs, ten times as long in the last tenth of the time and of the file; one failed.
    fn picture() -> TracePicture {
        let point = |number: u64| TracePoint {
            op: OpKind::Read,
            time_ns: 7_000_000 + number * 1_000_000,
            offset: Some(number * 4096),
            latency_ns: if number < 900 { 100_000 } else { 1_000_000 },
            is_error: number == 500,
        };
        let mut range = TraceRange::default();
        (0..1_000).for_each(|number| range.include(&point(number)));
        let mut picture = TracePicture::new("a<b> \u{1b}[2J", vec!["1,000 I/Os".to_owned()], range);
        (0..1_000).for_each(|number| picture.add(&point(number)));
        picture
    }

    #[test]
    fn a_step_in_latency_is_seen_over_time_and_over_the_offset() {
        let text = trace_terminal(&picture(), &Style { width: 100, color: false, unicode: true });
        let drawn: Vec<&str> = text.lines().filter(|line| line.contains('█')).collect();
        assert_eq!(drawn.len(), 4, "two rows in each of the two pictures\n{text}");
        let (slow, fast) = (drawn[0], drawn[1]);
        assert!(slow.contains("1 ms |") || slow.contains("1.00 ms |"), "{slow}");
        let first = |line: &str| line.chars().skip(12).position(|c| c != ' ').expect("it is drawn");
        assert_eq!((first(fast), first(slow)), (0, 54), "the last tenth of 60 columns\n{text}");
        assert!(text.contains("999") && text.contains("latency over offset"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_page_escapes_names_and_stays_small() {
        let html = trace_html(&picture());
        assert!(html.contains("a&lt;b&gt;") && !html.contains("<b>"), "{html}");
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.len() < 200_000, "{} bytes", html.len());
    }

    #[test]
    fn an_empty_trace_has_no_picture() {
        let picture = TracePicture::new("empty", Vec::new(), TraceRange::default());
        assert!(!trace_terminal(&picture, &Style { width: 80, color: false, unicode: false }).contains("latency over"));
        assert!(!trace_html(&picture).contains("<svg"));
    }
}
