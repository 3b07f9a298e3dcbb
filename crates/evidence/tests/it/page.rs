//! Renders what `docs/checks.md` and `docs/evidence.md` hold of the checks, from the comments at the top of `src/checks/NAME.rs`.
//!
//! A comment begins with a sentence, the check's row in `docs/evidence.md`. A list follows, which `docs/checks.md` holds. Paragraphs after
//! the list are for developers.

use std::fmt::Write as _;
use trueio_evidence::CHECKS;
use trueio_testkit::assert_rendered;

/// Returns the sentence and the list of a check's comment, without comment marks.
fn described(name: &str) -> (String, String) {
    let path = format!("{}/src/checks/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: String = lines.flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
    let (sentence, rest) =
        text.split_once("\n\n").unwrap_or_else(|| panic!("{path}: no list after the first sentence"));
    let is_of_list = |line: &&str| line.is_empty() || line.starts_with("- ") || line.starts_with("  ");
    let list: String = rest.lines().take_while(is_of_list).flat_map(|line| [line, "\n"]).collect();
    for part in ["Reads", "Misses", "Thresholds", "By hand"] {
        assert!(list.contains(&format!("- **{part}**")), "{path}: no **{part}**");
    }
    (sentence.replace('\n', " "), list.trim_end().to_owned())
}

#[test]
fn the_page_of_checks_is_rendered_from_their_comments() {
    let mut page = String::new();
    for (name, _) in CHECKS {
        let (sentence, list) = described(name);
        // Writing to a String cannot fail.
        let _ = writeln!(page, "### `{name}`\n\n{sentence}\n\n{list}\n");
    }
    assert_rendered("docs/checks.md", &page);
}

#[test]
fn the_page_about_evidence_has_a_row_for_each_check() {
    let mut table = "| check | what it does |\n|---|---|\n".to_owned();
    for (name, _) in CHECKS {
        let _ = writeln!(table, "| [`{name}`](checks.md#{name}) | {} |", described(name).0.trim_end_matches('.'));
    }
    assert_rendered("docs/evidence.md", &table);
}
