//! `trueio schema`: the JSON schemas of the documents that the program reads and writes.
//!
//! They are the files of `docs/schema/`, one for each version of a format, which the program holds compressed. A test renders
//! them from the types of `trueio-model`, and compares. The schema of job files is rendered from the option table. They describe
//! what this version reads: a field that records of earlier versions lack is not required.
//!
//! Source: JSON Schema, draft 2020-12.

use crate::failure::Failure;
use crate::output;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Command};
use flate2::read::DeflateDecoder;
use std::io::Read;
use std::process::ExitCode;

pub(crate) const ABOUT: &str =
    "Print the JSON schema of a document: job, record, comparison, study, trend, capacity or powercut";

/// Adds the arguments of the command.
pub(crate) fn arguments(command: Command) -> Command {
    let names = [
        ("job", "Job files (TOML)"),
        ("record", "Records of runs: `--json` of baseline, run and report"),
        ("comparison", "Comparisons: `trueio compare --json`"),
        ("study", "Records of studies: `trueio study --json`"),
        ("trend", "Trends of a device: `trueio history trend --json`"),
        ("capacity", "Tests of a disk's capacity: `trueio capacity --json`"),
        ("powercut", "Cuts of power of a device: `trueio powercut --json`"),
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
        "record" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/record.deflate"))),
        "comparison" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/comparison.deflate"))),
        "study" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/study.deflate"))),
        "trend" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/trend.deflate"))),
        "capacity" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/capacity.deflate"))),
        "powercut" => unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/powercut.deflate"))),
        other => unreachable!("clap accepts no other document: {other}"),
    };
    output::print_all(&text).map(|()| ExitCode::SUCCESS)
}

/// Unpacks a schema that `build.rs` packed.
fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text).expect("build.rs packed a text");
    text
}
