//! Validates a document against a JSON schema, as far as the schemas of this repository use the language.
//!
//! An unknown keyword is a failure of the test, not ignored: a rule that is not evaluated would accept everything.
//!
//! Source: JSON Schema, draft 2020-12.

use serde_json::Value;
use std::collections::BTreeSet;

/// Returns how `document` violates `schema`, one sentence each, with the place as a JSON pointer.
///
/// # Panics
/// If the schema has a keyword that this function does not know, or a reference that leads nowhere.
pub fn schema_violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut check = Check { root: schema, described: BTreeSet::new() };
    let mut found = Vec::new();
    check.value(schema, document, "", &mut found);
    found
}

/// Returns the fields of `document` that `schema` does not describe, as JSON pointers. The document is valid.
///
/// # Panics
/// As [`schema_violations`].
pub fn undescribed_fields(schema: &Value, document: &Value) -> Vec<String> {
    let mut check = Check { root: schema, described: BTreeSet::new() };
    check.value(schema, document, "", &mut Vec::new());
    let mut fields = Vec::new();
    list_fields(document, "", &mut fields);
    fields.retain(|field| !check.described.contains(field));
    fields
}

fn list_fields(value: &Value, at: &str, fields: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let at = format!("{at}/{name}");
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

struct Check<'a> {
    root: &'a Value,
    /// Fields that a valid branch of the schema describes.
    described: BTreeSet<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let rules = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return found.push(format!("{at}: no value is allowed")),
            other => other.as_object().expect("a schema is an object or a boolean"),
        };
        for (keyword, rule) in rules {
            self.keyword(keyword, rule, value, at, found);
        }
        if let Some(fields) = value.as_object() {
            for (name, field) in fields {
                self.field(schema, name, field, &format!("{at}/{name}"), found);
            }
        }
    }

    fn keyword(&mut self, keyword: &str, rule: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        match keyword {
            "$ref" => {
                let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).expect("a local reference");
                let schema = self.root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
                self.value(schema, value, at, found);
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
            "const" if rule != value => found.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().expect("a list").contains(value) => {
                found.push(format!("{at}: {value} is not in {rule}"));
            }
            "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => {
                found.push(format!("{at}: {value} < {rule}"))
            }
            "maximum" if value.is_number() && value.as_f64() > rule.as_f64() => {
                found.push(format!("{at}: {value} > {rule}"))
            }
            "minItems" if value.as_array().is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap_or(0)) => {
                found.push(format!("{at}: fewer than {rule} items"));
            }
            "maxItems" if value.as_array().is_some_and(|items| items.len() as u64 > rule.as_u64().unwrap_or(0)) => {
                found.push(format!("{at}: more than {rule} items"));
            }
            "anyOf" | "oneOf" => self.branches(keyword, rule, value, at, found),
            "allOf" => rule.as_array().expect("a list").iter().for_each(|schema| self.value(schema, value, at, found)),
            "required" => {
                let names = rule.as_array().expect("a list").iter().filter_map(Value::as_str);
                for name in names.filter(|name| value.is_object() && value.get(name).is_none()) {
                    found.push(format!("{at}: `{name}` is missing"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, item, &format!("{at}/{index}"), found);
                }
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten().zip(rule.as_array().expect("a list")).enumerate();
                for (index, (item, schema)) in items {
                    self.value(schema, item, &format!("{at}/{index}"), found);
                }
            }
            "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
            // Annotations; `format` of a number is that of Rust. Fields are evaluated by `field`.
            "$schema"
            | "$id"
            | "$defs"
            | "title"
            | "description"
            | "default"
            | "format"
            | "properties"
            | "additionalProperties" => {}
            extension if extension.starts_with("x-") => {}
            other => panic!("the test does not know the keyword `{other}`"),
        }
    }

    /// At least one branch must be valid, of `oneOf` exactly one.
    fn branches(&mut self, keyword: &str, rule: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let mut valid = 0;
        for schema in rule.as_array().expect("a list") {
            let mut branch = Check { root: self.root, described: BTreeSet::new() };
            let mut violations = Vec::new();
            branch.value(schema, value, at, &mut violations);
            if violations.is_empty() {
                valid += 1;
                self.described.append(&mut branch.described);
            }
        }
        if valid == 0 || (keyword == "oneOf" && valid > 1) {
            let text = value.to_string();
            found.push(format!(
                "{at}: {valid} branches of `{keyword}` accept {}",
                text.chars().take(200).collect::<String>()
            ));
        }
    }

    fn field(&mut self, schema: &Value, name: &str, field: &Value, at: &str, found: &mut Vec<String>) {
        let described =
            match (schema.pointer("/properties").and_then(|known| known.get(name)), schema.get("additionalProperties"))
            {
                (Some(known), _) => known,
                (None, Some(Value::Bool(false))) => return found.push(format!("{at}: unknown")),
                (None, Some(others)) => others,
                (None, None) => return,
            };
        self.described.insert(at.to_owned());
        self.value(described, field, at, found);
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_rule_can_be_violated() {
        let cases = [
            (json!({"type": "integer"}), json!(1.5)),
            (json!({"const": "a"}), json!("b")),
            (json!({"enum": [1, 2]}), json!(3)),
            (json!({"minimum": 1}), json!(0)),
            (json!({"maximum": 1}), json!(2)),
            (json!({"items": {"type": "string"}}), json!([1])),
            (json!({"prefixItems": [{"type": "string"}], "minItems": 1}), json!([])),
            (json!({"prefixItems": [{"type": "string"}]}), json!([1])),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!(1)),
            (json!({"oneOf": [{"type": "integer"}, {"minimum": 0}]}), json!(1)),
            (json!({"required": ["a"]}), json!({})),
            (json!({"properties": {"a": {"type": "string"}}}), json!({"a": 1})),
            (json!({"properties": {}, "additionalProperties": false}), json!({"a": 1})),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}), json!(1)),
        ];
        for (schema, document) in cases {
            assert_eq!(schema_violations(&schema, &document).len(), 1, "{schema} {document}");
        }
    }

    #[test]
    fn a_field_that_only_an_invalid_branch_describes_is_undescribed() {
        let schema = json!({"oneOf": [
            {"properties": {"how": {"const": "a"}, "x": true}, "required": ["how"]},
            {"properties": {"how": {"const": "b"}, "y": true}, "required": ["how"]},
        ]});
        let document = json!({"how": "a", "y": 1});
        assert!(schema_violations(&schema, &document).is_empty());
        assert_eq!(undescribed_fields(&schema, &document), ["/y"]);
    }
}
