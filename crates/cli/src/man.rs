//! Manual pages, from the arguments of `--help` and the rows of the option table: one page a command, and
//! `trueio-job(5)` for job files.
//!
//! clap_mangen renders the pages of commands. The program prints pages and installs none: packages do.
//!
//! Source: man-pages(7), man(7).

use crate::failure::Failure;
use crate::{arguments, flags, output};
use clap::{Arg, ArgMatches, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::process::ExitCode;
use trueio_job::option::Section;
use trueio_job::{OptionRow, TABLE, names_sentence};

pub(crate) const ABOUT: &str = "Print a manual page";

/// The name of the page about job files.
const JOB_PAGE: &str = "job";

/// Adds the arguments of the command.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .arg(Arg::new("page").value_name("COMMAND").num_args(0..).help(
            "The command that the page describes (`history show`), or `job` for job files [default: the program]",
        ))
        .arg(
            flags::switch("list", "List the files of all pages, and with each the arguments that print it")
                .conflicts_with("page"),
        )
        .after_help("To read one: trueio man run | man -l -")
}

/// `trueio man`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = if matches.get_flag("list") {
        pages().iter().map(|page| format!("{}\t{}\n", page.file, page.words.join(" "))).collect()
    } else {
        let words: Vec<&String> = matches.get_many("page").into_iter().flatten().collect();
        let page = pages().into_iter().find(|page| page.words.iter().eq(words.iter().copied())).ok_or_else(|| {
            let typed: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
            Failure::refused(format!(
                "there is no manual page for `{}`\n\nhint: `trueio man --list` lists all pages",
                typed.join(" ")
            ))
        })?;
        page.text
    };
    output::print_all(&text).map(|()| ExitCode::SUCCESS)
}

/// A manual page.
struct Page {
    /// `trueio-history-show.1`.
    file: String,
    /// The arguments of `trueio man` that print it.
    words: Vec<String>,
    /// The page in the language of man(7).
    text: String,
}

/// Returns the arguments that print each page but the program's, with one line about it.
pub(crate) fn names() -> Vec<(Vec<String>, String)> {
    fn add(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, String)>) {
        for nested in command.get_subcommands().filter(|nested| nested.get_name() != "help" && !nested.is_hide_set()) {
            let words = [words, &[nested.get_name().to_owned()]].concat();
            found.push((words.clone(), nested.get_about().map(ToString::to_string).unwrap_or_default()));
            add(nested, &words, found);
        }
    }
    let mut found = Vec::new();
    add(&arguments::complete(), &[], &mut found);
    found.push((vec![JOB_PAGE.to_owned()], "Job files".to_owned()));
    found
}

/// Renders all pages: the program, its commands in the order of `--help`, job files.
fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    add(&arguments::complete(), &[], &mut pages);
    pages.push(Page { file: "trueio-job.5".to_owned(), words: vec![JOB_PAGE.to_owned()], text: job_page() });
    pages
}

/// Adds the page of a command, and those of its subcommands.
fn add(command: &Command, words: &[String], pages: &mut Vec<Page>) {
    let name = std::iter::once("trueio").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    pages.push(Page { text: command_page(command, &name, words), file: format!("{name}.1"), words: words.to_vec() });
    // clap adds `help` to each command that has subcommands.
    for nested in command.get_subcommands().filter(|nested| nested.get_name() != "help" && !nested.is_hide_set()) {
        add(nested, &[words, &[nested.get_name().to_owned()]].concat(), pages);
    }
}

