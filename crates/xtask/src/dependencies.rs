//! Compares the table of docs/dependencies.md with the manifests: each direct dependency has a row, and no other crate has one.
//!
//! A row holds the crate, its last release with the date, the licence, the use and the reason. Dates are the newest of the registry when
//! the row was written; they are not compared, because each release would fail the check.
//!
//! Limit: crates of this repository, which have a path, have no row.

use crate::workspace::{self, cargo};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "docs/dependencies.md";
/// Manifests with a lock file of their own.
const MANIFESTS: [&str; 4] =
    ["Cargo.toml", "bindings/python/Cargo.toml", "crates/direct/tests/runtimes/Cargo.toml", "fuzz/Cargo.toml"];

/// Returns the number of dependencies; the error lists all differences.
pub(crate) fn check() -> Result<usize> {
    let page = std::fs::read_to_string(workspace::root().join(PAGE)).context(PAGE)?;
    let graphs = MANIFESTS.iter().map(|manifest| metadata(manifest)).collect::<Result<Vec<_>>>()?;
    let used = licences(&graphs);
    let faults = faults(&page, &used);
    ensure!(faults.is_empty(), "{PAGE}: {}", faults.join("; "));
    Ok(used.len())
}

fn metadata(manifest: &str) -> Result<Value> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--all-features", "--format-version", "1", "--manifest-path", manifest]);
    let output = metadata.output().context("cargo cannot be started")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` of {manifest}: {}", messages.trim());
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")
}

/// Returns the direct dependencies that are no crates of this repository, with the licences of all their versions.
fn licences(graphs: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for graph in graphs {
        let members = list(&graph["workspace_members"]);
        for package in list(&graph["packages"]).iter().filter(|package| members.contains(&package["id"])) {
            let others = list(&package["dependencies"]).into_iter().filter(|dependency| dependency["path"].is_null());
            found.extend(others.map(|dependency| (text(&dependency["name"]), BTreeSet::new())));
        }
    }
    for package in graphs.iter().flat_map(|graph| list(&graph["packages"])) {
        if let Some(licences) = found.get_mut(&text(&package["name"])) {
            licences.insert(text(&package["license"]));
        }
    }
    found
}

/// Returns each difference between the table and the dependencies, one sentence each.
fn faults(page: &str, used: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let rows: Vec<Vec<&str>> = page
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut faults = Vec::new();
    let mut named = BTreeSet::new();
    for row in &rows {
        let &[name, release, licence, purpose, reason] = row.as_slice() else {
            faults.push(format!("the row `{}` has not five cells", row.join(" | ")));
            continue;
        };
        let name = name.trim_matches('`');
        if !named.insert(name) {
            faults.push(format!("`{name}` has two rows"));
        }
        match used.get(name) {
            None => faults.push(format!("`{name}` has a row and is not a dependency")),
            Some(licences) if !licences.contains(licence) => {
                faults.push(format!("`{name}` has the licence {licences:?}, not `{licence}`"));
            }
            Some(_) => {}
        }
        let date = release.rsplit(' ').next().unwrap_or_default();
        if !is_date(date) {
            faults.push(format!("`{name}` has no date of its last release"));
        }
        if purpose.is_empty() || reason.is_empty() {
            faults.push(format!("`{name}` has no use or no reason"));
        }
    }
    let without_row = used.keys().filter(|name| !named.contains(name.as_str()));
    faults.extend(without_row.map(|name| format!("`{name}` has no row")));
    faults
}

/// True of `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HEAD: &str = "Words.\n\n| crate | last release | licence | used for | why |\n|---|---|---|---|---|\n";

    fn faults_of(rows: &str) -> Vec<String> {
        let graph = json!({
            "workspace_members": ["a"],
            "packages": [
                {"id": "a", "name": "a", "license": "MIT", "dependencies": [
                    {"name": "b", "path": null}, {"name": "own", "path": "/w/own"}, {"name": "csv", "path": null},
                ]},
                {"id": "b1", "name": "b", "license": "MIT", "dependencies": [{"name": "of-b", "path": null}]},
                {"id": "b2", "name": "b", "license": "ISC", "dependencies": []},
                {"id": "csv", "name": "csv", "license": "Unlicense/MIT", "dependencies": []},
            ],
        });
        faults(&format!("{HEAD}{rows}\n## Written here\n\n| what | where |\n|---|---|\n"), &licences(&[graph]))
    }

    #[test]
    fn a_row_for_each_direct_dependency_passes() {
        let rows = "| `b` | 1.0.0, 2026-11-23 | ISC | x | y |\n| `csv` | 1, 2025-10-17 | Unlicense/MIT | x | y |\n";
        assert_eq!(faults_of(rows), [""; 0]);
    }

    #[test]
    fn missing_and_foreign_rows_wrong_licences_and_missing_dates_are_found() {
        let rows = "| `b` | 1.0.0 | GPL-2.0 | x | y |\n| `of-b` | 1, 2026-01-02 | MIT | x | |\n| `b` | x |\n";
        let expected = [
            "`b` has the licence {\"ISC\", \"MIT\"}, not `GPL-2.0`",
            "`b` has no date of its last release",
            "`of-b` has a row and is not a dependency",
            "`of-b` has no use or no reason",
            "the row ``b` | x` has not five cells",
            "`csv` has no row",
        ];
        assert_eq!(faults_of(rows), expected);
    }
}
