//! Parts of pages that a test renders: between `<!-- begin: rendered … -->`, which names the source, and `<!-- end -->`.

use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- begin: rendered";
const END: &str = "<!-- end -->";

/// Asserts that the rendered part of `page`, a path from the root of the repository, is `rendered`. Its marks stay.
///
/// # Panics
/// If the page, its marks or the text are missing; with `TRUEIO_BLESS` set the text is written instead.
#[track_caller]
pub fn assert_rendered(page: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let with = replaced(&text, rendered).unwrap_or_else(|| panic!("{page}: no `{BEGIN} … -->` before `{END}`"));
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        fs::write(&path, with).unwrap_or_else(|error| panic!("{page}: {error}"));
    } else {
        assert!(text == with, "{page} is stale; TRUEIO_BLESS=1 rewrites it");
    }
}

/// Returns the page with another rendered part; `None` without marks.
fn replaced(text: &str, rendered: &str) -> Option<String> {
    let mark = text.find(BEGIN)?;
    let begin = mark + text[mark..].find("-->")? + "-->".len();
    let end = begin + text[begin..].find(END)?;
    Some(format!("{}\n\n{}\n\n{}", &text[..begin], rendered.trim(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_marks_is_replaced() {
        let page = "a\n<!-- begin: rendered from b -->\n\nold\n\n<!-- end -->\nc\n";
        let new = replaced(page, "new\n").expect("marks");
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(replaced(&new, "new"), Some(new.clone()));
        assert_eq!(replaced("<!-- end -->", "new"), None);
    }
}