fn command_page(command: &Command, name: &str, words: &[String]) -> String {
    let command = command.clone().display_name(name).bin_name(name.replace('-', " "));
    let man = Man::new(command.clone());
    let mut page = title(name, "1").into_bytes();
    // Writing to memory cannot fail.
    let _ = man.render_name_section(&mut page);
    let _ = man.render_synopsis_section(&mut page);
    let _ = man.render_description_section(&mut page);
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        let _ = man.render_options_section(&mut page);
    }
    let mut rest = Roff::new();
    let nested: Vec<&Command> =
        command.get_subcommands().filter(|nested| nested.get_name() != "help" && !nested.is_hide_set()).collect();
    if !nested.is_empty() {
        section(&mut rest, "COMMANDS");
        for nested in nested {
            let page = format!("{name}-{}", nested.get_name());
            item(&mut rest, [bold(page), roman("(1)")]);
            rest.text([roman(nested.get_about().map(ToString::to_string).unwrap_or_default())]);
        }
    }
    if let Some(text) = command.get_after_long_help() {
        section(&mut rest, "NOTES");
        paragraphs(&mut rest, &text.to_string());
    }
    closing(&mut rest, words.first().map_or("", String::as_str));
    page.extend_from_slice(rest.to_roff().as_bytes());
    String::from_utf8_lossy(&page).into_owned()
}

/// The sections that every page of a command has.
fn closing(page: &mut Roff, command: &str) {
    section(page, "EXIT STATUS");
    for (code, meaning) in [
        ("0", "Done."),
        ("1", "The run failed or was interrupted, its figures are withheld, or a gate failed."),
        ("2", "The request was refused or malformed; nothing was touched."),
        ("3", "A gate of `trueio compare` is undecided."),
    ] {
        item(page, [bold(code)]);
        page.text(inline(meaning));
    }
    section(page, "ENVIRONMENT");
    for (name, meaning) in [
        ("NO_COLOR", "Switches colours off, if it is not empty."),
        (
            "XDG_DATA_HOME",
            "The directory below which the history is: `trueio/history.sqlite3`. Default: `~/.local/share`.",
        ),
        ("TRUEIO_ACCEPT", "Checks whose findings are accepted, as with `--accept`."),
    ] {
        item(page, [bold(name)]);
        page.text(inline(meaning));
    }
    section(page, "SEE ALSO");
    let mut others = vec!["trueio(1)", "trueio-job(5)"];
    match command {
        "" => others = vec!["trueio-baseline(1)", "trueio-run(1)", "trueio-compare(1)", "trueio-job(5)", "fio(1)"],
        "fio" => others.push("fio(1)"),
        _ => {}
    }
    page.text(references(&others));
}

/// Formats names of pages: `trueio(1), trueio-job(5)`.
fn references(pages: &[&str]) -> Vec<Inline> {
    let mut text = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        let (name, number) = page.split_at(page.len() - "(1)".len());
        text.push(bold(name));
        text.push(roman(format!("{number}{}", if index + 1 < pages.len() { ", " } else { "" })));
    }
    text
}

fn job_page() -> String {
    let mut page = Roff::new();
    section(&mut page, "NAME");
    page.text([roman("trueio-job - job files of trueio")]);
    section(&mut page, "DESCRIPTION");
    paragraphs(
        &mut page,
        "A job file is TOML: `[defaults]` for all jobs, then one table `[job.NAME]` for each job. Jobs run at the same time \
         unless one sets `stonewall = true`. Flags of the command line override the file; a job's own options override \
         `[defaults]`. If fio has an option, it has the same name here.\n\n\
         Sizes: `k`, `m`, `g`, `t` are powers of 1024, and so are `KiB`, `MiB`; `kB`, `MB`, `GB` are powers of 1000. Times: \
         `us`, `ms`, `s`, `m`, `h`, `d`; a bare number is seconds, except in `thinktime`.\n\n\
         An impossible request is refused before anything is touched, and the message names the rule. Existing files and \
         devices are never written unless `overwrite_existing` names them, and files that the run created are removed at \
         its end unless `unlink` is false.",
    );
    section(&mut page, "EXAMPLE");
    page.control("EX", []);
    for line in EXAMPLE.lines() {
        page.text([roman(line)]);
    }
    page.control("EE", []);
    section(&mut page, "OPTIONS");
    for part in Section::ALL {
        page.control("SS", [part.title()]);
        TABLE.iter().filter(|row| row.section == part).for_each(|row| option(&mut page, row));
    }
    section(&mut page, "SEE ALSO");
    page.text(references(&["trueio(1)", "trueio-run(1)", "trueio-explain(1)", "fio(1)"]));
    title("trueio-job", "5") + &page.to_roff()
}

