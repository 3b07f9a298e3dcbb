//! Documents as CSV: one line per figure, plain numbers in base units, a header first.
//!
//! Source: RFC 4180; lines end with a line feed. A text that a spreadsheet would execute as a formula gets an apostrophe
//! (OWASP, "CSV Injection").

use crate::answer::answer;
use crate::study::row_mark;
use crate::summary::summary;
use crate::text::clean;
use crate::trend::point_mark;
use std::borrow::Cow;
use trueio_model::{Comparison, Metric, RunRecord, StudyRecord, Trend};

/// Formats a record: one line per operation of each job.
pub(crate) fn record(record: &RunRecord) -> String {
    const HEADER: [&str; 19] = [
        "run_id",
        "started_at",
        "kind",
        "phase",
        "job",
        "op",
        "io_count",
        "error_count",
        "elapsed_ns",
        "bytes_per_s",
        "ios_per_s",
        "latency_ns_p50",
        "latency_ns_p99",
        "latency_ns_p999",
        "latency_ns_max",
        "cpu_ns_per_io",
        "verdict",
        "level",
        "finding",
    ];
    let mut table = Table::new(&HEADER);
    let judgements = answer(record, &[]).phases;
    for row in summary(record) {
        let phase = &record.phases[row.phase_index];
        let job = &phase.jobs[row.job_index];
        let [p50, p99, p999] = row.quantiles.map(|q| optional(q.map(|q| q.value_ns)));
        let judgement = &judgements[row.phase_index];
        let finding = judgement.objections.first().map(|found| format!("{}: {}", found.check, found.sentence));
        table.row(&[
            record.id.clone(),
            record.started_at.clone(),
            record.kind.clone(),
            phase.name.clone(),
            job.name.clone(),
            row.op.to_string(),
            optional(row.shown_io_count()),
            row.error_count.to_string(),
            job.elapsed_ns.to_string(),
            optional(row.bytes_per_s),
            optional(row.ios_per_s),
            p50,
            p99,
            p999,
            optional(row.latency_ns_max),
            optional(row.cpu_ns_per_io),
            judgement.verdict.word().to_owned(),
            phase.level.to_string(),
            finding.unwrap_or_default(),
        ]);
    }
    table.finish()
}

/// Formats a comparison: one line per answer.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let comparison = &*crate::comparison::shown(comparison);
    const HEADER: [&str; 12] = [
        "part",
        "first",
        "side",
        "metric",
        "first_value",
        "value",
        "ratio",
        "ratio_low",
        "ratio_high",
        "p",
        "pairs",
        "conclusion",
    ];
    let mut table = Table::new(&HEADER);
    for part in &comparison.parts {
        let value = |index: usize, metric: Metric| {
            let side = part.sides.get(index)?;
            side.figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value)
        };
        let name = |index: usize| part.sides.get(index).map_or_else(String::new, |side| side.name.clone());
        for answer in &part.answers {
            let ratio = answer.ratio;
            table.row(&[
                part.name.clone(),
                name(0),
                name(answer.side),
                answer.metric.to_string(),
                optional(value(0, answer.metric)),
                optional(value(answer.side, answer.metric)),
                optional(ratio.map(|r| r.estimate)),
                optional(ratio.map(|r| r.low)),
                optional(ratio.map(|r| r.high)),
                optional(ratio.and_then(|r| r.p)),
                optional(ratio.map(|r| r.pair_count)),
                // The word of the JSON.
                serde_json::to_value(answer.conclusion)
                    .ok()
                    .and_then(|word| Some(word.as_str()?.to_owned()))
                    .unwrap_or_default(),
            ]);
        }
    }
    table.finish()
}

