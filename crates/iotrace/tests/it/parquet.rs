//! Files that are written here are read by the crate `parquet`, and the other way round; other and damaged ones are refused.

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::types::Type;
use proptest::prelude::*;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use trueio_engine::TracedIo;
use trueio_iotrace::parquet::{Column, FileReader, FileWriter, Kind, ParquetError, Value, chunk_of};
use trueio_iotrace::{COLUMNS, TraceError, TraceReader, TraceRow, TraceWriter, TracedJob};
use trueio_model::{OpKind, mix64};

/// What the kept trace has: names of jobs, rows, the sum of each column.
const KEPT: (&[&str], u64, [i128; 10]) =
    (&["mixed", "seq"], 131, [3_440_336_620, 244, 76, 0, 16_482_304, 786_432, 0, 19_039_080, 3_421_297_472, 0]);

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("it is written");
    file
}

fn io(number: u64) -> TracedIo {
    let random = mix64(number);
    TracedIo {
        op: if random.is_multiple_of(3) { OpKind::Write } else { OpKind::Read },
        file: (random % 2) as u16,
        length: 4096,
        error: if number == 7 { 5 } else { 0 },
        offset: (random >> 8) % (1 << 28) * 4096,
        end_ns: 5_000_000_000 + number * 10_000 + random % 1_000,
        slat_ns: random % 200,
        clat_ns: 90_000 + (random >> 20) % 20_000,
        intended_ns: u64::MAX - number,
    }
}

/// The numbers of an I/O in the order of the columns.
fn numbers(number: u64) -> [i64; 10] {
    let io = io(number);
    let op = i64::from(io.op == OpKind::Write);
    let [end, offset, slat, clat, intended] =
        [io.end_ns, io.offset, io.slat_ns, io.clat_ns, io.intended_ns].map(|number| number as i64);
    [end, 1, op, io.file.into(), offset, io.length.into(), slat, clat, intended, io.error.into()]
}

fn numbers_of(row: &TraceRow) -> [i64; 10] {
    let [end, offset, slat, clat, intended] =
        [row.time_ns, row.offset, row.slat_ns, row.clat_ns, row.intended_ns].map(|number| number as i64);
    let op = i64::from(row.op == OpKind::Write);
    [end, row.worker.into(), op, row.file.into(), offset, row.length.into(), slat, clat, intended, row.error.into()]
}

/// A trace of this many I/Os.
fn trace(rows: u64) -> File {
    let file = tempfile::tempfile().expect("a file");
    let files = vec!["/dev/x".to_owned(), "/dev/y".to_owned()];
    let jobs = vec![TracedJob { name: "a".to_owned(), first_worker: 1, workers: 1, files }];
    let (writer, channel) = TraceWriter::start(file.try_clone().expect("the file"), jobs).expect("it starts");
    let of_worker = channel.of_worker(1).channel;
    drop(channel);
    let numbers: Vec<u64> = (0..rows).collect();
    numbers.chunks(4_000).for_each(|chunk| of_worker.send(chunk.iter().map(|number| io(*number)).collect()));
    drop(of_worker);
    assert_eq!(writer.finish().expect("it is written").rows, rows);
    file
}

fn bytes_of(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().expect("a length").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("it is read");
    bytes
}

fn long(field: &Field) -> i64 {
    match field {
        Field::Int(number) => i64::from(*number),
        Field::Long(number) => *number,
        other => panic!("{other:?}"),
    }
}

