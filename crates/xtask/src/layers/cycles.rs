//! Finds cycles between the files of a crate.
//!
//! Files form a cycle if each takes names from the other, directly or through further files. A name
//! counts for the file that defines it, wherever it is re-exported. Not counted: `mod child;`, a
//! `pub use` whose name the file itself does not use, names that a module takes from the modules it is
//! inside of, and tests.

use super::modules::{Tree, Uses};
use std::collections::{BTreeMap, BTreeSet};

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

/// Returns one sentence for each cycle.
pub(super) fn faults(cycles: &[Cycle]) -> Vec<String> {
    let sentence = |cycle: &Cycle| {
        let files: Vec<&str> = cycle.files.iter().map(String::as_str).collect();
        format!("cycle between modules: {}\n  {}", files.join(", "), cycle.ties.join("\n  "))
    };
    cycles.iter().map(sentence).collect()
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
    fn a_cycle_is_one_sentence_with_its_files_and_what_ties_them() {
        let cycle = Cycle { files: ["e/a.rs", "e/b.rs"].map(String::from).into(), ties: vec!["a -> b: X".into()] };
        assert_eq!(faults(&[cycle]), ["cycle between modules: e/a.rs, e/b.rs\n  a -> b: X"]);
        assert_eq!(faults(&[]), Vec::<String>::new());
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
}
