//! The schemas of documents: as they are kept in `docs/schema/`, and against the documents of the program.
//!
//! `trueio_testkit::Sandbox::run` validates each document that a test of the program makes; these tests add kept records, and
//! show that a document that differs is found.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trueio_testkit::{Sandbox, schema_violations, undescribed_fields};

const DOCUMENTS: [(&str, u32); 5] = [("job", 1), ("record", 3), ("comparison", 1), ("study", 1), ("trend", 1)];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_kept_schemas_are_what_the_program_prints() {
    let sandbox = Sandbox::new();
    for (name, version) in DOCUMENTS {
        let printed = sandbox.run(&["schema", name]);
        printed.assert_code(0);
        let path = repository(&format!("docs/schema/{name}-v{version}.json"));
        if std::env::var_os("TRUEIO_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("docs/schema")).expect("a directory");
            std::fs::write(&path, &printed.out).expect("docs/schema can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == printed.out,
            "{} is stale: `TRUEIO_BLESS=1 cargo test -p trueio-cli --test schema` rewrites it. If the format has a new version, \
             add its number to this test; the files of earlier versions stay.",
            path.display()
        );
    }
}

#[test]
fn every_kept_record_is_valid() {
    let schema = read(&repository("docs/schema/record-v3.json"));
    let records = std::fs::read_dir(repository("crates/store/tests/records")).expect("records").flatten();
    let mut count = 0;
    for path in records.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json")) {
        assert_eq!(schema_violations(&schema, &read(&path)), [""; 0], "{}", path.display());
        count += 1;
    }
    assert!(count > 0);
}

/// Goal: the validation can fail.
/// Method: fields of a record of the program are removed, added and changed.
#[test]
fn a_record_that_differs_from_the_schema_is_found() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&[
        "run",
        "--ioengine",
        "null",
        "--rw",
        "randrw",
        "--size",
        "1m",
        "--number_ios",
        "1000",
        "--no-evidence",
        "--no-history",
        "--json",
        "-",
    ]);
    ran.assert_code(0);
    let schema = read(&repository("docs/schema/record-v3.json"));
    let record: Value = serde_json::from_str(&ran.out).expect("a record");
    assert_eq!(schema_violations(&schema, &record), [""; 0]);
    let changed = |pointer: &str, value: Value| {
        let mut other = record.clone();
        *other.pointer_mut(pointer).expect(pointer) = value;
        schema_violations(&schema, &other)
    };
    assert_eq!(changed("/version", json!(4)), ["/version: 4 > 3"]);
    assert_eq!(changed("/format", json!("other")).len(), 1);
    assert_eq!(changed("/phases/0/verdict", json!("certain")).len(), 1);
    assert_eq!(changed("/phases/0/jobs/0/ops/0/io_count", json!(-1)).len(), 1);
    assert_eq!(changed("/phases/0/jobs/0/ops/0/latency/total/index", json!("")).len(), 1);
    let mut other = record.clone();
    other["phases"][0].as_object_mut().expect("a phase").remove("checks");
    assert_eq!(schema_violations(&schema, &other), ["/phases/0: `checks` is missing"]);
    other = record.clone();
    other["environment"]["extra"] = json!(1);
    assert_eq!(undescribed_fields(&schema, &other), ["/environment/extra"]);
}

#[test]
fn a_document_of_a_newer_version_is_refused_in_one_sentence() {
    let sandbox = Sandbox::new();
    let record = sandbox.write("record.json", r#"{"format": "trueio-record", "version": 9}"#);
    let record = record.to_string_lossy();
    let expected = "this record has version 9; this program reads up to version 3 (a newer trueio reads it)";
    sandbox.run(&["report", &record]).assert_refused(&[expected]);
    sandbox.run(&["compare", &record, &record]).assert_refused(&[expected]);
}
