//! The history as a table for other programs: one row an operation of a job of a run.
//!
//! Columns are defined once, in [`COLUMNS`], for CSV and Parquet. Every row carries its verdict, its
//! evidence level and the reasons, so that a contradicted figure never leaves without them.

use super::figures::Figure;
use crate::failure::Failure;
use trueio_store::{Device, Entry, Source};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Real,
}

/// A value; absent where nothing is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Text(Option<String>),
    Integer(Option<i64>),
    Real(Option<f64>),
}

/// The columns: name, what it holds.
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
    ("evidence_level", Kind::Text),
    ("reasons", Kind::Text),
];

/// A row, in the order of [`COLUMNS`].
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
        text(&figure.level),
        text(&figure.reasons),
    ]
}

/// Rows as CSV (RFC 4180), with a heading. What is not known is an empty field.
pub(super) fn csv(rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::failed("the CSV could not be made", error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|(name, _)| *name)).map_err(|e| failed(&e))?;
    for row in rows {
        let fields = row.iter().map(|cell| match cell {
            Cell::Text(text) => text.clone().unwrap_or_default(),
            Cell::Integer(number) => number.map_or_else(String::new, |n| n.to_string()),
            Cell::Real(number) => number.map_or_else(String::new, |n| n.to_string()),
        });
        writer.write_record(fields).map_err(|e| failed(&e))?;
    }
    writer.into_inner().map_err(|e| failed(e.error()))
}

/// Rows as a Parquet file: every column optional, text as UTF-8, integers signed and of 64 bits.
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
    write().map_err(|e| Failure::failed("the Parquet file could not be made", &e))
}

/// Why there is none.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_rows: &[Vec<Cell>]) -> Result<Vec<u8>, Failure> {
    Err(Failure::refused(
        "this trueio was built without Parquet\n\nhint: export as .csv, or build it with `--features parquet`",
    ))
}
