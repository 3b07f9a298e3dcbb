//! `docs/refusals.md` lists each rule once. `safety_page/claims.md` lists each rule, threat and message with its tests, which exist; each
//! sentence is one that the program can print.
//!
//! Limits: whether a test shows what its row claims is not checked. Read the test when you change a row.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The page for users.
fn page() -> String {
    read(&crates().join("../docs/refusals.md"))
}

/// The tables of tests.
fn claims() -> String {
    include_str!("safety_page/claims.md").to_owned()
}

/// The cells of the table rows that begin with `prefix`, without the space around them.
fn rows(page: &str, prefix: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    page.lines().filter(|line| line.starts_with(prefix)).map(cells).collect()
}

/// The rules' names and the variant each belongs to, from the source: `Rule::X { .. } => "x",`.
/// A variant with names of its own for each kind is not followed; its names have their kind's.
fn rules() -> Vec<(String, String)> {
    let source = read(&crates().join("job/src/refusal.rs"));
    let names = source.lines().filter_map(|line| {
        let (variant, name) = line.trim().split_once(" => \"")?;
        let name = name.strip_suffix("\",")?;
        let variant = variant.split("::").nth(1)?.split([' ', '{']).next()?;
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_').then(|| (variant.to_owned(), name.to_owned()))
    });
    names.collect()
}

/// Every source file of a crate, with its path below `src` or `tests`.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&path);
            found.push((path, text));
        }
    }
    found
}

/// Asserts that `` `crate/file::name` `` is a test of a crate, in its `tests` or next to its code, and returns the text of its file.
fn test_source(name: &str) -> String {
    let name = name.trim_matches('`');
    let (file, function) = name.split_once("::").unwrap_or_else(|| panic!("`{name}` is not `crate/file::test`"));
    let (krate, file) = file.split_once('/').unwrap_or_else(|| panic!("`{name}` is not `crate/file::test`"));
    let declared = format!("fn {function}() {{");
    let is_it = |(path, text): &(PathBuf, String)| {
        let at = text.find(&declared);
        let before = at.map(|at| &text.as_bytes()[at.saturating_sub(200)..at]);
        path.with_extension("").ends_with(file)
            && before.is_some_and(|before| String::from_utf8_lossy(before).contains("#[test]"))
    };
    let folders = ["tests", "src"].map(|folder| crates().join(krate).join(folder));
    let found = folders.iter().flat_map(|folder| sources(folder)).find(is_it);
    found.unwrap_or_else(|| panic!("`{name}` does not exist")).1
}

/// Returns the cells of the rows below each heading of a table.
fn table_rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for table in page.split(heading).skip(1) {
        let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        found.extend(lines.flat_map(|line| rows(line, "|")));
    }
    found
}

/// Goal: each threat states what stops it and names tests that exist.
#[test]
fn every_threat_has_a_test_that_exists() {
    let threats = table_rows(&claims(), "| threat | what stops it | test |");
    assert!(threats.len() >= 30, "{} threats", threats.len());
    for row in threats {
        let [threat, stopped, tests] = &row[..] else { panic!("{row:?} has not three cells") };
        assert!(!threat.is_empty() && !stopped.is_empty(), "{row:?}");
        tests.split(", ").for_each(|test| drop(test_source(test)));
    }
}

/// Goal: the tables list every hole that was found by its number, with tests that exist.
#[test]
fn every_hole_that_was_found_has_a_row_with_tests_that_exist() {
    let holes = table_rows(&claims(), "| number | hole | what closes it | tests |");
    let numbers: Vec<&str> = holes.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    for row in &holes {
        let [_, hole, closed, tests] = &row[..] else { panic!("{row:?} has not four cells") };
        assert!(!hole.is_empty() && !closed.is_empty(), "{row:?}");
        tests.split(", ").for_each(|test| drop(test_source(test)));
    }
}

#[test]
fn every_rule_is_on_the_page_and_among_the_tests_once() {
    let rules = rules();
    assert!(rules.len() >= 38, "the source was not understood: {rules:?}");
    let names: BTreeSet<&String> = rules.iter().map(|(_, name)| name).collect();
    assert_eq!(names.len(), rules.len(), "two rules of one name");
    for text in [page(), claims()] {
        let listed: Vec<String> =
            rows(&text, "| `").into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
        assert_eq!(listed.iter().collect::<BTreeSet<_>>(), names);
        assert_eq!(listed.len(), names.len(), "a rule is listed twice");
    }
    for row in rows(&page(), "| `") {
        assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()), "{row:?} has not four cells");
    }
}

#[test]
fn every_test_of_a_rule_exists_and_its_file_names_the_rule() {
    let rules = rules();
    for row in rows(&claims(), "| `") {
        let [rule, test] = &row[..] else { panic!("{row:?} has not two cells") };
        let name = rule.trim_matches('`');
        let (variant, _) = rules.iter().find(|(_, known)| known == name).expect(name);
        let source = test_source(test);
        assert!(source.contains(name) || source.contains(variant.as_str()), "{test} does not name `{name}`");
    }
}

#[test]
fn every_quoted_message_exists_and_has_a_test() {
    let sources: String = fs::read_dir(crates().join("cli/src"))
        .expect("the program's source")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| read(&path))
        // Checks before there is a plan are in the crate `run`, and rules about outputs also apply without a plan.
        .chain(
            ["cli/src/powercut/subject.rs", "job/src/refusal.rs", "run/src/machine.rs", "run/src/planning.rs"]
                .map(|path| read(&crates().join(path))),
        )
        .collect();
    let page = claims();
    let messages = rows(&page, "| \"");
    assert!(messages.len() >= 6);
    for row in messages {
        let sentence = row[0].trim_matches('"');
        assert!(sources.contains(sentence), "no message: {sentence}");
        test_source(&row[2]);
    }
    let (_, faults) = page.split_once("## When things go wrong").expect("the section");
    let faults: Vec<_> = rows(faults, "| ").into_iter().filter(|row| row.len() == 3 && row[2].contains("::")).collect();
    assert!(faults.len() >= 5);
    for row in faults {
        test_source(&row[2]);
    }
}
