//! Validates a document against a JSON schema, by the crate `jsonschema`.
//!
//! Limits: a keyword that JSON Schema does not define is an annotation, and rejects nothing. `format` is not evaluated.
//!
//! Source: JSON Schema, draft 2020-12.

use jsonschema::{OutputUnit, Validator};
use serde_json::Value;
use std::collections::BTreeSet;

/// The longest message that is shown with the value that it is about, in bytes. A message with a longer value names its place only.
const MESSAGE_BYTES_MAX: usize = 300;

/// A schema that documents are compared with.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Panics
    /// If it is no schema, or has a reference that leads nowhere.
    #[track_caller]
    pub fn new(schema: &Value) -> Self {
        Self(jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("not a schema: {error}")))
    }

    /// Returns how `document` violates the schema, one sentence each, with the place as a JSON pointer.
    pub fn violations(&self, document: &Value) -> Vec<String> {
        let sentences = self.0.iter_errors(document).map(|error| {
            let text = error.to_string();
            let text = if text.len() > MESSAGE_BYTES_MAX { error.masked().to_string() } else { text };
            format!("{}: {text}", error.instance_path())
        });
        sentences.collect()
    }

    /// Returns the fields of `document` that the schema does not describe, as JSON pointers. The document is valid.
    pub fn undescribed_fields(&self, document: &Value) -> Vec<String> {
        let mut described = BTreeSet::new();
        add_described(self.0.evaluate(document).root(), &mut described);
        let mut fields = Vec::new();
        list_fields(document, "", &mut fields);
        fields.retain(|field| !described.contains(field));
        fields
    }
}

/// Adds the places that a part of an evaluation describes: those to which a keyword applied, in branches that accept the document.
fn add_described(unit: OutputUnit<'_>, described: &mut BTreeSet<String>) {
    if !unit.valid() {
        return;
    }
    let at = unit.instance_location().as_str();
    described.insert(at.to_owned());
    // A field whose schema is `true` has no unit of its own. Both keywords list the names of the fields to which they apply.
    if matches!(unit.schema_location().rsplit('/').next(), Some("properties" | "additionalProperties")) {
        let names = unit.annotations().and_then(|names| names.value().as_array()).into_iter().flatten();
        described.extend(names.filter_map(Value::as_str).map(|name| below(at, name)));
    }
    unit.children().for_each(|unit| add_described(unit, described));
}

/// Returns the JSON pointer of a field of the object at `at`.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn list_fields(value: &Value, at: &str, fields: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let at = below(at, name);
                list_fields(value, &at, fields);
                fields.push(at);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| list_fields(item, &format!("{at}/{index}"), fields));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Goal: the fields of maps, of nested objects, and with a slash in their names are found in a valid document.
    #[test]
    fn fields_are_described_by_name_and_as_values_of_a_map() {
        let schema = Schema::new(&json!({
            "properties": {
                "map": {"additionalProperties": {"properties": {"x": true}}},
                "a": {"type": "integer"},
                "closed": {"properties": {"one": {"type": "integer"}}, "required": ["one"], "additionalProperties": false},
            },
        }));
        let document = json!({"a": 1, "b": 2, "map": {"/dev/sda": {"x": 1, "y/z": 2}}, "closed": {"one": 1}});
        assert_eq!(schema.violations(&document), [""; 0]);
        assert_eq!(schema.undescribed_fields(&document), ["/b", "/map/~1dev~1sda/y~1z"]);
        assert_eq!(schema.violations(&json!({"a": "1"})), ["/a: \"1\" is not of type \"integer\""]);
        let long = schema.violations(&json!({"a": "1".repeat(MESSAGE_BYTES_MAX)}));
        assert_eq!(long, ["/a: value is not of type \"integer\""]);
    }

    #[test]
    fn a_field_that_only_an_invalid_branch_describes_is_undescribed() {
        let schema = Schema::new(&json!({"oneOf": [
            {"properties": {"how": {"const": "a"}, "x": true}, "required": ["how"]},
            {"properties": {"how": {"const": "b"}, "y": true}, "required": ["how"]},
        ]}));
        let document = json!({"how": "a", "y": 1});
        assert!(schema.violations(&document).is_empty());
        assert_eq!(schema.undescribed_fields(&document), ["/y"]);
    }
}
