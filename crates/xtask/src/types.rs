//! The types of the documents in Python and TypeScript, rendered from `docs/schema/` (`cargo xtask types [--write]`).
//!
//! Limits: a list with items of different types is `list[Any]` in Python; numbers have no range.

use crate::workspace;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The schemas, and the names of the documents that they describe.
const SCHEMAS: &[(&str, &str)] = &[("record-v3", "RunRecord"), ("comparison-v1", "Comparison")];

const PYTHON: &str = "bindings/python/python/trueio/_documents.py";
const TYPESCRIPT: &str = "bindings/node-program/documents.d.ts";

/// Compares both files with the schemas, or writes them; returns `false` if one differs.
pub(crate) fn run(is_write: bool) -> Result<bool> {
    let definitions = definitions()?;
    let mut is_equal = true;
    for (path, text) in [(PYTHON, python(&definitions)), (TYPESCRIPT, typescript(&definitions))] {
        let whole = workspace::root().join(path);
        if is_write {
            std::fs::write(&whole, text).with_context(|| path.to_owned())?;
        } else if std::fs::read_to_string(&whole).unwrap_or_default() != text {
            println!("{path} differs from docs/schema/; `cargo xtask types --write` rewrites it");
            is_equal = false;
        }
    }
    Ok(is_equal)
}

/// Reads all definitions of the schemas by name.
fn definitions() -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for (file, name) in SCHEMAS {
        let path: PathBuf = workspace::root().join(format!("docs/schema/{file}.json"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        // A document that contains itself (the record of a rank) refers to the whole schema.
        let text = text.replace("\"$ref\": \"#\"", &format!("\"$ref\": \"#/$defs/{name}\""));
        let mut schema: Value = serde_json::from_str(&text)?;
        // The order of a map depends on a feature of serde_json that other crates of the workspace choose.
        schema.sort_all_objects();
        let nested = schema["$defs"].as_object().cloned().unwrap_or_default();
        for (name, definition) in nested {
            found.entry(name).or_insert(definition);
        }
        found.insert((*name).to_owned(), schema);
    }
    Ok(found)
}

/// A language of types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    TypeScript,
}

impl Language {
    /// Returns the type of a value.
    fn of(self, schema: &Value) -> String {
        let Some(rules) = schema.as_object() else { return self.any().to_owned() };
        if let Some(name) = rules.get("$ref").and_then(Value::as_str) {
            return name.rsplit('/').next().unwrap_or_default().to_owned();
        }
        if let Some(value) = rules.get("const") {
            return self.literal(value);
        }
        if let Some(values) = rules.get("enum").and_then(Value::as_array) {
            return self.union(values.iter().map(|value| self.literal(value)));
        }
        if let Some(branches) = rules.get("anyOf").or_else(|| rules.get("oneOf")).and_then(Value::as_array) {
            return self.union(branches.iter().map(|branch| self.of(branch)));
        }
        match rules.get("type") {
            Some(Value::Array(names)) => {
                self.union(names.iter().map(|name| self.named(name.as_str().unwrap_or_default(), rules)))
            }
            Some(Value::String(name)) => self.named(name, rules),
            _ => self.any().to_owned(),
        }
    }

    fn named(self, name: &str, rules: &Map<String, Value>) -> String {
        match (self, name) {
            (_, "null") => if self == Language::Python { "None" } else { "null" }.to_owned(),
            (Language::Python, "integer") => "int".to_owned(),
            (Language::Python, "number") => "float".to_owned(),
            (Language::Python, "string") => "str".to_owned(),
            (Language::Python, "boolean") => "bool".to_owned(),
            (Language::TypeScript, "integer" | "number") => "number".to_owned(),
            (Language::TypeScript, "string" | "boolean") => name.to_owned(),
            (_, "array") => self.list(rules),
            (_, "object") => self.object(rules),
            _ => self.any().to_owned(),
        }
    }