/// Goal: the crate reads each number of a trace of three row groups, and of one without a row.
#[test]
fn a_trace_is_read_by_the_crate_parquet() {
    for (rows, groups) in [(0, 0), (1, 1), (2 * 131_072 + 1_234, 3)] {
        let reader = SerializedFileReader::new(trace(rows)).expect("a Parquet file");
        let file = reader.metadata().file_metadata();
        assert_eq!((file.num_rows(), reader.num_row_groups()), (rows as i64, groups));
        assert_eq!(file.schema().name(), "trueio_trace");
        assert!(file.created_by().expect("a program").starts_with("trueio version "));
        assert_eq!(file.key_value_metadata().expect("pairs")[0].key, "trueio.trace");
        let mut count = 0;
        for (number, row) in reader.get_row_iter(None).expect("rows").enumerate() {
            let row = row.expect("a row");
            let read: Vec<(&str, i64)> =
                row.get_column_iter().map(|(name, field)| (name.as_str(), long(field))).collect();
            let expected: Vec<(&str, i64)> =
                COLUMNS.iter().map(|(name, _)| *name).zip(numbers(number as u64)).collect();
            assert_eq!(read, expected, "row {number}");
            count += 1;
        }
        assert_eq!(count, rows);
    }
}

/// Goal: the crate reads optional values of each type: none at all, all absent, all the same, repeated ones (a dictionary), all different,
/// of any number of bits of a dictionary, over two groups. Method: columns of lengths at which runs and packed groups begin and end.
#[test]
fn optional_values_are_read_by_the_crate_parquet() {
    let text = |number: u64| format!("text {number} ü");
    let columns = [("text", Kind::Text), ("integer", Kind::Int64), ("real", Kind::Double)];
    let columns = columns.map(|(name, kind)| Column { name, kind, is_optional: true }).to_vec();
    for rows in [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1_000] {
        for distinct in [1, 2, 3, 5, 9, 300, u64::MAX] {
            for present in [0, 1, 2, 40, 100] {
                // Runs of 12, so that both ways of levels and indices take turns.
                let number =
                    |row: u64| (mix64(row / 12) % 100 < present).then(|| mix64(row / 9 * 9 + row % 3) % distinct);
                let texts: Vec<Option<String>> = (0..rows).map(|row| number(row).map(text)).collect();
                let mut file = FileWriter::new(Vec::new(), "table", columns.clone()).expect("it begins");
                for _ in 0..2 {
                    let chunks = [
                        chunk_of(texts.iter().map(|text| text.as_deref().map(Value::Text))),
                        chunk_of((0..rows).map(|row| number(row).map(|number| Value::Integer(number as i64)))),
                        chunk_of((0..rows).map(|row| number(row).map(|number| Value::Real(number as f64 / 3.0)))),
                    ]
                    .map(|chunk| chunk.expect("a page"));
                    file.write_group(chunks.iter()).expect("it is written");
                }
                let bytes = file.finish(&[]).expect("it ends");
                let reader = SerializedFileReader::new(file_of(&bytes)).expect("a Parquet file");
                let schema = reader.metadata().file_metadata().schema_descr();
                assert_eq!(schema.column(0).logical_type_ref(), Some(&LogicalType::String));
                let read: Vec<Vec<Field>> = reader
                    .get_row_iter(None)
                    .expect("rows")
                    .map(|row| row.expect("a row").get_column_iter().map(|(_, field)| field.clone()).collect())
                    .collect();
                let expected: Vec<Vec<Field>> = (0..2 * rows)
                    .map(|row| match number(row % rows) {
                        None => vec![Field::Null; 3],
                        Some(number) => vec![
                            Field::Str(text(number)),
                            Field::Long(number as i64),
                            Field::Double(number as f64 / 3.0),
                        ],
                    })
                    .collect();
                assert_eq!(read, expected, "{rows} rows, {distinct} values, {present} % present");
            }
        }
    }
}

/// Goal: repeated texts are written once. Method: the length of a file with 10,000 texts of 100 bytes, of which 4 differ.
#[test]
fn repeated_texts_are_written_once() {
    let texts: Vec<String> = (0..4).map(|number| number.to_string().repeat(100)).collect();
    let column = Column { name: "text", kind: Kind::Text, is_optional: true };
    let mut file = FileWriter::new(Vec::new(), "table", vec![column]).expect("it begins");
    let chunk = chunk_of((0..10_000).map(|row| Some(Value::Text(&texts[mix64(row) as usize % 4])))).expect("a page");
    file.write_group([chunk].iter()).expect("it is written");
    let bytes = file.finish(&[]).expect("it ends").len();
    // Two bits for each of them.
    assert!((2_500..3_500).contains(&bytes), "{bytes}");
}

