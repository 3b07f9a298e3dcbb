//! The JSON schema of job files, rendered from the option table.
//!
//! It describes which keys a TOML job file has and which types their values have. Values with their own syntax (sizes,
//! durations, distributions) are strings there; the planner parses them. Keywords that begin with `x-` hold what JSON
//! Schema has no keyword for: fio's names and default, and whether a remote client may set the option.
//!
//! Source: JSON Schema, draft 2020-12.

use crate::option::{DefaultValue, OptionRow, Remote};
use crate::table::TABLE;
use crate::value::{Scalar, ValueKind};
use serde_json::{Map, Value, json};

/// Renders the schema of job files, indented.
pub fn render_schema() -> String {
    let mut options = Map::new();
    for row in TABLE {
        let schema = schema_of(row);
        for alias in row.fio_names {
            options.insert((*alias).to_owned(), json!({ "$ref": format!("#/$defs/options/properties/{}", row.name) }));
        }
        options.insert(row.name.to_owned(), schema);
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trueio job file",
        "type": "object",
        "properties": {
            "defaults": { "$ref": "#/$defs/options", "description": "Options of all jobs" },
            "job": {
                "type": "object",
                "description": "One table a job: [job.NAME]",
                "additionalProperties": { "$ref": "#/$defs/options" },
            },
            "limits": {
                "type": "object",
                "description": "Limits of the figures, as those of --fail-if",
                "properties": {
                    "fail_if": {
                        "description": "The run fails if one of these holds, such as `p99 > 10ms`",
                        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
                    },
                },
                "additionalProperties": false,
            },
        },
        "required": ["job"],
        "additionalProperties": false,
        "$defs": {
            "options": { "type": "object", "properties": options, "additionalProperties": false },
        },
    });
    format!("{schema:#}\n")
}

/// Returns the schema of one option's value.
fn schema_of(row: &OptionRow) -> Value {
    let mut any_of = Vec::new();
    match row.kind {
        ValueKind::Choice(choices) => {
            let words: Vec<&str> = choices
                .iter()
                .flat_map(|choice| std::iter::once(&choice.name).chain(choice.aliases))
                .copied()
                .collect();
            let numbers = words.iter().filter_map(|word| word.parse::<i64>().ok()).map(Value::from);
            let switches = words.iter().filter_map(|word| word.parse::<bool>().ok()).map(Value::from);
            let values: Vec<Value> = words.iter().copied().map(Value::from).chain(numbers).chain(switches).collect();
            any_of.push(json!({ "enum": values }));
        }
        kind => {
            any_of.push(json!({ "type": "string" }));
            if kind.accepts(Scalar::Integer) {
                any_of.push(match kind {
                    ValueKind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
                    ValueKind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
                    ValueKind::Percent => json!({ "type": "integer", "minimum": 0, "maximum": 100 }),
                    ValueKind::Bool => json!({ "enum": [0, 1] }),
                    _ => json!({ "type": "integer" }),
                });
            }
            if kind.accepts(Scalar::Float) {
                any_of.push(json!({ "type": "number" }));
            }
            if kind.accepts(Scalar::Boolean) {
                any_of.push(json!({ "type": "boolean" }));
            }
            if kind.accepts(Scalar::List) {
                any_of.push(json!({ "type": "array", "items": { "type": ["string", "integer"] } }));
            }
        }
    }
    let mut schema = json!({ "description": format!("{} ({})", row.summary, row.unit), "anyOf": any_of });
    if let DefaultValue::Text(text) = row.default {
        schema["default"] = Value::from(text);
    }
    schema["x-unit"] = Value::from(row.unit);
    if row.is_in_fio() {
        let names: Vec<&str> = std::iter::once(row.name).chain(row.fio_names.iter().copied()).collect();
        schema["x-fio-names"] = Value::from(names);
    }
    if let Some(text) = row.fio_default() {
        schema["x-fio-default"] = Value::from(text);
    }
    schema["x-remote"] = Value::from(row.remote == Remote::Allowed);
    schema
}
