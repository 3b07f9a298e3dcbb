//! The map of modules in ARCHITECTURE.md: one line for each source file, with its purpose.
//!
//! The purpose is the first sentence of the file's `//!` documentation, so a map that is out of date is
//! repaired by `cargo xtask layers --write`. Tests are left out.

use super::Package;
use super::modules::Tree;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- modules:begin (written by `cargo xtask layers --write`) -->\n";
const END: &str = "<!-- modules:end -->";

/// Renders a crate's part of the map; returns it with the faults of its files.
pub(super) fn section(package: &Package, tree: &Tree) -> Result<(String, Vec<String>)> {
    let mut files = Vec::new();
    sources(&package.directory.join("src"), &package.directory, &mut files)?;
    files.retain(|file| !tree.is_test_file(file));
    // `a.rs` stands before `a/b.rs`, and the roots before all.
    files.sort_by_key(|file| {
        let name = file.trim_end_matches(".rs").to_owned();
        (!["src/lib", "src/main"].contains(&name.as_str()), name.replace('/', "\0"))
    });
    let mut text = format!("### `{}`\n\n| file | purpose |\n|---|---|\n", package.name);
    let mut faults = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(package.directory.join(file)).with_context(|| file.clone())?;
        let whole = format!("{}/{file}", package.name);
        if !tree.files().any(|known| known == file) {
            faults.push(format!("`{whole}` belongs to no module of its crate"));
        }
        match purpose(&source) {
            Some(purpose) => writeln!(text, "| `{}` | {purpose} |", file.trim_start_matches("src/"))?,
            None => faults.push(format!("`{whole}` does not begin with a `//!` sentence that states its purpose")),
        }
    }
    Ok((text, faults))
}

/// Collects the Rust files below `folder`, relative to `directory`.
fn sources(folder: &Path, directory: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, directory, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.strip_prefix(directory)?.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Returns the first sentence of the `//!` documentation, fit for a table; `None` if there is none.
fn purpose(source: &str) -> Option<String> {
    let lines = source.lines().skip_while(|line| line.is_empty() || line.starts_with("#!["));
    let documentation = lines.map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = documentation.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let sentence = paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _)| first);
    let sentence = sentence.trim_start_matches("# ").trim_end_matches(['.', ':']);
    // Links to items lead nowhere outside the documentation of the crate.
    let sentence = sentence.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
    (!sentence.is_empty()).then_some(sentence)
}

/// Splits a page at the markers: before the map, the map, after it.
fn split(page: &str) -> Result<(&str, &str, &str)> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let Some((before, (map, after))) = parts else {
        bail!("ARCHITECTURE.md has no lines `{}` and `{END}`", BEGIN.trim_end())
    };
    Ok((before, map, after))
}

/// Returns `page` with the map `rendered`.
pub(super) fn replaced(page: &str, rendered: &str) -> Result<String> {
    let (before, _, after) = split(page)?;
    Ok(format!("{before}{BEGIN}\n{rendered}\n{END}{after}"))
}

/// Compares the page's map with `rendered`; names the first line that differs.
pub(super) fn compared(page: &str, rendered: &str) -> Result<Option<String>> {
    let (_, map, _) = split(page)?;
    let (kept, rendered): (Vec<&str>, Vec<&str>) = (map.trim().lines().collect(), rendered.trim().lines().collect());
    if kept == rendered {
        return Ok(None);
    }
    let differs = (0..).find(|&index| kept.get(index) != rendered.get(index)).unwrap_or_default();
    let line = |lines: &[&str]| lines.get(differs).map_or("(end)", |line| line).to_owned();
    Ok(Some(format!(
        "ARCHITECTURE.md: the map of modules is not what the files' `//!` sentences give; \
         `cargo xtask layers --write` rewrites it\n  page   {}\n  files  {}",
        line(&kept),
        line(&rendered)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_purpose_is_the_first_sentence_of_the_documentation() {
        let source = "//! Reads [`Row`]s, one\n//! a | line. More words.\n//!\n//! Limits: none.\nuse x;";
        assert_eq!(purpose(source).as_deref(), Some("Reads `Row`s, one a \\| line"));
        assert_eq!(purpose("#![no_std]\n//! The whole.\n").as_deref(), Some("The whole"));
        assert_eq!(purpose("use x;\n//! Late."), None);
    }

    /// Goal: the map follows the tree.
    /// Method: a crate of three files, one of them in no module and without documentation.
    #[test]
    fn files_are_listed_with_their_purpose_and_strays_are_faults() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("src");
        std::fs::create_dir_all(source.join("a")).unwrap();
        std::fs::write(source.join("lib.rs"), "//! The crate.\nmod a; #[cfg(test)] mod tests;").unwrap();
        std::fs::write(source.join("a.rs"), "//! Part A.").unwrap();
        std::fs::write(source.join("tests.rs"), "").unwrap();
        std::fs::write(source.join("a/stray.rs"), "fn f() {}").unwrap();
        let roots = vec![source.join("lib.rs")];
        let package = Package { name: "crates".into(), directory: PathBuf::from(directory.path()), roots };
        let tree = Tree::read(&package.roots, directory.path()).unwrap();
        let (text, faults) = section(&package, &tree).unwrap();
        assert_eq!(
            text,
            "### `crates`\n\n| file | purpose |\n|---|---|\n| `lib.rs` | The crate |\n| `a.rs` | Part A |\n"
        );
        assert_eq!(
            faults,
            [
                "`crates/src/a/stray.rs` belongs to no module of its crate",
                "`crates/src/a/stray.rs` does not begin with a `//!` sentence that states its purpose"
            ]
        );
    }

    #[test]
    fn a_map_that_differs_is_a_fault_that_names_the_command_and_the_line() {
        let page = replaced(&format!("Words.\n\n{BEGIN}old\n{END}\nMore.\n"), "| a |\n| b |").unwrap();
        assert_eq!(page, format!("Words.\n\n{BEGIN}\n| a |\n| b |\n{END}\nMore.\n"));
        assert_eq!(compared(&page, "| a |\n| b |\n").unwrap(), None);
        let fault = compared(&page, "| a |\n| c |").unwrap().unwrap();
        assert!(
            fault.contains("cargo xtask layers --write") && fault.ends_with("page   | b |\n  files  | c |"),
            "{fault}"
        );
        assert!(compared("no markers", "").is_err());
    }
}
