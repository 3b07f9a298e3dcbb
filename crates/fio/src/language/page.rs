//! The table of `docs/from-fio.md`: every option of fio and what becomes of it, rendered from
//! [`super::options`].

use super::engines;
use super::help::fate_sentence;
use super::options::{Fate, OPTIONS};
use std::fmt::Write as _;

/// Where the rendered part of the page begins and ends.
const BEGIN: &str = "<!-- begin: rendered from crates/fio/src/language/options.rs; `TRUEIO_BLESS=1 cargo test -p trueio-fio` rewrites it -->";
const END: &str = "<!-- end -->";

/// The rendered part of `docs/from-fio.md`, its marks included.
pub fn render_table() -> String {
    let fates = OPTIONS.iter().map(|option| option.fate());
    let (mut done, mut kept, mut nothing, mut some, mut none) = (0, 0, 0, 0, 0);
    for fate in fates {
        match fate {
            Fate::Row | Fate::Reader(_) => done += 1,
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
         accepted with the values that ask for what is done anyway, and {none} are refused by name.\n",
        OPTIONS.len()
    );
    let _ = writeln!(out, "| option | also | tier | here | what becomes of it |\n|---|---|---|---|---|");
    for option in OPTIONS {
        let word = match option.fate() {
            Fate::Row | Fate::Reader(_) => "done",
            Fate::Output(_) => "output",
            Fate::NoEffect(_) => "no effect",
            Fate::Only { .. } => "in part",
            Fate::Refused { .. } => "refused",
        };
        let also: Vec<String> = option.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let sentence = match option.fate() {
            Fate::Row => {
                let row = option.row().map_or("", |row| row.name);
                format!("{} ([`{row}`](job-options.md#{row}))", fate_sentence(option))
            }
            _ => fate_sentence(option),
        };
        let sentence = sentence.replace('|', "\\|");
        let _ =
            writeln!(out, "| `{}` | {} | {} | {word} | {sentence} |", option.name, also.join(", "), option.tier.name());
    }
    let _ = writeln!(out, "\n| engine that is not here | why | instead |\n|---|---|---|");
    for (name, reason, instead) in engines::missing() {
        let _ = writeln!(out, "| `{name}` | {reason} | {instead} |");
    }
    let _ = writeln!(out, "\n{END}");
    out
}
