//! The JSON schema of job files accepts and rejects the same files as the parser.

use serde_json::Value;
use std::path::Path;

/// Validates a document against the keywords that the schema uses; another keyword is an error of the test.
fn errors(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => {}
            "$ref" => {
                let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).expect("a local reference");
                errors(root, root.pointer(pointer).expect("the reference leads somewhere"), value, at, found);
            }
            "type" => {
                let names: Vec<&str> = match rule {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    name => name.as_str().into_iter().collect(),
                };
                if !names.iter().any(|name| is_type(name, value)) {
                    found.push(format!("{at}: {value} is not of type {names:?}"));
                }
            }
            "enum" => {
                if !rule.as_array().expect("a list").contains(value) {
                    found.push(format!("{at}: {value} is not in {rule}"));
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => found.push(format!("{at}: {value} < {rule}")),
            "maximum" if value.as_f64() > rule.as_f64() => found.push(format!("{at}: {value} > {rule}")),
            "minimum" | "maximum" => {}
            "anyOf" => {
                let fits = |schema: &Value| {
                    let mut errors_of_it = Vec::new();
                    errors(root, schema, value, at, &mut errors_of_it);
                    errors_of_it.is_empty()
                };
                if !rule.as_array().expect("a list").iter().any(fits) {
                    found.push(format!("{at}: {value} fits none of {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().expect("a list").iter().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        found.push(format!("{at}: `{name}` is missing"));
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    errors(root, rule, item, at, found);
                }
            }
            "properties" | "additionalProperties" => {}
            extension if extension.starts_with("x-") => {}
            other => panic!("the test does not know the keyword `{other}`"),
        }
    }
    let Some(fields) = value.as_object() else { return };
    for (name, field) in fields {
        let at = format!("{at}/{name}");
        match (schema.get("properties").and_then(|known| known.get(name)), schema.get("additionalProperties")) {
            (Some(known), _) => errors(root, known, field, &at, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{at}: unknown")),
            (None, Some(others)) => errors(root, others, field, &at, found),
            (None, None) => {}
        }
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type `{other}`"),
    }
}

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
    let (value, mut found) = (json_of(document.as_item()), Vec::new());
    errors(&schema, &schema, &value, "", &mut found);
    found
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
    assert_eq!(rejected("[defaults]\nbs = \"4k\"\n"), [": `job` is missing"]);
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
