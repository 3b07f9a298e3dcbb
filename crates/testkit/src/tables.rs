//! Tables of the documents whose rows tests see happen: each row is compared with what its test saw.
//!
//! A table begins after the line `<!-- table: NAME -->` and ends before `<!-- end of table: NAME -->`. The first cell of a row is its
//! name. Another cell lists texts, separated by `<br>`: each text that a test saw must be among them. Figures, units, paths,
//! names of disks and what stands in parentheses differ from run to run, so they are not compared; neither is how often a word is
//! repeated (`dd, dd`).
//!
//! `TRUEIO_BLESS=1` adds the row or the text that is missing. To renew a row, delete it and bless.
//!
//! Limits: a text that is no longer printed stays in its cell until the row is renewed, if another of the cell is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The separator of the texts of a cell.
const OR: &str = "<br>";
/// Units that stand after a figure, as a word of their own.
const UNITS: &[&str] = &[
    "b",
    "kib",
    "mib",
    "gib",
    "tib",
    "kb",
    "mb",
    "gb",
    "b/s",
    "kib/s",
    "mib/s",
    "gib/s",
    "ns",
    "µs",
    "us",
    "ms",
    "s",
    "min",
    "h",
    "%",
    "iops",
    "processors",
    "processor",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Asserts that the row `name` of the table has `cells` after its name: each cell is a list of texts that a test saw.
///
/// # Panics
/// If the row is missing, or a text is not in its cell; with `TRUEIO_BLESS` set it is written instead.
#[track_caller]
pub fn assert_row(page: &str, table: &str, name: &str, cells: &[&[&str]]) {
    // Tests of one program run at the same time; cargo runs the programs one after the other.
    static PAGES: Mutex<()> = Mutex::new(());
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let path = repository().join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    match with_row(&text, table, name, cells) {
        Err(why) => panic!("{page}: {why}"),
        Ok(None) => {}
        Ok(Some((_, missing))) if std::env::var_os("TRUEIO_BLESS").is_none() => {
            panic!("{page}, table `{table}`: {missing}\nTRUEIO_BLESS=1 writes it")
        }
        Ok(Some((text, _))) => fs::write(&path, text).unwrap_or_else(|error| panic!("{page}: {error}")),
    }
}

/// Returns the first sentence of a finding of `foreign_io`, and the whole sentence of another: what else runs on the machine
/// follows the first.
pub fn first_if_foreign<'a>(check: &str, sentence: &'a str) -> &'a str {
    let end = sentence.find(". ").map_or(sentence.len(), |at| at + 1);
    if check == "foreign_io" { &sentence[..end] } else { sentence }
}

