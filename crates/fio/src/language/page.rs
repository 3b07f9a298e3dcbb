//! The tables of `docs/fio-options.md` (every option of fio, and what the language does with it) and of `docs/fio-refusals.md`.

use super::engines;
use super::help::fate_sentence;
use super::options::{Fate, options_of_fio};
use super::refusals::{RefusalRow, Refused};
use super::written::Written;
use crate::differences::{DIFFERENCES, Difference};
use std::fmt::Write as _;
use trueio_job::language::in_language;
use trueio_job::refusal::CaseRow;
use trueio_job::{Case, Language};
use trueio_model::{FioJob, JobSpec};

/// The marks at the beginning and the end of the rendered part of the page.
const BEGIN: &str = "<!-- begin: rendered from the option table and crates/fio/src/language/rows.rs; `TRUEIO_BLESS=1 cargo test -p trueio-fio` rewrites it -->";
const BEGIN_REFUSALS: &str = "<!-- begin: rendered from crates/fio/src/language/{refusals,rows,engines}.rs and crates/job/src/refusal/cases.rs; `TRUEIO_BLESS=1 cargo test -p trueio-fio` rewrites it -->";
const END: &str = "<!-- end -->";

/// The rendered part of `docs/fio-options.md`, its marks included.
pub fn render_table() -> String {
    let options = options_of_fio();
    let (mut done, mut kept, mut nothing, mut some, mut none) = (0, 0, 0, 0, 0);
    for option in &options {
        match option.fate() {
            Fate::Row | Fate::Rule(_) => done += 1,
            Fate::Output(_) => kept += 1,
            Fate::NoEffect(_) => nothing += 1,
            Fate::Only { .. } => some += 1,
            Fate::Refused { .. } => none += 1,
        }
    }
    let mut out = format!("{BEGIN}\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\nOf {} options {done} are done, {kept} steer fio's outputs, {nothing} are accepted and change nothing, {some} are \
         accepted with the values that change nothing, and {none} are refused by name.\n",
        options.len()
    );
    let _ = writeln!(out, "| option | also | here | what it does |\n|---|---|---|---|");
    for option in options {
        let word = match option.fate() {
            Fate::Row | Fate::Rule(_) => "done",
            Fate::Output(_) => "output",
            Fate::NoEffect(_) => "no effect",
            Fate::Only { .. } => "in part",
            Fate::Refused { .. } => "refused",
        };
        let also: Vec<String> = option.aliases().iter().map(|alias| format!("`{alias}`")).collect();
        let sentence = match option.row() {
            Some(row) => format!("{} ([`{name}`](job-options.md#{name}))", fate_sentence(option), name = row.name),
            None => fate_sentence(option),
        };
        let sentence = sentence.replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {} | {word} | {sentence} |", option.name(), also.join(", "));
    }
    let _ = writeln!(
        out,
        "\nThe differential runner compares drawn sets of options with fio. It expects these differences:\n"
    );
    let _ = writeln!(out, "| with | fio | here |\n|---|---|---|");
    for Difference { options, without, in_order, fio, here } in DIFFERENCES {
        let without = match without.is_empty() {
            true => String::new(),
            false => format!(" without `{}`", without.join("`, `")),
        };
        let between = if *in_order { "` before `" } else { "`, `" };
        let _ = writeln!(out, "| `{}`{without} | {fio} | {here} |", options.join(between));
    }
    let _ = writeln!(out, "\n{END}");
    out
}

/// Returns a remedy with its options as in fio's job files.
fn in_words_of_fio(text: &str) -> String {
    let job = JobSpec { fio: Some(Box::new(FioJob::default())), ..JobSpec::new("job") };
    in_language(text, &[], |row, value| Written(std::slice::from_ref(&job)).write(Some("job"), row, value))
}

/// The tables of `docs/fio-refusals.md`, with their marks: what fio's language refuses.
pub fn render_refusals() -> String {
    let mut out = format!("{BEGIN_REFUSALS}\n\n| refused | reason | instead |\n|---|---|---|\n");
    // Writing to a String cannot fail.
    for RefusalRow { refused, reason, instead } in Refused::ALL.iter().map(|kind| kind.row()) {
        let _ = writeln!(out, "| {refused} | {reason} | {instead} |");
    }
    let _ = writeln!(
        out,
        "\nCombinations of options that no job may have, also in other languages:\n\n| refused | reason | instead |\n|---|---|---|"
    );
    for CaseRow { refused, reason, instead } in Case::ALL.iter().filter_map(|case| case.row()) {
        let _ = writeln!(out, "| {refused} | {reason} | {} |", in_words_of_fio(instead));
    }
    let _ = writeln!(out, "\n| option | accepted values | reason | instead |\n|---|---|---|---|");
    for option in options_of_fio() {
        let (values, reason, instead) = match option.fate() {
            Fate::Only { values, reason, instead } => (format!("`{}`", values.join("`, `")), reason, instead),
            Fate::Refused { reason, instead } => ("none".to_owned(), reason, instead),
            _ => continue,
        };
        let _ = writeln!(out, "| `{}` | {values} | {reason} | {instead} |", option.name());
    }
    let _ = writeln!(out, "\n| engine | reason | instead |\n|---|---|---|");
    for (name, reason, instead) in engines::missing() {
        let _ = writeln!(out, "| `{name}` | {reason} | {instead} |");
    }
    let _ = writeln!(out, "\n{END}");
    out
}