/// What trueio of 2026-11-24 set, which wrote traces with the crate.
fn as_trueio_did() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::None)
}

/// Writes a trace of some rows with the crate, in groups of `group`.
fn written_by_the_crate(rows: u64, group: u64, properties: WriterPropertiesBuilder, repetition: Repetition) -> File {
    let fields = COLUMNS.iter().map(|&(name, is_wide)| {
        let physical = if is_wide { Physical::INT64 } else { Physical::INT32 };
        Arc::new(Type::primitive_type_builder(name, physical).with_repetition(repetition).build().expect("a column"))
    });
    let schema = Type::group_type_builder("trueio_trace").with_fields(fields.collect()).build().expect("a schema");
    let mut file = tempfile::tempfile().expect("a file");
    let out = file.try_clone().expect("the file");
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build())).expect("it begins");
    let json = r#"{"version":1,"jobs":[],"dropped":[]}"#;
    writer.append_key_value_metadata(KeyValue::new("trueio.trace".to_owned(), json.to_owned()));
    let levels = (repetition == Repetition::OPTIONAL).then(|| vec![1; group as usize]);
    for begin in (0..rows).step_by(group as usize) {
        let rows: Vec<[i64; 10]> = (begin..rows.min(begin + group)).map(numbers).collect();
        let mut next = writer.next_row_group().expect("a group");
        let levels = levels.as_ref().map(|levels| &levels[..rows.len()]);
        for (index, (_, is_wide)) in COLUMNS.iter().enumerate() {
            let mut column = next.next_column().expect("a column").expect("a column");
            if *is_wide {
                let values: Vec<i64> = rows.iter().map(|row| row[index]).collect();
                column.typed::<Int64Type>().write_batch(&values, levels, None).expect("values");
            } else {
                let values: Vec<i32> = rows.iter().map(|row| row[index] as i32).collect();
                column.typed::<Int32Type>().write_batch(&values, levels, None).expect("values");
            }
            column.close().expect("its end");
        }
        next.close().expect("its end");
    }
    writer.close().expect("it ends");
    file.rewind().expect("a file");
    file
}

/// Goal: traces that trueio wrote with the crate are read: several pages and groups, with and without statistics, and short blocks of any
/// length.
#[test]
fn a_trace_of_the_crate_parquet_is_read() {
    let plain = |rows, group| written_by_the_crate(rows, group, as_trueio_did(), Repetition::REQUIRED);
    let pages = as_trueio_did().set_data_page_row_count_limit(300).set_write_batch_size(100);
    let checked = as_trueio_did().set_statistics_enabled(EnabledStatistics::Page);
    let mut files = vec![
        (3_000, plain(3_000, 1_000)),
        (0, plain(0, 1)),
        (2_500, written_by_the_crate(2_500, 2_000, pages, Repetition::REQUIRED)),
        (700, written_by_the_crate(700, 400, checked, Repetition::REQUIRED)),
    ];
    files.extend((1..300).step_by(7).map(|rows| (rows, plain(rows, rows))));
    for (rows, file) in files {
        let reader = TraceReader::open(file).expect("a trace");
        assert_eq!(reader.row_count(), rows);
        let mut number = 0;
        let check = |row: TraceRow| {
            assert_eq!(numbers_of(&row), numbers(number), "row {number} of {rows}");
            number += 1;
        };
        reader.for_each(check).expect("all groups are read");
        assert_eq!(number, rows);
    }
}