/// Returns the rows of a table of a page of the repository, each as its cells.
///
/// # Panics
/// If the page or the table is missing.
pub fn table_rows(page: &str, table: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(repository().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (begin, end) = span_of(&text, table).unwrap_or_else(|why| panic!("{page}: {why}"));
    text[begin..end].lines().filter_map(cells_of).skip(2).collect()
}

/// Returns the bytes of a table, between its marks.
fn span_of(text: &str, table: &str) -> Result<(usize, usize), String> {
    let begin = format!("<!-- table: {table} -->\n");
    let at = text.find(&begin).ok_or_else(|| format!("no `{}`", begin.trim()))? + begin.len();
    let mark = format!("<!-- end of table: {table} -->");
    let length = text[at..].find(&mark).ok_or_else(|| format!("no `{mark}`"))?;
    Ok((at, at + length))
}

/// Splits a line of a table.
fn cells_of(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '|' => cells.push(String::new()),
            '\\' => cells.last_mut()?.extend(characters.next()),
            other => cells.last_mut()?.push(other),
        }
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

fn line_of(cells: &[String]) -> String {
    let escaped = cells.iter().map(|cell| cell.replace('\\', "\\\\").replace('|', "\\|"));
    format!("| {} |\n", escaped.collect::<Vec<_>>().join(" | "))
}

/// Returns the page with what the row lacks, and what that is; `None` if it lacks nothing.
fn with_row(text: &str, table: &str, name: &str, cells: &[&[&str]]) -> Result<Option<(String, String)>, String> {
    let (begin, end) = span_of(text, table)?;
    let mut out = text[..begin].to_owned();
    let mut missing = None;
    let mut is_there = false;
    for line in text[begin..end].lines() {
        let known = cells_of(line).filter(|known| known.first().is_some_and(|first| first == name));
        let Some(mut known) = known else {
            out.extend([line, "\n"]);
            continue;
        };
        is_there = true;
        known.resize((cells.len() + 1).max(known.len()), String::new());
        for (cell, seen) in known[1..].iter_mut().zip(cells) {
            for text in *seen {
                if has_words(cell, text) {
                    continue;
                }
                missing.get_or_insert_with(|| format!("the row `{name}` has not\n  {}\nbut\n  {cell}", shown(text)));
                let or = if cell.is_empty() { "" } else { OR };
                cell.push_str(&format!("{or}{}", shown(text)));
            }
        }
        out.push_str(&line_of(&known));
    }
    if !is_there {
        let cells = cells.iter().map(|seen| seen.iter().map(|text| shown(text)).collect::<Vec<_>>().join(OR));
        let line = line_of(&std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
        missing = Some(format!("there is no row\n  {}", line.trim()));
        out.push_str(&line);
    }
    out.push_str(&text[end..]);
    Ok(missing.map(|missing| (out, missing)))
}

/// Returns whether a cell has a text, apart from figures.
fn has_words(cell: &str, text: &str) -> bool {
    cell.split(OR).any(|known| words_of(known) == words_of(text))
}

/// Returns a text as it stands in a table: on one line, without paths of this machine.
fn shown(text: &str) -> String {
    let words = text
        .split_whitespace()
        .map(|word| if is_path(word) { "`…`".to_owned() + end_of(word) } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the punctuation at the end of a quoted path.
fn end_of(word: &str) -> &str {
    &word[word.trim_end_matches(['.', ',', ';', ':', ')']).len()..]
}

/// An absolute path below a directory that a test made; those of the kernel and of memory are the same everywhere.
fn is_path(word: &str) -> bool {
    let path = word.trim_start_matches(['`', '(', '"']);
    let is_known = path.trim_end_matches(['`', ')', '.', ',', ':', ';']) == "/dev/shm"
        || ["/sys", "/proc"].iter().any(|known| path.starts_with(known));
    path.starts_with('/') && path.len() > 1 && !is_known || word.starts_with("`…")
}

/// Returns what is compared: words without punctuation, `#` for a figure with its unit, `disk` for a disk's name.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut depth = 0usize;
    for word in text.split_whitespace() {
        let is_within = depth > 0 || word.starts_with('(');
        depth = (depth + word.matches('(').count()).saturating_sub(word.matches(')').count());
        // The check that a text begins with is compared: ``suspect (`holes`): …``.
        if is_within && !word.starts_with("(`") {
            continue;
        }
        if is_path(word) {
            words.push("path".to_owned());
            continue;
        }
        let bare = word.trim_matches(['(', ')', '`', '"', '.', ',', ';', ':', '[', ']']).to_lowercase();
        let is_after_figure = words.last().is_some_and(|last| last == "#");
        if bare.is_empty() || is_after_figure && UNITS.contains(&bare.as_str()) {
            continue;
        }
        let next = if is_disk(&bare) {
            "disk".to_owned()
        } else if bare.contains(|c: char| c.is_ascii_digit()) {
            "#".to_owned()
        } else {
            // `1 request`, `2 requests`.
            bare.strip_suffix('s').unwrap_or(&bare).to_owned()
        };
        words.push(next);
        words.dedup();
    }
    words
}

fn is_disk(word: &str) -> bool {
    let letters = |prefix: &str, count: usize| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == count && rest.chars().all(|c| c.is_ascii_lowercase()))
    };
    let number =
        |prefix: &str| word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    letters("sd", 1)
        || letters("vd", 1)
        || letters("xvd", 1)
        || ["loop", "nvme", "dm-", "mmcblk", "zram"].iter().any(|p| number(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "before\n<!-- table: t -->\n| a | b |\n|---|---|\n| one | 7 of 9 I/Os failed on vda in 1.2 s. |\n\
                        <!-- end of table: t -->\nafter\n";

    fn lacks(name: &str, text: &str) -> Option<String> {
        with_row(PAGE, "t", name, &[&[text]]).expect("a table").map(|(page, _)| page)
    }

    #[test]
    fn figures_units_disks_and_paths_are_not_compared_and_words_are() {
        assert_eq!(lacks("one", "4,096 of 4,096 I/Os failed on loop12 in 350 ms."), None);
        assert!(lacks("one", "7 of 9 I/Os passed on vda in 1.2 s.").is_some());
        assert!(lacks("one", "7 of 9 I/Os failed on vda.").is_some());
        assert_eq!(words_of("`/tmp/x`, 1 request"), words_of("`…`, 12 requests"));
        assert_ne!(words_of("tmpfs on `/dev/shm`"), words_of("tmpfs on `/tmp`"));
        assert_eq!(
            words_of("used by dd (process 1, 8 MiB)"),
            words_of("used by dd (process 2), dd (process 3, 9 MiB)")
        );
        assert_ne!(words_of("suspect (`holes`): so"), words_of("suspect (`pace`): so"));
    }

    #[test]
    fn a_missing_row_and_a_missing_text_are_added_where_they_belong() {
        let page = lacks("two", "at `/tmp/x`: a|b").expect("no such row");
        assert!(page.contains("1.2 s. |\n| two | at `…`: a\\|b |\n<!-- end of table: t -->\nafter\n"), "{page}");
        assert_eq!(with_row(&page, "t", "two", &[&["at `/tmp/y`: a|b"]]), Ok(None));
        let page = lacks("one", "Nothing failed.").expect("no such text");
        assert!(page.contains("in 1.2 s.<br>Nothing failed. |\n"), "{page}");
        assert_eq!(with_row(&page, "t", "one", &[&["Nothing failed."]]), Ok(None));
        assert!(with_row(PAGE, "u", "one", &[]).is_err());
    }
}
