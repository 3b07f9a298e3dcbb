//! The history as a table for other programs: one row per operation of a job of a run.
//!
//! Columns are defined once, in [`COLUMNS`], for CSV and Parquet. Every row contains its verdict, its
//! evidence level and the reasons, so a contradicted figure is never exported without them.

use super::figures::Figure;
use crate::failure::Failure;
use trueio_iotrace::parquet::{self, FileWriter, Value};
use trueio_report::spreadsheet_text;
use trueio_store::{Device, Entry, Source};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Real,
}

/// A value; absent if unknown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Text(Option<String>),
    Integer(Option<i64>),
    Real(Option<f64>),
}

impl Cell {
    fn value(&self) -> Option<Value<'_>> {
        match self {
            Self::Text(text) => text.as_deref().map(Value::Text),
            Self::Integer(number) => number.map(Value::Integer),
            Self::Real(number) => number.map(Value::Real),
        }
    }
}

/// The columns: name and type.
pub(super) const COLUMNS: &[(&str, Kind)] = &[
    ("run_id", Kind::Text),
    ("started_at", Kind::Text),
    ("started_unix_s", Kind::Integer),
    ("source", Kind::Text),
    ("kind", Kind::Text),
    ("outcome", Kind::Text),
    ("device", Kind::Text),
    ("device_known_by", Kind::Text),
    ("target", Kind::Text),
    ("disk", Kind::Text),
    ("tags", Kind::Text),
    ("note", Kind::Text),
    ("phase", Kind::Text),
    ("job", Kind::Text),
    ("op", Kind::Text),
    ("load", Kind::Text),
    ("io_count", Kind::Integer),
    ("error_count", Kind::Integer),
    ("elapsed_ns", Kind::Integer),
    ("bytes_per_s", Kind::Real),
    ("ios_per_s", Kind::Real),
    ("latency", Kind::Text),
    ("latency_ns_p50", Kind::Integer),
    ("latency_ns_p99", Kind::Integer),
    ("latency_ns_p999", Kind::Integer),
    ("latency_ns_max", Kind::Integer),
    ("cpu_ns_per_io", Kind::Real),
    ("verdict", Kind::Text),
    ("words", Kind::Text),
    ("evidence_level", Kind::Text),
    ("reasons", Kind::Text),
];

/// Builds a row, in the order of [`COLUMNS`].
pub(super) fn row(entry: &Entry, devices: &[&Device], figure: &Figure) -> Vec<Cell> {
    let text = |text: &str| Cell::Text((!text.is_empty()).then(|| text.to_owned()));
    let integer = |n: Option<u64>| Cell::Integer(n.map(|n| i64::try_from(n).unwrap_or(i64::MAX)));
    let joined = |of: &dyn Fn(&Device) -> String| {
        let texts: Vec<String> = devices.iter().map(|device| of(device)).collect();
        text(&texts.join(" + "))
    };
    vec![
        text(&entry.id),
        text(&entry.started_at),
        integer(Some(entry.started_unix_s)),
        text(entry.source.name()),
        text(&entry.kind),
        text(&entry.outcome),
        joined(&|device| device.label.clone()),
        joined(&super::listing::known_by),
        text(&entry.target),
        text(&entry.disk),
        text(&entry.tags.join(" ")),
        text(&entry.note),
        text(&figure.phase),
        text(&figure.job),
        text(&figure.op),
        text(&figure.load),
        integer(figure.io_count),
        integer(figure.error_count),
        integer(figure.elapsed_ns),
        Cell::Real(figure.bytes_per_s),
        Cell::Real(figure.ios_per_s),
        Cell::Text(figure.latency.clone()),
        integer(figure.latency_ns_p50),
        integer(figure.latency_ns_p99),
        integer(figure.latency_ns_p999),
        integer(figure.latency_ns_max),
        Cell::Real(figure.cpu_ns_per_io),
        Cell::Text(match entry.source {
            Source::Trueio => figure.mark().map(|mark| mark.word().to_owned()),
            Source::Fio | Source::Powercut => None,
        }),
        text(&figure.words),
        text(&figure.level),
        text(&figure.reasons),
    ]
}

/// Formats rows as CSV (RFC 4180), with a heading. An unknown value is an empty field.
pub(super) fn csv(rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::failed("the CSV could not be created", error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|(name, _)| *name)).map_err(|e| failed(&e))?;
    for row in rows {
        let fields = row.iter().map(|cell| match cell {
            Cell::Text(text) => spreadsheet_text(text.as_deref().unwrap_or_default()).into_owned(),
            Cell::Integer(number) => number.map_or_else(String::new, |n| n.to_string()),
            Cell::Real(number) => number.map_or_else(String::new, |n| n.to_string()),
        });
        writer.write_record(fields).map_err(|e| failed(&e))?;
    }
    writer.into_inner().map_err(|e| failed(e.error()))
}

/// Rows of a group of a Parquet file: a page has all of a column, and is smaller than 2 GiB.
const GROUP_ROWS: usize = 65_536;

/// Formats rows as a Parquet file: every column optional, text as UTF-8, integers signed with 64 bits.
pub(super) fn parquet(rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    let column = |&(name, kind)| {
        let kind = match kind {
            Kind::Text => parquet::Kind::Text,
            Kind::Integer => parquet::Kind::Int64,
            Kind::Real => parquet::Kind::Double,
        };
        parquet::Column { name, kind, is_optional: true }
    };
    let write = || -> std::io::Result<Vec<u8>> {
        let mut file = FileWriter::new(Vec::new(), "trueio_history", COLUMNS.iter().map(column).collect())?;
        for rows in rows.chunks(GROUP_ROWS) {
            let chunk = |index: usize| parquet::chunk_of(rows.iter().map(|row| row[index].value()));
            let chunks = (0..COLUMNS.len()).map(chunk).collect::<Result<Vec<_>, _>>()?;
            file.write_group(chunks.iter())?;
        }
        file.finish(&[])
    };
    write().map_err(|e| Failure::failed("the Parquet file could not be created", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a table that is opened in a spreadsheet computes nothing from a name. Figures stay figures.
    #[test]
    fn a_cell_that_begins_like_a_formula_is_a_text() {
        let cell = |text: &str| Cell::Text(Some(text.to_owned()));
        let formula = "=HYPERLINK(\"http://example.com\";\"a\")";
        let mut row =
            vec![cell(formula), cell("-1+1"), cell("@SUM(A1)"), cell("+a"), cell("a=b"), Cell::Real(Some(-1.5))];
        row.resize(COLUMNS.len(), Cell::Integer(None));
        let table = String::from_utf8(csv(&[row]).expect("a table")).expect("UTF-8");
        let row = table.lines().nth(1).expect("a row");
        assert_eq!(
            row.trim_end_matches(','),
            r#""'=HYPERLINK(""http://example.com"";""a"")",'-1+1,'@SUM(A1),'+a,a=b,-1.5"#
        );
    }
}
