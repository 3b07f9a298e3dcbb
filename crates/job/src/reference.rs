//! Renders the reference page and the help from the option table.

use crate::option::{DefaultValue, FioUse, OptionRow, Remote, Section};
use crate::table::TABLE;
use std::fmt::Write as _;

/// Renders `docs/job-options.md`.
pub fn render_reference() -> String {
    let mut out = String::from(INTRODUCTION);
    for section in Section::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "\n## {}\n", section.title());
        let _ = writeln!(out, "| option | value | unit | default | what it does |\n|---|---|---|---|---|");
        for row in rows_of(section) {
            let default = match row.default {
                DefaultValue::Text(text) => format!("`{text}`"),
                DefaultValue::Unset(text) => cell(text),
            };
            let _ = writeln!(
                out,
                "| [`{name}`](#{name}) | {} | {} | {default} | {} |",
                cell(row.value_name()),
                cell(row.unit),
                cell(row.summary),
                name = row.name,
            );
        }
        for row in rows_of(section) {
            let _ = writeln!(out, "\n### {}\n", row.name);
            let _ = writeln!(out, "{}.{}{}", row.summary, if row.detail.is_empty() { "" } else { " " }, row.detail);
            if !row.choices().is_empty() {
                let _ = writeln!(out, "\n| word | also | meaning |\n|---|---|---|");
                for choice in row.choices() {
                    let also: Vec<String> = choice.aliases.iter().map(|alias| format!("`{alias}`")).collect();
                    let _ = writeln!(out, "| `{}` | {} | {} |", choice.name, also.join(", "), cell(choice.sentence));
                }
            } else {
                let _ = writeln!(out, "\nTakes {}.", row.kind.takes());
            }
            let _ = writeln!(out, "\n{}", names_sentence(row));
        }
    }
    out
}

/// Renders the options for `--help`: name, value, summary, default, section by section.
pub fn render_help() -> String {
    let width = TABLE.iter().map(|row| row.name.len() + row.value_name().chars().count() + 3).max().unwrap_or(0);
    let mut out = String::new();
    for section in Section::ALL {
        if section != Section::Pattern {
            out.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}:", section.title());
        for row in rows_of(section) {
            let flag = format!("--{} {}", row.name, row.value_name());
            let _ = writeln!(out, "  {flag:width$}  {} [default: {}]", row.summary, row.default_text());
        }
    }
    out
}

fn rows_of(section: Section) -> impl Iterator<Item = &'static OptionRow> {
    TABLE.iter().copied().filter(move |row| row.section == section)
}

/// Returns the sentences about an option's names, and about fio's use of it; code stands between backticks.
pub fn names_sentence(row: &OptionRow) -> String {
    let mut names = format!("Flag: `{}`.", row.flag());
    if !row.fio_names.is_empty() {
        let aliases: Vec<String> = row.fio_names.iter().map(|name| format!("`{name}`")).collect();
        let _ = write!(names, " Also: {}.", aliases.join(", "));
    }
    names.push_str(match row.fio {
        FioUse::Same | FioUse::Rule(_) => " fio has it.",
        FioUse::Ignored(_) => " fio accepts it without effect.",
        FioUse::Extra => " fio does not have it.",
        FioUse::CommandLine => " fio does not have it; in fio's language it stands on the command line only.",
        FioUse::Absent => " Not in fio's language.",
    });
    if let Some(default) = row.fio_default() {
        let _ = write!(names, " Default in fio's language: `{default}`.");
    }
    if let Remote::Refused(why) = row.remote {
        let _ = write!(names, " Refused from a client of `trueio fio --server`: it {why}.");
    }
    names
}

/// Escapes text within a table's cell: a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "\
# Job options

<!-- Rendered from the option rows in crates/job/src/options/*/rows.rs; `TRUEIO_BLESS=1 cargo test -p trueio-job` rewrites it. -->

If fio has an option, it has the same name here: in job files, as a flag, and in records. A job file is TOML:
`[defaults]` for all jobs, then one table `[job.NAME]` for each job. Jobs run at the same time unless one sets
`stonewall = true`. Flags override the file; a job's own options override `[defaults]`. `[limits]` fails the run by its figures ([ci.md](ci.md#limits)).

```toml
[defaults]
directory = \"/mnt/disk\"
size = \"4g\"
runtime = \"30s\"
time_based = true

[job.randread-4k]
rw = \"randread\"
bs = \"4k\"
iodepth = 32

[job.commit]
stonewall = true
rw = \"write\"
bs = \"4k\"
fdatasync = 1
fallocate = \"none\"
```

Sizes: `k`, `m`, `g`, `t` are powers of 1024, as in fio, and so are `KiB`, `MiB`…; `kB`, `MB`, `GB` are powers of 1000.
(In fio, `kib` is 1000.) Times: `us`, `ms`, `s`, `m`, `h`, `d`; a bare number is seconds, except in `thinktime`.

An impossible request is refused before anything is touched, and the message names the rule. An option without effect is noted.
`trueio explain JOB` prints every value with its origin. Existing files and devices are never written unless
[`overwrite_existing`](#overwrite_existing) names them, and files that the run created are removed at its end unless
[`unlink`](#unlink) is false.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_reference_page_is_rendered_from_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-options.md");
        let rendered = render_reference();
        if std::env::var_os("TRUEIO_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("docs")).expect("docs can be created");
            std::fs::write(&path, &rendered).expect("docs/job-options.md can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == rendered, "docs/job-options.md is stale; TRUEIO_BLESS=1 rewrites it");
    }

    #[test]
    fn every_row_is_in_the_reference_and_in_the_help() {
        let (reference, help) = (render_reference(), render_help());
        for row in TABLE {
            assert!(reference.contains(&format!("\n### {}\n", row.name)), "{}", row.name);
            assert!(help.contains(&format!("  --{} ", row.name)), "{}", row.name);
        }
    }
}
