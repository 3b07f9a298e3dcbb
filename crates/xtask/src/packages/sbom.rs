//! The bill of materials: the crates in the binary, with versions, licences and checksums, as CycloneDX.
//!
//! Limit: SQLite is a part of the crate `libsqlite3-sys`, and named only there.
//!
//! Source: CycloneDX 1.5 (ECMA-424), JSON; package-url, type `cargo`.

use super::{Release, output_of};
use crate::workspace::{self, cargo};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Writes the bill and returns the number of its components.
pub(super) fn write(release: &Release) -> Result<usize> {
    let text = output_of(cargo().args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock), release)?;
    let count = bill["components"].as_array().map_or(0, Vec::len);
    ensure!(count > 50, "the bill has only {count} components");
    std::fs::write(release.packages.join(format!("trueio-{}.cdx.json", release.version)), format!("{bill:#}\n"))?;
    Ok(count)
}

/// Returns the checksums in `Cargo.lock` by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        block
            .lines()
            .find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.trim_end_matches('"').to_owned()))
    };
    lock.split("[[package]]")
        .filter_map(|block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?)))
        .collect()
}

fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>, release: &Release) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == "trueio-cli")
        .context("the workspace has no trueio-cli")?
        .0
        .clone();
    // What is linked: dependencies that are neither for tests nor for build scripts, and no macros.
    let linked = |id: &String| -> Vec<String> {
        let node = nodes.get(id).cloned().unwrap_or_default();
        let is_linked = |dependency: &Value| {
            let is_macro = list(&packages[&text(&dependency["pkg"])]["targets"])
                .iter()
                .any(|target| target["kind"][0] == "proc-macro");
            !is_macro && list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        };
        list(&node["deps"])
            .iter()
            .filter(|dependency| is_linked(dependency))
            .map(|dependency| text(&dependency["pkg"]))
            .collect()
    };
    let (mut found, mut next) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(id) = next.pop() {
        if found.insert(id.clone()) {
            next.extend(linked(&id));
        }
    }
    let reference =
        |id: &String| format!("pkg:cargo/{}@{}", text(&packages[id]["name"]), text(&packages[id]["version"]));
    let component = |id: &String| {
        let package = &packages[id];
        let mut component = json!({
            "type": "library", "bom-ref": reference(id), "name": package["name"], "version": package["version"],
            "purl": reference(id),
            "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
        });
        if let Some(checksum) = checksums.get(&(text(&package["name"]), text(&package["version"]))) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let time = output_of(
        release.command("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{}", release.commit_unix_s)),
    )?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.trim(),
            "component": { "type": "application", "bom-ref": "trueio", "name": "trueio", "version": release.version },
        },
        "components": found.iter().filter(|id| **id != root).map(component).collect::<Vec<_>>(),
        "dependencies": found.iter().map(|id| json!({
            "ref": if *id == root { "trueio".to_owned() } else { reference(id) },
            "dependsOn": linked(id).iter().map(&reference).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_found_by_name_and_version_and_a_crate_of_the_workspace_has_none() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        let found = checksums(lock);
        assert_eq!(found, BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), "ab".to_owned())]));
    }

    /// Goal: the bill has what is linked, and not what only builds or tests.
    #[test]
    fn the_bill_has_linked_crates_and_neither_macros_nor_dependencies_of_tests() {
        let package = |name: &str, kind: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "targets": [{"kind": [kind]}]});
        let dependency = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("trueio-cli", "bin"), package("linked", "lib"), package("macro", "proc-macro"), package("test", "lib")],
            "resolve": {"nodes": [
                {"id": "trueio-cli", "deps": [dependency("linked", Value::Null), dependency("macro", Value::Null), dependency("test", json!("dev"))]},
                {"id": "linked", "deps": []},
            ]},
        });
        let release = Release { version: "1.0.0".into(), commit_unix_s: 0, packages: "".into(), scratch: "".into() };
        let bill = bill(&metadata, &BTreeMap::new(), &release).expect("a bill");
        let names: Vec<&Value> =
            bill["components"].as_array().expect("a list").iter().map(|component| &component["name"]).collect();
        assert_eq!(names, ["linked"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
    }
}
