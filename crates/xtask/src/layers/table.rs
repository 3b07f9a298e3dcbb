//! Checks the dependencies between crates against the table in ARCHITECTURE.md.
//!
//! A crate may depend only on crates of rows above its own (smaller numbers); its tests, too. A crate
//! in the row `–` may depend on every other crate, and no crate may depend on it, except on `testkit`, which
//! `xtask` and the tests of every crate may use. Each member of the workspace is in the table exactly once, and the table names nothing else.
//!
//! Limits: reads manifests only, not what the code does.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A crate's row; `Outside` for `–`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Number(u32),
    Outside,
}

/// Parses the table: crate directory → row, and what is wrong with it. Its head has the columns `row` and `crate`.
fn table(page: &str) -> (BTreeMap<String, Row>, Vec<String>) {
    let mut rows = BTreeMap::new();
    let mut faults = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.trim_start().starts_with('|') {
            is_inside = false;
        } else if cells.starts_with(&["row", "crate"]) {
            is_inside = true;
        } else if is_inside && cells.len() >= 2 && !cells[0].starts_with("--") {
            let row = match cells[0] {
                "–" | "-" => Row::Outside,
                number => match number.parse() {
                    Ok(number) => Row::Number(number),
                    Err(_) => {
                        faults.push(format!("ARCHITECTURE.md: `{number}` is not a row number"));
                        continue;
                    }
                },
            };
            // Names are in backquotes, so every second piece is a name.
            for name in cells[1].split('`').skip(1).step_by(2) {
                if rows.insert(name.to_owned(), row).is_some() {
                    faults.push(format!("ARCHITECTURE.md: `{name}` is in the table twice"));
                }
            }
        }
    }
    (rows, faults)
}

/// Returns the crates of the table in its order.
pub(super) fn order(page: &str) -> Vec<String> {
    let mut rows: Vec<(Row, usize, String)> = table(page)
        .0
        .into_iter()
        .map(|(name, row)| (row, page.find(&format!("`{name}`")).unwrap_or(0), name))
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, _, name)| name).collect()
}