/// Goal: a trace that trueio wrote before it had a writer of its own is read. Method: a kept file of two jobs, one with two workers
/// and sync calls, whose sums DuckDB gave.
#[test]
fn a_kept_trace_of_an_earlier_version_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/2026-11-27.parquet");
    let reader = TraceReader::open(File::open(path).expect("the kept file")).expect("a trace");
    let names: Vec<&str> = reader.header().jobs.iter().map(|job| job.name.as_str()).collect();
    let mut sums = [0_i128; 10];
    reader
        .for_each(|row| numbers_of(&row).iter().zip(&mut sums).for_each(|(number, sum)| *sum += i128::from(*number)))
        .expect("all groups are read");
    assert_eq!((&names[..], reader.row_count(), sums), KEPT);
}

/// The sentence of a refusal.
fn refusal(file: File) -> String {
    let reader = match TraceReader::open(file) {
        Ok(reader) => reader,
        Err(error) => return error.to_string(),
    };
    reader.for_each(drop).expect_err("it is refused").to_string()
}

/// Goal: what another program wrote in another way is refused with the column, what it has, and what to do.
#[test]
fn other_encodings_are_refused_by_name() {
    let written = |properties, repetition| written_by_the_crate(100, 100, properties, repetition);
    let required = |properties| refusal(written(properties, Repetition::REQUIRED));
    let sentence = |what: &str| {
        format!(
            "column `time_ns` has {what}; only required, uncompressed integers with the encoding DELTA_BINARY_PACKED are read, as in \
             every trace of trueio: use the file that `trueio run --trace` wrote"
        )
    };
    assert_eq!(required(as_trueio_did().set_encoding(Encoding::PLAIN)), sentence("the encoding PLAIN"));
    let split = as_trueio_did().set_encoding(Encoding::BYTE_STREAM_SPLIT);
    assert_eq!(required(split), sentence("the encoding BYTE_STREAM_SPLIT"));
    let dictionary = as_trueio_did().set_dictionary_enabled(true);
    assert_eq!(required(dictionary), sentence("the encoding RLE_DICTIONARY"));
    let second = as_trueio_did().set_writer_version(WriterVersion::PARQUET_2_0);
    assert_eq!(required(second), sentence("pages of version 2"));
    assert_eq!(refusal(written(as_trueio_did(), Repetition::OPTIONAL)), sentence("optional values"));
    // The number of the compression follows the name of the column in the description: 1 is SNAPPY, as a signed number 2.
    let mut bytes = bytes_of(&trace(100));
    let place = bytes.windows(10).position(|window| window == b"time_ns\x15\0\x16").expect("its place");
    bytes[place + 8] = 2;
    assert_eq!(refusal(file_of(&bytes)), sentence("the compression SNAPPY"));
    bytes[place + 8] = 100;
    assert_eq!(refusal(file_of(&bytes)), sentence("the unknown compression 50"));
}

/// Goal: a file of another program is no trace, whatever it has; a table of texts here.
#[test]
fn another_parquet_file_is_no_trace() {
    let column = Column { name: "text", kind: Kind::Text, is_optional: true };
    let mut file = FileWriter::new(Vec::new(), "table", vec![column]).expect("it begins");
    file.write_group([chunk_of([Some(Value::Text("a")), None].into_iter()).expect("a page")].iter()).expect("a group");
    let file = file_of(&file.finish(&[("key", "value")]).expect("it ends"));
    let error = TraceReader::open(file.try_clone().expect("the file")).expect_err("it is refused");
    assert_eq!(error.to_string(), "it is not a trace of trueio: its metadata has no `trueio.trace`");
    let reader = FileReader::open(file).expect("a Parquet file");
    assert_eq!((reader.value_of("key"), reader.row_count(), reader.group_count()), (Some("value"), 2, 1));
    assert!(matches!(reader.integers(0, 0), Err(ParquetError::Unsupported { what, .. }) if what == "optional values"));
}

/// Reads all of a file that may be damaged; returns how many rows were read, if it was not refused.
fn rows_of(file: File) -> Result<u64, TraceError> {
    let reader = TraceReader::open(file)?;
    let mut count = 0;
    reader.for_each(|_| count += 1)?;
    assert_eq!(count, reader.row_count());
    Ok(count)
}

