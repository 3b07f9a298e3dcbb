//! The plots of a study: rows as dots on a logarithmic axis, published figures next to ours; a heat map of
//! two axes; contrasts with their intervals.
//!
//! Names from a study are escaped before they become markup.

use super::words::{Line, shown};
use trueio_model::{Contrast, StudyMetric, StudyMode};

const OURS: &str = "#1F6FB2";
const THEIRS: &str = "#C4631A";
const GRID: &str = "#D9DDE2";
const QUIET: &str = "#6B727B";
const TEXT: &str = "#2A2F36";
/// With more rows than this, a heat map or nothing is drawn.
const ROWS_MAX: usize = 60;

/// Escapes text for markup.
fn escaped(text: &str) -> String {
    crate::text::clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A logarithmic axis over positive values.
struct LogAxis {
    low: f64,
    high: f64,
    left: f64,
    right: f64,
}

impl LogAxis {
    fn over(values: impl Iterator<Item = f64>, left: f64, right: f64) -> Option<Self> {
        let (low, high) = values
            .filter(|v| v.is_finite() && *v > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        (low <= high).then(|| Self { low: low.ln() - 0.15, high: high.ln() + 0.15, left, right })
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        self.left + share.clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Returns powers of ten, and 2 and 5 times them if there is room.
    fn marks(&self) -> Vec<f64> {
        let decades = (self.high - self.low) / std::f64::consts::LN_10;
        let steps: &[f64] = if decades > 4.0 {
            &[1.0]
        } else if decades > 1.5 {
            &[1.0, 3.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let from = (self.low / std::f64::consts::LN_10).floor() as i32;
        let to = (self.high / std::f64::consts::LN_10).ceil() as i32;
        let all = (from..=to).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|value| (self.low..=self.high).contains(&value.ln())).collect()
    }
}

/// Plots each line of one metric as a pair of dots: published and ours, ours with its interval. `None` if
/// there is nothing to draw, or too much.
pub(super) fn dots(title: &str, metric: StudyMetric, lines: &[&Line<'_>]) -> Option<String> {
    if lines.is_empty() || lines.len() > ROWS_MAX {
        return None;
    }
    const WIDTH: f64 = 760.0;
    const ROW: f64 = 18.0;
    let longest = lines.iter().map(|line| line.row.name.chars().count() + 8).max().unwrap_or(0);
    let left = (longest as f64 * 6.2).clamp(80.0, 330.0);
    let ours = lines.iter().filter_map(|line| line.here);
    let theirs = lines.iter().flat_map(|line| line.published.iter().map(|f| f.value));
    let all = ours.flat_map(|f| [f.value, f.interval.map_or(f.value, |i| i.0), f.interval.map_or(f.value, |i| i.1)]);
    let axis = LogAxis::over(all.chain(theirs), left + 10.0, WIDTH - 20.0)?;
    let height = 24.0 + ROW * lines.len() as f64 + 26.0;
    let bottom = height - 24.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\" font-size=\"11\">\
         <circle cx=\"{:.1}\" cy=\"10\" r=\"4\" fill=\"none\" stroke=\"{THEIRS}\" stroke-width=\"1.6\"/><text x=\"{:.1}\" y=\"14\" fill=\"{TEXT}\">published</text>\
         <circle cx=\"{:.1}\" cy=\"10\" r=\"4\" fill=\"{OURS}\"/><text x=\"{:.1}\" y=\"14\" fill=\"{TEXT}\">here, with its interval</text>",
        escaped(title),
        left + 14.0,
        left + 22.0,
        left + 94.0,
        left + 102.0
    );
    for mark in axis.marks() {
        let x = axis.x(mark);
        out.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"22\" y2=\"{bottom:.1}\" stroke=\"{GRID}\" stroke-width=\"0.8\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{QUIET}\">{}</text>",
            height - 8.0,
            escaped(&shown(metric, mark))
        ));
    }
    for (index, line) in lines.iter().enumerate() {
        let y = 24.0 + ROW * (index as f64 + 0.5);
        let op = line.op.map_or_else(String::new, |op| format!(" {op}"));
        out.push_str(&format!(
            "<text x=\"{left:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{TEXT}\">{}{op}</text>",
            y + 4.0,
            escaped(&line.row.name)
        ));
        if let Some(here) = line.here {
            if let Some((low, high)) = here.interval {
                out.push_str(&format!(
                    "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{OURS}\" stroke-width=\"2.4\"/>",
                    axis.x(low),
                    axis.x(high)
                ));
            }
            out.push_str(&format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{OURS}\"/>", axis.x(here.value)));
        } else {
            out.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#B3261E\">no figure: {}</text>",
                left + 14.0,
                y + 4.0,
                escaped(&line.here_text())
            ));
        }
        for figure in &line.published {
            let dash = if figure.impossible.is_some() { " stroke-dasharray=\"2 2\"" } else { "" };
            out.push_str(&format!(
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"none\" stroke=\"{THEIRS}\" stroke-width=\"1.6\"{dash}/>",
                axis.x(figure.value)
            ));
        }
    }
    out.push_str("</svg>");
    Some(out)
}

