//! The schemas of documents: as they are kept in `docs/schema/`, and against the documents of the program.
//!
//! `trueio_testkit::Sandbox::run` validates each document that a test of the program makes; these tests add kept records, and
//! show that a document that differs is found.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trueio_model::{
    CAPACITY_FORMAT, CAPACITY_VERSION, COMPARISON_FORMAT, COMPARISON_VERSION, CapacityRecord, Comparison,
    POWERCUT_FORMAT, POWERCUT_VERSION, PowercutRecord, RECORD_FORMAT, RECORD_VERSION, RunRecord, STUDY_FORMAT,
    STUDY_VERSION, StudyRecord, TREND_FORMAT, TREND_VERSION, Trend,
};
use trueio_testkit::{Sandbox, Schema};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// Renders the schema of a document, indented.
fn rendered<T: JsonSchema>(name: &str, format: &str, version: u32) -> String {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    schema["$id"] =
        Value::from(format!("https://github.com/trueio/trueio/blob/main/docs/schema/{name}-v{version}.json"));
    schema["title"] = Value::from(format!("trueio {name}, version {version}"));
    schema["properties"]["format"] = json!({ "const": format, "description": "The kind of document" });
    schema["properties"]["version"] = json!({
        "type": "integer", "minimum": 1, "maximum": version, "description": "The version of the writer",
    });
    without_links(&mut schema);
    format!("{schema:#}\n")
}

/// Removes the brackets of links between the documented items of the source.
fn without_links(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(without_links);
        }
        Value::Array(items) => items.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// Goal: docs/schema/ describes the types, and the program prints it.
#[test]
fn the_kept_schemas_are_those_of_the_types_and_what_the_program_prints() {
    let documents = [
        ("job", 1, trueio_job::render_schema()),
        ("record", RECORD_VERSION, rendered::<RunRecord>("record", RECORD_FORMAT, RECORD_VERSION)),
        ("comparison", COMPARISON_VERSION, rendered::<Comparison>("comparison", COMPARISON_FORMAT, COMPARISON_VERSION)),
        ("study", STUDY_VERSION, rendered::<StudyRecord>("study", STUDY_FORMAT, STUDY_VERSION)),
        ("capacity", CAPACITY_VERSION, rendered::<CapacityRecord>("capacity", CAPACITY_FORMAT, CAPACITY_VERSION)),
        ("powercut", POWERCUT_VERSION, rendered::<PowercutRecord>("powercut", POWERCUT_FORMAT, POWERCUT_VERSION)),
        ("trend", TREND_VERSION, rendered::<Trend>("trend", TREND_FORMAT, TREND_VERSION)),
    ];
    let sandbox = Sandbox::new();
    for (name, version, text) in documents {
        let path = repository(&format!("docs/schema/{name}-v{version}.json"));
        if std::env::var_os("TRUEIO_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("docs/schema")).expect("a directory");
            std::fs::write(&path, &text).expect("docs/schema can be written");
            // The program holds the schemas of its build.
            continue;
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let file = path.display();
        assert!(
            kept == text,
            "{file} is stale: `TRUEIO_BLESS=1 cargo test --workspace --test it schema` rewrites it, and the next build of the program \
             holds it. If the format has a new version, add its file to crates/cli/build.rs; those of earlier versions stay."
        );
        let printed = sandbox.run(&["schema", name]);
        printed.assert_code(0);
        assert!(
            printed.out == kept,
            "the program prints another text than {file}: is its file in crates/cli/build.rs?"
        );
    }
}

#[test]
fn every_kept_record_is_valid() {
    let schema = Schema::new(&read(&repository("docs/schema/record-v3.json")));
    let records = std::fs::read_dir(repository("crates/store/tests/records")).expect("records").flatten();
    let mut count = 0;
    for path in records.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json")) {
        assert_eq!(schema.violations(&read(&path)), [""; 0], "{}", path.display());
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
    let schema = Schema::new(&read(&repository("docs/schema/record-v3.json")));
    let record: Value = serde_json::from_str(&ran.out).expect("a record");
    assert_eq!(schema.violations(&record), [""; 0]);
    let changed = |pointer: &str, value: Value| {
        let mut other = record.clone();
        *other.pointer_mut(pointer).expect(pointer) = value;
        schema.violations(&other)
    };
    assert_eq!(changed("/version", json!(4)), ["/version: 4 is greater than the maximum of 3"]);
    assert_eq!(changed("/format", json!("other")).len(), 1);
    assert_eq!(changed("/phases/0/verdict", json!("certain")).len(), 1);
    assert_eq!(changed("/phases/0/jobs/0/ops/0/io_count", json!(-1)).len(), 1);
    assert_eq!(changed("/phases/0/jobs/0/ops/0/latency/total/index", json!("")).len(), 1);
    let mut other = record.clone();
    other["phases"][0].as_object_mut().expect("a phase").remove("checks");
    assert_eq!(schema.violations(&other), ["/phases/0: \"checks\" is a required property"]);
    other = record.clone();
    other["environment"]["extra"] = json!(1);
    assert_eq!(schema.undescribed_fields(&other), ["/environment/extra"]);
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
