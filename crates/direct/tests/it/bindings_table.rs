//! `docs/bindings.md` names everything that the library exports, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The names within backticks of the first column of every table.
fn documented() -> BTreeSet<String> {
    let page = text("../../docs/bindings.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    rows.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`').to_owned()).collect::<Vec<_>>()).collect()
}

/// What `lib.rs` exports, and the public methods of the types that open a file.
fn exported() -> BTreeSet<String> {
    let library = text("src/lib.rs");
    let exports = library.split("pub use ").skip(1).filter_map(|item| item.split(';').next()?.split("::").nth(1));
    let names = exports.flat_map(|list| {
        let names = list.trim_matches(['{', '}']).split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    let opening = text("src/open.rs") + &text("src/types/files.rs");
    let methods = opening.split("    pub fn ").skip(1).filter_map(|rest| rest.split('(').next().map(str::to_owned));
    names.chain(methods).collect()
}

#[test]
fn the_table_of_names_in_three_languages_is_complete() {
    let (documented, exported) = (documented(), exported());
    let missing: Vec<&String> = exported.difference(&documented).collect();
    let gone: Vec<&String> = documented.difference(&exported).collect();
    assert!(missing.is_empty() && gone.is_empty(), "missing in docs/bindings.md: {missing:?}; not exported: {gone:?}");
}