/// Returns each difference between the table and the manifests, one sentence each.
pub(super) fn faults(page: &str, metadata: &Value) -> Vec<String> {
    let (rows, mut faults) = table(page);
    if rows.is_empty() {
        faults.push("ARCHITECTURE.md: no table whose first columns are `row` and `crate`".into());
        return faults;
    }
    let directory = |path: &Value, is_manifest: bool| -> Option<String> {
        let path = Path::new(path.as_str()?);
        let path = if is_manifest { path.parent()? } else { path };
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut members = Vec::new();
    for package in packages {
        let Some(name) = directory(&package["manifest_path"], true) else { continue };
        let row = rows.get(&name).copied();
        if row.is_none() {
            faults.push(format!("`{name}` is missing from the table in ARCHITECTURE.md"));
        }
        members.push(name.clone());
        for dependency in package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default() {
            // Only a dependency within the workspace has a path.
            let Some(used) = directory(&dependency["path"], false) else { continue };
            let (Some(row), Some(&used_row)) = (row, rows.get(&used)) else { continue };
            let is_allowed = match (used_row, row) {
                (Row::Outside, _) => used == "testkit" && (dependency["kind"] == "dev" || name == "xtask"),
                (Row::Number(_), Row::Outside) => true,
                (Row::Number(used), Row::Number(own)) => used < own,
            };
            if !is_allowed {
                let kind = dependency["kind"].as_str().map(|kind| format!(" ({kind})")).unwrap_or_default();
                let place = |row| match row {
                    Row::Number(number) => format!("row {number}"),
                    Row::Outside => "outside the rows".to_owned(),
                };
                faults.push(format!("`{name}` ({}) uses `{used}` ({}){kind}", place(row), place(used_row)));
            }
        }
    }
    for name in rows.keys().filter(|name| !members.contains(name)) {
        faults.push(format!("ARCHITECTURE.md names `{name}`, which is not a crate of the workspace"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;
    use serde_json::json;

    const PAGE: &str = "\
| a | b |\n|---|---|\n| 0 | `not_a_crate` |\n\nWords.\n
| row | crate | purpose |\n|---|---|---|\n| 0 | `direct` | opens |\n| 0 | `model` | documents |
| 1 | `stats` `device` | sums |\n| – | `xtask` | this |\n\nMore words.";

    /// Builds the metadata of a workspace of crates and what each depends on.
    fn workspace_of(crates: &[(&str, &[&str])]) -> Value {
        let packages: Vec<Value> = crates
            .iter()
            .map(|(name, used)| {
                let used: Vec<Value> =
                    used.iter().map(|used| json!({"path": format!("/w/crates/{used}"), "kind": null})).collect();
                json!({"manifest_path": format!("/w/crates/{name}/Cargo.toml"), "dependencies": used})
            })
            .collect();
        json!({"packages": packages})
    }

    const SOUND: [(&str, &[&str]); 5] = [
        ("direct", &[]),
        ("model", &[]),
        ("stats", &["model"]),
        ("device", &["model", "direct"]),
        ("xtask", &["stats", "model"]),
    ];

    #[test]
    fn tests_of_every_crate_may_use_the_testkit_and_nothing_else_may() {
        let page = PAGE.replace("| – | `xtask` |", "| – | `xtask` `testkit` |");
        let mut workspace = workspace_of(&[("testkit", &[]), ("direct", &[])]);
        let mut faults_of_kind = |kind: Value| {
            workspace["packages"][1]["dependencies"] = json!([{"path": "/w/crates/testkit", "kind": kind}]);
            let faults = faults(&page, &workspace);
            faults.into_iter().filter(|fault| fault.contains("uses")).collect::<Vec<_>>()
        };
        assert_eq!(faults_of_kind(json!("dev")), Vec::<String>::new());
        let fault = "`direct` (row 0) uses `testkit` (outside the rows)";
        assert_eq!(faults_of_kind(Value::Null), [fault]);
    }

    #[test]
    fn crates_that_depend_only_on_rows_above_them_pass() {
        assert_eq!(faults(PAGE, &workspace_of(&SOUND)), Vec::<String>::new());
    }

    /// Goal: each kind of forbidden dependency is reported.
    /// Method: one forbidden dependency at a time in a workspace that is correct otherwise.
    #[test]
    fn a_dependency_on_the_same_row_a_lower_row_or_an_outside_crate_is_reported() {
        for (place, name, used, sentence) in [
            (0, "direct", "stats", "`direct` (row 0) uses `stats` (row 1)"),
            (3, "device", "stats", "`device` (row 1) uses `stats` (row 1)"),
            (2, "stats", "xtask", "`stats` (row 1) uses `xtask` (outside the rows)"),
        ] {
            let used = [used];
            let mut crates = SOUND;
            crates[place] = (name, &used);
            assert_eq!(faults(PAGE, &workspace_of(&crates)), [sentence]);
        }
    }

    #[test]
    fn a_dependency_of_tests_follows_the_same_rule() {
        let mut workspace = workspace_of(&SOUND);
        workspace["packages"][0]["dependencies"] = json!([{"path": "/w/crates/stats", "kind": "dev"}]);
        assert_eq!(faults(PAGE, &workspace), ["`direct` (row 0) uses `stats` (row 1) (dev)"]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_and_a_row_without_a_crate_are_reported() {
        let mut crates = SOUND.to_vec();
        crates.push(("engine", &[]));
        assert_eq!(faults(PAGE, &workspace_of(&crates)), ["`engine` is missing from the table in ARCHITECTURE.md"]);
        assert_eq!(
            faults(PAGE, &workspace_of(&SOUND[1..])),
            ["ARCHITECTURE.md names `direct`, which is not a crate of the workspace"]
        );
    }

    #[test]
    fn a_page_without_the_table_fails() {
        assert_eq!(faults("# Nothing", &workspace_of(&SOUND)).len(), 1);
    }

    #[test]
    fn the_repository_passes() {
        let page = std::fs::read_to_string(workspace::root().join("ARCHITECTURE.md")).unwrap();
        assert_eq!(faults(&page, &workspace::metadata().unwrap()), Vec::<String>::new());
    }
}
