//! The pages of the repository: links lead somewhere, and code blocks are what they claim to be.
//!
//! Limits: links to other sites are not followed; blocks without a language are not read; of a command, the flags are
//! compared with its `--help`, not its values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trueio_testkit::{Sandbox, table_rows};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All pages: of the root, `docs/`, `examples/`, `bindings/*` and `fuzz/`.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/dev",
        "examples",
        "bindings/node",
        "bindings/node-program",
        "bindings/python",
        "crates/direct",
        "fuzz",
    ] {
        for entry in std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "md") {
                found.push(entry.path());
            }
        }
    }
    assert!(found.len() > 15, "{found:?}");
    found
}

/// A code block.
#[derive(Debug)]
struct Block {
    language: String,
    line: usize,
    text: String,
}

/// Splits a page into its lines outside of code blocks, by number, and its code blocks.
fn parts(text: &str) -> (Vec<(usize, &str)>, Vec<Block>) {
    let (mut lines, mut blocks) = (Vec::new(), Vec::<Block>::new());
    let mut is_within = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(language) if !is_within => {
                is_within = true;
                blocks.push(Block { language: language.trim().to_owned(), line: index + 1, text: String::new() });
            }
            Some(_) => is_within = false,
            None if is_within => {
                let block = blocks.last_mut().expect("a block has begun");
                block.text += line;
                block.text.push('\n');
            }
            None => lines.push((index + 1, line)),
        }
    }
    (lines, blocks)
}

/// Returns the anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let (lines, _) = parts(text);
    let mut found = BTreeSet::new();
    for (_, line) in lines {
        if let Some(heading) =
            line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')).filter(|rest| rest.starts_with(' '))
        {
            let name = anchor(heading);
            let repeated =
                (1..).map(|n| format!("{name}-{n}")).find(|name| !found.contains(name)).expect("a number is free");
            if !found.insert(name) {
                found.insert(repeated);
            }
        }
    }
    found
}

/// Returns the targets of links in a line: `[text](target)`. Code between backticks has none.
fn targets(line: &str) -> Vec<String> {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let links = outside.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(|target| target.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// Returns what is wrong with the links of a page.
fn broken_links(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in parts(text).0 {
        for target in targets(line).iter().filter(|target| !target.contains("://") && !target.starts_with("mailto:")) {
            let (file, fragment) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let whole = if file.is_empty() { path.to_owned() } else { path.parent().expect("a folder").join(file) };
            let at = format!("{}:{number}: `{target}`", path.display());
            if !whole.exists() {
                found.push(format!("{at} leads to no file"));
            } else if !fragment.is_empty()
                && whole.extension().is_some_and(|end| end == "md")
                && !anchors(&std::fs::read_to_string(&whole).unwrap_or_default()).contains(fragment)
            {
                found.push(format!("{at} leads to no heading"));
            }
        }
    }
    found
}

#[test]
fn every_link_between_pages_leads_to_a_file_and_a_heading() {
    let broken: Vec<String> =
        pages().iter().flat_map(|path| broken_links(path, &std::fs::read_to_string(path).expect("a page"))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = root().join("README.md");
    let wrong = "# A heading\n[a](docs/no-such-page.md) [b](docs/README.md#no-such-heading) [c](#a-heading) `[d](e)`\n";
    let found = broken_links(&page, wrong);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("leads to no file") && found[1].contains("leads to no heading"), "{found:?}");
    // The third is a heading of the page on the disk, not of this text.
    assert!(found[2].contains("#a-heading"), "{found:?}");
}

#[test]
fn every_job_file_and_every_json_of_a_page_is_valid() {
    let mut count = 0;
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        for block in parts(&text).1 {
            let at = format!("{}:{}", path.display(), block.line);
            match block.language.as_str() {
                "toml" if block.text.contains("[job.") => {
                    count += 1;
                    if let Err(error) = trueio_job::parse_job_file(&at, &block.text) {
                        panic!("{}", error.render());
                    }
                }
                "json" if !block.text.contains('…') => {
                    let parsed: Result<serde_json::Value, _> = serde_json::from_str(&block.text);
                    assert!(parsed.is_ok(), "{at}: {parsed:?}");
                }
                _ => {}
            }
        }
    }
    assert!(count >= 3, "{count}");
}

/// Returns the commands of a block: lines that begin with `trueio`, with the lines that continue them.
fn commands(block: &Block) -> Vec<String> {
    let joined = block.text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim().trim_start_matches("$ ").trim_start_matches("sudo "));
    lines
        .filter(|line| line.starts_with("trueio "))
        .map(|line| line.split(" #").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_flag_of_a_command_on_a_page_exists() {
    let sandbox = Sandbox::new();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        for block in parts(&text)
            .1
            .iter()
            .filter(|block| ["sh", "bash", "shell", "console", "yaml"].contains(&block.language.as_str()))
        {
            for line in commands(block) {
                let words: Vec<&str> =
                    line.split_whitespace().take_while(|word| !["|", ">", "&&", ";"].contains(word)).collect();
                let mut command: Vec<&str> = words[1..]
                    .iter()
                    .copied()
                    .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()))
                    .collect();
                // fio's language is fio's, and the words after a command may be names.
                if command.first() == Some(&"fio") {
                    continue;
                }
                command.truncate(if ["history", "usb", "powercut"].contains(command.first().unwrap_or(&"")) {
                    2
                } else {
                    1
                });
                let help = helps.entry(command.join(" ")).or_insert_with(|| {
                    let ran = sandbox.run(&[&command[..], &["--help"]].concat());
                    assert_eq!(ran.code, Some(0), "{}:{}: {line}", path.display(), block.line);
                    ran.out
                });
                for flag in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                    let name = flag.split('=').next().unwrap_or_default();
                    count += 1;
                    // Options of jobs have fio's names, too, which the help does not list.
                    let is_option = trueio_job::row(&name[2..]).is_some() || name == "--trace-syscalls";
                    if !is_option && !help.split([' ', '\n', ',', '=', '[']).any(|word| word == name) {
                        wrong.push(format!(
                            "{}:{}: `trueio {}` has no {name}",
                            path.display(),
                            block.line,
                            command.join(" ")
                        ));
                    }
                }
            }
        }
    }
    assert!(count > 5, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: no table lists a situation that no test stages any more, and no test of a false result is missing in them.
/// Method: the text of the named test file contains the situation; each test of the file of false results lists one.
#[test]
fn every_listed_situation_is_staged_and_every_staged_false_result_is_listed() {
    let source = |file: &str| {
        let path = root().join("crates").join(file.trim_matches('`'));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    for (page, table, count_min) in
        [("docs/dev/staged-results.md", "tests", 20), ("docs/dev/staged-results.md", "situations", 9)]
    {
        let rows = table_rows(page, table);
        assert!(rows.len() >= count_min, "{page}: {} rows", rows.len());
        for row in rows {
            let by = row.last().expect("cells");
            // A literal of the source may continue on the next line.
            let text = source(by).replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&row[0]), "{page}: `{}` is not staged by {by}", row[0]);
        }
    }
    let lies = source("evidence/tests/it/lies.rs");
    let unlisted: Vec<&str> = lies
        .split("#[test]\n")
        .skip(1)
        .filter(|body| !body.contains("assert_listed("))
        .filter_map(|body| body.lines().next())
        .collect();
    assert!(unlisted.is_empty(), "not in the table of docs/dev/staged-results.md: {unlisted:?}");
}