    fn list(self, rules: &Map<String, Value>) -> String {
        match (self, rules.get("prefixItems").and_then(Value::as_array), rules.get("items")) {
            (Language::TypeScript, Some(items), _) => {
                format!("[{}]", items.iter().map(|item| self.of(item)).collect::<Vec<_>>().join(", "))
            }
            (Language::Python, None, Some(items)) => format!("list[{}]", self.of(items)),
            (Language::TypeScript, None, Some(items)) => format!("Array<{}>", self.of(items)),
            (Language::Python, ..) => "list[Any]".to_owned(),
            (Language::TypeScript, ..) => "unknown[]".to_owned(),
        }
    }

    /// An object without a name of its own.
    fn object(self, rules: &Map<String, Value>) -> String {
        let others = rules.get("additionalProperties").filter(|others| others.is_object());
        match (self, rules.get("properties").and_then(Value::as_object), others) {
            (Language::TypeScript, Some(fields), _) => {
                let fields =
                    fields.iter().map(|(name, field)| format!("{name}{}: {}", optional(rules, name), self.of(field)));
                format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
            }
            (Language::Python, None, Some(others)) => format!("dict[str, {}]", self.of(others)),
            (Language::TypeScript, None, Some(others)) => format!("{{ [name: string]: {} }}", self.of(others)),
            (Language::Python, ..) => "dict[str, Any]".to_owned(),
            (Language::TypeScript, ..) => "object".to_owned(),
        }
    }

    fn any(self) -> &'static str {
        if self == Language::Python { "Any" } else { "unknown" }
    }

    fn literal(self, value: &Value) -> String {
        match self {
            Language::Python => {
                format!("Literal[{}]", if *value == Value::Bool(true) { "True".to_owned() } else { value.to_string() })
            }
            Language::TypeScript => value.to_string(),
        }
    }

    /// Joins types; a type occurs once.
    fn union(self, types: impl Iterator<Item = String>) -> String {
        let mut found: Vec<String> = Vec::new();
        for one in types {
            if !found.contains(&one) {
                found.push(one);
            }
        }
        found.join(" | ")
    }
}

/// Returns the mark of a field of TypeScript that may be missing.
fn optional(rules: &Map<String, Value>, field: &str) -> &'static str {
    if is_required(rules, field) { "" } else { "?" }
}

fn is_required(rules: &Map<String, Value>, field: &str) -> bool {
    let required = rules.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|name| name == field))
}

/// Splits a definition with variants that are objects into definitions with names: `Origin` and its `OriginFile`.
fn variants(name: &str, definition: &Value) -> Option<Vec<(String, Value)>> {
    let branches = definition.get("oneOf").or_else(|| definition.get("anyOf"))?.as_array()?;
    let objects = branches.iter().filter(|branch| branch.get("properties").is_some()).count();
    if objects == 0 {
        return None;
    }
    let split = branches.iter().enumerate().map(|(index, branch)| {
        let fields = branch.get("properties").and_then(Value::as_object);
        let tag = fields.and_then(|fields| {
            let tag = fields.values().find_map(|field| field.get("const")?.as_str());
            tag.or_else(|| fields.keys().next().map(String::as_str).filter(|_| fields.len() == 1))
        });
        let word = tag.map_or_else(|| index.to_string(), camel);
        (format!("{name}{word}"), branch.clone())
    });
    Some(split.collect())
}

/// `round_seed` becomes `RoundSeed`.
fn camel(word: &str) -> String {
    word.split(['_', '-', '.'])
        .map(|part| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1)).collect::<String>())
        .collect()
}

/// Renders the definitions of Python.
fn python(definitions: &BTreeMap<String, Value>) -> String {
    let mut out = String::from(
        "\"\"\"The documents, as `trueio schema` describes them. Rendered by `cargo xtask types --write`.\"\"\"\n\n\
         from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n",
    );
    for (name, definition) in definitions {
        match variants(name, definition) {
            Some(parts) => {
                let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
                parts.iter().for_each(|(name, part)| python_definition(&mut out, name, part));
                let _ = write!(out, "\n{name}: TypeAlias = \"{}\"\n", names.join(" | "));
            }
            None => python_definition(&mut out, name, definition),
        }
    }
    out
}