/// Formats a study: one line per published or measured figure of a row.
pub(crate) fn study(study: &StudyRecord) -> String {
    const HEADER: [&str; 11] =
        ["study", "mode", "row", "op", "metric", "statistic", "source", "value", "low", "high", "verdict"];
    let mut table = Table::new(&HEADER);
    for mode in &study.modes {
        for row in &mode.rows {
            let head = |op: Option<trueio_model::OpKind>, metric: &str, statistic: &str, source: &str| {
                let op = op.map_or_else(String::new, |op| op.to_string());
                [&study.study, &mode.name, &row.name, &op, metric, statistic, source].map(str::to_owned).to_vec()
            };
            for figure in &row.published {
                let source = if figure.setting.is_empty() {
                    "published".to_owned()
                } else {
                    format!("published: {}", figure.setting)
                };
                let mut cells = head(figure.op, figure.metric.name(), figure.statistic.name(), &source);
                cells.extend([figure.value.to_string(), String::new(), String::new(), String::new()]);
                table.row(&cells);
            }
            for figure in &row.figures {
                let mut cells = head(figure.op, figure.metric.name(), figure.statistic.name(), "here");
                let verdict = row.verdict.map_or_else(String::new, |_| row_mark(row).word().to_owned());
                cells.extend([
                    figure.value.to_string(),
                    optional(figure.interval.map(|i| i.0)),
                    optional(figure.interval.map(|i| i.1)),
                    verdict,
                ]);
                table.row(&cells);
            }
        }
    }
    table.finish()
}

/// Formats a trend: one line per run of each series.
pub(crate) fn trend(trend: &Trend) -> String {
    const HEADER: [&str; 10] =
        ["device", "job", "op", "metric", "unit", "run_id", "started_at", "value", "verdict", "words"];
    let mut table = Table::new(&HEADER);
    for series in &trend.series {
        for point in &series.points {
            table.row(&[
                trend.device.label.clone(),
                series.job.clone(),
                series.op.clone(),
                series.metric.clone(),
                series.unit.clone(),
                point.run.run_id.clone(),
                point.run.started_at.clone(),
                point.value.to_string(),
                point.verdict.map_or_else(String::new, |_| point_mark(point).word().to_owned()),
                point.words.clone(),
            ]);
        }
    }
    table.finish()
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A table in memory.
struct Table(csv::Writer<Vec<u8>>);

impl Table {
    fn new(header: &[&str]) -> Self {
        let mut table = Self(csv::Writer::from_writer(Vec::new()));
        table.row(header);
        table
    }

    fn row(&mut self, cells: &[impl AsRef<str>]) {
        let cells = cells.iter().map(|text| spreadsheet_text(&clean(text.as_ref())).into_owned());
        self.0.write_record(cells).expect("memory can be written, and rows have the cells of the header");
    }

    fn finish(self) -> String {
        String::from_utf8(self.0.into_inner().expect("memory can be written")).expect("cells are UTF-8")
    }
}

/// Returns a text as a cell that no spreadsheet evaluates. Names of files, jobs and disks may come from strangers, and a
/// spreadsheet takes a text as a formula whose first visible character is one of a few signs, in any of their widths; an
/// apostrophe before it marks a text. A number stays one.
pub fn spreadsheet_text(text: &str) -> Cow<'_, str> {
    let is_invisible = |c: char| c.is_whitespace() || c.is_control() || is_ignorable(c);
    let visible = text.trim_start_matches(is_invisible);
    let has_sign = visible.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫', '−']);
    let is_formula = has_sign || text.starts_with(['\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Returns true for characters that have no shape, or that of a blank (Unicode 16, `Default_Ignorable_Code_Point`; the empty pattern of Braille).
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_not_executed() {
        let table = Table::new(&["plain", "a, \"b\"", "=1+1", "-5.5", "-x"]);
        assert_eq!(table.finish(), "plain,\"a, \"\"b\"\"\",'=1+1,-5.5,'-x\n");
    }

    /// Goal: blanks, invisible characters and other widths hide no sign from the check that a spreadsheet finds.
    #[test]
    fn a_sign_is_found_behind_blanks_and_in_every_width() {
        for sign in ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−"] {
            for before in [
                "\u{180e}",
                "\u{34f}",
                "\u{fe0f}",
                "\u{e0020}",
                "\u{115f}",
                "\u{3164}",
                "\u{2800}",
                "",
                " ",
                "\u{a0}",
                "\u{3000}",
                "\t",
                "\u{200b}",
                "\u{feff} ",
                "\r\n",
                "\u{ad}",
            ] {
                let text = format!("{before}{sign}A1");
                assert_eq!(spreadsheet_text(&text), format!("'{text}"), "{text:?}");
            }
        }
        for text in ["", " ", "a=b", " a", "1-2", "-1.5", "é", "⁼A1"] {
            assert_eq!(spreadsheet_text(text), text);
        }
    }
}
