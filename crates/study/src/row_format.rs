//! Prints a row in the format of the source, from a template of the study.
//!
//! `{block>10} | {target} | {method<38} | {bandwidth MiB/s>8} MB/s`: the value of an axis as the source writes it, the
//! target, or a figure in a unit with two decimals; `<` and `>` pad to a width. `{target}` is the word `file` for a
//! file of the study's own, as ronomon's benchmark prints it.

use crate::definition::{Axis, Definition, Unit};
use trueio_model::{Statistic, StudyFigure, StudyMetric};

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    Field { what: Field<'a>, width: usize, is_right: bool },
}

enum Field<'a> {
    Target,
    Axis(&'a str),
    Figure(StudyMetric, Unit),
}

/// Checks a template.
pub(crate) fn check(format: &str, axes: &[Axis]) -> Result<(), String> {
    for piece in pieces(format)? {
        if let Piece::Field { what: Field::Axis(name), .. } = piece
            && !axes.iter().any(|axis| axis.key == name)
        {
            return Err(format!("`row_format`: `{name}` is neither an axis nor a figure with its unit"));
        }
    }
    Ok(())
}

/// Fills a template. A missing figure is `-`.
pub(crate) fn render(
    format: &str,
    definition: &Definition,
    key: &[(String, String)],
    target: &str,
    figures: &[StudyFigure],
) -> String {
    let mut out = String::new();
    for piece in pieces(format).unwrap_or_default() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Field { what, width, is_right } => {
                let text = match what {
                    Field::Target => target.to_owned(),
                    Field::Axis(name) => as_published(definition, name, key),
                    Field::Figure(metric, unit) => figures
                        .iter()
                        .find(|f| f.metric == metric && f.op.is_none() && f.statistic == Statistic::Median)
                        .map_or_else(|| "-".to_owned(), |figure| format!("{:.2}", figure.value / unit.in_base())),
                };
                out.push_str(&if is_right { format!("{text:>width$}") } else { format!("{text:<width$}") });
            }
        }
    }
    out
}

/// Returns the value of an axis as the source writes it.
fn as_published(definition: &Definition, axis: &str, key: &[(String, String)]) -> String {
    let Some((_, name)) = key.iter().find(|(known, _)| known == axis) else { return "-".to_owned() };
    let axes = definition.mode.values().flat_map(|mode| &mode.axis).chain(&definition.axis);
    let mut values = axes.filter(|known| known.key == axis).flat_map(|known| &known.value);
    values.find(|value| value.name == *name).and_then(|value| value.published.clone()).unwrap_or_else(|| name.clone())
}

fn pieces(format: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        let end = from.find('}').ok_or("`row_format`: `{` without `}`")?;
        out.push(Piece::Text(before));
        let inside = &from[1..end];
        let (name, width, is_right) = match inside.split_once(['<', '>']) {
            Some((name, width)) => {
                let number = width.parse::<usize>().ok().filter(|n| *n <= 200);
                let number = number.ok_or_else(|| format!("`row_format`: `{width}` is not a width up to 200"))?;
                (name, number, inside.contains('>'))
            }
            None => (inside, 0, false),
        };
        let what = match name.split_once(' ') {
            Some((metric, unit)) => {
                let metric = StudyMetric::ALL.into_iter().find(|known| known.name() == metric);
                let unit = Unit::ALL.into_iter().find(|known| known.name() == unit);
                match metric.zip(unit).filter(|(metric, unit)| unit.fits(*metric)) {
                    Some((metric, unit)) => Field::Figure(metric, unit),
                    None => return Err(format!("`row_format`: `{name}` is not a figure with its unit")),
                }
            }
            None if name == "target" => Field::Target,
            None => Field::Axis(name),
        };
        out.push(Piece::Field { what, width, is_right });
        rest = &from[end + 1..];
    }
    out.push(Piece::Text(rest));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of `write-flags` are printed as benchmark.js prints its own: `padL(block, 10) | path | padR(names, 38) |
    /// padL(x.xx, 8) MB/s`. Method: the published figures, printed by our format, are the lines that were published.
    #[test]
    fn rows_of_write_flags_look_like_those_of_the_source() {
        let study = crate::embedded("write-flags").expect("it is there");
        let format = study.definition.row_format.clone().expect("the source has a format");
        let embedded = crate::EMBEDDED.iter().find(|one| one.name == "write-flags").expect("it is there");
        let lines: Vec<&str> = embedded.published.lines().skip(1).collect();
        let rows = crate::rows(&study, "faithful", false, &Default::default(), &[]).expect("rows");
        assert_eq!((lines.len(), rows.len()), (294, 294));
        let print = |row: &crate::Row, target: &str, value: f64| {
            let figure = StudyFigure {
                op: None,
                metric: StudyMetric::Bandwidth,
                statistic: Statistic::Median,
                value,
                interval: None,
                samples: 1,
            };
            render(&format, &study.definition, &row.key, target, &[figure])
        };
        for (row, line) in rows.iter().zip(lines) {
            let [block, method, rate] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let printed = print(row, "/dev/sda", rate.parse::<f64>().expect("a number") * 1_048_576.0);
            assert_eq!(printed, format!("{block:>10} | /dev/sda | {method:<38} | {rate:>8} MB/s"));
        }
        assert_eq!(
            print(&rows[0], "file", 2461.54 * 1_048_576.0),
            "      4096 | file | BUFFERED                               |  2461.54 MB/s"
        );
    }
}