fn python_definition(out: &mut String, name: &str, definition: &Value) {
    // Writing to a String cannot fail.
    let (Some(fields), Some(rules)) = (definition.get("properties").and_then(Value::as_object), definition.as_object())
    else {
        let _ = write!(out, "\n{name}: TypeAlias = \"{}\"\n", Language::Python.of(definition).replace('"', "'"));
        return;
    };
    let field = |(key, schema): (&String, &Value)| {
        let one = Language::Python.of(schema);
        (key.clone(), if is_required(rules, key) { one } else { format!("NotRequired[{one}]") })
    };
    let fields: Vec<(String, String)> = fields.iter().map(field).collect();
    // A keyword of Python cannot be written as a field.
    if fields
        .iter()
        .any(|(key, _)| ["from", "class", "is", "in", "for", "with", "pass", "global"].contains(&key.as_str()))
    {
        let _ = write!(out, "\n{name} = TypedDict(\n    \"{name}\",\n    {{\n");
        for (key, one) in fields {
            let _ = writeln!(out, "        \"{key}\": \"{}\",", one.replace('"', "'"));
        }
        out.push_str("    },\n)\n");
        return;
    }
    let _ = write!(out, "\n\nclass {name}(TypedDict):\n");
    for (key, one) in &fields {
        let _ = writeln!(out, "    {key}: \"{}\"", one.replace('"', "'"));
    }
    if fields.is_empty() {
        out.push_str("    pass\n");
    }
    out.push('\n');
}

/// Renders the definitions of TypeScript.
fn typescript(definitions: &BTreeMap<String, Value>) -> String {
    let mut out =
        String::from("// The documents, as `trueio schema` describes them. Rendered by `cargo xtask types --write`.\n");
    for (name, definition) in definitions {
        if let Some(text) = definition.get("description").and_then(Value::as_str) {
            let _ = write!(
                out,
                "\n/** {} */",
                text.split("\n\n").next().unwrap_or_default().replace("*/", "").replace('\n', " ")
            );
        }
        match definition.get("properties").and_then(Value::as_object).zip(definition.as_object()) {
            Some((fields, rules)) => {
                let _ = write!(out, "\nexport interface {name} {{\n");
                for (key, field) in fields {
                    if let Some(text) = field.get("description").and_then(Value::as_str) {
                        let _ = writeln!(
                            out,
                            "  /** {} */",
                            text.split("\n\n").next().unwrap_or_default().replace('\n', " ")
                        );
                    }
                    let _ = writeln!(out, "  {key}{}: {};", optional(rules, key), Language::TypeScript.of(field));
                }
                out.push_str("}\n");
            }
            None => {
                let _ = write!(out, "\nexport type {name} = {};\n", Language::TypeScript.of(definition));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_types_of_both_bindings_are_rendered_from_the_schemas() {
        assert!(run(false).expect("the schemas are readable"), "`cargo xtask types --write`");
    }

    #[test]
    fn a_definition_has_its_fields_optional_ones_and_variants() {
        let definitions = BTreeMap::from([
            (
                "A".to_owned(),
                json!({"type": "object", "properties": {"x": {"type": ["integer", "null"]}, "y": {"$ref": "#/$defs/B"}}, "required": ["x"]}),
            ),
            (
                "B".to_owned(),
                json!({"oneOf": [
                    {"type": "object", "properties": {"how": {"const": "one_way"}}, "required": ["how"]},
                    {"type": "string", "enum": ["none"]},
                ]}),
            ),
        ]);
        let text = python(&definitions);
        assert!(text.contains("class A(TypedDict):\n    x: \"int | None\"\n    y: \"NotRequired[B]\"\n"), "{text}");
        assert!(text.contains("B: TypeAlias = \"BOneWay | B1\""), "{text}");
        let text = typescript(&definitions);
        assert!(text.contains("export interface A {\n  x: number | null;\n  y?: B;\n}"), "{text}");
        assert!(text.contains("export type B = { how: \"one_way\" } | \"none\";"), "{text}");
    }
}
