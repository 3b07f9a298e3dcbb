//! Checks the dependencies between the crates against the table of rows in ARCHITECTURE.md.
//!
//! A crate may depend only on crates of rows above its own (smaller numbers); its tests, too. A crate in the row `–` may depend
//! on every other crate, and no crate may depend on it, except on `testkit`, which `xtask` and the tests of every crate may use.
//!
//! Limits: reads manifests, not what the code does.

use crate::workspace;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Prints each fault; returns `false` if there is one.
pub(crate) fn run() -> Result<bool> {
    let page = std::fs::read_to_string(workspace::root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let faults = faults(&page, &workspace::metadata()?);
    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() {
        println!("layers: passed");
    }
    Ok(faults.is_empty())
}

/// Returns the row of each crate in the table whose first columns are `row` and `crate`; `–` is a row after all others.
fn rows(page: &str) -> BTreeMap<&str, u32> {
    let lines = page.lines().skip_while(|line| !line.starts_with("| row | crate |")).skip(2);
    let cells = lines.take_while(|line| line.starts_with('|')).filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        Some((cells.next()?.parse().unwrap_or(u32::MAX), cells.next()?.trim_matches('`')))
    });
    cells.map(|(row, name)| (name, row)).collect()
}

/// Returns each difference between the table and the manifests, one sentence each.
fn faults(page: &str, metadata: &Value) -> Vec<String> {
    let rows = rows(page);
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut faults, mut members) = (Vec::new(), Vec::new());
    for package in items(&metadata["packages"]) {
        let name =
            Path::new(package["manifest_path"].as_str().unwrap_or_default()).parent().map(last).unwrap_or_default();
        for dependency in items(&package["dependencies"]) {
            // Only a dependency within the workspace has a path.
            let Some(used) = dependency["path"].as_str().map(|path| last(Path::new(path))) else { continue };
            let (Some(own), Some(of_used)) = (rows.get(name.as_str()), rows.get(used.as_str())) else { continue };
            let is_testkit = used == "testkit" && (dependency["kind"] == "dev" || name == "xtask");
            if of_used >= own && !is_testkit {
                faults.push(format!("`{name}` uses `{used}`, which is not in a row above its own in ARCHITECTURE.md"));
            }
        }
        members.push(name);
    }
    let without_row = members.iter().filter(|name| !rows.contains_key(name.as_str()));
    faults.extend(without_row.map(|name| format!("`{name}` is missing from the table in ARCHITECTURE.md")));
    let unknown = rows.keys().filter(|name| !members.iter().any(|member| member == *name));
    faults.extend(unknown.map(|name| format!("ARCHITECTURE.md names `{name}`, which is not a crate of the workspace")));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PAGE: &str = "| a | b |\n|---|---|\n| 0 | `no_crate` |\n\n| row | crate | purpose |\n|---|---|---|\n| 0 | `model` | \
                        documents |\n| 1 | `stats` | sums |\n| – | `testkit` | tests |\n| – | `xtask` | this |\n\nWords.";

    /// Returns the faults of a workspace with the crates of `PAGE`, of which `name` depends on `used` in its `kind` of targets.
    fn faults_if(name: &str, used: &str, kind: &Value) -> Vec<String> {
        let package = |package: &str| {
            let dependency = json!({"path": format!("/w/crates/{used}"), "kind": kind});
            let dependencies = if package == name { vec![dependency] } else { Vec::new() };
            json!({"manifest_path": format!("/w/crates/{package}/Cargo.toml"), "dependencies": dependencies})
        };
        let packages = ["model", "stats", "testkit", "xtask"].map(package);
        faults(PAGE, &json!({"packages": packages}))
    }

    #[test]
    fn only_rows_above_and_the_testkit_of_tests_may_be_used() {
        let dev = json!("dev");
        for (name, used, kind) in [
            ("stats", "model", &Value::Null),
            ("xtask", "stats", &Value::Null),
            ("model", "testkit", &dev),
            ("xtask", "testkit", &Value::Null),
        ] {
            assert_eq!(faults_if(name, used, kind), Vec::<String>::new());
        }
        for (name, used, kind) in [
            ("model", "stats", &Value::Null),
            ("stats", "stats", &dev),
            ("stats", "xtask", &dev),
            ("model", "testkit", &Value::Null),
        ] {
            let fault = format!("`{name}` uses `{used}`, which is not in a row above its own in ARCHITECTURE.md");
            assert_eq!(faults_if(name, used, kind), [fault]);
        }
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let package = |name: &str| json!({"manifest_path": format!("/w/crates/{name}/Cargo.toml"), "dependencies": []});
        let packages = ["model", "engine", "testkit", "xtask"].map(package);
        let faults = faults(PAGE, &json!({"packages": packages}));
        let missing = "`engine` is missing from the table in ARCHITECTURE.md";
        assert_eq!(faults, [missing, "ARCHITECTURE.md names `stats`, which is not a crate of the workspace"]);
    }
}
