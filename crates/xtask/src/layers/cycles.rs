//! Finds cycles between the files of a crate.
//!
//! Files form a cycle if each takes names from the other, directly or through further files. A name
//! counts for the file that defines it, wherever it is re-exported. Not counted: `mod child;`, a
//! `pub use` whose name the file itself does not use, names that a module takes from the modules it is
//! inside of, and tests.
//!
//! Cycles that existed when this check began are listed in `known_cycles.txt`, one file a line. The list can
//! only shrink: a file in a cycle that is not listed fails, and so does a listed file in no cycle.

use super::modules::{Tree, Uses};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const KNOWN: &str = "crates/xtask/src/layers/known_cycles.txt";

/// Files that take names from each other, in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cycle {
    files: BTreeSet<String>,
    /// What ties them: `a -> b: names`.
    ties: Vec<String>,
}

impl Cycle {
    /// Prefixes each file with the crate's name.
    pub(super) fn of_package(mut self, package: &str) -> Self {
        self.files = self.files.iter().map(|file| format!("{package}/{file}")).collect();
        self
    }
}

/// Returns every cycle: the largest sets of files in which each reaches each.
pub(super) fn find(tree: &Tree) -> Vec<Cycle> {
    let uses = tree.uses();
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (file.as_str(), reach(&uses, file))).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut cycles = Vec::new();
    for (&file, others) in &reached {
        if !others.contains(file) || seen.contains(file) {
            continue;
        }
        let is_mutual = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
        let files: BTreeSet<&str> = others.iter().filter(is_mutual).copied().collect();
        seen.extend(files.iter().copied());
        cycles.push(cycle(&uses, &files));
    }
    cycles
}

/// Returns all files that `file` takes names from, directly or through others.
fn reach<'a>(uses: &'a Uses, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        for giver in uses.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(giver.as_str()) {
                open.push(giver);
            }
        }
    }
    reached
}

fn cycle(uses: &Uses, files: &BTreeSet<&str>) -> Cycle {
    let mut ties = Vec::new();
    for &file in files {
        for (giver, names) in uses.get(file).into_iter().flatten().filter(|(giver, _)| files.contains(giver.as_str())) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            ties.push(format!("{file} -> {giver}: {}", names.join(", ")));
        }
    }
    Cycle { files: files.iter().map(|&file| file.to_owned()).collect(), ties }
}

/// Reads the list of files that are known to be in a cycle, as `crate/src/file.rs`.
pub(super) fn read_known(root: &Path) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(root.join(KNOWN)).context(KNOWN)?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Takes files that are in no cycle any more off the list.
pub(super) fn shorten_known(root: &Path, cycles: &[Cycle]) -> Result<()> {
    let known = read_known(root)?;
    let kept = known.iter().filter(|file| cycles.iter().any(|cycle| cycle.files.contains(*file)));
    let text: String = kept.map(|file| format!("{file}\n")).collect();
    std::fs::write(root.join(KNOWN), text).context(KNOWN)
}