/// Goal: no part of a trace is taken for a trace.
#[test]
fn a_trace_that_ends_early_is_refused_at_each_length() {
    let file = trace(300);
    for length in (0..file.metadata().expect("a length").len()).rev() {
        file.set_len(length).expect("shorter");
        let error = rows_of(file.try_clone().expect("the file")).expect_err("it is incomplete");
        assert!(matches!(error, TraceError::Parquet(ParquetError::NotParquet)), "{length} bytes: {error}");
    }
}

/// Goal: a damaged bit ends nothing but the reading: no panic, no row more than the file can have. Method: each bit of a trace of
/// two pages' worth of blocks, one after the other.
#[test]
fn each_damaged_bit_is_refused_or_read() {
    let file = trace(150);
    let bytes = bytes_of(&file);
    let mut refused = 0;
    for (at, byte) in bytes.iter().enumerate() {
        for bit in 0..8 {
            file.write_all_at(&[byte ^ 1 << bit], at as u64).expect("it is written");
            match rows_of(file.try_clone().expect("the file")) {
                Ok(count) => assert_eq!(count, 150, "bit {bit} of byte {at}"),
                Err(_) => refused += 1,
            }
        }
        file.write_all_at(&[*byte], at as u64).expect("it is written");
    }
    // Damaged values cannot be recognised, and some fields are not read; all others are refused.
    assert!((bytes.len()..6 * bytes.len()).contains(&refused), "{refused} of {} bits", 8 * bytes.len());
}

/// Goal: forged numbers of rows, bytes and elements take no memory that the file has not. Method: each number of the description that
/// is 150 becomes a huge one of as many bytes more; the length of the description is corrected.
#[test]
fn forged_numbers_of_rows_are_refused() {
    let bytes = bytes_of(&trace(150));
    let (body, tail) = bytes.split_at(bytes.len() - 8);
    let length = u32::from_le_bytes(tail[..4].try_into().expect("four bytes"));
    let begin = body.len() - length as usize;
    // 150 as a signed number is 300: these two bytes.
    let places: Vec<usize> = (begin..body.len() - 1).filter(|at| body[*at..*at + 2] == [0xac, 0x02]).collect();
    assert!(places.len() >= 12, "ten columns, the group and the file: {places:?}");
    let forge = |places: &[usize], number: u64| {
        let mut forged = body[..begin].to_vec();
        let mut from = begin;
        for place in places {
            forged.extend_from_slice(&body[from..*place]);
            let mut number = number << 1;
            while number >= 0x80 {
                forged.push(number as u8 | 0x80);
                number >>= 7;
            }
            forged.push(number as u8);
            from = place + 2;
        }
        forged.extend_from_slice(&body[from..]);
        let length = (forged.len() - begin) as u32;
        forged.extend_from_slice(&length.to_le_bytes());
        forged.extend_from_slice(b"PAR1");
        rows_of(file_of(&forged))
    };
    assert_eq!(forge(&places, 150).expect("nothing is forged"), 150);
    for number in [151, 149, 1 << 20, (1 << 20) + 1, 1 << 40, i64::MAX as u64] {
        forge(&places, number).expect_err("it is refused");
        places.iter().for_each(|place| drop(forge(&[*place], number).expect_err("it is refused")));
    }
}

proptest! {
    /// Bytes of a trace that are overwritten by others, mostly in the description, end in a refusal or in rows.
    #[test]
    fn overwritten_traces_are_refused_or_read(changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6)) {
        let mut bytes = trace_bytes().to_vec();
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[length - 1 - usize::from(at) % length] = byte;
        }
        let _ = rows_of(file_of(&bytes));
    }

    /// Any bytes as a description.
    #[test]
    fn any_description_is_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let length = bytes.len() as u32;
        bytes.splice(0..0, *b"PAR1");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(b"PAR1");
        prop_assert!(rows_of(file_of(&bytes)).is_err());
    }
}

fn trace_bytes() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| bytes_of(&trace(150)))
}