const EXAMPLE: &str = "\
[defaults]
directory = \"/mnt/disk\"
size = \"4g\"
runtime = \"30s\"

[job.random-reads]
rw = \"randread\"
bs = \"4k\"
ioengine = \"io_uring\"
iodepth = 32

[job.commits]
stonewall = true
rw = \"write\"
bs = \"4k\"
fdatasync = 1";

/// Adds the entry of an option.
fn option(page: &mut Roff, row: &OptionRow) {
    item(page, [bold(row.name), roman(" = "), italic(row.value_name())]);
    let detail = if row.detail.is_empty() { String::new() } else { format!(" {}", row.detail) };
    page.text(inline(&format!("{}.{detail} Default: {}.", row.summary, row.default_text().trim_end_matches('.'))));
    if !row.choices().is_empty() {
        page.control("RS", []);
        for choice in row.choices() {
            item(page, [bold(choice.name)]);
            page.text(inline(choice.sentence));
        }
        page.control("RE", []);
    }
    page.control("IP", []);
    let takes = if row.choices().is_empty() { format!("Takes {}. ", row.kind.takes()) } else { String::new() };
    page.text(inline(&format!("{takes}{}", names_sentence(row))));
}

/// Returns the first line of a page. It has no date, so that the bytes of a page depend on nothing but the program.
fn title(name: &str, section: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH \"{}\" \"{section}\" \"\" \"trueio {version}\" \"trueio\"\n", name.to_uppercase())
}

fn section(page: &mut Roff, name: &str) {
    page.control("SH", [name]);
}

/// Begins an entry of a list.
fn item(page: &mut Roff, name: impl IntoIterator<Item = Inline>) {
    page.control("TP", []);
    page.text(name.into_iter().collect::<Vec<_>>());
}

/// Adds paragraphs, which empty lines separate.
fn paragraphs(page: &mut Roff, text: &str) {
    for (index, paragraph) in text.split("\n\n").enumerate() {
        if index > 0 {
            page.control("PP", []);
        }
        for (index, line) in paragraph.lines().enumerate() {
            if index > 0 {
                page.control("br", []);
            }
            page.text(inline(line));
        }
    }
}

/// Formats text in which code stands between backticks.
fn inline(text: &str) -> Vec<Inline> {
    text.split('`').enumerate().map(|(index, part)| if index % 2 == 0 { roman(part) } else { bold(part) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_has_a_page_of_its_own_and_no_two_share_one() {
        let pages = pages();
        let files: BTreeSet<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        assert_eq!(files.len(), pages.len());
        for expected in
            ["trueio.1", "trueio-baseline.1", "trueio-fio.1", "trueio-history-show.1", "trueio-man.1", "trueio-job.5"]
        {
            assert!(files.contains(expected), "{expected}: {files:?}");
        }
        for command in arguments::complete().get_subcommands().filter(|command| command.get_name() != "help") {
            assert!(files.contains(format!("trueio-{}.1", command.get_name()).as_str()), "{}", command.get_name());
        }
    }

    #[test]
    fn every_page_but_the_programs_is_named_for_completions() {
        let named: Vec<Vec<String>> = names().into_iter().map(|(words, _)| words).collect();
        let printed: Vec<Vec<String>> = pages().into_iter().map(|page| page.words).filter(|w| !w.is_empty()).collect();
        assert_eq!(named, printed);
    }

    #[test]
    fn every_option_of_the_table_is_in_the_page_of_job_files_and_in_that_of_run() {
        let pages = pages();
        let text = |file: &str| &pages.iter().find(|page| page.file == file).expect("the page").text;
        for row in TABLE {
            // A hyphen, and nothing else in a name, is escaped.
            let name = row.name.replace('-', r"\-");
            assert!(text("trueio-job.5").contains(&format!("\\fB{name}\\fR = ")), "{}", row.name);
            let flag = flags::flag_of(row).replace('-', r"\-");
            assert!(text("trueio-run.1").contains(&format!("\\-\\-{flag}\\fR")), "{}", row.name);
        }
    }
}
