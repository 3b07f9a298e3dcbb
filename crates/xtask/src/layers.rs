//! Checks the structure of the workspace against ARCHITECTURE.md.
//!
//! Three checks, one file each: the table of crates and what each crate may use (`table`), cycles
//! between the files of a crate (`cycles`, on the module tree that `modules` reads), and the map of
//! all module files (`map`). `cargo xtask layers --write` rewrites the map.

mod cycles;
mod map;
mod modules;
mod table;

use crate::workspace;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Whether generated text is only compared or also rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Compares.
    Check,
    /// Rewrites the map, then compares.
    Write,
}

/// A crate of the workspace and the roots of its module trees.
#[derive(Debug)]
struct Package {
    /// Its directory's name, as in the table.
    name: String,
    /// Its directory.
    directory: PathBuf,
    /// Root files of its library and programs; not of tests, examples and build scripts.
    roots: Vec<PathBuf>,
}

/// Runs all checks and prints each fault; returns `false` if there is one.
pub(crate) fn run(mode: Mode) -> Result<bool> {
    let root = workspace::root();
    let page_path = root.join("ARCHITECTURE.md");
    let mut page = std::fs::read_to_string(&page_path).context("ARCHITECTURE.md")?;
    let metadata = workspace::metadata()?;
    let mut faults = table::faults(&page, &metadata);

    let mut cyclic = Vec::new();
    let mut sections = Vec::new();
    for package in packages(&metadata, &table::order(&page)) {
        let tree = modules::Tree::read(&package.roots, &package.directory)?;
        cyclic.extend(cycles::find(&tree).into_iter().map(|cycle| cycle.of_package(&package.name)));
        let (section, missing) = map::section(&package, &tree)?;
        sections.push(section);
        faults.extend(missing);
    }

    let rendered = sections.join("\n");
    if mode == Mode::Write {
        page = map::replaced(&page, &rendered)?;
        std::fs::write(&page_path, &page)?;
    }
    faults.extend(map::compared(&page, &rendered)?);
    faults.extend(cycles::faults(&cyclic));

    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() {
        println!("layers: passed");
    }
    Ok(faults.is_empty())
}

/// Returns the members of the workspace in the order of the table.
fn packages(metadata: &serde_json::Value, order: &[String]) -> Vec<Package> {
    let list = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut packages: Vec<Package> = list.iter().filter_map(package).collect();
    packages.sort_by_key(|package| order.iter().position(|name| *name == package.name).unwrap_or(order.len()));
    packages
}

fn package(metadata: &serde_json::Value) -> Option<Package> {
    let directory = Path::new(metadata["manifest_path"].as_str()?).parent()?.to_owned();
    let is_checked = |target: &&serde_json::Value| {
        let kinds = target["kind"].as_array().map(Vec::as_slice).unwrap_or_default();
        !kinds.iter().any(|kind| ["test", "bench", "example", "custom-build"].contains(&kind.as_str().unwrap_or("")))
    };
    let targets = metadata["targets"].as_array()?;
    let roots = targets.iter().filter(is_checked).filter_map(|target| target["src_path"].as_str().map(PathBuf::from));
    let name = directory.file_name()?.to_string_lossy().into_owned();
    Some(Package { name, roots: roots.collect(), directory })
}
