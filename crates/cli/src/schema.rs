//! `trueio schema`: the JSON schemas of the documents that the program reads and writes.
//!
//! The schema of job files is rendered from the option table, the others from the types of `trueio-model`. They describe
//! what this version reads: a field that records of earlier versions lack is not required. `docs/schema/` has one file
//! for each version of a format, and a test compares them.
//!
//! Source: JSON Schema, draft 2020-12.

use crate::failure::Failure;
use crate::output;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Command};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::process::ExitCode;
use trueio_model::{
    COMPARISON_FORMAT, COMPARISON_VERSION, Comparison, RECORD_FORMAT, RECORD_VERSION, RunRecord, STUDY_FORMAT,
    STUDY_VERSION, StudyRecord, TREND_FORMAT, TREND_VERSION, Trend,
};

pub(crate) const ABOUT: &str = "Print the JSON schema of a document: job, record, comparison, study or trend";

/// Adds the arguments of the command.
pub(crate) fn arguments(command: Command) -> Command {
    let names = [
        ("job", "Job files (TOML)"),
        ("record", "Records of runs: `--json` of baseline, run and report"),
        ("comparison", "Comparisons: `trueio compare --json`"),
        ("study", "Records of studies: `trueio study --json`"),
        ("trend", "Trends of a device: `trueio history trend --json`"),
    ];
    command
        .arg(
            Arg::new("document")
                .value_name("DOCUMENT")
                .required(true)
                .help("Kind of document")
                .value_parser(PossibleValuesParser::new(names.map(|(name, help)| PossibleValue::new(name).help(help)))),
        )
        .after_help("docs/schema/ has the schema of each version.")
}

/// `trueio schema`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let name = matches.get_one::<String>("document").expect("clap requires it");
    let text = match name.as_str() {
        "job" => trueio_job::render_schema(),
        "record" => document::<RunRecord>(name, RECORD_FORMAT, RECORD_VERSION),
        "comparison" => document::<Comparison>(name, COMPARISON_FORMAT, COMPARISON_VERSION),
        "study" => document::<StudyRecord>(name, STUDY_FORMAT, STUDY_VERSION),
        "trend" => document::<Trend>(name, TREND_FORMAT, TREND_VERSION),
        other => unreachable!("clap accepts no other document: {other}"),
    };
    output::print_all(&text).map(|()| ExitCode::SUCCESS)
}

/// Renders the schema of a document, indented.
fn document<T: JsonSchema>(name: &str, format: &str, version: u32) -> String {
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
