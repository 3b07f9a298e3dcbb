//! The record of a test: printed, written, and kept in the history under the device's identity.

use crate::failure::Failure;
use crate::output::{self, Outputs};
use crate::{flags, kept};
use clap::{ArgMatches, Command};
use trueio_device::{System, environment};
use trueio_model::{
    POWERCUT_FORMAT, POWERCUT_VERSION, PowercutRecord, PowercutWay, TargetFacts, error_chain, powercut_reach,
};
use trueio_powercut::cut::{Standing, disk_standing};
use trueio_report::{message, powercut_json, powercut_limit, powercut_verdicts};
use trueio_run::{now, random_id, tool_facts};

/// Adds the options for the record.
pub(super) fn outputs(command: Command) -> Command {
    command
        .arg(flags::json("Write the record as JSON; without FILE to standard output"))
        .arg(flags::switch("no-history", "Do not store the record in the history").help_heading("Output"))
}

/// Makes the record of all cuts so far. `started` is when the test began, in seconds since 1970 and as text.
pub(super) fn record_of(
    target: TargetFacts,
    way: PowercutWay,
    (started_unix_s, started_at): (u64, String),
    cuts: u64,
    methods: &[Standing],
) -> PowercutRecord {
    let environment = environment(&System::live());
    let (reach, reach_reason) = powercut_reach(&target, &environment);
    let Standing { verdict, sentence, .. } = disk_standing(methods);
    PowercutRecord {
        format: POWERCUT_FORMAT.to_owned(),
        version: POWERCUT_VERSION,
        id: random_id(),
        started_unix_s,
        started_at,
        command: flags::as_typed(),
        tool: tool_facts(),
        way,
        target,
        environment,
        cuts,
        reach,
        reach_reason,
        verdict,
        sentence,
        methods: methods.iter().filter_map(Standing::record).collect(),
    }
}

/// Returns the time now, as [`record_of`] takes it.
pub(super) fn started() -> (u64, String) {
    let (ms, text) = now();
    (ms / 1000, text)
}

/// Prints the record with `more` lines, writes it to the file of `--json`, and keeps it in the history. A history that cannot be written
/// is a warning.
pub(super) fn deliver(
    record: &PowercutRecord,
    more: &str,
    outputs: Outputs,
    matches: &ArgMatches,
) -> Result<(), Failure> {
    let json = powercut_json(record) + "\n";
    let printed = if output::is_json_to_stdout(matches) {
        output::print_all(&json)
    } else {
        let limit = powercut_limit(record).map_or(String::new(), |limit| limit + "\n");
        let verdicts = powercut_verdicts(record.verdict, &record.sentence, &record.methods);
        output::print_all(&trueio_report::clean_lines(&format!("{verdicts}{limit}{more}")))
    };
    if !matches.get_flag("no-history")
        && let Err(error) = kept::keep_powercut(record, &json)
    {
        message!("warning: {}", error_chain("the record was not stored in the history", Some(&error)));
    }
    printed.and(outputs.write(|_| Ok(json.clone())))
}