/// Plots a heat map of a mode with two axes: rows by columns, coloured by the logarithm of `metric`.
/// Published and measured figures have the colours of their own range, because the pattern is compared.
/// `None` if the mode has other axes.
pub(super) fn heat(mode: &StudyMode, metric: StudyMetric, lines: &[Line<'_>]) -> Option<String> {
    let axes: Vec<&str> = mode.rows.first()?.key.iter().map(|(axis, _)| axis.as_str()).collect();
    let [down, across] = axes[..] else { return None };
    let values = |axis: usize| {
        let mut found: Vec<&str> = Vec::new();
        for row in &mode.rows {
            let value = row.key.get(axis).map_or("", |(_, value)| value.as_str());
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    // The longer axis is vertical.
    let (rows, columns) = (values(1), values(0));
    if rows.len() * columns.len() < 12 {
        return None;
    }
    let at = |row: &str, column: &str| {
        lines.iter().find(|l| l.metric == metric && l.row.key[0].1 == column && l.row.key[1].1 == row)
    };
    let mut out = String::new();
    type Of = for<'a> fn(&Line<'a>) -> Option<f64>;
    let sides: [(&str, Of); 2] =
        [("published", |line| line.published.first().map(|f| f.value)), ("here", |line| line.here.map(|f| f.value))];
    for (title, of) in sides {
        let all = || lines.iter().filter(|l| l.metric == metric).filter_map(of).filter(|v| *v > 0.0);
        let (low, high) = all().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            continue;
        }
        out.push_str(&format!(
            "<h4>{title}, {}</h4><div class=\"wide\"><table class=\"heat\"><thead><tr><th>{} \\ {}</th>",
            super::words::metric_title(metric),
            escaped(across),
            escaped(down)
        ));
        columns.iter().for_each(|column| out.push_str(&format!("<th class=\"n\">{}</th>", escaped(column))));
        out.push_str("</tr></thead><tbody>");
        for row in &rows {
            out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escaped(row)));
            for column in &columns {
                match at(row, column).and_then(|line| Some((line, of(line)?))) {
                    Some((line, value)) => {
                        let share = if high > low { (value / low).ln() / (high / low).ln() } else { 1.0 };
                        let mark = if title == "here"
                            && line.row.durability.as_ref().is_some_and(|d| d.is == trueio_model::DurabilityKind::Shown)
                        {
                            "●"
                        } else {
                            ""
                        };
                        out.push_str(&format!(
                            "<td class=\"n\" style=\"background:rgba(31,111,178,{:.2})\">{}{mark}</td>",
                            0.05 + 0.6 * share.clamp(0.0, 1.0),
                            escaped(&shown(metric, value))
                        ));
                    }
                    None => out.push_str("<td class=\"n\">–</td>"),
                }
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        if title == "here" {
            out.push_str("<p class=\"quiet\">● reached stable storage, as seen at the disk.</p>");
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Formats `64k write: FDATASYNC / FSYNC`, truncated to its space.
fn name_of(contrast: &Contrast) -> String {
    let mut place: Vec<String> = contrast.place.iter().map(|(_, value)| value.clone()).collect();
    place.extend(contrast.op.map(|op| op.to_string()));
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
    let name = format!("{place}{} / {}", contrast.of, contrast.against);
    if name.chars().count() > 70 { name.chars().take(69).chain(['…']).collect() } else { name }
}

/// Plots contrasts: ours as an interval, published ones as rings, on one axis of ratios.
pub(super) fn contrasts(all: &[Contrast]) -> Option<String> {
    let drawn: Vec<&Contrast> = all.iter().filter(|c| c.ratio.is_some() || !c.published.is_empty()).collect();
    if drawn.is_empty() || drawn.len() > ROWS_MAX * 2 {
        return None;
    }
    const WIDTH: f64 = 860.0;
    const ROW: f64 = 18.0;
    let names: Vec<String> = drawn.iter().map(|contrast| name_of(contrast)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * 6.4).clamp(120.0, 450.0);
    let values = drawn.iter().flat_map(|c| {
        let ours = c.ratio.map_or([None; 3], |r| [Some(r.value), r.interval.map(|i| i.0), r.interval.map(|i| i.1)]);
        ours.into_iter().flatten().chain(c.published.iter().map(|p| p.value))
    });
    let axis = LogAxis::over(values.chain([0.9, 1.1]), left + 10.0, WIDTH - 20.0)?;
    let height = 8.0 + ROW * drawn.len() as f64 + 26.0;
    let bottom = height - 24.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Ratios, published and here\" font-size=\"11\">"
    );
    for mark in axis.marks().into_iter().filter(|m| (m.ln()).abs() > 1e-9).chain([1.0]) {
        let x = axis.x(mark);
        let (color, width) = if mark == 1.0 { (QUIET, 1.4) } else { (GRID, 0.8) };
        out.push_str(&format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"6\" y2=\"{bottom:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{QUIET}\">{}</text>",
            height - 8.0,
            trueio_model::units::format_ratio(mark)
        ));
    }
    for (index, contrast) in drawn.iter().enumerate() {
        let y = 8.0 + ROW * (index as f64 + 0.5);
        out.push_str(&format!(
            "<text x=\"{left:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{TEXT}\">{}</text>",
            y + 4.0,
            escaped(&names[index])
        ));
        if let Some(ratio) = contrast.ratio {
            if let Some((low, high)) = ratio.interval {
                out.push_str(&format!(
                    "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{OURS}\" stroke-width=\"2.4\"/>",
                    axis.x(low),
                    axis.x(high)
                ));
            }
            out.push_str(&format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{OURS}\"/>", axis.x(ratio.value)));
        }
        for published in &contrast.published {
            let dash = if published.is_impossible { " stroke-dasharray=\"2 2\"" } else { "" };
            out.push_str(&format!(
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"none\" stroke=\"{THEIRS}\" stroke-width=\"1.6\"{dash}/>",
                axis.x(published.value)
            ));
        }
    }
    out.push_str("</svg>");
    Some(out)
}
