//! The JSON schema of job files accepts and rejects the same files as the parser.

use serde_json::Value;
use std::path::Path;
use trueio_testkit::Schema;

fn json_of(item: &toml_edit::Item) -> Value {
    match item {
        toml_edit::Item::Table(table) => table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect(),
        toml_edit::Item::Value(value) => json_of_value(value),
        other => panic!("a job file has no {}", other.type_name()),
    }
}

fn json_of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(is) => Value::from(*is.value()),
        toml_edit::Value::Array(items) => items.iter().map(json_of_value).collect(),
        toml_edit::Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), json_of_value(value))).collect()
        }
        toml_edit::Value::Datetime(_) => panic!("a job file has no dates"),
    }
}

/// Returns what the schema rejects in a job file.
fn rejected(toml: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(&trueio_job::render_schema()).expect("the schema is JSON");
    let document = toml_edit::Document::parse(toml).expect("the file is TOML");
    Schema::new(&schema).violations(&json_of(document.as_item()))
}

#[test]
fn the_schema_accepts_the_job_files_of_this_repository() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs");
    let files = std::fs::read_dir(folder).expect("jobs/ exists").map(|entry| entry.expect("readable").path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(files.len() > 1);
    for path in files {
        let text = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(rejected(&text), [""; 0], "{}", path.display());
    }
}

#[test]
fn the_schema_accepts_the_kinds_of_values_that_the_reader_accepts() {
    let text = "[defaults]\nruntime = 1.5\ndirect = true\nreadwrite = \"randrw\"\nfilename = [\"a\", \"b\"]\n\
                [job.a]\niodepth = 32\niodepth_batch_submit = \"4\"\nsize = \"50%\"\n";
    assert!(trueio_job::parse_job_file("a.toml", text).is_ok());
    assert_eq!(rejected(text), [""; 0]);
}

#[test]
fn the_schema_rejects_unknown_options_words_out_of_the_list_and_numbers_out_of_range() {
    for wrong in ["iodpeth = 1", "rw = \"sideways\"", "iodepth = 0", "time_based = 2", "runtime = false"] {
        let text = format!("[job.a]\n{wrong}\n");
        assert!(trueio_job::parse_job_file("a.toml", &text).is_err(), "{wrong}");
        assert_eq!(rejected(&text).len(), 1, "{wrong}: {:?}", rejected(&text));
    }
    assert_eq!(rejected("[defaults]\nbs = \"4k\"\n"), [": \"job\" is a required property"]);
}

/// Goal: the table's facts about fio and remote clients are in the schema, for editors and other tools.
#[test]
fn the_schema_holds_fios_names_and_defaults_and_the_remote_scope() {
    let schema: Value = serde_json::from_str(&trueio_job::render_schema()).expect("the schema is JSON");
    let of = |name: &str| schema["$defs"]["options"]["properties"][name].clone();
    assert_eq!(of("direct")["x-fio-default"], "off");
    assert_eq!(of("blockalign")["x-fio-names"], serde_json::json!(["blockalign", "ba"]));
    assert_eq!(of("command").get("x-fio-names"), None);
    assert_eq!((of("filename")["x-remote"].clone(), of("read_iolog")["x-remote"].clone()), (true.into(), false.into()));
    assert_eq!(of("iodepth")["x-unit"], "I/Os");
}
