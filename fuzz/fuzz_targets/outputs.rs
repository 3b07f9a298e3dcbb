//! A record of any content in every output: terminal, page, JSON, HdrHistogram log, rows, and all formats of fio.
//!
//! Bytes of JSON are seldom a record. So the input is a list of changes to a kept record: three bytes each, which number
//! (two bytes) or text of it becomes which extreme value; or a record, if it begins with `{`. What is read is rendered
//! without a panic, JSON stays JSON, no figure is NaN, and no control character of the record reaches a terminal.
//!
//! Limit: CSV and Parquet of the history are made by the program itself, which has no library.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::LazyLock;
use trueio_fio::outputs::{FioOutput, Format, ReportedSoFar, interval_lines, render};
use trueio_model::RunRecord;
use trueio_report::{Style, hdr_log, html, json, parse, summary, terminal};

/// Elements that are kept of each list, so that a change seldom hits one of a thousand buckets.
const ELEMENTS_MAX: usize = 4;

/// The kept record, with short lists.
static RECORD: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../crates/store/tests/records/v1.json");
    let mut record = serde_json::from_str(text).expect("it is JSON");
    shorten(&mut record);
    record
});

static EXTREMES: LazyLock<[Value; 16]> = LazyLock::new(|| {
    let number = |text: &str| serde_json::from_str(text).expect("it is a number");
    [
        Value::from(0),
        Value::from(1),
        Value::from(1000),
        Value::from(u32::MAX),
        Value::from(1_u64 << 53),
        Value::from(i64::MAX),
        Value::from(u64::MAX),
        Value::from(-1),
        Value::from(i64::MIN),
        number("1e308"),
        number("-1e308"),
        number("5e-324"),
        Value::Null,
        Value::from("\u{0}\u{1b}]0;t\u{7}<x>&\"';,\n=1"),
        Value::from("contradicted"),
        Value::Array(Vec::new()),
    ]
});

fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(ELEMENTS_MAX);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Collects the places of a document that a change can replace: numbers, texts and lists.
fn places(value: &Value, path: &mut String, out: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            out.push(path.clone());
            for (index, item) in items.iter().enumerate() {
                let length = path.len();
                *path += &format!("/{index}");
                places(item, path, out);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let length = path.len();
                *path += &format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                places(field, path, out);
                path.truncate(length);
            }
        }
        _ => out.push(path.clone()),
    }
}

static PLACES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut out = Vec::new();
    places(&RECORD, &mut String::new(), &mut out);
    out
});

fuzz_target!(|bytes: &[u8]| {
    let text = if bytes.first() == Some(&b'{') {
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        let mut value = RECORD.clone();
        for change in bytes.chunks_exact(3).take(32) {
            let place = &PLACES[usize::from(u16::from_le_bytes([change[0], change[1]])) % PLACES.len()];
            // An earlier change may have replaced what it was in.
            if let Some(old) = value.pointer_mut(place) {
                *old = EXTREMES[usize::from(change[2]) % EXTREMES.len()].clone();
            }
        }
        value.to_string()
    };
    if let Ok(record) = parse(&text) {
        show(&record);
        show_as_fio(&record);
    }
});

fn show(record: &RunRecord) {
    for (width, color, unicode) in [(0, false, true), (80, true, false), (usize::MAX / 4, false, false)] {
        let text = terminal(record, &Style { width, color, unicode });
        assert!(color || !text.contains(['\u{1b}', '\u{7}', '\u{0}']), "a control character: {text:?}");
        assert!(!text.contains("NaN"), "{text}");
    }
    let page = html(record);
    assert!(!page.contains("NaN") && !page.contains("<x>"), "a figure that is none, or an element of the record");
    let _ = (hdr_log(record), summary(record));
    assert_eq!(&parse(&json(record)).expect("what was written can be read"), record);
}

fn show_as_fio(record: &RunRecord) {
    for terse_version in 2..=5 {
        let options = FioOutput { formats: vec![Format::Terse, Format::Normal], terse_version, ..FioOutput::default() };
        assert!(!render(record, &options).contains("NaN"));
    }
    for format in [Format::Json, Format::JsonPlus, Format::JsonLines] {
        let options = FioOutput { formats: vec![format], ..FioOutput::default() };
        let document = render(record, &options);
        assert!(serde_json::from_str::<Value>(&document).is_ok(), "{document}");
    }
    for is_over in [false, true] {
        let lines = interval_lines(record, &mut ReportedSoFar::default(), is_over);
        assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    }
}
