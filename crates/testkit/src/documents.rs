//! Validates the documents that the program prints or writes in tests against `docs/schema/`.

use crate::Schema;
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Panics if a document of a run, on `stdout` or in the file of `--json`, differs from its schema.
#[track_caller]
pub(crate) fn validate_documents(arguments: &[&str], stdout: &str, directory: &Path) {
    let mut texts = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let path = match argument.strip_prefix("--json=") {
            Some(path) => Some(path),
            None if *argument == "--json" => arguments.get(index + 1).copied(),
            None => None,
        };
        match path {
            Some("-") => texts.push(stdout.to_owned()),
            // `/dev/full` has no end.
            Some(path) if directory.join(path).is_file() => texts.extend(std::fs::read_to_string(directory.join(path))),
            _ => {}
        }
    }
    for text in texts {
        // Some tests write other files, or cut the output.
        let Ok(document) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(name) = document.get("format").and_then(Value::as_str).and_then(|name| name.strip_prefix("trueio-"))
        else {
            continue;
        };
        let version = document.get("version").and_then(Value::as_u64).expect("a document has a version");
        with_schema(&format!("{name}-v{version}"), |schema| {
            let violations = schema.violations(&document);
            assert!(violations.is_empty(), "docs/schema/{name}-v{version}.json rejects the document: {violations:#?}");
            let undescribed = schema.undescribed_fields(&document);
            assert!(undescribed.is_empty(), "docs/schema/{name}-v{version}.json does not describe {undescribed:#?}");
        });
    }
}

/// Calls `body` with a schema, which is read and compiled once.
#[track_caller]
fn with_schema(name: &str, body: impl FnOnce(&Schema)) {
    static SCHEMAS: Mutex<Vec<(String, &'static Schema)>> = Mutex::new(Vec::new());
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = schemas.iter().find(|(known, _)| known == name).map(|(_, schema)| *schema);
    let schema = known.unwrap_or_else(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        let schema: &'static Schema = Box::leak(Box::new(Schema::new(&schema)));
        schemas.push((name.to_owned(), schema));
        schema
    });
    drop(schemas);
    body(schema);
}
