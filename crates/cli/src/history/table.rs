//! The history as a table for other programs: one row per operation of a job of a run.
//!
//! Columns are defined once, in [`COLUMNS`], for CSV and Parquet. Every row contains its verdict, its
//! evidence level and the reasons, so a contradicted figure is never exported without them.

use super::figures::Figure;
use crate::failure::Failure;
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
        integer(Some(figure.io_count)),
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
            Source::Trueio => figure.verdict.map(|verdict| verdict.to_string()),
            Source::Fio => None,
        }),
        text(&figure.words),
        text(&figure.level),
        text(&figure.reasons),
    ]
}

/// Formats rows as CSV (RFC 4180), with a heading. An unknown value is an empty field.
pub(super) fn csv(rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::failed("the CSV could not be created", error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|(name, _)| *name)).map_err(|e| failed(&e))?;
    for row in rows {
        let fields = row.iter().map(|cell| match cell {
            Cell::Text(text) => as_text(text.as_deref().unwrap_or_default()),
            Cell::Integer(number) => number.map_or_else(String::new, |n| n.to_string()),
            Cell::Real(number) => number.map_or_else(String::new, |n| n.to_string()),
        });
        writer.write_record(fields).map_err(|e| failed(&e))?;
    }
    writer.into_inner().map_err(|e| failed(e.error()))
}

/// Returns a text as a cell that no spreadsheet evaluates. Names of files, jobs and disks may come from strangers, and a
/// spreadsheet takes a cell that begins with one of these characters as a formula; an apostrophe before it marks a text.
fn as_text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

/// Formats rows as a Parquet file: every column optional, text as UTF-8, integers signed with 64 bits.
#[cfg(feature = "parquet")]
pub(super) fn parquet(rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::sync::Arc;

    let write = || -> Result<Vec<u8>, parquet::errors::ParquetError> {
        let field = |&(name, kind): &(&str, Kind)| {
            let (physical, logical) = match kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Integer => (Physical::INT64, None),
                Kind::Real => (Physical::DOUBLE, None),
            };
            let column = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical);
            column.build().map(Arc::new)
        };
        let fields = COLUMNS.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("trueio_history").with_fields(fields).build()?);
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default()))?;
        let mut group = file.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            // A value is present at definition level 1, absent at 0; absent ones are not written.
            let mut levels = Vec::with_capacity(rows.len());
            let (mut texts, mut integers, mut reals) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                levels.push(
                    match &row[index] {
                        Cell::Text(value) => value.as_ref().map(|v| texts.push(ByteArray::from(v.as_str()))),
                        Cell::Integer(value) => value.map(|v| integers.push(v)),
                        Cell::Real(value) => value.map(|v| reals.push(v)),
                    }
                    .map_or(0, |()| 1),
                );
            }
            match COLUMNS[index].1 {
                Kind::Text => column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?,
                Kind::Integer => column.typed::<Int64Type>().write_batch(&integers, Some(&levels), None)?,
                Kind::Real => column.typed::<DoubleType>().write_batch(&reals, Some(&levels), None)?,
            };
            column.close()?;
            index += 1;
        }
        group.close()?;
        file.into_inner()
    };
    write().map_err(|e| Failure::failed("the Parquet file could not be created", &e))
}

/// Refuses Parquet in a build without it.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    Err(Failure::refused(
        "this trueio was built without Parquet\n\nhint: export as .csv, or build it with `--features parquet`",
    ))
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
