//! `trueio history` and `trueio report`: what was measured before.

use crate::failure::Failure;
use crate::output;
use clap::ArgMatches;
use std::path::Path;
use std::process::ExitCode;
use trueio_model::RunRecord;
use trueio_store::Store;

fn store() -> Result<Store, Failure> {
    let open = || Store::open(&trueio_store::default_directory()?);
    open().map_err(|e| Failure::failed("the history cannot be opened", &e))
}

/// `trueio history`.
pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let limit = *matches.get_one::<usize>("limit").expect("it has a default");
    let entries = store()?.list(limit).map_err(|e| Failure::failed("the history cannot be read", &e))?;
    if matches.get_flag("json") {
        let rows: Vec<_> = entries
            .iter()
            .map(|e| {
                serde_json::json!({
                    "id": e.id, "started_at": e.started_at, "kind": e.kind, "target": e.target,
                    "disk": e.disk, "verdict": e.verdict, "outcome": e.outcome, "summary": e.summary,
                })
            })
            .collect();
        output::print_all(&format!("{:#}\n", serde_json::Value::from(rows)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        eprintln!("nothing was measured yet; `trueio baseline` begins");
    }
    for entry in entries {
        output::print_all(&format!(
            "{}  {}  {:8}  {:12}  {}  {}\n",
            &entry.id[..entry.id.len().min(8)],
            entry.started_at,
            entry.kind,
            entry.verdict,
            entry.target,
            entry.summary
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `trueio report`.
pub(crate) fn report(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    output::check(matches)?;
    let name = matches.get_one::<String>("record").expect("clap demands it");
    output::refuse_to_replace(matches, std::iter::once(Path::new(name)))?;
    let record = find(name)?;
    output::deliver(&record, matches, false)?;
    Ok(ExitCode::SUCCESS)
}

/// A record by its file or its id.
fn find(name: &str) -> Result<RunRecord, Failure> {
    let path = Path::new(name);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::refused(format!("`{name}` cannot be read\n  because: {e}")))?;
        return trueio_report::parse(&text)
            .map_err(|e| Failure::refused(format!("`{name}` is no record that can be read\n  because: {e}")));
    }
    let stored =
        store()?.get(name).map_err(|e| Failure::refused_by(&e, Some("`trueio history` lists what there is")))?;
    trueio_report::parse(&stored.json)
        .map_err(|e| Failure::refused(format!("the history's record {name} cannot be read\n  because: {e}")))
}