/// Compares the cycles with the list of known ones; one sentence for each difference.
pub(super) fn faults(cycles: &[Cycle], known: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for cycle in cycles {
        let new: Vec<&str> = cycle.files.difference(known).map(String::as_str).collect();
        if !new.is_empty() {
            faults.push(format!(
                "cycle between modules: {} (if a file of a known cycle moved, change its line in {KNOWN})\n  {}",
                new.join(", "),
                cycle.ties.join("\n  ")
            ));
        }
    }
    let gone = known.iter().filter(|file| !cycles.iter().any(|cycle| cycle.files.contains(*file)));
    faults.extend(
        gone.map(|file| format!("`{file}` is in no cycle any more: `cargo xtask layers --write` takes it off {KNOWN}")),
    );
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Writes files below a temporary directory and returns the cycles of the crate.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<Cycle> {
        let directory = tempfile::tempdir().unwrap();
        for (name, source) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, source).unwrap();
        }
        let root: PathBuf = directory.path().join("src/lib.rs");
        find(&Tree::read(&[root], directory.path()).unwrap())
    }

    fn ties_of(files: &[(&str, &str)]) -> Vec<String> {
        cycles_of(files).into_iter().flat_map(|cycle| cycle.ties).collect()
    }

    #[test]
    fn two_files_that_take_names_from_each_other_are_a_cycle() {
        let ties = ties_of(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b::B; pub struct A(B);"),
            ("src/b.rs", "pub struct B; fn f() { println!(\"{}\", crate::a::A::new()) }"),
        ]);
        assert_eq!(ties, ["src/a.rs -> src/b.rs: B", "src/b.rs -> src/a.rs: A"]);
    }

    #[test]
    fn a_cycle_through_a_third_file_is_found() {
        let cycles = cycles_of(&[
            ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("src/a.rs", "use super::b; pub fn f() { b::g() }"),
            ("src/b.rs", "use crate::c::*; pub fn g() { h() }"),
            ("src/c.rs", "pub fn h() { crate::a::f() }"),
            ("src/d.rs", "use crate::{a::f, b::g as other};"),
        ]);
        assert_eq!(cycles.len(), 1);
        let files: Vec<&str> = cycles[0].files.iter().map(String::as_str).collect();
        assert_eq!(files, ["src/a.rs", "src/b.rs", "src/c.rs"]);
    }

    #[test]
    fn a_child_may_use_what_its_parent_defines_but_not_a_user_of_the_parent() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "mod part; use part::Part; pub struct Whole { part: Part }"),
            ("src/a/part.rs", "pub struct Part; impl Part { fn of(whole: &super::Whole) {} }"),
            ("src/b.rs", "pub struct Other(crate::a::Whole);"),
        ];
        assert_eq!(ties_of(&files), Vec::<String>::new());
        let mut files = files;
        files[2].1 = "pub struct Part(crate::b::Other);";
        assert_eq!(
            ties_of(&files),
            ["src/a.rs -> src/a/part.rs: Part", "src/a/part.rs -> src/b.rs: Other", "src/b.rs -> src/a.rs: Whole"]
        );
    }

    #[test]
    fn a_name_counts_for_the_file_that_defines_it_and_not_for_those_that_re_export_it() {
        let ties = ties_of(&[
            ("src/lib.rs", "mod a; pub use a::{One, Two};"),
            ("src/a.rs", "mod one; mod two; pub use one::One; pub use two::*;"),
            ("src/a/one.rs", "use super::Two; pub struct One(Two);"),
            ("src/a/two.rs", "pub struct Two; use crate as root; fn f() -> root::a::two::Two { Two }"),
        ]);
        assert_eq!(ties, Vec::<String>::new());
    }

    #[test]
    fn a_re_exported_name_counts_only_if_the_same_file_uses_it() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub use crate::b::B; pub struct A;"),
            ("src/b.rs", "pub struct B(crate::a::A);"),
        ];
        assert_eq!(ties_of(&files), Vec::<String>::new());
        let mut files = files;
        files[1].1 = "pub use crate::b::B; pub struct A; fn f() -> Option<B> { None }";
        assert_eq!(ties_of(&files), ["src/a.rs -> src/b.rs: B", "src/b.rs -> src/a.rs: A"]);
    }

    #[test]
    fn tests_do_not_count() {
        let ties = ties_of(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] mod more;"),
            ("src/a/more.rs", "use crate::b::B;"),
            ("src/b.rs", "pub struct B(crate::a::A);"),
        ]);
        assert_eq!(ties, Vec::<String>::new());
    }

    #[test]
    fn the_list_of_known_cycles_must_name_every_file_in_a_cycle_and_no_other() {
        let cycle = Cycle { files: ["e/a.rs", "e/b.rs"].map(String::from).into(), ties: vec!["a -> b: X".into()] };
        let known = |files: &[&str]| files.iter().map(|file| (*file).to_owned()).collect::<BTreeSet<_>>();
        let cycles = [cycle];
        assert_eq!(faults(&cycles, &known(&["e/a.rs", "e/b.rs"])), Vec::<String>::new());
        assert!(faults(&cycles, &known(&["e/a.rs"]))[0].starts_with("cycle between modules: e/b.rs ("));
        assert!(faults(&[], &known(&["e/a.rs"]))[0].starts_with("`e/a.rs` is in no cycle any more"));
    }
}
