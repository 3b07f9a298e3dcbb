//! Builds SVG elements as text, for plots that are a part of a page.
//!
//! Colours are classes of the page's style sheet (`page.css`), so one image serves a light and a dark scheme and print.
//! Text stays text: it can be searched, selected and scaled, and every text is escaped when it is added.

use crate::text::escaped_xml;
use std::fmt::Write as _;

/// Width of an average sans-serif letter, as a share of the font's height. Digits and capitals are wider than this, `i`
/// and spaces narrower; `cargo xtask pages` measures the texts in a browser.
const LETTER: f64 = 0.56;
/// What capitals, `m`, `w` and signs are wider.
const CAPITAL: f64 = 0.16;

/// The alignment of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// An image under construction.
#[derive(Debug)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// Creates an image of this size, in units of the text's pixels. `label` describes it for readers that cannot see it.
    pub(crate) fn new(class: &str, width: f64, height: f64, label: &str) -> Self {
        Self::with_attributes(class, width, height, label, "")
    }

    /// Creates an image with further attributes, which are already escaped.
    pub(crate) fn with_attributes(class: &str, width: f64, height: f64, label: &str, attributes: &str) -> Self {
        let out = format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{attributes}>",
            short(width),
            short(height),
            escaped_xml(label)
        );
        Self { out }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (short(from.0), short(from.1), short(to.0), short(to.1));
        let _ = write!(self.out, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    /// Adds connected lines.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(self.out, "<polyline class=\"{class}\" points=\"");
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.out, "{}{},{}", if index == 0 { "" } else { " " }, short(*x), short(*y));
        }
        self.out.push_str("\"/>");
    }

    /// Adds a rectangle; `title` is shown when a pointer rests on it.
    pub(crate) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), title: &str) {
        let (x, y, w, h) = (short(corner.0), short(corner.1), short(size.0.max(0.5)), short(size.1.max(0.5)));
        let _ = write!(self.out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"");
        self.end("rect", title);
    }

    /// Adds a circle; `title` is shown when a pointer rests on it.
    pub(crate) fn circle(&mut self, class: &str, center: (f64, f64), radius: f64, title: &str) {
        let (x, y, r) = (short(center.0), short(center.1), short(radius));
        let _ = write!(self.out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"");
        self.end("circle", title);
    }

    /// Adds a closed shape; `title` is shown when a pointer rests on it.
    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)], title: &str) {
        let _ = write!(self.out, "<polygon class=\"{class}\" points=\"");
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.out, "{}{},{}", if index == 0 { "" } else { " " }, short(*x), short(*y));
        }
        self.out.push('"');
        self.end("polygon", title);
    }

    /// Adds a text with its baseline at `at`.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = (short(at.0), short(at.1));
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{}\">{}</text>",
            anchor.name(),
            escaped_xml(text)
        );
    }

    /// Returns the image.
    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }

    fn end(&mut self, name: &str, title: &str) {
        if title.is_empty() {
            self.out.push_str("/>");
        } else {
            let _ = write!(self.out, "><title>{}</title></{name}>", escaped_xml(title));
        }
    }
}

/// Estimates the width of a text of this height.
pub(crate) fn text_width(text: &str, height: f64) -> f64 {
    let wide = text.chars().filter(|c| c.is_uppercase() || matches!(c, '_' | 'm' | 'w' | '+' | '×' | '→')).count();
    (text.chars().count() as f64 * LETTER + wide as f64 * CAPITAL) * height
}

/// Returns a text that fits into `width`: cut with an ellipsis if it is longer.
pub(crate) fn fitted(text: &str, height: f64, width: f64) -> String {
    let fits = (width / (height * LETTER)).floor().max(1.0) as usize;
    if text.chars().count() <= fits {
        return text.to_owned();
    }
    text.chars().take(fits.saturating_sub(1)).chain(['…']).collect()
}

/// Formats a coordinate with at most one decimal.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_escaped_and_coordinates_are_short() {
        let mut svg = Svg::new("plot", 400.0, 240.5, "a <b> & \"c\"");
        svg.line("g", (1.04, 2.0), (3.06, -0.5));
        svg.text("t", (1.0, 2.0), Anchor::End, "</text><script>\u{1b}");
        svg.circle("f0", (0.0, 0.0), 2.0, "it's");
        assert_eq!(
            svg.finish(),
            "<svg class=\"plot\" viewBox=\"0 0 400 240.5\" role=\"img\" aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;\">\
             <line class=\"g\" x1=\"1\" y1=\"2\" x2=\"3.1\" y2=\"-0.5\"/>\
             <text class=\"t\" x=\"1\" y=\"2\" text-anchor=\"end\">&lt;/text&gt;&lt;script&gt;\u{fffd}</text>\
             <circle class=\"f0\" cx=\"0\" cy=\"0\" r=\"2\"><title>it&#39;s</title></circle></svg>"
        );
    }

    #[test]
    fn a_long_text_is_cut_to_its_width() {
        assert_eq!(fitted("short", 10.0, 100.0), "short");
        assert_eq!(fitted("a much longer text", 10.0, 56.0), "a much l…");
    }
}
